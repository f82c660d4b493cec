"""The exceptions of the package.

All are subclasses of `EmanError` and of the built-in exception that a Python programmer expects for such a case.
`EmanError.status` names the status of the C interface, such as ``"EMAN_E_INVALID_MESH"``.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "CancelledError",
    "DivergedError",
    "EmanError",
    "FileError",
    "ForkedError",
    "InternalError",
    "InvalidArgumentError",
    "InvalidMeshError",
    "InvalidModelError",
    "LibraryError",
    "OutOfMemoryError",
    "UnsupportedError",
]


class EmanError(Exception):
    """Any error of this package.

    Examples
    --------
    >>> import eman
    >>> try:
    ...     eman.Mesh([[0, 0, 0], [1, 0, 0]], [[0, 1, 2]])
    ... except eman.EmanError as error:
    ...     print(f"{error.status}: {error}")
    EMAN_E_INVALID_MESH: face 0: vertex index 2 is out of range [0, 2)
    """

    #: The status of the C interface that this class stands for.
    status: ClassVar[str] = ""


class InvalidArgumentError(EmanError, ValueError):
    """An argument has the wrong type, shape or value.

    Examples
    --------
    >>> import eman
    >>> eman.Mesh([[0, 0], [1, 0]], [])
    Traceback (most recent call last):
    eman.errors.InvalidArgumentError: vertices must have shape (N, 3), got (2, 2)
    """

    status = "EMAN_E_INVALID_ARGUMENT"


class InvalidMeshError(EmanError, ValueError):
    """The mesh cannot be used; the message names the face or vertex.

    Examples
    --------
    >>> import eman
    >>> eman.Mesh([[0, 0, 0], [1, 0, 0], [0, float("nan"), 0]], [[0, 1, 2]])
    Traceback (most recent call last):
    eman.errors.InvalidMeshError: vertex 2: coordinate y is NaN
    """

    status = "EMAN_E_INVALID_MESH"


class InvalidModelError(EmanError, ValueError):
    """The model or its file cannot be used; the message names the field or tensor.

    Examples
    --------
    >>> import eman
    >>> eman.Model("default", classes=4, width=-1)
    Traceback (most recent call last):
    eman.errors.InvalidModelError: width: -1 is out of range [1, 1024]
    """

    status = "EMAN_E_INVALID_MODEL"


class DivergedError(EmanError, ArithmeticError):
    """A training's loss or gradient is no finite number: try a lower learning rate, or `clip_norm`."""

    status = "EMAN_E_DIVERGED"


class OutOfMemoryError(EmanError, MemoryError):
    """The context's memory limit or the system's memory is exhausted.

    Examples
    --------
    >>> import eman
    >>> small = eman.Context(memory_limit=100)
    >>> eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]], context=small)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    eman.errors.OutOfMemoryError: out of memory: ... of the context's limit of 100 are in use
    """

    status = "EMAN_E_NOMEM"


class FileError(EmanError, OSError):
    """A file could not be read or written.

    Examples
    --------
    >>> import eman
    >>> eman.Model.load("absent.safetensors")
    Traceback (most recent call last):
    eman.errors.FileError: open absent.safetensors: no such file or directory
    """

    status = "EMAN_E_IO"


class CancelledError(EmanError):
    """A progress function or a cancel request ended the call."""

    status = "EMAN_E_CANCELLED"


class ForkedError(EmanError, RuntimeError):
    """The library was used before this process was forked from its parent, and cannot be used in the child.

    Start worker processes with the "spawn" or "forkserver" method, or fork before the first call.
    """

    status = "EMAN_E_FORKED"


class UnsupportedError(EmanError, NotImplementedError):
    """What was asked for is lacking in this build or processor, or the mesh is too large."""

    status = "EMAN_E_UNSUPPORTED"


class InternalError(EmanError, RuntimeError):
    """A fault of the library or of these bindings; please report it.  The library can still be used."""

    status = "EMAN_E_INTERNAL"


class LibraryError(EmanError, OSError):
    """The shared library was not found or does not fit this package; the message lists every place looked at."""
