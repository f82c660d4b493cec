"""Checkpoints of the authors' published code as model files: ``eman convert state.pt model.safetensors``.

Their ``state_dict`` comes as torch saved it, or as ``.npz`` or ``.safetensors``.  torch is needed for its own files
only, and never runs code from them.
"""

from __future__ import annotations

import argparse
import importlib
import pickletools
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Optional

import numpy as np

from eman._command import Command
from eman.errors import FileError, InvalidModelError
from eman.model import Model

__all__ = ["read_state"]

_MODELS = ("RelTanEMAN", "EMAN", "RelTanGemCNN", "GemCNN", "SpiralNet")
_TASKS = ("segmentation", "classification")
# What a file with nothing but tensors in dicts names, by module.
_PLAIN = (
    "collections",
    "torch",
    "torch._utils",
    "torch._tensor",
    "torch.nn.parameter",
    "torch.serialization",
    "_codecs",
)
_LARGEST_PICKLE = 1 << 28


def read_state(path: Any, key: Optional[str] = None) -> Mapping[str, Any]:
    """The ``state_dict`` in a file.

    Parameters
    ----------
    path : path
        ``.npz``, ``.safetensors``, or anything else as a file of ``torch.save``.
    key : str, optional
        Where in a checkpoint that holds other things as well.

    Returns
    -------
    mapping of str to array
        What `eman.Model.from_authors` takes.

    Raises
    ------
    FileError
        If the file is missing, or is none of these.
    InvalidModelError
        If it holds something else: a pickled whole model for instance, which cannot be read without running code from
        the file.
    ImportError
        If the package that reads it is missing.
    """
    source = Path(path)
    try:
        with source.open("rb"):
            pass
    except OSError as error:
        raise FileError(error.errno, error.strerror, str(source)) from error
    readers: dict[str, Callable[[Path], Any]] = {".npz": _read_npz, ".safetensors": _read_safetensors}
    return _state(readers.get(source.suffix.lower(), _read_torch)(source), source, key)


def _read_npz(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, KeyError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise FileError(f"{path} cannot be read as npz: {error}") from error


def _read_safetensors(path: Path) -> dict[str, Any]:
    try:
        safetensors: Any = importlib.import_module("safetensors")
    except ImportError as error:
        raise ImportError(f"reading {path} needs safetensors: pip install eman[convert]") from error
    try:
        with safetensors.safe_open(str(path), framework="numpy") as file:
            if (file.metadata() or {}).get("format") == "eman":
                raise InvalidModelError(f"{path} is a model file of eman already")
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, it is no dict
    except (OSError, safetensors.SafetensorError, TypeError) as error:
        raise FileError(f"{path} cannot be read as safetensors: {error}") from error


def _read_torch(path: Path) -> Any:
    foreign = _foreign_class(path)
    if foreign is not None:
        raise _refused(path, foreign)
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError as error:
        raise ImportError(
            f"reading {path} needs torch, which is not installed; or write the arrays of the state_dict with"
            " numpy.savez and convert the .npz"
        ) from error
    try:
        return torch.load(str(path), map_location="cpu", weights_only=True)
    except TypeError as error:
        if "weights_only" in str(error):
            raise ImportError("reading it without running code from it needs torch 1.13 or later") from error
        raise FileError(f"{path} cannot be read by torch: {error}") from error
    except MemoryError:
        raise
    except Exception as error:  # whatever torch makes of a file that is none of its own
        unsupported = re.search(r"Unsupported (?:class|global)\W*(?:GLOBAL )?([\w.]+)", str(error), re.IGNORECASE)
        if unsupported:
            raise _refused(path, unsupported.group(1)) from error
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise FileError(f"{path} cannot be read by torch as tensors alone: {reason}") from error


def _refused(path: Path, foreign: str) -> InvalidModelError:
    return InvalidModelError(
        f"{path} holds a pickled {foreign}, not tensors alone: reading it would run code from the file. Where the"
        " model's code is installed, write torch.save(model.state_dict(), path) and convert that"
    )


def _foreign_class(path: Path) -> Optional[str]:
    """The first class that the pickle of a torch file names and that is no part of tensors; nothing is run."""
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if entry.filename.endswith("data.pkl") and entry.file_size <= _LARGEST_PICKLE:
                    for opcode, argument, _ in pickletools.genops(archive.read(entry)):
                        if opcode.name == "GLOBAL" and str(argument).split(" ")[0] not in _PLAIN:
                            return str(argument).replace(" ", ".")
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, RuntimeError):
        pass  # not of this kind: torch says what is wrong
    return None


