"""The creature generator: its meshes are what it says, for every species."""

from __future__ import annotations

import time

import numpy as np
import pytest

from eman import creatures
from eman.creatures import PART_NAMES, SPECIES, Creature, creature


def directed_edges(faces: np.ndarray) -> np.ndarray:
    return np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]).astype(np.int64)


def angles(made: Creature) -> np.ndarray:
    """Corner angles (F, 3) in degrees."""
    corners = made.vertices[made.faces]
    result = []
    for i in range(3):
        u, v = corners[:, (i + 1) % 3] - corners[:, i], corners[:, (i + 2) % 3] - corners[:, i]
        result.append(np.degrees(np.arctan2(np.linalg.norm(np.cross(u, v), axis=1), (u * v).sum(axis=1))))
    return np.stack(result, axis=1)


def components(count: int, edges: np.ndarray) -> int:
    parent = list(range(count))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for p, q in edges.tolist():
        parent[root(p)] = root(q)
    return len({root(i) for i in range(count)})


@pytest.fixture(scope="module", params=SPECIES)
def made(request: pytest.FixtureRequest) -> Creature:
    return creature(seed=11, vertices=2000, species=request.param)


def test_shapes_and_types(made: Creature) -> None:
    assert made.vertices.dtype == np.float64
    assert made.vertices.shape == (2000, 3)
    assert made.faces.dtype == np.int32
    assert made.faces.shape == (2 * 2000 - 4, 3)
    assert made.labels.dtype == np.int32
    assert made.labels.shape == (2000,)
    assert made.part_names == PART_NAMES
    assert np.isfinite(made.vertices).all()


def test_closed_manifold_sphere(made: Creature) -> None:
    edges = directed_edges(made.faces)
    keys = edges[:, 0] * 2000 + edges[:, 1]
    assert len(np.unique(keys)) == len(keys), "an edge is used twice in one direction"
    assert np.array_equal(np.sort(keys), np.sort(edges[:, 1] * 2000 + edges[:, 0])), "an edge has one side only"
    assert 2000 - len(edges) // 2 + len(made.faces) == 2
    assert components(2000, edges) == 1
    # One fan around every vertex: as many faces as distinct neighbours, and walking around visits all of them.
    following: dict[int, dict[int, int]] = {}
    for a, b, c in made.faces.tolist():
        for p, q, r in ((a, b, c), (b, c, a), (c, a, b)):
            following.setdefault(p, {})[q] = r
    assert len(following) == 2000
    for ring in following.values():
        start = here = next(iter(ring))
        for _ in range(len(ring)):
            here = ring[here]
        assert here == start
        assert len(set(ring.values())) == len(ring)


def test_oriented_outward(made: Creature) -> None:
    a, b, c = (made.vertices[made.faces[:, i]] for i in range(3))
    assert np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6 > 0.05


def test_triangles_are_irregular_but_no_slivers(made: Creature) -> None:
    smallest = angles(made).min(axis=1)
    assert smallest.min() > 5
    assert np.percentile(smallest, 1) > 20
    assert smallest.mean() < 55, "as regular as this, the triangulation tests nothing"
    valence = np.bincount(made.faces.ravel())
    assert valence.min() >= 4
    assert valence.max() <= 9
    assert np.bincount(valence)[4:9].min() >= 10, "valences 4 to 8 all occur"
    assert (valence == 6).mean() < 0.6


def test_every_part_is_labelled_in_one_piece(made: Creature) -> None:
    assert np.array_equal(np.unique(made.labels), np.arange(len(PART_NAMES)))
    assert np.bincount(made.labels).min() >= 8
    edges = directed_edges(made.faces)
    for part in range(len(PART_NAMES)):
        inside = np.flatnonzero(made.labels == part)
        same = edges[(made.labels[edges] == part).all(axis=1)]
        compact = np.searchsorted(inside, same)
        # A stray vertex at the seam between two parts is allowed, a second arm is not.
        lone = len(inside) - len(np.unique(compact))
        assert components(len(inside), compact) - lone <= 2
        assert lone <= 2


def test_left_is_left(made: Creature) -> None:
    for pair in ("front_upper", "hind_upper"):
        left, right = (
            made.vertices[made.labels == PART_NAMES.index(f"{side}_{pair}"), 1].mean() for side in ("left", "right")
        )
        assert left > right + 0.05


def test_deterministic_and_seeded() -> None:
    first, again, other = creature(5, 800), creature(5, 800), creature(6, 800)
    assert np.array_equal(first.vertices, again.vertices)
    assert np.array_equal(first.faces, again.faces)
    assert np.array_equal(first.labels, again.labels)
    assert not np.array_equal(first.faces, other.faces)


