package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// exponential holds the constants of e^x in registers or memory.
type exponential struct {
	isa
	log2e, ln2High, ln2Low reg.VecVirtual
}

// ln 2 in two parts, of which the higher has few bits; the bounds beyond which
// e^x is ∞, 0, or 0 beside 1; and the bias of an exponent.
const (
	ln2High         = 0.693145751953125
	ln2Low          = 1.428606765330187e-06
	highestExponent = 89
	lowestExponent  = -104.5
	lowestBeside1   = -80
	bias            = 127
)

func (s isa) exponential() exponential {
	return exponential{s, s.constant(math.Log2E), s.constant(ln2High), s.constant(ln2Low)}
}

// polynomial is (e^r - 1 - r)/r² for |r| ≤ ln2/2, highest power first: the
// coefficients of expf in S. Moshier's Cephes library.
var polynomial = []float32{1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1}

// reduced is n = round(x log2 e) and e^r - 1 for r = x - n ln 2, taken in two
// parts.
func (e exponential) reduced(x reg.VecVirtual) (n, sum reg.VecVirtual) {
	n, square := e.vector(), e.vector()
	sum = e.constant(polynomial[0])
	if e.wide() {
		VMULPS(e.log2e, x, n)
		VRNDSCALEPS(U8(8), n, n)
	} else {
		VMULPS(e.log2e, x, n)
		VROUNDPS(U8(8), n, n)
	}
	VFNMADD231PS(e.ln2High, n, x)
	VFNMADD231PS(e.ln2Low, n, x)
	for _, c := range polynomial[1:] {
		VFMADD213PS(e.constant(c), x, sum)
	}
	VMULPS(x, x, square)
	VFMADD213PS(x, square, sum)
	return n, sum
}

// of replaces x by e^x = 2^n e^r. NaN stays NaN, infinities and results that
// are denormal are right.
func (e exponential) of(x reg.VecVirtual) {
	VMINPS(x, e.constant(highestExponent), x)
	VMAXPS(x, e.constant(lowestExponent), x)
	n, sum := e.reduced(x)
	VADDPS(e.constant(1), sum, sum)
	if e.wide() {
		VSCALEFPS(n, sum, x)
		return
	}
	// 2^n in two factors, either of which is a normal number.
	half, power := e.vector(), e.vector()
	VCVTPS2DQ(n, n)
	VPSRAD(U8(1), n, half)
	VPSUBD(half, n, n)
	for _, part := range []reg.VecVirtual{half, n} {
		VPADDD(e.exponentBias(), part, power)
		VPSLLD(U8(23), power, power)
		VMULPS(power, sum, sum)
	}
	VMOVAPS(sum, x)
}

func (e exponential) exponentBias() reg.VecVirtual {
	v := e.vector()
	VPBROADCASTD(constant(bias), v)
	return v
}

func (s isa) exponentials() {
	s.rowMax()
	s.sumExp()
	s.softmax()
	s.shortSoftmaxes()
	s.gate()
	s.expm1()
}

func (s isa) rowMax() {
	s.function("rowMax", "(x *float32, n int) float32", "is the greatest of n numbers, a multiple of 16; NaN do not count.")
	x, n := argument("x"), argument("n")
	var most []reg.VecVirtual
	for range rowBytes / s.bytes {
		most = append(most, s.constant(float32(math.Inf(-1))))
	}
	Label("loop")
	for i, m := range most {
		v := s.vector()
		VMOVUPS(Mem{Base: x, Disp: i * s.bytes}, v)
		VMAXPS(m, v, m)
	}
	ADDQ(U32(rowBytes), x)
	SUBQ(U32(16), n)
	JNZ(LabelRef("loop"))
	for _, m := range most[1:] {
		VMAXPS(m, most[0], most[0])
	}
	Store(s.reduce(most[0], greatest).AsX(), ReturnIndex(0))
	done()
}

