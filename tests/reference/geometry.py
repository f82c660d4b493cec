"""Meshes: normals, neighbors, gauges, log map, parallel transport and input features (paper, sections 3 and 4).

Every function says one formula, vertex by vertex or edge by edge. Arrays:

    positions  (V, 3) float64, in the mesh's own unit of length
    faces      (F, 3) int, counter-clockwise seen from outside
    normals    (V, 3) unit vectors
    frames     (V, 3, 3), rows e1, e2, n: a positively oriented orthonormal basis at each vertex
    rings      list of V lists: the neighbors of each vertex
    edges      (E, 2) int, rows (p, q): the directed edge along which p receives from its neighbor q

Angles are in radians, in [-pi, pi].
"""

from typing import NamedTuple

import numpy as np

# Sine of the angle to the normal under which a vector has no direction in the tangent plane.
NO_DIRECTION = 2.0**-34

# Weighted face normals whose sum is this fraction of their weights cancel: what is left is rounding error.
NO_NORMAL = 1e-12

# Normals with 1 + <n_p, n_q> below this are opposite: the axis of their minimal rotation is rounding error.
OPPOSITE = 2.0**-44


# ---- Normals (section 3.1) -----------------------------------------------------------------------------------------


def face_normal_and_area(a, b, c):
    """Unit normal and area of the triangle a, b, c; a triangle without area has the normal 0."""
    cross = np.cross(b - a, c - a)
    length = np.linalg.norm(cross)
    return (cross / length if length > 0 else np.zeros(3)), length / 2


def corner_angle(a, b, c):
    """Angle at corner a of the triangle a, b, c; 0 where an edge at a has no length."""
    u, v = b - a, c - a
    return np.arctan2(np.linalg.norm(np.cross(u, v)), u @ v)


def vertex_normals(positions, faces, weighting="area"):
    """Weighted mean direction of the normals of the faces around each vertex, (V, 3).

    `area` is the paper's first equation; `angle` weighs a face by its angle at the vertex, as the authors' code does
    (through trimesh). Where the sum vanishes (no face, no area, or faces that cancel), see substitute_normal.
    """
    total = np.zeros((len(positions), 3))
    weight_sum = np.zeros(len(positions))
    for face in faces:
        for corner in range(3):
            p, q, s = np.roll(face, -corner)
            a, b, c = positions[p], positions[q], positions[s]
            normal, area = face_normal_and_area(a, b, c)
            weight = area if weighting == "area" else corner_angle(a, b, c)
            total[p] += weight * normal
            weight_sum[p] += weight
    rings = neighbor_rings(positions, faces)
    normals = np.empty_like(total)
    for p, n in enumerate(total):
        length = np.linalg.norm(n)
        defined = length > NO_NORMAL * weight_sum[p]
        normals[p] = n / length if defined else substitute_normal(positions, p, rings[p])
    return normals


def substitute_normal(positions, p, ring):
    """A normal where the faces give none: one that turns with the mesh as far as there is anything to turn with.

    The cross product of the first two independent directions to neighbors; else a perpendicular of their common line;
    else +z.
    """
    directions = [positions[q] - positions[p] for q in ring]
    directions = [d / np.linalg.norm(d) for d in directions]
    for d in directions[1:]:
        cross = np.cross(directions[0], d)
        if np.linalg.norm(cross) > 1e-6:
            return cross / np.linalg.norm(cross)
    return perpendicular(directions[0]) if directions else np.array([0.0, 0.0, 1.0])


def perpendicular(n):
    """The tangent part, normalised, of the coordinate axis that is farthest from n."""
    tangent = tangent_part(np.eye(3)[np.argmin(np.abs(n))], n)
    return tangent / np.linalg.norm(tangent)


# ---- Neighbors and gauges (section 3.1) ----------------------------------------------------------------------------


def neighbor_rings(positions, faces):
    """N_p of each vertex: all that share an edge with it, in either direction, ascending.

    An edge without length has no direction and makes no neighbor.
    """
    rings = [set() for _ in positions]
    for face in faces:
        for p, q in zip(face, np.roll(face, -1), strict=True):
            if np.any(positions[p] != positions[q]):
                rings[p].add(int(q))
                rings[q].add(int(p))
    return [sorted(ring) for ring in rings]


def directed_edges(rings):
    """The rings as rows (p, q), in the order of p and then of its ring: (E, 2)."""
    return np.array([(p, q) for p, ring in enumerate(rings) for q in ring], dtype=np.int64).reshape(-1, 2)


def tangent_part(v, n):
    """pi_p v = (I - n n^T) v."""
    return v - n * (n @ v)


def has_direction(tangent, v):
    """Whether the tangent part of v is long enough to have a direction."""
    return np.linalg.norm(tangent) > NO_DIRECTION * np.linalg.norm(v)


def frames(positions, normals, rings):
    """The gauge of the first neighbor: e1 along the tangent part of q - p, e2 = n x e1; (V, 3, 3).

    q is the first in p's ring that has a tangent part. Where none has (an isolated vertex), e1 is the perpendicular
    of n.
    """
    result = np.empty((len(positions), 3, 3))
    for p, ring in enumerate(rings):
        n = normals[p]
        e1 = perpendicular(n)
        for q in ring:
            d = positions[q] - positions[p]
            tangent = tangent_part(d, n)
            if has_direction(tangent, d):
                e1 = tangent_part(tangent / np.linalg.norm(tangent), n)  # again: rounding of a short one was magnified
                e1 /= np.linalg.norm(e1)
                break
        result[p] = e1, np.cross(n, e1), n
    return result


