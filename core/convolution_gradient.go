package core

import (
	"gonum.org/v1/gonum/mat"

	"libeman/simd"
)

// sum is the place of a matrix in the array of a layer's gradients.
type sum struct{ at, rows, columns int }

// view is the matrix as rows.
func view[T simd.Float](s sum, sums []T) simd.Rows[T] {
	return simd.Rows[T]{Data: sums[s.at:][:s.rows*s.columns], Stride: s.columns}
}

// dense is the matrix of finished sums.
func (s sum) dense(sums []float64) *mat.Dense {
	return mat.NewDense(s.rows, s.columns, sums[s.at:][:s.rows*s.columns])
}

// ledger divides an array into sums.
type ledger struct{ size int }

func (l *ledger) add(rows, columns int) sum {
	s := sum{l.size, rows, columns}
	l.size += rows * columns
	return s
}

// panels adds a sum for each panel, an empty one for nil.
func panelSums[T simd.Float](l *ledger, panels []*simd.Panel[T]) (sums []sum) {
	for _, panel := range panels {
		if panel == nil {
			sums = append(sums, sum{})
		} else {
			sums = append(sums, l.add(panel.K, panel.N))
		}
	}
	return sums
}

// convolutionGradient is what the backward pass of a convolution needs beside
// the layer: its matrices transposed, and the places of their gradients.
type convolutionGradient[T simd.Float] struct {
	*convolution[T]
	value, self, query, selfQuery                 []*simd.Panel[T] // transposed
	valueSums, selfSums, querySums, selfQuerySums []sum
	biasSum                                       sum // [1, out.size()]
}

func newConvolutionGradient[T simd.Float](c *convolution[T], l *ledger) *convolutionGradient[T] {
	g := &convolutionGradient[T]{convolution: c}
	g.value, g.valueSums = transposedPanels(c.value), panelSums(l, c.value)
	g.self, g.selfSums = transposedPanels(c.self), panelSums(l, c.self)
	if a := c.attention; a != nil {
		g.query, g.querySums = transposedPanels(a.query), panelSums(l, a.query)
		g.selfQuery, g.selfQuerySums = transposedPanels(a.self), panelSums(l, a.self)
	}
	g.biasSum = l.add(1, c.out.size())
	return g
}

func transposedPanels[T simd.Float](panels []*simd.Panel[T]) (result []*simd.Panel[T]) {
	for _, panel := range panels {
		if panel != nil {
			panel = panel.Transposed()
		}
		result = append(result, panel)
	}
	return result
}

// convolutionBlock is the vertices [begin, end) of a backward pass.
type convolutionBlock[T simd.Float] struct {
	graph      *Graph[T]
	begin, end int
	x          simd.Rows[T] // the layer's input, of all vertices
	targets    simd.Rows[T] // the features of the block's vertices themselves
	gradient   simd.Rows[T] // with respect to the block's results
	alpha      []T          // the coefficients of the block's edges; nil for GEM
	own        []T          // those of its vertices themselves; nil without them
	// The gradient with respect to the input: what reaches the block's own
	// vertices is added to to; what goes along its edges is written to records.
	// Both are nil where the input is the network's.
	to, records simd.Rows[T]
	sums        []T // added to
}

// backward treats one block. The moments are computed again: they are V times
// larger than what is kept of the forward pass.
func (g *convolutionGradient[T]) backward(k simd.Kernels[T], w *gradientScratch[T], b *convolutionBlock[T]) {
	n := b.end - b.begin
	edges := int(b.graph.Offsets[b.end] - b.graph.Offsets[b.begin])
	weights := w.weights[:edges*g.rings]
	b.graph.ringWeights(weights, b.begin, b.end, g.convolution.rings, g.radial)
	w.rings = b.graph.rings(b.begin, b.end, b.x, weights, g.convolution.rings)
	alpha := b.alpha
	if alpha == nil {
		alpha = w.coefficients[:edges*g.heads]
		uniform(alpha, w.rings.Offsets, g.mean)
	}
	g.biasBackward(k, b, n)

	moments := simd.Rows[T]{Data: w.moments, Stride: g.moments.Size(g.heads, g.convolution.rings)}
	ofMoments := simd.Rows[T]{Data: w.ofMoments, Stride: moments.Stride}
	k.EdgeAggregate(moments, alpha, g.moments, &w.rings, g.heads)
	for order, panel := range g.value {
		if panel == nil {
			continue
		}
		start, size := g.moments.Block(order, g.heads, g.convolution.rings)
		y := g.rowsOf(b.gradient, order)
		k.Correlate(view(g.valueSums[order], b.sums), moments.Columns(start), y, size, panel.K, n)
		k.Multiply(ofMoments.Columns(start), y, panel, n, false)
	}
	if b.records.Data != nil {
		k.EdgeTranspose(b.records, ofMoments, alpha, g.moments, &w.rings, g.heads, false)
	}
	if g.attention == nil {
		g.selfBackward(k, b, b.targets, b.to, n)
		return
	}
	gradient := w.coefficients[:edges*g.heads]
	k.EdgeDot(gradient, ofMoments, g.moments, &w.rings, g.heads)
	ofOwn := g.ownBackward(k, w, b, n)
	k.SoftmaxGradient(gradient, ofOwn, alpha, b.own, w.rings.Offsets, g.heads, g.attention.scaled)
	g.attentionBackward(k, w, b, gradient, n)
}

