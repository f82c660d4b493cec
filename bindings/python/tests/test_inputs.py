"""Every form in which a mesh may come, and that the usual ones are not copied."""

from __future__ import annotations

import array
import ctypes
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import eman
from eman import _arrays
from eman.creatures import Creature

from .conftest import TETRAHEDRON

V, F = TETRAHEDRON


def expected() -> np.ndarray:
    return eman.Mesh(V, F).reltan()


REALS = ["<f4", "<f8", ">f4", ">f8", "f2", "g", "i1", "u2", "i8"]
INTEGERS = ["<i4", "<u4", "<i8", ">i4", ">u4", ">i8", "i1", "u1", "i2", "u2", "<u8"]


@pytest.mark.parametrize("dtype", REALS)
def test_positions_of_every_type(dtype: str) -> None:
    assert np.array_equal(eman.Mesh(V.astype(dtype), F).reltan(), expected())


@pytest.mark.parametrize("dtype", INTEGERS)
def test_faces_of_every_type(dtype: str) -> None:
    mesh = eman.Mesh(V, F.astype(dtype))
    assert np.array_equal(mesh.faces, F)


def strided(source: np.ndarray) -> dict[str, np.ndarray]:
    """The same values in many layouts."""
    rows, columns = source.shape
    wide = np.full((2 * rows, 3 * columns), 77, source.dtype)
    wide[::2, ::3] = source
    reversed_ = np.ascontiguousarray(source[::-1, ::-1])
    record = np.zeros(rows, [("tag", "u1"), ("xyz", source.dtype, (columns,))])  # packed: rows are not aligned
    record["xyz"] = source
    frozen = source.copy()
    frozen.flags.writeable = False
    return {
        "C": np.ascontiguousarray(source),
        "Fortran": np.asfortranarray(source),
        "strided": wide[::2, ::3],
        "negative": reversed_[::-1, ::-1],
        "unaligned": record["xyz"],
        "read-only": frozen,
    }


