package main

import (
	"math"
	"slices"
)

// geometryBodies is what writes each function of interface Geometry.
func (n *neon) geometryBodies() map[string]func(*neon) {
	n.coefficients("log2", log2Coefficients())
	n.coefficients("exp2", exp2Coefficients())
	bodies := map[string]func(*neon){
		"fillCenters": (*neon).fillCenters,
		"positionColumns": func(n *neon) {
			n.doubles().columns("positions", positionWidth)
		},
		"frameColumns": func(n *neon) {
			n.doubles().columns("frames", frameWidth)
		},
	}
	for name, body := range map[string]func(neonDoubles){
		"wedges": neonDoubles.wedges, "sumRings": neonDoubles.sumRings, "frames": neonDoubles.frames,
		"edges32": neonDoubles.edges32, "edges64": neonDoubles.edges64,
		"relTan": neonDoubles.relTan, "tangents": neonDoubles.tangents,
	} {
		bodies[name] = func(n *neon) { body(n.doubles()) }
	}
	return bodies
}

// coefficients writes those of a polynomial, the highest first.
func (n *neon) coefficients(name string, c []float64) {
	var words []uint64
	for _, x := range slices.Backward(c) {
		words = append(words, math.Float64bits(x))
	}
	data(n, name, words)
}

func (n *neon) fillCenters() {
	vertices, centers, offsets := n.argument("vertices"), n.argument("centers"), n.argument("offsets")
	vertex, left := n.argument("first"), n.argument("n")
	begin, to, end, place, eight := n.gp(), n.gp(), n.gp(), n.gp(), n.vec(1)
	store := func() { n.op("FSTPQ.P (F%[1]d, F%[1]d), 32(%[2]v)", eight.first, to) }
	n.op("MOVD (%v), %v", offsets, begin)
	n.copy(centers, to)
	n.op("MOVD $0, %v", place)
	n.label("loop")
	n.op("VDUP %v, V%d.S4", place, eight.first)
	n.op("MOVW %v, (%v)(%v<<2)", vertex, vertices, place)
	n.advance(1, vertex)
	n.op("MOVD.W 8(%v), %v", offsets, end)
	n.op("SUB %v, %v", begin, end)
	n.op("ADD %v<<2, %v, %v", end, centers, end)
	n.op("CMP %v, %v", to, end)
	n.op("CINC NE, %[1]v, %[1]v", place)
	// What is too much is overwritten by the next.
	n.label("store")
	store()
	n.op("CMP %v, %v", end, to)
	n.op("BLO store")
	n.copy(end, to)
	n.repeat("loop", left, 1)
	n.op("MOVD %v, %s", place, n.parameters["count"])
	n.op("SUBS $1, %v", place)
	n.op("CSEL GE, %[1]v, ZR, %[1]v", place)
	n.op("VDUP %v, V%d.S4", place, eight.first)
	store()
}

// columns transposes rows of so many numbers.
func (n neonDoubles) columns(of string, width int) {
	columns, rows, vertices, left, bytes := n.argument("columns"), n.argument(of), n.argument("vertices"), n.argument("n"), n.bytes(8*width)
	var vectors [][]vec
	first := 0 // of the columns
	if of == "frames" {
		first = e1Column
	}
	for range width / 3 {
		vectors = append(vectors, n.row(3))
	}
	n.label("loop")
	n.gather(rows, bytes, vertices, 0, 4, func(item int, row gp) {
		for _, v := range vectors {
			n.item("ld3", v, item, row, behind)
		}
	})
	for i, v := range slices.Concat(vectors...) {
		n.store(v, columns, (first+i)*columnBytes)
	}
	n.advance(4*neonItems, vertices)
	n.advance(8*neonItems, columns)
	n.repeat("loop", left, neonItems)
}

func (n neonDoubles) wedges() {
	rows, positions, corners, left, bytes := n.argument("rows"), n.argument("positions"), n.argument("wedges"), n.argument("n"), n.bytes(8*positionWidth)
	w, zero := n.window(n.argument("columns"), n.argument("centers")), n.constant(zeroLength)
	a, b, c, b2 := n.row(3), n.row(3), n.row(4), n.vector()
	n.label("loop")
	w.next()
	for i, v := range [][]vec{a, b} {
		n.gather(positions, bytes, corners, 4*i, 8, func(item int, row gp) { n.item("ld3", v, item, row, stay) })
	}
	w.differences(a, b)
	n.cross(c[:3], a, b)
	a2 := c[3]
	n.dot(a2, a, a)
	n.dot(b2, b, b)
	n.scope(func() {
		least := n.vector()
		n.do(fmin, least, a2, b2)
		n.do(fadd, a2, a2, b2)
		n.unless(least, zero, a2)
	})
	n.storeRows(c, rows)
	n.advance(8*neonItems, corners)
	n.repeat("loop", left, neonItems)
}

