# SPDX-License-Identifier: GPL-3.0-or-later
"""The tab EMAN in the sidebar of the 3D viewport."""

import bpy

from . import surfaces
from .words import words


class _Panel:
    bl_space_type, bl_region_type, bl_category = "VIEW_3D", "UI", "EMAN"


def _lines(layout, text):
    column = layout.column(align=True)
    for line in text.splitlines():
        column.label(text=line)


class EMAN_PT_parts(_Panel, bpy.types.Panel):
    bl_idname, bl_label = "EMAN_PT_parts", "Parts"

    def draw(self, context):
        layout, settings = self.layout, context.scene.eman
        layout.use_property_split, layout.use_property_decorate = True, False
        layout.prop(settings, "model")
        if settings.model == "FILE":
            layout.prop(settings, "model_path")
        layout.prop(settings, "evaluated")
        layout.prop(settings, "world")
        column = layout.column(heading="Write", align=True)
        for name in ("to_groups", "to_colours", "to_faces", "to_materials"):
            column.prop(settings, name)
        count = len(surfaces.selected(context))
        layout.operator(
            "eman.predict_parts", text=words("Predict Parts ({count})", count=count) if count > 1 else "Predict Parts"
        )


class EMAN_PT_training(_Panel, bpy.types.Panel):
    bl_idname, bl_label = "EMAN_PT_training", "Training"

    def draw(self, context):
        layout, settings = self.layout, context.scene.eman
        layout.use_property_split, layout.use_property_decorate = True, False
        groups = {group.name for obj in surfaces.selected(context) for group in obj.vertex_groups}
        layout.label(
            text=words(
                "{meshes} meshes, {groups} vertex groups", meshes=len(surfaces.selected(context)), groups=len(groups)
            )
        )
        for name in ("preset", "epochs", "rate", "save_path"):
            layout.prop(settings, name)
        layout.operator("eman.train")
        _lines(layout, settings.loss)


class EMAN_PT_features(_Panel, bpy.types.Panel):
    bl_idname, bl_label = "EMAN_PT_features", "Features"

    def draw(self, context):
        layout, settings = self.layout, context.scene.eman
        layout.use_property_split, layout.use_property_decorate = True, False
        for name in ("powers", "get", "evaluated", "world", "frames"):
            layout.prop(settings, name)
        layout.operator("eman.compute_features")


class EMAN_PT_checks(_Panel, bpy.types.Panel):
    bl_idname, bl_label = "EMAN_PT_checks", "Checks"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context):
        layout, settings = self.layout, context.scene.eman
        layout.operator("eman.check_mesh")
        _lines(layout, settings.findings)
        layout.operator("eman.select_findings")
        layout.operator("eman.verify_equivariance")
        _lines(layout, settings.gaps)
        layout.prop(settings, "layer")
        layout.operator("eman.show_attention")


_CLASSES = (EMAN_PT_parts, EMAN_PT_training, EMAN_PT_features, EMAN_PT_checks)


def register():
    for cls in _CLASSES:
        bpy.utils.register_class(cls)


def unregister():
    for cls in reversed(_CLASSES):
        bpy.utils.unregister_class(cls)
