"""Meshes that nobody draws: results are finite, and the laws of symmetry hold within a stated bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

import numpy as np
import pytest

import eman
from eman.evaluation import equivariance_gaps

Arrays = tuple[np.ndarray, np.ndarray]


def grid(n: int, surface: Callable[[np.ndarray, np.ndarray], list[np.ndarray]]) -> Arrays:
    """A surface over the unit square, n by n vertices."""
    x, y = (a.ravel() for a in np.meshgrid(*2 * [np.linspace(0, 1, n)], indexing="ij"))
    corner = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).ravel()
    halves = [(corner, corner + n, corner + 1), (corner + 1, corner + n, corner + n + 1)]
    return np.stack(surface(x, y), 1), np.concatenate([np.stack(h, 1) for h in halves])


def horse(scale: float = 1) -> Arrays:
    body = eman.creatures.creature(species="horse")
    return body.vertices * scale, body.faces


def unwelded() -> Arrays:
    vertices, faces = horse()
    return vertices[faces].reshape(-1, 3), np.arange(faces.size).reshape(-1, 3)


def twice() -> Arrays:
    vertices, faces = horse()
    return np.concatenate([vertices, vertices]), np.concatenate([faces, faces + len(vertices)])


def doubled() -> Arrays:
    """Each face with another of the same corners and the opposite normal."""
    vertices, faces = grid(20, lambda x, y: [x, y, 0.1 * x * y + 0.2 * x**2])
    return vertices, np.concatenate([faces, faces[:, ::-1]])


def wheel(spokes: int) -> Arrays:
    """One vertex in the middle of all faces."""
    t = 2 * np.pi * np.arange(spokes) / spokes
    rim = np.stack([np.cos(t) * (1 + 0.1 * np.sin(5 * t)), np.sin(t), 0.1 * np.sin(3 * t)], 1)
    ring = 1 + np.arange(spokes)
    return np.concatenate([[[0, 0, 0.3]], rim]), np.stack([np.zeros_like(ring), ring, np.roll(ring, -1)], 1)


def dust(count: int) -> Arrays:
    """Small triangles, each a component."""
    random = np.random.default_rng(0)
    triangles = random.normal(size=(count, 1, 3)) + 0.01 * random.normal(size=(count, 3, 3))
    return triangles.reshape(-1, 3), np.arange(3 * count).reshape(-1, 3)


@dataclass(frozen=True)
class Case:
    """A mesh, and how far from their laws features (relative) and networks (their gap) may be on it.

    Where the coordinates define no normals there is none.
    """

    make: Callable[[], Arrays]
    features: float = 1e-11
    network: float = 1e-9
    surface: float = 1e-9


CASES = {
    "coordinates of 1e30": Case(lambda: horse(1e30)),
    "coordinates of 1e-30": Case(lambda: horse(1e-30)),
    "coordinates of 1e299": Case(lambda: horse(1e298)),
    "coordinates of 1e-300": Case(lambda: horse(1e-300)),
    # Rounding of the coordinates is 1e-8 of the width, and this the error of the normals; points within 4e-7 of
    # the body's size are one to the sampling.
    "needles of 1e8": Case(
        lambda: grid(16, lambda x, y: [x, 1e-8 * (y + 0.3 * np.sin(5 * x)), 1e-8 * np.sin(3 * x + y)]), 1e-6, 1e-3, 1e-2
    ),
    "every face by itself": Case(unwelded),
    "every vertex twice": Case(twice),
    # Where faces cancel out a vertex has no normal, and the sign of its substitute follows the numbering.  Samples have
    # that of their face.
    "every face doubled": Case(doubled, network=np.inf),
    "folded flat": Case(lambda: grid(21, lambda x, y: [abs(x - 0.5), y + 0.2 * (x - 0.5) ** 2, 0 * x]), network=np.inf),
    "all in a plane": Case(lambda: grid(20, lambda x, y: [x + 0.1 * np.sin(4 * y), y + 0.1 * x**2, 0 * x])),
    # No face has a normal, so nothing tells how the samples of the line are turned about it.
    "all on a line": Case(
        lambda: grid(8, lambda x, y: [x + 3.7 * y, 2 * (x + 3.7 * y), -(x + 3.7 * y)]), surface=np.inf
    ),
    "all at one place": Case(lambda: (np.ones((4, 3)), np.array([[0, 1, 2], [1, 2, 3]]))),
    # Features of 46 make exponents of the attention in the thousands, whose rounding in float32 is what remains.
    "a vertex of 100,000 neighbours": Case(lambda: wheel(100_000), network=1e-3),
    "a million components": Case(lambda: dust(1_000_000)),
}


@pytest.fixture(scope="module", params=CASES.items(), ids=lambda case: case[0])
def case(request: pytest.FixtureRequest) -> tuple[eman.Mesh, Case]:
    _, given = request.param
    return eman.Mesh(*given.make()), given


POWERS = (0.5, 0.7)


def test_features(case: tuple[eman.Mesh, Case]) -> None:
    mesh, given = case
    assert str(mesh.report())
    tangent, ambient = mesh.reltan(POWERS), mesh.reltan(POWERS, "ambient")
    assert np.isfinite(tangent).all() and np.isfinite(mesh.get_features()).all()
    moved = eman.transforms.similarity(mesh, seed=1)
    size = max(np.abs(ambient).max(), np.finfo(float).tiny)
    assert np.abs(moved.mesh.reltan(POWERS) - tangent).max() <= given.features * size
    assert np.abs(moved.mesh.reltan(POWERS, "ambient") - ambient @ moved.rotation.T).max() <= given.features * size
    changed = eman.transforms.gauge(mesh, seed=1)
    assert np.abs(changed.mesh.reltan(POWERS, "ambient") - ambient).max() <= given.features * size


def test_networks(case: tuple[eman.Mesh, Case]) -> None:
    mesh, given = case
    small = eman.Model("default", classes=4, hidden=8, width=4, blocks=1)
    surface = eman.Model("surface", classes=4, width=8)
    for model, bound in ((small, given.network), (surface, given.surface)):
        assert np.isfinite(model.logits(mesh)).all()
        if mesh.vertex_count > 200_000:  # the laws do not depend on the size, their price does
            continue
        gaps = equivariance_gaps(model, mesh)
        assert np.isfinite(list(gaps.values())).all(), gaps
        assert max(gaps.values()) <= bound, gaps


def test_coordinates_beyond_range() -> None:
    with pytest.raises(eman.InvalidMeshError, match=r"vertex 0: coordinate . is -?\d\.\d+e\+301, beyond 1e\+300"):
        eman.Mesh(*horse(1e301))
