"""Labelled meshes: those of the paper (§7), and others that need no download.

Everything is lazy: a file is parsed and a mesh built when it is asked for, so that a data set may be larger than the
memory.

>>> from eman import datasets
>>> data = datasets.creatures(10, vertices=800)
>>> data
Dataset('creatures', 10 meshes, 8 to train and 2 to test, 16 classes)
>>> data.test[0].mesh.vertex_count, data.test[0].target.shape
(800, (800,))
"""

from __future__ import annotations

import functools
import os
import re
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, Union, overload

import numpy as np
import numpy.typing as npt

from eman import _files
from eman.creatures import PART_NAMES, SPECIES, creature
from eman.errors import EmanError, FileError, InvalidArgumentError
from eman.mesh import Mesh

if TYPE_CHECKING:
    from _typeshed import StrPath

__all__ = ["TOSCA_CLASSES", "Dataset", "Sample", "creatures", "faust", "humans", "tosca"]

Array = npt.NDArray[Any]

#: The classes of TOSCA, in label order.
TOSCA_CLASSES = ("cat", "centaur", "david", "dog", "gorilla", "horse", "michael", "victoria", "wolf")


class _Arrays(NamedTuple):
    """A labelled mesh as it was read."""

    vertices: Array
    faces: Array
    target: Any
    flipped: int = 0


class Sample:
    """One labelled mesh of a data set.

    Attributes
    ----------
    name : str
        Of the file, body or creature.

    Examples
    --------
    >>> import eman
    >>> sample = eman.datasets.creatures(5, vertices=800)[0]
    >>> isinstance(sample, eman.datasets.Sample), sample.target.shape, sample.mesh.vertex_count, sample.defects
    (True, (800,), 800, {})
    """

    def __init__(self, name: str, load: Callable[[], _Arrays]) -> None:
        self.name = name
        self._load = load

    @functools.cached_property
    def mesh(self) -> Mesh:
        """The mesh; faces that name a vertex twice are dropped."""
        arrays = self._load()
        return Mesh(arrays.vertices, arrays.faces, degenerate="drop")

    @property
    def target(self) -> Any:
        """(V,) int32, the class of each vertex; for classification int, that of the mesh."""
        return self._load().target

    @property
    def defects(self) -> dict[str, int]:
        """How much of what is wrong with the mesh: faces that were flipped, and what `Mesh.report` counts."""
        counts = {name: count for name, count in self.mesh.report().counts.items() if count}
        flipped = self._load().flipped
        return {"flipped_faces": flipped, **counts} if flipped else counts

    def __repr__(self) -> str:
        return f"Sample({self.name!r})"


class _Column(Sequence[Any]):
    """An attribute of each sample, looked up when it is asked for."""

    def __init__(self, samples: Dataset, attribute: str) -> None:
        self._samples, self._attribute = samples, attribute

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return _Column(self._samples[index], self._attribute)
        return getattr(self._samples[index], self._attribute)


