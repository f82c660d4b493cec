# SPDX-License-Identifier: GPL-3.0-or-later
"""Features of surfaces as attributes: RelTan fields, which follow the surface, and GET."""

import bpy
import numpy as np

from . import surfaces
from .engine import context, eman
from .jobs import LongOperator
from .words import words


def powers_of(text):
    """The numbers in a field of the panel."""
    try:
        powers = tuple(float(word) for word in text.replace(",", " ").split())
    except ValueError:
        raise ValueError(words("powers must be numbers such as 0.5, 0.7, not {text!r}", text=text)) from None
    if not powers:
        raise ValueError(words("give at least one power, such as 0.7"))
    return powers


class EMAN_OT_compute_features(LongOperator, bpy.types.Operator):
    bl_idname = "eman.compute_features"
    bl_label = "Compute Features"
    bl_description = (
        "Measure how the surface leans at every vertex: a vector field that turns with the object and does not change "
        "with its place or size, as attributes for geometry nodes and shaders"
    )
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context):
        return bool(surfaces.selected(context))

    def prepare(self, context_):
        settings = context_.scene.eman
        powers, with_get = powers_of(settings.powers), settings.get
        numbers = [context_.scene.frame_current]
        if settings.frames:
            numbers = list(range(context_.scene.frame_start, context_.scene.frame_end + 1))
        poses = _poses(context_, surfaces.selected(context_), numbers, settings)
        engine = context()

        def work(report):
            results = []
            for number, surface_poses in enumerate(poses):
                first, mesh, fields = surface_poses[0], None, []
                for step, surface in enumerate(surface_poses):
                    report((number + step / len(surface_poses)) / len(poses), first.object)
                    if mesh is None:
                        mesh = eman.Mesh(first.vertices, first.faces, degenerate="drop", context=engine)
                    else:
                        mesh.update(surface.vertices)  # same faces: only the positions are new
                    fields.append((mesh.reltan(powers, "ambient"), mesh.get_features() if with_get else None))
                results.append((first, fields))
            return results

        self._powers, self._frames = powers, numbers
        return work

    def finish(self, context_, results):
        for surface, fields in results:
            obj = surfaces.find(surface)
            with surfaces.object_mode(obj):
                self._write(context_, obj, fields)
        count = sum(len(surface.vertices) for surface, _ in results)
        told = words(
            "Features of {meshes} meshes, {vertices:,} vertices, {frames} frames",
            meshes=len(results),
            vertices=count,
            frames=len(self._frames),
        )
        self.report({"INFO"}, told)

    def _write(self, context_, obj, fields):
        """The attributes of the current frame; of a range the others get the frame's number behind their names."""
        current, shown = context_.scene.frame_current, None
        for frame, (reltan, get) in zip(self._frames, fields):
            behind = "" if len(self._frames) == 1 or frame == current else f"_{frame:04d}"
            for power, field in zip(self._powers, np.moveaxis(reltan, 1, 0)):
                surfaces.write(obj.data, f"eman_reltan_{power:g}{behind}", field, "FLOAT_VECTOR")
            lengths = np.sqrt(np.einsum("ij,ij->i", reltan[:, 0], reltan[:, 0]))
            surfaces.write(obj.data, f"eman_reltan_length{behind}", lengths, "FLOAT")
            if get is not None:
                surfaces.write(obj.data, f"eman_get{behind}", get, "FLOAT_VECTOR")
            if shown is None or frame == current:
                shown = lengths
        surfaces.write(obj.data, "eman_reltan_colour", _colours(shown), "FLOAT_COLOR")
        surfaces.show_colours(obj.data, "eman_reltan_colour")
        obj.data.update()


def _poses(context_, objects, frames, settings):
    """For each object its surface in every frame."""
    evaluated = settings.evaluated or settings.frames
    scene, before = context_.scene, context_.scene.frame_current
    poses = [[] for _ in objects]
    try:
        for frame in frames:
            if frame != scene.frame_current:
                scene.frame_set(frame)
            depsgraph = context_.evaluated_depsgraph_get() if evaluated else None
            for obj, surface_poses in zip(objects, poses):
                surface_poses.append(surfaces.read(obj, depsgraph, settings.world))
                if len(surface_poses[0].vertices) != len(surface_poses[-1].vertices):
                    raise surfaces.Stale(
                        words("{name} has another number of vertices in frame {frame}", name=obj.name, frame=frame)
                    )
    finally:
        if scene.frame_current != before:
            scene.frame_set(before)
    return poses


def _colours(values):
    """From blue over white to red, the brightest at the 98th percentile."""
    top = np.percentile(values, 98) if len(values) else 0
    ramp = np.array([[0.05, 0.12, 0.4, 1], [0.9, 0.9, 0.85, 1], [0.65, 0.05, 0.03, 1]])
    places = np.array([0, 0.5, 1]) * (top or 1)
    return np.stack([np.interp(values, places, channel) for channel in ramp.T], 1)


def register():
    bpy.utils.register_class(EMAN_OT_compute_features)


def unregister():
    bpy.utils.unregister_class(EMAN_OT_compute_features)
