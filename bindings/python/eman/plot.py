"""Pictures of meshes: a scalar field or labels in colour, tangent vectors as arrows, attention; written as PNG.

The surface is rendered by VTK through pyvista where that works off-screen (lights, ambient occlusion, a real depth
buffer) and otherwise by a painter's algorithm of our own on matplotlib; the frame around it, title and colour bar or
legend, is drawn by matplotlib either way.  ``pip install eman[plot]`` brings both.

`register_polyscope` shows the same in polyscope's viewer, where that is installed.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Callable, Optional, Union

import numpy as np
import numpy.typing as npt

from eman import _arrays, _attention, _colours, _files
from eman._scene import INK, PAPER, Camera, FloatArray, IntArray, RenderingError, compose, extent, paint, render

__all__ = [
    "RenderingError",
    "export_labels",
    "export_ply",
    "plot_attention",
    "plot_labels",
    "plot_scalars",
    "plot_tangents",
    "register_polyscope",
]

PathLike = Union[str, "os.PathLike[str]"]

_DPI = 160
_NARROW = 5.0  # inches: text shrinks in pictures that would be narrower


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

    Examples
    --------
    >>> import os, tempfile, numpy as np
    >>> corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    >>> faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    >>> path = os.path.join(tempfile.mkdtemp(), "height.png")
    >>> plot_scalars((corners, faces), corners[:, 2], path, label="height", renderer="matplotlib").name
    'height.png'
    """
    surface, scalars = _surface(mesh), _values(mesh, values)
    colours, mappable, open_ends = _colours.of_values(scalars, colormap, limits, log)
    bar = _colours.bar(mappable, open_ends, label)
    return _picture(surface, colours, None, path, title, Camera.looking(up, view), size, renderer, bar)


