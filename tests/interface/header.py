"""What include/eman.h declares, read from its text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "include" / "eman.h"


@dataclass(frozen=True)
class Parameter:
    type: str  # such as "const eman_view *"
    name: str

    @property
    def is_pointer(self) -> bool:
        return self.type.endswith("*")


@dataclass(frozen=True)
class Function:
    result: str
    name: str
    parameters: tuple[Parameter, ...]
    comment: str  # the doc comment above it


def _parameter(text: str) -> Parameter:
    match = re.fullmatch(r"(.*?)(\w+)", text.strip())
    assert match, text
    return Parameter(match.group(1).strip(), match.group(2))


def functions() -> list[Function]:
    text = HEADER.read_text()
    pattern = re.compile(r"/\*\*((?:(?!\*/).)*)\*/\s*EMAN_API\s+(.*?)\b(eman_\w+)\(([^)]*)\)", re.S)
    found = []
    for comment, result, name, parameters in pattern.findall(text):
        parts = [] if parameters.strip() == "void" else re.sub(r"\s+", " ", parameters).split(",")
        found.append(Function(result.strip(), name, tuple(_parameter(p) for p in parts), comment))
    assert len(found) == len(re.findall(r"^EMAN_API ", text, re.M)), "a function has no doc comment"
    return found


def constants() -> dict[str, int]:
    pattern = re.compile(r"^#define (EMAN_\w+) \(?(-?\d+)\)?", re.M)
    return {name: int(value) for name, value in pattern.findall(HEADER.read_text())}
