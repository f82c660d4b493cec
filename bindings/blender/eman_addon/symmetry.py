# SPDX-License-Identifier: GPL-3.0-or-later
"""Proof that a model does not care how a mesh lies in space, or how it is numbered."""

import bpy

from . import surfaces
from .engine import context, eman, load_model
from .jobs import LongOperator
from .words import words

_NAMES = {
    "gauge": "tangent frames turned",
    "rigid": "rotated and moved",
    "similarity": "rotated, moved and scaled",
    "permutation": "renumbered",
}


class EMAN_OT_verify_equivariance(LongOperator, bpy.types.Operator):
    bl_idname = "eman.verify_equivariance"
    bl_label = "Verify Equivariance"
    bl_description = (
        "Measure how much the model's answer changes when the active mesh is moved, turned, scaled or renumbered: "
        "it should be nothing but rounding"
    )
    bl_options = {"REGISTER"}

    @classmethod
    def poll(cls, context):
        return bool(surfaces.selected(context))

    def prepare(self, context_):
        surface, engine = surfaces.read(surfaces.selected(context_)[0]), context()
        model = load_model(context_.scene.eman)

        def work(report):
            gaps = {}
            with eman.Mesh(surface.vertices, surface.faces, degenerate="drop", context=engine) as mesh:
                for number, (transform, name) in enumerate(_NAMES.items()):
                    report(number / len(_NAMES), name)
                    gaps[name] = eman.equivariance_gap(model, mesh, transform)
            return gaps

        return work

    def finish(self, context_, gaps):
        lines = [f"{words(name)}: {gap:.1e}" for name, gap in gaps.items()]
        context_.scene.eman.gaps = "\n".join(lines)
        self.report({"INFO"}, words("Mean squared change: {gaps}", gaps=", ".join(lines)))


def register():
    bpy.utils.register_class(EMAN_OT_verify_equivariance)


def unregister():
    bpy.utils.unregister_class(EMAN_OT_verify_equivariance)
