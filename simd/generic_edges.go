package simd

import "math"

// MaxOrder is the highest order n of a representation rho_n.
const MaxOrder = 4

// phases is what an edge's geometry gives to its moments.
type phases[T Float] struct {
	// e^{inβ}: what turns z_n(q) into ẑ_n. β = g-θ, or g where there is no θ.
	inRe, inIm [MaxOrder + 1]T
	// e^{imθ}
	outRe, outIm [MaxOrder + 1]T
	directed     bool // the edge has a direction θ
}

func (r *Rings[T]) phases(e int64) (p phases[T]) {
	cosTheta, sinTheta := r.CosTheta[e], r.SinTheta[e]
	cosG, sinG := r.CosTransport[e], r.SinTransport[e]
	p.directed = cosTheta != 0 || sinTheta != 0
	re, im := cosG, sinG
	if p.directed {
		re, im = cosG*cosTheta+sinG*sinTheta, sinG*cosTheta-cosG*sinTheta
	}
	p.inRe, p.inIm = powers(re, im)
	p.outRe, p.outIm = powers(cosTheta, sinTheta)
	return p
}

// powers returns (re + i·im)^n for n = 0 … MaxOrder.
func powers[T Float](re, im T) (powRe, powIm [MaxOrder + 1]T) {
	powRe[0] = 1
	for n := 1; n <= MaxOrder; n++ {
		powRe[n] = powRe[n-1]*re - powIm[n-1]*im
		powIm[n] = powRe[n-1]*im + powIm[n-1]*re
	}
	return powRe, powIm
}

// rows computes a group's rows of moments for Lanes channels: f is f_q from
// the first of these channels on, channels the distance of its rows.
func (p *phases[T]) rows(m *[4][Lanes]T, g Group, f []T, channels int) {
	if g.In == 0 {
		p.scalarRows(m, g, f)
		return
	}
	re, im := f[(2*g.In-1)*channels:], f[2*g.In*channels:]
	a, b := p.inRe[g.In], p.inIm[g.In]
	c, s := p.outRe[g.Out], p.outIm[g.Out]
	for l := range Lanes {
		x, y := a*re[l]-b*im[l], b*re[l]+a*im[l]
		switch {
		case !p.directed:
			m[0][l], m[1][l], m[2][l], m[3][l] = undirected(g, x, y)
		case g.Form == ToScalar:
			m[0][l], m[1][l] = x, y
		case g.Form == Minus:
			m[0][l], m[1][l] = c*x-s*y, s*x+c*y
		default:
			m[0][l], m[1][l], m[2][l], m[3][l] = c*x, s*x, c*y, s*y
		}
	}
}

// scalarRows computes the rows of z_0. Without a direction, c = s = 0.
func (p *phases[T]) scalarRows(m *[4][Lanes]T, g Group, f []T) {
	c, s := p.outRe[g.Out], p.outIm[g.Out]
	for l := range Lanes {
		if g.Form == Scalar {
			m[0][l] = f[l]
		} else {
			m[0][l], m[1][l] = c*f[l], s*f[l]
		}
	}
}

// undirected gives the rows of x + iy = e^{ing} z_n on an edge without a
// direction: of the moments e^{imθ}ẑ_n and e^{imθ}·conj ẑ_n only the first
// remains, and only for n = m. In the form Both, the first is the sum of
// (row 0, row 1) and i·(row 2, row 3), the second their difference.
func undirected[T Float](g Group, x, y T) (r0, r1, r2, r3 T) {
	switch {
	case g.In != g.Out:
		return 0, 0, 0, 0
	case g.Form == Minus:
		return x, y, 0, 0
	default:
		return x / 2, y / 2, y / 2, -x / 2
	}
}

