"""The same labelled surface as another mesh."""

from __future__ import annotations

import numpy as np
import pytest

import eman
from eman import variations
from eman.variations import Labelled, labelled

from .conftest import TETRAHEDRON


@pytest.fixture(scope="module")
def body(horse: eman.creatures.Creature) -> Labelled:
    return labelled(horse.vertices, horse.faces, horse.labels)


def report(mesh: Labelled) -> eman.Report:
    return eman.Mesh(mesh.vertices, mesh.faces).report()


def shares(mesh: Labelled) -> np.ndarray:
    """The share of the area that each label has; a face has those of its corners in equal parts."""
    corners = mesh.vertices[mesh.faces]
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    total = np.bincount(mesh.labels[mesh.faces].ravel(), np.repeat(area, 3), minlength=16)
    return total / total.sum()


def test_types() -> None:
    mesh = labelled(TETRAHEDRON[0].tolist(), TETRAHEDRON[1].astype(np.int64), [0, 1, 2, 3])
    assert (mesh.vertices.dtype, mesh.faces.dtype, mesh.labels.dtype) == (np.float64, np.int32, np.int32)


def test_subdivision_keeps_area_shape_and_labels(body: Labelled) -> None:
    finer = variations.subdivided(body, 3000)
    assert len(finer.vertices) == 800 + 1596 * 3 // 2
    before, after = report(body), report(finer)
    assert after.area == pytest.approx(before.area, rel=1e-12)
    assert (after.closed, after.manifold, after.oriented) == (True, True, True)
    assert after.euler_characteristic == before.euler_characteristic
    assert np.array_equal(finer.vertices[:800], body.vertices)
    assert np.array_equal(finer.labels[:800], body.labels)
    assert np.abs(shares(finer) - shares(body)).max() < 0.02


def test_subdivision_goes_on_until_there_are_enough() -> None:
    mesh = labelled(*TETRAHEDRON, [0, 1, 2, 3])
    assert len(variations.subdivided(mesh, 4).vertices) == 4
    finest = variations.subdivided(mesh, 100)
    assert len(finest.vertices) == 130  # 4, 10, 34, 130
    x, y, z = finest.vertices.T
    weights = np.stack([1 - x - y - z, x, y, z], axis=1)  # of the four vertices
    assert np.allclose(weights[np.arange(130), finest.labels], weights.max(axis=1))
    assert (np.bincount(finest.labels) > 20).all()


def test_decimation_keeps_the_shape_and_the_labels(body: Labelled) -> None:
    pytest.importorskip("pyvista")
    coarse = variations.decimated(body, 400)
    assert 380 <= len(coarse.vertices) <= 420
    before, after = report(body), report(coarse)
    assert after.area == pytest.approx(before.area, rel=0.05)
    distance = np.linalg.norm(
        coarse.vertices - body.vertices[variations.nearest(coarse.vertices, body.vertices)], axis=1
    )
    assert distance.max() < 2 * before.mean_length
    assert np.abs(shares(coarse) - shares(body)).max() < 0.04


@pytest.mark.parametrize("vertices", [3, 801])
def test_decimation_refuses(vertices: int, body: Labelled) -> None:
    pytest.importorskip("pyvista")
    with pytest.raises(eman.InvalidArgumentError, match="from 4 to the 800"):
        variations.decimated(body, vertices)


def test_holes(body: Labelled) -> None:
    open_ = variations.holed(body, 0.05, seed=1)
    missing = len(body.faces) - len(open_.faces)
    assert 0.03 * len(body.faces) < missing < 0.07 * len(body.faces)
    found = report(open_)
    assert not found.closed
    assert found.counts["isolated_vertices"] == 0
    where = variations.nearest(open_.vertices, body.vertices)
    assert np.array_equal(body.vertices[where], open_.vertices)
    assert np.array_equal(body.labels[where], open_.labels)
    assert np.array_equal(variations.holed(body, 0.05, seed=1).faces, open_.faces)
    assert len(variations.holed(body, 0.05, seed=2).faces) != len(open_.faces)


def test_patches_are_few_and_whole(body: Labelled) -> None:
    torn = variations.patched(body, 0.1, 3, seed=1)
    assert 0.03 * len(body.faces) < len(body.faces) - len(torn.faces) <= 0.1 * len(body.faces) + 3
    assert report(torn).counts["boundary_edges"] < report(variations.holed(body, 0.1, seed=1)).counts["boundary_edges"]
    assert len(variations.patched(body, 0.0, 3, seed=1).faces) == len(body.faces)


def test_vertices_that_lose_all_their_faces_go() -> None:
    mesh = labelled([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]], [0, 1, 2])
    assert [len(part) for part in variations.holed(mesh, 1.0, seed=0)] == [0, 0, 0]


def test_noise_is_in_units_of_the_mean_edge(body: Labelled) -> None:
    moved = variations.noisy(body, 0.2, seed=3)
    change = moved.vertices - body.vertices
    assert change.std() == pytest.approx(0.2 * report(body).mean_length, rel=0.1)
    assert abs(change.mean()) < 0.1 * change.std()
    assert np.array_equal(moved.faces, body.faces)
    scaled = variations.noisy(body._replace(vertices=10 * body.vertices), 0.2, seed=3)
    assert np.allclose(scaled.vertices, 10 * moved.vertices)


def test_nearest() -> None:
    rng = np.random.default_rng(0)
    points, among = rng.normal(size=(300, 3)), rng.normal(size=(200, 3))
    distance = np.linalg.norm(points[:, None] - among[None], axis=2)
    assert np.array_equal(variations.nearest(points, among), distance.argmin(axis=1))
    assert len(variations.nearest(np.zeros((0, 3)), among)) == 0
