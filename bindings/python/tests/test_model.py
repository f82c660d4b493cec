"""Models: descriptions, files, parameters, inference, errors, and life in a process."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eman
from eman import _capi
from eman.creatures import Creature
from eman.model import Layer

from .conftest import TETRAHEDRON
from .test_lifetime import needs_fork, script

#: A network that is quick and uses everything.
SMALL = {"width": 8, "blocks": 2, "hidden": 12, "max_order": 1, "heads": 2}


@pytest.fixture(scope="module")
def mesh(horse: Creature) -> eman.Mesh:
    return eman.Mesh(horse)


def small(**options: Any) -> eman.Model:
    return eman.Model("default", **{"classes": 5, **SMALL, **options})


def equal(a: eman.Model, b: eman.Model) -> bool:
    ours, theirs = a.parameters(), b.parameters()
    return a.spec == b.spec and list(ours) == list(theirs) and all(np.array_equal(ours[n], theirs[n]) for n in ours)


class TestDescription:
    @pytest.mark.parametrize("preset", ["default", "paper", "authors"])
    @pytest.mark.parametrize("kind", ["eman", "gem", "spiral"])
    def test_presets(self, preset: str, kind: str) -> None:
        model = eman.Model(preset, classes=16, kind=kind)
        assert (model.classes, model.task, model.labels) == (16, "segmentation", [])
        assert model.spec["kind"] == kind
        assert model.spec["classes"] == 16
        assert equal(eman.Model(model.spec), model)
        assert f"Model({kind}, " in repr(model)

    def test_overrides_and_dicts(self) -> None:
        model = eman.Model("authors", classes=3, task="classification", powers=[0.1], band_limit=None, width=4)
        spec = model.spec
        assert (spec["task"], spec["powers"], spec["band_limit"], spec["width"]) == ("classification", [0.1], None, 4)
        assert spec["aggregation"] == "mean"
        spec["width"] = 9
        assert model.spec["width"] == 4
        again = eman.Model(spec, classes=7, heads=3)
        assert (again.task, again.classes, again.spec["heads"]) == ("classification", 7, 3)
        assert eman.Model({"preset": "paper"}, classes=2).spec["aggregation"] == "sum"
        assert eman.Model(classes=2).spec == eman.Model("default", classes=2).spec

    def test_numpy_values(self) -> None:
        model = eman.Model("default", classes=np.int64(4), powers=np.array([0.5, 2.0]), width=np.int32(8))
        assert model.spec["powers"] == [0.5, 2.0]
        assert model.classes == 4

    def test_labels(self) -> None:
        names = ["Kopf", "θ", "手", 'say "hi"\n']
        model = eman.Model("default", labels=names)
        assert model.labels == names
        assert model.classes == 4
        assert eman.Model.from_bytes(model.to_bytes()).labels == names

    def test_layers(self) -> None:
        model = small(features="get")
        assert model.layers == [
            Layer("blocks.0.conv1", 8, 1, 2),
            Layer("blocks.0.conv2", 8, 1, 2),
            Layer("blocks.1.conv1", 8, 1, 2),
            Layer("blocks.1.conv2", 8, 0, 2),
        ]
        assert {layer.heads for layer in small(kind="gem", heads=1).layers} == {0}

    def test_seed_decides(self) -> None:
        assert equal(small(seed=5), small(seed=5))
        assert not equal(small(seed=5), small(seed=6))
        assert equal(small(seed=2**64 - 1), small(seed=2**64 - 1))

    @pytest.mark.parametrize(
        ("options", "kind", "message"),
        [
            ({}, eman.InvalidArgumentError, "classes, the number of classes, is needed"),
            ({"classes": 0}, eman.InvalidModelError, "classes: 0 is out of range"),
            ({"classes": 2, "labels": ["one"]}, eman.InvalidModelError, "labels: 1 names for 2 classes"),
            ({"classes": "many"}, eman.InvalidModelError, "classes"),
            ({"classes": 2, "colour": "red"}, eman.InvalidModelError, "colour"),
            ({"classes": 2, "kind": "cnn"}, eman.InvalidModelError, 'kind: "cnn" is not one of eman, gem, spiral'),
            ({"classes": 2, "task": "regression"}, eman.InvalidModelError, "task"),
            ({"classes": 2, "heads": 3}, eman.InvalidModelError, "3 does not divide the width 16"),
            ({"classes": 2, "powers": [float("nan")]}, eman.InvalidArgumentError, "not JSON compliant"),
            ({"classes": 2, "powers": object()}, eman.InvalidArgumentError, "does not fit into a description"),
            ({"classes": 2, "seed": -1}, eman.InvalidArgumentError, "seed must be between 0 and"),
            ({"classes": 2, "seed": 2**64}, eman.InvalidArgumentError, "seed must be between 0 and"),
            ({"classes": 2**24, "hidden": 2**16}, eman.InvalidModelError, "more than"),
        ],
    )
    def test_refuses(self, options: dict[str, Any], kind: type, message: str) -> None:
        with pytest.raises(kind, match=message):
            eman.Model("default", **options)

    def test_refuses_other_presets(self) -> None:
        with pytest.raises(eman.InvalidModelError, match="preset"):
            eman.Model("best", classes=2)
        for wrong in (None, 3, ["default"]):
            with pytest.raises(eman.InvalidArgumentError, match="preset must be a name or a dict"):
                eman.Model(wrong, classes=2)  # type: ignore[arg-type]

    def test_memory_limit(self) -> None:
        with pytest.raises(eman.OutOfMemoryError):
            eman.Model("default", classes=2**16, context=eman.Context(memory_limit=1_000_000))
        model = small(context=eman.Context(memory_limit=4_000_000))
        many = eman.Mesh(np.zeros((50_000, 3)), [])
        for call in (model.logits, model.predict):
            with pytest.raises(eman.OutOfMemoryError, match="limit of 4000000"):
                call(many)
        assert model.context.memory_used == 0
        assert model.logits(eman.Mesh(*TETRAHEDRON)).shape == (4, 5)


class TestFiles:
    def test_save_and_load(self, tmp_path: Path) -> None:
        model = small(seed=3, labels=list("abcde"))
        for path in (tmp_path / "model.safetensors", str(tmp_path / "ä 手.safetensors"), os.fsencode(tmp_path / "b")):
            model.save(path)  # type: ignore[arg-type]
            assert equal(eman.Model.load(path), model)  # type: ignore[arg-type]
        assert (tmp_path / "model.safetensors").read_bytes() == model.to_bytes()
        assert {p.name for p in tmp_path.iterdir()} == {"model.safetensors", "ä 手.safetensors", "b"}
        context = eman.Context(threads=1)
        assert eman.Model.load(tmp_path / "b", context=context).context is context

    def test_python_safetensors_opens_it(self, tmp_path: Path) -> None:
        safetensors = pytest.importorskip("safetensors")
        numpy = pytest.importorskip("safetensors.numpy")
        model = small(seed=3, labels=list("abcde"))
        path = tmp_path / "model.safetensors"
        model.save(path)
        ours, theirs = model.parameters(), numpy.load_file(path)
        assert set(ours) == set(theirs)
        for name, values in ours.items():
            assert theirs[name].dtype == np.float32
            assert np.array_equal(theirs[name], values)
        with safetensors.safe_open(path, framework="numpy") as file:
            assert file.metadata()["format"] == "eman"
        with safetensors.safe_open(path, framework="numpy") as file:
            metadata = file.metadata()
        numpy.save_file({**theirs, "dense2.bias": theirs["dense2.bias"] + 1}, path, metadata)
        changed = eman.Model.load(path)
        assert np.array_equal(changed.parameters()["dense2.bias"], ours["dense2.bias"] + 1)
        assert changed.labels == list("abcde")

    def test_buffers(self) -> None:
        model = small()
        data = model.to_bytes()
        for buffer in (bytearray(data), memoryview(data), np.frombuffer(data, np.uint8), memoryview(data + data)[::1]):
            if len(buffer) == len(data):
                assert equal(eman.Model.from_bytes(buffer), model)  # type: ignore[arg-type]
        spread = np.repeat(np.frombuffer(data, np.uint8), 2)[::2]
        assert equal(eman.Model.from_bytes(memoryview(spread)), model)  # type: ignore[arg-type]

    @pytest.mark.parametrize("data", [b"", b"x", b"\xff" * 8, b"\0" * 64])
    def test_bad_bytes(self, data: bytes) -> None:
        with pytest.raises(eman.InvalidModelError):
            eman.Model.from_bytes(data)

    def test_truncated_at_every_length(self) -> None:
        data = eman.Model("paper", classes=1, width=1, blocks=1, hidden=1, max_order=0, powers=[1]).to_bytes()
        for length in range(0, len(data), 7):
            with pytest.raises(eman.InvalidModelError):
                eman.Model.from_bytes(data[:length])

    def test_no_bytes(self) -> None:
        with pytest.raises(eman.InvalidArgumentError, match="data must be bytes"):
            eman.Model.from_bytes("text")  # type: ignore[arg-type]

    def test_errors(self, tmp_path: Path) -> None:
        with pytest.raises(eman.FileError, match="nothing"):
            eman.Model.load(tmp_path / "nothing")
        with pytest.raises(OSError):  # noqa: PT011, any
            eman.Model.load(tmp_path)
        with pytest.raises(eman.FileError):
            small().save(tmp_path / "no" / "folder")
        (tmp_path / "other").write_bytes(b"hello, this is no model")
        with pytest.raises(eman.InvalidModelError, match="other"):
            eman.Model.load(tmp_path / "other")
        with pytest.raises(eman.InvalidArgumentError, match="zero byte"):
            eman.Model.load(str(tmp_path / "other") + "\0.txt")
        with pytest.raises(eman.InvalidArgumentError, match="not valid Unicode"):
            small().save(str(tmp_path / "\udcff"))
        with pytest.raises(TypeError):
            eman.Model.load(3)  # type: ignore[arg-type]


class TestParameters:
    def test_copies(self) -> None:
        model = small()
        before = model.parameters()
        assert all(values.dtype == np.float32 for values in before.values())
        for values in model.parameters().values():
            values[:] = 7
        assert all(np.array_equal(before[name], values) for name, values in model.parameters().items())
        assert f"parameters={sum(v.size for v in before.values())})" in repr(model)

    def test_set_some(self, mesh: eman.Mesh) -> None:
        model, other = small(seed=1), small(seed=2)
        before = model.logits(mesh)
        model.set_parameters({})
        assert np.array_equal(model.logits(mesh), before)
        model.set_parameters({"dense2.bias": [1, 2, 3, 4, 5]})
        assert model.parameters()["dense2.bias"].tolist() == [1, 2, 3, 4, 5]
        model.set_parameters(other.parameters())
        assert equal(model, other)
        assert np.array_equal(model.logits(mesh), other.logits(mesh))

    @pytest.mark.parametrize("dtype", ["f8", "f4", ">f4", "f2", "i4", "u1"])
    def test_types(self, dtype: str) -> None:
        model = small()
        wanted = np.arange(60).reshape(5, 12)
        for values in (wanted.astype(dtype), np.asfortranarray(wanted.astype(dtype)), wanted.astype(dtype)[::-1][::-1]):
            model.set_parameters({"dense2.weight": values})
            assert np.array_equal(model.parameters()["dense2.weight"], wanted)

    def test_tensors_of_torch(self) -> None:
        """Whatever has torch's detach and cpu: on a device, requiring a gradient, of a type that numpy lacks."""

        class Tensor:
            dtype = "torch.bfloat16"

            def __init__(self, steps: tuple[str, ...] = ()) -> None:
                self.steps = steps

            def detach(self) -> Tensor:
                return Tensor((*self.steps, "detach"))

            def cpu(self) -> Tensor:
                return Tensor((*self.steps, "cpu"))

            def float(self) -> Tensor:
                return Tensor((*self.steps, "float"))

            def numpy(self) -> np.ndarray:
                assert self.steps == ("detach", "cpu", "float")
                return np.ones(5, np.float32)

        model = small()
        model.set_parameters({"dense2.bias": Tensor()})
        assert model.parameters()["dense2.bias"].tolist() == [1] * 5
        with pytest.raises(eman.InvalidArgumentError, match=r"parameters\['dense2.bias'\] cannot be read as an array"):
            model.set_parameters({"dense2.bias": type("Sparse", (Tensor,), {"detach": lambda self: len(self)})()})

    @pytest.mark.parametrize(
        ("change", "kind", "message"),
        [
            ({"dense3.bias": np.zeros(5)}, eman.InvalidModelError, "dense3.bias: the network has no such tensor"),
            ({"dense2.bias": np.zeros(6)}, eman.InvalidModelError, r"dense2.bias: its shape is \[6\].* not \[5\]"),
            ({"dense2.bias": np.zeros((5, 1))}, eman.InvalidModelError, r"dense2.bias: its shape is \[5 1\]"),
            ({"dense2.bias": 0.0}, eman.InvalidModelError, r"dense2.bias: its shape is \[\]"),
            ({"dense2.bias": [0, 0, np.nan, 0, 0]}, eman.InvalidModelError, "dense2.bias: number 2 is NaN"),
            ({"dense2.bias": [0, 0, 0, 0, 1e300]}, eman.InvalidModelError, r"dense2.bias: number 4 is \+Inf"),
            ({"dense2.bias": ["a"] * 5}, eman.InvalidArgumentError, "must be real numbers"),
            ({"dense2.bias": np.zeros(5, complex)}, eman.InvalidArgumentError, "must be real numbers, got complex"),
            ({"dense2.bias": np.zeros((1,) * 9)}, eman.InvalidArgumentError, "rank is 9"),
            ({3: np.zeros(5)}, eman.InvalidArgumentError, "3 is no name of a tensor"),
            ({"dense2.bias\0": np.zeros(5)}, eman.InvalidArgumentError, "is no name of a tensor"),
            ({"\udcff": np.zeros(5)}, eman.InvalidModelError, "no such tensor"),
            ([("dense2.bias", np.zeros(5))], eman.InvalidArgumentError, "parameters must map names to arrays"),
        ],
    )
    def test_errors_change_nothing(self, change: Any, kind: type, message: str) -> None:
        model = small()
        before = copy.deepcopy(model)
        if isinstance(change, dict):
            change = {"dense1.bias": np.ones(12), **change}
        with pytest.raises(kind, match=message):
            model.set_parameters(change)
        assert equal(model, before)


