"""Puts the shared library into wheels, and says in their names where it runs; and its sources into sdists."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: ELF's numbers of processors.
_MACHINES = {62: "x86_64", 183: "aarch64"}


def platform_tag(library: bytes) -> str:
    """The tag of PEP 600: the processor, and the newest glibc that a symbol of the library is of."""
    versions = {(int(major), int(minor)) for major, minor in re.findall(rb"GLIBC_(\d+)\.(\d+)", library)}
    major, minor = max(versions)
    return f"manylinux_{major}_{minor}_{_MACHINES[int.from_bytes(library[18:20], 'little')]}"


#: Where an sdist has the library's sources, and what of the repository it has there.
_SOURCES = "libeman"
_FILES = ("Makefile", "LICENSE", "go.mod", "go.sum", "include", "capi", "core", "geometry", "simd")
_TESTS = re.compile(r"_test\.go$|/testdata/|/avo/|/__pycache__/")  # and the generator of the assembly


def sources(repository: Path) -> list[Path]:
    """The files of a repository that `make` needs to build the library."""
    named = [repository / name for name in _FILES]
    found = [path for each in named for path in (each, *sorted(each.rglob("*"))) if path.is_file()]
    return [path for path in found if not _TESTS.search(path.relative_to(repository).as_posix())]


def build(repository: Path) -> Path:
    """Build the library from its sources.

    Raises
    ------
    RuntimeError
        If that does not succeed; the message says what is needed.
    """
    missing = [program for program in ("go", "make") if shutil.which(program) is None]
    if not missing:
        done = subprocess.run(["make", "-C", repository], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return repository / "build" / "libeman.so"
    reason = f"{' and '.join(missing)} not found" if missing else f"make failed:\n{done.stdout}{done.stderr}"
    raise RuntimeError(
        f"{reason}\nTo build eman from its sources, Go 1.26, a C compiler and make are needed. Its wheel "
        "(eman-VERSION-py3-none-PLATFORM.whl) has the library inside and needs none of them: take that one, or install "
        "Go from https://go.dev/dl."
    )


class LibraryHook(BuildHookInterface):
    """Of hatchling; an editable installation finds the library in the repository."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the library to the files of a wheel, or its sources to those of an sdist."""
        own = Path(self.root) / _SOURCES
        repository = own if own.is_dir() else Path(self.root).parents[1]
        if self.target_name == "sdist":
            for path in sources(repository):
                build_data["force_include"][str(path)] = f"{_SOURCES}/{path.relative_to(repository).as_posix()}"
            return
        if version == "editable":
            return
        library = build(own) if own.is_dir() else repository / "build" / "libeman.so"
        if not library.exists():
            raise FileNotFoundError(f"{library} is missing: `make` builds it, for which Go and a C compiler are needed")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(library.read_bytes())}"
        build_data["force_include"][str(library)] = "eman/libeman.so"
