"""Labels or features of many meshes: ``eman batch``."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from contextlib import nullcontext, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Any, Callable

from eman import distributed
from eman._command import Command
from eman.commands import fields, files
from eman.errors import FileError, InvalidArgumentError

Say = Callable[[str], None]


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "mesh",
        nargs="*",
        metavar="MESH",
        help="files; folders, with what is in them; patterns such as 'scans/**/*.ply'; URLs, where fsspec is installed",
    )
    parser.add_argument(
        "--list", type=Path, metavar="FILE", help="a file with a mesh in each line as well; - for stdin"
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="of the results; see below")
    what = parser.add_mutually_exclusive_group(required=True)
    files.add_model(what, required=False)
    what.add_argument("--features", choices=("reltan", "get"), help="compute features, rather than labels")
    files.add_weld(parser)
    group = parser.add_argument_group("labels")
    group.add_argument("--confidence", action="store_true", help="write the probability of each label as well")
    group.add_argument("--coloured", action="store_true", help="write the meshes in the colours of the labels, as PLY")
    fields.add_features(parser.add_argument_group("features"))
    group = parser.add_argument_group("the run")
    group.add_argument("--retry-errors", action="store_true", help="take the meshes again that had an error before")
    group.add_argument("--parquet", action="store_true", help="write results.parquet as well, by pyarrow")
    group.add_argument("--workers", type=int, metavar="N", help="meshes at a time (default: one for each processor)")
    group.add_argument("--threads", type=int, metavar="N", help="of each worker (default: processors / workers)")
    group.add_argument(
        "--engine", choices=distributed.ENGINES, default="processes", help="where they run (default: %(default)s)"
    )
    group.add_argument("--address", metavar="ADDRESS", help="of a Ray cluster, such as auto")
    parser.epilog = f"{_RESULTS}\n{parser.epilog or ''}"


_RESULTS = """\
results, in FOLDER:
  results.jsonl   a line for each mesh: its status, done or error, with the reason;
                  the names of its files; vertices, confidence, counts of labels
  *.npy, *.ply    what was computed
  batch.json      the settings; a folder of other settings is refused

A second run of the same command does what is missing.  A mesh that fails is a
row, and the exit status is 1; so is one of which two workers died.
"""


def _batch(chosen: argparse.Namespace, say: Say) -> dict[str, Any]:
    if chosen.parquet and importlib.util.find_spec("pyarrow") is None:
        raise ImportError("--parquet needs pyarrow: pip install eman[batch]")
    meshes = [*chosen.mesh, *_listed(chosen.list)]
    if not meshes:
        raise InvalidArgumentError("no mesh is named: give files, folders, patterns or URLs, or --list FILE")
    common = {
        name: getattr(chosen, name) for name in ("weld", "workers", "threads", "engine", "address", "retry_errors")
    }
    if chosen.features:
        how = {name: getattr(chosen, name) for name in ("powers", "space", "normals")}
        batch = distributed.features(meshes, chosen.output, kind=chosen.features, **how, **common)
    else:
        how = {"confidence": chosen.confidence, "coloured": chosen.coloured}
        batch = distributed.predict(meshes, chosen.model, chosen.output, **how, **common)
    pending = len(batch.pending)
    if pending < len(batch):
        say(f"{len(batch) - pending:,} of {len(batch):,} meshes were finished before")
    # Where a worker of Ray dies, Ray says so on the standard output, which --json has promised to one object.
    kept = redirect_stdout(sys.stderr) if chosen.json else nullcontext()
    with kept, files.bar("meshes", pending) as move:
        for row in batch:
            if row.error is not None:
                say(f"{row.mesh}: {row.error}")
            move()
    summary = batch.summary()
    say(f"{batch.output}: {summary}")
    if chosen.parquet:
        say(str(batch.to_parquet()))
    return {
        "good": not summary.errors,
        "output": str(batch.output),
        **asdict(summary),
        "failed": [{"mesh": row.mesh, "error": row.error} for row in batch.rows() if row.error is not None],
    }


def _listed(path: Any) -> list[str]:
    """The lines of a list that are not empty."""
    if path is None:
        return []
    try:
        text = sys.stdin.read() if path == Path("-") else path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is no list of meshes: {error}") from error
    return [line.strip() for line in text.splitlines() if line.strip()]


BATCH = Command("batch", "Labels or features of many meshes, on processes or a Ray cluster.", _configure, _batch)
