package core

import (
	"math"

	"libeman/geometry/parallel"
	"libeman/simd"
)

// stagesOf is the number of progress stages of a run up to layer n: packing
// the input, the layers, and what follows.
func stagesOf(layers int) int { return layers + 2 }

// Rows is the number of rows of a model's results on a mesh of so many
// vertices: one for each vertex, or one for the mesh.
func (m *Model[T]) Rows(vertices int) int { return RowsOf(m.spec, vertices) }

// RowsOf is Rows for a description.
func RowsOf(s Spec, vertices int) int {
	if s.Task == TaskClassification {
		return 1
	}
	return vertices
}

// final runs a model up to its last dense layer and calls last, once for each
// block of rows [begin, end) of the results, with the hidden features. A row of
// the results has so many numbers.
func (r *Runner[T]) final(m *Model[T], in *Input[T], control *parallel.Control, numbers int, last func(w *scratch[T], hidden simd.Rows[T], begin, end int)) error {
	c, err := r.begin(m, in, control, stagesOf(len(m.layers)))
	if err != nil {
		return err
	}
	defer c.end()
	x, err := c.layers(len(m.layers), nil)
	if err != nil {
		return err
	}
	if m.spec.Task == TaskClassification {
		return c.pooledHead(x, last)
	}
	return c.pool.Range(c.next(), in.Vertices(), m.head.block(numbers), func(worker, begin, end int) error {
		w := &c.workers[worker]
		hidden, err := m.head.hide(c.kernels, w, in.rows(x, w.lifted, m.head.first.K, begin, end), begin, end-begin)
		if err == nil {
			last(w, hidden, begin, end)
		}
		return err
	})
}

