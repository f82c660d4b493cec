package simd

import "math"

// Correlate: see [Kernels].
func (Generic[T]) Correlate(c, a, b Rows[T], k, n, rows int) {
	for i := range rows {
		factors, row := a.Row(i, k), b.Row(i, n)
		for j, x := range factors {
			to := c.Row(j, n)
			for l, y := range row {
				to[l] += x * y
			}
		}
	}
}

// CrossEntropy: see [Kernels].
func (Generic[T]) CrossEntropy(x Rows[T], labels []int32, weights []T, n, rows int) (loss float64, hits int) {
	for i := range rows {
		row, label, weight := x.Row(i, n), labels[i], weights[i]
		if weight == 0 {
			clear(row)
			continue
		}
		total, best := newLogSum(), 0
		for j, v := range row {
			total.add(float64(v))
			if v > row[best] {
				best = j
			}
		}
		total.finish()
		loss -= float64(weight) * total.logProbability(float64(row[label]))
		if int32(best) == label {
			hits++
		}
		for j, v := range row {
			row[j] = weight * T(math.Exp(total.logProbability(float64(v))))
		}
		row[label] -= weight
	}
	return loss, hits
}

// SoftmaxGradient: see [Kernels].
func (Generic[T]) SoftmaxGradient(gradient, self, alpha, own []T, offsets []int64, heads int, scaled bool) {
	for i := range len(offsets) - 1 {
		from, to := int(offsets[i]-offsets[0])*heads, int(offsets[i+1]-offsets[0])*heads
		terms := (to - from) / heads
		if self != nil {
			terms++
		}
		scale := 1.0
		if scaled {
			scale = float64(terms)
		}
		for h := range heads {
			var mean float64
			for j := from + h; j < to; j += heads {
				mean += float64(alpha[j]) * float64(gradient[j])
			}
			if self != nil {
				mean += float64(own[i*heads+h]) * float64(self[i*heads+h])
			}
			mean /= scale
			for j := from + h; j < to; j += heads {
				gradient[j] = alpha[j] * T(float64(gradient[j])-mean)
			}
			if self != nil {
				self[i*heads+h] = own[i*heads+h] * T(float64(self[i*heads+h])-mean)
			}
		}
	}
}

// EdgeTranspose: see [Kernels].
func (Generic[T]) EdgeTranspose(records, m Rows[T], a []T, plan *Moments, rings *Rings[T], heads int, accumulate bool) {
	first := rings.Offsets[0]
	size := (2*plan.In + 1) * plan.Channels
	for i := range rings.Vertices() {
		row := m.Data[i*m.Stride:]
		for e := rings.Offsets[i]; e < rings.Offsets[i+1]; e++ {
			record := records.Row(int(e-first), size)
			if !accumulate {
				clear(record)
			}
			transposeEdge(record, row, a[int(e-first)*heads:][:heads], plan, rings, e)
		}
	}
}

// transposeEdge adds one edge's part of EdgeTranspose to its record.
func transposeEdge[T Float](record, row, a []T, plan *Moments, rings *Rings[T], e int64) {
	p := rings.phases(e)
	local := int(e - rings.Offsets[0])
	for _, g := range plan.Groups {
		start, _ := plan.Block(g.Out, len(a), rings.Sets)
		for c := 0; c < plan.Channels; c += Lanes {
			var sum [4][Lanes]T
			for unit := range len(a) * rings.Sets {
				scale := a[unit/rings.Sets] * rings.weight(unit%rings.Sets, local)
				at := start + (unit*plan.Rows[g.Out]+g.Row)*plan.Channels + c
				for r := range g.Form.Rows() {
					for l, x := range row[at+r*plan.Channels:][:Lanes] {
						sum[r][l] += scale * x
					}
				}
			}
			p.transposeRows(record[c:], &sum, g, plan.Channels)
		}
	}
}

// transposeRows is the transpose of rows: it adds what rows r of a group's
// moments give to the features f.
func (p *phases[T]) transposeRows(f []T, r *[4][Lanes]T, g Group, channels int) {
	c, s := p.outRe[g.Out], p.outIm[g.Out]
	if g.In == 0 {
		for l := range Lanes {
			if g.Form == Scalar {
				f[l] += r[0][l]
			} else {
				f[l] += c*r[0][l] + s*r[1][l]
			}
		}
		return
	}
	re, im := f[(2*g.In-1)*channels:], f[2*g.In*channels:]
	a, b := p.inRe[g.In], p.inIm[g.In]
	for l := range Lanes {
		var x, y T
		switch {
		case !p.directed:
			x, y = transposeUndirected(g, r[0][l], r[1][l], r[2][l], r[3][l])
		case g.Form == ToScalar:
			x, y = r[0][l], r[1][l]
		case g.Form == Minus:
			x, y = c*r[0][l]+s*r[1][l], c*r[1][l]-s*r[0][l]
		default:
			x, y = c*r[0][l]+s*r[1][l], c*r[2][l]+s*r[3][l]
		}
		re[l] += a*x + b*y
		im[l] += a*y - b*x
	}
}