def rotate_frames(frames, angles):
    """The gauge change by g_p = angles[p]: each (e1, e2) turned counter-clockwise about n. Coordinates turn by -g."""
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    e1, e2, n = frames[:, 0], frames[:, 1], frames[:, 2]
    return np.stack([cos * e1 + sin * e2, cos * e2 - sin * e1, n], axis=1)


# ---- Log map and parallel transport (section 3.3) ------------------------------------------------------------------


def minimal_rotation(n_from, n_to, edge):
    """The rotation about n_from x n_to that takes n_from to n_to, by Rodrigues' formula; (3, 3).

    Between opposite normals, as over a sharp fold, it is the half-turn about the tangent line normal to the edge; where
    the edge has no direction either there is none, and the result is 0.
    """
    axis = np.cross(n_from, n_to)
    sin, cos = np.linalg.norm(axis), n_from @ n_to
    if 1 + cos <= OPPOSITE:
        tangent = tangent_part(edge, n_to)
        if not has_direction(tangent, edge):
            return np.zeros((3, 3))
        line = np.cross(n_to, tangent / np.linalg.norm(tangent))
        return 2 * np.outer(line, line) - np.eye(3)
    if sin == 0:
        return np.eye(3)
    x, y, z = axis / sin
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + sin * cross + (1 - cos) * cross @ cross


class EdgeGeometry(NamedTuple):
    """What the layers see of a mesh: E directed edges p <- q."""

    vertex_count: int
    center: np.ndarray  # (E,) p, which receives
    neighbor: np.ndarray  # (E,) q, which sends
    length: np.ndarray  # (E,) |q - p|, in space
    theta: np.ndarray  # (E,) direction of q in p's gauge
    directed: np.ndarray  # (E,) bool: theta has a meaning (q - p is not along the normal)
    transport: np.ndarray  # (E,) g_{q->p}: rho(g) f_q are coordinates in p's gauge


def edge_geometry(positions, frames, edges):
    """Length, theta_pq and g_{q->p} of each directed edge.

    The paper's equation for g has the opposite sign of what its own rho(g_{q->p}) f_q needs; this is the sign needed:
    the angle in p's gauge of q's first axis after the rotation that takes n_q to n_p.
    """
    count = len(edges)
    length, theta, transport = np.zeros(count), np.zeros(count), np.zeros(count)
    directed = np.zeros(count, dtype=bool)
    for e, (p, q) in enumerate(edges):
        e1, e2, n = frames[p]
        d = positions[q] - positions[p]
        length[e] = np.linalg.norm(d)
        directed[e] = has_direction(tangent_part(d, n), d)
        theta[e] = np.arctan2(e2 @ d, e1 @ d) if directed[e] else 0
        moved = minimal_rotation(frames[q][2], n, d) @ frames[q][0]
        transport[e] = np.arctan2(moved @ e2, moved @ e1)
    return EdgeGeometry(len(positions), edges[:, 0], edges[:, 1], length, theta, directed, transport)


# ---- Input features (section 4, appendix on GET) -------------------------------------------------------------------


def reltan(positions, normals, rings, powers=(0.5, 0.7), degree_power=1.5, constant=1.0):
    """Relative tangential features v_p(r) of section 4, one tangent vector in space per power: (V, P, 3).

    0 for a vertex without neighbors. Dimensionless. The paper divides by N_p^{3/2}; the authors' code has the exponent
    and a further divisor as options.
    """
    result = np.zeros((len(positions), len(powers), 3))
    for p, ring in enumerate(rings):
        for k, r in enumerate(powers):
            total = sum(np.linalg.norm(positions[q] - positions[p]) ** (r - 1) for q in ring)
            for q in ring:
                d = positions[q] - positions[p]
                length = np.linalg.norm(d)
                share = length ** (r - 1) / total
                result[p, k] += tangent_part(d / length, normals[p]) / share
            if ring:
                result[p, k] /= constant * len(ring) ** degree_power
    return result


def tangent_coordinates(vectors, frames):
    """Coordinates (<v, e1>, <v, e2>) of each vertex's vectors: (V, P, 3) -> (V, P, 2)."""
    return np.einsum("vpx,vax->vpa", vectors, frames[:, :2])


def reltan_features(positions, frames, rings, powers=(0.5, 0.7), degree_power=1.5, constant=1.0):
    """RelTan as network input: a channel of rho0 + rho1 per power, its rho0 part zero; (V, P, 3)."""
    vectors = reltan(positions, frames[:, 2], rings, powers, degree_power, constant)
    tangent = tangent_coordinates(vectors, frames)
    return np.concatenate([np.zeros_like(tangent[:, :, :1]), tangent], axis=2)


def get_features(positions, frames, rings):
    """GET: one channel of rho0 + rho1, (<p, n>, <p, e1>, <p, e2>); 0 without neighbors; (V, 1, 3)."""
    coordinates = np.einsum("vax,vx->va", frames, positions)[:, None, [2, 0, 1]]
    return np.where([[[len(ring) > 0]] for ring in rings], coordinates, 0)


def xyz_features(positions):
    """The raw positions as three channels of rho0; (V, 3, 1)."""
    return np.asarray(positions, dtype=float)[:, :, None]
