# SPDX-License-Identifier: GPL-3.0-or-later
"""What the panel holds: one group of properties of the scene."""

import bpy
from bpy.props import (
    BoolProperty,
    EnumProperty,
    FloatProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)

from .engine import shipped_names


def _models(_self, _context):
    _models.items = [  # Blender does not keep the strings alive itself
        (name, name.replace("-", " ").capitalize(), "A model that comes with the add-on") for name in shipped_names()
    ] + [("FILE", "Model file", "A model of your own")]
    return _models.items


class EmanSettings(bpy.types.PropertyGroup):
    powers: StringProperty(
        name="Powers",
        description="How much near and far neighbours count, one field for each number: with small ones far "
        "neighbours pull more, with large ones near neighbours do",
        default="0.5, 0.7",
    )
    get: BoolProperty(
        name="GET",
        description="Also the position seen from each point's tangent plane; it changes when the object moves",
    )
    evaluated: BoolProperty(
        name="With modifiers", description="On the mesh as its modifiers and pose leave it; they must keep the vertices"
    )
    world: BoolProperty(
        name="In the world",
        description="With the object's scale and place: a scale that differs along its axes changes the shape",
    )
    frames: BoolProperty(
        name="Frame range", description="For all frames of the scene: the mesh must not gain or lose vertices"
    )

    model: EnumProperty(name="Model", description="What knows the parts", items=_models)
    model_path: StringProperty(name="File", description="The model file to use", subtype="FILE_PATH")
    to_groups: BoolProperty(name="Vertex groups", description="A vertex group for each part", default=True)
    to_colours: BoolProperty(name="Colours", description="A colour attribute that shows the parts", default=True)
    to_faces: BoolProperty(name="Face attribute", description="The part of each face, that of most of its corners")
    to_materials: BoolProperty(
        name="Materials", description="A material slot for each part, and every face in one of them"
    )

    epochs: IntProperty(
        name="Rounds",
        description="How often every mesh is looked at; more is slower and often better",
        default=60,
        min=1,
        max=10000,
    )
    preset: EnumProperty(
        name="Kind",
        description="What the model is to be good at",
        items=[
            ("surface", "Any mesh", "Labels meshes of any triangulation: the usual choice"),
            ("default", "Same topology", "Labels meshes that share the topology of those it learned from"),
        ],
    )
    rate: FloatProperty(
        name="Rate",
        description="How fast it learns; too fast and it learns nothing",
        default=0.005,
        min=1e-6,
        max=1,
        precision=4,
    )
    save_path: StringProperty(name="Save as", description="Where the trained model goes", subtype="FILE_PATH")

    layer: IntProperty(name="Layer", description="Which layer's attention to show, counted from 0", min=0)

    findings: StringProperty()  # of the last check: lines for the panel
    loss: StringProperty()  # of the training that runs
    gaps: StringProperty()


def register():
    bpy.utils.register_class(EmanSettings)
    bpy.types.Scene.eman = PointerProperty(type=EmanSettings)


def unregister():
    del bpy.types.Scene.eman
    bpy.utils.unregister_class(EmanSettings)
