"""Our figures beside the limit of the machine, measured in the same run, and beside the peers: `make bench`.

usage: table.py [--quick] [--name NAME] [--json FILE] [--markdown FILE]

Every figure is the smallest of many short windows, and all of them, limits and peers too, are measured in turn, round
after round: the machine may be shared, and what can be compared is the ratios within one run. The output of the Go
benchmarks stays in build/bench/PACKAGE.txt, for benchstat.

A limit is the work that a call cannot do without, at the rate of the machine: its products and edge passes at the rate
of a product that never leaves the first-level cache, and what must move to and from memory at the greater of the rates
of reading and copying, of the cache in which it lies. The targets are those ratios of time to limit that were set for
the library, or where no limit was set, times.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import peers
from bench.accuracy import layer_errors
from bench.geometry import POWERS, numpy_times, sphere
from bench.gobench import FOLDER, ROOT, GoBenchmarks, Measurement
from bench.timing import fastest

import eman
from eman import _arrays, _capi
from reference import networks

THREADS = (1, 2) if (os.cpu_count() or 1) > 1 else (1,)
THREAD_NAMES = {1: "1_thread", 2: "2_threads"}
PRODUCTS = ((6890, 608, 80), (6890, 304, 80), (6890, 16, 256), (6890, 256, 6890))
SIZES = (2_000, 8_000, 32_000, 128_000, 512_000, 1_000_000)
TRAINING_MEMORY = 6e9  # bytes that a training step may take
MEMORY_TARGET, ERROR_TARGET = 60e6, 2e-6
CALL_TARGET, C_TARGET = 100, 1.02  # nanoseconds; time of a prediction in C, in that of Go


class Target(NamedTuple):
    """What was set for one thread and for two: times the limit, or a time in the unit of the row."""

    of_limit: tuple[float, float] | None = None
    at_most: tuple[float, float] | None = None

    def check(self, threads: int, time_in_unit: float, ratio: float) -> tuple[str, bool | None]:
        """The target in words, and whether it is met."""
        if self.of_limit:
            bound = self.of_limit[threads - 1]
            return f"{bound:.2f} × limit", ratio <= bound
        if self.at_most:
            bound = self.at_most[threads - 1]
            return f"{bound:g}", time_in_unit <= bound
        return "", None


class GoRow(NamedTuple):
    """A row of the table that one Go benchmark fills; {} stands for instruction set and threads."""

    what: str
    benchmark: str
    unit: str
    target: Target
    level: str = "L1"  # where what it must read and write lies


# The ratios are the targets' times over the limits that were set beside them.
GO_ROWS = (
    GoRow("structured product, hot", "StructuredProduct/{}", "GFLOP/s", Target((1 / 0.92, 1 / 0.92))),
    GoRow("head 6890×256×6890, arg-max", "Head/{}", "ms", Target((103 / 88, 54 / 44))),
    GoRow("edge pass, 6890 vertices", "EdgePass/{}", "ns/edge", Target((20 / 12.1, 20 / 12.1))),
    GoRow("convolution 2→2, 6890 vertices", "Convolution/{}", "ms", Target((2.8 / 2.2, 1.5 / 1.1)), "L3"),
    GoRow(
        "convolution 2→2, 2²⁰ vertices",
        "ConvolutionOfAMillion/subdivided/{}/searched",
        "ms",
        Target((430 / 320, 230 / 160)),
        "DRAM",
    ),
    GoRow("forward with labels, 6890 classes", "Forward/{}", "ms", Target((115 / 98, 62 / 49))),
    GoRow("training step, 6890 classes", "Step/{}", "ms", Target((380 / 290, 200 / 145))),
    GoRow("… its gradient of the head's weights", "Correlate/{}", "GFLOP/s", Target()),
)
# The kernels that a piece of a mesh passes through in an update with RelTan, and what is more for the edges.
UPDATE_KERNELS = "centers columns wedges sumRings frames centers columns relTan-both sumRings sumRings tangents-both"
EDGE_KERNELS = "centers columns edges"
GEOMETRY_TARGET = Target(at_most=(6, 6))
UPDATE_TARGET = Target(at_most=(40, 22))
SURFACE_TARGETS = {7_000: 60, 1_000_000: 2000}  # milliseconds of one thread, by vertices
PRESETS = ("default", "surface")  # whose growth is shown


class Table(NamedTuple):
    title: str
    header: list[str]
    rows: list[list[str]]
    notes: str = ""

    def text(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.header, *self.rows)]
        lines = [
            "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))).rstrip()
            for row in [self.header, *self.rows]
        ]
        return "\n".join(["", self.title, "-" * len(lines[0]), *lines, *([self.notes] if self.notes else [])])

    def json(self) -> dict[str, object]:
        rows = [dict(zip(self.header, map(number, row))) for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": self.notes}

    def markdown(self) -> str:
        rule = ["---"] + ["---:"] * (len(self.header) - 1)
        lines = ["| " + " | ".join(row) + " |" for row in [self.header, rule, *self.rows]]
        return "\n".join([f"**{self.title}**", "", *lines, *(["", self.notes] if self.notes else []), ""])


def in_unit(unit: str, m: Measurement, seconds: float) -> float:
    if unit == "GFLOP/s":
        return m.flops / seconds / 1e9
    return seconds * {"ms": 1e3, "ns/edge": 1e9 / m.edges}[unit]


class UpdatedRelTan:
    """Positions set and RelTan of two powers computed through the C interface, into arrays that are there."""

    def __init__(self, vertices: int, threads: int) -> None:
        self._positions, faces = sphere(vertices)
        self._mesh = eman.Mesh(self._positions, faces, context=eman.Context(threads=threads))
        self._result = np.zeros((len(self._positions), 2 * len(POWERS)))
        self._powers = np.array(POWERS)
        self.seconds, self.size = math.inf, len(self._positions)
        # Read by update: positions given, faces, neighbours and their offsets; written: positions, frames, and
        # positions read again for normals. Read by RelTan: positions, frames, neighbours, offsets; written: results.
        vertex = (24 + 24 + 24) + 72 + 8 + (24 + 72 + 8) + 32
        self.bytes = float(len(self._positions) * vertex + 12 * len(faces) + 2 * 4 * self._mesh.edge_count)

    def measure(self) -> None:
        self.seconds = min(self.seconds, fastest(self._call, 0, least=3))

    def _call(self) -> None:
        self._mesh.update(self._positions)
        target, powers = _arrays.view(self._result), self._powers
        with self._mesh._handle as handle:
            reltan = _capi.library().eman_mesh_reltan
            _capi.check(reltan(handle, powers.ctypes.data, len(powers), None, None, target))


class SurfaceLabels:
    """Labels of the preset surface in C, of a mesh that has moved, and the parts of that."""

    PARTS = ("update", "samples, graphs, moments, lift", "layers and head")

    def __init__(self, vertices: int, threads: int) -> None:
        context = eman.Context(threads=threads)
        self.vertices, self.threads = vertices, threads
        self._positions, faces = sphere(vertices)
        mesh = eman.Mesh(self._positions, faces, context=context)
        model = eman.Model("surface", classes=16, context=context)
        self._calls = (
            lambda: mesh.update(self._positions),
            lambda: model.layer_size(mesh, 0),
            lambda: model.predict(mesh),
        )
        self.seconds = [math.inf] * len(self._calls)

    def measure(self) -> None:
        for i, call in enumerate(self._calls):
            start = time.perf_counter()
            call()
            self.seconds[i] = min(self.seconds[i], time.perf_counter() - start)


class Calls:
    """Calls from C, in nanoseconds: of a function that only asks, and of a small prediction; calls.c."""

    def __init__(self) -> None:
        self._program = FOLDER / "calls"
        library = ROOT / "build"
        command = ["cc", "-O2", ROOT / "tests/bench/calls.c", f"-I{ROOT / 'include'}", "-o", self._program]
        subprocess.run([*command, f"-L{library}", f"-Wl,-rpath,{library}", "-leman", "-lm"], check=True)
        self.call = self.predict = math.inf

    def measure(self) -> None:
        output = subprocess.run([self._program, "10"], check=True, stdout=subprocess.PIPE).stdout
        found = json.loads(output)
        self.call, self.predict = min(self.call, found["call"]), min(self.predict, found["predict"])


class Run:
    """All measurements of one run."""

    def __init__(self, quick: bool, name: str) -> None:
        self.quick = quick
        self.isa = eman.build_info()["instruction_set"]
        self.go = GoBenchmarks(["simd", "core", "geometry"], name)
        self.openblas: dict[tuple[str, int], dict] = {}
        self.torch: dict[int, dict] = {}
        self.numpy: dict[str, float] = {}
        self.updates = {t: UpdatedRelTan(32_000 if quick else 1_000_000, t) for t in THREADS}
        sizes = list(SURFACE_TARGETS)[: 1 if quick else None]
        self.surfaces = [SurfaceLabels(size, t) for size in sizes for t in THREADS]
        self.calls = Calls()
        self.growth: dict[str, list[dict]] = {preset: [] for preset in PRESETS}
        self.memory: dict = {}
        self.errors: dict[str, float] = {}

    def everything(self) -> None:
        rounds = 1 if self.quick else 8
        for r in range(rounds):
            self._step(f"round {r + 1} of {rounds}", lambda r=r: self._round(r))
        self._step("memory", self._memory)
        self._step("error of each layer", lambda: self.errors.update(layer_errors(800, "authors")))
        self._step("growth", self._growth)
        self._step("numpy and PyTorch", self._peers)

    def _step(self, name: str, call: Callable[[], object]) -> None:
        start = time.monotonic()
        call()
        print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)

    def _round(self, r: int) -> None:
        one = f"^{self.isa}$"
        self.go.run("core", f"^Benchmark(Peak|StructuredProduct|EdgePass|Convolution)$/{one}", 5)
        self.go.run("core", f"^Benchmark(Peak|Head|Forward|Step|Correlate)$/{one}")
        self.go.run("core", "^BenchmarkMemory$", 2)
        self.go.run("geometry", f"^Benchmark(UpdateAndEdges|RelTan)$/{one}/V=7058", 5)
        self.go.run("simd", f"^BenchmarkGeometry$/{one}", 5)
        for update in self.updates.values():
            update.measure()
        for surface in self.surfaces:
            for _ in range(5):
                surface.measure()
        for _ in range(5):  # in turn: they are compared
            self.calls.measure()
            self.go.run("core", f"^BenchmarkPredict$/{one}", 5)
        self.go.run("core", f"^BenchmarkProduct$/./{one}", 2)
        self._openblas()
        if r == 0:
            self.go.run("core", "^BenchmarkProduct$/./^gonum$")
        if r < 3 and not self.quick:
            self.go.run("core", f"^BenchmarkConvolutionOfAMillion$/^subdivided$/{one}/./^searched$")
        if not self.quick:
            self.go.run("simd", f"./{one}")  # for benchstat alone

    def _openblas(self) -> None:
        for core in ("", "SKYLAKEX") if self.isa == "avx512" else ("",):
            for threads in THREADS:
                found = peers.products([",".join(map(str, shape)) for shape in PRODUCTS], threads, core)
                best = self.openblas.setdefault((core, threads), found)["seconds"]
                best.update({shape: min(seconds, best[shape]) for shape, seconds in found["seconds"].items()})

    def _subprocess(self, vertices: int, preset: str, classes: int, train: bool) -> dict:
        command = [sys.executable, str(ROOT / "tests/bench/growth.py"), str(vertices), preset, str(classes)]
        command += ["--train"] if train else []
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)

    def _memory(self) -> None:
        self.memory = self._subprocess(6890, "authors", 6890, True)

    def _growth(self) -> None:
        for preset, growth in self.growth.items():
            a_vertex = 0.0  # bytes of a training step
            for size in SIZES[:3] if self.quick else SIZES:
                found = self._subprocess(size, preset, 16, a_vertex * size < TRAINING_MEMORY)
                growth.append(found)
                if "step" in found:
                    a_vertex = found["step"][1] / found["vertices"][0]

    def _peers(self) -> None:
        positions, faces = sphere(7_000)
        self.numpy = numpy_times(positions, faces) | {"edges": float(eman.Mesh(positions, faces).edge_count)}
        if self.quick:
            return
        positions, faces = sphere(6_850)
        mesh, model = eman.Mesh(positions, faces), eman.Model("authors", classes=6890)
        start = time.perf_counter()
        networks.run(model.spec, model.parameters(), positions, faces)
        self.numpy["forward"] = time.perf_counter() - start
        python = peers.python_with_torch()
        if python:
            torch = peers.Torch(python, model, mesh, FOLDER)
            self.torch = {threads: torch.run(threads, step=True) for threads in THREADS}

    # -------------------------------------------------------------- limits

    def peak(self, threads: int) -> float:
        """FLOP/s, the greatest of two products that stay in the caches: more windows than one has."""
        found = [self.go.best(f"{name}/{self.isa}/{THREAD_NAMES[threads]}") for name in ("Peak", "StructuredProduct")]
        return max(m.flops / m.seconds for m in found)

    def busy(self) -> bool:
        """Whether others kept the second processor from us, so that what needs both cannot be judged."""
        return THREADS[-1] == 1 or self.peak(2) < 1.8 * self.peak(1)

    def rate(self, level: str, threads: int, direction: str = "(read|copy)") -> float:
        """Bytes/s."""
        names = [d for d in ("read", "copy") if d in direction]
        found = [self.go.best(f"Memory/{level}/{name}/{THREAD_NAMES[threads]}") for name in names]
        return max(m.bytes / m.seconds for m in found)

    def limit(self, m: Measurement, level: str, threads: int) -> float:
        """Seconds."""
        return m.flops / self.peak(threads) + m.bytes / self.rate(level, threads)

    # -------------------------------------------------------------- tables

    def tables(self) -> list[Table]:
        tables = [self._machine(), self._targets(), self._surfaces(), self._products(), self._single_figures()]
        return tables + [table for preset in PRESETS for table in self._growths(preset)]

    def _machine(self) -> Table:
        levels = ("L1", "L2", "L3", "DRAM")
        rows = [["multiply-adds, GFLOP/s", *(f"{self.peak(t) / 1e9:.0f}" for t in THREADS)]]
        for level in levels:
            for direction in ("read", "copy"):
                rates = (f"{self.rate(level, t, direction) / 1e9:.0f}" for t in THREADS)
                rows.append([f"{level} {direction}, GB/s", *rates])
        return Table(f"The machine ({self.isa})", ["rate", *threads_header()], rows)

    def _row(self, what: str, threads: int, unit: str, m: Measurement, limit: float, target: Target, peer: str):
        ratio, value = m.seconds / limit, in_unit(unit, m, m.seconds)
        words, met = target.check(threads, value, ratio)
        verdict = {True: "met", False: "missed", None: ""}[met]
        if verdict and threads > 1 and self.busy():
            verdict = "busy"
        figures = [rounded(value), rounded(in_unit(unit, m, limit)), f"{ratio:.2f}"]
        return [what, str(threads), unit, *figures, words, verdict, peer]

    def _targets(self) -> Table:
        rows = []
        for row in GO_ROWS:
            for threads in THREADS:
                name = row.benchmark.format(f"{self.isa}/{THREAD_NAMES[threads]}")
                if name not in self.go:
                    continue  # left out by --quick
                m = self.go.best(name)
                limit = self.limit(m, row.level, threads)
                rows.append(self._row(row.what, threads, row.unit, m, limit, row.target, self._peer(row, threads, m)))
        rows += [self._geometry(threads) for threads in THREADS]
        for threads, update in self.updates.items():
            m = Measurement(update.seconds, 0, update.bytes, 1)
            what = f"update and RelTan in C, {update.size} vertices"
            target = Target() if self.quick else UPDATE_TARGET
            rows.append(self._row(what, threads, "ms", m, self.limit(m, "DRAM", threads), target, ""))
        header = ["what", "threads", "unit", "ours", "limit", "ours/limit", "target", "verdict", "peers, times ours"]
        notes = (
            f"PyTorch {self.torch[1]['version']}, largest difference to ours {self.torch[1]['difference']:.1e}."
            if self.torch
            else "PyTorch is not installed (Debian's python3-torch) or left out."
        )
        if f"Geometry/{self.isa}/edges" in self.go:
            notes += (
                "\nComputing bounds update and RelTan: their kernels alone, on one thread and 64 vertices in the "
                f"nearest cache, take {self._kernels(UPDATE_KERNELS):.1f} ns/edge, and those of the edges "
                f"{self._kernels(EDGE_KERNELS):.1f}."
            )
        notes += "\nThe limit of a training step is that of its products alone."
        if self.busy():
            share = self.peak(THREADS[-1]) / self.peak(1)
            notes += (
                f"\nbusy: two threads had {share:.1f} times the peak of one, so that their targets cannot be judged."
            )
        return Table("Against the limit", header, rows, notes)

    def _surfaces(self) -> Table:
        rows = []
        for s in self.surfaces:
            target = SURFACE_TARGETS[s.vertices] if s.threads == 1 else None
            whole = 1e3 * sum(s.seconds)
            verdict = "" if target is None else "met" if whole <= target else "missed"
            figures = [rounded(whole), *(rounded(1e3 * seconds) for seconds in s.seconds)]
            rows.append([str(s.vertices), str(s.threads), *figures, f"{target or ''}", verdict])
        header = ["vertices", "threads", "labels", *SurfaceLabels.PARTS, "target", "verdict"]
        notes = "Labels are the sum of the parts' smallest times. Of a mesh that has not moved only the last is needed."
        return Table("Labels of the preset surface in C, milliseconds", header, rows, notes)

    def _geometry(self, threads: int) -> list[str]:
        names = (f"{name}/{self.isa}/V=7058/threads={threads}" for name in ("UpdateAndEdges", "RelTan"))
        parts = [self.go.best(name) for name in names]
        edges = parts[0].edges
        m = Measurement(sum(p.seconds for p in parts), 0, sum(p.bytes for p in parts), edges)
        theirs = sum(self.numpy[k] for k in ("update", "angles", "RelTan")) / self.numpy["edges"]
        peer = f"numpy {theirs * edges / m.seconds:.0f}"
        limit = self.limit(m, "L3", threads)
        return self._row("update, edges and RelTan, 7058 vertices", threads, "ns/edge", m, limit, GEOMETRY_TARGET, peer)

    def _kernels(self, names: str) -> float:
        """Nanoseconds for an edge."""
        found = [self.go.best(f"Geometry/{self.isa}/{name}") for name in names.split()]
        return sum(1e9 * m.seconds / m.edges for m in found)

    def _peer(self, row: GoRow, threads: int, m: Measurement) -> str:
        found = []
        torch = self.torch.get(threads, {})
        if row.benchmark.startswith("Head"):
            seconds = self.openblas["", threads]["seconds"][",".join(map(str, PRODUCTS[-1]))]
            found.append(f"OpenBLAS without arg-max {seconds / m.seconds:.2f}")
        if row.benchmark.startswith("Forward"):
            if torch:
                found.append(f"PyTorch {torch['forward'] / m.seconds:.1f}")
            if "forward" in self.numpy:
                found.append(f"numpy {self.numpy['forward'] / m.seconds:.0f}")
        if row.benchmark.startswith("Step") and torch:
            found.append(f"PyTorch {torch['step'] / m.seconds:.1f}")
        return ", ".join(found)

    def _products(self) -> Table:
        rows, settings = [], sorted({core for core, _ in self.openblas})
        for shape in PRODUCTS:
            name = "x".join(map(str, shape))
            for threads in THREADS:
                of_go = [f"Product/{name}/{who}/{THREAD_NAMES[threads]}" for who in (self.isa, "gonum")]
                seconds = [self.go.best(pattern).seconds for pattern in of_go]
                seconds += [self.openblas[core, threads]["seconds"][",".join(map(str, shape))] for core in settings]
                rates = [self.peak(threads), *(2 * math.prod(shape) / s for s in seconds)]
                rows.append([name.replace("x", "×"), str(threads), *(f"{rate / 1e9:.0f}" for rate in rates)])
        names = [f"OpenBLAS {core or 'as it chooses'}" for core in settings]
        chosen = self.openblas["", 1]["kernels"]
        notes = f"OpenBLAS as it chooses takes its {chosen} kernels."
        return Table("Matrix products, GFLOP/s", ["M×K×N", "threads", "limit", "ours", "gonum", *names], rows, notes)

    def _single_figures(self) -> Table:
        peaks = {stage: self.memory[stage][1] for stage in ("forward", "step")}
        worst = max(self.errors, key=self.errors.get)
        rows = [
            [
                "peak memory of inference, 6890 classes",
                f"{peaks['forward'] / 1e6:.0f} MB",
                "60 MB",
                "met" if peaks["forward"] <= MEMORY_TARGET else "missed",
            ],
            ["peak memory of a training step, 6890 classes", f"{peaks['step'] / 1e6:.0f} MB", "", ""],
            [
                f"largest error of a layer ({worst})",
                f"{self.errors[worst]:.1e}",
                f"{ERROR_TARGET:.0e}",
                "met" if self.errors[worst] <= ERROR_TARGET else "missed",
            ],
        ]
        ratio = self.calls.predict / (1e9 * self.go.best(f"Predict/{self.isa}").seconds)
        rows += [
            [
                "call from C (eman_mesh_counts)",
                f"{self.calls.call:.0f} ns",
                f"{CALL_TARGET} ns",
                "met" if self.calls.call <= CALL_TARGET else "missed",
            ],
            [
                "labels of 400 vertices in C, one thread",
                f"{ratio:.3f} × Go",
                f"{C_TARGET} × Go",
                "met" if ratio <= C_TARGET else "missed",
            ],
        ]
        return Table("Memory above the loaded library, error, and calls", ["what", "ours", "target", "verdict"], rows)

    def _growths(self, preset: str) -> list[Table]:
        return [
            self._growth_table(f"Growth of {preset}, {what} a vertex, two threads, 16 classes", preset, part, scale)
            for what, part, scale in (("nanoseconds", 0, 1e9), ("peak bytes", 1, 1))
        ]

    def _growth_table(self, title: str, preset: str, part: int, scale: float) -> Table:
        growth, rows = self.growth[preset], []
        stages = [stage for stage in growth[0] if stage != "vertices"]
        for found in growth:
            each = scale / found["vertices"][0]
            rows.append(
                [str(found["vertices"][0]), *(f"{found[s][part] * each:.0f}" if s in found else "" for s in stages)]
            )
        rows.append(["slope", *(self._slope(growth, stage, part) for stage in stages)])
        return Table(
            title,
            ["vertices", *stages],
            rows,
            "The slope is the power of the number of vertices by which the whole grows, over the last four sizes.",
        )

    def _slope(self, growth: list[dict], stage: str, part: int) -> str:
        points = [(f["vertices"][0], f[stage][part]) for f in growth[-4:] if stage in f]
        return f"{np.polyfit(*np.log(points).T, 1)[0]:.2f}" if len(points) > 1 else ""


def rounded(x: float) -> str:
    """Three digits, or all in front of the point."""
    return f"{x:.0f}" if x >= 100 else f"{x:.3g}"


def number(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell


def threads_header() -> list[str]:
    return [THREAD_NAMES[t].replace("_", " ") for t in THREADS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="about a minute: fewer rounds and sizes, no PyTorch")
    parser.add_argument("--name", default="latest", help="of the file that keeps the output of the Go benchmarks")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the tables there as well")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there as well")
    chosen = parser.parse_args()
    run = Run(chosen.quick, chosen.name)
    run.everything()
    tables = run.tables()
    print("\n".join(table.text() for table in tables))
    if chosen.json:
        chosen.json.write_text(json.dumps([table.json() for table in tables], indent=1, ensure_ascii=False) + "\n")
    if chosen.markdown:
        chosen.markdown.write_text("\n".join(table.markdown() for table in tables))


if __name__ == "__main__":
    main()
