"""Hosts that watch every byte, throw threads away, or bring a Go runtime of their own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(command: list[Any], **environment: str) -> str:
    environment = {**os.environ, **environment}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def built(folder: Path, *options: str, package: str = "./capi", name: str = "libeman.so") -> Path:
    """A shared library of a Go package."""
    (folder / "libeman.so.1").symlink_to("libeman.so")
    soname = "-extldflags=-Wl,-soname,libeman.so.1" if name == "libeman.so" else ""
    command = ["go", "build", "-buildmode=c-shared", *options, f"-ldflags={soname}", "-o", folder / name, package]
    subprocess.run(command, cwd=ROOT, check=True)
    return folder / name


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("sanitized"), "-asan")


@pytest.mark.parametrize("source", ["features.c", "hostile.c", "models.c", "surfaces.c", "trainers.c"])
def test_address_sanitizer(compiled, sanitized: Path, source: str) -> None:
    """No byte beyond an array is touched, and nothing that C allocated is lost."""
    flags = ("-fsanitize=address", str(sanitized), f"-Wl,-rpath,{sanitized.parent}")
    program = compiled(source, *flags, link=False, compiler="gcc")
    # Faults that the programs cause on purpose are the library's to handle.
    output = run([program], ASAN_OPTIONS="handle_segv=0:allow_user_segv_handler=1:detect_leaks=1")
    assert output.endswith("0 failures\n") or source == "features.c"


def test_address_sanitizer_on_recorded_calls(compiled, sanitized: Path) -> None:
    """Sequences of calls that the fuzzer found worth keeping; here no byte beyond an input is read, either."""
    flags = ("-fsanitize=address", "-DREPLAY", str(sanitized), f"-Wl,-rpath,{sanitized.parent}")
    program = compiled("fuzz_interface.c", *flags, link=False, compiler="gcc")
    options = "handle_segv=0:allow_user_segv_handler=1:detect_leaks=1"
    assert run([program, ROOT / "tests" / "fuzz"], ASAN_OPTIONS=options).endswith(" inputs\n")


@pytest.mark.parametrize(
    ("mistake", "reported"),
    [
        ("return eman_mesh_create(context, &p, &f, NULL, NULL, &mesh) != EMAN_OK;", "heap-buffer-overflow"),
        ("for (int i = 0; i < 99; i++) if (eman_context_create(NULL, &context) != EMAN_OK) return 1;", "Direct leak"),
    ],
    ids=["short array", "lost handles"],
)
def test_the_sanitizer_sees(sanitized: Path, tmp_path: Path, mistake: str, reported: str) -> None:
    """What the tests above rely on: arrays that are too short are reported where they are read, and handles lost."""
    program = tmp_path / "mistake.c"
    program.write_text(f"""
#include <eman.h>
#include <stdlib.h>
int main(void) {{
  eman_context *context;
  eman_mesh *mesh = NULL;
  double *positions = calloc(8, sizeof *positions);
  static const int32_t faces[3] = {{0, 1, 2}};
  const eman_view p = {{positions, 3, 3, 0, 0, EMAN_FLOAT64, 0}}, f = {{faces, 1, 3, 0, 0, EMAN_INT32, 0}};
  if (eman_context_create(NULL, &context) != EMAN_OK) return 1;
  {mistake}
  free(positions);
  eman_mesh_free(mesh);
}}
""")
    command = ["gcc", "-fsanitize=address", f"-I{ROOT / 'include'}", program, sanitized, "-o", tmp_path / "mistake"]
    subprocess.run([*command, f"-Wl,-rpath,{sanitized.parent}"], check=True)
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1"}
    result = subprocess.run([tmp_path / "mistake"], env=environment, capture_output=True, text=True, timeout=60)
    assert result.returncode != 0 and reported in result.stderr


def test_valgrind(compiled, tmp_path: Path) -> None:
    """No branch on a value that was never set; Go tells valgrind of its heap and stacks with the tag valgrind."""
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    library = built(tmp_path, "-tags=valgrind")
    for source in ("features.c", "hostile.c"):
        program = compiled(source, str(library), f"-Wl,-rpath,{tmp_path}", link=False)
        suppressed = f"--suppressions={Path(__file__).parent / 'valgrind.supp'}"
        # A goroutine that is stopped anywhere at all has its registers stored below its stack.
        run(["valgrind", "-q", "--error-exitcode=9", suppressed, program], GODEBUG="asyncpreemptoff=1")


def test_short_lived_threads(compiled) -> None:
    numbers = run([compiled("threads.c", "-D_GNU_SOURCE")])
    early, late, threads_early, threads_late = map(int, re.findall(r"\d+", numbers))
    assert late < early + 4096, f"{early} kB resident, then {late}"
    assert threads_late <= threads_early + 4


def test_another_go_library(compiled, library: Path, tmp_path: Path) -> None:
    another = built(tmp_path, package="./tests/programs/another", name="libanother.so")
    program = compiled("two_runtimes.c", str(another), f"-Wl,-rpath,{tmp_path}")
    assert run([program]) == "0 wrong\n"
