"""A host process that asks the library one hard question; see test_interface.py.

usage: host.py QUESTION LIBRARY [ARGUMENT]
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
import time

from header import Function, Parameter, constants, functions

STATUS = constants()
TYPES = {
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "double": ctypes.c_double,
    "eman_status": ctypes.c_int32,
    "eman_finding": ctypes.c_int32,
    "eman_step_function": ctypes.c_void_p,
}
# Pointers that mean something when they are NULL.
NULLABLE = {
    ("eman_context_create", "options"),
    ("eman_mesh_create", "options"),
    ("eman_mesh_create", "control"),
    ("eman_mesh_update", "frames"),
    ("eman_mesh_reltan", "options"),
    ("eman_mesh_reltan", "control"),
    ("eman_mesh_examine", "control"),
    ("eman_mesh_update", "control"),
    ("eman_mesh_change_gauge", "control"),
    ("eman_mesh_transform", "control"),
    ("eman_mesh_permute", "control"),
    ("eman_mesh_permute", "face_order"),
    ("eman_mesh_permute", "corner_shift"),
    ("eman_model_predict", "control"),
    ("eman_model_top", "control"),
    ("eman_model_logits", "control"),
    ("eman_model_attention", "control"),
    ("eman_model_features", "control"),
    ("eman_model_layer_size", "control"),
    ("eman_model_layer_neighbors", "control"),
    ("eman_model_samples", "control"),
    ("eman_model_evaluate", "control"),
    ("eman_model_evaluate", "confusion"),
    ("eman_trainer_add_mesh", "name"),
    ("eman_trainer_run", "control"),
    ("eman_trainer_step", "control"),
}

# Pointers that are passed on to the host, whatever they are.
OPAQUE = {("eman_trainer_run", "user")}


class View(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("rows", ctypes.c_int64),
        ("columns", ctypes.c_int64),
        ("row_stride", ctypes.c_int64),
        ("column_stride", ctypes.c_int64),
        ("dtype", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class Library:
    """The functions of the header, and good arguments for each."""

    def __init__(self, path: str) -> None:
        library = ctypes.CDLL(path)
        self.functions = {f.name: f for f in functions()}
        for f in self.functions.values():
            entry = getattr(library, f.name)
            entry.argtypes = [ctypes.c_void_p if p.is_pointer else TYPES[p.type] for p in f.parameters]
            entry.restype = {"void": None, "const char *": ctypes.c_char_p}.get(f.result, ctypes.c_int32)
            setattr(self, f.name, entry)
        self.keep: list[object] = []

    def array(self, ctype: type, values: list[float], columns: int, dtype: str) -> int:
        data = (ctype * len(values))(*values)
        view = View(ctypes.addressof(data), len(values) // columns, columns, 0, 0, STATUS[dtype], 0)
        self.keep += [data, view]
        return ctypes.addressof(view)

    def room(self, size: int = 4096) -> int:
        buffer = ctypes.create_string_buffer(size)
        self.keep.append(buffer)
        return ctypes.addressof(buffer)

    def make(self, name: str, *arguments: object) -> int:
        handle = ctypes.c_void_p()
        status = getattr(self, name)(*arguments, ctypes.byref(handle))
        assert status == 0, (name, status, self.eman_last_error())
        return handle.value or 0

    def build(self) -> None:
        """A tetrahedron, and everything that a function may take."""
        self.positions = self.array(ctypes.c_double, [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1], 3, "EMAN_FLOAT64")
        self.faces = self.array(ctypes.c_int32, [0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2], 3, "EMAN_INT32")
        self.numbers = self.array(ctypes.c_int64, [0, 1, 2, 0], 1, "EMAN_INT64")
        self.angles = self.array(ctypes.c_double, [0, 1, 2, 3], 1, "EMAN_FLOAT64")
        self.context = self.make("eman_context_create", None)
        self.mesh = self.make("eman_mesh_create", self.context, self.positions, self.faces, None, None)
        self.report = self.make("eman_mesh_examine", self.mesh, None)
        self.model = self.make("eman_model_create", self.context, b'{"classes": 3, "hidden": 8}', 0)
        self.trainer = self.make("eman_trainer_create", self.context, self.model, b"{}")

    def good(self, function: Function, parameter: Parameter) -> object:
        kind, name = parameter.type.removeprefix("const ").removesuffix("*").strip(), parameter.name
        if not parameter.is_pointer:
            return {"struct_size": 16, "count": 1, "capacity": 4096, "scale": 1.0, "k": 1}.get(name, 0)
        if name in ("control", "options") and parameter.type.startswith("const"):
            return None
        if name in ("description", "config"):
            return ctypes.cast(ctypes.c_char_p(b"{}"), ctypes.c_void_p).value
        if kind in ("eman_context", "eman_mesh", "eman_report", "eman_model", "eman_trainer"):
            return getattr(self, kind.removeprefix("eman_"))
        if kind == "eman_view":
            return {"positions": self.positions, "faces": self.faces, "angles": self.angles}.get(name, self.numbers)
        if kind == "eman_mutable_view":
            view = View(self.room(), 64, 1, 0, 0, STATUS["EMAN_FLOAT64"], 0)
            self.keep.append(view)
            return ctypes.addressof(view)
        return self.room()

    def arguments(self, function: Function) -> list[object]:
        return [self.good(function, p) for p in function.parameters]


def bad_pointers(library: Library, value: int | None) -> int:
    """Every pointer of every function in turn is the value; returns how many."""
    tried = 0
    for function in library.functions.values():
        for i, parameter in enumerate(function.parameters):
            if not parameter.is_pointer:
                continue
            tried += 1
            if (function.name, parameter.name) in OPAQUE:
                continue
            arguments = library.arguments(function)
            arguments[i] = value
            if value is None and (function.name, parameter.name) in NULLABLE:
                continue
            status = getattr(library, function.name)(*arguments)
            if function.result == "void":
                continue
            message = library.eman_last_error().decode()
            assert status == STATUS["EMAN_E_INVALID_ARGUMENT"], (function.name, parameter.name, status, message)
            assert message.startswith(parameter.name + " is "), (function.name, parameter.name, message)
    counts = [ctypes.c_int64() for _ in range(3)]
    assert library.eman_mesh_counts(library.mesh, *map(ctypes.byref, counts)) == 0
    assert [c.value for c in counts] == [4, 4, 12]
    return tried


NOWHERE = 0x123456789000


def unmapped_pointers(library: Library) -> tuple[int, int]:
    """Every pointer of every function in turn is the address of nothing; returns how many, and how many were followed.

    Before some of them another argument is refused.
    """
    tried = followed = 0
    for function in library.functions.values():
        for i, parameter in enumerate(function.parameters):
            if not parameter.is_pointer or (function.name, parameter.name) in OPAQUE:
                continue
            arguments = library.arguments(function)
            arguments[i] = NOWHERE
            status = getattr(library, function.name)(*arguments)
            if function.result == "void":
                continue
            tried += 1
            message = library.eman_last_error().decode()
            assert status not in (STATUS["EMAN_OK"], STATUS["EMAN_E_INTERNAL"]), (
                function.name,
                parameter.name,
                message,
            )
            followed += message.startswith(f"memory at {NOWHERE >> 12:#x}")
    library.build()
    return tried, followed


def in_child(work: object) -> None:
    """Runs work in a forked child with five seconds of time."""
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        try:
            work()  # type: ignore[operator]
        except BaseException as error:  # whatever it is, the parent must hear of it
            print(repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the child ended with wait status {status}"


def calls_after_fork(library: Library) -> None:
    free_of_state = {"eman_last_error", "eman_status_name", "eman_finding_name", "eman_version"}
    free_of_state |= {"eman_version_string", "eman_abi_version"}
    for function in library.functions.values():
        result = getattr(library, function.name)(*library.arguments(function))
        if function.result == "eman_status":
            assert result == STATUS["EMAN_E_FORKED"], (function.name, result)
            assert b"fork" in library.eman_last_error(), function.name
        else:
            assert function.result == "void" or function.name in free_of_state, function.name


def resident() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def trim(library: Library) -> None:
    library.build()
    n = 500
    positions = [c for i in range(n) for j in range(n) for c in (float(i), float(j), float((i * j) % 3))]
    faces = [v for i in range(n - 1) for j in range(n - 1) for v in (i * n + j, i * n + n + j, i * n + j + 1)]
    p, f = (
        library.array(ctypes.c_double, positions, 3, "EMAN_FLOAT64"),
        library.array(ctypes.c_int32, faces, 3, "EMAN_INT32"),
    )
    before = resident()
    meshes = [library.make("eman_mesh_create", library.context, p, f, None, None) for _ in range(5)]
    held = resident()
    for mesh in meshes:
        library.eman_mesh_free(mesh)
    assert library.eman_trim() == 0
    after = resident()
    print(f"resident: {before >> 20} MB, {held >> 20} with five meshes, {after >> 20} after trim")
    assert held - before > 100 << 20, "the meshes were too small for the question"
    assert after - before < 20 << 20


def main(question: str, path: str, *arguments: str) -> None:
    if question == "null":
        if arguments[0] == "before":
            faulthandler.enable()
        library = Library(path)
        library.build()
        if arguments[0] == "after":
            faulthandler.enable()
        print(bad_pointers(library, None), "pointers")
    elif question == "small":
        library = Library(path)
        library.build()
        for value in (1, 8, 4095):
            bad_pointers(library, value)
    elif question == "unmapped":
        library = Library(path)
        library.build()
        print(*unmapped_pointers(library))
    elif question == "fork":
        library = Library(path)
        library.build()
        in_child(lambda: calls_after_fork(library))
        print(bad_pointers(library, None) and len(library.functions), "functions")
    elif question == "fork-before-load":

        def load() -> None:
            library = Library(path)
            library.build()

        in_child(load)
        load()
        in_child(lambda: None)
    elif question == "trim":
        trim(Library(path))
    elif question == "reopen":
        from _ctypes import dlclose

        for _ in range(3):
            library = ctypes.CDLL(path)
            dlclose(library._handle)
            time.sleep(0.05)
        library = Library(path)
        library.build()
    else:
        raise SystemExit(f"unknown question {question}")


if __name__ == "__main__":
    main(*sys.argv[1:])
