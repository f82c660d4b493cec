"""The ctypes declarations against include/eman.h, and against a C compiler's idea of it."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from ctypes import POINTER
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eman
from eman import _arrays, _capi, _loader, errors

from .conftest import REPOSITORY, TETRAHEDRON

HEADER = REPOSITORY / "include" / "eman.h"

STRUCTS = {
    "eman_view": _capi.View,
    "eman_mutable_view": _capi.View,
    "eman_context_options": _capi.ContextOptions,
    "eman_context_info": _capi.ContextInfo,
    "eman_control": _capi.Control,
    "eman_mesh_options": _capi.MeshOptions,
    "eman_reltan_options": _capi.RelTanOptions,
    "eman_report_summary": _capi.ReportSummary,
    "eman_tensor": _capi.Tensor,
    "eman_parameter_info": _capi.ParameterInfo,
    "eman_layer_info": _capi.LayerInfo,
    "eman_work": _capi.Work,
    "eman_evaluation": _capi.Evaluation,
    "eman_step_info": _capi.StepInfo,
}
HANDLES = {"eman_context", "eman_mesh", "eman_model", "eman_report", "eman_trainer"}
SCALARS = {
    "char": ctypes.c_char,
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "double": ctypes.c_double,
    "eman_status": ctypes.c_int32,
    "eman_dtype": ctypes.c_int32,
    "eman_instruction_set": ctypes.c_int32,
    "eman_finding": ctypes.c_int32,
    "eman_log_function": _capi.LogFunction,
    "eman_progress_function": _capi.ProgressFunction,
    "eman_step_function": _capi.StepFunction,
}


@pytest.fixture(scope="module")
def header() -> str:
    """The header without comments, preprocessor lines and C++ guards."""
    text = re.sub(r"/\*.*?\*/", " ", HEADER.read_text(), flags=re.S)
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M).replace('extern "C" {', "")
    return re.sub(r"\bEMAN_(API|CHECK_RESULT)\b", "", text)


def ctype(declaration: str, returned: bool = False) -> object:
    """The ctypes type of a C type such as ``const eman_view *``."""
    words = declaration.replace("*", " * ").replace("const", " ").replace("volatile", " ").split()
    name, stars = words[0], words.count("*")
    if stars == 0:
        return None if name == "void" else SCALARS[name]
    if name in HANDLES:
        return ctypes.c_void_p if stars == 1 else POINTER(ctypes.c_void_p)
    assert stars == 1, declaration
    if name in STRUCTS:
        return POINTER(STRUCTS[name])
    if name == "char":  # a text that is read, or room for one
        return ctypes.c_char_p if returned or "const" in declaration else ctypes.c_void_p
    if name in ("void", "double"):
        return ctypes.c_void_p
    return POINTER(SCALARS[name])


def without_name(parameter: str) -> str:
    return re.sub(r"\w+$", "", parameter.strip())


def test_every_function_is_declared_as_in_the_header(header: str) -> None:
    found = {}
    for result, name, parameters in re.findall(r"^\s*((?:const )?\w+[ *]+)(eman_\w+)\(([^)]*)\)\s*;", header, re.M):
        types = () if parameters.strip() == "void" else tuple(ctype(without_name(p)) for p in parameters.split(","))
        # Views are passed as bytes.
        types = tuple(ctypes.c_void_p if t is POINTER(_capi.View) else t for t in types)
        found[name] = (ctype(result, returned=True), types)
    assert len(found) > 30, "the header was not understood"
    assert set(found) == set(_capi.PROTOTYPES)
    for name, prototype in found.items():
        assert _capi.PROTOTYPES[name] == prototype, name


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint32, np.int64])
@pytest.mark.parametrize("step", [1, 2])
def test_a_view_in_bytes(dtype: type, step: int) -> None:
    array = np.zeros((8, 3), dtype)[::step]
    found = _capi.View.from_buffer_copy(_arrays.view(array))
    assert (found.data, found.rows, found.columns) == (array.__array_interface__["data"][0], *array.shape)
    assert (found.row_stride, found.column_stride) == array.strides
    assert (found.dtype, found.reserved) == (getattr(_capi, np.dtype(dtype).name.upper()), 0)


def test_every_exported_function_is_declared() -> None:
    exported = re.findall(r"^\s*(eman_\w+);", (REPOSITORY / "capi" / "exports.map").read_text(), re.M)
    assert sorted(exported) == sorted(_capi.PROTOTYPES)


def test_every_struct_has_the_fields_of_the_header(header: str) -> None:
    found = {
        name: [field.strip() for field in body.split(";") if field.strip()]
        for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", header, re.S)
    }
    assert set(found) == set(STRUCTS)
    for name, fields in found.items():
        declared = []
        for field in fields:
            kind, field_name, length = re.fullmatch(r"(.*?)(\w+)(?:\[(\d+)\])?", field).groups()  # type: ignore[union-attr]
            declared.append((field_name, ctype(kind) * int(length) if length else ctype(kind)))  # type: ignore[operator]
        assert list(STRUCTS[name]._fields_) == declared, name


def test_every_constant_has_the_value_of_the_header() -> None:
    values = {
        name: int(value) for name, value in re.findall(r"^#define EMAN_(\w+) \(?(-?\d+)\)?", HEADER.read_text(), re.M)
    }
    expected = {"OK": _capi.OK, "ABI_VERSION": _loader.ABI_VERSION, "FINDING_COUNT": _capi.FINDING_COUNT}
    expected.update({name: getattr(_capi, name) for name in ("FLOAT32", "FLOAT64", "INT32", "UINT32", "INT64")})
    for prefix, table in (
        ("ISA", _capi.INSTRUCTION_SETS),
        ("NORMALS", _capi.NORMALS),
        ("GAUGE", _capi.GAUGES),
        ("DEGENERATE", _capi.DEGENERATE),
        ("SPACE", _capi.SPACES),
    ):
        expected.update({f"{prefix}_{name.upper()}": value for name, value in table.items()})
        assert sum(name.startswith(f"{prefix}_") for name in values) == len(table)
    for name, value in expected.items():
        assert values[name] == value, name
    statuses = {name: value for name, value in values.items() if name.startswith("E_")}
    assert set(statuses.values()) == set(_capi.STATUS)
    for name, value in statuses.items():
        kind = _capi.STATUS[value]
        if name not in ("E_BUFFER_TOO_SMALL", "E_VERSION"):  # faults of these bindings, or of the installation
            assert kind.status == f"EMAN_{name}"
    logs = {value: name[4:] for name, value in values.items() if name.startswith("LOG_")}
    assert logs == _capi.LOG_LEVELS


def test_layout_is_the_compilers(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    lines = []
    for name, struct in STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        lines += [f'printf("{name}.{f[0]} %zu\\n", offsetof({name}, {f[0]}));' for f in struct._fields_]
    program = tmp_path / "layout.c"
    body = "\n".join(lines)
    program.write_text(f'#include <stddef.h>\n#include <stdio.h>\n#include "eman.h"\nint main(void) {{\n{body}\n}}\n')
    subprocess.run([compiler, "-I", str(HEADER.parent), str(program), "-o", str(tmp_path / "layout")], check=True)
    printed = subprocess.run([str(tmp_path / "layout")], check=True, capture_output=True, text=True).stdout
    for line in printed.splitlines():
        where, value = line.split()
        struct_name, _, field = where.partition(".")
        struct = STRUCTS[struct_name]
        assert int(value) == (getattr(struct, field).offset if field else ctypes.sizeof(struct)), where


def test_struct_defaults_are_the_librarys() -> None:
    library = _capi.library()
    for struct, init in (
        (_capi.ContextOptions, library.eman_context_options_init),
        (_capi.Control, library.eman_control_init),
        (_capi.MeshOptions, library.eman_mesh_options_init),
        (_capi.RelTanOptions, library.eman_reltan_options_init),
    ):
        filled = struct()
        _capi.check(init(ctypes.byref(filled), ctypes.sizeof(struct)))
        assert filled.struct_size == ctypes.sizeof(struct)
    assert (filled.space, filled.degree_power, filled.constant) == (0, 1.5, 1.0)


@pytest.mark.parametrize("status", sorted(_capi.STATUS))
def test_status_raises_its_class(status: int) -> None:
    name = _capi.library().eman_status_name(status).decode()
    assert name.startswith("EMAN_E_")
    says = "before this process was forked" if status == _capi.E_FORKED else "something"
    with pytest.raises(_capi.STATUS[status], match=says):
        _capi.fail(status, "something")


def test_unknown_status_is_an_internal_error() -> None:
    with pytest.raises(errors.InternalError, match="status -12345"):
        _capi.fail(-12345, "")


def test_a_text_that_grows_while_it_is_asked_for() -> None:
    texts = iter((b"a", b"longer", b"longer still", b"short"))

    def write(room: Any, size: int, length: Any) -> int:
        text = next(texts)
        length._obj.value = len(text)
        if size <= len(text):
            return _capi.E_BUFFER_TOO_SMALL
        room.value = text
        return _capi.OK

    assert _capi.text(write) == "short"


def test_versions_agree() -> None:
    library = _capi.library()
    text = library.eman_version_string().decode()
    major, minor, patch = map(int, text.split("."))
    assert library.eman_version() == 10000 * major + 100 * minor + patch
    assert f'EMAN_VERSION_STRING "{text}"' in HEADER.read_text()


def test_training_by_callback() -> None:
    """The loop over steps as a host in C has it, for which Python has a loop of its own."""
    trainer = eman.Trainer(eman.Model("default", classes=2), epochs=3)
    trainer.add(eman.Mesh(*TETRAHEDRON), [0, 0, 1, 1])
    seen = []

    def note(_user: object, info: Any) -> int:
        seen.append((info.contents.epoch, info.contents.steps))
        return int(len(seen) == 2)  # 1 ends it

    with trainer._handle as handle:
        status = _capi.library().eman_trainer_run(handle, None, _capi.StepFunction(note), None)
    assert _capi.STATUS[status] is errors.CancelledError
    assert seen == [(1, 3), (2, 3)]
    assert len(trainer.run()) == 3


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.InvalidArgumentError, ValueError),
        (errors.InvalidMeshError, ValueError),
        (errors.InvalidModelError, ValueError),
        (errors.DivergedError, ArithmeticError),
        (errors.OutOfMemoryError, MemoryError),
        (errors.FileError, OSError),
        (errors.ForkedError, RuntimeError),
        (errors.UnsupportedError, NotImplementedError),
        (errors.InternalError, RuntimeError),
        (errors.LibraryError, OSError),
        (errors.CancelledError, Exception),
    ],
)
def test_errors_are_what_python_programmers_catch(kind: type, builtin: type) -> None:
    assert issubclass(kind, errors.EmanError)
    assert issubclass(kind, builtin)
