"""The transformations that a network should be equivariant to (§3.5), each with what maps results back.

>>> import numpy as np, eman
>>> from eman import transforms
>>> mesh = eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
>>> moved = transforms.similarity(mesh, seed=1)
>>> before, after = mesh.reltan(space="ambient"), moved.mesh.reltan(space="ambient")
>>> bool(np.allclose(before, moved.vectors_back(after), atol=1e-12))
True
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from eman import _arrays, _capi
from eman._calls import interruptible
from eman.errors import InvalidArgumentError
from eman.mesh import LONG, Mesh, _seed

__all__ = [
    "GaugeChange",
    "Permutation",
    "Similarity",
    "gauge",
    "permutation",
    "random_angles",
    "random_permutation",
    "random_rotation",
    "similarity",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def random_angles(count: int, seed: int = 0) -> FloatArray:
    """Independent uniform angles in [−π, π), determined by the seed: (count,) float64, radians.

    Examples
    --------
    >>> angles = random_angles(1000, seed=1)
    >>> angles.shape, bool((abs(angles) <= 3.15).all()), bool((angles == random_angles(1000, seed=1)).all())
    ((1000,), True, True)
    """
    result = np.empty(count)
    target = _arrays.view(result)
    _capi.check(_capi.library().eman_random_angles(_seed(seed), target))
    return result


def random_rotation(seed: int = 0) -> FloatArray:
    """A uniform rotation matrix, determined by the seed: (3, 3) float64.

    Examples
    --------
    >>> import numpy as np
    >>> rotation = random_rotation(seed=1)
    >>> bool(np.allclose(rotation @ rotation.T, np.eye(3))), bool(np.isclose(np.linalg.det(rotation), 1))
    (True, True)
    """
    result = np.empty((3, 3))
    _capi.check(_capi.library().eman_random_rotation(_seed(seed), result.ctypes.data))
    return result


def random_permutation(count: int, seed: int = 0) -> IntArray:
    """A random order of 0 … count − 1, determined by the seed: (count,) int64.

    Examples
    --------
    >>> sorted(random_permutation(5, seed=1).tolist())
    [0, 1, 2, 3, 4]
    """
    result = np.empty(count, np.int64)
    target = _arrays.view(result)
    _capi.check(_capi.library().eman_random_permutation(_seed(seed), target))
    return result


def _derived(seed: int, stream: int) -> int:
    """Another seed for another part of one transformation."""
    return (_seed(seed) * 0x9E3779B97F4A7C15 + stream) % 2**64


# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GaugeChange:
    """A mesh whose frames are turned about their normals.

    Attributes
    ----------
    mesh : Mesh
        The changed mesh; it has the custom gauge.
    angles : (V,) float64
        The angle of each frame, radians.

    Examples
    --------
    >>> import numpy as np, eman
    >>> mesh = eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    >>> turned = gauge(mesh, [np.pi / 2, 0, 0])
    >>> isinstance(turned, GaugeChange)
    True
    >>> np.round(mesh.reltan([1.0])[0, 0], 3), np.round(turned.mesh.reltan([1.0])[0, 0], 3)
    (array([0.707, 0.707]), array([ 0.707, -0.707]))
    """

    mesh: Mesh
    angles: FloatArray

    def features_back(self, features: npt.ArrayLike, order: int = 1) -> FloatArray:
        """Coordinates of ρ_order features in the original gauge.

        Parameters
        ----------
        features : (V, ..., 2) array_like
            Coordinates in the changed gauge; z = x + iy of order n is z_n there.
        order : int
            n ≥ 1: 1 for tangent vectors.

        Returns
        -------
        (V, ..., 2) float64
        """
        found = np.asarray(features, np.float64)
        if found.ndim < 2 or found.shape[0] != len(self.angles) or found.shape[-1] != 2:
            raise InvalidArgumentError(f"features must have shape ({len(self.angles)}, ..., 2), got {found.shape}")
        angle = (order * self.angles).reshape(-1, *(1,) * (found.ndim - 2))
        x, y = found[..., 0], found[..., 1]
        return np.stack([np.cos(angle) * x - np.sin(angle) * y, np.sin(angle) * x + np.cos(angle) * y], axis=-1)


def gauge(mesh: Mesh, angles: Optional[npt.ArrayLike] = None, *, seed: int = 0) -> GaugeChange:
    """Turn the frame of each vertex about its normal.

    Parameters
    ----------
    mesh : Mesh
        The mesh; it stays as it is, and shares memory with the new one.
    angles : (V,) array_like, optional
        Radians; by default random, from the seed.
    seed : int
        Of the random angles.

    Returns
    -------
    GaugeChange

    Raises
    ------
    InvalidArgumentError
        For another number of angles, or one that is not finite.

    Examples
    --------
    >>> import numpy as np, eman
    >>> mesh = eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    >>> changed = gauge(mesh, seed=3)
    >>> bool(np.allclose(changed.features_back(changed.mesh.reltan()), mesh.reltan()))
    True
    """
    turned = random_angles(mesh.vertex_count, seed) if angles is None else _arrays.reals(angles, "angles", None)
    if len(turned) != mesh.vertex_count:
        raise InvalidArgumentError(f"angles must have shape ({mesh.vertex_count},), got {turned.shape}")
    source, out = _arrays.view(turned), ctypes.c_void_p()
    change = _capi.library().eman_mesh_change_gauge
    with mesh._handle as handle:
        interruptible(
            lambda control: int(change(handle, source, control, ctypes.byref(out))),
            long=mesh.face_count >= LONG,
        )
    changed = Mesh._adopt(out, mesh.context, {**mesh.options, "gauge": "custom"})
    return GaugeChange(changed, np.array(turned, np.float64))


# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Similarity:
    """A mesh moved by x ↦ scale·R·x + translation.

    Attributes
    ----------
    mesh : Mesh
        The moved mesh.
    rotation : (3, 3) float64
        R.
    translation : (3,) float64
        In the unit of the positions.
    scale : float
        Positive.

    Examples
    --------
    >>> import numpy as np, eman
    >>> moved = similarity(eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]), seed=1)
    >>> isinstance(moved, Similarity)
    True
    >>> bool(np.allclose(moved.points_back(moved.mesh.vertices), [[0, 0, 0], [1, 0, 0], [0, 1, 0]]))
    True
    >>> bool(np.allclose(moved.points([[1, 0, 0]]), moved.mesh.vertices[1]))
    True
    """

    mesh: Mesh
    rotation: FloatArray
    translation: FloatArray
    scale: float

    def points(self, points: npt.ArrayLike) -> FloatArray:
        """Where points (..., 3) go."""
        return np.asarray(self.scale * (np.asarray(points, np.float64) @ self.rotation.T) + self.translation)

    def points_back(self, points: npt.ArrayLike) -> FloatArray:
        """Where points (..., 3) came from."""
        return np.asarray((np.asarray(points, np.float64) - self.translation) @ self.rotation / self.scale)

    def vectors_back(self, vectors: npt.ArrayLike) -> FloatArray:
        """Turn vectors (..., 3) without a unit, such as RelTan in ambient space, back to the original's directions."""
        return np.asarray(np.asarray(vectors, np.float64) @ self.rotation)


