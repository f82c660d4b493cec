package core

import (
	"math"

	"libeman/geometry/parallel"
	"libeman/simd"
)

const (
	// headTile is the number of rows that one thread takes through the dense
	// layers at a time.
	headTile = 48
	// headScores bounds the scores that are held at a time, and with them the
	// rows of which the gradients of the weights are summed in one go.
	headScores = 1 << 22
	// classChunk is the number of classes whose weights one thread treats.
	classChunk = 240
	// classDepth is the number of classes that one product sums over.
	classDepth = 1 << 10
)

// headGradient is the backward pass of the dense layers.
type headGradient[T simd.Float] struct {
	*denseHead[T]
	transposedFirst *simd.Panel[T]
	// transposedSecond has classDepth classes at a time: so many rows of a panel
	// stay in the second-level cache while the scores pass.
	transposedSecond []*simd.Panel[T]
	// The gradients of the tensors, rows padded to a multiple of simd.Lanes:
	// [hidden, padded in], [padded hidden], [classes, padded hidden], [padded
	// classes].
	ofFirst, ofFirstBias, ofSecond, ofSecondBias []T
	dropout                                      dropout
}

func newHeadGradient[T simd.Float](h *denseHead[T]) *headGradient[T] {
	g := &headGradient[T]{
		denseHead: h, transposedFirst: h.first.Transposed(),
		ofFirst: simd.Aligned[T](h.hidden * h.first.K), ofFirstBias: simd.Aligned[T](h.first.N),
		ofSecond: simd.Aligned[T](h.classes * h.second.K), ofSecondBias: simd.Aligned[T](h.second.N),
	}
	for class := 0; class < h.second.N; class += classDepth {
		g.transposedSecond = append(g.transposedSecond, h.second.TransposedColumns(class, min(class+classDepth, h.second.N)))
	}
	return g
}

// fill transposes the matrices of the dense layers, which were changed.
func (h *headGradient[T]) fill() {
	h.first.TransposeColumns(h.transposedFirst, 0)
	for i, panel := range h.transposedSecond {
		h.second.TransposeColumns(panel, i*classDepth)
	}
}

// ofHidden computes the gradient with respect to the hidden features of n rows
// from that with respect to the scores.
func (h *headGradient[T]) ofHidden(k simd.Kernels[T], to, scores simd.Rows[T], n int) {
	for i, panel := range h.transposedSecond {
		k.Multiply(to, scores.Columns(i*classDepth), panel, n, i > 0)
	}
}

// clear begins new sums.
func (h *headGradient[T]) clear() {
	clear(h.ofFirst)
	clear(h.ofFirstBias)
	clear(h.ofSecond)
	clear(h.ofSecondBias)
}

// rows is how many rows the scores of which are held at a time, a multiple of
// headTile.
func (h *headGradient[T]) rows(vertices int) int {
	most := max(1, min(vertices+headTile-1, headScores/h.second.N)/headTile)
	return most * headTile
}

// Target is what a network should answer.
type Target struct {
	// Labels are the classes of the vertices, or the class of the mesh; -1
	// where it is unknown.
	Labels []int32
	// ClassWeights say how much each class counts; nil: all alike.
	ClassWeights []float64
}

// weight is how much a label counts.
func (t *Target) weight(label int32) float64 {
	switch {
	case label < 0:
		return 0
	case t.ClassWeights == nil:
		return 1
	default:
		return t.ClassWeights[label]
	}
}

// check refuses labels that are no classes.
func (t *Target) check(rows, classes int) error {
	if len(t.Labels) != rows {
		return invalidArgument("labels", "%d labels, not %d", len(t.Labels), rows)
	}
	for i, label := range t.Labels {
		if label < -1 || int(label) >= classes {
			return invalidArgument("labels", "label %d is %d, out of range [-1, %d)", i, label, classes)
		}
	}
	if t.ClassWeights != nil && len(t.ClassWeights) != classes {
		return invalidArgument("class weights", "%d weights for %d classes", len(t.ClassWeights), classes)
	}
	for c, w := range t.ClassWeights {
		if !(w >= 0 && w <= math.MaxFloat32) {
			return invalidArgument("class weights", "the weight of class %d is %g", c, w)
		}
	}
	return nil
}

// total is the sum of the weights of all labels.
func (t *Target) total() (sum float64) {
	for _, label := range t.Labels {
		sum += t.weight(label)
	}
	return sum
}

// counted is the number of labels that have a weight.
func (t *Target) counted() (n int64) {
	for _, label := range t.Labels {
		if t.weight(label) > 0 {
			n++
		}
	}
	return n
}

