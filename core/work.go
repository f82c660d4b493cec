package core

import (
	"time"

	"libeman/simd"
)

// panelFlops is what the products of a row with matrices take, in floating-point
// operations: two for each multiply-add.
func panelFlops[T simd.Float](panels ...*simd.Panel[T]) (flops float64) {
	for _, p := range panels {
		if p != nil {
			flops += 2 * float64(p.K*p.N)
		}
	}
	return flops
}

// vertexFlops is what the products of a convolution take at a vertex.
func (c *convolution[T]) vertexFlops() float64 {
	flops := panelFlops(c.self...)
	for order, panel := range c.value {
		if heads := c.headValues[order]; heads != nil {
			flops += panelFlops(heads...)
		} else {
			flops += panelFlops(panel)
		}
	}
	a := c.attention
	if a == nil {
		return flops
	}
	flops += panelFlops(a.self...)
	if a.factors == nil {
		return flops + panelFlops(a.query...)
	}
	for _, f := range a.factors {
		flops += panelFlops(f.queries) + panelFlops(f.keys...)
	}
	return flops
}

// edgeFlops is what the edge pass of a convolution takes at an edge in
// multiply-adds of all channels: 4 for each order transport its features; each of
// their rows times 1, cos mθ and sin mθ is in the moments of every set of the
// values and, with attention, in the dots with every set of the keys, and the
// sums of the latter are put together.
func (c *convolution[T]) edgeFlops() float64 {
	rows, perRow := 2*c.in.Order+1, (2*c.out.Order+1)*c.rings
	if c.attention != nil {
		perRow += (2*min(c.in.Order, c.out.Order) + 2) * c.attention.sets()
	}
	return float64(2 * c.in.padded() * (4*c.in.Order + rows*perRow))
}

// flops is what a layer takes at a vertex, and at an edge.
func (l *layer[T]) flops() (vertex, edge float64) {
	if l.spiral != nil {
		return panelFlops(l.spiral.weights), 0
	}
	vertex, edge = l.convolution.vertexFlops(), l.convolution.edgeFlops()
	if r := l.residual; r != nil {
		vertex += float64(min(r.in.Components(), r.out.Components())) * panelFlops(r.channel)
	}
	if circle := l.activation.circle; circle != nil { // to the samples and back
		vertex += float64(2 * 2 * l.out.padded() * l.out.Components() * circle.Samples)
	}
	return vertex, edge
}

// flops is what the products, and the edge passes, of a network take on a mesh.
func (m *Model[T]) flops(in extent) (products, edges float64) {
	for i := range m.layers {
		vertex, edge := m.layers[i].flops()
		g := in.graph(m.layers[i].from, m.layers[i].to)
		products += vertex * float64(g.vertices)
		edges += edge * float64(g.edges)
	}
	h := &m.head
	if m.spec.Task == TaskClassification {
		return products + panelFlops(h.first)*float64(in.points) + panelFlops(h.second), edges
	}
	row := panelFlops(h.first, h.second)
	if in.lifted {
		row += float64(2 * h.first.K * m.spec.Surface.LiftNeighbors)
	}
	return products + row*float64(in.vertices), edges
}

// passes are the times that calls take beside the bound that their arithmetic sets
// at the kernels' best speed: of products, of edge passes, which have to gather
// their features, and, in operations of plain Go, at each point of each layer.
// They were fitted to seven networks on 7 and 110 thousand vertices.
type passes struct{ products, edges, point float64 }

var (
	inferencePasses = passes{1.1, 2.4, 400}
	trainingPasses  = passes{4.4, 16.5, 3200} // forwards, backwards and to the weights
)

// Operations of plain Go that geometry takes, fitted likewise.
const (
	meshEdgeFlops     = 150   // an edge's geometry, and its part of RelTan
	surfaceFlops      = 4400  // a vertex, while its surface is sampled and lifted
	sampleFlops       = 45000 // choosing a sample
	sampleEdgeFlops   = 1500  // finding a neighbour
	sampleMomentFlops = 100   // a neighbour in the moments
)

// seconds is about how long the layers take on a mesh of this size.
func (r *Runner[T]) seconds(m *Model[T], in extent, p passes) float64 {
	products, edges := m.flops(in)
	points := float64(in.vertices)
	for i := range m.layers {
		points += float64(in.graph(m.layers[i].from, m.layers[i].to).vertices)
	}
	s := r.speed()
	return ((p.products*products+p.edges*edges)/s.kernels + p.point*points/s.scalar) / float64(r.pool.Threads())
}

// inputSeconds is about how long the input of a mesh takes to be made.
func (r *Runner[T]) inputSeconds(m *Model[T], vertices, edges int64) float64 {
	flops := meshEdgeFlops * float64(edges)
	if s := m.spec.Surface; s != nil {
		options, moments := s.options(0), 0
		if len(s.Scales) > 0 {
			moments = s.Points[0] * s.Scales[len(s.Scales)-1]
		}
		flops = surfaceFlops*float64(vertices) + sampleFlops*float64(s.Points[0]) +
			sampleEdgeFlops*float64(options.Edges()) + sampleMomentFlops*float64(moments)
	}
	return flops / r.speed().scalar / float64(r.pool.Threads())
}

// EstimateWork is how many floating-point operations the layers take for the
// labels of a mesh of this size, two for each multiply-add of their matrices and
// edge passes, and about how many seconds the call takes on the runner's threads,
// where nothing is known of the mesh yet. How fast the processor is, is measured
// by the first call, in a few milliseconds.
func (r *Runner[T]) EstimateWork(m *Model[T], vertices, edges int64) (flops, seconds float64) {
	in := m.extent(vertices, edges)
	products, passes := m.flops(in)
	return products + passes, r.seconds(m, in, inferencePasses) + r.inputSeconds(m, vertices, edges)
}

// EstimateWork is Runner.EstimateWork for a training step: the operations are
// those of the layers three times, forwards, backwards and to the weights. What
// the passes see of the mesh counts where it is made anew before each step.
func (t *Trainer[T]) EstimateWork(vertices, edges int64) (flops, seconds float64) {
	r, m := t.runner, t.model
	in := m.extent(vertices, edges)
	products, passes := m.flops(in)
	if a := t.spec.Augment; a.deforms() || a.Resample {
		seconds = r.inputSeconds(m, vertices, edges)
	}
	return 3 * (products + passes), seconds + r.seconds(m, in, trainingPasses)
}

// speed is how fast a processor is, in floating-point operations a second: with
// the kernels that the networks run on, and in plain Go, as geometry does.
type speed struct{ kernels, scalar float64 }

// measureSpeed takes a few milliseconds.
func measureSpeed[T simd.Float](k simd.Kernels[T]) speed {
	return speed{productSpeed(k), productSpeed[T](simd.Generic[T]{})}
}

// productSpeed is that of a product whose numbers stay in the first-level cache,
// the best of some: what disturbs one of them does not count.
func productSpeed[T simd.Float](k simd.Kernels[T]) float64 {
	const rows, inner, columns, rounds = 12, 160, 32, 24
	a := simd.Rows[T]{Data: simd.Aligned[T](rows * inner), Stride: inner}
	y := simd.Rows[T]{Data: simd.Aligned[T](rows * columns), Stride: columns}
	panel := simd.NewPanel[T](inner, columns)
	best := time.Duration(0)
	for round := range rounds {
		begun := time.Now()
		for range 4 {
			k.Multiply(y, a, panel, rows, false)
		}
		if took := time.Since(begun); round == 0 || took < best {
			best = took
		}
	}
	return 4 * rows * panelFlops(panel) / max(best.Seconds(), 1e-9)
}