def similarity(
    mesh: Mesh,
    rotation: Optional[npt.ArrayLike] = None,
    translation: Optional[npt.ArrayLike] = None,
    scale: Optional[float] = None,
    *,
    seed: int = 0,
) -> Similarity:
    """Rotate, translate and scale a mesh.

    Parameters
    ----------
    mesh : Mesh
        The mesh; it stays as it is.
    rotation : (3, 3) array_like, optional
        By default uniformly random.
    translation : (3,) array_like, optional
        By default random, up to twice the mesh's extent along each axis.
    scale : float, optional
        By default random between 1/8 and 8.
    seed : int
        Of what is random.

    Returns
    -------
    Similarity

    Raises
    ------
    InvalidArgumentError
        For a matrix that is no rotation, or a scale that is not positive and finite.
    InvalidMeshError
        If a coordinate overflows.

    Examples
    --------
    >>> import eman
    >>> mesh = eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    >>> similarity(mesh, rotation=[[1, 0, 0], [0, 1, 0], [0, 0, 1]], translation=[1, 2, 3], scale=2).mesh.vertices[1]
    array([3., 2., 3.])
    """
    share = random_angles(4, _derived(seed, 1)) / np.pi  # uniform in [-1, 1)
    matrix = random_rotation(seed) if rotation is None else np.ascontiguousarray(rotation, np.float64)
    if translation is None:
        positions = mesh.vertices
        extent = float(np.ptp(positions, axis=0).max()) if len(positions) else 1.0
        offset = 2.0 * (extent or 1.0) * share[:3]
    else:
        offset = np.ascontiguousarray(translation, np.float64)
    if matrix.shape != (3, 3):
        raise InvalidArgumentError(f"rotation must have shape (3, 3), got {matrix.shape}")
    if offset.shape != (3,):
        raise InvalidArgumentError(f"translation must have shape (3,), got {offset.shape}")
    factor = float(8.0 ** share[3]) if scale is None else float(scale)
    out = ctypes.c_void_p()
    transform = _capi.library().eman_mesh_transform
    with mesh._handle as handle:
        interruptible(
            lambda control: int(
                transform(handle, matrix.ctypes.data, offset.ctypes.data, factor, control, ctypes.byref(out))
            ),
            long=mesh.face_count >= LONG,
        )
    return Similarity(Mesh._adopt(out, mesh.context, mesh.options), matrix.copy(), offset.copy(), factor)


# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Permutation:
    """A renumbered mesh.

    Attributes
    ----------
    mesh : Mesh
        The renumbered mesh.
    vertex_order : (V,) int64
        Vertex i of it is vertex ``vertex_order[i]`` of the original.
    face_order : (F,) int64
        Face i of it is face ``face_order[i]`` of the original ...
    corner_shift : (F,) int64
        ... beginning at that face's corner ``corner_shift[i]``.

    Examples
    --------
    >>> import eman
    >>> mesh = eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]])
    >>> renumbered = permutation(mesh, seed=2)
    >>> isinstance(renumbered, Permutation)
    True
    >>> bool((renumbered.vertices_back(renumbered.mesh.vertices) == mesh.vertices).all())
    True
    >>> corners = renumbered.faces_back(renumbered.vertex_order[renumbered.mesh.faces])
    >>> bool((corners.sum(axis=1) == mesh.faces.sum(axis=1)).all())
    True
    """

    mesh: Mesh
    vertex_order: IntArray
    face_order: IntArray
    corner_shift: IntArray

    def vertices_back(self, values: npt.ArrayLike) -> npt.NDArray[Any]:
        """Values (V, ...) of the renumbered mesh's vertices in the original's order."""
        return _scatter(values, self.vertex_order)

    def faces_back(self, values: npt.ArrayLike) -> npt.NDArray[Any]:
        """Values (F, ...) of the renumbered mesh's faces in the original's order."""
        return _scatter(values, self.face_order)


def _scatter(values: npt.ArrayLike, order: IntArray) -> npt.NDArray[Any]:
    found = np.asarray(values)
    if found.ndim < 1 or len(found) != len(order):
        raise InvalidArgumentError(f"values must have shape ({len(order)}, ...), got {found.shape}")
    result = np.empty_like(found)
    result[order] = found
    return result


def permutation(
    mesh: Mesh,
    vertex_order: Optional[npt.ArrayLike] = None,
    face_order: Optional[npt.ArrayLike] = None,
    corner_shift: Optional[npt.ArrayLike] = None,
    *,
    seed: int = 0,
) -> Permutation:
    """Renumber vertices and faces, and begin the faces at other corners.

    Parameters
    ----------
    mesh : Mesh
        The mesh; it stays as it is.
    vertex_order, face_order : (V,), (F,) array_like of int, optional
        Permutations; by default random, from the seed.
    corner_shift : (F,) array_like of int, optional
        0, 1 or 2; by default random, from the seed.
    seed : int
        Of what is random.

    Returns
    -------
    Permutation

    Raises
    ------
    InvalidArgumentError
        If an order is no permutation, or a shift is not 0, 1 or 2.

    Examples
    --------
    >>> import numpy as np, eman
    >>> mesh = eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    >>> renumbered = permutation(mesh, [2, 0, 1])
    >>> renumbered.mesh.vertices[0], renumbered.vertices_back(renumbered.mesh.vertices)[2]
    (array([0., 1., 0.]), array([0., 1., 0.]))
    """
    vertices, faces = mesh.vertex_count, mesh.face_count
    orders = (
        _order(vertex_order, "vertex_order", vertices, lambda: random_permutation(vertices, seed)),
        _order(face_order, "face_order", faces, lambda: random_permutation(faces, _derived(seed, 1))),
        _order(corner_shift, "corner_shift", faces, lambda: random_permutation(faces, _derived(seed, 2)) % 3),
    )
    views = [_arrays.view(order) for order in orders]
    out = ctypes.c_void_p()
    permute = _capi.library().eman_mesh_permute
    with mesh._handle as handle:
        interruptible(
            lambda control: int(permute(handle, *views, control, ctypes.byref(out))),
            long=mesh.face_count >= LONG,
        )
    return Permutation(Mesh._adopt(out, mesh.context, mesh.options), *orders)


def _order(given: Optional[npt.ArrayLike], name: str, count: int, draw: Any) -> IntArray:
    order = draw() if given is None else _arrays.integers(given, name, None)
    if len(order) != count:
        raise InvalidArgumentError(f"{name} must have shape ({count},), got {order.shape}")
    return np.array(order, np.int64)
