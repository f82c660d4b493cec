"""``eman convert`` as its users run it."""

from __future__ import annotations

import importlib.util
import json
import pickle
import sys
import types
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eman
from eman import cli, convert


def authors_state(seed: int = 0, classes: int = 3, width: int = 4, powers: int = 2) -> dict[str, np.ndarray]:
    """A state_dict of RelTanGemCNN with the names and shapes of the authors' code."""
    draw = np.random.default_rng(seed)
    state: dict[str, Any] = {}
    channels, order = powers, 1
    for block in (1, 2, 3):
        last = 0 if block == 3 else 2
        for conv, (c_in, l_in, l_out) in enumerate(((channels, order, 2), (width, 2, last)), 1):
            rows = {(1, 2): 15, (2, 2): 25, (2, 0): 5}[l_in, l_out]
            name = f"conv{block}.conv{conv}"
            state[f"{name}.weight"] = draw.normal(size=(rows, 2, width, c_in))
            for part in ("bias", "ang_bias1", "ang_bias2"):
                state[f"{name}.{part}"] = draw.normal(size=width)
        if channels != width:
            state[f"conv{block}.lin.weight"] = draw.normal(size=(width, channels, 1))
        channels, order = width, 2
    state["lin1.weight"], state["lin1.bias"] = draw.normal(size=(8, width)), draw.normal(size=8)
    state["lin2.weight"], state["lin2.bias"] = draw.normal(size=(classes, 8)), draw.normal(size=classes)
    return {name: values.astype(np.float32) for name, values in state.items()}


def converted(source: Path, target: Path, *more: str) -> int:
    return cli.main(["convert", str(source), str(target), "--model", "RelTanGemCNN", *more])


@pytest.fixture
def expected() -> eman.Model:
    return eman.Model.from_authors(authors_state(), model="RelTanGemCNN")


