package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// lanes is the number of float64 of a register.
func (d *doubles) lanes() int { return d.bytes / 8 }

// operation is an instruction with a constant of all lanes as its first
// operand: AVX-512 broadcasts it, AVX2 needs as many.
type operation struct {
	narrow, broadcast func(ops ...Op)
}

var (
	plus      = operation{VADDPD, VADDPD_BCST}
	minus     = operation{VSUBPD, VSUBPD_BCST}
	mul       = operation{VMULPD, VMULPD_BCST}
	fmadd213  = operation{VFMADD213PD, VFMADD213PD_BCST}
	fnmadd213 = operation{VFNMADD213PD, VFNMADD213PD_BCST}
	fmadd231  = operation{VFMADD231PD, VFMADD231PD_BCST}
	plusBits  = operation{VPADDQ, VPADDQ_BCST}
	and       = operation{three(VPAND), VPANDQ_BCST}
	or        = operation{three(VPOR), VPORQ_BCST}
)

func three(f func(a, b, c Op)) func(ops ...Op) {
	return func(ops ...Op) { f(ops[0], ops[1], ops[2]) }
}

func (d *doubles) with(o operation, x float64, a, b Op) { d.withBits(o, math.Float64bits(x), a, b) }

func (d *doubles) withBits(o operation, bits uint64, a, b Op) {
	if d.wide() {
		o.broadcast(word(bits), a, b)
	} else {
		o.narrow(word(bits), a, b)
	}
}

// word is a constant, as often as AVX2 needs it.
func word(bits uint64) Mem {
	return table(fmt.Sprintf("word%016x", bits), bits, bits, bits, bits)
}

var tables = map[string]Mem{}

func table(name string, words ...uint64) Mem {
	if m, known := tables[name]; known {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i, word := range words {
		DATA(8*i, U64(word))
	}
	tables[name] = m
	return m
}

// vec3 is a vector of ℝ³ in every lane.
type vec3 [3]reg.VecVirtual

func (d *doubles) dot(a, b vec3) reg.VecVirtual {
	v := d.vector()
	VMULPD(a[0], b[0], v)
	VFMADD231PD(a[1], b[1], v)
	VFMADD231PD(a[2], b[2], v)
	return v
}

// cross is a×b.
func (d *doubles) cross(a, b vec3) (c vec3) {
	for i := range c {
		j, k := (i+1)%3, (i+2)%3
		c[i] = d.vector()
		VMULPD(a[k], b[j], c[i])
		VFMSUB231PD(a[j], b[k], c[i])
	}
	return c
}

// less is a − s·b, in place of a.
func less(a, b vec3, s reg.VecVirtual) {
	for i := range a {
		VFNMADD231PD(s, b[i], a[i])
	}
}

func scale(a vec3, s reg.VecVirtual) {
	for _, v := range a {
		VMULPD(s, v, v)
	}
}

// number is a constant in a register.
func (d *doubles) number(x float64) reg.VecVirtual {
	v := d.vector()
	VBROADCASTSD(word(math.Float64bits(x)), v)
	return v
}

// inverseRoot is 1/√x.
func (d *doubles) inverseRoot(x reg.VecVirtual) reg.VecVirtual {
	root, one := d.vector(), d.number(1)
	VSQRTPD(x, root)
	VDIVPD(root, one, one)
	return one
}

// toUnit is 1.5 − x/2, which is 1/√x to a rounding where |x − 1| < 2⁻²⁶.
func (d *doubles) toUnit(x reg.VecVirtual) reg.VecVirtual {
	d.with(fnmadd213, 1.5, d.number(0.5), x)
	return x
}

// aside is a number set aside for later: on the stack where there are few
// registers.
type aside struct {
	*doubles
	register reg.VecVirtual
	stack    Mem
}

func (d *doubles) set(v reg.VecVirtual) aside {
	a := aside{doubles: d, register: v}
	if !d.wide() {
		a.register, a.stack = nil, AllocLocal(d.bytes)
		VMOVUPD(v, a.stack)
	}
	return a
}

func (a aside) operand() Op {
	if a.wide() {
		return a.register
	}
	return a.stack
}

func (a aside) get() reg.VecVirtual {
	if a.wide() {
		return a.register
	}
	v := a.vector()
	VMOVUPD(a.stack, v)
	return v
}

// unless makes v NaN in the lanes where not x > bound, which it returns.
func (d *doubles) unless(x, bound Op, v reg.VecVirtual) (lanes reg.Register) {
	const notGreater = 0x1a // or NaN
	if d.wide() {
		k := K()
		VCMPPD(U8(notGreater), bound, x, k)
		VBROADCASTSD(word(math.Float64bits(math.NaN())), k, v)
		return k
	}
	mask := YMM()
	VCMPPD(U8(notGreater), bound, x, mask)
	VORPD(mask, v, v)
	return mask
}

// rare gathers the lanes, of any group, that unless and infinite have marked.
type rare struct {
	*doubles
	lanes reg.Register
}

func (d *doubles) rare() rare {
	if d.wide() {
		k := K()
		KXORW(k, k, k)
		return rare{d, k}
	}
	v := YMM()
	d.zero(v)
	return rare{d, v}
}

func (r rare) unless(x, bound Op, v reg.VecVirtual) {
	lanes := r.doubles.unless(x, bound, v)
	if r.wide() {
		KORW(lanes, r.lanes, r.lanes)
	} else {
		VORPD(lanes, r.lanes, r.lanes)
	}
}

// infinite marks the lanes of v that are not finite.
func (r rare) infinite(v reg.VecVirtual) {
	const unordered = 3
	zero := r.vector() // or NaN
	VSUBPD(v, v, zero)
	if r.wide() {
		k := K()
		VCMPPD(U8(unordered), zero, zero, k)
		KORW(k, r.lanes, r.lanes)
		return
	}
	VCMPPD(U8(unordered), zero, zero, zero)
	VORPD(zero, r.lanes, r.lanes)
}

// result stores whether there was one.
func (r rare) result() {
	any := GP32()
	if r.wide() {
		KMOVW(r.lanes, any)
	} else {
		VMOVMSKPD(r.lanes, any)
	}
	TESTL(any, any)
	found := GP8()
	SETNE(found)
	Store(found, ReturnIndex(0))
}

// advance adds to pointers the bytes that a group of lanes takes.
func (d *doubles) advance(perLane int, pointers ...reg.GPVirtual) {
	for _, p := range pointers {
		ADDQ(U32(perLane*d.lanes()), p)
	}
}

// next goes on with n − lanes.
func (d *doubles) next(n reg.GPVirtual) {
	SUBQ(U32(d.lanes()), n)
	JNZ(LabelRef("loop"))
}
