package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

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
	columnBytes  = 8 * (64 + 8)
	e1Column     = 3
	e2Column     = 6
	normalColumn = 9
)

func (d *doubles) columnsOf(name, of string, write func(row func(disp int) func(lane int) Mem, to func(column int) Mem)) {
	d.function(name, fmt.Sprintf("(columns, %s *float64, vertices *int32, n int)", of),
		fmt.Sprintf("transposes the %s of n vertices, a multiple of the lanes.", of))
	columns, rows, vertices, n := argument("columns"), argument(of), argument("vertices"), argument("n")
	width := uint8(positionWidth)
	if of == "frames" {
		width = frameWidth
	}
	Label("loop")
	write(func(disp int) func(lane int) Mem {
		return func(lane int) Mem { return rowAt(rows, Mem{Base: vertices, Disp: 4 * lane}, width, disp) }
	}, func(column int) Mem { return Mem{Base: columns, Disp: column * columnBytes} })
	d.advance(8, columns)
	d.advance(4, vertices)
	d.next(n)
	done()
}

func (d *doubles) positionColumns() {
	d.columnsOf("positionColumns", "positions", func(row func(disp int) func(lane int) Mem, to func(column int) Mem) {
		for i, v := range d.loaded(row(0)) {
			VMOVUPD(v, to(i))
		}
	})
}

func (d *doubles) frameColumns() {
	d.columnsOf("frameColumns", "frames", func(row func(disp int) func(lane int) Mem, to func(column int) Mem) {
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
