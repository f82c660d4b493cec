"""Ownership of the library's objects, safe against use after close and close during use."""

from __future__ import annotations

import ctypes
import threading
import weakref
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, Callable, NoReturn, Optional

from eman import _loader
from eman.errors import ForkedError, InvalidArgumentError


class Handle:
    """Owns one object of the library; ``with handle as address`` keeps it alive meanwhile.

    The library leaves it to its caller that nobody frees an object in use.  So `close` only marks the handle while
    other threads are inside, and the last of them frees it.  In a child of fork the lock may be held by a thread that
    no longer exists; the library refuses every call there, so nothing is to be guarded.
    """

    __slots__ = ("_address", "_closed", "_exclusive", "_free", "_kind", "_lock", "_users")

    def __init__(self, address: ctypes.c_void_p, free: Callable[[Any], None], kind: str) -> None:
        self._address = address
        self._free = free
        self._kind = kind
        self._lock = threading.Lock()
        self._exclusive = threading.RLock()
        self._users = 0
        self._closed = False

    def __enter__(self) -> ctypes.c_void_p:
        if _loader.forked:
            return self._address
        with self._lock:
            if self._closed:
                raise InvalidArgumentError(f"the {self._kind} is closed")
            self._users += 1
        return self._address

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if _loader.forked:
            return
        with self._lock:
            self._users -= 1
            last = self._closed and self._users == 0
        if last:
            self._free(self._address)

    def exclusive(self) -> AbstractContextManager[object]:
        """A context in which only one thread is at a time, for calls that must not interleave.

        The thread itself may enter again: a progress function may use the object whose call it watches.
        """
        return nullcontext() if _loader.forked else self._exclusive

    def close(self) -> None:
        """Free the object, or let its last user do so; closing twice does nothing."""
        if _loader.forked:
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
            idle = self._users == 0
        if idle:
            self._free(self._address)

    @property
    def closed(self) -> bool:
        """Whether it can no longer be used."""
        return self._closed

    def free_with(self, owner: object) -> None:
        """Close when the owner is garbage or the interpreter ends."""
        weakref.finalize(owner, self.close)


class Forked:
    """What comes before `Mesh` or `Model` among the bases of those that were pickled and arrive in a child of fork.

    They cannot be made there.  But what fails when it is unpickled ends a worker of ``multiprocessing.Pool``, which
    starts another and waits for ever.  So they arrive, and fail in the worker's function, whose caller gets the error.
    """

    def __init__(self) -> None:
        """Without anything that a method would need."""

    def __getattr__(self, name: str) -> NoReturn:
        raise ForkedError(_loader.FORKED)
