"""Pictures: what is drawn is looked for in the pixels."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

import eman
from eman import _attention, _colours, _scene
from eman.creatures import Creature, creature
from eman.plot import (
    RenderingError,
    export_labels,
    plot_attention,
    plot_labels,
    plot_scalars,
    plot_tangents,
    register_polyscope,
)

from .conftest import TETRAHEDRON


@pytest.fixture(scope="module")
def lizard() -> Creature:
    return creature(3, 800, "lizard")


@pytest.fixture(params=["matplotlib", "pyvista"])
def renderer(request: pytest.FixtureRequest, lizard: Creature, tmp_path: Path) -> str:
    if request.param == "pyvista":
        pytest.importorskip("pyvista", reason="pyvista is not installed")
    return str(request.param)


def read(path: Path) -> np.ndarray:
    from matplotlib.image import imread

    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    return np.asarray(imread(path))[..., :3]


def inked(image: np.ndarray) -> np.ndarray:
    """Where the picture of the mesh differs from the paper, without title and colour bar."""
    area = image[int(0.1 * len(image)) :, : int(0.84 * image.shape[1])]
    return np.abs(area - area[-1, 0]).max(axis=-1) > 0.1


def test_scalars_are_seen(lizard: Creature, renderer: str, tmp_path: Path) -> None:
    target = plot_scalars(
        lizard,
        lizard.vertices[:, 0],
        tmp_path / "a.png",
        label="x",
        title="position",
        size=(640, 400),
        renderer=renderer,
        colormap="coolwarm",
    )
    image = read(target)
    assert image.shape == (400, 640, 3)
    shown = inked(image)
    assert 0.1 < shown.mean() < 0.9
    columns = np.flatnonzero(shown.any(axis=0))
    area = image[40:, :537]
    left = area[:, columns[0] : columns[len(columns) // 4]][shown[:, columns[0] : columns[len(columns) // 4]]]
    right = area[:, columns[-len(columns) // 4] : columns[-1]][shown[:, columns[-len(columns) // 4] : columns[-1]]]
    assert left[:, 2].mean() > left[:, 0].mean() + 0.1, "the tail is blue"
    assert right[:, 0].mean() > right[:, 2].mean() + 0.1, "the head is red"


def test_arrows_are_seen(lizard: Creature, renderer: str, tmp_path: Path) -> None:
    forward = np.tile([1.0, 0.0, 0.0], (len(lizard.vertices), 1))
    options = {"size": (640, 400), "renderer": renderer, "values": np.zeros(len(forward))}
    bare = read(plot_tangents(lizard, forward, tmp_path / "bare.png", arrows=0, **options))
    drawn = read(plot_tangents(lizard, forward, tmp_path / "arrows.png", arrows=150, **options))
    white = (drawn.min(axis=-1) > 0.95) & (bare.min(axis=-1) < 0.8)
    assert white.mean() > 0.002


def test_arrows_point_along_the_vectors_and_grow_with_them(lizard: Creature) -> None:
    rng = np.random.default_rng(0)
    normals = _scene.vertex_normals(lizard.vertices, lizard.faces)
    vectors = np.cross(normals, rng.normal(size=normals.shape)) * rng.lognormal(0, 2, (len(normals), 1))
    eye = np.array([0.0, -1.0, 0.0])
    rims, fillings = np.split(_scene.arrows_on(lizard.vertices, lizard.faces, eye, vectors, 300), 2)
    assert len(fillings) > 30
    tip = _scene._ARROW[:, 0].argmax()
    along = fillings[:, tip] - 0.5 * (fillings[:, 0] + fillings[:, -1])
    tail = 0.5 * (rims[:, 0] + rims[:, -1])
    site = np.linalg.norm(lizard.vertices[None] - tail[:, None], axis=-1).argmin(axis=1)
    length = np.linalg.norm(along, axis=1)
    cosine = np.einsum("ij,ij->i", along, vectors[site]) / length / np.linalg.norm(vectors[site], axis=1)
    assert np.median(cosine) > 0.999
    assert (cosine > 0.99).mean() > 0.9
    order = np.argsort(np.linalg.norm(vectors[site], axis=1))
    assert length[order[-10:]].min() > 1.5 * length[order[:10]].max()


def test_zero_vectors_have_no_arrow(lizard: Creature, tmp_path: Path) -> None:
    options = {"size": (320, 200), "renderer": "matplotlib"}
    zero = np.zeros((len(lizard.vertices), 3))
    with_none = read(plot_tangents(lizard, zero, tmp_path / "zero.png", **options))
    without = read(plot_tangents(lizard, zero, tmp_path / "none.png", arrows=0, **options))
    assert np.array_equal(with_none, without)


def test_height_follows_the_mesh(lizard: Creature, tmp_path: Path) -> None:
    values = lizard.vertices[:, 2]
    low = read(plot_scalars(lizard, values, tmp_path / "low.png", renderer="matplotlib"))
    tall = read(plot_scalars(lizard, values, tmp_path / "tall.png", renderer="matplotlib", up="x"))
    assert low.shape[1] == tall.shape[1] == 1600
    assert low.shape[0] < tall.shape[0]


def test_missing_values_are_grey_and_arrays_will_do(lizard: Creature, tmp_path: Path) -> None:
    nothing = np.full(len(lizard.vertices), np.nan)
    pair = (lizard.vertices, lizard.faces)
    image = read(plot_scalars(pair, nothing, tmp_path / "nan.png", renderer="matplotlib", size=(320, 240)))
    shown = image[24:, :268][inked(image)]
    assert np.ptp(shown, axis=-1).mean() < 0.05


@pytest.mark.parametrize(
    ("values", "log", "extend"),
    [
        (np.geomspace(1e-3, 1e3, 500), True, "both"),
        (np.linspace(1, 2, 500), False, "both"),
        (np.linspace(-1, 3, 500), False, "max"),
        (np.zeros(500), False, "neither"),
    ],
)
def test_scale_suits_the_values(values: np.ndarray, log: bool, extend: str) -> None:
    from matplotlib.colors import LogNorm

    mappable, ends = _colours.scale(values, None, None, None)
    assert isinstance(mappable.norm, LogNorm) == log
    assert ends == extend
    if values.min() < 0:
        assert mappable.norm.vmin == -mappable.norm.vmax, "zero is the middle of a diverging map"


def test_arrows_are_spread_evenly(lizard: Creature) -> None:
    sites = _scene.spread(lizard.vertices, np.arange(len(lizard.vertices)), 0.1)
    chosen = lizard.vertices[sites]
    distance = np.linalg.norm(chosen[:, None] - chosen[None], axis=-1) + np.eye(len(chosen))
    assert distance.min() >= 0.1
    assert len(sites) > 50


def test_falls_back_where_vtk_cannot_render(lizard: Creature, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A renderer that crashes is a crash of another process, and a picture all the same."""
    pytest.importorskip("pyvista", reason="pyvista is not installed")
    crashing = tmp_path / "python"
    crashing.write_text("#!/bin/sh\nkill -SEGV $$\n")
    crashing.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(crashing))
    values = lizard.vertices[:, 2]
    assert inked(read(plot_scalars(lizard, values, tmp_path / "a.png", size=(320, 240)))).mean() > 0.05
    with pytest.raises(RenderingError, match="exit status -11"):
        plot_scalars(lizard, values, tmp_path / "b.png", size=(320, 240), renderer="pyvista")
    assert not (tmp_path / "b.png").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": np.zeros(3)}, r"values must have shape \(800,\)"),
        ({"mesh": (np.zeros((5, 2)), np.zeros((1, 3), int)), "values": np.zeros(5)}, r"expected vertices \(V, 3\)"),
        ({"mesh": (np.zeros((800, 3)), np.zeros((0, 3), int))}, "without faces"),
        ({"up": "w"}, "up must be"),
        ({"renderer": "crayons"}, "renderer must be"),
    ],
)
def test_refuses(lizard: Creature, tmp_path: Path, change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"mesh": lizard, "values": np.zeros(800), "path": tmp_path / "x.png", **change}
    with pytest.raises(ValueError, match=message):
        plot_scalars(**arguments)  # type: ignore[arg-type]
    assert not (tmp_path / "x.png").exists()


