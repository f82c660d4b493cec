"""What estimate_work says beside what calls take: the time of one processor, so that it may be busy with others, too.

usage: estimates.py

For three sizes of a mesh and several networks of 16 classes: labels of a mesh that was not seen before, and a training
step on it in another shape; the smallest of a few, in milliseconds, and the estimate over it.
"""

from __future__ import annotations

import time
from typing import Any, Callable

import numpy as np

import eman
from eman.creatures import creature
from eman.variations import Labelled, labelled, subdivided

NETWORKS: dict[str, dict[str, Any]] = {
    "surface": {"preset": "surface"},
    "surface, eman": {"preset": "surface", "kind": "eman"},
    "default": {"preset": "default"},
    "default, gem": {"preset": "default", "kind": "gem"},
    "authors": {"preset": "authors"},
    "spiral": {"preset": "default", "kind": "spiral"},
}


def busy(call: Callable[[], object], runs: int) -> float:
    """The smallest processor time of a call, which has one thread, in seconds."""
    times = []
    for _ in range(runs):
        begun = time.process_time()
        call()
        times.append(time.process_time() - begun)
    return min(times)


def row(model: eman.Model, mesh: eman.Mesh, shape: Labelled, runs: int) -> str:
    """The figures of a network on a mesh of that shape."""
    sizes = mesh.vertex_count, mesh.edge_count
    trainer = eman.Trainer(model, epochs=100, augment={"stretch": 0.1})
    trainer.add(mesh, shape.labels)

    def labels() -> None:
        mesh.update(shape.vertices)
        model.predict(mesh)

    flops, seconds = model.estimate_work(*sizes)
    text = f"{sizes[0]:>10}{flops / 1e9:>9.2f}"
    for call, estimate in ((labels, seconds), (trainer.step, trainer.estimate_work(*sizes)[1])):
        took = busy(call, runs)
        text += f"{1e3 * took:>10.1f}{estimate / took:>10.2f}"
    return text


def main() -> None:
    context = eman.Context(threads=1)
    body = creature(1, vertices=2000)
    made = labelled(body.vertices, body.faces, np.zeros(len(body.vertices), int))
    print(f"{'network':<16}{'vertices':>10}{'GFLOP':>9}{'labels':>10}{'estimate':>10}{'step':>10}{'estimate':>10}")
    for vertices, runs in ((2000, 10), (7000, 3), (30_000, 3)):
        shape = subdivided(made, vertices)
        mesh = eman.Mesh(shape.vertices, shape.faces, context=context)
        for name, options in NETWORKS.items():
            model = eman.Model(**options, classes=16, context=context)
            print(f"{name:<16}{row(model, mesh, shape, runs)}", flush=True)


if __name__ == "__main__":
    main()
