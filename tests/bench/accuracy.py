"""The error of every layer in float32 against the formulas in float64."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.geometry import sphere

import eman
from reference import geometry, layers, networks


def layer_errors(vertices: int, preset: str) -> dict[str, float]:
    """The largest error of each layer's features relative to the largest of them.

    The reference computes each layer in float64 from what the library has behind the one before, so that errors of
    several layers are not mixed.
    """
    positions, faces = sphere(vertices)
    mesh, model = eman.Mesh(positions, faces), eman.Model(preset, classes=16)
    spec, parameters = model.spec, model.parameters()
    rings = geometry.neighbor_rings(positions, faces)
    frames = geometry.frames(positions, geometry.vertex_normals(positions, faces), rings)
    edges = geometry.edge_geometry(positions, frames, geometry.directed_edges(rings))
    weights = layers.ring_weights(edges, spec["rings"], spec["radial"])
    x, errors = networks.input_features(spec, positions, frames, rings), {}
    for name, *_, out_order in networks.convolutions(spec):
        if name.endswith("conv1"):
            block_input = x
        y, _ = networks.convolution(spec, parameters, name, x, edges, weights, out_order)
        if name.endswith("conv2"):
            y = layers.add_residual(y, block_input, parameters.get(name.replace("conv2", "skip")))
        y = networks.nonlinearity(spec, parameters, name, y)
        x = model.features(mesh, name).astype(np.float64)
        errors[name] = float(np.abs(x - y).max() / np.abs(y).max())
    return errors
