"""What a mesh computes and how its parts fit together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import eman
from eman.creatures import Creature

from .conftest import TETRAHEDRON, Reference, angle_difference


@pytest.fixture(scope="module")
def mesh(horse: Creature) -> eman.Mesh:
    return eman.Mesh(horse)


@pytest.fixture(scope="module")
def reference(horse: Creature) -> Reference:
    return Reference(horse.vertices, horse.faces)


def test_sizes_shapes_and_types(mesh: eman.Mesh, horse: Creature) -> None:
    v, f, e = mesh.vertex_count, mesh.face_count, mesh.edge_count
    assert (v, f, e) == (800, 1596, 4788)
    offsets, indices = mesh.neighbors
    expected = {
        "vertices": (mesh.vertices, (v, 3), np.float64),
        "faces": (mesh.faces, (f, 3), np.int32),
        "vertex_normals": (mesh.vertex_normals, (v, 3), np.float64),
        "frames": (mesh.frames, (v, 3, 3), np.float64),
        "offsets": (offsets, (v + 1,), np.int64),
        "indices": (indices, (e,), np.int32),
        "reverse_edges": (mesh.reverse_edges, (e,), np.int32),
        "edge_angles": (mesh.edge_angles, (e,), np.float64),
        "transport_angles": (mesh.transport_angles, (e,), np.float64),
        "components": (mesh.components, (v,), np.int32),
        "reltan": (mesh.reltan(), (v, 2, 2), np.float64),
        "reltan_ambient": (mesh.reltan((0.5, 1, 2), space="ambient"), (v, 3, 3), np.float64),
        "reltan_one": (mesh.reltan(0.7), (v, 1, 2), np.float64),
        "get": (mesh.get_features(), (v, 3), np.float64),
    }
    for name, (array, shape, dtype) in expected.items():
        assert array.shape == shape, name
        assert array.dtype == dtype, name
        assert array.flags.c_contiguous, name
        assert array.flags.writeable, name
    assert np.array_equal(mesh.vertices, horse.vertices)
    assert np.array_equal(mesh.faces, horse.faces)
    assert repr(mesh) == "Mesh(vertices=800, faces=1596, edges=4788)"


def test_against_the_formulas(mesh: eman.Mesh, reference: Reference) -> None:
    offsets, indices = mesh.neighbors
    assert [indices[a:b].tolist() for a, b in zip(offsets[:-1], offsets[1:])] == reference.neighbors
    assert np.abs(mesh.vertex_normals - reference.normals).max() < 1e-12
    assert np.abs(mesh.frames - reference.frames).max() < 1e-11
    assert angle_difference(mesh.edge_angles, reference.edge_angles()) < 1e-11
    assert angle_difference(mesh.transport_angles, reference.transport_angles()) < 1e-7
    for i, power in enumerate((0.5, 0.7)):
        assert np.abs(mesh.reltan(space="ambient")[:, i] - reference.reltan(power)).max() < 1e-12


def test_reverse_edges(mesh: eman.Mesh) -> None:
    offsets, q = mesh.neighbors
    p = np.repeat(np.arange(mesh.vertex_count), np.diff(offsets))
    reverse = mesh.reverse_edges
    assert np.array_equal(p[reverse], q)
    assert np.array_equal(q[reverse], p)


def test_tangent_and_ambient_reltan_are_the_same_vectors(mesh: eman.Mesh) -> None:
    tangent, ambient, frames = mesh.reltan((0.3, 2.0)), mesh.reltan((0.3, 2.0), "ambient"), mesh.frames
    assert np.abs(np.einsum("vpk,vkx->vpx", tangent, frames[:, :2]) - ambient).max() < 1e-12


def test_get_features_are_positions_in_the_frames(mesh: eman.Mesh) -> None:
    positions = np.einsum("vkx,vx->vk", mesh.frames, mesh.vertices)
    assert np.abs(mesh.get_features() - positions[:, [2, 0, 1]]).max() < 1e-12


def test_reltan_factor(mesh: eman.Mesh) -> None:
    degree = np.diff(mesh.neighbors[0])[:, None, None]
    plain = mesh.reltan(degree_power=0.0)
    assert np.allclose(mesh.reltan(), plain / degree**1.5, rtol=1e-12, atol=0)
    assert np.allclose(mesh.reltan(degree_power=2.0, constant=4.0), plain / (4.0 * degree**2), rtol=1e-12, atol=0)


def test_random_gauge_turns_the_first_axis(horse: Creature, mesh: eman.Mesh) -> None:
    one, again, other = (eman.Mesh(horse, gauge="random", seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.frames, again.frames)
    assert not np.allclose(one.frames, other.frames)
    assert np.abs(one.frames[:, 2] - mesh.frames[:, 2]).max() < 1e-12
    assert np.abs(np.einsum("vij,vkj->vik", one.frames, one.frames) - np.eye(3)).max() < 1e-12
    assert (np.linalg.det(one.frames) > 0.999).all()
    cosine = np.einsum("vi,vi->v", one.frames[:, 0], mesh.frames[:, 0])
    assert np.abs(cosine.mean()) < 0.15, "uniform angles"
    assert one.options == {"gauge": "random", "seed": 1, "normals": "area", "degenerate": "error"}


def test_custom_gauge_is_taken_as_it_is(horse: Creature, mesh: eman.Mesh) -> None:
    frames = eman.Mesh(horse, gauge="random", seed=5).frames
    custom = eman.Mesh(horse, gauge="custom", frames=frames)
    assert np.abs(custom.frames - frames).max() < 1e-15
    assert np.abs(custom.reltan(space="ambient") - mesh.reltan(space="ambient")).max() < 1e-12


def test_custom_frames_that_are_none(horse: Creature, mesh: eman.Mesh) -> None:
    frames = mesh.frames
    frames[17, 0] *= -1  # left-handed
    with pytest.raises(eman.InvalidMeshError, match="vertex 17"):
        eman.Mesh(horse, gauge="custom", frames=frames)


def test_components() -> None:
    vertices, faces = TETRAHEDRON
    two = eman.Mesh(np.concatenate([vertices, vertices + 5, [[9, 9, 9]]]), np.concatenate([faces, faces + 4]))
    assert two.components.tolist() == [0] * 4 + [1] * 4 + [2]


class TestUpdate:
    def test_is_a_new_mesh_of_the_same_faces(self, horse: Creature) -> None:
        moved = horse.vertices * [1.0, 2.0, 0.5] + np.sin(horse.vertices[:, ::-1])
        mesh = eman.Mesh(horse)
        mesh.update(moved)
        fresh = eman.Mesh(moved, horse.faces)
        assert np.array_equal(mesh.vertices, moved)
        for name in ("vertex_normals", "frames", "edge_angles", "transport_angles"):
            assert np.array_equal(getattr(mesh, name), getattr(fresh, name)), name
        assert np.array_equal(mesh.reltan(), fresh.reltan())

    def test_edges_appear_where_vertices_part(self) -> None:
        vertices, faces = TETRAHEDRON
        together = vertices.copy()
        together[1] = together[0]
        mesh = eman.Mesh(together, faces)
        assert mesh.edge_count == 10
        mesh.update(vertices)
        assert mesh.edge_count == 12
        assert mesh.edge_angles.shape == (12,)

    def test_failure_leaves_it_as_it_was(self, horse: Creature) -> None:
        mesh = eman.Mesh(horse)
        before = mesh.reltan()
        broken = horse.vertices.copy()
        broken[123, 1] = np.nan
        with pytest.raises(eman.InvalidMeshError, match="vertex 123"):
            mesh.update(broken)
        with pytest.raises(eman.InvalidArgumentError, match=r"\(800, 3\), got \(799, 3\)"):
            mesh.update(horse.vertices[1:])
        assert np.array_equal(mesh.vertices, horse.vertices)
        assert np.array_equal(mesh.reltan(), before)

    def test_custom_gauge_needs_frames(self, horse: Creature) -> None:
        frames = eman.Mesh(horse).frames
        mesh = eman.Mesh(horse, gauge="custom", frames=frames)
        with pytest.raises(eman.InvalidArgumentError, match="needs new frames"):
            mesh.update(horse.vertices)
        turned = frames[:, [1, 0, 2]] * np.array([1, -1, 1])[:, None]
        mesh.update(horse.vertices, frames=turned)
        assert np.abs(mesh.frames - turned).max() < 1e-15
        with pytest.raises(eman.InvalidArgumentError, match="gauge is 'first_neighbor'"):
            eman.Mesh(horse).update(horse.vertices, frames=frames)


class TestSmallestMeshes:
    def test_nothing(self) -> None:
        mesh = eman.Mesh(np.zeros((0, 3)), np.zeros((0, 3), np.int32))
        assert repr(mesh) == "Mesh(vertices=0, faces=0, edges=0)"
        assert mesh.reltan().shape == (0, 2, 2)
        assert mesh.neighbors[0].tolist() == [0]
        assert mesh.edge_angles.shape == (0,)
        mesh.update(np.zeros((0, 3)))
        assert str(mesh.report()).startswith("0 vertices, 0 faces")

    def test_empty_lists(self) -> None:
        assert eman.Mesh([], []).vertex_count == 0
        assert eman.Mesh([[1.0, 2.0, 3.0]], []).reltan().tolist() == [[[0, 0], [0, 0]]]

    def test_isolated_vertices_have_no_features(self) -> None:
        vertices, faces = TETRAHEDRON
        mesh = eman.Mesh(np.concatenate([vertices, [[7, 7, 7]]]), faces)
        assert (mesh.reltan()[4] == 0).all()
        assert (mesh.get_features()[4] == 0).all()
        assert np.isfinite(mesh.frames).all()

    def test_fan_of_ten_thousand(self) -> None:
        angle = np.linspace(0, 2 * np.pi, 10_000, endpoint=False)
        rim = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
        around = np.arange(1, 10_001)
        faces = np.stack([np.zeros(10_000, int), around, np.roll(around, -1)], axis=1)
        mesh = eman.Mesh(np.concatenate([[[0, 0, 0]], rim]), faces)
        assert np.diff(mesh.neighbors[0])[0] == 10_000
        assert np.abs(mesh.reltan()[0]).max() < 1e-6
        assert angle_difference(mesh.edge_angles[:10_000], angle) < 1e-12


def test_far_from_the_origin(horse: Creature) -> None:
    """The symmetry that float64 positions allow, a million diameters away."""
    diameter = np.linalg.norm(np.ptp(horse.vertices, axis=0))
    near, far = eman.Mesh(horse), eman.Mesh(horse.vertices + 1e6 * diameter, horse.faces)
    before = near.reltan(space="ambient")
    assert np.abs(far.reltan(space="ambient") - before).max() <= 1e-6 * np.abs(before).max()


@pytest.mark.parametrize("factor", [1e-150, 1e-30, 3.7, 1e30, 1e150])
def test_any_unit_of_length(horse: Creature, factor: float) -> None:
    before, after = eman.Mesh(horse).reltan(), eman.Mesh(horse.vertices * factor, horse.faces).reltan()
    assert np.abs(after - before).max() <= 1e-10 * np.abs(before).max()


def test_a_real_body(data_folder: Path) -> None:
    with np.load(data_folder / "humans.npz") as stored:
        vertices, faces = stored["vertices"][3], stored["faces"]
    mesh = eman.Mesh(vertices, faces)
    report = mesh.report()
    assert (mesh.vertex_count, mesh.face_count, report.euler_characteristic) == (6890, 13776, 2)
    assert report.closed
    assert report.manifold
    assert report.oriented
    moved = eman.transforms.similarity(mesh, seed=4)
    before = mesh.reltan(space="ambient")
    back = moved.vectors_back(moved.mesh.reltan(space="ambient"))
    assert np.abs(back - before).max() <= 1e-10 * np.abs(before).max()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_same_bits_for_any_number_of_threads(threads: int) -> None:
    made = eman.creatures.creature(1, 4000, "lizard")
    one = eman.Mesh(made, context=eman.Context(threads=1))
    many = eman.Mesh(made, context=eman.Context(threads=threads))
    assert np.array_equal(one.reltan((0.5, -2, 3)), many.reltan((0.5, -2, 3)))
    assert np.array_equal(one.transport_angles, many.transport_angles)
