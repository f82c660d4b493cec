package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// elementwise writes the loops over whole registers.
func (s isa) elementwise() {
	s.function("add", "(c, a *float32, n int)", "computes c[i] += a[i] for n numbers, a multiple of 16.")
	c, a, n := argument("c"), argument("a"), argument("n")
	Label("loop")
	for at := 0; at < rowBytes; at += s.bytes {
		v := s.vector()
		VMOVUPS(Mem{Base: c, Disp: at}, v)
		VADDPS(Mem{Base: a, Disp: at}, v, v)
		VMOVUPS(v, Mem{Base: c, Disp: at})
	}
	ADDQ(U32(rowBytes), c)
	ADDQ(U32(rowBytes), a)
	SUBQ(U32(16), n)
	JNZ(LabelRef("loop"))
	done()

	s.function("shift", "(x *float32, n int, first, second float32)",
		"computes x[i] = (x[i] - first) - second for n numbers, a multiple of 16.")
	x, count := argument("x"), argument("n")
	first, second := s.parameter("first"), s.parameter("second")
	Label("loop")
	for at := 0; at < rowBytes; at += s.bytes {
		v := s.vector()
		VMOVUPS(Mem{Base: x, Disp: at}, v)
		VSUBPS(first, v, v)
		VSUBPS(second, v, v)
		VMOVUPS(v, Mem{Base: x, Disp: at})
	}
	ADDQ(U32(rowBytes), x)
	SUBQ(U32(16), count)
	JNZ(LabelRef("loop"))
	done()

	s.function("rectify", "(x *float32, n int)", "computes x[i] = max(x[i], 0) for n numbers, a multiple of 16.")
	x, count = argument("x"), argument("n")
	zero := s.vector()
	s.zero(zero)
	Label("loop")
	for at := 0; at < rowBytes; at += s.bytes {
		v := s.vector()
		VMOVUPS(Mem{Base: x, Disp: at}, v)
		VMAXPS(v, zero, v) // of zero and NaN, NaN
		VMOVUPS(v, Mem{Base: x, Disp: at})
	}
	ADDQ(U32(rowBytes), x)
	SUBQ(U32(16), count)
	JNZ(LabelRef("loop"))
	done()
}