func (n neonDoubles) sumRings() {
	sums, rows, offsets, rings := n.argument("sums"), n.argument("rows"), n.argument("offsets"), n.argument("n")
	begin, end, sum, row := n.gp(), n.gp(), n.vec(2), n.vec(2)
	n.label("loop")
	n.zero(sum)
	n.op("LDP (%v), (%v, %v)", offsets, begin, end)
	n.op("SUBS %v, %v, %v", begin, end, begin)
	n.op("BEQ store")
	n.label("row")
	n.loadNext(row, rows)
	n.do(fadd, sum, sum, row)
	n.repeat("row", begin, 1)
	n.label("store")
	n.storeNext(sum, sums)
	n.advance(8, offsets)
	n.repeat("loop", rings, 1)
}

func (n neonDoubles) frames() {
	frames, sums, centers, positions := n.argument("frames"), n.argument("sums"), n.argument("centers"), n.argument("positions")
	neighbors, left, bytes := n.argument("neighbors"), n.argument("n"), n.bytes(8*positionWidth)
	found := n.rare()
	wedges, place, axis := n.constant(ofWedges), n.constant(ofPlace), n.constant(noAxis)
	difference, projection := n.constant(noDifference), n.constant(noProjection)
	t, size2, sum := n.row(3), n.vector(), n.row(4)
	normal, w := sum[:3], sum[3]
	n.label("loop")
	n.loadRows(t, centers)
	n.dot(size2, t, t)
	n.loadRows(sum, sums)
	n.scope(func() {
		noise, length2 := n.vector(), n.vector()
		n.do(fmul, noise, w, wedges)
		n.do(fmla, noise, size2, place)
		n.do(fmul, noise, noise, w)
		n.do(fmax, noise, noise, axis) // NaN if w is
		n.dot(length2, normal, normal)
		n.normalize(normal, length2)
		found.unless(length2, noise, normal[0])
	})
	n.scope(func() {
		q := n.row(3)
		n.gather(positions, bytes, neighbors, 0, 4, func(item int, row gp) { n.item("ld3", q, item, row, stay) })
		for i, v := range t {
			n.do(fsub, v, q[i], v)
		}
	})
	project := func() {
		n.scope(func() {
			along := n.vector()
			n.dot(along, t, normal)
			n.less(t, normal, along)
		})
	}
	n.scope(func() {
		bound, t2 := n.vector(), n.vector()
		n.do(fmul, size2, size2, difference)
		n.dot(bound, t, t)
		n.do(fmul, bound, bound, projection)
		n.do(fmax, bound, bound, size2)
		n.do(fmax, bound, bound, axis)
		project()
		n.dot(t2, t, t)
		found.unless(t2, bound, normal[0])
		n.normalize(t, t2)
		// Projected twice: once leaves an error of the order of |d|/|t|.
		project()
		n.dot(t2, t, t)
		n.renormalize(t, t2)
	})
	n.scope(func() {
		second := n.row(3)
		n.cross(second, normal, t)
		for item := range neonItems {
			for _, v := range [][]vec{t, second, normal} {
				n.item("st3", v, item, frames, behind)
			}
		}
	})
	n.advance(4*neonItems, neighbors)
	n.repeat("loop", left, neonItems)
	found.result()
}

func (n neonDoubles) edges64() { n.edges(n.storeNext) }

func (n neonDoubles) edges32() {
	n.edges(func(v vec, to gp) {
		n.scope(func() {
			narrow := n.vec(1)
			for i, code := range [halves]uint32{0x0e616800, 0x4e616800} {
				name := [halves]string{"fcvtn v%d.2s, v%d.2d", "fcvtn2 v%d.4s, v%d.2d"}[i]
				n.word(code|uint32(v.number(i)<<5|narrow.first), name, narrow.first, v.number(i))
			}
			n.storeNext(narrow, to)
		})
	})
}

