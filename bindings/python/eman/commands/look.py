"""What there is: ``eman info``, ``eman check``."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import Any, Callable

from eman import shipped
from eman._command import Command
from eman._version import __version__
from eman.commands import files
from eman.context import build_info
from eman.errors import EmanError
from eman.mesh import Mesh
from eman.model import Model
from eman.report import Report

Say = Callable[[str], None]

_PACKAGES = {
    "trimesh": "meshes",
    "meshio": "meshes",
    "matplotlib": "pictures",
    "pyvista": "pictures",
    "tqdm": "progress bars",
    "safetensors": "convert",
    "torch": "convert",
}


def _configure_info(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", metavar="FILE", help="a mesh, a model file or the name of a shipped model")
    files.add_weld(parser)


def _info(chosen: argparse.Namespace, say: Say) -> dict[str, Any]:
    if chosen.what is None:
        return _installation(say)
    path = Path(chosen.what)
    if path.suffix == ".safetensors" or (not path.exists() and chosen.what in shipped.names()):
        with files.open_model(chosen.what) as model:
            return _model(chosen.what, model, say)
    with files.read_mesh(path, chosen.weld) as mesh:
        return _mesh(path, mesh, say)


def _installation(say: Say) -> dict[str, Any]:
    facts = build_info()
    found = {name: importlib.util.find_spec(name) is not None for name in _PACKAGES}
    say(f"eman {__version__}, libeman {facts['version']} ({facts['platform']}, {facts['instruction_set']} kernels)")
    say(f"library: {facts['library']}")
    say(f"models: {', '.join(shipped.names()) or 'none'}")
    for name, there in found.items():
        say(f"{name}: {'installed' if there else 'not installed'} ({_PACKAGES[name]})")
    return {"eman": __version__, "library": facts, "models": shipped.names(), "packages": found}


def _model(name: str, model: Model, say: Say) -> dict[str, Any]:
    spec, size = model.spec, sum(values.size for values in model.parameters().values())
    runs_on = f"samples of the surface, {spec['surface']['points']}" if "surface" in spec else "vertices"
    say(f"{name}: {spec['kind']}, {spec['features']}, {model.task} on {runs_on}; {size:,} parameters")
    say(f"{model.classes} classes" + (f": {', '.join(model.labels)}" if model.labels else ""))
    say("layers: " + ", ".join(f"{layer.name}{' (attention)' * bool(layer.heads)}" for layer in model.layers))
    return {"model": name, "parameters": size, "spec": spec, "layers": [layer._asdict() for layer in model.layers]}


def _mesh(path: Path, mesh: Mesh, say: Say) -> dict[str, Any]:
    low, high = (mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)) if mesh.vertex_count else ((), ())
    labels = files.labels_of(path)
    say(f"{path}: {mesh.vertex_count:,} vertices, {mesh.face_count:,} faces, {mesh.edge_count:,} directed edges")
    say(f"from {_spaced(low)} to {_spaced(high)}; {len(set(mesh.components.tolist())):,} components")
    say("labels: " + ("none" if labels is None else f"{len(labels):,}, {len(set(labels.tolist()))} of them different"))
    return {
        "mesh": str(path),
        "vertices": mesh.vertex_count,
        "faces": mesh.face_count,
        "edges": mesh.edge_count,
        "low": [float(x) for x in low],
        "high": [float(x) for x in high],
        "labels": None if labels is None else len(labels),
    }


def _spaced(point: Any) -> str:
    return "(" + ", ".join(f"{x:.6g}" for x in point) + ")"


# ---------------------------------------------------------------------------------------------------------------------


def _configure_check(parser: argparse.ArgumentParser) -> None:
    files.add_mesh(parser, many=True)
    parser.add_argument("--strict", action="store_true", help="any finding is a fault, open boundaries as well")
    parser.add_argument(
        "--allow", action="append", default=[], metavar="FINDING", help="no fault, such as non_manifold_edges; repeat"
    )


def _check(chosen: argparse.Namespace, say: Say) -> dict[str, Any]:
    rows = []
    paths = files.meshes_in(chosen.mesh)
    for path in paths:
        row = _examined(path, chosen) if len(paths) > 1 else _examine(path, chosen)
        rows.append(row)
        say(f"{path}: {row['verdict']}")
        if "text" in row:
            for line in row.pop("text").splitlines():
                say(f"  {line}")
    good = all(row["good"] for row in rows)
    if len(rows) > 1:
        say(f"{len(rows)} meshes, {sum(not row['good'] for row in rows)} to be mended")
    return {"good": good, "meshes": rows}


def _examined(path: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    """As `_examine`; of several meshes, one that cannot be read is a row as well."""
    try:
        return _examine(path, chosen)
    except (EmanError, OSError) as error:
        message = " ".join(str(error).split())
        return {"mesh": str(path), "good": False, "error": message, "verdict": message}


def _examine(path: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    with files.read_mesh(path, chosen.weld) as mesh:
        report = mesh.report()
    faults = _faults(report, chosen)
    named = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in faults.items())
    return {
        "mesh": str(path),
        "good": not faults,
        "faults": faults,
        "report": report.to_dict(),
        "verdict": f"to be mended: {named}" if faults else "good",
        "text": str(report),
    }


def _faults(report: Report, chosen: argparse.Namespace) -> dict[str, int]:
    found = {name: count for name, count in report.counts.items() if count} if chosen.strict else report.faults
    if not report.face_count:
        found = {**found, "no_faces": 1}
    return {name: count for name, count in found.items() if name not in chosen.allow}


INFO = Command("info", "What is installed; or what a mesh or a model is.", _configure_info, _info)
CHECK = Command("check", "The mesh doctor: status 1 where a mesh is to be mended.", _configure_check, _check)