class Dataset(Sequence[Sample]):
    """Labelled meshes; slices of it are data sets as well.

    Attributes
    ----------
    name : str
        What it is.
    task : {"segmentation", "classification"}
        Whether targets are classes of vertices or of meshes.
    classes : int
        How many.
    labels : tuple of str
        Their names; empty if they have none.

    Examples
    --------
    >>> import eman
    >>> data = eman.datasets.creatures(5, vertices=800)
    >>> data.task, data.classes, len(data.train), len(data.test)
    ('segmentation', 16, 4, 1)
    >>> isinstance(data[1:3], eman.datasets.Dataset), len(data.select([4, 0]).targets)
    (True, 2)
    """

    def __init__(
        self,
        name: str,
        names: Sequence[str],
        load: Callable[[int], _Arrays],
        training: Iterable[bool],
        *,
        classes: int,
        task: str = "segmentation",
        labels: Sequence[str] = (),
    ) -> None:
        self.name, self.task, self.classes, self.labels = name, task, classes, tuple(labels)
        self._names, self._load = tuple(names), load
        self._training = np.array(list(training), bool)
        self._chosen = np.arange(len(self._names))

    def select(self, indices: npt.ArrayLike) -> Dataset:
        """The samples of these numbers, in this order."""
        part = object.__new__(Dataset)
        part.__dict__.update(self.__dict__, _chosen=self._chosen[np.asarray(indices, np.int64)])
        return part

    @property
    def training(self) -> npt.NDArray[np.bool_]:
        """(N,) bool: whether each sample is for training."""
        return np.asarray(self._training[self._chosen], np.bool_)

    @property
    def train(self) -> Dataset:
        """What to learn from."""
        return self.select(np.flatnonzero(self.training))

    @property
    def test(self) -> Dataset:
        """What to measure with."""
        return self.select(np.flatnonzero(~self.training))

    @property
    def meshes(self) -> Sequence[Mesh]:
        """The meshes, each built when it is asked for."""
        return _Column(self, "mesh")

    @property
    def targets(self) -> Sequence[Any]:
        """The targets of the meshes."""
        return _Column(self, "target")

    def __len__(self) -> int:
        return len(self._chosen)

    @overload
    def __getitem__(self, index: int) -> Sample: ...

    @overload
    def __getitem__(self, index: slice) -> Dataset: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Sample, Dataset]:
        if isinstance(index, slice):
            return self.select(np.arange(len(self))[index])
        number = int(self._chosen[index])
        return Sample(self._names[number], lambda: self._load(number))

    def __repr__(self) -> str:
        train = np.count_nonzero(self.training)
        return (
            f"Dataset({self.name!r}, {len(self)} meshes, {train} to train and {len(self) - train} to test, "
            f"{self.classes} classes)"
        )


# ---------------------------------------------------------------------------------------------------------------------


def humans(path: StrPath, target: str = "vertex") -> Dataset:
    """Posed human bodies of one file, as the FAUST experiment uses its scans.

    Parameters
    ----------
    path : path
        An ``.npz`` with ``vertices`` (N, V, 3) and ``faces`` (F, 3), and as far as the target needs them ``part`` (V,)
        with ``part_names``, ``subject`` (N,) and ``pose`` (N,).
    target : {"vertex", "part", "subject"}
        The number of each vertex (dense labels, V classes); its part of the body; or, for classification, whose body it
        is.

    Returns
    -------
    Dataset
        Subjects 0 to 7 are for training, 8 and 9 for the test, which gets all bodies where no subject is named.  For
        the target "subject" it is the poses that are split so.

    Raises
    ------
    FileError
        If the file cannot be read or lacks an array.
    InvalidArgumentError
        For an unknown target.

    Examples
    --------
    >>> data = humans("humans.npz", "part")  # doctest: +SKIP
    >>> eman.fit(model, data.train.meshes, data.train.targets, epochs=20)  # doctest: +SKIP
    """
    if target not in ("vertex", "part", "subject"):
        raise InvalidArgumentError(f"target must be 'vertex', 'part' or 'subject', got {target!r}")
    needed = {"vertex": (), "part": ("part", "part_names"), "subject": ("subject", "pose")}[target]
    arrays = _archive(Path(os.fsdecode(path)), ("vertices", "faces", *needed))
    bodies, faces = arrays["vertices"], arrays["faces"]
    names = [f"body {i}" for i in range(len(bodies))]
    if "subject" in arrays and "pose" in arrays:
        names = [f"subject {s}, pose {p}" for s, p in zip(arrays["subject"], arrays["pose"])]
    if target == "subject":
        who, of = np.unique(arrays["subject"], return_inverse=True)
        return Dataset(
            "humans",
            names,
            lambda i: _Arrays(bodies[i], faces, int(of[i])),
            arrays["pose"] < 8,
            classes=len(who),
            task="classification",
            labels=[f"subject {s}" for s in who],
        )
    training = arrays["subject"] < 8 if "subject" in arrays else np.zeros(len(bodies), bool)
    labels = [str(name) for name in arrays["part_names"]] if target == "part" else []
    wanted = (arrays["part"] if target == "part" else np.arange(bodies.shape[1])).astype(np.int32)
    classes = len(labels) or len(wanted)
    return Dataset(
        "humans", names, lambda i: _Arrays(bodies[i], faces, wanted), training, classes=classes, labels=labels
    )


