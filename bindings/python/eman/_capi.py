"""The C interface: every struct, constant and function of include/eman.h, and statuses as exceptions.

Nothing here opens the library; `library` does so at the first call.  A test parses the header and compares.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_char, c_char_p, c_double, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from typing import Any, Final, NoReturn, Optional

from eman import _loader, errors

OK: Final = 0
STATUS: Final[dict[int, type[errors.EmanError]]] = {
    -100: errors.InvalidArgumentError,
    -101: errors.InternalError,  # EMAN_E_BUFFER_TOO_SMALL: these bindings allocate the outputs
    -102: errors.LibraryError,  # EMAN_E_VERSION
    -103: errors.UnsupportedError,
    -200: errors.InvalidMeshError,
    -201: errors.InvalidModelError,
    -202: errors.DivergedError,
    -300: errors.OutOfMemoryError,
    -301: errors.FileError,
    -400: errors.CancelledError,
    -401: errors.ForkedError,
    -500: errors.InternalError,
}
E_BUFFER_TOO_SMALL: Final = -101
E_FORKED: Final = -401

FLOAT32: Final = 1
FLOAT64: Final = 2
INT32: Final = 3
UINT32: Final = 4
INT64: Final = 5

INSTRUCTION_SETS: Final = {"auto": 0, "generic": 1, "avx2": 2, "avx512": 3, "neon": 4}
LOG_LEVELS: Final = {1: "ERROR", 2: "WARNING", 3: "INFO"}
NORMALS: Final = {"area": 0, "angle": 1}
GAUGES: Final = {"first_neighbor": 0, "random": 1, "custom": 2}
DEGENERATE: Final = {"error": 0, "drop": 1}
SPACES: Final = {"tangent": 0, "ambient": 1}
FINDING_COUNT: Final = 12

LogFunction = ctypes.CFUNCTYPE(None, c_void_p, c_int32, c_char_p)
ProgressFunction = ctypes.CFUNCTYPE(c_int32, c_void_p, c_double)


class View(Structure):
    """eman_view and eman_mutable_view: a two-dimensional array that is read or written."""

    _fields_ = (
        ("data", c_void_p),
        ("rows", c_int64),
        ("columns", c_int64),
        ("row_stride", c_int64),
        ("column_stride", c_int64),
        ("dtype", c_int32),
        ("reserved", c_int32),
    )


class ContextOptions(Structure):
    """eman_context_options."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("threads", c_int32),
        ("memory_limit", c_int64),
        ("instruction_set", c_int32),
        ("reserved", c_int32),
        ("log", LogFunction),
        ("log_user", c_void_p),
    )


class ContextInfo(Structure):
    """eman_context_info."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("threads", c_int32),
        ("instruction_set", c_int32),
        ("reserved", c_int32),
        ("memory_used", c_int64),
        ("memory_peak", c_int64),
        ("memory_limit", c_int64),
    )


class Control(Structure):
    """eman_control."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("reserved", c_int32),
        ("cancel", POINTER(c_int32)),
        ("progress", ProgressFunction),
        ("user", c_void_p),
    )


class MeshOptions(Structure):
    """eman_mesh_options."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("normals", c_int32),
        ("gauge", c_int32),
        ("degenerate", c_int32),
        ("seed", c_uint64),
        ("frames", POINTER(View)),
    )


class RelTanOptions(Structure):
    """eman_reltan_options."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("space", c_int32),
        ("degree_power", c_double),
        ("constant", c_double),
    )


class ReportSummary(Structure):
    """eman_report_summary."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("closed", c_int32),
        ("manifold", c_int32),
        ("oriented", c_int32),
        ("vertex_count", c_int64),
        ("face_count", c_int64),
        ("edge_count", c_int64),
        ("component_count", c_int64),
        ("euler_characteristic", c_int64),
        ("min_degree", c_int64),
        ("max_degree", c_int64),
        ("area", c_double),
        ("min_length", c_double),
        ("mean_length", c_double),
        ("max_length", c_double),
    )


class Tensor(Structure):
    """eman_tensor: a named array of ours, packed in C order."""

    _fields_ = (
        ("name", c_char_p),
        ("data", c_void_p),
        ("shape", POINTER(c_int64)),
        ("rank", c_int32),
        ("dtype", c_int32),
    )


class ParameterInfo(Structure):
    """eman_parameter_info."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("rank", c_int32),
        ("shape", c_int64 * 4),
        ("size", c_int64),
        ("name", c_char * 128),
    )


class LayerInfo(Structure):
    """eman_layer_info."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("channels", c_int32),
        ("order", c_int32),
        ("heads", c_int32),
        ("name", c_char * 64),
    )


class Work(Structure):
    """eman_work."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("reserved", c_int32),
        ("flops", c_double),
        ("seconds", c_double),
    )


