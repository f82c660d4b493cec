package core

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"libeman/geometry"
	"libeman/geometry/memory"
	"libeman/simd"
)

// randomSurface is levels of points with random graphs within and between them,
// and a lift to some vertices.
type randomSurface struct {
	points           []int
	within, down, up []*randomMesh
	offsets          []int64
	samples          []int32
	weights          []float64
}

func newRandomSurface(random *rand.Rand, vertices int, points ...int) *randomSurface {
	s := &randomSurface{points: points, offsets: []int64{0}}
	for l, n := range points {
		s.within = append(s.within, newRandomMesh(random, n))
		if l > 0 {
			s.down = append(s.down, newRandomGraph(random, n, points[l-1]).withSelves())
			s.up = append(s.up, newRandomGraph(random, points[l-1], n))
		}
	}
	for v := range vertices {
		for range v % 4 { // some vertices have no sample
			s.samples = append(s.samples, int32(random.IntN(points[0])))
			s.weights = append(s.weights, random.Float64())
		}
		s.offsets = append(s.offsets, int64(len(s.samples)))
	}
	return s
}

// withSelves makes the first edge of each point that of the point to itself.
func (m *randomMesh) withSelves() *randomMesh {
	for p := range len(m.offsets) - 1 {
		if e := m.offsets[p]; e < m.offsets[p+1] {
			m.neighbors[e] = int32(p)
			g := &m.geometry
			g.CosTheta[e], g.SinTheta[e], g.CosTransport[e], g.SinTransport[e], g.Length[e] = 0, 0, 1, 0, 0
		}
	}
	return m
}

// regauged is the surface in other gauges at the points of the finest level.
func (s *randomSurface) regauged(angles []float64) *randomSurface {
	turned := *s
	for _, list := range []*[]*randomMesh{&turned.within, &turned.down, &turned.up} {
		*list = slices.Clone(*list)
		for i, m := range *list {
			(*list)[i] = m.regauged(angles)
		}
	}
	return &turned
}

// surfaceInput is a surface, with its lift or without, as networks take it.
func surfaceInput[T simd.Float](t testing.TB, s *randomSurface, features []float64, lifted bool) *Input[T] {
	t.Helper()
	budget := memory.NewBudget(0, nil)
	graph := func(m *randomMesh, sources int) *Graph[T] {
		g, err := NewSurfaceGraph[T](budget, sources, m.offsets, m.neighbors, m.geometry)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	in := &Input[T]{Features: features}
	for l, n := range s.points {
		level := Level[T]{Within: graph(s.within[l], n)}
		if l < len(s.points)-1 {
			level.Down, level.Up = graph(s.down[l], n), graph(s.up[l], s.points[l+1])
		}
		in.Levels = append(in.Levels, level)
	}
	if lifted {
		var err error
		if in.Lift, err = NewLift[T](budget, s.points[0], s.offsets, s.samples, s.weights); err != nil {
			t.Fatal(err)
		}
	}
	return in
}

// surfaceModel is a small network on so many levels, away from zero biases.
func surfaceModel[T simd.Float](t testing.TB, kind Kind, levels int, change func(*Spec)) *Model[T] {
	t.Helper()
	spec, err := NewSpec(PresetSurface, kind)
	if err != nil {
		t.Fatal(err)
	}
	spec.Classes, spec.Hidden, spec.Width = 5, 12, 4
	spec.Surface.Scales = []int{24}
	spec.Surface.Points, spec.Surface.Blocks = nil, slices.Repeat([]int{1}, 2*levels-1)
	for l := range levels {
		spec.Surface.Points = append(spec.Surface.Points, 1<<(10-l))
	}
	spec.Surface.Blocks[levels-1] = 2 // of the coarsest level
	if change != nil {
		change(&spec)
	}
	m, err := NewModel[T](spec, 7)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(51, 52))
	var moved []Parameter[T]
	for _, p := range m.Parameters() {
		data := slices.Clone(p.Data)
		for i := range data {
			data[i] += T(0.05 * random.NormFloat64())
		}
		moved = append(moved, Parameter[T]{p.Name, p.Shape, data})
	}
	if m, err = m.WithParameters(moved); err != nil {
		t.Fatal(err)
	}
	return m
}

