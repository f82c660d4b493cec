package geometry

import (
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"libeman/geometry/internal/r3"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
)

// within fails the test where work takes longer than a deadlock should.
func within(t *testing.T, limit time.Duration, work func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatal("the call does not return")
	}
}

// A progress function may do anything with the mesh that it watches.
func TestCallbacksMayUseTheMesh(t *testing.T) {
	shape := sphere(40, 0.3, 1)
	doubled := slices.Clone(shape.positions)
	for i := range doubled {
		doubled[i] *= 1.5
	}
	want := relTan(t, shape.build(t, Options{}, 2), TangentSpace, 0.7)
	within(t, 20*time.Second, func() {
		budget := memory.NewBudget(0, nil)
		m, err := New(Resources{Memory: budget}, FromSlices(shape.positions, shape.faces), Options{}, nil)
		if err != nil {
			t.Error(err)
			return
		}
		calls := 0
		control := &parallel.Control{Progress: func(float64) bool {
			calls++
			switch calls {
			case 1:
				if err := m.Update(ReadSlice(doubled, 3), nil, nil); err != nil {
					t.Error(err)
				}
			case 2:
				relTan(t, m, TangentSpace, 0.5)
			case 3:
				m.Close()
			case 4:
				if err := m.Read(func(*View) error { return nil }); !errors.Is(err, ErrInvalidArgument) {
					t.Errorf("a freed mesh: %v", err)
				}
			}
			return true
		}}
		got := make([]float64, len(want))
		err = m.Read(func(v *View) error { return v.RelTan(RelTanOf(0.7), WriteSlice(got, 2), control) })
		if err != nil || calls < 4 {
			t.Errorf("%d calls, %v", calls, err)
		}
		if !slices.Equal(got, want) {
			t.Error("the reader saw the update")
		}
		if used, _, _ := budget.Usage(); used != 0 {
			t.Errorf("%d bytes in use after the last reader", used)
		}
	})
}

// A reader that was late finds a state that has been replaced unusable, and one
// that is filled anew usable only when it is whole.
func TestAReplacedStateIsNotRead(t *testing.T) {
	shape := sphere(6, 0.3, 1)
	m := shape.build(t, Options{}, 1)
	found := m.current.Load()
	update := func(control *parallel.Control) error {
		return m.Update(ReadSlice(shape.positions, 3), nil, control)
	}
	if err := update(nil); err != nil {
		t.Fatal(err)
	}
	if found.use() {
		t.Error("a replaced state is used")
	}
	filling := &parallel.Control{Progress: func(float64) bool {
		if found.use() {
			t.Error("a state that is being filled is used")
		}
		return true
	}}
	if err := update(filling); err != nil {
		t.Fatal(err)
	}
	if m.current.Load() != found || !found.use() {
		t.Error("the spare state did not become the current one")
	}
	found.release()
}