// transposeUndirected is the transpose of undirected.
func transposeUndirected[T Float](g Group, r0, r1, r2, r3 T) (x, y T) {
	switch {
	case g.In != g.Out:
		return 0, 0
	case g.Form == Minus:
		return r0, r1
	default:
		return (r0 - r3) / 2, (r1 + r2) / 2
	}
}

// Gather: see [Kernels].
func (Generic[T]) Gather(x, records Rows[T], edges []int32, offsets []int64, n int) {
	for i := range len(offsets) - 1 {
		row := x.Row(i, n)
		for _, e := range edges[offsets[i]:offsets[i+1]] {
			for j, value := range records.Row(int(e), n) {
				row[j] += value
			}
		}
	}
}

// RectifyGradient: see [Kernels].
func (Generic[T]) RectifyGradient(g, y Rows[T], n, rows int) {
	for i := range rows {
		row := g.Row(i, n)
		for j, value := range y.Row(i, n) {
			if value <= 0 {
				row[j] = 0
			}
		}
	}
}

// RegularGradient: see [Kernels].
func (Generic[T]) RegularGradient(g, x Rows[T], circle *Circle[T], channels, rows int) {
	for i := range rows {
		row, gradient := x.Data[i*x.Stride:], g.Data[i*g.Stride:]
		for c := range channels {
			circle.applyGradient(gradient[c:], row[c:], channels, func(f, g T) T {
				if f <= 0 {
					return 0
				}
				return g
			})
		}
	}
}

// PolyGradient: see [Kernels].
func (Generic[T]) PolyGradient(g, x Rows[T], circle *Circle[T], channels, rows int) {
	for i := range rows {
		row, gradient := x.Data[i*x.Stride:], g.Data[i*g.Stride:]
		for c := range channels {
			circle.polyGradient(gradient[c:], row[c:], channels)
		}
	}
}

// polyGradient is PolyGradient for one channel, whose components are step
// apart. With the samples f_j of x, u_j = f_j/s and y_j = s·P(u_j),
//
//	dy_j = P'(u_j) df_j + (P(u_j) - u_j P'(u_j)) ds,  ds = x·dx/(s·N).
func (c *Circle[T]) polyGradient(g, x []T, step int) {
	var square T
	for k := range 2*c.Order + 1 {
		square += x[k*step] * x[k*step]
	}
	if square == 0 {
		for k := range 2*c.Order + 1 {
			g[k*step] = 0
		}
		return
	}
	bound := T(math.Sqrt(float64(2*c.Order + 1)))
	scale := T(math.Sqrt(float64(c.Samples) / float64(square)))
	var ofSize T // Σ (P(u) - u P'(u)) g
	c.applyGradient(g, x, step, func(f, g T) T {
		u := f * scale
		v := u / bound * (u / bound)
		ofSize += g * bound / 2 * (polyC0 - v*(polyC1+3*polyC2*v))
		return g * (1 + 2*u/bound*(polyC1+2*polyC2*v)) / 2
	})
	factor := ofSize * scale / T(c.Samples)
	for k := range 2*c.Order + 1 {
		g[k*step] += factor * x[k*step]
	}
}

// applyGradient replaces one channel of g by the transform of f of the samples
// of x and of g.
func (c *Circle[T]) applyGradient(g, x []T, step int, f func(x, g T) T) {
	components := 2*c.Order + 1
	var in, gradient, out [2*MaxOrder + 1]T
	for k := range components {
		in[k], gradient[k] = x[k*step], g[k*step]
	}
	for j := range c.Samples {
		var sample, ofSample T
		for k := range components {
			sample += in[k] * c.Basis[k*c.Samples+j]
			ofSample += gradient[k] * c.Basis[k*c.Samples+j]
		}
		ofSample = f(sample, ofSample)
		for k := range components {
			out[k] += ofSample * c.Basis[k*c.Samples+j]
		}
	}
	for k := range components {
		g[k*step] = out[k]
	}
}

// GateGradient: see [Kernels].
func (Generic[T]) GateGradient(g, x Rows[T], a, b, da, db []T, order, channels, rows int) {
	for i := range rows {
		row, gradient := x.Row(i, (2*order+1)*channels), g.Row(i, (2*order+1)*channels)
		for c := range channels {
			if row[c] <= 0 {
				gradient[c] = 0
			}
		}
		for n := range order {
			re, im := row[(2*n+1)*channels:][:channels], row[(2*n+2)*channels:][:channels]
			gre, gim := gradient[(2*n+1)*channels:][:channels], gradient[(2*n+2)*channels:][:channels]
			for c := range channels {
				at := n*channels + c
				length := math.Hypot(float64(re[c]), float64(im[c]))
				gate := 1 / (1 + math.Exp(-(float64(a[at])*length + float64(b[at]))))
				// d(z·σ) along z, and what reaches a|z| + b.
				slope := gate * (1 - gate) * (float64(re[c])*float64(gre[c]) + float64(im[c])*float64(gim[c]))
				da[at] += T(slope * length)
				db[at] += T(slope)
				var along T
				if length > 0 {
					along = T(slope * float64(a[at]) / length)
				}
				gre[c] = T(gate)*gre[c] + along*re[c]
				gim[c] = T(gate)*gim[c] + along*im[c]
			}
		}
	}
}
