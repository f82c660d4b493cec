package simd

import "math"

// Circle is N equidistant samples of the real functions of order up to L on
// the circle, in the orthonormal basis
//
//	B[0, j] = 1/√N,  B[2n-1, j] = √(2/N) cos(2πnj/N),  B[2n, j] = √(2/N) sin(2πnj/N),
//
// so that a channel (z_0, …, z_L) has the samples f_j = Σ_k x_k B[k, j], that
// is 1/√N times f(φ) = z_0 + √2 Σ_n Re(z_n e^{-inφ}), whose mean square over
// the circle is s² = z_0² + Σ|z_n|².
//
// The polynomial of Poly is P(u) = u/2 + (U/2)(c_0 + c_1 v + c_2 v²) with
// v = (u/U)² and U = √(2L+1), the largest value of |f|/s; c is the
// least-squares fit of |t| by c_0 + c_1 t² + c_2 t⁴ on [-1, 1]. By the
// sampling theorem N ≥ 5L+1 samples project P(f) exactly, so the result turns
// with f for every angle of rotation, not only for those of the samples.
type Circle[T Float] struct {
	Order, Samples int
	Basis          []T // [2*Order+1, Samples]
}

// The fit of |t|: 15/128, 105/64 and -105/128.
const (
	polyC0 = 0.1171875
	polyC1 = 1.640625
	polyC2 = -0.8203125
)

// PolySamples is the number of samples that make Poly exact at an order.
func PolySamples(order int) int { return 5*order + 1 }

// NewCircle returns samples samples of order order.
func NewCircle[T Float](order, samples int) *Circle[T] {
	c := &Circle[T]{Order: order, Samples: samples, Basis: make([]T, (2*order+1)*samples)}
	for j := range samples {
		c.Basis[j] = T(1 / math.Sqrt(float64(samples)))
		for n := 1; n <= order; n++ {
			// n·j is reduced first, so that the angle stays exact.
			sin, cos := math.Sincos(2 * math.Pi * float64(n*j%samples) / float64(samples))
			scale := math.Sqrt(2 / float64(samples))
			c.Basis[(2*n-1)*samples+j] = T(scale * cos)
			c.Basis[2*n*samples+j] = T(scale * sin)
		}
	}
	return c
}
