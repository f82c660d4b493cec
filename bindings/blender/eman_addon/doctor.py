# SPDX-License-Identifier: GPL-3.0-or-later
"""The mesh doctor: what is wrong with a mesh, and where."""

import bpy
import numpy as np

from . import surfaces
from .engine import context, eman
from .jobs import LongOperator
from .words import words


def _name(finding):
    return words(finding.replace("_", " "))


class EMAN_OT_check_mesh(LongOperator, bpy.types.Operator):
    bl_idname = "eman.check_mesh"
    bl_label = "Check Mesh"
    bl_description = (
        "Find what is wrong with the mesh: holes, edges of many faces, needles, loose vertices, flipped faces"
    )
    bl_options = {"REGISTER"}

    @classmethod
    def poll(cls, context):
        return bool(surfaces.selected(context))

    def prepare(self, context_):
        found = [surfaces.read(obj) for obj in surfaces.selected(context_)]
        engine = context()

        def work(report):
            lines = []
            for number, surface in enumerate(found):
                report(number / len(found), surface.object)
                with eman.Mesh(surface.vertices, surface.faces, degenerate="drop", context=engine) as mesh:
                    counts = {name: count for name, count in mesh.report().counts.items() if count}
                lines.append((surface.object, counts))
            return lines

        return work

    def finish(self, context_, results):
        lines = []
        for name, counts in results:
            told = ", ".join(f"{count:,} {_name(finding)}" for finding, count in counts.items())
            lines.append(f"{name}: {told or words('nothing wrong')}")
        context_.scene.eman.findings = "\n".join(lines)
        self.report({"INFO"}, "; ".join(lines))


class EMAN_OT_select_findings(bpy.types.Operator):
    bl_idname = "eman.select_findings"
    bl_label = "Select Problem Elements"
    bl_description = "Check the active mesh and select the vertices of everything that was found, in Edit Mode"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context):
        return context.active_object is not None and context.active_object.type == "MESH"

    def execute(self, context_):
        obj = context_.active_object
        surface = surfaces.read(obj)
        try:
            with eman.Mesh(surface.vertices, surface.faces, degenerate="drop", context=context()) as mesh:
                chosen = _vertices(mesh.report(), surface)
        except eman.EmanError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        if obj.mode != "EDIT":
            context_.view_layer.objects.active = obj
            bpy.ops.object.mode_set(mode="EDIT")
        bpy.ops.mesh.select_mode(type="VERT")
        bpy.ops.mesh.select_all(action="DESELECT")
        bpy.ops.object.mode_set(mode="OBJECT")
        obj.data.vertices.foreach_set("select", chosen)
        bpy.ops.object.mode_set(mode="EDIT")
        self.report({"INFO"}, words("{count:,} vertices selected", count=np.count_nonzero(chosen)))
        return {"FINISHED"}


def _vertices(report, surface):
    """Which vertices any finding names, as such or as corners of faces or ends of edges."""
    chosen = np.zeros(len(surface.vertices), bool)
    for finding, elements in report.items():
        corners = surface.faces[elements] if finding.endswith("faces") else elements
        chosen[np.ravel(corners)] = True
    return chosen


_CLASSES = (EMAN_OT_check_mesh, EMAN_OT_select_findings)


def register():
    for cls in _CLASSES:
        bpy.utils.register_class(cls)


def unregister():
    for cls in reversed(_CLASSES):
        bpy.utils.unregister_class(cls)
