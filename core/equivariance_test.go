package core

import (
	"math"
	"math/rand/v2"
	"testing"

	"libeman/geometry/memory"
	"libeman/simd"
)

// A change of gauge turns the frame of each vertex p by an angle φ_p. Then
// features of order n turn by -nφ_p (§3.2), θ_pq becomes θ_pq - φ_p, and
// g_{q→p} becomes g_{q→p} + φ_q - φ_p, for ρ_n(g) must lead from the new
// coordinates at q to the new ones at p:
// e^{-inφ_p} e^{ing} z = e^{ing'} e^{-inφ_q} z.

// regauged is the mesh in other gauges.
func (m *randomMesh) regauged(angles []float64) *randomMesh {
	changed := &randomMesh{offsets: m.offsets, neighbors: m.neighbors}
	changed.geometry.Length = m.geometry.Length
	for p := range len(m.offsets) - 1 {
		for e := m.offsets[p]; e < m.offsets[p+1]; e++ {
			cosTheta, sinTheta := turn(m.geometry.CosTheta[e], m.geometry.SinTheta[e], -angles[p])
			cosG, sinG := turn(m.geometry.CosTransport[e], m.geometry.SinTransport[e], angles[m.neighbors[e]]-angles[p])
			changed.geometry.CosTheta = append(changed.geometry.CosTheta, cosTheta)
			changed.geometry.SinTheta = append(changed.geometry.SinTheta, sinTheta)
			changed.geometry.CosTransport = append(changed.geometry.CosTransport, cosG)
			changed.geometry.SinTransport = append(changed.geometry.SinTransport, sinG)
		}
	}
	return changed
}

// turn turns a vector by an angle; the zero vector stays exactly zero.
func turn(x, y, angle float64) (float64, float64) {
	sin, cos := math.Sincos(angle)
	return cos*x - sin*y, sin*x + cos*y
}

// regauge is features [vertices, channels, components] in other gauges.
func regauge(features []float64, of Type, angles []float64) []float64 {
	changed := append([]float64(nil), features...)
	for i := range len(features) / of.Components() {
		f := changed[i*of.Components():][:of.Components()]
		for n := 1; n <= of.Order; n++ {
			f[2*n-1], f[2*n] = turn(f[2*n-1], f[2*n], -float64(n)*angles[i/of.Channels])
		}
	}
	return changed
}

func randomAngles(random *rand.Rand, n int) []float64 {
	angles := make([]float64, n)
	for i := range angles {
		angles[i] = 2 * math.Pi * random.Float64()
	}
	return angles
}

const equivarianceBound = 1e-12

func TestLayersAreGaugeEquivariant(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	mesh, angles := newRandomMesh(random, 60), randomAngles(random, 60)
	turned := mesh.regauged(angles)
	for _, s := range layerVariants() {
		c := newConvolution[float64](s, randomParameters(random, s))
		x := randomNumbers(random, 60*s.in.Channels*s.in.Components())
		y, alpha := runConvolution(c, mesh.graph(t), x)
		other, otherAlpha := runConvolution(c, turned.graph(t), regauge(x, s.in, angles))
		gap := largestError(t, other, regauge(y, s.out, angles))
		switch {
		case s.bias == BiasAdditive && s.out.Order > 0:
			if gap < 1e-3 {
				t.Errorf("%v: an additive bias should break equivariance: gap %g", s, gap)
			}
		case !(gap < equivarianceBound):
			t.Errorf("%v: gap %g", s, gap)
		}
		if gap := largestError(t, otherAlpha, alpha); s.attention && !(gap < equivarianceBound) {
			t.Errorf("%v: gap %g of α", s, gap)
		}
	}
}

func TestNonlinearitiesAreGaugeEquivariant(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	const vertices = 200
	for order := range simd.MaxOrder + 1 {
		of := Type{5, order}
		angles, x := randomAngles(random, vertices), randomNumbers(random, vertices*5*of.Components())
		gate := layerParameters{"gate_scale": randomNumbers(random, order*5), "gate_offset": randomNumbers(random, order*5)}
		for _, kind := range []Nonlinearity{NonlinearityPoly, NonlinearityGate, NonlinearityRegular, NonlinearityNone} {
			a := newActivation[float64](kind, of, 2*order+3, gate)
			apply := func(x []float64) []float64 {
				rows := toRows[float64](x, of)
				a.apply(simd.Generic[float64]{}, rows, vertices)
				return fromRows(rows, of)
			}
			gap := largestError(t, apply(regauge(x, of, angles)), regauge(apply(x), of, angles))
			if exact := kind != NonlinearityRegular || order == 0; exact != (gap < equivarianceBound) {
				t.Errorf("%s, order %d: gap %g", kind, order, gap)
			}
		}
	}
}