func (s isa) sumExp() {
	s.function("sumExp", "(x *float32, n int, shift float32) float32", "is Σ exp(x[i] - shift) over n numbers, a multiple of 16.")
	x, n, shift := argument("x"), argument("n"), s.parameter("shift")
	exp := s.exponential()
	sums := s.vectors(rowBytes / s.bytes)
	for _, sum := range sums {
		s.zero(sum)
	}
	Label("loop")
	for i, sum := range sums {
		v := s.vector()
		VMOVUPS(Mem{Base: x, Disp: i * s.bytes}, v)
		VSUBPS(shift, v, v)
		exp.of(v)
		VADDPS(v, sum, sum)
	}
	ADDQ(U32(rowBytes), x)
	SUBQ(U32(16), n)
	JNZ(LabelRef("loop"))
	for _, sum := range sums[1:] {
		VADDPS(sum, sums[0], sums[0])
	}
	Store(s.reduce(sums[0], add).AsX(), ReturnIndex(0))
	done()
}

func (s isa) softmax() {
	s.function("softmax", "(x *float32, n int, scale float32)",
		"computes x[i] = scale·exp(x[i]) / Σ_j exp(x[j]) for n ≥ 1 numbers.")
	base, n := argument("x"), argument("n")
	exp := s.exponential()
	each := func(label string, body func(p partial, m Mem)) {
		x, left := GP64(), GP64()
		MOVQ(base, x)
		MOVQ(n, left)
		Label(label)
		body(s.first(left), Mem{Base: x})
		ADDQ(U32(s.bytes), x)
		SUBQ(U32(s.lanes()), left)
		JG(LabelRef(label))
	}
	most := s.constant(float32(math.Inf(-1)))
	each("most", func(p partial, m Mem) {
		v := s.constant(float32(math.Inf(-1)))
		p.choose(p.load(m), v)
		VMAXPS(most, v, most)
	})
	VBROADCASTSS(s.reduce(most, greatest).AsX(), most)
	sum := s.vector()
	s.zero(sum)
	each("exp", func(p partial, m Mem) {
		v, kept := p.load(m), s.vector()
		VSUBPS(most, v, v)
		exp.of(v)
		p.store(v, m)
		s.zero(kept)
		p.choose(v, kept)
		VADDPS(kept, sum, sum)
	})
	VBROADCASTSS(s.reduce(sum, add).AsX(), sum)
	factor := s.parameter("scale")
	VDIVPS(sum, factor, factor)
	each("scale", func(p partial, m Mem) {
		v := p.load(m)
		VMULPS(factor, v, v)
		p.store(v, m)
	})
	done()
}

func (s isa) shortSoftmaxes() {
	s.function("shortSoftmaxes", "(to, x *float32, offsets *int64, rings int, scaled bool)",
		"computes to[e] = s·exp(x[e]) / Σ_j exp(x[j]), the sum over the ring of e, with s",
		"the number of its terms or, not scaled, 1. Ring i is [offsets[i], offsets[i+1]),",
		fmt.Sprintf("counted from offsets[0], and has at most %d terms; whole registers are read", s.lanes()),
		"and written.")
	to, x, offsets, rings := argument("to"), argument("x"), argument("offsets"), argument("rings")
	scaled := GP64()
	Load(Param("scaled"), scaled.As8())
	MOVBQZX(scaled.As8(), scaled)
	exp := s.exponential()
	Label("ring")
	n, terms := GP64(), GP64()
	MOVQ(Mem{Base: offsets, Disp: 8}, n)
	SUBQ(Mem{Base: offsets}, n)
	JZ(LabelRef("next"))
	p := s.first(n)
	given, v := s.vector(), s.constant(float32(math.Inf(-1)))
	VMOVUPS(Mem{Base: x}, given)
	p.choose(given, v)
	// Where there is no number, exp(-∞) = 0 is added.
	most, sum := s.vector(), s.vector()
	VBROADCASTSS(s.reduce(v, greatest).AsX(), most)
	VSUBPS(most, v, v)
	exp.of(v)
	VBROADCASTSS(s.reduce(v, add).AsX(), sum)
	MOVQ(U32(1), terms)
	TESTQ(scaled, scaled)
	CMOVQNE(n, terms)
	factor := s.vector()
	VXORPS(factor.AsX(), factor.AsX(), factor.AsX())
	VCVTSI2SSQ(terms, factor.AsX(), factor.AsX())
	VBROADCASTSS(factor.AsX(), factor)
	VDIVPS(sum, factor, factor)
	VMULPS(factor, v, v)
	VMOVUPS(v, Mem{Base: to})
	LEAQ(Mem{Base: to, Index: n, Scale: 4}, to)
	LEAQ(Mem{Base: x, Index: n, Scale: 4}, x)
	Label("next")
	ADDQ(U32(8), offsets)
	DECQ(rings)
	JNZ(LabelRef("ring"))
	done()
}

