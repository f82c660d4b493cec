"""Run a notebook in a folder, where it writes its pictures: ``python run.py NOTEBOOK FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient


def run(notebook: Path, folder: Path) -> nbformat.NotebookNode:
    """The notebook with its outputs; an error in a cell is raised."""
    content = nbformat.read(notebook, as_version=4)
    return NotebookClient(content, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]))
