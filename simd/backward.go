//go:build amd64 || arm64

package simd

import "math"

// correlationTile is as productTile.
type correlationTile struct {
	rows   int
	strips []correlationFunction
}

type (
	correlationFunction    func(c *float32, cStep int, a *float32, aStep int, b *float32, bStep, k, groups int)
	circleGradientFunction func(g, x *float32, rowStep int, basis *float32, sampleStep, samples int, bound, scale, inverse float32)
	spreadFunction         func(m *float32, step, rowStep, setStep int, z, coefficients *float32, offsets *int64, base int64, vertices int)
	unrotateFunction       func(f *float32, step, rowStep int, z, in *float32, n int)
)

// correlationRows is the most rows that are summed up at a time: so many of the
// strips of b stay in the nearest cache while the columns of a pass.
const correlationRows = 240

// Correlate: see [Kernels].
func (v *vector) Correlate(c, a, b Rows[float32], k, n, rows int) {
	if k == 0 || n == 0 || rows == 0 {
		return
	}
	_, _, _ = c.Row(k-1, n), a.Row(rows-1, k), b.Row(rows-1, n)
	most := len(v.correlations[0].strips)
	parts := (rows + correlationRows - 1) / correlationRows
	for i := range parts {
		row, end := i*rows/parts, (i+1)*rows/parts
		for column := 0; column < n; column += most * Lanes {
			v.correlate(c.Columns(column), a.From(row), b.From(row).Columns(column), k, min(most, (n-column)/Lanes), end-row)
		}
	}
}

// correlate is Correlate for some strips of columns.
func (v *vector) correlate(c, a, b Rows[float32], k, strips, rows int) {
	at := 0
	for _, tile := range v.correlations {
		for groups := (k - at) / tile.rows; groups > 0; groups = (k - at) / tile.rows {
			groups = min(groups, 1+maxTileWork/(tile.rows*strips*Lanes*rows))
			tile.strips[strips-1](&c.Data[at*c.Stride], 4*c.Stride, &a.Data[at], 4*a.Stride, &b.Data[0], 4*b.Stride, rows, groups)
			at += groups * tile.rows
		}
	}
}

// CrossEntropy: see [Kernels].
func (v *vector) CrossEntropy(x Rows[float32], labels []int32, weights []float32, n, rows int) (loss float64, hits int) {
	for i := range rows {
		row, most := x.Row(i, n), noFloor
		if weights[i] != 0 && finite(row[labels[i]]) {
			most = v.greatest(row)
		}
		if !finite(most) {
			one, hit := v.Generic.CrossEntropy(Rows[float32]{row, n}, labels[i:], weights[i:], n, 1)
			loss, hits = loss+one, hits+hit
			continue
		}
		score := row[labels[i]]
		if score == most && indexOf(row, most) == int(labels[i]) {
			hits++
		}
		total := v.exponentials(row, most)
		loss += float64(weights[i]) * (math.Log(total) + float64(most) - float64(score))
		v.multiplyBy(row, float32(float64(weights[i])/total))
		row[labels[i]] -= weights[i]
	}
	return loss, hits
}

func finite(x float32) bool { return x-x == 0 }

// RectifyGradient: see [Kernels].
func (v *vector) RectifyGradient(g, y Rows[float32], n, rows int) {
	if n%Lanes != 0 {
		v.Generic.RectifyGradient(g, y, n, rows)
		return
	}
	for i := range rows {
		gradient, result := g.Row(i, n), y.Row(i, n)
		for j := 0; j < n; j += maxRun {
			v.mask(&gradient[j], &result[j], min(maxRun, n-j))
		}
	}
}

// RegularGradient: see [Kernels].
func (v *vector) RegularGradient(g, x Rows[float32], circle *Circle[float32], channels, rows int) {
	if circle.Order >= len(v.regularGradients) || circle.Order == 0 || channels%Lanes != 0 {
		v.Generic.RegularGradient(g, x, circle, channels, rows)
		return
	}
	v.onCircleGradient(v.regularGradients[circle.Order], g, x, circle, channels, rows)
}

// PolyGradient: see [Kernels].
func (v *vector) PolyGradient(g, x Rows[float32], circle *Circle[float32], channels, rows int) {
	if circle.Order >= len(v.polynomialGradients) || circle.Order == 0 || channels%Lanes != 0 {
		v.Generic.PolyGradient(g, x, circle, channels, rows)
		return
	}
	v.onCircleGradient(v.polynomialGradients[circle.Order], g, x, circle, channels, rows)
}

func (v *vector) onCircleGradient(f circleGradientFunction, g, x Rows[float32], circle *Circle[float32], channels, rows int) {
	bound := float32(math.Sqrt(float64(2*circle.Order + 1)))
	scale := float32(math.Sqrt(float64(circle.Samples)))
	_ = circle.Basis[(2*circle.Order+1)*circle.Samples-1]
	for i := range rows {
		row, gradient := x.Row(i, (2*circle.Order+1)*channels), g.Row(i, (2*circle.Order+1)*channels)
		for c := 0; c < channels; c += Lanes {
			f(&gradient[c], &row[c], 4*channels, &circle.Basis[0], 4*circle.Samples, circle.Samples, bound, scale, 1/float32(circle.Samples))
		}
	}
}

