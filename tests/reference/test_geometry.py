"""geometry.py: what its results must satisfy on sound and on defective meshes; vectorised.py against it."""

import itertools

import numpy as np
import pytest

from . import geometry, kernels, meshes, vectorised

EVERY_MESH = {**meshes.SOUND, **meshes.DEFECTIVE}
SURFACES = ["jittered_icosphere", "torus", "open_grid", "planar_delaunay", "fan", "moebius"]


def parts(mesh):
    """Normals, rings, frames and edge geometry."""
    rings = geometry.neighbor_rings(mesh.positions, mesh.faces)
    normals = geometry.vertex_normals(mesh.positions, mesh.faces)
    frames = geometry.frames(mesh.positions, normals, rings)
    edges = geometry.edge_geometry(mesh.positions, frames, geometry.directed_edges(rings))
    return normals, rings, frames, edges


def turn(seed=0):
    """A random rotation of space."""
    q, r = np.linalg.qr(meshes.random(seed).normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q * np.sign(np.linalg.det(q))


def same_angle(a, b, tolerance=1e-11):
    np.testing.assert_allclose(np.exp(1j * np.asarray(a)), np.exp(1j * np.asarray(b)), rtol=0, atol=tolerance)


# ---- Normals and frames --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighting", ["area", "angle"])
def test_normals_of_a_sphere_point_outward(weighting):
    mesh = meshes.icosphere(2)
    normals = geometry.vertex_normals(mesh.positions, mesh.faces, weighting)
    assert np.sum(normals * mesh.positions, axis=1).min() > 0.999


def test_normals_weigh_faces_by_area_or_by_angle():
    # Around vertex 0: a face in the xy plane (area 2, angle pi / 2) and one in the yz plane (area 1/2, angle pi / 4).
    positions = np.array([(0, 0, 0), (2, 0, 0), (0, 2, 0), (0, 0.5, 0.5), (0, 1, 0)], dtype=float)
    faces = np.array([(0, 1, 2), (0, 4, 3)])
    faces_area = np.array([0.25, 0, 2])
    by_area = geometry.vertex_normals(positions, faces, "area")[0]
    np.testing.assert_allclose(by_area, faces_area / np.linalg.norm(faces_area), atol=1e-15)
    by_angle = geometry.vertex_normals(positions, faces, "angle")[0]
    np.testing.assert_allclose(by_angle, np.array([1, 0, 2]) / np.sqrt(5), atol=1e-15)


@pytest.mark.parametrize("name", EVERY_MESH)
def test_frames_are_positively_oriented_and_orthonormal(name):
    frames = parts(EVERY_MESH[name]())[2]
    np.testing.assert_allclose(frames @ frames.transpose(0, 2, 1), np.broadcast_to(np.eye(3), frames.shape), atol=1e-14)
    np.testing.assert_allclose(np.linalg.det(frames), 1, atol=1e-14)


def test_the_gauge_points_to_the_first_neighbor():
    _, _, _, edges = parts(meshes.jittered_icosphere())
    _, first = np.unique(edges.center, return_index=True)
    np.testing.assert_allclose(edges.theta[first], 0, atol=1e-15)


def test_the_gauge_skips_a_neighbor_along_the_normal():
    positions = np.array([(0, 0, 0), (0, 0, 1), (0, 3, 0.5)], dtype=float)
    normals = np.array([(0, 0, 1.0)] * 3)
    frames = geometry.frames(positions, normals, [[1, 2], [], []])
    np.testing.assert_allclose(frames[0], [(0, 1, 0), (-1, 0, 0), (0, 0, 1)], atol=1e-15)
    edges = geometry.edge_geometry(positions, frames, np.array([(0, 1), (0, 2)]))
    assert edges.directed.tolist() == [False, True]


def test_vertices_without_a_normal_or_a_neighbor_have_a_frame_all_the_same():
    mesh = meshes.isolated_vertices()
    normals, rings, _, _ = parts(mesh)
    for p in mesh.defects["isolated_vertices"]:
        assert rings[p] == []
        np.testing.assert_array_equal(normals[p], (0, 0, 1))
    across = parts(meshes.folded_sheet())[0]
    np.testing.assert_allclose(across, [(0, 0, 1), (0, 0, -1), (0, 0, 1)], atol=1e-15)
    line = geometry.substitute_normal(np.array([(0, 0, 0), (1, 1, 0), (2, 2, 0.0)]), 0, [1, 2])
    np.testing.assert_allclose(line, (0, 0, 1), atol=1e-15)


# ---- Neighbors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY_MESH)
def test_neighbors_are_symmetric_sets(name):
    rings = parts(EVERY_MESH[name]())[1]
    for p, ring in enumerate(rings):
        assert ring == sorted(set(ring))
        assert p not in ring
        assert all(p in rings[q] for q in ring)


def test_a_boundary_edge_makes_neighbors_of_both_its_ends():
    assert parts(meshes.triangle())[1] == [[1, 2], [0, 2], [0, 1]]


def test_an_edge_without_length_makes_no_neighbors():
    mesh = meshes.zero_length_edge()
    ((a, b),) = mesh.defects["zero_length_edges"]
    rings = parts(mesh)[1]
    assert b not in rings[a]
    assert rings[a]
    assert rings[b]


def test_a_fan_of_high_degree():
    rings = parts(meshes.fan(500))[1]
    assert rings[0] == list(range(1, 501))
    assert all(len(ring) == 3 for ring in rings[1:])


# ---- Transport -----------------------------------------------------------------------------------------------------


def test_the_minimal_rotation_takes_one_normal_to_the_other_and_keeps_their_axis():
    rng = meshes.random(0)
    for _ in range(20):
        a, b = (v / np.linalg.norm(v) for v in rng.normal(size=(2, 3)))
        rotation = geometry.minimal_rotation(a, b, b - a)
        np.testing.assert_allclose(rotation @ a, b, atol=1e-14)
        np.testing.assert_allclose(rotation @ np.cross(a, b), np.cross(a, b), atol=1e-14)
        np.testing.assert_allclose(rotation.T @ rotation, np.eye(3), atol=1e-14)
    np.testing.assert_array_equal(geometry.minimal_rotation(a, a, b), np.eye(3))
    fold = geometry.minimal_rotation(a, -a, b)
    np.testing.assert_allclose(fold @ a, -a, atol=1e-15)
    np.testing.assert_allclose(fold @ fold, np.eye(3), atol=1e-15)
    assert np.linalg.det(fold) > 0
    np.testing.assert_array_equal(geometry.minimal_rotation(a, -a, a), np.zeros((3, 3)))


def test_transport_in_the_plane_carries_a_vector_unchanged():
    mesh = meshes.planar_delaunay()
    _, _, frames, edges = parts(mesh)
    field = np.broadcast_to((0.6, -0.8, 0.0), (len(mesh.positions), 1, 3))
    at_q = geometry.tangent_coordinates(field, frames)[edges.neighbor]
    features = np.concatenate([np.zeros_like(at_q[:, :, :1]), at_q], axis=2)
    at_p = kernels.rotate(features, edges.transport)[:, 0, 1:]
    np.testing.assert_allclose(at_p, geometry.tangent_coordinates(field, frames)[edges.center, 0], atol=1e-14)


def test_transport_there_and_back_is_nothing():
    *_, edges = parts(meshes.jittered_icosphere())
    forward = {(p, q): g for p, q, g in zip(edges.center, edges.neighbor, edges.transport, strict=True)}
    same_angle([forward[q, p] for p, q in forward], [-g for g in forward.values()])


# ---- Symmetries ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SURFACES)
def test_a_gauge_change_turns_angles_and_coordinates(name):
    mesh = EVERY_MESH[name]()
    _, rings, frames, edges = parts(mesh)
    g = meshes.random(1).uniform(-np.pi, np.pi, len(mesh.positions))
    turned = geometry.rotate_frames(frames, g)
    changed = geometry.edge_geometry(mesh.positions, turned, np.stack([edges.center, edges.neighbor], axis=1))
    np.testing.assert_array_equal(changed.directed, edges.directed)
    same_angle(changed.theta[edges.directed], (edges.theta - g[edges.center])[edges.directed])
    same_angle(changed.transport, edges.transport + g[edges.neighbor] - g[edges.center])
    before = geometry.reltan_features(mesh.positions, frames, rings)
    after = geometry.reltan_features(mesh.positions, turned, rings)
    np.testing.assert_allclose(after, kernels.rotate(before, -g), rtol=0, atol=1e-13)
    before = geometry.get_features(mesh.positions, frames, rings)
    after = geometry.get_features(mesh.positions, turned, rings)
    np.testing.assert_allclose(after, kernels.rotate(before, -g), rtol=0, atol=1e-13)


@pytest.mark.parametrize("power", [-2, 0.5, 0.7, 1, 3])
@pytest.mark.parametrize("name", SURFACES)
def test_reltan_turns_with_space_and_ignores_translation_and_scale(name, power):
    """The paper's Lemma 4.1."""
    mesh = EVERY_MESH[name]()

    def reltan(positions):
        normals = geometry.vertex_normals(positions, mesh.faces)
        return geometry.reltan(positions, normals, geometry.neighbor_rings(positions, mesh.faces), [power])

    v, rotation = reltan(mesh.positions), turn()
    tolerance = 1e-12 * np.abs(v).max()
    np.testing.assert_allclose(reltan(mesh.positions @ rotation.T), v @ rotation.T, rtol=0, atol=tolerance)
    np.testing.assert_allclose(reltan(mesh.positions * 1e-3), v, rtol=0, atol=tolerance)
    np.testing.assert_allclose(reltan(mesh.positions + (3, -2, 1)), v, rtol=0, atol=10 * tolerance)


@pytest.mark.parametrize("name", SURFACES)
def test_angles_ignore_similarities(name):
    mesh = EVERY_MESH[name]()
    *_, edges = parts(mesh)
    *_, moved = parts(mesh._replace(positions=2.5 * mesh.positions @ turn().T + (3, -2, 1)))
    np.testing.assert_array_equal(moved.directed, edges.directed)
    same_angle(moved.theta, edges.theta)
    same_angle(moved.transport, edges.transport)
    np.testing.assert_allclose(moved.length, 2.5 * edges.length, rtol=1e-12)


def test_reltan_of_a_small_neighborhood_by_hand():
    positions = np.array([(0, 0, 0), (1, 0, 0), (0, 4, 3)], dtype=float)
    normals = np.array([(0, 0, 1.0)] * 3)
    v = geometry.reltan(positions, normals, [[1, 2], [], []], [2])
    # r = 2: the shares are 1/6 and 5/6, the projected directions (1, 0, 0) and (0, 4/5, 0).
    np.testing.assert_allclose(v[0, 0], np.array([6, 0.8 * 6 / 5, 0]) / 2**1.5, rtol=1e-15)
    assert not v[1:].any()
    other = geometry.reltan(positions, normals, [[1, 2], [], []], [2], degree_power=1, constant=5)
    np.testing.assert_allclose(other, v * 2**0.5 / 5, rtol=1e-15)


def test_isolated_vertices_have_no_features():
    mesh = meshes.isolated_vertices()
    _, rings, frames, _ = parts(mesh)
    alone = mesh.defects["isolated_vertices"]
    for features in (
        geometry.reltan_features(mesh.positions, frames, rings),
        geometry.get_features(mesh.positions, frames, rings),
    ):
        assert not features[alone].any()
    assert np.delete(features, alone, axis=0).any(axis=(1, 2)).all()


def test_get_features_of_the_position():
    mesh = meshes.torus()
    _, rings, frames, _ = parts(mesh)
    features = geometry.get_features(mesh.positions, frames, rings)[:, 0]
    rebuilt = np.einsum("va,vax->vx", features[:, [1, 2, 0]], frames)
    np.testing.assert_allclose(rebuilt, mesh.positions, atol=1e-14)


# ---- The vectorised yardstick --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY_MESH)
def test_vectorised_numpy_computes_the_same(name):
    mesh = EVERY_MESH[name]()
    normals, rings, frames, edges = parts(mesh)
    offsets, indices = vectorised.neighbors(mesh.positions, mesh.faces)
    assert [indices[a:b].tolist() for a, b in itertools.pairwise(offsets)] == rings
    np.testing.assert_allclose(
        vectorised.vertex_normals(mesh.positions, mesh.faces, offsets, indices), normals, rtol=0, atol=1e-14
    )
    other = vectorised.frames(mesh.positions, normals, offsets, indices)
    np.testing.assert_allclose(other, frames, rtol=0, atol=1e-14)
    theta, transport = vectorised.edge_angles(mesh.positions, frames, offsets, indices)
    same_angle(theta, edges.theta, 1e-14)
    same_angle(transport, edges.transport, 1e-14)
    tangent = geometry.reltan_features(mesh.positions, frames, rings)[:, :, 1:]
    value = vectorised.reltan(mesh.positions, frames, offsets, indices)
    np.testing.assert_allclose(value, tangent, rtol=0, atol=1e-13 * max(1, np.abs(tangent).max()))