@pytest.mark.parametrize("layout", ["C", "Fortran", "strided", "negative", "unaligned", "read-only"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_positions_of_every_layout_are_read_in_place(layout: str, dtype: str) -> None:
    points = strided(V.astype(dtype))[layout]
    assert np.shares_memory(_arrays.reals(points, "vertices", 3), points)
    assert np.array_equal(eman.Mesh(points, F).vertices, V)


@pytest.mark.parametrize("layout", ["C", "Fortran", "strided", "negative", "unaligned", "read-only"])
@pytest.mark.parametrize("dtype", ["i4", "u4", "i8"])
def test_faces_of_every_layout_are_read_in_place(layout: str, dtype: str) -> None:
    faces = strided(F.astype(dtype))[layout]
    assert np.shares_memory(_arrays.integers(faces, "faces", 3), faces)
    assert np.array_equal(eman.Mesh(V, faces).faces, F)


def test_zero_strides_are_copied() -> None:
    points = np.broadcast_to(np.array([1.0, 2.0, 3.0]), (4, 3))
    assert eman.Mesh(points, F).vertices.tolist() == [[1, 2, 3]] * 4
    column = np.broadcast_to(np.arange(4.0)[:, None], (4, 3))
    assert eman.Mesh(column, F).vertices[3].tolist() == [3, 3, 3]


def allocated(call: Any) -> int:
    """Bytes that Python and numpy allocate at most during a call."""
    call()
    tracemalloc.start()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    kept = call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    del kept
    return peak - before


def test_building_and_updating_allocate_no_arrays() -> None:
    made = eman.creatures.creature(0, 5000)
    for points in (made.vertices, made.vertices.astype(np.float32), np.asfortranarray(made.vertices)):
        for faces in (made.faces, made.faces.astype(np.int64)):
            assert allocated(lambda p=points, f=faces: eman.Mesh(p, f)) < 10_000
        mesh = eman.Mesh(points, made.faces)
        assert allocated(lambda m=mesh, p=points: m.update(p)) < 10_000
    assert allocated(lambda: eman.Mesh(made.vertices.astype(">f8"), made.faces)) > made.vertices.nbytes, (
        "it can be seen"
    )


def test_results_allocate_themselves_only() -> None:
    mesh = eman.Mesh(eman.creatures.creature(0, 5000))
    for call in (mesh.reltan, lambda: mesh.vertex_normals, lambda: mesh.edge_angles):
        assert allocated(call) < call().nbytes + 10_000


class TestProtocols:
    def test_lists_and_tuples(self) -> None:
        assert np.array_equal(eman.Mesh(V.tolist(), tuple(map(tuple, F.tolist()))).reltan(), expected())

    def test_buffers(self) -> None:
        points = memoryview(array.array("d", V.ravel())).cast("B").cast("d", V.shape)
        faces = (ctypes.c_int32 * 3 * 4)(*map(tuple, F.tolist()))
        assert np.shares_memory(_arrays.array(points, "vertices"), np.asarray(points))
        assert np.array_equal(eman.Mesh(points, faces).reltan(), expected())

    def test_array_interface(self) -> None:
        points = SimpleNamespace(__array_interface__=V.__array_interface__)
        assert np.array_equal(eman.Mesh(points, F).reltan(), expected())

    def test_array_method(self) -> None:
        class Wrapped:
            def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
                return V

        assert np.array_equal(eman.Mesh(Wrapped(), F).reltan(), expected())

    def test_array_method_that_refuses(self) -> None:
        class Refusing:
            def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
                raise RuntimeError("call detach() first")

        with pytest.raises(eman.InvalidArgumentError, match=r"faces cannot be read as an array: call detach\(\) first"):
            eman.Mesh(V, Refusing())

    def test_dlpack(self) -> None:
        class Tensor:
            def __init__(self, source: np.ndarray) -> None:
                self.source = source

            def __dlpack__(self, **options: Any) -> Any:
                return self.source.__dlpack__(**options)

            def __dlpack_device__(self) -> tuple[int, int]:
                return self.source.__dlpack_device__()

        tensor = Tensor(V.copy())
        assert np.shares_memory(_arrays.reals(tensor, "vertices", 3), tensor.source)
        assert np.array_equal(eman.Mesh(tensor, Tensor(F.copy())).reltan(), expected())

    def test_dlpack_on_a_device(self) -> None:
        class OnGpu:
            def __dlpack__(self) -> Any:
                raise AssertionError("must not be called")

            def __dlpack_device__(self) -> tuple[int, int]:
                return 2, 0

        with pytest.raises(eman.InvalidArgumentError, match="vertices lies on a device"):
            eman.Mesh(OnGpu(), F)


class TestPolygons:
    quads = np.array([[0, 1, 2, 3], [3, 2, 5, 4]])
    points = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 2, 0], [1, 2, 0]])

    def test_quads_become_fans(self) -> None:
        mesh = eman.Mesh(self.points, self.quads)
        assert mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3], [3, 2, 5], [3, 5, 4]]
        assert np.array_equal(mesh.vertices, self.points)

    def test_mixed_polygons(self) -> None:
        mesh = eman.Mesh(self.points, [[0, 1, 2], [0, 2, 3], [3, 2, 5, 4]])
        assert mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3], [3, 2, 5], [3, 5, 4]]
        assert eman.Mesh(self.points, [[0, 1, 2, 5, 4]]).faces.tolist() == [[0, 1, 2], [0, 2, 5], [0, 5, 4]]

    def test_polygon_with_two_corners(self) -> None:
        with pytest.raises(eman.InvalidArgumentError, match=r"faces\[1\] has 2 corners"):
            eman.Mesh(self.points, [[0, 1, 2], [0, 2]])


