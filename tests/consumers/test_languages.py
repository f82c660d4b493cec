"""Programs in C, C++ and Rust against the installed library, with each compiler, and the headers' reference."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from interface.header import constants

import eman
from platforms import NATIVE, PROGRAMS, WINDOWS, Platform, make, need

Installed = Callable[[Platform], Path]
STRICT = ("-pedantic", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wshadow")
EIGEN = ("-isystem", "/usr/include/eigen3")
PYRAMID = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0.5 0.4 1\nf 4 3 2 1\nf 1 2 5\nf 2 3 5\nf 3 4 5\nf 4 1 5\n"
STATUS = constants()

# What each C++ program is given below a folder, and what it says.
CPP = {
    "features": ("pyramid.obj", "5 vertices, 6 faces, 1 component(s)"),
    "predict": ("model", "900 labels, 0 different after a similarity, stopped by an exception: true"),
    "train": ("", "the same bits after a resumption: true, stopped by an exception: true"),
    "surface": (None, "estimates and sizes fit: true"),
    "pool": (None, "196 meshes labelled, 4 refused, 0 different on one thread"),
    "eigen": (None, "the largest piece allocated"),
    "wrapper": (None, "0 failures"),
}


def compiled(compiler: str, source: str, tree: Path, output: Path, *flags: str) -> Path:
    command = [compiler, *STRICT, f"-I{tree / 'include'}", *flags, str(PROGRAMS / source), "-o", str(output)]
    subprocess.run([*command, "-pthread", f"-L{tree / 'lib'}", "-leman", "-lm"], check=True)
    return output


@pytest.mark.parametrize("standard", ["c++17", "c++20"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("name", CPP)
def test_cpp(installed: Installed, tmp_path: Path, name: str, compiler: str, standard: str) -> None:
    need(compiler)
    if name == "eigen" and not Path(EIGEN[1]).exists():
        pytest.skip("not installed: libeigen3-dev")
    (tmp_path / "pyramid.obj").write_text(PYRAMID)
    argument, expected = CPP[name]
    tree = installed(NATIVE)
    program = compiled(compiler, f"{name}.cpp", tree, tmp_path / name, f"-std={standard}", *EIGEN)
    arguments = [] if argument is None else [str(tmp_path / argument)]
    assert expected in NATIVE.run(program, *arguments, tree=tree)


def test_cpp_names_a_broken_face(installed: Installed, tmp_path: Path) -> None:
    tree = installed(NATIVE)
    program = compiled("g++", "features.cpp", tree, tmp_path / "features", "-std=c++17")
    (tmp_path / "broken.obj").write_text("v 0 0 0\nf 1 2 3\n")
    command, environment = [program, tmp_path / "broken.obj"], {"LD_LIBRARY_PATH": str(tree / "lib")}
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 1 and "face 0: vertex index 1 is out of range [0, 1)" in result.stderr


@pytest.mark.parametrize(
    ("source", "standards"), [("layout.c", ("c99", "c11", "c17")), ("wrapper.cpp", ("c++17", "c++20"))]
)
def test_headers_are_clean_for_windows(installed: Installed, source: str, standards: tuple[str, ...]) -> None:
    compiler = WINDOWS.cc if source.endswith(".c") else f"{WINDOWS.prefix}g++"
    need(compiler)
    for standard in standards:
        include = f"-I{installed(NATIVE) / 'include'}"
        command = [compiler, *STRICT, f"-std={standard}", include, "-fsyntax-only", str(PROGRAMS / source)]
        subprocess.run(command, check=True)


def test_reference() -> None:
    """Every function, parameter, struct and field is documented: doxygen's warnings are errors."""
    need("doxygen")
    make("reference")


