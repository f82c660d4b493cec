"""The time of a call on a shared machine: the smallest of several."""

from __future__ import annotations

import time
from typing import Callable


def fastest(call: Callable[[], object], seconds: float = 0.4, least: int = 2) -> float:
    """The smallest time of a call, in seconds, over at least so many runs."""
    best, end, runs = float("inf"), time.perf_counter() + seconds, 0
    while runs < least or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
        runs += 1
    return best
