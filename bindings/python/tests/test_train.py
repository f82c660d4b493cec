"""Training from Python: what it learns, what it resumes, what it refuses."""

from __future__ import annotations

import copy
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eman
from eman import _capi, datasets, transforms

from .conftest import TETRAHEDRON

#: Parts without left and right, front and hind: head, neck, torso, tail, upper and lower leg, foot.
MERGED = np.array([0, 1, 2, 3] + [4, 5, 6] * 4)
PARTS = ("head", "neck", "torso", "tail", "upper leg", "lower leg", "foot")

TRANSFORMS = ("gauge", "similarity", "permutation")


@pytest.fixture(scope="module")
def horses() -> tuple[list[eman.Mesh], list[np.ndarray]]:
    data = datasets.creatures(15, species="horse", vertices=800)
    return [sample.mesh for sample in data], [MERGED[sample.target] for sample in data]


@pytest.fixture(scope="module")
def pair(horses: Any) -> tuple[list[eman.Mesh], list[np.ndarray]]:
    meshes, targets = horses
    return meshes[:3], targets[:3]


def small(seed: int = 0, **options: Any) -> eman.Model:
    return eman.Model("default", classes=7, width=4, blocks=1, hidden=16, seed=seed, **options)


def bits(model: eman.Model) -> bytes:
    return b"".join(values.tobytes() for values in model.parameters().values())


# --------------------------------------------------------------------------------------------------- the user's case


@pytest.fixture(scope="module")
def trained(horses: Any) -> tuple[eman.Model, eman.History, float]:
    """Twelve horses with painted parts, every third vertex of three of them only."""
    meshes, targets = horses
    painted = [target.copy() for target in targets[:12]]
    for target in painted[:3]:
        target[np.arange(800) % 3 > 0] = -1
    model = eman.Model("surface", labels=PARTS)
    augment = {"stretch": 0.2, "warp": 0.02, "resample": True}
    start = time.perf_counter()
    history = eman.fit(
        model, meshes[:12], painted, epochs=14, lr=0.005, schedule="one_cycle", clip_norm=1.0, augment=augment
    )
    return model, history, time.perf_counter() - start


@pytest.mark.long
def test_painted_parts_are_learned(trained: Any, horses: Any) -> None:
    """It takes some 10 seconds on two cores, and makes a model that is of use."""
    model, history, seconds = trained
    found = eman.evaluate(model, horses[0][12:], horses[1][12:])
    print(f"{seconds:.1f} s; on unseen horses {found}")
    assert history[-1]["accuracy"] > 0.8
    assert found.accuracy > 0.85
    assert np.nanmin(found.iou) > 0.5


@pytest.mark.long
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_accuracy_is_exactly_the_same(transform: str, trained: Any, horses: Any) -> None:
    """Not one vertex differs."""
    model, (meshes, targets) = trained[0], horses
    assert eman.accuracy(model, meshes, targets, transform, seed=4) == eman.accuracy(model, meshes, targets)
    different = 0
    for seed, mesh in enumerate(meshes):
        before = model.predict(mesh)
        if transform == "permutation":
            moved = transforms.permutation(mesh, seed=seed)
            after = moved.vertices_back(model.predict(moved.mesh))
        else:
            after = model.predict(getattr(transforms, transform)(mesh, seed=seed).mesh)
        different += np.count_nonzero(before != after)
    assert different == 0


@pytest.mark.long
def test_evaluation(trained: Any, horses: Any) -> None:
    model, (meshes, targets) = trained[0], horses
    target = targets[13].copy()
    target[::5] = -1
    known = target >= 0
    predicted = np.asarray(model.predict(meshes[13]))
    found = eman.evaluate(model, meshes[13], target)
    confusion = np.zeros((7, 7), int)
    np.add.at(confusion, (target[known], predicted[known]), 1)
    assert np.array_equal(found.confusion, confusion)
    assert (found.labels, found.correct) == (640, np.trace(confusion))
    union = confusion.sum(0) + confusion.sum(1) - np.diag(confusion)
    assert np.allclose(found.iou, np.diag(confusion) / union)
    assert found.mean_iou == pytest.approx(np.mean(found.iou))
    expected = -model.logits(meshes[13])[known, target[known]].astype(float).mean()
    assert found.loss == pytest.approx(expected, rel=1e-5)
    both = eman.evaluate(model, meshes[12:14], [targets[12], target])
    assert both.labels == 1440
    assert np.array_equal(both.confusion - eman.evaluate(model, meshes[12], targets[12]).confusion, confusion)
    assert eman.evaluate(model, meshes[13], target, "permutation", 5).correct == found.correct
    assert "mean IoU" in str(found)
    with pytest.raises(eman.InvalidArgumentError, match="without the confusion"):
        _ = eman.evaluate(model, meshes[13], target, confusion=False).iou
    assert np.isnan(eman.evaluate(model, meshes[13], np.full(800, -1)).mean_iou)


