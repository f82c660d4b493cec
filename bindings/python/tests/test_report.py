"""The mesh doctor finds every defect that is planted, and only those."""

from __future__ import annotations

import json

import numpy as np
import pytest

import eman
from eman.creatures import Creature

from .conftest import TETRAHEDRON

V, F = TETRAHEDRON
FINDINGS = (
    "isolated_vertices",
    "coincident_vertices",
    "zero_normal_vertices",
    "non_manifold_vertices",
    "boundary_edges",
    "non_manifold_edges",
    "inconsistent_edges",
    "zero_length_edges",
    "dropped_faces",
    "zero_area_faces",
    "needle_faces",
    "duplicate_faces",
)


def examine(vertices: object, faces: object, **options: str) -> eman.Report:
    return eman.Mesh(vertices, faces, **options).report()


def test_nothing_to_find(horse: Creature) -> None:
    report = examine(horse.vertices, horse.faces)
    assert tuple(report) == FINDINGS
    assert len(report) == len(FINDINGS)
    assert report.clean
    assert report.counts == dict.fromkeys(FINDINGS, 0)
    assert all(indices.dtype == np.int64 for indices in report.values())
    assert (report.vertex_count, report.face_count, report.edge_count) == (800, 1596, 4788)
    assert (report.closed, report.manifold, report.oriented) == (True, True, True)
    assert (report.component_count, report.euler_characteristic) == (1, 2)
    edges = horse.vertices[horse.faces] - horse.vertices[horse.faces[:, [1, 2, 0]]]
    length = np.linalg.norm(edges, axis=2)  # each edge twice
    assert report.mean_length == pytest.approx(length.mean(), rel=1e-12)
    assert (report.min_length, report.max_length) == pytest.approx((length.min(), length.max()), rel=1e-12)
    corners = horse.vertices[horse.faces]
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1).sum() / 2
    assert report.area == pytest.approx(area, rel=1e-12)
    degree = np.bincount(horse.faces.ravel())
    assert (report.min_degree, report.max_degree) == (degree.min(), degree.max())
    assert "nothing to mend" in str(report)
    assert repr(report) == "<Report: 800 vertices, 1596 faces; no findings>"


def found(report: eman.Report) -> dict[str, list]:
    return {name: indices.tolist() for name, indices in report.items() if len(indices)}


def test_isolated_vertices() -> None:
    assert found(examine(np.concatenate([V, [[5, 5, 5], [6, 6, 6]]]), F)) == {"isolated_vertices": [4, 5]}


def test_open_boundary() -> None:
    report = examine(V, F[1:])
    assert found(report) == {"boundary_edges": [[0, 1], [0, 2], [1, 2]]}
    assert not report.closed
    assert report.manifold


def test_inconsistent_orientation() -> None:
    faces = F.copy()
    faces[3] = faces[3, ::-1]
    report = examine(V, faces)
    assert found(report)["inconsistent_edges"] == [[1, 2], [1, 3], [2, 3]]
    assert not report.oriented


def test_duplicate_faces_whatever_their_corners_order() -> None:
    report = examine(V, np.concatenate([F, F[:1, [2, 0, 1]], F[1:2, ::-1]]))
    assert report["duplicate_faces"].tolist() == [4, 5]
    assert set(map(tuple, report["non_manifold_edges"])) >= {(0, 1), (0, 2), (1, 2)}
    assert not report.manifold


def test_three_faces_on_an_edge() -> None:
    report = examine([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1]], [[0, 1, 2], [1, 0, 3], [0, 1, 4]])
    assert report["non_manifold_edges"].tolist() == [[0, 1]]


def test_two_fans_at_a_vertex() -> None:
    vertices = np.concatenate([V, V[1:] + 3])
    faces = np.concatenate([F, np.where(F == 0, 0, F + 3)])
    report = examine(vertices, faces)
    assert found(report) == {"non_manifold_vertices": [0]}
    assert not report.manifold
    assert report.closed


def test_coincident_vertices_and_zero_length_edges() -> None:
    vertices = V.copy()
    vertices[3] = vertices[1]
    report = examine(vertices, F)
    assert report["coincident_vertices"].tolist() == [3]
    assert report["zero_length_edges"].tolist() == [[1, 3]]
    assert sorted(report["zero_area_faces"].tolist()) == [1, 3]


def test_zero_normals() -> None:
    report = examine([[0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 1, 2]])
    assert report["zero_normal_vertices"].tolist() == [0, 1, 2]
    assert report["zero_area_faces"].tolist() == [0]


def test_needles() -> None:
    report = examine([[0, 0, 0], [1, 0, 0], [0.5, 1e-4, 0], [0.5, 0.5, 0]], [[0, 1, 2], [0, 2, 3]])
    assert report["needle_faces"].tolist() == [0]


def test_dropped_faces_shift_the_others_numbers() -> None:
    faces = np.concatenate([[[2, 2, 1]], F, F[:1]])
    report = examine(V, faces, degenerate="drop")
    assert report["dropped_faces"].tolist() == [0]
    assert report["duplicate_faces"].tolist() == [5], "numbers are those of the faces passed in"


def test_one_triangle_and_less() -> None:
    one = examine([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    assert found(one) == {"boundary_edges": [[0, 1], [0, 2], [1, 2]]}
    assert one.area == 0.5
    two = examine([[0, 0, 0], [1, 0, 0]], [])
    assert found(two) == {"isolated_vertices": [0, 1]}
    assert not two.closed
    none = examine([], [])
    assert found(none) == {}
    assert none.vertex_count == 0


def test_text_and_json() -> None:
    faces = np.concatenate([[[1, 1, 1]], F[1:]])
    report = examine(np.concatenate([V, np.arange(30.0).reshape(-1, 3)]), faces, degenerate="drop")
    text = str(report)
    assert "10 isolated vertices: 4, 5, 6, 7, 8, 9, ..." in text
    assert "1 dropped face: 0" in text
    assert "3 boundary edges: 0-1, 0-2, 1-2" in text
    assert "closed: NO" in text
    assert "isolated_vertices=10" in repr(report)
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["vertex_count"] == 14
    assert plain["closed"] is False
    assert plain["findings"]["dropped_faces"] == [0]


def test_is_read_like_a_dictionary() -> None:
    report = examine(V, F)
    assert "boundary_edges" in report
    with pytest.raises(KeyError):
        report["nonsense"]