// The issue that poly answers: it is closer to ReLU on the circle than ReLU on
// 7 samples is, and positively homogeneous like it.
func TestPolyIsCloseToReLU(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	const vertices = 500
	of := Type{16, 2}
	x := randomNumbers(random, vertices*16*5)
	apply := func(kind Nonlinearity, samples int, scale float64) []float64 {
		rows := toRows[float64](x, of)
		for i := range rows.Data {
			rows.Data[i] *= scale
		}
		a := newActivation[float64](kind, of, samples, nil)
		a.apply(simd.Generic[float64]{}, rows, vertices)
		return fromRows(rows, of)
	}
	exact := apply(NonlinearityRegular, 1001, 1)
	ofPoly := distance(apply(NonlinearityPoly, 0, 1), exact)
	ofSamples := distance(apply(NonlinearityRegular, 7, 1), exact)
	t.Logf("from ReLU on the circle: poly %.3f, 7 samples %.3f", ofPoly, ofSamples)
	if ofPoly > 0.036 || ofSamples < 0.06 {
		t.Errorf("poly %g, 7 samples %g", ofPoly, ofSamples)
	}
	scaled := apply(NonlinearityPoly, 0, 1024)
	for i, value := range apply(NonlinearityPoly, 0, 1) {
		if math.Abs(scaled[i]-1024*value) > 1e-10 {
			t.Fatalf("not homogeneous: %g and %g", scaled[i], value)
		}
	}
}

// distance is the root mean square difference relative to that of want.
func distance(got, want []float64) float64 {
	difference, scale := 0.0, 0.0
	for i := range want {
		difference += (got[i] - want[i]) * (got[i] - want[i])
		scale += want[i] * want[i]
	}
	return math.Sqrt(difference / scale)
}

// Renumbering the vertices, and turning each ring, renumbers the results.
func TestModelsArePermutationEquivariant(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 18))
	const vertices = 200
	mesh := newRandomMesh(random, vertices)
	x := randomNumbers(random, vertices*4)
	number := random.Perm(vertices) // new → old
	place := make([]int32, vertices)
	for p, old := range number {
		place[old] = int32(p)
	}
	moved, movedX := &randomMesh{offsets: []int64{0}}, []float64(nil)
	for _, old := range number {
		begin, end := mesh.offsets[old], mesh.offsets[old+1]
		for i := range end - begin {
			e := begin + (i+1)%(end-begin)
			moved.neighbors = append(moved.neighbors, place[mesh.neighbors[e]])
			moved.geometry.CosTheta = append(moved.geometry.CosTheta, mesh.geometry.CosTheta[e])
			moved.geometry.SinTheta = append(moved.geometry.SinTheta, mesh.geometry.SinTheta[e])
			moved.geometry.CosTransport = append(moved.geometry.CosTransport, mesh.geometry.CosTransport[e])
			moved.geometry.SinTransport = append(moved.geometry.SinTransport, mesh.geometry.SinTransport[e])
			moved.geometry.Length = append(moved.geometry.Length, mesh.geometry.Length[e])
		}
		moved.offsets = append(moved.offsets, int64(len(moved.neighbors)))
		movedX = append(movedX, x[4*old:4*old+4]...)
	}
	m := testModel[float64](t, nil)
	classes := m.Spec().Classes
	before := logitsOf(t, m, &Input[float64]{Graph: mesh.graph(t), Features: RelTanFeatures(x)})
	after := logitsOf(t, m, &Input[float64]{Graph: moved.graph(t), Features: RelTanFeatures(movedX)})
	for p, old := range number {
		if e := largestDifference(t, after[p*classes:][:classes], before[old*classes:][:classes]); e > equivarianceBound {
			t.Fatalf("vertex %d: off by %g", old, e)
		}
	}
}

// modelGap is the mean squared difference of log-probabilities under a random
// change of gauge (the paper's table 1) of a random model on a random mesh.
func modelGap[T simd.Float](t *testing.T, spec Spec) float64 {
	t.Helper()
	m, err := NewModel[T](spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(9, 10))
	const vertices = 300
	mesh, angles := newRandomMesh(random, vertices), randomAngles(random, vertices)
	of := spec.InputType()
	x := randomNumbers(random, vertices*of.Channels*of.Components())
	logits := func(mesh *randomMesh, x []float64) []float64 {
		g, err := NewGraph[T](memory.NewBudget(0, nil), mesh.offsets, mesh.neighbors, nil, mesh.geometry)
		if err != nil {
			t.Fatal(err)
		}
		return logitsOf(t, m, &Input[T]{Graph: g, Features: x})
	}
	before, after := logits(mesh, x), logits(mesh.regauged(angles), regauge(x, of, angles))
	sum := 0.0
	for i := range before {
		sum += (after[i] - before[i]) * (after[i] - before[i])
	}
	return sum / float64(len(before))
}

func TestModelsAreGaugeEquivariant(t *testing.T) {
	for _, preset := range []Preset{PresetDefault, PresetPaper, PresetAuthors} {
		for _, kind := range []Kind{KindEMAN, KindGEM} {
			spec, err := NewSpec(preset, kind)
			if err != nil {
				t.Fatal(err)
			}
			spec.Classes = 16
			wide, narrow := modelGap[float64](t, spec), modelGap[float32](t, spec)
			t.Logf("%s, %s: gap %.2g in float64, %.2g in float32", preset, kind, wide, narrow)
			if exact := preset != PresetAuthors; exact != (wide < 1e-24) || preset == PresetDefault && narrow > 1e-11 {
				t.Errorf("%s, %s: gap %g in float64, %g in float32", preset, kind, wide, narrow)
			}
			spec.Bias = BiasAdditive
			spec.Initialisation = InitialisationAuthors // whose biases are not zero
			if gap := modelGap[float64](t, spec); gap < 1e-6 {
				t.Errorf("%s, %s, additive bias: gap %g", preset, kind, gap)
			}
		}
	}
}
