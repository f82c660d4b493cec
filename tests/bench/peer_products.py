"""The matrix products of the networks with numpy's OpenBLAS, as JSON: its kernels, and seconds of each product.

usage: peer_products.py M,K,N ...

OpenBLAS reads OPENBLAS_CORETYPE and OPENBLAS_NUM_THREADS when it is loaded, so each setting is a process of its own.
"""

from __future__ import annotations

import ctypes
import json
import re
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.timing import fastest


def kernels() -> str:
    """Which processor's kernels the OpenBLAS that numpy has loaded takes."""
    maps = Path("/proc/self/maps").read_text()
    for path in set(re.findall(r"\S*openblas\S*\.so\S*", maps)):
        library = ctypes.CDLL(path)
        for name in ("scipy_openblas_get_corename64_", "openblas_get_corename"):
            if hasattr(library, name):
                function = getattr(library, name)
                function.restype = ctypes.c_char_p
                return function().decode()
    return "unknown"


def seconds(m: int, k: int, n: int) -> float:
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape, np.float32) for shape in ((m, k), (k, n)))
    c = np.empty((m, n), np.float32)
    return fastest(lambda: np.matmul(a, b, out=c), 0.1)


if __name__ == "__main__":
    np.zeros((2, 2)) @ np.zeros((2, 2))  # loads OpenBLAS
    shapes = {s: seconds(*map(int, s.split(","))) for s in sys.argv[1:]}
    print(json.dumps({"kernels": kernels(), "seconds": shapes}))
