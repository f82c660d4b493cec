"""What others need for the same work: numpy's OpenBLAS and PyTorch, each in a process of its own.

A process is what their settings need, and what keeps their threads and memory away from ours.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import eman

HERE = Path(__file__).resolve().parent
COMPARED = 64  # vertices whose log-probabilities are compared


def _run(python: str, script: str, arguments: list[str], threads: int, core: str = "") -> dict:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OPENBLAS_", "OMP_"))}
    environment |= {f"{library}_NUM_THREADS": str(threads) for library in ("OPENBLAS", "OMP")}
    # Memory that is freed stays with the process: PyTorch takes half as long again, and more, where it does not.
    environment |= {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}
    if core:
        environment["OPENBLAS_CORETYPE"] = core
    command = [python, str(HERE / script), *arguments]
    return json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)


def products(shapes: list[str], threads: int, core: str) -> dict:
    """The kernels that OpenBLAS takes, and its seconds for each shape; core is OPENBLAS_CORETYPE, or empty."""
    return _run(sys.executable, "peer_products.py", shapes, threads, core)


def python_with_torch() -> str | None:
    """A Python that has torch: this one, or Debian's with python3-torch."""
    for python in (sys.executable, "/usr/bin/python3"):
        found = Path(python).exists() and subprocess.run([python, "-c", "import torch, numpy"], capture_output=True)
        if found and found.returncode == 0:
            return python
    return None


class Torch:
    """The authors' EMAN in PyTorch on a mesh, held against ours."""

    def __init__(self, python: str, model: eman.Model, mesh: eman.Mesh, folder: Path) -> None:
        self._python = python
        self._files = str(folder / "torch.npz"), str(folder / "torch.json")
        offsets, neighbor = mesh.neighbors
        center = np.repeat(np.arange(mesh.vertex_count), np.diff(offsets))
        reltan = mesh.reltan(model.spec["powers"])
        data = {
            "features": np.concatenate([np.zeros((*reltan.shape[:2], 1)), reltan], axis=2),
            "center": center,
            "neighbor": neighbor,
            "theta": mesh.edge_angles,
            "transport": mesh.transport_angles,
            "length": np.linalg.norm(mesh.vertices[neighbor] - mesh.vertices[center], axis=1),
            "log_probabilities": model.logits(mesh)[:COMPARED],
        }
        np.savez(self._files[0], **data, **{f"p:{name}": value for name, value in model.parameters().items()})
        Path(self._files[1]).write_text(json.dumps(model.spec))

    def run(self, threads: int, step: bool) -> dict:
        """Version, the largest difference of log-probabilities, and seconds of a forward and a training step."""
        arguments = [*self._files, str(threads), *(["--step"] if step else [])]
        return _run(self._python, "peer_torch.py", arguments, threads)
