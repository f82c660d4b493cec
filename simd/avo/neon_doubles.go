package main

import (
	"fmt"
	"math"
	"strings"
)

// neonDoubles writes the kernels of interface Geometry: as doubles does for
// AVX2, four items at a time, here in pairs of registers. The instructions that
// load and store structures transpose rows: number k of items 2i and 2i+1 is in
// register k of the i-th of as many side by side as a row has numbers.
type neonDoubles struct {
	*neon
	one vec
}

// neonItems is how many items are treated at a time.
const neonItems = 4

// halves are the registers of a number of so many items.
const halves = neonItems / 2

// vector is new registers for a number of each item.
func (n neonDoubles) vector() vec { return n.vec(halves) }

// row is new registers for the numbers of the items' rows.
func (n neonDoubles) row(numbers int) (row []vec) {
	first := n.vec(numbers * halves).first
	for k := range numbers {
		row = append(row, vec{first: first + k, registers: halves, gap: numbers - 1})
	}
	return row
}

// bits is a constant in every lane of one register.
func (n neonDoubles) bits(bits uint64) vec {
	v := n.vec(1)
	n.scope(func() {
		r := n.gp()
		n.op("MOVD $%#x, %v", bits, r)
		n.op("VDUP %v, V%d.D2", r, v.first)
	})
	return v
}

func (n neonDoubles) constant(x float64) vec { return n.bits(math.Float64bits(x)) }

// Instructions beside those for float32.
var (
	fcmeq   = instruction{0x4e20e400, "fcmeq"}   // a mask
	frsqrts = instruction{0x4ea0fc00, "frsqrts"} // (3 - a b)/2
	scvtf   = instruction{0x4e21d800, "scvtf"}   // from integers
)

func (n neonDoubles) dot(to vec, a, b []vec) {
	n.do(fmul, to, a[0], b[0])
	n.do(fmla, to, a[1], b[1])
	n.do(fmla, to, a[2], b[2])
}

// cross is a×b.
func (n neonDoubles) cross(to, a, b []vec) {
	for i, v := range to {
		j, k := (i+1)%3, (i+2)%3
		n.do(fmul, v, a[j], b[k])
		n.do(fmls, v, a[k], b[j])
	}
}

// less is a − s·b, in place of a.
func (n neonDoubles) less(a, b []vec, s vec) {
	for i := range a {
		n.do(fmls, a[i], b[i], s)
	}
}

func (n neonDoubles) times(a []vec, s vec) {
	for _, v := range a {
		n.do(fmul, v, v, s)
	}
}

// normalize divides by the root of the squared length.
func (n neonDoubles) normalize(a []vec, squared vec) {
	n.scope(func() {
		inverse := n.vector()
		n.inverseRoot(inverse, squared)
		n.times(a, inverse)
	})
}

// inverseRoot is 1/√x.
func (n neonDoubles) inverseRoot(to, x vec) {
	n.of(fsqrt, to, x)
	n.do(fdiv, to, n.one, to)
}

// renormalize is normalize where the squared length is nearly 1: by 1.5 − x/2,
// as in doubles.
func (n neonDoubles) renormalize(a []vec, squared vec) {
	n.do(frsqrts, squared, squared, n.one)
	n.times(a, squared)
}

// unless makes v NaN in the lanes where not x > bound, and gives the others.
func (n neonDoubles) unless(x, bound, v vec) (usual vec) {
	usual = n.vector()
	n.do(fcmgt, usual, x, bound)
	for i := range v.registers {
		d, m := v.number(i), usual.number(i)
		n.word(0x4ee01c00|uint32(m<<16|d<<5|d), "orn v%[2]d.16b, v%[2]d.16b, v%[3]d.16b", d, m)
	}
	return usual
}

// neonRare gathers the lanes, of any group, that unless and infinite have not
// marked.
type neonRare struct {
	neonDoubles
	usual vec
}

func (n neonDoubles) rare() neonRare { return neonRare{n, n.bits(math.MaxUint64)} }

func (r neonRare) keep(lanes vec) {
	for i := range lanes.registers {
		r.op("VAND V%[1]d.B16, V%[2]d.B16, V%[1]d.B16", r.usual.first, lanes.number(i))
	}
}

func (r neonRare) unless(x, bound, v vec) {
	r.scope(func() { r.keep(r.neonDoubles.unless(x, bound, v)) })
}

// infinite marks the lanes of v that are not finite.
func (r neonRare) infinite(v vec) {
	r.scope(func() {
		zero := r.vector() // or NaN
		r.do(fsub, zero, v, v)
		r.do(fcmeq, zero, zero, zero)
		r.keep(zero)
	})
}

// result stores whether there was one.
func (r neonRare) result() {
	r.scope(func() {
		low, high := r.gp(), r.gp()
		r.op("VMOV V%d.D[0], %v", r.usual.first, low)
		r.op("VMOV V%d.D[1], %v", r.usual.first, high)
		r.op("AND %v, %v", high, low)
		r.op("CMN $1, %v", low)
		r.op("CSET NE, %v", low)
		r.op("MOVB %v, %s", low, r.parameters["rare"])
	})
}

