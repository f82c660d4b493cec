"""Finds and opens the shared library, at its first use and never at import.

A process that forks must not have used the library before, so importing the package leaves it closed.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

from eman.errors import LibraryError

#: The ABI that `eman._capi` describes.  A library serves callers of the same or a lower number.
ABI_VERSION = 1

#: Why a child of fork cannot use the library, and what to do about it.
FORKED = (
    "the library was used before this process was forked, and cannot be used in it: start worker processes by the "
    "method 'spawn' or 'forkserver', or fork before the first call"
)

_library: Optional[ctypes.CDLL] = None
_lock = threading.Lock()

#: Whether this process was forked after the library was opened: each call of it will fail, at once.
forked = False


def _after_fork() -> None:
    global _lock, forked
    _lock = threading.Lock()  # a thread of the parent may have held it in the moment of the fork
    forked = _library is not None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _file_names() -> tuple[str, ...]:
    """What the library is called, and what the system's loader shall look for."""
    if sys.platform == "win32":
        return "eman.dll", "eman.dll"
    if sys.platform == "darwin":
        return "libeman.dylib", f"libeman.{ABI_VERSION}.dylib"
    return "libeman.so", f"libeman.so.{ABI_VERSION}"


def candidates() -> Iterator[tuple[str, str]]:
    """Yield the places to look at, in order: what to open and why there.

    The environment variable EMAN_LIBRARY, a file or a folder, excludes all others: what a user asks for by name must
    not be replaced silently by something else.
    """
    file_name, system_name = _file_names()
    asked_for = os.environ.get("EMAN_LIBRARY")
    if asked_for:
        path = os.path.join(asked_for, file_name) if os.path.isdir(asked_for) else asked_for
        yield os.path.abspath(path), "EMAN_LIBRARY"
        return
    package = Path(__file__).resolve().parent
    yield str(package / file_name), "the package's folder"
    # bindings/python/eman lies three levels below the root of the repository.
    if len(package.parents) > 2 and (package.parents[2] / "include" / "eman.h").exists():
        yield str(package.parents[2] / "build" / file_name), "the repository's build folder"
    yield system_name, "the system's libraries"


def _open(path: str) -> ctypes.CDLL:
    """Open one library and check that it is ours; OSError says why not."""
    if os.path.isabs(path) and not os.path.exists(path):
        raise OSError("no such file")
    library = ctypes.CDLL(path)
    try:
        abi_version = library.eman_abi_version
    except AttributeError:
        raise OSError("it is not libeman: it has no eman_abi_version") from None
    abi_version.restype, abi_version.argtypes = ctypes.c_int32, ()
    found = abi_version()
    if found < ABI_VERSION:
        raise OSError(f"its ABI version is {found}, this package needs {ABI_VERSION} or later")
    return library


def load() -> ctypes.CDLL:
    """Return the opened library; thread-safe.

    Raises
    ------
    LibraryError
        With each place that was tried and why it failed.
    """
    global _library
    if _library is None:
        with _lock:
            if _library is None:
                _library = _search()
    return _library


def _search() -> ctypes.CDLL:
    tried = []
    for path, reason in candidates():
        try:
            return _open(path)
        except OSError as error:
            tried.append(f"  {path} ({reason}): {error}")
    raise LibraryError(
        "the shared library of eman could not be loaded. Tried:\n"
        + "\n".join(tried)
        + "\nBuild it with `make` in the repository, or name it in the environment variable EMAN_LIBRARY."
    )
