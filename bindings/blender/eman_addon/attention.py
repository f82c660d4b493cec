# SPDX-License-Identifier: GPL-3.0-or-later
"""Which neighbours a vertex listens to: the attention coefficients of a layer around the active vertex."""

import bpy
import numpy as np

from . import surfaces
from .engine import context, eman, load_model
from .jobs import LongOperator
from .words import words

ATTRIBUTE = "eman_attention"


class EMAN_OT_show_attention(LongOperator, bpy.types.Operator):
    bl_idname = "eman.show_attention"
    bl_label = "Show Attention"
    bl_description = (
        "How much each neighbour counts for the vertex selected in Edit Mode, as an attribute: "
        "1 is as much as the others"
    )
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context):
        return context.active_object is not None and context.active_object.type == "MESH"

    def prepare(self, context_):
        obj, settings, engine = context_.active_object, context_.scene.eman, context()
        surface = surfaces.read(obj)
        chosen = np.empty(len(surface.vertices), bool)
        obj.data.vertices.foreach_get("select", chosen)
        chosen = np.flatnonzero(chosen)
        if len(chosen) != 1:
            raise ValueError(words("select one vertex in Edit Mode: {count} are selected", count=len(chosen)))
        model, layer, vertex = load_model(settings), settings.layer, int(chosen[0])
        attending = [number for number, found in enumerate(model.layers) if found.heads]
        if "surface" in model.spec or not attending:
            raise ValueError(words("this model has no attention on vertices: train one of the kind 'Same topology'"))
        if layer not in attending:
            raise ValueError(
                words(
                    "layer {layer} has no attention; these have: {others}",
                    layer=layer,
                    others=", ".join(map(str, attending)),
                )
            )

        def work(report):
            report(0, surface.object)
            with eman.Mesh(surface.vertices, surface.faces, degenerate="drop", context=engine) as mesh:
                offsets, neighbours = mesh.neighbors
                ring = slice(offsets[vertex], offsets[vertex + 1])
                values = np.zeros(len(surface.vertices), np.float32)
                values[neighbours[ring]] = model.attention(mesh, layer)[ring].mean(1)
            return values

        self._surface, self._vertex = surface, vertex
        return work

    def finish(self, context_, values):
        obj = surfaces.find(self._surface)
        with surfaces.object_mode(obj):
            surfaces.write(obj.data, ATTRIBUTE, values, "FLOAT")
            obj.data.update()
        heard = np.flatnonzero(values)
        self.report(
            {"INFO"},
            words(
                "Vertex {vertex} hears {count} neighbours, most of all {most} ({value:.2f})",
                vertex=self._vertex,
                count=len(heard),
                most=values.argmax(),
                value=values.max(initial=0),
            ),
        )


def register():
    bpy.utils.register_class(EMAN_OT_show_attention)


def unregister():
    bpy.utils.unregister_class(EMAN_OT_show_attention)
