"""A file is the old one or the new one as a whole, whatever happens while it is written."""

from __future__ import annotations

import random
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

KILLS = 250  # for each kind of file


@pytest.mark.parametrize("kind", ["model", "training"])
def test_killed_while_saving(compiled, tmp_path: Path, kind: str) -> None:
    program, path = compiled("saving.c"), tmp_path / "file.safetensors"
    moments, found = random.Random(kind), []
    for _ in range(KILLS):
        with subprocess.Popen([program, kind, path], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            both = float(process.stdout.readline())
            time.sleep(moments.uniform(0, 3 * both))
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
        whole = [Path(f"{path}.{i}").read_bytes() for i in range(2)]
        if path.exists():
            found.append(whole.index(path.read_bytes()))  # one of the two
        for left in tmp_path.glob(".eman-*"):
            left.unlink()
    assert 0.05 * KILLS < sum(found) < 0.95 * len(found), "the moments were not random"


# What a shell in a namespace of its own does before the program: a small disk.
SMALL_DISK = 'mount -t tmpfs -o size=160k tmpfs "$1" && cd "$1" && "$2" "$3" file once && ls -A'


@pytest.mark.parametrize("kind", ["model", "training"])
def test_disk_full(compiled, tmp_path: Path, kind: str) -> None:
    program = compiled("saving.c")
    tried = subprocess.run(["unshare", "-rm", "true"], capture_output=True) if shutil.which("unshare") else None
    if tried is not None and tried.returncode == 0:
        command, limit = ["unshare", "-rm", "sh", "-c", SMALL_DISK, "-", tmp_path, program, kind], None
        reason = "no space left on device"
    else:  # where no disk can be made, a file cannot grow beyond a limit
        command, reason = ["sh", "-c", f'cd "{tmp_path}" && "{program}" {kind} file once && ls -A'], "file too large"

        def limit() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (160 << 10, 160 << 10))

    result = subprocess.run(command, capture_output=True, text=True, timeout=60, preexec_fn=limit)
    assert result.returncode == 0, result.stdout + result.stderr
    said, left = result.stdout.split("\n", 1)
    assert said.startswith("EMAN_E_IO") and "file" in said and reason in said
    assert left == "file\n", "a temporary file stays"
