package simd

import "math"

// strip is the part of b that holds columns [16s, 16s+16).
func (p *Panel[T]) strip(s int) []T { return p.Data[s*p.K*Lanes:][:p.K*Lanes] }

// product computes one row of a·b in the columns of one strip:
// sum[j] = Σ_k a[k] strip[k*Lanes+j], added in the order of k.
func product[T Float](sum *[Lanes]T, a, strip []T) {
	const half = Lanes / 2
	for j := 0; j < Lanes; j += half {
		var s0, s1, s2, s3, s4, s5, s6, s7 T
		for k, x := range a {
			b := strip[k*Lanes+j:][:half]
			s0 += x * b[0]
			s1 += x * b[1]
			s2 += x * b[2]
			s3 += x * b[3]
			s4 += x * b[4]
			s5 += x * b[5]
			s6 += x * b[6]
			s7 += x * b[7]
		}
		*(*[half]T)(sum[j:]) = [half]T{s0, s1, s2, s3, s4, s5, s6, s7}
	}
}

// Multiply: see [Kernels].
func (Generic[T]) Multiply(c, a Rows[T], b *Panel[T], rows int, accumulate bool) {
	var sum [Lanes]T
	for s := range b.N / Lanes {
		strip := b.strip(s)
		for i := range rows {
			product(&sum, a.Row(i, b.K), strip)
			out := c.Data[i*c.Stride+s*Lanes:][:Lanes]
			if accumulate {
				for j := range out {
					out[j] += sum[j]
				}
			} else {
				copy(out, sum[:])
			}
		}
	}
}

// Dense: see [Kernels].
func (Generic[T]) Dense(c, a Rows[T], b *Panel[T], bias []T, rows int, f Activation) {
	var sum [Lanes]T
	for s := range b.N / Lanes {
		strip, bias := b.strip(s), bias[s*Lanes:]
		for i := range rows {
			product(&sum, a.Row(i, b.K), strip)
			out := c.Data[i*c.Stride+s*Lanes:][:Lanes]
			for j := range out {
				out[j] = activate(sum[j]+bias[j], f)
			}
		}
	}
}

func activate[T Float](x T, f Activation) T {
	switch {
	case f == ReLU:
		return max(x, 0)
	case f == ELU && x <= 0:
		return T(math.Expm1(float64(x)))
	default:
		return x
	}
}

// Add: see [Kernels].
func (Generic[T]) Add(c, a Rows[T], n, rows int) {
	for i := range rows {
		sum, term := c.Row(i, n), a.Row(i, n)
		for j := range sum {
			sum[j] += term[j]
		}
	}
}

// ArgMax: see [Kernels].
func (Generic[T]) ArgMax(labels []int32, a Rows[T], b *Panel[T], bias []T, classes, rows int) {
	var sum [Lanes]T
	for i := range rows {
		best, value := int32(0), T(math.Inf(-1))
		for j := 0; j < classes; j += Lanes {
			product(&sum, a.Row(i, b.K), b.strip(j/Lanes))
			for l := range min(Lanes, classes-j) {
				if x := sum[l] + bias[j+l]; x > value {
					best, value = int32(j+l), x
				}
			}
		}
		labels[i] = best
	}
}

// TopK: see [Kernels].
func (Generic[T]) TopK(labels []int32, logs []T, a Rows[T], b *Panel[T], bias []T, classes, k, rows int) {
	var sum [Lanes]T
	for i := range rows {
		best := ranking[T]{labels: labels[i*k:][:0:k], values: logs[i*k:][:0:k]}
		total := newLogSum()
		for j := 0; j < classes; j += Lanes {
			product(&sum, a.Row(i, b.K), b.strip(j/Lanes))
			for l := range min(Lanes, classes-j) {
				x := sum[l] + bias[j+l]
				best.offer(int32(j+l), x)
				total.add(float64(x))
			}
		}
		total.finish()
		for j, x := range best.values {
			best.values[j] = T(total.logProbability(float64(x)))
		}
	}
}

// ranking is the largest values seen so far, in falling order.
type ranking[T Float] struct {
	labels []int32
	values []T
}

// offer takes a value whose label is above all labels offered before.
func (r *ranking[T]) offer(label int32, value T) {
	n := len(r.values)
	if n == cap(r.values) {
		if n == 0 || !(value > r.values[n-1]) {
			return
		}
		n--
	}
	r.labels, r.values = r.labels[:n+1], r.values[:n+1]
	for ; n > 0 && value > r.values[n-1]; n-- {
		r.labels[n], r.values[n] = r.labels[n-1], r.values[n-1]
	}
	r.labels[n], r.values[n] = label, value
}

// logSum is log Σ exp(x) of a stream of numbers, as greatest + log(sum).
type logSum struct{ greatest, sum, log float64 }

func newLogSum() logSum { return logSum{greatest: math.Inf(-1)} }

func (s *logSum) add(x float64) {
	switch {
	case math.IsInf(x, -1): // adds exp(x) = 0
	case x <= s.greatest:
		s.sum += math.Exp(x - s.greatest)
	default: // also NaN, which then stays
		s.sum = s.sum*math.Exp(s.greatest-x) + 1
		s.greatest = x
	}
}

// finish ends the stream.
func (s *logSum) finish() { s.log = math.Log(s.sum) }

// logProbability is x - log Σ exp of a finished stream: the greatest number is
// taken off first, so that large ones do not swallow the logarithm.
func (s *logSum) logProbability(x float64) float64 { return x - s.greatest - s.log }

// LogSoftmax: see [Kernels].
func (Generic[T]) LogSoftmax(x Rows[T], n, rows int) {
	for i := range rows {
		row := x.Row(i, n)
		total := newLogSum()
		for _, v := range row {
			total.add(float64(v))
		}
		total.finish()
		for j := range row {
			row[j] = T(total.logProbability(float64(row[j])))
		}
	}
}