# ------------------------------------------------------------------ a stream of meshes


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small network that gives the vertices of small meshes different labels."""
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    eman.Model("default", classes=40, width=8, hidden=16, seed=4).save(path)
    return path


Arrays = tuple[np.ndarray, np.ndarray]


def fan(corners: int, rng: np.random.Generator) -> Arrays:
    """A cone over a random polygon."""
    rim = np.arange(1, corners + 1)
    faces = np.column_stack([np.zeros(corners), rim, np.roll(rim, -1)])
    return rng.normal(size=(corners + 1, 3)).astype(np.float32), faces.astype(np.int32)


def icosahedron() -> Arrays:
    """The one of features.c and features.rs."""
    triples = re.findall(r"\{(-?[\w.]+), (-?[\w.]+), (-?[\w.]+)\}", (PROGRAMS / "features.c").read_text())
    phi = str((1 + 5**0.5) / 2)
    numbers = [[float(x.replace("phi", phi)) for x in triple] for triple in triples]
    return np.array(numbers[20:32], np.float64), np.array(numbers[:20], np.int32)


class Pipeline:
    """The running program: one mesh in, one answer out."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        assert process.stdin and process.stdout
        self._meshes: IO[bytes] = process.stdin
        self._answers: IO[bytes] = process.stdout

    def ask(self, positions: np.ndarray, faces: np.ndarray) -> tuple[int, np.ndarray | str]:
        sizes = struct.pack("=II", len(positions), len(faces))
        self._meshes.write(sizes + positions.astype(np.float32).tobytes() + faces.astype(np.int32).tobytes())
        self._meshes.flush()
        return self.answer()

    def answer(self) -> tuple[int, np.ndarray | str]:
        status, n = struct.unpack("=iI", self._answers.read(8))
        if status != STATUS["EMAN_OK"]:
            return status, self._answers.read(n).decode()
        return status, np.frombuffer(self._answers.read(4 * n), np.int32)

    def resident(self) -> int:
        """Bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(re.search(r"VmRSS:\s*(\d+) kB", status)[1])  # type: ignore[index]


@pytest.fixture(scope="module")
def pipeline(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("cc", "pipeline.c", installed(NATIVE), tmp_path_factory.mktemp("c") / "pipeline", "-std=c99")


@contextmanager
def started(program: Path, model: Path, tree: Path) -> Iterator[Pipeline]:
    environment = {"LD_LIBRARY_PATH": str(tree / "lib")}
    with subprocess.Popen(
        [program, model], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        yield Pipeline(process)


def test_pipeline_does_not_leak_over_ten_thousand_meshes(pipeline: Path, model: Path, installed: Installed) -> None:
    rng = np.random.default_rng(0)
    meshes = [fan(3 + i % 8, rng) for i in range(40)]
    reference = eman.Model.load(model)
    expected = [reference.predict(eman.Mesh(*mesh)) for mesh in meshes]
    assert len(set(np.concatenate(expected))) > 2, "labels that say nothing"
    outside, endless = meshes[0][1].copy(), meshes[1][0].copy()
    outside[2, 1], endless[3, 0] = 99, np.nan
    resident = {}
    with started(pipeline, model, installed(NATIVE)) as p:
        for i in range(10_000):
            if i in (1_000, 5_000):
                resident[i] = p.resident()
            if i % 20 == 7:
                status, why = p.ask(meshes[0][0], outside)
                assert status == STATUS["EMAN_E_INVALID_MESH"] and str(why).startswith("face 2: vertex index 99")
            elif i % 20 == 13:
                status, why = p.ask(endless, meshes[1][1])
                assert status == STATUS["EMAN_E_INVALID_MESH"] and "vertex 3" in str(why)
            else:
                status, labels = p.ask(*meshes[i % 40])
                assert status == STATUS["EMAN_OK"] and np.array_equal(labels, expected[i % 40])
        resident[10_000] = p.resident()
        assert p.process.stdin
        p.process.stdin.close()
        assert p.process.wait(30) == 0
    print(f"resident after {', '.join(f'{n} meshes: {r / 2**20:.1f} MB' for n, r in resident.items())}")
    assert resident[10_000] - resident[1_000] < 4 << 20  # 9,000 meshes: less than 500 bytes of each


def test_pipeline_goes_on_after_what_is_no_mesh(pipeline: Path, model: Path, installed: Installed) -> None:
    rng, none = np.random.default_rng(1), np.zeros((0, 3))
    with started(pipeline, model, installed(NATIVE)) as p:
        assert p.process.stdin
        p.process.stdin.write(struct.pack("=II", 0, (1 << 24) + 1))
        for _ in range(12):
            p.process.stdin.write(bytes(1 << 24))
        p.process.stdin.write(bytes(12))
        p.process.stdin.flush()
        assert p.answer() == (STATUS["EMAN_E_UNSUPPORTED"], "more than 16777216 vertices or faces")
        status, labels = p.ask(none, none)
        assert status == STATUS["EMAN_OK"] and len(labels) == 0
        status, labels = p.ask(*fan(9, rng))
        assert status == STATUS["EMAN_OK"] and len(labels) == 10
        p.process.stdin.write(struct.pack("=II", 3, 1) + bytes(20))
        p.process.stdin.close()
        assert p.process.wait(30) == 1 and p.process.stderr
        assert p.process.stderr.read() == b"pipeline: the stream ends within a mesh\n"


def test_pipeline_names_a_missing_model(pipeline: Path, installed: Installed, tmp_path: Path) -> None:
    with started(pipeline, tmp_path / "none", installed(NATIVE)) as p:
        assert p.process.wait(30) == 1 and p.process.stderr
        assert str(tmp_path / "none") in p.process.stderr.read().decode()


# ------------------------------------------------------------------ Rust


def test_rust(installed: Installed, tmp_path: Path, pipeline: Path, model: Path) -> None:
    """Rust, through the C interface alone, and C print the same."""
    need("rustc")
    tree = installed(NATIVE)
    program, source = tmp_path / "features", PROGRAMS / "features.rs"
    command = ["rustc", "--edition", "2021", "-D", "warnings", source, "-o", program, "-l", "eman"]
    subprocess.run([*command, "-L", f"native={tree / 'lib'}"], check=True)
    in_c = NATIVE.compile(PROGRAMS / "features.c", tmp_path / "features_c", "-leman", tree=tree)
    values, error, labels = NATIVE.run(program, str(model), tree=tree).splitlines()
    assert [values] == NATIVE.run(in_c, tree=tree).splitlines()
    assert error == "EMAN_E_INVALID_MESH: face 7: vertex index 12 is out of range [0, 12)"
    with started(pipeline, model, tree) as p:
        _, expected = p.ask(*icosahedron())
    assert labels == " ".join(map(str, expected)) and len(set(expected)) > 1
