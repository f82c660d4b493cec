"""Runs inside Blender: install the zip, run every operator, undo, disable.

``blender … --python operators.py -- ZIP FOLDER``
"""

import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import bpy
import numpy as np
from common import EXTENSION, NAME, attribute, install, refused, select

zip_file, folder = sys.argv[sys.argv.index("--") + 1 :]
eman = install(zip_file)
from eman.creatures import creature  # noqa: E402  of the copy inside the add-on, or its wheel


def add(name, made):
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(made.vertices.tolist(), [], made.faces.tolist())
    obj = bpy.data.objects.new(name, mesh)
    bpy.context.scene.collection.objects.link(obj)
    return obj


settings = bpy.context.scene.eman
made = [creature(seed, 800, "horse") for seed in range(4)]
horses = [add(f"horse {seed}", one) for seed, one in enumerate(made)]
names = ["head", "leg", "body"]
parts = np.array(made[0].part_names)
of_part = np.select([np.isin(parts, ["head", "neck"]), np.char.find(parts, "_") > 0], [0, 1], 2)
truth = [of_part[one.labels] for one in made]

# Features: the numbers of the package, for one frame and for a range.
select(*horses)
assert bpy.ops.eman.compute_features() == {"FINISHED"}
with eman.Mesh(made[0].vertices.astype(np.float32), made[0].faces) as mesh:
    assert np.allclose(
        attribute(horses[0], "eman_reltan_0.7", "vector", 3), mesh.reltan((0.7,), "ambient")[:, 0], atol=1e-6
    )
settings.get = True
bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 3
settings.frames = True
select(horses[0])
assert bpy.ops.eman.compute_features() == {"FINISHED"}
assert "eman_get_0003" in horses[0].data.attributes
settings.frames = False
settings.powers = "fast"
refused(bpy.ops.eman.compute_features, "powers must be numbers")
settings.powers = "0.5, 0.7"

# An attribute of another type is left alone.
select(horses[1])
horses[1].data.attributes.remove(horses[1].data.attributes["eman_reltan_0.5"])
horses[1].data.attributes.new("eman_reltan_0.5", "INT", "FACE")
refused(bpy.ops.eman.compute_features, "of another type")
horses[1].data.attributes.remove(horses[1].data.attributes["eman_reltan_0.5"])

# The mesh doctor, also with a loose vertex.
horses[3].data.vertices.add(1)
horses[3].data.update()
select(horses[3])
assert bpy.ops.eman.check_mesh() == {"FINISHED"}
assert "1 isolated vertices" in settings.findings, settings.findings
assert bpy.ops.eman.select_findings() == {"FINISHED"}
bpy.ops.object.mode_set(mode="OBJECT")
chosen = np.empty(801, bool)
horses[3].data.vertices.foreach_get("select", chosen)
assert chosen[800] and chosen.sum() == 1, chosen.sum()

# Training from painted groups, the second mesh only in part; then labels for a mesh it has not seen.
for number, obj in enumerate(horses[:3]):
    for k, name in enumerate(names):
        group = obj.vertex_groups.new(name=name)
        members = np.flatnonzero(truth[number] == k)
        group.add(members[:: 2 if number == 1 else 1].tolist(), 1.0, "REPLACE")
select(horses[3])
refused(bpy.ops.eman.train, "paint at least two vertex groups")
select(*horses[:3])
settings.save_path = str(Path(folder) / "missing" / "model.safetensors")
refused(bpy.ops.eman.train, "there is no folder")
settings.save_path = str(Path(folder) / "horse.safetensors")
settings.epochs = 20
assert bpy.ops.eman.train() == {"FINISHED"}
assert settings.model == "FILE" and Path(settings.model_path).exists()
select(horses[3])
settings.to_faces = settings.to_materials = True
bpy.ops.ed.undo_push(message="before")
assert bpy.ops.eman.predict_parts("EXEC_DEFAULT", True) == {"FINISHED"}
horse = bpy.data.objects["horse 3"]
labels = attribute(horse, "eman_label", "value")
right = np.mean(labels[:800] == truth[3])
print(f"labels right: {right:.3f}")
assert right > 0.85
assert {group.name for group in horse.vertex_groups} == set(names)
assert len(horse.data.materials) == len(np.unique(attribute(horse, "eman_face_label", "value")))
confidence = attribute(horse, "eman_confidence", "value")
assert (confidence > 0).all() and (confidence <= 1).all()
assert bpy.ops.eman.predict_parts("EXEC_DEFAULT", True) == {"FINISHED"}  # twice: its own are overwritten
bpy.ops.ed.undo()
bpy.ops.ed.undo()
assert "eman_label" not in bpy.data.objects["horse 3"].data.attributes

# Symmetries, attention.
settings = bpy.context.scene.eman
horse = bpy.data.objects["horse 0"]
select(horse)
assert bpy.ops.eman.verify_equivariance() == {"FINISHED"}
assert all(float(line.rsplit(" ", 1)[1]) < 1e-9 for line in settings.gaps.splitlines()), settings.gaps
refused(bpy.ops.eman.show_attention, "select one vertex")
own = eman.Model("default", classes=3, labels=names)
own.save(Path(folder) / "attention.safetensors")
settings.model_path = str(Path(folder) / "attention.safetensors")
horse.data.vertices.foreach_set("select", np.arange(800) == 5)
assert bpy.ops.eman.show_attention() == {"FINISHED"}
heard = attribute(horse, "eman_attention", "value")
with eman.Mesh(made[0].vertices.astype(np.float32), made[0].faces) as mesh:
    offsets, neighbours = mesh.neighbors
    assert set(np.flatnonzero(heard)) == set(neighbours[offsets[5] : offsets[6]])
settings.model_path = "/no/such/file"
refused(bpy.ops.eman.predict_parts, "no/such/file")

# Nothing stays behind.
bpy.ops.preferences.addon_disable(module=NAME)
assert not hasattr(bpy.types.Scene, "eman") and not hasattr(bpy.types, "EMAN_PT_parts")
assert not [thread for thread in threading.enumerate() if thread.name == "eman"]
bpy.ops.preferences.addon_enable(module=NAME)
assert hasattr(bpy.types.Scene, "eman")
bpy.ops.preferences.addon_disable(module=NAME)
if EXTENSION:
    modules = [repository.module for repository in bpy.context.preferences.extensions.repos]
    bpy.ops.extensions.package_uninstall(repo_index=modules.index("user_default"), pkg_id="eman_addon")
    assert NAME not in bpy.context.preferences.addons
    assert not [path for path in Path(bpy.utils.user_resource("EXTENSIONS")).rglob("eman_addon/__init__.py")]
print("all operators ran")
