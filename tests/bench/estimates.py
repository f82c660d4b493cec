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
from eman.variations import labelled, subdivided

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


def main() -> None:
    context = eman.Context(threads=1)
    body = creature(1, vertices=2000)
    made = labelled(body.vertices, body.faces, np.zeros(len(body.vertices), int))
    print(f"{'network':<16}{'vertices':>10}{'GFLOP':>9}{'labels':>10}{'estimate':>10}{'step':>10}{'estimate':>10}")
    for vertices in (2000, 7000, 30_000):
        shape = subdivided(made, vertices)
        count, runs = len(shape.vertices), 10 if vertices == 2000 else 3
        for name, options in NETWORKS.items():
            model = eman.Model(**options, classes=16, context=context)
            mesh = eman.Mesh(shape.vertices, shape.faces, context=context)

            def labels(model: eman.Model = model, mesh: eman.Mesh = mesh) -> None:
                mesh.update(shape.vertices)
                model.predict(mesh)

            trainer = eman.Trainer(model, epochs=100, augment={"stretch": 0.1})
            trainer.add(mesh, shape.labels)
            flops, seconds = model.estimate_work(count, mesh.edge_count)
            print(f"{name:<16}{count:>10}{flops / 1e9:>9.2f}", end="")
            for call, estimate in (
                (labels, seconds),
                (trainer.step, trainer.estimate_work(count, mesh.edge_count)[1]),
            ):
                took = busy(call, runs)
                print(f"{1e3 * took:>10.1f}{estimate / took:>10.2f}", end="", flush=True)
            print()


if __name__ == "__main__":
    main()