def _archive(path: Path, needed: Sequence[str]) -> dict[str, Array]:
    """The arrays of an .npz file, those needed among them."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
    except OSError as error:
        raise FileError(error.errno, error.strerror, str(path)) from error
    except Exception as error:  # whatever numpy makes of another file
        raise FileError(f"{path} does not hold bodies: {error}") from error
    for name in needed:
        if name not in arrays:
            raise FileError(f"{path} does not hold bodies: it has no array {name!r}")
    if arrays["vertices"].ndim != 3 or arrays["vertices"].shape[2] != 3:
        raise FileError(f"{path} does not hold bodies: vertices has shape {arrays['vertices'].shape}, not (N, V, 3)")
    return arrays


# ---------------------------------------------------------------------------------------------------------------------

_REGISTRATION = re.compile(r"tr_reg_(\d{3})\.ply$")


def faust(root: StrPath) -> Dataset:
    """The registrations of FAUST (Bogo et al. 2014), as in the paper: 80 to train and 20 to test, dense labels.

    Parameters
    ----------
    root : path
        A folder with ``tr_reg_000.ply`` … ``tr_reg_099.ply``, anywhere below it; or the zip file ``MPI-FAUST.zip`` as
        it is downloaded.

    Returns
    -------
    Dataset
        The target of a vertex is its number.  Registrations 0 to 79 are for training.

    Raises
    ------
    FileError
        If there are no registrations, or one cannot be read or has other vertices than the first.
    ImportError
        If neither trimesh nor meshio is installed.

    Examples
    --------
    >>> import eman
    >>> data = eman.datasets.faust("MPI-FAUST.zip")  # doctest: +SKIP
    """
    folder = Path(os.fsdecode(root))
    if folder.is_dir():
        files = sorted(path for path in folder.rglob("tr_reg_*.ply") if _REGISTRATION.search(path.name))
        names = [path.name for path in files]
        read: Callable[[int], tuple[Array, Array]] = lambda i: _files.read_mesh(files[i], weld=False)  # noqa: E731
    else:
        try:
            with zipfile.ZipFile(folder) as archive:
                members = sorted(name for name in archive.namelist() if _REGISTRATION.search(name))
        except OSError as error:
            raise FileError(error.errno, error.strerror, str(folder)) from error
        except zipfile.BadZipFile as error:
            raise FileError(f"{folder} is neither a folder nor a zip file: {error}") from error
        names = [Path(name).name for name in members]
        read = functools.partial(_read_member, folder, members)
    if not names:
        raise FileError(f"{folder} has no registrations, tr_reg_000.ply and following")
    vertices = len(read(0)[0])

    @functools.lru_cache(maxsize=2)
    def load(i: int) -> _Arrays:
        points, faces = read(i)
        if len(points) != vertices:
            raise FileError(f"{names[i]} in {folder} has {len(points)} vertices, {names[0]} has {vertices}")
        return _Arrays(points, faces, np.arange(vertices, dtype=np.int32))

    return Dataset("FAUST", names, load, (_number(_REGISTRATION, name) < 80 for name in names), classes=vertices)


def _read_member(archive: Path, members: Sequence[str], i: int) -> tuple[Array, Array]:
    """Read a mesh file inside a zip file."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(archive) as opened:
        try:
            return _files.read_mesh(opened.extract(members[i], folder), weld=False)
        except (EmanError, zipfile.BadZipFile) as error:
            raise FileError(f"{archive}, {members[i]}: {error}") from error


def _number(pattern: re.Pattern[str], name: str) -> int:
    found = pattern.search(name)
    return int(found.group(found.lastindex or 0)) if found else -1


# ---------------------------------------------------------------------------------------------------------------------

_FIGURE = re.compile(rf"^({'|'.join(TOSCA_CLASSES)})(\d+)\.(vert|off)$")