// surfaceSizes are points of one, two and three levels.
var surfaceSizes = [][]int{{70}, {70, 30}, {120, 60, 13}}

func surfaceFeatures(random *rand.Rand, spec Spec, points int) []float64 {
	of := spec.InputType()
	return randomNumbers(random, points*of.Channels*of.Components())
}

// naiveNetwork is a network on a surface as it is described: its layers one by
// one from the matrices of the paper, by the names of their parameters.
type naiveNetwork struct {
	spec     Spec
	p        func(prefix string) layerParameters
	surface  *randomSurface
	features [][]float64 // behind each layer
	alpha    [][]float64
}

// convolve applies the convolution whose parameters begin with a name.
func (n *naiveNetwork) convolve(name string, mesh *randomMesh, in, out Type, x, own []float64) []float64 {
	y, alpha := naiveLayerBetween(n.spec.convolution(in, out), n.p(name), mesh, x, own)
	n.alpha = append(n.alpha, alpha)
	return y
}

// end adds the residual x and applies the non-linearity.
func (n *naiveNetwork) end(y []float64, out Type, x []float64, in Type, skip string) []float64 {
	weights := n.p(skip)[""]
	for i := range y {
		p, c, k := i/out.Components()/out.Channels, i/out.Components()%out.Channels, i%out.Components()
		for d := range in.Channels {
			weight := 0.0
			switch {
			case weights != nil:
				weight = weights[c*in.Channels+d]
			case c == d:
				weight = 1
			}
			if x != nil && k < in.Components() {
				y[i] += weight * x[(p*in.Channels+d)*in.Components()+k]
			}
		}
	}
	rows := toRows[float64](y, out)
	a := newActivation[float64](n.spec.Nonlinearity, out, 0, nil)
	a.apply(simd.Generic[float64]{}, rows, len(y)/out.Channels/out.Components())
	return fromRows(rows, out)
}

func (n *naiveNetwork) keep(y []float64) []float64 {
	n.features = append(n.features, y)
	return y
}

func (n *naiveNetwork) run(x []float64) []float64 {
	s, inner, in := n.spec.Surface, Type{n.spec.Width, n.spec.MaxOrder}, n.spec.InputType()
	levels := len(s.Points)
	blocks := func(level int, way string, count int, final bool) {
		for b := range count {
			name, out := fmt.Sprintf("levels.%d.%s.%d.", level, way, b), inner
			if final && b == count-1 {
				out.Order = 0
			}
			y := n.convolve(name+"conv1.", n.surface.within[level], in, inner, x, x)
			if n.spec.InnerNonlinearity {
				y = n.end(y, inner, nil, inner, "none")
			}
			n.keep(y)
			y = n.convolve(name+"conv2.", n.surface.within[level], inner, out, y, y)
			x = n.keep(n.end(y, out, x, in, name+"skip"))
			in = out
		}
	}
	var before [][]float64
	for l := range levels {
		blocks(l, "down", s.Blocks[l], levels == 1)
		if before = append(before, x); l < levels-1 {
			y := n.convolve(fmt.Sprintf("levels.%d.pool.", l+1), n.surface.down[l], inner, inner, x, x)
			x = n.keep(n.end(y, inner, nil, inner, "none"))
		}
	}
	for l := levels - 2; l >= 0; l-- {
		y := n.convolve(fmt.Sprintf("levels.%d.unpool.", l), n.surface.up[l], inner, inner, x, before[l])
		x = n.keep(n.end(y, inner, before[l], inner, "none"))
		blocks(l, "up", s.Blocks[2*levels-2-l], l == 0)
	}
	return x
}

// lifted is the features of the vertices.
func (n *naiveNetwork) lifted(x []float64) (y []float64) {
	width := len(x) / n.surface.points[0]
	for v := range len(n.surface.offsets) - 1 {
		row := make([]float64, width)
		for i := n.surface.offsets[v]; i < n.surface.offsets[v+1]; i++ {
			for j := range row {
				row[j] += n.surface.weights[i] * x[int(n.surface.samples[i])*width+j]
			}
		}
		y = append(y, row...)
	}
	return y
}

