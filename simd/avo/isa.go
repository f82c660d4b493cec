package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is an instruction set and the shape of its kernels.
type isa struct {
	name   string // the suffix of its functions
	bytes  int    // of a register
	rows   int    // of the large tile of a product
	strips int    // of the large tile: strips side by side
	sets   int    // radial sets that an edge kernel treats at once
	orders int    // the highest whose components and their transforms fit the registers
}

var (
	avx512 = isa{name: "AVX512", bytes: 64, rows: 12, strips: 2, sets: 2, orders: 4}
	avx2   = isa{name: "AVX2", bytes: 32, rows: 6, strips: 1, sets: 1, orders: 2}
	// The registers of neon are pairs: see there.
	neonPairs = isa{name: "NEON", bytes: 32, rows: 6, strips: 1, sets: 1, orders: 4}
)

func (s isa) wide() bool { return s.bytes == 64 }

// lanes is the number of float32 of a register.
func (s isa) lanes() int { return s.bytes / 4 }

// vector is a new register.
func (s isa) vector() reg.VecVirtual {
	if s.wide() {
		return ZMM()
	}
	return YMM()
}

func (s isa) vectors(n int) (v []reg.VecVirtual) {
	for range n {
		v = append(v, s.vector())
	}
	return v
}

func (s isa) zero(v reg.VecVirtual) { VXORPS(v, v, v) }

// function begins a function with the formula it computes.
func (s isa) function(name, signature string, doc ...string) {
	TEXT(name+s.name, NOSPLIT, "func"+signature)
	doc[0] = name + s.name + " " + doc[0]
	Doc(doc...)
	Pragma("noescape")
}

// argument loads a parameter into a register.
func argument(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

// broadcast is a register that holds one number in every lane.
func (s isa) broadcast(m Mem) reg.VecVirtual {
	v := s.vector()
	VBROADCASTSS(m, v)
	return v
}

// parameter is a broadcast of a float32 parameter.
func (s isa) parameter(name string) reg.VecVirtual { return s.broadcast(parameterAddress(name)) }

func parameterAddress(name string) Mem {
	basic, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return basic.Addr
}

// constant is a broadcast of a constant.
func (s isa) constant(x float32) reg.VecVirtual { return s.broadcast(constant(math.Float32bits(x))) }

var constants = map[uint32]Mem{}

func constant(bits uint32) Mem {
	if m, known := constants[bits]; known {
		return m
	}
	constants[bits] = ConstData(fmt.Sprintf("number%08x", bits), U32(bits))
	return constants[bits]
}

// done ends a function.
func done() {
	VZEROUPPER()
	RET()
}

// partial is the first lanes of a register, as many as there are numbers left.
type partial struct {
	isa
	mask reg.Register
}

// first is the lanes below left, a count that may exceed them.
func (s isa) first(left reg.GPVirtual) partial {
	p := partial{isa: s}
	if s.wide() {
		count, bits, full := GP64(), GP64(), GP64()
		MOVQ(left, count)
		MOVQ(U32(16), full)
		CMPQ(count, full)
		CMOVQGT(full, count)
		MOVQ(U32(0xffff), bits)
		BZHIQ(count, bits, bits)
		k := K()
		KMOVW(bits.As32(), k)
		p.mask = k
		return p
	}
	count, mask := YMM(), YMM()
	VMOVD(left.As32(), count.AsX())
	VPBROADCASTD(count.AsX(), count)
	VPCMPGTD(s.iota(), count, mask)
	p.mask = mask
	return p
}

// iota is the numbers 0 … 7 in memory.
func (s isa) iota() Mem {
	if iota8 == nil {
		m := GLOBL("iota8", RODATA|NOPTR)
		for i := range 8 {
			DATA(4*i, U32(i))
		}
		iota8 = &m
	}
	return *iota8
}

var iota8 *Mem

// load is the numbers in memory, and zero in the other lanes.
func (p partial) load(m Mem) reg.VecVirtual {
	v := p.vector()
	if p.wide() {
		VMOVUPS_Z(m, p.mask, v)
	} else {
		VMASKMOVPS(m, p.mask, v)
	}
	return v
}

func (p partial) store(v reg.VecVirtual, m Mem) {
	if p.wide() {
		VMOVUPS(v, p.mask, m)
	} else {
		VMASKMOVPS(v, p.mask, m)
	}
}

// choose replaces the lanes of other by those of v.
func (p partial) choose(v, other reg.VecVirtual) {
	if p.wide() {
		VMOVAPS(v, p.mask, other)
	} else {
		VBLENDVPS(p.mask, v, other, other)
	}
}

// reduce combines the lanes of v into the lowest of the result, pairing lane i
// with i+8, i+4, i+2, i+1.
func (s isa) reduce(v reg.VecVirtual, combine func(a, b, to Op)) reg.VecVirtual {
	y := YMM()
	if s.wide() {
		VEXTRACTF64X4(U8(1), v, y)
		combine(y, v.AsY(), y)
	} else {
		VMOVAPS(v, y)
	}
	x, other := y.AsX(), XMM()
	VEXTRACTF128(U8(1), y, other)
	combine(other, x, x)
	VMOVHLPS(x, x, other)
	combine(other, x, x)
	VMOVSHDUP(x, other)
	combine(other, x, x)
	return y
}

func add(a, b, to Op) { VADDPS(a, b, to) }

// greatest keeps b where a is NaN.
func greatest(a, b, to Op) { VMAXPS(b, a, to) }
