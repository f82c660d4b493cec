# SPDX-License-Identifier: GPL-3.0-or-later
"""Long work that does not freeze Blender: a thread that sees arrays only, and a modal operator that waits for it."""

import threading

import bpy

from .engine import eman
from .words import words

_TICK = 0.1  # seconds between two looks at the thread

_running = set()


class Cancelled(Exception):
    """Raised in the thread when the user gave up."""


class Job:
    """A computation on its own thread.

    ``work(report)`` calls ``report(fraction, text)`` now and then, which raises Cancelled when it should end.
    """

    def __init__(self, work):
        self.fraction, self.text = 0.0, ""
        self.result = self.error = None
        self._cancel = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(work,), name="eman", daemon=True)
        _running.add(self)
        self._thread.start()

    def _run(self, work):
        try:
            self.result = work(self._report)
        except Exception as error:
            self.error = error

    def _report(self, fraction, text=None):
        self.fraction = fraction
        if text is not None:
            self.text = text
        if self._cancel.is_set():
            raise Cancelled

    @property
    def done(self):
        return not self._thread.is_alive()

    def cancel(self):
        self._cancel.set()

    def join(self):
        self._thread.join()
        _running.discard(self)


def stop_all():
    """End every computation: Blender is closing, or the add-on is being disabled."""
    for job in list(_running):
        job.cancel()
    for job in list(_running):
        job.join()


class LongOperator:
    """An operator whose work runs beside the user interface; a mix-in for bpy.types.Operator.

    ``prepare(context)`` reads what is needed from Blender and returns ``work``; ``finish(context, result)`` writes the
    result.  Called by a script (EXEC_DEFAULT) it waits; from the user interface it is modal and ESC ends it.
    """

    _job = _timer = None

    def prepare(self, context):
        raise NotImplementedError

    def finish(self, context, result):
        raise NotImplementedError

    def execute(self, context):
        try:
            result = self.prepare(context)(lambda fraction, text=None: None)
        except Exception as error:
            return self._fail(error)
        return self._finish(context, result)

    def invoke(self, context, _event):
        if bpy.app.background:
            return self.execute(context)
        try:
            work = self.prepare(context)
        except Exception as error:
            return self._fail(error)
        self._job = Job(work)
        self._timer = context.window_manager.event_timer_add(_TICK, window=context.window)
        context.window_manager.progress_begin(0, 100)
        context.window_manager.modal_handler_add(self)
        return {"RUNNING_MODAL"}

    def modal(self, context, event):
        if event.type == "ESC":
            self._job.cancel()
            return {"RUNNING_MODAL"}
        if event.type != "TIMER":
            return {"PASS_THROUGH"}
        job = self._job
        if not job.done:
            context.window_manager.progress_update(round(100 * job.fraction))
            told = words("{percent:.0f} % {what}  (ESC ends it)", percent=100 * job.fraction, what=job.text)
            context.workspace.status_text_set(f"{words(self.bl_label)}: {told}")
            return {"PASS_THROUGH"}
        self._leave(context)
        if job.error is not None:
            return self._fail(job.error)
        return self._finish(context, job.result)

    def cancel(self, context):
        """Blender ends the operator, as when another file is opened."""
        if self._job is not None:
            self._job.cancel()
            self._leave(context)

    def _leave(self, context):
        self._job.join()
        window_manager = context.window_manager
        if self._timer is not None:
            window_manager.event_timer_remove(self._timer)
            self._timer = None
        window_manager.progress_end()
        if context.workspace is not None:
            context.workspace.status_text_set(None)

    def _finish(self, context, result):
        try:
            self.finish(context, result)
        except Exception as error:
            return self._fail(error)
        for area in context.screen.areas if context.screen else ():
            area.tag_redraw()
        return {"FINISHED"}

    def _fail(self, error):
        """One line for the user; what is no fault of theirs goes to the console as well."""
        if isinstance(error, (Cancelled, eman.CancelledError)):
            self.report({"INFO"}, words("Ended; nothing was changed"))
            return {"CANCELLED"}
        self.report({"ERROR"}, str(error) or type(error).__name__)
        if not isinstance(error, (eman.EmanError, OSError, RuntimeError, TypeError, ValueError)):
            import traceback

            traceback.print_exception(type(error), error, error.__traceback__)
        return {"CANCELLED"}
