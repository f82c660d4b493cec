package geometry

import (
	"math"
	"sync/atomic"

	"libeman/geometry/internal/r3"
	"libeman/geometry/parallel"
)

// setFrames computes the frames of all vertices from the positions, except in
// the custom gauge. It also tells whether some edge has zero length.
func (v *View) setFrames(options Options, control *parallel.Control) (zeroLength bool, err error) {
	var found atomic.Bool
	set := v.scalarFrames
	if v.kernels != nil && options.Normals == AreaNormals && options.Gauge != CustomGauge {
		set = v.kernelFrames
	}
	err = v.resources.Threads.Range(control, v.VertexCount(), blockRows, func(_, begin, end int) error {
		if set(begin, end, options) {
			found.Store(true)
		}
		return nil
	})
	return found.Load(), err
}

// scalarFrames computes the frames of the vertices [begin, end).
func (v *View) scalarFrames(begin, end int, options Options) (touching bool) {
	for p := begin; p < end; p++ {
		touching = v.setFrame(p, options) || touching
	}
	return touching
}

// setFrame computes the frame of p, and tells whether a neighbour coincides
// with it.
func (v *View) setFrame(p int, options Options) (touching bool) {
	normal := v.areaNormal
	if options.Normals == AngleNormals {
		normal = v.angleNormal
	}
	n, defined, touching := normal(p)
	if options.Gauge == CustomGauge {
		return touching
	}
	if !defined {
		n = v.substituteNormal(p)
	}
	r3.PutFrame(v.frames, p, v.firstNeighborFrame(p, n))
	v.turnFrame(p, options)
	return touching
}

// HasNormal says whether the faces of p define a normal; they do not where they
// cancel out or have no area. In a mesh without faces all normals were given.
func (v *View) HasNormal(p int) bool {
	if v.FaceCount() == 0 {
		return v.HasOwnFrames()
	}
	normal := v.areaNormal
	if v.mesh.options.Normals == AngleNormals {
		normal = v.angleNormal
	}
	_, defined, _ := normal(p)
	return defined
}

// turnFrame turns the frame of p in the random gauge.
func (v *View) turnFrame(p int, options Options) {
	if options.Gauge == RandomGauge {
		r3.PutFrame(v.frames, p, r3.FrameAt(v.frames, p).Turned(randomAngle(options.Seed, uint64(p))))
	}
}

// Rounding errors: a cross product of two edges, and the projection of one on a
// plane, are noise below these fractions of their size. Edges are differences
// of coordinates, whose own rounding counts as well: it is what remains of a
// degenerate face far from the origin.
const (
	noArea        = 0x1p-48 // of |a||b| + (|a| + |b|)·largest coordinate
	noProjection  = 0x1p-34 // of |d|: the sine of the angle to the normal
	noiseOfOrigin = 0x1p-50 // of the largest coordinate
)

// areaNoise bounds the rounding error of the cross product of two edges of
// squared lengths a2 and b2 at a vertex with coordinates up to size.
func areaNoise(a2, b2, size float64) float64 {
	a, b := math.Sqrt(a2), math.Sqrt(b2)
	return noArea * (a*b + (a+b)*size)
}

// projects says whether a tangent vector of squared length tangent2, the
// projection of a vector of squared length length2 between points with
// coordinates up to size, has a direction.
func projects(tangent2, length2, size float64) bool {
	floor := noiseOfOrigin * size
	return tangent2 > noProjection*noProjection*length2 && tangent2 > floor*floor && length2 >= zeroLengthSquared
}

// areaNormal is the area-weighted normal of p (§3.2): the direction of the sum
// of the cross products of the faces around it. It is not defined where that
// sum vanishes. touching tells that a neighbour coincides with p.
func (v *View) areaNormal(p int) (n r3.Vec, defined, touching bool) {
	centre := r3.At(v.positions, p)
	size := centre.MaxAbs()
	var sum r3.Vec
	noise := 0.0
	wedges := v.topology.wedgesAt(p)
	for i := 0; i < len(wedges); i += 2 {
		a := r3.At(v.positions, int(wedges[i])).Minus(centre)
		b := r3.At(v.positions, int(wedges[i+1])).Minus(centre)
		a2, b2 := a.Squared(), b.Squared()
		touching = touching || a2 < zeroLengthSquared || b2 < zeroLengthSquared
		sum = sum.Plus(a.Cross(b))
		noise += areaNoise(a2, b2, size)
	}
	length := sum.Length()
	if length <= noise {
		return r3.Vec{}, false, touching
	}
	return sum.Times(1 / length), true, touching
}

