"""C programs against the built library."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from header import ROOT, functions


def run(program: Path, *arguments: str) -> str:
    result = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize(
    ("language", "standard"), [("c", "c99"), ("c", "c11"), ("c++", "c++11"), ("c++", "c++17"), ("c++", "c++20")]
)
def test_header_is_clean(compiled, compiler: str, language: str, standard: str) -> None:
    flags = [f"-std={standard}", "-Wconversion", "-Wshadow", f"-x{language}"]
    flags += ["-Wstrict-prototypes"] if language == "c" else []
    compiled("layout.c", "-fsyntax-only", *flags, compiler=compiler, link=False)


def test_features_in_c(compiled) -> None:
    assert "difference after a similarity" in run(compiled("features.c", "-std=c99"))


@pytest.mark.parametrize("source", ["hostile.c", "models.c", "surfaces.c", "trainers.c"])
def test_hostile_input(compiled, source: str) -> None:
    assert run(compiled(source)).endswith("0 failures\n")


def test_nothing_is_read_beyond_an_input(compiled) -> None:
    """Each array, text and options of each function that reads them, at both ends of accessible memory."""
    read = re.compile(r"const (char|double|void|eman_view|eman_tensor|eman_\w+_options) \*")
    readers = {f.name for f in functions() if any(read.fullmatch(p.type) for p in f.parameters)}
    assert readers <= set(re.findall(r"\beman_\w+(?=\()", (ROOT / "tests" / "programs" / "fences.c").read_text()))
    assert run(compiled("fences.c")) == "252 arrays, 0 failures\n"


def test_recorded_calls(compiled) -> None:
    """Sequences of calls that the fuzzer found worth keeping (make fuzz); every function succeeds in one of them."""
    *succeeded, count = run(compiled("fuzz_interface.c", "-DREPLAY"), str(ROOT / "tests" / "fuzz")).splitlines()
    assert count.endswith(" inputs")
    statuses = {f.name for f in functions() if f.result == "eman_status"}
    assert statuses - set(succeeded) == {"eman_model_from_authors"}  # wants more tensors than an input can name


def test_faults_of_the_library_do_not_end_the_host(compiled, tmp_path: Path) -> None:
    faulty = tmp_path / "libeman_faulty.so"
    build = ["go", "build", "-buildmode=c-shared", "-tags", "emantest", "-o", str(faulty), "./capi"]
    subprocess.run(build, cwd=ROOT, check=True)
    program = compiled("faults.c", str(faulty), f"-Wl,-rpath,{tmp_path}", link=False)
    assert "150 faults survived" in run(program)


def test_float_environment_of_the_host(compiled) -> None:
    run(compiled("float_environment.c", "-frounding-math"))


def test_float_environment_at_load(compiled, library: Path) -> None:
    program = compiled("load_environment.c", "-frounding-math", "-ldl", link=False)
    bits = {mode: run(program, str(library), mode) for mode in ("nearest", "upward", "towardzero", "flush")}
    assert len(set(bits.values())) == 1 and bits["nearest"].count("\n") == 24


@pytest.mark.parametrize(("processor", "kernels"), [("qemu64", "generic"), ("Haswell", "avx2")])
def test_the_library_on_older_processors(compiled, processor: str, kernels: str) -> None:
    emulator = shutil.which("qemu-x86_64")
    if emulator is None or platform.machine() != "x86_64":
        pytest.skip("qemu-user is not installed, or this is no x86-64")
    program = compiled("models.c")
    command, environment = [emulator, "-cpu", processor, program], {**os.environ, "EMAN_TEST_ISA": kernels}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0 and result.stdout.endswith("0 failures\n"), result.stdout + result.stderr


def test_refused_memory_is_a_status(compiled) -> None:
    """Under `ulimit -v` the system refuses; the host must go on."""
    program = compiled("address_space.c")
    limited = f"ulimit -v 3000000; exec {program}"
    result = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "EMAN_E_NOMEM" in result.stdout
