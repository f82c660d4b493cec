"""The paper's experiments, one command each: ``eman reproduce table3 --data humans.npz``.

Tables are printed beside the paper's figures, which are of FAUST and TOSCA.  Every row that was trained is a line of
``runs.jsonl`` in the folder of the results; an interrupted command skips what is finished, and goes on within a row.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

import numpy as np

from eman import _files, datasets, transforms
from eman._command import Command
from eman._journal import Journal
from eman.datasets import Dataset
from eman.errors import FileError, InvalidArgumentError
from eman.evaluation import accuracy
from eman.gaps import PRESETS, Configuration, measure
from eman.model import Model
from eman.train import Step, Trainer, fit, progress_bar

__all__ = ["EXPERIMENTS", "Experiment", "Network", "Run"]

#: Mean and standard deviation over seeds, where the paper gives one.
Figure = tuple[float, Optional[float]]


class Network(NamedTuple):
    """A row of a table.

    Attributes
    ----------
    kind : {"eman", "gem", "spiral"}
        Of the network.
    bias : {"angular", "additive", "none"}
        Its biases.
    features : {"xyz", "get", "reltan"}
        What it sees.
    powers : tuple of float
        Relative powers of RelTan features.

    Examples
    --------
    >>> from eman import datasets
    >>> Network("gem", "angular", "reltan", (0.7,)).model(datasets.creatures(2, vertices=800), "paper", seed=0)
    Model(gem, reltan, segmentation, classes=16, parameters=35856)
    """

    kind: str
    bias: str
    features: str
    powers: tuple[float, ...] = ()

    def model(self, data: Dataset, preset: str, seed: int) -> Model:
        """The network with random parameters."""
        fields: dict[str, Any] = {"kind": self.kind, "features": self.features}
        if self.bias == "additive":
            fields["bias"] = self.bias
        if self.powers:
            fields["powers"] = self.powers
        return Model(_preset(preset, self), classes=data.classes, task=data.task, seed=seed, **fields)

    def __str__(self) -> str:
        powers = f"[{', '.join(map(str, self.powers))}]" if self.powers else ""
        features = {"xyz": "XYZ", "get": "GET", "reltan": "RelTan"}[self.features]
        return f"{_KINDS[self.kind]:<12}{_BIASES[self.bias]:<10}{features + powers:<17}"


_KINDS = {"eman": "EMAN", "gem": "GEM-CNN", "spiral": "SpiralNet++"}
_BIASES = {"angular": "angular", "additive": "additive", "none": "-"}


def _preset(preset: str, network: Network) -> str:
    """The authors' code has no SpiralNet++ of its own."""
    return "paper" if preset == "authors" and network.kind == "spiral" else preset


@dataclass(frozen=True)
class Run:
    """One training.

    Attributes
    ----------
    network : Network
        What is trained.
    data : str
        On what: the data set and its size.
    preset : str
        Of the network's other choices.
    seed, epochs : int
    lr : float
        Learning rate.
    schedule : str
        Of the learning rate.
    augmented : bool
        Whether meshes are rotated and moved, those of the test as well.
    watched : bool
        Whether the test is taken after every epoch.

    Examples
    --------
    >>> network = Network("eman", "angular", "reltan", (0.5, 0.7))
    >>> run = Run(network, "creatures", "default", seed=0, epochs=2, lr=0.01, schedule="one_cycle", augmented=True)
    >>> run.options["augment"]
    {'rotation': True, 'translation': 0.5}
    """

    network: Network
    data: str
    preset: str
    seed: int
    epochs: int
    lr: float
    schedule: str
    augmented: bool = False
    watched: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """How it is trained."""
        augment = {"augment": {"rotation": True, "translation": 0.5}} if self.augmented else {}
        return {"epochs": self.epochs, "lr": self.lr, "schedule": self.schedule, "seed": self.seed, **augment}

    @property
    def key(self) -> str:
        """Tells it from others."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Attributes
    ----------
    title : str
        What and where it is.
    task : {"segmentation", "classification"}
        Of its data.
    columns : tuple of str
        What is measured.
    rows : dict of Network to tuple
        The paper's figures: for each column mean and standard deviation.
    epochs, seeds : int
        The paper's.

    Examples
    --------
    >>> isinstance(EXPERIMENTS["table1"], Experiment), EXPERIMENTS["table1"].columns
    (True, ('gauge', 'similarity', 'permutation'))
    """

    title: str
    task: str
    columns: tuple[str, ...]
    rows: dict[Network, tuple[Figure, ...]]
    epochs: int
    seeds: int


