"""Mesh files, through trimesh and meshio: the package has no readers of its own."""

from __future__ import annotations

import errno
import functools
import importlib.util
import io
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Callable, Optional

import numpy as np

from eman import _arrays
from eman.errors import EmanError, FileError

Array = _arrays.Array

#: Meshes that are looked for in a folder; a file named by the user may be of any kind that trimesh or meshio reads.
MESHES = (".obj", ".ply", ".off", ".stl", ".glb", ".gltf", ".vtk", ".vtu", ".vtp", ".msh", ".mesh", ".3mf", ".dae")

# Formats whose vertices are written once per face and have no identity of their own.
SOUPS = {".stl"}
_NORMALS = ("nx", "ny", "nz")  # PLY's names of their coordinates


def read_mesh(path: Any, weld: Optional[bool]) -> tuple[Array, Array]:
    """Vertices (V, 3) and triangles (F, 3) of a file, in the file's order.

    Raises
    ------
    FileError
        If the file is missing or cannot be read as a mesh.
    ImportError
        If neither trimesh nor meshio is installed.
    """
    target = Path(os.fspath(path))
    try:
        with target.open("rb"):  # a missing file or a folder: say so before any reader guesses
            pass
    except OSError as error:
        raise FileError(error.errno, error.strerror, str(target)) from error
    reasons = []
    for name, read in readers():
        try:
            vertices, faces = read(target)
        except EmanError:
            raise
        except MemoryError:
            raise
        except BaseException as error:
            # Readers fail in many ways on files that are none of theirs; meshio even ends the process.
            if isinstance(error, KeyboardInterrupt):
                raise
            reasons.append(f"{name}: {_first_line(error)}")
            continue
        if len(vertices) == 0:
            reasons.append(f"{name} finds no vertices in it")
            continue
        if weld or (weld is None and target.suffix.lower() in SOUPS):
            kept, faces = weld_vertices(vertices, faces)
            vertices = vertices[kept]
        return vertices, faces
    raise FileError(f"{target} cannot be read as a mesh ({'; '.join(reasons)})")


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _read_with_trimesh(path: Path) -> tuple[Array, Array]:
    import trimesh

    # Unless told otherwise, trimesh merges and reorders vertices.
    options = {"process": False, "maintain_order": True}
    if path.suffix.lower() == ".obj":
        options["skip_materials"] = True  # textures it may not find
    load = trimesh.load_mesh if hasattr(trimesh, "load_mesh") else functools.partial(trimesh.load, force="mesh")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="trimesh")  # about texture coordinates
        mesh = load(str(path), **options)
    if not hasattr(mesh, "faces"):
        raise ValueError("it holds no triangles")
    return _arrays.mesh_arrays(np.asarray(mesh.vertices), np.asarray(mesh.faces))


def _read_with_meshio(path: Path) -> tuple[Array, Array]:
    import meshio

    return _arrays.mesh_arrays(meshio.read(str(path)), None)


_READERS = (("trimesh", _read_with_trimesh), ("meshio", _read_with_meshio))


def readers() -> Sequence[tuple[str, Callable[[Path], tuple[Array, Array]]]]:
    """What reads mesh files here, by the package's name; ImportError if nothing does."""
    found = [(name, read) for name, read in _READERS if importlib.util.find_spec(name) is not None]
    if not found:
        raise ImportError("reading mesh files needs trimesh or meshio: pip install eman[mesh]")
    return found


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps from the user what readers print about files that are none of theirs."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        yield


def meshes_in(folder: Path) -> list[Path]:
    """The meshes in a folder and the folders in it, by name; FileError if there is none."""
    if not folder.is_dir():
        reason = errno.ENOTDIR if folder.exists() else errno.ENOENT
        raise FileError(reason, os.strerror(reason), str(folder))
    found = sorted(
        Path(parent, name)
        for parent, _, names in os.walk(folder, onerror=_refused)
        for name in names
        if name.lower().endswith(MESHES)
    )
    if not found:
        raise FileError(f"{folder} has no mesh: looked for {', '.join(MESHES)}")
    return found


def _refused(error: OSError) -> None:
    raise error  # rather than go on as if a folder that may not be read had no meshes


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that at every moment is the old one or the new one as a whole, also if the power fails.

    Raises
    ------
    FileError
        If that is not possible; the message names the file.
    """
    with _beside(path, content) as written:
        written.replace(path)


def write_first(path: Path, content: bytes) -> None:
    """The same, unless the file is there: of all that write it at a time, one does, and the others leave it alone."""
    with _beside(path, content) as written:
        try:
            os.link(written, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            if not path.exists():
                written.replace(path)


def write_picture(path: Path, figure: Any, **options: Any) -> None:
    """`write_whole` of a matplotlib figure as PNG, with options of its savefig."""
    content = io.BytesIO()
    figure.savefig(content, format="png", **options)
    write_whole(path, content.getvalue())


@contextmanager
def _beside(path: Path, content: bytes) -> Iterator[Path]:
    """A file with the content, in the folder of another, until it takes the other's name."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with writing(path):
            with beside.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            yield beside
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """FileError, with the name of the file, for what fails; the system says of a full disk only that it is full."""
    try:
        yield
    except OSError as error:
        raise FileError(error.errno, error.strerror, str(path)) from error


def weld_vertices(vertices: Array, faces: Array) -> tuple[Array, Array]:
    """Merge vertices with equal coordinates: which are kept, in the order of their first appearance, and the faces."""
    _, first, inverse = np.unique(vertices, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse.reshape(-1)][faces]


def vertex_properties(path: Any) -> dict[str, Array]:
    """(V,) numbers by name: the vertex properties of a PLY file, coordinates included.

    Raises
    ------
    FileError
        If the file cannot be read.
    ImportError
        If trimesh is not installed.
    """
    import trimesh

    try:
        mesh = trimesh.load(str(path), process=False, maintain_order=True)
        elements = mesh.metadata["_ply_raw"]["vertex"]["data"]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise FileError(f"{path} cannot be read as PLY: {_first_line(error)}") from error
    names = list(elements) if isinstance(elements, dict) else elements.dtype.names or ()
    return {name: np.ravel(np.asarray(elements[name])) for name in names}


def read_normals(path: Any) -> Optional[Array]:
    """(V, 3) normals of a PLY file, or None; errors as `vertex_properties`."""
    if Path(os.fsdecode(path)).suffix.lower() != ".ply":
        return None
    found = vertex_properties(path)
    return np.stack([found[name] for name in _NORMALS], axis=1) if found.keys() >= set(_NORMALS) else None
