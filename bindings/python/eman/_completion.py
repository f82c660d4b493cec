"""Completion in shells, by shtab: ``eman --print-completion bash|zsh|fish``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional, Union

SHELLS = ("bash", "zsh", "fish")

#: What users give in place of an argument that is shown like this.
_FOLDERS, _MODELS = {"FOLDER", "DIR"}, {"MODEL"}
_FILES = {"FILE", "MESH", "STATE"}


def add_to(parser: argparse.ArgumentParser) -> None:
    """The option that prints a shell's completion, and ends."""
    parser.add_argument(
        "--print-completion",
        action=_Print,
        choices=SHELLS,
        help="print what makes a shell complete subcommands, options, names of models and files",
    )


class _Print(argparse.Action):
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Union[str, Sequence[Any], None],
        option_string: Optional[str] = None,
    ) -> None:
        try:
            import shtab
        except ImportError:
            parser.exit(3, f"{parser.prog}: completion needs shtab: pip install eman[completion]\n")
        _describe(parser)
        print(shtab.complete(parser, shell=str(values)))
        parser.exit()


def _describe(parser: argparse.ArgumentParser) -> None:
    """Tell shtab, here and in subcommands, which arguments are files, folders and models."""
    import shtab

    models = _models()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                _describe(each)
        elif action.metavar in _MODELS:
            action.complete = models  # type: ignore[attr-defined]
        elif action.metavar in _FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif action.type is Path or action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]


def _models() -> dict[str, Any]:
    """For each shell, how the models that the package brings are completed, and files."""
    from eman import shipped

    names = " ".join(shipped.names())
    return {
        "bash": "_eman_models",
        "zsh": "_eman_models",
        "fish": f"(printf '%s\\n' {names}; __fish_complete_path (commandline -ct))",
        "preamble": {
            "bash": f'_eman_models() {{\n  compgen -W "{names}" -- "$1"\n  _shtab_compgen_files "$1"\n}}',
            "zsh": f"_eman_models() {{\n  _alternative 'models:model:({names})' 'files:file:_files'\n}}",
        },
    }