def test_species() -> None:
    """Classification: a target for each mesh."""
    data = datasets.creatures(2, species=("horse", "lizard"), target="species", vertices=800, test=0)
    model = eman.Model("default", labels=data.labels, task="classification")
    history = eman.fit(model, data.meshes, data.targets, epochs=4, lr=0.002)
    assert history[-1]["loss"] < history[0]["loss"]
    assert eman.evaluate(model, data.meshes, data.targets, "permutation").labels == 2


# ------------------------------------------------------------------------------------------------------ bit for bit


@pytest.mark.parametrize("how", ["KeyboardInterrupt", "callback"])
def test_interrupted_and_resumed_is_the_same(how: str, pair: Any, tmp_path: Path) -> None:
    options = {"epochs": 4, "schedule": "cosine", "validation": ([pair[0][2]], [pair[1][2]])}
    whole = small()
    history = eman.fit(whole, pair[0][:2], pair[1][:2], **options)
    assert len(history) == 4

    class Enough(Exception):
        pass

    raised = KeyboardInterrupt if how == "KeyboardInterrupt" else Enough
    seen: list[eman.Step] = []

    def stop(step: eman.Step) -> None:
        seen.append(step)
        if step.step == 5:  # the first of the third epoch
            raise raised

    model, path = small(), tmp_path / "training.safetensors"
    untrained = bits(model)
    with pytest.raises(raised):
        eman.fit(model, pair[0][:2], pair[1][:2], progress=stop, checkpoint=path, **options)
    assert bits(model) != untrained  # what was learned until then
    assert [step.step for step in seen] == [1, 2, 3, 4, 5]
    steps: list[eman.Step] = []
    again = small(seed=9)  # the checkpoint has its own parameters
    resumed = eman.fit(again, pair[0][:2], pair[1][:2], progress=steps.append, checkpoint=path, **options)
    assert [step.step for step in steps] == [5, 6, 7, 8]
    assert resumed == history
    assert bits(again) == bits(whole)
    done = eman.fit(again, pair[0][:2], pair[1][:2], progress=steps.append, checkpoint=path, **options)
    assert done == history
    assert len(steps) == 4  # nothing was left to do


def test_trainer_saved_within_an_epoch(pair: Any, tmp_path: Path) -> None:
    def add(trainer: eman.Trainer) -> eman.Trainer:
        for mesh, target in zip(*pair):
            trainer.add(mesh, target)
        return trainer

    with add(eman.Trainer(small(), epochs=2, seed=3)) as whole:
        whole.run()
        expected = bits(whole.model())
    with add(eman.Trainer(small(), epochs=2, seed=3)) as trainer:
        for _ in range(2):
            trainer.step()
        trainer.save(tmp_path / "a")
    with add(eman.Trainer.load(tmp_path / "a")) as trainer:
        assert (trainer.state["step"], trainer.state["epoch"], trainer.done) == (2, 0, False)
        history = trainer.run()
        assert bits(trainer.model()) == expected
        assert (len(history), trainer.done) == (2, True)
        assert trainer.history == history


def test_steps_are_those_of_a_run(pair: Any) -> None:
    """One call for each step gives what the library's own loop gives."""
    with eman.Trainer(small(), epochs=2) as stepped, eman.Trainer(small(), epochs=2) as ran:
        for trainer in (stepped, ran):
            for mesh, target in zip(*pair):
                trainer.add(mesh, target)
        steps: list[eman.Step] = []
        seen: list[eman.Step] = []
        stepped.run(steps.append)
        note = _capi.StepFunction(lambda _user, info: seen.append(eman.Step._of(info.contents)) or 0)
        with ran._handle as handle:
            _capi.check(_capi.library().eman_trainer_run(handle, None, note, None))
        assert seen == steps
        assert bits(ran.model()) == bits(stepped.model())


