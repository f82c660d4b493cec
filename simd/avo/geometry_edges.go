package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

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
	// c = n_p·n_q, k = n_p·e1_q / (1 + c) and R e1_q = e1_q - k (n_q + n_p), of
	// which n_p has no part in the coordinates at p.
	normal := d.normals(row(frames, frameWidth, axis))
	first := d.loaded(row(frames, frameWidth, e1))
	products := w.dots(normalColumn, normal, first)
	cos, k := products[0], products[1]
	d.with(plus, 1, cos, cos)
	VDIVPD(cos, k, k)
	found.unless(cos, d.number(nearlyOpposite), k)
	less(first, normal, k)

	to := w.differences(row(positions, positionWidth, 0))
	bound, root := d.dot(to, to), d.vector()
	VSQRTPD(bound, root)
	store(root, length)
	d.with(mul, noProjection, bound, bound)
	VMAXPD(d.number(noAngle), bound, bound)

	// The coordinates of d and of R e1_q.
	x := w.dots(e1Column, to, first)
	y := w.dots(e2Column, to, first)
	square := func(i int) reg.VecVirtual {
		v := d.vector()
		VMULPD(x[i], x[i], v)
		VFMADD231PD(y[i], y[i], v)
		return v
	}
	g := d.toUnit(square(1))
	VMULPD(g, x[1], x[1])
	VMULPD(g, y[1], y[1])
	store(x[1], cosG)
	store(y[1], sinG)

	tangent2 := square(0)
	inverse := d.inverseRoot(tangent2)
	VMULPD(inverse, x[0], x[0])
	VMULPD(inverse, y[0], y[0])
	found.unless(tangent2, bound, x[0])
	store(x[0], cosTheta)
	store(y[0], sinTheta)

	size := map[string]int{"32": 4, "64": 8}[bits]
	d.advance(size, cosTheta, sinTheta, cosG, sinG, length)
	d.advance(4, neighbors, centers)
	d.next(n)
	found.result()
	done()
}
