"""What the mesh doctor should find, in plain loops. Edges are pairs (a, b) of vertices with a < b."""

from collections import Counter, defaultdict

import numpy as np

# A triangle whose height is this fraction of its longest edge has no area.
NO_AREA = 1e-12


def report(positions, faces):
    """Finding -> sorted list of what it concerns. Findings:

    isolated_vertices       in no face
    zero_area_faces         height below 1e-12 of the longest edge
    duplicate_faces         the same three vertices as an earlier face, in any order
    zero_length_edges       both ends at the same position
    boundary_edges          in one face
    nonmanifold_edges       in more than two faces
    inconsistent_edges      in two faces that run along it in the same direction
    nonmanifold_vertices    whose faces form more than one fan (faces are connected where they share an edge at it)
    """
    findings = defaultdict(list)
    directed, first_seen = Counter(), set()
    around = defaultdict(list)
    for index, face in enumerate(faces.tolist()):
        a, b, c = positions[face]
        longest = max(np.linalg.norm(b - a), np.linalg.norm(c - b), np.linalg.norm(a - c))
        if np.linalg.norm(np.cross(b - a, c - a)) <= NO_AREA * longest**2:
            findings["zero_area_faces"].append(index)
        if frozenset(face) in first_seen:
            findings["duplicate_faces"].append(index)
        first_seen.add(frozenset(face))
        for p, q in zip(face, face[1:] + face[:1], strict=True):
            directed[p, q] += 1
            around[p].append(face)
    for p, q in sorted({(min(edge), max(edge)) for edge in directed}):
        forward, backward = directed[p, q], directed[q, p]
        if np.array_equal(positions[p], positions[q]):
            findings["zero_length_edges"].append((p, q))
        if forward + backward == 1:
            findings["boundary_edges"].append((p, q))
        if forward + backward > 2:
            findings["nonmanifold_edges"].append((p, q))
        if forward + backward == 2 and forward != 1:
            findings["inconsistent_edges"].append((p, q))
    for p in range(len(positions)):
        if p not in around:
            findings["isolated_vertices"].append(p)
        elif fan_count(p, around[p]) > 1:
            findings["nonmanifold_vertices"].append(p)
    return dict(findings)


def fan_count(p, faces):
    """Number of groups of the faces around p that are connected through edges at p."""
    return group_count([[v for v in face if v != p] for face in faces])


def component_count(faces):
    """Number of groups of faces that are connected through shared vertices."""
    return group_count(faces.tolist())


def group_count(sets):
    """Number of groups that remain when sets with a common element are joined."""
    groups = []
    for members in sets:
        joined = set(members)
        apart = []
        for group in groups:
            if group & joined:
                joined |= group
            else:
                apart.append(group)
        groups = [*apart, joined]
    return len(groups)
