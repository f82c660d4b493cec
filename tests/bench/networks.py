"""Time and memory of the networks through the C interface, and how they grow.

usage: networks.py [--quick]

Times are the smallest of several runs. The peer is plain numpy applying the paper's kernels edge by edge
(tests/reference) to the same network and mesh in the same run. The machine may be shared: compare ratios.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.geometry import fastest, sphere

import eman
from reference import networks


def forward(preset: str, classes: int, vertices: int) -> None:
    positions, faces = sphere(vertices)
    model_arguments = {"classes": classes, "seed": 0}
    times = {}
    for threads in (1, 2):
        context = eman.Context(threads=threads)
        mesh = eman.Mesh(positions, faces, context=context)
        model = eman.Model(preset, context=context, **model_arguments)
        model.predict(mesh)
        before = context.memory_used
        times[threads] = fastest(lambda model=model, mesh=mesh: model.predict(mesh), seconds=1.0)
        peak = context.memory_peak
    start = time.perf_counter()
    networks.run(model.spec, model.parameters(), positions, faces)
    peer = time.perf_counter() - start
    print(
        f"{preset:>8} {len(positions):>9} {classes:>8} {1e3 * times[1]:>10.1f} {1e3 * times[2]:>10.1f}"
        f" {peer / times[1]:>10.0f} {peak / 1e6:>10.0f} {before / 1e6:>10.0f}",
        flush=True,
    )


def growth(size: int) -> None:
    positions, faces = sphere(size)
    context = eman.Context(threads=2)
    model = eman.Model("default", classes=16, context=context)
    mesh = eman.Mesh(positions, faces, context=context)
    times = [
        fastest(lambda: eman.Mesh(positions, faces, context=context), 0.2),
        fastest(lambda: mesh.update(positions), 0.2),
        fastest(lambda: mesh.reltan((0.5, 0.7)), 0.2),
        fastest(lambda: model.predict(mesh), 0.2),
    ]
    each = " ".join(f"{1e9 * t / len(positions):>8.0f}" for t in times)
    print(f"{len(positions):>9} {each} {context.memory_peak / len(positions):>8.0f}", flush=True)


def main(quick: bool) -> None:
    information = eman.build_info()
    print(f"kernels: {information['instruction_set']}, processors: {information['threads']}")
    print(f"{'':>8} {'':>9} {'':>8} {'ms,':>10} {'ms,':>10} {'numpy is':>10} {'peak MB':>10} {'kept MB':>10}")
    print(
        f"{'preset':>8} {'vertices':>9} {'classes':>8} {'1 thread':>10} {'2 threads':>10} {'slower by':>10}"
        f" {'at work':>10} {'after':>10}"
    )
    for preset, classes in (("default", 16), ("paper", 16), ("authors", 16), ("authors", 6890)):
        forward(preset, classes, 1700 if quick else 6890)
    print("\nEMAN, 16 classes: nanoseconds and bytes a vertex, two threads")
    print(f"{'vertices':>9} {'build':>8} {'update':>8} {'RelTan':>8} {'labels':>8} {'bytes':>8}")
    for size in [2_000, 16_000] if quick else [2_000, 16_000, 128_000, 1_000_000]:
        growth(size)


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
