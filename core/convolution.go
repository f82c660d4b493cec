package core

import (
	"libeman/simd"
)

// blockVertices is the number of vertices whose moments are held at a time.
// It is fixed, so that results do not depend on the number of threads.
const blockVertices = 48

// convolutionSpec describes one convolution of a model.
type convolutionSpec struct {
	in, out     Type
	band        int // the highest frequency of the kernels; negative: no limit
	rings       int
	radial      Radial
	mean        bool // the mean over the ring, not the sum
	selfTerm    bool // a term for the vertex itself
	attention   bool
	heads       int  // 1 without attention
	projected   bool // heads of app. D.3, not groups of channels
	queryRadial bool // the query is weighted by the radial rings too
	bias        Bias
}

// layerParameters are the tensors of one layer by their names within it.
type layerParameters map[string][]float64

// convolution is a message passing layer, ready to run: GEM (§3.6)
//
//	f'_p = [K_self f_p] + Σ_q K(θ_pq) ρ(g_{q→p}) f_q
//
// or EMAN (§6, and app. D.4 with the vertex itself)
//
//	f'_p = Σ_q α_pq K_value(θ_pq) ρ(g_{q→p}) f_q,
//
// computed as f'_p = W·Σ_q α_pq w(pq) moments(ẑ_q, θ_pq). It is immutable.
type convolution[T simd.Float] struct {
	convolutionSpec
	moments *simd.Moments
	// value holds for each order of the result the weights [heads·rings·rows·
	// channels, components of the order] of its moments; nil where it has none.
	value []*simd.Panel[T]
	// headValues holds for each order the weights [rings·rows·channels,
	// components of a head] of each head's moments, where they are narrower than
	// those of value, which are zero in the channels of other heads; or nil.
	headValues [][]*simd.Panel[T]
	// self holds for each order the weights [heads·components, components] of
	// the vertex's own features; nil without such a term.
	self []*simd.Panel[T]
	bias []T // [out.size()]: added to every vertex that gets a message; or nil
	// attention is nil for GEM.
	attention *attention[T]
}

// newConvolution folds a layer's parameters into the matrices that are applied
// at run time. The angular bias and the maps of the heads are linear, so they
// become part of the weights.
func newConvolution[T simd.Float](s convolutionSpec, p layerParameters) *convolution[T] {
	c := &convolution[T]{
		convolutionSpec: s,
		moments:         simd.NewMoments(s.in.Order, s.out.Order, s.band, s.in.padded()),
		bias:            additiveBias[T](s, p["bias"]),
	}
	heads := newHeadMaps(s, p)
	angles := s.bias.rotations(s.out, p["angles"])
	values := heads.values(s.kernel(p["value"], s.rings), angles)
	c.value, c.headValues = packMoments[T](c.moments, s, values), packHeads[T](c.moments, s, values)
	if s.selfTerm && s.attention {
		c.self = packSelf[T](s, heads.values(s.selfKernel(p["self_value"]), angles))
	} else if s.selfTerm {
		c.self = packSelf[T](s, heads.values(s.selfKernel(p["self"]), angles))
	}
	if s.attention {
		c.attention = newAttention[T](s, heads, p)
	}
	return c
}

// kernel reads a tensor of neighbour kernels [basis, rings, out, in].
func (s convolutionSpec) kernel(tensor []float64, rings int) *kernelWeights {
	return newKernelWeights(tensor, Basis(s.in.Order, s.out.Order, s.band), s.in, s.out, rings)
}

// selfKernel reads a tensor of self kernels [self basis, out, in].
func (s convolutionSpec) selfKernel(tensor []float64) *kernelWeights {
	return newKernelWeights(tensor, SelfBasis(s.in.Order, s.out.Order), s.in, s.out, 1)
}

// forward computes the vertices [begin, end) of y from all of x and their own
// features: x as well, but between two levels. Where alpha is not nil, the
// attention coefficients of their edges go to alpha [edges of the graph, heads].
func (c *convolution[T]) forward(k simd.Kernels[T], w *scratch[T], g *Graph[T], x, own, y simd.Rows[T], begin, end int, alpha []T) {
	first, last := g.Offsets[begin], g.Offsets[end]
	edges := int(last - first)
	weights := w.weights[:edges*c.rings]
	g.ringWeights(weights, begin, end, c.rings, c.radial)
	w.rings = g.rings(begin, end, x, weights, c.rings)
	own = own.From(begin)
	coefficients := w.coefficients[:edges*c.heads]
	var m simd.Rows[T]
	if c.attention != nil {
		m = c.attention.forward(k, w, c.moments, &w.rings, own, coefficients)
	} else {
		m = simd.Rows[T]{Data: w.moments, Stride: c.moments.Size(c.heads, c.rings)}
		uniform(coefficients, w.rings.Offsets, c.mean)
		k.EdgeAggregate(m, coefficients, c.moments, &w.rings, c.heads)
	}
	if alpha != nil {
		c.readOut(alpha, coefficients, g, begin, end)
	}
	c.combine(k, w, m, own, y.From(begin))
}

