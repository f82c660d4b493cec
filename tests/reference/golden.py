"""The reference vectors of the authors' code, where they are at hand: ../shared/golden beside the repository.

They are not part of the repository. Tests that need them skip without them, and fail where CI=true.
"""

import functools
import json
import os
from pathlib import Path

import numpy as np
import pytest

from . import geometry

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "golden"


def require(name):
    """Path of a file of the reference vectors; skips or fails the running test where it is missing."""
    path = FOLDER / name
    if not path.is_file():
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"no reference vectors: {path} is missing")
    return path


def load(name):
    """The arrays of one npz file."""
    with np.load(require(f"{name}.npz")) as arrays:
        return {key: arrays[key] for key in arrays.files}


def description(table, file):
    """The entry of layers.json or models.json about a file."""
    entries = json.loads(require(table).read_text())
    return next(entry for entry in entries if entry["file"] == f"{file}.npz")


def parameters(arrays):
    """The weights among the arrays, without their prefix and in float64."""
    return {key[2:]: value.astype(float) for key, value in arrays.items() if key.startswith("w:")}


class AuthorsMesh:
    """A mesh with the authors' edges: three directed ones per face, so one direction only on boundaries."""

    def __init__(self, positions, edges, frames):
        self.positions = positions
        self.edges = edges
        self.frames = frames
        self.rings = [[] for _ in positions]
        for p, q in edges:
            self.rings[p].append(int(q))

    @functools.cached_property
    def edge_geometry(self):
        return geometry.edge_geometry(self.positions, self.frames, self.edges)


@functools.cache
def mesh(name):
    """A mesh of the reference vectors with their frames, and the geometry of its edges computed here."""
    arrays = load(f"mesh_{name}")
    return AuthorsMesh(arrays["V"], arrays["edge_index"].T.astype(np.int64), arrays["frame"])
