//go:build amd64 || arm64

package simd

import "slices"

// edgeChunk is the number of edges that are held transported: 64 times 5 rows
// for order 2, which stay in the first-level cache.
const edgeChunk = 64

// edgeScratch is what the edge kernels hold of a chunk.
type edgeScratch struct {
	z    [edgeChunk * (2*MaxOrder + 1) * Lanes]float32 // z_0, ẑ_1, … of each edge
	dots [edgeChunk * Lanes]float32                    // a register for each edge
	// Arrays over the edges: e^{in(g-θ)}, and e^{imθ} from entry 1 on, times
	// the weight in entry 0 for each of two sets.
	in           [2 * MaxOrder][edgeChunk]float32
	out          [2*MaxOrder + 1][edgeChunk]float32
	coefficients [2][2*MaxOrder + 1][edgeChunk]float32
	head         [edgeChunk]float32
	part         [2]int64 // of a long ring
	steps        [2][(MaxOrder + 1) * (MaxOrder + 1)]passStep
}

// pass is the functions for some groups of moments of one order, in registers
// at once, by the number of sets less one.
type pass struct {
	forms     []Form
	aggregate []aggregateFunction
	dot       []dotFunction
	spread    []spreadFunction
}

type (
	rotateFunction    func(z, f *float32, step, rowStep int, neighbors *int32, in *float32, n, known int)
	aggregateFunction func(m *float32, step, rowStep, setStep int, z, coefficients *float32, offsets *int64, base int64, vertices, more int)
	dotFunction       func(u *float32, step, rowStep, setStep int, z, coefficients *float32, offsets *int64, base int64, vertices int, dots *float32)
)

// passStep is a pass for some groups of a plan.
type passStep struct {
	*pass
	start       int // of the first row of head 0, set 0 in a vertex's row
	unit        int // from a head and set to the next
	feature     int // the first row of (z_0, ẑ_1, …)
	coefficient int // the array of cos mθ, or of 1
}

// edgeRun is the moments of a plan over the edges of some rings, for so many
// heads.
type edgeRun struct {
	*vector
	*edgeScratch
	plan  *Moments
	rings *Rings[float32]
	heads int
	steps []passStep
}

// run divides the groups of a plan into passes, which it writes to steps.
func (v *vector) run(w *edgeScratch, steps []passStep, plan *Moments, rings *Rings[float32], heads int) edgeRun {
	steps = steps[:0]
	for i := 0; i < len(plan.Groups); {
		g := plan.Groups[i]
		p := v.longest(plan.Groups[i:])
		start, _ := plan.Block(g.Out, heads, rings.Sets)
		steps = append(steps, passStep{
			pass: p, start: start + g.Row*plan.Channels, unit: plan.Rows[g.Out] * plan.Channels,
			feature: max(0, 2*g.In-1), coefficient: max(0, 2*g.Out-1),
		})
		i += len(p.forms)
	}
	return edgeRun{v, w, plan, rings, heads, steps}
}

// longest is the first pass for what the groups begin with: groups of one
// order, for consecutive orders of the features.
func (v *vector) longest(groups []Group) *pass {
	for i := range v.passes {
		p := &v.passes[i]
		fits := len(p.forms) <= len(groups)
		for j := 0; fits && j < len(p.forms); j++ {
			fits = groups[j].Form == p.forms[j] && groups[j].Out == groups[0].Out && groups[j].In == groups[0].In+j
		}
		if fits {
			return p
		}
	}
	panic("simd: no pass for a form")
}

// chunk is some whole rings, or a part of a long one.
type chunk struct {
	vertex  int     // the first
	offsets []int64 // of its vertices' edges, one more than there are vertices
	more    bool    // not the first part of its ring
}

func (c chunk) vertices() int { return len(c.offsets) - 1 }
func (c chunk) edge() int64   { return c.offsets[0] }
func (c chunk) edges() int    { return int(c.offsets[len(c.offsets)-1] - c.offsets[0]) }

