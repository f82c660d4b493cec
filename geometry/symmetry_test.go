package geometry

import (
	"math"
	"testing"

	"libeman/geometry/internal/r3"
)

var testPowers = []float64{-2, 0, 0.5, 0.7, 1, 3}

// The paper's Lemma (§4): RelTan turns with the mesh and ignores translation
// and scale.
func TestRelTanSymmetries(t *testing.T) {
	for _, shape := range smallMeshes() {
		m := shape.build(t, Options{}, 2)
		ambient, tangent := relTan(t, m, AmbientSpace, testPowers...), relTan(t, m, TangentSpace, testPowers...)
		for seed := range uint64(5) {
			s := Similarity{Rotation: RandomRotation(seed), Translation: [3]float64{1, -2, float64(seed)}, Scale: math.Exp(float64(seed) - 2)}
			moved, err := m.Transform(s, nil)
			if err != nil {
				t.Fatal(err)
			}
			turned := make([]float64, len(ambient))
			for i := range len(ambient) / 3 {
				r3.Put(turned, i, r3.At(ambient, i).Rotated(&s.Rotation))
			}
			if d := largestDifference(t, relTan(t, moved, AmbientSpace, testPowers...), turned); d > 1e-10 {
				t.Errorf("%s: vectors differ by %g after a similarity", shape.name, d)
			}
			if d := largestDifference(t, relTan(t, moved, TangentSpace, testPowers...), tangent); d > 1e-10 {
				t.Errorf("%s: coordinates differ by %g after a similarity", shape.name, d)
			}
			moved.Close()
		}
	}
}

// Scaling by a power of two is exact in every step.
func TestScalingByAPowerOfTwoChangesNoBit(t *testing.T) {
	shape := sphere(5, 0.3, 7)
	want := relTan(t, shape.build(t, Options{}, 1), TangentSpace, testPowers...)
	for _, exponent := range []int{-900, -30, 1, 40, 900} {
		scaled := testMesh{"scaled", nil, shape.faces}
		for _, x := range shape.positions {
			scaled.positions = append(scaled.positions, math.Ldexp(x, exponent))
		}
		m := scaled.build(t, Options{}, 1)
		for i, x := range relTan(t, m, TangentSpace, testPowers...) {
			if x != want[i] {
				t.Fatalf("2^%d: value %d is %g, was %g", exponent, i, x, want[i])
			}
		}
		positions := rows(t, m, 3, (*View).VertexCount, (*View).Positions)
		if d := largestDifference(t, positions, scaled.positions); d != 0 {
			t.Errorf("2^%d: positions come back with a difference of %g", exponent, d)
		}
	}
}

func TestFarTranslation(t *testing.T) {
	for _, shape := range smallMeshes() {
		want := relTan(t, shape.build(t, Options{}, 1), TangentSpace, 0.5, 0.7)
		far := testMesh{"far", nil, shape.faces}
		for _, x := range shape.positions {
			far.positions = append(far.positions, x+2e6) // the diameter is about 2
		}
		if d := largestDifference(t, relTan(t, far.build(t, Options{}, 1), TangentSpace, 0.5, 0.7), want); d > 1e-6 {
			t.Errorf("%s: difference %g", shape.name, d)
		}
	}
}