// head is the log-probabilities of rows of features.
func (n *naiveNetwork) head(x []float64) (logits []float64) {
	p := n.p("")
	dense := func(name string, x []float64, out int, rectify bool) (y []float64) {
		in := len(p[name+".weight"]) / out
		for ; len(x) > 0; x = x[in:] {
			for o := range out {
				sum := p[name+".bias"][o] + dot(p[name+".weight"][o*in:][:in], x[:in])
				if rectify {
					sum = max(0, sum)
				}
				y = append(y, sum)
			}
		}
		return y
	}
	hidden := dense("dense1", x, n.spec.Hidden, true)
	if n.spec.Task == TaskClassification {
		mean := make([]float64, n.spec.Hidden)
		for i, value := range hidden {
			mean[i%len(mean)] += value * float64(len(mean)) / float64(len(hidden))
		}
		hidden = mean
	}
	logits = dense("dense2", hidden, n.spec.Classes, false)
	for row := logits; len(row) > 0; row = row[n.spec.Classes:] {
		total := 0.0
		for _, x := range row[:n.spec.Classes] {
			total += math.Exp(x)
		}
		for i := range n.spec.Classes {
			row[i] -= math.Log(total)
		}
	}
	return logits
}

// Every layer's features and attention, and the log-probabilities of samples, of
// vertices and of the mesh, are those of the description.
func TestSurfaceNetworksEqualTheKernelMatricesOfThePaper(t *testing.T) {
	random := rand.New(rand.NewPCG(61, 62))
	for _, points := range surfaceSizes {
		surface := newRandomSurface(random, 300, points...)
		for _, kind := range []Kind{KindGEM, KindEMAN} {
			for _, task := range []Task{TaskSegmentation, TaskClassification} {
				m := surfaceModel[float64](t, kind, len(points), func(s *Spec) {
					s.Task, s.SelfTerm, s.InnerNonlinearity = task, task == TaskClassification, task == TaskSegmentation
				})
				x := surfaceFeatures(random, m.spec, points[0])
				n := &naiveNetwork{spec: m.spec, p: m.layerParameters, surface: surface}
				last := n.run(x)
				checkReadOuts(t, m, surfaceInput[float64](t, surface, x, true), n)
				for lifted, rows := range map[bool][]float64{false: last, true: n.lifted(last)} {
					if task == TaskClassification {
						rows = last
					}
					got := logitsOf(t, m, surfaceInput[float64](t, surface, x, lifted))
					if e := largestError(t, got, n.head(rows)); !(e < 1e-12) {
						t.Errorf("%v, %s, %s, lifted %t: relative error %g", points, kind, task, lifted, e)
					}
				}
			}
		}
	}
}

func checkReadOuts(t *testing.T, m *Model[float64], in *Input[float64], n *naiveNetwork) {
	t.Helper()
	r := newTestRunner[float64](2)
	if len(m.Layers()) != len(n.features) {
		t.Fatalf("%d layers, not %d", len(m.Layers()), len(n.features))
	}
	for i, l := range m.Layers() {
		features := make([]float64, len(n.features[i]))
		if err := r.Features(m, in, nil, i, features); err != nil {
			t.Fatal(err)
		}
		if e := largestError(t, features, n.features[i]); !(e < 1e-12) {
			t.Errorf("%s: relative error %g", l.Name, e)
		}
		if l.Heads == 0 {
			continue
		}
		alpha := make([]float64, len(n.alpha[i]))
		if err := r.Attention(m, in, nil, i, alpha); err != nil {
			t.Fatal(err)
		}
		if e := largestError(t, alpha, n.alpha[i]); !(e < 1e-12) {
			t.Errorf("%s: relative error %g of α", l.Name, e)
		}
	}
}

func TestSurfaceNetworksAreGaugeEquivariant(t *testing.T) {
	random := rand.New(rand.NewPCG(63, 64))
	for _, points := range surfaceSizes {
		surface, angles := newRandomSurface(random, 200, points...), randomAngles(random, points[0])
		for _, kind := range []Kind{KindGEM, KindEMAN} {
			m := surfaceModel[float64](t, kind, len(points), func(s *Spec) { s.SelfTerm = true })
			x := surfaceFeatures(random, m.spec, points[0])
			before := logitsOf(t, m, surfaceInput[float64](t, surface, x, true))
			after := logitsOf(t, m, surfaceInput[float64](t, surface.regauged(angles), regauge(x, m.spec.InputType(), angles), true))
			if gap := largestError(t, after, before); !(gap < 1e-13) {
				t.Errorf("%v, %s: gap %g", points, kind, gap)
			}
		}
	}
}