def _plain(*values: float) -> tuple[Figure, ...]:
    return tuple((value, None) for value in values)


_XYZ, _GET = ("xyz", ()), ("get", ())
_ONE, _TWO = ("reltan", (0.7,)), ("reltan", (0.5, 0.7))
_GAPS = ("gauge", "similarity", "permutation")

EXPERIMENTS = {
    "table1": Experiment(
        "Table 1 (section 5): equivariance gap of randomly initialised models, paper: FAUST",
        "segmentation",
        _GAPS,
        {
            Network("spiral", "none", "xyz"): _plain(0, 1.03e-1, 0),
            Network("gem", "additive", "xyz"): _plain(1.43e-1, 6.55e-1, 2.26e-13),
            Network("gem", "angular", "xyz"): _plain(7.95e-6, 1.19, 1.55e-13),
            Network("gem", "angular", "get"): _plain(8.75e-6, 2.60, 1.69e-13),
            Network("gem", "angular", "reltan"): _plain(1.31e-5, 5.57e-9, 1.88e-13),
        },
        0,
        1,
    ),
    "table2": Experiment(
        "Table 2 (section 5): accuracy of trained models in %, paper: FAUST",
        "segmentation",
        ("train", "test", *_GAPS),
        {
            Network("spiral", "none", *_XYZ): _plain(100.0, 99.91, 99.91, 0.30, 99.91),
            Network("gem", "additive", *_XYZ): _plain(99.99, 99.90, 0.06, 12.48, 99.90),
            Network("gem", "angular", *_XYZ): _plain(99.45, 97.97, 96.85, 0.17, 97.97),
            Network("gem", "angular", *_GET): _plain(99.18, 97.75, 97.40, 0.61, 97.75),
            Network("gem", "angular", *_ONE): _plain(99.68, 98.69, 98.20, 98.69, 98.69),
            Network("gem", "angular", *_TWO): _plain(99.63, 98.36, 97.84, 98.36, 98.36),
        },
        100,
        1,
    ),
    "table3": Experiment(
        "Table 3 (section 7.1): segmentation accuracy in %, paper: FAUST, 5 seeds",
        "segmentation",
        ("train", "test", *_GAPS),
        {
            Network("gem", "angular", *_XYZ): (
                (99.42, 0.15), (97.92, 0.30), (96.90, 0.25), (2.14, 1.49), (97.92, 0.30),
            ),
            Network("gem", "angular", *_GET): (
                (99.42, 0.15), (98.03, 0.17), (97.15, 0.39), (1.47, 1.60), (98.03, 0.17),
            ),
            Network("gem", "angular", *_ONE): (
                (99.69, 0.05), (98.62, 0.06), (98.04, 0.12), (98.62, 0.06), (98.62, 0.06),
            ),
            Network("gem", "angular", *_TWO): (
                (99.70, 0.09), (98.64, 0.22), (97.99, 0.18), (98.64, 0.22), (98.64, 0.22),
            ),
            Network("eman", "angular", *_XYZ): (
                (99.62, 0.09), (98.46, 0.15), (97.26, 0.34), (0.02, 0.00), (98.46, 0.15),
            ),
            Network("eman", "angular", *_GET): (
                (99.60, 0.08), (98.43, 0.17), (97.32, 0.46), (0.02, 0.00), (98.43, 0.17),
            ),
            Network("eman", "angular", *_ONE): (
                (99.27, 1.01), (98.13, 1.19), (97.44, 1.26), (98.13, 1.19), (98.13, 1.19),
            ),
            Network("eman", "angular", *_TWO): (
                (99.68, 0.00), (98.66, 0.07), (98.41, 0.25), (98.66, 0.07), (98.66, 0.07),
            ),
        },
        100,
        5,
    ),
    "table4": Experiment(
        "Table 4 (section 7.2): classification accuracy in %, paper: TOSCA, 5 seeds",
        "classification",
        ("train", "test", "gauge", "similarity"),
        {
            Network("gem", "angular", *_XYZ): ((97.78, 2.41), (82.35, 5.88), (82.35, 5.88), (12.94, 2.63)),
            Network("gem", "angular", *_GET): ((90.79, 2.84), (82.35, 9.30), (82.35, 9.30), (17.65, 7.20)),
            Network("gem", "angular", *_ONE): ((93.97, 4.26), (91.76, 6.71), (91.76, 6.71), (91.76, 6.71)),
            Network("gem", "angular", *_TWO): ((90.16, 8.43), (89.41, 14.65), (89.41, 14.65), (89.41, 14.65)),
            Network("eman", "angular", *_XYZ): ((47.30, 4.55), (42.35, 20.55), (44.71, 18.88), (12.94, 2.63)),
            Network("eman", "angular", *_GET): ((44.13, 7.39), (42.35, 11.31), (41.18, 9.30), (10.59, 2.63)),
            Network("eman", "angular", *_ONE): ((92.70, 4.14), (94.12, 4.16), (94.12, 4.16), (94.12, 4.16)),
            Network("eman", "angular", *_TWO): ((97.46, 4.14), (98.82, 2.63), (98.82, 2.63), (98.82, 2.63)),
        },
        50,
        5,
    ),
    "augmentation": Experiment(
        "Figure 4 (Equivariance vs Data Augmentation): GEM-CNN trained and tested on rotated and moved meshes",
        "segmentation",
        ("test",),
        {Network("gem", "angular", *_XYZ): (), Network("gem", "angular", *_TWO): ()},
        100,
        3,
    ),
    "timing": Experiment(
        "Figure 5 (Time Comparison): accuracy of GEM-CNN and EMAN over time",
        "segmentation",
        ("test",),
        {Network("gem", "angular", *_TWO): (), Network("eman", "angular", *_TWO): ()},
        100,
        1,
    ),
}  # fmt: skip

