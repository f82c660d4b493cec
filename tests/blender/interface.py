"""Runs inside Blender with a window: real clicks in the sidebar, a training that does not freeze it, ESC, screenshots.

``blender … --enable-event-simulate --python interface.py -- ZIP FOLDER``
"""

import sys
import time
import traceback
from pathlib import Path

import bpy

zip_file, folder = sys.argv[sys.argv.index("--") + 1 :]
folder = Path(folder)
NAME = "eman_addon"
TAB_STEP = 12  # pixels; the row of tabs is at the right edge of the sidebar
BUTTON = 211  # Predict Parts, pixels below the top of the sidebar in Blender 3.4


def steps():
    """The test: each yield gives Blender time to handle events and draw."""
    bpy.ops.preferences.addon_install(filepath=zip_file, overwrite=True)
    bpy.ops.preferences.addon_enable(module=NAME)
    from eman.creatures import creature

    made = creature(5, 2000, "horse")
    mesh = bpy.data.meshes.new("horse")
    mesh.from_pydata(made.vertices.tolist(), [], made.faces.tolist())
    horse = bpy.data.objects.new("horse", mesh)
    bpy.ops.object.select_all(action="DESELECT")
    bpy.data.objects.remove(bpy.data.objects["Cube"])
    bpy.context.scene.collection.objects.link(horse)
    horse.select_set(True)
    bpy.context.view_layer.objects.active = horse
    settings = bpy.context.scene.eman
    settings.model = "creature-parts"

    window = bpy.context.window_manager.windows[0]
    area = next(area for area in window.screen.areas if area.type == "VIEW_3D")
    area.spaces.active.show_region_ui = True
    area.spaces.active.shading.color_type = "VERTEX"
    yield from pause(0.5)
    with bpy.context.temp_override(window=window, area=area, region=region_of(area, "WINDOW")):
        bpy.ops.view3d.view_selected()
    sidebar = region_of(area, "UI")

    # The tab: the first place from the top of the row of tabs at which a click makes the panel draw itself.
    drawn = watch_drawing()
    for y in range(sidebar.y + sidebar.height - 10, sidebar.y, -TAB_STEP):
        yield from click(window, sidebar.x + sidebar.width - 8, y)
        if drawn:
            break
    assert drawn, "no tab shows the panel"
    yield from pause(0.3)

    # The button.
    yield from click(window, sidebar.x + sidebar.width // 2, sidebar.y + sidebar.height - BUTTON)
    yield from wait(lambda: "eman_label" in mesh.attributes, 30, "the button does not label the mesh")
    assert len(horse.vertex_groups) > 10
    yield from pause(0.5)
    yield from screenshot(folder / "panel.png", window, area)

    # A long training draws on while it runs, and ESC ends it soon.
    horse.vertex_groups.clear()
    for name, members in (("front", range(1000)), ("back", range(1000, 2000))):
        horse.vertex_groups.new(name=name).add(list(members), 1.0, "REPLACE")
    idle = yield from longest_tick(3)
    settings.epochs, settings.save_path = 10000, str(folder / "never.safetensors")
    with bpy.context.temp_override(window=window, area=area, region=region_of(area, "WINDOW")):
        assert bpy.ops.eman.train("INVOKE_DEFAULT") == {"RUNNING_MODAL"}
    yield from wait(lambda: settings.loss, 30, "the training does not report")
    busy = yield from longest_tick(3)
    if busy >= 4 * idle + 0.2:  # once more: the machine may have been busy with something else
        busy = yield from longest_tick(3)
    print(f"longest tick: {idle:.2f} s idle, {busy:.2f} s beside a training")
    assert busy < 4 * idle + 0.2, "it freezes the window"
    begun = time.monotonic()
    window.event_simulate("ESC", "PRESS")
    window.event_simulate("ESC", "RELEASE")
    yield from wait(lambda: not is_running(), 5, "ESC does not end it")
    print(f"ESC took {time.monotonic() - begun:.2f} s")
    assert not (folder / "never.safetensors").exists()

    # A mesh that goes while it is labelled; then another file.
    with bpy.context.temp_override(window=window, area=area, region=region_of(area, "WINDOW")):
        assert bpy.ops.eman.train("INVOKE_DEFAULT") == {"RUNNING_MODAL"}
    yield 0.1
    bpy.data.objects.remove(horse)
    yield from pause(0.3)
    with bpy.context.temp_override(window=window):
        bpy.ops.wm.read_homefile()
    yield from wait(lambda: not is_running(), 5, "opening another file does not end the training")
    yield 0.5
    bpy.ops.preferences.addon_disable(module=NAME)
    yield 0.5
    window = bpy.context.window_manager.windows[0]
    with bpy.context.temp_override(window=window, area=window.screen.areas[0]):
        bpy.ops.preferences.addon_remove(module=NAME)
    assert not (Path(bpy.utils.user_resource("SCRIPTS")) / "addons" / NAME).exists()


def is_running():
    jobs = sys.modules[f"{NAME}.jobs"]
    return bool(jobs._running)


def watch_drawing():
    drawn = []
    panel = sys.modules[f"{NAME}.panel"].EMAN_PT_parts
    original = panel.draw

    def draw(self, context):
        drawn.append(True)
        original(self, context)

    panel.draw = draw
    return drawn


def region_of(area, kind):
    return next(region for region in area.regions if region.type == kind)


def pause(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield 0.02


def longest_tick(seconds):
    """The longest time between two turns of Blender's loop: drawing by the processor takes its time."""
    end, longest = time.monotonic() + seconds, 0.0
    while time.monotonic() < end:
        begun = time.monotonic()
        yield 0.02
        longest = max(longest, time.monotonic() - begun)
    return longest


def wait(what, seconds, otherwise):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, otherwise
        yield 0.02


def click(window, x, y):
    window.event_simulate("MOUSEMOVE", "NOTHING", x=x, y=y)
    yield 0.05
    window.event_simulate("LEFTMOUSE", "PRESS", x=x, y=y)
    yield 0.05
    window.event_simulate("LEFTMOUSE", "RELEASE", x=x, y=y)
    yield 0.15


def screenshot(path, window, area):
    with bpy.context.temp_override(window=window, area=area):
        bpy.ops.screen.screenshot(filepath=str(path))
    yield 0.1


running = steps()


def drive():
    try:
        return next(running)
    except StopIteration:
        print("the interface works", flush=True)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    bpy.ops.wm.quit_blender()
    return None


bpy.context.preferences.view.show_splash = False
bpy.app.timers.register(drive, first_interval=1.0, persistent=True)
