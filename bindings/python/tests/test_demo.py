"""``python -m eman.demo`` as a newcomer runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import eman
from eman import demo

PARENT = Path(eman.__file__).parent.parent


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "eman.demo", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(PARENT), "EMAN_LIBRARY": eman.build_info()["library"]},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.long
def test_on_a_creature(tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    image = pytest.importorskip("matplotlib.image")
    done = run("--seed", "4", "--vertices", "900", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "lizard number 4" in done.stdout
    assert "900 vertices, 1,796 faces, 5,388 directed edges, 1 component, Euler characteristic 2" in done.stdout
    assert done.stdout.count("as it should be") == 9
    right, most = map(
        float, re.findall(r"not seen: ([\d.]+) % right \(its largest part has ([\d.]+) %\)", done.stdout)[0]
    )
    assert right > most + 10
    assert done.stdout.count("    0 labels change") == 3
    assert image.imread(tmp_path / "eman_demo" / "eman_demo_labels.png").shape[1] > 1000
    assert "NOT TRAINED" in done.stdout
    assert "log-probabilities of 900 vertices" in done.stdout
    assert "memory: " in done.stdout
    assert "ns per directed edge" in done.stdout
    picture = image.imread(tmp_path / "eman_demo" / "eman_demo.png")[..., :3]
    assert picture.shape[1] == 1600
    colourful = np.ptp(picture, axis=-1) > 0.2
    assert colourful.mean() > 0.05
    written = trimesh.load_mesh(tmp_path / "eman_demo" / "eman_demo.ply", process=False)
    made = eman.creatures.creature(4, 900)
    assert (tmp_path / "eman_demo" / "eman_demo.ply").read_bytes().startswith(b"ply\nformat binary_little_endian")
    assert np.array_equal(written.faces, made.faces)
    assert len(np.unique(written.visual.vertex_colors, axis=0)) > 50
    magnitude = np.linalg.norm(eman.Mesh(made).reltan([0.7])[:, 0], axis=1)
    stored = written.metadata["_ply_raw"]["vertex"]["data"]["reltan_magnitude"]
    assert np.allclose(np.ravel(stored), magnitude, rtol=1e-6)


def test_on_a_file_with_every_kind_of_defect(tmp_path: Path) -> None:
    pytest.importorskip("trimesh")
    path = tmp_path / "broken.obj"
    path.write_text(
        "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0.5 0.5 1\nv 9 9 9\nv 2 0 0\n"
        "f 1 2 3 4\nf 1 2 5\nf 2 3 5\nf 3 4 5\nf 1 2 2\nf 1 2 7\n"
    )
    done = run("--no-training", "--mesh", str(path), "--output", str(tmp_path / "out"), "--up", "z", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 isolated vertex: 5" in done.stdout
    assert "1 dropped face" in done.stdout
    assert "non manifold edge" in done.stdout
    assert "without the 1 vertices whose faces define no normal" in done.stdout
    assert "without 6 vertices that see one whose faces define no normal" in done.stdout
    assert (tmp_path / "out" / "eman_demo.png").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file or directory"),
        ("There is no mesh in here.\n", "cannot be read as a mesh"),
        ("v 0 0 0\nv 1 0 0\n", "a.obj has no faces"),
    ],
)
def test_errors_are_one_line(content: str, message: str, tmp_path: Path) -> None:
    pytest.importorskip("trimesh")
    path = tmp_path / "a.obj"
    if content is not None:
        path.write_text(content)
    done = run("--mesh", str(path), cwd=tmp_path)
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stdout + done.stderr


def test_wrong_usage(tmp_path: Path) -> None:
    done = run("--species", "unicorn", cwd=tmp_path)
    assert done.returncode == 2
    assert "invalid choice" in done.stderr


def test_output_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("--vertices", "800", "--output", str(tmp_path / "file" / "below"), cwd=tmp_path)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


def test_without_extras_it_says_what_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("matplotlib", "trimesh", "pyvista"):
        monkeypatch.setitem(sys.modules, name, None)
    assert demo.main(["--no-training", "--vertices", "800", "--output", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert printed.count("not written") == 2
    assert "pip install eman[all]" in printed


def test_failed_equivariance_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The check can fail: with a wrong rotation it does."""
    monkeypatch.setattr(eman.transforms.Similarity, "vectors_back", lambda self, vectors: vectors)
    monkeypatch.setattr(demo, "_write", lambda writers: None)
    assert demo.main(["--no-training", "--vertices", "800", "--output", str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert printed.count("TOO LARGE") == 1
    assert printed.count("as it should be") == 5


def test_a_network_that_is_not_equivariant_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = eman.Model
    monkeypatch.setattr(eman, "Model", lambda preset, **options: made("authors", **options))
    monkeypatch.setattr(demo, "_write", lambda writers: None)
    assert demo.main(["--no-training", "--vertices", "800", "--output", str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert printed.count("TOO LARGE") == 2  # gauge and order; the similarity changes no frame relative to the mesh


def test_normals_undefined_all_over(tmp_path: Path) -> None:
    pytest.importorskip("trimesh")
    path = tmp_path / "sheet.obj"
    path.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\nf 3 2 1\n")
    done = run("--no-training", "--mesh", str(path), "--output", str(tmp_path / "out"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "nothing can be said about its equivariance" in done.stdout
