"""Time and peak memory of every stage on one mesh, as JSON: {stage: [seconds, bytes]}, in a process of its own.

usage: growth.py VERTICES PRESET CLASSES [--train]

The bytes are the most that the process had resident during the stage, above what it had with the library loaded and
the arrays of the mesh made: the mesh and the network stay, as they do for a caller.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Callable

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.geometry import POWERS, sphere
from bench.timing import fastest

import eman


def resident(field: str) -> int:
    """VmRSS, now, or VmHWM, the most since the last forget, in bytes."""
    return 1024 * int(re.search(rf"{field}:\s*(\d+)", Path("/proc/self/status").read_text()).group(1))


def forget() -> None:
    """Makes what is resident now the most so far."""
    Path("/proc/self/clear_refs").write_text("5")


def stages(vertices: int, preset: str, classes: int, training: bool) -> dict[str, tuple[float, int]]:
    positions, faces = sphere(vertices)
    context = eman.Context(threads=2)
    base, result = resident("VmRSS"), {"vertices": (len(positions), 0)}

    def measure(name: str, call: Callable[[], float]) -> None:
        forget()
        seconds = call()
        result[name] = seconds, resident("VmHWM") - base

    measure("mesh", lambda: fastest(lambda: eman.Mesh(positions, faces, context=context).close(), 0.2))
    mesh = eman.Mesh(positions, faces, context=context)
    measure("update", lambda: fastest(lambda: mesh.update(positions), 0.2))
    measure("edge angles", lambda: fastest(lambda: (mesh.edge_angles, mesh.transport_angles), 0.2))
    measure("RelTan", lambda: fastest(lambda: mesh.reltan(POWERS), 0.2))
    model = eman.Model(preset, classes=classes, context=context)

    def predict_anew() -> None:
        mesh.update(positions)
        model.predict(mesh)

    measure("update and forward", lambda: fastest(predict_anew, 0.2))
    measure("forward", lambda: fastest(lambda: model.predict(mesh), 0.2))
    if training:
        trainer = eman.Trainer(model)
        trainer.add(mesh, np.arange(mesh.vertex_count) % classes)
        measure("step", lambda: fastest(trainer.step, 0.2))
    return result


if __name__ == "__main__":
    vertices, preset, classes = sys.argv[1:4]
    print(json.dumps(stages(int(vertices), preset, int(classes), "--train" in sys.argv[4:])))
