"""``eman demo`` as a newcomer runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eman
from eman import cli, demo

PARENT = Path(eman.__file__).parent.parent


def run(*arguments: Any, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "eman.demo", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(PARENT), "EMAN_LIBRARY": eman.build_info()["library"]},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_on_a_creature(parts_model: Path, tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    image = pytest.importorskip("matplotlib.image")
    done = run("--seed", 4, "--vertices", 900, "--model", parts_model, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "lizard number 4" in done.stdout
    assert "900 vertices, 1,796 faces, 5,388 directed edges, 1 component, Euler characteristic 2" in done.stdout
    assert "ns per directed edge" in done.stdout
    assert f"model: {parts_model}" in done.stdout
    assert "that the creature was made with" in done.stdout
    assert "on a mesh of another kind" not in done.stdout
    assert done.stdout.count("as it should be") == 6
    assert done.stdout.count("    0 change") == 3
    made = eman.creatures.creature(4, 900)
    labels = eman.Model.load(parts_model).predict(eman.Mesh(made))
    written = trimesh.load_mesh(tmp_path / "eman_demo" / "eman_demo_labels.ply", process=False)
    assert np.array_equal(written.faces, made.faces)
    assert np.array_equal(np.ravel(written.metadata["_ply_raw"]["vertex"]["data"]["label"]), labels)
    for name in ("eman_demo.png", "eman_demo_labels.png"):
        picture = image.imread(tmp_path / "eman_demo" / name)[..., :3]
        assert picture.shape[1] == 1600
        assert (np.ptp(picture, axis=-1) > 0.2).mean() > 0.05


@pytest.fixture
def _unwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """No files: pictures take long."""
    monkeypatch.setattr(demo, "_write", lambda writers, say: [])


@pytest.mark.usefixtures("_unwritten")
def test_json(parts_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--vertices", "800", "--model", str(parts_model), "--output", str(tmp_path), "--json"]
    assert cli.main(["demo", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["good"] is True
    assert set(found["features"]) == set(found["symmetries"]) == {"gauge", "similarity", "permutation"}
    assert sum(found["counts"].values()) == 800
    assert 0 <= found["accuracy"] <= 1


@pytest.mark.usefixtures("_unwritten")
@pytest.mark.parametrize(("mesh", "model"), [(False, "creature-parts"), (True, "human-parts")])
def test_takes_a_shipped_model(
    mesh: bool,
    model: str,
    horse: eman.creatures.Creature,
    parts_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The one for the kind of mesh; on a mesh of the user's own it says that it labels what it is given."""
    pytest.importorskip("trimesh")
    opened = []

    def shipped(name: str) -> eman.Model:
        opened.append(name)
        return eman.Model.load(parts_model)

    monkeypatch.setattr(demo, "open_model", shipped)
    path = eman.plot.export_labels(horse, horse.labels, tmp_path / "horse.ply")
    chosen = ["--mesh", str(path)] if mesh else ["--vertices", "800"]
    assert demo.main([*chosen, "--output", str(tmp_path)]) == 0
    assert opened == [model]
    printed = capsys.readouterr().out
    assert f"model: {model}" in printed
    assert ("It labels whatever it is given" in printed) == mesh


@pytest.mark.usefixtures("_unwritten")
@pytest.mark.parametrize(
    ("content", "printed"),
    [
        (
            "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0.5 0.5 1\nv 9 9 9\nv 2 0 0\n"
            "f 1 2 3 4\nf 1 2 5\nf 2 3 5\nf 3 4 5\nf 1 2 2\nf 1 2 7\n",
            (
                "1 isolated vertex: 5",
                "1 dropped face",
                "non manifold edge",
                "without the 1 vertices whose faces define",
            ),
        ),
        ("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\nf 3 2 1\n", ("without the 3 vertices whose faces define no normal",)),
    ],
)
def test_on_files_with_defects(
    content: str, printed: tuple[str, ...], parts_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("trimesh")
    path = tmp_path / "broken.obj"
    path.write_text(content)
    assert demo.main(["--mesh", str(path), "--model", str(parts_model), "--output", str(tmp_path)]) == 0
    found = capsys.readouterr().out
    assert "have no normal of their own" in found
    for part in printed:
        assert part in found


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file or directory"),
        ("There is no mesh in here.\n", "cannot be read as a mesh"),
        ("v 0 0 0\nv 1 0 0\n", "a.obj has no faces"),
    ],
)
def test_errors_are_one_line(content: str, message: str, tmp_path: Path) -> None:
    pytest.importorskip("trimesh")
    path = tmp_path / "a.obj"
    if content is not None:
        path.write_text(content)
    done = run("--mesh", path, cwd=tmp_path)
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stdout + done.stderr


def test_wrong_usage(tmp_path: Path) -> None:
    done = run("--species", "unicorn", cwd=tmp_path)
    assert done.returncode == 2
    assert "invalid choice" in done.stderr


def test_output_that_cannot_be_made(parts_model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    arguments = ["--vertices", 800, "--model", parts_model, "--output", tmp_path / "file" / "below"]
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


def on_a_creature(model: Path, output: Path) -> int:
    return demo.main(["--vertices", "800", "--model", str(model), "--output", str(output)])


def test_without_extras_it_says_what_is_not_written(
    parts_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("matplotlib", "trimesh", "pyvista"):
        monkeypatch.setitem(sys.modules, name, None)
    assert on_a_creature(parts_model, tmp_path) == 0
    printed = capsys.readouterr().out
    assert printed.count("not written") == 3
    assert "pip install eman[all]" in printed


@pytest.mark.usefixtures("_unwritten")
def test_failed_equivariance_is_reported(
    parts_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The check can fail: with a wrong rotation it does."""
    monkeypatch.setattr(eman.transforms.Similarity, "vectors_back", lambda self, vectors: vectors)
    assert on_a_creature(parts_model, tmp_path) == 1
    printed = capsys.readouterr().out
    assert printed.count("TOO LARGE") == 1
    assert printed.count("as it should be") == 5


@pytest.mark.usefixtures("_unwritten")
def test_a_network_that_is_not_equivariant_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    eman.Model("authors", classes=4).save(tmp_path / "authors.safetensors")
    assert on_a_creature(tmp_path / "authors.safetensors", tmp_path) == 1
    printed = capsys.readouterr().out
    assert printed.count("TOO LARGE") == 2  # gauge and order; the similarity changes no frame relative to the mesh


@pytest.mark.usefixtures("_unwritten")
def test_a_model_of_whole_meshes_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    eman.Model("surface", classes=4, task="classification").save(tmp_path / "whole.safetensors")
    assert on_a_creature(tmp_path / "whole.safetensors", tmp_path) == 1
    assert "labels a mesh as a whole" in capsys.readouterr().err