def tosca(root: StrPath) -> Dataset:
    """The figures of TOSCA (Bronstein et al. 2008): nine classes, for classification.

    Parameters
    ----------
    root : path
        A folder with ``cat0.vert`` and ``cat0.tri``, or ``cat0.off``, and so on, anywhere below it.  Figures of other
        names are left out.

    Returns
    -------
    Dataset
        Sorted by class and number.  17 of 80, evenly spread over that order, are for the test, as in the paper, which
        splits uniformly into 63 and 17 and does not say which.

    Raises
    ------
    FileError
        If there are no figures, or one cannot be read; the message names the file and line.
    ImportError
        If ``.off`` files are to be read, and neither trimesh nor meshio is installed.

    Notes
    -----
    Its defects are handled: isolated vertices have features 0, open boundaries have their own neighbours, faces that
    are oriented against most of their component are flipped, and those that name a vertex twice dropped.
    ``Sample.defects`` counts them.

    Examples
    --------
    >>> import eman
    >>> data = eman.datasets.tosca("toscahires-mat")  # doctest: +SKIP
    """
    folder = Path(os.fsdecode(root))
    figures = {}
    for path in folder.rglob("*"):
        found = _FIGURE.match(path.name)
        if found and (path.suffix == ".off" or path.with_suffix(".tri").exists()):
            figures[TOSCA_CLASSES.index(found.group(1)), int(found.group(2))] = path
    if not figures:
        raise FileError(f"{folder} has no figures of TOSCA, cat0.vert with cat0.tri or cat0.off and following")
    order = sorted(figures)

    @functools.lru_cache(maxsize=2)
    def load(i: int) -> _Arrays:
        path = figures[order[i]]
        vertices, faces = _files.read_mesh(path, weld=False) if path.suffix == ".off" else _figure(path)
        faces, flipped = _oriented(faces, len(vertices))
        return _Arrays(vertices, faces, order[i][0], flipped)

    return Dataset(
        "TOSCA",
        [figures[key].stem for key in order],
        load,
        ((i + 1) * 17 // 80 == i * 17 // 80 for i in range(len(order))),
        classes=len(TOSCA_CLASSES),
        task="classification",
        labels=TOSCA_CLASSES,
    )


def _figure(path: Path) -> tuple[Array, Array]:
    """Vertices of a .vert and triangles of a .tri file, which counts vertices from 1."""
    vertices = _table(path, np.float64)
    triangles = path.with_suffix(".tri")
    faces = _table(triangles, np.int64) - 1
    strange = np.flatnonzero(((faces < 0) | (faces >= len(vertices))).any(axis=1))
    if len(strange):
        row = int(strange[0])
        raise FileError(
            f"{triangles}: triangle {row + 1} names vertices {(faces[row] + 1).tolist()}, "
            f"but {path.name} has {len(vertices)}"
        )
    return vertices, faces


def _table(path: Path, dtype: Any) -> Array:
    """Lines of three numbers."""
    try:
        lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError as error:
        raise FileError(error.errno, error.strerror, str(path)) from error
    rows = [(number, line.split()) for number, line in enumerate(lines, 1) if line.strip()]
    convert = int if np.issubdtype(dtype, np.integer) else float
    values = np.empty((len(rows), 3), dtype)
    for i, (number, words) in enumerate(rows):
        try:
            values[i] = tuple(map(convert, words))
        except (ValueError, OverflowError) as error:
            raise FileError(f"{path}, line {number}: {' '.join(words)!r} is not three numbers") from error
    return values


def _oriented(faces: Array, vertices: int) -> tuple[Array, int]:
    """The faces, oriented as most of their component is, and how many had to be flipped for it.

    Faces are neighbours across edges of exactly two faces; what cannot be oriented is left somehow.
    """
    source, target = faces.ravel(), faces[:, [1, 2, 0]].ravel()
    keys = np.minimum(source, target) * vertices + np.maximum(source, target)
    order = np.argsort(keys, kind="stable")
    first = np.flatnonzero(np.diff(keys[order], prepend=-1))
    pairs = first[np.diff(np.append(first, len(keys))) == 2]
    one, other = order[pairs], order[pairs + 1]
    against = source[one] == source[other]
    if not against.any():
        return faces, 0
    begin = np.concatenate([one, other]) // 3
    end = np.concatenate([other, one]) // 3
    by_face = np.argsort(begin, kind="stable")
    begin, end, turn = begin[by_face], end[by_face], np.tile(against, 2)[by_face]
    offsets = np.searchsorted(begin, np.arange(len(faces) + 1))
    flip, seen = np.zeros(len(faces), bool), np.zeros(len(faces), bool)
    for seed in range(len(faces)):
        if seen[seed]:
            continue
        seen[seed] = True
        front = np.array([seed])
        component = [front]
        while len(front):
            sizes = np.diff(offsets)[front]
            slots = np.arange(sizes.sum()) + np.repeat(offsets[front] - np.cumsum(sizes) + sizes, sizes)
            new = slots[~seen[end[slots]]]
            flip[end[new]] = flip[begin[new]] ^ turn[new]
            seen[end[new]] = True
            front = np.unique(end[new])
            component.append(front)
        members = np.concatenate(component)
        if 2 * np.count_nonzero(flip[members]) > len(members):
            flip[members] = ~flip[members]
    faces = faces.copy()
    faces[flip] = faces[flip][:, ::-1]
    return faces, int(np.count_nonzero(flip))


# ---------------------------------------------------------------------------------------------------------------------


_creature = functools.lru_cache(maxsize=256)(creature)  # one takes a second


def creatures(
    n: int,
    seed: int = 0,
    species: Union[str, Sequence[str], None] = None,
    *,
    target: str = "part",
    vertices: int = 2000,
    test: Optional[int] = None,
) -> Dataset:
    """Creatures made on the spot, each in its own proportions, pose and irregular triangulation.

    Parameters
    ----------
    n : int
        How many.
    seed : int
        Another seed gives other creatures.
    species : str or sequence of str, optional
        Among `eman.creatures.SPECIES`, in turn; by default all of them.
    target : {"part", "species"}
        The part of the body of each vertex; or, for classification, the species.
    vertices : int
        Of each, at least 800.
    test : int, optional
        How many, the last ones, are for the test; by default a fifth.

    Returns
    -------
    Dataset

    Raises
    ------
    InvalidArgumentError
        For an unknown target or species, or numbers out of range.

    Examples
    --------
    >>> data = creatures(6, species=("horse", "lizard"), target="species", vertices=800)
    >>> [data.labels[target] for target in data.test.targets], data.train
    (['lizard'], Dataset('creatures', 5 meshes, 5 to train and 0 to test, 2 classes))
    """
    kinds = SPECIES if species is None else (species,) if isinstance(species, str) else tuple(species)
    unknown = [kind for kind in kinds if kind not in SPECIES]
    if unknown or not kinds:
        raise InvalidArgumentError(f"species must be among {', '.join(SPECIES)}, got {species!r}")
    if target not in ("part", "species"):
        raise InvalidArgumentError(f"target must be 'part' or 'species', got {target!r}")
    held = max(n // 5, 1) if test is None else test
    if n < 1 or seed < 0 or not 0 <= held <= n:
        raise InvalidArgumentError(f"n must be positive, seed not negative and test at most n: {n}, {seed} and {held}")
    parts = target == "part"

    def load(i: int) -> _Arrays:
        number = int(np.random.SeedSequence([seed, i]).generate_state(1)[0])
        made = _creature(number, vertices, kinds[i % len(kinds)])
        return _Arrays(made.vertices, made.faces, made.labels if parts else i % len(kinds))

    return Dataset(
        "creatures",
        [f"{kinds[i % len(kinds)]} {i}" for i in range(n)],
        load,
        (i < n - held for i in range(n)),
        classes=len(PART_NAMES if parts else kinds),
        task="segmentation" if parts else "classification",
        labels=PART_NAMES if parts else kinds,
    )