// chunks calls body for the vertices of some rings, at most edgeChunk of them
// and of their edges at a time. What a vertex or an edge is added up from does not depend on the
// others of its chunk.
func (w *edgeScratch) chunks(offsets []int64, body func(c chunk)) {
	n := len(offsets) - 1
	for v := 0; v < n; {
		end := v
		for end < n && end-v < edgeChunk && offsets[end+1]-offsets[v] <= edgeChunk {
			end++
		}
		if end > v {
			body(chunk{vertex: v, offsets: offsets[v : end+1]})
			v = end
			continue
		}
		for e := offsets[v]; e < offsets[v+1]; e += edgeChunk {
			w.part = [2]int64{e, min(e+edgeChunk, offsets[v+1])}
			body(chunk{vertex: v, offsets: w.part[:], more: e > offsets[v]})
		}
		v++
	}
}

// prepare is phasesOf, and fills z where features have no more than 16 channels.
func (r *edgeRun) prepare(c chunk) (undirected bool) {
	undirected = r.phasesOf(c)
	if r.plan.Channels == Lanes {
		r.transport(c, 0)
	}
	return undirected
}

// phasesOf fills in and out. Where an edge has no direction, all moments but z_0
// come out as 0; undirected says whether there is one.
func (r *edgeRun) phasesOf(c chunk) (undirected bool) {
	first, last := c.edge(), c.edge()+int64(c.edges())
	cosTheta, sinTheta := r.rings.CosTheta[first:last], r.rings.SinTheta[first:last]
	cosG, sinG := r.rings.CosTransport[first:last], r.rings.SinTransport[first:last]
	r.phases(&r.in[0][0], &r.out[0][0], &cosTheta[0], &sinTheta[0], &cosG[0], &sinG[0], len(cosTheta), max(1, r.plan.In, r.plan.Out))
	for e, x := range cosTheta {
		if x == 0 && sinTheta[e] == 0 {
			return true
		}
	}
	return false
}

// transport fills z with the features of 16 channels from channel on.
func (r *edgeRun) transport(c chunk, channel int) {
	neighbors := r.rings.Neighbors[c.edge():]
	f := r.rings.Features
	r.rotate[r.plan.In](&r.z[0], &f.Data[channel], 4*f.Stride, 4*r.plan.Channels, &neighbors[0], &r.in[0][0], c.edges(), len(neighbors))
}

// ones is the coefficients of a dot.
var ones = slices.Repeat([]float32{1}, edgeChunk)

// headCoefficients is a[e, h] for the edges of a chunk, which a begins with.
func (w *edgeScratch) headCoefficients(a []float32, h, heads int) []float32 {
	if heads == 1 {
		return a
	}
	n := len(a) / heads
	for e := range n {
		w.head[e] = a[e*heads+h]
	}
	return w.head[:n]
}

// weights fills the coefficients a_e w_s(e), alone and times cos mθ and sin mθ,
// for count sets from set on.
func (r *edgeRun) weights(c chunk, a []float32, set, count int) {
	n, run := c.edges(), r.rings.Edges()
	_ = a[n-1]
	for i := range count {
		weights := r.rings.Weights[(set+i)*run+int(c.edge()-r.rings.Offsets[0]):][:n]
		r.weigh(&r.coefficients[i][0][0], &a[0], &weights[0], &r.out[0][0], n, 2*r.plan.Out)
	}
}

// ofChunk is the part of numbers [edges, heads] that belongs to a chunk.
func (r *edgeRun) ofChunk(x []float32, c chunk) []float32 {
	return x[int(c.edge()-r.rings.Offsets[0])*r.heads:][:c.edges()*r.heads]
}