@pytest.fixture
def fake_torch(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """Stands in for torch, whose one function that is used gives what `content` says."""
    fake = types.SimpleNamespace(content=None, arguments=[])

    def load(path: str, map_location: str, weights_only: bool) -> Any:
        fake.arguments.append((path, map_location, weights_only))
        if isinstance(fake.content, BaseException):
            raise fake.content
        return fake.content

    fake.load = load
    monkeypatch.setitem(sys.modules, "torch", fake)  # type: ignore[arg-type]
    return fake


class TestConvert:
    def test_npz(self, expected: eman.Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        np.savez(tmp_path / "state.npz", **authors_state())
        assert converted(tmp_path / "state.npz", tmp_path / "model.safetensors") == 0
        assert (tmp_path / "model.safetensors").read_bytes() == expected.to_bytes()
        printed = capsys.readouterr()
        assert "RelTanGemCNN, segmentation, 3 classes" in printed.out
        assert 'normals="angle"' in printed.out
        assert printed.err == ""

    def test_safetensors(self, expected: eman.Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        numpy = pytest.importorskip("safetensors.numpy")
        numpy.save_file(authors_state(), tmp_path / "state.safetensors")
        assert converted(tmp_path / "state.safetensors", tmp_path / "model.safetensors") == 0
        assert eman.Model.load(tmp_path / "model.safetensors").to_bytes() == expected.to_bytes()
        assert converted(tmp_path / "model.safetensors", tmp_path / "again.safetensors") == 1
        assert "model.safetensors is a model file of eman already" in capsys.readouterr().err
        assert not (tmp_path / "again.safetensors").exists()

    def test_torch(self, expected: eman.Model, tmp_path: Path, fake_torch: types.SimpleNamespace) -> None:
        (tmp_path / "state.pt").write_bytes(b"for torch alone")
        fake_torch.content = OrderedDict(authors_state())
        assert converted(tmp_path / "state.pt", tmp_path / "model") == 0
        assert fake_torch.arguments == [(str(tmp_path / "state.pt"), "cpu", True)]
        assert eman.Model.load(tmp_path / "model").to_bytes() == expected.to_bytes()

    def test_key(self, tmp_path: Path, fake_torch: types.SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "state.pt").touch()
        fake_torch.content = {"epoch": 3, "net": authors_state()}
        assert converted(tmp_path / "state.pt", tmp_path / "model", "--key", "net") == 0
        for more, message in (
            ((), "holds more than tensors ('epoch', 'net'): say which is the state_dict with --key, such as 'net'"),
            (("--key", "epoch"), "has no state_dict under 'epoch'; it has 'epoch', 'net'"),
            (("--key", "x"), "has no state_dict under 'x'"),
        ):
            assert converted(tmp_path / "state.pt", tmp_path / "other", *more) == 1
            assert message in capsys.readouterr().err
        fake_torch.content = [1, 2]
        assert converted(tmp_path / "state.pt", tmp_path / "other") == 1
        assert "holds a list, not a state_dict" in capsys.readouterr().err

    def test_options_reach_the_network(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        state = {name: values for name, values in authors_state(powers=1).items() if "ang_bias" not in name}
        np.savez(tmp_path / "state.npz", **state)
        more = (
            "--no-equiv-bias --regular-non-lin --rel-power-list 0.7 --deg-power 2 --rel-power-const 3 --null-isolated"
        )
        assert (
            converted(tmp_path / "state.npz", tmp_path / "m", *more.split(), "--task", "classification", "--json") == 0
        )
        told = json.loads(capsys.readouterr().out)
        assert told["target"] == str(tmp_path / "m")
        spec = told["spec"]
        assert spec == eman.Model.load(tmp_path / "m").spec
        assert (spec["bias"], spec["inner_nonlinearity"], spec["powers"]) == ("additive", True, [0.7])
        assert (spec["degree_power"], spec["relative_constant"], spec["task"]) == (2, 3, "classification")
        for option, value, message in (("--n-rings", "3", "its shape"), ("--max-order", "1", "its shape")):
            assert converted(tmp_path / "state.npz", tmp_path / "n", *more.split(), option, value) == 1
            assert message in capsys.readouterr().err

    def test_missing_and_unknown_names(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        state = authors_state()
        for change, message in (
            ({"surprise": np.zeros(3)}, "surprise"),
            ({"lin1.bias": None}, "lin1.bias: the tensor is"),
        ):
            changed = {name: values for name, values in {**state, **change}.items() if values is not None}
            np.savez(tmp_path / "state.npz", **changed)
            assert converted(tmp_path / "state.npz", tmp_path / "model", "--json") == 1
            printed = capsys.readouterr()
            assert f"state.npz: {message}" in printed.err
            assert len(printed.err.splitlines()) == 1
            error = json.loads(printed.out)["error"]
            assert (error["type"], error["status"]) == ("InvalidModelError", 1)
            assert message in error["message"]
        assert not (tmp_path / "model").exists()


class Whole:
    """A network that somebody pickled as a whole."""


def torch_file(path: Path, content: object) -> None:
    """A file as torch.save lays it out, as far as it matters here."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(content, protocol=2))
        archive.writestr("archive/version", "3\n")


class TestRefusals:
    def test_whole_models(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Refused by their class, without torch and without running anything."""
        torch_file(tmp_path / "model.pt", {"net": Whole()})
        assert converted(tmp_path / "model.pt", tmp_path / "out") == 1
        printed = capsys.readouterr().err
        assert "test_convert.Whole, not tensors alone: reading it would run code from the file" in printed
        assert "torch.save(model.state_dict(), path)" in printed

    def test_old_whole_models(
        self, tmp_path: Path, fake_torch: types.SimpleNamespace, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Those in torch's old layout are left to its own check; its hint to switch that off is not passed on."""
        (tmp_path / "model.pt").write_bytes(b"\x80\x02old")
        for text in (
            "Weights only load failed. Re-running `torch.load` with `weights_only` set to `False` will likely succeed"
            " WeightsUnpickler error: Unsupported class models.Net",
            "Weights only load failed... Unsupported global: GLOBAL models.Net was not an allowed global by default.",
        ):
            fake_torch.content = pickle.UnpicklingError(text)
            assert converted(tmp_path / "model.pt", tmp_path / "out") == 1
            printed = capsys.readouterr().err
            assert "holds a pickled models.Net" in printed
            assert "False" not in printed

    def test_tensors_alone_are_not_refused(self, tmp_path: Path) -> None:
        torch_file(tmp_path / "state.pt", OrderedDict(a=1))
        assert convert._foreign_class(tmp_path / "state.pt") is None

    @pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".pt", ".bin"])
    @pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04" + b"\0" * 60, b"\xff" * 100])
    def test_garbage(
        self,
        suffix: str,
        content: bytes,
        tmp_path: Path,
        fake_torch: types.SimpleNamespace,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        fake_torch.content = RuntimeError("not mine\nat all")
        path = tmp_path / f"state{suffix}"
        path.write_bytes(content)
        assert converted(path, tmp_path / "out") == 1
        printed = capsys.readouterr().err
        assert path.name in printed
        assert len(printed.splitlines()) == 1

    def test_objects_in_npz(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "state.npz", a=np.array([{}], object))
        with pytest.raises(eman.FileError, match="allow_pickle"):
            convert.read_state(tmp_path / "state.npz")

    def test_missing_files_and_folders(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert converted(tmp_path / "nothing.pt", tmp_path / "out") == 1
        assert "No such file or directory" in capsys.readouterr().err
        assert converted(tmp_path, tmp_path / "out") == 1
        np.savez(tmp_path / "state.npz", **authors_state())
        assert converted(tmp_path / "state.npz", tmp_path / "no" / "folder") == 1
        assert "folder" in capsys.readouterr().err

    @pytest.mark.parametrize(("suffix", "package"), [(".pt", "torch"), (".safetensors", "safetensors")])
    def test_missing_packages(
        self,
        suffix: str,
        package: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setitem(sys.modules, package, None)
        path = tmp_path / f"state{suffix}"
        path.touch()
        assert converted(path, tmp_path / "out", "--json") == 3
        printed = capsys.readouterr()
        assert f"needs {package}" in printed.err
        assert json.loads(printed.out)["error"]["status"] == 3

    def test_old_torch(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def load(path: str, map_location: str, **others: object) -> None:
            raise TypeError("'weights_only' is an invalid keyword argument for Unpickler()")

        monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(load=load))  # type: ignore[arg-type]
        (tmp_path / "state.pt").touch()
        assert converted(tmp_path / "state.pt", tmp_path / "out") == 3
        assert "needs torch 1.13 or later" in capsys.readouterr().err

    def test_interrupt(self, tmp_path: Path, fake_torch: types.SimpleNamespace) -> None:
        (tmp_path / "state.pt").touch()
        fake_torch.content = KeyboardInterrupt()
        assert converted(tmp_path / "state.pt", tmp_path / "out") == 130


class TestProgram:
    @pytest.mark.parametrize("arguments", [[], ["fly"], ["convert"], ["convert", "a", "b", "--model", "ResNet"]])
    def test_wrong_usage(self, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as stopped:
            cli.main(arguments)
        assert stopped.value.code == 2
        assert "usage: eman" in capsys.readouterr().err

    def test_help_tells_the_exit_statuses(self, capsys: pytest.CaptureFixture[str]) -> None:
        for arguments in (["--help"], ["convert", "--help"]):
            with pytest.raises(SystemExit) as stopped:
                cli.main(arguments)
            assert stopped.value.code == 0
            assert "130  interrupted" in capsys.readouterr().out

    def test_version(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            cli.main(["--version"])
        assert capsys.readouterr().out == f"eman {eman.__version__}\n"

    def test_entry_point_and_module_are_the_same(self) -> None:
        text = (Path(eman.__file__).parents[1] / "pyproject.toml").read_text()
        assert 'eman = "eman.cli:main"' in text
        assert "from eman.cli import main" in (Path(eman.__file__).parent / "__main__.py").read_text()


if importlib.util.find_spec("torch") is not None:  # no part of CI: it is large, and used for its own files alone

    def test_with_torch_itself(expected: eman.Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        import torch

        state = OrderedDict((name, torch.from_numpy(values)) for name, values in authors_state().items())
        assert eman.Model.from_authors(state, model="RelTanGemCNN").to_bytes() == expected.to_bytes()
        for name, zipped in (("new.pt", True), ("old.pt", False)):
            torch.save(state, tmp_path / name, _use_new_zipfile_serialization=zipped)
            assert converted(tmp_path / name, tmp_path / "model") == 0
            assert eman.Model.load(tmp_path / "model").to_bytes() == expected.to_bytes()
            torch.save(
                torch.nn.Sequential(torch.nn.Linear(2, 2)), tmp_path / name, _use_new_zipfile_serialization=zipped
            )
            assert converted(tmp_path / name, tmp_path / "model") == 1
            assert "holds a pickled torch.nn.modules.container.Sequential" in capsys.readouterr().err