func (g *convolutionGradient[T]) biasBackward(k simd.Kernels[T], b *convolutionBlock[T], n int) {
	if g.bias == nil {
		return
	}
	to, offsets := view(g.biasSum, b.sums), b.graph.Offsets[b.begin:]
	for i := range n {
		if g.convolution.self != nil || offsets[i+1] > offsets[i] {
			k.Add(to, b.gradient.From(i), g.out.size(), 1)
		}
	}
}

// selfBackward treats the products of rows with the matrices of the vertex
// itself, if there are any: it adds the matrices' gradients, and to to, where
// that is wanted, the rows'.
func (g *convolutionGradient[T]) selfBackward(k simd.Kernels[T], b *convolutionBlock[T], rows, to simd.Rows[T], n int) {
	start := 0
	for order, panel := range g.self {
		y := g.rowsOf(b.gradient, order)
		k.Correlate(view(g.selfSums[order], b.sums), rows.Columns(start), y, panel.N, panel.K, n)
		if to.Data != nil {
			k.Multiply(to.Columns(start), y, panel, n, true)
		}
		start += panel.N
	}
}

// ownBackward treats the vertices' own terms of an attention layer and returns
// the gradient with respect to their coefficients, or nil without such terms.
func (g *convolutionGradient[T]) ownBackward(k simd.Kernels[T], w *gradientScratch[T], b *convolutionBlock[T], n int) []T {
	if g.self == nil {
		return nil
	}
	a, x := g.attention, b.targets
	w.self = append(w.self[:0], b.own...)
	rows := a.weightSelf(&w.scratch, x, n, len(g.self))
	ofRows := simd.Rows[T]{Data: w.ofSelfRows, Stride: rows.Stride}
	clear(ofRows.Data[:n*ofRows.Stride])
	g.selfBackward(k, b, rows, ofRows, n)
	gradient := w.self[:n*g.heads]
	clear(gradient)
	a.visitSelf(len(g.self), func(h, from, at, size int) {
		for i := range n {
			row, f := ofRows.Data[i*ofRows.Stride+at:][:size], x.Data[i*x.Stride+from:][:size]
			for j := range f {
				gradient[i*g.heads+h] += row[j] * f[j]
			}
			b.addOwn(i, from, b.own[i*g.heads+h], row)
		}
	})
	return gradient
}

// addOwn adds factor·row to the gradient of vertex i of the block.
func (b *convolutionBlock[T]) addOwn(i, from int, factor T, row []T) {
	if b.to.Data == nil {
		return
	}
	to := b.to.Data[i*b.to.Stride+from:][:len(row)]
	for j, value := range row {
		to[j] += factor * value
	}
}

// attentionBackward goes on from the gradient with respect to the logits, that
// of the vertices themselves in w.self.
func (g *convolutionGradient[T]) attentionBackward(k simd.Kernels[T], w *gradientScratch[T], b *convolutionBlock[T], gradient []T, n int) {
	a, x := g.attention, b.targets
	keys := a.keyRings(&w.scratch, &w.rings)
	u := simd.Rows[T]{Data: w.moments, Stride: a.moments.Size(a.heads, keys.Sets)}
	k.EdgeAggregate(u, gradient, a.moments, keys, a.heads)
	for order, panel := range g.query {
		if panel == nil {
			continue
		}
		start, size := a.moments.Block(order, a.heads, keys.Sets)
		at := firstRow(order) * a.channels
		k.Correlate(view(g.querySums[order], b.sums), x.Columns(at), u.Columns(start), panel.N, size, n)
		if b.to.Data != nil {
			k.Multiply(b.to.Columns(at), u.Columns(start), panel, n, true)
		}
	}
	if b.records.Data != nil {
		a.project(k, &w.scratch, u, x, n)
		k.EdgeTranspose(b.records, u, gradient, a.moments, keys, a.heads, true)
	}
	if g.selfQuery == nil {
		return
	}
	rows := a.weightSelf(&w.scratch, x, n, len(g.selfQuery))
	start := 0
	for order, panel := range g.selfQuery {
		at := firstRow(order) * a.channels
		k.Correlate(view(g.selfQuerySums[order], b.sums), x.Columns(at), rows.Columns(start), panel.N, panel.K, n)
		if b.to.Data != nil {
			k.Multiply(b.to.Columns(at), rows.Columns(start), panel, n, true)
		}
		start += panel.K
	}
	if b.to.Data == nil {
		return
	}
	ofRows := simd.Rows[T]{Data: w.ofSelfRows, Stride: rows.Stride}
	a.projectSelf(k, ofRows, x, n)
	a.visitSelf(len(g.selfQuery), func(h, from, at, size int) {
		for i := range n {
			b.addOwn(i, from, w.self[i*a.heads+h], ofRows.Data[i*ofRows.Stride+at:][:size])
		}
	})
}

