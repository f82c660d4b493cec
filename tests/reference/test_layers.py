"""layers.py and networks.py: gauge equivariance, limiting cases, and the claims of the non-linearities."""

import itertools

import numpy as np
import pytest

from . import geometry, kernels, layers, meshes, networks


def scene(name="jittered_icosphere"):
    """A small mesh: positions, faces, rings, frames, edge geometry."""
    mesh = {
        "jittered_icosphere": lambda: meshes.jittered_icosphere(1),
        "open_grid": lambda: meshes.open_grid(4, 5),
        "isolated_vertices": meshes.isolated_vertices,
    }[name]()
    rings = geometry.neighbor_rings(mesh.positions, mesh.faces)
    frames = geometry.frames(mesh.positions, geometry.vertex_normals(mesh.positions, mesh.faces), rings)
    edges = geometry.edge_geometry(mesh.positions, frames, geometry.directed_edges(rings))
    return mesh, rings, frames, edges


def change_gauge(edges, g):
    """The same edges seen in the gauges that are turned by g (V,)."""
    theta = edges.theta - g[edges.center]
    return edges._replace(theta=theta, transport=edges.transport + g[edges.neighbor] - g[edges.center])


def random_features(edges, channels, order, seed=0):
    return meshes.random(seed).normal(size=(edges.vertex_count, channels, 2 * order + 1))


def weights(*shape, seed=1):
    return meshes.random(seed).normal(size=shape) / np.sqrt(shape[-1])


def assert_gauge_equivariant(layer, edges, x, tolerance=1e-12):
    """layer(x, edges) must turn with its input."""
    g = meshes.random(9).uniform(-np.pi, np.pi, edges.vertex_count)
    y = layer(x, edges)
    assert np.ptp(y[:, :, -1]) > 0
    changed = layer(kernels.rotate(x, -g), change_gauge(edges, g))
    np.testing.assert_allclose(changed, kernels.rotate(y, -g), rtol=0, atol=tolerance * np.abs(y).max())


# ---- Convolution and attention -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mesh", ["jittered_icosphere", "open_grid"])
@pytest.mark.parametrize("orders", list(itertools.product(range(5), range(5))))
def test_convolution_is_gauge_equivariant(orders, mesh):
    in_order, out_order = orders
    edges = scene(mesh)[-1]
    edges = edges._replace(directed=np.arange(len(edges.theta)) % 7 > 0)
    rings = 1 + (in_order + out_order) % 4
    weight = weights(kernels.basis_size(*orders), rings, 3, 2)
    self_weight = weights(1 + 2 * min(orders), 3, 2, seed=2)

    def layer(x, edges):
        ring_weights = layers.ring_weights(edges, rings)
        return layers.gem_convolution(x, edges, weight, ring_weights, out_order, self_weight=self_weight)

    assert_gauge_equivariant(layer, edges, random_features(edges, 2, in_order))


ATTENTIONS = {
    "paper": {},
    "authors": {"query_radial": True, "aggregation": "mean", "band_limit": 2, "heads": 2},
    "heads": {"heads": 4},
    "projected heads": {"heads": 2, "projections": True},
    "self-contribution": {"self_contribution": True},
    "all": {"heads": 2, "projections": True, "self_contribution": True, "band_limit": 3, "aggregation": "mean"},
    "radial query and self-contribution": {"query_radial": True, "self_contribution": True},
}


def attention(options, in_order, out_order, channels_in=2, channels_out=4, rings=2):
    """An attention layer with random weights: function of features and edges that returns features and alpha."""
    options = dict(options)
    basis = kernels.basis_size(in_order, out_order)
    own = (1 + 2 * min(in_order, out_order), channels_out, channels_in)
    kernel = (basis, rings, channels_out, channels_in)
    query = weights(*(kernel if options.get("query_radial") else own), seed=3)
    key, value = (weights(*kernel, seed=seed) for seed in (4, 5))
    if options.pop("self_contribution", False):
        options |= {"self_key": weights(*own, seed=6), "self_value": weights(*own, seed=7)}
    if options.get("projections"):
        whole = (1 + 2 * out_order, channels_out, channels_out)
        options["projections"] = [weights(*whole, seed=seed) for seed in (10, 11, 12, 13)]

    def layer(x, edges):
        return layers.eman_attention(
            x, edges, query, key, value, layers.ring_weights(edges, rings), out_order, **options
        )

    return layer


