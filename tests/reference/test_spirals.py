"""spirals.py: counter-clockwise, ring by ring, from the chosen start; and the network that walks them."""

import numpy as np
import pytest

from . import geometry, meshes, networks, spirals

EVERY_MESH = {**meshes.SOUND, **meshes.DEFECTIVE}


def distances(p, rings):
    """Number of edges from p to every vertex, by breadth-first search; -1 where there is no way."""
    result = np.full(len(rings), -1)
    result[p], level = 0, [p]
    while level:
        following = {q for v in level for q in rings[v] if result[q] < 0}
        for q in following:
            result[q] = result[level[0]] + 1
        level = sorted(following)
    return result


@pytest.mark.parametrize("name", EVERY_MESH)
def test_the_ordered_rings_hold_every_vertex_of_a_common_face_once(name):
    mesh = EVERY_MESH[name]()
    rings = spirals.counter_clockwise(mesh.faces, len(mesh.positions))
    for p, ring in enumerate(rings):
        assert sorted(ring) == sorted({v for face in mesh.faces.tolist() if p in face for v in face} - {p})


@pytest.mark.parametrize("name", ["jittered_icosphere", "torus", "open_grid", "planar_delaunay"])
def test_rings_turn_counter_clockwise(name):
    """Around its normal the directions of a vertex's ring go once around, or less at a boundary."""
    mesh = EVERY_MESH[name]()
    normals = geometry.vertex_normals(mesh.positions, mesh.faces)
    rings = spirals.counter_clockwise(mesh.faces, len(mesh.positions))
    frames = geometry.frames(mesh.positions, normals, rings)
    boundary = {v for edge in mesh.defects.get("boundary_edges", []) for v in edge}
    for p, ring in enumerate(rings):
        d = (mesh.positions[ring] - mesh.positions[p]) @ frames[p, :2].T
        steps = np.diff(np.arctan2(d[:, 1], d[:, 0]), append=np.arctan2(d[0, 1], d[0, 0])) % (2 * np.pi)
        assert steps.sum() == pytest.approx(2 * np.pi)
        assert p in boundary or steps.max() < np.pi


@pytest.mark.parametrize("start", ["index", "distance"])
@pytest.mark.parametrize("name", ["jittered_icosphere", "torus", "open_grid", "planar_delaunay"])
def test_spirals_go_ring_by_ring_from_the_start_neighbor(name, start):
    mesh = EVERY_MESH[name]()
    rings = geometry.neighbor_rings(mesh.positions, mesh.faces)
    for p, spiral in enumerate(spirals.spirals(mesh.positions, mesh.faces, 24, start)):
        assert spiral[0] == p
        assert len(set(spiral)) == 24
        steps = distances(p, rings)
        assert np.all(np.diff(steps[spiral]) >= 0)
        whole = steps[spiral[-1]] - 1
        assert np.count_nonzero(steps[spiral] == whole) == np.count_nonzero(steps == whole)
        if start == "index":
            assert spiral[1] == rings[p][0]
        else:
            lengths = np.linalg.norm(mesh.positions[rings[p]] - mesh.positions[p], axis=1)
            assert np.linalg.norm(mesh.positions[spiral[1]] - mesh.positions[p]) <= lengths.min() * (1 + 1e-12)


def test_the_second_ring_turns_with_the_first():
    """On the grid of this figure the spiral of the middle can be read off, counter-clockwise from vertex 6.

    4  9 14 19 24      every square is cut from its lower left to its upper right
    3  8 13 18 23
    2  7 12 17 22
    1  6 11 16 21
    0  5 10 15 20
    """
    points = [(i, j, 0) for i in range(5) for j in range(5)]
    squares = [5 * i + j for i in range(4) for j in range(4)]
    faces = [face for a in squares for face in ((a, a + 5, a + 6), (a, a + 6, a + 1))]
    spiral = spirals.spirals(np.array(points, dtype=float), np.array(faces), 19)[12]
    assert spiral[:7].tolist() == [12, 6, 11, 17, 18, 13, 7]
    assert spiral[7:].tolist() == [1, 0, 5, 10, 16, 22, 23, 24, 19, 14, 8, 2]


