"""What was released stays: programs built against it run with the library of today."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from platforms import NATIVE, PROGRAMS, ROOT, Platform, need

RELEASES = sorted((ROOT / "tests" / "abi").glob("*/"), key=lambda p: [int(n) for n in p.name.split(".")])
VERSION = r"EMAN_VERSION_STRING \"(.*)\""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of the C half, to be changed."""
    need("abidw", "abidiff")
    if subprocess.run(["uname", "-m"], capture_output=True, text=True).stdout.strip() != "x86_64":
        pytest.skip("the descriptions are those of x86-64")
    for folder, pattern in (("include", "eman.h"), ("capi", "shim.*"), ("capi", "exports.map")):
        (tmp_path / folder).mkdir(exist_ok=True)
        for file in (ROOT / folder).glob(pattern):
            shutil.copy(file, tmp_path / folder)
    return tmp_path


def difference(sources: Path, release: Path) -> subprocess.CompletedProcess[str]:
    """What abidiff says of the release beside the sources; its exit status is 0 where all that was released stays."""
    command = [ROOT / "tests/scripts/abi.sh", sources / "include", sources / "capi", sources / "now.xml"]
    subprocess.run(command, check=True)
    allowed = ROOT / "tests" / "abi" / "allowed.ini"
    command = ["abidiff", "--no-added-syms", "--suppressions", allowed, release / "libeman.xml", sources / "now.xml"]
    return subprocess.run(command, capture_output=True, text=True)


def edit(sources: Path, *changes: tuple[str, str, str]) -> None:
    """Replaces what each pattern finds, once, in a file."""
    for file, pattern, replacement in changes:
        text, found = re.subn(pattern, replacement, (sources / file).read_text(), count=1, flags=re.M)
        assert found == 1, (file, pattern)
        (sources / file).write_text(text)


@pytest.mark.parametrize("release", RELEASES, ids=lambda p: p.name)
def test_what_was_released_stays(sources: Path, release: Path) -> None:
    result = difference(sources, release)
    assert result.returncode == 0, result.stdout


def test_additions_pass(sources: Path) -> None:
    edit(
        sources,
        ("include/eman.h", r"^EMAN_API eman_status eman_trim", r"EMAN_API int32_t eman_added(void);\n\g<0>"),
        ("capi/shim.c", r"\Z", "int32_t eman_added(void) { return 1; }\n"),
        ("capi/exports.map", r"^    eman_trim;", r"\g<0> eman_added;"),
        ("include/eman.h", r"^\} eman_reltan_options;", r"  double added;\n\g<0>"),
        ("capi/shim.c", r"^PIN_SIZE\(eman_reltan_options.*\n", ""),
    )
    result = difference(sources, RELEASES[-1])
    assert result.returncode == 0, result.stdout
    assert "eman_added" in (sources / "now.xml").read_text()


# A function that is gone, a parameter of another type, a field in the middle of
# a struct, and one at the end of a struct that tells no size.
BREAKS = {
    "removed function": ([("capi/exports.map", r"^    eman_trim;\n", "")], "eman_status eman_trim()"),
    "changed parameter": (
        [
            ("include/eman.h", r"(eman_mesh_counts\([^)]*)int64_t \*edges", r"\1int32_t *edges"),
            ("capi/shim.c", r"(eman_mesh_counts\([^)]*)int64_t \*edges", r"\1int32_t *edges"),
        ],
        "eman_mesh_counts",
    ),
    "moved field": (
        [
            (
                "include/eman.h",
                r"^(typedef struct eman_reltan_options \{\n  uint32_t struct_size;)",
                r"\1 double added;",
            ),
            ("capi/shim.c", r"^PIN_SIZE\(eman_reltan_options(.*\n)*?PIN_SIZE", "PIN_SIZE"),
        ],
        "eman_reltan_options",
    ),
    "grown view": (
        [
            ("include/eman.h", r"^\} eman_view;", r"  int64_t added;\n\g<0>"),
            ("capi/shim.c", r"^PIN_SIZE\(eman_view.*\n", ""),
        ],
        "eman_view",
    ),
}


@pytest.mark.parametrize("change", BREAKS)
def test_a_break_is_found(sources: Path, change: str) -> None:
    changes, named = BREAKS[change]
    edit(sources, *changes)
    result = difference(sources, RELEASES[-1])
    assert result.returncode & 4 and named in result.stdout, result.stdout


@pytest.mark.parametrize("release", RELEASES, ids=lambda p: p.name)
@pytest.mark.parametrize("program", ["features.c", "layout.c"])
def test_a_program_of_a_release_runs(
    installed: Callable[[Platform], Path], tmp_path: Path, release: Path, program: str
) -> None:
    """Built with the header of then, it opens the library of today by its soname."""
    tree = installed(NATIVE)
    built = NATIVE.compile(PROGRAMS / program, tmp_path / "program", "-leman", tree=tree, headers=release)
    NATIVE.run(built, tree=tree)


def test_the_last_release_is_not_newer_than_the_library() -> None:
    """When it is the version of the header itself, that header has at least what was released."""
    last, now = ((p / "eman.h").read_text() for p in (RELEASES[-1], ROOT / "include"))
    assert re.search(VERSION, last)[1] == RELEASES[-1].name  # type: ignore[index]
    assert set(re.findall(r"\beman_\w+(?=\()", last)) <= set(re.findall(r"\beman_\w+(?=\()", now))


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_sizes_with_other_compilers(compiler: str, tmp_path: Path) -> None:
    need(compiler)
    include = f"-I{ROOT / 'include'}"
    subprocess.run([compiler, "-fsyntax-only", "-Werror", include, PROGRAMS / "layout.c"], check=True)


def test_sizes_on_each_platform(platform: Platform, tmp_path: Path) -> None:
    include = f"-I{ROOT / 'include'}"
    program = tmp_path / "layout.exe"
    subprocess.run([platform.cc, "-Werror", include, PROGRAMS / "layout.c", "-o", program], check=True)
    platform.run(program, tree=tmp_path)