// surfaceCases are networks on surfaces with their gradients' inputs and labels.
func surfaceCases(t *testing.T) (cases []modelCase) {
	random := rand.New(rand.NewPCG(65, 66))
	for _, c := range []struct {
		points []int
		kind   Kind
		task   Task
		lifted bool
	}{
		{[]int{30, 12}, KindGEM, TaskClassification, false},
		{[]int{30, 12}, KindEMAN, TaskSegmentation, true},
		{[]int{30, 12, 5}, KindGEM, TaskSegmentation, false},
		{[]int{40, 16, 7}, KindEMAN, TaskSegmentation, true},
	} {
		surface := newRandomSurface(random, 40, c.points...)
		m := surfaceModel[float64](t, c.kind, len(c.points), func(s *Spec) {
			s.Task, s.SelfTerm, s.Width, s.Hidden = c.task, c.lifted, 2, 6
			s.Surface.Blocks = slices.Repeat([]int{1}, len(s.Surface.Blocks))
			if c.task == TaskClassification {
				s.Nonlinearity = NonlinearityGate
			}
			if c.kind == KindEMAN {
				s.setMaxOrder(4 - len(c.points))
			}
		})
		in := surfaceInput[float64](t, surface, surfaceFeatures(random, m.spec, c.points[0]), c.lifted)
		target := &Target{Labels: make([]int32, m.Rows(in.Vertices()))}
		for i := range target.Labels {
			target.Labels[i] = int32(random.IntN(5))
		}
		cases = append(cases, modelCase{fmt.Sprintf("%d levels, %s, %s", len(c.points), c.kind, c.task), m, in, target, 0.3})
	}
	return cases
}

func TestSurfaceNetworksHaveTheSameBitsForAnyNumberOfThreads(t *testing.T) {
	random := rand.New(rand.NewPCG(67, 68))
	points := []int{1500, 700, 100}
	surface := newRandomSurface(random, 2000, points...)
	for _, kind := range []Kind{KindGEM, KindEMAN} {
		for _, task := range []Task{TaskSegmentation, TaskClassification} {
			m := surfaceModel[float32](t, kind, 3, func(s *Spec) { s.Task = task })
			in := surfaceInput[float32](t, surface, surfaceFeatures(random, m.spec, points[0]), true)
			target := &Target{Labels: make([]int32, m.Rows(in.Vertices()))}
			for i := range target.Labels {
				target.Labels[i] = int32(i % 5)
			}
			run := func(threads int) string {
				g, r := newGradient(m), newTestRunner[float32](threads)
				loss, hits, err := r.once(g, in, target, 1/target.total(), 0.5, 3, nil)
				if err != nil {
					t.Fatal(err)
				}
				logits := make([]float32, m.Rows(in.Vertices())*5)
				if err := r.Logits(m, in, nil, logits); err != nil {
					t.Fatal(err)
				}
				return fmt.Sprint(loss, hits, g.parameters(), logits)
			}
			if one := run(1); one != run(2) || one != run(5) {
				t.Errorf("%s, %s: the result depends on the threads", kind, task)
			}
		}
	}
}

// What a call allocates does not grow with the samples or the vertices.
func TestACallOnASurfaceAllocatesNothingForABlock(t *testing.T) {
	random := rand.New(rand.NewPCG(77, 78))
	m, r := surfaceModel[float32](t, KindEMAN, 2, nil), newTestRunner[float32](2)
	for _, blocks := range []int{1, 20} {
		points, vertices := blocks*blockVertices, 2*blocks*headRows
		surface := newRandomSurface(random, vertices, points, points/2)
		in, labels := surfaceInput[float32](t, surface, surfaceFeatures(random, m.spec, points), true), make([]int32, vertices)
		objects := testing.AllocsPerRun(10, func() {
			if err := r.Predict(m, in, nil, labels); err != nil {
				t.Fatal(err)
			}
		})
		if most := 3 * stagesOf(len(m.layers)); objects > float64(most) {
			t.Errorf("%d blocks: %g objects, more than %d", blocks, objects, most)
		}
	}
}

