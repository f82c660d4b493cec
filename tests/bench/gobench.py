"""Runs the Go benchmarks in rounds, keeps their output for benchstat, and finds the best of each."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "bench"


class Measurement(NamedTuple):
    """The best of several runs of a benchmark, and the work that it cannot do without."""

    seconds: float
    flops: float
    bytes: float
    edges: float  # of the mesh, where the time of an edge was reported


class GoBenchmarks:
    """The benchmarks of the given packages; all their output goes to build/bench/NAME.txt."""

    def __init__(self, packages: list[str], name: str) -> None:
        self._best: dict[str, Measurement] = {}
        FOLDER.mkdir(parents=True, exist_ok=True)
        self._raw = FOLDER / f"{name}.txt"
        self._raw.write_text("")
        for package in packages:
            subprocess.run(["go", "test", "-c", "-o", FOLDER / f"{package}.test", f"./{package}"], cwd=ROOT, check=True)

    def run(self, package: str, pattern: str, windows: int = 1) -> None:
        """Runs what matches the pattern in so many windows, of ten milliseconds or of one call."""
        command = [FOLDER / f"{package}.test", "-test.run=^$", f"-test.bench={pattern}", f"-test.count={windows}"]
        command.append("-test.benchtime=10ms")
        output = subprocess.run(command, cwd=ROOT / package, check=True, stdout=subprocess.PIPE, text=True).stdout
        with open(self._raw, "a") as raw:
            raw.write(output)
        for line in output.splitlines():
            if line.startswith("Benchmark") and "\t" in line:
                self._add(line)

    def _add(self, line: str) -> None:
        name, _, *columns = line.split("\t")
        values = {unit: float(value) for value, unit in (column.split() for column in columns)}
        name = re.sub(r"-\d+$", "", name.strip().removeprefix("Benchmark"))
        found = Measurement(
            values["ns/op"] / 1e9,
            values.get("GFLOP/op", 0) * 1e9,
            values.get("MB/op", 0) * 1e6 or values.get("GB/s", 0) * values["ns/op"],
            values["ns/op"] / values.get("ns/edge", values["ns/op"]),
        )
        self._best[name] = min(found, self._best.get(name, found))

    def best(self, pattern: str) -> Measurement:
        """The best run of the one benchmark whose name matches."""
        (found,) = (m for name, m in self._best.items() if re.fullmatch(pattern, name))
        return found

    def __contains__(self, pattern: str) -> bool:
        return any(re.fullmatch(pattern, name) for name in self._best)
