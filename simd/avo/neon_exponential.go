package main

import "math"

// Places among the constants of e^x; the coefficients of the polynomial are
// the first.
const (
	atLog2e = 6 + iota
	atLn2High
	atLn2Low
	atOne
	atHighest
	atLowest
	atLowestBeside1
	atBias
	atTiny
)

var exponentialConstants = func() (words [16]uint32) {
	for i, c := range polynomial {
		words[i] = math.Float32bits(c)
	}
	for i, x := range map[int]float32{atLog2e: math.Log2E, atLn2High: ln2High, atLn2Low: ln2Low, atOne: 1,
		atHighest: highestExponent, atLowest: lowestExponent, atLowestBeside1: lowestBeside1, atTiny: math.SmallestNonzeroFloat32} {
		words[i] = math.Float32bits(x)
	}
	words[atBias] = bias
	return words
}()

// neonExponential holds the constants of e^x in four registers.
type neonExponential struct {
	*neon
	constants vec
}

func (n *neon) exponential() neonExponential {
	e := neonExponential{n, n.vec(4)}
	n.scope(func() { n.load(e.constants, n.address("exponential"), 0) })
	return e
}

// constant is the place of a constant.
func (e neonExponential) constant(i int) element {
	return element{e.constants.number(i / 4), i % 4}
}

// reduced replaces x by e^r - 1 for r = x - n ln 2, taken in two parts, and is
// n = round(x log2 e).
func (e neonExponential) reduced(x vec) vec {
	count := e.like(x)
	e.by(fmulBy, count, x, e.constant(atLog2e))
	e.of(frintn, count, count)
	e.by(fmlsBy, x, count, e.constant(atLn2High))
	e.by(fmlsBy, x, count, e.constant(atLn2Low))
	e.scope(func() {
		sum, next := e.like(x), e.like(x)
		e.dup(sum, e.constant(1))
		e.by(fmlaBy, sum, x, e.constant(0))
		for i := range polynomial[2:] {
			e.dup(next, e.constant(2+i))
			e.do(fmla, next, x, sum)
			sum, next = next, sum
		}
		square := next
		e.do(fmul, square, x, x)
		e.do(fmla, x, square, sum)
	})
	return count
}

// power replaces the integers x by 2^x.
func (e neonExponential) power(x, bias vec) {
	e.do(add4, x, x, bias)
	for i := range x.registers {
		e.op("VSHL $23, V%[1]d.S4, V%[1]d.S4", x.number(i))
	}
}

// replace replaces x by e^x = 2^n e^r, with 2^n in two factors, either of which
// is a normal number. NaN stays NaN, infinities and results that are denormal
// are right.
func (e neonExponential) replace(x vec) {
	e.scope(func() {
		limit := e.dupped(e.constant(atHighest))
		e.do(fmin, x, x, limit)
		e.dup(limit, e.constant(atLowest))
		e.do(fmax, x, x, limit)
		count, half := e.reduced(x), e.like(x)
		e.dup(limit, e.constant(atOne))
		e.do(fadd, x, x, limit)
		e.of(fcvtns, count, count)
		for i := range x.registers {
			d, a := half.number(i), count.number(i)
			e.word(0x4f3f0400|uint32(a<<5|d), "sshr v%d.4s, v%d.4s, #1", d, a)
		}
		e.do(sub4, count, count, half)
		e.dup(limit, e.constant(atBias))
		for _, part := range []vec{half, count} {
			e.power(part, limit)
			e.do(fmul, x, x, part)
		}
	})
}

func (n *neon) rowMax() {
	x, left := n.argument("x"), n.argument("n")
	most, v, mask := n.vec(4), n.vec(4), n.vec(4)
	n.minusInfinity(most)
	n.label("loop")
	n.loadNext(v, x)
	n.do(fcmgt, mask, v, most) // never where v is NaN
	n.choose(most, v, mask)
	n.repeat("loop", left, rowLanes)
	half := vec{first: most.first, registers: 2}
	n.do(fmax, half, half, vec{first: most.number(2), registers: 2})
	n.op("FMOVS F%d, %s", n.greatest(half).first, n.parameters["ret"])
}

func (n *neon) sumExp()       { n.sumOfExp(func(_ vec, x gp) { n.advance(32, x) }) }
func (n *neon) exponentiate() { n.sumOfExp(n.storeNext) }

// sumOfExp is Σ exp(x[i] - shift), with what is done to move on.
func (n *neon) sumOfExp(next func(v vec, x gp)) {
	x, left, shift := n.argument("x"), n.argument("n"), n.broadcast("shift")
	e, sum, v := n.exponential(), n.vec(2), n.vec(2)
	n.zero(sum)
	n.label("loop")
	n.load(v, x, 0)
	n.do(fsub, v, v, shift)
	e.replace(v)
	n.do(fadd, sum, sum, v)
	next(v, x)
	n.repeat("loop", left, 8)
	n.op("FMOVS F%d, %s", n.total(sum).first, n.parameters["ret"])
}

