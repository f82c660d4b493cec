"""Against the reference vectors of the authors' code (angle-weighted normals, first-neighbour frames of its own)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import eman

from .conftest import Reference, angle_difference

MESHES = (
    "balla", "featuretype", "fuze", "gridopen_a", "icosphere3", "quadknot", "round", "spot", "spot6890", "spotcontrol"
)  # fmt: skip


class Golden:
    """One file, with our mesh in its frames, and where its edges are among ours."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as stored:
            self.arrays = {name: stored[name] for name in stored.files}
        self.mesh = eman.Mesh(self["V"], self["F"], gauge="custom", frames=self["frame"], normals="angle")
        offsets, indices = self.mesh.neighbors
        count = len(self["V"])
        keys = np.repeat(np.arange(count), np.diff(offsets)) * count + indices
        p, q = self["edge_index"].astype(np.int64)
        self.place = np.searchsorted(keys, p * count + q)
        assert np.array_equal(keys[self.place], p * count + q)
        # The authors' code has an edge of an open boundary in one direction only: leave out its vertices.
        self.whole = np.bincount(p, minlength=count) == np.diff(offsets)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[name]


@pytest.fixture(scope="module", params=MESHES)
def golden(request: pytest.FixtureRequest, golden_folder: Path) -> Golden:
    return Golden(golden_folder / f"mesh_{request.param}.npz")


def test_all_files_are_used(golden_folder: Path) -> None:
    assert {path.stem[5:] for path in golden_folder.glob("mesh_*.npz")} == set(MESHES)


def test_normals(golden: Golden) -> None:
    mesh = eman.Mesh(golden["V"], golden["F"], normals="angle")
    assert np.abs(mesh.vertex_normals - golden["normal"]).max() <= 1e-12


def test_angles_and_transport(golden: Golden) -> None:
    assert angle_difference(golden.mesh.edge_angles[golden.place], golden["edge_coords"][:, 1]) <= 1e-12
    assert angle_difference(golden.mesh.transport_angles[golden.place], golden["connection"]) <= 1e-12


def test_frames_come_from_the_lowest_neighbour(golden: Golden) -> None:
    mesh = eman.Mesh(golden["V"], golden["F"], normals="angle")
    ours, theirs = mesh.frames, golden["frame"]
    assert np.abs(ours[:, 2] - theirs[:, 2]).max() <= 1e-12
    offsets, indices = mesh.neighbors
    p = np.arange(len(ours))
    d = golden["V"][indices[offsets[p]]] - golden["V"]
    assert np.abs(np.einsum("ij,ij->i", ours[:, 1], d)).max() <= 1e-12 * np.abs(d).max()
    assert np.einsum("ij,ij->i", ours[:, 0], d).min() > 0


def test_reltan(golden: Golden) -> None:
    powers = golden["powers"]
    for features, stored in (
        (golden.mesh.reltan(powers, "ambient"), golden["reltan3d"]),
        (golden.mesh.reltan(powers), golden["reltan_tan"]),
    ):
        theirs = stored.transpose(1, 0, 2)
        assert features.shape == theirs.shape
        largest = np.abs(theirs).max(axis=(0, 2))[None, :, None]
        assert (np.abs(features - theirs) / largest)[golden.whole].max() <= 1e-10


def test_get(golden: Golden) -> None:
    features = golden.mesh.get_features()[:, [1, 2, 0]]
    assert np.abs(features - golden["get"]).max() <= 1e-10 * np.abs(golden["get"]).max()


@pytest.mark.parametrize("name", ["spotcontrol", "fuze", "gridopen_a"])
@pytest.mark.parametrize("normals", ["area", "angle"])
def test_plain_reference(golden_folder: Path, name: str, normals: str) -> None:
    """Everything again from the paper's formulas, both normals and open boundaries included."""
    with np.load(golden_folder / f"mesh_{name}.npz") as stored:
        vertices, faces = stored["V"], stored["F"]
    reference = Reference(vertices, faces, normals)
    mesh = eman.Mesh(vertices, faces, normals=normals)
    offsets, indices = mesh.neighbors
    assert [indices[a:b].tolist() for a, b in zip(offsets[:-1], offsets[1:])] == reference.neighbors
    assert np.abs(mesh.vertex_normals - reference.normals).max() <= 1e-12
    assert np.abs(mesh.frames - reference.frames).max() <= 1e-11
    assert angle_difference(mesh.edge_angles, reference.edge_angles()) <= 1e-11
    assert angle_difference(mesh.transport_angles, reference.transport_angles()) <= 1e-7  # Rodrigues near sine 0
    for power in (-2.0, 0.5, 0.7, 1.0, 3.0):
        expected = reference.reltan(power)
        assert np.abs(mesh.reltan(power, "ambient")[:, 0] - expected).max() <= 1e-10 * np.abs(expected).max()
