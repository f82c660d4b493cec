"""The time that Python adds to a call of the library on a mesh of four vertices, where nothing else takes long.

usage: calls.py [--json]

Each method of the package is timed in turn with the C function it calls, called through ctypes with arguments that
were made before: the smallest of many short windows of each, in microseconds.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any, Callable, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.timing import fastest

import eman
from eman import _arrays, _capi

#: Calls in a window, and windows: enough that one of them is not disturbed.
CALLS, ROUNDS = 200, 150


class Case(NamedTuple):
    """The bare call of a C function, and the method that makes it."""

    bare: Callable[[], object]
    method: Callable[[], object]


class Output:
    """An array that a bare call writes to."""

    def __init__(self, *shape: int, dtype: Any = float) -> None:
        self._array = np.empty(shape, dtype)  # which the view does not keep
        self.view = _arrays.view(self._array)


def cases() -> dict[str, Case]:
    """By the names of the methods."""
    vertices = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32)
    mesh, model = eman.Mesh(vertices, faces), eman.Model("default", classes=2, width=1, blocks=1)
    library, powers = _capi.library(), np.array([0.5, 0.7])
    options = _capi.RelTanOptions(ctypes.sizeof(_capi.RelTanOptions), 0, 1.5, 1.0)
    on, by = mesh._handle._address, model._handle._address
    context = mesh.context._handle._address

    def create() -> None:
        out = ctypes.c_void_p()
        library.eman_mesh_create(context, positions, indices, None, None, ctypes.byref(out))
        library.eman_mesh_free(out)

    positions, indices = _arrays.view(vertices), _arrays.view(faces)
    where = powers.ctypes.data
    reltan, normals, labels = Output(4, 4), Output(4, 3), Output(4, dtype=np.int32)
    return {
        "vertex_normals": Case(lambda: library.eman_mesh_vertex_normals(on, normals.view), lambda: mesh.vertex_normals),
        "reltan": Case(
            lambda: library.eman_mesh_reltan(on, where, 2, ctypes.byref(options), None, reltan.view),
            lambda: mesh.reltan((0.5, 0.7)),
        ),
        "update": Case(lambda: library.eman_mesh_update(on, positions, None, None), lambda: mesh.update(vertices)),
        "predict": Case(lambda: library.eman_model_predict(by, on, None, labels.view), lambda: model.predict(mesh)),
        "Mesh": Case(create, lambda: eman.Mesh(vertices, faces)),
    }


def repeat(call: Callable[[], object]) -> None:
    for _ in range(CALLS):
        call()  # what it returns is garbage at once, as in the bare call


def added(case: Case) -> tuple[float, float]:
    """Microseconds of the bare call, and those that the method adds."""
    times = [float("inf"), float("inf")]
    for _ in range(ROUNDS):
        for number, call in enumerate(case):
            window = fastest(lambda call=call: repeat(call), seconds=0, least=1)
            times[number] = min(times[number], window / CALLS * 1e6)
    return times[0], times[1] - times[0]


def main() -> None:
    found = {name: added(case) for name, case in cases().items()}
    if "--json" in sys.argv[1:]:
        print(json.dumps(found))
        return
    print(f"{'':<16}{'the C call':>12}{'Python adds':>14}   microseconds")
    for name, (bare, more) in found.items():
        print(f"{name:<16}{bare:>12.2f}{more:>14.2f}")


if __name__ == "__main__":
    main()
