"""Runs inside Blender: the pictures of the add-on's README, a human labelled and one coloured by its RelTan field.

``blender -b --factory-startup --python pictures.py -- ZIP HUMANS.npz FOLDER``
"""

import math
import sys
from pathlib import Path

import bpy
import numpy as np

zip_file, data, folder = sys.argv[sys.argv.index("--") + 1 :]
bpy.ops.preferences.addon_install(filepath=zip_file, overwrite=True)
bpy.ops.preferences.addon_enable(module="eman_addon")

bpy.ops.object.select_all(action="SELECT")
bpy.ops.object.delete()
with np.load(data) as found:
    bodies, faces = found["vertices"], found["faces"]
objects = []
for place, number in enumerate((81, 95)):
    mesh = bpy.data.meshes.new(f"body {number}")
    mesh.from_pydata((bodies[number] * [1, 1, 1]).tolist(), [], faces.tolist())
    mesh.polygons.foreach_set("use_smooth", np.ones(len(faces), bool))
    obj = bpy.data.objects.new(mesh.name, mesh)
    obj.rotation_euler, obj.location = (math.pi / 2, 0, 0), (1.7 * place, 0, 0)
    bpy.context.scene.collection.objects.link(obj)
    objects.append(obj)


def choose(obj):
    bpy.ops.object.select_all(action="DESELECT")
    obj.select_set(True)
    bpy.context.view_layer.objects.active = obj


bpy.context.scene.eman.model = "human-parts"
choose(objects[0])
bpy.ops.eman.predict_parts()
choose(objects[1])
bpy.ops.eman.compute_features()
bpy.ops.object.select_all(action="DESELECT")

camera = bpy.data.objects.new("camera", bpy.data.cameras.new("camera"))
camera.data.type, camera.data.ortho_scale = "ORTHO", 3.6
camera.location, camera.rotation_euler = (0.85, -8, 0), (math.pi / 2, 0, 0)
bpy.context.scene.collection.objects.link(camera)
heights = [corner[2] for obj in objects for corner in (obj.matrix_world @ v.co for v in obj.data.vertices)]
camera.location.z = (min(heights) + max(heights)) / 2

scene = bpy.context.scene
scene.camera = camera
scene.render.engine = "BLENDER_WORKBENCH"
scene.display.shading.light, scene.display.shading.color_type = "STUDIO", "VERTEX"
scene.display.shading.show_cavity = True
scene.render.film_transparent = False
scene.world.color = (1, 1, 1)
scene.display.shading.background_type = "WORLD"
scene.render.resolution_x, scene.render.resolution_y = 900, 560
scene.render.image_settings.color_mode = "RGB"
scene.render.filepath = str(Path(folder) / "bodies.png")
bpy.ops.render.render(write_still=True)
