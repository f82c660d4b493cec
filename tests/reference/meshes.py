"""Small meshes for tests, sound and defective ones.

Each function returns a Mesh: positions (V, 3) float64, faces (F, 3) int32, and the defects that were planted, as
finding -> what the doctor should list (the findings of doctor.py; those not named should be empty).
"""

from typing import NamedTuple

import numpy as np


class Mesh(NamedTuple):
    positions: np.ndarray  # (V, 3) float64
    faces: np.ndarray  # (F, 3) int32
    defects: dict  # finding -> sorted list


def _mesh(positions, faces, **defects):
    positions = np.asarray(positions, dtype=np.float64).reshape(-1, 3)
    return Mesh(positions, np.asarray(faces, dtype=np.int32).reshape(-1, 3), defects)


# ---- Closed surfaces -----------------------------------------------------------------------------------------------


def tetrahedron():
    """The regular tetrahedron."""
    return _mesh([(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)], [(0, 1, 2), (0, 2, 3), (0, 3, 1), (1, 3, 2)])


def icosphere(subdivisions=2):
    """The unit icosahedron, each face split in four `subdivisions` times: 10 4^s + 2 vertices."""
    golden = (1 + np.sqrt(5)) / 2
    points = [(s, t * golden, 0) for s in (-1, 1) for t in (-1, 1)]
    positions = [np.roll(point, shift) for shift in range(3) for point in points]
    positions = [p / np.linalg.norm(p) for p in positions]
    faces = _convex_hull_faces(np.array(positions))
    for _ in range(subdivisions):
        middle, split = {}, []
        for a, b, c in faces:
            ab, bc, ca = (_midpoint(edge, positions, middle) for edge in ((a, b), (b, c), (c, a)))
            split += [(a, ab, ca), (b, bc, ab), (c, ca, bc), (ab, bc, ca)]
        faces = split
    return _mesh(positions, faces)


def _convex_hull_faces(points):
    """Outward triangles of the icosahedron: the triples of vertices that are all one edge length apart."""
    edge = np.sort(np.linalg.norm(points - points[0], axis=1))[1]
    close = np.linalg.norm(points[:, None] - points, axis=2) < 1.1 * edge
    count = len(points)
    triples = [
        (a, b, c) for a in range(count) for b in range(a) for c in range(b) if close[a, b] * close[b, c] * close[c, a]
    ]
    return [t if np.linalg.det(points[list(t)]) > 0 else t[::-1] for t in triples]


def _midpoint(edge, positions, known):
    """Index of the midpoint of an edge on the unit sphere, made where it is not known."""
    key = frozenset(edge)
    if key not in known:
        known[key] = len(positions)
        middle = positions[edge[0]] + positions[edge[1]]
        positions.append(middle / np.linalg.norm(middle))
    return known[key]


def jittered_icosphere(subdivisions=2, jitter=0.1, seed=0):
    """An icosphere whose vertices are moved at random by up to `jitter` mean edge lengths along each axis."""
    mesh = icosphere(subdivisions)
    a, b = mesh.positions[mesh.faces[:, 0]], mesh.positions[mesh.faces[:, 1]]
    step = jitter * np.linalg.norm(a - b, axis=1).mean()
    return mesh._replace(positions=mesh.positions + random(seed).uniform(-step, step, mesh.positions.shape))


def torus(around=12, across=8, radius=1.0, tube=0.4):
    """A torus of around * across vertices about the z axis."""
    u = 2 * np.pi * np.arange(around)[:, None] / around
    v = 2 * np.pi * np.arange(across)[None, :] / across
    ring = radius + tube * np.cos(v)
    positions = np.stack([ring * np.cos(u), ring * np.sin(u), tube * np.sin(v) + 0 * u], axis=2)
    faces = []
    for i in range(around):
        for j in range(across):
            a, b = i * across + j, (i + 1) % around * across + j
            d, c = i * across + (j + 1) % across, (i + 1) % around * across + (j + 1) % across
            faces += [(a, b, c), (a, c, d)]
    return _mesh(positions, faces)


# ---- Surfaces with a boundary --------------------------------------------------------------------------------------


def triangle():
    """One triangle."""
    return _mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)], boundary_edges=[(0, 1), (0, 2), (1, 2)])


