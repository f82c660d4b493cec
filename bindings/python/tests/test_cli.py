"""The program ``eman`` on real files."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("trimesh", reason="trimesh is not installed")

import eman
from eman import cli, plot, shipped
from eman.commands import files
from eman.creatures import PART_NAMES, Creature, creature

from .conftest import TETRAHEDRON, write_obj

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def horse_file(horse: Creature, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_obj(tmp_path_factory.mktemp("meshes") / "horse.obj", horse.vertices, horse.faces)


def found(capsys: Capture, *arguments: Any, status: int = 0) -> dict[str, Any]:
    """What a subcommand says with --json."""
    assert cli.main([*map(str, arguments), "--json"]) == status
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def refused(capsys: Capture, *arguments: Any) -> str:
    """The one line of an error."""
    assert cli.main([*map(str, arguments)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("eman: ")
    return lines[0]


class TestProgram:
    @pytest.mark.parametrize("command", [command.name for command in cli.COMMANDS])
    def test_every_command_has_help_and_json(self, command: str, capsys: Capture) -> None:
        with pytest.raises(SystemExit) as stopped:
            cli.main([command, "--help"])
        assert stopped.value.code == 0
        printed = capsys.readouterr().out
        assert "--json" in printed
        assert "exit status:" in printed

    def test_as_a_program(self, horse_file: Path) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "eman", "check", str(horse_file)],
            env={**os.environ, "EMAN_LIBRARY": eman.build_info()["library"]},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"{horse_file}: good\n")

    def test_names_that_the_output_cannot_encode(
        self, horse_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = shutil.copy(horse_file, tmp_path / "käfer.obj")
        printed = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        monkeypatch.setattr(sys, "stdout", printed)
        assert cli.main(["check", str(path)]) == 0
        printed.seek(0)
        assert printed.readline().endswith("k\\xe4fer.obj: good\n")

    def test_debug_shows_where_an_error_comes_from(self, capsys: Capture) -> None:
        assert cli.main(["info", "none.obj", "--debug"]) == 1
        printed = capsys.readouterr().err
        assert "Traceback (most recent call last)" in printed
        assert printed.splitlines()[-1].startswith("eman: ")

    @pytest.mark.parametrize("content", ["", "There is no mesh in here.\n"])
    @pytest.mark.parametrize("command", ["check", "info", "features"])
    def test_files_that_are_no_mesh(self, command: str, content: str, tmp_path: Path, capsys: Capture) -> None:
        path = tmp_path / "a.obj"
        path.write_text(content)
        assert (
            str(path) in refused(capsys, command, path) or "face 0" in content or "vertex index" in content or content
        )

    def test_missing_and_folders(self, tmp_path: Path, capsys: Capture) -> None:
        assert "No such file" in refused(capsys, "info", tmp_path / "none.obj")
        assert "Is a directory" in refused(capsys, "features", tmp_path)
        (tmp_path / "empty.ply").touch()  # of which meshio also says something itself
        assert "cannot be read as a mesh" in refused(capsys, "info", tmp_path / "empty.ply")
        (tmp_path / "empty.ply").unlink()
        assert "has no mesh" in refused(capsys, "check", tmp_path)
        assert "is neither a model file nor one of those shipped" in refused(
            capsys, "predict", tmp_path / "a.obj", "--model", "cats"
        )

    def test_folder_without_permission(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
        def refuse(path: Path) -> None:  # root may read everything
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr(os, "scandir", refuse)
        assert "Permission denied" in refused(capsys, "check", tmp_path)

    def test_a_missing_package_is_named(
        self, horse: Creature, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
    ) -> None:
        path = plot.export_labels(horse, horse.labels, tmp_path / "a.ply")
        for name in ("trimesh", "matplotlib"):
            monkeypatch.setitem(sys.modules, name, None)
        arguments = ["features", str(path), "--output", str(tmp_path / "a.npy"), "--ply", str(tmp_path / "b.ply")]
        monkeypatch.setattr("eman._files._READERS", eman._files._READERS[1:])  # meshio
        assert cli.main(arguments) == 3
        assert capsys.readouterr().err.strip().endswith("pip install eman[all]")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class TestBars:
    def test_on_terminals_only(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("tqdm")
        with files.bar("meshes", 3) as move:
            assert move.progress is None
            move()
        monkeypatch.setattr(sys, "stderr", Terminal())
        with files.bar("meshes", 3) as move:
            move()
            move()
            assert (move.progress.n, move.progress.total) == (2, 3)
        monkeypatch.setitem(sys.modules, "tqdm", None)
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        with files.bar("meshes", 3) as move:
            assert move.progress is None

    def test_instead_of_lines(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
    ) -> None:
        pytest.importorskip("tqdm")
        monkeypatch.setattr(sys, "stderr", Terminal())
        assert cli.main(["train", str(folder), str(tmp_path / "m.safetensors"), "--epochs", "1"]) == 0
        assert "epoch 1: " not in capsys.readouterr().out
        assert "epoch 1, loss " in sys.stderr.getvalue()


class TestInfo:
    def test_installation(self, capsys: Capture) -> None:
        assert cli.main(["info"]) == 0
        assert f"eman {eman.__version__}" in capsys.readouterr().out
        facts = found(capsys, "info")
        assert facts["library"] == eman.build_info()
        assert facts["packages"]["trimesh"] is True
        assert facts["models"] == shipped.names()

    def test_mesh(self, horse_file: Path, horse: Creature, capsys: Capture) -> None:
        facts = found(capsys, "info", horse_file)
        assert (facts["vertices"], facts["faces"], facts["labels"]) == (800, 1596, None)
        assert np.allclose(facts["low"], horse.vertices.min(axis=0))

    def test_model(self, parts_model: Path, capsys: Capture) -> None:
        assert cli.main(["info", str(parts_model)]) == 0
        assert "head, neck, torso" in capsys.readouterr().out
        assert found(capsys, "info", parts_model)["spec"] == eman.Model.load(parts_model).spec


class TestCheck:
    def test_good_and_bad(self, horse_file: Path, tmp_path: Path, capsys: Capture) -> None:
        assert found(capsys, "check", horse_file)["good"] is True
        vertices, faces = TETRAHEDRON
        doubled = write_obj(tmp_path / "doubled.obj", vertices, [*faces, faces[0][::-1]])
        bad = found(capsys, "check", doubled, status=1)
        assert bad["good"] is False
        assert bad["meshes"][0]["faults"]["duplicate_faces"] == 1
        assert cli.main(["check", str(doubled)]) == 1
        assert "to be mended:" in capsys.readouterr().out

    def test_open_meshes_are_good_unless_strict(self, tmp_path: Path, capsys: Capture) -> None:
        quad = write_obj(tmp_path / "quad.obj", [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 1, 2, 3]])
        assert found(capsys, "check", quad)["meshes"][0]["report"]["face_count"] == 2
        strict = found(capsys, "check", quad, "--strict", status=1)
        assert strict["meshes"][0]["faults"] == {"boundary_edges": 4}
        assert found(capsys, "check", quad, "--strict", "--allow", "boundary_edges")["good"] is True

    def test_of_many_one_bad_file_is_a_row(self, horse_file: Path, tmp_path: Path, capsys: Capture) -> None:
        (tmp_path / "a.ply").write_text("no mesh")
        write_obj(tmp_path / "b.obj", *TETRAHEDRON)
        (tmp_path / "b.txt").write_text("no mesh either, and not looked at")
        rows = found(capsys, "check", tmp_path, horse_file, status=1)["meshes"]
        assert [(Path(row["mesh"]).name, row["good"]) for row in rows] == [
            ("a.ply", False),
            ("b.obj", True),
            ("horse.obj", True),
        ]
        assert "cannot be read as a mesh" in rows[0]["error"]

    def test_weld(self, tmp_path: Path, capsys: Capture) -> None:
        vertices, faces = TETRAHEDRON
        soup = write_obj(tmp_path / "soup.obj", vertices[faces].reshape(-1, 3), np.arange(12).reshape(4, 3))
        assert found(capsys, "check", soup, status=1)["meshes"][0]["faults"] == {"coincident_vertices": 8}
        assert found(capsys, "check", soup, "--weld")["good"] is True

    def test_the_meshes_beside_the_repository(self, data_folder: Path, capsys: Capture) -> None:
        rows = found(capsys, "check", data_folder / "meshes", status=1)["meshes"]
        assert {Path(row["mesh"]).stem for row in rows if row["good"]} == {"boot", "human_woman", "koala", "spot"}


class TestFeatures:
    def test_arrays_are_those_of_the_mesh(self, horse_file: Path, tmp_path: Path, capsys: Capture) -> None:
        mesh = eman.Mesh.from_file(horse_file)
        output = tmp_path / "a.npy"
        facts = found(capsys, "features", horse_file, "--output", output, "--powers", 0.5, 2, "--space", "ambient")
        assert facts["shape"] == [800, 2, 3]
        assert np.array_equal(np.load(output), mesh.reltan((0.5, 2), "ambient"))
        found(capsys, "features", horse_file, "--output", output, "--kind", "get", "--normals", "angle")
        assert np.array_equal(np.load(output), eman.Mesh.from_file(horse_file, normals="angle").get_features())

    def test_coloured_mesh_and_default_name(
        self, horse_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert cli.main(["features", str(horse_file), "--ply", "a.ply"]) == 0
        assert "horse.reltan.npy: reltan, float64 of shape (800, 2, 2)" in capsys.readouterr().out
        assert b"property float reltan_length\n" in (tmp_path / "a.ply").read_bytes()[:600]

    def test_names_of_files_say_their_kind(self, horse_file: Path, tmp_path: Path, capsys: Capture) -> None:
        assert "must end with .npy" in refused(capsys, "features", horse_file, "--output", tmp_path / "a.csv")
        assert "No such file" in refused(capsys, "features", horse_file, "--output", tmp_path / "none" / "a.npy")


class TestRender:
    @pytest.fixture(autouse=True)
    def _matplotlib(self) -> None:
        pytest.importorskip("matplotlib", reason="matplotlib is not installed")

    SMALL = ("--size", 320, 240, "--renderer", "matplotlib")

    def test_what_can_be_shown(self, horse: Creature, tmp_path: Path, capsys: Capture) -> None:
        mesh = plot.export_labels(horse, horse.labels, tmp_path / "horse.ply")
        np.savetxt(tmp_path / "x.txt", horse.vertices[:, 0])
        np.save(tmp_path / "labels.npy", horse.labels)
        attentive = tmp_path / "model.safetensors"
        eman.Model("default", classes=4).save(attentive)
        for number, (what, shown) in enumerate(
            [
                ([], "RelTan field, r = 0.7"),
                (["--power", 2], "RelTan field, r = 2"),
                (["--values", tmp_path / "x.txt"], f"values of {tmp_path / 'x.txt'}"),
                (["--labels", tmp_path / "labels.npy", "--names", *PART_NAMES], "16 labels"),
                (["--labels"], "16 labels"),
                (["--get"], "GET field"),
                (["--attention", 7, "--model", attentive], "attention of blocks.0.conv1 around vertex 7"),
                (
                    ["--attention", 7, "--model", attentive, "--layer", "blocks.1.conv2"],
                    "attention of blocks.1.conv2 around vertex 7",
                ),
            ]
        ):
            output = tmp_path / f"{number}.png"
            assert found(capsys, "render", mesh, output, *what, *self.SMALL, "--up", "z")["shown"] == shown
            assert output.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert (tmp_path / "3.png").read_bytes() != (tmp_path / "4.png").read_bytes(), "one has names"

    def test_refuses(self, horse_file: Path, tmp_path: Path, capsys: Capture) -> None:
        assert "no labels of its own" in refused(capsys, "render", horse_file, tmp_path / "a.png", "--labels")
        (tmp_path / "a.txt").write_text("1 2 x\n")
        assert "does not hold numbers" in refused(
            capsys, "render", horse_file, tmp_path / "a.png", "--values", tmp_path / "a.txt"
        )
        around = ("render", horse_file, tmp_path / "a.png", "--attention", 7)
        assert "needs --model" in refused(capsys, *around)
        assert "runs on samples" in refused(capsys, *around, "--model", "creature-parts")
        eman.Model("default", classes=4, kind="gem").save(tmp_path / "gem.safetensors")
        assert "has no attention" in refused(capsys, *around, "--model", tmp_path / "gem.safetensors")
        assert not (tmp_path / "a.png").exists()


class TestPredict:
    def test_files(self, horse_file: Path, parts_model: Path, horse: Creature, tmp_path: Path, capsys: Capture) -> None:
        outputs = [tmp_path / f"labels{suffix}" for suffix in (".npy", ".txt", ".ply")]
        arguments = [argument for output in outputs for argument in ("--output", output)]
        facts = found(
            capsys, "predict", horse_file, "--model", parts_model, *arguments, "--confidence", tmp_path / "c.npy"
        )
        model, mesh = eman.Model.load(parts_model), eman.Mesh.from_file(horse_file)
        labels, probabilities = model.top(mesh, 1)
        assert np.array_equal(np.load(outputs[0]), labels[:, 0])
        assert np.array_equal(np.loadtxt(outputs[1], dtype=int), labels[:, 0])
        assert np.array_equal(np.load(tmp_path / "c.npy"), probabilities[:, 0])
        assert sum(facts["counts"].values()) == facts["vertices"] == 800
        assert facts["counts"]["head"] == np.count_nonzero(labels == 0)
        assert facts["confidence"] == pytest.approx(probabilities.mean())
        assert found(capsys, "info", outputs[2])["labels"] == 800, "labels of a coloured mesh can be read again"
        assert (labels[:, 0] == horse.labels).mean() > 0.8, "it has learned this horse"

    def test_picture(self, horse_file: Path, parts_model: Path, tmp_path: Path) -> None:
        image = pytest.importorskip("matplotlib.image")
        output = tmp_path / "a.png"
        arguments = ["--output", str(output), "--size", "320", "240", "--renderer", "matplotlib", "--up", "z"]
        assert cli.main(["predict", str(horse_file), "--model", str(parts_model), *arguments]) == 0
        assert image.imread(output).shape[:2] == (240, 320)

    def test_says_how_much_of_each(self, horse_file: Path, parts_model: Path, capsys: Capture) -> None:
        assert cli.main(["predict", str(horse_file), "--model", str(parts_model)]) == 0
        printed = capsys.readouterr().out
        assert "800 vertices, mean probability" in printed
        assert "  torso" in printed

    def test_classification(self, horse_file: Path, tmp_path: Path, capsys: Capture) -> None:
        model = eman.Model("surface", labels=["horse", "other"], task="classification")
        model.save(tmp_path / "m.safetensors")
        facts = found(capsys, "predict", horse_file, "--model", tmp_path / "m.safetensors")
        assert facts["name"] == model.labels[model.predict(eman.Mesh.from_file(horse_file))]
        assert "as a whole" in refused(
            capsys, "predict", horse_file, "--model", tmp_path / "m.safetensors", "--output", tmp_path / "a.npy"
        )


class TestVerify:
    def test_equivariant(self, horse_file: Path, parts_model: Path, capsys: Capture) -> None:
        facts = found(capsys, "verify", horse_file, "--model", parts_model)
        assert facts["good"] is True
        assert set(facts["gaps"]) == {"gauge", "rigid", "similarity", "permutation"}
        assert max(facts["gaps"].values()) <= facts["bound"] == 1e-9

    def test_not_equivariant(self, horse_file: Path, tmp_path: Path, capsys: Capture) -> None:
        eman.Model("authors", classes=4).save(tmp_path / "m.safetensors")
        facts = found(capsys, "verify", horse_file, "--model", tmp_path / "m.safetensors", status=1)
        assert [name for name, gap in facts["gaps"].items() if gap > 1e-9] == ["gauge", "permutation"]
        assert cli.main(["verify", str(horse_file), "--model", str(tmp_path / "m.safetensors")]) == 1
        assert capsys.readouterr().out.count("TOO LARGE") == 2
        assert found(capsys, "verify", horse_file, "--model", tmp_path / "m.safetensors", "--bound", 10)["good"]


# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Horses with labels in every form, and one without."""
    root = tmp_path_factory.mktemp("folder")
    (root / "more").mkdir()
    made = [creature(number, 800, "horse") for number in range(5)]
    for number, name in enumerate(["a", "b", "more/c"]):
        write_obj(root / f"{name}.obj", made[number].vertices, made[number].faces)
    np.save(root / "a.npy", made[0].labels.astype(float))
    np.savetxt(root / "b.txt", made[1].labels, fmt="%d")
    (root / "more" / "c.seg").write_text("".join(f"{label}\n" for label in made[2].labels))
    plot.export_labels(made[3], made[3].labels, root / "d.ply", name="part")
    write_obj(root / "without.obj", *TETRAHEDRON)
    (root / "names.txt").write_text("".join(f"{name}\n" for name in PART_NAMES))
    return root


