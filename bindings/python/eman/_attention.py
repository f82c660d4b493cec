"""The attention around a vertex, drawn in its tangent plane by the log map (§3.3, §6 of the paper)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eman._scene import INK, PAPER, FloatArray, IntArray

_FAINT = "#c9c6bd"


class Patch(NamedTuple):
    """What lies around a vertex, flat: the vertex itself is at the origin and its e1 points to the right."""

    neighbors: FloatArray  # (N, 2)
    weights: FloatArray  # (N,)
    triangles: FloatArray  # (T, 3, 2): faces that have the vertex or a neighbour of it


def unfold(mesh: Any, weights: FloatArray, vertex: int) -> Patch:
    """The log map of what lies around a vertex: directions as in the tangent plane, distances as in space."""
    points, faces, (offsets, indices) = mesh.vertices, mesh.faces, mesh.neighbors
    around = slice(int(offsets[vertex]), int(offsets[vertex + 1]))
    ring: IntArray = indices[around].astype(np.int64)
    near = faces[np.isin(faces, [vertex, *ring]).any(axis=1)]
    offset = points - points[vertex]
    flat = offset @ mesh.frames[vertex][:2].T
    length, shadow = np.linalg.norm(offset, axis=1), np.linalg.norm(flat, axis=1)
    flat *= (length / np.maximum(shadow, 1e-300))[:, None]
    return Patch(flat[ring], weights[around], flat[near])


def draw(axes: Any, patch: Patch, mappable: Any) -> None:
    """Neighbours and the arrows by which their features come, in the colours of the coefficients."""
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import FancyArrowPatch

    reach = 1.3 * float(np.linalg.norm(patch.neighbors, axis=1).max())
    axes.add_collection(PolyCollection(list(patch.triangles), facecolors="#f1efe8", edgecolors=_FAINT, linewidths=0.8))
    axes.plot([0, reach], [0, 0], color=INK, linewidth=0.9, linestyle=(0, (2, 3)), zorder=2)
    axes.annotate("$e_1$", (0.97 * reach, 0), (0, 4), textcoords="offset points", color=INK, fontsize=12, ha="right")
    for place, weight, colour in zip(patch.neighbors, patch.weights, mappable.to_rgba(patch.weights)):
        broad = 1 + 3 * min(float(weight), 4.0)
        style = f"simple,head_width={broad + 6:.2f},head_length={broad + 5:.2f},tail_width={broad:.2f}"
        arrow = {"arrowstyle": style, "shrinkA": 15, "shrinkB": 9, "facecolor": colour, "edgecolor": INK}
        axes.add_patch(FancyArrowPatch(place, (0, 0), linewidth=0.5, zorder=3, **arrow))
        round_ = {"boxstyle": "circle,pad=0.25", "facecolor": PAPER, "edgecolor": colour, "linewidth": 2.2}
        axes.text(*place, f"{weight:.2f}", color=INK, fontsize=9, ha="center", va="center", bbox=round_, zorder=4)
    axes.plot(0, 0, "o", color=INK, markersize=10, zorder=5)
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)
    axes.set_aspect("equal")
