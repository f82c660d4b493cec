# SPDX-License-Identifier: GPL-3.0-or-later
"""Learning parts from vertex groups that were painted on a few meshes."""

import os

import bpy
import numpy as np

from . import preferences, surfaces
from .engine import context, eman
from .jobs import LongOperator
from .words import words

#: What changes the meshes while the model learns: it shall know others than these.
_VARIETY = {"stretch": 0.2, "warp": 0.02, "noise": 0.1, "resample": True}


class EMAN_OT_train(LongOperator, bpy.types.Operator):
    bl_idname = "eman.train"
    bl_label = "Train from Vertex Groups"
    bl_description = (
        "Learn the parts that are painted as vertex groups on the selected meshes, a group for each part. Vertices in "
        "no group may be anything. The trained model is saved to a file and chosen for Predict Parts"
    )
    bl_options = {"REGISTER"}

    @classmethod
    def poll(cls, context):
        return bool(surfaces.selected(context))

    def prepare(self, context_):
        settings, engine = context_.scene.eman, context()
        objects = surfaces.selected(context_)
        names = list(dict.fromkeys(group.name for obj in objects for group in obj.vertex_groups))
        if len(names) < 2:
            raise ValueError(words("paint at least two vertex groups on the selected meshes, one for each part"))
        examples = [(surfaces.read(obj), _painted(obj, names)) for obj in objects]
        unpainted = [surface.object for surface, labels in examples if (labels < 0).all()]
        if unpainted:
            raise ValueError(words("{names}: no vertex is in a group", names=", ".join(unpainted)))
        path = preferences.absolute(settings.save_path) or os.path.join(preferences.model_folder(), "parts.safetensors")
        if not os.path.isdir(os.path.dirname(path)):
            raise ValueError(words("there is no folder {path}", path=os.path.dirname(path)))
        surface = settings.preset == "surface"
        options = {
            "epochs": settings.epochs,
            "lr": settings.rate,
            "schedule": "one_cycle",
            "clip_norm": 1.0,
            "augment": _VARIETY if surface else {"stretch": 0.1, "noise": 0.05},
        }
        preset = settings.preset
        self._settings = settings

        told = words("loss {loss}, {percent} % right", loss="{loss:.3f}", percent="{percent:.0f}")

        def work(report):
            model = eman.Model(preset, classes=len(names), labels=names, context=engine)
            meshes = [eman.Mesh(s.vertices, s.faces, degenerate="drop", context=engine) for s, _ in examples]

            def note(step):
                report(step.step / step.steps, told.format(loss=step.loss, percent=100 * step.accuracy))

            history = eman.fit(model, meshes, [labels for _, labels in examples], progress=note, **options)
            model.save(path)
            return path, history

        return work

    def modal(self, context, event):
        settings = context.scene.eman
        if event.type == "TIMER" and self._job.text not in ("", settings.loss):
            settings.loss = self._job.text
            for region in context.area.regions if context.area is not None else ():
                if region.type == "UI":  # the sidebar only: to draw the viewport again may take long
                    region.tag_redraw()
        return super().modal(context, event)

    def finish(self, context_, result):
        path, history = result
        settings = context_.scene.eman
        settings.model, settings.model_path = "FILE", path
        percent = 100 * history[-1]["accuracy"]
        settings.loss = words("{percent:.0f} % right after {rounds} rounds", percent=percent, rounds=len(history))
        self.report({"INFO"}, words("{result}; saved as {path}", result=settings.loss, path=path))


def _painted(obj, names):
    """(V,) int32: for each vertex the group that it belongs to most, -1 where there is none."""
    numbers = {group.index: names.index(group.name) for group in obj.vertex_groups}
    labels = np.full(len(obj.data.vertices), -1, np.int32)
    for vertex in obj.data.vertices:
        most = max(vertex.groups, key=lambda member: member.weight, default=None)
        if most is not None and most.weight > 0 and most.group in numbers:
            labels[vertex.index] = numbers[most.group]
    return labels


def register():
    bpy.utils.register_class(EMAN_OT_train)


def unregister():
    bpy.utils.unregister_class(EMAN_OT_train)