func (s isa) gate() {
	s.function("gate", "(re, im, a, b *float32, n int)",
		"computes z·σ(a|z| + b) with z = re + i·im and σ(x) = 1/(1 + e^-x) for n",
		"numbers, a multiple of 16. The greater of |re| and |im| is taken out of the",
		"root, so that no square overflows.")
	re, im, a, b, n := argument("re"), argument("im"), argument("a"), argument("b"), argument("n")
	exp := s.exponential()
	magnitude := s.broadcast(constant(0x7fffffff))
	Label("loop")
	x, y, most, least := s.vector(), s.vector(), s.vector(), s.vector()
	VMOVUPS(Mem{Base: re}, x)
	VMOVUPS(Mem{Base: im}, y)
	VANDPS(magnitude, x, most)
	VANDPS(magnitude, y, least)
	swap := s.vector()
	VMINPS(most, least, swap)
	VMAXPS(least, most, most) // of |re| or |im| NaN, one of the two is
	// most is 0 only where both are: then 0/tiny = 0.
	divisor := s.constant(math.SmallestNonzeroFloat32)
	VMAXPS(most, divisor, divisor)
	VDIVPS(divisor, swap, swap)
	length := s.constant(1)
	VFMADD231PS(swap, swap, length)
	VSQRTPS(length, length)
	VMULPS(most, length, length)
	at := s.vector()
	VMOVUPS(Mem{Base: b}, at)
	VFMADD231PS(Mem{Base: a}, length, at)
	zero, one := s.vector(), s.constant(1)
	s.zero(zero)
	VSUBPS(at, zero, at)
	exp.of(at)
	VADDPS(one, at, at)
	VDIVPS(at, one, at)
	VMULPS(at, x, x)
	VMULPS(at, y, y)
	VMOVUPS(x, Mem{Base: re})
	VMOVUPS(y, Mem{Base: im})
	for _, p := range []reg.GPVirtual{re, im, a, b} {
		ADDQ(U32(s.bytes), p)
	}
	SUBQ(U32(s.lanes()), n)
	JNZ(LabelRef("loop"))
	done()
}

func (s isa) expm1() {
	s.function("expm1", "(x *float32, n int)", "replaces x[i] ≤ 0 by exp(x[i]) - 1 among n numbers, a multiple of 16.")
	x, n := argument("x"), argument("n")
	exp := s.exponential()
	zero := s.vector()
	s.zero(zero)
	Label("loop")
	v, positive := s.vector(), s.vector()
	VMOVUPS(Mem{Base: x}, v)
	// max(x, 0) + expm1(min(x, 0)), of which one is 0. e^-80 is 0 beside 1.
	VMAXPS(v, zero, positive)
	VMINPS(v, zero, v)
	VMAXPS(v, s.constant(lowestBeside1), v)
	power, sum := exp.reduced(v)
	VCVTPS2DQ(power, power)
	VPADDD(exp.exponentBias(), power, power)
	VPSLLD(U8(23), power, power)
	// 2^n (e^r - 1) + (2^n - 1)
	less := s.vector()
	VSUBPS(s.constant(1), power, less)
	VFMADD213PS(less, power, sum)
	VADDPS(positive, sum, sum)
	VMOVUPS(sum, Mem{Base: x})
	ADDQ(U32(s.bytes), x)
	SUBQ(U32(s.lanes()), n)
	JNZ(LabelRef("loop"))
	done()
}
