package core

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"libeman/geometry/memory"
	"libeman/geometry/parallel"
	"libeman/simd"
)

// testModel is a small network with every part that a description can ask for.
func testModel[T simd.Float](t testing.TB, change func(*Spec)) *Model[T] {
	t.Helper()
	spec, err := NewSpec(PresetDefault, KindEMAN)
	if err != nil {
		t.Fatal(err)
	}
	spec.Classes, spec.Hidden, spec.Width, spec.SelfTerm = 21, 40, 8, true
	if change != nil {
		change(&spec)
	}
	m, err := NewModel[T](spec, 7)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// testInput is a random mesh for a model that takes two RelTan powers.
func testInput[T simd.Float](t testing.TB, vertices int) *Input[T] {
	t.Helper()
	random := rand.New(rand.NewPCG(11, 12))
	mesh := newRandomMesh(random, vertices)
	g, err := NewGraph[T](memory.NewBudget(0, nil), mesh.offsets, mesh.neighbors, nil, mesh.geometry)
	if err != nil {
		t.Fatal(err)
	}
	return &Input[T]{Graph: g, Features: RelTanFeatures(randomNumbers(random, vertices*4))}
}

// everything is all that can be computed of a model on a mesh, as bits.
func everything(r *Runner[float32], m *Model[float32], in *Input[float32]) (bits []uint32, err error) {
	rows := m.Rows(in.Vertices())
	labels, best := make([]int32, rows), make([]int32, rows*3)
	probabilities, logits := make([]float32, rows*3), make([]float32, rows*m.Spec().Classes)
	var alpha []float32
	if heads := m.Layers()[3].Heads; heads > 0 {
		alpha = make([]float32, in.Graph.Edges()*heads)
		err = r.Attention(m, in, nil, 3, alpha)
	}
	of := m.Layers()[2].Type
	features := make([]float32, in.Graph.Vertices()*of.Channels*of.Components())
	err = errors.Join(err,
		r.Predict(m, in, nil, labels), r.TopK(m, in, nil, 3, best, probabilities), r.Logits(m, in, nil, logits),
		r.Features(m, in, nil, 2, features))
	for _, label := range append(labels, best...) {
		bits = append(bits, uint32(label))
	}
	for _, values := range [][]float32{probabilities, logits, alpha, features} {
		for _, value := range values {
			bits = append(bits, math.Float32bits(value))
		}
	}
	return bits, err
}

func TestSameBitsForAnyNumberOfThreads(t *testing.T) { eachSet(t, checkThreads) }

func checkThreads(t *testing.T) {
	for task, vertices := range map[Task]int{TaskSegmentation: 600, TaskClassification: 2*poolRows + 100} {
		in := testInput[float32](t, vertices)
		m := testModel[float32](t, func(s *Spec) {
			if s.Task = task; task == TaskClassification {
				s.Kind, s.Width, s.MaxOrder, s.Blocks = KindGEM, 2, 1, 2
			}
		})
		want, err := everything(newTestRunner[float32](1), m, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, threads := range []int{2, 3, 7} {
			got, err := everything(newTestRunner[float32](threads), m, in)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %d threads give other bits, %v", task, threads, err)
			}
		}
	}
}

// What a call allocates is for its loops, a few objects for each stage, and does
// not grow with the mesh.
func TestACallAllocatesNothingForABlock(t *testing.T) {
	m, r := testModel[float32](t, nil), newTestRunner[float32](2)
	for _, vertices := range []int{blockVertices, 50 * blockVertices} {
		in, labels := testInput[float32](t, vertices), make([]int32, vertices)
		objects := testing.AllocsPerRun(10, func() {
			if err := r.Predict(m, in, nil, labels); err != nil {
				t.Fatal(err)
			}
		})
		t.Logf("%d vertices: %g objects", vertices, objects)
		if most := 3 * stagesOf(len(m.layers)); objects > float64(most) {
			t.Errorf("%d vertices: %g objects, more than %d", vertices, objects, most)
		}
	}
}

func TestManyCallersShareOneModelAndOneRunner(t *testing.T) {
	in, m, r := testInput[float32](t, 150), testModel[float32](t, nil), newTestRunner[float32](2)
	want, err := everything(r, m, in)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for caller := range 16 {
		group.Add(1)
		go func() {
			defer group.Done()
			if got, err := everything(r, m, in); err != nil || !slices.Equal(got, want) {
				t.Errorf("caller %d: other bits, %v", caller, err)
			}
		}()
	}
	group.Wait()
	if len(r.idle) > idleWorkspaces {
		t.Errorf("%d workspaces are kept", len(r.idle))
	}
}

func TestIdleWorkspacesAreChosenAndGivenUp(t *testing.T) {
	m := testModel[float32](t, nil)
	small, large := testInput[float32](t, 100), testInput[float32](t, 1000)
	budget := memory.NewBudget(0, nil)
	r := NewRunner[float32](kernels32, nil, budget)
	run := func(r *Runner[float32], in *Input[float32]) {
		t.Helper()
		if err := r.Predict(m, in, nil, make([]int32, in.Graph.Vertices())); err != nil {
			t.Fatal(err)
		}
	}
	begin := func(in *Input[float32]) *call[float32] {
		t.Helper()
		c, err := r.begin(m, in, nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first, second := begin(large), begin(small)
	first.end()
	second.end()
	if again := begin(small); again.workspace != second.workspace {
		t.Error("not the smallest workspace that fits")
	} else {
		again.end()
	}
	used, _, _ := budget.Usage()
	run(r, large)
	run(r, small)
	if again, peak, _ := budget.Usage(); again != used || peak != used {
		t.Errorf("%d bytes became %d, at most %d", used, again, peak)
	}

	// A limit that lets the large call pass only without what is idle.
	tight := NewRunner[float32](kernels32, nil, memory.NewBudget(first.arena.Bytes()+second.arena.Bytes()/2, nil))
	both, err := tight.begin(m, small, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	run(tight, small)
	both.end()
	run(tight, large)
}

func TestResultsAgreeWithEachOther(t *testing.T) {
	const vertices, k = 300, 5
	for _, task := range []Task{TaskSegmentation, TaskClassification} {
		m, in, r := testModel[float64](t, func(s *Spec) { s.Task = task }), testInput[float64](t, vertices), newTestRunner[float64](2)
		rows, classes := m.Rows(vertices), m.Spec().Classes
		logits := make([]float64, rows*classes)
		labels, best, probabilities := make([]int32, rows), make([]int32, rows*k), make([]float64, rows*k)
		if err := errors.Join(r.Logits(m, in, nil, logits), r.Predict(m, in, nil, labels), r.TopK(m, in, nil, k, best, probabilities)); err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			row := logits[i*classes:][:classes]
			order := make([]int32, classes)
			total := 0.0
			for j := range order {
				order[j] = int32(j)
				total += math.Exp(row[j])
			}
			if math.Abs(total-1) > 1e-12 {
				t.Fatalf("%s, row %d: the probabilities add up to %g", task, i, total)
			}
			slices.SortStableFunc(order, func(a, b int32) int { return -int(math.Copysign(1, row[a]-row[b])) })
			if labels[i] != order[0] || !slices.Equal(best[i*k:][:k], order[:k]) {
				t.Fatalf("%s, row %d: label %d, best %v, not %v", task, i, labels[i], best[i*k:][:k], order[:k])
			}
			for j, p := range probabilities[i*k:][:k] {
				if math.Abs(p-math.Exp(row[order[j]])) > 1e-12 {
					t.Fatalf("%s, row %d: probability %g, not %g", task, i, p, math.Exp(row[order[j]]))
				}
			}
		}
	}
}

func TestTiesGoToTheLowestClass(t *testing.T) {
	m := testModel[float32](t, nil)
	bias := make([]float32, 21)
	bias[4], bias[19] = 1, 1
	tied, err := m.WithParameters([]Parameter[float32]{
		{"dense2.weight", []int{21, 40}, make([]float32, 21*40)}, {"dense2.bias", []int{21}, bias},
	})
	if err != nil {
		t.Fatal(err)
	}
	in, r := testInput[float32](t, 10), newTestRunner[float32](1)
	labels, best, probabilities := make([]int32, 10), make([]int32, 30), make([]float32, 30)
	if err := errors.Join(r.Predict(tied, in, nil, labels), r.TopK(tied, in, nil, 3, best, probabilities)); err != nil {
		t.Fatal(err)
	}
	for i := range labels {
		if labels[i] != 4 || !slices.Equal(best[3*i:][:3], []int32{4, 19, 0}) {
			t.Fatalf("vertex %d: %d, %v", i, labels[i], best[3*i:][:3])
		}
	}
}

// The read-outs of single layers against the layers run alone.
func TestFeaturesAndAttentionOfALayer(t *testing.T) {
	m, in, r := testModel[float64](t, nil), testInput[float64](t, 130), newTestRunner[float64](2)
	first := m.Layers()[0]
	features := make([]float64, 130*first.Type.Channels*first.Type.Components())
	alpha := make([]float64, in.Graph.Edges())
	if err := errors.Join(r.Features(m, in, nil, 0, features), r.Attention(m, in, nil, 0, alpha)); err != nil {
		t.Fatal(err)
	}
	want, wantAlpha := runConvolution(m.layers[0].convolution, in.Graph, in.Features)
	if !slices.Equal(features, want) || !slices.Equal(alpha, wantAlpha) {
		t.Error("the first layer's read-outs are not its results")
	}
	for p := range 130 {
		sum := 0.0
		for e := in.Graph.Offsets[p]; e < in.Graph.Offsets[p+1]; e++ {
			sum += alpha[e]
		}
		// With the vertex itself the coefficients add up to N_p + 1.
		if terms := float64(in.Graph.Offsets[p+1]-in.Graph.Offsets[p]) + 1; sum > terms {
			t.Fatalf("vertex %d: the coefficients add up to %g of %g", p, sum, terms)
		}
	}
}

func TestWrongParametersAreRefused(t *testing.T) {
	m := testModel[float32](t, nil)
	for name, data := range map[string][]float32{
		"dense3.weight": nil, "dense2.bias": make([]float32, 20), "dense1.bias": append(make([]float32, 39), float32(math.NaN())),
	} {
		changes := []Parameter[float32]{{name, []int{len(data)}, data}}
		if _, err := m.WithParameters(changes); !errors.Is(err, ErrInvalidModel) || err.Error()[:len(name)] != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	twice := append(slices.Clone(m.Parameters()), m.Parameters()[0])
	if _, err := NewModelFrom(m.Spec(), twice); !errors.Is(err, ErrInvalidModel) {
		t.Errorf("a tensor twice: %v", err)
	}
	// A description is copied: what its giver does to it later has no effect.
	spec := m.Spec()
	spec.Powers[0], *spec.BandLimit = 9, 4
	if kept := m.Spec(); kept.Powers[0] == 9 || *kept.BandLimit == 4 {
		t.Error("the model's description was changed from outside")
	}
}

func TestWrongArgumentsAreRefused(t *testing.T) {
	m, r := testModel[float32](t, nil), newTestRunner[float32](1)
	gem := testModel[float32](t, func(s *Spec) { s.Kind = KindGEM })
	spiral := testModel[float32](t, func(s *Spec) { *s, _ = NewSpec(PresetDefault, KindSpiral) })
	class := testModel[float32](t, func(s *Spec) { s.Task = TaskClassification })
	in, empty := testInput[float32](t, 20), testInput[float32](t, 0)
	xyz := &Input[float32]{Graph: in.Graph, Features: make([]float64, 60)}
	edges := in.Graph.Edges()
	for name, err := range map[string]error{
		"labels: room":      r.Predict(m, in, nil, make([]int32, 19)),
		"logits: room":      r.Logits(m, in, nil, make([]float32, 19)),
		"k: 0":              r.TopK(m, in, nil, 0, nil, nil),
		"k: 22":             r.TopK(m, in, nil, 22, make([]int32, 440), make([]float32, 440)),
		"labels: room for ": r.TopK(m, in, nil, 2, make([]int32, 40), make([]float32, 39)),
		"layer: 6":          r.Attention(m, in, nil, 6, make([]float32, edges)),
		"layer: -1":         r.Features(m, in, nil, -1, nil),
		"layer: blocks.0":   r.Attention(gem, in, nil, 0, make([]float32, edges)),
		"attention: room":   r.Attention(m, in, nil, 0, make([]float32, edges+1)),
		"features: room":    r.Features(m, in, nil, 0, make([]float32, 1)),
		"features: 60":      r.Predict(m, xyz, nil, make([]int32, 20)),
		"spirals: a":        r.Predict(spiral, xyz, nil, make([]int32, 20)),
		"mesh: a mesh":      r.Predict(class, empty, nil, make([]int32, 1)),
	} {
		if !errors.Is(err, ErrInvalidArgument) || err.Error()[:len(name)] != name {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := r.Predict(m, empty, nil, nil); err != nil {
		t.Errorf("a mesh without vertices: %v", err)
	}
}

// Labels of features that overflowed would mean nothing.
func TestOverflowIsAnError(t *testing.T) {
	in, r := testInput[float32](t, 300), newTestRunner[float32](2)
	for _, task := range []Task{TaskSegmentation, TaskClassification} {
		for _, name := range []string{"blocks.0.conv1.value", "blocks.1.conv2.value", "blocks.2.conv2.bias", "dense1.weight", "dense2.weight", "dense2.bias"} {
			m := testModel[float32](t, func(s *Spec) { s.Task = task })
			for _, p := range m.Parameters() {
				if p.Name != name {
					continue
				}
				p.Data = slices.Repeat([]float32{3e38}, len(p.Data))
				absurd, err := m.WithParameters([]Parameter[float32]{p})
				if err != nil {
					t.Fatal(err)
				}
				rows := m.Rows(300)
				for _, err := range []error{
					r.Predict(absurd, in, nil, make([]int32, rows)),
					r.TopK(absurd, in, nil, 1, make([]int32, rows), make([]float32, rows)),
					r.Logits(absurd, in, nil, make([]float32, rows*21)),
				} {
					if !errors.Is(err, ErrInvalidArgument) || !strings.HasPrefix(err.Error(), "vertex ") || !strings.Contains(err.Error(), "overflow float32") {
						t.Errorf("%s, %s: %v", task, name, err)
					}
				}
			}
		}
	}
}

func TestGraphsAreChecked(t *testing.T) {
	unit := EdgeGeometry{[]float64{1, 1}, []float64{0, 0}, []float64{1, 1}, []float64{0, 0}, []float64{1, 2}}
	with := func(change func(*EdgeGeometry)) EdgeGeometry {
		x := EdgeGeometry{slices.Clone(unit.CosTheta), slices.Clone(unit.SinTheta), slices.Clone(unit.CosTransport), slices.Clone(unit.SinTransport), slices.Clone(unit.Length)}
		change(&x)
		return x
	}
	for i, c := range []struct {
		offsets            []int64
		neighbors, reverse []int32
		geometry           EdgeGeometry
		message            string
	}{
		{nil, []int32{1, 0}, nil, unit, "offsets: they must begin"},
		{[]int64{0, 1, 3}, []int32{1, 0}, nil, unit, "offsets: they must begin"},
		{[]int64{0, 3, 2}, []int32{1, 0}, nil, unit, "offsets: vertex 1"},
		{[]int64{0, 1, 2}, []int32{2, 0}, nil, unit, "neighbors: edge 0"},
		{[]int64{0, 1, 2}, []int32{1, 0}, []int32{1}, unit, "reverse: 1"},
		{[]int64{0, 1, 2}, []int32{1, 0}, []int32{0, 1}, unit, "reverse: edge 0"},
		{[]int64{0, 1, 2}, []int32{1, 0}, nil, with(func(x *EdgeGeometry) { x.CosTheta[1] = 0.5 }), "theta: edge 1"},
		{[]int64{0, 1, 2}, []int32{1, 0}, nil, with(func(x *EdgeGeometry) { x.SinTransport[1] = math.NaN() }), "transport: edge 1"},
		{[]int64{0, 1, 2}, []int32{1, 0}, nil, with(func(x *EdgeGeometry) { x.Length[0] = math.Inf(1) }), "length: edge 0"},
		{[]int64{0, 1, 2}, []int32{1, 0}, nil, with(func(x *EdgeGeometry) { x.Length = x.Length[:1] }), "length: 1"},
	} {
		_, err := NewGraph[float32](memory.NewBudget(0, nil), c.offsets, c.neighbors, c.reverse, c.geometry)
		if !errors.Is(err, ErrInvalidArgument) || err.Error()[:len(c.message)] != c.message {
			t.Errorf("case %d: %v, not %q", i, err, c.message)
		}
	}
	for message, sources := range map[string]int{"neighbors: edge 1: vertex 4": 4, "sources: -1": -1} {
		_, err := NewSurfaceGraph[float32](memory.NewBudget(0, nil), sources, []int64{0, 2}, []int32{1, 4}, unit)
		if !errors.Is(err, ErrInvalidArgument) || err.Error()[:len(message)] != message {
			t.Errorf("%d sources: %v, not %q", sources, err, message)
		}
	}
	budget := memory.NewBudget(0, nil)
	g, err := NewGraph[float32](budget, []int64{0, 1, 2}, []int32{1, 0}, []int32{1, 0}, unit)
	if err != nil || g.Radius[0] != 0.5 || g.Radius[1] != 1 {
		t.Fatalf("a good graph: %v", err)
	}
	g.Free()
	if used, _, _ := budget.Usage(); used != 0 {
		t.Errorf("%d bytes are still counted", used)
	}
}

func TestMemoryIsCountedLimitedAndGivenBack(t *testing.T) {
	m, in := testModel[float32](t, nil), testInput[float32](t, 2000)
	labels := make([]int32, 2000)
	budget := memory.NewBudget(0, nil)
	r := NewRunner[float32](kernels32, parallel.New(2), budget)
	if err := r.Predict(m, in, nil, labels); err != nil {
		t.Fatal(err)
	}
	_, peak, _ := budget.Usage()
	estimate := r.Estimate(m, 2000, int64(in.Graph.Edges()))
	used := peak + in.Graph.arena.Bytes() + int64(8*len(in.Features)+4*len(labels))
	if used > estimate || 3*used < 2*estimate {
		t.Errorf("estimated %d bytes, used %d", estimate, used)
	}
	if err := r.Predict(m, in, nil, labels); err != nil {
		t.Fatal(err)
	}
	if _, again, _ := budget.Usage(); again != peak {
		t.Errorf("the second call raised the peak from %d to %d bytes", peak, again)
	}
	r.Reclaim()
	if used, _, _ := budget.Usage(); used != 0 {
		t.Errorf("%d bytes after Trim", used)
	}
	small := NewRunner[float32](kernels32, nil, memory.NewBudget(peak/8, nil))
	if err := small.Predict(m, in, nil, labels); !errors.Is(err, memory.ErrOutOfMemory) {
		t.Errorf("with an eighth of the memory: %v", err)
	}
	if used, _, _ := small.budget.Usage(); used != 0 {
		t.Errorf("%d bytes after a refusal", used)
	}
}

func TestProgressRisesToOneAndCancels(t *testing.T) {
	m, in, r := testModel[float32](t, nil), testInput[float32](t, 1000), newTestRunner[float32](2)
	labels := make([]int32, 1000)
	last := 0.0
	control := &parallel.Control{Progress: func(fraction float64) bool {
		if fraction < last {
			t.Errorf("progress falls from %g to %g", last, fraction)
		}
		last = fraction
		return true
	}}
	if err := r.Predict(m, in, control, labels); err != nil || last < 0.9 || last > 1 {
		t.Errorf("progress ends at %g, %v", last, err)
	}
	for _, stopAt := range []float64{0, 0.3, 0.8} {
		control := &parallel.Control{Progress: func(fraction float64) bool { return fraction < stopAt }}
		if err := r.Predict(m, in, control, labels); !errors.Is(err, parallel.ErrCancelled) {
			t.Errorf("stopped at %g: %v", stopAt, err)
		}
	}
	if err := r.Predict(m, in, &parallel.Control{Cancelled: func() bool { return true }}, labels); !errors.Is(err, parallel.ErrCancelled) {
		t.Errorf("cancelled before: %v", err)
	}
}

func ExampleRunner() {
	// A triangle: each vertex sees the two others at the angles ±30° of its
	// gauge, and the gauges are carried into one another by no turn.
	offsets, neighbors := []int64{0, 2, 4, 6}, []int32{1, 2, 0, 2, 0, 1}
	geometry := EdgeGeometry{}
	for range 3 {
		geometry.CosTheta = append(geometry.CosTheta, math.Sqrt(0.75), math.Sqrt(0.75))
		geometry.SinTheta = append(geometry.SinTheta, -0.5, 0.5)
		geometry.CosTransport = append(geometry.CosTransport, 1, 1)
		geometry.SinTransport = append(geometry.SinTransport, 0, 0)
		geometry.Length = append(geometry.Length, 1, 1)
	}
	budget := memory.NewBudget(0, nil)
	graph, err := NewGraph[float32](budget, offsets, neighbors, nil, geometry)
	if err != nil {
		panic(err)
	}
	spec, err := ParseSpec([]byte(`{"preset": "default", "classes": 4, "powers": [0.7]}`))
	if err != nil {
		panic(err)
	}
	model, err := NewModel[float32](spec, 0)
	if err != nil {
		panic(err)
	}
	runner := NewRunner[float32](kernels32, nil, budget)
	labels := make([]int32, 3)
	in := &Input[float32]{Graph: graph, Features: RelTanFeatures([]float64{1, 0, 1, 0, 1, 0})}
	if err := runner.Predict(model, in, nil, labels); err != nil {
		panic(err)
	}
	fmt.Println(labels[0] == labels[1] && labels[1] == labels[2])
	// Output: true
}