func (n *neon) softmax() {
	base, count := n.argument("x"), n.argument("n")
	x, left := n.gp(), n.gp()
	each := func(label string, body func(v vec)) {
		n.copy(base, x)
		n.copy(count, left)
		n.runs(label, left, func(kind vec) {
			v := n.like(kind)
			n.load(v, x, 0)
			if v.single {
				n.dup(v, v.lowest())
			}
			body(v)
		})
	}
	e, sums := n.exponential(), n.vec(2)
	n.minusInfinity(sums)
	each("most", func(v vec) {
		some := vec{first: sums.first, registers: v.registers}
		n.do(fmax, some, some, v)
		n.advance(4*v.numbers(), x)
	})
	most := n.greatest(sums)
	n.zero(sums)
	each("exp", func(v vec) {
		n.do(fsub, v, v, most)
		e.replace(v)
		n.storeNext(v, x)
		if v.single {
			n.op("FMOVS F%[1]d, F%[1]d", v.first) // clears the other lanes
		}
		some := vec{first: sums.first, registers: v.registers}
		n.do(fadd, some, some, v)
	})
	sum, factor := n.total(sums), n.broadcast("scale")
	n.do(fdiv, factor, factor, sum)
	each("scale", func(v vec) {
		n.do(fmul, v, v, factor)
		n.storeNext(v, x)
	})
}

func (n *neon) shortSoftmaxes() {
	to, x, offsets, rings := n.argument("to"), n.argument("x"), n.argument("offsets"), n.argument("rings")
	scaled, terms, next := n.gp(), n.gp(), n.gp()
	n.op("MOVBU %s, %v", n.parameters["scaled"], scaled)
	e, iota, factor, none := n.exponential(), n.vec(2), n.vec(1), n.vec(1)
	n.minusInfinity(none)
	n.scope(func() { n.load(iota, n.address("iota"), 0) })
	n.label("ring")
	n.op("LDP (%v), (%v, %v)", offsets, terms, next)
	n.op("SUBS %v, %v, %v", terms, next, terms)
	n.op("BEQ next")
	given, v, inside, bound := n.vec(2), n.vec(2), n.vec(2), n.vec(1)
	n.load(given, x, 0)
	n.op("VDUP %v, V%d.S4", terms, bound.first)
	n.do(cmgt, inside, bound, iota)
	n.set(v, none)
	n.choose(v, given, inside)
	// Where there is no number, exp(-∞) = 0 is added.
	n.do(fsub, v, v, n.greatest(v))
	e.replace(v)
	n.op("MOVD $1, %v", next)
	n.op("CMP $0, %v", scaled)
	n.op("CSEL NE, %v, %v, %v", terms, next, next)
	n.op("SCVTFS %v, F%d", next, factor.first)
	n.dup(factor, factor.lowest())
	n.do(fdiv, factor, factor, n.total(v))
	n.do(fmul, v, v, factor)
	n.store(v, to, 0)
	n.op("ADD %v<<2, %v", terms, to)
	n.op("ADD %v<<2, %v", terms, x)
	n.label("next")
	n.advance(8, offsets)
	n.repeat("ring", rings, 1)
}

func (n *neon) gate() {
	re, im, a, b, left := n.argument("re"), n.argument("im"), n.argument("a"), n.argument("b"), n.argument("n")
	e := n.exponential()
	unit, divisor := n.dupped(e.constant(atOne)), n.dupped(e.constant(atTiny))
	n.label("loop")
	x, y, most, least, ratio, at := n.vec(2), n.vec(2), n.vec(2), n.vec(2), n.vec(2), n.vec(2)
	n.load(x, re, 0)
	n.load(y, im, 0)
	n.of(fabs, most, x)
	n.of(fabs, least, y)
	n.do(fmin, ratio, most, least)
	n.do(fmax, most, most, least)
	// most is 0 only where both are: then 0/tiny = 0.
	n.do(fmax, at, most, divisor)
	n.do(fdiv, ratio, ratio, at)
	length := least
	for i := range length.registers {
		n.dup(length.part(i), e.constant(atOne))
	}
	n.do(fmla, length, ratio, ratio)
	n.of(fsqrt, length, length)
	n.do(fmul, length, length, most)
	n.loadNext(at, b)
	n.loadNext(most, a)
	n.do(fmla, at, most, length)
	n.of(fneg, at, at)
	e.replace(at)
	n.do(fadd, at, at, unit)
	n.do(fdiv, at, unit, at)
	n.do(fmul, x, x, at)
	n.do(fmul, y, y, at)
	n.storeNext(x, re)
	n.storeNext(y, im)
	n.repeat("loop", left, 8)
}

func (n *neon) expm1() {
	x, left, e := n.argument("x"), n.argument("n"), n.exponential()
	zero, floor, bias, unit := n.vec(1), n.dupped(e.constant(atLowestBeside1)), n.dupped(e.constant(atBias)), n.dupped(e.constant(atOne))
	v, positive, less := n.vec(2), n.vec(2), n.vec(2)
	n.zero(zero)
	n.label("loop")
	n.load(v, x, 0)
	// max(x, 0) + expm1(min(x, 0)), of which one is 0. e^-80 is 0 beside 1.
	n.do(fmax, positive, v, zero)
	n.do(fmin, v, v, zero)
	n.do(fmax, v, v, floor)
	power := e.reduced(v)
	n.of(fcvtns, power, power)
	e.power(power, bias)
	// 2^n (e^r - 1) + (2^n - 1)
	n.do(fsub, less, power, unit)
	n.do(fmla, less, power, v)
	n.do(fadd, v, less, positive)
	n.storeNext(v, x)
	n.repeat("loop", left, 8)
}
