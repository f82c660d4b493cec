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
		best := newRanking(labels[i*k:], logs[i*k:], 0, k)
		total := newLogSum()
		for j := 0; j < classes; j += Lanes {
			product(&sum, a.Row(i, b.K), b.strip(j/Lanes))
			for l := range min(Lanes, classes-j) {
				x := sum[l] + bias[j+l]
				best.offer(int32(j+l), x)
				total.add(float64(x))
			}
		}
		best.finish()
		total.finish()
		for j, x := range best.values {
			best.values[j] = T(total.logProbability(float64(x)))
		}
	}
}

// sortedRanking is up to how many values a ranking is kept in order: so few
// are moved faster than a heap is mended.
const sortedRanking = 32

// ranking is the largest values seen so far, the lowest label first among equal
// ones: in falling order where they are to be few; otherwise as they came until
// there are enough, and then a heap with the last one of the order on top.
type ranking[T Float] struct {
	labels []int32
	values []T
	heap   bool
}

// newRanking goes on with a ranking of k values of which seen were offered.
func newRanking[T Float](labels []int32, values []T, seen, k int) ranking[T] {
	seen = min(seen, k)
	return ranking[T]{labels[:seen:k], values[:seen:k], k > sortedRanking}
}

// takes says whether a value, whose label is above all labels offered before,
// would enter the ranking.
func (r *ranking[T]) takes(value T) bool {
	n := len(r.values)
	switch {
	case n < cap(r.values):
		return true
	case n == 0:
		return false
	case r.heap:
		return value > r.values[0]
	default:
		return value > r.values[n-1]
	}
}

// offer takes a value whose label is above all labels offered before.
func (r *ranking[T]) offer(label int32, value T) {
	if !r.takes(value) {
		return
	}
	n := len(r.values)
	switch {
	case n < cap(r.values):
		r.labels, r.values = append(r.labels, label), append(r.values, value)
	case r.heap:
		r.labels[0], r.values[0] = label, value
		r.sink(0, n)
		return
	default:
		n--
	}
	if !r.heap {
		r.insert(n, label, value)
	} else if n+1 == cap(r.values) {
		for i := n / 2; i >= 0; i-- {
			r.sink(i, n+1)
		}
	}
}

// insert puts a value in its place among the first n, which are in order.
func (r *ranking[T]) insert(n int, label int32, value T) {
	for ; n > 0 && value > r.values[n-1]; n-- {
		r.labels[n], r.values[n] = r.labels[n-1], r.values[n-1]
	}
	r.labels[n], r.values[n] = label, value
}

// sink mends the heap of the first n values below i.
func (r *ranking[T]) sink(i, n int) {
	for {
		last := 2*i + 1
		if last >= n {
			return
		}
		if last+1 < n && r.after(last+1, last) {
			last++
		}
		if !r.after(last, i) {
			return
		}
		r.swap(i, last)
		i = last
	}
}

// after says whether value i comes after value j in the order.
func (r *ranking[T]) after(i, j int) bool {
	return r.values[i] < r.values[j] || r.values[i] == r.values[j] && r.labels[i] > r.labels[j]
}

func (r *ranking[T]) swap(i, j int) {
	r.labels[i], r.labels[j] = r.labels[j], r.labels[i]
	r.values[i], r.values[j] = r.values[j], r.values[i]
}

// finish puts a full ranking in order.
func (r *ranking[T]) finish() {
	if !r.heap {
		return
	}
	for n := len(r.values) - 1; n > 0; n-- {
		r.swap(0, n)
		r.sink(0, n)
	}
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