@pytest.mark.parametrize("mesh", ["jittered_icosphere", "open_grid"])
@pytest.mark.parametrize("name", ATTENTIONS)
@pytest.mark.parametrize("orders", [(0, 2), (1, 2), (2, 2), (2, 0), (3, 4)])
def test_attention_is_gauge_equivariant(orders, name, mesh):
    edges = scene(mesh)[-1]
    layer = attention(ATTENTIONS[name], *orders)
    x = random_features(edges, 2, orders[0])
    assert_gauge_equivariant(lambda x, edges: layer(x, edges)[0], edges, x)
    g = meshes.random(9).uniform(-np.pi, np.pi, edges.vertex_count)
    alpha = layer(x, edges)[1]
    changed = layer(kernels.rotate(x, -g), change_gauge(edges, g))[1]
    np.testing.assert_allclose(changed, alpha, rtol=1e-11)
    assert np.ptp(alpha) > 0.1


def test_messages_are_the_kernel_matrices_times_the_transported_features():
    edges = scene()[-1]
    x, weight = random_features(edges, 2, 2), weights(kernels.basis_size(2, 3), 2, 4, 2)
    rings = layers.ring_weights(edges, 2)
    messages = layers.apply_neighbor_kernel(x, edges, weight, rings, 3, 4)
    elements = kernels.neighbor_basis(2, 3, edges.theta, 4)
    per_edge = np.einsum("er,broi->beoi", rings, weight)
    matrices = kernels.kernel_matrices(elements, per_edge, 2, 3)
    for e, (q, g) in enumerate(zip(edges.neighbor, edges.transport, strict=True)):
        transported = kernels.rotate(x[[q]], np.array([g]))[0]
        want = matrices[e].reshape(4 * 7, 2 * 5) @ transported.ravel()
        np.testing.assert_allclose(messages[e].ravel(), want, rtol=0, atol=1e-13)


def test_attention_with_a_vanishing_query_is_the_convolution():
    """Section 6: the factor N_p is there so that uniform attention gives back GEM-CNN."""
    edges = scene()[-1]
    x, weight = random_features(edges, 2, 1), weights(kernels.basis_size(1, 2), 1, 4, 2)
    rings, own = layers.ring_weights(edges, 1), weights(3, 4, 2)
    for aggregation in ("sum", "mean"):
        y, alpha = layers.eman_attention(x, edges, 0 * own, weight, weight, rings, 2, aggregation=aggregation)
        want = layers.gem_convolution(x, edges, weight, rings, 2, aggregation=aggregation)
        np.testing.assert_allclose(y, want, rtol=0, atol=1e-13)
        np.testing.assert_allclose(alpha, 1, atol=1e-14)


def test_attention_coefficients_of_a_vertex_add_up_to_its_degree():
    edges = scene("open_grid")[-1]
    for name, expected in (("heads", layers.degrees(edges)), ("self-contribution", layers.degrees(edges) + 1)):
        alpha = attention(ATTENTIONS[name], 2, 2)(random_features(edges, 2, 2), edges)[1]
        total = layers.scatter(alpha, edges)
        if name == "heads":
            np.testing.assert_allclose(total, np.broadcast_to(expected[:, None], total.shape), rtol=1e-14)
        else:
            assert np.all(total < expected[:, None])


def test_identity_projections_are_no_projections():
    edges = scene()[-1]
    x, weight, query = random_features(edges, 2, 2), weights(kernels.basis_size(2, 2), 1, 4, 2), weights(5, 4, 2)
    rings = layers.ring_weights(edges, 1)
    identity = np.zeros((5, 4, 4))
    identity[[0, 1, 3]] = np.eye(4)
    plain, alpha = layers.eman_attention(x, edges, query, weight, weight, rings, 2, heads=2)
    same, same_alpha = layers.eman_attention(
        x, edges, query, weight, weight, rings, 2, heads=2, projections=[identity] * 4
    )
    np.testing.assert_allclose(same, plain, rtol=0, atol=1e-14)
    np.testing.assert_allclose(same_alpha, alpha, rtol=0, atol=1e-14)


