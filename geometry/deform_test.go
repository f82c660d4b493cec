package geometry

import (
	"math"
	"testing"

	"libeman/geometry/internal/r3"
)

func TestDeform(t *testing.T) {
	shape := sphere(12, 0.1, 3)
	m := shape.build(t, Options{}, 2)
	linear := [9]float64{1, 0.2, 0, 0, 1.5, 0, -0.1, 0, 0.7}
	positions := func(d Deformation) []float64 {
		deformed, err := m.Deform(d, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer deformed.Close()
		return rows(t, deformed, 3, (*View).VertexCount, (*View).Positions)
	}
	want := make([]float64, len(shape.positions))
	for p := range shape.vertices() {
		r3.Put(want, p, r3.At(shape.positions, p).Rotated(&linear))
	}
	if d := largestDifference(t, positions(Deformation{Linear: linear}), want); d > 1e-15 {
		t.Errorf("a linear map is off by %g", d)
	}

	// The noise has the deviation and the mean that it should, in units of the
	// edges, and depends on the seed.
	const deviation = 0.2
	identity := [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1}
	noisy := positions(Deformation{Linear: identity, Noise: deviation, Seed: 1})
	sum, squares := 0.0, 0.0
	for p := range shape.vertices() {
		x, ring, length := r3.At(shape.positions, p), neighborsOf(t, m, p), 0.0
		for _, q := range ring {
			length += r3.At(shape.positions, int(q)).Minus(x).Length() / float64(len(ring))
		}
		d := r3.At(noisy, p).Minus(x).Times(1 / length)
		sum += d.X + d.Y + d.Z
		squares += d.Squared()
	}
	n := float64(3 * shape.vertices())
	if mean := sum / n; math.Abs(mean) > 4*deviation/math.Sqrt(n) {
		t.Errorf("the mean of the noise is %g", mean)
	}
	if got := math.Sqrt(squares / n); math.Abs(got/deviation-1) > 4/math.Sqrt(2*n) {
		t.Errorf("its deviation is %g, not %g", got, deviation)
	}
	if largestDifference(t, positions(Deformation{Linear: identity, Noise: deviation, Seed: 1}), noisy) != 0 {
		t.Error("the same seed gives another noise")
	}
	if largestDifference(t, positions(Deformation{Linear: identity, Noise: deviation, Seed: 2}), noisy) == 0 {
		t.Error("another seed gives the same noise")
	}
}

// A warp is smooth: near vertices move alike, and none far.
func TestWarp(t *testing.T) {
	shape := sphere(12, 0.1, 3)
	m := shape.build(t, Options{}, 2)
	const amplitude = 0.03
	deformed, err := m.Deform(Deformation{Linear: [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1}, Warp: amplitude, Seed: 5}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer deformed.Close()
	moved := rows(t, deformed, 3, (*View).VertexCount, (*View).Positions)
	diameter, farthest, steepest := 0.0, 0.0, 0.0
	_ = m.Read(func(v *View) error { diameter = v.Diagonal(); return nil })
	by := func(p int) r3.Vec { return r3.At(moved, p).Minus(r3.At(shape.positions, p)) }
	for p := range shape.vertices() {
		farthest = max(farthest, by(p).Length())
		for _, q := range neighborsOf(t, m, p) {
			edge := r3.At(shape.positions, int(q)).Minus(r3.At(shape.positions, p)).Length()
			steepest = max(steepest, by(int(q)).Minus(by(p)).Length()/edge)
		}
	}
	if farthest < amplitude*diameter/4 || farthest > 2*amplitude*diameter {
		t.Errorf("the farthest moves by %g diameters", farthest/diameter)
	}
	if steepest > 2*4*math.Pi*amplitude { // 4 waves, each of half the amplitude and at most 4π/diameter
		t.Errorf("along an edge the field changes by %g of its length", steepest)
	}
}

func TestDeformWithoutCustomFrames(t *testing.T) {
	m := sphere(4, 0, 1).build(t, Options{}, 1)
	custom, err := m.ChangeGauge(make([]float64, 66), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer custom.Close()
	d := Deformation{Linear: [9]float64{1, 0, 0, 0, 2, 0, 0, 0, 1}}
	frames := func(m *Mesh) []float64 {
		deformed, err := m.Deform(d, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer deformed.Close()
		return framesOf(t, deformed)
	}
	if d := largestDifference(t, frames(custom), frames(m)); d != 0 {
		t.Errorf("the frames differ by %g from those of the first neighbours", d)
	}
}

// The normals of points stay normal to the surface that they lie on.
func TestDeformedPointsKeepTheirNormals(t *testing.T) {
	shape := sphere(6, 0, 1)
	linear := [9]float64{1, 0.4, 0, 0, 1.5, 0, -0.1, 0, 0.7}
	in := FromSlices(shape.positions, []int32(nil))
	in.Frames = func(destination []float64, begin, end int) {
		for p := begin; p < end; p++ {
			n := r3.At(shape.positions, p)
			e1 := n.Perpendicular()
			r3.PutFrame(destination, p-begin, r3.Frame{E1: e1, E2: n.Cross(e1), N: n})
		}
	}
	points, err := New(Resources{}, in, Options{Gauge: CustomGauge}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer points.Close()
	moved, err := points.Deform(Deformation{Linear: linear}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer moved.Close()
	frames := framesOf(t, moved)
	for p := range shape.vertices() {
		n := r3.At(shape.positions, p)
		tangent := n.Perpendicular()
		for _, along := range []r3.Vec{tangent, n.Cross(tangent)} {
			if d := math.Abs(along.Rotated(&linear).Dot(r3.At(frames, 3*p+2))); d > 1e-12 {
				t.Fatalf("point %d: a tangent is off its plane by %g", p, d)
			}
		}
	}
}

func TestDeformationArguments(t *testing.T) {
	m := sphere(2, 0, 1).build(t, Options{}, 1)
	for name, d := range map[string]Deformation{
		"linear: ": {Linear: [9]float64{math.Inf(1)}},
		"noise: ":  {Noise: -1},
		"warp: ":   {Warp: math.NaN()},
	} {
		_, err := m.Deform(d, nil)
		checkArgumentError(t, err, name)
	}
}
