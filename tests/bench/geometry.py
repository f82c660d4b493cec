"""Times of the geometry through the C interface, beside plain numpy computing the same in the same run.

usage: geometry.py [VERTICES ...]

Each figure is the smallest of several runs, in nanoseconds per directed edge; "numpy" is how many times longer the
vectorised numpy of tests/reference takes. The machine may be shared: compare ratios.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.timing import fastest

import eman
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
        "both": fastest(lambda: (update(), vectorised.reltan(positions, frames, offsets, indices, POWERS))),
    }


def library_times(positions: np.ndarray, faces: np.ndarray, threads: int) -> dict[str, float]:
    context = eman.Context(threads=threads)
    mesh = eman.Mesh(positions, faces, context=context)
    update = fastest(lambda: mesh.update(positions))
    return {
        "topology": fastest(lambda: eman.Mesh(positions, faces, context=context)) - update,
        "update": update,
        "angles": fastest(lambda: (mesh.edge_angles, mesh.transport_angles)),
        "RelTan": fastest(lambda: mesh.reltan(POWERS)),
        "both": fastest(lambda: (mesh.update(positions), mesh.reltan(POWERS))),
    }


def main(sizes: list[int]) -> None:
    print("ns per directed edge (times longer in numpy); both is update and RelTan one after the other, also in ms")
    header = " ".join(f"{name:>16}" for name in ("topology", "update", "angles", "RelTan", "both"))
    print(f"{'vertices':>10} {'threads':>8} {header} {'both, ms':>9}")
    for size in sizes:
        positions, faces = sphere(size)
        peer = numpy_times(positions, faces)
        edges = eman.Mesh(positions, faces).edge_count
        for threads in (1, 2):
            ours = library_times(positions, faces, threads)
            cells = [f"{1e9 * ours[k] / edges:8.1f} ({peer[k] / ours[k]:4.1f})" for k in ours]
            print(
                f"{len(positions):>10} {threads:>8} " + " ".join(f"{c:>16}" for c in cells),
                f"{1e3 * ours['both']:9.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main([int(v) for v in sys.argv[1:]] or [7_000, 50_000, 1_000_000])
