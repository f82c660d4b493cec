"""Table 1 of the paper, for every kind of network here: ``python -m eman.gaps [--mesh PATH | --humans PATH]``.

Randomly initialised networks, as the paper has them (§5): how much the log-probabilities of a mesh change when it is
given in other gauges, moved, moved and scaled, or renumbered.  What is equivariant shows rounding errors only.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Optional

import numpy as np

from eman._command import Command, main_of_one
from eman.creatures import creature
from eman.datasets import humans
from eman.errors import InvalidArgumentError
from eman.evaluation import TRANSFORMS, equivariance_gaps
from eman.mesh import Mesh
from eman.model import Model

__all__ = ["EQUIVARIANT", "Configuration", "Row", "configurations", "format_row", "header", "measure"]

#: A gap up to this is rounding.
EQUIVARIANT = 1e-9

PRESETS = ("default", "paper", "authors")


@dataclass(frozen=True)
class Configuration:
    """A network of the table.

    Attributes
    ----------
    preset : {"default", "paper", "authors"}
        Where its other choices are from.
    kind : {"eman", "gem", "spiral"}
        Of the network.
    features : {"xyz", "get", "reltan"}
        What it sees.
    bias : {"angular", "additive", "none"}
        Its biases.

    Examples
    --------
    >>> Configuration("default", "gem", "reltan", "angular").model(classes=4)
    Model(gem, reltan, segmentation, classes=4, parameters=60388)
    """

    preset: str
    kind: str
    features: str
    bias: str

    def model(self, classes: int, seed: int = 0, initialisation: str = "preset") -> Model:
        """The network with random parameters, drawn as `measure` says."""
        fields: dict[str, Any] = {"kind": self.kind, "features": self.features}
        if self.bias == "additive":  # the preset's angular one otherwise
            fields["bias"] = self.bias
        if initialisation == "authors":
            fields["initialisation"] = initialisation
        model = Model(self.preset, classes=classes, seed=seed, **fields)
        if model.spec["initialisation"] != "authors" and self.kind != "spiral":
            model.set_parameters(_biases(model, seed))
        return model


def _biases(model: Model, seed: int) -> dict[str, Any]:
    """Random biases of convolutions, distributed as in the authors' code; those of our presets begin at 0."""
    draw = np.random.default_rng(seed)
    deviations = {"bias": 1.0, "angles": 0.1}
    return {
        name: draw.normal(0.0, deviations[part], values.shape)
        for name, values in model.parameters().items()
        for part in (name.rpartition(".")[2],)
        if name.startswith("blocks.") and part in deviations
    }


@dataclass(frozen=True)
class Row:
    """A network and its gaps: means over the meshes.

    Attributes
    ----------
    configuration : Configuration
        The network.
    gauge, rigid, similarity, permutation : float
        Mean squared differences of log-probabilities; `rigid` is rotation and translation, `similarity` also scales.

    Examples
    --------
    >>> print(format_row(Row(Configuration("default", "eman", "reltan", "angular"), 1e-13, 0.0, 2e-13, 3e-13)))
    default  EMAN         RelTan    angular          1.0e-13       0.0e+00       2.0e-13       3.0e-13
    """

    configuration: Configuration
    gauge: float
    rigid: float
    similarity: float
    permutation: float


def configurations(presets: Iterable[str] = PRESETS) -> list[Configuration]:
    """The networks of the table: models × features × biases, and SpiralNet++ (in the code's preset it is the paper's).

    Parameters
    ----------
    presets : iterable of str
        Which presets.

    Returns
    -------
    list of Configuration

    Examples
    --------
    >>> len(configurations()), configurations(["paper"])[0]
    (38, Configuration(preset='paper', kind='spiral', features='xyz', bias='none'))
    """
    result = []
    for preset in presets:
        if preset != "authors":
            result.append(Configuration(preset, "spiral", "xyz", "none"))
        for chosen in itertools.product(("gem", "eman"), ("xyz", "get", "reltan"), ("additive", "angular")):
            result.append(Configuration(preset, *chosen))
    return result


def measure(
    meshes: Sequence[Mesh],
    networks: Iterable[Configuration],
    *,
    classes: int = 16,
    seed: int = 0,
    initialisation: str = "preset",
) -> Iterator[Row]:
    """Measure one network after the other.

    Parameters
    ----------
    meshes : sequence of Mesh
        Gaps are means over them.
    networks : iterable of Configuration
        The networks.
    classes : int
        Of each network.
    seed : int
        Of the parameters and of the transformations.
    initialisation : {"preset", "authors"}
        How parameters are drawn: as the preset says, but with random biases, since biases of 0 could break nothing; or
        all as in the authors' code, which is meant for the mean over neighbours: with the paper's sum the
        log-probabilities are beyond 1e4, and so is their rounding.

    Yields
    ------
    Row
        As soon as it is known.

    Examples
    --------
    >>> import eman
    >>> mesh = eman.Mesh(eman.creatures.creature(seed=1, vertices=800))
    >>> [row] = measure([mesh], [Configuration("default", "gem", "xyz", "angular")], classes=4)
    >>> row.gauge < EQUIVARIANT, row.similarity < EQUIVARIANT
    (True, False)
    """
    if not meshes:
        raise InvalidArgumentError("at least one mesh is needed")
    for network in networks:
        with network.model(classes, seed, initialisation) as model:
            found = [equivariance_gaps(model, mesh, seed=seed + number) for number, mesh in enumerate(meshes)]
        yield Row(network, **{name: float(np.mean([gaps[name] for gaps in found])) for name in TRANSFORMS})


