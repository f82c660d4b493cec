"""The same labelled surface as another mesh: other triangulations, holes and noise, to train and to measure with.

Labels go to a new vertex from the nearest one of the given mesh, or of its face.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from eman.errors import InvalidArgumentError

__all__ = ["Labelled", "decimated", "holed", "labelled", "nearest", "noisy", "patched", "subdivided"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]


class Labelled(NamedTuple):
    """A mesh with a label for each vertex."""

    vertices: FloatArray
    faces: IntArray
    labels: IntArray


def labelled(vertices: Any, faces: Any, labels: Any) -> Labelled:
    """Take arrays in the types that the variations use."""
    return Labelled(np.asarray(vertices, np.float64), np.asarray(faces, np.int32), np.asarray(labels, np.int32))


def subdivided(mesh: Labelled, vertices: int) -> Labelled:
    """The mesh with its faces divided in four, as often as it takes to reach so many vertices.

    A new vertex has the label of the corner of the given face that has most weight in it.
    """
    points, faces, labels = mesh
    origin = faces
    weights = np.broadcast_to(np.eye(3), (len(faces), 3, 3))  # of the corners of the given face in those of each face
    while len(points) < vertices:
        points, faces = _quartered(points, faces)
        a, b, c = weights.transpose(1, 0, 2)
        weights = _quarters(a, b, c, (a + b) / 2, (b + c) / 2, (c + a) / 2)
        origin = np.tile(origin, (4, 1))
    found = np.concatenate([labels, np.zeros(len(points) - len(labels), labels.dtype)])
    found[faces] = labels[np.take_along_axis(origin, weights.argmax(2), 1)]
    return Labelled(points, faces, found)


def _quartered(points: FloatArray, faces: IntArray) -> tuple[FloatArray, IntArray]:
    """Each face divided in four at the middles of its edges."""
    sides = np.sort(np.stack([faces, np.roll(faces, -1, 1)], 2).reshape(-1, 2), 1)
    ends, middle = np.unique(sides, axis=0, return_inverse=True)
    middles = (len(points) + middle.reshape(-1, 3)).astype(np.int32)
    return np.concatenate([points, points[ends].mean(1)]), _quarters(*faces.T, *middles.T)


def _quarters(a: Any, b: Any, c: Any, ab: Any, bc: Any, ca: Any) -> npt.NDArray[Any]:
    """The corners of the four parts of each face, from its corners and the middles of its edges."""
    return np.concatenate([np.stack(part, 1) for part in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))])


def decimated(mesh: Labelled, vertices: int) -> Labelled:
    """About so many vertices, by collapsing edges where the surface changes least (pyvista)."""
    import pyvista

    if not 4 <= vertices <= len(mesh.vertices):
        raise InvalidArgumentError(f"vertices must be from 4 to the {len(mesh.vertices)} of the mesh, got {vertices}")
    coarse = pyvista.PolyData.from_regular_faces(mesh.vertices, mesh.faces)
    coarse = coarse.decimate(1 - vertices / len(mesh.vertices)).clean()
    points = np.asarray(coarse.points, np.float64)
    faces = np.asarray(coarse.regular_faces, np.int32)
    return Labelled(points, faces, mesh.labels[nearest(points, mesh.vertices)])


def holed(mesh: Labelled, share: float, seed: int) -> Labelled:
    """The mesh without a share of its faces, drawn at random; vertices that lose all of theirs go with them."""
    rng = np.random.default_rng(seed)
    return _without(mesh, rng.random(len(mesh.faces)) < share)


def patched(mesh: Labelled, share: float, patches: int, seed: int) -> Labelled:
    """The mesh without patches around random vertices, up to a share of its faces, as a scanner misses them."""
    rng = np.random.default_rng(seed)
    middles = mesh.vertices[mesh.faces].mean(1)
    lost = np.zeros(len(middles), bool)
    for vertex in rng.choice(len(mesh.vertices), patches, replace=False):
        far = np.linalg.norm(middles - mesh.vertices[vertex], axis=1)
        lost[np.argsort(far, kind="stable")[: round(share / patches * len(middles))]] = True
    return _without(mesh, lost)


def _without(mesh: Labelled, lost: npt.NDArray[np.bool_]) -> Labelled:
    """The mesh without the faces that are lost, and without the vertices that lose all of theirs."""
    used, numbers = np.unique(mesh.faces[~lost], return_inverse=True)
    return Labelled(mesh.vertices[used], numbers.reshape(-1, 3).astype(np.int32), mesh.labels[used])


def noisy(mesh: Labelled, deviation: float, seed: int) -> Labelled:
    """Every vertex moved at random; the deviation of each coordinate is in units of the mean edge of the mesh."""
    rng = np.random.default_rng(seed)
    corners = mesh.vertices[mesh.faces]
    edge = np.linalg.norm(corners - np.roll(corners, 1, 1), axis=2).mean()
    moved = mesh.vertices + rng.normal(0, deviation * edge, mesh.vertices.shape)
    return mesh._replace(vertices=moved)


def nearest(points: FloatArray, among: FloatArray) -> npt.NDArray[np.int64]:
    """For each point the number of the nearest one among others."""
    squares = np.einsum("ij,ij->i", among, among)
    rows = max(1, 8_000_000 // len(among))  # of a block of distances that stays small
    blocks = np.array_split(points, max(1, -(-len(points) // rows)))
    return np.concatenate([np.argmin(squares - 2 * block @ among.T, axis=1) for block in blocks])
