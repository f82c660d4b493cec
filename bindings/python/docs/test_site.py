"""The documentation as a whole: complete, true to the header, its figures drawn by its notebook."""

from __future__ import annotations

import importlib
import pkgutil
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

import eman
from eman import _command, cli

from .run import nbformat, run

HERE = Path(__file__).parent
HEADER = HERE.parents[2] / "include" / "eman.h"
FIGURES = ("reltan_powers.png", "reltan_get.png", "attention.png")


def public_names() -> set[str]:
    """Names of public modules and what they define, by where they are defined."""
    found = {f"eman.{name}" for name in eman.__all__ if name != "__version__"}
    for module in pkgutil.iter_modules(eman.__path__, "eman."):
        if not module.name.rpartition(".")[2].startswith("_"):
            loaded = importlib.import_module(module.name)
            found |= {f"{module.name}.{name}" for name in getattr(loaded, "__all__", ())}
    return found


def test_every_public_name_has_its_place(site: Path) -> None:
    packed = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    listed = {line.split()[0] for line in zlib.decompress(packed).decode().splitlines()}
    listed |= {f"eman.{name.rpartition('.')[2]}" for name in listed}
    names = public_names()
    assert len(names) > 90, "the names were not found"
    assert {name for name in names if name not in listed and f"eman.{name.rpartition('.')[2]}" not in listed} == set()


def test_every_command_and_option_is_in_the_reference(site: Path) -> None:
    page = re.sub(r"<[^>]+>", "", (site / "commands.html").read_text())
    commands = _command.subparsers(_command.parser("eman", cli.COMMANDS))
    assert len(commands) >= 12
    for name, parser in commands.items():
        assert f"eman {name}" in page
        for option in (option for action in parser._actions for option in action.option_strings if option != "-h"):
            assert option in page, f"{name} {option}"


@pytest.mark.parametrize("page", sorted(HERE.glob("*.md")), ids=lambda path: path.name)
def test_names_of_the_c_interface_are_the_headers(page: Path) -> None:
    header = set(re.findall(r"\bE?eman_\w+|\bEMAN_\w+", HEADER.read_text()))
    header |= {"EMAN_LIBRARY", "eman_demo_labels"}  # a variable of Python's, a file of the demo's
    named = set(re.findall(r"\beman_\w+|\bEMAN_\w+", page.read_text()))
    assert named - header == set()


def test_the_readme_is_true(capsys: pytest.CaptureFixture[str]) -> None:
    [example] = re.findall(r"```python\n(.*?)```", (HERE.parent / "README.md").read_text(), re.S)
    space: dict[str, Any] = {}
    exec(example, space)
    assert "nothing to mend" in capsys.readouterr().out
    assert space["labels"].shape == (space["mesh"].vertex_count,)
    listed = set(re.findall(r"^eman (\w+)", (HERE.parent / "README.md").read_text(), re.M))
    assert listed <= set(_command.subparsers(_command.parser("eman", cli.COMMANDS)))


def test_the_notebook_draws_the_figures(tmp_path: Path) -> None:
    notebook = HERE / "figures.ipynb"
    cells = nbformat.read(notebook, as_version=4).cells
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells), "outputs are not committed"
    run(notebook, tmp_path)
    for name in FIGURES:
        committed, drawn = HERE / name, tmp_path / name
        assert committed.stat().st_size < 150_000
        assert imread(drawn).shape[:2] == imread(committed).shape[:2]
        assert np.ptp(imread(drawn)[..., :3]) > 0.5, "something is to be seen"