// angleNormal is the normal of p with each face's weighted by its angle at p.
func (v *View) angleNormal(p int) (n r3.Vec, defined, touching bool) {
	centre := r3.At(v.positions, p)
	size := centre.MaxAbs()
	var sum r3.Vec
	weights := 0.0
	wedges := v.topology.wedgesAt(p)
	for i := 0; i < len(wedges); i += 2 {
		a := r3.At(v.positions, int(wedges[i])).Minus(centre)
		b := r3.At(v.positions, int(wedges[i+1])).Minus(centre)
		a2, b2 := a.Squared(), b.Squared()
		touching = touching || a2 < zeroLengthSquared || b2 < zeroLengthSquared
		cross := a.Cross(b)
		area := cross.Length()
		if area <= areaNoise(a2, b2, size) {
			continue
		}
		angle := math.Atan2(area, a.Dot(b))
		sum = sum.Plus(cross.Times(angle / area))
		weights += angle
	}
	length := sum.Length()
	if length <= noArea*weights {
		return r3.Vec{}, false, touching
	}
	return sum.Times(1 / length), true, touching
}

// substituteNormal stands in where the faces define no normal: the cross
// product of the first two independent directions to neighbours (which turns
// with the mesh), else a perpendicular of their common line, else e_z.
func (v *View) substituteNormal(p int) r3.Vec {
	centre := r3.At(v.positions, p)
	var first r3.Vec
	found := false
	for _, q := range v.topology.edges.of(p) {
		d := r3.At(v.positions, int(q)).Minus(centre)
		if d.Squared() < zeroLengthSquared {
			continue
		}
		d = d.Normalised()
		if !found {
			first, found = d, true
			continue
		}
		if cross := first.Cross(d); cross.Length() > 1e-6 {
			return cross.Normalised()
		}
	}
	if found {
		return first.Perpendicular()
	}
	return r3.Vec{Z: 1}
}

// firstNeighborFrame is the frame of p whose e1 points to the first neighbour
// that has a projection on the plane normal to n.
func (v *View) firstNeighborFrame(p int, n r3.Vec) r3.Frame {
	centre := r3.At(v.positions, p)
	size := centre.MaxAbs()
	for _, q := range v.topology.edges.of(p) {
		d := r3.At(v.positions, int(q)).Minus(centre)
		t := d.Without(n)
		if t2 := t.Squared(); projects(t2, d.Squared(), size) {
			// Projected twice: once leaves an error of the order of |d|/|t|.
			e1 := t.Times(1 / math.Sqrt(t2)).Without(n).Normalised()
			return r3.Frame{E1: e1, E2: n.Cross(e1), N: n}
		}
	}
	e1 := n.Perpendicular()
	return r3.Frame{E1: e1, E2: n.Cross(e1), N: n}
}

// VertexNormals writes the V×3 unit normals.
func (v *View) VertexNormals(write RowWriter) error {
	return v.writeRows(3, write, func(row []float64, p int) {
		copy(row, v.frames[9*p+6:9*p+9])
	})
}

// Frames writes the V×9 frames, rows e1, e2, n of each vertex.
func (v *View) Frames(write RowWriter) error {
	return v.resources.Threads.Range(nil, v.VertexCount(), blockRows, func(_, begin, end int) error {
		return write(v.frames[9*begin:9*end], begin, end)
	})
}

// Positions writes the V×3 positions, in the unit that they were given in.
func (v *View) Positions(write RowWriter) error {
	return v.writeRows(3, write, func(row []float64, p int) {
		for i := range row {
			row[i] = math.Ldexp(v.positions[3*p+i], v.exponent)
		}
	})
}