def test_threads_make_no_difference(pair: Any) -> None:
    found = set()
    for threads in (1, 2):
        context = eman.Context(threads=threads)
        model = small(context=context)
        meshes = [eman.Mesh(mesh.vertices, mesh.faces, context=context) for mesh in pair[0]]
        eman.fit(model, meshes, pair[1], epochs=2, meshes_per_step=2, clip_norm=1.0)
        found.add(bits(model))
    assert len(found) == 1


def test_seeds_make_a_difference(pair: Any) -> None:
    models = [small() for _ in range(2)]
    for seed, model in enumerate(models):
        eman.fit(model, *pair, epochs=1, seed=seed)
    assert bits(models[0]) != bits(models[1])


# ----------------------------------------------------------------------------------------------------------- options


def test_the_best_validation_is_kept(pair: Any) -> None:
    """With a rate at which the validation gets worse again."""
    (*meshes, unseen), (*targets, wanted) = pair
    model = small()
    history = eman.fit(model, meshes, targets, epochs=6, lr=0.3, validation=([unseen], [wanted]))
    best = max(epoch["validation_accuracy"] for epoch in history)
    assert eman.accuracy(model, unseen, wanted) == pytest.approx(best)
    assert "validation accuracy" in str(history)
    assert len(str(history).splitlines()) == 7


def test_patience_ends_it(pair: Any) -> None:
    (*meshes, unseen), (*targets, wanted) = pair
    options = {"validation": ([unseen], [wanted]), "frozen": ["*"], "patience": 2}
    assert len(eman.fit(small(), meshes, targets, epochs=20, **options)) == 3


def test_frozen_parameters_stay(pair: Any) -> None:
    model = small()
    before = model.parameters()
    eman.fit(model, *pair, epochs=1, frozen=["blocks.*"])
    for name, values in model.parameters().items():
        assert np.array_equal(values, before[name]) == name.startswith("blocks."), name


def test_class_weights(pair: Any) -> None:
    """A class without weight is as one that is unknown."""
    weighted, unknown = small(), small()
    eman.fit(weighted, *pair, epochs=1, class_weights=np.array([1, 1, 0, 1, 1, 1, 1]))
    eman.fit(unknown, pair[0], [np.where(target == 2, -1, target) for target in pair[1]], epochs=1)
    for name, values in unknown.parameters().items():
        assert np.allclose(weighted.parameters()[name], values, atol=1e-5), name


def test_augmentation_is_seen_by_coordinates_only(pair: Any) -> None:
    for features, same in (("reltan", True), ("xyz", False)):
        plain, moved = small(features=features), small(features=features)
        eman.fit(plain, *pair, epochs=1)
        eman.fit(moved, *pair, epochs=1, augment={"rotation": True, "translation": 1.0, "scale": 0.5})
        assert (bits(plain) == bits(moved)) == same


@pytest.mark.parametrize("change", [{"stretch": 0.2}, {"noise": 0.1}, {"warp": 0.02}])
def test_changes_of_shape_are_seen_by_all(pair: Any, change: dict[str, float]) -> None:
    """They change the training, in the same way whenever the seed is the same, and the meshes stay as they are."""
    plain, changed, again = small(), small(), small()
    eman.fit(plain, *pair, epochs=1)
    eman.fit(changed, *pair, epochs=1, augment=change)
    eman.fit(again, *pair, epochs=1, augment=change)
    assert bits(plain) != bits(changed) == bits(again)
    assert eman.accuracy(changed, *pair) == eman.accuracy(again, *pair)


def test_a_mesh_may_go_after_it_was_added(pair: Any) -> None:
    with eman.Trainer(small(), epochs=1) as trainer:
        mesh = eman.Mesh(pair[0][0].vertices, pair[0][0].faces)
        trainer.add(mesh, pair[1][0], "first")
        mesh.close()
        assert trainer.step().ended is not None
        assert repr(trainer) == "Trainer(epoch=1 of 1, step=1)"
    assert repr(trainer) == "Trainer(closed)"
    with pytest.raises(eman.InvalidArgumentError, match="closed"):
        trainer.step()


