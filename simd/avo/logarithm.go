package main

import (
	"math"
	"math/big"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// log2 of positive normal numbers x = 2^e·m with √½ ≤ m < √2:
//
//	log2 x = e + s·P(s²),  s = (m-1)/(m+1),  P(s²) = 2/ln 2 · artanh(s)/s,
//
// where s² ≤ 0.0295.
func (d *doubles) log2(x, log reg.VecVirtual) {
	const (
		mantissa = 1<<52 - 1
		bias     = 1024 // keeps exponents positive
	)
	half := math.Float64bits(math.Sqrt(0.5))
	e, m, s := d.vector(), d.vector(), d.vector()
	d.withBits(plusBits, bias<<52-half, x, m)
	VPSRLQ(U8(52), m, e)
	d.withBits(and, mantissa, m, m)
	d.withBits(plusBits, half, m, m)
	d.withBits(or, math.Float64bits(0x1p52), e, e)
	d.with(minus, 0x1p52+bias, e, e)
	d.with(plus, 1, m, s)
	d.with(minus, 1, m, m)
	VDIVPD(s, m, s)
	square := m
	VMULPD(s, s, square)
	d.polynomial(log2Coefficients(), square, log)
	VFMADD213PD(e, s, log)
}

// exp2 replaces y by 2^y for |y| < 1000: with n the nearest integer, 2^n times
// a polynomial in y - n, |y - n| ≤ ½.
func (d *doubles) exp2(y reg.VecVirtual) {
	const round = 0x1.8p52 // adding it rounds to an integer in the low bits
	n, rest := d.vector(), d.vector()
	d.with(plus, round, y, n)
	d.with(minus, round, n, rest)
	VSUBPD(rest, y, rest)
	d.polynomial(exp2Coefficients(), rest, y)
	VPSLLQ(U8(52), n, n)
	VPADDQ(n, y, y)
}

// log2Coefficients are those of P in log2.
func log2Coefficients() []float64 {
	return fitted(7, 0, 0.0295, func(t float64) float64 {
		if t == 0 {
			return 2 / math.Ln2
		}
		return 2 / math.Ln2 * math.Atanh(math.Sqrt(t)) / math.Sqrt(t)
	})
}

// exp2Coefficients are those of the polynomial in exp2.
func exp2Coefficients() []float64 { return fitted(11, -0.5, 0.5, math.Exp2) }

// polynomial is Σ c_i x^i of odd degree, the even powers and the odd ones by
// themselves, so that the two chains run beside each other.
func (d *doubles) polynomial(c []float64, x, sum reg.VecVirtual) {
	square, odd := d.vector(), d.vector()
	VMULPD(x, x, square)
	last := len(c) - 1
	VBROADCASTSD(word(math.Float64bits(c[last])), odd)
	VBROADCASTSD(word(math.Float64bits(c[last-1])), sum)
	for i := last - 2; i > 0; i -= 2 {
		d.with(fmadd213, c[i], square, odd)
		d.with(fmadd213, c[i-1], square, sum)
	}
	VFMADD231PD(odd, x, sum)
}

// fitted is the polynomial of a degree through f at the Chebyshev points of an
// interval, whose error is near the least possible.
func fitted(degree int, from, to float64, f func(float64) float64) []float64 {
	const precision = 200
	number := func(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }
	nodes, differences := make([]*big.Float, degree+1), make([]*big.Float, degree+1)
	for i := range nodes {
		x := (from+to)/2 + (to-from)/2*math.Cos(math.Pi*(float64(i)+0.5)/float64(degree+1))
		nodes[i], differences[i] = number(x), number(f(x))
	}
	// Newton's divided differences, multiplied out.
	for order := 1; order <= degree; order++ {
		for i := degree; i >= order; i-- {
			step := number(0).Sub(nodes[i], nodes[i-order])
			differences[i] = number(0).Quo(number(0).Sub(differences[i], differences[i-1]), step)
		}
	}
	c := make([]*big.Float, degree+1)
	for i := range c {
		c[i] = number(0)
	}
	for i := degree; i >= 0; i-- {
		for j := degree; j > 0; j-- {
			c[j] = number(0).Sub(c[j-1], number(0).Mul(nodes[i], c[j]))
		}
		c[0] = number(0).Sub(differences[i], number(0).Mul(nodes[i], c[0]))
	}
	rounded := make([]float64, degree+1)
	for i := range c {
		rounded[i], _ = c[i].Float64()
	}
	return rounded
}