def test_a_radial_query_sees_the_vertex_itself_at_distance_zero():
    """A query that is blind there gives every vertex itself the logit 0, and with it all neighbors at distance 0."""
    edges = scene()[-1]
    x, weight, own = random_features(edges, 2, 1), weights(kernels.basis_size(1, 1), 3, 4, 2), weights(3, 4, 2)
    query = weights(*weight.shape, seed=4)
    query[:, 0] = 0
    at_zero = np.tile([1.0, 0.0, 0.0], (len(edges.center), 1))
    for rings, uniform in ((at_zero, True), (layers.ring_weights(edges, 3), False)):
        _, alpha = layers.eman_attention(
            x, edges, query, weight, weight, rings, 1, query_radial=True, self_key=own, self_value=own
        )
        assert np.allclose(alpha, 1) == uniform


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_logits_are_divided_by_the_root_of_the_size_of_a_head(heads):
    edges = scene()[-1]
    rng = meshes.random(0)
    query, key = rng.normal(size=(2, len(edges.center), 4, 5))
    _, alpha, _ = layers.attend(query, key, key, edges, heads)
    size = 20 // heads
    first, second = np.flatnonzero(edges.center == 3)[:2]
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        logits = [query[e].ravel()[part] @ key[e].ravel()[part] / np.sqrt(size) for e in (first, second)]
        np.testing.assert_allclose(alpha[first, h] / alpha[second, h], np.exp(logits[0] - logits[1]), rtol=1e-12)


def test_a_vertex_alone_receives_nothing_but_its_own():
    mesh, _, _, edges = scene("isolated_vertices")
    alone = mesh.defects["isolated_vertices"]
    x, weight = random_features(edges, 2, 1), weights(kernels.basis_size(1, 1), 1, 2, 2)
    rings, own = layers.ring_weights(edges, 1), weights(3, 2, 2, seed=8)
    results = [layers.gem_convolution(x, edges, weight, rings, 1, aggregation="mean")]
    results.append(layers.eman_attention(x, edges, own, weight, weight, rings, 1)[0])
    for y in results:
        assert not y[alone].any()
        assert np.delete(y, alone, axis=0).all()
    y = layers.eman_attention(x, edges, own, weight, weight, rings, 1, self_key=own, self_value=own)[0]
    np.testing.assert_allclose(y[alone], layers.apply_self_kernel(x, own, 1)[alone], rtol=1e-15)


def test_a_bias_is_for_those_who_receive():
    x = meshes.random(0).normal(size=(4, 2, 3))
    receives = np.array([True, False, True, False])
    for y in (
        layers.angular_bias(x, np.ones(2), np.ones((1, 2)), receives),
        layers.additive_bias(x, np.ones(2), receives),
    ):
        assert np.all((y != x).any(axis=(1, 2)) == receives)


def test_heads_must_divide_the_channels():
    with pytest.raises(ValueError, match="do not divide"):
        layers.split_heads(np.zeros((1, 4, 5)), 3)


def test_attention_survives_large_logits():
    edges = scene()[-1]
    logits = meshes.random(0).normal(size=(len(edges.center), 2))
    want = layers.softmax_around(logits, edges)[0]
    np.testing.assert_allclose(layers.softmax_around(logits + 1e4, edges)[0], want, rtol=1e-11)


# ---- Radial weights ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("radial", ["global", "local"])
@pytest.mark.parametrize("rings", [1, 2, 3, 4])
def test_ring_weights_add_up_to_one_and_ignore_scale(rings, radial):
    edges = scene()[-1]
    value = layers.ring_weights(edges, rings, radial)
    assert value.min() >= 0
    np.testing.assert_allclose(value.sum(axis=1), 1, rtol=1e-14)
    scaled = edges._replace(length=7 * edges.length)
    np.testing.assert_allclose(layers.ring_weights(scaled, rings, radial), value, rtol=0, atol=1e-14)