def _state(content: Any, path: Path, key: Optional[str]) -> Mapping[str, Any]:
    """The state_dict in what a file holds."""
    if not isinstance(content, Mapping):
        raise InvalidModelError(f"{path} holds a {type(content).__name__}, not a state_dict")
    if key is not None:
        if not isinstance(content.get(key), Mapping):
            raise InvalidModelError(f"{path} has no state_dict under {key!r}; it has {_names(content)}")
        content = content[key]
    strange = [name for name, value in content.items() if not hasattr(value, "shape")]
    if strange:
        nested = [name for name, value in content.items() if isinstance(value, Mapping)]
        hint = f": say which is the state_dict with --key, such as {nested[0]!r}" if nested else ""
        raise InvalidModelError(f"{path} holds more than tensors ({_names(content)}){hint}")
    return dict(content)


def _names(content: Mapping[Any, Any]) -> str:
    names = [repr(name) for name in content]
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "") or "nothing"


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=Path, metavar="STATE", help="state_dict: .pt (needs torch), .npz, .safetensors")
    parser.add_argument("target", type=Path, metavar="MODEL", help="the model file to write, .safetensors")
    parser.add_argument("--key", metavar="NAME", help="where in a checkpoint with other content the state_dict is")
    network = parser.add_argument_group("how the network was built, with the names and defaults of the authors' code")
    network.add_argument("--model", choices=_MODELS, default="RelTanEMAN", help="default: %(default)s")
    network.add_argument("--task", choices=_TASKS, default="segmentation", help="default: %(default)s")
    network.add_argument("--n-rings", type=int, default=2, metavar="N", help="radial rings; default: %(default)s")
    network.add_argument("--max-order", type=int, default=2, metavar="N", help="of the features; default: %(default)s")
    network.add_argument("--n-heads", type=int, default=1, metavar="N", help="attention heads; default: %(default)s")
    network.add_argument("--no-equiv-bias", action="store_true", help="the additive biases, not the angular ones")
    network.add_argument("--regular-non-lin", action="store_true", help="a non-linearity within the blocks as well")
    network.add_argument(
        "--rel-power-list", type=float, nargs="+", default=[0.5, 0.7], metavar="R", help="default: 0.5 0.7"
    )
    network.add_argument("--deg-power", type=float, default=1.5, metavar="X", help="default: %(default)s")
    network.add_argument("--rel-power-const", type=float, default=1.0, metavar="X", help="default: %(default)s")
    network.add_argument("--null-isolated", action="store_true", help="accepted; isolated vertices are always 0 here")


def _convert(chosen: argparse.Namespace) -> Model:
    state = read_state(chosen.source, chosen.key)
    try:
        return Model.from_authors(
            state,
            model=chosen.model,
            task=chosen.task,
            n_rings=chosen.n_rings,
            max_order=chosen.max_order,
            n_heads=chosen.n_heads,
            equiv_bias=not chosen.no_equiv_bias,
            regular_non_lin=chosen.regular_non_lin,
            rel_power_list=chosen.rel_power_list,
            deg_power=chosen.deg_power,
            rel_power_const=chosen.rel_power_const,
            null_isolated=chosen.null_isolated,
        )
    except InvalidModelError as error:
        raise InvalidModelError(f"{chosen.source}: {error}") from error


def _run(chosen: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    with _convert(chosen) as model:
        model.save(chosen.target)
        count = sum(values.size for values in model.parameters().values())
        say(f"{chosen.target}: {chosen.model}, {model.task}, {model.classes} classes, {count:,} parameters")
        say('use it on meshes with the normals of the authors\' code: eman.Mesh(..., normals="angle")')
        return {
            "source": str(chosen.source),
            "target": str(chosen.target),
            "model": chosen.model,
            "parameters": count,
            "spec": model.spec,
        }


COMMAND = Command("convert", "Convert a state_dict of the authors' code to a model file.", _configure, _run)