def plot_labels(
    mesh: Any,
    labels: npt.ArrayLike,
    path: PathLike,
    *,
    names: Sequence[str] = (),
    title: str = "",
    up: str = "z",
    view: Optional[tuple[float, float]] = None,
    size: Optional[tuple[int, int]] = None,
    renderer: str = "auto",
) -> Path:
    """Draw a mesh with its parts in colours of their own, and a legend that names them.

    Parameters
    ----------
    mesh : object with ``vertices`` and ``faces``, or a pair (vertices, faces)
        As for `plot_scalars`.
    labels : (V,) array_like of int
        The part of each vertex; those below 0 are unknown, and grey.
    path : path
        The PNG file to write.
    names : sequence of str
        Of the labels, such as ``model.labels``; without names the legend has the numbers.
    title, up, view, size, renderer
        As for `plot_scalars`.

    Returns
    -------
    pathlib.Path
        The file written.

    Raises
    ------
    ValueError
        For shapes that do not fit, a mesh without faces, a label without a name, or an unknown option.
    ImportError
        If matplotlib is missing.
    RenderingError
        If pyvista was asked for and is missing or cannot render off-screen.

    Examples
    --------
    >>> import os, tempfile, numpy as np
    >>> corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    >>> faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    >>> path = os.path.join(tempfile.mkdtemp(), "parts.png")
    >>> plot_labels((corners, faces), [0, 0, 1, -1], path, names=["left", "right"], renderer="matplotlib").name
    'parts.png'
    """
    surface, parts = _surface(mesh), _parts(mesh, labels)
    highest = int(parts.max(initial=-1))
    if names and highest >= len(names):
        raise ValueError(f"label {highest} has no name: there are {len(names)}")
    colours = _colours.of_labels(parts)
    legend = _colours.legend(parts, colours, names)
    return _picture(surface, colours, None, path, title, Camera.looking(up, view), size, renderer, legend)


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
    vectors : (V, 3) or (V, 2) array_like
        One vector per vertex in the coordinates of the mesh, for example ``mesh.reltan([0.7], "ambient")[:, 0]``, or in
        the frames of an `eman.Mesh`: ``mesh.reltan([0.7])[:, 0]``.
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

    Examples
    --------
    >>> import os, tempfile, eman
    >>> corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> mesh = eman.Mesh(corners, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    >>> path = os.path.join(tempfile.mkdtemp(), "reltan.png")
    >>> plot_tangents(mesh, mesh.reltan([0.7], "ambient")[:, 0], path, renderer="matplotlib").name
    'reltan.png'
    """
    surface = _surface(mesh)
    field = _in_space(mesh, len(surface[0]), vectors, "vectors")
    scalars = _values(mesh, np.linalg.norm(field, axis=1) if values is None else values)
    colours, mappable, open_ends = _colours.of_values(scalars, colormap, limits, log)
    bar, camera = _colours.bar(mappable, open_ends, label), Camera.looking(up, view)
    return _picture(surface, colours, (field, int(arrows)), path, title, camera, size, renderer, bar)


def plot_attention(
    mesh: Any,
    attention: npt.ArrayLike,
    vertex: int,
    path: PathLike,
    *,
    title: str = "",
    colormap: str = "coolwarm",
    limits: Optional[tuple[float, float]] = None,
    size: tuple[int, int] = (1100, 960),
) -> Path:
    """Draw the attention coefficients around a vertex, in its tangent plane (§6).

    The neighbours stand where the log map has them (§3.3): in the direction of the tangent plane and at the distance
    of space, e1 of the vertex's frame to the right.  An arrow from each shows how much its features count: 1 is what
    every neighbour has without attention, and the mean.

    Parameters
    ----------
    mesh : Mesh
        With E directed edges.
    attention : (E,) or (E, heads) array_like
        As `eman.Model.attention` gives it for a network on the vertices; of several heads the mean is drawn.
    vertex : int
        The vertex, from 0 to V − 1.
    path : path
        The PNG file to write.
    title : str
        Text above the picture.
    colormap : str
        A matplotlib colour map, whose middle stands for 1 unless `limits` are given.
    limits : (float, float), optional
        Values at the ends of the colour bar; by default those of this vertex, as far above 1 as below.
    size : (int, int)
        Width and height in pixels.

    Returns
    -------
    pathlib.Path
        The file written.

    Raises
    ------
    ValueError
        For shapes that do not fit, a vertex that is not there, or one without neighbours.
    ImportError
        If matplotlib is missing.

    Examples
    --------
    >>> import os, tempfile, eman
    >>> corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> mesh = eman.Mesh(corners, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    >>> attention = eman.Model("default", classes=16).attention(mesh, 0)
    >>> plot_attention(mesh, attention, 3, os.path.join(tempfile.mkdtemp(), "attention.png")).name
    'attention.png'
    """
    weights = np.asarray(attention, np.float64)
    if weights.ndim not in (1, 2) or len(weights) != mesh.edge_count:
        raise ValueError(f"attention must have shape ({mesh.edge_count},) or ({mesh.edge_count}, heads), one row per "
                         f"directed edge, got {weights.shape}")  # fmt: skip
    if not 0 <= vertex < mesh.vertex_count:
        raise ValueError(f"vertex must be between 0 and {mesh.vertex_count - 1}, got {vertex}")
    patch = _attention.unfold(mesh, weights if weights.ndim == 1 else weights.mean(axis=1), vertex)
    if len(patch.weights) == 0:
        raise ValueError(f"vertex {vertex} has no neighbours")

    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    reach = max(float(np.abs(patch.weights - 1).max()), 0.05)
    mappable = ScalarMappable(Normalize(*(limits or (1 - reach, 1 + reach))), colormap)
    figure, axes = _figure(size, title)
    _attention.draw(axes, patch, mappable)
    _colours.bar(mappable, "neither", "attention coefficient")(figure)
    if limits is None:
        figure.axes[-1].set_ylim(bottom=max(0.0, 1 - reach))  # no coefficient is negative
    return _save(figure, path)


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

    Examples
    --------
    >>> import os, tempfile, numpy as np, eman
    >>> corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    >>> faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    >>> path = os.path.join(tempfile.mkdtemp(), "height.ply")
    >>> path = export_ply((corners, faces), corners[:, 2], path, name="height")
    >>> eman.Mesh.from_file(path).vertex_count
    4
    """
    scalars = _values(mesh, values)
    colours, _, _ = _colours.of_values(scalars, colormap, limits, log)
    return _write_ply(_surface(mesh), colours, name, scalars.astype(np.float32), path)


def export_labels(mesh: Any, labels: npt.ArrayLike, path: PathLike, *, name: str = "label") -> Path:
    """Write a binary PLY file with the colours of `plot_labels`, and with the labels as an integer vertex property.

    Parameters
    ----------
    mesh, labels
        As for `plot_labels`.
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

    Examples
    --------
    >>> import os, tempfile, numpy as np, eman
    >>> corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    >>> faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    >>> path = export_labels((corners, faces), [0, 0, 1, -1], os.path.join(tempfile.mkdtemp(), "parts.ply"))
    >>> eman.Mesh.from_file(path).vertex_count
    4
    """
    parts = _parts(mesh, labels)
    return _write_ply(_surface(mesh), _colours.of_labels(parts), name, parts.astype(np.int32), path)


def _write_ply(
    surface: tuple[FloatArray, IntArray], colours: FloatArray, name: str, values: npt.NDArray[Any], path: PathLike
) -> Path:
    import trimesh

    opaque = np.concatenate([np.round(255 * colours), np.full((len(colours), 1), 255)], axis=1).astype(np.uint8)
    coloured = trimesh.Trimesh(*surface, vertex_colors=opaque, vertex_attributes={name: values}, process=False)
    target = Path(path)
    _files.write_whole(target, trimesh.exchange.ply.export_ply(coloured))
    return target


def register_polyscope(
    mesh: Any,
    name: str = "mesh",
    *,
    scalars: Optional[Mapping[str, npt.ArrayLike]] = None,
    labels: Optional[Mapping[str, npt.ArrayLike]] = None,
    vectors: Optional[Mapping[str, npt.ArrayLike]] = None,
) -> Any:
    """Show a mesh and what belongs to its vertices in polyscope, an interactive viewer.

    Parameters
    ----------
    mesh : object with ``vertices`` and ``faces``, or a pair (vertices, faces)
        As for `plot_scalars`; one without faces becomes a cloud of points.
    name : str
        Of the structure in the viewer; one of this name is replaced.
    scalars : mapping of str to (V,) array_like, optional
        Fields by name.
    labels : mapping of str to (V,) array_like of int, optional
        Parts by name, in the colours of `plot_labels`.
    vectors : mapping of str to (V, 2) or (V, 3) array_like, optional
        Vectors by name: tangent coordinates in the frames of an `eman.Mesh`, or coordinates of space.

    Returns
    -------
    polyscope.SurfaceMesh or polyscope.PointCloud
        What was registered, for options of its own.

    Raises
    ------
    ValueError
        For shapes that do not fit, or tangent coordinates where there are no frames; then nothing is registered.
    ImportError
        If polyscope is not installed (``pip install polyscope``).

    Notes
    -----
    Call ``polyscope.init()`` before and ``polyscope.show()`` after.

    Examples
    --------
    >>> import polyscope  # doctest: +SKIP
    >>> polyscope.init()  # doctest: +SKIP
    >>> register_polyscope(mesh, vectors={"RelTan": mesh.reltan([0.7])[:, 0]})  # doctest: +SKIP
    >>> polyscope.show()  # doctest: +SKIP
    """
    points, triangles = _surface(mesh)
    fields = {key: _values(mesh, values) for key, values in (scalars or {}).items()}
    parts = {key: _parts(mesh, values) for key, values in (labels or {}).items()}
    arrows = {key: _in_space(mesh, len(points), values, f"vectors {key!r}") for key, values in (vectors or {}).items()}
    colours = {key: _colours.of_labels(found) for key, found in parts.items()}
    import polyscope

    shown: Any  # quantities are of the vertices by default
    if len(triangles):
        shown = polyscope.register_surface_mesh(name, points, triangles, smooth_shade=True)
    else:
        shown = polyscope.register_point_cloud(name, points)
    for key, field in fields.items():
        shown.add_scalar_quantity(key, field)
    for key, colour in colours.items():
        shown.add_color_quantity(key, colour, enabled=True)
    for key, field in arrows.items():
        shown.add_vector_quantity(key, field, enabled=True)
    return shown


# ---------------------------------------------------------------------------------------------------------------------


def _in_space(mesh: Any, count: int, vectors: npt.ArrayLike, name: str) -> FloatArray:
    """Vectors (V, 3) from those, or from tangent coordinates (V, 2) in the mesh's frames."""
    field = np.asarray(vectors, np.float64)
    if field.shape == (count, 3):
        return field
    if field.shape != (count, 2):
        raise ValueError(f"{name} must have shape ({count}, 3) or ({count}, 2), got {field.shape}")
    if not hasattr(mesh, "frames"):
        raise ValueError(f"{name} are tangent coordinates, but the mesh has no frames: give an eman.Mesh")
    return np.asarray(np.einsum("vi,vij->vj", field, mesh.frames[:, :2]), np.float64)


def _surface(mesh: Any) -> tuple[FloatArray, IntArray]:
    """Vertices (V, 3) and faces (F, 3) of a mesh or a pair."""
    vertices, faces = mesh if isinstance(mesh, tuple) else (mesh.vertices, mesh.faces)
    points, triangles = np.asarray(vertices, np.float64), np.asarray(faces, np.int64)
    if points.ndim != 2 or points.shape[1] != 3 or triangles.ndim != 2 or triangles.shape[1] != 3:
        raise ValueError(f"expected vertices (V, 3) and faces (F, 3), got {points.shape} and {triangles.shape}")
    return points, triangles


def _values(mesh: Any, values: npt.ArrayLike) -> FloatArray:
    """One number per vertex."""
    return _per_vertex(mesh, np.asarray(values, np.float64), "values")


def _parts(mesh: Any, labels: npt.ArrayLike) -> IntArray:
    """One label per vertex; all unknown ones -1."""
    found = _arrays.integers(_per_vertex(mesh, np.asarray(labels), "labels"), "labels", None)
    return np.maximum(found.astype(np.int64), -1)


def _per_vertex(mesh: Any, values: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    count = len(mesh[0] if isinstance(mesh, tuple) else mesh.vertices)
    if values.shape != (count,):
        raise ValueError(f"{name} must have shape ({count},), one per vertex, got {values.shape}")
    return values


def _picture(
    surface: tuple[FloatArray, IntArray],
    colours: FloatArray,
    field: Optional[tuple[FloatArray, int]],
    path: PathLike,
    title: str,
    camera: Camera,
    size: Optional[tuple[int, int]],
    renderer: str,
    explain: Callable[[Any], None],
) -> Path:
    """Draw a coloured mesh and arrows on it; `explain` adds what the colours mean, right of 0.86 of the width."""
    if renderer not in ("auto", "pyvista", "matplotlib"):
        raise ValueError(f"renderer must be 'auto', 'pyvista' or 'matplotlib', got {renderer!r}")
    points, triangles = surface
    if len(triangles) == 0:
        raise ValueError("a mesh without faces cannot be drawn")

    if size is None:
        wide, high = extent(points, triangles, camera)
        size = (1600, round(1600 * float(np.clip(0.9 * high / wide, 0.55, 1.1))))
    figure, axes = _figure(size, title)
    box = axes.get_position()
    scene = compose(
        points, triangles, colours, field, camera, (round(box.width * size[0]), round(box.height * size[1]))
    )
    image = None
    if renderer == "pyvista" or (renderer == "auto" and importlib.util.find_spec("pyvista") is not None):
        try:
            image = render(scene)
        except (RenderingError, OSError, subprocess.TimeoutExpired):
            if renderer == "pyvista":
                raise
    if image is None:
        paint(scene, axes)
    else:
        axes.imshow(image, interpolation="lanczos", aspect="auto")
    explain(figure)
    return _save(figure, path)


def _figure(size: tuple[int, int], title: str) -> tuple[Any, Any]:
    """An empty picture with its title, and axes that leave the right 0.14 of the width to what explains the colours."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    dpi = min(_DPI, size[0] / _NARROW)
    figure = Figure((size[0] / dpi, size[1] / dpi), dpi=dpi, facecolor=PAPER)
    FigureCanvasAgg(figure)
    if title:
        figure.text(0.03, 0.985, title, color=INK, fontsize=14, va="top")
    axes = figure.add_axes((0.01, 0.01, 0.85, (0.92 if title else 0.99) - 0.01))
    axes.set_axis_off()
    return figure, axes


def _save(figure: Any, path: PathLike) -> Path:
    target = Path(path)
    _files.write_picture(target, figure, facecolor=PAPER)
    return target
