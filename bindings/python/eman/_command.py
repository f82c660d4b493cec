"""What the subcommands of `eman` have in common: ``--json``, ``--debug``, errors on one line, exit statuses."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional

from eman import _completion
from eman._version import __version__
from eman.errors import EmanError

#: Exit statuses.
DONE, FAILED, USAGE, MISSING, INTERRUPTED = 0, 1, 2, 3, 130

EXIT_STATUSES = """\
exit status:
  0    done
  1    not done: a file, mesh or model is at fault, and the message says which;
       or done, and what was to be checked is not as it should be
  2    wrong usage
  3    not done: an optional package is missing, and the message says which
  130  interrupted
"""


@dataclass(frozen=True)
class Command:
    """A subcommand.

    Attributes
    ----------
    name, help : str
        As the user sees them.
    configure : callable
        Adds its arguments to a parser.
    run : callable
        ``run(arguments, say)``: does it, tells the user about it line by line through `say`, and returns the same as
        what JSON can express.  Where that has an item ``"good"`` that is false, a check has failed.
    """

    name: str
    help: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Callable[[str], None]], dict[str, Any]]


def main(prog: str, commands: Sequence[Command], arguments: Optional[Sequence[str]] = None) -> int:
    """The command line of a program with subcommands; returns the exit status."""
    _print_all()
    return _execute(prog, parser(prog, commands).parse_args(arguments))


def parser(prog: str, commands: Sequence[Command]) -> argparse.ArgumentParser:
    """The parser of a program with subcommands."""
    made = _parser(prog, "Equivariant mesh attention networks.")
    made.add_argument("--version", action="version", version=f"eman {__version__}")
    _completion.add_to(made)
    choices = made.add_subparsers(dest="command", metavar="command", required=True)
    for command in commands:
        added = choices.add_parser(
            command.name,
            help=command.help,
            description=command.help,
            epilog=EXIT_STATUSES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        _configure(added, command)
    return made


def subparsers(made: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of its subcommands by name."""
    return {
        name: added
        for action in made._actions
        if isinstance(action, argparse._SubParsersAction)
        for name, added in action.choices.items()
    }


def main_of_one(prog: str, command: Command, arguments: Optional[Sequence[str]] = None) -> int:
    """The command line of a program that is a single command."""
    _print_all()
    made = _parser(prog, command.help)
    _configure(made, command)
    return _execute(prog, made.parse_args(arguments))


def _print_all() -> None:
    """Show what the standard output cannot encode, a file's name perhaps, as Python does on the standard error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _parser(prog: str, description: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=prog,
        description=description,
        epilog=EXIT_STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _configure(parser: argparse.ArgumentParser, command: Command) -> None:
    command.configure(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text, also for errors")
    parser.add_argument("--debug", action="store_true", help="show where in the program an error came from")
    parser.set_defaults(run=command.run)


def _execute(prog: str, chosen: argparse.Namespace) -> int:
    try:
        result = chosen.run(chosen, (lambda line: None) if chosen.json else lambda line: print(line, flush=True))
        if chosen.json:
            print(json.dumps(result))
        sys.stdout.flush()
    except BrokenPipeError:  # as in `eman ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except (EmanError, OSError, ValueError, MemoryError, ImportError) as error:
        if chosen.debug:
            traceback.print_exc()
        return _failed(prog, chosen.json, error, MISSING if isinstance(error, ImportError) else FAILED)
    return FAILED if result.get("good") is False else DONE


def _failed(prog: str, as_json: bool, error: BaseException, status: int) -> int:
    message = " ".join(str(error).split()) or type(error).__name__
    if status == MISSING and "pip install" not in message:
        message += ": pip install eman[all]"
    if as_json:
        print(json.dumps({"error": {"type": type(error).__name__, "message": message, "status": status}}))
    print(f"{prog}: {message}", file=sys.stderr)
    return status
