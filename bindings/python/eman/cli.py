"""The program ``eman``, also ``python -m eman``.

A shell completes subcommands, options, names of models and files after ``eman --print-completion bash|zsh|fish``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from eman import _command, convert, demo, reproduce, shipped
from eman.commands import fields, labels, learn, look, many

__all__ = ["main"]

COMMANDS = (
    demo.COMMAND,
    look.INFO,
    look.CHECK,
    fields.FEATURES,
    fields.RENDER,
    learn.TRAIN,
    labels.PREDICT,
    labels.EVALUATE,
    labels.VERIFY,
    many.BATCH,
    convert.COMMAND,
    reproduce.COMMAND,
    shipped.COMMAND,
)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run a subcommand.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.

    Returns
    -------
    int
        The exit status: 0 done, 1 not done or a check that failed, 2 wrong usage, 3 an optional package is missing,
        130 interrupted.
    """
    return _command.main("eman", COMMANDS, arguments)
