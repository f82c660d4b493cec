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
	d.with(mul, noProjection, bound, bound)
	VMAXPD(d.number(noAngle), bound, bound)
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
