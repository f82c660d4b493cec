"""The symmetries of the paper's lemma, and what maps results back."""

from __future__ import annotations

import numpy as np
import pytest

import eman
from eman import transforms
from eman.creatures import Creature

POWERS = (-2.0, 0.5, 0.7, 1.0, 3.0)


@pytest.fixture(scope="module")
def mesh(horse: Creature) -> eman.Mesh:
    return eman.Mesh(horse)


def close(a: np.ndarray, b: np.ndarray, tolerance: float = 1e-10) -> bool:
    """Equal for each power, relative to the largest feature of that power."""
    return bool((np.abs(a - b).max(axis=(0, 2)) <= tolerance * np.abs(b).max(axis=(0, 2))).all())


@pytest.mark.parametrize("seed", range(5))
def test_similarity(mesh: eman.Mesh, seed: int) -> None:
    moved = transforms.similarity(mesh, seed=seed)
    assert np.abs(moved.rotation @ moved.rotation.T - np.eye(3)).max() < 1e-14
    assert np.linalg.det(moved.rotation) == pytest.approx(1)
    assert 1 / 8 <= moved.scale <= 8
    assert np.abs(moved.points(mesh.vertices) - moved.mesh.vertices).max() < 1e-12
    assert np.abs(moved.points_back(moved.mesh.vertices) - mesh.vertices).max() < 1e-12
    assert close(moved.vectors_back(moved.mesh.reltan(POWERS, "ambient")), mesh.reltan(POWERS, "ambient"))
    assert close(moved.mesh.reltan(POWERS), mesh.reltan(POWERS))
    assert np.abs(moved.vectors_back(moved.mesh.vertex_normals) - mesh.vertex_normals).max() < 1e-12


def test_similarity_as_given(mesh: eman.Mesh) -> None:
    rotation = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    moved = transforms.similarity(mesh, rotation, [1, 2, 3], 2)
    assert np.abs(moved.mesh.vertices - (2 * mesh.vertices[:, [1, 0, 2]] * [-1, 1, 1] + [1, 2, 3])).max() < 1e-14
    assert moved.mesh.options == mesh.options


def test_similarity_moves_custom_frames(horse: Creature) -> None:
    frames = eman.Mesh(horse, gauge="random", seed=1).frames
    custom = eman.Mesh(horse, gauge="custom", frames=frames)
    moved = transforms.similarity(custom, seed=2)
    assert np.abs(moved.vectors_back(moved.mesh.frames) - frames).max() < 1e-12
    assert close(moved.mesh.reltan(POWERS), custom.reltan(POWERS))


@pytest.mark.parametrize("seed", range(3))
def test_permutation(mesh: eman.Mesh, seed: int) -> None:
    renumbered = transforms.permutation(mesh, seed=seed)
    v, f, s = renumbered.vertex_order, renumbered.face_order, renumbered.corner_shift
    assert np.array_equal(np.sort(v), np.arange(800))
    assert np.array_equal(np.sort(f), np.arange(1596))
    assert set(s.tolist()) == {0, 1, 2}
    assert np.array_equal(renumbered.mesh.vertices, mesh.vertices[v])
    shifted = np.take_along_axis(mesh.faces[f], (np.arange(3) + s[:, None]) % 3, axis=1)
    assert np.array_equal(v[renumbered.mesh.faces], shifted)
    assert np.array_equal(renumbered.vertices_back(renumbered.mesh.vertices), mesh.vertices)
    assert np.array_equal(renumbered.faces_back(f), np.arange(1596))
    back = renumbered.vertices_back(renumbered.mesh.reltan(POWERS, "ambient"))
    assert close(back, mesh.reltan(POWERS, "ambient"))


def test_permutation_as_given(mesh: eman.Mesh) -> None:
    same = transforms.permutation(mesh, np.arange(800), np.arange(1596), np.zeros(1596, int))
    assert np.array_equal(same.mesh.faces, mesh.faces)
    assert np.array_equal(same.mesh.reltan(), mesh.reltan())