// combine applies the weights to the moments m: y = bias + Σ W·M.
func (c *convolution[T]) combine(k simd.Kernels[T], w *scratch[T], m, own, y simd.Rows[T]) {
	n := w.rings.Vertices()
	c.addBias(y, w.rings.Offsets)
	for order, panel := range c.value {
		if panel == nil {
			continue
		}
		start, _ := c.moments.Block(order, c.heads, c.rings)
		if heads := c.headValues[order]; heads != nil {
			c.combineHeads(k, w, heads, m.Columns(start), y, order, n)
		} else {
			k.Multiply(c.rowsOf(y, order), m.Columns(start), panel, n, true)
		}
	}
	if c.self == nil {
		return
	}
	if c.attention != nil {
		own = c.attention.weightSelf(w, own, n, len(c.self))
	}
	start := 0
	for order, panel := range c.self {
		k.Multiply(c.rowsOf(y, order), own.Columns(start), panel, n, true)
		start += panel.K
	}
}

// combineHeads adds each head's result of one order to its group of channels;
// m are the moments of that order.
func (c *convolution[T]) combineHeads(k simd.Kernels[T], w *scratch[T], heads []*simd.Panel[T], m, y simd.Rows[T], order, n int) {
	y = c.rowsOf(y, order)
	width := c.out.Channels / c.heads
	result := simd.Rows[T]{Data: w.ofHeads, Stride: heads[0].N}
	for h, panel := range heads {
		k.Multiply(result, m.Columns(h*panel.K), panel, n, false)
		for i := range n {
			for component := range rowsOf(order) {
				to := y.Data[i*y.Stride+component*c.out.padded()+h*width:][:width]
				for j, value := range result.Data[i*result.Stride+component*width:][:width] {
					to[j] += value
				}
			}
		}
	}
}

// rowsOf is the components of one order of the results.
func (c *convolution[T]) rowsOf(y simd.Rows[T], order int) simd.Rows[T] {
	return y.Columns(firstRow(order) * c.out.padded())
}

// addBias begins the results of a block: with the bias where a vertex gets a
// message, with zero where it gets none.
func (c *convolution[T]) addBias(y simd.Rows[T], offsets []int64) {
	for i := range len(offsets) - 1 {
		row := y.Row(i, c.out.size())
		if c.bias != nil && (c.self != nil || offsets[i+1] > offsets[i]) {
			copy(row, c.bias)
		} else {
			clear(row)
		}
	}
}

// readOut writes the coefficients of the vertices [begin, end) as the paper
// defines them, α_pq = N_p·softmax (§6), to alpha, which is in the order of the
// mesh; a mean over the ring divides by N_p again.
func (c *convolution[T]) readOut(alpha, coefficients []T, g *Graph[T], begin, end int) {
	for p := begin; p < end; p++ {
		first, last := g.Offsets[p], g.Offsets[p+1]
		ring := coefficients[int(first-g.Offsets[begin])*c.heads : int(last-g.Offsets[begin])*c.heads]
		scale := T(1)
		if c.mean {
			scale = T(c.terms(last - first))
		}
		at := int(g.firstEdge(p)) * c.heads
		for j, a := range ring {
			alpha[at+j] = scale * a
		}
	}
}

// terms is N_p for a ring of edges, or N_p + 1 with the vertex itself.
func (c *convolution[T]) terms(edges int64) int64 {
	if c.selfTerm {
		return edges + 1
	}
	return edges
}

// uniform gives every edge of a ring the weight of a sum or a mean.
func uniform[T simd.Float](coefficients []T, offsets []int64, mean bool) {
	for i := range len(offsets) - 1 {
		ring := coefficients[offsets[i]-offsets[0] : offsets[i+1]-offsets[0]]
		weight := T(1)
		if mean {
			weight = 1 / T(len(ring))
		}
		for j := range ring {
			ring[j] = weight
		}
	}
}