class TestInference:
    def test_segmentation(self, mesh: eman.Mesh) -> None:
        model = small()
        logits = model.logits(mesh)
        assert (logits.shape, logits.dtype) == ((800, 5), np.float32)
        assert np.abs(np.exp(logits).sum(axis=1) - 1).max() < 1e-6
        labels = model.predict(mesh)
        assert isinstance(labels, np.ndarray)
        assert labels.dtype == np.int32
        assert np.array_equal(labels, logits.argmax(axis=1))
        best, probabilities = model.top(mesh, 3)
        assert (best.shape, best.dtype, probabilities.dtype) == ((800, 3), np.int32, np.float32)
        assert np.array_equal(best[:, 0], labels)
        ordered = -np.sort(-np.exp(logits), axis=1)[:, :3]
        assert np.abs(probabilities - ordered).max() < 1e-6

    def test_classification(self, mesh: eman.Mesh) -> None:
        model = small(task="classification")
        logits = model.logits(mesh)
        assert logits.shape == (5,)
        label = model.predict(mesh)
        assert type(label) is int
        assert label == logits.argmax()
        best, probabilities = model.top(mesh, 5)
        assert best.shape == probabilities.shape == (5,)
        assert np.array_equal(best, np.argsort(-logits, kind="stable"))

    def test_attention(self, mesh: eman.Mesh) -> None:
        model = small(seed=4, initialisation="authors")
        alpha = model.attention(mesh, 2)
        assert (alpha.shape, alpha.dtype) == ((mesh.edge_count, 2), np.float32)
        offsets, _ = mesh.neighbors
        sums = np.add.reduceat(alpha, offsets[:-1], axis=0)
        assert np.abs(sums - np.diff(offsets)[:, None]).max() < 1e-4
        assert alpha.std() > 0.01
        assert np.array_equal(model.attention(mesh, "blocks.1.conv1"), alpha)
        assert np.array_equal(model.attention(mesh, -2), alpha)

    def test_features(self, mesh: eman.Mesh) -> None:
        model = small(features="xyz", heads=1, kind="gem", max_order=2)
        features = model.features(mesh, 0)
        assert (features.shape, features.dtype) == ((800, 8, 5), np.float32)
        assert model.features(mesh, -1).shape == (800, 8, 1)
        changed = eman.transforms.gauge(mesh, seed=2)
        turned = model.features(changed.mesh, 1)
        before = model.features(mesh, "blocks.0.conv2")
        scale = np.abs(before).max()
        assert np.abs(turned[..., 0] - before[..., 0]).max() < 1e-5 * scale
        for order in (1, 2):
            pair = slice(2 * order - 1, 2 * order + 1)
            assert np.abs(turned[..., pair] - before[..., pair]).max() > 0.1 * scale
            assert np.abs(changed.features_back(turned[..., pair], order) - before[..., pair]).max() < 1e-5 * scale

    def test_the_dense_layers_are_what_follows_the_features(self, mesh: eman.Mesh) -> None:
        model = small()
        p = {name: values.astype(float) for name, values in model.parameters().items()}
        hidden = np.maximum(model.features(mesh, -1)[..., 0] @ p["dense1.weight"].T + p["dense1.bias"], 0)
        scores = hidden @ p["dense2.weight"].T + p["dense2.bias"]
        expected = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        assert np.abs(model.logits(mesh) - expected).max() < 1e-5

    @pytest.mark.parametrize("kind", ["eman", "gem", "spiral"])
    def test_meshes_without_much(self, kind: str) -> None:
        model = eman.Model("default", classes=3, kind=kind)
        for vertices, faces in ((np.zeros((0, 3)), []), (np.zeros((2, 3)), []), TETRAHEDRON):
            mesh = eman.Mesh(vertices, faces)
            assert model.logits(mesh).shape == (len(vertices), 3)
            assert np.isfinite(model.logits(mesh)).all()
            assert np.shape(model.predict(mesh)) == (len(vertices),)
            assert model.features(mesh, 0).shape[0] == len(vertices)
        with pytest.raises(eman.InvalidArgumentError, match="without vertices"):
            eman.Model("default", classes=3, kind=kind, task="classification").predict(eman.Mesh(np.zeros((0, 3)), []))

    def test_errors(self, mesh: eman.Mesh) -> None:
        model = small()
        for call in (model.logits, model.predict, lambda m: model.top(m, 1), lambda m: model.attention(m, 0)):
            with pytest.raises(eman.InvalidArgumentError, match=r"mesh must be an eman.Mesh, got tuple"):
                call(TETRAHEDRON)  # type: ignore[operator]
        for layer in (4, -5, 2**40):
            with pytest.raises(eman.InvalidArgumentError, match="layer must be between 0 and 3"):
                model.features(mesh, layer)
        with pytest.raises(eman.InvalidArgumentError, match=r"layer must be one of blocks.0.conv1, .* got 'conv9'"):
            model.attention(mesh, "conv9")
        with pytest.raises(eman.InvalidArgumentError, match=r"layer 0, blocks.0.conv1, has no attention"):
            small(kind="gem", heads=1).attention(mesh, 0)
        for k in (0, 6, -1):
            with pytest.raises(eman.InvalidArgumentError, match="k must be between 1 and 5"):
                model.top(mesh, k)
        huge = eman.Mesh(np.array(TETRAHEDRON[0]) * 1e200, TETRAHEDRON[1])
        with pytest.raises(eman.InvalidMeshError, match="too large"):
            small(features="xyz").logits(huge)
        with pytest.raises(eman.InvalidArgumentError, match="progress must be a function or a progress bar"):
            model.logits(mesh, progress=7)

    def test_estimate(self, mesh: eman.Mesh) -> None:
        for options in ({}, {"task": "classification"}, {"kind": "gem", "heads": 1}, {"heads": 8, "classes": 500}):
            context = eman.Context(threads=2)
            model = small(context=context, **options)
            before = context.memory_used
            model.predict(mesh)
            estimate = model.estimate(mesh.vertex_count, mesh.edge_count)
            assert 0.7 * estimate <= context.memory_peak - before <= 1.1 * estimate
        assert model.estimate(1000) == model.estimate(1000, 6000)
        assert model.estimate(0) >= 0
        for wrong in ((-1, 0), (0, -1), (2**31, 0), (0, 2**63), (2**64, 2)):
            with pytest.raises(eman.InvalidArgumentError):
                model.estimate(*wrong)
            with pytest.raises(eman.InvalidArgumentError):
                model.estimate_work(*wrong)

    def test_estimate_work(self) -> None:
        model = small(task="segmentation")
        flops, seconds = model.estimate_work(1000)
        assert model.estimate_work(1000, 6000)[0] == flops == model.estimate_work(100_000)[0] / 100
        assert 0 < seconds < model.estimate_work(1_000_000)[1]
        assert small(classes=500).estimate_work(1000)[0] > flops


