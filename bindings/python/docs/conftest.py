"""Runs what the documentation shows, each page in a folder of its own: blocks of Python, of bash and of C.

Blocks of ``sh`` are for the reader: they install something, or belong to a machine of another kind.
"""

from __future__ import annotations

import doctest
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser

import eman

REPOSITORY = Path(__file__).resolve().parents[3]

# Most pages make the same creature, which takes a second or two.
eman.creatures.creature = functools.lru_cache(maxsize=None)(eman.creatures.creature)


def begin(namespace: dict[str, Any]) -> None:
    """A folder with what pages take for the reader's own: a mesh, and a folder of labelled ones."""
    namespace["_before"], namespace["_folder"] = os.getcwd(), tempfile.mkdtemp(prefix="eman-docs-")
    os.chdir(namespace["_folder"])
    made = eman.creatures.creature(seed=1, vertices=800)
    Path("meshes").mkdir()
    eman.plot.export_labels(made, made.labels, "meshes/creature_0.ply")
    Path("meshes/names.txt").write_text("\n".join(made.part_names))
    lines = [f"v {x} {y} {z}" for x, y, z in made.vertices] + [f"f {a} {b} {c}" for a, b, c in made.faces + 1]
    Path("body.obj").write_text("\n".join(lines))


def end(namespace: dict[str, Any]) -> None:
    os.chdir(namespace["_before"])
    shutil.rmtree(namespace["_folder"])


def run(*command: str) -> str:
    """The output of a program, which must succeed; programs of the environment come first."""
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command, env={**os.environ, "PATH": search}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


def shell(example: Example) -> None:
    run("bash", "-euo", "pipefail", "-c", example.parsed)


def program(example: Example) -> None:
    Path("program.c").write_text(example.parsed)
    folders = [f"-I{REPOSITORY / 'include'}", f"-L{REPOSITORY / 'build'}", f"-Wl,-rpath,{REPOSITORY / 'build'}"]
    run("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "program.c", *folders, "-leman", "-o", "program")
    assert run("./program") == "0.707107 0.707107\n"


pytest_collect_file = Sybil(
    parsers=[
        SkipParser(),
        PythonCodeBlockParser(doctest_optionflags=doctest.ELLIPSIS),
        CodeBlockParser("bash", shell),
        CodeBlockParser("c", program),
    ],
    pattern="*.md",
    setup=begin,
    teardown=end,
).pytest()


@pytest.fixture(scope="session")
def site() -> Path:
    """What `make docs` built."""
    folder = REPOSITORY / "build" / "docs"
    assert (folder / "index.html").exists(), "make docs has not been run"
    return folder
