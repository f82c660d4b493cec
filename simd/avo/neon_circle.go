package main

import "math"

// neonCircle is the registers of a non-linearity on samples.
type neonCircle struct {
	*neon
	in []vec
}

// circleConstants is the coefficients of Poly, c2, c1, c0, and 1/2; behind them
// those of its derivative.
var circleConstants = [8]uint32{
	math.Float32bits(c2), math.Float32bits(c1), math.Float32bits(c0), math.Float32bits(0.5),
	math.Float32bits(-3 * c2), math.Float32bits(-c1), math.Float32bits(2 * c2),
}

// circle writes a non-linearity for 8 channels at a time, or where there are
// more than 5 components for 4.
func (n *neon) circle(order int, prepare func(*neonCircle) func(f vec, i int)) {
	x, step, samples := n.argument("x"), n.argument("rowStep"), n.argument("samples")
	parts, at, left := n.gp(), n.gp(), n.gp()
	components, registers := 2*order+1, 2
	if order > 2 {
		registers = 1
	}
	n.op("MOVD $%d, %v", rowLanes/(4*registers), parts)
	c := &neonCircle{n, n.vecs(components, registers)}
	n.label("part")
	n.copy(x, at)
	for _, v := range c.in {
		n.load(v, at, 0)
		n.op("ADD %v, %v", step, at)
	}
	f := prepare(c)
	out, sample, number := n.vecs(components, registers), n.vec(registers), n.vec(1)
	number.single = true
	for _, v := range out {
		n.zero(v)
	}
	basis := n.pointers(components)
	n.op("MOVD %s, %v", n.parameters["basis"], basis[0])
	n.op("MOVD %s, %v", n.parameters["sampleStep"], left)
	for k, p := range basis[1:] {
		n.op("ADD %v, %v, %v", left, basis[k], p)
	}
	n.copy(samples, left)
	n.label("sample")
	for k, v := range c.in {
		n.load(number, basis[k], 0)
		if k == 0 {
			n.by(fmulBy, sample, v, number.lowest())
		} else {
			n.by(fmlaBy, sample, v, number.lowest())
		}
	}
	for i := range registers {
		n.scope(func() { f(sample.part(i), i) })
	}
	for k, v := range out {
		n.loadNext(number, basis[k])
		n.by(fmlaBy, v, sample, number.lowest())
	}
	n.repeat("sample", left, 1)
	n.copy(x, at)
	for _, v := range out {
		n.store(v, at, 0)
		n.op("ADD %v, %v", step, at)
	}
	n.advance(16*registers, x)
	n.repeat("part", parts, 1)
}

// relu prepares f ↦ max(f, 0) for register i of the channels.
func (c *neonCircle) relu() func(f vec, i int) {
	zero := c.vec(1)
	c.zero(zero)
	return func(f vec, _ int) { c.do(fmax, f, f, zero) }
}

// polynomial prepares f ↦ s P(f √N/s) / √N.
func (c *neonCircle) polynomial() func(f vec, i int) {
	constants, inverse, half := c.vec(1), c.like(c.in[0]), c.like(c.in[0])
	c.scope(func() { c.load(constants, c.address("circle"), 0) })
	number := func(lane int) element { return element{constants.first, lane} }
	c.scope(func() {
		s2, bound, scale := c.like(inverse), c.broadcast("bound"), c.broadcast("scale")
		c.do(fmul, s2, c.in[0], c.in[0])
		for _, v := range c.in[1:] {
			c.do(fmla, s2, v, v)
		}
		// f/s/U·√N = f·inverse, and U s/√N/2 = half.
		c.of(fsqrt, half, s2)
		c.do(fmul, half, half, bound)
		c.do(fdiv, inverse, scale, half)
		c.do(fdiv, half, half, scale)
		c.by(fmulBy, half, half, number(3))
		// Where s = 0, 1/s is infinite and the result is 0.
		zero := s2
		c.compare(fcmeq0, zero, s2)
		for _, v := range append([]vec{inverse}, c.in...) {
			c.clear(v, zero)
		}
	})
	return func(f vec, i int) {
		// s P(f)/√N = (f + U s/√N (c0 + c1 v + c2 v²))/2
		v, sum, next := c.vec(1), c.vec(1), c.vec(1)
		c.do(fmul, v, inverse.part(i), f)
		c.do(fmul, v, v, v)
		c.dup(sum, number(1))
		c.by(fmlaBy, sum, v, number(0))
		c.dup(next, number(2))
		c.do(fmla, next, v, sum)
		c.do(fmul, next, next, half.part(i))
		c.by(fmlaBy, next, f, number(3))
		c.set(f, next)
	}
}