def test_ring_weights_interpolate():
    edges = scene()[-1]._replace(length=np.array([0, 0.25, 0.5, 0.75, 1]))
    want = [[1, 0, 0], [0.5, 0.5, 0], [0, 1, 0], [0, 0.5, 0.5], [0, 0, 1]]
    np.testing.assert_allclose(layers.ring_weights(edges, 3), want, atol=1e-15)


def test_only_the_local_ring_weights_are_local():
    edges = scene()[-1]
    far = edges.center == edges.center.max()
    stretched = edges._replace(length=np.where(far, 10, 1) * edges.length)
    for radial, unchanged in (("local", True), ("global", False)):
        a, b = (layers.ring_weights(e, 3, radial)[~far] for e in (edges, stretched))
        assert np.array_equal(a, b) == unchanged


# ---- Biases --------------------------------------------------------------------------------------------------------


def test_only_the_angular_bias_is_gauge_equivariant():
    edges = scene()[-1]
    x, bias, angles = random_features(edges, 3, 2), weights(3), weights(2, 3, seed=2)
    all_of_them = np.ones(len(x), dtype=bool)
    assert_gauge_equivariant(lambda x, _: layers.angular_bias(x, bias, angles, all_of_them), edges, x)
    with pytest.raises(AssertionError):
        assert_gauge_equivariant(lambda x, _: layers.additive_bias(x, bias, all_of_them), edges, x)


def test_angular_bias_by_hand():
    x = np.zeros((1, 1, 5))
    x[:, 0, [1, 3]] = 1
    y = layers.angular_bias(x, np.array([0.5]), np.array([[0.1], [0.2]]), np.array([True]))
    want = [0.5, np.cos(0.1), np.sin(0.1), np.cos(0.2), np.sin(0.2)]
    np.testing.assert_allclose(y[0, 0], want, rtol=1e-15)
    angles = np.ones((4, 1))
    np.testing.assert_array_equal(networks.turns(angles, "angular")[:, 0], [1, 2, 3, 4])
    np.testing.assert_array_equal(networks.turns(angles, "angular_authors")[:, 0], [1, 1, 0, 0])


# ---- Non-linearities -----------------------------------------------------------------------------------------------


def turned(x, angle):
    return kernels.rotate(x, np.full(len(x), angle))


def gate(x):
    order = kernels.max_order(x)
    return layers.gate(x, weights(order, x.shape[1]), weights(order, x.shape[1], seed=2))


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_poly_and_gate_commute_with_every_turn_and_regular_with_its_own(order):
    x = meshes.random(0).normal(size=(50, 3, 2 * order + 1))
    for function in (layers.poly, gate):
        np.testing.assert_allclose(function(turned(x, 0.3)), turned(function(x), 0.3), rtol=0, atol=2e-14)
    samples = 2 * order + 3
    step = 2 * np.pi / samples
    y = layers.regular(x, samples)
    np.testing.assert_allclose(layers.regular(turned(x, step), samples), turned(y, step), rtol=0, atol=1e-13)
    assert np.abs(layers.regular(turned(x, step / 2), samples) - turned(y, step / 2)).max() > 1e-3


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_poly_is_positively_homogeneous_and_zero_at_zero(order):
    x = meshes.random(0).normal(size=(50, 3, 2 * order + 1))
    np.testing.assert_allclose(layers.poly(1000 * x), 1000 * layers.poly(x), rtol=0, atol=1e-11)
    assert not layers.poly(0 * x).any()


def test_poly_is_closer_to_the_projected_relu_than_seven_samples_are():
    x = meshes.random(0).normal(size=(2000, 1, 5))
    exact = layers.regular(x, 1001)
    relative = [np.linalg.norm(y - exact) / np.linalg.norm(exact) for y in (layers.poly(x), layers.regular(x, 7))]
    assert relative[0] < 0.04
    assert relative[1] > 0.06


