"""Procedural creatures: closed triangle meshes with part labels, made without any file.

A creature is a skeleton of tapered capsules (its species gives the proportions, the seed the individual and the pose)
whose smooth union is an implicit surface.  The surface is meshed by marching tetrahedra on a jittered, randomly turned
grid; short edges are then collapsed until the wanted number of vertices remains, and edge flips and a few steps of
tangential smoothing remove the slivers.  Every operation keeps the mesh a closed, oriented manifold of genus 0, and no
two seeds share a triangulation, which is what a network that must not depend on the triangulation should be tried on.

Only numpy is needed.  x points forward, y to the creature's left, z up; the hips are at the origin, and a torso is
about one unit long.  The same arguments give the same creature, to the bit on one machine with one version of numpy.

>>> from eman.creatures import creature
>>> lizard = creature(seed=3, vertices=800, species="lizard")
>>> lizard.vertices.shape, str(lizard.faces.dtype), lizard.part_names[:4]
((800, 3), 'int32', ('head', 'neck', 'torso', 'tail'))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Optional

import numpy as np
import numpy.typing as npt

__all__ = ["PART_NAMES", "SPECIES", "Creature", "creature"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: Names of the part labels, in label order.  Every species has all of them; left is the creature's own left.
PART_NAMES: tuple[str, ...] = (
    "head",
    "neck",
    "torso",
    "tail",
    "left_front_upper",
    "left_front_lower",
    "left_front_foot",
    "right_front_upper",
    "right_front_lower",
    "right_front_foot",
    "left_hind_upper",
    "left_hind_lower",
    "left_hind_foot",
    "right_hind_upper",
    "right_hind_lower",
    "right_hind_foot",
)

_HEAD, _NECK, _TORSO, _TAIL = range(4)
_SMALLEST = 800
_ATTEMPTS = 24


@dataclass(frozen=True, eq=False)
class Creature:
    """A labelled triangle mesh.

    Attributes
    ----------
    vertices : (V, 3) float64
        Positions.
    faces : (F, 3) int32
        Vertex indices, counter-clockwise seen from outside.
    labels : (V,) int32
        Part of each vertex, an index into `part_names`.
    part_names : tuple of str
        Names of the labels, `PART_NAMES`.
    species : str
        Name of the species, one of `SPECIES`.
    seed : int
        The seed it was made from.
    """

    vertices: FloatArray
    faces: npt.NDArray[np.int32]
    labels: npt.NDArray[np.int32]
    part_names: tuple[str, ...]
    species: str
    seed: int

    def __repr__(self) -> str:
        return f"Creature({self.species!r}, seed={self.seed}, vertices={len(self.vertices)}, faces={len(self.faces)})"


def creature(
    seed: int = 0,
    vertices: int = 5000,
    species: Optional[str] = None,
    *,
    pose: float = 1.0,
    variation: float = 1.0,
    mesh_seed: Optional[int] = None,
) -> Creature:
    """Make a creature.

    Parameters
    ----------
    seed : int
        Chooses the proportions, the pose and the triangulation; the same arguments give the same creature.
    vertices : int
        How many vertices the mesh shall have, at least 800.  The result has exactly so many unless the shape itself
        forbids it, which no seed tried has shown.
    species : str, optional
        One of `SPECIES`; by default the seed chooses.
    pose : float
        How far the joints leave their rest position: 0 stands still, 1 is the usual range.
    variation : float
        How much individuals of a species differ in their proportions: 0 not at all.
    mesh_seed : int, optional
        Another triangulation of the same shape: seeds the grid instead of `seed`.

    Returns
    -------
    Creature
        A closed, manifold, outward-oriented mesh of genus 0 in one component, with part labels.

    Raises
    ------
    ValueError
        For an unknown species, fewer than 800 vertices, or a negative seed, pose or variation.

    Examples
    --------
    >>> first, again = creature(seed=1, vertices=800), creature(seed=1, vertices=800)
    >>> bool((first.vertices == again.vertices).all())
    True
    """
    if species is not None and species not in _SPECIES:
        raise ValueError(f"unknown species {species!r}: choose one of {', '.join(SPECIES)}")
    if vertices < _SMALLEST:
        raise ValueError(f"vertices must be at least {_SMALLEST}, got {vertices}")
    for name, value in (("seed", seed), ("pose", pose), ("variation", variation), ("mesh_seed", mesh_seed or 0)):
        if not value >= 0:
            raise ValueError(f"{name} must not be negative, got {value}")
    shape_rng = np.random.default_rng([seed, 1])
    mesh_rng = np.random.default_rng([seed if mesh_seed is None else mesh_seed, 2])
    name = species if species is not None else SPECIES[int(shape_rng.integers(len(SPECIES)))]
    body = _individual(_SPECIES[name], shape_rng, variation)
    for attempt in range(_ATTEMPTS):
        # A limb that touches another makes a handle.  Such poses are drawn again, a little tamer each time.
        shape = _Shape(_skeleton(body, shape_rng, pose * (1.0 - attempt / _ATTEMPTS)))
        mesh = _mesh(shape, vertices, mesh_rng)
        if mesh is not None:
            points, triangles = mesh
            return Creature(
                vertices=points,
                faces=triangles.astype(np.int32),
                labels=shape.labels(points),
                part_names=PART_NAMES,
                species=name,
                seed=seed,
            )
    raise RuntimeError(f"no pose of {name} number {seed} without self-contact in {_ATTEMPTS} attempts")


# ---------------------------------------------------------------------------------------------------------------------
# Species
# ---------------------------------------------------------------------------------------------------------------------


class _Limb(NamedTuple):
    """One pair of limbs.  Angles are in degrees: (swing forward from hanging, swing outward), as (mean, spread)."""

    lengths: tuple[float, float, float]
    radii: tuple[float, float, float, float]
    upper: tuple[tuple[float, float], tuple[float, float]]
    lower: tuple[tuple[float, float], tuple[float, float]]
    foot: tuple[tuple[float, float], tuple[float, float]]
    lower_follows: float = 1.0  # how much of the upper part's swing the lower part inherits


class _Species(NamedTuple):
    """Proportions in units of the torso's length; angles in degrees, (mean, spread)."""

    pitch: tuple[float, float]
    hip: float
    belly: float
    chest: float
    width: float
    neck: tuple[float, float, float]  # length, radius at the chest, radius at the head
    neck_pitch: tuple[float, float]
    head: tuple[float, float]  # length, radius
    head_pitch: tuple[float, float]
    snout: tuple[float, float]  # length, radius
    ears: tuple[float, float]  # length, radius
    trunk: float
    tail: tuple[float, float, float]  # length, radius at the root, radius at the tip
    tail_pitch: tuple[float, float]
    front: _Limb
    hind: _Limb