def test_history_is_plain(pair: Any) -> None:
    history = eman.fit(small(), *pair, epochs=2)
    assert [sorted(epoch) for epoch in history] == [["accuracy", "epoch", "loss"]] * 2
    assert str(history).splitlines()[0].split() == ["epoch", "loss", "accuracy"]


# ---------------------------------------------------------------------------------------------------------- progress


def test_steps(pair: Any) -> None:
    seen: list[eman.Step] = []
    history = eman.fit(small(), *pair, epochs=2, schedule="cosine", lr=0.02, progress=seen.append)
    assert [(step.epoch, step.step, step.steps) for step in seen] == [
        (1, 1, 6), (1, 2, 6), (1, 3, 6), (2, 4, 6), (2, 5, 6), (2, 6, 6),
    ]  # fmt: skip
    assert [step.ended is None for step in seen] == [True, True, False] * 2
    assert [step.ended for step in seen if step.ended] == history
    assert seen[0].learning_rate == 0.02 > seen[-1].learning_rate > 0
    assert all(step.gradient_norm > 0 and 0 <= step.accuracy <= 1 and step.loss > 0 for step in seen)


def test_progress_bar(pair: Any, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    eman.fit(small(), *pair, epochs=2, progress=True)
    printed = capsys.readouterr().err
    assert "6/6" in printed
    assert "loss" in printed
    assert "accuracy" in printed


def test_progress_bar_without_tqdm(pair: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ImportError, match=r"pip install eman\[train\]"):
        eman.fit(small(), *pair, epochs=1, progress=True)


def test_ctrl_c_ends_a_step(horse: eman.creatures.Creature) -> None:
    """Within half a second of a step that takes seconds; the training can go on."""
    context = eman.Context(instruction_set="generic", threads=1)
    vertices, faces = horse.vertices, horse.faces.astype(int)
    many = [vertices + [i, 0, 0] for i in range(30)]
    mesh = eman.Mesh(np.concatenate(many), np.concatenate([faces + 800 * i for i in range(30)]), context=context)
    with eman.Trainer(eman.Model("default", classes=16, context=context), epochs=1) as trainer:
        trainer.add(mesh, np.tile(horse.labels, 30))
        took = []
        for _ in range(3):  # on a busy machine a thread may have to wait for its turn
            timer = threading.Timer(0.7, signal.raise_signal, (signal.SIGINT,))
            timer.start()
            start = time.perf_counter()
            with pytest.raises(KeyboardInterrupt):
                trainer.run()
            took.append(time.perf_counter() - start)
        assert min(took) < 0.7 + 0.5
        assert trainer.state["step"] == 0


# ------------------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs: 0 is out of range"),
        ({"lr": -1.0}, "learning_rate: -1 is not between"),
        ({"lr": float("nan")}, "Out of range float"),
        ({"learning_rate": 0.1}, "learning_rate is called lr"),
        ({"momentum": 0.9}, 'unknown field "momentum"'),
        ({"schedule": "linear"}, "schedule"),
        ({"class_weights": [1, 2]}, "2 weights for 7 classes"),
        ({"frozen": ["block.*"]}, r'"block.\*" matches no parameter'),
        ({"seed": -1}, "seed"),
        ({"validation": ([], [1])}, "validation: 0 meshes and 1 targets"),
        ({"progress": 3}, "progress must be"),
        ({"augment": {"rotation": 1}}, "rotation"),
    ],
)
def test_fit_refuses(options: dict[str, Any], message: str, pair: Any) -> None:
    model = small()
    before = bits(model)
    with pytest.raises(eman.InvalidArgumentError, match=message):
        eman.fit(model, *pair, **{"epochs": 1, **options})
    assert bits(model) == before


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ([np.zeros(800, int)], "meshes: 3 meshes and 1 targets"),
        ([np.zeros(800, int), np.zeros(799, int), np.zeros(800, int)], r"meshes\[1\]: labels.* 800 are needed"),
        ([np.zeros(800, int), np.zeros(800, int), np.full(800, 7)], r"meshes\[2\]: labels: label 0 is 7, out of range"),
        ([np.full(800, -2)] * 3, r"meshes\[0\]: labels: label 0 is -2"),
        ([np.full(800, -1)] * 3, "none of the meshes to train with has a label that counts"),
        ([np.zeros(800)] * 3, r"meshes\[0\]: labels must be integers"),
        ([np.full(800, 2**40)] * 3, r"meshes\[0\]: labels: label 0 is 1099511627776"),
    ],
)
def test_targets_that_do_not_fit(targets: Any, message: str, pair: Any) -> None:
    with pytest.raises(eman.InvalidArgumentError, match=message):
        eman.fit(small(), pair[0], targets, epochs=1)