def test_the_samples_of_poly_suffice():
    """The projection is exact: evaluated on many more samples it is the same."""
    x = meshes.random(0).normal(size=(20, 2, 5))
    many = layers.circle_samples(2, 101) * np.sqrt(101)
    s = np.linalg.norm(x, axis=2, keepdims=True)
    u = (x / s) @ many
    magnitude = np.polynomial.polynomial.polyval(u**2 / 5, layers.relu_polynomial(4))
    want = s * ((u + np.sqrt(5) * magnitude) / 2 @ many.T) / 101
    np.testing.assert_allclose(layers.poly(x), want, rtol=0, atol=1e-14)


def test_the_polynomial_of_degree_four():
    np.testing.assert_allclose(layers.relu_polynomial(4), [0.1171875, 1.640625, -0.8203125], rtol=1e-12)


def test_on_scalars_the_nonlinearities_are_relu():
    x = np.linspace(-2, 2, 9)[:, None, None]
    for y in (layers.poly(x), layers.regular(x), gate(x)):
        np.testing.assert_allclose(y, np.maximum(x, 0), rtol=0, atol=1e-15)


def test_the_gate_keeps_directions():
    x = meshes.random(0).normal(size=(10, 2, 5))
    y = layers.gate(x, np.full((2, 2), 0.5), np.full((2, 2), -0.2))
    z = x[:, :, 3] + 1j * x[:, :, 4]
    want = z / (1 + np.exp(0.2 - 0.5 * np.abs(z)))
    np.testing.assert_allclose(y[:, :, 3] + 1j * y[:, :, 4], want, rtol=1e-14)


# ---- Blocks and heads ----------------------------------------------------------------------------------------------


def test_the_residual_is_added_to_the_orders_that_both_have():
    x, y = np.ones((2, 3, 3)), np.zeros((2, 3, 5))
    np.testing.assert_array_equal(layers.add_residual(y, x)[0, 0], [1, 1, 1, 0, 0])
    np.testing.assert_array_equal(layers.add_residual(y[:, :, :1], x), np.ones((2, 3, 1)))
    assert layers.add_residual(np.zeros((2, 1, 3)), x, np.full((1, 3), 2.0))[0, 0, 0] == 6


def test_the_dense_head_pools_before_the_last_layer():
    x = meshes.random(0).normal(size=(6, 4))
    hidden, classes = (weights(5, 4), weights(5)), (weights(3, 5), weights(3, seed=2))
    single = layers.dense_head(x, hidden, classes)
    np.testing.assert_allclose(np.exp(single).sum(axis=1), 1, rtol=1e-14)
    pooled = layers.dense_head(x, hidden, classes, pooling=True)
    middle = np.maximum(x @ hidden[0].T + hidden[1], 0).mean(axis=0)
    odds = np.exp(classes[0] @ middle + classes[1])
    np.testing.assert_allclose(np.exp(pooled[0]), odds / odds.sum(), rtol=1e-13)


# ---- Networks ------------------------------------------------------------------------------------------------------

SMALL = {"width": 4, "hidden": 8, "classes": 5}
PAPER, AUTHORS = networks.PAPER | SMALL, networks.AUTHORS | SMALL
NETWORKS = {
    "paper GEM": PAPER | {"kind": "gem", "self_term": True},
    "paper EMAN": PAPER,
    "poly": AUTHORS | {"nonlinearity": "poly", "inner_nonlinearity": True, "radial": "local"},
    "gate": PAPER | {"nonlinearity": "gate", "inner_nonlinearity": True, "self_term": True, "heads": 4},
    "projected heads": PAPER | {"rings": 3, "head_form": "projected", "heads": 2, "band_limit": 3, "blocks": 2},
    "classification": PAPER | {"task": "classification", "aggregation": "mean", "powers": [0.7], "bias": "none"},
    "order 3": PAPER | {"kind": "gem", "max_order": 3, "nonlinearity": "poly", "aggregation": "mean"},
    "one block": AUTHORS | {"blocks": 1, "nonlinearity": "poly", "inner_nonlinearity": True, "self_term": True},
}


