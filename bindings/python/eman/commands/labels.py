"""What a model says about meshes, how often it is right, and how equivariant: ``eman predict|evaluate|verify``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable

import numpy as np

from eman import plot, shipped
from eman._command import Command
from eman._tasks import count_labels, names_of
from eman.commands import files
from eman.commands.fields import add_view, view
from eman.errors import InvalidArgumentError
from eman.evaluation import TRANSFORMS, Evaluation, equivariance_gaps, evaluate
from eman.gaps import EQUIVARIANT
from eman.mesh import Mesh
from eman.model import Model

Say = Callable[[str], None]

#: Names of the symmetries, as they are shown.
SYMMETRIES = {
    "gauge": "frames turned by random angles",
    "rigid": "rotated and moved",
    "similarity": "rotated, moved and scaled",
    "permutation": "vertices, faces and corners renumbered",
}


def _configure_predict(parser: argparse.ArgumentParser) -> None:
    files.add_mesh(parser)
    files.add_model(parser)
    parser.add_argument(
        "--output",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="labels as .npy or .txt, the coloured mesh as .ply, a picture as .png; may be repeated",
    )
    parser.add_argument("--confidence", type=Path, metavar="FILE", help="the probability of each label, .npy or .txt")
    add_view(parser)


def _predict(chosen: argparse.Namespace, say: Say) -> dict[str, Any]:
    outputs = [files.writable(path, [".npy", ".txt", ".ply", ".png"]) for path in chosen.output]
    confidence = None if chosen.confidence is None else files.writable(chosen.confidence, [".npy", ".txt"])
    with shipped.open_model(chosen.model) as model, files.read_mesh(chosen.mesh, chosen.weld) as mesh:
        with files.bar("labels") as bar:
            labels, probabilities = model.top(mesh, 1, progress=bar.progress)
        result: dict[str, Any] = {"mesh": str(chosen.mesh), "model": chosen.model}
        if model.task == "classification":
            if outputs or confidence:
                raise InvalidArgumentError(f"{chosen.model} labels a mesh as a whole: it has no files to write")
            name = names_of(model)[int(labels[0])]
            say(f"{chosen.mesh}: {name} ({100 * float(probabilities[0]):.1f} %)")
            return {**result, "label": int(labels[0]), "name": name, "probability": float(probabilities[0])}
        found, sure = labels[:, 0], probabilities[:, 0]
        counts = count_labels(found, names_of(model))
        say(f"{chosen.mesh}: {mesh.vertex_count:,} vertices, mean probability of their labels {sure.mean():.3f}")
        for name, count in counts.items():
            say(f"  {name:<24}{count:>10,}{100 * count / len(found):>7.1f} %")
        for path in outputs:
            write_labels(path, mesh, found, model, view(chosen))
            say(f"{path}")
        if confidence is not None:
            files.write_values(confidence, sure)
            say(f"{confidence}")
    return {
        **result,
        "vertices": len(found),
        "confidence": float(sure.mean()),
        "counts": counts,
        "outputs": [str(path) for path in (*outputs, *filter(None, [confidence]))],
    }


def write_labels(path: Path, mesh: Mesh, labels: files.Array, model: Model, picture: dict[str, Any]) -> None:
    """Labels in the form that the file's suffix says."""
    if path.suffix == ".png":
        plot.plot_labels(mesh, labels, path, names=model.labels, **picture)
    elif path.suffix == ".ply":
        plot.export_labels(mesh, labels, path)
    else:
        files.write_values(path, labels)


# ---------------------------------------------------------------------------------------------------------------------


def _configure_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="meshes with labels, as for eman train")
    files.add_model(parser)
    files.add_weld(parser)
    parser.add_argument("--property", metavar="NAME", help="of PLY files that holds the labels")
    parser.add_argument("--transform", choices=TRANSFORMS, help="what happens to each mesh before")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random transformations")


