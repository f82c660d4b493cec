"""What the scripts that run inside Blender share."""

import time

import bpy  # isort: skip  brings addon_utils
import addon_utils
import numpy as np

EXTENSION = bpy.app.version >= (4, 2)
NAME = "bl_ext.user_default.eman_addon" if EXTENSION else "eman_addon"


def install(zip_file):
    """Install and enable the add-on; returns the package that it brings."""
    if EXTENSION:
        bpy.ops.extensions.package_install_files(repo="user_default", filepath=zip_file, enable_on_install=True)
    else:
        bpy.ops.preferences.addon_install(filepath=zip_file, overwrite=True)
        bpy.ops.preferences.addon_enable(module=NAME)
    assert NAME in bpy.context.preferences.addons
    assert addon_utils.check(NAME) == (True, True)
    import eman

    assert ("extensions" if EXTENSION else "eman_addon/vendor") in eman.__file__, eman.__file__
    print("library", eman.build_info()["library"])
    return eman


def select(*objects):
    bpy.ops.object.select_all(action="DESELECT")
    for obj in objects:
        obj.select_set(True)
    bpy.context.view_layer.objects.active = objects[0]


def attribute(obj, name, member, width=1):
    data = obj.data.attributes[name].data
    values = np.empty(len(data) * width, np.int32 if name.endswith("label") else np.float32)
    data.foreach_get(member, values)
    return values.reshape(len(data), width).squeeze()


def refused(call, text):
    """The operator reports a fault in these words."""
    try:
        call()
    except RuntimeError as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"{text!r} was not reported")


def seconds(call):
    begun = time.perf_counter()
    assert call() == {"FINISHED"}
    return time.perf_counter() - begun
