package core

import (
	"math"
	"testing"

	"libeman/geometry"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
)

// A network small enough to count by hand: a channel ρ0 ⊕ ρ1, padded to 16, to 16
// channels of ρ0 and once more, with two radial rings, and 16 hidden features.
const counted = `"width": 16, "blocks": 1, "hidden": 16, "classes": 4, "max_order": 0, "nonlinearity": "none", "features": "get"`

func TestOperationsAreCounted(t *testing.T) {
	const (
		lanes = 16
		// Each ring has three moments of the input, ẑ0 and ẑ1·e^{−iθ} in two parts,
		// and one of the inner features; then the skip, and the dense layers.
		vertex = 2*3*lanes*16 + 2*lanes*16 + lanes*16 + lanes*16 + 16*lanes
		// ρ1 is transported by 4 products; each of the three rows is in a moment of
		// either ring.
		edge = lanes*(4+3*2) + lanes*2
		// From ρ0 of a vertex to the dots with the same moments; and in the edge pass
		// two sums for each ring and row.
		query, dots = lanes*2*3*lanes + lanes*2*lanes, lanes*3*2*2 + lanes*2*2
	)
	for _, c := range []struct {
		text         string
		vertex, edge int
	}{
		{`{"kind": "gem", ` + counted + `}`, vertex, edge},
		{`{"kind": "eman", ` + counted + `}`, vertex + query, edge + dots},
	} {
		r, m := timedRunner(t, c.text, 1)
		if flops, _ := r.EstimateWork(m, 100, 600); flops != float64(2*(100*c.vertex+600*c.edge)) {
			t.Errorf("%s: %g operations, not 2·(100·%d + 600·%d)", c.text, flops, c.vertex, c.edge)
		}
	}
}

// timedRunner is one whose processor has a known speed.
func timedRunner(t *testing.T, text string, threads int) (*Runner[float32], *Model[float32]) {
	t.Helper()
	spec, err := ParseSpec([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewModel[float32](spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	r := NewRunner(testKernels[float32](), parallel.New(threads), memory.NewBudget(0, nil))
	r.speed = func() speed { return speed{1e11, 5e9} }
	return r, m
}

// A vertex costs a network on samples the lift and the dense layers; a body costs
// it as many operations as its graphs have edges and points.
func TestOperationsOnSamples(t *testing.T) {
	r, m := timedRunner(t, `{"preset": "surface", "classes": 16}`, 1)
	less, _ := r.EstimateWork(m, 1000, 6000)
	more, _ := r.EstimateWork(m, 3000, 18000)
	if want := float64(2000 * 2 * (16*6 + 16*64 + 64*16)); more-less != want {
		t.Errorf("2000 more vertices take %g operations, not %g", more-less, want)
	}
	s := grid("hills", 45, hills)
	mesh := s.build(t, memory.NewBudget(0, nil), 1)
	defer mesh.Close()
	err := mesh.Read(func(v *geometry.View) error {
		in, err := NewSurfaceInput[float32](v, m.spec, 0, nil)
		if err != nil {
			return err
		}
		defer in.Free()
		products, edges := m.flops(in.extent())
		estimated, _ := r.EstimateWork(m, int64(s.vertices()), 0)
		if math.Abs(estimated/(products+edges)-1) > 0.02 { // neighbours that tie are more
			t.Errorf("%g operations are estimated, %g are done", estimated, products+edges)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, whole := timedRunner(t, `{"preset": "surface", "classes": 16, "task": "classification"}`, 1)
	less, _ = r.EstimateWork(whole, 1000, 6000)
	if more, _ = r.EstimateWork(whole, 3000, 18000); more != less {
		t.Errorf("a class takes %g operations on 1000 vertices, %g on 3000", less, more)
	}
}

func TestSecondsAreEstimated(t *testing.T) {
	for _, text := range []string{`{"classes": 16}`, `{"preset": "authors", "classes": 16}`, `{"preset": "surface", "classes": 16}`, `{"kind": "spiral", "classes": 16}`} {
		one, m := timedRunner(t, text, 1)
		two, _ := timedRunner(t, text, 2)
		slow, _ := timedRunner(t, text, 1)
		slow.speed = func() speed { return speed{1e10, 5e8} }
		seconds := func(r *Runner[float32], vertices int64) float64 {
			_, s := r.EstimateWork(m, vertices, 6*vertices)
			return s
		}
		all := seconds(one, 7000)
		for what, ratio := range map[string]float64{"two threads": 2 * seconds(two, 7000) / all, "a slow processor": seconds(slow, 7000) / all / 10} {
			if math.Abs(ratio-1) > 1e-9 {
				t.Errorf("%s: %s: off by %g", text, what, ratio)
			}
		}
		if grown := seconds(one, 700_000) / seconds(one, 70_000); grown < 5 || grown > 10.1 {
			t.Errorf("%s: ten times the vertices take %g times as long", text, grown)
		}
		still, moving := DefaultTraining(), DefaultTraining()
		moving.Augment.Stretch = 0.1
		step := func(training TrainingSpec) (flops, seconds float64) {
			trainer, err := NewTrainer(one, m, training)
			if err != nil {
				t.Fatal(err)
			}
			defer trainer.Free()
			return trainer.EstimateWork(7000, 42000)
		}
		flops, _ := one.EstimateWork(m, 7000, 42000)
		triple, kept := step(still)
		_, anew := step(moving)
		if triple != 3*flops || anew <= kept || kept <= one.seconds(m, m.extent(7000, 42000), inferencePasses) {
			t.Errorf("%s: a step takes %g operations and %g s, %g s in new shapes", text, triple, kept, anew)
		}
	}
}

func TestTheSpeedIsMeasured(t *testing.T) {
	if s := measureSpeed(testKernels[float32]()); !(s.kernels > 1e6 && s.scalar > 1e6 && s.kernels < 1e14) {
		t.Errorf("%+v operations a second", s)
	}
}