def gauge_gap(description, name="jittered_icosphere"):
    """Mean squared difference of the log-probabilities in two gauges."""
    mesh, rings, frames, edges = scene(name)
    parameters = networks.random_parameters(description)
    g = meshes.random(3).uniform(-np.pi, np.pi, len(mesh.positions))
    logp = []
    for gauge in (frames, geometry.rotate_frames(frames, g)):
        features = networks.input_features(description, mesh.positions, gauge, rings)
        edges = geometry.edge_geometry(mesh.positions, gauge, geometry.directed_edges(rings))
        logp.append(networks.forward(description, parameters, features, edges)[0])
    return np.mean((logp[0] - logp[1]) ** 2)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_ignore_gauge_similarity_and_numbering(name):
    description = NETWORKS[name]
    assert gauge_gap(description) < 1e-22
    parameters = networks.random_parameters(description)
    for mesh in (meshes.jittered_icosphere(1), meshes.open_grid(4, 5)):
        logp = networks.run(description, parameters, mesh.positions, mesh.faces)
        assert np.ptp(logp) > 0.1
        rotation = np.linalg.qr(meshes.random(4).normal(size=(3, 3)))[0]
        rotation *= np.linalg.det(rotation)
        moved = 3 * mesh.positions @ rotation.T + (1, 2, 3)
        np.testing.assert_allclose(networks.run(description, parameters, moved, mesh.faces), logp, rtol=0, atol=1e-10)

        order = meshes.random(5).permutation(len(mesh.positions))  # new vertex i is old vertex order[i]
        faces = np.roll(np.argsort(order)[mesh.faces][::-1], 1, axis=1)
        permuted = networks.run(description, parameters, mesh.positions[order], faces)
        want = logp if description["task"] == "classification" else logp[order]
        np.testing.assert_allclose(permuted, want, rtol=0, atol=1e-10)


def test_what_is_not_equivariant_shows():
    assert gauge_gap(AUTHORS) > 1e-10
    assert gauge_gap(PAPER | {"bias": "additive"}) > 1e-6
    mesh = meshes.jittered_icosphere(1)
    for features in ("xyz", "get"):
        description = PAPER | {"features": features}
        assert gauge_gap(description) < 1e-22
        parameters = networks.random_parameters(description)
        logp, moved = (
            networks.run(description, parameters, v, mesh.faces) for v in (mesh.positions, mesh.positions + 1)
        )
        assert np.mean((logp - moved) ** 2) > 1e-6


@pytest.mark.parametrize("name", NETWORKS)
def test_every_parameter_matters(name):
    mesh, description = meshes.open_grid(3, 4), NETWORKS[name]
    parameters = networks.random_parameters(description)
    logp = networks.run(description, parameters, mesh.positions, mesh.faces)
    rng = meshes.random(1)
    for key, value in parameters.items():
        if (name, key) == ("one block", "blocks.0.skip"):
            continue  # it carries the scalars of RelTan to the scalars of the result: zeros
        other = parameters | {key: value + rng.normal(size=value.shape)}
        changed = networks.run(description, other, mesh.positions, mesh.faces)
        assert np.abs(changed - logp).max() > 1e-9, key


def test_missing_and_surplus_parameters_are_named():
    mesh = meshes.triangle()
    for description in (PAPER, PAPER | {"kind": "spiral"}):
        parameters = networks.random_parameters(description)
        lacking = {key: value for key, value in parameters.items() if key != "dense1.bias"}
        for wrong in (lacking, parameters | {"dense1.bias": np.zeros(3)}):
            with pytest.raises(ValueError, match=r"dense1\.bias"):
                networks.run(description, wrong, mesh.positions, mesh.faces)
        with pytest.raises(ValueError, match="dense3"):
            networks.run(description, parameters | {"dense3": np.zeros(3)}, mesh.positions, mesh.faces)


def test_the_authors_names():
    description = networks.from_authors("RelTanEMAN", 3)
    assert description == networks.AUTHORS | {"classes": 3}
    assert networks.from_authors("GemCNN", 3, max_order=0)["band_limit"] is None
    with pytest.raises(ValueError, match=r"no conv4\.conv1\.weight"):
        networks.authors_parameters({"conv4.conv1.weight": np.zeros(1)}, description)
    with pytest.raises(KeyError):
        networks.authors_parameters({}, description)
