"""The mesh that is measured, and the times of plain numpy computing its geometry."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.timing import fastest

from reference import vectorised

POWERS = (0.5, 0.7)


def sphere(vertices: int) -> tuple[np.ndarray, np.ndarray]:
    """An irregular closed mesh of about so many vertices: a jittered latitude-longitude sphere without its poles."""
    n = max(4, round((vertices / 2) ** 0.5))
    rows, columns = n, 2 * n
    random = np.random.default_rng(0)
    theta = np.pi * (np.arange(rows) + 0.5) / rows
    phi = 2 * np.pi * np.arange(columns) / columns
    t, p = (
        x + 0.3 * np.pi / n * (random.random((rows, columns)) - 0.5) for x in np.meshgrid(theta, phi, indexing="ij")
    )
    positions = np.stack([np.sin(t) * np.cos(p), np.sin(t) * np.sin(p), np.cos(t)], axis=-1).reshape(-1, 3)
    i, j = np.meshgrid(np.arange(rows - 1), np.arange(columns), indexing="ij")
    a, b = i * columns + j, i * columns + (j + 1) % columns
    c, d = a + columns, b + columns
    return positions, np.stack([a, c, b, b, c, d], axis=-1).reshape(-1, 3).astype(np.int32)


def numpy_times(positions: np.ndarray, faces: np.ndarray) -> dict[str, float]:
    """Seconds of the vectorised numpy of tests/reference for each stage, the smallest of several runs."""
    offsets, indices = vectorised.neighbors(positions, faces)
    normals = vectorised.vertex_normals(positions, faces, offsets, indices)
    frames = vectorised.frames(positions, normals, offsets, indices)

    def update() -> None:
        vectorised.frames(positions, vectorised.vertex_normals(positions, faces, offsets, indices), offsets, indices)

    return {
        "topology": fastest(lambda: vectorised.neighbors(positions, faces)),
        "update": fastest(update),
        "angles": fastest(lambda: vectorised.edge_angles(positions, frames, offsets, indices)),
        "RelTan": fastest(lambda: vectorised.reltan(positions, frames, offsets, indices, POWERS)),
    }