// edges writes edges32 or edges64, which store differs in.
func (n neonDoubles) edges(storeNext func(v vec, to gp)) {
	cosTheta, sinTheta, cosG, sinG, length := n.argument("cosTheta"), n.argument("sinTheta"), n.argument("cosG"), n.argument("sinG"), n.argument("length")
	positions, frames, neighbors, left := n.argument("positions"), n.argument("frames"), n.argument("neighbors"), n.argument("n")
	w, found := n.window(n.argument("columns"), n.argument("centers")), n.rare()
	positionBytes, frameBytes, toNormal := n.bytes(8*positionWidth), n.bytes(8*frameWidth), n.bytes(8*6)
	opposite, projection, angle := n.constant(nearlyOpposite), n.constant(noProjection), n.constant(noAngle)
	first, to := n.row(3), n.row(3)
	n.label("loop")
	w.next()
	// c, k and R e1_q as in doubles.
	n.scope(func() {
		normal, cos, k := n.row(3), n.vector(), n.vector()
		n.gather(frames, frameBytes, neighbors, 0, 4, func(item int, row gp) {
			n.item("ld3", first, item, row, toNormal.number())
			n.item("ld3", normal, item, row, stay)
		})
		w.dots(normalColumn, []vec{cos, k}, normal, first)
		n.do(fadd, cos, cos, n.one)
		n.do(fdiv, k, k, cos)
		found.unless(cos, opposite, k)
		n.less(first, normal, k)
	})
	n.gather(positions, positionBytes, neighbors, 0, 4, func(item int, row gp) { n.item("ld3", to, item, row, stay) })
	w.differences(to)

	x, y, gx, gy := n.vector(), n.vector(), n.vector(), n.vector()
	w.dots(e1Column, []vec{x, gx}, to, first)
	w.dots(e2Column, []vec{y, gy}, to, first)
	square := n.vector()
	sumSquares := func(x, y vec) {
		n.do(fmul, square, x, x)
		n.do(fmla, square, y, y)
	}
	sumSquares(gx, gy)
	n.renormalize([]vec{gx, gy}, square)
	storeNext(gx, cosG)
	storeNext(gy, sinG)

	bound := gx
	n.dot(bound, to, to)
	n.of(fsqrt, gy, bound)
	storeNext(gy, length)
	n.do(fmul, bound, bound, projection)
	n.do(fmax, bound, bound, angle)
	sumSquares(x, y)
	n.normalize([]vec{x, y}, square)
	found.unless(square, bound, x)
	storeNext(x, cosTheta)
	storeNext(y, sinTheta)
	n.advance(4*neonItems, neighbors)
	n.repeat("loop", left, neonItems)
	found.result()
}

func (n neonDoubles) relTan() {
	rows, plane, positions, neighbors := n.argument("rows"), n.argument("plane"), n.argument("positions"), n.argument("neighbors")
	powers, count, left, bytes := n.argument("powers"), n.argument("count"), n.argument("n"), n.bytes(8*positionWidth)
	w, quarter, logarithm := n.window(n.argument("columns"), n.argument("centers")), n.gp(), n.gp()
	n.op("MOVBU %s, %v", n.parameters["logarithm"], logarithm)
	n.op("MOVD $%#x, %v", math.Float64bits(-0.25), quarter)
	short := n.constant(shortEdge)
	to, square, inverse, log := n.row(3), n.vector(), n.vector(), n.vector()
	n.label("loop")
	w.next()
	n.gather(positions, bytes, neighbors, 0, 4, func(item int, row gp) { n.item("ld3", to, item, row, stay) })
	w.differences(to)
	n.dot(square, to, to)
	n.inverseRoot(inverse, square)
	n.op("CBZ %v, powers", logarithm)
	n.log2(log, square)
	n.label("powers")
	halved, rest, row := n.gp(), n.gp(), n.gp()
	n.copy(powers, halved)
	n.copy(count, rest)
	n.copy(rows, row)
	n.label("power")
	n.scope(func() {
		half, at := n.gp(), n.gp()
		n.op("MOVD.P 8(%v), %v", halved, half)
		power := n.vector()
		n.op("CMP %v, %v", quarter, half)
		n.op("BEQ root")
		for i := range halves {
			n.op("VDUP %v, V%d.D2", half, power.number(i))
		}
		n.do(fmul, power, power, log)
		n.exp2(power)
		v := n.row(4)
		n.do(fdiv, v[3], inverse, power)
		n.op("B store")
		n.label("root")
		n.of(fsqrt, power, inverse)
		n.set(v[3], power)
		n.label("store")
		n.scope(func() { n.unless(square, short, v[3]) })
		for i, v := range v[:3] {
			n.do(fmul, v, to[i], power)
		}
		n.copy(row, at)
		n.storeRows(v, at)
	})
	n.op("ADD %v, %v", plane, row)
	n.repeat("power", rest, 1)
	n.advance(8*4*neonItems, rows)
	n.advance(4*neonItems, neighbors)
	n.repeat("loop", left, neonItems)
}