_TITLES = {"gauge": "gauge", "rigid": "rotation+tr.", "similarity": "and scale", "permutation": "permutation"}
_KINDS = {"eman": "EMAN", "gem": "GEM-CNN", "spiral": "SpiralNet++"}
_FEATURES = {"xyz": "XYZ", "get": "GET", "reltan": "RelTan"}


def header() -> str:
    """The titles of the table's columns."""
    return f"{'preset':<9}{'model':<13}{'features':<10}{'bias':<10}" + "".join(
        f"{_TITLES[name]:>14}" for name in TRANSFORMS
    )


def format_row(row: Row, colour: bool = False) -> str:
    """A line of the table.

    Parameters
    ----------
    row : Row
        What it shows.
    colour : bool
        Blue for what is equivariant and red for what is not, as in the paper, for terminals.

    Returns
    -------
    str
    """
    network = row.configuration
    bias = "-" if network.bias == "none" else network.bias
    line = f"{network.preset:<9}{_KINDS[network.kind]:<13}{_FEATURES[network.features]:<10}{bias:<10}"
    for name in TRANSFORMS:
        gap = getattr(row, name)
        text = f"{gap:14.1e}"
        line += f"\033[{34 if gap <= EQUIVARIANT else 31}m{text}\033[0m" if colour else text
    return line


# ---------------------------------------------------------------------------------------------------------------------


def _configure(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--mesh", type=Path, metavar="PATH", help="a mesh file; without one a creature is made")
    source.add_argument("--humans", type=Path, metavar="PATH", help="humans.npz: bodies of the test subjects")
    parser.add_argument("--meshes", type=int, default=1, metavar="N", help="bodies or creatures (default: %(default)s)")
    parser.add_argument("--vertices", type=int, default=1500, metavar="N", help="of a creature (default: %(default)s)")
    parser.add_argument("--preset", choices=PRESETS, action="append", help="only these networks; may be repeated")
    parser.add_argument("--classes", type=int, default=16, metavar="N", help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="other parameters, other transformations")
    parser.add_argument(
        "--initialisation",
        choices=("preset", "authors"),
        default="preset",
        help="of the parameters: as the preset says, but with random biases; or as the authors' code"
        " (default: %(default)s)",
    )


def _run(chosen: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    if chosen.humans is not None:
        meshes, name = list(humans(chosen.humans).test.meshes[: chosen.meshes]), f"bodies of {chosen.humans}"
    elif chosen.mesh is not None:
        meshes, name = [Mesh.from_file(chosen.mesh, degenerate="drop")], str(chosen.mesh)
    else:
        made = [creature(chosen.seed + number, chosen.vertices) for number in range(chosen.meshes)]
        meshes, name = [Mesh(each) for each in made], "creatures made on the spot"
    if not meshes:
        raise InvalidArgumentError("at least one mesh is needed")
    say(f"Equivariance gaps of randomly initialised networks, {chosen.classes} classes, float32")
    say(f"{len(meshes)} of {meshes[0].vertex_count:,} vertices: {name}")
    say("mean squared difference of log-probabilities; permutation renumbers vertices, faces and corners")
    say("")
    say(header())
    rows = []
    previous: Optional[Configuration] = None
    networks = configurations(chosen.preset or PRESETS)
    options = {"classes": chosen.classes, "seed": chosen.seed, "initialisation": chosen.initialisation}
    for row in measure(meshes, networks, **options):
        if previous is not None and (previous.preset, previous.kind) != (
            row.configuration.preset,
            row.configuration.kind,
        ):
            say("")
        previous = row.configuration
        say(format_row(row, colour=sys.stdout.isatty()))
        rows.append({**asdict(row.configuration), **{name: getattr(row, name) for name in TRANSFORMS}})
    return {
        "meshes": len(meshes),
        "vertices": meshes[0].vertex_count,
        "faces": meshes[0].face_count,
        **options,
        "rows": rows,
    }


COMMAND = Command("gaps", "Equivariance gaps of randomly initialised networks (table 1).", _configure, _run)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """The command line; the exit status is as that of ``eman``."""
    return main_of_one("python -m eman.gaps", COMMAND, arguments)


if __name__ == "__main__":
    sys.exit(main())
