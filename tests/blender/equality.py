"""Runs inside Blender, the add-on installed: what it writes is what the package computes, bit for bit, on odd objects.

``blender … --python equality.py -- ZIP FOLDER``
"""

import math
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import bpy
import common
import numpy as np

folder = Path(sys.argv[-1])
eman = common.install(sys.argv[-2])
context, settings = bpy.context, bpy.context.scene.eman
settings.powers, settings.get = "0.7", True
model = eman.Model("surface", classes=5, seed=3, surface={"points": [128, 32], "blocks": [1, 1, 1]})
model.save(folder / "five.safetensors")
settings.model, settings.model_path = "FILE", str(folder / "five.safetensors")


def triangles(mesh):
    mesh.calc_loop_triangles()
    faces = np.empty((len(mesh.loop_triangles), 3), np.int32)
    mesh.loop_triangles.foreach_get("vertices", faces.ravel())
    return faces


def positions(mesh):
    values = np.empty((len(mesh.vertices), 3), np.float32)
    mesh.vertices.foreach_get("co", values.ravel())
    return values


def same(name, obj, vertices=None):
    """Run the operators on an object and compare with the package."""
    common.select(obj)
    assert bpy.ops.eman.compute_features() == {"FINISHED"}, name
    assert bpy.ops.eman.predict_parts() == {"FINISHED"}, name
    vertices = positions(obj.data) if vertices is None else vertices
    with eman.Mesh(vertices, triangles(obj.data), degenerate="drop") as mesh:
        reltan, get = mesh.reltan((0.7,), "ambient")[:, 0], mesh.get_features()
        labels, probabilities = model.top(mesh, 1)
    for found, want in (
        (common.attribute(obj, "eman_reltan_0.7", "vector", 3), reltan.astype(np.float32)),
        (common.attribute(obj, "eman_get", "vector", 3), get.astype(np.float32)),
        (common.attribute(obj, "eman_label", "value"), labels[:, 0]),
        (common.attribute(obj, "eman_confidence", "value"), probabilities[:, 0]),
    ):
        assert np.array_equal(found, want), name
    print(f"{name}: the same")


def primitive(add, **options):
    add(**options)
    return bpy.context.active_object


bpy.ops.object.select_all(action="SELECT")
bpy.ops.object.delete()

monkey = primitive(bpy.ops.mesh.primitive_monkey_add)  # quads and triangles, open
same("quads", monkey)
same("n-gons", primitive(bpy.ops.mesh.primitive_cylinder_add, vertices=17))

monkey.data.vertices.add(2)
monkey.data.update()
same("loose vertices", monkey)

twin = bpy.data.objects.new("twin", monkey.data)
context.scene.collection.objects.link(twin)
same("two users of one mesh", twin)

wave = primitive(bpy.ops.mesh.primitive_grid_add, x_subdivisions=20, y_subdivisions=20)
wave.modifiers.new("wave", "SIMPLE_DEFORM").angle = 1.0
settings.evaluated = True
evaluated = wave.evaluated_get(context.evaluated_depsgraph_get())
same("a modifier", wave, positions(evaluated.data))
wave.modifiers.new("more", "SUBSURF")
common.refused(bpy.ops.eman.compute_features, "modifiers")
settings.evaluated = False

key = primitive(bpy.ops.mesh.primitive_ico_sphere_add, subdivisions=3)
key.shape_key_add(name="Basis")
stretched = key.shape_key_add(name="stretched")
for point in stretched.data:
    point.co.x *= 2
stretched.value = 1
same("shape keys, as they were modelled", key)
settings.evaluated = True
same("shape keys, as they are", key, positions(key.evaluated_get(context.evaluated_depsgraph_get()).data))
settings.evaluated = False

scaled = primitive(bpy.ops.mesh.primitive_torus_add)
scaled.scale, scaled.rotation_euler, scaled.location = (1, 3, 0.5), (0.3, 0.2, 0.1), (5, 6, 7)
context.view_layer.update()
same("a scaled object in its own space", scaled)
settings.world = True
matrix = np.array(scaled.matrix_world, np.float64)
same("and in the world", scaled, (positions(scaled.data) @ matrix[:3, :3].T + matrix[:3, 3]).astype(np.float32))
settings.world = False

common.select(scaled)
bpy.ops.object.mode_set(mode="EDIT")
assert bpy.ops.eman.compute_features() == {"FINISHED"} and scaled.mode == "EDIT"
bpy.ops.object.mode_set(mode="OBJECT")
same("Edit Mode", scaled)

empty = bpy.data.objects.new("empty", bpy.data.meshes.new("empty"))
context.scene.collection.objects.link(empty)
common.select(empty)
for operator in (
    bpy.ops.eman.compute_features,
    bpy.ops.eman.predict_parts,
    bpy.ops.eman.check_mesh,
    bpy.ops.eman.verify_equivariance,
):
    common.refused(operator, "no faces")

# Linked from another file: refused in words.
path = str(folder / "library.blend")
bpy.data.libraries.write(path, {monkey})
with bpy.data.libraries.load(path, link=True) as (found, wanted):
    wanted.objects = list(found.objects)
linked = next(obj for obj in bpy.data.objects if obj.library is not None)
context.scene.collection.objects.link(linked)
common.select(linked)
common.refused(bpy.ops.eman.predict_parts, "linked from another file")

# Faults: NaN, and a model file that is none.
broken = primitive(bpy.ops.mesh.primitive_cube_add)
broken.data.vertices[3].co.x = math.nan
common.select(broken)
common.refused(bpy.ops.eman.compute_features, "vertex 3")
broken.data.vertices[3].co.x = 0
(folder / "broken.safetensors").write_bytes(b"\0" * 100)
settings.model_path = str(folder / "broken.safetensors")
common.refused(bpy.ops.eman.predict_parts, "")

# Speed, told and not judged: 130k vertices, and a long animation.
large = primitive(bpy.ops.mesh.primitive_grid_add, x_subdivisions=361, y_subdivisions=361)
settings.get = False
common.select(large)
bpy.ops.eman.compute_features()
best = min(common.seconds(bpy.ops.eman.compute_features) for _ in range(5))
print(f"features of {len(large.data.vertices):,} vertices, read and written: {1e3 * best:.0f} ms")
large.modifiers.new("wave", "WAVE")
context.scene.frame_start, context.scene.frame_end, settings.frames = 1, 50, True
begun = time.perf_counter()
assert bpy.ops.eman.compute_features() == {"FINISHED"}
print(f"50 frames of them: {time.perf_counter() - begun:.2f} s")
assert "eman_reltan_0.7_0050" in large.data.attributes
print("everything is the same")
