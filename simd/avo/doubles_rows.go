package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pairs loads the orders in which storeRows puts pairs of numbers together.
func (d *doubles) pairs() {
	if d.wide() {
		d.even, d.odd = d.vector(), d.vector()
		VMOVUPD(table("evenPairs", 0, 1, 8, 9, 2, 3, 10, 11), d.even)
		VMOVUPD(table("oddPairs", 4, 5, 12, 13, 6, 7, 14, 15), d.odd)
	}
}

// rowAt is the four numbers from disp bytes into a row of width numbers.
func rowAt(base reg.Register, index Mem, width uint8, disp int) Mem {
	r := GP64()
	MOVLQSX(index, r)
	LEAQ(Mem{Base: r, Index: r, Scale: width - 1}, r)
	return Mem{Base: base, Index: r, Scale: 8, Disp: disp}
}

func entry(base reg.Register, bytes int) func(lane int) Mem {
	return func(lane int) Mem { return Mem{Base: base, Disp: bytes * lane} }
}

// halves are the unpacked pairs of the rows of all lanes: x and z of lanes
// 2k, 2k+1 in low, y and w in high.
func (d *doubles) halves(row func(lane int) Mem) (low, high [2]reg.VecVirtual) {
	load := func(lane int) reg.VecVirtual {
		v := YMM()
		VMOVUPD(row(lane), v)
		return v
	}
	for half := range 2 {
		var first, second reg.VecVirtual
		if d.wide() {
			pair := func(lane int) reg.VecVirtual {
				v, both := load(lane), ZMM()
				VINSERTF64X4(U8(1), row(lane+2), v.AsZ(), both)
				return both
			}
			first, second = pair(4*half), pair(4*half+1)
		} else {
			first, second = load(2*half), load(2*half+1)
		}
		low[half] = d.vector()
		VUNPCKLPD(second, first, low[half])
		VUNPCKHPD(second, first, first)
		high[half] = first
	}
	return low, high
}

// joined takes the first (or second) pair of numbers of each half.
func (d *doubles) joined(halves [2]reg.VecVirtual, second bool) reg.VecVirtual {
	v := d.vector()
	choose := func(wide, narrow uint8) {
		if d.wide() {
			VSHUFF64X2(U8(wide), halves[1], halves[0], v)
		} else {
			VPERM2F128(U8(narrow), halves[1], halves[0], v)
		}
	}
	if second {
		choose(0xdd, 0x31)
	} else {
		choose(0x88, 0x20)
	}
	return v
}

// loaded transposes the first three numbers of the rows of all lanes.
func (d *doubles) loaded(row func(lane int) Mem) vec3 {
	low, high := d.halves(row)
	y := d.joined(high, false)
	return vec3{d.joined(low, false), y, d.joined(low, true)}
}

// normals transposes the last three numbers of rows of four.
func (d *doubles) normals(row func(lane int) Mem) vec3 {
	low, high := d.halves(row)
	x := d.joined(high, false)
	return vec3{x, d.joined(low, true), d.joined(high, true)}
}

// storeRows writes x, y, z, w of each lane as a row.
func (d *doubles) storeRows(x, y, z, w reg.VecVirtual, row func(lane int) Mem) {
	for odd, unpack := range []func(ops ...Op){VUNPCKLPD, VUNPCKHPD} {
		xy, zw := d.vector(), d.vector()
		unpack(y, x, xy)
		unpack(w, z, zw)
		if !d.wide() {
			v := d.vector()
			VPERM2F128(U8(0x20), zw, xy, v)
			VMOVUPD(v, row(odd))
			VPERM2F128(U8(0x31), zw, xy, v)
			VMOVUPD(v, row(odd+2))
			continue
		}
		v := d.vector()
		VMOVAPD(xy, v)
		VPERMT2PD(zw, d.even, v)
		VPERMT2PD(zw, d.odd, xy)
		for i, two := range []reg.VecVirtual{v, xy} {
			VMOVUPD(two.AsY(), row(4*i+odd))
			VEXTRACTF64X4(U8(1), two, row(4*i+odd+2))
		}
	}
}
