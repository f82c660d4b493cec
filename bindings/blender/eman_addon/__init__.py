# SPDX-License-Identifier: GPL-3.0-or-later
"""EMAN in Blender: features, part labels and training on meshes, over the package eman."""

bl_info = {
    "name": "EMAN: label parts of meshes",
    "author": "The libeman authors",
    "version": (0, 1, 0),
    "blender": (3, 4, 0),
    "location": "3D Viewport > Sidebar > EMAN",
    "description": "Learns parts from painted vertex groups, labels other meshes, and computes surface features",
    "category": "Mesh",
}

from . import attention, doctor, features, jobs, panel, parts, preferences, settings, symmetry, training  # noqa: E402  behind bl_info, which Blender reads

_MODULES = (preferences, settings, features, doctor, parts, training, symmetry, attention, panel)


def register() -> None:
    for module in _MODULES:
        module.register()


def unregister() -> None:
    jobs.stop_all()
    for module in reversed(_MODULES):
        module.unregister()