class TestProgress:
    def test_on_the_thread_of_the_call(self, mesh: eman.Mesh) -> None:
        model = small(width=32)
        seen: list[tuple[float, object]] = []

        def note(fraction: float) -> None:
            seen.append((fraction, threading.current_thread()))

        def work() -> None:
            model.logits(mesh, progress=note)

        work()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        for caller in (threading.main_thread(), thread):
            fractions = [fraction for fraction, on in seen if on is caller]
            assert fractions == sorted(fractions)
            assert fractions[-1] == 1
            assert fractions[0] >= 0

    def test_may_use_the_same_objects(self, mesh: eman.Mesh) -> None:
        model = small(width=32)
        expected = model.attention(mesh, 1), model.predict(mesh)
        inside: list[object] = []

        def use(_fraction: float) -> None:
            inside.append(np.array_equal(model.predict(mesh), expected[1]) and len(mesh.edge_angles) > 0)
            model.set_parameters(model.parameters())

        assert np.array_equal(model.attention(mesh, 1, progress=use), expected[0])
        assert inside
        assert all(inside)

    def test_exceptions_end_the_call(self, mesh: eman.Mesh) -> None:
        model = small(width=64, hidden=2000, classes=2000)

        class Enough(Exception):
            pass

        def stop(_fraction: float) -> None:
            raise Enough

        for call in (model.logits, model.predict):
            with pytest.raises(Enough):
                call(mesh, progress=stop)
        with pytest.raises(eman.CancelledError):
            model.logits(mesh, progress=lambda f: exec("raise eman.CancelledError('by request')", {"eman": eman}))
        assert model.predict(mesh).shape == (800,)  # type: ignore[union-attr]

    def test_bars(self, mesh: eman.Mesh, capsys: pytest.CaptureFixture[str]) -> None:
        tqdm = pytest.importorskip("tqdm").tqdm
        model = small()
        model.logits(mesh, progress=tqdm)
        assert "100%" in capsys.readouterr().err
        with tqdm(total=80, disable=False) as bar:
            model.predict(mesh, progress=bar)
            assert bar.n == pytest.approx(80)