def open_grid(rows=6, columns=7, jitter=0.2, seed=0):
    """A grid of rows * columns vertices in the xy plane, one unit apart, moved at random along all three axes."""
    positions = np.array([(i, j, 0) for i in range(rows) for j in range(columns)], dtype=float)
    positions += random(seed).uniform(-jitter, jitter, positions.shape)
    faces = []
    for i in range(rows - 1):
        for j in range(columns - 1):
            a, b, c, d = i * columns + j, (i + 1) * columns + j, (i + 1) * columns + j + 1, i * columns + j + 1
            faces += [(a, b, c), (a, c, d)] if (i + j) % 2 else [(a, b, d), (b, c, d)]
    last = (rows - 1) * columns
    rim = [(j, j + 1) for j in range(columns - 1)] + [(last + j, last + j + 1) for j in range(columns - 1)]
    rim += [(i * columns, (i + 1) * columns) for i in range(rows - 1)]
    rim += [(i * columns + columns - 1, (i + 1) * columns + columns - 1) for i in range(rows - 1)]
    return _mesh(positions, faces, boundary_edges=sorted(rim))


def fan(degree, height=0.3):
    """Vertex 0 with `degree` neighbors around it, a little below: a closed umbrella of `degree` faces."""
    angle = 2 * np.pi * np.arange(degree) / degree
    rim = np.stack([np.cos(angle), np.sin(angle), np.full(degree, -height)], axis=1)
    spokes = 1 + np.arange(degree)
    following = 1 + (np.arange(degree) + 1) % degree
    faces = np.stack([np.zeros(degree, dtype=int), spokes, following], axis=1)
    edges = sorted((int(min(a, b)), int(max(a, b))) for a, b in zip(spokes, following, strict=True))
    return _mesh(np.vstack([np.zeros((1, 3)), rim]), faces, boundary_edges=edges)


def strip(count):
    """A strip of `count` triangles in the xy plane."""
    positions = [(i / 2, i % 2, 0) for i in range(count + 2)]
    faces = [(i, i + 1, i + 2) if i % 2 else (i, i + 2, i + 1) for i in range(count)]
    boundary = [(0, 1), (count, count + 1)] + [(i, i + 2) for i in range(count)]
    return _mesh(positions, faces, boundary_edges=sorted(boundary))


def moebius(count=12):
    """A Moebius strip of 2 * count faces: not orientable, so one seam is inconsistent, and on it normals cancel."""
    positions, faces = [], []
    for i in range(count):
        angle = 2 * np.pi * i / count
        for side in (-0.3, 0.3):
            reach = 1 + side * np.cos(angle / 2)
            positions.append((reach * np.cos(angle), reach * np.sin(angle), side * np.sin(angle / 2)))
    for i in range(count):
        a, b = 2 * i, 2 * i + 1
        c, d = (a + 2, b + 2) if i < count - 1 else (1, 0)
        faces += [(a, c, b), (b, c, d)]
    boundary = [(i, i + 2) for i in range(2 * count - 2)] + [(1, 2 * count - 2), (0, 2 * count - 1)]
    return _mesh(
        positions, faces, boundary_edges=sorted(boundary), inconsistent_edges=[(0, 1)], zero_normal_vertices=[0]
    )


def planar_delaunay(count=40, seed=0):
    """Random points in the unit square, triangulated by the empty-circle rule; z = 0.

    Every triple whose circumscribed circle holds no other point is a face: O(V^4), for some tens of points.
    """
    points = random(seed).uniform(0, 1, (count, 2))
    faces = []
    for a in range(count):
        for b in range(a + 1, count):
            for c in range(b + 1, count):
                corners = points[[a, b, c]]
                turn = np.linalg.det(corners[1:] - corners[0])
                face = (a, b, c) if turn > 0 else (a, c, b)
                if not _in_circle(points[list(face)], np.delete(points, face, axis=0)).any():
                    faces.append(face)
    seen = [tuple(sorted((f[i], f[i - 1]))) for f in faces for i in range(3)]
    boundary = sorted(edge for edge in set(seen) if seen.count(edge) == 1)
    return _mesh(np.column_stack([points, np.zeros(count)]), faces, boundary_edges=boundary)


def _in_circle(corners, points):
    """Which points lie inside the circle through three counter-clockwise corners."""
    d = corners[None] - points[:, None]
    return np.linalg.det(np.concatenate([d, np.sum(d**2, axis=2, keepdims=True)], axis=2)) > 0


def needles(aspect=1e-6, count=6):
    """A strip of `count` triangles, flattened until each is `aspect` as high as it is long."""
    mesh = strip(count)
    return mesh._replace(
        positions=mesh.positions * (1, aspect, 1), defects=mesh.defects | {"needle_faces": list(range(count))}
    )


# ---- Defects -------------------------------------------------------------------------------------------------------


def two_components():
    """Two tetrahedra that have nothing in common."""
    one = tetrahedron()
    return _mesh(np.vstack([one.positions, one.positions + (5, 0, 0)]), np.vstack([one.faces, one.faces + 4]))


