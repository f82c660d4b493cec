package core

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"libeman/geometry/memory"
)

// slope is the derivative of f at 0 by central differences of fourth order.
func slope(f func(step float64) float64) float64 {
	const h = 1e-3
	return (8*(f(h)-f(-h)) - (f(2*h) - f(-2*h))) / (12 * h)
}

// along is x + step·direction.
func along(x, direction []float64, step float64) []float64 {
	moved := slices.Clone(x)
	for i := range moved {
		moved[i] += step * direction[i]
	}
	return moved
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// The gradient of every layer with respect to its features and every tensor,
// against the derivative along a random direction.
func TestLayerGradientsAgainstDifferences(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	mesh := newRandomMesh(random, 40)
	graph := mesh.graph(t)
	worst := 0.0
	for _, s := range layerVariants() {
		p := randomParameters(random, s)
		for name, tensor := range p {
			for i := range tensor {
				tensor[i] *= 0.3 // so that the softmax does not saturate
			}
			p[name] = tensor
		}
		x := randomNumbers(random, 40*s.in.Channels*s.in.Components())
		c := randomNumbers(random, 40*s.out.Channels*s.out.Components())
		loss := func(p layerParameters, x []float64) float64 {
			y, _ := runConvolution(newConvolution[float64](s, p), graph, x)
			return dot(y, c)
		}
		ledger := &ledger{}
		g := newConvolutionGradient(newConvolution[float64](s, p), ledger)
		ofX, of := gradientOfLayer(g, ledger.size, p, graph, x, c)
		check := func(name string, gradient, direction []float64, f func(step float64) float64) {
			got, want := dot(gradient, direction), slope(f)
			scale := math.Sqrt(dot(gradient, gradient) * dot(direction, direction))
			if e := abs(got-want) / scale; scale > 0 && !(e < 1e-8) || scale == 0 && abs(want) > 1e-8 {
				t.Errorf("%v: %s: %g, not %g", s, name, got, want)
			} else if scale > 0 {
				worst = max(worst, e)
			}
		}
		direction := randomNumbers(random, len(x))
		check("features", ofX, direction, func(step float64) float64 { return loss(p, along(x, direction, step)) })
		for name, tensor := range p {
			direction := randomNumbers(random, len(tensor))
			gradient := of[name]
			if gradient == nil {
				t.Errorf("%v: %s has no gradient", s, name)
				continue
			}
			check(name, gradient, direction, func(step float64) float64 {
				moved := layerParameters{}
				for other, tensor := range p {
					moved[other] = tensor
				}
				moved[name] = along(tensor, direction, step)
				return loss(moved, x)
			})
		}
	}
	t.Logf("largest relative error %.2g", worst)
}

// modelCase is a network, its input and its labels.
type modelCase struct {
	name   string
	model  *Model[float64]
	in     *Input[float64]
	target *Target
	rate   float64 // of dropout
}

func modelCases(t *testing.T) (cases []modelCase) {
	random := rand.New(rand.NewPCG(31, 32))
	const vertices = 40
	in := testInput[float64](t, vertices)
	labels := make([]int32, vertices)
	weights := make([]float64, 21)
	for i := range labels {
		labels[i] = int32(random.IntN(22)) - 1
	}
	for i := range weights {
		weights[i] = random.Float64()
	}
	add := func(name string, rate float64, target *Target, change func(*Spec)) {
		m := testModel[float64](t, change)
		var moved []Parameter[float64]
		for _, p := range m.Parameters() { // away from zero biases, with which much lies on the kink of ReLU
			moved = append(moved, Parameter[float64]{p.Name, p.Shape, along(p.Data, randomNumbers(random, len(p.Data)), 0.05)})
		}
		m, err := m.WithParameters(moved)
		if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, modelCase{name, m, in, target, rate})
	}
	part, whole := &Target{Labels: labels}, &Target{Labels: []int32{5}}
	add("default", 0, part, nil)
	add("dropout, class weights", 0.3, &Target{labels, weights}, nil)
	add("classification", 0.5, whole, func(s *Spec) { s.Task = TaskClassification })
	add("gate", 0, part, func(s *Spec) { s.Nonlinearity = NonlinearityGate })
	add("regular inside", 0, part, func(s *Spec) { s.Nonlinearity, s.InnerNonlinearity = NonlinearityRegular, true })
	add("poly inside", 0, part, func(s *Spec) { s.InnerNonlinearity = true })
	add("projected heads", 0, part, func(s *Spec) { s.Heads, s.HeadForm = 2, HeadProjected })
	add("sum, additive bias", 0, part, func(s *Spec) { s.Aggregation, s.Bias, s.SelfTerm = AggregationSum, BiasAdditive, false })
	add("wide", 0, part, func(s *Spec) { s.Width, s.Hidden, s.Blocks = 20, 16, 2 })
	gem, err := NewSpec(PresetDefault, KindGEM)
	if err != nil {
		t.Fatal(err)
	}
	gem.Classes, gem.Width = 21, 8
	add("gem", 0, part, func(s *Spec) { *s = gem })
	return slices.Concat(cases, spiralCases(t), surfaceCases(t))
}

