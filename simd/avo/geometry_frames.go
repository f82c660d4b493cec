package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

func (d *doubles) wedges() {
	d.function("wedges", "(rows, positions *float64, wedges, centers *int32, columns *float64, n int)",
		"writes (a×b, a·a + b·b) of n corners, a multiple of the lanes, with a and b from",
		"the corner's centre to the first and second vertex of its wedge; NaN for the",
		"last where a·a or b·b ≤ 2⁻¹⁰⁰⁰.")
	rows, positions, corners, centers, columns, n := argument("rows"), argument("positions"), argument("wedges"), argument("centers"), argument("columns"), argument("n")
	d.pairs()
	Label("loop")
	w := d.window(columns, centers)
	of := func(first int) func(lane int) Mem {
		return func(lane int) Mem {
			return rowAt(positions, Mem{Base: corners, Disp: 8*lane + first}, positionWidth, 0)
		}
	}
	a, b := d.loaded(of(0)), d.loaded(of(4))
	for i := range a {
		center := w.column(i)
		VSUBPD(center, a[i], a[i])
		VSUBPD(center, b[i], b[i])
	}
	c := d.cross(a, b)
	a2, b2 := d.dot(a, a), d.dot(b, b)
	sum := d.vector()
	VADDPD(a2, b2, sum)
	VMINPD(a2, b2, a2)
	d.unless(a2, d.number(zeroLength), sum)
	d.storeRows(c[0], c[1], c[2], sum, entry(rows, sumBytes))
	d.advance(sumBytes, rows)
	d.advance(8, corners)
	d.advance(4, centers)
	d.next(n)
	done()
}

func (d *doubles) sumRings() {
	d.function("sumRings", "(sums, rows *float64, offsets *int64, n int)",
		"adds up, for each of n rings, the rows of four numbers from offsets[i] to",
		"offsets[i+1], in this order; rows begins with row offsets[0].")
	sums, rows, offsets, n := argument("sums"), argument("rows"), argument("offsets"), argument("n")
	begin, left := GP64(), GP64()
	MOVQ(Mem{Base: offsets}, begin)
	Label("loop")
	sum := YMM()
	VXORPD(sum, sum, sum)
	ADDQ(U32(8), offsets)
	MOVQ(Mem{Base: offsets}, left)
	SUBQ(begin, left)
	JZ(LabelRef("store"))
	ADDQ(left, begin)
	Label("row")
	VADDPD(Mem{Base: rows}, sum, sum)
	ADDQ(U32(sumBytes), rows)
	DECQ(left)
	JNZ(LabelRef("row"))
	Label("store")
	VMOVUPD(sum, Mem{Base: sums})
	ADDQ(U32(sumBytes), sums)
	DECQ(n)
	JNZ(LabelRef("loop"))
	done()
}

func (d *doubles) frames() {
	d.function("frames", "(frames, sums, centers, positions *float64, neighbors *int32, n int) (rare bool)",
		"writes the frames (e1, e2, n) of n vertices, a multiple of the lanes, from the sums",
		"of their wedges and their first neighbours. The first number of n is NaN where",
		"the sum or the neighbour's projection is small enough to be noise; rare tells",
		"whether there is one.")
	frames, sums, centers, positions, neighbors, n := argument("frames"), argument("sums"), argument("centers"), argument("positions"), argument("neighbors"), argument("n")
	d.pairs()
	found := d.rare()
	Label("loop")
	at := d.loaded(entry(centers, 8*positionWidth))
	size2 := d.dot(at, at)
	kept := [3]aside{d.set(at[0]), d.set(at[1]), d.set(at[2])}

	low, high := d.halves(entry(sums, sumBytes))
	normal := vec3{d.joined(low, false), d.joined(high, false), d.joined(low, true)}
	w := d.joined(high, true)
	noise := d.number(ofWedges)
	VMULPD(w, noise, noise)
	d.with(fmadd231, ofPlace, size2, noise)
	VMULPD(w, noise, noise)
	VMAXPD(noise, d.number(noAxis), noise) // the second where one is NaN: noise
	length2 := d.dot(normal, normal)
	scale(normal, d.inverseRoot(length2))
	found.unless(length2, noise, normal[0])

	t := d.loaded(func(lane int) Mem {
		return rowAt(positions, Mem{Base: neighbors, Disp: 4 * lane}, positionWidth, 0)
	})
	for i := range t {
		VSUBPD(kept[i].operand(), t[i], t[i])
	}
	d.with(mul, noDifference, size2, size2)
	bound := d.dot(t, t)
	d.with(mul, noProjection, bound, bound)
	VMAXPD(size2, bound, bound)
	VMAXPD(d.number(noAxis), bound, bound)
	less(t, normal, d.dot(t, normal))
	t2 := d.dot(t, t)
	found.unless(t2, bound, normal[0])
	scale(t, d.inverseRoot(t2))
	// Projected twice: once leaves an error of the order of |d|/|t|.
	less(t, normal, d.dot(t, normal))
	scale(t, d.toUnit(d.dot(t, t)))
	second := d.cross(normal, t)

	row := func(disp int) func(lane int) Mem {
		return func(lane int) Mem { return Mem{Base: frames, Disp: 8*frameWidth*lane + disp} }
	}
	d.prefetchFrames(frames)
	d.storeRows(t[0], t[1], t[2], second[0], row(e1))
	d.storeRows(second[0], second[1], second[2], normal[0], row(e2))
	d.storeRows(second[2], normal[0], normal[1], normal[2], row(axis))
	d.advance(8*frameWidth, frames)
	d.advance(sumBytes, sums)
	d.advance(8*positionWidth, centers)
	d.advance(4, neighbors)
	d.next(n)
	found.result()
	done()
}
