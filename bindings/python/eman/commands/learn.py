"""A model of one's own meshes: ``eman train``."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable

import numpy as np

from eman import shipped
from eman._command import Command
from eman.commands import files
from eman.errors import FileError, InvalidArgumentError
from eman.model import Model
from eman.train import Step, fit, progress_bar

Say = Callable[[str], None]

PRESETS = ("surface", "default", "paper", "authors")

#: A file in the folder with the name of each class, a line each.
NAMES = "names.txt"

_FORMS = f"""\
Every mesh of the folder that has labels is learned from. Labels are whole numbers from 0 on, one for each vertex, -1
where unknown: in a file beside the mesh, of the same name with {", ".join(files.LABELS)}; or in a vertex property of a
PLY file, called {", ".join(files.PROPERTIES)}. Names of the classes are lines of {NAMES} in the folder, or --names."""


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{parser.description}\n\n{_FORMS}"
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="meshes and their labels")
    parser.add_argument("output", type=Path, metavar="MODEL", help="the model file to write, .safetensors")
    files.add_weld(parser)
    parser.add_argument("--property", metavar="NAME", help="of PLY files that holds the labels")
    parser.add_argument("--validation", type=Path, metavar="FOLDER", help="meshes to measure it with after every epoch")
    network = parser.add_argument_group("the network")
    network.add_argument(
        "--preset", choices=PRESETS, default="surface", help="surface: any triangulation (default: %(default)s)"
    )
    network.add_argument("--from", dest="begin", metavar="MODEL", help="go on from a model file or a shipped model")
    network.add_argument("--names", nargs="+", default=[], metavar="NAME", help="of the classes, from 0 on")
    training = parser.add_argument_group("the training")
    training.add_argument("--epochs", type=int, default=30, metavar="N", help="default: %(default)s")
    training.add_argument(
        "--lr", type=float, default=0.005, metavar="X", help="the highest rate (default: %(default)s)"
    )
    training.add_argument("--seed", type=int, default=0, metavar="N", help="of weights, order and augmentation")
    training.add_argument("--no-augment", action="store_true", help="neither stretch meshes nor sample them anew")
    training.add_argument(
        "--checkpoint", type=Path, metavar="FILE", help="the state after every epoch; an interrupted training goes on"
    )


def _train(chosen: argparse.Namespace, say: Say) -> dict[str, Any]:
    output = files.writable(chosen.output, [".safetensors"])
    found, without = files.labelled_in(chosen.folder, chosen.weld, chosen.property)
    tests = files.labelled_in(chosen.validation, chosen.weld, chosen.property)[0] if chosen.validation else []
    names = chosen.names or _names_in(chosen.folder)
    model = _model(chosen, names, 1 + max(int(each.labels.max(initial=-1)) for each in (*found, *tests)))
    if without:
        say(f"{len(without)} meshes have no labels and are left out, {without[0]} among them")
    counts = np.bincount(np.concatenate([each.labels for each in found]) + 1, minlength=model.classes + 1)[1:]
    unseen = [name for name, count in zip(names or map(str, range(model.classes)), counts) if not count]
    if unseen:
        say(f"no vertex has these classes: {', '.join(unseen)}")
    vertices = sum(each.mesh.vertex_count for each in found)
    say(f"{len(found)} meshes, {vertices:,} vertices, {model.classes} classes; {model}")
    begun = time.perf_counter()
    with _reporting(say) as report:
        history = fit(
            model,
            [each.mesh for each in found],
            [each.labels for each in found],
            epochs=chosen.epochs,
            lr=chosen.lr,
            seed=chosen.seed,
            validation=([each.mesh for each in tests], [each.labels for each in tests]) if tests else None,
            progress=report,
            checkpoint=chosen.checkpoint,
            **_options(model, not chosen.no_augment),
        )
    seconds = time.perf_counter() - begun
    model.save(output)
    say(f"{output}: trained in {seconds:.1f} s, {100 * history[-1]['accuracy']:.1f} % of the labels in the last epoch")
    return {
        "output": str(output),
        "meshes": len(found),
        "without_labels": [str(path) for path in without],
        "classes": model.classes,
        "labels": model.labels,
        "unseen_classes": unseen,
        "seconds": seconds,
        "history": list(history),
    }


def _names_in(folder: Path) -> list[str]:
    try:
        lines = (folder / NAMES).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except UnicodeDecodeError as error:
        raise FileError(f"{folder / NAMES} is no text: {error}") from error
    return [line.strip() for line in lines if line.strip()]


def _model(chosen: argparse.Namespace, names: Sequence[str], classes: int) -> Model:
    """The network to begin with, which has a class for each label."""
    if chosen.begin:
        model = shipped.open_model(chosen.begin)
        if model.task == "classification":
            raise InvalidArgumentError(f"{chosen.begin} labels a mesh as a whole, not its vertices")
        if names and names != model.labels:
            raise InvalidArgumentError(f"{chosen.begin} has the classes {', '.join(model.labels)}: others are named")
    elif names:
        model = Model(chosen.preset, labels=list(names), seed=chosen.seed)
    elif classes >= 1:
        model = Model(chosen.preset, classes=classes, seed=chosen.seed)
    else:
        raise InvalidArgumentError(f"no label in {chosen.folder} is known: all are -1")
    if classes > model.classes:
        raise InvalidArgumentError(f"there is a label {classes - 1}, but only {model.classes} classes have names")
    return model


def _options(model: Model, augment: bool) -> dict[str, Any]:
    """Of the training: what makes a network on samples of a surface robust (other samples of stretched surfaces)."""
    options: dict[str, Any] = {"schedule": "one_cycle", "clip_norm": 1.0}
    if augment:
        options["augment"] = {"stretch": 0.1, **({"resample": True} if "surface" in model.spec else {})}
    return options


@contextmanager
def _reporting(say: Say) -> Iterator[Callable[[Step], None]]:
    """What reports steps: a bar on terminals where tqdm is installed, and otherwise a line for each epoch."""

    def line(step: Step) -> None:
        if step.ended is not None:
            figures = (f"{name.replace('_', ' ')} {x:.4f}" for name, x in step.ended.items() if name != "epoch")
            say(f"epoch {step.epoch}: {', '.join(figures)}")

    if not sys.stderr.isatty() or importlib.util.find_spec("tqdm") is None:
        yield line
        return
    with progress_bar(leave=False) as bar:

        def move(step: Step) -> None:
            bar.total = step.steps
            bar.set_postfix_str(f"epoch {step.epoch}, loss {step.loss:.4f}", refresh=False)
            bar.update(step.step - bar.n)

        yield move


TRAIN = Command("train", "Train a model on a folder of meshes with labels.", _configure, _train)