// dots computes the logits of a chunk that is prepared.
func (r *edgeRun) dots(logits []float32, u Rows[float32], c chunk, undirected bool) {
	n, plan, sets := c.edges(), r.plan, r.rings.Sets
	out := r.ofChunk(logits, c)
	_ = u.Row(c.vertex+c.vertices()-1, plan.Size(r.heads, sets))
	for h := range r.heads {
		dots := r.edgeScratch.dots[:n*r.lanes]
		clear(dots)
		for channel := 0; channel < plan.Channels; channel += Lanes {
			if plan.Channels > Lanes {
				r.transport(c, channel)
			}
			for set := 0; set < sets; set += r.sets {
				count := min(r.sets, sets-set)
				r.weights(c, ones, set, count)
				for i := range r.steps {
					s := &r.steps[i]
					row := c.vertex*u.Stride + s.start + (h*sets+set)*s.unit + channel
					for lane := 0; lane < Lanes; lane += r.lanes {
						s.dot[count-1](&u.Data[row+lane], 4*u.Stride, 4*plan.Channels, 4*s.unit, &r.z[s.feature*Lanes+lane],
							&r.coefficients[0][s.coefficient][0], &c.offsets[0], c.edge(), c.vertices(), &dots[0])
					}
				}
			}
		}
		r.sumLanes(&r.head[0], &dots[0], n)
		for e, x := range r.head[:n] {
			out[e*r.heads+h] = x
		}
	}
	if undirected {
		addUndirectedDots(out, u, plan, r.rings, r.heads, c)
	}
}

// aggregate computes, or with c.more adds to, the moments of a chunk that is
// prepared.
func (r *edgeRun) aggregate(m Rows[float32], a []float32, c chunk, undirected bool) {
	plan, sets := r.plan, r.rings.Sets
	coefficients := r.ofChunk(a, c)
	_ = m.Row(c.vertex+c.vertices()-1, plan.Size(r.heads, sets))
	more := 0
	if c.more {
		more = 1
	}
	for channel := 0; channel < plan.Channels; channel += Lanes {
		if plan.Channels > Lanes {
			r.transport(c, channel)
		}
		for h := range r.heads {
			alpha := r.headCoefficients(coefficients, h, r.heads)
			for set := 0; set < sets; set += r.sets {
				count := min(r.sets, sets-set)
				r.weights(c, alpha, set, count)
				for i := range r.steps {
					s := &r.steps[i]
					row := c.vertex*m.Stride + s.start + (h*sets+set)*s.unit + channel
					for lane := 0; lane < Lanes; lane += r.lanes {
						s.aggregate[count-1](&m.Data[row+lane], 4*m.Stride, 4*plan.Channels, 4*s.unit, &r.z[s.feature*Lanes+lane],
							&r.coefficients[0][s.coefficient][0], &c.offsets[0], c.edge(), c.vertices(), more)
					}
				}
			}
		}
	}
	if undirected {
		addUndirectedMoments(m, coefficients, plan, r.rings, r.heads, c)
	}
}

// clear is aggregate for vertices without edges.
func (r *edgeRun) clear(m Rows[float32], c chunk) {
	for i := range c.vertices() {
		clear(m.Row(c.vertex+i, r.plan.Size(r.heads, r.rings.Sets)))
	}
}

// EdgeDot: see [Kernels].
func (v *vector) EdgeDot(logits []float32, u Rows[float32], plan *Moments, rings *Rings[float32], heads int) {
	scratch := vectorScratches.Get().(*vectorScratch)
	defer vectorScratches.Put(scratch)
	w := &scratch.edgeScratch
	r := v.run(w, w.steps[0][:], plan, rings, heads)
	w.chunks(rings.Offsets, func(c chunk) {
		if c.edges() > 0 {
			r.dots(logits, u, c, r.prepare(c))
		}
	})
}

// EdgeAggregate: see [Kernels].
func (v *vector) EdgeAggregate(m Rows[float32], a []float32, plan *Moments, rings *Rings[float32], heads int) {
	scratch := vectorScratches.Get().(*vectorScratch)
	defer vectorScratches.Put(scratch)
	w := &scratch.edgeScratch
	r := v.run(w, w.steps[0][:], plan, rings, heads)
	w.chunks(rings.Offsets, func(c chunk) {
		if c.edges() == 0 {
			r.clear(m, c)
			return
		}
		r.aggregate(m, a, c, r.prepare(c))
	})
}

