"""How much a network's answers change when they should not, and how often they are right (§5, §7 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Callable, Optional, Union

import numpy as np
import numpy.typing as npt

from eman import _arrays, transforms
from eman.errors import InvalidArgumentError
from eman.mesh import Mesh, _seed
from eman.model import Model

__all__ = ["TRANSFORMS", "accuracy", "equivariance_gap", "equivariance_gaps"]

#: What a network should be equivariant to; "rigid" is a similarity without a change of scale.
TRANSFORMS = ("gauge", "rigid", "similarity", "permutation")

Values = npt.NDArray[Any]


@contextmanager
def _transformed(mesh: Mesh, transform: str, seed: int) -> Iterator[tuple[Mesh, Callable[[Values], Values]]]:
    """A transformed mesh, freed at the end, and what puts values of its vertices in the order of the original's."""
    back: Callable[[Values], Values] = np.asarray
    if transform == "gauge":
        changed = transforms.gauge(mesh, seed=seed).mesh
    elif transform == "rigid":
        changed = transforms.similarity(mesh, scale=1.0, seed=seed).mesh
    elif transform == "similarity":
        changed = transforms.similarity(mesh, seed=seed).mesh
    elif transform == "permutation":
        renumbered = transforms.permutation(mesh, seed=seed)
        changed, back = renumbered.mesh, renumbered.vertices_back
    else:
        raise InvalidArgumentError(f"transform must be one of {', '.join(map(repr, TRANSFORMS))}, got {transform!r}")
    with changed:
        yield changed, back


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
    """
    before = model.logits(mesh).astype(np.float64)
    gaps = {}
    for transform in of:
        with _transformed(mesh, transform, seed) as (changed, back):
            after = model.logits(changed)
        if model.task == "segmentation":
            after = back(after)
        gaps[transform] = float(np.mean(np.square(before - after))) if before.size else 0.0
    return gaps


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
    model : Model
        The model.
    meshes : Mesh or sequence of Mesh
        One or more; they stay as they are.
    targets : sequence of (V,) array_like of int, or of int
        The right labels of each mesh: of its vertices, or for classification of the whole.  For a single mesh, its
        labels alone.
    transform : {"gauge", "similarity", "rigid", "permutation"}, optional
        What happens to each mesh before, as for `equivariance_gap`; targets keep the original order.
    seed : int
        Of the random transformations; each mesh gets another one.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    InvalidArgumentError
        If targets do not fit the meshes, or one is no class of the model.

    Examples
    --------
    >>> import eman
    >>> made = eman.creatures.creature(seed=1, vertices=800)
    >>> untrained = eman.Model("default", classes=len(made.part_names))
    >>> 0 <= eman.accuracy(untrained, eman.Mesh(made), made.labels, transform="similarity") <= 1
    True
    """
    if isinstance(meshes, Mesh):
        meshes, targets = [meshes], [targets]
    if len(meshes) == 0 or len(meshes) != len(targets):
        raise InvalidArgumentError(f"{len(meshes)} meshes and {len(targets)} targets: one for each, and at least one")
    wanted = [_target(model, mesh, target, number) for number, (mesh, target) in enumerate(zip(meshes, targets))]
    right = total = 0
    for number, (mesh, target) in enumerate(zip(meshes, wanted)):
        labels: Values = np.atleast_1d(_predict(model, mesh, transform, _seed(seed) + number))
        right += int(np.count_nonzero(labels == target))
        total += len(target)
    if total == 0:
        raise InvalidArgumentError("the meshes have no vertices")
    return right / total


def _predict(model: Model, mesh: Mesh, transform: Optional[str], seed: int) -> Any:
    if transform is None:
        return model.predict(mesh)
    with _transformed(mesh, transform, seed % 2**64) as (changed, back):
        labels = model.predict(changed)
    return back(np.asarray(labels)) if model.task == "segmentation" else labels


def _target(model: Model, mesh: Mesh, target: Any, number: int) -> Values:
    """The target of a mesh, one number for each label that the model gives."""
    name = f"targets[{number}]"
    segments = model.task == "segmentation"
    found = _arrays.integers(target if segments else np.atleast_1d(_arrays.array(target, name)), name, None)
    expected = mesh.vertex_count if segments else 1
    if len(found) != expected:
        raise InvalidArgumentError(f"{name} must have {expected} labels, got {len(found)}")
    strange = found[(found < 0) | (found >= model.classes)]
    if len(strange):
        raise InvalidArgumentError(f"{name} contains {strange[0]}, which is not in [0, {model.classes})")
    return found
