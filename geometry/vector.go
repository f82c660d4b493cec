package geometry

import "math"

// vec3 is a vector of ℝ³.
type vec3 struct{ x, y, z float64 }

func at(coordinates []float64, i int) vec3 {
	c := coordinates[3*i : 3*i+3 : 3*i+3]
	return vec3{c[0], c[1], c[2]}
}

func put(coordinates []float64, i int, v vec3) {
	c := coordinates[3*i : 3*i+3 : 3*i+3]
	c[0], c[1], c[2] = v.x, v.y, v.z
}

func (a vec3) plus(b vec3) vec3     { return vec3{a.x + b.x, a.y + b.y, a.z + b.z} }
func (a vec3) minus(b vec3) vec3    { return vec3{a.x - b.x, a.y - b.y, a.z - b.z} }
func (a vec3) times(s float64) vec3 { return vec3{a.x * s, a.y * s, a.z * s} }
func (a vec3) dot(b vec3) float64   { return a.x*b.x + a.y*b.y + a.z*b.z }
func (a vec3) squared() float64     { return a.dot(a) }
func (a vec3) length() float64      { return math.Sqrt(a.squared()) }
func (a vec3) maxAbs() float64      { return max(math.Abs(a.x), math.Abs(a.y), math.Abs(a.z)) }
func (a vec3) without(n vec3) vec3  { return a.minus(n.times(a.dot(n))) }
func (a vec3) normalised() vec3     { return a.times(1 / a.length()) }
func (a vec3) rotated(r *[9]float64) vec3 {
	return vec3{
		r[0]*a.x + r[1]*a.y + r[2]*a.z,
		r[3]*a.x + r[4]*a.y + r[5]*a.z,
		r[6]*a.x + r[7]*a.y + r[8]*a.z,
	}
}

func (a vec3) cross(b vec3) vec3 {
	return vec3{a.y*b.z - a.z*b.y, a.z*b.x - a.x*b.z, a.x*b.y - a.y*b.x}
}

// perpendicular returns a unit vector orthogonal to the unit vector a: the
// projection of the coordinate axis that a is least aligned with.
func (a vec3) perpendicular() vec3 {
	axis := vec3{x: 1}
	x, y, z := math.Abs(a.x), math.Abs(a.y), math.Abs(a.z)
	if y < x && y <= z {
		axis = vec3{y: 1}
	} else if z < x && z < y {
		axis = vec3{z: 1}
	}
	return axis.without(a).normalised()
}

// frame is the gauge of a vertex: an orthonormal, right-handed basis with
// e1, e2 in the tangent plane and n normal to it.
type frame struct{ e1, e2, n vec3 }

// Rows e1, e2, n of nine float64 each, one frame a vertex.
func frameAt(frames []float64, i int) frame {
	f := frames[9*i : 9*i+9 : 9*i+9]
	return frame{vec3{f[0], f[1], f[2]}, vec3{f[3], f[4], f[5]}, vec3{f[6], f[7], f[8]}}
}

func putFrame(frames []float64, i int, f frame) {
	row := frames[9*i : 9*i+9 : 9*i+9]
	row[0], row[1], row[2] = f.e1.x, f.e1.y, f.e1.z
	row[3], row[4], row[5] = f.e2.x, f.e2.y, f.e2.z
	row[6], row[7], row[8] = f.n.x, f.n.y, f.n.z
}

// isOrthonormal says whether the frame is a right-handed orthonormal basis, to
// a tolerance in every product of two of its vectors.
func (f frame) isOrthonormal(tolerance float64) bool {
	near := func(value, want float64) bool { return math.Abs(value-want) <= tolerance } // false for NaN
	return near(f.e1.squared(), 1) && near(f.e2.squared(), 1) && near(f.n.squared(), 1) &&
		near(f.e1.dot(f.e2), 0) && near(f.e1.dot(f.n), 0) && near(f.e2.dot(f.n), 0) &&
		f.e1.cross(f.e2).dot(f.n) > 0
}

// turned is the frame rotated by the angle about its normal: the gauge change
// that sends the coordinates z_n of a feature to e^{−in·angle} z_n.
func (f frame) turned(angle float64) frame {
	sin, cos := math.Sincos(angle)
	e1 := f.e1.times(cos).plus(f.e2.times(sin))
	return frame{e1, f.n.cross(e1), f.n}
}
