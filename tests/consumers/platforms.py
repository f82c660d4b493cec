"""The platforms whose programs are compiled and run here: compilers, emulators, and where libraries lie."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "programs"


@dataclass(frozen=True)
class Platform:
    """How programs for one platform are compiled here, and run."""

    name: str  # as in make PLATFORM=
    prefix: str = ""  # of the compilers' names
    emulator: tuple[str, ...] = ()
    cmake: tuple[str, ...] = ()
    library: str = "lib/libeman.so.1"
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def cc(self) -> str:
        return f"{self.prefix}gcc" if self.prefix else "cc"

    def compile(self, source: Path, output: Path, *flags: str, tree: Path, headers: Path | None = None) -> Path:
        """A program against the library of an installed tree, and its headers unless others are given."""
        flags = (f"-I{headers or tree / 'include'}", f"-L{tree / 'lib'}", *flags, "-lm")
        command = [self.cc, "-O1", "-Wall", "-Wextra", "-Werror", source, "-o", output, *flags]
        subprocess.run(command, check=True)
        return output

    def run(self, program: Path, *arguments: str, tree: Path) -> str:
        """What a program prints that finds the library of the tree as a system's loader does."""
        paths = {
            "LD_LIBRARY_PATH": str(tree / "lib"),
            "WINEPATH": f"Z:{tree / 'bin'};Z:/usr/x86_64-w64-mingw32/lib",  # mingw's libwinpthread-1.dll
        }
        environment = {**os.environ, **paths, **self.environment}
        command = [*self.emulator, str(program), *arguments]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout


NATIVE = Platform("")
OLD_GLIBC = Platform("linux-amd64")
ARM64 = Platform(
    "linux-arm64",
    "aarch64-linux-gnu-",
    ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"),
    ("-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64"),
)
WINDOWS = Platform(
    "windows-amd64",
    "x86_64-w64-mingw32-",
    ("wine",),
    ("-DCMAKE_SYSTEM_NAME=Windows", "-DCMAKE_EXE_LINKER_FLAGS=-static"),
    library="bin/eman.dll",
    environment={"WINEDEBUG": "-all"},
)


def need(*programs: str) -> None:
    missing = [p for p in programs if shutil.which(p) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def make(*arguments: str) -> None:
    """Runs make as from a shell, without what the make that runs the tests has put into the environment."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    subprocess.run(["make", "-s", *arguments], cwd=ROOT, env=inherited, check=True)
