"""What `eman.distributed` does to each mesh, and the worker that does it to one after another."""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Callable, Optional

import numpy as np

from eman import _files, plot
from eman._arrays import Array
from eman.context import Context
from eman.mesh import Mesh
from eman.model import Model


@dataclass(frozen=True)
class Outcome:
    """What became of a mesh.

    Attributes
    ----------
    error : str, optional
        Why there is no result, on one line.
    facts : dict
        Fields of `eman.distributed.Row`.
    files : dict
        The contents of the files to write, by what their names end with.
    """

    error: Optional[str] = None
    facts: dict[str, Any] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)


Compute = Callable[[Mesh], Outcome]


@dataclass(frozen=True)
class Task(ABC):
    """Something to compute from a mesh, which can be sent to other processes.

    Attributes
    ----------
    weld : bool
        Merge vertices that coincide.
    """

    weld: bool

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Whatever results depend on, for JSON."""

    @property
    def mesh_options(self) -> dict[str, Any]:
        """Of `eman.Mesh`."""
        return {}

    @abstractmethod
    def begin(self, context: Context) -> Compute:
        """Make ready what all meshes need; the function that takes each of them."""


@dataclass(frozen=True)
class Labels(Task):
    """Labels of vertices or of whole meshes, from a model.

    Attributes
    ----------
    model : bytes
        The content of a model file.
    confidence, coloured : bool
        Write the probability of each label, and the mesh in the colours of its labels.
    """

    model: bytes = field(repr=False)
    confidence: bool
    coloured: bool

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "task": "labels",
            "model_sha256": hashlib.sha256(self.model).hexdigest(),
            "confidence": self.confidence,
            "coloured": self.coloured,
            "weld": self.weld,
        }

    def begin(self, context: Context) -> Compute:
        model = Model.from_bytes(self.model, context=context)
        return lambda mesh: self._of(model, mesh)

    def _of(self, model: Model, mesh: Mesh) -> Outcome:
        found, sure = model.top(mesh, 1)
        if model.task == "classification":
            return Outcome(facts={"label": names_of(model)[int(found[0])], "confidence": float(sure[0])})
        labels, probabilities = found[:, 0], sure[:, 0]
        files = {".labels.npy": _npy(labels)}
        if self.confidence:
            files[".confidence.npy"] = _npy(probabilities)
        if self.coloured:
            with tempfile.TemporaryDirectory(prefix="eman-") as folder:
                files[".labels.ply"] = plot.export_labels(mesh, labels, Path(folder) / "labels.ply").read_bytes()
        mean = float(probabilities.mean(dtype=np.float64)) if len(labels) else None
        return Outcome(facts={"confidence": mean, "counts": count_labels(labels, names_of(model))}, files=files)


@dataclass(frozen=True)
class Features(Task):
    """RelTan or GET features of the vertices.

    Attributes
    ----------
    kind, powers, space, normals
        As for `eman.distributed.features`.
    """

    kind: str
    powers: Sequence[float]
    space: str
    normals: str

    @property
    def settings(self) -> dict[str, Any]:
        reltan = {"powers": [float(power) for power in self.powers], "space": self.space}
        shape = reltan if self.kind == "reltan" else {}
        return {"task": "features", "kind": self.kind, **shape, "normals": self.normals, "weld": self.weld}

    @property
    def mesh_options(self) -> dict[str, Any]:
        return {"normals": self.normals}

    def begin(self, context: Context) -> Compute:
        return lambda mesh: Outcome(files={f".{self.kind}.npy": _npy(self.of(mesh))})

    def of(self, mesh: Mesh) -> Array:
        """The features of a mesh."""
        return mesh.get_features() if self.kind == "get" else mesh.reltan(self.powers, self.space)


def names_of(model: Model) -> list[str]:
    """The names of a model's classes, or their numbers."""
    return model.labels or [str(number) for number in range(model.classes)]


def count_labels(labels: Array, names: list[str]) -> dict[str, int]:
    """How many vertices have each of the labels that occur."""
    counts = np.bincount(labels, minlength=len(names))
    return {name: int(count) for name, count in zip(names, counts) if count}


def _npy(values: Array) -> bytes:
    content = io.BytesIO()
    np.save(content, values)
    return content.getvalue()


# ---------------------------------------------------------------------------------------------------------------------


class Worker:
    """Does a task to one mesh after another, in a process of its own.

    Parameters
    ----------
    task : Task
        What to do.
    threads : int
        How many it may use.
    """

    def __init__(self, task: Task, threads: int) -> None:
        self._task, self._threads = task, threads
        self._context: Optional[Context] = None
        self._compute: Optional[Compute] = None

    def begin(self) -> None:
        """Make ready; what is raised here would be so for every mesh."""
        _files.readers()
        self._context = Context(threads=self._threads)
        self._compute = self._task.begin(self._context)

    def work(self, source: str) -> Outcome:
        """Read a mesh and compute; whatever fails is told, not raised."""
        path = Path(source)
        try:
            with _local(source) as path:
                return self._work(path)
        except Exception as error:
            return Outcome(error=one_line(error).replace(str(path), source))

    def _work(self, path: Path) -> Outcome:
        assert self._compute is not None
        start = time.perf_counter()
        with _files.quiet():
            mesh = Mesh.from_file(
                path,
                weld=self._task.weld or None,
                degenerate="drop",
                context=self._context,
                **self._task.mesh_options,
            )
        with mesh:
            found = self._compute(mesh)
            sizes = {"vertices": mesh.vertex_count, "faces": mesh.face_count}
        return Outcome(facts={**sizes, **found.facts, "seconds": time.perf_counter() - start}, files=found.files)


def one_line(error: BaseException) -> str:
    """An error as a row has it."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def is_url(source: str) -> bool:
    """Whether it is to be read through fsspec."""
    return "://" in source


@contextmanager
def _local(source: str) -> Iterator[Path]:
    """The file of a source, or a copy of it here."""
    if not is_url(source):
        yield Path(source)
        return
    import fsspec

    with tempfile.TemporaryDirectory(prefix="eman-") as folder:
        copy = Path(folder) / f"mesh{PurePosixPath(re.split('::|[?#]', source)[0]).suffix}"
        with fsspec.open(source, "rb") as remote, copy.open("wb") as file:
            shutil.copyfileobj(remote, file)
        yield copy
