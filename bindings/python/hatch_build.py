"""Puts the shared library into wheels, and says in their names where it runs; and its sources into sdists."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: ELF's, PE's and Mach-O's numbers of processors.
_ELF = {62: "x86_64", 183: "aarch64"}
_PE = {0x8664: "amd64", 0xAA64: "arm64"}
_MACH_O = {0x01000007: "x86_64", 0x0100000C: "arm64"}


def _number(content: bytes, offset: int, size: int = 4) -> int:
    return int.from_bytes(content[offset : offset + size], "little")


def platform_tag(library: bytes) -> str:
    """Where a shared library runs: the processor, and the oldest system, as its file says.

    On Linux that is PEP 600's tag of the newest glibc that a symbol is of; on macOS, the version it was linked for.
    """
    if library[:4] == b"\x7fELF":
        versions = {(int(major), int(minor)) for major, minor in re.findall(rb"GLIBC_(\d+)\.(\d+)", library)}
        major, minor = max(versions)
        return f"manylinux_{major}_{minor}_{_ELF[_number(library, 18, 2)]}"
    if library[:2] == b"MZ":
        return f"win_{_PE[_number(library, _number(library, 0x3C) + 4, 2)]}"
    if library[:4] == b"\xcf\xfa\xed\xfe":
        major, minor = _macos(library)
        return f"macosx_{major}_{minor}_{_MACH_O[_number(library, 4)]}"
    raise ValueError("the library is neither ELF, PE nor 64-bit Mach-O")


def _macos(library: bytes) -> tuple[int, int]:
    """The version in the load command LC_BUILD_VERSION."""
    command = 32
    for _ in range(_number(library, 16)):
        if _number(library, command) == 0x32:
            return library[command + 14], library[command + 13]
        command += _number(library, command + 4)
    raise ValueError("the library does not say for which macOS it is")


#: Where an sdist has the library's sources, and what of the repository it has there.
_SOURCES = "libeman"
_FILES = ("Makefile", "LICENSE", "go.mod", "go.sum", "include", "capi", "core", "geometry", "simd")
_TESTS = re.compile(r"_test\.go$|/testdata/|/avo/|/__pycache__/")  # and the generator of the assembly


def sources(repository: Path) -> list[Path]:
    """The files of a repository that `make` needs to build the library."""
    named = [repository / name for name in _FILES]
    found = [path for each in named for path in (each, *sorted(each.rglob("*"))) if path.is_file()]
    return [path for path in found if not _TESTS.search(path.relative_to(repository).as_posix())]


def built(repository: Path) -> Path:
    """Where `make` puts the library for the system that it runs on."""
    names = {"win32": "eman.dll", "darwin": "libeman.dylib"}
    return repository / "build" / names.get(sys.platform, "libeman.so")


def build(repository: Path) -> Path:
    """Build the library from its sources.

    Raises
    ------
    RuntimeError
        If that does not succeed; the message says what is needed.
    """
    missing = [program for program in ("go", "make") if shutil.which(program) is None]
    if not missing:
        own = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}  # not those of a make above
        done = subprocess.run(["make", "-C", repository], env=own, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return built(repository)
    reason = f"{' and '.join(missing)} not found" if missing else f"make failed:\n{done.stdout}{done.stderr}"
    raise RuntimeError(
        f"{reason}\nTo build eman from its sources, Go 1.26, a C compiler and make are needed. Its wheel "
        "(eman-VERSION-py3-none-PLATFORM.whl) has the library inside and needs none of them: take that one, or install "
        "Go from https://go.dev/dl."
    )


class LibraryHook(BuildHookInterface):
    """Of hatchling; an editable installation finds the library in the repository.

    EMAN_WHEEL_LIBRARY names the library of another platform.
    """

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
        given = os.environ.get("EMAN_WHEEL_LIBRARY")
        library = Path(given) if given else build(own) if own.is_dir() else built(repository)
        if not library.exists():
            raise FileNotFoundError(f"{library} is missing: `make` builds it, for which Go and a C compiler are needed")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(library.read_bytes())}"
        build_data["force_include"][str(library)] = f"eman/{library.name}"
