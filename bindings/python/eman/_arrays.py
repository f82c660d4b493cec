"""Arrays from whatever a caller has, without copying where the library can read them in place, and views of them."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from eman import _capi
from eman.errors import InvalidArgumentError

Array = npt.NDArray[Any]

# By numpy's numbers of the types, two of which may name one type: a dtype takes longer to look up.
_REAL: dict[int, int] = {np.dtype(code).num: number for code, number in (("f", _capi.FLOAT32), ("d", _capi.FLOAT64))}
_INTEGER: dict[int, int] = {
    np.dtype(code).num: {"i4": _capi.INT32, "u4": _capi.UINT32, "i8": _capi.INT64}[np.dtype(code).str[1:]]
    for code in "iIlLqQ"
    if np.dtype(code).str[1:] != "u8"
}
_DTYPES = {**_REAL, **_INTEGER}
_pack_view = struct.Struct("Qqqqqii").pack  # the fields of _capi.View
_CPU_DEVICES = (1, 3)  # DLPack: kDLCPU, kDLCUDAHost


def array(source: Any, name: str) -> Array:
    """Any array-like as a numpy array: buffers, ``__array_interface__``, ``__array__``, CPU DLPack, sequences."""
    if isinstance(source, np.ndarray):
        return source
    if hasattr(source, "__dlpack__") and not any(
        hasattr(source, other) for other in ("__array_interface__", "__array__")
    ):
        device = source.__dlpack_device__()[0] if hasattr(source, "__dlpack_device__") else 1
        if int(device) not in _CPU_DEVICES:
            raise InvalidArgumentError(f"{name} lies on a device (DLPack type {int(device)}): copy it to the CPU first")
        return np.from_dlpack(source)
    try:
        return np.asarray(source)
    except MemoryError:
        raise
    except Exception as error:  # whatever an object's __array__ raises, such as a tensor that requires a gradient
        raise InvalidArgumentError(f"{name} cannot be read as an array: {error}") from error


def reals(source: Any, name: str, columns: Optional[int]) -> Array:
    """(N, columns) float32 or float64, or (N,) where columns is None; copied only if the library cannot read it."""
    found = source if isinstance(source, np.ndarray) else array(source, name)
    if _usual(found, columns, _REAL):
        return found
    if found.dtype.kind not in "fiu":
        raise InvalidArgumentError(f"{name} must be real numbers, got {found.dtype}")
    return _readable(_shaped(found, name, columns), _REAL, np.float64)


def integers(source: Any, name: str, columns: Optional[int]) -> Array:
    """(N, columns) int32, uint32 or int64, or (N,) where columns is None; copied only if the library cannot read it."""
    found = source if isinstance(source, np.ndarray) else array(source, name)
    if _usual(found, columns, _INTEGER):
        return found
    if found.dtype.kind not in "iu" and found.size:
        raise InvalidArgumentError(f"{name} must be integers, got {found.dtype}")
    found = _shaped(found, name, columns)
    if found.dtype.kind == "u" and found.dtype.itemsize == 8 and found.size:
        highest = int(found.max())  # numpy 1 would compare an unsigned number with 2**63 - 1 as floats
        if highest > np.iinfo(np.int64).max:
            raise InvalidArgumentError(f"{name} contains {highest}, which no index can be")
    return _readable(found, _INTEGER, np.int64)


def labels(source: Any, name: str) -> Array:
    """(N,) int32, uint32 or int64 from so many labels, or from a single one."""
    return integers(np.atleast_1d(array(source, name)), name, None)


def _usual(found: Array, columns: Optional[int], dtypes: dict[int, int]) -> bool:
    """Whether it is what nearly all callers give, (N, columns) without gaps, which needs no other look."""
    kind = found.dtype
    return (
        found.ndim == 2
        and found.shape[1] == columns
        and kind.num in dtypes
        and kind.isnative
        and found.flags.c_contiguous
    )


def _shaped(found: Array, name: str, columns: Optional[int]) -> Array:
    """The array if it has the shape, an empty sequence reshaped to it."""
    if columns is None:
        if found.ndim != 1:
            raise InvalidArgumentError(f"{name} must have shape (N,), got {found.shape}")
        return found
    if found.size == 0 and found.ndim == 1:
        return found.reshape(0, columns)
    if found.ndim != 2 or found.shape[1] != columns:
        raise InvalidArgumentError(f"{name} must have shape (N, {columns}), got {found.shape}")
    return found


def _readable(found: Array, dtypes: dict[int, int], otherwise: npt.DTypeLike) -> Array:
    """The array itself, or a copy of it in a layout that the library reads.

    The library takes any strides except 0, which means packed to it, and any alignment.
    """
    if found.dtype.num not in dtypes or not found.dtype.isnative:
        return np.ascontiguousarray(found, otherwise)
    if not found.flags.c_contiguous and any(
        stride == 0 and count > 1 for stride, count in zip(found.strides, found.shape)
    ):
        return np.ascontiguousarray(found)
    return found


def view(found: Array) -> bytes:
    """An eman_view or eman_mutable_view of a 1- or 2-dimensional array, to be kept no longer than the array."""
    if found.ndim == 1:
        (rows,), (row_stride,) = found.shape, found.strides
        columns, column_stride = 1, 0
    else:
        rows, columns = found.shape
        row_stride, column_stride = found.strides
    try:
        # A quarter of the time of what follows.
        first = ctypes.addressof(ctypes.c_char.from_buffer(found))  # type: ignore[arg-type]
    except (TypeError, ValueError):  # read-only, strided or empty
        first = int(found.__array_interface__["data"][0])
    return _pack_view(first, rows, columns, row_stride, column_stride, _DTYPES[found.dtype.num], 0)


def triangles(source: Any, name: str = "faces") -> Array:
    """(F, 3) indices from triangles, quads, polygons of one size, or a ragged sequence of polygons.

    A polygon (a, b, c, d, ...) becomes the fan (a, b, c), (a, c, d), ...; the order of faces stays.
    """
    if isinstance(source, np.ndarray) and source.ndim == 2 and source.shape[1] == 3:
        return integers(source, name, 3)
    if not isinstance(source, (np.ndarray, memoryview)) and isinstance(source, Sequence) and _ragged(source):
        return _fans(source, name)
    found = array(source, name)
    if found.ndim == 2 and found.shape[1] > 3 and found.size:
        polygons = integers(found, name, found.shape[1])
        corner = np.arange(1, found.shape[1] - 1)
        fan = np.stack([np.zeros_like(corner), corner, corner + 1], axis=1)
        return np.ascontiguousarray(polygons[:, fan].reshape(-1, 3))
    return integers(found, name, 3)


def _ragged(source: Sequence[Any]) -> bool:
    lengths = {len(item) for item in source if hasattr(item, "__len__")}
    return len(lengths) > 1


def _fans(polygons: Sequence[Any], name: str) -> Array:
    fans = []
    for number, polygon in enumerate(polygons):
        corners = integers(polygon, f"{name}[{number}]", None)
        if len(corners) < 3:
            raise InvalidArgumentError(f"{name}[{number}] has {len(corners)} corners, a face has at least 3")
        fans.append(triangles(corners[None], name))
    return np.concatenate(fans)


def mesh_arrays(vertices: Any, faces: Any) -> tuple[Array, Array]:
    """Vertices (V, 3) and triangles (F, 3) from two array-likes, or from one object of another mesh package.

    Without `faces`, the object may have ``vertices`` and ``faces`` (trimesh, igl and ours), ``vertices`` and
    ``triangles`` (Open3D), ``points`` and ``cells`` (meshio), or ``points`` and a flat padded ``faces`` (pyvista).
    """
    if faces is not None:
        return reals(vertices, "vertices", 3), triangles(faces)
    if hasattr(vertices, "points"):
        points = reals(vertices.points, "points", 3)
        if hasattr(vertices, "faces"):
            return points, _padded(array(vertices.faces, "faces"))
        if hasattr(vertices, "cells"):
            return points, _cells(vertices.cells)
    if hasattr(vertices, "vertices"):
        for name in ("faces", "triangles"):
            if hasattr(vertices, name):
                return reals(vertices.vertices, "vertices", 3), triangles(getattr(vertices, name), name)
    raise InvalidArgumentError(
        f"faces are missing: give vertices and faces, or an object with .vertices and .faces or .points and .cells; "
        f"got {type(vertices).__name__}"
    )


def _padded(flat: Array) -> Array:
    """Triangles from VTK's list n, i1, ..., in, n, ...; also from plain (F, 3)."""
    if flat.ndim == 2:
        return triangles(flat)
    values = integers(flat, "faces", None)
    if len(values) % 4 == 0 and (values[::4] == 3).all():
        return values.reshape(-1, 4)[:, 1:]
    polygons = []
    start = 0
    while start < len(values):
        end = start + 1 + int(values[start])
        if not start + 3 < end <= len(values):
            raise InvalidArgumentError(f"faces: the count {values[start]} at position {start} does not fit the list")
        polygons.append(values[start + 1 : end])
        start = end
    return _fans(polygons, "faces")