class TestThreads:
    def test_same_bits_for_any_number_of_threads(self, mesh: eman.Mesh) -> None:
        for options in ({}, {"kind": "gem"}, {"kind": "spiral"}, {"task": "classification"}, {"preset": "authors"}):
            preset = {"preset": "default", "initialisation": "authors", "classes": 40, **options}
            results = []
            for threads in (1, 2, 3, 7):
                context = eman.Context(threads=threads)
                model = eman.Model(preset, context=context)
                other = eman.Mesh(mesh.vertices, mesh.faces, context=context)
                layer = model.features(other, 1)
                alpha = model.attention(other, 1) if model.layers[1].heads else layer
                results.append(
                    (model.logits(other), *model.top(other, 4), np.array(model.predict(other)), layer, alpha)
                )
            for result in results[1:]:
                assert all(np.array_equal(one, first) for one, first in zip(result, results[0]))

    def test_many_host_threads_share_a_model_and_a_mesh(self, mesh: eman.Mesh) -> None:
        model = small(initialisation="authors")
        calls = (
            lambda: model.logits(mesh),
            lambda: model.predict(mesh),
            lambda: model.attention(mesh, 1),
            lambda: model.features(mesh, 2),
            lambda: np.concatenate(model.top(mesh, 2)),
            lambda: np.concatenate([values.ravel() for values in model.parameters().values()]),
        )
        expected = [call() for call in calls]
        wrong: list[int] = []

        def work(number: int) -> None:
            for turn in range(6):
                which = (number + turn) % len(calls)
                if not np.array_equal(calls[which](), expected[which]):
                    wrong.append(which)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong

    def test_parameters_change_between_calls_never_within(self, mesh: eman.Mesh) -> None:
        model = small()
        states = [small(seed=seed).parameters() for seed in (1, 2)]
        expected = [small(seed=seed).predict(mesh) for seed in (1, 2)]
        model.set_parameters(states[0])
        stop = threading.Event()

        def change() -> None:
            while not stop.is_set():
                for state in (states[1], states[0]):
                    model.set_parameters(state)

        changer = threading.Thread(target=change)
        changer.start()
        try:
            for _ in range(30):
                got = model.predict(mesh)
                assert any(np.array_equal(got, one) for one in expected)
                found = model.parameters()
                assert any(all(np.array_equal(found[n], s[n]) for n in s) for s in states)
        finally:
            stop.set()
            changer.join()

    def test_the_mesh_may_move_meanwhile(self, horse: Creature) -> None:
        """What a call sees is of one position; the number of edges changes with it."""
        vertices, faces = TETRAHEDRON
        folded = vertices.copy()
        folded[1] = folded[0]
        mesh, model = eman.Mesh(vertices, faces), small()
        expected = [model.attention(eman.Mesh(p, faces), 1) for p in (vertices, folded)]
        assert [len(alpha) for alpha in expected] == [12, 10]
        stop = threading.Event()

        def move() -> None:
            while not stop.is_set():
                mesh.update(folded)
                mesh.update(vertices)

        mover = threading.Thread(target=move)
        mover.start()
        try:
            for _ in range(200):
                got = model.attention(mesh, 1)
                assert any(np.array_equal(got, one) for one in expected)
        finally:
            stop.set()
            mover.join()


