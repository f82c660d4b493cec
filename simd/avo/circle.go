package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// circles writes the non-linearities on the samples of a channel's function.
func (s isa) circles() {
	for order := 1; order <= s.orders; order++ {
		s.circle(order, "regular", []string{
			"replaces x by Bᵀ·max(B·x, 0) for 16 channels of a vertex:",
			fmt.Sprintf("%d components, rowStep bytes apart, and the samples B of Circle.Basis,", 2*order+1),
			"sampleStep bytes for each component. bound and scale are not used.",
		}, (*circle).relu)
		s.circle(order, "poly", []string{
			"replaces x by Bᵀ·s P(B·x/s) for 16 channels of a vertex, see Circle, with",
			fmt.Sprintf("%d components and the arguments of regular; bound is U, scale √samples.", 2*order+1),
		}, (*circle).polynomial)
	}
}

// The polynomial of Poly, see Circle.
const c0, c1, c2 = 0.1171875, 1.640625, -0.8203125

type circle struct {
	isa
	order int
	in    []reg.VecVirtual
}

func (s isa) circle(order int, name string, doc []string, prepare func(*circle) func(reg.VecVirtual)) {
	s.function(fmt.Sprintf("%s%d", name, order), "(x *float32, rowStep int, basis *float32, sampleStep, samples int, bound, scale float32)", doc...)
	x, step := argument("x"), argument("rowStep")
	parts := GP64()
	MOVQ(U32(rowBytes/s.bytes), parts)
	q, q3, q5, q7 := argument("sampleStep"), GP64(), GP64(), GP64()
	LEAQ(Mem{Base: q, Index: q, Scale: 2}, q3)
	LEAQ(Mem{Base: q, Index: q, Scale: 4}, q5)
	LEAQ(Mem{Base: q3, Index: q, Scale: 4}, q7)
	place := []Mem{{}, {Index: q, Scale: 1}, {Index: q, Scale: 2}, {Index: q3, Scale: 1}, {Index: q, Scale: 4},
		{Index: q5, Scale: 1}, {Index: q3, Scale: 2}, {Index: q7, Scale: 1}, {Index: q, Scale: 8}}

	Label("part")
	components := 2*order + 1
	c := &circle{isa: s, order: order, in: s.vectors(components)}
	at := GP64()
	MOVQ(x, at)
	for _, v := range c.in {
		VMOVUPS(Mem{Base: at}, v)
		ADDQ(step, at)
	}
	f := prepare(c)
	out := s.vectors(components)
	for _, v := range out {
		s.zero(v)
	}
	basis, left := argument("basis"), argument("samples")
	Label("sample")
	sample := s.vector()
	for k, v := range c.in {
		m := place[k]
		m.Base = basis
		b := s.broadcast(m)
		if k == 0 {
			VMULPS(b, v, sample)
		} else {
			VFMADD231PS(b, v, sample)
		}
	}
	f(sample)
	for k, v := range out {
		m := place[k]
		m.Base = basis
		b := s.broadcast(m)
		VFMADD231PS(b, sample, v)
	}
	ADDQ(U32(4), basis)
	DECQ(left)
	JNZ(LabelRef("sample"))
	MOVQ(x, at)
	for _, v := range out {
		VMOVUPS(v, Mem{Base: at})
		ADDQ(step, at)
	}
	ADDQ(U32(s.bytes), x)
	DECQ(parts)
	JNZ(LabelRef("part"))
	done()
}

// relu prepares f ↦ max(f, 0).
func (c *circle) relu() func(reg.VecVirtual) {
	zero := c.vector()
	c.zero(zero)
	return func(f reg.VecVirtual) { VMAXPS(f, zero, f) } // of zero and NaN, NaN
}

// polynomial prepares f ↦ s P(f √N/s) / √N.
func (c *circle) polynomial() func(reg.VecVirtual) {
	s2 := c.vector()
	VMULPS(c.in[0], c.in[0], s2)
	for _, v := range c.in[1:] {
		VFMADD231PS(v, v, s2)
	}
	// f/s/U·√N = f·inverse, and U s/√N/2 = half.
	root, inverse, half := c.vector(), c.vector(), c.vector()
	VSQRTPS(s2, root)
	bound := c.parameter("bound")
	VMULPS(bound, root, root)
	scale := c.parameter("scale")
	VDIVPS(root, scale, inverse)
	VDIVPS(scale, root, half)
	VMULPS(c.constant(0.5), half, half)
	// Where s = 0, 1/s is infinite and the result is 0.
	for _, v := range append([]reg.VecVirtual{inverse}, c.in...) {
		c.clearWhereZero(v, s2)
	}
	return func(f reg.VecVirtual) {
		// s P(f)/√N = (f + U s/√N (c0 + c1 v + c2 v²))/2
		v, sum := c.vector(), c.constant(c2)
		VMULPS(inverse, f, v)
		VMULPS(v, v, v)
		VFMADD213PS(c.constant(c1), v, sum)
		VFMADD213PS(c.constant(c0), v, sum)
		VMULPS(half, sum, sum)
		VFMADD132PS(c.constant(0.5), sum, f)
	}
}

// clearWhereZero clears v where s = 0.
func (c *circle) clearWhereZero(v, s reg.VecVirtual) {
	zero := c.vector()
	c.zero(zero)
	const notEqual = 4 // or NaN
	if c.wide() {
		k := K()
		VCMPPS(U8(notEqual), zero, s, k)
		VMOVAPS_Z(v, k, v)
	} else {
		mask := c.vector()
		VCMPPS(U8(notEqual), zero, s, mask)
		VANDPS(mask, v, v)
	}
}