def _cells(cells: Any) -> Array:
    """Triangles from meshio's blocks of cells; lines and points are no faces."""
    blocks = []
    if isinstance(cells, dict):
        cells = list(cells.items())
    for cell in cells:
        kind, data = (cell.type, cell.data) if hasattr(cell, "type") else cell
        if kind in ("triangle", "quad") or str(kind).startswith("polygon"):
            blocks.append(triangles(data, f"cells of type {kind}"))
        elif kind not in ("line", "vertex"):
            raise InvalidArgumentError(f"cells of type {kind!r} are no faces: extract the surface first")
    if not blocks:
        return np.zeros((0, 3), np.int64)
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def tensor(source: Any, name: str) -> Array:
    """A float32 or float64 array of any shape, packed in C order; torch tensors too, wherever they lie."""
    if hasattr(source, "detach") and hasattr(source, "cpu"):
        try:
            source = source.detach().cpu()
            if "16" in str(getattr(source, "dtype", "")):  # numpy has no bfloat16
                source = source.float()
            source = source.numpy()
        except (TypeError, RuntimeError) as error:  # a sparse or quantised one, for instance
            raise InvalidArgumentError(f"{name} cannot be read as an array: {error}") from error
    found = array(source, name)
    if found.dtype.kind not in "fiu":
        raise InvalidArgumentError(f"{name} must be real numbers, got {found.dtype}")
    kept = found.dtype in _REAL and found.dtype.isnative
    packed = np.ascontiguousarray(found, found.dtype if kept else np.float64)
    return packed.reshape(found.shape)  # ascontiguousarray makes a number a list