class TestLife:
    def test_travels(self, mesh: eman.Mesh) -> None:
        model = small(seed=3, labels=list("abcde"), context=eman.Context(threads=1))
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            assert equal(pickle.loads(pickle.dumps(model, protocol)), model)
        for other in (model.copy(), copy.copy(model), copy.deepcopy(model)):
            assert equal(other, model)
            assert other.context is model.context
            other.set_parameters({"dense2.bias": np.full(5, 9)})
            assert not equal(other, model)
        assert pickle.loads(pickle.dumps(model)).context is not model.context

    def test_closing(self, mesh: eman.Mesh) -> None:
        with small() as model:
            assert model.predict(mesh).shape == (800,)  # type: ignore[union-attr]
        assert repr(model) == "Model(closed)"
        for call in (
            lambda: model.logits(mesh),
            lambda: model.top(mesh, 1),
            lambda: model.features(mesh, 0),
            lambda: model.attention(mesh, 0),
            lambda: model.estimate(10),
            lambda: model.estimate_work(10),
            lambda: model.set_parameters({}),
            lambda: model.save("nowhere"),
            model.parameters,
            model.copy,
            model.to_bytes,
            lambda: pickle.dumps(model),
        ):
            with pytest.raises(eman.InvalidArgumentError, match="the model is closed"):
                call()
        assert model.spec["classes"] == 5
        model.close()
        closed = eman.Mesh(*TETRAHEDRON)
        closed.close()
        with pytest.raises(eman.InvalidArgumentError, match="the mesh is closed"):
            small().logits(closed)
        gone = eman.Context()
        model = small(context=gone)
        gone.close()
        assert model.predict(mesh).shape == (800,)  # type: ignore[union-attr]
        with pytest.raises(eman.InvalidArgumentError, match="the context is closed"):
            small(context=gone)

    def test_garbage(self, mesh: eman.Mesh) -> None:
        context = eman.Context()
        model = small(context=context)
        model.predict(mesh)
        gone = weakref.ref(model)
        model.cycle = model  # type: ignore[attr-defined]
        del model
        gc.collect()
        assert gone() is None
        model = small(context=context)
        for _ in range(20):
            with pytest.raises(eman.InvalidModelError):
                eman.Model.from_bytes(model.to_bytes()[:-1], context=context)
            model.copy().predict(mesh)
        used = context.memory_used
        for _ in range(20):
            model.copy().predict(mesh)
        gc.collect()
        assert context.memory_used == used

    def test_resident_memory_stays_flat(self, tmp_path: Path) -> None:
        grown = script(
            """
            import eman
            mesh = eman.Mesh(eman.creatures.creature(0, 800))
            def resident():
                return int(open("/proc/self/statm").read().split()[1]) * 4096
            def work():
                for _ in range(15):
                    model = eman.Model("default", classes=2000)
                    other = eman.Model.from_bytes(model.to_bytes())
                    other.set_parameters(model.parameters())
                    other.close()
                model.predict(mesh)
                eman.trim()
            work()
            before = resident()
            work(); work()
            print(resident() - before)
            """,
            tmp_path,
        )
        assert int(grown) < 16_000_000  # a model takes 4 MB here


