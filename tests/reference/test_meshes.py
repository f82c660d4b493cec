"""meshes.py: the planted defects are exactly those that the plain doctor finds."""

import numpy as np
import pytest

from . import doctor, meshes

EVERY_MESH = {**meshes.SOUND, **meshes.DEFECTIVE}


@pytest.mark.parametrize("name", EVERY_MESH)
def test_the_doctor_finds_exactly_what_was_planted(name):
    mesh = EVERY_MESH[name]()
    assert mesh.positions.dtype == np.float64
    assert mesh.faces.dtype == np.int32
    assert doctor.report(mesh.positions, mesh.faces) == mesh.defects


def test_sound_meshes_have_at_most_a_boundary():
    for make in meshes.SOUND.values():
        assert set(make().defects) <= {"boundary_edges"}
    for make in meshes.DEFECTIVE.values():
        assert set(make().defects) - {"boundary_edges"}


@pytest.mark.parametrize(
    ("name", "components", "characteristic"),
    [
        ("tetrahedron", 1, 2),
        ("icosphere", 1, 2),
        ("torus", 1, 0),
        ("open_grid", 1, 1),
        ("planar_delaunay", 1, 1),
        ("strip", 1, 1),
        ("fan", 1, 1),
        ("moebius", 1, 0),
        ("two_components", 2, 4),
        ("bow_tie", 1, 3),
    ],
)
def test_topology(name, components, characteristic):
    mesh = EVERY_MESH[name]()
    edges = {frozenset((face[i], face[i - 1])) for face in mesh.faces.tolist() for i in range(3)}
    assert doctor.component_count(mesh.faces) == components
    assert len(mesh.positions) - len(edges) + len(mesh.faces) == characteristic


@pytest.mark.parametrize(
    "name", ["tetrahedron", "icosphere", "jittered_icosphere", "torus", "two_components", "bow_tie"]
)
def test_closed_meshes_face_outward(name):
    mesh = EVERY_MESH[name]()
    corners = mesh.positions[mesh.faces]
    assert np.linalg.det(corners).sum() > 0


@pytest.mark.parametrize("name", ["open_grid", "planar_delaunay", "strip", "fan", "needles", "triangle"])
def test_flat_meshes_face_up(name):
    mesh = EVERY_MESH[name]()
    a, b, c = mesh.positions[mesh.faces].transpose(1, 0, 2)
    assert np.cross(b - a, c - a)[:, 2].min() > 0


def test_the_book_for_other_numbers_of_pages():
    for pages in (2, 5):
        mesh = meshes.book(pages)
        assert doctor.report(mesh.positions, mesh.faces) == mesh.defects


def test_generators_are_reproducible_and_random():
    for make in (meshes.jittered_icosphere, meshes.open_grid, meshes.planar_delaunay):
        np.testing.assert_array_equal(make(seed=3).positions, make(seed=3).positions)
        assert np.any(make(seed=3).positions != make(seed=4).positions)
