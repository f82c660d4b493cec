package core

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"libeman/geometry"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
	"libeman/tests/need"
	"libeman/tests/npz"
)

// shape is a triangle mesh in the coordinates of its maker.
type shape struct {
	name      string
	positions []float64
	faces     []int32
}

func (s shape) vertices() int { return len(s.positions) / 3 }

// build makes the mesh, counted under budget, and closes it with the test.
func (s shape) build(t testing.TB, budget *memory.Budget, threads int) *geometry.Mesh {
	t.Helper()
	r := geometry.Resources{Threads: parallel.New(threads), Memory: budget}
	mesh, err := geometry.New(r, geometry.FromSlices(s.positions, s.faces), geometry.Options{}, nil)
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	t.Cleanup(mesh.Close)
	return mesh
}

var humans = sync.OnceValues(func() (npz.File, error) {
	path := filepath.Join("..", "..", "shared", "data", "humans.npz")
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return npz.Read(path)
})

// human is one of the bodies of humans.npz.
func human(t testing.TB, number int) shape {
	t.Helper()
	file, err := humans()
	if err != nil {
		need.Missing(t, err)
	}
	all := file["vertices"]
	size := 3 * all.Shape[1]
	return shape{"human", all.Data[number*size:][:size], file["faces"].Int32()}
}

// grid is a sheet of n×n vertices at height(x, y) over the unit square.
func grid(name string, n int, height func(x, y float64) float64) shape {
	s := shape{name: name}
	for i := range n * n {
		x, y := float64(i%n)/float64(n), float64(i/n)/float64(n)
		s.positions = append(s.positions, x, y, height(x, y))
	}
	for i := range n - 1 {
		for j := range n - 1 {
			a := int32(i*n + j)
			b, c, d := a+1, a+1+int32(n), a+int32(n)
			s.faces = append(s.faces, a, b, c, a, c, d)
		}
	}
	return s
}

func hills(x, y float64) float64 { return 0.2*math.Sin(5*x+1)*math.Cos(4*y*y) + 0.1*x*y }

// with adds another shape, moved.
func (s shape) with(name string, other shape, move float64) shape {
	sum := shape{name, slices.Clone(s.positions), slices.Clone(s.faces)}
	for _, x := range other.positions {
		sum.positions = append(sum.positions, x+move)
	}
	for _, p := range other.faces {
		sum.faces = append(sum.faces, p+int32(s.vertices()))
	}
	return sum
}

// subdivided divides each face into four, several times.
func (s shape) subdivided(times int) shape {
	for range times {
		next := shape{name: s.name, positions: slices.Clone(s.positions)}
		middles := map[[2]int32]int32{}
		middle := func(p, q int32) int32 {
			key := [2]int32{min(p, q), max(p, q)}
			if _, found := middles[key]; !found {
				middles[key] = int32(next.vertices())
				for k := range 3 {
					next.positions = append(next.positions, (s.positions[3*p+int32(k)]+s.positions[3*q+int32(k)])/2)
				}
			}
			return middles[key]
		}
		for i := 0; i < len(s.faces); i += 3 {
			a, b, c := s.faces[i], s.faces[i+1], s.faces[i+2]
			ab, bc, ca := middle(a, b), middle(b, c), middle(c, a)
			next.faces = append(next.faces, a, ab, ca, ab, b, bc, ca, bc, c, ab, bc, ca)
		}
		s = next
	}
	return s
}

// testShapes are a made one, and bodies where there is the file.
func testShapes(t *testing.T) []shape {
	shapes := []shape{grid("hills", 40, hills)}
	if _, err := humans(); err != nil && !need.InCI() {
		t.Logf("without bodies: %v", err)
		return shapes
	}
	return append(shapes, human(t, 3))
}

