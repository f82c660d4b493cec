"""What colours mean: a scale of numbers with its bar, labels with their legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, Optional

import numpy as np

from eman._scene import INK, FloatArray, IntArray

_MISSING = 0.72  # grey
_SHOWN = 32  # labels that the legend has room for


def bar(mappable: Any, open_ends: str, label: str) -> Callable[[Any], None]:
    """What draws a colour bar into a figure."""

    def draw(figure: Any) -> None:
        from matplotlib.colors import LogNorm
        from matplotlib.ticker import FuncFormatter

        drawn = figure.colorbar(mappable, cax=figure.add_axes((0.875, 0.16, 0.022, 0.68)), extend=open_ends)
        drawn.set_label(label, color=INK, fontsize=11, labelpad=8)
        drawn.ax.tick_params(colors=INK, which="both", labelsize=9)
        low, high = mappable.get_clim()
        if isinstance(mappable.norm, LogNorm) and low >= 1e-4 and high <= 1e5:
            drawn.ax.yaxis.set_major_formatter(FuncFormatter(_plain))
            drawn.ax.yaxis.set_minor_formatter(FuncFormatter(_plain))
        drawn.outline.set_visible(False)

    return draw


def legend(parts: IntArray, colours: FloatArray, names: Sequence[str]) -> Callable[[Any], None]:
    """What draws a legend of the labels that occur, each once, into a figure; if they are many, of the largest."""

    def draw(figure: Any) -> None:
        from matplotlib.patches import Patch

        found, first, counts = np.unique(parts, return_index=True, return_counts=True)
        largest = np.sort(np.argsort(-counts, kind="stable")[:_SHOWN])
        entries = [
            Patch(color=colours[first[i]], label="unknown" if found[i] < 0 else names[found[i]] if names else found[i])
            for i in largest
        ]
        if len(found) > len(entries):
            entries.append(Patch(color="none", label=f"and {len(found) - len(entries)} more"))
        place = {"loc": "center right", "bbox_to_anchor": (0.995, 0.5), "handlelength": 1.2}
        figure.legend(handles=entries, frameon=False, labelcolor=INK, fontsize=8.5, **place)

    return draw


def of_labels(parts: IntArray) -> FloatArray:
    """Colours (V, 3) in 0..1: each label's own, whatever others there are."""
    from matplotlib import colormaps
    from matplotlib.colors import hsv_to_rgb

    found, numbers = np.unique(parts, return_inverse=True)
    pairs = colormaps["tab20"](np.arange(20))[:, :3]
    palette = np.concatenate([pairs[::2], pairs[1::2]])  # the strong colours first
    turn = found * 0.6180339887  # beyond them hues that are far from each other
    others = hsv_to_rgb(np.stack([turn % 1, 0.45 + 0.4 * (turn * 7 % 1), 0.95 - 0.4 * (turn * 3 % 1)], axis=1))
    own = np.where((found < len(palette))[:, None], palette[np.minimum(found, len(palette) - 1)], others)
    own[found < 0] = _MISSING
    return np.asarray(own[numbers.reshape(-1)], np.float64)


def of_values(
    scalars: FloatArray, colormap: Optional[str], limits: Optional[tuple[float, float]], log: Optional[bool]
) -> tuple[FloatArray, Any, str]:
    """Colours (V, 3) in 0..1, and what the colour bar needs: a ScalarMappable and its open ends."""
    mappable, extend = scale(scalars, colormap, limits, log)
    colours = np.asarray(mappable.to_rgba(scalars), np.float64)[:, :3]
    colours[~np.isfinite(scalars)] = _MISSING
    return colours, mappable, extend


def _plain(value: float, _: Any) -> str:
    """Tick text of a logarithmic scale: only 1, 2 and 5 times a power of ten, without exponents."""
    digits = f"{value:.0e}"[0]
    return f"{value:g}" if digits in "125" else ""


def scale(
    scalars: FloatArray, colormap: Optional[str], limits: Optional[tuple[float, float]], log: Optional[bool]
) -> tuple[Any, str]:
    """A matplotlib ScalarMappable and which ends of the colour bar go on beyond it."""
    import matplotlib
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm, Normalize

    finite = scalars[np.isfinite(scalars)]
    if len(finite) == 0:
        finite = np.zeros(1)
    positive = finite[finite > 0]
    signed = bool((finite < 0).any() and len(positive))
    if limits is None:
        low, high = (float(q) for q in np.percentile(finite, (1, 99)))
        if log is None:
            log = not (finite < 0).any() and len(positive) > 0.9 * len(finite) and low > 0 and high > 30 * low
        if log and not low > 0:
            low = float(np.percentile(positive, 1)) if len(positive) else 1.0
            high = max(high, low)
        if signed and not log:
            high = max(abs(low), abs(high))
            low = -high
    else:
        low, high = limits
    if not high > low:
        high = low + (abs(low) * 1e-6 or 1.0)
    chosen = matplotlib.colormaps[colormap or ("RdBu_r" if signed and not log else "viridis")]
    norm = LogNorm(low, high) if log else Normalize(low, high)
    below, above = bool((finite < low).any()), bool((finite > high).any())
    extend = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}
    mappable = ScalarMappable(norm, chosen)
    mappable.set_array(finite)
    return mappable, extend[below, above]
