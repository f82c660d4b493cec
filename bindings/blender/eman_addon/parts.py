# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels of parts by a trained model: as vertex groups, attributes, colours and materials."""

import colorsys

import bpy
import numpy as np

from . import surfaces
from .engine import context, eman, load_model
from .jobs import LongOperator
from .words import words

LABEL, FACE_LABEL, CONFIDENCE, COLOUR = "eman_label", "eman_face_label", "eman_confidence", "eman_label_colour"


class EMAN_OT_predict_parts(LongOperator, bpy.types.Operator):
    bl_idname = "eman.predict_parts"
    bl_label = "Predict Parts"
    bl_description = "Let the chosen model label the vertices of the selected meshes"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context):
        return bool(surfaces.selected(context))

    def prepare(self, context_):
        settings, engine = context_.scene.eman, context()
        depsgraph = context_.evaluated_depsgraph_get() if settings.evaluated else None
        found = [surfaces.read(obj, depsgraph, settings.world) for obj in surfaces.selected(context_)]
        model = load_model(settings)
        if model.task != "segmentation":
            raise eman.InvalidArgumentError(words("this model tells whole meshes apart, not their parts"))

        def work(report):
            results = []
            for number, surface in enumerate(found):
                report(number / len(found), surface.object)
                with eman.Mesh(surface.vertices, surface.faces, degenerate="drop", context=engine) as mesh:
                    labels, probabilities = model.top(
                        mesh, 1, progress=lambda done, at=number: report((at + done) / len(found))
                    )
                results.append((surface, labels[:, 0], probabilities[:, 0]))
            return model.labels or [f"part {number}" for number in range(model.classes)], results

        return work

    def finish(self, context_, result):
        names, results = result
        for surface, labels, confidences in results:
            obj = surfaces.find(surface)
            with surfaces.object_mode(obj):
                _write(obj, surface, names, labels, confidences, context_.scene.eman)
        parts = np.unique(np.concatenate([labels for _, labels, _ in results]))
        mean = np.mean(np.concatenate([confidences for *_, confidences in results]))
        told = words(
            "{meshes} meshes, {parts} parts; mean confidence {percent:.0f} %",
            meshes=len(results),
            parts=len(parts),
            percent=100 * mean,
        )
        self.report({"INFO"}, told)


def colours(count):
    """(count, 4) colours that are easy to tell apart."""
    hues = (np.arange(count) * 0.618034) % 1  # the golden ratio: neighbours in the list are far on the circle
    return np.array(
        [(*colorsys.hsv_to_rgb(hue, 0.45 + 0.25 * (i % 3) / 2, 0.9 - 0.25 * (i % 2)), 1) for i, hue in enumerate(hues)]
    )


def _write(obj, surface, names, labels, confidences, settings):
    mesh = obj.data
    surfaces.write(mesh, LABEL, labels, "INT")
    surfaces.write(mesh, CONFIDENCE, confidences, "FLOAT")
    palette = colours(len(names))
    if settings.to_colours:
        surfaces.write(mesh, COLOUR, palette[labels], "FLOAT_COLOR")
        surfaces.show_colours(mesh, COLOUR)
    if settings.to_groups:
        _write_groups(obj, names, labels)
    if settings.to_faces or settings.to_materials:
        of_faces = _of_polygons(mesh, labels)
        if settings.to_faces:
            surfaces.write(mesh, FACE_LABEL, of_faces, "INT", "FACE")
        if settings.to_materials:
            _write_materials(obj, names, palette, of_faces)
    mesh.update()


def _write_groups(obj, names, labels):
    """A group for each part that is there; what an earlier run put into groups of these names goes."""
    everyone = list(range(len(labels)))
    for number, name in enumerate(names):
        members = np.flatnonzero(labels == number)
        group = obj.vertex_groups.get(name)
        if group is not None:
            group.remove(everyone)
        elif len(members):
            group = obj.vertex_groups.new(name=name)
        if len(members):
            group.add(members.tolist(), 1.0, "REPLACE")


def _of_polygons(mesh, labels):
    """The part of each polygon: that of most of its corners, the lowest of equally many."""
    corners = np.empty(len(mesh.loops), np.int32)
    sizes = np.empty(len(mesh.polygons), np.int32)
    mesh.loops.foreach_get("vertex_index", corners)
    mesh.polygons.foreach_get("loop_total", sizes)
    votes = np.zeros((len(sizes), int(labels.max(initial=0)) + 1), np.int32)
    np.add.at(votes, (np.repeat(np.arange(len(sizes)), sizes), labels[corners]), 1)
    return votes.argmax(1).astype(np.int32)


def _write_materials(obj, names, palette, of_faces):
    slots = {}
    for number in np.unique(of_faces):
        material = bpy.data.materials.get(f"EMAN {names[number]}") or bpy.data.materials.new(f"EMAN {names[number]}")
        material.diffuse_color = palette[number]
        at = obj.data.materials.find(material.name)
        if at < 0:
            obj.data.materials.append(material)
            at = len(obj.data.materials) - 1
        slots[number] = at
    obj.data.polygons.foreach_set("material_index", np.array([slots[number] for number in of_faces], np.int32))


def register():
    bpy.utils.register_class(EMAN_OT_predict_parts)


def unregister():
    bpy.utils.unregister_class(EMAN_OT_predict_parts)
