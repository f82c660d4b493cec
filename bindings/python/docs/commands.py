"""A hook of mkdocs: writes the reference of the program `eman` from its own parsers into commands.md."""

from __future__ import annotations

import argparse
import html
import re
from collections.abc import Iterator
from typing import Any

from eman import _command, cli

MARK = "<!-- commands -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the mark by a section for each command."""
    return markdown.replace(MARK, "\n".join(reference())) if MARK in markdown else markdown


def reference() -> Iterator[str]:
    """The sections, line by line."""
    for name, parser in _command.subparsers(_command.parser("eman", cli.COMMANDS)).items():
        usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
        yield f"## eman {name}\n\n{parser.description}\n\n```text\n{usage}\n```\n"
        yield "| argument | meaning |\n|---|---|"
        for action in parser._actions:
            if not isinstance(action, argparse._HelpAction):
                yield f"| {called(parser, action)} | {meaning(parser, action)} |"
        yield ""


def called(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """The names of an argument and of its value."""
    value = parser._get_formatter()._format_args(action, action.dest.upper()) if action.nargs != 0 else ""
    names = ", ".join(action.option_strings)
    return f"`{f'{names} {value}'.strip()}`".replace("|", r"\|")


def meaning(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """The help of an argument as Markdown."""
    text = parser._get_formatter()._expand_help(action) if action.help else ""
    return re.sub(r"([|*_])", r"\\\1", html.escape(text, quote=False))