// pooledHead takes the mean of the hidden features over all vertices.
func (c *call[T]) pooledHead(x simd.Rows[T], last func(w *scratch[T], hidden simd.Rows[T], begin, end int)) error {
	head := &c.model.head
	width := simd.Padded(head.hidden)
	vertices := c.input.points()
	err := c.pool.Range(c.next(), vertices, poolRows, func(worker, begin, end int) error {
		w := &c.workers[worker]
		sum := c.pooled[begin/poolRows*width:][:width]
		clear(sum)
		for ; begin < end; begin += headRows {
			n := min(headRows, end-begin)
			hidden, err := head.hide(c.kernels, w, x.From(begin), begin, n)
			if err != nil {
				return err
			}
			addRows(sum, hidden, n)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.guarded(func() {
		w := &c.workers[0]
		meanRow(w.hidden[:width], c.pooled, vertices)
		last(w, simd.Rows[T]{Data: w.hidden, Stride: width}, 0, 1)
	})
}

// guarded runs a body on the calling thread as a loop would.
func (c *call[T]) guarded(body func()) (err error) {
	defer parallel.Recover(&err)
	body()
	return nil
}

// meanRow adds the partial sums of poolRows vertices each in order.
func meanRow[T simd.Float](row []T, pooled []float64, vertices int) {
	width := len(row)
	for j := range row {
		sum := 0.0
		for at := j; at < (vertices+poolRows-1)/poolRows*width; at += width {
			sum += pooled[at]
		}
		row[j] = T(sum / float64(vertices))
	}
}

// Logits computes log-probabilities: out is [vertices, classes], or [classes]
// for classification.
func (r *Runner[T]) Logits(m *Model[T], in *Input[T], control *parallel.Control, out []T) error {
	h := &m.head
	if want := m.Rows(in.Vertices()) * h.classes; len(out) != want {
		return invalidArgument("logits", "room for %d numbers, not %d", len(out), want)
	}
	return r.final(m, in, control, h.classes, func(w *scratch[T], hidden simd.Rows[T], begin, end int) {
		logits := simd.Rows[T]{Data: w.logits, Stride: h.second.N}
		for at := begin; at < end; at += h.chunk() {
			n := min(h.chunk(), end-at)
			r.kernels.Dense(logits, hidden.From(at-begin), h.second, h.secondBias, n, simd.Identity)
			r.kernels.LogSoftmax(logits, h.classes, n)
			for i := range n {
				copy(out[(at+i)*h.classes:][:h.classes], logits.Row(i, h.classes))
			}
		}
	})
}

// Predict finds the most probable class, the lowest of equal ones, of each
// vertex, or of the mesh: labels has Rows entries. No log-probabilities are
// stored.
func (r *Runner[T]) Predict(m *Model[T], in *Input[T], control *parallel.Control, labels []int32) error {
	if want := m.Rows(in.Vertices()); len(labels) != want {
		return invalidArgument("labels", "room for %d, not %d", len(labels), want)
	}
	h := &m.head
	return r.final(m, in, control, 1, func(_ *scratch[T], hidden simd.Rows[T], begin, end int) {
		r.kernels.ArgMax(labels[begin:end], hidden, h.second, h.secondBias, h.classes, end-begin)
	})
}

// TopK finds the k most probable classes with their probabilities, the most
// probable first: labels and probabilities are [Rows, k].
func (r *Runner[T]) TopK(m *Model[T], in *Input[T], control *parallel.Control, k int, labels []int32, probabilities []T) error {
	h := &m.head
	if k < 1 || k > h.classes {
		return invalidArgument("k", "%d is out of range [1, %d]", k, h.classes)
	}
	if want := m.Rows(in.Vertices()) * k; len(labels) != want || len(probabilities) != want {
		return invalidArgument("labels", "room for %d and %d probabilities, not %d", len(labels), len(probabilities), want)
	}
	return r.final(m, in, control, k, func(_ *scratch[T], hidden simd.Rows[T], begin, end int) {
		values := probabilities[begin*k : end*k]
		r.kernels.TopK(labels[begin*k:end*k], values, hidden, h.second, h.secondBias, h.classes, k, end-begin)
		for i := range values {
			values[i] = T(math.Exp(float64(values[i])))
		}
	})
}

// Attention reads out the attention coefficients of a layer of Model.Layers:
// alpha is [edges, heads], α_pq = N_p·softmax (§6), in the order of the edges of
// the layer's graph.
func (r *Runner[T]) Attention(m *Model[T], in *Input[T], control *parallel.Control, layer int, alpha []T) error {
	graph, err := m.LayerGraph(in, layer)
	if err != nil {
		return err
	}
	heads := m.Layers()[layer].Heads
	if heads == 0 {
		return invalidArgument("layer", "%s has no attention", m.Layers()[layer].Name)
	}
	if want := graph.Edges() * heads; len(alpha) != want {
		return invalidArgument("attention", "room for %d numbers, not %d", len(alpha), want)
	}
	c, err := r.begin(m, in, control, stagesOf(layer))
	if err != nil {
		return err
	}
	defer c.end()
	_, err = c.layers(layer+1, alpha)
	return err
}

// Features reads out the features behind a layer of Model.Layers, after its
// residual and non-linearity: out is [vertices of its graph, channels,
// components] of the layer's type.
func (r *Runner[T]) Features(m *Model[T], in *Input[T], control *parallel.Control, layer int, out []T) error {
	graph, err := m.LayerGraph(in, layer)
	if err != nil {
		return err
	}
	of := m.layers[layer].out
	components := of.Components()
	if want := graph.Vertices() * of.Channels * components; len(out) != want {
		return invalidArgument("features", "room for %d numbers, not %d", len(out), want)
	}
	c, err := r.begin(m, in, control, stagesOf(layer))
	if err != nil {
		return err
	}
	defer c.end()
	x, err := c.layers(layer+1, nil)
	if err != nil {
		return err
	}
	for p := range graph.Vertices() {
		row, to := x.Row(p, of.size()), out[p*of.Channels*components:]
		for i := range of.Channels * components {
			to[i] = row[i%components*of.padded()+i/components]
		}
	}
	return nil
}
