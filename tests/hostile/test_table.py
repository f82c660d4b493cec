"""The table of hazards in the README names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# How a test of each kind of file begins.
DEFINITIONS = {".py": r"^\s*def {}\(", ".go": r"^func {}\(", ".c": r"^static .*\b{}\("}


def rows() -> list[list[str]]:
    """The cells of the section's table, without its head."""
    found = re.search(r"^## Hazards\n(.*?)(?=^## |\Z)", (ROOT / "README.md").read_text(), re.M | re.S)
    lines = [line for line in found.group(1).splitlines() if line.startswith("|")] if found else []
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def test_there_is_a_table() -> None:
    assert len(rows()) >= 20
    assert all(len(cells) == 3 and all(cells) for cells in rows())


@pytest.mark.parametrize("cells", rows(), ids=lambda cells: cells[0])
def test_each_row_names_a_test(cells: list[str]) -> None:
    named = re.findall(r"`([^`:]+)::([^`]+)`", cells[-1])
    assert named, f"no test: {cells[-1]}"
    for file, name in named:
        path = ROOT / file
        assert path.is_file(), file
        definition = DEFINITIONS[path.suffix].format(re.escape(name))
        assert re.search(definition, path.read_text(), re.M), f"{file} has no {name}"