// Gather: see [Kernels].
func (v *vector) Gather(x, records Rows[float32], edges []int32, offsets []int64, n int) {
	if n%Lanes != 0 || n == 0 || n > maxRun {
		v.Generic.Gather(x, records, edges, offsets, n)
		return
	}
	for i := range len(offsets) - 1 {
		row := x.Row(i, n)
		for _, e := range edges[offsets[i]:offsets[i+1]] {
			v.add(&row[0], &records.Row(int(e), n)[0], n)
		}
	}
}

// Adam: see [Kernels].
func (v *vector) Adam(parameters, first, second, gradient []float32, s *AdamStep) {
	n := len(gradient)
	whole := n / Lanes * Lanes
	for i := 0; i < whole; i += maxRun {
		_, _, _ = parameters[n-1], first[n-1], second[n-1]
		v.adam(&parameters[i], &first[i], &second[i], &gradient[i], min(maxRun, whole-i),
			float32(s.Beta1), float32(s.Beta2), float32(1-s.Beta1), float32(1-s.Beta2), float32(s.Rate), float32(1/s.Root),
			float32(s.Epsilon), float32(s.Decay), float32(s.Penalty), float32(s.Scale))
	}
	v.Generic.Adam(parameters[whole:], first[whole:], second[whole:], gradient[whole:], s)
}

// EdgeTranspose: see [Kernels].
func (v *vector) EdgeTranspose(records, m Rows[float32], a []float32, plan *Moments, rings *Rings[float32], heads int, accumulate bool) {
	scratch := vectorScratches.Get().(*vectorScratch)
	defer vectorScratches.Put(scratch)
	w := &scratch.edgeScratch
	r := v.run(w, w.steps[0][:], plan, rings, heads)
	w.chunks(rings.Offsets, func(c chunk) {
		if c.edges() > 0 {
			first := int(c.edge() - rings.Offsets[0])
			v.spread(&r, records.From(first), m, r.ofChunk(a, c), c, accumulate)
		}
	})
}

// spread is EdgeTranspose for a chunk, with which records and a begin.
func (v *vector) spread(r *edgeRun, records, m Rows[float32], a []float32, c chunk, accumulate bool) {
	n, plan, sets := c.edges(), r.plan, r.rings.Sets
	unrotate := v.unrotate
	if accumulate {
		unrotate = v.addUnrotated
	}
	undirected := r.phasesOf(c)
	_, _ = m.Row(c.vertex+c.vertices()-1, plan.Size(r.heads, sets)), records.Row(n-1, (2*plan.In+1)*plan.Channels)
	const edgeRows = (2*MaxOrder + 1) * Lanes
	for channel := 0; channel < plan.Channels; channel += Lanes {
		for e := range n {
			clear(r.z[e*edgeRows:][:(2*plan.In+1)*Lanes])
		}
		for h := range r.heads {
			alpha := r.headCoefficients(a, h, r.heads)
			for set := 0; set < sets; set += r.sets {
				count := min(r.sets, sets-set)
				r.weights(c, alpha, set, count)
				for i := range r.steps {
					s := &r.steps[i]
					row := c.vertex*m.Stride + s.start + (h*sets+set)*s.unit + channel
					for lane := 0; lane < Lanes; lane += r.lanes {
						s.spread[count-1](&m.Data[row+lane], 4*m.Stride, 4*plan.Channels, 4*s.unit, &r.z[s.feature*Lanes+lane],
							&r.coefficients[0][s.coefficient][0], &c.offsets[0], c.edge(), c.vertices())
					}
				}
			}
		}
		unrotate[plan.In](&records.Data[channel], 4*records.Stride, 4*plan.Channels, &r.z[0], &r.in[0][0], n)
	}
	if undirected {
		r.spreadUndirected(records, m, a, c)
	}
}

// spreadUndirected adds what remains on edges without a direction.
func (r *edgeRun) spreadUndirected(records, m Rows[float32], a []float32, c chunk) {
	var groups [MaxOrder]Group
	own := ownMoments(r.plan, groups[:0])
	size := (2*own.In + 1) * own.Channels
	for i := range c.vertices() {
		for e := c.offsets[i]; e < c.offsets[i+1]; e++ {
			if r.rings.CosTheta[e] == 0 && r.rings.SinTheta[e] == 0 {
				at := int(e - c.edge())
				transposeEdge(records.Row(at, size), m.Data[(c.vertex+i)*m.Stride:], a[at*r.heads:][:r.heads], &own, r.rings, e)
			}
		}
	}
}