def _evaluate(chosen: argparse.Namespace, say: Say) -> dict[str, Any]:
    rows = []
    parts: list[Evaluation] = []
    with shipped.open_model(chosen.model) as model:
        if model.task == "classification":
            raise InvalidArgumentError(f"{chosen.model} labels a mesh as a whole, not its vertices")
        found, without = files.labelled_in(chosen.folder, chosen.weld, chosen.property)
        with files.bar("meshes", len(found)) as move:
            for number, (path, mesh, labels) in enumerate(found):
                each = evaluate(model, mesh, labels, chosen.transform, chosen.seed + number)
                parts.append(each)
                rows.append({"mesh": str(path), "vertices": each.labels, "accuracy": each.accuracy, "loss": each.loss})
                say(f"{path}: accuracy {100 * each.accuracy:.2f} %, loss {each.loss:.4f}")
                mesh.close()
                move()
        whole = _together(parts)
        say(f"all: accuracy {100 * whole.accuracy:.2f} %, mean IoU {100 * whole.mean_iou:.2f} %")
        iou = dict(zip(names_of(model), whole.iou.tolist()))
    for name, share in iou.items():
        if not np.isnan(share):
            say(f"  {name:<24}{100 * share:>7.1f} % IoU")
    return {
        "model": chosen.model,
        "accuracy": whole.accuracy,
        "mean_iou": whole.mean_iou,
        "iou": {name: None if np.isnan(share) else share for name, share in iou.items()},
        "meshes": rows,
        "without_labels": [str(path) for path in without],
    }


def _together(parts: Sequence[Evaluation]) -> Evaluation:
    """Several meshes as one."""
    labels = sum(part.labels for part in parts)
    loss = sum(part.labels * part.loss for part in parts) / max(labels, 1)
    confusion = np.sum([part.confusion for part in parts if part.confusion is not None], axis=0)
    return Evaluation(labels, sum(part.correct for part in parts), loss, confusion)


# ---------------------------------------------------------------------------------------------------------------------


def _configure_verify(parser: argparse.ArgumentParser) -> None:
    files.add_mesh(parser)
    files.add_model(parser)
    parser.add_argument(
        "--bound", type=float, default=EQUIVARIANT, metavar="X", help="the largest gap allowed (default: %(default)g)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random transformations")


def _verify(chosen: argparse.Namespace, say: Say) -> dict[str, Any]:
    if not chosen.bound >= 0:
        raise InvalidArgumentError(f"--bound must not be negative, got {chosen.bound}")
    with shipped.open_model(chosen.model) as model, files.read_mesh(chosen.mesh, chosen.weld) as mesh:
        gaps = {}
        say(f"mean squared difference of the log-probabilities on {chosen.mesh}; allowed: {chosen.bound:g}")
        with files.bar("symmetries", len(TRANSFORMS)) as move:
            for transform in TRANSFORMS:
                gaps.update(equivariance_gaps(model, mesh, (transform,), chosen.seed))
                verdict = "" if gaps[transform] <= chosen.bound else "   TOO LARGE"
                say(f"  {SYMMETRIES[transform]:<44}{gaps[transform]:9.1e}{verdict}")
                move()
        substitutes = mesh.report().counts["zero_normal_vertices"]
    if substitutes:
        say(f"{substitutes:,} vertices have no normal of their own: what is taken there depends on rounding")
    return {
        "good": all(gap <= chosen.bound for gap in gaps.values()),
        "mesh": str(chosen.mesh),
        "model": chosen.model,
        "bound": chosen.bound,
        "gaps": gaps,
        "zero_normal_vertices": substitutes,
    }


PREDICT = Command("predict", "Label the vertices of a mesh, or the mesh, with a model.", _configure_predict, _predict)
EVALUATE = Command("evaluate", "How often a model is right on labelled meshes.", _configure_evaluate, _evaluate)
VERIFY = Command("verify", "One error for each symmetry: status 1 above the bound.", _configure_verify, _verify)
