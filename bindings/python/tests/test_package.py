"""The package as a whole: documented, typed, its examples true."""

from __future__ import annotations

import ast
import ctypes
import doctest
import functools
import gc
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import eman
from eman import _capi

#: What runs when it is imported.
SCRIPTS = ("eman._vtk", "eman.__main__")

MODULES = ["eman", *(m.name for m in pkgutil.walk_packages(eman.__path__, "eman.") if m.name not in SCRIPTS)]


class Recorder:
    """The library, and which of its functions were called."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self.called: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._library, name)

        def recorded(*arguments: Any) -> Any:
            self.called.add(name)
            return function(*arguments)

        return recorded if name in _capi.PROTOTYPES else function


class Examples(NamedTuple):
    """What the examples in docstrings came to, module by module, and the C functions that they called."""

    results: dict[str, doctest.TestResults]
    called: set[str]


@pytest.fixture(scope="module")
def examples() -> Examples:
    recorder = Recorder(_capi.library())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_capi, "_bound", recorder)
        results = {"eman.creatures": doctest.testmod(eman.creatures)}
        patch.setattr(eman.creatures, "creature", functools.lru_cache(maxsize=None)(eman.creatures.creature))
        results.update(
            {name: doctest.testmod(importlib.import_module(name)) for name in MODULES if name not in results}
        )
        gc.collect()  # frees what they made
    return Examples(results, recorder.called)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str, examples: Examples) -> None:
    assert examples.results[name].failed == 0


def public(module: ModuleType) -> list[tuple[str, object]]:
    return [(name, getattr(module, name)) for name in getattr(module, "__all__", ())]


def members(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Public classes, functions, methods and properties that a module defines, by their full names."""
    for name, item in public(module):
        if not callable(item) or item.__module__ != module.__name__:
            continue
        yield f"{module.__name__}.{name}", item
        for member_name, member in vars(item).items() if inspect.isclass(item) else ():
            function = getattr(member, "__func__", member)  # of a class method
            if not member_name.startswith("_") and (
                inspect.isfunction(function) or isinstance(member, (property, functools.cached_property))
            ):
                yield f"{module.__name__}.{name}.{member_name}", member