// A chunk of vertices at a time gives samples the same as all at once.
func TestLiftsAndTheirTransposes(t *testing.T) {
	random := rand.New(rand.NewPCG(69, 70))
	const samples, vertices, n = 50, 200, 16
	lift := surfaceInput[float64](t, newRandomSurface(random, vertices, samples), nil, true).Lift
	rows := func(count int) simd.Rows[float64] {
		return simd.Rows[float64]{Data: randomNumbers(random, count*n), Stride: n}
	}
	x, c := rows(samples), rows(vertices)
	y, back := rows(vertices), simd.Rows[float64]{Data: make([]float64, samples*n), Stride: n}
	lift.apply(y, x, n, 0, vertices)
	transposed, err := lift.transposed()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range [][2]int{{0, 1}, {1, 1}, {1, 77}, {77, vertices}} {
		for _, some := range [][2]int{{0, 20}, {20, samples}} {
			transposed.apply(back.From(some[0]), c.From(part[0]), n, some[0], some[1], part[0], part[1])
		}
	}
	if forth, back := dot(y.Data, c.Data), dot(x.Data, back.Data); abs(forth-back) > 1e-12*abs(forth) {
		t.Errorf("⟨Lx, c⟩ is %g, ⟨x, Lᵀc⟩ is %g", forth, back)
	}
	for message, given := range map[string]*Lift[float64]{
		"offsets: ":           {Offsets: []int64{0, 1}, Samples: []int32{0, 0}, Weights: []float64{1, 1}},
		"weights: 1 of them":  {Offsets: []int64{0, 2}, Samples: []int32{0, 0}, Weights: []float64{1}},
		"samples: entry 1":    {Offsets: []int64{0, 2}, Samples: []int32{0, 3}, Weights: []float64{1, 1}},
		"weights: entry 0: -": {Offsets: []int64{0, 1}, Samples: []int32{0}, Weights: []float64{-1}},
		"weights: entry 0: N": {Offsets: []int64{0, 1}, Samples: []int32{0}, Weights: []float64{math.NaN()}},
	} {
		_, err := NewLift[float64](memory.NewBudget(0, nil), 3, given.Offsets, given.Samples, given.Weights)
		if !errors.Is(err, ErrInvalidArgument) || !strings.HasPrefix(err.Error(), message) {
			t.Errorf("%v, not %q", err, message)
		}
	}
}

