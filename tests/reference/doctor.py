"""What the mesh doctor should find, in plain loops. Edges are pairs (a, b) of vertices with a < b."""

from collections import Counter, defaultdict

import numpy as np

from .geometry import NO_NORMAL

# A triangle whose height is this fraction of its longest edge has no area.
NO_AREA = 1e-12

# One that is this many times as long as high is a needle.
NEEDLE = 1000


def report(positions, faces):
    """Finding -> sorted list of what it concerns. Findings:

    isolated_vertices       in no face
    coincident_vertices     at the position of one with a lower index
    zero_normal_vertices    in faces, but their area-weighted normals vanish or cancel
    non_manifold_vertices   whose faces form more than one fan (faces are connected where they share an edge at it)
    boundary_edges          in one face
    non_manifold_edges      in more than two faces
    inconsistent_edges      in two faces that run along it in the same direction
    zero_length_edges       both ends at the same position
    zero_area_faces         height below 1e-12 of the longest edge
    needle_faces            height below 1/1000 of the longest edge, but some area
    duplicate_faces         the same three vertices as an earlier face, in any order
    """
    findings = defaultdict(list)
    directed, first_seen = Counter(), set()
    around = defaultdict(list)
    normal, weight = np.zeros((len(positions), 3)), np.zeros(len(positions))
    for index, face in enumerate(faces.tolist()):
        a, b, c = positions[face]
        longest = max(np.linalg.norm(b - a), np.linalg.norm(c - b), np.linalg.norm(a - c))
        cross = np.cross(b - a, c - a)
        height_over_longest = np.linalg.norm(cross) / longest**2 if longest > 0 else 0
        if height_over_longest <= NO_AREA:
            findings["zero_area_faces"].append(index)
        elif height_over_longest < 1 / NEEDLE:
            findings["needle_faces"].append(index)
        normal[face] += cross
        weight[face] += np.linalg.norm(cross)
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
            findings["non_manifold_edges"].append((p, q))
        if forward + backward == 2 and forward != 1:
            findings["inconsistent_edges"].append((p, q))
    places = set()
    for p in range(len(positions)):
        if p not in around:
            findings["isolated_vertices"].append(p)
        elif fan_count(p, around[p]) > 1:
            findings["non_manifold_vertices"].append(p)
        if p in around and np.linalg.norm(normal[p]) <= NO_NORMAL * weight[p]:
            findings["zero_normal_vertices"].append(p)
        place = tuple((positions[p] + 0.0).tolist())  # + 0.0: -0 is the same place as 0
        if place in places:
            findings["coincident_vertices"].append(p)
        places.add(place)
    return dict(findings)


def fan_count(p, faces):
    """Number of groups of the faces around p that are connected through edges at p."""
    return group_count([[v for v in face if v != p] for face in faces])


def component_count(faces):
    """Number of groups of faces that are connected through shared vertices."""
    return group_count(faces.tolist())


def group_count(sets):
    """Number of groups that remain when sets with a common element are joined."""
    parent = {}

    def root(x):
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    for members in sets:
        for member in members:
            parent.setdefault(member, member)
            parent[root(member)] = root(members[0])
    return sum(parent[x] == x for x in parent)