@pytest.mark.parametrize("seed", range(3))
def test_gauge(mesh: eman.Mesh, seed: int) -> None:
    changed = transforms.gauge(mesh, seed=seed)
    assert changed.mesh.options["gauge"] == "custom"
    assert np.abs(changed.angles).max() <= np.pi
    assert not np.allclose(changed.mesh.reltan(), mesh.reltan())
    assert close(changed.features_back(changed.mesh.reltan(POWERS)), mesh.reltan(POWERS))
    assert close(changed.mesh.reltan(POWERS, "ambient"), mesh.reltan(POWERS, "ambient"))
    # Angles and transport change as §3 says: theta by -angle at p, g by angle at q minus angle at p.
    offsets, q = mesh.neighbors
    p = np.repeat(np.arange(800), np.diff(offsets))
    turn = np.exp(1j * changed.angles)
    theta = np.exp(1j * (changed.mesh.edge_angles - mesh.edge_angles))
    assert np.abs(theta - 1 / turn[p]).max() < 1e-12
    transport = np.exp(1j * (changed.mesh.transport_angles - mesh.transport_angles))
    assert np.abs(transport - turn[q] / turn[p]).max() < 1e-12


def test_gauge_of_higher_orders() -> None:
    mesh = eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    changed = transforms.gauge(mesh, [0.1, 0.2, 0.3])
    z = np.exp(-2j * changed.angles)
    back = changed.features_back(np.stack([z.real, z.imag], axis=1), order=2)
    assert np.allclose(back, [[1, 0]] * 3)


def test_originals_stay(horse: Creature) -> None:
    mesh = eman.Mesh(horse)
    before = mesh.reltan()
    others = (transforms.gauge(mesh), transforms.similarity(mesh), transforms.permutation(mesh))
    assert np.array_equal(mesh.reltan(), before)
    mesh.close()
    for other in others:
        assert other.mesh.reltan().shape == (800, 2, 2)


def test_changed_mesh_can_be_updated(mesh: eman.Mesh, horse: Creature) -> None:
    moved = transforms.similarity(mesh, seed=1).mesh
    moved.update(horse.vertices)
    assert np.array_equal(moved.reltan(), mesh.reltan())


def test_random_numbers_are_seeded() -> None:
    for draw in (lambda s: transforms.random_angles(1000, s), transforms.random_rotation):
        assert np.array_equal(draw(3), draw(3))
        assert not np.array_equal(draw(3), draw(4))
    angles = transforms.random_angles(100_000, 1)
    assert angles.min() >= -np.pi
    assert angles.max() < np.pi
    assert abs(np.exp(1j * angles).mean()) < 0.01
    order = transforms.random_permutation(1000, 5)
    assert np.array_equal(np.sort(order), np.arange(1000))
    assert (order == np.arange(1000)).sum() < 20
    mean = np.mean([transforms.random_rotation(seed) for seed in range(500)], axis=0)
    assert np.abs(mean).max() < 0.12, "uniform over all rotations"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: transforms.gauge(m, np.zeros(3)), r"angles must have shape \(800,\), got \(3,\)"),
        (lambda m: transforms.gauge(m, np.full(800, np.nan)), "angle 0 is NaN"),
        (lambda m: transforms.gauge(m, seed=-1), "seed must be between"),
        (lambda m: transforms.similarity(m, np.eye(2)), r"rotation must have shape \(3, 3\), got \(2, 2\)"),
        (lambda m: transforms.similarity(m, np.diag([1, 1, -1])), "not a rotation"),
        (lambda m: transforms.similarity(m, translation=[1, 2]), r"translation must have shape \(3,\)"),
        (lambda m: transforms.similarity(m, translation=[1, 2, np.inf]), "translation"),
        (lambda m: transforms.similarity(m, scale=0), "scale"),
        (lambda m: transforms.similarity(m, scale=-1), "scale"),
        (lambda m: transforms.permutation(m, np.zeros(800, int)), "vertex_order"),
        (lambda m: transforms.permutation(m, np.arange(1, 801)), "vertex_order"),
        (lambda m: transforms.permutation(m, np.arange(3)), r"vertex_order must have shape \(800,\)"),
        (lambda m: transforms.permutation(m, face_order=np.zeros(1596, int)), "face_order"),
        (lambda m: transforms.permutation(m, corner_shift=np.full(1596, 3)), "corner_shift"),
        (lambda m: transforms.permutation(m, corner_shift=np.full(1596, -1)), "corner_shift"),
        (lambda m: transforms.permutation(m).vertices_back(np.zeros(3)), r"values must have shape \(800, ...\)"),
        (lambda m: transforms.gauge(m).features_back(np.zeros((800, 3))), r"shape \(800, ..., 2\), got \(800, 3\)"),
    ],
)
def test_refuses(mesh: eman.Mesh, call: object, message: str) -> None:
    with pytest.raises(eman.InvalidArgumentError, match=message):
        call(mesh)  # type: ignore[operator]