// log2 of positive normal numbers: see doubles.log2. The integer part e is that
// of the bits less those of √½ over 2⁵².
func (n neonDoubles) log2(log, x vec) {
	n.scope(func() {
		half, m, s := n.bits(math.Float64bits(math.Sqrt(0.5))), n.vector(), n.vector()
		n.do(sub4, m, x, half)
		for i := range halves {
			d, a := s.number(i), m.number(i)
			n.word(0x4f4c0400|uint32(a<<5|d), "sshr v%d.2d, v%d.2d, #52", d, a)
			n.op("VSHL $52, V%d.D2, V%d.D2", d, a)
		}
		n.of(scvtf, log, s)
		n.do(sub4, m, x, m)
		n.do(fadd, s, m, n.one)
		n.do(fsub, m, m, n.one)
		n.do(fdiv, s, m, s)
		square := m
		n.do(fmul, square, s, s)
		n.do(fmla, log, s, n.polynomial("log2", len(log2Coefficients()), square))
	})
}

// exp2 replaces y by 2^y: see doubles.exp2.
func (n neonDoubles) exp2(y vec) {
	n.scope(func() {
		whole, rest := n.vector(), n.vector()
		n.of(frintn, rest, y)
		n.of(fcvtns, whole, y)
		n.do(fsub, rest, y, rest)
		for i := range halves {
			n.op("VSHL $52, V%[1]d.D2, V%[1]d.D2", whole.number(i))
		}
		n.do(add4, y, n.polynomial("exp2", len(exp2Coefficients()), rest), whole)
	})
}

// polynomial is that of so many coefficients, an even number: see
// doubles.polynomial.
func (n neonDoubles) polynomial(name string, count int, x vec) (sum vec) {
	square, odd, even, next := n.vector(), n.vector(), n.vector(), n.vector()
	at := n.address(name)
	constant := func(v vec) {
		n.op("VLD1R.P 8(%v), [V%d.D2]", at, v.number(0))
		n.op("VMOV V%d.B16, V%d.B16", v.number(0), v.number(1))
	}
	n.do(fmul, square, x, x)
	constant(odd)
	constant(even)
	for range count/2 - 1 {
		for _, s := range []*vec{&odd, &even} {
			constant(next)
			n.do(fmla, next, square, *s)
			*s, next = next, *s
		}
	}
	n.do(fmla, even, odd, x)
	return even
}

func (n neonDoubles) tangents() {
	to, step, sums, plane := n.argument("to"), n.argument("step"), n.argument("sums"), n.argument("plane")
	frames, factors, count, left := n.argument("frames"), n.argument("factors"), n.argument("count"), n.argument("n")
	found, next := n.rare(), n.bytes(8*6) // from an e2 to the next frame
	axes, factor := [2][]vec{n.row(3), n.row(3)}, n.vector()
	n.label("loop")
	for item := range neonItems {
		n.item("ld3", axes[0], item, frames, behind)
		n.item("ld3", axes[1], item, frames, next.number())
	}
	n.loadNext(factor, factors)
	of, pair, rest := n.gp(), n.gp(), n.gp()
	n.copy(sums, of)
	n.copy(to, pair)
	n.copy(count, rest)
	n.label("power")
	n.scope(func() {
		at, sum, v := n.gp(), n.row(4), n.row(2)
		n.copy(of, at)
		n.loadRows(sum, at)
		scale := sum[3]
		n.do(fmul, scale, scale, factor)
		for i, axis := range axes {
			n.dot(v[i], sum, axis)
			n.do(fmul, v[i], v[i], scale)
			found.infinite(v[i])
		}
		n.copy(pair, at)
		for item := range neonItems {
			n.item("st2", v, item, at, step.number())
		}
	})
	n.op("ADD %v, %v", plane, of)
	n.advance(16, pair)
	n.repeat("power", rest, 1)
	n.op("ADD %v<<2, %v", step, to)
	n.advance(32*neonItems, sums)
	n.repeat("loop", left, neonItems)
	found.result()
}

// doubles begins with the constant that most of the kernels need.
func (n *neon) doubles() neonDoubles {
	d := neonDoubles{neon: n}
	d.one = d.constant(1)
	return d
}