// randomSurfaceModel is the preset with random parameters.
func randomSurfaceModel(t testing.TB, kind Kind, change func(*Spec)) *Model[float32] {
	t.Helper()
	spec, err := NewSpec(PresetSurface, kind)
	if err != nil {
		t.Fatal(err)
	}
	spec.Classes = 16
	if change != nil {
		change(&spec)
	}
	m, err := NewModel[float32](spec, 11)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// withRelTan adds RelTan to the moments.
func withRelTan(s *Spec) {
	s.Features, s.Powers = FeaturesMomentsRelTan, []float64{0.5, 0.7}
}

// meshLogits are the log-probabilities of a mesh.
func (r *Runner[T]) meshLogits(m *Model[T], mesh *geometry.Mesh, control *parallel.Control) (logits []T, err error) {
	err = mesh.Read(func(v *geometry.View) error {
		in, err := NewSurfaceInput[T](v, m.spec, 0, control.Stage(0, 0.5))
		if err != nil {
			return err
		}
		defer in.Free()
		logits = make([]T, m.Rows(in.Vertices())*m.spec.Classes)
		return r.Logits(m, &in.Input, control.Stage(0.5, 1), logits)
	})
	return logits, err
}

// transformedMesh is a mesh in other frames, coordinates or numbers, with the
// old number of each vertex.
type transformedMesh struct {
	name  string
	mesh  *geometry.Mesh
	order []int64 // nil: as they were
}

func transformedMeshes(t *testing.T, mesh *geometry.Mesh, vertices, faces int) (list []transformedMesh) {
	t.Helper()
	add := func(name string, order []int64, changed *geometry.Mesh, err error) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Cleanup(changed.Close)
		list = append(list, transformedMesh{name, changed, order})
	}
	angles := make([]float64, vertices)
	geometry.RandomAngles(5, 0, angles)
	turned, err := mesh.ChangeGauge(angles, nil)
	add("gauge", nil, turned, err)
	unit, turn := [9]float64{0: 1, 4: 1, 8: 1}, geometry.RandomRotation(7)
	for name, s := range map[string]geometry.Similarity{
		"rotation":    {Rotation: turn, Scale: 1},
		"translation": {Rotation: unit, Translation: [3]float64{40, -7, 900}, Scale: 1},
		"scale":       {Rotation: unit, Scale: math.Pi * 1e5},
	} {
		moved, err := mesh.Transform(s, nil)
		add(name, nil, moved, err)
	}
	p := geometry.RandomPermutationOf(9, vertices, faces)
	permuted, err := mesh.Permute(p, nil)
	add("permutation", p.VertexOrder, permuted, err)
	return list
}

// compareLogits returns the mean squared difference, and how many vertices have
// another label though their two most probable classes are not tied.
func compareLogits(before, after []float32, order []int64, classes int) (gap float64, changed int) {
	const tied = 1e-4
	for row := range len(after) / classes {
		old := row
		if order != nil {
			old = int(order[row])
		}
		a, b := before[old*classes:][:classes], after[row*classes:][:classes]
		for i := range a {
			gap += float64(a[i]-b[i]) * float64(a[i]-b[i])
		}
		best, other := slices.Index(a, slices.Max(a)), slices.Index(b, slices.Max(b))
		if best != other && a[best]-a[other] > tied {
			changed++
		}
	}
	return gap / float64(len(after)), changed
}

func TestWhatASurfaceNetworkSeesIsEquivariant(t *testing.T) {
	r := newTestRunner[float32](2)
	for _, s := range testShapes(t) {
		mesh := s.build(t, memory.NewBudget(0, nil), 2)
		transformed := transformedMeshes(t, mesh, s.vertices(), len(s.faces)/3)
		for _, kind := range []Kind{KindGEM, KindEMAN} {
			m := randomSurfaceModel(t, kind, withRelTan)
			before, err := r.meshLogits(m, mesh, nil)
			if err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			if spread := slices.Max(before) - slices.Min(before); !(spread > 0.1) {
				t.Errorf("%s, %s: all log-probabilities are within %g", s.name, kind, spread)
			}
			for _, c := range transformed {
				after, err := r.meshLogits(m, c.mesh, nil)
				if err != nil {
					t.Fatalf("%s, %s: %v", s.name, c.name, err)
				}
				gap, changed := compareLogits(before, after, c.order, m.spec.Classes)
				t.Logf("%s, %s, %s: gap %.2g", s.name, kind, c.name, gap)
				if !(gap <= 1e-9) || changed > 0 {
					t.Errorf("%s, %s, %s: gap %g, %d labels differ", s.name, kind, c.name, gap, changed)
				}
			}
		}
	}
}

