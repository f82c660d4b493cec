package core

import (
	"fmt"
	"strings"
	"testing"

	"libeman/geometry/parallel"
	"libeman/simd"
	"libeman/tests/npz"
)

// The bounds that gradients are held to, relative to the largest of a tensor.
const (
	gradientBound64 = 1e-9
	gradientBound32 = 1e-5
)

// gradientOfLayer runs a convolution backward on a whole graph from the gradient
// c with respect to its results, the features' gradient first.
func gradientOfLayer[T simd.Float](g *convolutionGradient[T], size int, p layerParameters, graph *Graph[T], x, c []float64) ([]float64, layerParameters) {
	k := testKernels[T]()
	in, of := toRows[T](x, g.in), toRows[T](c, g.out)
	y := simd.Rows[T]{Data: make([]T, graph.Vertices()*g.out.size()), Stride: g.out.size()}
	to := simd.Rows[T]{Data: make([]T, len(in.Data)), Stride: in.Stride}
	records := simd.Rows[T]{Data: make([]T, graph.Edges()*in.Stride), Stride: in.Stride}
	w := &gradientScratch[T]{}
	sizes := g.scratchSizes(graph.largestBlock)
	for i, array := range w.scratch.arrays() {
		*array = make([]T, sizes[i])
	}
	w.ofMoments, w.ofSelfRows = make([]T, sizes[0]), make([]T, sizes[5])
	sums := make([]T, size)
	for begin := 0; begin < graph.Vertices(); begin += blockVertices {
		end := min(begin+blockVertices, graph.Vertices())
		g.forward(k, &w.scratch, graph, in, in, y, begin, end, nil)
		first, last := graph.Offsets[begin], graph.Offsets[end]
		b := &convolutionBlock[T]{
			graph: graph, begin: begin, end: end, x: in, targets: in.From(begin), gradient: of.From(begin), to: to.From(begin),
			records: records.From(int(first)), sums: sums,
		}
		if g.attention != nil {
			b.alpha = append([]T(nil), w.coefficients[:int(last-first)*g.heads]...)
			if g.attention.self != nil {
				b.own = append([]T(nil), w.self[:(end-begin)*g.heads]...)
			}
		}
		g.backward(k, w, b)
	}
	edges, offsets, err := graph.incoming()
	if err != nil {
		panic(err)
	}
	k.Gather(to, records, edges, offsets, in.Stride)
	wide := make([]float64, size)
	for i, value := range sums {
		wide[i] = float64(value)
	}
	return fromRows(to, g.in), g.parameterGradients(p, wide)
}

func TestLayerGradientsAgainstTheAuthorsCode(t *testing.T) { eachSet(t, checkLayerGradients) }

func checkLayerGradients(t *testing.T) {
	var layers []goldenLayer
	readJSON(t, "layers.json", &layers)
	var worst64, worst32 float64
	for _, l := range layers {
		file := npz.MustRead(t, l.File)
		worst64 = max(worst64, checkLayerGradient[float64](t, l, file, gradientBound64))
		worst32 = max(worst32, checkLayerGradient[float32](t, l, file, gradientBound32))
	}
	t.Logf("%d layers: largest relative error of a gradient %.2g in float64, %.2g in float32", len(layers), worst64, worst32)
}

func checkLayerGradient[T simd.Float](t *testing.T, l goldenLayer, file npz.File, bound float64) (worst float64) {
	p, ledger := l.parameters(file), &ledger{}
	g := newConvolutionGradient(newConvolution[T](l.spec(), p), ledger)
	ofX, of := gradientOfLayer(g, ledger.size, p, graphOf[T](t, loadGoldenMesh(t, l.Mesh)), file["x"].Data, file["c"].Data)
	check := func(name string, got, want []float64) {
		if len(want) == 0 {
			return
		}
		e := largestError(t, got, want)
		if !(e <= bound) {
			t.Errorf("%s: %s: relative error %g", l.File, name, e)
		}
		worst = max(worst, e)
	}
	check("features", ofX, file["gx"].Data)
	for name, tensor := range map[string]string{"value": "weight", "key": "eman_attn_layer.neigh_weight", "query": "eman_attn_layer.self_weight", "bias": "bias"} {
		check(tensor, of[name], file["g:"+tensor].Data)
	}
	check("angles", of["angles"], append(append([]float64(nil), file["g:ang_bias1"].Data...), file["g:ang_bias2"].Data...))
	return worst
}

