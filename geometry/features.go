package geometry

import (
	"fmt"
	"math"
	"slices"

	"libeman/geometry/internal/r3"
	"libeman/geometry/parallel"
	"libeman/simd"
)

// Space is what the vectors of RelTan are given in.
type Space int

// The spaces.
const (
	TangentSpace Space = iota // coordinates ⟨v, e1⟩, ⟨v, e2⟩ in the gauge
	AmbientSpace              // the vector of ℝ³
)

// MaxPowers is the largest number of relative powers in one call.
const MaxPowers = 64

// RelTanOptions select relative tangential features (§4).
type RelTanOptions struct {
	Powers []float64 // the relative powers r, at most MaxPowers
	Space  Space
	// The factor of a vertex of degree N is 1/(Constant·N^DegreePower).
	DegreePower, Constant float64
}

// RelTanOf returns the paper's options for the given powers: tangent
// coordinates with the factor N^{−3/2} (app. B.1).
func RelTanOf(powers ...float64) RelTanOptions {
	return RelTanOptions{Powers: powers, Space: TangentSpace, DegreePower: 1.5, Constant: 1}
}

// Check says what is wrong with the options.
func (o *RelTanOptions) Check() error {
	if len(o.Powers) == 0 || len(o.Powers) > MaxPowers {
		return badArgument("powers", "%d powers are given, from 1 to %d are allowed", len(o.Powers), MaxPowers)
	}
	for i, r := range o.Powers {
		if math.IsNaN(r) || math.IsInf(r, 0) {
			return badArgument("powers", "power %d is %g", i, r)
		}
	}
	if o.Space != TangentSpace && o.Space != AmbientSpace {
		return badArgument("space", "%d is not a known choice", o.Space)
	}
	if !(math.Abs(o.DegreePower) <= 16) {
		return badArgument("degree_power", "%g is not in [-16, 16]", o.DegreePower)
	}
	if !(math.Abs(o.Constant) >= 0x1p-100 && math.Abs(o.Constant) <= 0x1p100) {
		return badArgument("constant", "%g is not a usable divisor", o.Constant)
	}
	return nil
}

// RowWidth is the number of values of one vertex: one vector for each power.
func (o *RelTanOptions) RowWidth() int {
	if o.Space == AmbientSpace {
		return 3 * len(o.Powers)
	}
	return 2 * len(o.Powers)
}

// RelTan writes the relative tangential features of all vertices (§4): for
// each power r, with d = q−p and N_p neighbours,
//
//	v_p(r) = N_p^{−3/2} π_p[ (Σ_q d/|d|^r) (Σ_q |d|^{r−1}) ],
//
// a tangent vector without unit. A row holds one vector for each power. They
// turn with the mesh and do not change under translation and scaling.
//
// A power so large that a vector overflows is an InvalidMeshError naming the
// vertex.
func (v *View) RelTan(o RelTanOptions, write RowWriter, control *parallel.Control) error {
	if err := o.Check(); err != nil {
		return err
	}
	set := v.scalarRelTan
	if v.kernels != nil && slices.Min(o.Powers) >= -simd.MaxPower && slices.Max(o.Powers) <= simd.MaxPower {
		set = v.kernelRelTan
	}
	factors := newDegreeFactors(&o)
	return v.writeBlocks(o.RowWidth(), control, write, func(rows []float64, begin, end int) error {
		return set(rows, begin, end, &o, factors)
	})
}

// scalarRelTan fills the rows of the vertices [begin, end).
func (v *View) scalarRelTan(rows []float64, begin, end int, o *RelTanOptions, factors *degreeFactors) error {
	width := o.RowWidth()
	for p := begin; p < end; p++ {
		if err := v.setRelTan(rows[width*(p-begin):][:width], p, o, factors); err != nil {
			return err
		}
	}
	return nil
}

// setRelTan fills the row of p.
func (v *View) setRelTan(row []float64, p int, o *RelTanOptions, factors *degreeFactors) error {
	ring := v.edges.of(p)
	return o.setPoint(row, v.positions, v.frames, "vertex", p, ring, factors.of(len(ring)))
}

// PointRow fills the row of point p of any set of points with frames, packed
// positions and rows e1, e2, n, with these neighbours, none of which lies at
// its place. An overflow is an InvalidMeshError naming the sample p.
func (o *RelTanOptions) PointRow(row, positions, frames []float64, p int, ring []int32) error {
	return o.setPoint(row, positions, frames, "sample", p, ring, o.factor(len(ring)))
}