_SPECIES: dict[str, _Species] = {
    "horse": _Species(
        pitch=(3, 4), hip=0.21, belly=0.22, chest=0.23, width=0.95,
        neck=(0.52, 0.155, 0.095), neck_pitch=(48, 14), head=(0.24, 0.105), head_pitch=(-32, 14), snout=(0.17, 0.07),
        ears=(0.11, 0.034), trunk=0, tail=(0.62, 0.06, 0.03), tail_pitch=(-55, 18),
        front=_Limb(
            (0.42, 0.40, 0.13), (0.115, 0.068, 0.048, 0.058),
            ((0, 22), (3, 4)), ((-8, 14), (0, 3)), ((58, 12), (0, 6)),
        ),
        hind=_Limb(
            (0.44, 0.42, 0.13), (0.15, 0.075, 0.05, 0.06),
            ((14, 20), (3, 4)), ((-30, 14), (0, 3)), ((58, 12), (0, 6)),
        ),
    ),
    "giraffe": _Species(
        pitch=(16, 4), hip=0.19, belly=0.22, chest=0.23, width=0.85,
        neck=(1.15, 0.15, 0.075), neck_pitch=(62, 12), head=(0.2, 0.09), head_pitch=(-22, 14), snout=(0.16, 0.058),
        ears=(0.12, 0.032), trunk=0, tail=(0.55, 0.042, 0.03), tail_pitch=(-62, 14),
        front=_Limb(
            (0.58, 0.62, 0.12), (0.11, 0.066, 0.046, 0.056),
            ((0, 16), (4, 4)), ((-5, 10), (0, 3)), ((58, 10), (0, 6)),
        ),
        hind=_Limb(
            (0.5, 0.58, 0.12), (0.13, 0.07, 0.047, 0.056),
            ((12, 15), (4, 4)), ((-24, 10), (0, 3)), ((58, 10), (0, 6)),
        ),
    ),
    "lizard": _Species(
        pitch=(2, 5), hip=0.12, belly=0.165, chest=0.14, width=1.45,
        neck=(0.2, 0.11, 0.095), neck_pitch=(12, 14), head=(0.2, 0.115), head_pitch=(-4, 12), snout=(0.16, 0.075),
        ears=(0.03, 0.04), trunk=0, tail=(1.45, 0.105, 0.025), tail_pitch=(-5, 10),
        front=_Limb(
            (0.27, 0.24, 0.15), (0.068, 0.052, 0.04, 0.046),
            ((5, 26), (68, 8)), ((12, 18), (12, 12)), ((66, 14), (20, 16)), 0.4,
        ),
        hind=_Limb(
            (0.32, 0.27, 0.18), (0.082, 0.06, 0.043, 0.048),
            ((8, 26), (66, 8)), ((-14, 18), (12, 12)), ((66, 14), (24, 16)), 0.4,
        ),
    ),
    "kangaroo": _Species(
        pitch=(52, 10), hip=0.25, belly=0.22, chest=0.155, width=0.95,
        neck=(0.26, 0.105, 0.08), neck_pitch=(66, 12), head=(0.19, 0.098), head_pitch=(-12, 16), snout=(0.13, 0.056),
        ears=(0.22, 0.042), trunk=0, tail=(1.15, 0.13, 0.042), tail_pitch=(-26, 9),
        front=_Limb(
            (0.25, 0.25, 0.1), (0.072, 0.052, 0.04, 0.047),
            ((22, 26), (14, 10)), ((46, 24), (-4, 8)), ((18, 24), (0, 8)), 0.8,
        ),
        hind=_Limb(
            (0.46, 0.52, 0.4), (0.17, 0.085, 0.05, 0.052),
            ((66, 12), (9, 5)), ((-38, 9), (2, 3)), ((76, 9), (4, 4)), 0.3,
        ),
    ),
    "monkey": _Species(
        pitch=(72, 11), hip=0.185, belly=0.18, chest=0.2, width=1.2,
        neck=(0.3, 0.085, 0.075), neck_pitch=(78, 10), head=(0.13, 0.135), head_pitch=(14, 18), snout=(0.09, 0.076),
        ears=(0.05, 0.052), trunk=0, tail=(1.3, 0.052, 0.034), tail_pitch=(-28, 20),
        front=_Limb(
            (0.45, 0.42, 0.15), (0.085, 0.062, 0.046, 0.054),
            ((14, 46), (34, 20)), ((34, 26), (-6, 18)), ((10, 26), (0, 14)),
        ),
        hind=_Limb(
            (0.44, 0.42, 0.2), (0.115, 0.074, 0.05, 0.052),
            ((26, 26), (13, 8)), ((-34, 18), (2, 5)), ((68, 14), (8, 8)),
        ),
    ),
    "elephant": _Species(
        pitch=(6, 3), hip=0.3, belly=0.345, chest=0.31, width=1.05,
        neck=(0.24, 0.22, 0.19), neck_pitch=(24, 10), head=(0.17, 0.21), head_pitch=(-24, 12), snout=(0.1, 0.12),
        ears=(0.3, 0.19), trunk=0.85, tail=(0.55, 0.045, 0.034), tail_pitch=(-66, 9),
        front=_Limb(
            (0.38, 0.32, 0.09), (0.16, 0.115, 0.098, 0.105),
            ((0, 17), (3, 3)), ((-5, 10), (0, 2)), ((46, 8), (0, 5)),
        ),
        hind=_Limb(
            (0.36, 0.32, 0.09), (0.175, 0.118, 0.1, 0.105),
            ((6, 17), (3, 3)), ((-16, 10), (0, 2)), ((46, 8), (0, 5)),
        ),
    ),
}  # fmt: skip