@needs_fork
def test_fork(tmp_path: Path) -> None:
    printed = script(
        """
        import os, time, numpy as np, eman, pickle
        mesh, model = eman.Mesh(eman.creatures.creature(0, 800)), eman.Model("default", classes=3)
        data, state = model.to_bytes(), model.parameters()
        before = model.predict(mesh)
        child = os.fork()
        if child == 0:
            start = time.monotonic()
            calls = (
                lambda: model.logits(mesh), lambda: model.predict(mesh), lambda: model.top(mesh, 1),
                lambda: model.attention(mesh, 0), lambda: model.features(mesh, 0), lambda: model.estimate(5),
                lambda: model.parameters(), lambda: model.set_parameters(state), lambda: model.to_bytes(),
                lambda: model.save("m"), lambda: eman.Model.load("m"), lambda: eman.Model.from_bytes(data),
                lambda: eman.Model("default", classes=3), lambda: eman.Model.from_authors(state),
                lambda: pickle.dumps(model), lambda: eman.equivariance_gap(model, mesh, "gauge"),
                lambda: model.logits(mesh, progress=print), lambda: model.copy(),
            )
            for number, call in enumerate(calls):
                try:
                    call()
                except eman.ForkedError:
                    continue
                os._exit(100 + number)
            model.close()
            os._exit(0 if time.monotonic() - start < 5 else 99)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), np.array_equal(model.predict(mesh), before))
        """,
        tmp_path,
    )
    assert printed == "0 True"


