package geometry

import (
	"math"
	"sync/atomic"

	"libeman/geometry/parallel"
)

// setFrames computes the frames of all vertices from the positions, except in
// the custom gauge. It also tells whether some edge has zero length.
func (v *View) setFrames(options Options, control *parallel.Control) (zeroLength bool, err error) {
	var found atomic.Bool
	normal := v.areaNormal
	if options.Normals == AngleNormals {
		normal = v.angleNormal
	}
	err = v.resources.Threads.Range(control, v.VertexCount(), blockRows, func(_, begin, end int) error {
		for p := begin; p < end; p++ {
			n, defined, touching := normal(p)
			if touching {
				found.Store(true)
			}
			if options.Gauge == CustomGauge {
				continue
			}
			if !defined {
				n = v.substituteNormal(p)
			}
			f := v.firstNeighborFrame(p, n)
			if options.Gauge == RandomGauge {
				f = f.turned(randomAngle(options.Seed, uint64(p)))
			}
			putFrame(v.frames, p, f)
		}
		return nil
	})
	return found.Load(), err
}

// noArea is the sine of the angle between two edges of a triangle under which
// its cross product is rounding noise.
const noArea = 0x1p-48

// areaNormal is the area-weighted normal of p (§3.2): the direction of the sum
// of the cross products of the faces around it. It is not defined where that
// sum vanishes. touching tells that a neighbour coincides with p.
func (v *View) areaNormal(p int) (n vec3, defined, touching bool) {
	centre := at(v.positions, p)
	var sum vec3
	size := 0.0 // bounds the sum of |a||b|
	for _, corner := range v.topology.cornersAt(p) {
		next, previous := v.topology.others(corner)
		a := at(v.positions, int(next)).minus(centre)
		b := at(v.positions, int(previous)).minus(centre)
		a2, b2 := a.squared(), b.squared()
		touching = touching || a2 < zeroLengthSquared || b2 < zeroLengthSquared
		sum = sum.plus(a.cross(b))
		size += a2 + b2
	}
	length := sum.length()
	if length <= noArea*size {
		return vec3{}, false, touching
	}
	return sum.times(1 / length), true, touching
}

// angleNormal is the normal of p with each face's weighted by its angle at p.
func (v *View) angleNormal(p int) (n vec3, defined, touching bool) {
	centre := at(v.positions, p)
	var sum vec3
	weights := 0.0
	for _, corner := range v.topology.cornersAt(p) {
		next, previous := v.topology.others(corner)
		a := at(v.positions, int(next)).minus(centre)
		b := at(v.positions, int(previous)).minus(centre)
		a2, b2 := a.squared(), b.squared()
		touching = touching || a2 < zeroLengthSquared || b2 < zeroLengthSquared
		cross := a.cross(b)
		area := cross.length()
		if area <= noArea*math.Sqrt(a2)*math.Sqrt(b2) {
			continue
		}
		angle := math.Atan2(area, a.dot(b))
		sum = sum.plus(cross.times(angle / area))
		weights += angle
	}
	length := sum.length()
	if length <= noArea*weights {
		return vec3{}, false, touching
	}
	return sum.times(1 / length), true, touching
}

// substituteNormal stands in where the faces define no normal: the cross
// product of the first two independent directions to neighbours (which turns
// with the mesh), else a perpendicular of their common line, else e_z.
func (v *View) substituteNormal(p int) vec3 {
	centre := at(v.positions, p)
	var first vec3
	found := false
	for _, q := range v.topology.edges.of(p) {
		d := at(v.positions, int(q)).minus(centre)
		if d.squared() < zeroLengthSquared {
			continue
		}
		d = d.normalised()
		if !found {
			first, found = d, true
			continue
		}
		if cross := first.cross(d); cross.length() > 1e-6 {
			return cross.normalised()
		}
	}
	if found {
		return first.perpendicular()
	}
	return vec3{z: 1}
}

// noProjection is the sine of the angle to the normal under which a direction
// has no projection on the tangent plane.
const noProjection = 0x1p-34

// projects says whether a tangent vector of squared length tangent2, the
// projection of a vector of squared length length2, has a direction.
func projects(tangent2, length2 float64) bool {
	return tangent2 > noProjection*noProjection*length2 && length2 >= zeroLengthSquared
}

// firstNeighborFrame is the frame of p whose e1 points to the first neighbour
// that has a projection on the plane normal to n.
func (v *View) firstNeighborFrame(p int, n vec3) frame {
	centre := at(v.positions, p)
	for _, q := range v.topology.edges.of(p) {
		d := at(v.positions, int(q)).minus(centre)
		t := d.without(n)
		if t2 := t.squared(); projects(t2, d.squared()) {
			// Projected twice: once leaves an error of the order of |d|/|t|.
			e1 := t.times(1 / math.Sqrt(t2)).without(n).normalised()
			return frame{e1, n.cross(e1), n}
		}
	}
	e1 := n.perpendicular()
	return frame{e1, n.cross(e1), n}
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
		write(v.frames[9*begin:9*end], begin, end)
		return nil
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