class TestMeshObjects:
    def test_anything_with_vertices_and_faces(self, horse: Creature) -> None:
        assert eman.Mesh(horse).vertex_count == 800
        assert np.array_equal(eman.Mesh(eman.Mesh(horse)).reltan(), eman.Mesh(horse).reltan())

    def test_open3d_style(self) -> None:
        """Open3D's vectors are buffers, which are read in place; a stand-in, as the package is half a gigabyte."""
        theirs = SimpleNamespace(vertices=memoryview(V), triangles=memoryview(F), vertex_normals=memoryview(V[:0]))
        points, faces = _arrays.mesh_arrays(theirs, None)
        assert np.shares_memory(points, V)
        assert np.shares_memory(faces, F)
        assert np.array_equal(eman.Mesh(theirs).reltan(), expected())
        cloud = eman.Mesh(memoryview(V), normals=memoryview(np.ones((4, 3))))
        assert (cloud.vertex_count, cloud.face_count) == (4, 0)

    def test_trimesh(self) -> None:
        trimesh = pytest.importorskip("trimesh")
        theirs = trimesh.Trimesh(V, F, process=False)
        assert np.shares_memory(_arrays.mesh_arrays(theirs, None)[0], np.asarray(theirs.vertices))
        assert np.array_equal(eman.Mesh(theirs).reltan(), expected())
        assert np.array_equal(eman.Mesh(theirs.vertices, theirs.faces).reltan(), expected())

    def test_meshio(self) -> None:
        meshio = pytest.importorskip("meshio")
        assert np.array_equal(eman.Mesh(meshio.Mesh(V, [("triangle", F)])).reltan(), expected())
        mixed = meshio.Mesh(
            TestPolygons.points,
            [("line", [[0, 1]]), ("quad", [[0, 1, 2, 3]]), ("triangle", [[3, 2, 5]]), ("vertex", [[0]])],
        )
        assert eman.Mesh(mixed).faces.tolist() == [[0, 1, 2], [0, 2, 3], [3, 2, 5]]
        assert eman.Mesh(meshio.Mesh(V, [])).face_count == 0
        with pytest.raises(eman.InvalidArgumentError, match="type 'tetra' are no faces"):
            eman.Mesh(meshio.Mesh(V, [("tetra", [[0, 1, 2, 3]])]))

    def test_pyvista(self) -> None:
        pyvista = pytest.importorskip("pyvista")
        assert np.array_equal(eman.Mesh(pyvista.PolyData.from_regular_faces(V, F)).reltan(), expected())
        mixed = pyvista.PolyData(TestPolygons.points, np.array([4, 0, 1, 2, 3, 3, 3, 2, 5]))
        assert eman.Mesh(mixed).faces.tolist() == [[0, 1, 2], [0, 2, 3], [3, 2, 5]]

    @pytest.mark.parametrize("flat", [[3, 0, 1], [2, 0, 1, 3, 0, 1, 2], [9, 0, 1, 2], [-1, 0, 1, 2, 3]])
    def test_padded_faces_that_do_not_fit(self, flat: list[int]) -> None:
        with pytest.raises(eman.InvalidArgumentError, match="does not fit the list"):
            eman.Mesh(SimpleNamespace(points=V, faces=np.array(flat)))

    @pytest.mark.parametrize("thing", [V, 5, None, "mesh.obj", SimpleNamespace(vertices=V)])
    def test_anything_else(self, thing: Any) -> None:
        with pytest.raises(eman.InvalidArgumentError, match="faces are missing"):
            eman.Mesh(thing)


