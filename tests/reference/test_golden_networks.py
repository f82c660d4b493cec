"""kernels.py, layers.py and networks.py against the authors' code."""

import json

import numpy as np
import pytest

from . import geometry, golden, kernels, layers, networks

LAYERS = [f"layer_{number:03d}" for number in range(96)]
MODELS = ["RelTanEMAN", "EMAN", "RelTanGemCNN", "GemCNN"]


def test_every_layer_of_the_table_is_tested():
    entries = json.loads(golden.require("layers.json").read_text())
    assert [entry["file"] for entry in entries] == [f"{name}.npz" for name in LAYERS]


@pytest.mark.parametrize("name", LAYERS)
def test_kernel_basis(name):
    config, arrays = golden.description("layers.json", name), golden.load(name)
    theta = np.linspace(-3, 3, 7)
    orders = config["in_order"], config["out_order"]
    basis = kernels.neighbor_basis(*orders, theta, config["band_limit"] or None)
    table = arrays["kernel"]  # [basis, 1 cos sin cos 2 sin 2 ..., out component, in component]
    frequencies = np.arange(1, table.shape[1] // 2 + 1)
    waves = [np.ones_like(theta)] + [f(k * theta) for k in frequencies for f in (np.cos, np.sin)]
    assert len(table) == kernels.basis_size(*orders)
    assert not table[len(basis) :].any()
    for element, entry in zip(basis, table, strict=False):
        want = np.einsum("fe,fxy->exy", waves, entry)
        got = np.zeros_like(want)
        got[:, kernels.components(element.out_order), kernels.components(element.in_order)] = element.matrix
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name):
    config, arrays = golden.description("layers.json", name), golden.load(name)
    weights, x = golden.parameters(arrays), arrays["x"].astype(float)
    edges, out_order = golden.mesh(config["mesh"]).edge_geometry, config["out_order"]
    rings = layers.ring_weights(edges, config["n_rings"])
    options = {"band_limit": config["band_limit"] or None, "aggregation": "mean"}
    if config["kind"] == "gem":
        y = layers.gem_convolution(x, edges, weights["weight"], rings, out_order, **options)
    else:
        query, key = (weights[f"eman_attn_layer.{part}_weight"] for part in ("self", "neigh"))
        y, alpha = layers.eman_attention(
            x,
            edges,
            query,
            key,
            weights["weight"],
            rings,
            out_order,
            heads=config["n_heads"],
            query_radial=True,
            **options,
        )
        np.testing.assert_allclose(alpha, arrays["attention"], rtol=1e-11, atol=1e-12)
    receives = layers.degrees(edges) > 0
    if config["equiv_bias"]:
        angles = [weights["ang_bias1"], weights["ang_bias2"]][:out_order]
        y = layers.angular_bias(y, weights["bias"], angles, receives)
    else:
        y = layers.additive_bias(y, weights["bias"], receives)
    np.testing.assert_allclose(y, arrays["y"], rtol=0, atol=1e-12 * np.abs(arrays["y"]).max())


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("samples", [5, 7])
def test_regular_nonlinearity(order, samples):
    arrays = golden.load("regular_nonlin")
    case = f"o{order}_s{samples}"
    y = layers.regular(arrays[f"x_{case}"].astype(float), samples)
    np.testing.assert_allclose(y, arrays[f"y_{case}"], rtol=0, atol=1e-14)


def log_probabilities(model, name, mesh, **options):
    """The network of an npz file on a mesh of the reference vectors; the dict of arrays beside it."""
    arrays = golden.load(name)
    description = networks.from_authors(model, len(arrays["w:lin2.weight"]), **options)
    parameters = networks.authors_parameters(golden.parameters(arrays), description)
    features = networks.input_features(description, mesh.positions, mesh.frames, mesh.rings)
    return networks.forward(description, parameters, features, mesh.edge_geometry)[0], arrays


@pytest.mark.parametrize("task", ["segmentation", "classification"])
@pytest.mark.parametrize("model", MODELS)
def test_model(model, task):
    key = "seg_logp" if task == "segmentation" else "cls_logp"
    logp, arrays = log_probabilities(model, f"model_{model}", golden.mesh("spotcontrol"), task=task)
    np.testing.assert_allclose(logp, arrays[key], rtol=0, atol=1e-11)


@pytest.mark.parametrize("task", ["segmentation", "classification"])
@pytest.mark.parametrize("model", MODELS)
def test_model_on_an_open_boundary(model, task):
    key = "boundary_seg_logp" if task == "segmentation" else "boundary_cls_logp"
    logp, arrays = log_probabilities(model, f"model_{model}", golden.mesh("gridopen_a"), task=task)
    # Attention over raw positions amplifies rounding here: 1e-15 in theta moves a log-probability by 4e-10.
    np.testing.assert_allclose(logp, arrays[key], rtol=0, atol=5e-9 if model == "EMAN" else 1e-11)


@pytest.mark.parametrize("model", MODELS)
def test_model_on_6890_vertices(model):
    logp, arrays = log_probabilities(model, f"model_{model}", golden.mesh("spot6890"))
    np.testing.assert_allclose(logp, arrays["big_seg_logp"], rtol=0, atol=1e-11)


@pytest.mark.parametrize("variant", ["variant_0", "variant_1"])
@pytest.mark.parametrize("task", ["segmentation", "classification"])
def test_variant(variant, task):
    config = golden.description("models.json", variant)
    options = {key: value for key, value in config.items() if key not in ("file", "model", "mesh")}
    logp, arrays = log_probabilities(config["model"], variant, golden.mesh(config["mesh"]), task=task, **options)
    key = "seg_logp" if task == "segmentation" else "cls_logp"
    np.testing.assert_allclose(logp, arrays[key], rtol=0, atol=1e-10)


def test_isolated_vertex():
    arrays = golden.load("isolated")
    positions, faces = arrays["V"], arrays["F"].astype(np.int64)
    edges = faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    mesh = golden.AuthorsMesh(positions, edges, None)
    mesh.frames = geometry.frames(positions, geometry.vertex_normals(positions, faces, "angle"), mesh.rings)
    logp, _ = log_probabilities("RelTanEMAN", "model_RelTanEMAN", mesh)
    assert mesh.rings[int(arrays["iso"])] == []
    np.testing.assert_allclose(logp, arrays["seg_logp"], rtol=0, atol=1e-10)
