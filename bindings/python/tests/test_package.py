"""The package as a whole: documented, typed, its examples true."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import eman

#: What runs when it is imported.
SCRIPTS = ("eman._vtk", "eman.__main__")

MODULES = ["eman", *(m.name for m in pkgutil.walk_packages(eman.__path__, "eman.") if m.name not in SCRIPTS)]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    found = [test for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples]
    assert len(found) >= 12


def public(module: ModuleType) -> list[tuple[str, object]]:
    return [(name, getattr(module, name)) for name in getattr(module, "__all__", ())]


@pytest.mark.parametrize("name", MODULES)
def test_all_names_exist_and_are_documented(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    if name.split(".")[-1].startswith("_"):
        return
    names = [item for item, _ in public(module)]
    assert len(set(names)) == len(names)
    for item_name, item in public(module):
        if inspect.isclass(item) or inspect.isfunction(item):
            assert inspect.getdoc(item), item_name
        if inspect.isclass(item):
            for member_name, member in vars(item).items():
                if not member_name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                    assert inspect.getdoc(member), f"{item_name}.{member_name}"


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


def test_every_exported_c_function_is_used() -> None:
    from eman import _capi

    sources = "".join(path.read_text() for path in Path(eman.__file__).parent.rglob("*.py") if path.name != "_capi.py")
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("*.py"))
    for name in _capi.PROTOTYPES:
        assert name in sources + tests + inspect.getsource(_capi.last_error), name


def test_star_import_gives_the_public_names() -> None:
    space: dict[str, object] = {}
    exec("from eman import *", space)
    assert set(eman.__all__) <= set(space)
    assert np.array_equal(space["Mesh"]([[0, 0, 0]], []).vertices, [[0, 0, 0]])  # type: ignore[operator]