@pytest.mark.parametrize("name", MODULES)
def test_all_names_exist_and_are_documented(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    if name.split(".")[-1].startswith("_"):
        return
    names = [item for item, _ in public(module)]
    assert len(set(names)) == len(names)
    for item_name, item in members(module):
        assert inspect.getdoc(item), item_name


def identifiers(source: str) -> set[str]:
    """Every name, attribute and literal text in a program."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


def test_all_names_are_used_in_a_test_or_example() -> None:
    sources = [path.read_text() for path in Path(__file__).parent.glob("test_*.py")]
    finder = doctest.DocTestFinder()
    modules = [importlib.import_module(name) for name in MODULES]
    sources += [example.source for module in modules for test in finder.find(module) for example in test.examples]
    used = set().union(*map(identifiers, sources))
    named = [(f"{module.__name__}.{name}", name) for module in modules for name, _ in public(module)]
    named += [(name, name.rpartition(".")[2]) for module in modules for name, _ in members(module)]
    assert len(named) > 200, "the names were not found"
    assert {full for full, name in named if name not in used} == set()


#: What serves hosts in C: defaults of structs that Python fills itself, facts that `eman.build_info` has, and the loop
#: over steps, which is Python's own in `eman.Trainer.run`.
FOR_C = {
    "eman_context_options_init",
    "eman_control_init",
    "eman_mesh_options_init",
    "eman_reltan_options_init",
    "eman_status_name",
    "eman_trainer_run",
    "eman_version",
    "eman_version_string",
}


def test_examples_reach_every_c_function(examples: Examples) -> None:
    loading = {"eman_abi_version"}  # called when the library is opened
    assert set(_capi.PROTOTYPES) - examples.called - loading == FOR_C


def test_what_serves_c_is_called_by_the_tests() -> None:
    source = Path(__file__).with_name("test_capi.py").read_text()
    assert identifiers(source) >= FOR_C


def test_every_parameter_is_documented() -> None:
    """Functions with a Parameters section name all of their parameters there."""
    checked = 0
    for module_name in MODULES:
        for item_name, item in public(importlib.import_module(module_name)):
            members = vars(item).values() if inspect.isclass(item) else ()
            for function in (item, *members):
                function = getattr(function, "__func__", function)
                doc = inspect.getdoc(function) or ""
                if not (inspect.isfunction(function) or inspect.isclass(function)) or "Parameters\n---" not in doc:
                    continue
                section = re.split(r"\n\w[\w ]*\n-+\n", doc.split("Parameters\n", 1)[1].split("\n", 1)[1])[0]
                named = set(re.findall(r"[\w*]+", " ".join(re.findall(r"^[\w*, ]+", section, re.M))))
                for parameter in inspect.signature(function).parameters.values():
                    if parameter.name not in ("self", "cls", "options"):
                        stars = "**" * (parameter.kind is inspect.Parameter.VAR_KEYWORD)
                        assert stars + parameter.name in named, f"{item_name}: {parameter.name}"
                        checked += 1
    assert checked > 40


def test_fixed_names() -> None:
    """What programs outside this repository rely on."""
    parameters = inspect.signature(eman.Mesh).parameters
    assert list(parameters) == [
        "vertices", "faces", "gauge", "seed", "frames", "normals", "degenerate", "context"
    ]  # fmt: skip
    assert all(parameters[n].kind is inspect.Parameter.KEYWORD_ONLY for n in list(parameters)[2:])
    defaults = {n: p.default for n, p in parameters.items() if p.default is not inspect.Parameter.empty}
    assert defaults == {
        "faces": None, "gauge": "first_neighbor", "seed": 0, "frames": None, "normals": "area", "degenerate": "error",
        "context": None,
    }  # fmt: skip
    assert inspect.signature(eman.Mesh.reltan).parameters["powers"].default == (0.5, 0.7)
    parameters = inspect.signature(eman.Model).parameters
    assert list(parameters) == ["preset", "classes", "task", "seed", "context", "overrides"]
    assert all(parameters[n].kind is inspect.Parameter.KEYWORD_ONLY for n in ("classes", "task", "seed", "context"))
    assert {n: p.default for n, p in inspect.signature(eman.Model.from_authors).parameters.items() if n != "state"} == {
        "model": "RelTanEMAN", "task": "segmentation", "n_rings": 2, "max_order": 2, "n_heads": 1, "equiv_bias": True,
        "regular_non_lin": False, "rel_power_list": (0.5, 0.7), "deg_power": 1.5, "rel_power_const": 1.0,
        "null_isolated": False, "context": None,
    }  # fmt: skip
    for method, first in (
        ("load", ["path"]), ("save", ["path"]), ("parameters", []), ("set_parameters", ["parameters"]),
        ("logits", ["mesh"]), ("predict", ["mesh"]), ("top", ["mesh", "k"]), ("attention", ["mesh", "layer"]),
        ("features", ["mesh", "layer"]),
    ):  # fmt: skip
        names = [n for n in inspect.signature(getattr(eman.Model, method)).parameters if n != "self"]
        assert names[: len(first)] == first
    assert list(inspect.signature(eman.equivariance_gap).parameters) == ["model", "mesh", "transform", "seed"]
    assert list(inspect.signature(eman.accuracy).parameters) == ["model", "meshes", "targets", "transform", "seed"]
    parameters = inspect.signature(eman.fit).parameters
    assert list(parameters) == [
        "model", "meshes", "targets", "epochs", "lr", "seed", "validation", "progress", "checkpoint", "options"
    ]  # fmt: skip
    assert (parameters["lr"].default, parameters["seed"].default) == (0.01, 0)
    for name, first in (("faust", "root"), ("tosca", "root"), ("humans", "path")):
        assert next(iter(inspect.signature(getattr(eman.datasets, name)).parameters)) == first
    assert list(inspect.signature(eman.Context).parameters) == ["threads", "memory_limit", "instruction_set"]


def test_typed_and_versioned() -> None:
    folder = Path(eman.__file__).parent
    assert (folder / "py.typed").exists()
    assert re.fullmatch(r"\d+\.\d+\.\d+", eman.__version__)
    assert eman.__version__ == eman.build_info()["version"]


def test_star_import_gives_the_public_names() -> None:
    space: dict[str, object] = {}
    exec("from eman import *", space)
    assert set(eman.__all__) <= set(space)
    assert np.array_equal(space["Mesh"]([[0, 0, 0]], []).vertices, [[0, 0, 0]])  # type: ignore[operator]
