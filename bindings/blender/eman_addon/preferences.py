# SPDX-License-Identifier: GPL-3.0-or-later
"""What the user sets once: threads, memory, instruction set, where models are."""

import os

import bpy
from bpy.props import EnumProperty, IntProperty, StringProperty


class EmanPreferences(bpy.types.AddonPreferences):
    bl_idname = __package__

    threads: IntProperty(
        name="Threads",
        description="How many processor cores a computation may use; 0 leaves one core to the user interface",
        min=0,
        max=1024,
    )
    memory_limit: IntProperty(
        name="Memory (MB)", description="What computations may take together; 0 means all there is", min=0
    )
    instruction_set: EnumProperty(
        name="Processor",
        description="Which instructions to use; results are the same up to rounding",
        items=[
            ("auto", "Automatic", "The fastest that this processor has"),
            ("generic", "Generic", "Those that every processor has: slow, for comparison"),
            ("avx2", "AVX2", "Of most PC processors since 2013"),
            ("avx512", "AVX-512", "Of newer PC processors"),
            ("neon", "NEON", "Of ARM processors"),
        ],
    )
    models: StringProperty(name="Model folder", description="Where trained models are saved", subtype="DIR_PATH")

    def draw(self, _context):
        for name in ("threads", "memory_limit", "instruction_set", "models"):
            self.layout.prop(self, name)


def of_context():
    """Threads, megabytes and instruction set."""
    chosen = _chosen()
    threads = chosen.threads if chosen else 0
    limits = (chosen.memory_limit, chosen.instruction_set) if chosen else (0, "auto")
    return (threads or max(1, (os.cpu_count() or 2) - 1), *limits)


def model_folder():
    """Where models are saved: beside the file where nothing is set, or at home."""
    chosen = _chosen()
    if chosen and chosen.models:
        return absolute(chosen.models)
    return absolute("//") if bpy.data.filepath else os.path.expanduser("~")


def absolute(path):
    """A path of Blender's, where // is the folder of the file."""
    return os.path.abspath(bpy.path.abspath(path)) if path else ""


def _chosen():
    addon = bpy.context.preferences.addons.get(__package__)
    return addon.preferences if addon else None


def register():
    bpy.utils.register_class(EmanPreferences)


def unregister():
    bpy.utils.unregister_class(EmanPreferences)