// weigh fills in the labels and their weights, times scale, from place first
// on; the label of a row without weight is 0.
func weigh[T simd.Float](t *Target, labels []int32, weights []T, first int, scale float64) {
	for i := range labels {
		label := t.Labels[first+i]
		labels[i], weights[i] = max(0, label), T(scale*t.weight(label))
	}
}

// hideRows is hide with dropout, into rows of the caller's.
func (h *headGradient[T]) hideRows(k simd.Kernels[T], hidden, x simd.Rows[T], first, n int) error {
	if err := checkRows(x, h.in, first, n, h.firstLimit); err != nil {
		return err
	}
	k.Dense(hidden, x, h.first, h.firstBias, n, h.activation)
	dropRows(h.dropout, hidden, first, n)
	return checkRows(hidden, h.hidden, first, n, h.secondLimit)
}

// unhideRows replaces the gradient with respect to hidden rows by that before
// the activation, and writes that with respect to x.
func (h *headGradient[T]) unhideRows(k simd.Kernels[T], gradient, hidden, ofX simd.Rows[T], first, n int) {
	width := h.first.N
	dropRows(h.dropout, gradient, first, n)
	if h.activation == simd.ReLU {
		k.RectifyGradient(gradient, hidden, width, n)
	} else {
		for i := range n { // what the dropout took has no gradient any more
			unELU(gradient.Row(i, width), hidden.Row(i, width), T(1/h.dropout.scale()))
		}
	}
	k.Multiply(ofX, gradient, h.transposedFirst, n, false)
}

// sumColumns adds n rows to a row.
func sumColumns[T simd.Float](k simd.Kernels[T], to []T, rows simd.Rows[T], n int) {
	k.Add(simd.Rows[T]{Data: to}, rows, len(to), n)
}

