"""A first look: ``python -m eman.demo [--mesh PATH] [--output DIR] [--seed N]``.

Takes a mesh, or makes a creature, and shows the main job of the library on it: the mesh doctor, RelTan features and
how long they take, whether they and a network are as equivariant as they should be, and a picture.  Then it trains a
small network on a few creatures and labels one that it has not seen.
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
from eman import datasets, plot, transforms
from eman.creatures import PART_NAMES, SPECIES, creature

#: The largest relative difference that counts as equal; double rounding leaves some 1e-13.
TOLERANCE = 1e-9

#: The same for a network in float32: the mean squared difference of log-probabilities.
GAP = 1e-11

#: Share of the vertices that may change their label: two classes may be as probable, up to rounding.
TIES = 2e-3

_POWERS = (0.5, 0.7)
_CLASSES = 16

#: What the trained network tells apart: the parts without left and right, front and hind.
PARTS = tuple(dict.fromkeys(name.rpartition("_")[2] for name in PART_NAMES))

#: What writes a file, and what is in it.
_Writer = tuple[str, Callable[[], Path]]


def run(
    path: Optional[Path],
    output: Path,
    *,
    seed: int = 0,
    vertices: int = 5000,
    species: Optional[str] = None,
    up: Optional[str] = None,
    weld: bool = False,
    training: bool = True,
) -> bool:
    """Run the demo and print what it finds; whether features and network are equivariant.

    Parameters
    ----------
    path : path, optional
        A mesh file; without one a creature is made.
    output : path
        Folder for the files it writes; made if missing.
    seed : int
        Of the creature, and of the random transformations.
    vertices, species
        Of the creature, as for `eman.creatures.creature`.
    up : {"x", "y", "z"}, optional
        Which axis points up in the picture; by default y for files and z for creatures.
    weld : bool
        Merge vertices of a file that coincide.
    training : bool
        Train a network, which takes some ten seconds.
    """
    facts = eman.build_info()
    print(
        f"eman {eman.__version__}, libeman {facts['version']} ({facts['platform']}, {facts['instruction_set']} kernels)"
    )

    _section("The mesh")
    if path is None:
        made = creature(seed, vertices, species)
        name = f"{made.species} number {seed}"
        print(f"  {name}: a creature made on the spot; try --seed, --species or --mesh PATH")
        mesh = eman.Mesh(made)
    else:
        name = path.name
        print(f"  {path}")
        mesh = eman.Mesh.from_file(path, weld=weld or None, degenerate="drop")
    if mesh.face_count == 0:
        raise eman.InvalidMeshError(f"{name} has no faces")
    report = mesh.report()
    print(_indented(str(report)))
    if report.counts["coincident_vertices"] > mesh.vertex_count // 10 and not weld:
        print("  Many vertices coincide, as in files that repeat them along seams: --weld makes them one.")

    _section("RelTan features, r = 0.5 and 0.7 (section 4 of the paper)")
    features = mesh.reltan(_POWERS, "ambient")
    magnitude = np.linalg.norm(features, axis=2)
    for power, column in zip(_POWERS, magnitude.T):
        print(f"  r = {power}: median length {np.median(column):.4g}, largest {column.max():.4g}")
    arrays = mesh.vertices, mesh.faces
    timings = (
        ("build: neighbours, normals, frames", _best(lambda: eman.Mesh(*arrays).close(), 3)),
        ("update: new positions, same faces", _best(lambda: mesh.update(arrays[0]), 5)),
        ("RelTan, both powers", _best(lambda: mesh.reltan(_POWERS), 5)),
    )
    for what, seconds in timings:
        print(f"  {what:<36}{1e3 * seconds:9.2f} ms{1e9 * seconds / max(mesh.edge_count, 1):9.0f} ns per directed edge")

    _section("Equivariance: largest difference, relative to the largest feature")
    equivariant = True
    defined = np.ones(mesh.vertex_count, bool)
    defined[report["zero_normal_vertices"]] = False
    if not defined.all():
        print(f"  without the {np.count_nonzero(~defined):,} vertices whose faces define no normal")
    for what, difference in _equivariance(mesh, features, defined, seed):
        good = difference <= TOLERANCE
        equivariant &= good
        print(f"  {what:<44}{difference:9.1e}   {'as it should be' if good else 'TOO LARGE'}")

    _section("An equivariant mesh attention network (section 6)")
    equivariant &= _network(mesh, report["zero_normal_vertices"], seed)

    output.mkdir(parents=True, exist_ok=True)
    writers = _features_in(mesh, features[:, 1], name, output, up or ("z" if path is None else "y"))
    if training:
        _section("Training (section 7)")
        kept, more = _train(seed, output)
        equivariant, writers = equivariant and kept, writers + more

    _section("Files")
    _write(writers)
    return equivariant


def _equivariance(mesh: eman.Mesh, features: Any, defined: Any, seed: int) -> list[tuple[str, float]]:
    """How far features of transformed meshes, mapped back, are from the features at the vertices where defined."""
    largest = float(np.abs(features).max()) or 1.0

    def difference(other: Any, to: Any = features) -> float:
        return float(np.abs(other - to)[defined].max(initial=0.0)) / largest

    moved = transforms.similarity(mesh, seed=seed)
    renumbered = transforms.permutation(mesh, seed=seed)
    turned = transforms.gauge(mesh, seed=seed)
    return [
        (
            f"rotated, moved, scaled by {moved.scale:.3g}",
            difference(moved.vectors_back(moved.mesh.reltan(_POWERS, "ambient"))),
        ),
        (
            "vertices, faces and corners renumbered",
            difference(renumbered.vertices_back(renumbered.mesh.reltan(_POWERS, "ambient"))),
        ),
        (
            "frames turned by random angles",
            difference(turned.features_back(turned.mesh.reltan(_POWERS)), mesh.reltan(_POWERS)),
        ),
    ]


def _network(mesh: eman.Mesh, undefined: Any, seed: int) -> bool:
    """Run an untrained network on the mesh and its transformations; whether it is equivariant."""
    model = eman.Model("default", classes=_CLASSES, seed=seed)
    count = sum(values.size for values in model.parameters().values())
    print("  NOT TRAINED: its parameters are random, so its labels mean nothing. What can be seen is that they do not")
    print("  change with coordinates, order and gauge.")
    print(f"  preset default: {len(model.layers)} attention layers, {_CLASSES} classes, {count:,} parameters")
    vertices, edges = mesh.vertex_count, mesh.edge_count
    start = time.perf_counter()
    before = model.logits(mesh)
    seconds = time.perf_counter() - start
    print(f"  log-probabilities of {vertices:,} vertices: {1e3 * seconds:.0f} ms", end="")
    print(f", {1e6 * seconds / vertices:.0f} µs per vertex; memory: {model.estimate(vertices, edges) / 1e6:.1f} MB")
    seen = _beyond(mesh, undefined, len(model.layers))
    if not seen.any():
        print("  Normals are undefined all over this mesh: nothing can be said about its equivariance.")
        return True
    if not seen.all():
        print(f"  without {np.count_nonzero(~seen):,} vertices that see one whose faces define no normal")
    print("  mean squared difference of log-probabilities, float32 (the paper's best: 1.3e-05, 5.6e-09, 1.9e-13):")
    turned, renumbered = transforms.gauge(mesh, seed=seed), transforms.permutation(mesh, seed=seed)
    moved = transforms.similarity(mesh, seed=seed)
    equivariant = True
    for what, after in (
        ("frames turned by random angles", model.logits(turned.mesh)),
        (f"rotated, moved, scaled by {moved.scale:.3g}", model.logits(moved.mesh)),
        ("vertices, faces and corners renumbered", renumbered.vertices_back(model.logits(renumbered.mesh))),
    ):
        gap = float(np.mean(np.square(np.subtract(before, after, dtype=np.float64)[seen])))
        equivariant &= gap <= GAP
        print(f"  {what:<44}{gap:9.1e}   {'as it should be' if gap <= GAP else 'TOO LARGE'}")
    return equivariant


def _beyond(mesh: eman.Mesh, vertices: Any, rings: int) -> Any:
    """Which vertices are more than so many edges away from the given ones."""
    near = np.zeros(mesh.vertex_count, bool)
    near[vertices] = True
    if near.any():
        offsets, ends = mesh.neighbors
        starts = np.repeat(np.arange(mesh.vertex_count), np.diff(offsets))
        for _ in range(rings):
            near[starts[near[ends]]] = True
    return ~near


def _train(seed: int, output: Path) -> tuple[bool, list[_Writer]]:
    """Train on creatures and label another; whether its labels are equivariant, and the picture of them."""
    species = SPECIES[seed % len(SPECIES)]
    data = datasets.creatures(6, seed, species, vertices=800)
    merge = np.array([PARTS.index(name.rpartition("_")[2]) for name in PART_NAMES])
    targets = [merge[target] for target in data.targets]
    model = eman.Model("default", labels=PARTS, seed=seed)
    print(f"  {len(data.train)} creatures ({species}), each in its own triangulation; parts: {', '.join(PARTS)}")
    start = time.perf_counter()
    history = eman.fit(model, data.train.meshes, targets[:-1], epochs=30, schedule="one_cycle", dropout=0.1, seed=seed)
    seconds = time.perf_counter() - start
    print(
        f"  trained for {len(history)} epochs in {seconds:.1f} s: {100 * history[-1]['accuracy']:.1f} % of their labels"
    )
    mesh, target = data.test[0].mesh, targets[-1]
    labels = np.asarray(model.predict(mesh))
    most = np.bincount(target).max() / len(target)
    print(
        f"  one that it has not seen: {100 * eman.accuracy(model, mesh, target):.1f} % right"
        f" (its largest part has {100 * most:.1f} %); a few creatures and seconds make no good model"
    )
    equivariant = True
    renumbered, moved = transforms.permutation(mesh, seed=seed), transforms.similarity(mesh, seed=seed)
    for what, after in (
        ("frames turned by random angles", model.predict(transforms.gauge(mesh, seed=seed).mesh)),
        (f"rotated, moved, scaled by {moved.scale:.3g}", model.predict(moved.mesh)),
        (
            "vertices, faces and corners renumbered",
            renumbered.vertices_back(np.asarray(model.predict(renumbered.mesh))),
        ),
    ):
        different = int(np.count_nonzero(labels != after))
        equivariant &= different <= TIES * len(labels)
        verdict = "as it should be" if different <= TIES * len(labels) else "TOO MANY"
        print(f"  {what:<44}{different:>5} labels change   {verdict}")
    picture = output / "eman_demo_labels.png"
    legend = ", ".join(f"{number} {part}" for number, part in enumerate(PARTS))
    return equivariant, [
        (
            "the parts that the trained network sees",
            lambda: plot.plot_scalars(
                mesh, labels, picture, label=legend, title=f"{data.test[0].name}", colormap="tab10", limits=(-0.5, 9.5)
            ),
        )
    ]


def _features_in(mesh: eman.Mesh, vectors: Any, name: str, output: Path, up: str) -> list[_Writer]:
    """The picture of a tangent field and the coloured mesh."""
    return [
        (
            "colours: length of the tangent vectors",
            lambda: plot.export_ply(
                mesh, np.linalg.norm(vectors, axis=1), output / "eman_demo.ply", name="reltan_magnitude"
            ),
        ),
        (
            "the tangent field and its length",
            lambda: plot.plot_tangents(
                mesh,
                vectors,
                output / "eman_demo.png",
                title=f"RelTan, r = {_POWERS[1]}: {name}",
                label="length of the tangent vector",
                up=up,
            ),
        ),
    ]


def _write(writers: Sequence[_Writer]) -> None:
    """Write files, as far as the packages for them are installed."""
    for what, write in writers:
        try:
            written = write()
        except ImportError as error:
            print(f"  not written, {error.name} is not installed (pip install eman[all]): {what}")
        else:
            print(f"  {written}: {what}")


def _best(call: Callable[[], Any], runs: int) -> float:
    """Shortest of several runs, in seconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def _section(title: str) -> None:
    print(f"\n{title}")


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Command line; the exit status is 0, 1 for an error or features that are not equivariant, 2 for wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m eman.demo", description="Shows what eman does, on a mesh.")
    parser.add_argument("--mesh", type=Path, metavar="PATH", help="a mesh file; without it a creature is made")
    parser.add_argument(
        "--output", type=Path, default=Path("eman_demo"), metavar="DIR", help="where to write (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="another creature, other random motions")
    parser.add_argument(
        "--vertices", type=int, default=5000, metavar="N", help="of the creature (default: %(default)s)"
    )
    parser.add_argument("--species", choices=SPECIES, help="of the creature (default: the seed chooses)")
    parser.add_argument("--up", choices=("x", "y", "z"), help="axis that points up in the picture")
    parser.add_argument("--weld", action="store_true", help="merge vertices of the file that coincide")
    parser.add_argument("--no-training", action="store_true", help="leave out the training of a network")
    chosen = parser.parse_args(arguments)
    try:
        equivariant = run(
            chosen.mesh,
            chosen.output,
            seed=chosen.seed,
            vertices=chosen.vertices,
            species=chosen.species,
            up=chosen.up,
            weld=chosen.weld,
            training=not chosen.no_training,
        )
    except (eman.EmanError, OSError, ImportError, ValueError) as error:
        print(f"eman.demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0 if equivariant else 1


if __name__ == "__main__":
    sys.exit(main())
