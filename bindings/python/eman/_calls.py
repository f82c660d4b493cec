"""Long calls that Ctrl-C can end."""

from __future__ import annotations

import ctypes
import threading
from typing import Any, Callable, Optional

from eman import _capi
from eman.errors import InvalidArgumentError

#: How often the main thread looks whether a signal came, in seconds.
_POLL = 0.05


def interruptible(call: Callable[[Optional[Any]], int], long: bool, progress: Any = None) -> None:
    """Run ``call(control) -> status``, where Python's signal handlers can stop it.

    Signal handlers run in the main thread and between byte codes only.  So in the main thread a long call goes to a
    worker thread, while the main thread waits in short steps; an exception from a handler, such as KeyboardInterrupt,
    sets the word that the library polls.  Short calls, and calls on other threads, are made directly.

    Progress is reported on the caller's thread, which then always waits for a worker; what the report raises ends the
    call as well.

    Parameters
    ----------
    call
        Gets a reference to an eman_control, or None.
    long
        Whether it may take longer than a user would wait.
    progress
        What `reporter` takes.
    """
    if progress is None and not (long and threading.current_thread() is threading.main_thread()):
        _capi.check(call(None))
        return
    if progress is None:
        _watched(call, None)
        return
    report, finish = reporter(progress)
    try:
        _watched(call, report)
    finally:
        finish()


def reporter(progress: Any) -> tuple[Callable[[float], object], Callable[[], object]]:
    """What to call with each fraction done, and what at the end, however the call ends.

    Parameters
    ----------
    progress
        A function of the fraction; a progress bar of tqdm's kind, which is moved on by its ``total`` (1 if it has
        none); or a class of such bars, of which one is opened and closed.
    """
    if not hasattr(progress, "update"):
        if not callable(progress):
            raise InvalidArgumentError(f"progress must be a function or a progress bar, got {progress!r}")
        return progress, (lambda: None)
    opened = isinstance(progress, type)
    bar = progress(total=1.0) if opened else progress
    whole = getattr(bar, "total", None) or 1.0
    before = 0.0

    def move(fraction: float) -> None:
        nonlocal before
        bar.update(whole * (fraction - before))
        before = fraction

    return move, (bar.close if opened else lambda: None)


def _watched(call: Callable[[Optional[Any]], int], report: Optional[Callable[[float], object]]) -> None:
    """Make the call on a worker thread, report its progress here, and cancel it if anything is raised here."""
    cancel = ctypes.c_int32(0)
    done = threading.Event()
    fraction = 0.0

    def note(_user: Any, now: float) -> int:
        nonlocal fraction
        fraction = now
        return 0

    control = _capi.Control(struct_size=ctypes.sizeof(_capi.Control), cancel=ctypes.pointer(cancel))
    if report is not None:
        control.progress = _capi.ProgressFunction(note)
    outcome: list[tuple[int, str]] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            status = call(ctypes.byref(control))
            outcome.append((status, "" if status == _capi.OK else _capi.last_error()))
        except BaseException as error:
            failure.append(error)
        finally:
            done.set()

    worker = threading.Thread(target=work, name="eman-call", daemon=True)
    try:
        worker.start()
    except RuntimeError:  # no more threads, or the interpreter is ending
        _capi.check(call(None))
        return
    try:
        reported = -1.0
        while not done.wait(_POLL):
            if report is not None and fraction > reported:
                reported = fraction
                report(reported)
    except BaseException:
        cancel.value = 1
        _join(done)
        raise
    if failure:
        raise failure[0]
    status, message = outcome[0]
    if status != _capi.OK:
        _capi.fail(status, message)
    if report is not None:
        report(1.0)


def _join(done: threading.Event) -> None:
    """Wait for the call to notice; it uses memory of ours, so a second Ctrl-C must not leave before."""
    while not done.is_set():
        try:
            done.wait()
        except BaseException:
            continue
