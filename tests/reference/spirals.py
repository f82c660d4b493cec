"""The spirals of SpiralNet++ (Gong et al. 2019, section 3.2; paper, appendix on node permutations).

A spiral visits the vertices around p ring by ring, each ring counter-clockwise seen from outside:

1. p itself, then its neighbors counter-clockwise from the start neighbor.
2. Each further ring: for every vertex v of the last ring in turn, the neighbors of v counter-clockwise, beginning
   after the one that came into the spiral first, and leaving out those that the spiral already holds.
3. The first `length` vertices of that. Where the rings end before, the vertices nearest to p that are not yet in the
   spiral follow, and p again where the mesh has none left.

Given the start neighbor the spiral depends on no numbering (on a manifold). The start is the neighbor of lowest index
(`index`, which a permutation of the vertices changes) or the nearest one (`distance`, which only a tie can).
"""

import numpy as np


def counter_clockwise(faces, vertex_count):
    """The neighbors of each vertex in counter-clockwise order, one list per vertex.

    A closed ring begins at its lowest index, an open one (boundary) at its clockwise end. Several fans at one vertex
    follow one another, open ones first, then by lowest index.
    """
    successors = [{} for _ in range(vertex_count)]  # around p: vertex -> the next ones counter-clockwise
    for face in faces:
        for corner in range(3):
            p, a, b = (int(v) for v in np.roll(face, -corner))
            successors[p].setdefault(a, set()).add(b)
            successors[p].setdefault(b, set())
    return [_walk(around) for around in successors]


def _walk(successors):
    """All vertices of one ring, following successors and starting again where they end."""
    follows = set().union(*successors.values())
    starts = sorted(v for v in successors if v not in follows) + sorted(v for v in successors if v in follows)
    order = []
    for vertex in starts:
        while vertex is not None and vertex not in order:
            order.append(vertex)
            vertex = min((v for v in successors[vertex] if v not in order), default=None)
    return order


def _from(order, start):
    """A cyclic order rotated so that it begins at start."""
    at = order.index(start)
    return order[at:] + order[:at]


def spiral(p, rings, positions, length, start="index"):
    """The spiral of vertex p, `length` vertex numbers; rings: what counter_clockwise returns."""
    result = [p]
    last = []
    if rings[p]:
        first = min(rings[p]) if start == "index" else nearest(p, rings[p], positions)[0]
        last = _from(rings[p], first)
    result += last
    while last and len(result) < length:
        following = []
        for v in last:
            earliest = min((u for u in rings[v] if u in result), key=result.index)
            for u in _from(rings[v], earliest)[1:]:
                if u not in result and u not in following:
                    following.append(u)
        result += following
        last = following
    if len(result) < length:
        result += nearest(p, sorted(set(range(len(positions))) - set(result)), positions)
    result += [p] * (length - len(result))
    return result[:length]


def nearest(p, candidates, positions):
    """The candidates by their distance to p, equal distances by index."""
    return sorted(candidates, key=lambda q: (np.sum((positions[q] - positions[p]) ** 2), q))


def spirals(positions, faces, length=10, start="index"):
    """The spiral of every vertex: (V, length) int64. start: "index" or "distance"."""
    rings = counter_clockwise(faces, len(positions))
    return np.array([spiral(p, rings, positions, length, start) for p in range(len(positions))]).reshape(-1, length)
