// Package r3 has the vectors of ℝ³ and the frames of tangent planes that the
// geometry packages compute with, and their packed arrays.
package r3

import "math"

// Vec is a vector of ℝ³.
type Vec struct{ X, Y, Z float64 }

// At is vector i of an array of packed coordinates.
func At(coordinates []float64, i int) Vec {
	c := coordinates[3*i : 3*i+3 : 3*i+3]
	return Vec{c[0], c[1], c[2]}
}

// Put sets vector i of an array of packed coordinates.
func Put(coordinates []float64, i int, v Vec) {
	c := coordinates[3*i : 3*i+3 : 3*i+3]
	c[0], c[1], c[2] = v.X, v.Y, v.Z
}

// Plus is a + b.
func (a Vec) Plus(b Vec) Vec { return Vec{a.X + b.X, a.Y + b.Y, a.Z + b.Z} }

// Minus is a − b.
func (a Vec) Minus(b Vec) Vec { return Vec{a.X - b.X, a.Y - b.Y, a.Z - b.Z} }

// Times is s·a.
func (a Vec) Times(s float64) Vec { return Vec{a.X * s, a.Y * s, a.Z * s} }

// Dot is ⟨a, b⟩.
func (a Vec) Dot(b Vec) float64 { return a.X*b.X + a.Y*b.Y + a.Z*b.Z }

// Cross is a × b.
func (a Vec) Cross(b Vec) Vec {
	return Vec{a.Y*b.Z - a.Z*b.Y, a.Z*b.X - a.X*b.Z, a.X*b.Y - a.Y*b.X}
}

// Squared is |a|².
func (a Vec) Squared() float64 { return a.Dot(a) }

// Length is |a|.
func (a Vec) Length() float64 { return math.Sqrt(a.Squared()) }

// MaxAbs is the largest magnitude of a coordinate.
func (a Vec) MaxAbs() float64 { return max(math.Abs(a.X), math.Abs(a.Y), math.Abs(a.Z)) }

// Without is the projection of a on the plane normal to the unit vector n.
func (a Vec) Without(n Vec) Vec { return a.Minus(n.Times(a.Dot(n))) }

// Normalised is a/|a|.
func (a Vec) Normalised() Vec { return a.Times(1 / a.Length()) }

// Rotated is r·a, for a matrix given row by row.
func (a Vec) Rotated(r *[9]float64) Vec {
	return Vec{
		r[0]*a.X + r[1]*a.Y + r[2]*a.Z,
		r[3]*a.X + r[4]*a.Y + r[5]*a.Z,
		r[6]*a.X + r[7]*a.Y + r[8]*a.Z,
	}
}

// Perpendicular is a unit vector orthogonal to the unit vector a: the
// projection of the coordinate axis that a is least aligned with.
func (a Vec) Perpendicular() Vec {
	axis := Vec{X: 1}
	x, y, z := math.Abs(a.X), math.Abs(a.Y), math.Abs(a.Z)
	if y < x && y <= z {
		axis = Vec{Y: 1}
	} else if z < x && z < y {
		axis = Vec{Z: 1}
	}
	return axis.Without(a).Normalised()
}

// Frame is the gauge of a point: an orthonormal, right-handed basis with E1, E2
// in the tangent plane and N normal to it.
type Frame struct{ E1, E2, N Vec }

// FrameAt is frame i of an array: nine numbers each, the rows E1, E2, N.
func FrameAt(frames []float64, i int) Frame {
	f := frames[9*i : 9*i+9 : 9*i+9]
	return Frame{Vec{f[0], f[1], f[2]}, Vec{f[3], f[4], f[5]}, Vec{f[6], f[7], f[8]}}
}

// PutFrame sets frame i of an array.
func PutFrame(frames []float64, i int, f Frame) {
	row := frames[9*i : 9*i+9 : 9*i+9]
	row[0], row[1], row[2] = f.E1.X, f.E1.Y, f.E1.Z
	row[3], row[4], row[5] = f.E2.X, f.E2.Y, f.E2.Z
	row[6], row[7], row[8] = f.N.X, f.N.Y, f.N.Z
}

// IsOrthonormal says whether the frame is a right-handed orthonormal basis, to
// a tolerance in every product of two of its vectors.
func (f Frame) IsOrthonormal(tolerance float64) bool {
	near := func(value, want float64) bool { return math.Abs(value-want) <= tolerance } // false for NaN
	return near(f.E1.Squared(), 1) && near(f.E2.Squared(), 1) && near(f.N.Squared(), 1) &&
		near(f.E1.Dot(f.E2), 0) && near(f.E1.Dot(f.N), 0) && near(f.E2.Dot(f.N), 0) &&
		f.E1.Cross(f.E2).Dot(f.N) > 0
}

// Turned is the frame rotated by the angle about its normal: the gauge change
// that sends the coordinates z_n of a feature to e^{−in·angle} z_n.
func (f Frame) Turned(angle float64) Frame {
	sin, cos := math.Sincos(angle)
	e1 := f.E1.Times(cos).Plus(f.E2.Times(sin))
	return Frame{e1, f.N.Cross(e1), f.N}
}