func (o *RelTanOptions) setPoint(row, positions, frames []float64, element string, p int, ring []int32, factor float64) error {
	var sums [MaxPowers]relTanSums
	ringSums(positions, p, ring, o.Powers, sums[:len(o.Powers)])
	e1, e2 := r3.At(frames, 3*p), r3.At(frames, 3*p+1)
	for i := range o.Powers {
		sums[i].putVector(row, i, factor, e1, e2, o.Space)
	}
	if !finite(row) {
		return &InvalidMeshError{Element: element, Index: int64(p), Problem: fmt.Sprintf("a RelTan feature of powers %v overflows", o.Powers)}
	}
	return nil
}

func finite(values []float64) bool {
	for _, x := range values {
		if x-x != 0 {
			return false
		}
	}
	return true
}

// degreeFactors are what the sums of a vertex are multiplied by, by its degree.
type degreeFactors struct {
	options *RelTanOptions
	usual   [32]float64
}

func newDegreeFactors(o *RelTanOptions) *degreeFactors {
	f := &degreeFactors{options: o}
	for degree := range f.usual {
		f.usual[degree] = o.factor(degree)
	}
	return f
}

func (f *degreeFactors) of(degree int) float64 {
	if degree < len(f.usual) {
		return f.usual[degree]
	}
	return f.options.factor(degree)
}

// factor is 1/(Constant·N^DegreePower), and 0 without neighbours.
func (o *RelTanOptions) factor(degree int) float64 {
	if degree == 0 {
		return 0
	}
	return 1 / (o.Constant * degreePower(float64(degree), o.DegreePower))
}

// relTanSums are the two sums of one power: Σ d|d|^{−r} and Σ |d|^{r−1}.
type relTanSums struct {
	direction r3.Vec
	length    float64
}

// ringSums adds up a ring of neighbours of p for each power. Lengths are taken relative to
// a power of two near the first neighbour's, which changes neither bits nor
// result (the product of the two sums has no unit) but keeps them in range.
//
// With |d|^{−r} known, |d|^{r−1} is its inverse over |d|: one power function an
// edge and power, and none for r = 1/2.
func ringSums(positions []float64, p int, ring []int32, powers []float64, sums []relTanSums) {
	clear(sums)
	if len(ring) == 0 {
		return
	}
	centre := r3.At(positions, p)
	exponent := exponentOf(r3.At(positions, int(ring[0])).Minus(centre).Squared()) &^ 1
	scale := powerOfTwo(-exponent / 2)
	onlyRoots := len(powers) == 1 && powers[0] == 0.5
	for _, q := range ring {
		d := r3.At(positions, int(q)).Minus(centre).Times(scale)
		squared := d.Squared()
		inverse := 1 / math.Sqrt(squared)
		log := 0.0
		if !onlyRoots {
			log = log2(squared)
		}
		for i, r := range powers {
			var power, other float64
			if r == 0.5 {
				power = math.Sqrt(inverse)
				other = power
			} else {
				power = exp2(-0.5 * r * log)
				other = inverse / power
			}
			s := &sums[i]
			s.direction.X += d.X * power
			s.direction.Y += d.Y * power
			s.direction.Z += d.Z * power
			s.length += other
		}
	}
}

// putVector writes vector i of a row: the product of the sums, projected on the
// plane of e1 and e2.
func (s *relTanSums) putVector(row []float64, i int, factor float64, e1, e2 r3.Vec, space Space) {
	scale := factor * s.length
	x, y := scale*e1.Dot(s.direction), scale*e2.Dot(s.direction)
	if space == TangentSpace {
		row[2*i], row[2*i+1] = x, y
	} else {
		r3.Put(row, i, e1.Times(x).Plus(e2.Times(y)))
	}
}

func degreePower(degree, power float64) float64 {
	if power == 1.5 {
		return degree * math.Sqrt(degree)
	}
	return math.Pow(degree, power)
}

// GET writes the features of Gauge Equivariant Transformers, V×3 (app. G):
// ⟨p, n⟩ of type ρ0, and ⟨p, e1⟩, ⟨p, e2⟩ of type ρ1. They depend on where the
// origin lies and have the mesh's unit; those of an isolated vertex are 0.
func (v *View) GET(write RowWriter) error {
	return v.writeRows(3, write, func(row []float64, p int) {
		if len(v.edges.of(p)) == 0 {
			clear(row)
			return
		}
		position, gauge := r3.At(v.positions, p), r3.FrameAt(v.frames, p)
		for i, x := range [3]float64{position.Dot(gauge.N), position.Dot(gauge.E1), position.Dot(gauge.E2)} {
			row[i] = math.Ldexp(x, v.exponent)
		}
	})
}
