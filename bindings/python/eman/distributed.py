"""Many meshes: labels or features of a folder, of patterns or of a list of URLs, on processes or on a Ray cluster.

Each mesh is a row of ``results.jsonl`` in a folder, and its arrays are files beside it.  A mesh that cannot be read is
a row as well, that says why.  A worker that dies costs no mesh, and a run that was ended goes on where it was.

>>> import eman, tempfile
>>> from pathlib import Path
>>> folder = Path(tempfile.mkdtemp())
>>> made = eman.creatures.creature(1, 800)
>>> for name in ("a.ply", "b.ply", "c.ply"):
...     _ = eman.plot.export_labels(made, made.labels, folder / name)
>>> batch = eman.distributed.predict(folder, "creature-parts", folder / "labels", workers=1)
>>> len(batch)
3
>>> for row in batch:
...     print(row.status, row.vertices, batch.load(row, "labels").shape)
done 800 (800,)
done 800 (800,)
done 800 (800,)
>>> batch.summary().done, list(batch)  # nothing is left to do
(3, [])
"""

from __future__ import annotations

import glob
import hashlib
import importlib.util
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np

from eman import _files, _tasks, shipped
from eman._arrays import Array
from eman._calls import reporter
from eman._journal import Journal
from eman._version import __version__
from eman.context import choice
from eman.errors import FileError, InvalidArgumentError
from eman.mesh import Mesh
from eman.model import Model

if TYPE_CHECKING:
    from _typeshed import StrPath

    from eman._engines import Engine, Finished

__all__ = ["ENGINES", "Batch", "Row", "Summary", "features", "predict"]

#: Where workers run.
ENGINES = ("processes", "ray")

_KINDS = ("reltan", "get")


@dataclass(frozen=True)
class Row:
    """What became of a mesh.

    Attributes
    ----------
    mesh : str
        Its absolute path, or its URL.
    status : {"done", "error"}
        Whether there are results.
    error : str or None
        Why not.
    outputs : dict
        Names of the files with its results, in the folder of the batch: "labels", "confidence", "coloured", "reltan",
        "get".
    vertices, faces : int or None
        Of the mesh.
    label : str or None
        Of the mesh as a whole, from a model that classifies.
    confidence : float or None
        The probability of the label, or the mean of those of the vertices.
    counts : dict or None
        How many vertices have each label.
    seconds : float or None
        What reading and computing took.
    attempts : int
        2 where the first worker that had it in hand died.
    """

    mesh: str
    status: str
    error: Optional[str] = None
    outputs: Optional[dict[str, str]] = None
    vertices: Optional[int] = None
    faces: Optional[int] = None
    label: Optional[str] = None
    confidence: Optional[float] = None
    counts: Optional[dict[str, int]] = None
    seconds: Optional[float] = None
    attempts: int = 1


@dataclass(frozen=True)
class Summary:
    """How far a batch is.

    Attributes
    ----------
    meshes : int
        Those asked for.
    done, errors, missing : int
        Those with results, those that could not be computed, and those that nobody has taken yet.
    vertices : int
        Of the meshes that are done.
    """

    meshes: int
    done: int
    errors: int
    missing: int
    vertices: int

    def __str__(self) -> str:
        missing = f", {self.missing:,} missing" if self.missing else ""
        return (
            f"{self.meshes:,} meshes: {self.done:,} done, {self.errors:,} errors{missing}; {self.vertices:,} vertices"
        )


