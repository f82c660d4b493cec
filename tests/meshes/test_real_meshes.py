"""The paper's Lemma (section 4) and the mesh doctor on real meshes, through the whole library."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import eman
from reference import doctor

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
FILES = ("spot.obj", "koala.obj", "boot.obj", "human_woman.obj", "fox.glb", "knight_nonmanifold.glb")
BODIES = (0, 37, 99)


@pytest.fixture(scope="module", params=[*FILES, *BODIES], ids=str)
def shape(request: pytest.FixtureRequest) -> eman.Mesh:
    if not DATA.exists():
        assert os.environ.get("CI") != "true", f"{DATA} is missing"
        pytest.skip(f"{DATA} is missing")
    if isinstance(request.param, str):
        return eman.Mesh.from_file(DATA / "meshes" / request.param, degenerate="drop", weld=True)
    with np.load(DATA / "humans.npz") as bodies:
        return eman.Mesh(bodies["vertices"][request.param].astype(np.float64), bodies["faces"])


def difference(got: np.ndarray, want: np.ndarray) -> float:
    """Largest difference relative to the largest feature of each power."""
    return float((np.abs(got - want).max(axis=(0, 2)) / np.abs(want).max(axis=(0, 2))).max())


POWERS = (0.0, 0.5, 0.7, 1.0)


def test_rotation_translation_and_scale(shape: eman.Mesh) -> None:
    tangent, ambient = shape.reltan(POWERS), shape.reltan(POWERS, "ambient")
    for seed in range(3):
        moved = eman.transforms.similarity(shape, seed=seed)
        assert difference(moved.mesh.reltan(POWERS), tangent) <= 1e-10
        assert difference(moved.mesh.reltan(POWERS, "ambient"), ambient @ moved.rotation.T) <= 1e-10


def test_translation_by_a_million_diameters(shape: eman.Mesh) -> None:
    diameter = np.linalg.norm(np.ptp(shape.vertices, axis=0))
    far = eman.Mesh(shape.vertices + 1e6 * diameter * np.array([0.6, -0.64, 0.48]), shape.faces)
    assert difference(far.reltan((0.5, 0.7), "ambient"), shape.reltan((0.5, 0.7), "ambient")) <= 1e-6


def test_gauge_change(shape: eman.Mesh) -> None:
    changed = eman.transforms.gauge(shape, seed=1)
    assert difference(changed.mesh.reltan(POWERS, "ambient"), shape.reltan(POWERS, "ambient")) <= 1e-12


def test_the_doctor_agrees_with_plain_numpy(shape: eman.Mesh) -> None:
    report = shape.report()
    findings = doctor.report(shape.vertices, shape.faces)
    for name in (
        "isolated_vertices",
        "coincident_vertices",
        "non_manifold_vertices",
        "boundary_edges",
        "non_manifold_edges",
        "inconsistent_edges",
        "duplicate_faces",
    ):
        assert report[name].tolist() == [list(x) if isinstance(x, tuple) else x for x in findings.get(name, [])], name
    assert report.component_count == doctor.component_count(shape.faces)