#: Names of the species, for classification sets.
SPECIES: tuple[str, ...] = tuple(_SPECIES)


def _individual(species: _Species, rng: np.random.Generator, variation: float) -> _Species:
    """The species with every length and radius multiplied by its own log-normal factor."""

    def vary(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(vary(item) for item in value)
        return float(value) * float(np.exp(variation * np.clip(rng.normal(0.0, 0.09), -0.2, 0.2)))

    def vary_limb(limb: _Limb) -> _Limb:
        return limb._replace(lengths=vary(limb.lengths), radii=vary(limb.radii))

    sizes = ("hip", "belly", "chest", "width", "neck", "head", "snout", "ears", "trunk", "tail")
    varied: dict[str, Any] = {name: vary(getattr(species, name)) for name in sizes}
    return species._replace(front=vary_limb(species.front), hind=vary_limb(species.hind), **varied)


class _Bone(NamedTuple):
    """A tapered capsule from a to b, its cross-section stretched by `stretch` along the unit vector `across`."""

    a: FloatArray
    b: FloatArray
    radius_a: float
    radius_b: float
    across: FloatArray
    stretch: float
    part: int


def _direction(swing: float, outward: float, side: float = 1.0) -> FloatArray:
    """Unit vector that hangs down, swung forward by `swing` and outward by `outward` (radians)."""
    cos_outward = np.cos(outward)
    return np.array([np.sin(swing) * cos_outward, side * np.sin(outward), -np.cos(swing) * cos_outward])


def _skeleton(body: _Species, rng: np.random.Generator, pose: float) -> list[_Bone]:
    """The bones of one individual in a random pose."""

    def draw(angle: tuple[float, float]) -> float:
        mean, spread = angle
        return float(np.radians(mean + pose * spread * np.clip(rng.normal(0.0, 0.6), -1.2, 1.2)))

    left = np.array([0.0, 1.0, 0.0])
    bones: list[_Bone] = []

    def bone(
        start: FloatArray, end: FloatArray, radii: tuple[float, float], part: int, stretch: float = 1.0
    ) -> FloatArray:
        bones.append(_Bone(start, end, radii[0], radii[1], left, stretch, part))
        return end

    def forward(pitch: float, yaw: float) -> FloatArray:
        return np.array([np.cos(pitch) * np.cos(yaw), np.cos(pitch) * np.sin(yaw), np.sin(pitch)])

    # Torso: hips at the origin, two bones to the chest, bent a little sideways.
    pitch = draw(body.pitch)
    yaw = draw((0, 12))
    hips = np.zeros(3)
    belly = bone(hips, hips + 0.5 * forward(pitch, -yaw / 2), (body.hip, body.belly), _TORSO, body.width)
    chest = bone(belly, belly + 0.5 * forward(pitch, yaw / 2), (body.belly, body.chest), _TORSO, body.width)

    # Neck in two bones and a head of skull, snout and two ears; an elephant's snout goes on as a trunk.
    neck_length, neck_low, neck_high = body.neck
    neck_pitch, neck_yaw = draw(body.neck_pitch), draw((0, 24))
    root = chest + 0.35 * body.chest * forward(neck_pitch, 0.0)
    neck_radius = 0.5 * (neck_low + neck_high)
    inside = 0.6 * body.chest + neck_length
    middle = root + 0.5 * inside * forward(neck_pitch - 0.12, neck_yaw / 2)
    bone(root, middle, (neck_low, neck_radius), _NECK)
    top = bone(middle, middle + 0.5 * inside * forward(neck_pitch + 0.12, neck_yaw), (neck_radius, neck_high), _NECK)
    skull_length, skull_radius = body.head
    snout_length, snout_radius = body.snout
    look = forward(draw(body.head_pitch), neck_yaw + draw((0, 16)))
    back = top + 0.3 * skull_radius * look
    brow = bone(back, back + skull_length * look, (skull_radius, 0.82 * skull_radius), _HEAD)
    nose = bone(brow, brow + snout_length * look, (0.95 * snout_radius, snout_radius), _HEAD)
    sideways = np.cross([0.0, 0.0, 1.0], look)
    sideways /= np.linalg.norm(sideways)
    crown = np.cross(look, sideways)
    ear_length, ear_radius = body.ears
    droop = draw((0, 15))
    large = ear_radius > 0.1
    for side in (1.0, -1.0):
        aim = side * sideways * (1.0 if large else 0.55) + crown * (np.sin(droop) if large else 1.0) - 0.25 * look
        aim /= np.linalg.norm(aim)
        base = back + 0.25 * skull_length * look + 0.75 * skull_radius * aim
        thin = look if large else left
        bones.append(
            _Bone(base, base + ear_length * aim, ear_radius, 0.8 * ear_radius, thin, 0.35 if large else 1.0, _HEAD)
        )
    if body.trunk > 0:
        bend, sway = draw((-62, 12)), neck_yaw + draw((0, 12))
        for step in range(5):
            thick = 0.85 * snout_radius * (1.0 - 0.11 * step)
            nose = bone(nose, nose + body.trunk / 5 * forward(bend, sway), (thick, 0.89 * thick), _HEAD)
            bend += draw((9, 16))

    # Tail: five bones whose curl is a random walk.
    tail_length, tail_low, tail_high = body.tail
    tail_pitch, tail_yaw = draw(body.tail_pitch), draw((0, 26))
    point = hips - 0.55 * body.hip * forward(pitch, 0.0)
    curl, swerve = draw((4, 14)), draw((0, 24))
    radii = np.linspace(tail_low, tail_high, 7)
    for step in range(6):
        length = tail_length / 6 + (0.35 * body.hip if step == 0 else 0.0)
        heading = np.array([-1.0, -1.0, 1.0]) * forward(tail_pitch, tail_yaw)
        point = bone(point, point + length * heading, (radii[step], radii[step + 1]), _TAIL)
        tail_pitch += curl
        tail_yaw += swerve

    # Limbs.
    first_label = _TAIL + 1
    for pair, (limb, centre, radius) in enumerate(((body.front, chest, body.chest), (body.hind, hips, body.hip))):
        for number, side in enumerate((1.0, -1.0)):
            label = first_label + 6 * pair + 3 * number
            r_top, r_middle, r_low, r_end = limb.radii
            swing, outward = draw(limb.upper[0]), draw(limb.upper[1])
            offset = max(radius * body.width - 0.75 * r_top, 0.6 * r_top)
            joint = centre + side * offset * left - np.array([0.0, 0.0, 0.25 * radius])
            direction = _direction(swing, outward, side)
            joint = bone(joint, joint + limb.lengths[0] * direction, (r_top, r_middle), label)
            lower_swing = limb.lower_follows * swing + draw(limb.lower[0])
            lower_outward = 0.5 * min(outward, np.radians(40.0)) + draw(limb.lower[1])
            direction = _direction(lower_swing, lower_outward, side)
            joint = bone(joint, joint + limb.lengths[1] * direction, (r_middle, r_low), label + 1)
            direction = _direction(draw(limb.foot[0]) + 0.25 * lower_swing, draw(limb.foot[1]), side)
            bone(joint, joint + limb.lengths[2] * direction, (0.95 * r_low, r_end), label + 2, 1.15)
    return bones


# ---------------------------------------------------------------------------------------------------------------------
# The implicit surface
# ---------------------------------------------------------------------------------------------------------------------


class _Shape:
    """Smooth union of bones: f(p) = -k log sum_i exp(-d_i(p) / k), negative inside, never steeper than 1.

    d_i is the exact distance to a tapered capsule, which is the smallest |p - c(h)| - r(h) over the spheres (c, r)(h)
    along the bone; its gradient is therefore the unit vector from the nearest such sphere.
    """

    def __init__(self, bones: list[_Bone]) -> None:
        self.bones = bones
        self.thinnest = min(min(bone.radius_a, bone.radius_b) * min(bone.stretch, 1.0) for bone in bones)
        self.blend = 0.65 * self.thinnest

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Corners of a box that contains the surface with a margin."""
        low, high = np.full(3, np.inf), np.full(3, -np.inf)
        for bone in self.bones:
            for end, radius in ((bone.a, bone.radius_a), (bone.b, bone.radius_b)):
                reach = radius * max(bone.stretch, 1.0) + 3.0 * self.blend
                low, high = np.minimum(low, end - reach), np.maximum(high, end + reach)
        return low, high

    def _distance(self, bone: _Bone, points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Distance (N,), gradient (N, 3) and bone radius at the nearest sphere (N,)."""
        relative = points - bone.a
        axis = bone.b - bone.a
        shrink = 1.0 / bone.stretch - 1.0
        if shrink != 0.0:
            relative = relative + np.outer(relative @ bone.across, shrink * bone.across)
            axis = axis + (axis @ bone.across) * shrink * bone.across
        length = float(np.linalg.norm(axis))
        axis = axis / length
        along = relative @ axis
        radial = np.sqrt(np.maximum(np.einsum("ij,ij->i", relative, relative) - along * along, 0.0))
        slope = np.clip((bone.radius_a - bone.radius_b) / length, -0.95, 0.95)
        position = np.clip(along - slope / np.sqrt(1.0 - slope * slope) * radial, 0.0, length)
        gradient = relative - position[:, None] * axis
        norm = np.sqrt(np.einsum("ij,ij->i", gradient, gradient))
        gradient /= np.maximum(norm, 1e-12)[:, None]
        radius = bone.radius_a + (bone.radius_b - bone.radius_a) * position / length
        distance = norm - radius
        if shrink != 0.0:
            flat = min(bone.stretch, 1.0)
            gradient = flat * (gradient + np.outer(gradient @ bone.across, shrink * bone.across))
            distance = flat * distance
        return distance, gradient, radius

    def value(self, points: FloatArray) -> FloatArray:
        """Evaluate f at (N, 3) points: (N,)."""
        return self.sample(points)[0]

    def sample(self, points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Evaluate f (N,), its gradient (N, 3) and the thickness (radius) of the body there (N,)."""
        count = len(points)
        lowest = np.full(count, np.inf)
        total = np.zeros(count)
        gradient = np.zeros((count, 3))
        radius = np.zeros(count)
        for bone in self.bones:
            distance, slope, thickness = self._distance(bone, points)
            lower = np.minimum(lowest, distance)
            keep = np.exp((lower - lowest) / self.blend)
            weight = np.exp((lower - distance) / self.blend)
            total = keep * total + weight
            gradient = keep[:, None] * gradient + weight[:, None] * slope
            radius = keep * radius + weight * thickness
            lowest = lower
        return lowest - self.blend * np.log(total), gradient / total[:, None], radius / total

    def labels(self, points: FloatArray) -> npt.NDArray[np.int32]:
        """Part of the nearest bone, for each point."""
        best = np.full(len(points), np.inf)
        labels = np.zeros(len(points), np.int32)
        for bone in self.bones:
            distance = self._distance(bone, points)[0]
            labels[distance < best] = bone.part
            np.minimum(best, distance, out=best)
        return labels

    def project(self, points: FloatArray, steps: int = 2) -> FloatArray:
        """Newton steps along the gradient towards the surface."""
        for _ in range(steps):
            value, gradient, _ = self.sample(points)
            square = np.maximum(np.einsum("ij,ij->i", gradient, gradient), 0.05)
            points = points - (value / square)[:, None] * gradient
        return points


# ---------------------------------------------------------------------------------------------------------------------
# Meshing
# ---------------------------------------------------------------------------------------------------------------------

Triangulation = tuple[FloatArray, IntArray]


def _mesh(shape: _Shape, target: int, rng: np.random.Generator) -> Optional[Triangulation]:
    """Triangulate the shape with `target` vertices; None if it is not a sphere topologically."""
    spacing = 0.9 * shape.thinnest
    points, faces = _march(shape, spacing, rng)
    if not _is_sphere(len(points), faces):
        return None
    if len(points) < 2.5 * target:
        # Marching tetrahedra make about as many vertices per area as 1/spacing^2: enough of them to choose from.
        spacing *= float(np.sqrt(len(points) / (3.0 * target)))
        points, faces = _march(shape, spacing, rng)
        if not _is_sphere(len(points), faces):
            return None
    sizing = _Sizing(shape, rng)
    points, faces = _collapse(shape, sizing, points, faces, target, rng)
    for _ in range(4):
        faces = _flip(points, faces)
        points = _relax(shape, sizing, points, faces)
    return points, _flip(points, faces)


class _Sizing:
    """Relative edge length wanted at a point: thin parts get smaller triangles, and a smooth random field varies it."""

    def __init__(self, shape: _Shape, rng: np.random.Generator) -> None:
        self.shape = shape
        self.waves = rng.normal(0.0, 4.0, (6, 3))
        self.phases = rng.uniform(0.0, 2.0 * np.pi, 6)

    def __call__(self, points: FloatArray) -> FloatArray:
        radius = self.shape.sample(points)[2]
        field = np.sin(points @ self.waves.T + self.phases).sum(axis=1)
        return np.asarray(radius**0.4 * np.exp(0.07 * field), np.float64)


# The six tetrahedra of a cube that share its main diagonal (Kuhn, Freudenthal), as corner numbers x + 2y + 4z.
_KUHN = np.array([[0, 1, 3, 7], [0, 3, 2, 7], [0, 2, 6, 7], [0, 6, 4, 7], [0, 4, 5, 7], [0, 5, 1, 7]])


def _rotation(rng: np.random.Generator) -> FloatArray:
    """A random rotation matrix."""
    w, x, y, z = (lambda q: q / np.linalg.norm(q))(rng.normal(size=4))
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _march(shape: _Shape, spacing: float, rng: np.random.Generator) -> Triangulation:
    """Marching tetrahedra on a jittered, randomly turned grid.

    A tetrahedral grid gives a closed manifold whatever the jitter, for each of its triangles and edges is crossed at
    most once.  Only cells that the surface can reach are visited: f is never steeper than 1, so a block of cells
    whose centre has |f| above its half diagonal holds no surface.
    """
    turn = _rotation(rng)
    low, high = shape.bounds()
    middle = 0.5 * (low + high)
    corners = (np.array(np.meshgrid(*zip(low, high))).reshape(3, -1).T - middle) @ turn.T
    start = corners.min(axis=0) - spacing * rng.uniform(1.0, 2.0, 3)
    block = 4
    blocks = (np.ceil((corners.max(axis=0) - start) / (block * spacing)) + 1).astype(int)
    size = blocks * block + 1  # grid nodes along each axis

    def place(nodes: FloatArray) -> FloatArray:
        return np.asarray((start + spacing * nodes) @ turn + middle, np.float64)

    index = np.stack(np.meshgrid(*(np.arange(n) for n in blocks), indexing="ij"), axis=-1).reshape(-1, 3)
    centre = place(block * index + 0.5 * block)
    reach = 0.5 * np.sqrt(3.0) * spacing * (block + 1.0)
    index = index[np.abs(shape.value(centre)) <= reach]

    cells_in_block = np.stack(np.meshgrid(*(np.arange(block),) * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    cells = (block * index[:, None] + cells_in_block).reshape(-1, 3)
    strides = np.array([1, size[0], size[0] * size[1]])
    offsets = np.array([[i & 1, i >> 1 & 1, i >> 2] for i in range(8)]) @ strides
    cell_nodes = (cells @ strides)[:, None] + offsets
    nodes, cell_nodes = np.unique(cell_nodes, return_inverse=True)
    cell_nodes = cell_nodes.reshape(-1, 8)
    lattice = np.stack([nodes % size[0], nodes // size[0] % size[1], nodes // strides[2]], axis=-1)
    positions = place(lattice + rng.uniform(-0.2, 0.2, lattice.shape))
    values = shape.value(positions)
    values[np.abs(values) < 1e-9] = 1e-9
    mixed = (values[cell_nodes] < 0).any(axis=1) & (values[cell_nodes] > 0).any(axis=1)
    return _march_tetrahedra(positions, values, cell_nodes[mixed][:, _KUHN].reshape(-1, 4))


def _march_tetrahedra(positions: FloatArray, values: FloatArray, tetrahedra: IntArray) -> Triangulation:
    """The surface values = 0, with the negative side inside."""
    inside = values[tetrahedra] < 0
    count = inside.sum(axis=1)
    pairs: list[IntArray] = []  # (triangles, corner, 2 nodes)

    # One corner alone (inside or outside): the three edges from it.
    for lonely, alone in ((1, True), (3, False)):
        chosen = tetrahedra[count == lonely]
        corner = np.argmax(inside[count == lonely] == alone, axis=1)
        apex = chosen[np.arange(len(chosen)), corner]
        # The other three corners, ordered so that the tetrahedron (apex, others) is positively oriented.
        others = np.array([[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]])[corner]
        base = np.take_along_axis(chosen, others, axis=1)
        if not alone:
            base = base[:, ::-1]
        pairs.append(np.stack([np.broadcast_to(apex[:, None], base.shape), base], axis=-1))

    # Two and two: a quadrilateral of four edges, in two triangles.
    chosen, flags = tetrahedra[count == 2], inside[count == 2]
    order = np.argsort(~flags, axis=1, kind="stable")  # the inside corners first
    a, b, c, d = np.take_along_axis(chosen, order, axis=1).T
    odd = np.array([_parity(row) for row in _PERMUTATIONS])[_permutation_number(order)]
    c, d = np.where(odd, d, c), np.where(odd, c, d)
    corners = [np.stack(pair, axis=-1) for pair in ((a, c), (a, d), (b, d), (b, c))]
    pairs.append(np.stack([corners[0], corners[1], corners[2]], axis=1))
    pairs.append(np.stack([corners[0], corners[2], corners[3]], axis=1))

    crossing = np.sort(np.concatenate(pairs), axis=-1)
    keys, inverse = np.unique(crossing[..., 0] * len(positions) + crossing[..., 1], return_inverse=True)
    first, second = keys // len(positions), keys % len(positions)
    fraction = np.clip(values[first] / (values[first] - values[second]), 0.02, 0.98)[:, None]
    points = (1.0 - fraction) * positions[first] + fraction * positions[second]
    return points, inverse.reshape(-1, 3)


_PERMUTATIONS = ((0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2), (1, 2, 0, 3), (1, 3, 0, 2), (2, 3, 0, 1))


def _parity(permutation: tuple[int, ...]) -> bool:
    """Whether the permutation is odd."""
    return sum(a > b for i, a in enumerate(permutation) for b in permutation[i + 1 :]) % 2 == 1


def _permutation_number(order: IntArray) -> IntArray:
    """Row of `_PERMUTATIONS`, from its first two entries."""
    table = np.zeros((4, 4), np.int64)
    for number, row in enumerate(_PERMUTATIONS):
        table[row[0], row[1]] = number
    return np.asarray(table[order[:, 0], order[:, 1]], np.int64)


class _Edges:
    """Directed edges of a closed oriented manifold, sorted by source and then target: every edge exactly once."""

    def __init__(self, count: int, faces: IntArray) -> None:
        source = faces.ravel()
        target = faces[:, [1, 2, 0]].ravel()
        keys = source * count + target
        order = np.argsort(keys)
        self.count = count
        self.keys = keys[order]
        self.source = source[order]
        self.target = target[order]
        self.face = order // 3
        self.opposite = faces[:, [2, 0, 1]].ravel()[order]  # third corner of the edge's face
        self.twin = np.searchsorted(self.keys, self.target * count + self.source)
        self.degree = np.bincount(self.source, minlength=count)
        self.offsets = np.concatenate([[0], np.cumsum(self.degree)])

    def has(self, source: IntArray, target: IntArray) -> npt.NDArray[np.bool_]:
        """Whether the edges exist."""
        keys = source * self.count + target
        return np.asarray(self.keys[np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)] == keys)

    def lowest(self, values: FloatArray) -> FloatArray:
        """For each vertex the lowest value of its outgoing edges."""
        result = np.full(self.count, np.inf)
        used = self.degree > 0
        result[used] = np.minimum.reduceat(values, self.offsets[:-1][used])
        return result

    def common_neighbors(self, chosen: IntArray) -> IntArray:
        """How many neighbours the two ends of each chosen edge share."""
        source, target = self.source[chosen], self.target[chosen]
        degree = self.degree[source]
        owner = np.repeat(np.arange(len(chosen)), degree)
        slot = np.arange(len(owner)) - np.repeat(np.cumsum(degree) - degree, degree) + self.offsets[source][owner]
        shared = self.has(target[owner], self.target[slot])
        return np.bincount(owner[shared], minlength=len(chosen))


def _is_sphere(count: int, faces: IntArray) -> bool:
    """Whether a closed manifold has one component and Euler characteristic 2."""
    source, target = faces.ravel(), faces[:, [1, 2, 0]].ravel()
    if count - len(source) // 2 + len(faces) != 2:
        return False
    component = np.arange(count)
    while True:  # lowest reachable label, with pointer jumping
        before = component.copy()
        np.minimum.at(component, source, component[target])
        component = component[component]
        if (component == before).all():
            return bool((component == 0).all())


def _normals(points: FloatArray, faces: IntArray) -> FloatArray:
    """Face normals, twice the area long."""
    a, b, c = (points[faces[:, i]] for i in range(3))
    return np.asarray(np.cross(b - a, c - a), np.float64)


def _collapse(
    shape: _Shape, sizing: _Sizing, points: FloatArray, faces: IntArray, target: int, rng: np.random.Generator
) -> Triangulation:
    """Collapse the relatively shortest edges until `target` vertices remain.

    Each round takes edges that are the shortest among all edges that touch their neighbourhoods, so that no two of
    them see each other, and drops those whose collapse would break the manifold (the ends share more than two
    neighbours), fold a face over or make a vertex of very low or high degree.
    """
    size = sizing(points)
    limit = 0.0
    while len(points) > target:
        edges = _Edges(len(points), faces)
        length = np.linalg.norm(points[edges.source] - points[edges.target], axis=1)
        length /= 0.5 * (size[edges.source] + size[edges.target])
        merged_degree = edges.degree[edges.source] + edges.degree[edges.target] - 4
        thin = np.minimum(edges.degree[edges.opposite], edges.degree[edges.opposite[edges.twin]]) < 5
        usable = (merged_degree <= 9) & (merged_degree >= 4) & ~thin & (edges.source < edges.target)
        priority = np.where(usable, length * (1.0 + 0.1 * rng.random(len(length))), np.inf)
        finite = priority[usable]
        if len(finite) == 0:
            break
        limit = max(limit, float(np.quantile(finite, 0.2)))
        priority[priority > limit] = np.inf
        chosen = _independent(edges, priority)
        chosen = chosen[edges.common_neighbors(chosen) == 2]
        chosen = chosen[np.argsort(priority[chosen])]
        done = _apply_collapses(shape, sizing, points, size, faces, edges, chosen, len(points) - target)
        if done is not None:
            points, size, faces = done
        elif limit < float(finite.max()):
            limit *= 1.5  # nothing this short can go: let longer edges, and a flipped mesh, try
            faces = _flip(points, faces)
        else:
            break
    return points, faces


def _independent(edges: _Edges, priority: FloatArray) -> IntArray:
    """Edges of finite priority of which none ends in a neighbourhood of another, the lowest first."""
    both = np.minimum(priority, priority[edges.twin])
    chosen: list[IntArray] = []
    for _ in range(3):
        near = edges.lowest(both)
        wide = np.minimum(near, edges.lowest(near[edges.target]))
        best = np.minimum(wide[edges.source], wide[edges.target])
        picked = np.flatnonzero((both == best) & np.isfinite(both) & (edges.source < edges.target))
        if len(picked) == 0:
            break
        chosen.append(picked)
        blocked = np.zeros(edges.count, bool)
        blocked[edges.source[picked]] = blocked[edges.target[picked]] = True
        blocked[edges.target[blocked[edges.source]]] = True
        both = np.where(blocked[edges.source] | blocked[edges.target], np.inf, both)
    return np.concatenate(chosen) if chosen else np.zeros(0, np.int64)


def _apply_collapses(
    shape: _Shape,
    sizing: _Sizing,
    points: FloatArray,
    size: FloatArray,
    faces: IntArray,
    edges: _Edges,
    chosen: IntArray,
    most: int,
) -> Optional[tuple[FloatArray, FloatArray, IntArray]]:
    """Collapse the first `most` chosen edges that fold nothing to their projected midpoints; None if there are none."""
    if len(chosen) == 0:
        return None
    kept, gone = edges.source[chosen], edges.target[chosen]
    middle = shape.project(0.5 * (points[kept] + points[gone]))
    owner = np.full(len(points), -1)
    owner[kept] = owner[gone] = np.arange(len(chosen))
    moved = points.copy()
    moved[kept] = moved[gone] = middle
    face_owner = owner[faces].max(axis=1)
    touched = np.flatnonzero(face_owner >= 0)
    before, after = _normals(points, faces[touched]), _normals(moved, faces[touched])
    cosine = np.einsum("ij,ij->i", before, after)
    cosine /= np.maximum(np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1), 1e-300)
    corner_owner = owner[faces[touched]]
    vanishing = (corner_owner >= 0).sum(axis=1) == 2
    folded = np.zeros(len(chosen), bool)
    folded[face_owner[touched[~vanishing & (cosine < 0.2)]]] = True
    allowed = np.flatnonzero(~folded)[:most]
    chosen, kept, gone, middle = chosen[allowed], kept[allowed], gone[allowed], middle[allowed]
    if len(chosen) == 0:
        return None
    points, size = points.copy(), size.copy()
    points[kept], size[kept] = middle, sizing(middle)
    name = np.arange(len(points))
    name[gone] = kept
    faces = np.delete(faces, np.concatenate([edges.face[chosen], edges.face[edges.twin[chosen]]]), axis=0)
    alive = np.ones(len(points), bool)
    alive[gone] = False
    compact = np.cumsum(alive) - 1
    return points[alive], size[alive], compact[name[faces]]


def _cotangents(points: FloatArray, tip: IntArray, a: IntArray, b: IntArray) -> FloatArray:
    """Cotangent of the angle at `tip` in the triangles (tip, a, b)."""
    u, v = points[a] - points[tip], points[b] - points[tip]
    return np.asarray(
        np.einsum("ij,ij->i", u, v) / np.maximum(np.linalg.norm(np.cross(u, v), axis=1), 1e-300), np.float64
    )


def _flip(points: FloatArray, faces: IntArray) -> IntArray:
    """Flip edges whose opposite angles exceed 180 degrees together (Delaunay), where that folds nothing."""
    faces = faces.copy()
    for _ in range(12):
        edges = _Edges(len(points), faces)
        half = np.flatnonzero(edges.source < edges.target)
        a, b = edges.source[half], edges.target[half]
        c, d = edges.opposite[half], edges.opposite[edges.twin[half]]
        gain = -_cotangents(points, c, a, b) - _cotangents(points, d, a, b)
        able = (gain > 1e-3) & (edges.degree[a] > 4) & (edges.degree[b] > 4) & (edges.degree[c] < 9)
        able &= (edges.degree[d] < 9) & ~edges.has(c, d)
        half, a, b, c, d, gain = half[able], a[able], b[able], c[able], d[able], gain[able]
        old = np.stack([a, b, c], 1), np.stack([b, a, d], 1)
        new = np.stack([c, d, b], 1), np.stack([d, c, a], 1)
        mean = _normals(points, old[0]) + _normals(points, old[1])
        flat = np.ones(len(half), bool)
        for normal in (_normals(points, new[0]), _normals(points, new[1])):
            cosine = np.einsum("ij,ij->i", normal, mean)
            flat &= cosine > 0.5 * np.linalg.norm(normal, axis=1) * np.linalg.norm(mean, axis=1)
        best = np.full(len(points), -np.inf)
        gain = np.where(flat, gain, -np.inf)
        for corner in (a, b, c, d):
            np.maximum.at(best, corner, gain)
        win = flat & np.all([best[corner] == gain for corner in (a, b, c, d)], axis=0)
        if not win.any():
            break
        faces[edges.face[half[win]]] = new[0][win]
        faces[edges.face[edges.twin[half[win]]]] = new[1][win]
    return faces


def _relax(shape: _Shape, sizing: _Sizing, points: FloatArray, faces: IntArray) -> FloatArray:
    """Move each vertex within the tangent plane halfway to the area-weighted mean of its faces, back on the surface."""
    corners = points[faces]
    centre = corners.mean(axis=1)
    weight = 0.5 * np.linalg.norm(_normals(points, faces), axis=1) / sizing(centre) ** 2
    total = np.bincount(faces.ravel(), np.repeat(weight, 3), minlength=len(points))
    mean = np.stack(
        [
            np.bincount(faces.ravel(), np.repeat(weight * centre[:, axis], 3), minlength=len(points)) / total
            for axis in range(3)
        ],
        axis=1,
    )
    _, gradient, _ = shape.sample(points)
    normal = gradient / np.maximum(np.linalg.norm(gradient, axis=1), 1e-12)[:, None]
    move = 0.5 * (mean - points)
    move -= np.einsum("ij,ij->i", move, normal)[:, None] * normal
    return shape.project(points + move)
