"""Features of a mesh, and pictures: ``eman features``, ``eman render``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Callable

import numpy as np

from eman import plot
from eman._command import Command
from eman.commands import files
from eman.errors import InvalidArgumentError
from eman.mesh import Mesh

Say = Callable[[str], None]


def add_view(parser: argparse.ArgumentParser) -> None:
    """How a picture is seen."""
    group = parser.add_argument_group("the picture")
    group.add_argument("--up", choices=("x", "y", "z"), default="y", help="which axis points up (default: %(default)s)")
    group.add_argument(
        "--view", type=float, nargs=2, metavar="DEGREES", help="where the camera stands: around up, and above level"
    )
    group.add_argument("--size", type=int, nargs=2, metavar="PIXELS", help="width and height")
    group.add_argument("--title", default="", help="above the picture")
    group.add_argument("--renderer", choices=("auto", "pyvista", "matplotlib"), default="auto", help="what draws it")


def view(chosen: argparse.Namespace) -> dict[str, Any]:
    """What `eman.plot` takes of it."""
    return {
        "up": chosen.up,
        "view": None if chosen.view is None else tuple(chosen.view),
        "size": None if chosen.size is None else tuple(chosen.size),
        "title": chosen.title,
        "renderer": chosen.renderer,
    }


def _configure_features(parser: argparse.ArgumentParser) -> None:
    files.add_mesh(parser)
    parser.add_argument("--kind", choices=("reltan", "get"), default="reltan", help="default: %(default)s")
    parser.add_argument(
        "--powers", type=float, nargs="+", default=[0.5, 0.7], metavar="R", help="of RelTan (default: 0.5 0.7)"
    )
    parser.add_argument(
        "--space",
        choices=("tangent", "ambient"),
        default="tangent",
        help="coordinates of RelTan: in each vertex's frame, or of space (default: %(default)s)",
    )
    parser.add_argument("--normals", choices=("area", "angle"), default="area", help="weights of faces in a normal")
    parser.add_argument("--output", type=Path, metavar="NPY", help="default: the mesh's name with .reltan.npy, here")
    parser.add_argument("--ply", type=Path, metavar="PLY", help="the mesh coloured by the length of the last vector")


def _features(chosen: argparse.Namespace, say: Say) -> dict[str, Any]:
    output = files.writable(chosen.output or Path(f"{chosen.mesh.stem}.{chosen.kind}.npy"), [".npy"])
    coloured = None if chosen.ply is None else files.writable(chosen.ply, [".ply"])
    with files.read_mesh(chosen.mesh, chosen.weld, normals=chosen.normals) as mesh:
        if chosen.kind == "get":
            found = mesh.get_features()
            vectors = found[:, 1:]
        else:
            found = mesh.reltan(chosen.powers, chosen.space)
            vectors = found[:, -1]
        files.write_values(output, found)
        say(f"{output}: {chosen.kind}, {found.dtype} of shape {found.shape}")
        if coloured is not None:
            plot.export_ply(mesh, np.linalg.norm(vectors, axis=1), coloured, name=f"{chosen.kind}_length")
            say(f"{coloured}: coloured by the length")
    return {
        "mesh": str(chosen.mesh),
        "kind": chosen.kind,
        "powers": chosen.powers if chosen.kind == "reltan" else None,
        "shape": list(found.shape),
        "output": str(output),
        "ply": None if coloured is None else str(coloured),
    }


def _configure_render(parser: argparse.ArgumentParser) -> None:
    files.add_mesh(parser)
    parser.add_argument("output", type=Path, metavar="PNG", help="the picture")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--values", type=Path, metavar="FILE", help="a number for each vertex, .npy or text")
    what.add_argument(
        "--labels", type=Path, nargs="?", const="", metavar="FILE", help="a label for each vertex; default: the mesh's"
    )
    what.add_argument(
        "--power", type=float, default=0.7, metavar="R", help="of the RelTan field (default: %(default)s)"
    )
    what.add_argument("--get", action="store_true", help="the tangent part of the GET features")
    what.add_argument("--attention", type=int, metavar="VERTEX", help="the attention of --model around a vertex")
    parser.add_argument("--model", metavar="MODEL", help="a model file, or the name of a shipped model")
    parser.add_argument(
        "--layer", metavar="NAME", help="whose attention (default: the first that has any; eman info MODEL lists them)"
    )
    parser.add_argument("--names", nargs="+", default=[], metavar="NAME", help="of the labels")
    add_view(parser)


def _render(chosen: argparse.Namespace, say: Say) -> dict[str, Any]:
    output = files.writable(chosen.output, [".png"])
    with files.read_mesh(chosen.mesh, chosen.weld) as mesh:
        if chosen.values is not None:
            what = f"values of {chosen.values}"
            plot.plot_scalars(mesh, files.read_values(chosen.values), output, **view(chosen))
        elif chosen.labels is not None:
            given = chosen.labels != Path("")
            labels = files.read_labels(chosen.labels) if given else files.labels_of(chosen.mesh)
            if labels is None:
                raise InvalidArgumentError(f"{chosen.mesh} has no labels of its own: give a file, --labels FILE")
            what = f"{len(np.unique(labels))} labels"
            plot.plot_labels(mesh, labels, output, names=chosen.names, **view(chosen))
        elif chosen.attention is not None:
            what = _draw_attention(chosen, mesh, output)
        elif chosen.get:
            what = "GET field"
            field = np.einsum("vi,vij->vj", mesh.get_features()[:, 1:], mesh.frames[:, :2])
            plot.plot_tangents(mesh, field, output, label="length of the tangent part", **view(chosen))
        else:
            what = f"RelTan field, r = {chosen.power:g}"
            field = mesh.reltan([chosen.power], "ambient")[:, 0]
            plot.plot_tangents(mesh, field, output, label="length of the tangent vector", **view(chosen))
    say(f"{output}: {what}")
    return {"mesh": str(chosen.mesh), "output": str(output), "shown": what}


def _draw_attention(chosen: argparse.Namespace, mesh: Mesh, output: Path) -> str:
    if chosen.model is None:
        raise InvalidArgumentError("--attention needs --model MODEL")
    with files.open_model(chosen.model) as model:
        if "surface" in model.spec:
            raise InvalidArgumentError(f"{chosen.model} runs on samples of the surface, not on the vertices")
        layer = chosen.layer or next((found.name for found in model.layers if found.heads), None)
        if layer is None:
            raise InvalidArgumentError(f"{chosen.model} has no attention")
        options = {"title": chosen.title, **({} if chosen.size is None else {"size": tuple(chosen.size)})}
        plot.plot_attention(mesh, model.attention(mesh, layer), chosen.attention, output, **options)
    return f"attention of {layer} around vertex {chosen.attention}"


FEATURES = Command("features", "RelTan or GET features of a mesh.", _configure_features, _features)
RENDER = Command(
    "render", "A picture of a mesh: values, labels, its RelTan or GET field, or attention.", _configure_render, _render
)
