package main

import (
	"fmt"
	"math"
	"math/big"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// doubles writes the kernels of interface Geometry: float64, an edge or a
// vertex a lane. Rows of a few numbers are loaded one a lane and transposed; the
// centres of edges, which come in order, are permuted from columns.
type doubles struct {
	isa
	even, odd reg.VecVirtual // where pairs of AVX-512 lanes go in a row
}

func (s isa) geometry() {
	for _, write := range []func(d *doubles){
		(*doubles).fillCenters, (*doubles).positionColumns, (*doubles).frameColumns, (*doubles).wedges, (*doubles).sumRings, (*doubles).frames,
		func(d *doubles) { d.edges("32") }, func(d *doubles) { d.edges("64") },
		(*doubles).relTan, (*doubles).tangents,
	} {
		write(&doubles{isa: s})
	}
}

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

// vec3 is a vector of ℝ³ in every lane.
type vec3 [3]reg.VecVirtual

// loaded transposes the first three numbers of the rows of all lanes.
func (d *doubles) loaded(row func(lane int) Mem) vec3 {
	low, high := d.halves(row)
	y := d.joined(high, false)
	return vec3{d.joined(low, false), y, d.joined(low, true)}
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

// rare gathers the lanes, of any group, that unless has marked.
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

// Rows of the arrays that package Geometry describes.
const (
	sumBytes     = 32
	e1, e2, axis = 0, 24, 40 // bytes into a frame; the normal follows at axis+8
)

// zeroLength bounds squared lengths that count as none.
const zeroLength = 0x1p-1000

func entry(base reg.Register, bytes int) func(lane int) Mem {
	return func(lane int) Mem { return Mem{Base: base, Disp: bytes * lane} }
}

// prefetchFrames asks for the frames of as many vertices further on as a piece
// has, when a group's are treated: the next piece finds them in the cache.
func (d *doubles) prefetchFrames(frames reg.Register) {
	const ahead = 64 * 8 * frameWidth
	for at := 0; at < 8*frameWidth*d.lanes(); at += 64 {
		PREFETCHT0(Mem{Base: frames, Disp: ahead + at})
	}
}

func (d *doubles) fillCenters() {
	d.function("fillCenters", "(vertices, centers *int32, offsets *int64, first, n int) (count int)",
		"lists those of n > 0 vertices, from first on, whose rings are not empty, and writes",
		"the place in this list to the centers from offsets[i] - offsets[0] to offsets[i+1]",
		"- offsets[0], and some place to the eight behind. One number behind the list may",
		"be written.")
	vertices, centers, offsets, vertex, n := argument("vertices"), argument("centers"), argument("offsets"), argument("first"), argument("n")
	begin, to, end, place, filled := GP64(), GP64(), GP64(), GP64(), GP64()
	MOVQ(Mem{Base: offsets}, begin)
	MOVQ(centers, to)
	XORQ(place, place)
	XORQ(filled, filled)
	Label("loop")
	eight := YMM()
	VMOVD(place.As32(), eight.AsX())
	VPBROADCASTD(eight.AsX(), eight)
	MOVL(vertex.As32(), Mem{Base: vertices, Index: place, Scale: 4})
	INCQ(vertex)
	ADDQ(U32(8), offsets)
	MOVQ(Mem{Base: offsets}, end)
	SUBQ(begin, end)
	LEAQ(Mem{Base: centers, Index: end, Scale: 4}, end)
	CMPQ(end, to)
	SETNE(filled.As8())
	ADDQ(filled, place)
	// What is too much is overwritten by the next.
	Label("store")
	VMOVDQU(eight, Mem{Base: to})
	ADDQ(U32(32), to)
	CMPQ(to, end)
	JLT(LabelRef("store"))
	MOVQ(end, to)
	DECQ(n)
	JNZ(LabelRef("loop"))
	Store(place, ReturnIndex(0))
	DECQ(place)
	JGE(LabelRef("last"))
	XORQ(place, place)
	Label("last")
	VMOVD(place.As32(), eight.AsX())
	VPBROADCASTD(eight.AsX(), eight)
	VMOVDQU(eight, Mem{Base: to})
	done()
}

// Columns of the array that holds the positions and frames of centres, one
// number of all of them after another.
const (
	columnBytes   = 8 * (64 + 8)
	frameColumn   = 3
	e1Column      = frameColumn
	e2Column      = frameColumn + 3
	normalColumn  = frameColumn + 6
	positionWidth = 3
	frameWidth    = 9
)

func (d *doubles) columnsOf(name, of string, write func(rows reg.Register, of func(disp int) func(lane int) Mem, to func(column int) Mem)) {
	d.function(name, fmt.Sprintf("(columns, %s *float64, vertices *int32, n int)", of),
		fmt.Sprintf("transposes the %s of n vertices, a multiple of the lanes.", of))
	columns, rows, vertices, n := argument("columns"), argument(of), argument("vertices"), argument("n")
	width := uint8(positionWidth)
	if of == "frames" {
		width = frameWidth
	}
	Label("loop")
	write(rows, func(disp int) func(lane int) Mem {
		return func(lane int) Mem { return rowAt(rows, Mem{Base: vertices, Disp: 4 * lane}, width, disp) }
	}, func(column int) Mem { return Mem{Base: columns, Disp: column * columnBytes} })
	d.advance(8, columns)
	d.advance(4, vertices)
	d.next(n)
	done()
}

func (d *doubles) positionColumns() {
	d.columnsOf("positionColumns", "positions", func(_ reg.Register, row func(disp int) func(lane int) Mem, to func(column int) Mem) {
		for i, v := range d.loaded(row(0)) {
			VMOVUPD(v, to(i))
		}
	})
}

func (d *doubles) frameColumns() {
	d.columnsOf("frameColumns", "frames", func(_ reg.Register, row func(disp int) func(lane int) Mem, to func(column int) Mem) {
		for i, v := range d.loaded(row(e1)) {
			VMOVUPD(v, to(e1Column+i))
		}
		for i, v := range d.loaded(row(e2)) {
			VMOVUPD(v, to(e2Column+i))
		}
		for i, v := range d.normals(row(axis)) {
			VMOVUPD(v, to(normalColumn+i))
		}
	})
}

// window is the centres of a group of edges, consecutive ones: their columns
// are read once and permuted.
type window struct {
	*doubles
	columns reg.GPVirtual // at the first of them
	places  reg.VecVirtual
}

// window begins with the centre of the group's first edge; there is none
// between two centres without an edge, so they are no more than the lanes.
func (d *doubles) window(columns, centers reg.Register) window {
	first := GP64()
	MOVLQSX(Mem{Base: centers}, first)
	w := window{d, GP64(), d.vector()}
	LEAQ(Mem{Base: columns, Index: first, Scale: 8}, w.columns)
	base := d.vector()
	if d.wide() {
		VPMOVSXDQ(Mem{Base: centers}, w.places)
		VPBROADCASTQ(first, base)
		VPSUBQ(base, w.places, w.places)
		return w
	}
	// Permuted as pairs of float32, of places 2i and 2i + 1.
	VPMOVZXDQ(Mem{Base: centers}, w.places)
	VMOVQ(first, base.AsX())
	VPBROADCASTQ(base.AsX(), base)
	VPSUBQ(base, w.places, w.places)
	VPADDQ(w.places, w.places, w.places)
	VPSLLQ(U8(32), w.places, base)
	VPADDQ(base, w.places, w.places)
	d.withBits(plusBits, 1<<32, w.places, w.places)
	return w
}

// column is a number of the centre of each edge.
func (w window) column(i int) reg.VecVirtual {
	v, from := w.vector(), Mem{Base: w.columns, Disp: i * columnBytes}
	if w.wide() {
		VPERMPD(from, w.places, v)
	} else {
		VPERMPS(from, w.places, v)
	}
	return v
}

// dots are the products of a vector of the centres with others.
func (w window) dots(first int, with ...vec3) (products []reg.VecVirtual) {
	products = w.vectors(len(with))
	for i := range 3 {
		v := w.column(first + i)
		for j, a := range with {
			if i == 0 {
				VMULPD(a[0], v, products[j])
			} else {
				VFMADD231PD(a[i], v, products[j])
			}
		}
	}
	return products
}

// differences are rows less the positions of the centres.
func (w window) differences(row func(lane int) Mem) vec3 {
	a := w.loaded(row)
	for i, v := range a {
		VSUBPD(w.column(i), v, v)
	}
	return a
}

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
	// The rounding error of a sum of N ≤ 2¹⁰ wedges, with w the sum of their
	// squared lengths: 2⁻⁴⁸ Σ (|a||b| + (|a| + |b|)·size) is at most
	// 2⁻⁴⁸ (w/2 + size √(2Nw)), and its square at most twice the squares' sum.
	noise := d.number(0x1p-97)
	VMULPD(w, noise, noise)
	d.with(fmadd231, 0x1p-84, size2, noise)
	VMULPD(w, noise, noise)
	VMAXPD(noise, d.number(0x1p-900), noise) // the second where one is NaN: noise
	length2 := d.dot(normal, normal)
	scale(normal, d.inverseRoot(length2))
	found.unless(length2, noise, normal[0])

	t := d.loaded(func(lane int) Mem {
		return rowAt(positions, Mem{Base: neighbors, Disp: 4 * lane}, positionWidth, 0)
	})
	for i := range t {
		VSUBPD(kept[i].operand(), t[i], t[i])
	}
	d.with(mul, 0x1p-100, size2, size2)
	bound := d.dot(t, t)
	d.with(mul, 0x1p-68, bound, bound)
	VMAXPD(size2, bound, bound)
	VMAXPD(d.number(0x1p-900), bound, bound)
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

// edges writes edges32 or edges64, for the two types of results.
func (d *doubles) edges(bits string) {
	outputs := "cosTheta, sinTheta, cosG, sinG, length"
	d.function("edges"+bits, fmt.Sprintf("(%s *float%s, positions, frames *float64, neighbors, centers *int32, columns *float64, n int) (rare bool)", outputs, bits),
		"computes the angle θ of the log map, that of the transport and the length of n",
		"edges, a multiple of the lanes. cosTheta is NaN where the projection of the edge",
		"is small enough to be noise, cosG where the normals are nearly opposite; rare",
		"tells whether there is one.")
	cosTheta, sinTheta, cosG, sinG, length := argument("cosTheta"), argument("sinTheta"), argument("cosG"), argument("sinG"), argument("length")
	positions, frames, neighbors, centers, columns, n := argument("positions"), argument("frames"), argument("neighbors"), argument("centers"), argument("columns"), argument("n")
	found := d.rare()
	store := func(v reg.VecVirtual, to reg.Register) {
		switch {
		case bits == "64":
			VMOVUPD(v, Mem{Base: to})
		case d.wide():
			narrow := YMM()
			VCVTPD2PS(v, narrow)
			VMOVUPS(narrow, Mem{Base: to})
		default:
			narrow := XMM()
			VCVTPD2PSY(v, narrow)
			VMOVUPS(narrow, Mem{Base: to})
		}
	}
	row := func(base reg.Register, width uint8, disp int) func(lane int) Mem {
		return func(lane int) Mem { return rowAt(base, Mem{Base: neighbors, Disp: 4 * lane}, width, disp) }
	}
	Label("loop")
	w := d.window(columns, centers)
	// c = n_p·n_q and k = n_p·e1_q / (1 + c).
	normal := d.normals(row(frames, frameWidth, axis))
	first := d.loaded(row(frames, frameWidth, e1))
	products := w.dots(normalColumn, normal, first)
	cos, k := products[0], products[1]
	d.with(plus, 1, cos, cos)
	VDIVPD(cos, k, k)
	found.unless(cos, d.number(nearlyOpposite), k)

	to := w.differences(row(positions, positionWidth, 0))
	bound, root := d.dot(to, to), d.vector()
	VSQRTPD(bound, root)
	store(root, length)
	d.with(mul, 0x1p-68, bound, bound)
	VMAXPD(d.number(0x1p-98), bound, bound)
	bounds := d.set(bound)

	// The coordinates of d and of R e1_q along an axis of the frame of p.
	coordinates := func(axis int) (theta, g reg.VecVirtual) {
		products := w.dots(axis, to, first, normal)
		VFNMADD231PD(k, products[2], products[1])
		return products[0], products[1]
	}
	x, g := coordinates(e1Column)
	xs, gs := d.set(x), d.set(g)
	y, gy := coordinates(e2Column)

	gx := gs.get()
	square := d.vector()
	VMULPD(gx, gx, square)
	VFMADD231PD(gy, gy, square)
	g = d.toUnit(square)
	VMULPD(g, gx, gx)
	VMULPD(g, gy, gy)
	store(gx, cosG)
	store(gy, sinG)

	theta := xs.get()
	tangent2 := d.vector()
	VMULPD(theta, theta, tangent2)
	VFMADD231PD(y, y, tangent2)
	inverse := d.inverseRoot(tangent2)
	VMULPD(inverse, theta, theta)
	VMULPD(inverse, y, y)
	found.unless(tangent2, bounds.operand(), theta)
	store(theta, cosTheta)
	store(y, sinTheta)

	size := map[string]int{"32": 4, "64": 8}[bits]
	d.advance(size, cosTheta, sinTheta, cosG, sinG, length)
	d.advance(4, neighbors, centers)
	d.next(n)
	found.result()
	done()
}

// nearlyOpposite bounds 1 + n_p·n_q: below, digits of the transport are lost.
const nearlyOpposite = 0x1p-4

// normals transposes the last three numbers of rows of four.
func (d *doubles) normals(row func(lane int) Mem) vec3 {
	low, high := d.halves(row)
	x := d.joined(high, false)
	return vec3{x, d.joined(low, true), d.joined(high, true)}
}

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
	d.unless(square, d.number(0x1p-200), other)
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
	d.function("tangents", "(to *float64, step int, sums, frames, factors *float64, n int)",
		"writes factor·L·(e1·S, e2·S) of n vertices, a multiple of the lanes, step bytes",
		"apart, where (S, L) is the sum of the rows of RelTan.")
	to, step, sums, frames, factors, n := argument("to"), argument("step"), argument("sums"), argument("frames"), argument("factors"), argument("n")
	Label("loop")
	d.prefetchFrames(frames)
	low, high := d.halves(entry(sums, sumBytes))
	direction := vec3{d.joined(low, false), d.joined(high, false), d.joined(low, true)}
	length := d.joined(high, true)
	VMULPD(Mem{Base: factors}, length, length)
	var v [2]reg.VecVirtual
	for i, disp := range []int{e1, e2} {
		v[i] = d.dot(direction, d.loaded(func(lane int) Mem { return Mem{Base: frames, Disp: 8*frameWidth*lane + disp} }))
		VMULPD(length, v[i], v[i])
	}
	even, odd := d.vector(), d.vector()
	VUNPCKLPD(v[1], v[0], even)
	VUNPCKHPD(v[1], v[0], odd)
	for pair := range d.lanes() / 2 {
		for _, v := range []reg.VecVirtual{even, odd} {
			switch {
			case pair == 0:
				VMOVUPD(v.AsX(), Mem{Base: to})
			case d.wide():
				VEXTRACTF64X2(U8(pair), v, Mem{Base: to})
			default:
				VEXTRACTF128(U8(pair), v, Mem{Base: to})
			}
			ADDQ(step, to)
		}
	}
	d.advance(sumBytes, sums)
	d.advance(8*frameWidth, frames)
	d.advance(8, factors)
	d.next(n)
	done()
}

// log2 of positive normal numbers x = 2^e·m with √½ ≤ m < √2:
//
//	log2 x = e + s·P(s²),  s = (m-1)/(m+1),  P(s²) = 2/ln 2 · artanh(s)/s,
//
// where s² ≤ 0.0295.
func (d *doubles) log2(x, log reg.VecVirtual) {
	const (
		mantissa = 1<<52 - 1
		bias     = 1024 // keeps exponents positive
	)
	half := math.Float64bits(math.Sqrt(0.5))
	e, m, s := d.vector(), d.vector(), d.vector()
	d.withBits(plusBits, bias<<52-half, x, m)
	VPSRLQ(U8(52), m, e)
	d.withBits(and, mantissa, m, m)
	d.withBits(plusBits, half, m, m)
	d.withBits(or, math.Float64bits(0x1p52), e, e)
	d.with(minus, 0x1p52+bias, e, e)
	d.with(plus, 1, m, s)
	d.with(minus, 1, m, m)
	VDIVPD(s, m, s)
	square := m
	VMULPD(s, s, square)
	d.polynomial(fitted(7, 0, 0.0295, func(t float64) float64 {
		if t == 0 {
			return 2 / math.Ln2
		}
		return 2 / math.Ln2 * math.Atanh(math.Sqrt(t)) / math.Sqrt(t)
	}), square, log)
	VFMADD213PD(e, s, log)
}

// exp2 replaces y by 2^y for |y| < 1000: with n the nearest integer, 2^n times
// a polynomial in y - n, |y - n| ≤ ½.
func (d *doubles) exp2(y reg.VecVirtual) {
	const round = 0x1.8p52 // adding it rounds to an integer in the low bits
	n, rest := d.vector(), d.vector()
	d.with(plus, round, y, n)
	d.with(minus, round, n, rest)
	VSUBPD(rest, y, rest)
	d.polynomial(fitted(11, -0.5, 0.5, math.Exp2), rest, y)
	VPSLLQ(U8(52), n, n)
	VPADDQ(n, y, y)
}

// polynomial is Σ c_i x^i of odd degree, the even powers and the odd ones by
// themselves, so that the two chains run beside each other.
func (d *doubles) polynomial(c []float64, x, sum reg.VecVirtual) {
	square, odd := d.vector(), d.vector()
	VMULPD(x, x, square)
	last := len(c) - 1
	VBROADCASTSD(word(math.Float64bits(c[last])), odd)
	VBROADCASTSD(word(math.Float64bits(c[last-1])), sum)
	for i := last - 2; i > 0; i -= 2 {
		d.with(fmadd213, c[i], square, odd)
		d.with(fmadd213, c[i-1], square, sum)
	}
	VFMADD231PD(odd, x, sum)
}

// fitted is the polynomial of a degree through f at the Chebyshev points of an
// interval, whose error is near the least possible.
func fitted(degree int, from, to float64, f func(float64) float64) []float64 {
	const precision = 200
	number := func(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }
	nodes, differences := make([]*big.Float, degree+1), make([]*big.Float, degree+1)
	for i := range nodes {
		x := (from+to)/2 + (to-from)/2*math.Cos(math.Pi*(float64(i)+0.5)/float64(degree+1))
		nodes[i], differences[i] = number(x), number(f(x))
	}
	// Newton's divided differences, multiplied out.
	for order := 1; order <= degree; order++ {
		for i := degree; i >= order; i-- {
			step := number(0).Sub(nodes[i], nodes[i-order])
			differences[i] = number(0).Quo(number(0).Sub(differences[i], differences[i-1]), step)
		}
	}
	c := make([]*big.Float, degree+1)
	for i := range c {
		c[i] = number(0)
	}
	for i := degree; i >= 0; i-- {
		for j := degree; j > 0; j-- {
			c[j] = number(0).Sub(c[j-1], number(0).Mul(nodes[i], c[j]))
		}
		c[0] = number(0).Sub(differences[i], number(0).Mul(nodes[i], c[0]))
	}
	rounded := make([]float64, degree+1)
	for i := range c {
		rounded[i], _ = c[i].Float64()
	}
	return rounded
}