class Evaluation(Structure):
    """eman_evaluation."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("reserved", c_int32),
        ("labels", c_int64),
        ("correct", c_int64),
        ("loss", c_double),
    )


class StepInfo(Structure):
    """eman_step_info."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("epoch", c_int32),
        ("step", c_int64),
        ("steps", c_int64),
        ("loss", c_double),
        ("accuracy", c_double),
        ("gradient_norm", c_double),
        ("learning_rate", c_double),
        ("epoch_ended", c_int32),
        ("validated", c_int32),
        ("epoch_loss", c_double),
        ("epoch_accuracy", c_double),
        ("validation_loss", c_double),
        ("validation_accuracy", c_double),
    )


StepFunction = ctypes.CFUNCTYPE(c_int32, c_void_p, POINTER(StepInfo))

#: Handles are passed as addresses.
Handle = c_void_p
_HANDLE_OUT = POINTER(c_void_p)
#: Views are passed as bytes (`_arrays.view`), which are made in an eighth of a structure's time.
_VIEW = _OUT = c_void_p
_CONTROL = POINTER(Control)
_INT64_OUT = POINTER(c_int64)
_DOUBLES = c_void_p  # packed arrays of double, passed by address

#: Every function: what it returns and what it takes.
PROTOTYPES: Final[dict[str, tuple[Any, tuple[Any, ...]]]] = {
    "eman_status_name": (c_char_p, (c_int32,)),
    "eman_last_error": (c_char_p, ()),
    "eman_version": (c_int32, ()),
    "eman_version_string": (c_char_p, ()),
    "eman_abi_version": (c_int32, ()),
    "eman_build_info": (c_int32, (c_void_p, c_int64, _INT64_OUT)),
    "eman_trim": (c_int32, ()),
    "eman_context_options_init": (c_int32, (POINTER(ContextOptions), c_uint32)),
    "eman_context_create": (c_int32, (POINTER(ContextOptions), _HANDLE_OUT)),
    "eman_context_free": (None, (Handle,)),
    "eman_context_describe": (c_int32, (Handle, POINTER(ContextInfo))),
    "eman_control_init": (c_int32, (_CONTROL, c_uint32)),
    "eman_mesh_options_init": (c_int32, (POINTER(MeshOptions), c_uint32)),
    "eman_mesh_create": (c_int32, (Handle, _VIEW, _VIEW, POINTER(MeshOptions), _CONTROL, _HANDLE_OUT)),
    "eman_mesh_free": (None, (Handle,)),
    "eman_mesh_update": (c_int32, (Handle, _VIEW, _VIEW, _CONTROL)),
    "eman_mesh_counts": (c_int32, (Handle, _INT64_OUT, _INT64_OUT, _INT64_OUT)),
    "eman_mesh_positions": (c_int32, (Handle, _OUT)),
    "eman_mesh_faces": (c_int32, (Handle, _OUT)),
    "eman_mesh_vertex_normals": (c_int32, (Handle, _OUT)),
    "eman_mesh_frames": (c_int32, (Handle, _OUT)),
    "eman_mesh_neighbors": (c_int32, (Handle, _OUT, _OUT)),
    "eman_mesh_reverse_edges": (c_int32, (Handle, _OUT)),
    "eman_mesh_edge_angles": (c_int32, (Handle, _OUT)),
    "eman_mesh_transport_angles": (c_int32, (Handle, _OUT)),
    "eman_reltan_options_init": (c_int32, (POINTER(RelTanOptions), c_uint32)),
    "eman_mesh_reltan": (c_int32, (Handle, _DOUBLES, c_int32, POINTER(RelTanOptions), _CONTROL, _OUT)),
    "eman_mesh_get_features": (c_int32, (Handle, _OUT)),
    "eman_mesh_components": (c_int32, (Handle, _OUT, _INT64_OUT)),
    "eman_mesh_examine": (c_int32, (Handle, _CONTROL, _HANDLE_OUT)),
    "eman_report_free": (None, (Handle,)),
    "eman_report_summarize": (c_int32, (Handle, POINTER(ReportSummary))),
    "eman_report_count": (c_int32, (Handle, c_int32, _INT64_OUT, POINTER(c_int32))),
    "eman_report_indices": (c_int32, (Handle, c_int32, _OUT)),
    "eman_finding_name": (c_char_p, (c_int32,)),
    "eman_mesh_change_gauge": (c_int32, (Handle, _VIEW, _CONTROL, _HANDLE_OUT)),
    "eman_mesh_transform": (c_int32, (Handle, _DOUBLES, _DOUBLES, c_double, _CONTROL, _HANDLE_OUT)),
    "eman_mesh_permute": (c_int32, (Handle, _VIEW, _VIEW, _VIEW, _CONTROL, _HANDLE_OUT)),
    "eman_model_create": (c_int32, (Handle, c_char_p, c_uint64, _HANDLE_OUT)),
    "eman_model_load": (c_int32, (Handle, c_char_p, _HANDLE_OUT)),
    "eman_model_load_memory": (c_int32, (Handle, c_void_p, c_int64, _HANDLE_OUT)),
    "eman_model_from_authors": (c_int32, (Handle, c_char_p, POINTER(Tensor), c_int32, _HANDLE_OUT)),
    "eman_model_free": (None, (Handle,)),
    "eman_model_save": (c_int32, (Handle, c_char_p)),
    "eman_model_save_memory": (c_int32, (Handle, c_void_p, c_int64, _INT64_OUT)),
    "eman_model_spec": (c_int32, (Handle, c_void_p, c_int64, _INT64_OUT)),
    "eman_model_parameter_count": (c_int32, (Handle, POINTER(c_int32))),
    "eman_model_describe_parameter": (c_int32, (Handle, c_int32, POINTER(ParameterInfo))),
    "eman_model_get_parameter": (c_int32, (Handle, c_int32, _OUT)),
    "eman_model_set_parameters": (c_int32, (Handle, POINTER(Tensor), c_int32)),
    "eman_model_layer_count": (c_int32, (Handle, POINTER(c_int32))),
    "eman_model_describe_layer": (c_int32, (Handle, c_int32, POINTER(LayerInfo))),
    "eman_model_estimate": (c_int32, (Handle, c_int64, c_int64, _INT64_OUT)),
    "eman_model_estimate_work": (c_int32, (Handle, c_int64, c_int64, POINTER(Work))),
    "eman_model_predict": (c_int32, (Handle, Handle, _CONTROL, _OUT)),
    "eman_model_top": (c_int32, (Handle, Handle, c_int32, _CONTROL, _OUT, _OUT)),
    "eman_model_logits": (c_int32, (Handle, Handle, _CONTROL, _OUT)),
    "eman_model_attention": (c_int32, (Handle, Handle, c_int32, _CONTROL, _OUT)),
    "eman_model_features": (c_int32, (Handle, Handle, c_int32, _CONTROL, _OUT)),
    "eman_model_layer_size": (c_int32, (Handle, Handle, c_int32, _CONTROL, _INT64_OUT, _INT64_OUT)),
    "eman_model_layer_neighbors": (c_int32, (Handle, Handle, c_int32, _CONTROL, _OUT, _OUT)),
    "eman_model_samples": (c_int32, (Handle, Handle, _CONTROL, _OUT, _OUT)),
    "eman_model_evaluate": (c_int32, (Handle, Handle, _VIEW, _CONTROL, POINTER(Evaluation), _OUT)),
    "eman_trainer_create": (c_int32, (Handle, Handle, c_char_p, _HANDLE_OUT)),
    "eman_trainer_load": (c_int32, (Handle, c_char_p, _HANDLE_OUT)),
    "eman_trainer_free": (None, (Handle,)),
    "eman_trainer_add_mesh": (c_int32, (Handle, Handle, _VIEW, c_char_p, c_int32)),
    "eman_trainer_run": (c_int32, (Handle, _CONTROL, StepFunction, c_void_p)),
    "eman_trainer_step": (c_int32, (Handle, _CONTROL, POINTER(StepInfo))),
    "eman_trainer_estimate": (c_int32, (Handle, c_int64, c_int64, _INT64_OUT)),
    "eman_trainer_estimate_work": (c_int32, (Handle, c_int64, c_int64, POINTER(Work))),
    "eman_trainer_state": (c_int32, (Handle, c_void_p, c_int64, _INT64_OUT)),
    "eman_trainer_model": (c_int32, (Handle, c_int32, _HANDLE_OUT)),
    "eman_trainer_save": (c_int32, (Handle, c_char_p)),
    "eman_random_angles": (c_int32, (c_uint64, _OUT)),
    "eman_random_rotation": (c_int32, (c_uint64, _DOUBLES)),
    "eman_random_permutation": (c_int32, (c_uint64, _OUT)),
}