@needs_fork
@pytest.mark.parametrize(
    "call", ["logits(mesh)", "predict(mesh)", "top(mesh, 3)", "attention(mesh, 5)", "features(mesh, 5)"]
)
def test_ctrl_c(call: str, tmp_path: Path) -> None:
    """SIGINT in the middle of a long call: an end within half a second, and everything still works."""
    printed = script(
        f"""
        import os, signal, threading, time, numpy as np, eman
        mesh = eman.Mesh(eman.creatures.creature(0, 6000))
        # The plain kernels take seconds on any machine.
        plain = eman.Context(instruction_set="generic")
        model = eman.Model("paper", classes=2000, width=64, context=plain)
        best = float("inf")
        for _ in range(3):  # on a busy machine a thread may have to wait for its turn
            sent = []
            def interrupt():
                time.sleep(0.5)
                sent.append(time.perf_counter())
                os.kill(os.getpid(), signal.SIGINT)
            threading.Thread(target=interrupt).start()
            try:
                model.{call}
                time.sleep(2)
                break
            except KeyboardInterrupt:
                best = min(best, time.perf_counter() - sent[0])
            if best < 0.5:
                break
        print("interrupted" if best < 0.5 else f"late {{best}}")
        small = eman.Mesh(eman.creatures.creature(0, 800))
        print(eman.Model("default", classes=3).predict(small).shape)
        """,
        tmp_path,
    )
    assert printed.splitlines() == ["interrupted", "(800,)"]


def test_calls_need_no_worker_when_short(monkeypatch: pytest.MonkeyPatch) -> None:
    from eman import _calls

    monkeypatch.setattr(_calls.threading, "Thread", None)  # starting one would fail
    assert eman.Model("default", classes=2).predict(eman.Mesh(*TETRAHEDRON)).shape == (4,)  # type: ignore[union-attr]


def test_names_are_cut_where_the_structs_end() -> None:
    """No network has a name that the structs of the interface could not hold."""
    model = eman.Model("default", classes=2, head_form="projected", self_term=True, blocks=256, width=1)
    longest = max(map(len, model.parameters()))
    assert longest < dict(_capi.ParameterInfo._fields_)["name"]._length_ - 1  # type: ignore[attr-defined]
    assert max(len(layer.name) for layer in model.layers) < dict(_capi.LayerInfo._fields_)["name"]._length_ - 1  # type: ignore[attr-defined]
