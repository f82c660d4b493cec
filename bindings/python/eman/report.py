"""The mesh doctor's report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Report"]

IndexArray = npt.NDArray[np.int64]

# What each finding means, to a reader who has a mesh to mend.
_MEANINGS = {
    "isolated_vertices": "vertices that no face uses; their features are zero",
    "coincident_vertices": "vertices at the place of another; merge them if they are one point",
    "zero_normal_vertices": "vertices whose faces define no normal; they got a substitute",
    "non_manifold_vertices": "vertices whose faces do not form one fan",
    "boundary_edges": "edges of one face only: holes or an open surface",
    "non_manifold_edges": "edges of three faces or more",
    "inconsistent_edges": "edges whose two faces are oriented against each other",
    "zero_length_edges": "edges between coincident vertices; they connect no neighbours",
    "dropped_faces": "faces that name a vertex twice and were left out",
    "zero_area_faces": "faces whose corners lie on a line",
    "needle_faces": "faces more than 1000 times as long as high",
    "duplicate_faces": "faces of the same vertices as an earlier face",
}
# What ordinary meshes have, and what changes no result elsewhere on the mesh.
_HARMLESS = ("isolated_vertices", "boundary_edges", "needle_faces")
_SHOWN = 6


class Report(Mapping[str, IndexArray]):
    """What the mesh doctor found: a mapping from each finding's name to the indices concerned.

    Findings about vertices and faces give (n,) indices, faces by the numbers of the faces passed in; findings about
    edges give (n, 2) pairs of vertices, the lower first.  All findings are present, most of them empty.

    Attributes
    ----------
    vertex_count, face_count, edge_count : int
        Sizes; `edge_count` counts directed edges, as `eman.Mesh.edge_count`.
    component_count : int
        Connected components of the vertices that have faces.
    euler_characteristic : int
        Vertices − edges + faces, without isolated vertices.
    closed, manifold, oriented : bool
        No boundary edge (and some face); no non-manifold edge or vertex; no inconsistent edge.
    min_degree, max_degree : int
        Numbers of neighbours, isolated vertices apart.
    area : float
        In squared units of the positions.
    min_length, mean_length, max_length : float
        Of the edges, in units of the positions.

    Examples
    --------
    >>> import eman
    >>> report = eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [5, 5, 5]], [[0, 1, 2]]).report()
    >>> report["isolated_vertices"], report.counts["boundary_edges"], report.closed
    (array([3]), 3, False)
    """

    vertex_count: int
    face_count: int
    edge_count: int
    component_count: int
    euler_characteristic: int
    closed: bool
    manifold: bool
    oriented: bool
    min_degree: int
    max_degree: int
    area: float
    min_length: float
    mean_length: float
    max_length: float

    def __init__(self, summary: dict[str, Any], findings: dict[str, IndexArray]) -> None:
        self._summary = summary
        self._findings = findings
        for name, value in summary.items():
            setattr(self, name, value)

    def __getitem__(self, finding: str) -> IndexArray:
        return self._findings[finding]

    def __iter__(self) -> Iterator[str]:
        return iter(self._findings)

    def __len__(self) -> int:
        return len(self._findings)

    @property
    def counts(self) -> dict[str, int]:
        """How many elements each finding has."""
        return {name: len(indices) for name, indices in self._findings.items()}

    @property
    def clean(self) -> bool:
        """Whether nothing was found at all."""
        return not any(self.counts.values())

    @property
    def faults(self) -> dict[str, int]:
        """How many elements each finding has that should be mended.

        Open surfaces are ordinary; isolated vertices and needles change no result elsewhere on the mesh.  Everything
        else changes neighbours or normals: seams where vertices coincide, faces that are flipped, doubled or flat.
        """
        return {name: count for name, count in self.counts.items() if count and name not in _HARMLESS}

    def to_dict(self) -> dict[str, Any]:
        """Sizes, judgements and findings as plain numbers and lists, for JSON.

        Examples
        --------
        >>> import eman
        >>> import json
        >>> text = json.dumps(eman.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]).report().to_dict())
        >>> json.loads(text)["findings"]["boundary_edges"]
        [[0, 1], [0, 2], [1, 2]]
        """
        return {**self._summary, "findings": {name: indices.tolist() for name, indices in self._findings.items()}}

    def __repr__(self) -> str:
        found = ", ".join(f"{name}={count}" for name, count in self.counts.items() if count)
        return f"<Report: {self.vertex_count} vertices, {self.face_count} faces; {found or 'no findings'}>"

    def __str__(self) -> str:
        yes_no = {True: "yes", False: "NO"}
        parts = "component" if self.component_count == 1 else "components"
        lines = [
            f"{self.vertex_count:,} vertices, {self.face_count:,} faces, {self.edge_count:,} directed edges, "
            f"{self.component_count:,} {parts}, Euler characteristic {self.euler_characteristic}",
            f"closed: {yes_no[self.closed]}   manifold: {yes_no[self.manifold]}   oriented: {yes_no[self.oriented]}",
            f"neighbours per vertex: {self.min_degree} to {self.max_degree}   area: {self.area:.6g}   "
            f"edge length: {self.min_length:.4g} to {self.max_length:.4g}, mean {self.mean_length:.4g}",
        ]
        for name, indices in self._findings.items():
            if len(indices):
                some = ", ".join("-".join(map(str, np.atleast_1d(item))) for item in indices[:_SHOWN])
                more = ", ..." if len(indices) > _SHOWN else ""
                lines.append(f"{len(indices):>9,} {_spelled(name, len(indices))}: {some}{more}")
                if name in _MEANINGS:  # a newer library may find more
                    lines.append(f"{'':10}({_MEANINGS[name]})")
        if self.clean:
            lines.append("nothing to mend")
        return "\n".join(lines)


def _spelled(finding: str, count: int) -> str:
    """The finding in words, in the singular if there is one."""
    words = finding.replace("_", " ")
    if count > 1:
        return words
    for plural, singular in (("vertices", "vertex"), ("edges", "edge"), ("faces", "face")):
        words = words.replace(plural, singular)
    return words
