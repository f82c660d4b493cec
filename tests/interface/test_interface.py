"""What holds for every function of the C interface."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from header import HEADER, ROOT, Function, Parameter, constants, functions

EVERY = functions()


def exported(library: Path) -> list[str]:
    listing = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return sorted(line.split()[2].split("@")[0] for line in listing.splitlines() if line.split()[1] != "A")


def test_exactly_the_public_names_leave_the_library(library: Path) -> None:
    listed = re.findall(r"^\s+(eman_\w+);", (ROOT / "capi" / "exports.map").read_text(), re.M)
    assert exported(library) == sorted(listed) == sorted(f.name for f in EVERY)


def test_dynamic_section(library: Path) -> None:
    section = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    abi = constants()["EMAN_ABI_VERSION"]
    assert f"Library soname: [libeman.so.{abi}]" in section
    assert "NODELETE" in section and "NOW" in section
    assert "TEXTREL" not in section


@pytest.mark.parametrize("function", EVERY, ids=lambda f: f.name)
def test_every_function_is_documented(function: Function) -> None:
    assert "@since" in function.comment
    short = "\n" not in function.comment.strip()
    for parameter in function.parameters:
        assert short or f"@param {parameter.name}" in function.comment, parameter.name
    assert function.result in {"eman_status", "void", "int32_t", "const char *"}
    codes = set(re.findall(r"\bEMAN_E_\w+", function.comment)) - {"EMAN_E_UNKNOWN"}  # the name of other numbers
    assert codes <= set(constants())


def _about(function: Function, parameter: Parameter) -> str:
    """What a comment says of a parameter: all of it, if it is one sentence."""
    entry = re.search(rf"@param {parameter.name}\b(.*?)(?=@param|@return|@since)", function.comment, re.S)
    return entry[1] if entry else function.comment


@pytest.mark.parametrize("function", EVERY, ids=lambda f: f.name)
def test_comments_say_shapes_and_who_owns(function: Function) -> None:
    for parameter in function.parameters:
        about, kind = _about(function, parameter), parameter.type.replace(" ", "")
        if "_view*" in kind:
            assert "×" in about, parameter.name
        if kind.endswith("**"):
            assert "receives" in about, parameter.name
            freed = "eman_" + kind.removeprefix("eman_").rstrip("*") + "_free"
            assert freed in {f.name for f in EVERY}, "nothing gives it back"


def test_what_holds_for_every_function_is_said_once() -> None:
    conventions = HEADER.read_text().split("#ifndef EMAN_H")[0]
    subjects = re.findall(r"^ \* ([A-Z]\w+|fork)\b  ", conventions, re.M)
    assert {"Status", "Handles", "Pointers", "Arrays", "Threads", "Callbacks", "Options", "fork"} <= set(subjects)


# One program for each question, run in a process of its own, as a wrong answer
# may be a crash or a call that never returns.
HOST = ROOT / "tests" / "interface" / "host.py"


def host(question: str, library: Path, *arguments: str) -> str:
    command = [sys.executable, "-X", "dev", str(HOST), question, str(library), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize("faulthandler", ["before", "after"])
def test_null_in_every_pointer(library: Path, faulthandler: str) -> None:
    output = host("null", library, faulthandler)
    pointers = sum(p.is_pointer for f in EVERY for p in f.parameters)
    assert f"{pointers} pointers" in output


def test_small_numbers_in_every_pointer(library: Path) -> None:
    host("small", library, "none")


def test_unmapped_addresses_in_every_pointer(library: Path) -> None:
    tried, followed = map(int, host("unmapped", library).split())
    assert followed > 0.8 * tried > 100, f"{followed} of {tried} pointers were followed"


def test_every_function_in_the_child_of_a_fork(library: Path) -> None:
    assert f"{len(EVERY)} functions" in host("fork", library)


def test_fork_before_load(library: Path) -> None:
    host("fork-before-load", library)


def test_trim_returns_memory(library: Path) -> None:
    host("trim", library)


def test_reopening(library: Path) -> None:
    host("reopen", library)


# Plain values without errors, as handy in C++ as they are.
AS_IN_C = {"eman_version", "eman_version_string", "eman_abi_version", "eman_finding_name"}


def test_every_function_has_a_form_in_cpp() -> None:
    used = set(re.findall(r"\beman_\w+\b", (ROOT / "include" / "eman.hpp").read_text()))
    assert {f.name for f in EVERY} - used == AS_IN_C