def test_no_meshes_and_no_vertices() -> None:
    with pytest.raises(eman.InvalidArgumentError, match="none of the meshes"):
        eman.fit(small(), [], [], epochs=1)
    with pytest.raises(eman.InvalidArgumentError, match="none of the meshes"):
        eman.fit(small(), [eman.Mesh(np.zeros((0, 3)), [])], [np.zeros(0, int)], epochs=1)


def test_what_is_no_model_or_mesh(pair: Any) -> None:
    with pytest.raises(eman.InvalidArgumentError, match=r"model must be an eman\.Model"):
        eman.fit("default", *pair, epochs=1)  # type: ignore[arg-type]
    with pytest.raises(eman.InvalidArgumentError, match=r"mesh must be an eman\.Mesh"):
        eman.fit(small(), [TETRAHEDRON], [[0, 0, 0, 0]], epochs=1)  # type: ignore[list-item]


def test_divergence_leaves_the_model_and_the_checkpoint(pair: Any, tmp_path: Path) -> None:
    model, path = eman.Model("default", classes=7, width=4, hidden=16), tmp_path / "training"
    before = bits(model)
    with pytest.raises(eman.DivergedError, match=r"step \d+: "):
        eman.fit(model, pair[0][:1], pair[1][:1], epochs=50, lr=1e6, checkpoint=path)
    assert bits(model) == before
    assert np.isfinite(np.frombuffer(bits(eman.Trainer.load(path).model()), np.float32)).all()


def test_checkpoints_of_other_trainings(pair: Any, tmp_path: Path) -> None:
    path = tmp_path / "training"
    eman.fit(small(), *pair, epochs=1, checkpoint=path)
    content = path.read_bytes()
    for options, message in (
        ({"epochs": 2}, "is of another training: its epochs is 1, not 2"),
        ({"epochs": 1, "clip_norm": 1.0}, "its clip_norm is 0, not 1"),
    ):
        with pytest.raises(eman.InvalidArgumentError, match=message):
            eman.fit(small(), *pair, checkpoint=path, **options)
    with pytest.raises(eman.InvalidArgumentError, match="is of another network: its width is 4, not 8"):
        eman.fit(eman.Model(small().spec, width=8), *pair, epochs=1, checkpoint=path)
    path.write_bytes(b"no training")
    with pytest.raises((eman.InvalidModelError, eman.FileError)):
        eman.fit(small(), *pair, epochs=1, checkpoint=path)
    path.write_bytes(content)
    assert len(eman.fit(small(), *pair, epochs=1, checkpoint=path)) == 1


def test_checkpoint_that_cannot_be_written(pair: Any, tmp_path: Path) -> None:
    with pytest.raises(eman.FileError):
        eman.fit(small(), *pair, epochs=1, checkpoint=tmp_path / "none" / "training")


def test_other_meshes_after_a_resumption(pair: Any, tmp_path: Path) -> None:
    with eman.Trainer(small(), epochs=2) as trainer:
        for mesh, target in zip(*pair):
            trainer.add(mesh, target)
        trainer.step()
        trainer.save(tmp_path / "a")
    other = copy.copy(pair[1][0])
    other[0] = (other[0] + 1) % 7
    with eman.Trainer.load(tmp_path / "a") as trainer:
        for mesh, target in zip(pair[0], [other, *pair[1][1:]]):
            trainer.add(mesh, target)
        with pytest.raises(eman.InvalidArgumentError, match="not those that the training began with"):
            trainer.run()


def test_out_of_memory(pair: Any) -> None:
    context = eman.Context(memory_limit=800_000)
    model = small(context=context)
    with pytest.raises(eman.OutOfMemoryError):
        eman.fit(model, [eman.Mesh(mesh.vertices, mesh.faces) for mesh in pair[0]], pair[1], epochs=1)