def test_the_nearest_start_follows_the_geometry_and_not_the_numbering():
    mesh = meshes.jittered_icosphere()
    order = meshes.random(2).permutation(len(mesh.positions))  # new vertex i is old vertex order[i]
    faces = np.roll(np.argsort(order)[mesh.faces], 1, axis=1)[::-1]
    permuted = spirals.spirals(mesh.positions[order], faces, 12, "distance")
    np.testing.assert_array_equal(order[permuted], spirals.spirals(mesh.positions, mesh.faces, 12, "distance")[order])
    by_index = spirals.spirals(mesh.positions[order], faces, 12, "index")
    assert np.any(order[by_index] != spirals.spirals(mesh.positions, mesh.faces, 12, "index")[order])


def test_a_ring_is_continued_after_the_neighbor_that_came_first():
    """Vertex 1 has new neighbors on both sides of its ring: 3 follows 0, and 4 follows 2."""
    rings = [[1, 2], [0, 3, 2, 4], [0, 1], [1], [1]]
    assert spirals.spiral(0, rings, np.zeros((5, 3)), 5) == [0, 1, 2, 3, 4]


def test_short_spirals_are_filled_with_the_nearest_vertices():
    mesh = meshes.two_components()
    for p, spiral in enumerate(spirals.spirals(mesh.positions, mesh.faces, 6)):
        component = range(4) if p < 4 else range(4, 8)
        assert sorted(spiral[:4]) == list(component)
        others = [q for q in range(8) if q not in component]
        by_distance = sorted(others, key=lambda q: np.linalg.norm(mesh.positions[q] - mesh.positions[p]))
        assert spiral[4:].tolist() == by_distance[:2]


def test_a_mesh_smaller_than_the_spiral_repeats_the_center():
    mesh = meshes.triangle()
    np.testing.assert_array_equal(
        spirals.spirals(mesh.positions, mesh.faces, 5), [[0, 1, 2, 0, 0], [1, 0, 2, 1, 1], [2, 0, 1, 2, 2]]
    )
    assert spirals.spirals(np.zeros((0, 3)), np.zeros((0, 3), dtype=int), 5).shape == (0, 5)


@pytest.mark.parametrize("name", meshes.DEFECTIVE)
def test_spirals_of_defective_meshes_are_complete(name):
    mesh = meshes.DEFECTIVE[name]()
    length = min(len(mesh.positions), 10)
    for p, spiral in enumerate(spirals.spirals(mesh.positions, mesh.faces, length)):
        assert spiral[0] == p
        assert len(set(spiral)) == length


def test_spiralnet_by_hand():
    mesh = meshes.tetrahedron()
    description = networks.PAPER | {"kind": "spiral", "spiral_length": 3, "classes": 4, "width": 4, "hidden": 6}
    parameters = networks.random_parameters(description)
    assert parameters["spirals.2.weight"].shape == (32, 3 * 16)

    def dense(name, x):
        return parameters[f"{name}.weight"] @ x + parameters[f"{name}.bias"]

    def elu(x):
        return np.array([v if v > 0 else np.exp(v) - 1 for v in x])

    paths = spirals.spirals(mesh.positions, mesh.faces, 3)
    x = [elu(dense("input", v)) for v in mesh.positions]
    for block in range(3):
        x = [elu(dense(f"spirals.{block}", np.concatenate([x[q] for q in path]))) for path in paths]
    odds = [np.exp(dense("dense2", elu(dense("dense1", v)))) for v in x]
    want = [np.log(o / o.sum()) for o in odds]
    logp = networks.run(description, parameters, mesh.positions, mesh.faces)
    np.testing.assert_allclose(logp, want, rtol=1e-12)
