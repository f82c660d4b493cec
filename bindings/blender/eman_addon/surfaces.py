# SPDX-License-Identifier: GPL-3.0-or-later
"""Meshes of Blender as arrays, and results as attributes, vertex groups and materials.

Arrays are read and written at once (foreach_get, foreach_set) in the types that Blender holds them in.
"""

import contextlib
from typing import NamedTuple

import bpy
import numpy as np

from .words import words


class Surface(NamedTuple):
    """A mesh as arrays: everything that a computation away from Blender's main thread may see."""

    object: str  # its name: the object itself may be gone when the result is there
    vertices: np.ndarray  # (V, 3) float32
    faces: np.ndarray  # (F, 3) int32, triangles


class Stale(RuntimeError):
    """The mesh is not what it was when the computation began."""


def selected(context):
    """The mesh objects that are selected, the active one first."""
    objects = [obj for obj in context.selected_objects if obj.type == "MESH"]
    active = context.active_object
    if active is not None and active.type == "MESH":
        objects = [active] + [obj for obj in objects if obj is not active]
    return objects


def read(obj, depsgraph=None, world=False):
    """The mesh of an object: the original, or, with a depsgraph, as modifiers leave it; as it is, or in the world."""
    if obj.library is not None or obj.data.library is not None:
        raise ValueError(words("{name} is linked from another file: make it local first", name=obj.name))
    if obj.mode == "EDIT":
        obj.update_from_editmode()
    if depsgraph is None:
        surface = _arrays(obj.name, obj.data)
    else:
        evaluated = obj.evaluated_get(depsgraph)
        mesh = evaluated.to_mesh()
        try:
            surface = _arrays(obj.name, mesh)
        finally:
            evaluated.to_mesh_clear()
    if world:
        matrix = np.array(obj.matrix_world, np.float64)
        moved = surface.vertices @ matrix[:3, :3].T + matrix[:3, 3]
        surface = surface._replace(vertices=moved.astype(np.float32))
    return surface


def _arrays(name, mesh):
    if not len(mesh.polygons):
        raise ValueError(words("{name} has no faces", name=name))
    if hasattr(mesh, "calc_loop_triangles"):
        mesh.calc_loop_triangles()
    triangles = mesh.loop_triangles
    vertices = np.empty(3 * len(mesh.vertices), np.float32)
    faces = np.empty(3 * len(triangles), np.int32)
    mesh.vertices.foreach_get("co", vertices)
    triangles.foreach_get("vertices", faces)
    return Surface(name, vertices.reshape(-1, 3), faces.reshape(-1, 3))


def find(surface):
    """The object that a surface was read from; Stale if it is gone or was changed."""
    obj = bpy.data.objects.get(surface.object)
    if obj is None or obj.type != "MESH":
        raise Stale(words("{name} is gone", name=surface.object))
    if len(obj.data.vertices) != len(surface.vertices):
        raise Stale(
            words(
                "{name} has {now} vertices now, not {before}: the result does not fit "
                "(are there modifiers that change the number of vertices?)",
                name=surface.object,
                now=len(obj.data.vertices),
                before=len(surface.vertices),
            )
        )
    return obj


@contextlib.contextmanager
def object_mode(obj):
    """Attributes cannot be written in Edit Mode: leave it, and come back."""
    mode = obj.mode
    if mode == "OBJECT":
        yield
        return
    view_layer = bpy.context.view_layer
    active = view_layer.objects.active
    view_layer.objects.active = obj
    bpy.ops.object.mode_set(mode="OBJECT")
    try:
        yield
    finally:
        bpy.ops.object.mode_set(mode=mode)
        view_layer.objects.active = active


# Of each attribute type: the member that holds its values, and what Blender holds them in.
_TYPES = {
    "FLOAT": ("value", np.float32),
    "INT": ("value", np.int32),
    "FLOAT_VECTOR": ("vector", np.float32),
    "FLOAT_COLOR": ("color", np.float32),
}


def write(mesh, name, values, kind, domain="POINT"):
    """Set a named attribute, made if it is missing; one of another type or domain is left alone.

    The mesh's `update` is up to the caller, once for all.
    """
    attribute = mesh.attributes.get(name)
    if attribute is not None and (attribute.data_type, attribute.domain) != (kind, domain):
        raise TypeError(
            words(
                "{mesh} has an attribute {name!r} of another type ({kind} on {domain}): rename or remove it first",
                mesh=mesh.name,
                name=name,
                kind=attribute.data_type,
                domain=attribute.domain,
            )
        )
    if attribute is None:
        attribute = mesh.attributes.new(name, kind, domain)
        if attribute is None:
            raise TypeError(words("{mesh} takes no further attribute {name!r}", mesh=mesh.name, name=name))
    member, dtype = _TYPES[kind]
    attribute.data.foreach_set(member, np.ascontiguousarray(values, dtype).ravel())


def show_colours(mesh, name):
    """Make a colour attribute the one that the viewport shows."""
    colours = mesh.color_attributes
    if name in colours:
        colours.active_color_index = colours.find(name)
        with contextlib.suppress(AttributeError):
            colours.render_color_index = colours.find(name)