// parameterGradients is what finished sums say about the layer's tensors p.
func (g *convolutionGradient[T]) parameterGradients(p layerParameters, sums []float64) layerParameters {
	s, result := g.convolutionSpec, layerParameters{}
	maps := newHeadMaps(s, p)
	angles := s.bias.rotations(s.out, p["angles"])
	ofMaps := newHeadGradients(maps, angles)

	value := s.kernel(p["value"], s.rings)
	ofHeads := g.headsOf(value, g.valueSums, sums, func(w *kernelWeights, from *mat.Dense, order, ring int) {
		w.readMoments(from, g.moments, order, ring, s.out.padded())
	}, s.rings)
	result["value"] = maps.valuesGradient(value, angles, ofHeads, &ofMaps).tensor(s.elements(), basisSize(s.in.Order, s.out.Order))
	if g.self != nil {
		name := "self"
		if s.attention {
			name = "self_value"
		}
		self := s.selfKernel(p[name])
		ofHeads := g.headsOf(self, g.selfSums, sums, func(w *kernelWeights, from *mat.Dense, order, _ int) {
			w.readSelf(from, order, 0, s.out.padded())
		}, 1)
		result[name] = maps.valuesGradient(self, angles, ofHeads, &ofMaps).selfTensor()
	}
	if s.attention {
		g.attentionGradients(maps, &ofMaps, p, sums, result)
	}
	if maps.query != nil {
		for name, w := range map[string]*kernelWeights{"head_query": ofMaps.query, "head_key": ofMaps.key, "head_value": ofMaps.value, "head_output": ofMaps.combine} {
			result[name] = w.selfTensor()
		}
	}
	g.biasGradients(ofMaps.angles, sums, result)
	return result
}

// headsOf reads the heads' gradients from stacks of matrices, by order: for
// each head those of the rings.
func (g *convolutionGradient[T]) headsOf(w *kernelWeights, stacks []sum, sums []float64, read func(to *kernelWeights, from *mat.Dense, order, ring int), rings int) (heads []*kernelWeights) {
	for h := range g.heads {
		head := w.like()
		for order, stack := range stacks {
			if stack.rows == 0 {
				continue
			}
			height := stack.rows / (g.heads * rings)
			for ring := range rings {
				at := (h*rings + ring) * height
				read(head, stack.dense(sums).Slice(at, at+height, 0, stack.columns).(*mat.Dense), order, ring)
			}
		}
		heads = append(heads, head)
	}
	return heads
}

func (g *convolutionGradient[T]) biasGradients(angles [][]float64, sums []float64, result layerParameters) {
	if g.bias == nil {
		return
	}
	row := sums[g.biasSum.at:][:g.out.size()]
	bias := make([]float64, g.out.Channels)
	components := 1
	if g.convolutionSpec.bias == BiasAdditive {
		components = g.out.Components()
	}
	for c := range bias {
		for i := range components {
			bias[c] += row[i*g.out.padded()+c]
		}
	}
	result["bias"] = bias
	var turned []float64
	for n, row := range angles {
		for _, angle := range row {
			turned = append(turned, g.convolutionSpec.bias.turn(n+1)*angle)
		}
	}
	if turned != nil {
		result["angles"] = turned
	}
}

// attentionGradients are the parts of query and key in parameterGradients.
func (g *convolutionGradient[T]) attentionGradients(maps headMaps, ofMaps *headGradients, p layerParameters, sums []float64, result layerParameters) {
	s, a := g.convolutionSpec, g.attention
	k := newKeys(s, maps, p)
	of := k.like()
	for order, at := range g.querySums {
		if at.rows > 0 {
			k.unfold(order, s.rings, a.pairs, k.moments(a.moments, order), at.dense(sums), of)
		}
	}
	for order, at := range g.selfQuerySums {
		k.unfold(order, 1, false, k.own(order), at.dense(sums), of)
	}
	query := maps.ofGradient(s.queryKernel(p["query"]), maps.query, ofMaps.query, of.query)
	if s.queryRadial {
		result["query"] = query.tensor(s.elements(), basisSize(s.in.Order, s.out.Order))
	} else {
		result["query"] = query.selfTensor()
	}
	key := maps.ofGradient(s.kernel(p["key"], s.rings), maps.key, ofMaps.key, of.key)
	result["key"] = key.tensor(s.elements(), basisSize(s.in.Order, s.out.Order))
	if s.selfTerm {
		result["self_key"] = maps.ofGradient(s.selfKernel(p["self_key"]), maps.key, ofMaps.key, of.self).selfTensor()
	}
}

// elements is the basis of the layer's neighbour kernels.
func (s convolutionSpec) elements() []Element { return Basis(s.in.Order, s.out.Order, s.band) }

// selfTensor is tensor for a self kernel.
func (w *kernelWeights) selfTensor() []float64 {
	return w.tensor(SelfBasis(w.in.Order, w.out.Order), selfBasisSize(w.in.Order, w.out.Order))
}
