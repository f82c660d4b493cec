"""geometry.py against the authors' code."""

import numpy as np
import pytest

from . import geometry, golden

CLOSED = ["balla", "featuretype", "fuze", "icosphere3", "quadknot", "round", "spot", "spotcontrol", "spot6890"]
MESHES = [*CLOSED, "gridopen_a"]


def angle_difference(a, b):
    """Largest difference modulo 2 pi."""
    return np.abs((np.asarray(a) - b + np.pi) % (2 * np.pi) - np.pi).max()


@pytest.mark.parametrize("name", MESHES)
def test_normals_and_frames(name):
    arrays = golden.load(f"mesh_{name}")
    normals = geometry.vertex_normals(arrays["V"], arrays["F"], "angle")
    np.testing.assert_allclose(normals, arrays["normal"], rtol=0, atol=1e-12)
    frames = geometry.frames(arrays["V"], normals, golden.mesh(name).rings)
    np.testing.assert_allclose(frames, arrays["frame"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", CLOSED)
def test_neighbors_are_those_of_the_directed_edges(name):
    arrays = golden.load(f"mesh_{name}")
    rings = geometry.neighbor_rings(arrays["V"], arrays["F"])
    assert rings == [sorted(ring) for ring in golden.mesh(name).rings]
    np.testing.assert_array_equal([len(ring) for ring in rings], arrays["degree"])


@pytest.mark.parametrize("name", MESHES)
def test_log_map_and_transport(name):
    arrays = golden.load(f"mesh_{name}")
    edges = golden.mesh(name).edge_geometry
    np.testing.assert_allclose(edges.length, arrays["edge_coords"][:, 0], rtol=1e-15, atol=0)
    assert edges.directed.all()
    assert angle_difference(edges.theta, arrays["edge_coords"][:, 1]) < 1e-12
    assert angle_difference(edges.transport, arrays["connection"]) < 1e-12


def reltan_size(edges, power):
    """What the terms of v_p(r) add up to without their directions, (V,): the scale of its rounding errors.

    At powers such as -2 the terms can be a million times larger than their sum.
    """
    degree = np.bincount(edges.center)
    direction = np.bincount(edges.center, edges.length ** (1 - power))
    return direction * np.bincount(edges.center, edges.length ** (power - 1)) / degree**1.5


@pytest.mark.parametrize("name", MESHES)
def test_input_features(name):
    arrays = golden.load(f"mesh_{name}")
    mesh = golden.mesh(name)
    reltan = geometry.reltan(arrays["V"], arrays["normal"], mesh.rings, arrays["powers"])
    tangent = geometry.tangent_coordinates(reltan, arrays["frame"])
    for k, power in enumerate(arrays["powers"]):
        size = reltan_size(mesh.edge_geometry, power)
        assert (np.linalg.norm(reltan[:, k] - arrays["reltan3d"][k], axis=1) / size).max() < 1e-12, power
        assert (np.linalg.norm(tangent[:, k] - arrays["reltan_tan"][k], axis=1) / size).max() < 1e-12, power
        whole = np.linalg.norm(arrays["reltan3d"][k])
        assert np.linalg.norm(reltan[:, k] - arrays["reltan3d"][k]) < 1e-10 * whole, power
    get = geometry.get_features(arrays["V"], arrays["frame"], mesh.rings)[:, 0]
    np.testing.assert_allclose(get[:, [1, 2, 0]], arrays["get"], rtol=1e-10, atol=1e-12)