func TestRegularGradientAgainstTheAuthorsCode(t *testing.T) {
	file := npz.MustRead(t, "regular_nonlin.npz")
	for order := range 3 {
		for _, samples := range []int{5, 7} {
			name := fmt.Sprintf("_o%d_s%d", order, samples)
			x := file["x"+name]
			of := Type{x.Shape[1], order}
			a := newActivation[float64](NonlinearityRegular, of, samples, nil)
			rows, gradient := toRows[float64](x.Data, of), toRows[float64](file["c"+name].Data, of)
			simd.Generic[float64]{}.RegularGradient(gradient, rows, a.circle, of.padded(), x.Shape[0])
			if e := largestError(t, fromRows(gradient, of), file["gx"+name].Data); e > gradientBound64 {
				t.Errorf("%s: relative error %g", name, e)
			}
		}
	}
}

// once is a backward pass with a workspace of its own.
func (r *Runner[T]) once(g *gradient[T], in *Input[T], target *Target, scale, rate float64, seed uint64, control *parallel.Control) (float64, int, error) {
	w := newGradientWorkspace[T](r.budget, r.pool.Threads())
	defer w.free()
	return r.backward(w, g, in, target, scale, rate, seed, control)
}

// gradientOf is the loss and the gradient of the mean negative log-likelihood.
func gradientOf[T simd.Float](t testing.TB, m *Model[T], in *Input[T], labels []int32, threads int) (loss float64, gradients [][]T) {
	t.Helper()
	g, target := newGradient(m), &Target{Labels: labels}
	r := newTestRunner[T](threads)
	loss, _, err := r.once(g, in, target, 1/target.total(), 0, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if used, _, _ := r.budget.Usage(); used != 0 {
		t.Errorf("%d bytes are left", used)
	}
	return loss, g.parameters()
}

func TestModelGradientsAgainstTheAuthorsCode(t *testing.T) { eachSet(t, checkModelGradients) }

func checkModelGradients(t *testing.T) {
	for _, name := range []string{"RelTanEMAN", "EMAN", "RelTanGemCNN", "GemCNN"} {
		file := npz.MustRead(t, "model_"+name+".npz")
		for task, prefix := range map[Task]string{TaskSegmentation: "seg_", TaskClassification: "cls_"} {
			if task == TaskClassification && !strings.HasPrefix(name, "RelTan") { // has no gradients in the file
				continue
			}
			config := DefaultAuthorsConfig(name)
			config.Task = task
			checkModelGradient[float64](t, name, prefix, file, config, gradientBound64)
			checkModelGradient[float32](t, name, prefix, file, config, 1e-4)
		}
	}
}

func checkModelGradient[T simd.Float](t *testing.T, name, prefix string, file npz.File, config AuthorsConfig, bound float64) {
	t.Helper()
	m, err := FromAuthors(stateOf[T](file), config)
	if err != nil {
		t.Fatal(err)
	}
	loss, gradients := gradientOf(t, m, inputOf[T](t, m.Spec(), loadGoldenMesh(t, "spotcontrol")), file[prefix+"target"].Int32(), 2)
	if want := file[prefix+"loss"].Data[0]; abs(loss-want) > bound*want {
		t.Errorf("%s %s: loss %g, not %g", name, prefix, loss, want)
	}
	// The conversion of the weights is that of their gradients.
	var state []Parameter[T]
	for _, p := range stateOf[T](file) {
		given, found := file[prefix+"g:"+p.Name]
		p.Data = make([]T, len(p.Data))
		if found {
			for i, x := range given.Data {
				p.Data[i] = T(x)
			}
		}
		state = append(state, p)
	}
	of, err := FromAuthors(state, config)
	if err != nil {
		t.Fatal(err)
	}
	worst := 0.0
	for i, p := range of.Parameters() {
		if strings.Contains(p.Name, "angles") && len(p.Data) == 0 {
			continue
		}
		want, got := widened(p.Data), widened(gradients[i])
		e := largestError(t, got, want)
		worst = max(worst, e)
		if !(e <= bound) {
			t.Errorf("%s %s%s: relative error %g", name, prefix, p.Name, e)
		}
	}
	t.Logf("%s %s: %d tensors within %.2g", name, prefix, len(gradients), worst)
}

func widened[T simd.Float](values []T) (wide []float64) {
	for _, x := range values {
		wide = append(wide, float64(x))
	}
	return wide
}
