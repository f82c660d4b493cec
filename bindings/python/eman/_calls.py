"""Long calls that Ctrl-C can end."""

from __future__ import annotations

import ctypes
import threading
from typing import Any, Callable, Optional

from eman import _capi

#: How often the main thread looks whether a signal came, in seconds.
_POLL = 0.05


def interruptible(call: Callable[[Optional[Any]], int], long: bool) -> None:
    """Run ``call(control) -> status``, where Python's signal handlers can stop it.

    Signal handlers run in the main thread and between byte codes only.  So in the main thread a long call goes to a
    worker thread, while the main thread waits in short steps; an exception from a handler, such as KeyboardInterrupt,
    sets the word that the library polls.  Short calls, and calls on other threads, are made directly.

    Parameters
    ----------
    call
        Gets a reference to an eman_control, or None.
    long
        Whether it may take longer than a user would wait.
    """
    if not long or threading.current_thread() is not threading.main_thread():
        _capi.check(call(None))
        return
    cancel = ctypes.c_int32(0)
    control = _capi.Control(struct_size=ctypes.sizeof(_capi.Control), cancel=ctypes.pointer(cancel))
    outcome: list[tuple[int, str]] = []
    failure: list[BaseException] = []
    done = threading.Event()

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
        while not done.wait(_POLL):
            pass
    except BaseException:
        cancel.value = 1
        _join(done)
        raise
    if failure:
        raise failure[0]
    status, message = outcome[0]
    if status != _capi.OK:
        _capi.fail(status, message)


def _join(done: threading.Event) -> None:
    """Wait for the call to notice; it uses memory of ours, so a second Ctrl-C must not leave before."""
    while not done.is_set():
        try:
            done.wait()
        except BaseException:
            continue
