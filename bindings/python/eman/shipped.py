"""The models that the package brings, and how they are made: ``python -m eman.shipped NAME``.

Each is a network on samples of the surface, so it labels meshes of any triangulation.  A recipe trains it from data
that anyone can have, measures it on bodies that it has not seen, and writes the weights, a model card and the
checksums.  It is repeated bit for bit by the same instruction set, whatever the number of threads.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Optional

import numpy as np

from eman import _files, datasets, variations
from eman._command import Command, main_of_one
from eman.context import Context
from eman.creatures import PART_NAMES
from eman.errors import FileError, InvalidArgumentError
from eman.evaluation import equivariance_gaps
from eman.mesh import Mesh
from eman.model import Model
from eman.train import fit
from eman.variations import Labelled, labelled

__all__ = ["RECIPES", "Recipe", "checksums", "load", "make", "names", "open_model"]

_FOLDER = Path(__file__).with_name("models")
_CHECKSUMS = "SHA256SUMS"

#: Kinds of meshes that a model is measured on, by what was done to the bodies of the test.
_CHANGES: dict[str, Callable[[Labelled, int], Labelled]] = {
    "as they are": lambda mesh, seed: mesh,
    "decimated to 2,000 vertices": lambda mesh, seed: variations.decimated(mesh, min(2000, len(mesh.vertices))),
    "subdivided to 100,000 vertices or more": lambda mesh, seed: variations.subdivided(mesh, 100_000),
    "5 % of the faces removed": lambda mesh, seed: variations.holed(mesh, 0.05, seed),
    "vertex noise of 20 % of the mean edge": lambda mesh, seed: variations.noisy(mesh, 0.2, seed),
}


def names() -> list[str]:
    """The models that can be loaded by name.

    Examples
    --------
    >>> names()
    ['creature-parts', 'human-parts']
    """
    return sorted(checksums())


def checksums() -> dict[str, str]:
    """The SHA-256 of each model file, by the model's name.

    Examples
    --------
    >>> len(checksums()["human-parts"])
    64
    """
    try:
        lines = (_FOLDER / _CHECKSUMS).read_text().splitlines()
    except FileNotFoundError:
        return {}
    found = (line.split() for line in lines)
    return {name.removesuffix(".safetensors"): digest for digest, name in found}


def load(name: str, context: Optional[Context] = None) -> Model:
    """One of the models of the package, as `eman.Model.shipped` gives it.

    Parameters
    ----------
    name : str
        One of `names`.
    context : Context, optional
        Threads and memory.

    Returns
    -------
    Model

    Examples
    --------
    >>> load("human-parts").labels[:2]
    ['head', 'neck']
    """
    wanted = checksums().get(name)
    if wanted is None:
        raise InvalidArgumentError(f"no model {name!r} is shipped; there are {', '.join(names()) or 'none'}")
    path = _FOLDER / f"{name}.safetensors"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileError(error.errno, error.strerror, str(path)) from error
    if hashlib.sha256(content).hexdigest() != wanted:
        raise FileError(f"{path} is not the model that was shipped: its checksum differs")
    return Model.from_bytes(content, context=context)


def open_model(name: str) -> Model:
    """The model of a file, or one that the package brings.

    Parameters
    ----------
    name : str
        A path, or one of `names`.

    Returns
    -------
    Model
    """
    if Path(name).exists() or Path(name).suffix:
        return Model.load(name)
    known = names()
    if name in known:
        return load(name)
    raise InvalidArgumentError(f"{name} is neither a model file nor one of those shipped: {', '.join(known) or 'none'}")


# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recipe:
    """How a model is made.

    Attributes
    ----------
    title, data, licence, limits : str
        For the model card.
    labels : callable
        ``labels(data)``: the names of the classes.
    train : callable
        ``train(data)``: the labelled meshes to learn from; data is a file, or None where none is needed.
    test : callable
        ``test(data)``: for each kind of mesh the labelled meshes to measure with, made when they are asked for.
    network, options : dict
        Of `eman.Model` and `eman.fit`.

    Examples
    --------
    >>> isinstance(RECIPES["creature-parts"], Recipe), RECIPES["creature-parts"].options["schedule"]
    (True, 'one_cycle')
    """

    title: str
    data: str
    licence: str
    limits: str
    labels: Callable[[Optional[Path]], Sequence[str]]
    train: Callable[[Optional[Path]], Iterator[Labelled]]
    test: Callable[[Optional[Path]], dict[str, Callable[[], Iterator[Labelled]]]]
    network: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


def make(
    name: str,
    data: Optional[Path],
    output: Path,
    *,
    progress: Any = True,
    seed: int = 0,
    network: Optional[dict[str, Any]] = None,
    epochs: Optional[int] = None,
) -> dict[str, Any]:
    """Train a model, measure it, and write its weights, its card and the checksums of the folder.

    Parameters
    ----------
    name : str
        One of `RECIPES`.
    data : path, optional
        The file that the recipe wants.
    output : path
        The folder to write to; made if missing.
    progress : callable or bool
        As for `eman.fit`.
    seed : int
        Of weights and training.
    network, epochs : dict, int, optional
        What is to be other than in the recipe, for comparison: fields of the network's description, or the length of
        the training.

    Returns
    -------
    dict
        What the card says in numbers: seconds, bytes, sha256, accuracy by kind of mesh, gaps.

    Raises
    ------
    InvalidArgumentError
        For another name, or without the data that the recipe wants.
    FileError
        If the data cannot be read.
    """
    recipe = RECIPES.get(name)
    if recipe is None:
        raise InvalidArgumentError(f"there is no recipe {name!r}, but {', '.join(sorted(RECIPES))}")
    begun = time.perf_counter()
    meshes = list(recipe.train(data))
    labels = list(recipe.labels(data))
    model = Model("surface", classes=len(labels), labels=labels, seed=seed, **{**recipe.network, **(network or {})})
    options = recipe.options if epochs is None else {**recipe.options, "epochs": epochs}
    fit(
        model,
        [Mesh(mesh.vertices, mesh.faces, degenerate="drop") for mesh in meshes],
        [mesh.labels for mesh in meshes],
        seed=seed,
        progress=progress,
        **options,
    )
    seconds = time.perf_counter() - begun
    content = model.to_bytes()
    measured = {kind: _measure(model, bodies()) for kind, bodies in recipe.test(data).items()}
    first = next(iter(recipe.test(data)["as they are"]()))
    with Mesh(first.vertices, first.faces) as mesh:
        gaps = equivariance_gaps(model, mesh)
    result = {
        "name": name,
        "meshes": len(meshes),
        "seconds": round(seconds),
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "accuracy": measured,
        "gaps": gaps,
    }
    output.mkdir(parents=True, exist_ok=True)
    _files.write_whole(output / f"{name}.safetensors", content)
    _files.write_whole(output / f"{name}.md", _card(recipe, model, result).encode())
    sums = (
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in sorted(output.glob("*.safetensors"))
    )
    _files.write_whole(output / _CHECKSUMS, "".join(f"{line}\n" for line in sums).encode())
    return result


def _measure(model: Model, bodies: Iterator[Labelled]) -> dict[str, float]:
    """The share of the vertices that a model labels as they are labelled: the mean over the meshes, and the worst."""
    shares = []
    for body in bodies:
        with Mesh(body.vertices, body.faces, degenerate="drop") as mesh:
            shares.append(float(np.mean(model.predict(mesh) == body.labels)))
    return {"mean": float(np.mean(shares)), "worst": float(np.min(shares)), "meshes": len(shares)}


def _card(recipe: Recipe, model: Model, result: dict[str, Any]) -> str:
    """The model card."""
    surface = model.spec["surface"]
    rows = "\n".join(
        f"| {kind} | {found['meshes']} | {100 * found['mean']:.1f} % | {100 * found['worst']:.1f} % |"
        for kind, found in result["accuracy"].items()
    )
    gaps = ", ".join(f"{transform} {gap:.1e}" for transform, gap in result["gaps"].items())
    weights = sum(values.size for values in model.parameters().values())
    network = (
        f"preset `surface`, {model.spec['kind']}, points {surface['points']}, blocks {surface['blocks']}, "
        f"{weights:,} weights"
    )
    return f"""# {result["name"]}