def test_mesh_seed_changes_the_triangulation_only() -> None:
    plain, other = creature(4, 1800, "horse"), creature(4, 1800, "horse", mesh_seed=99)
    assert not np.array_equal(plain.faces, other.faces)
    # The same surface: each vertex of one is within an edge length of the other, volumes and boxes agree.
    assert np.allclose(plain.vertices.min(axis=0), other.vertices.min(axis=0), atol=0.02)
    assert np.allclose(plain.vertices.max(axis=0), other.vertices.max(axis=0), atol=0.02)
    nearest = np.array([np.linalg.norm(other.vertices - p, axis=1).min() for p in plain.vertices[::50]])
    assert nearest.max() < 0.08


def test_pose_and_variation_move_it() -> None:
    still = creature(8, 800, "monkey", pose=0, variation=0)
    same = creature(9, 800, "monkey", pose=0, variation=0, mesh_seed=8)
    posed = creature(8, 800, "monkey", pose=1, variation=0)
    assert np.allclose(still.vertices.max(axis=0), same.vertices.max(axis=0), atol=1e-9)
    assert not np.allclose(still.vertices.max(axis=0), posed.vertices.max(axis=0), atol=0.02)


@pytest.mark.parametrize("count", [800, 5000, 12000])
def test_vertex_count(count: int) -> None:
    assert len(creature(2, count).vertices) == pytest.approx(count, rel=0.15)


def test_many_seeds_succeed() -> None:
    """Self-contact is found and drawn again: six individuals, all of them spheres of the wanted size."""
    for seed in range(100, 106):
        made = creature(seed, 800)
        assert len(made.faces) == 2 * len(made.vertices) - 4
        assert len(made.vertices) == 800


def bones(*joints: tuple[float, float, float]) -> list[creatures._Bone]:
    points = [np.array(joint) for joint in joints]
    side = np.array([0.0, 0.0, 1.0])
    return [creatures._Bone(a, b, 0.1, 0.1, side, 1.0, 0) for a, b in zip(points[:-1], points[1:])]


def test_handles_and_separate_pieces_are_refused() -> None:
    ring = bones((0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 0))
    apart = bones((0, 0, 0), (1, 0, 0)) + bones((0, 1, 0), (1, 1, 0))
    rng = np.random.default_rng(0)
    assert creatures._mesh(creatures._Shape(ring), 500, rng) is None
    assert creatures._mesh(creatures._Shape(apart), 500, rng) is None
    assert creatures._mesh(creatures._Shape(ring[:3]), 500, rng) is not None


def test_a_pose_with_self_contact_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    results: list[bool] = []
    real = creatures._mesh

    def watched(*arguments: object) -> object:
        mesh = real(*arguments)  # type: ignore[arg-type]
        results.append(mesh is not None)
        return mesh

    monkeypatch.setattr(creatures, "_mesh", watched)
    creature(7, 800)
    assert results == [False, True], "this elephant's trunk touches its leg in the first pose"


def test_surface_is_where_the_distance_vanishes() -> None:
    """Gradients are those of finite differences, and projected points lie on the surface."""
    rng = np.random.default_rng(1)
    shape = creatures._Shape(
        creatures._skeleton(creatures._individual(creatures._SPECIES["elephant"], rng, 1.0), rng, 1.0)
    )
    low, high = shape.bounds()
    points = rng.uniform(low, high, (2000, 3))
    value, gradient, _ = shape.sample(points)
    assert np.linalg.norm(gradient, axis=1).max() <= 1 + 1e-9, "never steeper than 1"
    step = 1e-6
    differences = [(shape.value(points + step * e) - shape.value(points - step * e)) / (2 * step) for e in np.eye(3)]
    assert np.percentile(np.abs(np.stack(differences, axis=1) - gradient).max(axis=1), 99) < 1e-5
    near = points[np.abs(value) < 0.03]
    assert len(near) > 50
    assert np.percentile(np.abs(shape.value(shape.project(near, 4))), 99) < 1e-6


def test_takes_seconds_not_minutes() -> None:
    start = time.perf_counter()
    creature(0, 8000)
    assert time.perf_counter() - start < 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"species": "unicorn"}, "unknown species 'unicorn'"),
        ({"vertices": 10}, "at least 800"),
        ({"seed": -1}, "seed must not be negative"),
        ({"pose": -0.5}, "pose must not be negative"),
        ({"variation": float("nan")}, "variation must not be negative"),
        ({"mesh_seed": -3}, "mesh_seed must not be negative"),
    ],
)
def test_refuses(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        creature(**arguments)  # type: ignore[arg-type]


def test_repr() -> None:
    assert repr(creature(1, 800, "lizard")) == "Creature('lizard', seed=1, vertices=800, faces=1596)"