#: Learning rates for classification (Experimental Details); for segmentation it is 0.01.
_CLASSIFICATION_RATES = {"gem": 2e-3, "eman": 7e-4}

_TITLES = {
    "train": "train",
    "test": "test",
    "gauge": "gauge",
    "similarity": "rot-tr-scale",
    "permutation": "permutation",
}


# ---------------------------------------------------------------------------------------------------------------------


class _Results:
    """The finished runs, one a line."""

    def __init__(self, path: Path) -> None:
        self._journal = Journal(path)
        self._found: dict[str, dict[str, Any]] = {
            json.dumps(each["run"], sort_keys=True): each["result"] for each in self._journal.records
        }

    def __contains__(self, key: str) -> bool:
        return key in self._found

    def __getitem__(self, key: str) -> dict[str, Any]:
        return self._found[key]

    def add(self, key: str, result: dict[str, Any]) -> None:
        self._found[key] = result
        self._journal.add({"run": json.loads(key), "result": result})


def _train(run: Run, data: Dataset, report: Callable[[Step], object], checkpoint: Path) -> dict[str, Any]:
    """Train, going on from the checkpoint if there is one, and measure: accuracies in %, and the history."""
    model = run.network.model(data, run.preset, run.seed)
    train, test = data.train, data.test
    history = fit(model, train.meshes, train.targets, progress=report, checkpoint=checkpoint, **run.options)
    result: dict[str, Any] = {
        "train": 100 * accuracy(model, train.meshes, train.targets),
        "test": 100 * accuracy(model, test.meshes, test.targets),
        "history": history,
    }
    for transform in _GAPS:
        result[transform] = 100 * accuracy(model, test.meshes, test.targets, transform, seed=run.seed)
    checkpoint.unlink(missing_ok=True)
    return result


