"""A first look: ``eman demo [--mesh PATH] [--model MODEL] [--output DIR]``, also ``python -m eman.demo``.

Takes a mesh, or makes a creature, and shows the main job of the library on it: the mesh doctor, RelTan features and
how long they take, the labels of a trained network, whether both are as equivariant as they should be, and pictures.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, Optional

import numpy as np

import eman
from eman import plot, transforms
from eman._command import Command, main_of_one
from eman._tasks import count_labels, names_of
from eman.commands.labels import SYMMETRIES
from eman.creatures import SPECIES, Creature, creature
from eman.gaps import EQUIVARIANT
from eman.mesh import Mesh
from eman.model import Model
from eman.shipped import open_model

#: The largest relative difference of features that counts as equal; double rounding leaves some 1e-13.
TOLERANCE = 1e-9

#: Two classes are as probable as each other, up to rounding: the label may be either.
TIE = 1e-4

#: What labels a mesh where the user names no model.
MODELS = {"creature": "creature-parts", "mesh": "human-parts"}

_POWERS = (0.5, 0.7)

Say = Callable[[str], None]

#: What a file shows, and what writes it.
_Writer = tuple[str, Callable[[], Path]]


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mesh", type=Path, metavar="PATH", help="a mesh file; without it a creature is made")
    parser.add_argument(
        "--model", metavar="MODEL", help="a model file or the name of a shipped one (default: creature-parts for a"
        " creature, human-parts for a file)"
    )  # fmt: skip
    parser.add_argument(
        "--output", type=Path, default=Path("eman_demo"), metavar="DIR", help="where to write (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="another creature, other random motions")
    parser.add_argument(
        "--vertices", type=int, default=5000, metavar="N", help="of the creature (default: %(default)s)"
    )
    parser.add_argument("--species", choices=SPECIES, help="of the creature (default: the seed chooses)")
    parser.add_argument("--up", choices=("x", "y", "z"), help="axis that points up in the pictures")
    parser.add_argument("--weld", action="store_true", help="merge vertices of the file that coincide")


def _run(chosen: argparse.Namespace, say: Say) -> dict[str, Any]:
    facts = eman.build_info()
    say(
        f"eman {eman.__version__}, libeman {facts['version']} ({facts['platform']}, {facts['instruction_set']} kernels)"
    )
    say("\nThe mesh")
    made = creature(chosen.seed, chosen.vertices, chosen.species) if chosen.mesh is None else None
    name = f"{made.species} number {made.seed}" if made is not None else chosen.mesh.name
    mesh = _mesh(chosen, made, name, say)
    say("\nRelTan features, r = 0.5 and 0.7 (section 4 of the paper)")
    _time_features(mesh, say)
    say("\nHow much they change, relative to the largest")
    differences = _feature_differences(mesh, chosen.seed, say)
    say("\nThe parts of the mesh, by a trained network")
    with open_model(chosen.model or MODELS["mesh" if made is None else "creature"]) as model:
        labels, found = _labels(chosen, mesh, made, model, say)
        say("\nHow much its answer changes: mean squared difference of the log-probabilities, labels")
        symmetries = _label_differences(mesh, model, labels, chosen.seed, say)
        say("\nFiles")
        chosen.output.mkdir(parents=True, exist_ok=True)
        up = chosen.up or ("y" if made is None else "z")
        written = _write(_pictures(mesh, labels, model, name, chosen.output, up), say)
    good = all(difference <= TOLERANCE for difference in differences.values())
    good = good and all(found["good"] for found in symmetries.values())
    return {"good": good, "mesh": name, "features": differences, **found, "symmetries": symmetries, "files": written}


def _mesh(chosen: argparse.Namespace, made: Optional[Creature], name: str, say: Say) -> Mesh:
    """The mesh of the file or the creature, and what the mesh doctor says."""
    if made is not None:
        say(f"  {name}: a creature made on the spot; try --seed, --species or --mesh PATH")
        mesh = Mesh(made)
    else:
        say(f"  {chosen.mesh}")
        mesh = Mesh.from_file(chosen.mesh, weld=chosen.weld or None, degenerate="drop")
    if mesh.face_count == 0:
        raise eman.InvalidMeshError(f"{name} has no faces")
    report = mesh.report()
    for line in str(report).splitlines():
        say(f"  {line}")
    if report.counts["coincident_vertices"] > mesh.vertex_count // 10 and not chosen.weld:
        say("  Many vertices coincide, as in files that repeat them along seams: --weld makes them one.")
    return mesh


def _time_features(mesh: Mesh, say: Say) -> None:
    lengths = np.linalg.norm(mesh.reltan(_POWERS), axis=2)
    for power, length in zip(_POWERS, lengths.T):
        say(f"  r = {power}: median length {np.median(length):.4g}, largest {length.max():.4g}")
    arrays = mesh.vertices, mesh.faces
    for what, call in (
        ("build: neighbours, normals, frames", lambda: Mesh(*arrays).close()),
        ("update: new positions, same faces", lambda: mesh.update(arrays[0])),
        ("RelTan, both powers", lambda: mesh.reltan(_POWERS)),
    ):
        seconds = _best(call)
        per_edge = 1e9 * seconds / max(mesh.edge_count, 1)
        say(f"  {what:<36}{1e3 * seconds:9.2f} ms{per_edge:9.0f} ns per directed edge")


def _feature_differences(mesh: Mesh, seed: int, say: Say) -> dict[str, float]:
    """How far features of transformed meshes, mapped back, are from the features where these are defined."""
    defined = np.ones(mesh.vertex_count, bool)
    defined[mesh.report()["zero_normal_vertices"]] = False
    if not defined.all():
        say(f"  without the {np.count_nonzero(~defined):,} vertices whose faces define no normal")
    tangent, ambient = mesh.reltan(_POWERS), mesh.reltan(_POWERS, "ambient")
    largest = float(np.abs(ambient).max()) or 1.0
    turned = transforms.gauge(mesh, seed=seed)
    moved = transforms.similarity(mesh, seed=seed)
    renumbered = transforms.permutation(mesh, seed=seed)
    differences = {}
    for symmetry, after, before in (
        ("gauge", turned.features_back(turned.mesh.reltan(_POWERS)), tangent),
        ("similarity", moved.vectors_back(moved.mesh.reltan(_POWERS, "ambient")), ambient),
        ("permutation", renumbered.vertices_back(renumbered.mesh.reltan(_POWERS, "ambient")), ambient),
    ):
        differences[symmetry] = float(np.abs(after - before)[defined].max(initial=0.0)) / largest
        good = differences[symmetry] <= TOLERANCE
        say(f"  {SYMMETRIES[symmetry]:<44}{differences[symmetry]:9.1e}   {'as it should be' if good else 'TOO LARGE'}")
    return differences


def _labels(
    chosen: argparse.Namespace, mesh: Mesh, made: Optional[Creature], model: Model, say: Say
) -> tuple[Any, dict[str, Any]]:
    """The label of each vertex, and what is known about them."""
    if model.task != "segmentation":
        raise eman.InvalidArgumentError(f"{chosen.model} labels a mesh as a whole: take one that labels vertices")
    name = chosen.model or MODELS["mesh" if made is None else "creature"]
    say(f"  model: {name}, which knows {model.classes} parts")
    if made is None:
        say("  It labels whatever it is given: on a mesh of another kind its labels mean nothing.")
    labels, probabilities = model.top(mesh, 1)
    seconds = _best(lambda: model.predict(mesh))
    found: dict[str, Any] = {
        "model": name,
        "seconds": seconds,
        "confidence": float(probabilities.mean()),
        "counts": count_labels(labels[:, 0], names_of(model)),
    }
    say(f"  labels of {mesh.vertex_count:,} vertices in {1e3 * seconds:.0f} ms, probability {found['confidence']:.3f}")
    if made is not None and model.labels == list(made.part_names):
        found["accuracy"] = float(np.mean(labels[:, 0] == made.labels))
        say(f"  {100 * found['accuracy']:.1f} % of them are those that the creature was made with")
    for part, count in found["counts"].items():
        say(f"    {part:<24}{count:>9,}{100 * count / len(labels):>7.1f} %")
    return labels[:, 0], found


def _label_differences(mesh: Mesh, model: Model, labels: Any, seed: int, say: Say) -> dict[str, dict[str, Any]]:
    """For each symmetry the gap, how many labels change that are no ties, and whether that is as it should be.

    Where faces define no normal, it is rounding that chooses one, and samples there may be anything: that is no fault.
    """
    undefined = mesh.report().counts["zero_normal_vertices"]
    if undefined:
        say(f"  {undefined:,} vertices have no normal of their own: what is taken there depends on rounding")
    before, probabilities = model.logits(mesh), model.top(mesh, 2)[1] if model.classes > 1 else None
    tied = np.zeros(len(labels), bool) if probabilities is None else np.ptp(probabilities, axis=1) <= TIE
    renumbered = transforms.permutation(mesh, seed=seed)
    found = {}
    for symmetry, after in (
        ("gauge", model.logits(transforms.gauge(mesh, seed=seed).mesh)),
        ("similarity", model.logits(transforms.similarity(mesh, seed=seed).mesh)),
        ("permutation", renumbered.vertices_back(model.logits(renumbered.mesh))),
    ):
        gap = float(np.mean(np.square(np.subtract(before, after, dtype=np.float64))))
        changed = int(np.count_nonzero((after.argmax(axis=1) != labels) & ~tied))
        equal = gap <= EQUIVARIANT and changed == 0
        found[symmetry] = {"gap": gap, "changed_labels": changed, "good": equal or undefined > 0}
        verdict = "as it should be" if equal else "without normals" if undefined else "TOO LARGE"
        say(f"  {SYMMETRIES[symmetry]:<44}{gap:9.1e}{changed:>5} change   {verdict}")
    return found


def _pictures(mesh: Mesh, labels: Any, model: Model, name: str, output: Path, up: str) -> list[_Writer]:
    field = mesh.reltan([_POWERS[1]], "ambient")[:, 0]
    return [
        ("the mesh with its labels", lambda: plot.export_labels(mesh, labels, output / "eman_demo_labels.ply")),
        (
            "the parts",
            lambda: plot.plot_labels(
                mesh, labels, output / "eman_demo_labels.png", names=model.labels, title=f"Parts of {name}", up=up
            ),
        ),
        (
            "the RelTan field and its length",
            lambda: plot.plot_tangents(
                mesh,
                field,
                output / "eman_demo.png",
                title=f"RelTan, r = {_POWERS[1]}: {name}",
                label="length of the tangent vector",
                up=up,
            ),
        ),
    ]


def _write(writers: Sequence[_Writer], say: Say) -> list[str]:
    """Write files, as far as the packages for them are installed."""
    written = []
    for what, write in writers:
        try:
            path = write()
        except ImportError as error:
            say(f"  not written, {error.name} is not installed (pip install eman[all]): {what}")
        else:
            say(f"  {path}: {what}")
            written.append(str(path))
    return written


def _best(call: Callable[[], Any], runs: int = 3) -> float:
    """Shortest of several runs, in seconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


COMMAND = Command("demo", "What the library does, on a mesh: labels, equivariance, pictures.", _configure, _run)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """The command line; the exit status is as that of ``eman``, 1 also where something is not equivariant."""
    return main_of_one("python -m eman.demo", COMMAND, arguments)


if __name__ == "__main__":
    sys.exit(main())