// What an address becomes when an item's row was moved: as it is, behind the
// row, or greater by the number in a register.
const (
	stay   = -1
	behind = 31
)

// item moves an item's row of two or three numbers.
func (n neonDoubles) item(name string, row []vec, item int, base gp, then int) {
	code := map[string]uint32{"st2": 0x0d208400, "st3": 0x0d00a400, "ld3": 0x0d40a400}[name]
	first, lane := row[0].number(item/2), item%2
	list := fmt.Sprintf("{v%d.d-v%d.d}", first, first+2)
	if len(row) == 2 {
		list = fmt.Sprintf("{v%d.d, v%d.d}", first, first+1)
	}
	next := ""
	if then != stay {
		code |= uint32(1<<23 | then<<16)
		next = fmt.Sprintf(", x%d", then)
	}
	if then == behind {
		next = fmt.Sprintf(", #%d", 8*len(row))
	}
	n.word(code|uint32(lane<<30|base.number()<<5|first), "%s %s[%d], [x%d]%s", name, list, lane, base.number(), next)
}

// rows moves the items' rows of three or four numbers one after the other.
func (n neonDoubles) rows(format string, row []vec, base gp) {
	for i := range halves {
		var list []string
		for _, v := range row {
			list = append(list, fmt.Sprintf("V%d.D2", v.number(i)))
		}
		n.op(format, len(row), fmt.Sprintf("[%s]", strings.Join(list, ", ")), 16*len(row), base)
	}
}

func (n neonDoubles) loadRows(row []vec, base gp) {
	n.rows("VLD%[1]d.P %[3]d(%[4]v), %[2]s", row, base)
}
func (n neonDoubles) storeRows(row []vec, base gp) { n.rows("VST%d.P %s, %d(%v)", row, base) }

// gather calls load with the address of the row of bytes that each item's index
// names; the indices, from first on, are so many bytes apart.
func (n neonDoubles) gather(base, bytes, indices gp, first, apart int, load func(item int, row gp)) {
	n.scope(func() {
		row := n.gp()
		for item := range neonItems {
			n.op("MOVW %d(%v), %v", first+apart*item, indices, row)
			n.op("MADD %v, %v, %v, %v", bytes, base, row, row)
			load(item, row)
		}
	})
}

// bytes is a number of them in a register.
func (n neonDoubles) bytes(count int) gp {
	r := n.gp()
	n.op("MOVD $%d, %v", count, r)
	return r
}

// neonWindow is the centres of the items of a group. Those of items 2i and 2i+1
// are one or follow each other, as there is none between two without an edge:
// what the columns hold of both is read at once and looked up.
type neonWindow struct {
	neonDoubles
	columns, centers gp
	pairs            []gp // in the columns, at the centre of item 2i
	first, second    gp   // the bytes of the first number, and what leads to the second's
	places           vec
}

func (n neonDoubles) window(columns, centers gp) neonWindow {
	w := neonWindow{n, columns, centers, n.pointers(halves), n.gp(), n.gp(), n.vector()}
	n.op("MOVD $%#x, %v", 0x0706050403020100, w.first)
	n.op("MOVD $%#x, %v", 0x0808080808080808, w.second)
	for i := range halves {
		n.op("VDUP %v, V%d.D2", w.first, w.places.number(i))
	}
	return w
}

// next goes on to the group of the next centres.
func (w neonWindow) next() {
	w.scope(func() {
		place, other := w.gp(), w.gp()
		for i, pair := range w.pairs {
			w.op("LDPSW %d(%v), (%v, %v)", 8*i, w.centers, place, other)
			w.op("ADD %v<<3, %v, %v", place, w.columns, pair)
			w.op("SUB %v, %v", place, other)
			w.op("MADD %v, %v, %v, %v", other, w.first, w.second, other)
			w.op("VMOV %v, V%d.D[1]", other, w.places.number(i))
		}
	})
	w.advance(4*neonItems, w.centers)
}

// column is a number of the centre of each item.
func (w neonWindow) column(to vec, column int) {
	for i, pair := range w.pairs {
		w.load(to.part(i), pair, column*columnBytes)
		w.op("VTBL V%d.B16, [V%[2]d.B16], V%[2]d.B16", w.places.number(i), to.number(i))
	}
}

// each calls body with three columns from first on.
func (w neonWindow) each(first int, body func(i int, column vec)) {
	w.scope(func() {
		column := w.vector()
		for i := range 3 {
			w.column(column, first+i)
			body(i, column)
		}
	})
}

// dots are the products of a vector of the centres with others.
func (w neonWindow) dots(first int, to []vec, with ...[]vec) {
	w.each(first, func(i int, column vec) {
		op := fmla
		if i == 0 {
			op = fmul
		}
		for j, a := range with {
			w.do(op, to[j], a[i], column)
		}
	})
}

// differences are rows less the positions of the centres.
func (w neonWindow) differences(rows ...[]vec) {
	w.each(0, func(i int, column vec) {
		for _, row := range rows {
			w.do(fsub, row[i], row[i], column)
		}
	})
}
