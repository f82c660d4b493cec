package simd

import "math"

// Rectify: see [Kernels].
func (Generic[T]) Rectify(x Rows[T], n, rows int) {
	for i := range rows {
		row := x.Row(i, n)
		for j := range row {
			row[j] = max(row[j], 0)
		}
	}
}

// Regular: see [Kernels].
func (Generic[T]) Regular(x Rows[T], circle *Circle[T], channels, rows int) {
	for i := range rows {
		row := x.Data[i*x.Stride:]
		for c := range channels {
			circle.apply(row[c:], channels, func(f T) T { return max(f, 0) })
		}
	}
}

// Poly: see [Kernels].
func (Generic[T]) Poly(x Rows[T], circle *Circle[T], channels, rows int) {
	for i := range rows {
		row := x.Data[i*x.Stride:]
		for c := range channels {
			circle.poly(row[c:], channels)
		}
	}
}

// poly is Poly for one channel, whose components are step apart.
func (c *Circle[T]) poly(x []T, step int) {
	var square T
	for k := range 2*c.Order + 1 {
		square += x[k*step] * x[k*step]
	}
	if square == 0 {
		for k := range 2*c.Order + 1 {
			x[k*step] = 0
		}
		return
	}
	// The samples of f/s are √N/s times those of x, and |f/s| ≤ U.
	bound := T(math.Sqrt(float64(2*c.Order + 1)))
	scale := T(math.Sqrt(float64(c.Samples) / float64(square)))
	c.apply(x, step, func(f T) T {
		u := f * scale
		v := u / bound * (u / bound)
		return (u + bound*(polyC0+v*(polyC1+v*polyC2))) / (2 * scale)
	})
}

// apply replaces one channel by the transform of f of its samples.
func (c *Circle[T]) apply(x []T, step int, f func(T) T) {
	components := 2*c.Order + 1
	var in, out [2*MaxOrder + 1]T
	for k := range components {
		in[k] = x[k*step]
	}
	for j := range c.Samples {
		var sample T
		for k := range components {
			sample += in[k] * c.Basis[k*c.Samples+j]
		}
		sample = f(sample)
		for k := range components {
			out[k] += sample * c.Basis[k*c.Samples+j]
		}
	}
	for k := range components {
		x[k*step] = out[k]
	}
}

// Gate: see [Kernels].
func (Generic[T]) Gate(x Rows[T], a, b []T, order, channels, rows int) {
	for i := range rows {
		row := x.Row(i, (2*order+1)*channels)
		for c := range channels {
			row[c] = max(row[c], 0)
		}
		for n := range order {
			re, im := row[(2*n+1)*channels:][:channels], row[(2*n+2)*channels:][:channels]
			for c := range channels {
				length := math.Hypot(float64(re[c]), float64(im[c]))
				at := float64(a[n*channels+c])*length + float64(b[n*channels+c])
				gate := T(1 / (1 + math.Exp(-at)))
				re[c] *= gate
				im[c] *= gate
			}
		}
	}
}