class TestFiles:
    @pytest.fixture(autouse=True)
    def _readers(self) -> None:
        pytest.importorskip("trimesh")

    def test_vertex_order_is_kept(self, tmp_path: Path) -> None:
        path = tmp_path / "quads.obj"
        path.write_text(
            "v 9 9 9\nv 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvt 0 0\nvt 1 1\nf 2/1 3/2 4/1 5/2\nf 5/1 4/2 3/1\n"
        )
        mesh = eman.Mesh.from_file(path)
        assert mesh.vertices.tolist() == [[9, 9, 9], [0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
        assert sorted(mesh.faces[0].tolist()) == [1, 2, 3]
        assert mesh.face_count == 3

    @pytest.mark.parametrize("suffix", ["ply", "off", "obj"])
    def test_formats(self, suffix: str, tmp_path: Path, horse: Creature) -> None:
        import trimesh

        path = tmp_path / f"horse.{suffix}"
        trimesh.Trimesh(horse.vertices, horse.faces, process=False).export(path)
        mesh = eman.Mesh.from_file(path, gauge="random", seed=3)
        assert np.array_equal(mesh.faces, horse.faces)
        assert np.abs(mesh.vertices - horse.vertices).max() < 1e-6
        assert mesh.options["gauge"] == "random"

    def test_stl_is_welded(self, tmp_path: Path, horse: Creature) -> None:
        import trimesh

        path = tmp_path / "horse.stl"
        trimesh.Trimesh(horse.vertices, horse.faces, process=False).export(path)
        assert eman.Mesh.from_file(path).report().closed
        assert eman.Mesh.from_file(path, weld=False).vertex_count == 3 * len(horse.faces)

    def test_welding_keeps_the_order_of_appearance(self, tmp_path: Path) -> None:
        path = tmp_path / "a.obj"
        path.write_text("v 3 0 0\nv 0 0 0\nv 3 0 0\nv 0 1 0\nv 1 1 1\nf 1 2 4\nf 3 4 5\n")
        assert eman.Mesh.from_file(path).vertex_count == 5
        welded = eman.Mesh.from_file(path, weld=True)
        assert welded.vertices.tolist() == [[3, 0, 0], [0, 0, 0], [0, 1, 0], [1, 1, 1]]
        assert welded.faces.tolist() == [[0, 1, 2], [0, 2, 3]]

    def test_meshio_reads_what_trimesh_does_not(self, tmp_path: Path) -> None:
        meshio = pytest.importorskip("meshio")
        meshio.write(tmp_path / "t.vtk", meshio.Mesh(V, [("triangle", F)]))
        assert np.array_equal(eman.Mesh.from_file(tmp_path / "t.vtk").reltan(), expected())

    def test_shared_meshes(self, data_folder: Path) -> None:
        sizes = {"spot.obj": 11533, "koala.obj": 49999, "human_woman.obj": 6890, "boot.obj": 19931}
        for name, vertices in sizes.items():
            mesh = eman.Mesh.from_file(data_folder / "meshes" / name)
            assert mesh.vertex_count == vertices
            assert np.isfinite(mesh.reltan()).all()
        fox = eman.Mesh.from_file(data_folder / "meshes" / "fox.glb", weld=True)
        assert fox.report().closed
        knight = eman.Mesh.from_file(data_folder / "meshes" / "knight_nonmanifold.glb").report()
        assert not knight.manifold
        assert knight.component_count > 100

    def test_missing_file_and_folder(self, tmp_path: Path) -> None:
        with pytest.raises(eman.FileError, match="No such file") as caught:
            eman.Mesh.from_file(tmp_path / "no.obj")
        assert isinstance(caught.value, OSError)
        assert caught.value.filename == str(tmp_path / "no.obj")
        with pytest.raises(eman.FileError, match="directory"):
            eman.Mesh.from_file(tmp_path)

    @pytest.mark.parametrize("name", ["text.txt", "text.obj", "text.ply", "text.stl", "text.vtk", "empty.glb"])
    def test_files_that_are_no_mesh(self, name: str, tmp_path: Path) -> None:
        path = tmp_path / name
        path.write_text("" if name.startswith("empty") else "There is no mesh in here.\n")
        with pytest.raises(eman.EmanError):
            eman.Mesh.from_file(path)

    def test_without_readers(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "a.obj").write_text("v 0 0 0\n")
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(ImportError, match=r"pip install eman\[mesh\]"):
            eman.Mesh.from_file(tmp_path / "a.obj")
