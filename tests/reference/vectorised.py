"""The formulas of geometry.py as whole-array numpy: what a competent numpy user would write, as a yardstick of speed.

Nothing here is needed to prove anything; tests hold it to geometry.py so that the yardstick measures the same thing.
Arrays as in geometry.py, but a ring is a slice of compressed rows: the neighbors of p, ascending, are
`indices[offsets[p]:offsets[p + 1]]`.
"""

import numpy as np

from .geometry import NO_DIRECTION, NO_NORMAL, OPPOSITE, substitute_normal


def neighbors(positions, faces):
    """Offsets (V + 1,) and indices (E,) of the neighbor sets, both int64."""
    count = len(positions)
    p = faces.astype(np.int64).ravel()
    q = np.roll(faces, -1, axis=1).astype(np.int64).ravel()
    apart = np.any(positions[p] != positions[q], axis=1)
    p, q = p[apart], q[apart]
    keys = np.unique(np.concatenate([p * count + q, q * count + p]))
    center, indices = np.divmod(keys, max(count, 1))
    offsets = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(center, minlength=count), out=offsets[1:])
    return offsets, indices


def _scatter(values, index, count):
    """Sum of the rows of values (N, 3) that have the same index: (count, 3)."""
    return np.stack([np.bincount(index, values[:, axis], minlength=count) for axis in range(3)], axis=1)


def vertex_normals(positions, faces, offsets, indices):
    """Area-weighted unit normals, (V, 3)."""
    a, b, c = (positions[faces[:, corner]] for corner in range(3))
    cross = np.cross(b - a, c - a)
    total = sum(_scatter(cross, faces[:, corner], len(positions)) for corner in range(3))
    twice_area = np.repeat(np.linalg.norm(cross, axis=1), 3)
    weight = np.bincount(faces.ravel(), twice_area, minlength=len(positions))
    length = np.linalg.norm(total, axis=1)
    good = length > NO_NORMAL * weight
    normals = total / np.where(good, length, 1)[:, None]
    for p in np.flatnonzero(~good):
        normals[p] = substitute_normal(positions, p, indices[offsets[p] : offsets[p + 1]])
    return normals


def frames(positions, normals, offsets, indices):
    """The gauge of the first usable neighbor, (V, 3, 3)."""
    center = np.repeat(np.arange(len(positions)), np.diff(offsets))
    d = positions[indices] - positions[center]
    tangent = d - normals[center] * np.sum(normals[center] * d, axis=1, keepdims=True)
    usable = np.linalg.norm(tangent, axis=1) > NO_DIRECTION * np.linalg.norm(d, axis=1)
    e1 = np.eye(3)[np.argmin(np.abs(normals), axis=1)]
    e1 -= normals * np.sum(normals * e1, axis=1, keepdims=True)
    first_center, first_edge = np.unique(center[usable], return_index=True)
    e1[first_center] = tangent[usable][first_edge]
    e1 /= np.linalg.norm(e1, axis=1, keepdims=True)
    return np.stack([e1, np.cross(normals, e1), normals], axis=1)


def edge_angles(positions, frames, offsets, indices):
    """theta_pq and g_{q->p} of each directed edge, in the order of indices: two arrays (E,)."""
    center = np.repeat(np.arange(len(positions)), np.diff(offsets))
    d = positions[indices] - positions[center]
    e1, e2, n = frames[center, 0], frames[center, 1], frames[center, 2]
    x, y = np.sum(e1 * d, axis=1), np.sum(e2 * d, axis=1)
    directed = np.hypot(x, y) > NO_DIRECTION * np.linalg.norm(d, axis=1)
    theta = np.where(directed, np.arctan2(y, x), 0)

    # For v orthogonal to n_q the minimal rotation is R v = v - (n_q + n_p) <n_p, v> / (1 + <n_q, n_p>).
    from_e1, from_n = frames[indices, 0], frames[indices, 2]
    denominator = 1 + np.sum(from_n * n, axis=1)
    opposite = denominator <= OPPOSITE
    factor = np.where(opposite, 0, np.sum(n * from_e1, axis=1) / np.where(opposite, 1, denominator))
    moved = from_e1 - (from_n + n) * factor[:, None]
    # Opposite normals: the half-turn about the tangent line normal to the edge.
    line = (np.cos(theta)[:, None] * e2 - np.sin(theta)[:, None] * e1)[opposite]
    moved[opposite] = 2 * line * np.sum(line * from_e1[opposite], axis=1)[:, None] - from_e1[opposite]
    return theta, np.arctan2(np.sum(moved * e2, axis=1), np.sum(moved * e1, axis=1))


def reltan(positions, frames, offsets, indices, powers=(0.5, 0.7)):
    """RelTan in tangent coordinates, (V, P, 2): N^{-3/2} (sum d |d|^-r) (sum |d|^{r-1}), projected."""
    count = len(positions)
    degree = np.diff(offsets)
    center = np.repeat(np.arange(count), degree)
    d = positions[indices] - positions[center]
    length = np.linalg.norm(d, axis=1)
    scale = np.maximum(degree, 1) ** -1.5
    result = np.empty((count, len(powers), 2))
    for k, r in enumerate(powers):
        direction = _scatter(d * (length**-r)[:, None], center, count)
        total = np.bincount(center, length ** (r - 1), minlength=count) * scale
        result[:, k] = np.einsum("vax,vx->va", frames[:, :2], direction) * total[:, None]
    return result