// visit calls f with each row of an edge's moments, Lanes channels at a time,
// for every head and set, and with the place of these channels in the row of
// moments of a vertex.
func visit[T Float](plan *Moments, rings *Rings[T], e int64, heads int, f func(m [Lanes]T, head, set, at int)) {
	p := rings.phases(e)
	features := rings.Features.Data[int(rings.Neighbors[e])*rings.Features.Stride:]
	var m [4][Lanes]T
	for _, g := range plan.Groups {
		start, _ := plan.Block(g.Out, heads, rings.Sets)
		for c := 0; c < plan.Channels; c += Lanes {
			p.rows(&m, g, features[c:], plan.Channels)
			for unit := range heads * rings.Sets {
				at := start + (unit*plan.Rows[g.Out]+g.Row)*plan.Channels + c
				for r := range g.Form.Rows() {
					f(m[r], unit/rings.Sets, unit%rings.Sets, at+r*plan.Channels)
				}
			}
		}
	}
}

// EdgeDot: see [Kernels].
func (Generic[T]) EdgeDot(logits []T, u Rows[T], plan *Moments, rings *Rings[T], heads int) {
	first := rings.Offsets[0]
	for i := range rings.Vertices() {
		row := u.Data[i*u.Stride:]
		for e := rings.Offsets[i]; e < rings.Offsets[i+1]; e++ {
			out := logits[int(e-first)*heads:][:heads]
			clear(out)
			visit(plan, rings, e, heads, func(m [Lanes]T, head, set, at int) {
				var dot T
				for l, u := range row[at:][:Lanes] {
					dot += u * m[l]
				}
				out[head] += rings.weight(set, int(e-first)) * dot
			})
		}
	}
}

// EdgeAggregate: see [Kernels].
func (Generic[T]) EdgeAggregate(m Rows[T], a []T, plan *Moments, rings *Rings[T], heads int) {
	first := rings.Offsets[0]
	for i := range rings.Vertices() {
		row := m.Row(i, plan.Size(heads, rings.Sets))
		clear(row)
		for e := rings.Offsets[i]; e < rings.Offsets[i+1]; e++ {
			coefficients := a[int(e-first)*heads:]
			visit(plan, rings, e, heads, func(m [Lanes]T, head, set, at int) {
				scale := coefficients[head] * rings.weight(set, int(e-first))
				for l := range m {
					row[at+l] += scale * m[l]
				}
			})
		}
	}
}

// Softmax: see [Kernels].
func (Generic[T]) Softmax(logits, self []T, offsets []int64, heads int, scaled bool) {
	for i := range len(offsets) - 1 {
		ring := logits[int(offsets[i]-offsets[0])*heads : int(offsets[i+1]-offsets[0])*heads]
		terms := len(ring) / heads
		if self != nil {
			terms++
		}
		scale := 1.0
		if scaled {
			scale = float64(terms)
		}
		for h := range heads {
			var own *T
			if self != nil {
				own = &self[i*heads+h]
			}
			softmax(ring, own, h, heads, scale)
		}
	}
}

// EdgeAttention: see [Kernels].
func (g Generic[T]) EdgeAttention(m, u Rows[T], a, self []T, key, value *Moments, keys, values *Rings[T], heads int, scaled bool) {
	g.EdgeDot(a, u, key, keys, heads)
	g.Softmax(a, self, values.Offsets, heads, scaled)
	g.EdgeAggregate(m, a, value, values, heads)
}

// softmax treats entries h, h+heads, … of ring and own, where it is not nil.
func softmax[T Float](ring []T, own *T, h, heads int, scale float64) {
	total := newLogSum()
	for j := h; j < len(ring); j += heads {
		total.add(float64(ring[j]))
	}
	if own != nil {
		total.add(float64(*own))
	}
	total.finish()
	if math.IsInf(total.greatest, 1) {
		total.log = math.NaN()
	}
	for j := h; j < len(ring); j += heads {
		ring[j] = T(scale * math.Exp(total.logProbability(float64(ring[j]))))
	}
	if own != nil {
		*own = T(scale * math.Exp(total.logProbability(float64(*own))))
	}
}
