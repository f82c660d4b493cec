"""Ownership of the library's objects, safe against use after close and close during use."""

from __future__ import annotations

import ctypes
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Callable, NoReturn, Optional

from eman import _loader
from eman.errors import ForkedError, InvalidArgumentError

_making = threading.Lock()


class Handle:
    """Owns one object of the library, until it is garbage; ``with handle as address`` keeps it alive meanwhile.

    The library leaves it to its caller that nobody frees an object in use.  So `close` only marks the handle while
    other threads are inside, and the last of them frees it.  There is no lock, which would double the time of entering:
    who enters is counted before he looks at the mark, which is set before anybody looks at the count, and of those who
    find the count zero one gets the address to free.  In a child of fork the library refuses every call, so nothing is
    to be guarded.
    """

    __slots__ = ("_address", "_closed", "_exclusive", "_free", "_kind", "_owned", "_users")

    def __init__(self, address: ctypes.c_void_p, free: Callable[[Any], None], kind: str) -> None:
        self._address = address
        self._free = free
        self._kind = kind
        self._exclusive: Optional[threading.RLock] = None  # until somebody asks
        # Lists, as threads may append and pop at once.
        self._owned = [address]
        self._users: list[None] = []
        self._closed = False

    def __enter__(self) -> ctypes.c_void_p:
        self._users.append(None)
        if self._closed and not _loader.forked:
            self.__exit__()
            raise InvalidArgumentError(f"the {self._kind} is closed")
        return self._address

    def __exit__(self, *_: object) -> None:
        self._users.pop()
        if self._closed:
            self.close()

    def exclusive(self) -> AbstractContextManager[object]:
        """A context in which only one thread is at a time, for calls that must not interleave.

        The thread itself may enter again: a progress function may use the object whose call it watches.
        """
        if _loader.forked:
            return nullcontext()
        if self._exclusive is None:
            with _making:
                self._exclusive = self._exclusive or threading.RLock()
        return self._exclusive

    def close(self) -> None:
        """Free the object, or let its last user do so; closing twice does nothing."""
        self._closed = True
        if self._users or _loader.forked:
            return
        try:
            address = self._owned.pop()
        except IndexError:  # another was first
            return
        self._free(address)

    @property
    def closed(self) -> bool:
        """Whether it can no longer be used."""
        return self._closed

    __del__ = close


class Forked:
    """What comes before `Mesh` or `Model` among the bases of those that were pickled and arrive in a child of fork.

    They cannot be made there.  But what fails when it is unpickled ends a worker of ``multiprocessing.Pool``, which
    starts another and waits for ever.  So they arrive, and fail in the worker's function, whose caller gets the error.
    """

    def __init__(self) -> None:
        """Without anything that a method would need."""

    def __getattr__(self, name: str) -> NoReturn:
        raise ForkedError(_loader.FORKED)