def _watch(run: Run, data: Dataset, report: Callable[[Step], object]) -> dict[str, Any]:
    """Train and take the test after every epoch: the history, with the seconds since the first step."""
    ends, steps = [], []
    with Trainer(run.network.model(data, run.preset, run.seed), **run.options) as trainer:
        for sample in data.train:
            trainer.add(sample.mesh, sample.target, sample.name)
        for i, sample in enumerate(data.test):
            mesh = transforms.similarity(sample.mesh, scale=1.0, seed=i).mesh if run.augmented else sample.mesh
            trainer.add(mesh, sample.target, sample.name, validation=True)
        start = last = time.perf_counter()

        def note(step: Step) -> None:
            nonlocal last
            now = time.perf_counter()
            if step.ended is None:
                steps.append(now - last)
            else:
                ends.append(now - start)
            last = now
            report(step)

        history = trainer.run(note)
    return {"history": history, "seconds": ends, "step_seconds": float(np.median(steps or ends))}


@contextmanager
def _bar(total: int) -> Iterator[Callable[[str], Callable[[Step], object]]]:
    """A progress bar of all steps, on terminals and where tqdm is installed; gives what reports a run's steps."""
    try:
        bar = progress_bar(total=total, disable=None)
    except ImportError:
        yield lambda title: lambda step: None
        return

    def begin(title: str) -> Callable[[Step], object]:
        bar.set_description(title)

        def move(step: Step) -> None:
            bar.set_postfix_str(f"epoch {step.epoch}, loss {step.loss:.3f}", refresh=False)
            bar.update()

        return move

    with bar:
        yield begin


# ---------------------------------------------------------------------------------------------------------------------


def _open(name: str, task: str, quick: bool) -> Dataset:
    """The data set of ``--data``, as the task needs it."""
    segments = task == "segmentation"
    if name == "creatures":
        size: dict[str, Any] = {"n": 6, "test": 2, "vertices": 800} if quick else {"n": 100, "test": 20}
        data = datasets.creatures(target="part" if segments else "species", **size)
    else:
        path = _humans() if name == "humans" else Path(name)
        bodies = path.suffix == ".npz"
        data = datasets.humans(path, "vertex" if segments else "subject") if bodies else _folder(path)
    if data.task != task:
        raise InvalidArgumentError(f"--data {name} is for {data.task}, this experiment is about {task}")
    return data


def _humans() -> Path:
    """humans.npz in the folder that EMAN_DATA names, or in ../shared/data beside the repository."""
    places = [Path(os.environ["EMAN_DATA"])] if "EMAN_DATA" in os.environ else []
    places.append(Path(__file__).resolve().parents[4] / "shared" / "data")
    for place in places:
        if (place / "humans.npz").exists():
            return place / "humans.npz"
    raise FileError(f"humans.npz is not in {' or '.join(map(str, places))}: give its path, or set EMAN_DATA")


def _folder(path: Path) -> Dataset:
    """FAUST or TOSCA, whichever is there."""
    try:
        return datasets.faust(path)
    except FileError as error:
        if not path.is_dir():
            raise
        try:
            return datasets.tosca(path)
        except FileError:
            raise FileError(f"{error}, and no figures of TOSCA") from None


def _described(data: Dataset) -> str:
    return f"{data.name}, {len(data.train)} to train, {len(data.test)} to test, {data.classes} classes"