{recipe.title}

| | |
|---|---|
| classes | {", ".join(model.labels)} |
| network | {network} |
| trained on | {recipe.data}; {result["meshes"]} meshes |
| licence | {recipe.licence} |
| made by | `python -m eman.shipped {result["name"]}`, {result["seconds"]} s |
| file | {result["bytes"]:,} bytes, SHA-256 `{result["sha256"]}` |

## Accuracy

Share of the vertices labelled rightly, on meshes that it was not trained on: the mean over the meshes, and the worst.

| meshes | number | mean | worst |
|---|---|---|---|
{rows}

Mean squared difference of the log-probabilities under symmetries: {gaps}.

## Limits

{recipe.limits}
"""


# ---------------------------------------------------------------------------------------------------------------------

#: How all are trained; what is varied at random, so that other bodies, scans and triangulations are expected.
_OPTIONS: dict[str, Any] = {
    "epochs": 40,
    "lr": 0.005,
    "schedule": "one_cycle",
    "clip_norm": 1.0,
    "augment": {"stretch": 0.2, "warp": 0.025, "noise": 0.15, "resample": True},
}


def _humans(data: Optional[Path]) -> datasets.Dataset:
    if data is None:
        raise InvalidArgumentError("human-parts needs --data, the path of humans.npz")
    return datasets.humans(data, "part")


def _bodies(data: Optional[Path], training: bool) -> Iterator[Labelled]:
    """Bodies of one side of the split, with labels of their parts."""
    found = _humans(data)
    for sample in found.train if training else found.test:
        with sample.mesh as mesh:
            yield labelled(mesh.vertices, mesh.faces, sample.target)


def _human_meshes(data: Optional[Path]) -> Iterator[Labelled]:
    """Every body as it is, and once more with far fewer vertices and without some patches."""
    rng = np.random.default_rng(0)
    for number, body in enumerate(_bodies(data, training=True)):
        yield body
        coarse = variations.decimated(body, int(np.exp(rng.uniform(np.log(1500), np.log(6000)))))
        yield variations.patched(coarse, rng.uniform(0, 0.1), 3, number)


def _human_tests(data: Optional[Path]) -> dict[str, Callable[[], Iterator[Labelled]]]:
    tests: dict[str, Callable[[], Iterator[Labelled]]] = {
        kind: functools.partial(_changed, lambda: _bodies(data, training=False), change)
        for kind, change in _CHANGES.items()
    }
    other = Path(data).with_name("humans_retriangulated.npz") if data is not None else None
    if other is not None and other.exists():
        tests["on another triangulation"] = functools.partial(_retriangulated, other)
    return tests


def _retriangulated(path: Path) -> Iterator[Labelled]:
    with np.load(path) as found:
        vertices, faces, part = found["vertices"], found["faces"], found["part"]
    for body in vertices:
        yield labelled(body, faces, part)


def _changed(
    bodies: Callable[[], Iterator[Labelled]], change: Callable[[Labelled, int], Labelled]
) -> Iterator[Labelled]:
    for seed, body in enumerate(bodies()):
        yield change(body, seed)


def _creatures(numbers: Sequence[int]) -> Iterator[Labelled]:
    """Creatures of all species, with labels of their parts."""
    made = datasets.creatures(max(numbers) + 1, test=0)
    for number in numbers:
        sample = made[number]
        with sample.mesh as mesh:
            yield labelled(mesh.vertices, mesh.faces, sample.target)


_CREATURES, _UNSEEN = range(60), range(60, 72)

RECIPES: dict[str, Recipe] = {
    "human-parts": Recipe(
        title="Parts of a human body, on meshes of any triangulation, resolution and pose.",
        data=(
            "bodies of `humans.npz`, subjects 0 to 7: made from MakeHuman's base mesh, targets and rig, posed by "
            "linear blend skinning; each also decimated to 1,500 to 6,000 vertices and without some patches"
        ),
        licence="CC0, as the data",
        limits=(
            "Eight bodies in ten poses taught it; clothes, hair, hands that hold something, other animals "
            "and scans with large parts missing did not. The borders between parts are those of the MakeHuman rig. It "
            "labels whatever it is given: a mesh that is no body gets labels as well."
        ),
        labels=lambda data: _humans(data).labels,
        train=_human_meshes,
        test=_human_tests,
        options=_OPTIONS,
    ),
    "creature-parts": Recipe(
        title="Parts of the creatures that `eman.creatures` makes: a recipe to follow, for which no file is needed.",
        data="creatures made on the spot, numbers 0 to 59",
        licence="Apache-2.0, as the package",
        limits="It knows made-up creatures only, and is there to show how a model of one's own is trained.",
        labels=lambda data: PART_NAMES,
        train=lambda data: _creatures(_CREATURES),
        test=lambda data: {
            kind: functools.partial(_changed, lambda: _creatures(_UNSEEN), change) for kind, change in _CHANGES.items()
        },
        options=_OPTIONS,
    ),
}


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", choices=sorted(RECIPES), help="which model")
    parser.add_argument("--data", type=Path, help="human-parts: the path of humans.npz")
    parser.add_argument("--output", type=Path, default=_FOLDER, help="where to write (default: the package itself)")
    parser.add_argument("--seed", type=int, default=0, help="of weights and training")
    parser.add_argument("--network", type=json.loads, metavar="JSON", help="fields that differ, for comparison")
    parser.add_argument("--epochs", type=int, help="another length of the training, for comparison")


def _run(chosen: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    if chosen.output == _FOLDER and (chosen.network is not None or chosen.epochs is not None):
        raise InvalidArgumentError("a model of another recipe is not the one that is shipped: give --output")
    result = make(
        chosen.name,
        chosen.data,
        chosen.output,
        progress=sys.stderr.isatty(),
        seed=chosen.seed,
        network=chosen.network,
        epochs=chosen.epochs,
    )
    say(f"{chosen.output / chosen.name}.safetensors: {result['bytes']:,} bytes, trained in {result['seconds']} s")
    for kind, found in result["accuracy"].items():
        say(f"  {kind:<40}{100 * found['mean']:6.1f} %, worst {100 * found['worst']:5.1f} %")
    for transform, gap in result["gaps"].items():
        say(f"  gap under {transform:<30}{gap:10.1e}")
    return result


COMMAND = Command("make-model", "Train and measure a model that the package brings.", _configure, _run)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """The command line; the exit status is as that of ``eman``."""
    return main_of_one("python -m eman.shipped", COMMAND, arguments)


if __name__ == "__main__":
    sys.exit(main())
