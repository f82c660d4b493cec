"""Bad input: an exception that names the culprit, whatever it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eman

from .conftest import TETRAHEDRON

V, F = TETRAHEDRON
MESH, ARGUMENT = eman.InvalidMeshError, eman.InvalidArgumentError


def with_face(value: int, dtype: Any = np.int64) -> np.ndarray:
    faces = F.astype(dtype)
    faces[2, 1] = value
    return faces


@pytest.mark.parametrize(
    ("faces", "kind", "message"),
    [
        (with_face(4), MESH, r"face 2: vertex index 4 is out of range \[0, 4\)"),
        (with_face(-1), MESH, r"face 2: vertex index -1 is out of range"),
        (with_face(-1, np.int32), MESH, r"face 2: vertex index -1 is out of range"),
        (with_face(2**31), MESH, r"face 2: vertex index 2147483648 is out of range"),
        (with_face(2**31, np.uint32), MESH, r"face 2: vertex index 2147483648 is out of range"),
        (with_face(2**32 - 1, np.uint32), MESH, r"face 2: vertex index 4294967295 is out of range"),
        (with_face(2**32), MESH, r"face 2: vertex index 4294967296 is out of range"),
        (with_face(2**63 - 1), MESH, r"face 2: vertex index 9223372036854775807 is out of range"),
        (with_face(-(2**63)), MESH, r"face 2: vertex index -9223372036854775808 is out of range"),
        (with_face(2**63, np.uint64), ARGUMENT, r"faces contains 9223372036854775808"),
        ([[2**63, 2**63, 2**63]], ARGUMENT, r"faces contains 9223372036854775808"),
        ([[0, 1, 2**70]], ARGUMENT, r"faces must be integers, got object"),
        (F.astype(float), ARGUMENT, "faces must be integers, got float64"),
        (F.astype(bool), ARGUMENT, "faces must be integers, got bool"),
        (F.astype(str), ARGUMENT, "faces must be integers, got <U"),
        (F.ravel(), ARGUMENT, r"faces must have shape \(N, 3\), got \(12,\)"),
        (F[:, :2], ARGUMENT, r"faces must have shape \(N, 3\), got \(4, 2\)"),
        (F[None], ARGUMENT, r"faces must have shape \(N, 3\), got \(1, 4, 3\)"),
        (7, ARGUMENT, r"faces must have shape \(N, 3\), got \(\)"),
        ([[0, 1, 2], "abc"], ARGUMENT, "faces"),
        ([[0, 1, 1]], MESH, r"face 0: vertex 1 is named twice \(0, 1, 1\)"),
    ],
)
def test_faces(faces: Any, kind: type, message: str) -> None:
    with pytest.raises(kind, match=message):
        eman.Mesh(V, faces)


def with_coordinate(value: float, dtype: Any = np.float64) -> np.ndarray:
    points = V.astype(dtype)
    points[3, 2] = value
    return points


@pytest.mark.parametrize(
    ("vertices", "kind", "message"),
    [
        (with_coordinate(np.nan), MESH, "vertex 3: coordinate z is NaN"),
        (with_coordinate(np.inf), MESH, r"vertex 3: coordinate z is \+Inf"),
        (with_coordinate(-np.inf, np.float32), MESH, "vertex 3: coordinate z is -Inf"),
        (with_coordinate(np.nan, np.float32), MESH, "vertex 3: coordinate z is NaN"),
        (with_coordinate(1e301), MESH, "vertex 3: coordinate z is 1e"),
        (V[:, :2], ARGUMENT, r"vertices must have shape \(N, 3\), got \(4, 2\)"),
        (V.ravel(), ARGUMENT, r"vertices must have shape \(N, 3\), got \(12,\)"),
        (V[None], ARGUMENT, r"vertices must have shape \(N, 3\), got \(1, 4, 3\)"),
        (V.astype(complex), ARGUMENT, "vertices must be real numbers, got complex128"),
        (V.astype(str), ARGUMENT, "vertices must be real numbers, got <U"),
        (V.astype(object), ARGUMENT, "vertices must be real numbers, got object"),
        ([[0, 0, 0], [1, 2]], ARGUMENT, "vertices cannot be read as an array"),
        (None, ARGUMENT, "vertices must be real numbers, got object"),
        (V[:2], MESH, r"face 0: vertex index 2 is out of range \[0, 2\)"),
        (np.zeros((0, 3)), MESH, r"is out of range \[0, 0\)"),
    ],
)
def test_vertices(vertices: Any, kind: type, message: str) -> None:
    with pytest.raises(kind, match=message):
        eman.Mesh(vertices, F)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gauge": "fancy"}, "gauge must be one of 'first_neighbor', 'random', 'custom', got 'fancy'"),
        ({"gauge": None}, "gauge must be one of"),
        ({"gauge": "custom"}, "gauge='custom' needs frames"),
        ({"frames": np.zeros((4, 3, 3))}, "frames are given, but gauge is 'first_neighbor'"),
        ({"gauge": "custom", "frames": np.zeros((4, 9))}, r"frames must have shape \(V, 3, 3\), got \(4, 9\)"),
        ({"gauge": "custom", "frames": np.zeros((3, 3, 3))}, "frames has 3 rows, 4 are needed"),
        ({"gauge": "custom", "frames": np.zeros((4, 3, 3), complex)}, "frames must be real numbers"),
        ({"normals": "up"}, "normals must be one of 'area', 'angle'"),
        ({"degenerate": "ignore"}, "degenerate must be one of 'error', 'drop'"),
        ({"seed": -1}, "seed must be between 0 and"),
        ({"seed": 2**64}, "seed must be between 0 and"),
    ],
)
def test_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ARGUMENT, match=message):
        eman.Mesh(V, F, **options)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (([],), ARGUMENT, "powers must be 1 to 64 numbers, got 0"),
        (([np.nan],), ARGUMENT, "powers"),
        (([np.inf],), ARGUMENT, "powers"),
        ((["a"],), ARGUMENT, "powers must be real numbers"),
        (((10**400,),), ARGUMENT, "powers must be real numbers"),
        (([[0.5, 0.7]],), ARGUMENT, r"powers must have shape \(N,\)"),
        ((np.linspace(0, 1, 65),), ARGUMENT, "powers must be 1 to 64 numbers, got 65"),
        (((0.5,), "sideways"), ARGUMENT, "space must be one of 'tangent', 'ambient'"),
    ],
)
def test_powers(arguments: tuple[Any, ...], kind: type, message: str) -> None:
    with pytest.raises(kind, match=message):
        eman.Mesh(V, F).reltan(*arguments)


def test_overflowing_feature_names_the_vertex() -> None:
    needle = eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1e-120, 0]], [[0, 1, 2]])
    with pytest.raises(MESH, match=r"vertex 0: a RelTan feature of powers \[4\] overflows"):
        needle.reltan([4.0])


def test_degenerate_faces_may_be_dropped() -> None:
    faces = np.concatenate([[[1, 1, 2]], F, [[3, 0, 3]]])
    with pytest.raises(MESH, match=r"face 0: vertex 1 is named twice \(1, 1, 2\)"):
        eman.Mesh(V, faces)
    mesh = eman.Mesh(V, faces, degenerate="drop")
    assert mesh.face_count == 4
    assert np.array_equal(mesh.faces, F)
    assert mesh.report()["dropped_faces"].tolist() == [0, 5]
    assert np.array_equal(mesh.reltan(), eman.Mesh(V, F).reltan())


def test_dropping_does_not_excuse_other_faults() -> None:
    with pytest.raises(MESH, match="face 1: vertex index 9 is out of range"):
        eman.Mesh(V, [[0, 0, 1], [0, 1, 9]], degenerate="drop")


def test_inputs_are_not_changed() -> None:
    points, faces = V.copy(), np.concatenate([F, [[1, 1, 2]]])
    kept = points.copy(), faces.copy()
    mesh = eman.Mesh(points, faces, degenerate="drop")
    mesh.update(points)
    mesh.reltan()
    assert np.array_equal(points, kept[0])
    assert np.array_equal(faces, kept[1])


def test_library_works_after_each_error() -> None:
    before = eman.Mesh(V, F).reltan()
    for _ in range(50):
        with pytest.raises(MESH):
            eman.Mesh(with_coordinate(np.nan), F)
    assert np.array_equal(eman.Mesh(V, F).reltan(), before)
