"""Triangle meshes and clouds of points: neighbours, gauges, log map, transport and features (§3, §4 of the paper)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np
import numpy.typing as npt

from eman import _arrays, _capi, _files, _loader
from eman._calls import interruptible
from eman._handle import Forked, Handle
from eman.context import Context, choice, default_context
from eman.errors import InvalidArgumentError, InvalidMeshError
from eman.report import Report

if TYPE_CHECKING:
    from _typeshed import StrPath

__all__ = ["Mesh"]

FloatArray = npt.NDArray[np.float64]

#: From this many faces on a call is made so that Ctrl-C can end it; below it takes a few hundredths of a second.
LONG = 100_000
_DEFAULTS = {"gauge": "first_neighbor", "seed": 0, "normals": "area", "degenerate": "error"}
_MAX_POWERS = 64


class Mesh:
    """A triangle mesh with its neighbours and a frame at each vertex.

    Parameters
    ----------
    vertices : (V, 3) array_like, or a mesh object
        Positions in any unit of length.  float32 and float64 arrays of any strides are read in place, others
        converted: numpy arrays, buffers, ``__array_interface__``, DLPack on the CPU.  With `faces` left out, an object
        that has ``vertices`` and ``faces`` (trimesh), ``points`` and ``cells`` (meshio), ``points`` and ``faces``
        (pyvista) or ``vertices`` and ``triangles`` (Open3D).
    faces : (F, 3) array_like of int, optional
        Vertex indices.  int32, uint32 and int64 arrays of any strides are read in place.  Quads (F, 4), polygons of
        more corners, and ragged lists of polygons are cut into fans from their first corner, in order.  None where
        `frames` or an array of `normals` make a cloud of points, for networks on samples of a surface (the preset
        "surface"); those on vertices find no neighbours there.
    gauge : {"first_neighbor", "random", "custom"}
        How the first axis of each frame is chosen (§3.2): towards the neighbour of lowest index, that turned by
        a random angle, or as given.
    seed : int
        Of the random gauge.
    frames : (V, 3, 3) array_like, optional
        For the custom gauge: rows e1, e2, n of each vertex, orthonormal and right-handed.  The normals are taken from
        here as well.
    normals : {"area", "angle"} or (V, 3) array_like
        How faces are weighted in a vertex normal: by area (the paper) or by their angle (the authors' code).  Or the
        normals themselves, of any length: the gauge is then custom, with some tangent of each as its first axis.
    degenerate : {"error", "drop"}
        What becomes of a face that names a vertex twice.  Dropped faces are listed by `report`.
    context : Context, optional
        Threads and memory; by default a context shared by all.

    Raises
    ------
    InvalidMeshError
        If a coordinate is not finite, an index is out of range, a face names a vertex twice, or a custom frame is not
        orthonormal; the message names the vertex or face.
    InvalidArgumentError
        For wrong types, shapes or options.
    OutOfMemoryError
        If the context's limit or the system's memory does not suffice.

    Notes
    -----
    Directed edges (p, q) are listed per vertex p in increasing q; features travel from q to p.  Open, non-manifold and
    unoriented meshes, isolated vertices and faces without area are accepted; `report` tells about them.

    The properties that are arrays compute a new array at each access, which belongs to the caller.

    A mesh may be used from many threads at once; calls release the GIL.  `update` waits for other uses.  Building,
    `reltan` and `report` of large meshes can be interrupted by Ctrl-C.

    Examples
    --------
    >>> import eman
    >>> corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> tetrahedron = eman.Mesh(corners, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    >>> tetrahedron
    Mesh(vertices=4, faces=4, edges=12)
    >>> tetrahedron.reltan(powers=(0.5, 0.7)).shape
    (4, 2, 2)
    >>> eman.Mesh(corners, normals=[[0, 0, 1]] * 4)
    Mesh(vertices=4, faces=0, edges=0)
    """

    def __init__(
        self,
        vertices: Any,
        faces: Any = None,
        *,
        gauge: str = "first_neighbor",
        seed: int = 0,
        frames: Optional[npt.ArrayLike] = None,
        normals: Union[str, npt.ArrayLike] = "area",
        degenerate: str = "error",
        context: Optional[Context] = None,
    ) -> None:
        if not isinstance(normals, str):
            if frames is not None or gauge != "first_neighbor":
                raise InvalidArgumentError("an array of normals makes the gauge: leave gauge and frames out")
            gauge, frames, normals = "custom", _frames_of(normals), "area"
        if (
            faces is None
            and frames is not None
            and not hasattr(vertices, "vertices")
            and not hasattr(vertices, "points")
        ):
            faces = np.empty((0, 3), np.int32)  # a cloud of points
        points, triangles = _arrays.mesh_arrays(vertices, faces)
        rows = None if frames is None else _frame_rows(frames)  # kept until the call
        options: dict[str, Any] = {"gauge": gauge, "seed": seed, "normals": normals, "degenerate": degenerate}
        chosen = None if rows is None and options == _DEFAULTS else ctypes.byref(_struct_of(**options, rows=rows))
        library = _capi.library()
        owner = context if context is not None else default_context()
        position_view, face_view, out = _arrays.view(points), _arrays.view(triangles), ctypes.c_void_p()
        create, made = library.eman_mesh_create, ctypes.byref(out)
        with owner._handle as on:
            try:
                if len(triangles) < LONG:
                    _capi.check(create(on, position_view, face_view, chosen, None, made))
                else:
                    given = on, position_view, face_view, chosen
                    interruptible(lambda control: int(create(*given, control, made)), long=True)
            except BaseException:
                library.eman_mesh_free(out)  # interrupted when it was just finished
                raise
        self._own(out, owner, options)
        self._vertex_count, self._face_count = len(points), len(triangles)
        if degenerate == "drop":
            self._face_count = self._counts()[1]

    def _own(self, address: ctypes.c_void_p, context: Context, options: dict[str, Any]) -> None:
        self._context = context
        self._options = options
        self._handle = Handle(address, _capi.library().eman_mesh_free, "mesh")

    @classmethod
    def _adopt(cls, address: ctypes.c_void_p, context: Context, options: dict[str, Any]) -> Mesh:
        """A mesh that the library made from another."""
        mesh = cls.__new__(cls)
        mesh._own(address, context, options)
        mesh._vertex_count, mesh._face_count, _ = mesh._counts()
        return mesh

    @classmethod
    def from_file(cls, path: StrPath, *, weld: Optional[bool] = None, **options: Any) -> Mesh:
        """Read a mesh file, through trimesh or meshio, keeping the order of its vertices.

        Parameters
        ----------
        path : path
            OBJ, PLY, OFF, STL, glTF and whatever else trimesh or meshio read.  Several objects in a file become one
            mesh; quads and polygons are cut into triangles.  A PLY file without faces that has normals (nx, ny, nz)
            is a cloud of points.
        weld : bool, optional
            Merge vertices with equal coordinates, keeping the order of first appearance.  By default only for STL,
            which has no vertices of its own.  glTF files repeat vertices along texture seams.
        **options
            As for `Mesh`.

        Returns
        -------
        Mesh

        Raises
        ------
        FileError
            If the file is missing or is no mesh.
        ImportError
            If neither trimesh nor meshio is installed (``pip install eman[mesh]``).

        Examples
        --------
        >>> import eman
        >>> mesh = eman.Mesh.from_file("fox.glb", weld=True)  # doctest: +SKIP
        """
        vertices, faces = _files.read_mesh(path, weld)
        if len(faces) == 0 and not {"gauge", "frames", "normals"} & options.keys():
            normals = _files.read_normals(path)
            if normals is not None:
                return cls(vertices, None, normals=normals, **options)
        return cls(vertices, faces, **options)

    # ---------------------------------------------------------------- sizes

    def _counts(self) -> tuple[int, int, int]:
        vertices, faces, edges = ctypes.c_int64(), ctypes.c_int64(), ctypes.c_int64()
        with self._handle as handle:
            _capi.check(
                _capi.library().eman_mesh_counts(
                    handle, ctypes.byref(vertices), ctypes.byref(faces), ctypes.byref(edges)
                )
            )
        return vertices.value, faces.value, edges.value

    @property
    def vertex_count(self) -> int:
        """V, isolated vertices included."""
        return self._vertex_count

    @property
    def face_count(self) -> int:
        """F, without dropped faces."""
        return self._face_count

    @property
    def edge_count(self) -> int:
        """E, directed edges: each pair of neighbours counts twice."""
        return self._counts()[2]

    def __repr__(self) -> str:
        if self._handle.closed:
            return "Mesh(closed)"
        vertices, faces, edges = self._counts()
        return f"Mesh(vertices={vertices}, faces={faces}, edges={edges})"

    # ---------------------------------------------------------------- arrays

    def _fill(self, function: Any, result: npt.NDArray[Any]) -> None:
        with self._handle as handle:
            _capi.check(function(handle, _arrays.view(result)))

    def _per_edge(self, function: Any, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """An (E,) array; `update`, which may change E, has to wait meanwhile."""
        with self._handle.exclusive():
            result = np.empty(self._counts()[2], dtype)
            self._fill(function, result)
        return result

    @property
    def vertices(self) -> FloatArray:
        """(V, 3) float64: the positions, in the caller's unit."""
        result = np.empty((self._vertex_count, 3))
        self._fill(_capi.library().eman_mesh_positions, result)
        return result

    @property
    def faces(self) -> npt.NDArray[np.int32]:
        """(F, 3) int32: the triangles, without dropped ones.

        Examples
        --------
        >>> import eman
        >>> eman.Mesh([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 1, 2, 3]]).faces  # of a quad
        array([[0, 1, 2],
               [0, 2, 3]], dtype=int32)
        """
        result = np.empty((self._face_count, 3), np.int32)
        self._fill(_capi.library().eman_mesh_faces, result)
        return result

    @property
    def vertex_normals(self) -> FloatArray:
        """(V, 3) float64: unit normals (§3.2).

        Examples
        --------
        >>> import eman
        >>> eman.Mesh([[0, 0, 0], [2, 0, 0], [0, 1, 0]], [[0, 1, 2]]).vertex_normals[0]
        array([0., 0., 1.])
        """
        result = np.empty((self._vertex_count, 3))
        self._fill(_capi.library().eman_mesh_vertex_normals, result)
        return result

    @property
    def frames(self) -> FloatArray:
        """(V, 3, 3) float64: the gauges, rows e1, e2, n, orthonormal and right-handed (§3.2).

        Examples
        --------
        >>> import eman
        >>> eman.Mesh([[0, 0, 0], [2, 0, 0], [0, 1, 0]], [[0, 1, 2]]).frames[0]
        array([[1., 0., 0.],
               [0., 1., 0.],
               [0., 0., 1.]])
        """
        result = np.empty((self._vertex_count, 9))
        self._fill(_capi.library().eman_mesh_frames, result)
        return result.reshape(-1, 3, 3)

    @property
    def neighbors(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Offsets (V+1,) int64 and indices (E,) int32: p's neighbours are ``indices[offsets[p]:offsets[p + 1]]``.

        They are in increasing order.  Two vertices are neighbours if they share an edge of a face and do not coincide.

        Examples
        --------
        >>> import eman
        >>> mesh = eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]])
        >>> offsets, indices = mesh.neighbors
        >>> indices[offsets[1] : offsets[2]]
        array([0, 2, 3], dtype=int32)
        """
        offsets = np.empty(self._vertex_count + 1, np.int64)
        offset_view = _arrays.view(offsets)
        neighbors = _capi.library().eman_mesh_neighbors
        indices = self._per_edge(lambda mesh, out: neighbors(mesh, offset_view, out), np.int32)
        return offsets, indices

    @property
    def reverse_edges(self) -> npt.NDArray[np.int32]:
        """(E,) int32: the number of each directed edge's reverse.

        Examples
        --------
        >>> import numpy as np, eman
        >>> mesh = eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
        >>> bool(np.array_equal(mesh.reverse_edges[mesh.reverse_edges], np.arange(mesh.edge_count)))
        True
        """
        return self._per_edge(_capi.library().eman_mesh_reverse_edges, np.int32)

    @property
    def edge_angles(self) -> FloatArray:
        """(E,) float64: θ_pq in (−π, π], the polar angle of the neighbour in the frame of p (§3.3, the log map).

        Examples
        --------
        >>> import numpy as np, eman
        >>> mesh = eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
        >>> np.degrees(mesh.edge_angles[:2])  # at vertex 0, whose frame points to the first neighbour
        array([ 0., 90.])
        """
        return self._per_edge(_capi.library().eman_mesh_edge_angles, np.float64)

    @property
    def transport_angles(self) -> FloatArray:
        """(E,) float64: g_{q→p} in (−π, π]; ρ(g) f_q are the coordinates at p of a feature at q (§3.4).

        Examples
        --------
        >>> import numpy as np, eman
        >>> mesh = eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
        >>> float(np.degrees(mesh.transport_angles[0]))  # from vertex 1, whose frame points back to vertex 0
        180.0
        """
        return self._per_edge(_capi.library().eman_mesh_transport_angles, np.float64)

    @property
    def components(self) -> npt.NDArray[np.int32]:
        """(V,) int32: number of each vertex's connected component, in the order of their lowest vertices.

        Examples
        --------
        >>> import eman
        >>> corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [5, 0, 0], [6, 0, 0], [5, 1, 0]]
        >>> eman.Mesh(corners, [[0, 1, 2], [3, 4, 5]]).components
        array([0, 0, 0, 1, 1, 1], dtype=int32)
        """
        result = np.empty(self._vertex_count, np.int32)
        target, count = _arrays.view(result), ctypes.c_int64()
        with self._handle as handle:
            _capi.check(_capi.library().eman_mesh_components(handle, target, ctypes.byref(count)))
        return result

    @property
    def options(self) -> dict[str, Any]:
        """How it was made: gauge, seed, normals, degenerate."""
        return dict(self._options)

    @property
    def context(self) -> Context:
        """The context it was made with."""
        return self._context

    # ---------------------------------------------------------------- features

    def reltan(
        self,
        powers: Union[float, Sequence[float], FloatArray] = (0.5, 0.7),
        space: str = "tangent",
        *,
        degree_power: float = 1.5,
        constant: float = 1.0,
    ) -> FloatArray:
        """Relative tangential features (§4).

        For each relative power r, with d = q − p over the N neighbours q of p and π_p the projection on the tangent
        plane, v_p(r) = N^(−3/2) π_p[(Σ_q d/|d|^r)·(Σ_q |d|^(r−1))].  They have no unit, turn with the mesh, and do not
        change under translation and scaling.  0 at an isolated vertex.

        Parameters
        ----------
        powers : float or sequence of float
            The relative powers r, from 1 to 64 of them.
        space : {"tangent", "ambient"}
            Two coordinates in the frame of each vertex, or vectors of space.
        degree_power, constant : float
            The factor in front is 1/(constant·N^degree_power) (app. B.1).

        Returns
        -------
        (V, P, 2) float64, or (V, P, 3) in ambient space

        Raises
        ------
        InvalidArgumentError
            For powers that are not finite, or none or more than 64.
        InvalidMeshError
            If a vector overflows, as with a huge power on a needle; the message names the vertex.

        Examples
        --------
        >>> import numpy as np, eman
        >>> flat = eman.Mesh([[0, 0, 0], [2, 0, 0], [0, 1, 0]], [[0, 1, 2]])
        >>> np.round(flat.reltan([1.0], "ambient")[0], 6)
        array([[0.707107, 0.707107, 0.      ]])
        """
        exponents = _exponents(powers)
        width = 3 if choice(space, "space", _capi.SPACES) else 2
        options = _capi.RelTanOptions(
            struct_size=ctypes.sizeof(_capi.RelTanOptions),
            space=_capi.SPACES[space],
            degree_power=degree_power,
            constant=constant,
        )
        result = np.empty((self._vertex_count, len(exponents), width))
        target = _arrays.view(result.reshape(self._vertex_count, len(exponents) * width))
        reltan = _capi.library().eman_mesh_reltan
        with self._handle as handle:
            interruptible(
                lambda control: int(
                    reltan(
                        handle,
                        exponents,
                        len(exponents),
                        ctypes.byref(options),
                        control,
                        target,
                    )
                ),
                long=self._face_count * len(exponents) >= LONG,
            )
        return result

    def get_features(self) -> FloatArray:
        """Features of Gauge Equivariant Transformers (app. G): ⟨p, n⟩, then ⟨p, e1⟩ and ⟨p, e2⟩.

        Unlike RelTan they have the unit of the positions and depend on the origin.

        Returns
        -------
        (V, 3) float64
            ρ0, then the two coordinates of ρ1; 0 at an isolated vertex.

        Examples
        --------
        >>> import eman
        >>> mesh = eman.Mesh([[0, 0, 1], [2, 0, 1], [0, 1, 1]], [[0, 1, 2]])
        >>> mesh.get_features()[0]  # the height over the plane through the origin, and nothing in the tangent plane
        array([1., 0., 0.])
        """
        result = np.empty((self._vertex_count, 3))
        self._fill(_capi.library().eman_mesh_get_features, result)
        return result

    # ---------------------------------------------------------------- changes

    def update(self, vertices: Any, *, frames: Optional[npt.ArrayLike] = None) -> None:
        """Move the vertices and keep the faces: for deforming meshes, several times faster than a new mesh.

        Waits until other threads have finished with the mesh.  If it fails, the mesh is as it was.

        Parameters
        ----------
        vertices : (V, 3) array_like
            New positions; read in place where the constructor would.
        frames : (V, 3, 3) array_like, optional
            New frames, for a mesh with the custom gauge.

        Raises
        ------
        InvalidArgumentError
            For another number of vertices, or frames missing or given where the gauge is not custom.
        InvalidMeshError
            If a coordinate is not finite or a frame not orthonormal.

        Examples
        --------
        >>> import eman
        >>> mesh = eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
        >>> mesh.update([[0, 0, 0], [3, 0, 0], [0, 3, 0]])
        >>> mesh.report().area
        4.5
        """
        points = _arrays.reals(vertices, "vertices", 3)
        if len(points) != self._vertex_count:
            raise InvalidArgumentError(f"vertices must have shape ({self._vertex_count}, 3), got {points.shape}")
        custom = self._options["gauge"] == "custom"
        if custom != (frames is not None):
            raise InvalidArgumentError(
                "a mesh with the custom gauge needs new frames"
                if custom
                else f"frames are given, but gauge is {self._options['gauge']!r}"
            )
        position_view, frame_view = _arrays.view(points), None
        if frames is not None:
            rows = _frame_rows(frames)  # kept until the call
            frame_view = _arrays.view(rows)
        update = _capi.library().eman_mesh_update
        with self._handle.exclusive(), self._handle as handle:
            interruptible(
                lambda control: int(update(handle, position_view, frame_view, control)),
                long=self._face_count >= LONG,
            )

    # ---------------------------------------------------------------- doctor

    def report(self) -> Report:
        """Examine the mesh: the mesh doctor.

        Returns
        -------
        Report
            Sizes, judgements, and the offending indices of each finding; ``print`` it.

        Examples
        --------
        >>> import eman
        >>> mesh = eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2], [2, 2, 0]], degenerate="drop")
        >>> mesh.report().counts["dropped_faces"]
        1
        """
        library = _capi.library()
        out = ctypes.c_void_p()
        try:
            with self._handle as handle:
                interruptible(
                    lambda control: int(library.eman_mesh_examine(handle, control, ctypes.byref(out))),
                    long=self._face_count >= LONG,
                )
            return _read_report(library, out)
        finally:
            library.eman_report_free(out)

    # ---------------------------------------------------------------- life

    def plot(self, values: npt.ArrayLike, path: StrPath, **options: Any) -> Path:
        """Draw the mesh with something on it, into a PNG file.

        Parameters
        ----------
        values : array_like
            (V,) real numbers, coloured by size (`eman.plot.plot_scalars`); (V,) integers, labels with a legend
            (`plot_labels`); (V, 2) coordinates in `frames` or (V, 3) vectors in space, arrows (`plot_tangents`).
        path : path
            The picture to write.
        **options
            Of that function: ``title``, ``up``, ``view``, ``size``, ``names``, ``label``, ``limits`` ...

        Returns
        -------
        pathlib.Path
            The file written.

        Raises
        ------
        ValueError
            For another shape of values, or an unknown option.
        ImportError
            If matplotlib is missing.

        Examples
        --------
        >>> import os, tempfile, eman
        >>> mesh = eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
        >>> folder = tempfile.mkdtemp()
        >>> mesh.plot([0, 1, 1, 0], os.path.join(folder, "parts.png"), size=(320, 240)).name
        'parts.png'
        >>> mesh.plot(mesh.reltan((0.7,))[:, 0], os.path.join(folder, "field.png"), size=(320, 240)).name
        'field.png'
        """
        from eman import plot

        given = np.asarray(values)
        if given.ndim == 2:
            return plot.plot_tangents(self, given, path, **options)
        draw = plot.plot_labels if given.dtype.kind in "iub" else plot.plot_scalars
        return draw(self, given, path, **options)

    def close(self) -> None:
        """Free the mesh now rather than when it is garbage; another thread's running call finishes first.

        Examples
        --------
        >>> import eman
        >>> with eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]) as mesh:
        ...     mesh.edge_count
        6
        >>> mesh
        Mesh(closed)
        """
        self._handle.close()

    def __enter__(self) -> Mesh:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        frames = self.frames if self._options["gauge"] == "custom" else None
        return _rebuild, (self.vertices, self.faces, frames, self._options)


def _exponents(powers: Any) -> ctypes.Array[ctypes.c_double]:
    """Powers as packed doubles."""
    if type(powers) is not tuple:
        powers = _arrays.reals(np.atleast_1d(powers), "powers", None)
    if not 1 <= len(powers) <= _MAX_POWERS:
        raise InvalidArgumentError(f"powers must be 1 to {_MAX_POWERS} numbers, got {len(powers)}")
    try:
        return (ctypes.c_double * len(powers))(*powers)
    except (TypeError, OverflowError) as error:
        raise InvalidArgumentError(f"powers must be real numbers, got {powers}") from error


class _ForkedMesh(Forked, Mesh):
    """A mesh that arrived in a child of fork."""


def _rebuild(vertices: FloatArray, faces: Any, frames: Optional[FloatArray], options: dict[str, Any]) -> Mesh:
    """A pickled mesh, on the default context."""
    if _loader.forked:
        return _ForkedMesh()
    return Mesh(vertices, faces, frames=frames, **options)


def _struct_of(
    gauge: str, seed: int, normals: str, degenerate: str, rows: Optional[npt.NDArray[Any]]
) -> _capi.MeshOptions:
    """The options as the library takes them, with a view of the frames, to be kept no longer than those."""
    result = _capi.MeshOptions(
        struct_size=ctypes.sizeof(_capi.MeshOptions),
        normals=choice(normals, "normals", _capi.NORMALS),
        gauge=choice(gauge, "gauge", _capi.GAUGES),
        degenerate=choice(degenerate, "degenerate", _capi.DEGENERATE),
        seed=_seed(seed),
    )
    if gauge == "custom" and rows is None:
        raise InvalidArgumentError("gauge='custom' needs frames")
    if gauge != "custom" and rows is not None:
        raise InvalidArgumentError(f"frames are given, but gauge is {gauge!r}, not 'custom'")
    if rows is not None:
        result.frames = ctypes.pointer(_capi.View.from_buffer_copy(_arrays.view(rows)))
    return result


def _seed(seed: int) -> int:
    if not 0 <= seed < 2**64:
        raise InvalidArgumentError(f"seed must be between 0 and 2**64 - 1, got {seed}")
    return seed


def _frame_rows(frames: npt.ArrayLike) -> npt.NDArray[Any]:
    """(V, 3, 3) frames as (V, 9) rows."""
    found = _arrays.array(frames, "frames")
    if found.ndim != 3 or found.shape[1:] != (3, 3):
        raise InvalidArgumentError(f"frames must have shape (V, 3, 3), got {found.shape}")
    return _arrays.reals(found.reshape(len(found), 9), "frames", 9)


def _frames_of(normals: npt.ArrayLike) -> FloatArray:
    """(V, 3, 3) frames of normals (V, 3): e1 is the part in the tangent plane of the axis farthest from the normal."""
    found = np.asarray(_arrays.reals(normals, "normals", 3), np.float64)
    largest = np.abs(found).max(axis=1, initial=0)
    bad = np.flatnonzero(~((largest > 0) & np.isfinite(largest)))
    if len(bad):
        raise InvalidMeshError(f"vertex {bad[0]}: the normal {found[bad[0]].tolist()} is no direction")
    found = found / largest[:, None]
    n = found / np.linalg.norm(found, axis=1, keepdims=True)
    axis = np.eye(3)[np.abs(n).argmin(axis=1)]
    e1 = axis - np.einsum("ij,ij->i", axis, n)[:, None] * n
    e1 /= np.linalg.norm(e1, axis=1, keepdims=True)
    return np.stack([e1, np.cross(n, e1), n], axis=1)


def _read_report(library: ctypes.CDLL, report: ctypes.c_void_p) -> Report:
    raw = _capi.ReportSummary(struct_size=ctypes.sizeof(_capi.ReportSummary))
    _capi.check(library.eman_report_summarize(report, ctypes.byref(raw)))
    summary = {name: getattr(raw, name) for name, _ in _capi.ReportSummary._fields_[1:]}
    for judgement in ("closed", "manifold", "oriented"):
        summary[judgement] = bool(summary[judgement])
    findings = {}
    for finding in range(_capi.FINDING_COUNT):
        count, width = ctypes.c_int64(), ctypes.c_int32()
        _capi.check(library.eman_report_count(report, finding, ctypes.byref(count), ctypes.byref(width)))
        indices = np.empty((count.value, width.value), np.int64)
        target = _arrays.view(indices)
        _capi.check(library.eman_report_indices(report, finding, target))
        name = library.eman_finding_name(finding).decode()
        findings[name] = indices if width.value > 1 else indices[:, 0]
    return Report(summary, findings)
