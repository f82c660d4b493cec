"""What the tests share: the data beside the repository, a plain numpy reference, small meshes."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eman

# A shell ignores Ctrl-C for what it runs in the background, and so would the tests of it and the programs they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

REPOSITORY = Path(__file__).resolve().parents[3]


def shared(name: str) -> Path:
    """A folder of ../shared: missing is a skip on a developer's machine and a failure in continuous integration."""
    folder = REPOSITORY.parent / "shared" / name
    if not folder.exists():
        reason = f"{folder} is missing"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


@pytest.fixture(scope="session")
def golden_folder() -> Path:
    return shared("golden")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    return shared("data")


@pytest.fixture(scope="session")
def horse() -> eman.creatures.Creature:
    return eman.creatures.creature(seed=7, vertices=800, species="horse")


@pytest.fixture(scope="session")
def parts_model(horse: eman.creatures.Creature, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a small network on samples of the surface that knows the parts of one horse."""
    model = eman.Model("surface", labels=horse.part_names, surface={"points": [256, 64], "blocks": [1, 1, 1]})
    eman.fit(model, [eman.Mesh(horse)], [horse.labels], epochs=40, lr=0.01, schedule="one_cycle", dropout=0.0)
    path = tmp_path_factory.mktemp("models") / "parts.safetensors"
    model.save(path)
    return path


def write_obj(path: Path, vertices: Any, faces: Any) -> Path:
    """A mesh as a text file."""
    lines = ["v " + " ".join(map(repr, map(float, point))) for point in vertices]
    lines += ["f " + " ".join(str(corner + 1) for corner in face) for face in faces]
    path.write_text("\n".join(lines) + "\n")
    return path


TETRAHEDRON = (
    np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]),
    np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32),
)


class Reference:
    """The formulas of the paper, one vertex and edge at a time."""

    def __init__(self, vertices: np.ndarray, faces: np.ndarray, normals: str = "area") -> None:
        self.vertices = np.asarray(vertices, np.float64)
        self.faces = np.asarray(faces)
        rings: list[set[int]] = [set() for _ in vertices]
        for face in self.faces.tolist():
            for p in face:
                rings[p].update(face)
        self.neighbors = [
            sorted(q for q in ring if q != p and (vertices[q] != vertices[p]).any()) for p, ring in enumerate(rings)
        ]
        self.edges = [(p, q) for p, ring in enumerate(self.neighbors) for q in ring]
        self.normals = self._normals(normals)
        self.frames = np.stack([self._frame(p) for p in range(len(vertices))])

    def _normals(self, weighting: str) -> np.ndarray:
        total = np.zeros_like(self.vertices)
        for face in self.faces:
            corners = self.vertices[face]
            area = np.cross(corners[1] - corners[0], corners[2] - corners[0])
            for i in range(3):
                if weighting == "area":
                    total[face[i]] += area
                else:
                    u, v = corners[(i + 1) % 3] - corners[i], corners[(i + 2) % 3] - corners[i]
                    angle = np.arccos(np.dot(u, v) / np.linalg.norm(u) / np.linalg.norm(v))
                    total[face[i]] += angle * area / np.linalg.norm(area)
        return total / np.linalg.norm(total, axis=1, keepdims=True)

    def _frame(self, p: int) -> np.ndarray:
        n = self.normals[p]
        d = self.vertices[self.neighbors[p][0]] - self.vertices[p]
        e1 = d - n * np.dot(d, n)
        e1 /= np.linalg.norm(e1)
        return np.stack([e1, np.cross(n, e1), n])

    def edge_angles(self) -> np.ndarray:
        angles = []
        for p, q in self.edges:
            d = self.vertices[q] - self.vertices[p]
            angles.append(np.arctan2(self.frames[p, 1] @ d, self.frames[p, 0] @ d))
        return np.array(angles)

    def transport_angles(self) -> np.ndarray:
        """By Rodrigues' formula about the axis n_q x n_p."""
        angles = []
        for p, q in self.edges:
            axis = np.cross(self.normals[q], self.normals[p])
            sine, cosine = np.linalg.norm(axis), self.normals[q] @ self.normals[p]
            axis = axis / sine if sine > 0 else np.zeros(3)
            e = self.frames[q, 0]
            moved = cosine * e + sine * np.cross(axis, e) + (1 - cosine) * axis * np.dot(axis, e)
            angles.append(np.arctan2(moved @ self.frames[p, 1], moved @ self.frames[p, 0]))
        return np.array(angles)

    def reltan(self, power: float) -> np.ndarray:
        result = np.zeros_like(self.vertices)
        for p, ring in enumerate(self.neighbors):
            if ring:
                d = self.vertices[ring] - self.vertices[p]
                length = np.linalg.norm(d, axis=1)
                v = (d / length[:, None] ** power).sum(axis=0) * (length ** (power - 1)).sum() / len(ring) ** 1.5
                result[p] = v - self.normals[p] * np.dot(v, self.normals[p])
        return result


def angle_difference(a: np.ndarray, b: np.ndarray) -> float:
    """Largest difference modulo 2 pi."""
    return float(np.abs((a - b + np.pi) % (2 * np.pi) - np.pi).max())
