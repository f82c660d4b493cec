"""How much a network's answers change when they should not, and how often they are right (§5, §7 of the paper)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from eman import _arrays, _capi, transforms
from eman.errors import InvalidArgumentError
from eman.mesh import Mesh, _seed
from eman.model import Model

__all__ = ["TRANSFORMS", "Evaluation", "accuracy", "equivariance_gap", "equivariance_gaps", "evaluate"]

#: What a network should be equivariant to; "rigid" is a similarity without a change of scale.
TRANSFORMS = ("gauge", "rigid", "similarity", "permutation")

Values = npt.NDArray[Any]


@contextmanager
def _transformed(mesh: Mesh, transform: str, seed: int) -> Iterator[tuple[Mesh, Values]]:
    """A transformed mesh, freed at the end, and which vertex of the original each of its vertices is."""
    order: Values = np.arange(mesh.vertex_count)
    if transform == "gauge":
        changed = transforms.gauge(mesh, seed=seed).mesh
    elif transform == "rigid":
        changed = transforms.similarity(mesh, scale=1.0, seed=seed).mesh
    elif transform == "similarity":
        changed = transforms.similarity(mesh, seed=seed).mesh
    elif transform == "permutation":
        renumbered = transforms.permutation(mesh, seed=seed)
        changed, order = renumbered.mesh, renumbered.vertex_order
    else:
        raise InvalidArgumentError(f"transform must be one of {', '.join(map(repr, TRANSFORMS))}, got {transform!r}")
    with changed:
        yield changed, order


def equivariance_gap(model: Model, mesh: Mesh, transform: str, seed: int = 0) -> float:
    """How far a model is from being equivariant: the gap of table 1 (§5).

    Parameters
    ----------
    model : Model
        The model.
    mesh : Mesh
        It stays as it is.
    transform : {"gauge", "similarity", "rigid", "permutation"}
        What happens to the mesh: every frame is turned by an angle of its own; it is rotated, moved and scaled;
        rotated and moved; or its vertices, faces and the corners of the faces are renumbered, by which the gauge of
        the first neighbour changes as well (a custom gauge moves with its vertices).
    seed : int
        Of the random transformation.

    Returns
    -------
    float
        Mean squared difference of the log-probabilities before and after, those after in the original's order.  0 for
        exact arithmetic and an equivariant model; rounding to float32 leaves some 1e-14.

    Raises
    ------
    InvalidArgumentError
        For an unknown transformation.

    Notes
    -----
    Objects may be in use by other threads; Ctrl-C ends it.

    Examples
    --------
    >>> import eman
    >>> mesh = eman.Mesh(eman.creatures.creature(seed=1, vertices=800))
    >>> eman.equivariance_gap(eman.Model("default", classes=4), mesh, "similarity") < 1e-11
    True
    >>> eman.equivariance_gap(eman.Model("default", classes=4, features="xyz"), mesh, "similarity") > 1e-3
    True
    """
    return equivariance_gaps(model, mesh, (transform,), seed)[transform]


def equivariance_gaps(model: Model, mesh: Mesh, of: Sequence[str] = TRANSFORMS, seed: int = 0) -> dict[str, float]:
    """The gaps of several transformations; cheaper than `equivariance_gap` for each.

    Parameters
    ----------
    model : Model
        The model.
    mesh : Mesh
        It stays as it is.
    of : sequence of str
        The transformations.
    seed : int
        Of the random transformations.

    Returns
    -------
    dict of str to float
        For each transformation its gap.

    Examples
    --------
    >>> import eman
    >>> corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> mesh = eman.Mesh(corners, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    >>> gaps = eman.evaluation.equivariance_gaps(eman.Model("default", classes=4), mesh)
    >>> sorted(gaps), max(gaps.values()) < 1e-9
    (['gauge', 'permutation', 'rigid', 'similarity'], True)
    """
    before = np.atleast_2d(model.logits(mesh))
    gaps = {}
    for transform in of:
        with _transformed(mesh, transform, seed) as (changed, order):
            after = np.atleast_2d(model.logits(changed))
        total = 0.0
        for rows in np.array_split(np.arange(len(before)), len(before) // 1024 + 1):  # no third array of that size
            expected = before[order[rows]] if model.task == "segmentation" else before
            total += float(np.square(np.subtract(expected, after[rows], dtype=np.float64)).sum())
        gaps[transform] = total / max(before.size, 1)
    return gaps


@dataclass(frozen=True)
class Evaluation:
    """How well a model labels meshes.

    Attributes
    ----------
    labels : int
        Known labels that were compared.
    correct : int
        Of these, the model's most probable class.
    loss : float
        The mean negative log-likelihood of the known labels; 0 without any.
    confusion : (classes, classes) int64 or None
        How many of class (row) were labelled as (column).

    Examples
    --------
    >>> import numpy as np, eman
    >>> found = eman.Evaluation(labels=10, correct=7, loss=0.9, confusion=np.array([[4, 1], [2, 3]]))
    >>> found.accuracy, found.iou.round(3).tolist(), round(found.mean_iou, 3)
    (0.7, [0.571, 0.5], 0.536)
    """

    labels: int
    correct: int
    loss: float
    confusion: Optional[npt.NDArray[np.int64]] = None

    @property
    def accuracy(self) -> float:
        """The share of right labels; nan without any."""
        return self.correct / self.labels if self.labels else float("nan")

    @property
    def iou(self) -> npt.NDArray[np.float64]:
        """(classes,) float64: of each class, intersection over union; nan where it neither is nor was predicted."""
        if self.confusion is None:
            raise InvalidArgumentError("the evaluation was made without the confusion matrix")
        right = np.diagonal(self.confusion).astype(np.float64)
        union = self.confusion.sum(axis=0) + self.confusion.sum(axis=1) - right
        return np.asarray(np.divide(right, union, out=np.full(len(right), np.nan), where=union > 0), np.float64)

    @property
    def mean_iou(self) -> float:
        """The mean of `iou` over the classes that are or were predicted; nan without any."""
        iou = self.iou
        return float(np.mean(iou[~np.isnan(iou)])) if not np.isnan(iou).all() else float("nan")

    def __str__(self) -> str:
        text = f"accuracy {self.accuracy:.4f} ({self.correct:,} of {self.labels:,}), loss {self.loss:.4f}"
        return text if self.confusion is None else f"{text}, mean IoU {self.mean_iou:.4f}"


def evaluate(
    model: Model,
    meshes: Union[Mesh, Sequence[Mesh]],
    targets: Any,
    transform: Optional[str] = None,
    seed: int = 0,
    *,
    confusion: bool = True,
) -> Evaluation:
    """Compare a model's labels with known ones (§7).

    Parameters
    ----------
    model : Model
        The model.
    meshes : Mesh or sequence of Mesh
        One or more; they stay as they are.
    targets : sequence of (V,) array_like of int, or of int
        The right labels of each mesh: of its vertices, −1 where unknown, or for classification of the whole.  For
        a single mesh, its labels alone.
    transform : {"gauge", "similarity", "rigid", "permutation"}, optional
        What happens to each mesh before, as for `equivariance_gap`; targets keep the original order.
    seed : int
        Of the random transformations; each mesh gets another one.
    confusion : bool
        Whether to count which class was taken for which; it takes 16 bytes for each pair of classes meanwhile.

    Returns
    -------
    Evaluation

    Raises
    ------
    InvalidArgumentError
        If targets do not fit the meshes, or one is no class of the model.

    Examples
    --------
    >>> import eman
    >>> made = eman.creatures.creature(seed=1, vertices=800)
    >>> untrained = eman.Model("default", labels=made.part_names)
    >>> found = eman.evaluate(untrained, eman.Mesh(made), made.labels, transform="similarity")
    >>> found.labels, int(found.confusion.sum()), found.iou.shape
    (800, 800, (16,))
    """
    if isinstance(meshes, Mesh):
        meshes, targets = [meshes], [targets]
    if len(meshes) == 0 or len(meshes) != len(targets):
        raise InvalidArgumentError(f"{len(meshes)} meshes and {len(targets)} targets: one for each, and at least one")
    counts = np.zeros((model.classes, model.classes), np.int64) if confusion else None
    labels = correct = 0
    loss = 0.0
    for number, (mesh, target) in enumerate(zip(meshes, targets)):
        wanted = _target(model, mesh, target, f"targets[{number}]")
        if transform is None:
            found = _evaluate(model, mesh, wanted, counts)
        else:
            with _transformed(mesh, transform, (_seed(seed) + number) % 2**64) as (changed, order):
                found = _evaluate(model, changed, wanted[order] if model.task == "segmentation" else wanted, counts)
        labels, correct, loss = labels + found.labels, correct + found.correct, loss + found.labels * found.loss
    return Evaluation(labels, correct, loss / labels if labels else 0.0, counts)


def accuracy(
    model: Model,
    meshes: Union[Mesh, Sequence[Mesh]],
    targets: Any,
    transform: Optional[str] = None,
    seed: int = 0,
) -> float:
    """The share of right labels: of all vertices, or of the meshes for classification (§7).

    Parameters
    ----------
    model, meshes, targets, transform, seed
        As for `evaluate`.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    InvalidArgumentError
        If targets do not fit the meshes, one is no class of the model, or none is known.

    Examples
    --------
    >>> import eman
    >>> made = eman.creatures.creature(seed=1, vertices=800)
    >>> untrained = eman.Model("default", classes=len(made.part_names))
    >>> 0 <= eman.accuracy(untrained, eman.Mesh(made), made.labels, transform="similarity") <= 1
    True
    """
    found = evaluate(model, meshes, targets, transform, seed, confusion=False)
    if found.labels == 0:
        raise InvalidArgumentError("no label is known: the meshes have no vertices, or all targets are -1")
    return found.accuracy


def _evaluate(model: Model, mesh: Mesh, target: Values, counts: Optional[Values]) -> _capi.Evaluation:
    """Compare the labels of one mesh, and add to the counts of the confusion."""
    result = _capi.Evaluation(struct_size=ctypes.sizeof(_capi.Evaluation))
    confusion = None if counts is None else np.empty_like(counts)
    labels, room = _arrays.view(target), None if confusion is None else _arrays.view(confusion)
    call = _capi.library().eman_model_evaluate
    model._run(
        mesh,
        None,
        lambda network, on, control: call(network, on, labels, control, ctypes.byref(result), room),
    )
    if counts is not None and confusion is not None:
        counts += confusion
    return result


def _target(model: Model, mesh: Mesh, target: Any, name: str) -> Values:
    """The target of a mesh, one number for each label that the model gives."""
    found = _arrays.labels(target, name)
    expected = model._rows(mesh)
    if len(found) != expected:
        raise InvalidArgumentError(f"{name} must have {expected} labels, got {len(found)}")
    strange = found[(found < -1) | (found >= model.classes)]
    if len(strange):
        raise InvalidArgumentError(f"{name} contains {strange[0]}, which is not in [0, {model.classes})")
    return found
