"""Networks against the plain numpy reference in tests/reference, which is in the repository: any clone can check."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import eman

from .conftest import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tests"))
from reference import meshes, networks


def random_description(seed: int) -> dict[str, Any]:
    """A description with each choice drawn, of a network that is quick in numpy."""
    draw = np.random.default_rng(seed)

    def one(*choices: Any) -> Any:
        return choices[draw.integers(len(choices))]

    kind = one("eman", "eman", "gem")
    features = one("reltan", "reltan", "get", "xyz")
    heads = one(1, 1, 2, 3) if kind == "eman" else 1
    # Below the order of the input the two choose other orders within the first block.
    order = one(0, 1, 2, 2, 3) if features == "xyz" else one(1, 2, 2, 3)
    return {
        "kind": kind,
        "task": one("segmentation", "segmentation", "classification"),
        "features": features,
        "powers": list(np.round(draw.uniform(-1, 2, one(1, 2, 3)), 2)) if features == "reltan" else [],
        "degree_power": one(1.5, 1.0),
        "relative_constant": one(1.0, 2.5),
        "classes": int(draw.integers(1, 9)),
        "width": heads * one(1, 2, 5),
        "blocks": one(1, 2),
        "max_order": order,
        "band_limit": one(None, 0, 1, 2, order),
        "rings": one(1, 2, 3),
        "radial": one("global", "local"),
        "aggregation": one("sum", "mean"),
        "self_term": one(False, True),
        "heads": heads,
        "head_form": one("groups", "projected") if kind == "eman" else "groups",
        "query_radial": one(False, True) if kind == "eman" else False,
        "bias": one("angular", "angular_authors", "additive", "none"),
        "nonlinearity": one("poly", "gate", "regular", "none"),
        "samples": one(7, 9),
        "inner_nonlinearity": one(False, True),
        "hidden": int(draw.integers(1, 20)),
    }


MESHES = ("jittered_icosphere", "torus", "open_grid", "fan", "planar_delaunay", "isolated_vertices", "two_components")


def reference_mesh(name: str, seed: int) -> Any:
    if name == "jittered_icosphere":
        return meshes.jittered_icosphere(1, 0.15, seed)
    if name == "open_grid":
        return meshes.open_grid(5, 6, 0.2, seed)
    if name == "planar_delaunay":
        return meshes.planar_delaunay(20, seed)
    return {**meshes.SOUND, **meshes.DEFECTIVE}[name]()


@pytest.mark.parametrize("seed", range(40))
def test_random_networks(seed: int) -> None:
    description = random_description(seed)
    made = reference_mesh(MESHES[seed % len(MESHES)], seed)
    normals = ("area", "angle")[seed % 2]
    parameters = networks.random_parameters(networks.PAPER | description, seed)
    model = eman.Model({"preset": "paper", **description})
    assert {name: values.shape for name, values in model.parameters().items()} == {
        name: values.shape for name, values in parameters.items()
    }
    model.set_parameters(parameters)
    rounded = {name: values.astype(np.float64) for name, values in model.parameters().items()}
    # the model's own description, which has every field, is what the reference takes
    expected = networks.run(model.spec, rounded, made.positions, made.faces, normals)
    found = model.logits(eman.Mesh(made.positions, made.faces, normals=normals))
    assert np.abs(found - expected.reshape(found.shape)).max() <= 1e-4 * max(1.0, np.abs(expected).max()), description


@pytest.mark.parametrize("preset", ["default", "paper", "authors"])
@pytest.mark.parametrize("kind", ["eman", "gem", "spiral"])
def test_presets(preset: str, kind: str) -> None:
    made = meshes.jittered_icosphere(1, 0.15, 3)
    model = eman.Model(preset, classes=7, kind=kind, seed=5, width=8, hidden=16)
    expected = networks.run(model.spec, model.parameters(), made.positions, made.faces)
    found = model.logits(eman.Mesh(made.positions, made.faces))
    assert np.abs(found - expected).max() <= 1e-5 * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize("length", [1, 4, 10, 30])
@pytest.mark.parametrize("start", ["index", "distance"])
def test_spirals(length: int, start: str) -> None:
    for made in (meshes.torus(7, 5), meshes.open_grid(4, 5), meshes.two_components(), meshes.isolated_vertices()):
        options = {"spiral_length": length, "spiral_start": start, "width": 2, "blocks": 2, "hidden": 4}
        model = eman.Model("paper", classes=3, kind="spiral", **options)
        expected = networks.run(model.spec, model.parameters(), made.positions, made.faces)
        difference = np.abs(model.logits(eman.Mesh(made.positions, made.faces)) - expected).max()
        assert difference <= 1e-6 * max(1, np.abs(expected).max())


def test_attention_coefficients() -> None:
    from reference import geometry

    made = meshes.jittered_icosphere(1, 0.15, 1)
    model = eman.Model("paper", classes=2, heads=2, width=6, hidden=4, powers=[0.5, 0.7, 1.3])
    draw = np.random.default_rng(0)
    parameters = model.parameters()
    model.set_parameters({n: draw.normal(size=v.shape) for n, v in parameters.items() if n.endswith(".bias")})
    model.set_parameters({n: 8 * v for n, v in parameters.items() if n.endswith(".key")})
    rings = geometry.neighbor_rings(made.positions, made.faces)
    frames = geometry.frames(made.positions, geometry.vertex_normals(made.positions, made.faces, "area"), rings)
    edges = geometry.edge_geometry(made.positions, frames, geometry.directed_edges(rings))
    features = networks.input_features(model.spec, made.positions, frames, rings)
    _, expected = networks.forward(model.spec, model.parameters(), features, edges)
    mesh = eman.Mesh(made.positions, made.faces)
    offsets, indices = mesh.neighbors
    assert np.array_equal(edges.neighbor, indices)
    assert np.array_equal(edges.center, np.repeat(np.arange(mesh.vertex_count), np.diff(offsets)))
    for number in range(4):
        assert np.abs(model.attention(mesh, number) - expected[number]).max() <= 1e-4
    assert expected[3].std() > 0.2
