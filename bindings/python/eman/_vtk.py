"""Renders one scene with VTK off-screen: ``python -m eman._vtk SCENE.npz IMAGE.npy``, called by `eman.plot`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pyvista

_OVERSAMPLING = 2

# Direction to the light in (right, up, eye) and its strength: key, fill and rim.
_LIGHTS = (((-0.5, 0.75, 0.8), 0.78), ((0.9, 0.1, 0.6), 0.32), ((-0.3, 0.8, -0.9), 0.3))


def render(scene: Any) -> npt.NDArray[np.uint8]:
    """Image (height, width, 3) of a scene around the origin, as `eman.plot` stores it."""
    width, height = (int(n) for n in scene["size"])
    _, up, eye = scene["view"]
    extent = float(np.linalg.norm(np.ptp(scene["points"], axis=0)))
    plotter: Any = pyvista.Plotter(
        off_screen=True, window_size=[_OVERSAMPLING * width, _OVERSAMPLING * height], lighting="none"
    )
    plotter.set_background(str(scene["background"]))
    surface = pyvista.PolyData.from_regular_faces(scene["points"], scene["faces"])
    surface.point_data["colour"] = scene["colours"]
    surface = surface.compute_normals(
        cell_normals=False, split_vertices=True, feature_angle=65.0, consistent_normals=False
    )
    plotter.add_mesh(
        surface,
        scalars="colour",
        rgb=True,
        smooth_shading=True,
        ambient=0.38,
        diffuse=0.8,
        specular=0.14,
        specular_power=18,
    )
    for layer, colour in zip(np.split(scene["arrows"], 2), scene["arrow_colours"]):
        if len(layer):
            polygons = np.arange(layer.shape[0] * layer.shape[1]).reshape(layer.shape[:2])
            flat = pyvista.PolyData.from_regular_faces(layer.reshape(-1, 3), polygons).triangulate()
            plotter.add_mesh(flat, color=str(colour), lighting=False)
    for direction, strength in _LIGHTS:
        position = tuple(np.array(direction) @ scene["view"])
        plotter.add_light(pyvista.Light(position=position, focal_point=(0.0, 0.0, 0.0), intensity=strength))
    plotter.camera.position = tuple(4.0 * extent * eye)
    plotter.camera.focal_point = (0.0, 0.0, 0.0)
    plotter.camera.up = tuple(up)
    plotter.enable_parallel_projection()
    plotter.camera.parallel_scale = float(scene["half_height"])
    plotter.reset_camera_clipping_range()
    plotter.enable_ssao(radius=0.12 * extent, bias=0.008 * extent, kernel_size=32, blur=True)
    fine = np.asarray(plotter.screenshot(return_img=True), np.float64)[..., :3]
    plotter.close()
    even = fine.reshape(height, _OVERSAMPLING, width, _OVERSAMPLING, 3).mean(axis=(1, 3))
    return np.asarray(np.round(even), np.uint8)


if __name__ == "__main__":
    with np.load(sys.argv[1]) as stored:
        np.save(sys.argv[2], render(stored))