class TestTrain:
    def test_learns_from_every_form(self, folder: Path, tmp_path: Path, capsys: Capture) -> None:
        output = tmp_path / "m.safetensors"
        facts = found(capsys, "train", folder, output, "--epochs", 3, "--validation", folder)
        assert (facts["meshes"], facts["classes"], facts["labels"]) == (4, 16, list(PART_NAMES))
        assert [Path(path).name for path in facts["without_labels"]] == ["without.obj"]
        assert facts["history"][-1]["loss"] < facts["history"][0]["loss"]
        assert "validation_accuracy" in facts["history"][0]
        model = eman.Model.load(output)
        assert "surface" in model.spec
        facts = found(capsys, "evaluate", folder, "--model", output)
        assert [Path(row["mesh"]).name for row in facts["meshes"]] == ["a.obj", "b.obj", "d.ply", "c.obj"]
        horse = creature(0, 800, "horse")
        assert facts["meshes"][0]["accuracy"] == pytest.approx(eman.accuracy(model, eman.Mesh(horse), horse.labels))
        mean = np.mean([row["accuracy"] for row in facts["meshes"]])
        assert facts["accuracy"] == pytest.approx(mean), "all have as many vertices"
        assert set(facts["iou"]) == set(PART_NAMES)
        rounded = found(capsys, "evaluate", folder, "--model", output, "--transform", "permutation")
        assert rounded["accuracy"] == pytest.approx(facts["accuracy"], abs=2e-3)

    def test_goes_on_from_a_model(self, folder: Path, parts_model: Path, tmp_path: Path, capsys: Capture) -> None:
        facts = found(capsys, "train", folder, tmp_path / "m.safetensors", "--from", parts_model, "--epochs", 1)
        assert facts["history"][0]["accuracy"] > 0.4, "it knows horses already"

    def test_lines_for_epochs(self, folder: Path, tmp_path: Path, capsys: Capture) -> None:
        more = ["--epochs", "1", "--preset", "default", "--no-augment"]
        assert cli.main(["train", str(folder), str(tmp_path / "m.safetensors"), *more]) == 0
        printed = capsys.readouterr().out
        assert "1 meshes have no labels and are left out" in printed
        assert "epoch 1: loss " in printed
        assert "surface" not in eman.Model.load(tmp_path / "m.safetensors").spec

    def test_property_of_another_name(self, tmp_path: Path, capsys: Capture) -> None:
        horse = creature(0, 800, "horse")
        plot.export_labels(horse, horse.labels, tmp_path / "d.ply", name="mine")
        output = tmp_path / "m.safetensors"
        assert "no labels" in refused(capsys, "train", tmp_path, output)
        facts = found(capsys, "train", tmp_path, output, "--property", "mine", "--epochs", 1)
        assert (facts["classes"], facts["labels"]) == (16, [])

    def test_welding_keeps_labels_where_they_were(self, tmp_path: Path) -> None:
        vertices, faces = TETRAHEDRON
        write_obj(tmp_path / "soup.obj", vertices[faces].reshape(-1, 3), np.arange(12).reshape(4, 3))
        np.save(tmp_path / "soup.npy", faces.ravel())
        [one], without = files.labelled_in(tmp_path, weld=True)
        assert without == []
        assert np.array_equal(one.mesh.vertices, vertices[one.labels])
        assert one.mesh.vertex_count == 4

    @pytest.mark.parametrize(
        ("labels", "message"),
        [
            ("0\n1\n2\n", "has 4 vertices and 3 labels"),
            ("0 1 2 3 4\n", "has 4 vertices and 5 labels: those of faces"),
            ("0\n0\n0.5\n1\n", "0.5 is no label"),
            ("0\n0\n-2\n1\n", "-2.0 is no label"),
            ("0 1\n1 1\n", "must hold a number for each vertex"),
            ("x\n", "does not hold numbers"),
            ("-1\n-1\n-1\n-1\n", "is known: all are -1"),
            ("0\n1\n2\n3\n", "there is a label 3, but only 2 classes"),
        ],
    )
    def test_labels_that_do_not_fit(self, labels: str, message: str, tmp_path: Path, capsys: Capture) -> None:
        vertices, faces = TETRAHEDRON
        write_obj(tmp_path / "a.obj", vertices, [*faces, faces[0]])
        (tmp_path / "a.txt").write_text(labels)
        names = ["--names", "x", "y"] if "classes" in message else []
        assert message in refused(capsys, "train", tmp_path, tmp_path / "m.safetensors", *names)
        assert not (tmp_path / "m.safetensors").exists()