def _few(data: Dataset) -> Dataset:
    """Four meshes to train and two to test, spread over the whole."""
    train, test = np.flatnonzero(data.training), np.flatnonzero(~data.training)
    return data.select([*train[:: max(len(train) // 4, 1)][:4], *test[:: max(len(test) // 2, 1)][:2]])


# ---------------------------------------------------------------------------------------------------------------------


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", choices=list(EXPERIMENTS), help="a table or figure of the paper")
    parser.add_argument(
        "--data",
        required=True,
        metavar="PATH|humans|creatures",
        help="FAUST (folder or zip), TOSCA (folder), bodies (.npz); humans: humans.npz in $EMAN_DATA or beside the"
        " repository; creatures: made on the spot",
    )
    parser.add_argument("--quick", action="store_true", help="four meshes, two epochs, one seed: to see that it works")
    parser.add_argument("--epochs", type=int, metavar="N", help="default: the paper's")
    parser.add_argument("--seeds", type=int, metavar="N", help="how many trainings a row (default: the paper's)")
    parser.add_argument("--preset", choices=PRESETS, default="default", help="of the networks (default: %(default)s)")
    parser.add_argument(
        "--schedule",
        choices=("constant", "cosine", "one_cycle"),
        default="constant",
        help="of the learning rate (default: %(default)s, the paper's)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("eman_reproduce"),
        metavar="DIR",
        help="where finished rows and pictures go (default: %(default)s)",
    )


def _run(chosen: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    experiment = EXPERIMENTS[chosen.experiment]
    epochs = chosen.epochs if chosen.epochs is not None else 2 if chosen.quick else experiment.epochs
    seeds = chosen.seeds if chosen.seeds is not None else 1 if chosen.quick else experiment.seeds
    if seeds < 1:
        raise InvalidArgumentError(f"--seeds must be positive, got {seeds}")
    data = _open(chosen.data, experiment.task, chosen.quick)
    if chosen.quick:
        data = _few(data)
    if not len(data.test) or (not len(data.train) and chosen.experiment != "table1"):
        raise InvalidArgumentError(f"--data {chosen.data} has {_described(data)}: both are needed")
    chosen.output.mkdir(parents=True, exist_ok=True)
    say(experiment.title)
    say(f"here: {_described(data)}; preset {chosen.preset}")
    settings = {"data": _described(data), "preset": chosen.preset, "seeds": seeds}
    if chosen.experiment == "table1":
        rows = _gaps(experiment, data, chosen.preset, seeds, say)
        return {"experiment": chosen.experiment, **settings, "rows": rows}
    say(f"{epochs} epochs, schedule {chosen.schedule}, {seeds} seed{'s' if seeds > 1 else ''}")
    run = Run(
        network=next(iter(experiment.rows)),
        data=f"{chosen.data}: {_described(data)}",
        preset=chosen.preset,
        seed=0,
        epochs=epochs,
        lr=0.01,
        schedule=chosen.schedule,
        augmented=chosen.experiment == "augmentation",
        watched=chosen.experiment in ("augmentation", "timing"),
    )
    results = _all(experiment, run, seeds, data, chosen.output, say)
    summary = {"experiment": chosen.experiment, **settings, "epochs": epochs, "schedule": chosen.schedule}
    if run.watched:
        picture = chosen.output / f"{chosen.experiment}.png"
        summary["rows"] = _curves(chosen.experiment, results, picture, say)
        summary["picture"] = str(picture)
    else:
        summary["rows"] = [_summary(experiment, network, found) for network, found in results.items()]
    return summary


def _all(
    experiment: Experiment, run: Run, seeds: int, data: Dataset, output: Path, say: Callable[[str], None]
) -> dict[Network, list[dict[str, Any]]]:
    """Train what is not finished, and say each row of a table when it is."""
    finished = _Results(output / "runs.jsonl")
    runs = {
        network: [replace(run, network=network, seed=seed, lr=_rate(network, data)) for seed in range(seeds)]
        for network in experiment.rows
    }
    missing = sum(each.key not in finished for row in runs.values() for each in row)
    if not run.watched:
        _say_titles(experiment, say)
    with _bar(missing * run.epochs * len(data.train)) as begin:
        for network, row in runs.items():
            for each in row:
                if each.key in finished:
                    continue
                report = begin(f"{' '.join(str(network).split())}, seed {each.seed}")
                checkpoint = output / f"run-{hashlib.sha256(each.key.encode()).hexdigest()[:12]}.safetensors"
                finished.add(
                    each.key,
                    _watch(each, data, report) if run.watched else _train(each, data, report, checkpoint),
                )
            if not run.watched:
                ours = [_over_seeds(column, [finished[each.key] for each in row]) for column in experiment.columns]
                _say_row(network, map(_percent, ours), map(_percent, experiment.rows[network]), say)
    return {network: [finished[each.key] for each in row] for network, row in runs.items()}


def _rate(network: Network, data: Dataset) -> float:
    return 0.01 if data.task == "segmentation" else _CLASSIFICATION_RATES[network.kind]


def _say_titles(experiment: Experiment, say: Callable[[str], None]) -> None:
    say("")
    say(" " * 39 + "".join(f"{_TITLES[column]:>15}" for column in experiment.columns))


def _say_row(network: Network, ours: Iterable[str], paper: Iterable[str], say: Callable[[str], None]) -> None:
    """Two lines: what was found here, and the paper's figures."""
    say(str(network) + "".join(f"{figure:>15}" for figure in ours))
    say(f"{'paper':>38} " + "".join(f"{figure:>15}" for figure in paper))


def _over_seeds(column: str, found: Sequence[dict[str, Any]]) -> Figure:
    values = [result[column] for result in found]
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None


def _percent(figure: Figure) -> str:
    mean, deviation = figure
    return f"{mean:.2f}" if deviation is None else f"{mean:.2f} ±{deviation:.2f}"


def _summary(experiment: Experiment, network: Network, found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A row for JSON."""
    row: dict[str, Any] = network._asdict()
    for column, paper in zip(experiment.columns, experiment.rows[network]):
        mean, deviation = _over_seeds(column, found)
        row[column] = {"mean": mean, "std": deviation, "paper_mean": paper[0], "paper_std": paper[1]}
    return row


def _gaps(
    experiment: Experiment, data: Dataset, preset: str, seeds: int, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Table 1: biases are random, as zeros could break nothing."""
    say("mean squared difference of log-probabilities; biases are random, and permutation renumbers corners as well")
    _say_titles(experiment, say)
    rows = []
    for network, figures in experiment.rows.items():
        configuration = Configuration(_preset(preset, network), network.kind, network.features, network.bias)
        measured = [
            next(measure(data.test.meshes, [configuration], classes=data.classes, seed=seed)) for seed in range(seeds)
        ]
        gaps = [float(np.mean([getattr(found, column) for found in measured])) for column in experiment.columns]
        paper = [figure for figure, _ in figures]
        _say_row(network, map("{:.2e}".format, gaps), map("{:.2e}".format, paper), say)
        compared = ({"mean": gap, "paper_mean": figure} for gap, figure in zip(gaps, paper))
        rows.append({**network._asdict(), **dict(zip(experiment.columns, compared))})
    return rows


def _curves(
    name: str, results: dict[Network, list[dict[str, Any]]], picture: Path, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """A figure: accuracy on the test after every epoch, over epochs or over time."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    figure = Canvas(figsize=(6.5, 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    say("")
    rows = []
    for network, found in results.items():
        curves = 100 * np.array([[epoch["validation_accuracy"] for epoch in run["history"]] for run in found])
        mean, spread = curves.mean(axis=0), curves.std(axis=0)
        seconds = np.mean([run["seconds"] for run in found], axis=0)
        step = float(np.mean([run["step_seconds"] for run in found]))
        at = seconds if name == "timing" else np.arange(1, len(mean) + 1)
        axes.plot(at, mean, marker="." if len(at) < 30 else "", label=" ".join(str(network).split()))
        axes.fill_between(at, mean - spread, mean + spread, alpha=0.2)
        say(f"{network}accuracy {mean[-1]:.2f} % after {seconds[-1]:.1f} s; {1e3 * step:.1f} ms a step")
        rows.append(
            {
                **network._asdict(),
                "accuracy": mean.tolist(),
                "std": spread.tolist(),
                "seconds": seconds.tolist(),
                "step_seconds": step,
            }
        )
    if name == "timing":
        ratio = rows[1]["step_seconds"] / rows[0]["step_seconds"]
        say(f"a step of EMAN takes {ratio:.2f} times as long as one of GEM-CNN; paper: an epoch twice as long")
    else:
        say("paper: XYZ ends above 90 % and below RelTan")
    axes.set_xlabel("seconds, tests included" if name == "timing" else "epoch")
    axes.set_ylabel("accuracy on the test, %")
    axes.legend()
    axes.grid(alpha=0.3)
    _files.write_picture(picture, figure, dpi=150)
    say(f"{picture}")
    return rows


COMMAND = Command("reproduce", "The paper's tables and figures, on a data set of choice.", _configure, _run)
