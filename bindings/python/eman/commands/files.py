"""What subcommands read and write: meshes, labels beside them, arrays, models; and the bar of what takes long."""

from __future__ import annotations

import argparse
import errno
import importlib.util
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Optional

import numpy as np
import numpy.typing as npt

from eman import _files
from eman.errors import FileError, InvalidArgumentError
from eman.mesh import Mesh

Array = npt.NDArray[Any]

#: Labels beside a mesh, with the same stem.
LABELS = (".npy", ".txt", ".seg")

#: What a vertex property of a PLY file that holds labels is called.
PROPERTIES = ("label", "labels", "class", "part", "segment", "segmentation")


def add_mesh(parser: argparse.ArgumentParser, *, many: bool = False) -> None:
    """Arguments of a command that reads a mesh, or many."""
    formats = "OBJ, PLY, OFF, STL, glTF and what else trimesh or meshio read"
    if many:
        parser.add_argument("mesh", type=Path, nargs="+", metavar="MESH", help=f"files or folders: {formats}")
    else:
        parser.add_argument("mesh", type=Path, metavar="MESH", help=formats)
    add_weld(parser)


def add_weld(parser: argparse.ArgumentParser) -> None:
    """The option that merges vertices."""
    parser.add_argument(
        "--weld",
        action="store_true",
        help="merge vertices that coincide, as along the seams of glTF files; results are of the merged ones",
    )


def add_model(parser: Any, *, required: bool = True) -> None:
    """The option that names a model."""
    parser.add_argument(
        "--model", required=required, metavar="MODEL", help="a model file, or the name of a shipped model"
    )


def read_mesh(path: Path, weld: bool, **options: Any) -> Mesh:
    """A mesh; faces that name a vertex twice are dropped."""
    with _files.quiet():
        return Mesh.from_file(path, weld=weld or None, degenerate="drop", **options)


def meshes_in(paths: Sequence[Path]) -> list[Path]:
    """Files as they are, and the meshes in folders, by name."""
    found: list[Path] = []
    for path in paths:
        found += _files.meshes_in(path) if path.is_dir() else [path]
    return found


# ---------------------------------------------------------------------------------------------------------------------


class LabelledFile(NamedTuple):
    """A mesh file and the labels of its vertices."""

    path: Path
    mesh: Mesh
    labels: Array


def labelled_in(folder: Path, weld: bool, name: Optional[str] = None) -> tuple[list[LabelledFile], list[Path]]:
    """The labelled meshes in a folder, and the meshes there that have no labels.

    Labels are a file beside the mesh (see `LABELS`), or else a vertex property of a PLY file, `name` or one of
    `PROPERTIES`.
    """
    found, without = [], []
    paths = _files.meshes_in(folder)
    with bar("meshes", len(paths)) as move:
        for path in paths:
            labels = labels_of(path, name)
            if labels is None:
                without.append(path)
            else:
                found.append(LabelledFile(path, *_fitting(path, labels, weld)))
            move()
    if not found:
        raise FileError(
            f"{folder} has {len(without)} meshes, but no labels: a file beside each, of the same name with "
            f"{', '.join(LABELS)}, or a vertex property of PLY"
        )
    return found, without


def labels_of(path: Path, name: Optional[str] = None) -> Optional[Array]:
    """The labels that belong to a mesh file, or None."""
    for suffix in LABELS:
        beside = path.with_suffix(suffix)
        if beside.exists():
            return read_labels(beside)
    if path.suffix.lower() == ".ply":
        found = _files.vertex_properties(path)
        for wanted in [name] if name else PROPERTIES:
            if wanted in found:
                return _whole(found[wanted], path)
    return None


def _fitting(path: Path, labels: Array, weld: bool) -> tuple[Mesh, Array]:
    """A mesh and its labels, those of the vertices that welding keeps."""
    with _files.quiet():
        vertices, faces = _files.read_mesh(path, weld=False)
    if len(labels) != len(vertices):
        faces_too = ": those of faces must be carried to the vertices first" if len(labels) == len(faces) else ""
        raise FileError(f"{path} has {len(vertices)} vertices and {len(labels)} labels{faces_too}")
    if weld or path.suffix.lower() in _files.SOUPS:
        kept, faces = _files.weld_vertices(vertices, faces)
        vertices, labels = vertices[kept], labels[kept]
    return Mesh(vertices, faces, degenerate="drop"), labels


def read_labels(path: Path) -> Array:
    """(V,) int64 labels of a file: .npy, or text with a number for each vertex."""
    return _whole(read_values(path), path)


def read_values(path: Path) -> Array:
    """(V,) numbers of a file: .npy, or text with a number for each vertex."""
    try:
        if path.suffix.lower() == ".npy":
            with path.open("rb") as file:
                found = np.load(file, allow_pickle=False)
        else:
            found = np.loadtxt(path, ndmin=1)
    except (ValueError, EOFError, UnicodeDecodeError) as error:
        raise FileError(f"{path} does not hold numbers: {' '.join(str(error).split())}") from error
    if found.dtype.kind not in "iuf" or found.size != max(found.shape, default=1):
        raise FileError(f"{path} must hold a number for each vertex, got {found.dtype} of shape {found.shape}")
    numbers: Array = found.reshape(-1)
    return numbers


def _whole(values: Array, path: Path) -> Array:
    """Numbers that are labels."""
    labels: Array = values.astype(np.int64)
    strange = np.flatnonzero((labels != values) | (labels < -1))
    if len(strange):
        raise FileError(f"{path}: {values[strange[0]]} is no label, which are whole numbers from 0 on, or -1: unknown")
    return labels


def write_values(path: Path, values: Array) -> None:
    """An array to .npy, or to text with a row for each vertex."""
    content = io.BytesIO()
    if path.suffix.lower() == ".npy":
        np.save(content, values)
    else:
        np.savetxt(content, values, fmt="%d" if values.dtype.kind in "iu" else "%.9g")
    _files.write_whole(path, content.getvalue())


def writable(path: Path, suffixes: Sequence[str]) -> Path:
    """A file to write, whose suffix says what; refused before the work rather than after it."""
    if path.suffix.lower() not in suffixes:
        raise InvalidArgumentError(f"{path}: the name must end with {' or '.join(suffixes)}")
    if not path.parent.is_dir():
        raise FileError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
    return path


# ---------------------------------------------------------------------------------------------------------------------


class Bar:
    """What a bar of steps is moved by: each call is a step done."""

    def __init__(self, progress: Any = None) -> None:
        #: What calls of `eman.Model` take as progress; None without a bar.
        self.progress = progress

    def __call__(self) -> None:
        """Move it by a step."""
        if self.progress is not None:
            self.progress.update()


@contextmanager
def bar(title: str, total: float = 1.0) -> Iterator[Bar]:
    """A bar on terminals for what takes longer than a second; none where tqdm is not installed."""
    if importlib.util.find_spec("tqdm") is None:
        yield Bar()
        return
    from tqdm import tqdm

    with tqdm(desc=title, total=total, delay=1, disable=None, leave=False) as shown:
        yield Bar(None if shown.disable else shown)
