"""Pictures of meshes: a scalar field in colour, tangent vectors as arrows, written as PNG.

The surface is rendered by VTK through pyvista where that works off-screen (lights, ambient occlusion, a real depth
buffer) and otherwise by a painter's algorithm of our own on matplotlib; the frame around it, title and colour bar,
is drawn by matplotlib either way.  ``pip install eman[plot]`` brings both.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple, Optional, Union

import numpy as np
import numpy.typing as npt

__all__ = ["RenderingError", "export_ply", "plot_scalars", "plot_tangents"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
PathLike = Union[str, "os.PathLike[str]"]

_INK = "#1f2430"
_PAPER = "#fbfaf7"
_ARROW_COLOURS = (_INK, "#ffffff")  # rim, filling
_MISSING = 0.72  # grey


def plot_scalars(
    mesh: Any,
    values: npt.ArrayLike,
    path: PathLike,
    *,
    label: str = "",
    title: str = "",
    colormap: Optional[str] = None,
    limits: Optional[tuple[float, float]] = None,
    log: Optional[bool] = None,
    up: str = "z",
    view: Optional[tuple[float, float]] = None,
    size: Optional[tuple[int, int]] = None,
    renderer: str = "auto",
) -> Path:
    """Draw a mesh coloured by one number per vertex.

    Parameters
    ----------
    mesh : object with ``vertices`` and ``faces``, or a pair (vertices, faces)
        An `eman.Mesh`, a creature, a trimesh object, or arrays (V, 3) and (F, 3).
    values : (V,) array_like
        The field; NaN is drawn grey.
    path : path
        The PNG file to write.
    label : str
        Text beside the colour bar.
    title : str
        Text above the picture.
    colormap : str, optional
        A matplotlib colour map.  By default a perceptually uniform one, diverging where the values have both signs.
    limits : (float, float), optional
        Values at the ends of the colour bar; by default the 1st and 99th percentile.
    log : bool, optional
        A logarithmic colour scale; by default where positive values span more than a factor of 30.
    up : {"z", "y", "x"}
        Which axis of the mesh points up.
    view : (float, float), optional
        Direction the camera stands in: degrees around the up axis and above the horizon.
    size : (int, int), optional
        Width and height in pixels; by default 1600 wide and as high as the view of the mesh needs.
    renderer : {"auto", "pyvista", "matplotlib"}
        What draws the surface; "auto" takes pyvista where it is installed and can render off-screen.

    Returns
    -------
    pathlib.Path
        The file written.

    Raises
    ------
    ValueError
        For shapes that do not fit, a mesh without faces, or an unknown option.
    ImportError
        If matplotlib is missing.
    RenderingError
        If pyvista was asked for and is missing or cannot render off-screen.
    """
    return _picture(
        mesh, values, None, path, label, title, colormap, limits, log, _Camera.looking(up, view), size, renderer
    )


def plot_tangents(
    mesh: Any,
    vectors: npt.ArrayLike,
    path: PathLike,
    *,
    values: Optional[npt.ArrayLike] = None,
    label: str = "magnitude",
    title: str = "",
    arrows: int = 1800,
    colormap: Optional[str] = None,
    limits: Optional[tuple[float, float]] = None,
    log: Optional[bool] = None,
    up: str = "z",
    view: Optional[tuple[float, float]] = None,
    size: Optional[tuple[int, int]] = None,
    renderer: str = "auto",
) -> Path:
    """Draw a vector field over a mesh that is coloured by its magnitude.

    The arrows stand on an even sample of the vertices.  Their length grows with the logarithm of the magnitude
    between its 2nd and 98th percentile, so that small vectors stay visible beside large ones; where the vector is
    zero there is no arrow.

    Parameters
    ----------
    mesh : object with ``vertices`` and ``faces``, or a pair (vertices, faces)
        As for `plot_scalars`.
    vectors : (V, 3) array_like
        One vector per vertex in the coordinates of the mesh, for example ``mesh.reltan([0.7], "ambient")[:, 0]``.
    path : path
        The PNG file to write.
    values : (V,) array_like, optional
        Another field for the colours than the magnitude.
    arrows : int
        About how many arrows the whole surface gets, the far side included.
    label, title, colormap, limits, log, up, view, size, renderer
        As for `plot_scalars`.

    Returns
    -------
    pathlib.Path
        The file written.

    Raises
    ------
    ValueError
        For shapes that do not fit, a mesh without faces, or an unknown option.
    ImportError
        If matplotlib is missing.
    RenderingError
        If pyvista was asked for and is missing or cannot render off-screen.
    """
    field = np.asarray(vectors, np.float64)
    if field.ndim != 2 or field.shape[1] != 3:
        raise ValueError(f"vectors must have shape (V, 3), got {field.shape}")
    colours = np.linalg.norm(field, axis=1) if values is None else values
    return _picture(
        mesh,
        colours,
        (field, int(arrows)),
        path,
        label,
        title,
        colormap,
        limits,
        log,
        _Camera.looking(up, view),
        size,
        renderer,
    )


def export_ply(
    mesh: Any,
    values: npt.ArrayLike,
    path: PathLike,
    *,
    name: str = "value",
    colormap: Optional[str] = None,
    limits: Optional[tuple[float, float]] = None,
    log: Optional[bool] = None,
) -> Path:
    """Write a binary PLY file with vertex colours, and with the values as a vertex property.

    Parameters
    ----------
    mesh, values, colormap, limits, log
        As for `plot_scalars`; the colours are the same.
    path : path
        The PLY file to write.
    name : str
        Of the vertex property.

    Returns
    -------
    pathlib.Path
        The file written.

    Raises
    ------
    ValueError
        For shapes that do not fit.
    ImportError
        If trimesh or matplotlib is missing.
    """
    import trimesh

    points, triangles, scalars = _checked(mesh, values)
    colours, _, _ = _colours(scalars, colormap, limits, log)
    bytes_ = np.concatenate([np.round(255 * colours), np.full((len(colours), 1), 255)], axis=1).astype(np.uint8)
    surface = trimesh.Trimesh(
        points, triangles, vertex_colors=bytes_, vertex_attributes={name: scalars.astype(np.float32)}, process=False
    )
    target = Path(path)
    target.write_bytes(trimesh.exchange.ply.export_ply(surface))
    return target


# ---------------------------------------------------------------------------------------------------------------------
# What to draw
# ---------------------------------------------------------------------------------------------------------------------


class RenderingError(RuntimeError):
    """The renderer that was asked for could not draw the picture."""


class _Camera(NamedTuple):
    """An orthonormal view: unit vectors to the right, upward, and towards the eye."""

    right: FloatArray
    up: FloatArray
    eye: FloatArray

    @staticmethod
    def looking(up: str, view: Optional[tuple[float, float]]) -> _Camera:
        if up not in ("x", "y", "z"):
            raise ValueError(f"up must be 'x', 'y' or 'z', got {up!r}")
        third = "xyz".index(up)
        # Models face +x where z is up and +z where y is up: both are the axis after the up axis.
        first, second = np.eye(3)[(third + 1) % 3], np.eye(3)[(third + 2) % 3]
        upward = np.eye(3)[third]
        turn, rise = np.radians(view if view is not None else (-52.0, 17.0))
        level = np.cos(turn) * first + np.sin(turn) * second
        eye = np.cos(rise) * level + np.sin(rise) * upward
        right = np.cross(upward, level)
        return _Camera(right, np.cross(eye, right), eye)


class _Scene(NamedTuple):
    """Triangles with colours, seen by an orthographic camera that frames them."""

    points: FloatArray
    faces: IntArray
    colours: FloatArray  # (V, 3) in 0..1
    arrows: FloatArray  # (N, len(_ARROW), 3): flat polygons, each a dark rim or, after all rims, a light filling
    camera: _Camera
    centre: FloatArray
    half_height: float
    size: tuple[int, int]


def _picture(
    mesh: Any,
    values: npt.ArrayLike,
    field: Optional[tuple[FloatArray, int]],
    path: PathLike,
    label: str,
    title: str,
    colormap: Optional[str],
    limits: Optional[tuple[float, float]],
    log: Optional[bool],
    camera: _Camera,
    size: Optional[tuple[int, int]],
    renderer: str,
) -> Path:
    if renderer not in ("auto", "pyvista", "matplotlib"):
        raise ValueError(f"renderer must be 'auto', 'pyvista' or 'matplotlib', got {renderer!r}")
    points, triangles, scalars = _checked(mesh, values)
    if len(triangles) == 0:
        raise ValueError("a mesh without faces cannot be drawn")
    if field is not None and len(field[0]) != len(points):
        raise ValueError(f"vectors must have shape ({len(points)}, 3), one per vertex, got {field[0].shape}")

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    colours, mappable, extend = _colours(scalars, colormap, limits, log)
    dpi = 160
    if size is None:
        wide, high = _extent(points, triangles, camera)
        size = (1600, round(1600 * float(np.clip(0.9 * high / wide, 0.55, 1.1))))
    figure = Figure((size[0] / dpi, size[1] / dpi), dpi=dpi, facecolor=_PAPER)
    FigureCanvasAgg(figure)
    top = 0.92 if title else 0.99
    axes = figure.add_axes((0.01, 0.01, 0.85, top - 0.01))
    axes.set_axis_off()
    pixels = (round(0.85 * size[0]), round((top - 0.01) * size[1]))
    scene = _compose(points, triangles, colours, field, camera, pixels)
    image = None
    if renderer == "pyvista" or (renderer == "auto" and importlib.util.find_spec("pyvista") is not None):
        try:
            image = _render_vtk(scene)
        except (RenderingError, OSError, subprocess.TimeoutExpired):
            if renderer == "pyvista":
                raise
    if image is None:
        _paint(scene, axes)
    else:
        axes.imshow(image, interpolation="lanczos", aspect="auto")
    bar_axes = figure.add_axes((0.875, 0.16, 0.022, 0.68))
    bar = figure.colorbar(mappable, cax=bar_axes, extend=extend)
    bar.set_label(label, color=_INK, fontsize=11, labelpad=8)
    bar.ax.tick_params(colors=_INK, which="both", labelsize=9)
    low, high = mappable.get_clim()
    if isinstance(mappable.norm, LogNorm) and low >= 1e-4 and high <= 1e5:
        bar.ax.yaxis.set_major_formatter(FuncFormatter(_plain))
        bar.ax.yaxis.set_minor_formatter(FuncFormatter(_plain))
    bar.outline.set_visible(False)
    if title:
        figure.text(0.03, 0.945, title, color=_INK, fontsize=14)
    target = Path(path)
    figure.savefig(target, dpi=dpi, facecolor=_PAPER, format="png")
    return target


def _checked(mesh: Any, values: npt.ArrayLike) -> tuple[FloatArray, IntArray, FloatArray]:
    """Vertices, faces and values of shapes that fit together."""
    vertices, faces = mesh if isinstance(mesh, tuple) else (mesh.vertices, mesh.faces)
    points = np.asarray(vertices, np.float64)
    triangles = np.asarray(faces, np.int64)
    scalars = np.asarray(values, np.float64)
    if points.ndim != 2 or points.shape[1] != 3 or triangles.ndim != 2 or triangles.shape[1] != 3:
        raise ValueError(f"expected vertices (V, 3) and faces (F, 3), got {points.shape} and {triangles.shape}")
    if scalars.shape != (len(points),):
        raise ValueError(f"values must have shape ({len(points)},), one per vertex, got {scalars.shape}")
    return points, triangles, scalars


def _colours(
    scalars: FloatArray, colormap: Optional[str], limits: Optional[tuple[float, float]], log: Optional[bool]
) -> tuple[FloatArray, Any, str]:
    """Colours (V, 3) in 0..1, and what the colour bar needs: a ScalarMappable and its open ends."""
    mappable, extend = _colour_scale(scalars, colormap, limits, log)
    colours = np.asarray(mappable.to_rgba(scalars), np.float64)[:, :3]
    colours[~np.isfinite(scalars)] = _MISSING
    return colours, mappable, extend


def _plain(value: float, _: Any) -> str:
    """Tick text of a logarithmic scale: only 1, 2 and 5 times a power of ten, without exponents."""
    digits = f"{value:.0e}"[0]
    return f"{value:g}" if digits in "125" else ""


def _colour_scale(
    scalars: FloatArray, colormap: Optional[str], limits: Optional[tuple[float, float]], log: Optional[bool]
) -> tuple[Any, str]:
    """A matplotlib ScalarMappable and which ends of the colour bar go on beyond it."""
    import matplotlib
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm, Normalize

    finite = scalars[np.isfinite(scalars)]
    if len(finite) == 0:
        finite = np.zeros(1)
    positive = finite[finite > 0]
    signed = bool((finite < 0).any() and len(positive))
    if limits is None:
        low, high = (float(q) for q in np.percentile(finite, (1, 99)))
        if log is None:
            log = not (finite < 0).any() and len(positive) > 0.9 * len(finite) and low > 0 and high > 30 * low
        if log and not low > 0:
            low = float(np.percentile(positive, 1)) if len(positive) else 1.0
            high = max(high, low)
        if signed and not log:
            high = max(abs(low), abs(high))
            low = -high
    else:
        low, high = limits
    if not high > low:
        high = low + (abs(low) * 1e-6 or 1.0)
    chosen = matplotlib.colormaps[colormap or ("RdBu_r" if signed and not log else "viridis")]
    norm = LogNorm(low, high) if log else Normalize(low, high)
    below, above = bool((finite < low).any()), bool((finite > high).any())
    extend = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}
    mappable = ScalarMappable(norm, chosen)
    mappable.set_array(finite)
    return mappable, extend[below, above]


def _extent(points: FloatArray, faces: IntArray, camera: _Camera) -> tuple[float, float]:
    """Width and height of the mesh as the camera sees it."""
    shown = points[np.unique(faces)]
    wide, high = float(np.ptp(shown @ camera.right)), float(np.ptp(shown @ camera.up))
    return max(wide, 1e-9 * high, 1e-300), high


def _compose(
    points: FloatArray,
    faces: IntArray,
    colours: FloatArray,
    field: Optional[tuple[FloatArray, int]],
    camera: _Camera,
    size: tuple[int, int],
) -> _Scene:
    seen = points[np.unique(faces)] @ np.stack(camera, axis=1)
    centre = 0.5 * (seen.min(axis=0) + seen.max(axis=0)) @ np.stack(camera)
    wide, high = _extent(points, faces, camera)
    half_height = 0.52 * max(high, wide * size[1] / size[0], 1e-300)
    arrows = np.zeros((0, len(_ARROW), 3)) if field is None else _arrows(points, faces, camera.eye, *field)
    return _Scene(points, faces, colours, arrows, camera, centre, half_height, size)


# An arrow of unit length along +x: tail, shaft, head; and the same with a rim around it.
_ARROW = np.array(
    [[0.04, -0.04], [0.58, -0.055], [0.53, -0.185], [0.95, 0.0], [0.53, 0.185], [0.58, 0.055], [0.04, 0.04]], np.float64
)
_RIM = np.array(
    [[0.0, -0.09], [0.51, -0.105], [0.45, -0.29], [1.06, 0.0], [0.45, 0.29], [0.51, 0.105], [0.0, 0.09]], np.float64
)


def _face_normals(points: FloatArray, faces: IntArray) -> FloatArray:
    a, b, c = (points[faces[:, i]] for i in range(3))
    return np.asarray(np.cross(b - a, c - a), np.float64)


def _vertex_normals(points: FloatArray, faces: IntArray) -> FloatArray:
    normals = _face_normals(points, faces)
    total = np.stack(
        [np.bincount(faces.ravel(), np.repeat(normals[:, k], 3), minlength=len(points)) for k in range(3)], axis=1
    )
    return np.asarray(total / np.maximum(np.linalg.norm(total, axis=1), 1e-300)[:, None], np.float64)


def _arrows(points: FloatArray, faces: IntArray, eye: FloatArray, vectors: FloatArray, count: int) -> FloatArray:
    """Rims and fillings of arrows on an even sample of the vertices that face the eye, just above the surface."""
    area = 0.5 * float(np.linalg.norm(_face_normals(points, faces), axis=1).sum())
    length = np.linalg.norm(vectors, axis=1)
    usable = np.isfinite(length) & (length > 0)
    usable[np.setdiff1d(np.arange(len(points)), faces)] = False
    if count <= 0 or not usable.any():
        return np.zeros((0, len(_ARROW), 3))
    spacing = float(np.sqrt(area / count))
    sites = _spread(points, np.flatnonzero(usable), spacing)
    low, high = np.log(np.percentile(length[usable], (2, 98)))
    share = np.clip((np.log(length[sites]) - low) / (high - low), 0.0, 1.0) if high > low else np.ones(len(sites))
    normal = _vertex_normals(points, faces)[sites]
    front = np.abs(normal @ eye) > 0.35  # those on the outline would only be slivers that stick out
    sites, share, normal = sites[front], share[front], normal[front]
    normal *= np.sign(normal @ eye)[:, None]  # open and inside-out surfaces show their back
    along = vectors[sites] / length[sites, None]
    side = np.cross(normal, along)
    side /= np.maximum(np.linalg.norm(side, axis=1), 1e-12)[:, None]
    reach = spacing * (0.6 + 0.75 * share)
    layers = []
    for outline, lift in ((_RIM, 0.13), (_ARROW, 0.16)):
        shape = reach[:, None, None] * (outline[None, :, :1] * along[:, None] + outline[None, :, 1:] * side[:, None])
        layers.append((points[sites] + lift * spacing * normal)[:, None] + shape)
    return np.concatenate(layers)


def _spread(points: FloatArray, candidates: IntArray, spacing: float) -> IntArray:
    """Candidates at least `spacing` from each other, in a fixed random order (dart throwing)."""
    rng = np.random.default_rng(0)
    cell = np.floor(points[candidates] / (0.4 * spacing)).astype(np.int64)
    candidates = candidates[np.unique(cell, axis=0, return_index=True)[1]]
    candidates = candidates[rng.permutation(len(candidates))]
    place = points[candidates]
    open_ = np.ones(len(candidates), bool)
    chosen: list[int] = []
    for i in range(len(candidates)):
        if open_[i]:
            chosen.append(int(candidates[i]))
            offset = place[i + 1 :] - place[i]
            open_[i + 1 :] &= np.einsum("ij,ij->i", offset, offset) >= spacing * spacing
    return np.array(chosen, np.int64)


# ---------------------------------------------------------------------------------------------------------------------
# Renderers
# ---------------------------------------------------------------------------------------------------------------------


def _render_vtk(scene: _Scene) -> npt.NDArray[np.uint8]:
    """The scene as an image (height, width, 3), rendered by VTK in a process of its own.

    VTK ends the process with a segmentation fault where it finds no OpenGL it can use off-screen; that must not be
    the caller's process.
    """
    with tempfile.TemporaryDirectory(prefix="eman-") as folder:
        request, answer = os.path.join(folder, "scene.npz"), os.path.join(folder, "image.npy")
        np.savez(
            request,
            points=scene.points - scene.centre,
            faces=scene.faces,
            colours=np.round(255 * scene.colours).astype(np.uint8),
            arrows=scene.arrows - scene.centre,
            arrow_colours=np.array(_ARROW_COLOURS),
            view=np.stack(scene.camera),
            half_height=scene.half_height,
            size=scene.size,
            background=_PAPER,
        )
        package_parent = str(Path(__file__).resolve().parent.parent)
        search = os.pathsep.join(filter(None, (package_parent, os.environ.get("PYTHONPATH"))))
        done = subprocess.run(
            [sys.executable, "-m", "eman._vtk", request, answer],
            env={**os.environ, "PYTHONPATH": search},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or ["it said nothing"]
            raise RenderingError(f"VTK could not render off-screen (exit status {done.returncode}): {lines[-1]}")
        return np.asarray(np.load(answer), np.uint8)


def _paint(scene: _Scene, axes: Any) -> None:
    """The scene by the painter's algorithm: polygons from far to near, shaded face by face."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgb

    right, up, eye = scene.camera
    normals = _face_normals(scene.points, scene.faces)
    normals /= np.maximum(np.linalg.norm(normals, axis=1), 1e-300)[:, None]
    facing = normals @ eye
    normals *= np.where(facing < 0, -1.0, 1.0)[:, None]  # both sides are lit, for open and inside-out meshes
    light = np.zeros(len(normals))
    for direction, strength in (
        (-0.5 * right + 0.75 * up + 0.8 * eye, 0.62),
        (0.9 * right + 0.1 * up + 0.6 * eye, 0.25),
    ):
        light += strength * np.maximum(normals @ (direction / np.linalg.norm(direction)), 0.0)
    shaded = np.clip(scene.colours[scene.faces].mean(axis=1) * (0.32 + light)[:, None], 0.0, 1.0)

    def flat(points: FloatArray) -> FloatArray:
        return np.stack([points @ right, points @ up], axis=-1)

    polygons = list(flat(scene.points[scene.faces])) + list(flat(scene.arrows))
    rims = (scene.arrows[: len(scene.arrows) // 2] @ eye).mean(axis=1)
    above = 1e-6 * scene.half_height  # each filling right after its rim
    depth = np.concatenate([(scene.points[scene.faces] @ eye).mean(axis=1), rims, rims + above])
    inks = np.repeat([to_rgb(colour) for colour in _ARROW_COLOURS], len(scene.arrows) // 2, axis=0)
    colours = np.concatenate([shaded, inks])
    order = np.argsort(depth, kind="stable")
    collection = PolyCollection(
        [polygons[i] for i in order], facecolors=colours[order], edgecolors=colours[order], linewidths=0.25
    )
    axes.add_collection(collection)
    middle = flat(scene.centre)
    half_width = scene.half_height * scene.size[0] / scene.size[1]
    axes.set_xlim(middle[0] - half_width, middle[0] + half_width)
    axes.set_ylim(middle[1] - scene.half_height, middle[1] + scene.half_height)
