"""What a picture of a mesh is made of: a camera, coloured triangles and arrows; and what renders it.

The surface is rendered by VTK through pyvista where that works off-screen, and otherwise by a painter's algorithm.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple, Optional

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

PAPER = "#fbfaf7"
INK = "#1f2430"
_ARROW_COLOURS = (INK, "#ffffff")  # rim, filling


class RenderingError(RuntimeError):
    """The renderer that was asked for could not draw the picture."""


class Camera(NamedTuple):
    """An orthonormal view: unit vectors to the right, upward, and towards the eye."""

    right: FloatArray
    up: FloatArray
    eye: FloatArray

    @staticmethod
    def looking(up: str, view: Optional[tuple[float, float]]) -> Camera:
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
        return Camera(right, np.cross(eye, right), eye)


class Scene(NamedTuple):
    """Triangles with colours, seen by an orthographic camera that frames them."""

    points: FloatArray
    faces: IntArray
    colours: FloatArray  # (V, 3) in 0..1
    arrows: FloatArray  # (N, len(_ARROW), 3): flat polygons, each a dark rim or, after all rims, a light filling
    camera: Camera
    centre: FloatArray
    half_height: float
    size: tuple[int, int]


def extent(points: FloatArray, faces: IntArray, camera: Camera) -> tuple[float, float]:
    """Width and height of the mesh as the camera sees it."""
    shown = points[np.unique(faces)]
    wide, high = float(np.ptp(shown @ camera.right)), float(np.ptp(shown @ camera.up))
    return max(wide, 1e-9 * high, 1e-300), high


def compose(
    points: FloatArray,
    faces: IntArray,
    colours: FloatArray,
    field: Optional[tuple[FloatArray, int]],
    camera: Camera,
    size: tuple[int, int],
) -> Scene:
    seen = points[np.unique(faces)] @ np.stack(camera, axis=1)
    centre = 0.5 * (seen.min(axis=0) + seen.max(axis=0)) @ np.stack(camera)
    wide, high = extent(points, faces, camera)
    half_height = 0.52 * max(high, wide * size[1] / size[0], 1e-300)
    arrows = np.zeros((0, len(_ARROW), 3)) if field is None else arrows_on(points, faces, camera.eye, *field)
    return Scene(points, faces, colours, arrows, camera, centre, half_height, size)


# An arrow of unit length along +x: tail, shaft, head; and the same with a rim around it.
_ARROW = np.array(
    [[0.04, -0.04], [0.58, -0.055], [0.53, -0.185], [0.95, 0.0], [0.53, 0.185], [0.58, 0.055], [0.04, 0.04]], np.float64
)
_RIM = np.array(
    [[0.0, -0.09], [0.51, -0.105], [0.45, -0.29], [1.06, 0.0], [0.45, 0.29], [0.51, 0.105], [0.0, 0.09]], np.float64
)


def face_normals(points: FloatArray, faces: IntArray) -> FloatArray:
    a, b, c = (points[faces[:, i]] for i in range(3))
    return np.asarray(np.cross(b - a, c - a), np.float64)


def vertex_normals(points: FloatArray, faces: IntArray) -> FloatArray:
    normals = face_normals(points, faces)
    total = np.stack(
        [np.bincount(faces.ravel(), np.repeat(normals[:, k], 3), minlength=len(points)) for k in range(3)], axis=1
    )
    return np.asarray(total / np.maximum(np.linalg.norm(total, axis=1), 1e-300)[:, None], np.float64)


def arrows_on(points: FloatArray, faces: IntArray, eye: FloatArray, vectors: FloatArray, count: int) -> FloatArray:
    """Rims and fillings of arrows on an even sample of the vertices that face the eye, just above the surface."""
    area = 0.5 * float(np.linalg.norm(face_normals(points, faces), axis=1).sum())
    length = np.linalg.norm(vectors, axis=1)
    usable = np.isfinite(length) & (length > 0)
    usable[np.setdiff1d(np.arange(len(points)), faces)] = False
    if count <= 0 or not usable.any():
        return np.zeros((0, len(_ARROW), 3))
    spacing = float(np.sqrt(area / count))
    sites = spread(points, np.flatnonzero(usable), spacing)
    low, high = np.log(np.percentile(length[usable], (2, 98)))
    share = np.clip((np.log(length[sites]) - low) / (high - low), 0.0, 1.0) if high > low else np.ones(len(sites))
    normal = vertex_normals(points, faces)[sites]
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


def spread(points: FloatArray, candidates: IntArray, spacing: float) -> IntArray:
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


def render(scene: Scene) -> npt.NDArray[np.uint8]:
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
            background=PAPER,
        )
        package_parent = str(Path(__file__).resolve().parent.parent)
        search = os.pathsep.join(filter(None, (package_parent, os.environ.get("PYTHONPATH"))))
        try:
            done = subprocess.run(
                [sys.executable, "-m", "eman._vtk", request, answer],
                env={**os.environ, "PYTHONPATH": search},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                timeout=300,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise RenderingError(f"VTK did not render off-screen within {error.timeout:.0f} seconds") from error
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or ["it said nothing"]
            raise RenderingError(f"VTK could not render off-screen (exit status {done.returncode}): {lines[-1]}")
        return np.asarray(np.load(answer), np.uint8)


def paint(scene: Scene, axes: Any) -> None:
    """The scene by the painter's algorithm: polygons from far to near, shaded face by face."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgb

    right, up, eye = scene.camera
    normals = face_normals(scene.points, scene.faces)
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