// Readers see one state, whole, however many updates pass meanwhile.
func TestReadersSeeOneState(t *testing.T) {
	shape := sphere(6, 0.3, 1)
	budget := memory.NewBudget(0, nil)
	m, err := New(Resources{Memory: budget}, FromSlices(shape.positions, shape.faces), Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const readers, updates = 4, 400
	var waiting sync.WaitGroup
	for range readers {
		waiting.Go(func() {
			got := make([]float64, len(shape.positions))
			for {
				err := m.Read(func(v *View) error { return v.Positions(WriteSlice(got, 3)) })
				if errors.Is(err, ErrInvalidArgument) {
					return // freed
				}
				if err != nil {
					t.Error(err)
					return
				}
				factor := got[0] / shape.positions[0]
				for i, x := range shape.positions {
					if got[i] != factor*x {
						t.Errorf("coordinate %d is of another state than coordinate 0", i)
						return
					}
				}
			}
		})
	}
	scaled := slices.Clone(shape.positions)
	for k := range updates {
		factor := math.Ldexp(1, k%7-3)
		for i, x := range shape.positions {
			scaled[i] = factor * x
		}
		if err := m.Update(ReadSlice(scaled, 3), nil, nil); err != nil {
			t.Error(err)
		}
	}
	m.Close()
	waiting.Wait()
	if used, _, _ := budget.Usage(); used != 0 {
		t.Errorf("%d bytes in use after the last reader", used)
	}
}

// Blocks that other threads finish are reported with the caller's own, so only
// one thread makes the number of reports certain.
func TestProgressNeverFalls(t *testing.T) {
	shape := sphere(40, 0.3, 1)
	angles := make([]float64, shape.vertices())
	for threads, least := range map[int]int{1: 5, 2: 1} {
		m := shape.build(t, Options{}, threads)
		calls, last := 0, 0.0
		control := &parallel.Control{Progress: func(f float64) bool {
			if f < last || f > 1 {
				t.Errorf("progress from %g to %g", last, f)
			}
			calls, last = calls+1, f
			return true
		}}
		for name, run := range map[string]func() error{
			"examine": func() error {
				r, err := m.Examine(control)
				if err == nil {
					r.Close()
				}
				return err
			},
			"change gauge": func() error {
				changed, err := m.ChangeGauge(angles, control)
				if err == nil {
					changed.Close()
				}
				return err
			},
			"permute": func() error {
				permuted, err := m.Permute(RandomPermutationOf(1, shape.vertices(), len(shape.faces)/3), control)
				if err == nil {
					permuted.Close()
				}
				return err
			},
			"update": func() error { return m.Update(ReadSlice(shape.positions, 3), nil, control) },
		} {
			calls, last = 0, 0
			if err := run(); err != nil || calls < least || last != 1 {
				t.Errorf("%s on %d threads: %d calls, the last with %g, %v", name, threads, calls, last, err)
			}
		}
	}
}

func TestReportOutlivesItsMesh(t *testing.T) {
	faces := []int32{0, 0, 1, 0, 1, 2, 2, 2, 1}
	m, err := New(Resources{}, FromSlices([]float64{0, 0, 0, 1, 0, 0, 0, 1, 0}, faces), Options{DropDegenerate: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Examine(nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = m.Read(func(v *View) error { clear(v.topology.dropped); return nil })
	m.Close()
	if got := r.Indices(DroppedFaces); !slices.Equal(got, []int32{0, 2}) {
		t.Errorf("dropped faces %v", got)
	}
	r.Close()
}

// On a thin blade the normals of the two sides are nearly opposite.
func TestTransportNearOppositeNormals(t *testing.T) {
	for _, delta := range []float64{1e-1, 1e-3, 1e-5, 1e-6} {
		// A roof along x with slopes of size 1/delta, its eaves joined by a sliver.
		blade := testMesh{"blade", []float64{0, 0, 1, 1, 0.1, 1, 0.3, delta, 0, 0.4, -delta, 0}, []int32{0, 2, 1, 0, 1, 3, 2, 3, 1}}
		m := blade.build(t, Options{}, 1)
		want := transportAngles(t, m)
		for seed := range uint64(4) {
			moved, err := m.Transform(Similarity{Rotation: RandomRotation(seed), Scale: 1}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := angleDifference(transportAngles(t, moved), want); d > 1e-14/delta {
				t.Errorf("normals opposite to %g: g turns by %g with the mesh", delta, d)
			}
			moved.Close()
		}
	}
}

// Far from the origin degenerate faces and directions are rounding noise, and
// must still count as degenerate.
func TestDegeneracyFarFromTheOrigin(t *testing.T) {
	positions := []float64{0, 0, 0, 1, 0, 0, 0, 1, 0, -1, -1, 0, 0, 0, 1, 0, 0, 2, 3, 3, 3, 4, 4.3, 3.7, 5, 5.6, 4.4}
	faces := []int32{0, 1, 2, 0, 2, 3, 0, 3, 1, 0, 4, 5, 6, 7, 8}
	near := testMesh{"spike and line", positions, faces}
	far := testMesh{"far", nil, faces}
	for _, x := range positions {
		far.positions = append(far.positions, x+3e6)
	}
	a, b := examined(t, near, Options{}), examined(t, far, Options{})
	for f := range Finding(FindingCount) {
		if !slices.Equal(a.Indices(f), b.Indices(f)) {
			t.Errorf("%v: %v at the origin, %v far from it", f, a.Indices(f), b.Indices(f))
		}
	}
	if d := angleDifference(edgeAngles(t, far.build(t, Options{}, 1)), edgeAngles(t, near.build(t, Options{}, 1))); d > 1e-6 {
		t.Errorf("angles differ by %g", d)
	}
}

func TestMeasuresOfExtremeScales(t *testing.T) {
	for _, scale := range []float64{1e-200, 1e-30, 1e100, 1e200} {
		line := testMesh{"line", []float64{0, 0, 0, scale, scale, scale, 3 * scale, 3 * scale, 3 * scale}, []int32{0, 1, 2}}
		if r := examined(t, line, Options{}); !(r.Area <= 1e-14*scale*scale) || r.Count(ZeroAreaFaces) != 1 {
			t.Errorf("scale %g: a line has the area %g", scale, r.Area)
		}
		sound := testMesh{"triangle", []float64{0, 0, 0, scale, 0, 0, 0, scale, 0}, []int32{0, 1, 2}}
		if r := examined(t, sound, Options{}); math.Abs(r.MinLength/scale-1) > 1e-15 || r.Area != math.Ldexp(0.5, 0)*scale*scale && !math.IsInf(r.Area, 1) {
			t.Errorf("scale %g: shortest edge %g, area %g", scale, r.MinLength, r.Area)
		}
	}
}

// A finding belongs to the face, whichever corner it begins with.
func TestThinFacesAreJudgedAlikeFromEveryCorner(t *testing.T) {
	for _, height := range []float64{1e-17, 1e-15, 1e-13, 1e-5} {
		positions := []float64{0, 0, 0, 1, 0, 0, 1, height, 0}
		first := examined(t, testMesh{"thin", positions, []int32{0, 1, 2}}, Options{})
		for _, faces := range [][]int32{{1, 2, 0}, {2, 0, 1}} {
			r := examined(t, testMesh{"thin", positions, faces}, Options{})
			if r.Count(ZeroAreaFaces) != first.Count(ZeroAreaFaces) || r.Count(NeedleFaces) != first.Count(NeedleFaces) {
				t.Errorf("height %g: the judgement depends on the first corner", height)
			}
		}
	}
	// Long legs with a right angle have a normal, however unequal they are.
	legs := testMesh{"legs", []float64{0, 0, 0, 1e8, 0, 0, 0, 1e-4, 0}, []int32{0, 1, 2}}
	frames := framesOf(t, legs.build(t, Options{}, 1))
	for p := range 3 {
		if n := r3.At(frames, 3*p+2); n.Z != 1 {
			t.Errorf("normal %d is %v", p, n)
		}
	}
}