def book(pages=3):
    """`pages` triangles on the edge (0, 1)."""
    angle = np.pi * np.arange(pages) / pages
    tips = np.stack([np.cos(angle), np.sin(angle), np.full(pages, 0.5)], axis=1)
    faces = [(0, 1, 2 + i) for i in range(pages)]
    boundary = [(0, 2 + i) for i in range(pages)] + [(1, 2 + i) for i in range(pages)]
    defects = {"non_manifold_edges": [(0, 1)]} if pages > 2 else {"inconsistent_edges": [(0, 1)]}
    return _mesh(np.vstack([[(0, 0, 0), (0, 0, 1)], tips]), faces, boundary_edges=sorted(boundary), **defects)


def bow_tie():
    """A tetrahedron and its reflection in vertex 0, at which the normals of the two cancel."""
    one = tetrahedron()
    positions = np.vstack([one.positions, 2 * one.positions[0] - one.positions[1:]])
    mirrored = np.where(one.faces == 0, 0, one.faces + 3)[:, ::-1]
    return _mesh(positions, np.vstack([one.faces, mirrored]), non_manifold_vertices=[0], zero_normal_vertices=[0])


def isolated_vertices(count=2):
    """A tetrahedron and `count` vertices in no face, the first of them numbered 0."""
    one = tetrahedron()
    alone = 9 + np.arange(3 * count).reshape(count, 3)
    positions = np.vstack([alone[:1], one.positions, alone[1:]])
    return _mesh(positions, one.faces + 1, isolated_vertices=[0, *range(5, 4 + count)])


def flipped_face():
    """An icosahedron with face 3 turned inside out."""
    mesh = icosphere(0)
    faces = mesh.faces.copy()
    faces[3] = faces[3][::-1]
    return _mesh(mesh.positions, faces, inconsistent_edges=_edges(faces[3]))


def duplicate_face():
    """An icosahedron with face 4 once more at the end, its corners rotated."""
    mesh = icosphere(0)
    faces = np.vstack([mesh.faces, np.roll(mesh.faces[4], 1)])
    return _mesh(mesh.positions, faces, duplicate_faces=[len(mesh.faces)], non_manifold_edges=_edges(faces[4]))


def zero_area_face():
    """A strip of four triangles whose vertex 3 has been moved to the middle of the edge (1, 2)."""
    mesh = strip(4)
    positions = mesh.positions.copy()
    positions[3] = (positions[1] + positions[2]) / 2
    return _mesh(positions, mesh.faces, zero_area_faces=[1], boundary_edges=mesh.defects["boundary_edges"])


def zero_length_edge():
    """A grid in which vertex 16 lies at the position of its neighbor 15: the faces that hold both have no area."""
    mesh = open_grid(5, 5)
    positions = mesh.positions.copy()
    positions[16] = positions[15]
    both = [i for i, face in enumerate(mesh.faces.tolist()) if {15, 16} <= set(face)]
    return _mesh(
        positions,
        mesh.faces,
        zero_length_edges=[(15, 16)],
        coincident_vertices=[16],
        zero_area_faces=both,
        **mesh.defects,
    )


def folded_sheet():
    """Two triangles back to back: the normals of all three vertices vanish."""
    mesh = triangle()
    return _mesh(mesh.positions, [(0, 1, 2), (2, 1, 0)], duplicate_faces=[1], zero_normal_vertices=[0, 1, 2])


def _edges(face):
    """The three edges of a face as sorted pairs."""
    a, b, c = sorted(int(v) for v in face)
    return [(a, b), (a, c), (b, c)]


def random(seed):
    """A seeded generator."""
    return np.random.default_rng(seed)


SOUND = {
    "tetrahedron": tetrahedron,
    "icosphere": icosphere,
    "jittered_icosphere": jittered_icosphere,
    "torus": torus,
    "open_grid": open_grid,
    "fan": lambda: fan(17),
    "strip": lambda: strip(5),
    "planar_delaunay": planar_delaunay,
    "triangle": triangle,
    "two_components": two_components,
}
"""Meshes without a defect other than a boundary, by name."""

DEFECTIVE = {
    "needles": needles,
    "book": book,
    "bow_tie": bow_tie,
    "moebius": moebius,
    "isolated_vertices": isolated_vertices,
    "flipped_face": flipped_face,
    "duplicate_face": duplicate_face,
    "zero_area_face": zero_area_face,
    "zero_length_edge": zero_length_edge,
    "folded_sheet": folded_sheet,
}
"""Meshes with planted defects, by name."""