func spiralCases(t *testing.T) (cases []modelCase) {
	faces, positions := hexagons()
	for _, task := range []Task{TaskSegmentation, TaskClassification} {
		spec, _ := NewSpec(PresetPaper, KindSpiral)
		spec.Classes, spec.Width, spec.Hidden, spec.Blocks, spec.Task = 5, 4, 6, 2, task
		m, err := NewModel[float64](spec, 5)
		if err != nil {
			t.Fatal(err)
		}
		spirals := spiralsOf(t, faces, positions, spec.SpiralLength, SpiralStartIndex)
		graph, err := NewGraph[float64](memory.NewBudget(0, nil), make([]int64, spirals.vertices()+1), nil, nil, EdgeGeometry{})
		if err != nil {
			t.Fatal(err)
		}
		target := &Target{Labels: make([]int32, m.Rows(spirals.vertices()))}
		for i := range target.Labels {
			target.Labels[i] = int32(i % 5)
		}
		in := &Input[float64]{Graph: graph, Features: positions, Spirals: spirals}
		cases = append(cases, modelCase{"spirals, " + string(task), m, in, target, 0.25})
	}
	return cases
}

func (c *modelCase) backward(t *testing.T, m *Model[float64], threads int) (loss float64, gradients [][]float64) {
	t.Helper()
	g := newGradient(m)
	loss, _, err := newTestRunner[float64](threads).once(g, c.in, c.target, 1/c.target.total(), c.rate, 3, nil)
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	return loss, g.parameters()
}

func TestModelGradientsAgainstDifferences(t *testing.T) {
	random := rand.New(rand.NewPCG(41, 42))
	for _, c := range modelCases(t) {
		_, gradients := c.backward(t, c.model, 2)
		worst := 0.0
		for i, p := range c.model.Parameters() {
			direction := randomNumbers(random, len(p.Data))
			got := dot(gradients[i], direction)
			size := math.Sqrt(dot(direction, direction))
			const h = 1e-6 // small: the loss has the kinks of ReLU
			loss := func(step float64) float64 {
				m, err := c.model.WithParameters([]Parameter[float64]{{p.Name, p.Shape, along(p.Data, direction, step)}})
				if err != nil {
					t.Fatal(err)
				}
				loss, _ := c.backward(t, m, 1)
				return loss
			}
			want := (loss(h) - loss(-h)) / (2 * h)
			e := abs(got-want) / (1e-3 + size*math.Sqrt(dot(gradients[i], gradients[i])))
			worst = max(worst, e)
			if !(e < 1e-5) {
				t.Errorf("%s: %s: %g, not %g", c.name, p.Name, got, want)
			}
		}
		t.Logf("%s: largest relative error %.2g", c.name, worst)
	}
}

func TestGradientsHaveTheSameBitsForAnyNumberOfThreads(t *testing.T) {
	for _, vertices := range []int{1, 47, 1000} {
		in := testInput[float32](t, vertices)
		labels := make([]int32, vertices)
		for i := range labels {
			labels[i] = int32(i % 21)
		}
		for _, task := range []Task{TaskSegmentation, TaskClassification} {
			m := testModel[float32](t, func(s *Spec) { s.Task = task })
			target := &Target{Labels: labels[:m.Rows(vertices)]}
			run := func(threads int) string {
				g := newGradient(m)
				loss, hits, err := newTestRunner[float32](threads).once(g, in, target, 1/target.total(), 0.5, 3, nil)
				if err != nil {
					t.Fatal(err)
				}
				return fmt.Sprint(loss, hits, g.parameters())
			}
			if one := run(1); one != run(2) || one != run(5) {
				t.Errorf("%d vertices, %s: the gradient depends on the threads", vertices, task)
			}
		}
	}
}

// What a gradient of two meshes is: the sum of both.
func TestGradientsAddUpOverMeshes(t *testing.T) {
	cases := modelCases(t)
	c := cases[0]
	g := newGradient(c.model)
	r := newTestRunner[float64](1)
	for range 2 {
		if _, _, err := r.once(g, c.in, c.target, 1/c.target.total(), 0, 3, nil); err != nil {
			t.Fatal(err)
		}
	}
	_, once := c.backward(t, c.model, 1)
	for i, twice := range g.parameters() {
		for j := range twice {
			twice[j] /= 2
		}
		if e := distance(twice, once[i]); !(e < 1e-14) {
			t.Errorf("%s: %g", c.model.Parameters()[i].Name, e)
		}
	}
}

// What an earlier mesh left in the workspace does not matter.
func TestGradientsDoNotDependOnWhatTheMemoryHeld(t *testing.T) {
	for _, c := range modelCases(t) {
		r := newTestRunner[float64](2)
		w := newGradientWorkspace[float64](r.budget, 2)
		run := func() string {
			g := newGradient(c.model)
			loss, hits, err := r.backward(w, g, c.in, c.target, 1, c.rate, 3, nil)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			return fmt.Sprint(loss, hits, g.parameters())
		}
		clean := run()
		for _, memory := range [][]float64{w.narrow.data, w.wide.data} {
			for i := range memory {
				memory[i] = math.NaN()
			}
		}
		if run() != clean {
			t.Errorf("%s: another gradient", c.name)
		}
		w.free()
	}
}

func TestWrongTargetsAreRefused(t *testing.T) {
	in, m := testInput[float64](t, 3), testModel[float64](t, nil)
	for name, target := range map[string]*Target{
		"too few labels":    {Labels: []int32{0, 1}},
		"label too large":   {Labels: []int32{0, 1, 21}},
		"label below -1":    {Labels: []int32{0, -2, 1}},
		"too few weights":   {Labels: []int32{0, 1, 2}, ClassWeights: []float64{1}},
		"a negative weight": {Labels: []int32{0, 1, 2}, ClassWeights: append(make([]float64, 20), -1)},
	} {
		_, _, err := newTestRunner[float64](1).once(newGradient(m), in, target, 1, 0, 0, nil)
		if !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	empty := testInput[float64](t, 0)
	if _, _, err := newTestRunner[float64](1).once(newGradient(m), empty, &Target{}, 1, 0, 0, nil); !errors.Is(err, ErrInvalidArgument) {
		t.Errorf("no vertices: %v", err)
	}
}