// segment runs the head and its backward pass on all vertices: from the
// features x to the loss and the gradient ofX, both of the points. scale
// multiplies every label's weight.
func (c *gradientCall[T]) segment(h *headGradient[T], x, ofX simd.Rows[T], scale float64) error {
	vertices, lift := c.input.Vertices(), c.input.Lift
	rows := h.rows(vertices)
	control := c.next()
	for begin := 0; begin < vertices; begin += rows {
		end := min(begin+rows, vertices)
		part := control.Stage(float64(begin)/float64(vertices), float64(end)/float64(vertices))
		var err error
		if lift == nil {
			err = c.segmentRows(h, x.From(begin), ofX.From(begin), begin, end-begin, scale, part)
		} else {
			err = c.segmentLifted(h, x, ofX, begin, end, scale, part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// segmentLifted is segmentRows for the vertices [begin, end), whose features are
// lifted from those of the samples.
func (c *gradientCall[T]) segmentLifted(h *headGradient[T], x, ofX simd.Rows[T], begin, end int, scale float64, control *parallel.Control) error {
	lift, a, width := c.input.Lift, &c.headArrays, h.first.K
	back, err := lift.transposed()
	if err != nil {
		return err
	}
	err = c.pool.Range(control.Stage(0, 0.1), end-begin, headTile, func(_, from, to int) error {
		lift.apply(a.lifted.From(from), x, width, begin+from, begin+to)
		return nil
	})
	if err == nil {
		err = c.segmentRows(h, a.lifted, a.ofLifted, begin, end-begin, scale, control.Stage(0.1, 0.9))
	}
	if err != nil {
		return err
	}
	return c.pool.Range(control.Stage(0.9, 1), c.input.points(), headTile, func(_, from, to int) error {
		if begin == 0 {
			clearRows(ofX, from, to)
		}
		back.apply(ofX.From(from), a.ofLifted, width, from, to, begin, end)
		return nil
	})
}

func (c *gradientCall[T]) segmentRows(h *headGradient[T], x, ofX simd.Rows[T], first, n int, scale float64, control *parallel.Control) error {
	k, a := c.kernels, &c.headArrays
	tiles := (n + headTile - 1) / headTile
	losses, hits := a.losses[:tiles], a.tileHits[:tiles]
	err := c.pool.Range(control.Stage(0, 0.7), n, headTile, func(worker, begin, end int) error {
		rows, hidden, gradient := end-begin, a.hidden.From(begin), a.ofHidden.From(begin)
		if err := h.hideRows(k, hidden, x.From(begin), first+begin, rows); err != nil {
			return err
		}
		scores := a.scores.From(begin)
		k.Dense(scores, hidden, h.second, h.secondBias, rows, simd.Identity)
		w := &c.workers[worker]
		weigh(c.target, w.labels[:rows], w.rowWeights[:rows], first+begin, scale)
		losses[begin/headTile], hits[begin/headTile] = k.CrossEntropy(scores, w.labels[:], w.rowWeights[:], h.classes, rows)
		h.ofHidden(k, gradient, scores, rows)
		h.unhideRows(k, gradient, hidden, ofX.From(begin), first+begin, rows)
		return nil
	})
	if err != nil {
		return err
	}
	for i := range losses {
		c.loss += losses[i]
		c.hits += hits[i]
	}
	chunks := (h.classes + classChunk - 1) / classChunk
	return c.pool.For(control.Stage(0.7, 1), chunks+1, func(_, chunk int) error {
		if chunk == chunks {
			k.Correlate(simd.Rows[T]{Data: h.ofFirst, Stride: h.first.K}, a.ofHidden, x, h.hidden, h.first.K, n)
			sumColumns(k, h.ofFirstBias, a.ofHidden, n)
			return nil
		}
		at := chunk * classChunk
		classes := min(classChunk, h.classes-at)
		scores, width := a.scores.Columns(at), h.second.K
		k.Correlate(simd.Rows[T]{Data: h.ofSecond[at*width:], Stride: width}, scores, a.hidden, classes, width, n)
		sumColumns(k, h.ofSecondBias[at:at+classes], scores, n)
		return nil
	})
}

// classify is segment for a class of the whole mesh.
func (c *gradientCall[T]) classify(h *headGradient[T], x, ofX simd.Rows[T], scale float64) error {
	vertices, width := c.input.points(), h.second.K
	k := c.kernels
	hide := func(worker, begin, end int) (simd.Rows[T], error) {
		hidden := simd.Rows[T]{Data: c.workers[worker].hidden, Stride: width}
		return hidden, h.hideRows(k, hidden, x.From(begin), begin, end-begin)
	}
	err := c.pool.Range(c.next(), vertices, poolRows, func(worker, begin, end int) error {
		total := c.pooled[begin/poolRows*width:][:width]
		clear(total)
		for ; begin < end; begin += headRows {
			n := min(headRows, end-begin)
			hidden, err := hide(worker, begin, begin+n)
			if err != nil {
				return err
			}
			addRows(total, hidden, n)
		}
		return nil
	})
	if err != nil {
		return err
	}
	ofMean := c.classifyMean(h, scale)
	return c.grouped(c.next(), vertices, h.sums(), func(w *gradientScratch[T], begin, end int, sums []T) error {
		n := end - begin
		hidden := simd.Rows[T]{Data: w.hidden, Stride: width}
		if err := h.hideRows(k, hidden, x.From(begin), begin, n); err != nil {
			return err
		}
		gradient := simd.Rows[T]{Data: w.ofHidden, Stride: width}
		for i := range n {
			copy(gradient.Row(i, width), ofMean)
		}
		h.unhideRows(k, gradient, hidden, ofX.From(begin), begin, n)
		k.Correlate(simd.Rows[T]{Data: sums, Stride: h.first.K}, gradient, x.From(begin), h.hidden, h.first.K, n)
		sumColumns(k, sums[h.hidden*h.first.K:], gradient, n)
		return nil
	}, func(sums []float64) {
		for i := range h.ofFirst {
			h.ofFirst[i] += T(sums[i])
		}
		for i := range h.ofFirstBias {
			h.ofFirstBias[i] += T(sums[len(h.ofFirst)+i])
		}
	})
}

// sums is the number of gradients of the first dense layer.
func (h *headGradient[T]) sums() int { return len(h.ofFirst) + len(h.ofFirstBias) }

// classifyMean treats the mean of the hidden features and returns the gradient
// with respect to each vertex's.
func (c *gradientCall[T]) classifyMean(h *headGradient[T], scale float64) []T {
	k, width, vertices := c.kernels, h.second.K, c.input.points()
	mean := simd.Rows[T]{Data: c.workers[0].hidden[:width], Stride: width}
	meanRow(mean.Data, c.pooled, vertices)
	w := &c.workers[0]
	weigh(c.target, w.labels[:1], w.rowWeights[:1], 0, scale)
	k.Dense(c.headArrays.scores, mean, h.second, h.secondBias, 1, simd.Identity)
	c.loss, c.hits = k.CrossEntropy(c.headArrays.scores, w.labels[:], w.rowWeights[:], h.classes, 1)
	k.Correlate(simd.Rows[T]{Data: h.ofSecond, Stride: width}, c.headArrays.scores, mean, h.classes, width, 1)
	sumColumns(k, h.ofSecondBias[:h.classes], c.headArrays.scores, 1)
	h.ofHidden(k, c.headArrays.ofHidden, c.headArrays.scores, 1)
	row := c.headArrays.ofHidden.Row(0, width)
	for j := range row {
		row[j] /= T(vertices)
	}
	return row
}

// addRows adds n rows to a row of sums.
func addRows[T simd.Float](to []float64, rows simd.Rows[T], n int) {
	for i := range n {
		for j, value := range rows.Row(i, len(to)) {
			to[j] += float64(value)
		}
	}
}