def test_refuses_vectors_that_do_not_fit(lizard: Creature, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="vectors are tangent coordinates, but the mesh has no frames"):
        plot_tangents(lizard, np.zeros((800, 2)), tmp_path / "x.png")
    with pytest.raises(ValueError, match=r"must have shape \(800,"):
        plot_tangents(lizard, np.zeros((7, 3)), tmp_path / "x.png")


def test_labels_have_colours_of_their_own_and_names(lizard: Creature, renderer: str, tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    names = [f"part {number}" for number in range(30)]
    labels = lizard.labels.astype(int)
    labels[lizard.labels == lizard.labels[0]] = -1
    image = read(plot_labels(lizard, labels, tmp_path / "a.png", names=names, size=(640, 400), renderer=renderer))
    assert image.shape == (400, 640, 3)
    assert 0.1 < inked(image).mean() < 0.9
    colours = _colours.of_labels(labels)
    _colours.legend(labels, colours, names)(figure)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["unknown", *(names[number] for number in np.unique(labels)[1:])]
    drawn = np.array([patch.get_facecolor()[:3] for patch in figure.legends[0].get_patches()])
    assert np.allclose(drawn, [colours[labels == number][0] for number in np.unique(labels)])
    seen = image[:, : int(0.84 * 640)].reshape(-1, 3)
    hues = seen[np.ptp(seen, axis=1) > 0.25]
    assert len(np.unique(np.round(4 * hues), axis=0)) > 6, "parts are seen in several colours"


def test_a_label_has_the_same_colour_whatever_the_others() -> None:
    many = _colours.of_labels(np.arange(60))
    assert np.array_equal(_colours.of_labels(np.array([7, 45, 3])), many[[7, 45, 3]])
    distance = np.linalg.norm(many[:, None] - many[None], axis=2) + np.eye(60)
    assert distance[:20, :20].min() > 0.09
    assert distance.min() > 0.02


def test_legend_of_many_labels_is_cut_short() -> None:
    from matplotlib.figure import Figure

    figure, labels = Figure(), np.repeat(np.arange(50), np.arange(1, 51))
    _colours.legend(labels, _colours.of_labels(labels), ())(figure)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == [*map(str, range(18, 50)), "and 18 more"]


def test_labels_in_a_file(lizard: Creature, tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    target = export_labels(lizard, lizard.labels, tmp_path / "labels.ply")
    assert b"property int label\n" in target.read_bytes()[:600]
    written = trimesh.load_mesh(target, process=False)
    assert np.array_equal(np.ravel(written.metadata["_ply_raw"]["vertex"]["data"]["label"]), lizard.labels)
    assert np.allclose(written.visual.vertex_colors[:, :3] / 255, _colours.of_labels(lizard.labels), atol=0.003)


@pytest.mark.parametrize(
    ("labels", "names", "message"),
    [
        (np.zeros(3, int), (), r"labels must have shape \(800,\)"),
        (np.zeros(800), (), "labels must be integers"),
        (np.full(800, 2), ("a", "b"), "label 2 has no name: there are 2"),
    ],
)
def test_refuses_labels(lizard: Creature, tmp_path: Path, labels: np.ndarray, names: tuple[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot_labels(lizard, labels, tmp_path / "x.png", names=names)


def test_attention_is_unfolded_by_the_log_map(lizard: Creature) -> None:
    mesh = eman.Mesh(lizard)
    offsets, indices = mesh.neighbors
    weights, vertex = np.arange(float(mesh.edge_count)), 100
    around = slice(*offsets[vertex : vertex + 2])
    patch = _attention.unfold(mesh, weights, vertex)
    assert np.array_equal(patch.weights, weights[around])
    angles = np.arctan2(patch.neighbors[:, 1], patch.neighbors[:, 0])
    assert np.allclose(angles, mesh.edge_angles[around])
    distance = np.linalg.norm(mesh.vertices[indices[around]] - mesh.vertices[vertex], axis=1)
    assert np.allclose(np.linalg.norm(patch.neighbors, axis=1), distance)
    assert len(patch.triangles) > len(patch.neighbors), "the faces of neighbours are shown too"


def test_attention_is_seen_in_its_colours(tmp_path: Path) -> None:
    mesh = eman.Mesh(*TETRAHEDRON)
    offsets, _ = mesh.neighbors
    strong = np.ones((mesh.edge_count, 2))
    strong[offsets[0] : offsets[1]] = [[0.2, 0.2], [2.6, 2.6], [0.2, 0.2]]
    image = read(plot_attention(mesh, strong, 0, tmp_path / "a.png", title="vertex 0", size=(640, 480)))
    assert image.shape == (480, 640, 3)
    area = image[40:, :540].reshape(-1, 3)
    assert ((area[:, 0] - area[:, 2]) > 0.5).mean() > 0.002, "a red arrow"
    assert ((area[:, 2] - area[:, 0]) > 0.1).mean() > 0.002, "blue arrows"
    even = read(plot_attention(mesh, strong, 1, tmp_path / "b.png", size=(640, 480), limits=(0, 2)))
    assert np.ptp(even[:, :540], axis=-1).max() < 0.2, "without attention everything is grey"


@pytest.mark.parametrize(
    ("weights", "vertex", "message"),
    [
        (np.ones(7), 0, r"attention must have shape \(12,\) or \(12, heads\)"),
        (np.ones(12), 5, "vertex must be between 0 and 4"),
        (np.ones(12), -1, "vertex must be between 0 and 4"),
        (np.ones(12), 4, "vertex 4 has no neighbours"),
    ],
)
def test_refuses_attention(weights: np.ndarray, vertex: int, message: str, tmp_path: Path) -> None:
    corners, faces = TETRAHEDRON
    with pytest.raises(ValueError, match=message):
        plot_attention(eman.Mesh([*corners, [9, 9, 9]], faces), weights, vertex, tmp_path / "x.png")
    assert not (tmp_path / "x.png").exists()


POLYSCOPE = """
import sys
import numpy as np, polyscope, eman
polyscope.set_verbosity(0)
polyscope.set_allow_headless_backends(True)
polyscope.init("openGL3_egl")
polyscope.set_ground_plane_mode("none")
polyscope.set_window_size(320, 240)
corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
mesh, pair = eman.Mesh(corners, faces), (corners, faces)
eman.plot.register_polyscope(pair)
before = polyscope.screenshot_to_buffer()
shown = eman.plot.register_polyscope(
    mesh,
    scalars={"height": corners[:, 2]},
    labels={"parts": [0, 1, 2, -1]},
    vectors={"tangent": mesh.reltan([0.7])[:, 0], "ambient": mesh.reltan([0.7], "ambient")[:, 0]},
)
after = polyscope.screenshot_to_buffer()
cloud = eman.plot.register_polyscope((corners, faces[:0]), "points", labels={"parts": [0, 1, 2, -1]})
assert isinstance(shown, polyscope.SurfaceMesh) and isinstance(cloud, polyscope.PointCloud)
assert (shown.n_vertices(), shown.n_faces(), cloud.n_points()) == (4, 4, 4)
colours = lambda image: len(np.unique(image[..., :3].reshape(-1, 3) // 32, axis=0))
print(colours(before), colours(after))
try:
    eman.plot.register_polyscope(pair, "refused", vectors={"RelTan": mesh.reltan([0.7])[:, 0]})
except ValueError as error:
    print(error)
print(polyscope.has_surface_mesh("refused"))
"""


def test_polyscope(tmp_path: Path) -> None:
    """In the real viewer, drawn off-screen; in a process and a folder of its own, where it leaves imgui.ini."""
    pytest.importorskip("polyscope", reason="polyscope is not installed")
    done = subprocess.run(
        [sys.executable, "-c", POLYSCOPE], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    counts, message, registered = done.stdout.splitlines()[-3:]
    before, after = map(int, counts.split())
    assert after > 1.5 * before, "parts have colours of their own"
    assert "tangent coordinates, but the mesh has no frames" in message
    assert registered == "False"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scalars": {"x": np.zeros(3)}}, "values must have shape"),
        ({"labels": {"x": np.zeros(800)}}, "labels must be integers"),
        ({"vectors": {"x": np.zeros((800, 4))}}, r"vectors 'x' must have shape \(800, 3\) or \(800, 2\)"),
    ],
)
def test_polyscope_refuses(lizard: Creature, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        register_polyscope(lizard, **options)
