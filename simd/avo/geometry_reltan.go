package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func (d *doubles) relTan() {
	d.function("relTan", "(rows *float64, plane int, positions *float64, neighbors, centers *int32, columns, powers *float64, count int, logarithm bool, n int)",
		"writes, for n edges, a multiple of the lanes, and count powers r, given as -r/2, the",
		"rows (d|d|^-r, |d|^(r-1)), those of a power plane bytes behind those of the one",
		"before; logarithm must be set where a power is not 1/2. |d|^(r-1) is NaN where",
		"|d|² ≤ 2⁻²⁰⁰.")
	rows, plane, positions, neighbors, centers, columns := argument("rows"), argument("plane"), argument("positions"), argument("neighbors"), argument("centers"), argument("columns")
	powers, count, n := argument("powers"), argument("count"), argument("n")
	logarithm := Load(Param("logarithm"), GP8())
	d.pairs()
	Label("loop")
	to := d.window(columns, centers).differences(func(lane int) Mem {
		return rowAt(positions, Mem{Base: neighbors, Disp: 4 * lane}, positionWidth, 0)
	})
	square := d.dot(to, to)
	inverse := d.inverseRoot(square)
	log := d.vector()
	d.zero(log)
	TESTB(logarithm, logarithm)
	JZ(LabelRef("powers"))
	d.log2(square, log)
	Label("powers")
	plus, left, row := GP64(), GP64(), GP64()
	MOVQ(powers, plus)
	MOVQ(count, left)
	MOVQ(rows, row)
	Label("power")
	power, other := d.vector(), d.vector()
	VBROADCASTSD(Mem{Base: plus}, power)
	quarter := GP64()
	MOVQ(U64(math.Float64bits(-0.25)), quarter)
	CMPQ(Mem{Base: plus}, quarter)
	JEQ(LabelRef("root"))
	VMULPD(log, power, power)
	d.exp2(power)
	VDIVPD(power, inverse, other)
	JMP(LabelRef("store"))
	Label("root")
	VSQRTPD(inverse, power)
	VMOVAPD(power, other)
	Label("store")
	d.unless(square, d.number(shortEdge), other)
	v := vec3{d.vector(), d.vector(), d.vector()}
	for i := range v {
		VMULPD(to[i], power, v[i])
	}
	d.storeRows(v[0], v[1], v[2], other, entry(row, sumBytes))
	ADDQ(plane, row)
	ADDQ(U32(8), plus)
	DECQ(left)
	JNZ(LabelRef("power"))
	d.advance(sumBytes, rows)
	d.advance(4, neighbors, centers)
	d.next(n)
	done()
}

func (d *doubles) tangents() {
	d.function("tangents", "(to *float64, step int, sums *float64, plane int, frames, factors *float64, count, n int) (rare bool)",
		"writes factor·L·(e1·S, e2·S) of n vertices, a multiple of the lanes, step bytes",
		"apart, for count powers side by side, where (S, L) is the sum of the rows of",
		"relTan, plane bytes behind that of the power before. rare tells whether a number",
		"is not finite.")
	to, step, sums, plane := argument("to"), argument("step"), argument("sums"), argument("plane")
	frames, factors, count, n := argument("frames"), argument("factors"), argument("count"), argument("n")
	found := d.rare()
	Label("loop")
	d.prefetchFrames(frames)
	axes := [2]vec3{
		d.loaded(func(lane int) Mem { return Mem{Base: frames, Disp: 8*frameWidth*lane + e1} }),
		d.loaded(func(lane int) Mem { return Mem{Base: frames, Disp: 8*frameWidth*lane + e2} }),
	}
	of, pair, left := GP64(), GP64(), GP64()
	MOVQ(sums, of)
	MOVQ(to, pair)
	MOVQ(count, left)
	Label("power")
	low, high := d.halves(entry(of, sumBytes))
	direction := vec3{d.joined(low, false), d.joined(high, false), d.joined(low, true)}
	length := d.joined(high, true)
	VMULPD(Mem{Base: factors}, length, length)
	var v [2]reg.VecVirtual
	for i, axis := range axes {
		v[i] = d.dot(direction, axis)
		VMULPD(length, v[i], v[i])
		found.infinite(v[i])
	}
	even, odd := d.vector(), d.vector()
	VUNPCKLPD(v[1], v[0], even)
	VUNPCKHPD(v[1], v[0], odd)
	row := GP64()
	MOVQ(pair, row)
	for half := range d.lanes() / 2 {
		for _, v := range []reg.VecVirtual{even, odd} {
			switch {
			case half == 0:
				VMOVUPD(v.AsX(), Mem{Base: row})
			case d.wide():
				VEXTRACTF64X2(U8(half), v, Mem{Base: row})
			default:
				VEXTRACTF128(U8(half), v, Mem{Base: row})
			}
			ADDQ(step, row)
		}
	}
	ADDQ(plane, of)
	ADDQ(U32(16), pair)
	DECQ(left)
	JNZ(LabelRef("power"))
	for range d.lanes() {
		ADDQ(step, to)
	}
	d.advance(sumBytes, sums)
	d.advance(8*frameWidth, frames)
	d.advance(8, factors)
	d.next(n)
	found.result()
	done()
}
