"""Data sets, read from small files in their formats."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eman
from eman import datasets
from eman.creatures import Creature

from .conftest import TETRAHEDRON

# ----------------------------------------------------------------------------------------------------------- humans


def bodies(path: Path, **changes: Any) -> Path:
    """Ten subjects in ten poses each, all of them tetrahedra."""
    number = np.arange(100)
    arrays: dict[str, Any] = {
        "vertices": (TETRAHEDRON[0] * (1 + number[:, None, None])).astype(np.float32),
        "faces": TETRAHEDRON[1],
        "subject": number // 10,
        "pose": number % 10,
        "part": np.array([0, 1, 1, 0]),
        "part_names": np.array(["head", "foot"]),
    }
    arrays.update(changes)
    np.savez(path, **{name: values for name, values in arrays.items() if values is not None})
    return path


def test_humans(tmp_path: Path) -> None:
    data = datasets.humans(bodies(tmp_path / "a.npz"))
    assert (len(data), len(data.train), len(data.test), data.classes, data.task) == (100, 80, 20, 4, "segmentation")
    assert [sample.name for sample in data.test][:2] == ["subject 8, pose 0", "subject 8, pose 1"]
    assert np.array_equal(data.test.meshes[3].vertices, TETRAHEDRON[0] * 84)
    assert np.array_equal(data[5].target, np.arange(4))
    assert data[5].defects == {}
    assert repr(data[2:9]) == "Dataset('humans', 7 meshes, 7 to train and 0 to test, 4 classes)"
    assert len(data.meshes[90:]) == 10


def test_parts_and_subjects_of_humans(tmp_path: Path) -> None:
    parts = datasets.humans(bodies(tmp_path / "a.npz"), "part")
    assert (parts.classes, parts.labels, parts[0].target.tolist()) == (2, ("head", "foot"), [0, 1, 1, 0])
    who = datasets.humans(tmp_path / "a.npz", "subject")
    assert (who.task, who.classes, len(who.train), who[37].target) == ("classification", 10, 80, 3)
    assert {sample.name[-1] for sample in who.test} == {"8", "9"}  # poses


def test_humans_without_subjects_are_for_the_test(tmp_path: Path) -> None:
    data = datasets.humans(bodies(tmp_path / "a.npz", subject=None, pose=None), "part")
    assert (len(data.train), len(data.test), data[0].name) == (0, 100, "body 0")


def test_the_humans_beside_the_repository(data_folder: Path) -> None:
    data = datasets.humans(data_folder / "humans.npz")
    assert (len(data.train), len(data.test), data.classes) == (80, 20, 6890)
    again = datasets.humans(data_folder / "humans_retriangulated.npz", "part")
    assert (len(again.train), len(again.test), again.classes) == (0, 20, 16)
    assert again.test[0].mesh.vertex_count == len(again.test[0].target) == 5200


@pytest.mark.parametrize(
    ("changes", "target", "message"),
    [
        ({"part": None}, "part", "has no array 'part'"),
        ({"pose": None}, "subject", "has no array 'pose'"),
        ({"vertices": np.zeros((4, 3))}, "vertex", r"vertices has shape \(4, 3\), not \(N, V, 3\)"),
        ({}, "colour", "target must be"),
    ],
)
def test_humans_refuses(changes: dict[str, Any], target: str, message: str, tmp_path: Path) -> None:
    path = bodies(tmp_path / "a.npz", **changes)
    with pytest.raises((eman.FileError, eman.InvalidArgumentError), match=message):
        datasets.humans(path, target)


def test_humans_of_no_file(tmp_path: Path) -> None:
    with pytest.raises(eman.FileError, match="No such file"):
        datasets.humans(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("no arrays")
    with pytest.raises(eman.FileError, match="does not hold bodies"):
        datasets.humans(tmp_path / "text.npz")


# ------------------------------------------------------------------------------------------------------------ FAUST


def ply(vertices: Any, faces: Any) -> str:
    header = f"ply\nformat ascii 1.0\nelement vertex {len(vertices)}\n"
    header += "".join(f"property float {axis}\n" for axis in "xyz")
    header += f"element face {len(faces)}\nproperty list uchar int vertex_indices\nend_header\n"
    rows = [" ".join(map(str, row)) for row in vertices] + ["3 " + " ".join(map(str, row)) for row in faces]
    return header + "\n".join(rows) + "\n"


@pytest.fixture
def registrations(tmp_path: Path) -> Path:
    """A folder as MPI-FAUST.zip unpacks to, with some of its registrations."""
    folder = tmp_path / "MPI-FAUST" / "training" / "registrations"
    folder.mkdir(parents=True)
    for number in (3, 79, 80, 99):
        (folder / f"tr_reg_{number:03}.ply").write_text(ply(TETRAHEDRON[0] * (1 + number), TETRAHEDRON[1]))
    (folder / "tr_reg_000.png").write_text("no mesh")
    return tmp_path


def archive(root: Path) -> Path:
    path = root / "MPI-FAUST.zip"
    with zipfile.ZipFile(path, "w") as opened:
        for file in sorted((root / "MPI-FAUST").rglob("*.*")):
            opened.write(file, file.relative_to(root))
    return path


@pytest.mark.parametrize("zipped", [False, True])
def test_faust(zipped: bool, registrations: Path) -> None:
    pytest.importorskip("trimesh")
    data = datasets.faust(archive(registrations) if zipped else registrations)
    assert [sample.name for sample in data.train] == ["tr_reg_003.ply", "tr_reg_079.ply"]
    assert [sample.name for sample in data.test] == ["tr_reg_080.ply", "tr_reg_099.ply"]
    assert (data.classes, data.task) == (4, "segmentation")
    assert np.array_equal(data.test[1].mesh.vertices, TETRAHEDRON[0] * 100)
    assert data.test[1].target.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("zipped", [False, True])
def test_faust_names_the_file_at_fault(zipped: bool, registrations: Path) -> None:
    pytest.importorskip("trimesh")
    folder = registrations / "MPI-FAUST" / "training" / "registrations"
    (folder / "tr_reg_079.ply").write_text("no mesh")
    (folder / "tr_reg_080.ply").write_text(ply(np.eye(3), [[0, 1, 2]]))
    data = datasets.faust(archive(registrations) if zipped else registrations)
    with pytest.raises(eman.FileError, match=r"tr_reg_079.ply.* cannot be read"):
        _ = data[1].mesh
    with pytest.raises(eman.FileError, match=r"tr_reg_080.ply .* has 3 vertices, tr_reg_003.ply has 4"):
        _ = data[2].target


def test_faust_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(eman.FileError, match="has no registrations"):
        datasets.faust(tmp_path)
    with pytest.raises(eman.FileError, match="No such file"):
        datasets.faust(tmp_path / "none.zip")
    (tmp_path / "text.zip").write_text("no archive")
    with pytest.raises(eman.FileError, match="neither a folder nor a zip file"):
        datasets.faust(tmp_path / "text.zip")


# ------------------------------------------------------------------------------------------------------------ TOSCA


def figure(folder: Path, name: str, vertices: Any, faces: Any) -> None:
    (folder / f"{name}.vert").write_text("".join(" ".join(map(str, row)) + "\n" for row in vertices))
    (folder / f"{name}.tri").write_text("".join(" ".join(str(i + 1) for i in row) + "\n" for row in faces))


#: How many figures there are of each class.
FIGURES = dict(zip(datasets.TOSCA_CLASSES, (11, 6, 7, 9, 4, 8, 20, 12, 3)))


def test_tosca(tmp_path: Path) -> None:
    for name, count in FIGURES.items():
        for number in range(count):
            figure(tmp_path, f"{name}{number}", *TETRAHEDRON)
    figure(tmp_path, "seahorse0", *TETRAHEDRON)
    data = datasets.tosca(tmp_path)
    assert (len(data), len(data.train), len(data.test), data.classes) == (80, 63, 17, 9)
    assert data.task == "classification"
    assert [data[i].name for i in (0, 2, 10, 11)] == ["cat0", "cat2", "cat10", "centaur0"]
    assert np.bincount(data.targets).tolist() == list(FIGURES.values())
    assert set(data.train.targets) == set(range(9))
    assert len(set(data.test.targets)) >= 8
    assert np.array_equal(data[5].mesh.vertices, TETRAHEDRON[0])
    assert np.array_equal(data[5].mesh.faces, TETRAHEDRON[1])


def test_tosca_in_off_files(tmp_path: Path) -> None:
    pytest.importorskip("trimesh")
    rows = [" ".join(map(str, row)) for row in TETRAHEDRON[0]] + ["3 " + " ".join(map(str, r)) for r in TETRAHEDRON[1]]
    (tmp_path / "wolf2.off").write_text("OFF\n4 4 0\n" + "\n".join(rows) + "\n")
    data = datasets.tosca(tmp_path)
    assert (data[0].name, data.labels[data[0].target]) == ("wolf2", "wolf")
    assert np.array_equal(data[0].mesh.faces, TETRAHEDRON[1])


def test_defects_of_tosca_are_handled_and_counted(tmp_path: Path, horse: Creature) -> None:
    """A hole, an isolated vertex, flipped faces here and in a component of its own, a face of two corners."""
    faces = horse.faces.astype(int)[:-1]
    flipped = np.array([0, 1, 2, 500, 900])
    faces[flipped] = faces[flipped][:, ::-1]
    few = TETRAHEDRON[1] + 800
    few[2] = few[2][::-1]
    vertices = np.concatenate([horse.vertices, TETRAHEDRON[0] + 9, [[7, 7, 7]]])
    figure(tmp_path, "horse0", vertices, np.concatenate([faces, few, [[5, 5, 6]]]))
    sample = datasets.tosca(tmp_path)[0]
    assert sample.defects == {"flipped_faces": 6, "isolated_vertices": 1, "boundary_edges": 3, "dropped_faces": 1}
    assert sample.mesh.report().oriented
    assert np.array_equal(np.sort(sample.mesh.faces[: len(faces)], axis=1), np.sort(horse.faces[:-1], axis=1))
    assert np.isfinite(eman.Model("default", classes=9, task="classification").logits(sample.mesh)).all()


def test_a_moebius_strip_stays_readable(tmp_path: Path) -> None:
    """What cannot be oriented keeps its inconsistent edges."""
    angle = np.arange(6) * np.pi / 3
    middle = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    side = 0.3 * np.stack(
        [np.cos(angle / 2) * middle[:, 0], np.cos(angle / 2) * middle[:, 1], np.sin(angle / 2)], axis=1
    )
    a, b = np.arange(6), np.arange(6) + 6
    c, d = np.append(a[1:], 6), np.append(b[1:], 0)
    figure(
        tmp_path,
        "cat0",
        np.concatenate([middle - side, middle + side]),
        np.concatenate([np.stack([a, b, c], 1), np.stack([c, b, d], 1)]),
    )
    assert datasets.tosca(tmp_path)[0].defects["inconsistent_edges"] >= 1


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("cat0.vert", "0 0 0\n\n1 x 0\n", r"cat0.vert, line 3: '1 x 0' is not three numbers"),
        ("cat0.vert", "0 0 0\n1 0\n", "cat0.vert, line 2: '1 0' is not three numbers"),
        ("cat0.tri", "1 2 3\n1 2 3.5\n", "cat0.tri, line 2"),
        ("cat0.tri", "1 2 3\n1 2 99999999999999999999\n", "cat0.tri, line 2"),
        ("cat0.tri", "1 2 3\n1 2 5\n", r"cat0.tri: triangle 2 names vertices \[1, 2, 5\], but cat0.vert has 4"),
        ("cat0.tri", "0 1 2\n", r"triangle 1 names vertices \[0, 1, 2\]"),
    ],
)
def test_tosca_names_file_and_line(file: str, text: str, message: str, tmp_path: Path) -> None:
    figure(tmp_path, "cat0", *TETRAHEDRON)
    (tmp_path / file).write_text(text)
    with pytest.raises(eman.FileError, match=message):
        _ = datasets.tosca(tmp_path)[0].mesh


def test_tosca_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "cat0.vert").write_text("0 0 0\n")  # without its triangles
    with pytest.raises(eman.FileError, match="has no figures of TOSCA"):
        datasets.tosca(tmp_path)


# -------------------------------------------------------------------------------------------------------- creatures


def test_creatures() -> None:
    data, again = datasets.creatures(6, 3, vertices=800), datasets.creatures(6, 3, vertices=800)
    assert (len(data.train), len(data.test), data.classes, data.labels) == (5, 1, 16, eman.creatures.PART_NAMES)
    assert np.array_equal(data[2].mesh.vertices, again[2].mesh.vertices)
    assert not np.array_equal(data[0].mesh.faces, datasets.creatures(6, 4, vertices=800)[0].mesh.faces)
    assert data[2].target.shape == (800,)
    assert [sample.name for sample in data][:2] == [f"{kind} {i}" for i, kind in enumerate(eman.creatures.SPECIES[:2])]


def test_species_of_creatures() -> None:
    data = datasets.creatures(4, species=["horse", "lizard"], target="species", vertices=800, test=2)
    assert (data.task, data.labels, list(data.targets)) == ("classification", ("horse", "lizard"), [0, 1, 0, 1])
    assert len(data.train) == len(data.test) == 2


def test_creatures_are_lazy(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    make = datasets._creature
    monkeypatch.setattr(datasets, "_creature", lambda *arguments: made.append(arguments[0]) or make(*arguments))
    data = datasets.creatures(1000, vertices=800)
    assert made == []
    meshes, targets = data.train.meshes, data.train.targets
    assert len(meshes[10].vertices) == len(targets[10])
    assert len(set(made)) == 1


@pytest.mark.parametrize(
    "options",
    [{"species": "unicorn"}, {"species": []}, {"target": "colour"}, {"n": 0}, {"seed": -1}, {"test": 9}],
)
def test_creatures_refuses(options: dict[str, Any]) -> None:
    with pytest.raises(eman.InvalidArgumentError, match="must be"):
        datasets.creatures(**{"n": 5, **options})