func TestLabelsOfASurfaceDoNotDependOnThreads(t *testing.T) {
	for _, s := range testShapes(t) {
		m := randomSurfaceModel(t, KindGEM, nil)
		one, err := newTestRunner[float32](1).meshLogits(m, s.build(t, memory.NewBudget(0, nil), 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		two, err := newTestRunner[float32](2).meshLogits(m, s.build(t, memory.NewBudget(0, nil), 2), nil)
		if err != nil || !slices.Equal(one, two) {
			t.Errorf("%s: other bits on two threads, %v", s.name, err)
		}
	}
}

// Whatever the surface is like, there is a result.
func TestOddSurfacesHaveLabels(t *testing.T) {
	needles := shape{name: "a line of needles"}
	for i := range 60 {
		x := float64(i)
		needles.positions = append(needles.positions, x, 0, 0, x+0.9, 0, 1e-4, x+0.3, 1e-3, 0)
		needles.faces = append(needles.faces, int32(3*i), int32(3*i+1), int32(3*i+2))
	}
	hilly := grid("fewer vertices than samples", 9, hills)
	r := newTestRunner[float32](2)
	for _, s := range []shape{
		hilly, grid("a flat sheet", 20, func(float64, float64) float64 { return 0 }), needles,
		{"one triangle", []float64{0, 0, 0, 1, 0, 0, 0.3, 0.8, 0}, []int32{0, 1, 2}},
		hilly.with("two that intersect", grid("", 12, hills), 0.05),
		{"no area", []float64{0, 0, 0, 1, 0, 0, 2, 0, 0, 3, 0, 0}, []int32{0, 1, 2, 1, 2, 3}},
		{"one place", make([]float64, 12), []int32{0, 1, 2, 1, 2, 3}},
		hilly.with("isolated vertices", shape{positions: []float64{9, 9, 9, -9, 0, 3}}, 0),
	} {
		for _, change := range []func(*Spec){nil, withRelTan} {
			m := randomSurfaceModel(t, KindEMAN, change)
			logits, err := r.meshLogits(m, s.build(t, memory.NewBudget(0, nil), 2), nil)
			if err != nil {
				t.Errorf("%s: %v", s.name, err)
			}
			if slices.ContainsFunc(logits, func(x float32) bool { return x-x != 0 }) {
				t.Errorf("%s: logits that are not finite", s.name)
			}
		}
	}
}

func TestSurfacesWithoutAnythingToSample(t *testing.T) {
	m, r := randomSurfaceModel(t, KindGEM, nil), newTestRunner[float32](1)
	for _, s := range []shape{{name: "empty"}, {name: "vertices without normals", positions: make([]float64, 9)}} {
		if _, err := r.meshLogits(m, s.build(t, memory.NewBudget(0, nil), 1), nil); !errors.Is(err, geometry.ErrInvalidMesh) {
			t.Errorf("%s: %v", s.name, err)
		}
	}
	s := grid("", 4, hills)
	s.positions[7] = math.NaN()
	if _, err := geometry.New(geometry.Resources{}, geometry.FromSlices(s.positions, s.faces), geometry.Options{}, nil); !errors.Is(err, geometry.ErrInvalidMesh) {
		t.Errorf("NaN: %v", err)
	}
}

// Features beyond float32 are a fault of the mesh, not of the network.
func TestLargeFeaturesOfSamplesAreRefused(t *testing.T) {
	for _, power := range []float64{60, 2000} {
		spec := randomSurfaceModel(t, KindGEM, func(s *Spec) {
			withRelTan(s)
			s.Powers = []float64{power}
		}).Spec()
		// Without a budget: a host of the package need not have one.
		mesh := grid("hills", 20, hills).build(t, nil, 1)
		err := mesh.Read(func(v *geometry.View) error {
			_, err := NewSurfaceInput[float32](v, spec, 0, nil)
			return err
		})
		var fault *geometry.InvalidMeshError
		if !errors.As(err, &fault) || fault.Element != "sample" {
			t.Errorf("power %g: %v", power, err)
		}
	}
}

// What ends a prediction, at whatever point, leaves nothing behind.
func TestInterruptedSurfaceNetworksGiveTheirMemoryBack(t *testing.T) {
	m, s := randomSurfaceModel(t, KindGEM, nil), grid("hills", 20, hills)
	used := func(b *memory.Budget) int64 { used, _, _ := b.Usage(); return used }
	predict := func(budget *memory.Budget, control *parallel.Control) error {
		mesh, err := geometry.New(geometry.Resources{Memory: budget}, geometry.FromSlices(s.positions, s.faces), geometry.Options{}, nil)
		if err != nil {
			return err
		}
		defer mesh.Close()
		r := NewRunner(testKernels[float32](), nil, budget)
		_, err = r.meshLogits(m, mesh, control)
		r.Reclaim()
		return err
	}
	polls := 0
	budget := memory.NewBudget(0, nil)
	if err := predict(budget, &parallel.Control{Progress: func(float64) bool { polls++; return true }}); err != nil || used(budget) != 0 {
		t.Fatalf("%d bytes are left, %v", used(budget), err)
	}
	for stop := 0; stop < polls; stop += 1 + polls/25 {
		n := 0
		err := predict(budget, &parallel.Control{Progress: func(float64) bool { n++; return n <= stop }})
		if !errors.Is(err, parallel.ErrCancelled) || used(budget) != 0 {
			t.Errorf("stopped at report %d of %d: %d bytes are left, %v", stop, polls, used(budget), err)
		}
	}
	_, peak, _ := budget.Usage()
	refusals := 0
	for limit := peak / 50; limit < peak; limit += peak / 50 {
		tight := memory.NewBudget(limit, nil)
		err := predict(tight, nil)
		if errors.Is(err, memory.ErrOutOfMemory) {
			refusals++
		}
		if err != nil && refusals == 0 || used(tight) != 0 {
			t.Errorf("limit %d of %d: %d bytes are left, %v", limit, peak, used(tight), err)
		}
	}
	if refusals < 20 {
		t.Errorf("%d refusals", refusals)
	}
}

// checkEstimate compares an estimate with what a budget counted: an eighth is
// what "about" means.
func checkEstimate(t *testing.T, what string, estimate, used int64) {
	t.Helper()
	t.Logf("%s: estimated %d bytes, used %d: %.2f", what, estimate, used, float64(estimate)/float64(used))
	if difference := estimate - used; max(difference, -difference) > used/8 {
		t.Errorf("%s: estimated %d bytes, used %d", what, estimate, used)
	}
}

// peakOf is what run takes beside what is in use, of a budget that was not used
// more before.
func peakOf(t *testing.T, budget *memory.Budget, run func() error) int64 {
	t.Helper()
	before, _, _ := budget.Usage()
	if err := run(); err != nil {
		t.Fatal(err)
	}
	_, peak, _ := budget.Usage()
	return peak - before
}

// sizedShapes are a body, also subdivided to so many vertices, and hills.
func sizedShapes(t *testing.T, most int) (shapes []shape) {
	all := testShapes(t)
	s := all[len(all)-1]
	for ; s.vertices() <= most; s = s.subdivided(2) {
		shapes = append(shapes, s)
		if testing.Short() {
			break
		}
	}
	return append(shapes, grid("hills", 45, hills))
}

// measured is a mesh, with a budget that counts what is taken beside it, and the
// number of its edges.
func measured(t *testing.T, s shape) (mesh *geometry.Mesh, budget *memory.Budget, edges int64) {
	t.Helper()
	budget = memory.NewBudget(0, nil)
	mesh = s.build(t, budget, 2)
	_ = mesh.Read(func(v *geometry.View) error { edges = int64(v.EdgeCount()); return nil })
	used, peak, _ := budget.Usage() // making the mesh took more than the mesh
	if _, err := memory.Make[uint8](budget.NewArena("test"), peak-used); err != nil {
		t.Fatal(err)
	}
	return mesh, budget, edges
}

func TestTheMemoryOfSurfaceNetworksIsEstimated(t *testing.T) {
	for _, s := range sizedShapes(t, 120_000) {
		for _, kind := range []Kind{KindGEM, KindEMAN} {
			mesh, budget, edges := measured(t, s)
			m, r := randomSurfaceModel(t, kind, nil), NewRunner(testKernels[float32](), parallel.New(2), budget)
			used := peakOf(t, budget, func() error { _, err := r.meshLogits(m, mesh, nil); return err })
			labels := labelBytes * int64(s.vertices())
			checkEstimate(t, fmt.Sprintf("%s, %s, %d vertices", kind, s.name, s.vertices()), r.Estimate(m, int64(s.vertices()), edges), used+labels)
			mesh.Close()
		}
	}
}

// stepPeak is what a few steps take beside the mesh and the network.
func stepPeak(t *testing.T, trainer *Trainer[float32], budget *memory.Budget, mesh *geometry.Mesh, vertices int) int64 {
	t.Helper()
	spec := trainer.model.spec
	load := func(move *Motion, control *parallel.Control) (in *Input[float32], free func(), err error) {
		target, seed, done := mesh, uint64(0), func() {}
		if move != nil {
			seed = move.Sampling
			if move.Deformation != nil {
				if target, err = mesh.Deform(*move.Deformation, control); err != nil {
					return nil, nil, err
				}
				done = target.Close
			}
		}
		err = target.Read(func(v *geometry.View) error {
			var made *MeshInput[float32]
			if spec.Surface != nil {
				made, err = NewSurfaceInput[float32](v, spec, seed, control)
			} else {
				var graph *Graph[float32]
				if graph, err = NewMeshGraph[float32](v, control); err != nil {
					return err
				}
				release := done
				done = func() { graph.Free(); release() }
				made, err = NewMeshInput(v, graph, spec, control)
			}
			if err == nil {
				in, free = &made.Input, func() { made.Free(); done() }
			}
			return err
		})
		return in, free, err
	}
	labels := make([]int32, RowsOf(spec, vertices))
	if err := trainer.Add(Example[float32]{Load: load, Labels: labels}, false); err != nil {
		t.Fatal(err)
	}
	return labelBytes*int64(len(labels)) + peakOf(t, budget, func() error {
		for range 2 {
			if _, err := trainer.Step(nil); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestTheMemoryOfStepsIsEstimated(t *testing.T) {
	still, moving := DefaultTraining(), DefaultTraining()
	moving.Augment = Augmentation{Warp: 0.05, Noise: 0.1}
	resampled := moving
	resampled.Augment.Resample = true
	plain, _ := NewSpec(PresetDefault, KindEMAN)
	plain.Classes = 16
	class := plain
	class.Task = TaskClassification
	for _, s := range sizedShapes(t, 120_000) {
		for _, c := range []struct {
			network  Spec
			training TrainingSpec
		}{
			{randomSurfaceModel(t, KindGEM, nil).spec, still}, {randomSurfaceModel(t, KindEMAN, nil).spec, resampled},
			{plain, still}, {class, moving},
		} {
			if c.network.Surface == nil && s.vertices() > 20_000 {
				continue // half a gigabyte, and as much for each vertex as of a smaller mesh
			}
			mesh, budget, edges := measured(t, s)
			m, err := NewModel[float32](c.network, 1)
			if err != nil {
				t.Fatal(err)
			}
			trainer, err := NewTrainer(NewRunner(testKernels[float32](), parallel.New(2), budget), m, c.training)
			if err != nil {
				t.Fatal(err)
			}
			used := stepPeak(t, trainer, budget, mesh, s.vertices()) + TrainerMemoryBytes(c.network)
			what := fmt.Sprintf("%s %s on %d vertices, changed %t", c.network.Kind, c.network.Task, s.vertices(), c.training.Augment.any())
			checkEstimate(t, what, trainer.Estimate(int64(s.vertices()), edges), used)
			trainer.Free()
			mesh.Close()
		}
	}
}