class Batch:
    """Something to do to many meshes, and its results in a folder; `predict` and `features` make one.

    Iterating does what is missing and gives the rows, as meshes are finished.  It may be left at any time, by
    ``break``, Ctrl-C or the end of the process; another iteration, in this process or a later one, goes on.

    Parameters
    ----------
    task : object
        What to do to each.
    meshes : path, URL, or iterable of them
        Files; folders, for the meshes in them and in the folders in them; patterns with ``*``, ``?``, ``[...]`` or
        ``**``.  URLs of all kinds that fsspec knows; one that ends with ``/`` is a folder.  What is named twice is
        taken once.
    output : path
        The folder of the results, made where it is missing.  It holds ``results.jsonl``, with a line for each mesh in
        the order in which they were finished; the files that these name; and ``batch.json``, which says how they were
        made.
    engine : {"processes", "ray"}
        Processes of this machine, or actors of a Ray cluster (``pip install eman[ray]``), whose machines must have
        this package and the meshes.
    workers, threads : int, optional
        How many meshes at a time, and how many threads for each.  By default workers · threads are the processors, of
        this machine or of the cluster, and there are as many workers as they, or as meshes.
    address : str, optional
        Of the Ray cluster, such as "auto".  By default the one in use, or else a new one on this machine.
    retry_errors : bool
        Take meshes again whose row says "error".

    Raises
    ------
    InvalidArgumentError
        For an unknown option, or results in the folder that were made otherwise: with another model or other settings.
    FileError
        If a folder or pattern has no mesh, or the folder of the results cannot be used.
    ImportError
        If fsspec is needed and missing.

    Notes
    -----
    Workers are processes that were spawned: a script must make its batches below ``if __name__ == "__main__":``.
    A mesh that changes after it was done is not taken again.
    """

    def __init__(
        self,
        task: _tasks.Task,
        meshes: Union[StrPath, Iterable[StrPath]],
        output: StrPath,
        *,
        engine: str = "processes",
        workers: Optional[int] = None,
        threads: Optional[int] = None,
        address: Optional[str] = None,
        retry_errors: bool = False,
    ) -> None:
        choice(engine, "engine", dict.fromkeys(ENGINES, 0))
        if address is not None and engine != "ray":
            raise InvalidArgumentError(f"address is that of a Ray cluster, but engine is {engine!r}")
        for name, number in (("workers", workers), ("threads", threads)):
            if number is not None and number < 1:
                raise InvalidArgumentError(f"{name} must be at least 1, got {number}")
        self._task, self._engine, self._address = task, engine, address
        self._workers, self._threads, self._retry_errors = workers, threads, retry_errors
        #: The folder of the results.
        self.output = Path(os.path.abspath(output))
        #: The meshes: absolute paths and URLs.
        self.meshes = _expanded(meshes, self.output)
        self._claim()

    def _claim(self) -> None:
        """Make the folder, or see that it was made for the same."""
        description, settings = self.output / "batch.json", self._task.settings
        try:
            self.output.mkdir(parents=True, exist_ok=True)
            if not description.exists():
                _files.write_first(
                    description, json.dumps({"eman": __version__, "settings": settings}, indent=2).encode() + b"\n"
                )
            before = dict(json.loads(description.read_text())["settings"])
        except OSError as error:
            raise FileError(error.errno, error.strerror, str(error.filename)) from error
        except (ValueError, KeyError, TypeError) as error:
            raise FileError(f"{description} does not describe a batch: {error}") from error
        changed = sorted(name for name in {*before, *settings} if before.get(name) != settings.get(name))
        if changed:
            named = ", ".join(f"{name} was {before.get(name)} and is {settings.get(name)}" for name in changed)
            raise InvalidArgumentError(f"{self.output} holds results of other settings: {named}")

    # ---------------------------------------------------------------- results

    def _journal(self) -> Journal:
        path = self.output / "results.jsonl"
        journal = Journal(path)
        for number, record in enumerate(journal.records, 1):
            if not {"mesh", "status"} <= record.keys() <= {field.name for field in fields(Row)}:
                raise FileError(f"{path}, line {number}: not the record of a mesh")
        return journal

    def rows(self) -> list[Row]:
        """The rows of its meshes so far, in the order in which they were finished."""
        asked = set(self.meshes)
        return [Row(**record) for record in self._journal().records if record["mesh"] in asked]

    def __len__(self) -> int:
        """How many meshes there are, done or not."""
        return len(self.meshes)

    @property
    def pending(self) -> list[str]:
        """The meshes that iterating would take."""
        finished = {row.mesh for row in self.rows() if not self._again(asdict(row))}
        return [mesh for mesh in self.meshes if mesh not in finished]

    def _again(self, record: dict[str, Any]) -> bool:
        return self._retry_errors and record["status"] == "error"

    def summary(self) -> Summary:
        """How far it is."""
        rows = self.rows()
        done = [row for row in rows if row.status == "done"]
        return Summary(
            meshes=len(self),
            done=len(done),
            errors=len(rows) - len(done),
            missing=len(self) - len(rows),
            vertices=sum(row.vertices or 0 for row in done),
        )

    def load(self, row: Row, name: str) -> Array:
        """An array of a mesh's results.

        Parameters
        ----------
        row : Row
            Of the mesh.
        name : str
            Among ``row.outputs``: "labels" (V,) int32, "confidence" (V,) float32, "reltan" (V, P, 2 or 3) or "get"
            (V, 3) float64.

        Returns
        -------
        ndarray

        Raises
        ------
        InvalidArgumentError
            If it has none of that name.
        """
        outputs = {key: file for key, file in (row.outputs or {}).items() if file.endswith(".npy")}
        if name not in outputs:
            raise InvalidArgumentError(f"{row.mesh} has no array {name!r}, but {', '.join(outputs) or 'none'}")
        found: Array = np.load(self.output / outputs[name], allow_pickle=False)
        return found

    def to_parquet(self, path: Optional[StrPath] = None) -> Path:
        """Write the rows as a table for pandas, polars, DuckDB and others.

        Of names that are not UTF-8 each other byte is written as an escape, as in ``results.jsonl``.

        Parameters
        ----------
        path : path, optional
            By default ``results.parquet`` in the folder of the results.

        Returns
        -------
        pathlib.Path
            The file written.

        Raises
        ------
        ImportError
            If pyarrow is missing (``pip install eman[batch]``).
        FileError
            If it cannot be written.

        Examples
        --------
        >>> batch.to_parquet()  # doctest: +SKIP
        PosixPath('out/results.parquet')
        """
        import pyarrow as arrow
        from pyarrow import parquet

        text, whole, real = arrow.string(), arrow.int64(), arrow.float64()
        schema = arrow.schema(
            {
                "mesh": text,
                "status": text,
                "error": text,
                "outputs": arrow.map_(text, text),
                "vertices": whole,
                "faces": whole,
                "label": text,
                "confidence": real,
                "counts": arrow.map_(text, whole),
                "seconds": real,
                "attempts": whole,
            }
        )
        records = [{key: _cell(value) for key, value in asdict(row).items()} for row in self.rows()]
        content = io.BytesIO()
        parquet.write_table(arrow.Table.from_pylist(records, schema), content)
        target = Path(path) if path is not None else self.output / "results.parquet"
        _files.write_whole(target, content.getvalue())
        return target

    # ---------------------------------------------------------------- work

    def __iter__(self) -> Iterator[Row]:
        """Do what is missing; the rows of these meshes, each when its results are on the disk.

        Raises
        ------
        FileError
            If another process is at work in the folder, or results cannot be written.
        EmanError
            If workers end before they are ready.
        InvalidArgumentError
            If no machine of the Ray cluster has as many processors as there are to be threads.
        ImportError
            If Ray, or what reads meshes, is missing.
        """
        from eman._engines import finished

        with _alone(self.output):
            journal = self._journal()
            asked = set(self.meshes)
            journal.keep(lambda record: not (record["mesh"] in asked and self._again(record)))
            pending = self.pending
            if not pending:
                return
            with closing(self._open_engine()) as engine:
                workers, threads = self._sizes(engine, len(pending))
                for each in finished(engine, self._task, pending, workers, threads):
                    row = self._written(each)
                    journal.add(asdict(row))
                    yield row

    def run(self, progress: Any = None) -> Summary:
        """Do what is missing.

        Parameters
        ----------
        progress : callable or progress bar, optional
            Gets the fraction done; see `eman.Model`.

        Returns
        -------
        Summary
            Of all its meshes.

        Raises
        ------
        FileError, EmanError, ImportError
            As iterating.
        """
        pending = len(self.pending)
        report, finish = reporter(progress if progress is not None else lambda fraction: None)
        try:
            for number, _ in enumerate(self, 1):
                report(number / pending)
        finally:
            finish()
        return self.summary()

    def _open_engine(self) -> Engine:
        from eman._engines import Processes, RayActors

        return RayActors(self._address) if self._engine == "ray" else Processes()

    def _sizes(self, engine: Engine, meshes: int) -> tuple[int, int]:
        """Workers, and threads of each."""
        processors, smallest = engine.processors()
        workers = self._workers or max(1, min(processors // (self._threads or 1), meshes))
        return workers, self._threads or max(1, min(processors // workers, smallest))

    def _written(self, finished: Finished) -> Row:
        """Write the files of a mesh; its row."""
        source, outcome = finished.source, finished.outcome
        if outcome.error is not None:
            return Row(source, "error", outcome.error, attempts=finished.attempts)
        stem, outputs = _file_stem(source), {}
        for suffix, content in outcome.files.items():
            name = stem + suffix
            _files.write_whole(self.output / name, content)
            outputs["coloured" if suffix.endswith(".ply") else suffix.split(".")[1]] = name
        return Row(source, "done", outputs=outputs, attempts=finished.attempts, **outcome.facts)


def _cell(value: Any) -> Any:
    """A field of a row as Parquet takes it."""
    if isinstance(value, dict):
        return list(value.items())
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _file_stem(source: str) -> str:
    """What names of a mesh's files begin with: recognisable, and another for each mesh."""
    name = re.sub(r"[^\w.-]", "_", Path(source).stem)[:64]
    return f"{name}-{hashlib.sha256(source.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder of results, where the system has such locks, which go with the process."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FileError(error.errno, "another process is at work there", str(folder)) from error
        yield
    finally:
        os.close(descriptor)


# ---------------------------------------------------------------------------------------------------------------------


def predict(
    meshes: Union[StrPath, Iterable[StrPath]],
    model: Union[Model, StrPath],
    output: StrPath,
    *,
    confidence: bool = False,
    coloured: bool = False,
    weld: bool = False,
    **options: Any,
) -> Batch:
    """Label many meshes; nothing is computed before the batch is iterated or run.

    Parameters
    ----------
    meshes : path, URL, or iterable of them
        Files, folders, patterns, URLs; see `Batch`.
    model : Model or path
        A model, its file, or the name of one that the package brings.
    output : path
        The folder of the results.
    confidence : bool
        Write the probability of each label as well.
    coloured : bool
        Write each mesh as PLY in the colours of its labels (``pip install eman[mesh,plot]``).
    weld : bool
        Merge vertices that coincide, as along the seams of glTF files; results are of the merged ones.
    **options
        engine, workers, threads, address, retry_errors: see `Batch`.

    Returns
    -------
    Batch

    Raises
    ------
    InvalidModelError, FileError
        If the model cannot be used.
    InvalidArgumentError, FileError, ImportError
        As `Batch`.

    Examples
    --------
    >>> import eman
    >>> batch = eman.distributed.predict("scans/**/*.ply", "human-parts", "labels", workers=4)  # doctest: +SKIP
    >>> print(batch.run(progress=tqdm.tqdm))  # doctest: +SKIP
    1,203 meshes: 1,201 done, 2 errors; 8,288,670 vertices
    """
    opened = model if isinstance(model, Model) else shipped.open_model(os.fspath(model))
    if opened.task == "classification" and (confidence or coloured):
        raise InvalidArgumentError("the model labels a mesh as a whole: its rows say all, there are no files to write")
    return Batch(_tasks.Labels(weld, opened.to_bytes(), confidence, coloured), meshes, output, **options)


def features(
    meshes: Union[StrPath, Iterable[StrPath]],
    output: StrPath,
    *,
    kind: str = "reltan",
    powers: Sequence[float] = (0.5, 0.7),
    space: str = "tangent",
    normals: str = "area",
    weld: bool = False,
    **options: Any,
) -> Batch:
    """Features of many meshes; nothing is computed before the batch is iterated or run.

    Parameters
    ----------
    meshes : path, URL, or iterable of them
        Files, folders, patterns, URLs; see `Batch`.
    output : path
        The folder of the results.
    kind : {"reltan", "get"}
        `eman.Mesh.reltan` or `eman.Mesh.get_features`.
    powers : sequence of float
        The relative powers of RelTan.
    space : {"tangent", "ambient"}
        Coordinates of RelTan: in each vertex's frame, or of space.
    normals : {"area", "angle"}
        Weights of faces in a normal.
    weld : bool
        Merge vertices that coincide.
    **options
        engine, workers, threads, address, retry_errors: see `Batch`.

    Returns
    -------
    Batch

    Raises
    ------
    InvalidArgumentError, FileError, ImportError
        As `Batch`.

    Examples
    --------
    >>> import eman
    >>> batch = eman.distributed.features("s3://bucket/scans/", "features", engine="ray")  # doctest: +SKIP
    >>> fields = {row.mesh: batch.load(row, "reltan") for row in batch}  # doctest: +SKIP
    """
    choice(kind, "kind", dict.fromkeys(_KINDS, 0))
    task = _tasks.Features(weld, kind, tuple(powers), space, normals)
    task.of(Mesh(np.eye(3), [[0, 1, 2]], **task.mesh_options))  # refuses here what no mesh would take
    return Batch(task, meshes, output, **options)


# ---------------------------------------------------------------------------------------------------------------------


def _expanded(meshes: Union[StrPath, Iterable[StrPath]], output: Path) -> list[str]:
    """The single meshes, each once, without results."""
    named = [meshes] if isinstance(meshes, (str, os.PathLike)) else meshes
    found: dict[str, None] = {}
    for each in (os.fspath(mesh) for mesh in named):
        if not isinstance(each, str):
            raise InvalidArgumentError(f"meshes must be paths or URLs, got {each!r}")
        expand = _expanded_url if _tasks.is_url(each) else _expanded_path
        found.update(dict.fromkeys(mesh for mesh in expand(each) if output not in Path(mesh).parents))
    return list(found)


def _expanded_path(path: str) -> list[str]:
    if os.path.isdir(path):
        return [os.path.abspath(file) for file in _files.meshes_in(Path(path))]
    if os.path.exists(path) or not glob.has_magic(path):
        return [os.path.abspath(path)]
    return _matching(path, (os.path.abspath(each) for each in glob.iglob(path, recursive=True)))


def _expanded_url(url: str) -> list[str]:
    if importlib.util.find_spec("fsspec") is None:
        raise ImportError(f"{url} needs fsspec: pip install eman[batch]")
    import fsspec

    try:
        files, path = fsspec.core.url_to_fs(url)
    except ValueError as error:
        raise InvalidArgumentError(f"{url}: {error}") from error
    if "::" in url or not (url.endswith("/") or glob.has_magic(path)):
        return [url]
    found = files.find(path) if url.endswith("/") else files.glob(path)
    return _matching(url, (files.unstrip_protocol(each) for each in found))


def _matching(pattern: str, found: Iterable[str]) -> list[str]:
    """Those that are meshes, by their names."""
    meshes = sorted(each for each in found if each.lower().endswith(_files.MESHES))
    if not meshes:
        raise FileError(f"{pattern} has no mesh: looked for {', '.join(_files.MESHES)}")
    return meshes
