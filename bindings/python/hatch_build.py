"""Puts the shared library into wheels, and says in their names where it runs."""

from __future__ import annotations

import re
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


class LibraryHook(BuildHookInterface):
    """Of hatchling, for wheels; an editable installation finds the library in the repository."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the library to the files of a wheel."""
        if version == "editable":
            return
        library = Path(self.root).parents[1] / "build" / "libeman.so"
        if not library.exists():
            raise FileNotFoundError(f"{library} is missing: `make` builds it, for which Go and a C compiler are needed")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(library.read_bytes())}"
        build_data["force_include"][str(library)] = "eman/libeman.so"