func TestGaugeChange(t *testing.T) {
	for _, shape := range smallMeshes() {
		m := shape.build(t, Options{}, 2)
		angles := make([]float64, shape.vertices())
		RandomAngles(5, 0, angles)
		changed, err := m.ChangeGauge(angles, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(changed.Close)

		// Vectors of space do not know the gauge.
		if d := largestDifference(t, relTan(t, changed, AmbientSpace, 0.7), relTan(t, m, AmbientSpace, 0.7)); d > 1e-12 {
			t.Errorf("%s: vectors differ by %g", shape.name, d)
		}
		// z ↦ e^{−i·angle} z; θ ↦ θ − a_p; g ↦ g − a_p + a_q.
		before, after := relTan(t, m, TangentSpace, 0.7), relTan(t, changed, TangentSpace, 0.7)
		for p, a := range angles {
			sin, cos := math.Sincos(a)
			x, y := before[2*p], before[2*p+1]
			before[2*p], before[2*p+1] = cos*x+sin*y, cos*y-sin*x
		}
		if d := largestDifference(t, after, before); d > 1e-12 {
			t.Errorf("%s: coordinates differ by %g", shape.name, d)
		}
		theta, transport := edgeAngles(t, m), transportAngles(t, m)
		e := 0
		for p := range angles {
			for _, q := range neighborsOf(t, m, p) {
				theta[e] -= angles[p]
				transport[e] += angles[q] - angles[p]
				e++
			}
		}
		if d := angleDifference(edgeAngles(t, changed), theta); d > 1e-12 {
			t.Errorf("%s: θ differs by %g", shape.name, d)
		}
		if d := angleDifference(transportAngles(t, changed), transport); d > 1e-12 {
			t.Errorf("%s: g differs by %g", shape.name, d)
		}
	}
}

func TestTransformKeepsCustomFrames(t *testing.T) {
	m := sphere(4, 0.3, 9).build(t, Options{Gauge: RandomGauge, Seed: 3}, 1)
	angles := make([]float64, len(framesOf(t, m))/9)
	custom, err := m.ChangeGauge(angles, nil) // by nothing: the same frames, but custom
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(custom.Close)
	s := Similarity{Rotation: RandomRotation(1), Scale: 2}
	moved, err := custom.Transform(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(moved.Close)
	want := framesOf(t, m)
	for i := range len(want) / 3 {
		r3.Put(want, i, r3.At(want, i).Rotated(&s.Rotation))
	}
	if d := largestDifference(t, framesOf(t, moved), want); d > 1e-14 {
		t.Errorf("frames differ by %g", d)
	}
	if d := largestDifference(t, relTan(t, moved, TangentSpace, 0.5), relTan(t, m, TangentSpace, 0.5)); d > 1e-12 {
		t.Errorf("coordinates differ by %g", d)
	}
}

func TestPermutation(t *testing.T) {
	for _, shape := range smallMeshes() {
		for _, gauge := range []Gauge{FirstNeighborGauge, CustomGauge} {
			m := shape.build(t, Options{}, 2)
			if gauge == CustomGauge {
				var err error
				if m, err = m.ChangeGauge(make([]float64, shape.vertices()), nil); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(m.Close)
			}
			p := RandomPermutationOf(11, shape.vertices(), len(shape.faces)/3)
			permuted, err := m.Permute(p, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(permuted.Close)
			want := make([]float64, 0, 3*shape.vertices())
			original := relTan(t, m, AmbientSpace, 0.7)
			for _, old := range p.VertexOrder {
				want = append(want, original[3*old:3*old+3]...)
			}
			if d := largestDifference(t, relTan(t, permuted, AmbientSpace, 0.7), want); d > 1e-12 {
				t.Errorf("%s: vectors differ by %g", shape.name, d)
			}
			moved := 0
			before, after := framesOf(t, m), framesOf(t, permuted)
			for i, old := range p.VertexOrder {
				if r3.At(before, 3*int(old)).Minus(r3.At(after, 3*i)).Length() > 1e-6 {
					moved++
				}
			}
			if (gauge == CustomGauge) != (moved == 0) {
				t.Errorf("%s: %d first axes changed with gauge %d", shape.name, moved, gauge)
			}
		}
	}
}

func TestTransformationArguments(t *testing.T) {
	shape := sphere(2, 0, 1)
	m := shape.build(t, Options{}, 1)
	rotation := RandomRotation(0)
	reflection := rotation
	for i := range 3 {
		reflection[i] = -reflection[i]
	}
	vertices, faces := shape.vertices(), len(shape.faces)/3
	order := RandomPermutationOf(0, vertices, faces)
	twice := RandomPermutationOf(0, vertices, faces)
	twice.VertexOrder[3] = twice.VertexOrder[4]
	for name, attempt := range map[string]func() (*Mesh, error){
		"rotation: ":     func() (*Mesh, error) { return m.Transform(Similarity{Rotation: reflection, Scale: 1}, nil) },
		"scale: ":        func() (*Mesh, error) { return m.Transform(Similarity{Rotation: rotation}, nil) },
		"translation: ":  func() (*Mesh, error) { return m.Transform(Similarity{rotation, [3]float64{0, math.NaN(), 0}, 1}, nil) },
		"angles: 3 ":     func() (*Mesh, error) { return m.ChangeGauge(make([]float64, 3), nil) },
		"vertex_order: ": func() (*Mesh, error) { return m.Permute(twice, nil) },
		"face_order: ": func() (*Mesh, error) {
			return m.Permute(Permutation{VertexOrder: order.VertexOrder, FaceOrder: order.FaceOrder[1:]}, nil)
		},
		"corner_shift: ": func() (*Mesh, error) {
			return m.Permute(Permutation{VertexOrder: order.VertexOrder, CornerShift: append([]int64{3}, order.CornerShift[1:]...)}, nil)
		},
	} {
		_, err := attempt()
		checkArgumentError(t, err, name)
	}
}

func TestRandomRotationIsUniformAndOrthonormal(t *testing.T) {
	var sum [9]float64
	const n = 4000
	for seed := range uint64(n) {
		r := RandomRotation(seed)
		s := Similarity{Rotation: r, Scale: 1}
		if err := s.check(); err != nil {
			t.Fatal(err)
		}
		for i := range sum {
			sum[i] += r[i]
		}
	}
	for i, s := range sum {
		if math.Abs(s/n) > 4/math.Sqrt(3*n) {
			t.Errorf("entry %d has mean %g, should be near 0", i, s/n)
		}
	}
}