_bound: Optional[ctypes.CDLL] = None


def library() -> ctypes.CDLL:
    """The library with its prototypes set; opens it at the first call."""
    global _bound
    if _bound is None:
        opened = _loader.load()
        for name, (restype, argtypes) in PROTOTYPES.items():
            function = getattr(opened, name)
            function.restype, function.argtypes = restype, argtypes
        _bound = opened
    return _bound


def last_error() -> str:
    """The library's message about this thread's last call."""
    return str(library().eman_last_error().decode("utf-8", "replace"))


def fail(status: int, message: str) -> NoReturn:
    """Raise the exception of a status."""
    if status == E_FORKED:
        message = _loader.FORKED
    raise STATUS.get(status, errors.InternalError)(message or f"status {status}")


def check(status: int) -> None:
    """Raise the exception of a status other than OK, with this thread's message."""
    if status != OK:
        fail(status, last_error())


def text(function: Any, *arguments: Any) -> str:
    """The text that a function writes to its last parameters: room, its size, and where to say how much it needs.

    That may have grown until it is asked again, as the state of a training does that runs on another thread.
    """
    length, room = c_int64(), ctypes.create_string_buffer(1)
    while (status := function(*arguments, room, len(room), ctypes.byref(length))) == E_BUFFER_TOO_SMALL:
        room = ctypes.create_string_buffer(length.value + 1)
    check(status)
    return room.value.decode()