// EdgeAttention: see [Kernels]. A chunk's features are transported once, and
// its logits, coefficients and moments are computed while they and the rows of
// u are in the nearest cache.
func (v *vector) EdgeAttention(m, u Rows[float32], a, self []float32, key, value *Moments, keys, values *Rings[float32], heads int, scaled bool) {
	if longestRing(values.Offsets) > edgeChunk {
		v.EdgeDot(a, u, key, keys, heads)
		v.Softmax(a, self, values.Offsets, heads, scaled)
		v.EdgeAggregate(m, a, value, values, heads)
		return
	}
	scratch := vectorScratches.Get().(*vectorScratch)
	defer vectorScratches.Put(scratch)
	w := &scratch.edgeScratch
	dot, sum := v.run(w, w.steps[0][:], key, keys, heads), v.run(w, w.steps[1][:], value, values, heads)
	w.chunks(values.Offsets, func(c chunk) {
		var own []float32
		if self != nil {
			own = self[c.vertex*heads:][:c.vertices()*heads]
		}
		if c.edges() == 0 {
			v.softmaxOver(&scratch.softmaxScratch, nil, own, c.offsets, heads, scaled)
			sum.clear(m, c)
			return
		}
		undirected := sum.prepare(c)
		dot.dots(a, u, c, undirected)
		v.softmaxOver(&scratch.softmaxScratch, sum.ofChunk(a, c), own, c.offsets, heads, scaled)
		sum.aggregate(m, a, c, undirected)
	})
}

func longestRing(offsets []int64) (edges int64) {
	for i := range len(offsets) - 1 {
		edges = max(edges, offsets[i+1]-offsets[i])
	}
	return edges
}

// ownMoments is the moments from an order n ≥ 1 to itself, in the rows that
// they have among all.
func ownMoments(plan *Moments, groups []Group) Moments {
	own := Moments{In: plan.In, Out: plan.Out, Channels: plan.Channels, Rows: plan.Rows, Groups: groups}
	for _, g := range plan.Groups {
		if g.In == g.Out && g.In > 0 {
			own.Groups = append(own.Groups, g)
		}
	}
	return own
}

// visitUndirected calls body for the moments that remain on an edge without a
// direction beside z_0: those from an order n ≥ 1 to itself. vertex is within
// the run, edge within the chunk.
func visitUndirected(plan *Moments, rings *Rings[float32], heads int, c chunk, body func(m [Lanes]float32, vertex, edge, head, set, at int)) {
	var groups [MaxOrder]Group
	own := ownMoments(plan, groups[:0])
	for i := range c.vertices() {
		for e := c.offsets[i]; e < c.offsets[i+1]; e++ {
			if rings.CosTheta[e] == 0 && rings.SinTheta[e] == 0 {
				visit(&own, rings, e, heads, func(m [Lanes]float32, head, set, at int) {
					body(m, c.vertex+i, int(e-c.edge()), head, set, at)
				})
			}
		}
	}
}

func addUndirectedDots(logits []float32, u Rows[float32], plan *Moments, rings *Rings[float32], heads int, c chunk) {
	first := int(c.edge() - rings.Offsets[0])
	visitUndirected(plan, rings, heads, c, func(m [Lanes]float32, vertex, edge, head, set, at int) {
		for l, x := range u.Data[vertex*u.Stride+at:][:Lanes] {
			logits[edge*heads+head] += rings.weight(set, first+edge) * x * m[l]
		}
	})
}

func addUndirectedMoments(to Rows[float32], a []float32, plan *Moments, rings *Rings[float32], heads int, c chunk) {
	first := int(c.edge() - rings.Offsets[0])
	visitUndirected(plan, rings, heads, c, func(m [Lanes]float32, vertex, edge, head, set, at int) {
		for l, x := range m {
			to.Data[vertex*to.Stride+at+l] += a[edge*heads+head] * rings.weight(set, first+edge) * x
		}
	})
}