// Nothing of the entries is read: they need not be there.
func TestALiftOfTooManyEntriesIsNotTransposed(t *testing.T) {
	lift := Lift[float32]{Samples: unsafe.Slice(new(int32), math.MaxInt32+1), samples: 1}
	lift.arena = memory.NewBudget(0, nil).NewArena("test")
	if _, err := lift.transposed(); !errors.Is(err, geometry.ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

func TestWrongSurfacesAreRefused(t *testing.T) {
	random := rand.New(rand.NewPCG(71, 72))
	surface := newRandomSurface(random, 30, 40, 20)
	m, r := surfaceModel[float32](t, KindEMAN, 2, nil), newTestRunner[float32](1)
	x := surfaceFeatures(random, m.spec, 40)
	other := surfaceInput[float32](t, newRandomSurface(random, 30, 41, 20), nil, true)
	for message, change := range map[string]func(in *Input[float32]){
		"levels: 1 of them":             func(in *Input[float32]) { in.Levels = in.Levels[:1] },
		"levels: 0 of them":             func(in *Input[float32]) { in.Levels = nil },
		"within: level 0: the graph":    func(in *Input[float32]) { in.Levels[0].Within = nil },
		"within: level 1: from 40":      func(in *Input[float32]) { in.Levels[1].Within = in.Levels[0].Within },
		"levels: level 0: there is":     func(in *Input[float32]) { in.Levels[0].Down = nil },
		"down: level 0: from 41":        func(in *Input[float32]) { in.Levels[0].Down = other.Levels[0].Down },
		"up: level 0: the graph":        func(in *Input[float32]) { in.Levels[0].Up = nil },
		"up: level 0: from 20 points t": func(in *Input[float32]) { in.Levels[0].Up = other.Levels[0].Up },
		"lift: from 41":                 func(in *Input[float32]) { in.Lift = other.Lift },
		"features: 7 numbers":           func(in *Input[float32]) { in.Features = in.Features[:7] },
	} {
		in := surfaceInput[float32](t, surface, x, true)
		change(in)
		err := r.Predict(m, in, nil, make([]int32, 30))
		if in.Lift == nil {
			t.Fatal("the lift is there in every case")
		}
		if !errors.Is(err, ErrInvalidArgument) || !strings.HasPrefix(err.Error(), message) {
			t.Errorf("%v, not %q", err, message)
		}
	}
	in := surfaceInput[float32](t, surface, x, false)
	if err := r.Predict(testModel[float32](t, nil), in, nil, make([]int32, 40)); !errors.Is(err, ErrInvalidArgument) {
		t.Errorf("samples for a network on vertices: %v", err)
	}
	if err := r.Features(m, testInput[float32](t, 40), nil, 0, nil); !errors.Is(err, ErrInvalidArgument) {
		t.Errorf("a mesh for a network on a surface: %v", err)
	}
}

// No two values that are wanted at the same time share a buffer, and there are
// no more buffers than that takes.
func TestValuesThatAreWantedHaveBuffersOfTheirOwn(t *testing.T) {
	spiral, _ := NewSpec(PresetDefault, KindSpiral)
	plain, _ := NewSpec(PresetDefault, KindGEM)
	for _, c := range []struct {
		spec    Spec
		buffers int
	}{
		{spiral, 2}, {plain, 3},
		{surfaceModel[float32](t, KindGEM, 1, nil).spec, 3},
		{surfaceModel[float32](t, KindGEM, 2, nil).spec, 4},
		{surfaceModel[float32](t, KindGEM, 4, nil).spec, 6}, // three ways up to come, and a block
	} {
		layers := c.spec.layers()
		buffer, buffers := placeValues(layers)
		if buffers != c.buffers {
			t.Errorf("%s: %d buffers, not %d", c.spec.JSON(), buffers, c.buffers)
		}
		held := make([]int, buffers) // the value in each buffer
		for i, l := range layers {
			held[buffer[i+1]] = i + 1
			wanted := []int{i}
			if l.residual != nil {
				wanted = append(wanted, l.residual.from)
			}
			for _, v := range wanted {
				if held[buffer[v]] != v {
					t.Errorf("layer %d: value %d was overwritten by %d", i, v, held[buffer[v]])
				}
			}
		}
	}
}

func TestATrainingOnSurfacesResumesWithTheSameBits(t *testing.T) {
	random := rand.New(rand.NewPCG(75, 76))
	points := []int{60, 25}
	m := surfaceModel[float32](t, KindEMAN, 2, nil)
	var inputs []*Input[float32]
	for range 3 {
		inputs = append(inputs, surfaceInput[float32](t, newRandomSurface(random, 80, points...), surfaceFeatures(random, m.spec, points[0]), true))
	}
	spec := DefaultTraining()
	spec.Epochs, spec.MeshesPerStep, spec.Schedule, spec.ClipNorm = 3, 2, ScheduleOneCycle, 1
	add := func(trainer *Trainer[float32]) {
		for i, in := range inputs {
			labels := make([]int32, 80)
			for v := range labels {
				labels[v] = int32(v % 5)
			}
			if err := trainer.Add(exampleOf("surface", in, labels), i == 2); err != nil {
				t.Fatal(err)
			}
		}
	}
	whole := newTestTrainer(t, m, spec, 1)
	add(whole)
	if err := whole.Run(nil, nil); err != nil {
		t.Fatal(err)
	}
	part := newTestTrainer(t, m, spec, 2)
	add(part)
	if _, err := part.Step(nil); err != nil {
		t.Fatal(err)
	}
	resumed, err := ResumeTrainer(newTestRunner[float32](1), part.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resumed.Free()
	add(resumed)
	if err := resumed.Run(nil, nil); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(resumed.Encode(), whole.Encode()) {
		t.Error("the resumed training ends elsewhere")
	}
	if history := whole.State().History; !(history[2].Loss < history[0].Loss) {
		t.Errorf("it learns nothing: %+v", history)
	}
}
