"""Contexts: the threads, memory and instruction set that meshes and models use."""

from __future__ import annotations

import ctypes
import json
import logging
from types import TracebackType
from typing import Any, Optional

from eman import _capi
from eman._handle import Handle
from eman.errors import InvalidArgumentError

__all__ = ["Context", "build_info", "trim"]

_logger = logging.getLogger("eman")
_LEVELS = {1: logging.ERROR, 2: logging.WARNING, 3: logging.INFO}
_ISA_NAMES = {number: name for name, number in _capi.INSTRUCTION_SETS.items()}


def _write_log(_user: Any, level: int, message: bytes) -> None:
    _logger.log(_LEVELS.get(level, logging.INFO), "%s", message.decode("utf-8", "replace"))


# Lives as long as the process: objects may log after their context is gone.
_log = _capi.LogFunction(_write_log)


class Context:
    """How the library works for the objects made with it.

    Objects made without one share a default context with a thread per processor and no memory limit.  Messages of
    the library go to the logger ``"eman"``.

    Parameters
    ----------
    threads : int
        Threads that one call may use, the caller's among them; 0 means one per processor.
    memory_limit : int
        Bytes that the large arrays of all its objects may take together; 0 means no limit.
    instruction_set : {"auto", "generic", "avx2", "avx512", "neon"}
        What the kernels use.  Results agree within rounding.

    Raises
    ------
    InvalidArgumentError
        For a negative number or an unknown name.
    UnsupportedError
        If this processor or this build lacks the instruction set.

    Notes
    -----
    May be used from many threads at once.  Results are the same bits for any number of threads.

    Examples
    --------
    >>> import eman
    >>> with eman.Context(threads=2) as context:
    ...     context.threads
    2
    """

    def __init__(self, threads: int = 0, memory_limit: int = 0, instruction_set: str = "auto") -> None:
        options = _capi.ContextOptions(
            struct_size=ctypes.sizeof(_capi.ContextOptions),
            threads=_number(threads, "threads", 2**31 - 1),
            memory_limit=_number(memory_limit, "memory_limit", 2**63 - 1),
            instruction_set=choice(instruction_set, "instruction_set", _capi.INSTRUCTION_SETS),
            log=_log,
        )
        library = _capi.library()
        out = ctypes.c_void_p()
        _capi.check(library.eman_context_create(ctypes.byref(options), ctypes.byref(out)))
        self._handle = Handle(out, library.eman_context_free, "context")

    def _describe(self) -> _capi.ContextInfo:
        info = _capi.ContextInfo(struct_size=ctypes.sizeof(_capi.ContextInfo))
        with self._handle as handle:
            _capi.check(_capi.library().eman_context_describe(handle, ctypes.byref(info)))
        return info

    @property
    def threads(self) -> int:
        """Threads that a call may use."""
        return int(self._describe().threads)

    @property
    def instruction_set(self) -> str:
        """The instruction set in use, never "auto"."""
        return _ISA_NAMES[int(self._describe().instruction_set)]

    @property
    def memory_limit(self) -> int:
        """Bytes allowed in large arrays; 0 for no limit."""
        return int(self._describe().memory_limit)

    @property
    def memory_used(self) -> int:
        """Bytes in large arrays of all objects made with it."""
        return int(self._describe().memory_used)

    @property
    def memory_peak(self) -> int:
        """The most that `memory_used` has been."""
        return int(self._describe().memory_peak)

    def close(self) -> None:
        """Free the context; objects made with it stay usable.

        Examples
        --------
        >>> import eman
        >>> with eman.Context(threads=1) as context:
        ...     mesh = eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]], context=context)
        >>> context
        Context(closed)
        >>> mesh.face_count
        1
        """
        self._handle.close()

    def __enter__(self) -> Context:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._handle.closed:
            return "Context(closed)"
        info = self._describe()
        limit = f", memory_limit={info.memory_limit}" if info.memory_limit else ""
        return f"Context(threads={info.threads}{limit}, instruction_set={_ISA_NAMES[info.instruction_set]!r})"


_default: dict[str, Context] = {}


def default_context() -> Context:
    """The context of objects that are made without one."""
    found = _default.get("context")
    # setdefault is atomic: of two threads that come first together, one keeps its context.
    return found if found is not None else _default.setdefault("context", Context())


def choice(value: Any, name: str, choices: dict[str, int]) -> int:
    """The number of a named choice."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidArgumentError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return choices[value]


def _number(value: int, name: str, highest: int) -> int:
    if not 0 <= value <= highest:
        raise InvalidArgumentError(f"{name} must be between 0 and {highest}, got {value}")
    return value


def build_info() -> dict[str, Any]:
    """Facts about the loaded library.

    Returns
    -------
    dict
        version, abi_version, go_version, platform, instruction_set (what "auto" takes on this processor), threads
        (processors available), and library (the file that was loaded).

    Examples
    --------
    >>> import eman
    >>> eman.build_info()["abi_version"]
    1
    """
    library = _capi.library()
    facts: dict[str, Any] = json.loads(_capi.text(library.eman_build_info))
    facts["library"] = library._name
    return facts


def trim() -> None:
    """Return memory that the library keeps for later calls to the system; takes milliseconds.

    Examples
    --------
    >>> import eman
    >>> eman.trim()
    """
    _capi.check(_capi.library().eman_trim())
