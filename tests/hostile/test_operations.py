"""A short run of what `make soak` does for an hour."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

KINDS = 13


def test_random_operations_on_many_threads() -> None:
    program = Path(__file__).parent / "operations.py"
    command = [sys.executable, program, "--seconds", "25", "--threads", "6", "--report", "0.5"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.split(", ")) == KINDS, result.stdout
