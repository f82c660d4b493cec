package main

// turn multiplies x + iy by c + is.
func (n *neon) turn(x, y, c, s vec) {
	n.scope(func() {
		re, im := n.like(x), n.like(x)
		n.do(fmul, re, x, c)
		n.do(fmls, re, y, s)
		n.do(fmul, im, y, c)
		n.do(fmla, im, x, s)
		n.set(x, re)
		n.set(y, im)
	})
}

func (n *neon) phases() {
	in, out, count, order := n.argument("in"), n.argument("out"), n.argument("n"), n.argument("order")
	cosTheta, sinTheta, cosG, sinG := n.argument("cosTheta"), n.argument("sinTheta"), n.argument("cosG"), n.argument("sinG")
	left, inAt, outAt := n.gp(), n.gp(), n.gp()
	n.runs("edges", count, func(kind vec) {
		c, s, g, h, re, im := n.like(kind), n.like(kind), n.like(kind), n.like(kind), n.like(kind), n.like(kind)
		n.loadNext(c, cosTheta)
		n.loadNext(s, sinTheta)
		n.loadNext(g, cosG)
		n.loadNext(h, sinG)
		n.do(fmul, re, c, g)
		n.do(fmla, re, s, h)
		n.do(fmul, im, c, h)
		n.do(fmls, im, s, g)
		inRe, inIm, outRe, outIm := g, h, n.like(kind), n.like(kind)
		for _, copied := range [][2]vec{{inRe, re}, {inIm, im}, {outRe, c}, {outIm, s}} {
			n.set(copied[0], copied[1])
		}
		n.copy(order, left)
		n.copy(in, inAt)
		n.copy(out, outAt)
		label := kind.label("power")
		n.label(label)
		n.store(inRe, inAt, 0)
		n.store(inIm, inAt, arrayBytes)
		n.store(outRe, outAt, arrayBytes)
		n.store(outIm, outAt, 2*arrayBytes)
		n.turn(inRe, inIm, re, im)
		n.turn(outRe, outIm, c, s)
		n.advance(2*arrayBytes, inAt, outAt)
		n.repeat(label, left, 1)
		n.advance(4*kind.numbers(), in, out)
	})
}

func (n *neon) weigh() {
	to, given, w, out := n.argument("to"), n.argument("a"), n.argument("w"), n.argument("out")
	count, arrays, left, at, from := n.argument("n"), n.argument("arrays"), n.gp(), n.gp(), n.gp()
	n.runs("edges", count, func(kind vec) {
		a, v := n.like(kind), n.like(kind)
		n.loadNext(a, given)
		n.loadNext(v, w)
		n.do(fmul, a, a, v)
		n.copy(to, at)
		n.copy(out, from)
		n.store(a, at, 0)
		array, next := kind.label("array"), kind.label("next")
		n.copy(arrays, left)
		n.op("CBZ %v, %s", left, next)
		n.label(array)
		n.advance(arrayBytes, at, from)
		n.load(v, from, 0)
		n.do(fmul, v, v, a)
		n.store(v, at, 0)
		n.repeat(array, left, 1)
		n.label(next)
		n.advance(4*kind.numbers(), to, out)
	})
}

func (n *neon) rotate(order int) {
	z, f, step, rowStep := n.argument("z"), n.argument("f"), n.argument("step"), n.argument("rowStep")
	neighbors, in, left, last := n.argument("neighbors"), n.argument("in"), n.argument("n"), n.argument("known")
	const ahead = 32
	e, next, q := n.gp(), n.gp(), n.gp()
	row := func(edge gp) {
		n.op("MOVW (%v)(%v<<2), %v", neighbors, edge, q)
		n.op("MADD %v, %v, %v, %v", step, f, q, q)
	}
	n.op("MOVD $0, %v", e)
	n.op("SUB $1, %v", last)
	n.label("edge")
	n.op("ADD $%d, %v, %v", ahead, e, next)
	n.op("CMP %v, %v", last, next)
	n.op("CSEL GT, %v, %v, %v", last, next, next)
	row(next)
	for k := range 2*order + 1 {
		n.op("PRFM (%v), PLDL1KEEP", q)
		if k < 2*order {
			n.op("ADD %v, %v", rowStep, q)
		}
	}
	row(e)
	x, y, re, im := n.vec(4), n.vec(4), n.vec(4), n.vec(4)
	n.load(x, q, 0)
	n.store(x, z, 0)
	c, s := n.vec(1), n.vec(1)
	c.single, s.single = true, true
	for k := 1; k <= order; k++ {
		n.load(c, in, (2*k-2)*arrayBytes)
		n.load(s, in, (2*k-1)*arrayBytes)
		for i, v := range []vec{x, y} {
			n.op("ADD %v, %v", rowStep, q)
			n.load(v, q, 0)
			n.by(fmulBy, []vec{re, im}[i], v, c.lowest())
		}
		n.by(fmlsBy, re, y, s.lowest())
		n.by(fmlaBy, im, x, s.lowest())
		n.store(re, z, (2*k-1)*rowBytes)
		n.store(im, z, 2*k*rowBytes)
	}
	n.advance(4, in)
	n.advance(edgeBytes, z)
	n.advance(1, e)
	n.repeat("edge", left, 1)
}

// neonPass is pass in NEON.
type neonPass struct {
	*neon
	pass
	rows               []vec // of moments
	row, step, rowStep gp    // the vertex's rows in memory
	z, cosine, sine    gp    // of the edge
	offsets, vertices  gp
	c, s               vec
}

func (n *neon) newPass(forms, rows string) *neonPass {
	p := &neonPass{neon: n, pass: pass{forms: forms}, row: n.argument(rows), step: n.argument("step"), rowStep: n.argument("rowStep"),
		z: n.argument("z"), cosine: n.argument("coefficients"), offsets: n.argument("offsets"), vertices: n.argument("vertices"),
		c: n.vec(1), s: n.vec(1)}
	p.c.single, p.s.single = true, true
	p.rows = n.vecs(p.momentRows(), 2)
	n.scope(func() {
		base, edge := n.argument("base"), n.gp()
		n.op("MOVD (%v), %v", p.offsets, edge)
		n.op("SUB %v, %v", base, edge)
		n.op("ADD %v<<2, %v", edge, p.cosine)
	})
	if p.phased() {
		p.sine = n.gp()
		n.op("ADD $%d, %v, %v", arrayBytes, p.cosine, p.sine)
	}
	// z points to the first edge.
	return p
}

// each runs body for every row of the vertex with its place in memory.
func (p *neonPass) each(body func(v vec, at gp)) {
	p.scope(func() {
		at := p.gp()
		p.copy(p.row, at)
		for r, v := range p.rows {
			body(v, at)
			if r < len(p.rows)-1 {
				p.op("ADD %v, %v", p.rowStep, at)
			}
		}
	})
}

// ring is the loop over the edges of a vertex. body gets the groups one after
// the other, with their features, their rows of moments, and the place of their
// features in z.
func (p *neonPass) ring(begin func(), body func(form rune, f, rows []vec, at int), end func()) {
	p.scope(func() {
		left, next := p.gp(), p.gp()
		p.op("LDP (%v), (%v, %v)", p.offsets, left, next)
		p.op("SUBS %v, %v, %v", left, next, left)
		p.op("BEQ end")
		p.label("edge")
		p.loadNext(p.c, p.cosine)
		if p.phased() {
			p.loadNext(p.s, p.sine)
		}
		begin()
		row, at := 0, 0
		for _, form := range p.forms {
			p.scope(func() {
				f := p.vecs(rowsOf[form].features, 2)
				for i, v := range f {
					p.load(v, p.z, (at+i)*rowBytes)
				}
				body(form, f, p.rows[row:], at*rowBytes)
			})
			row += rowsOf[form].moments
			at += rowsOf[form].features
		}
		end()
		p.advance(edgeBytes, p.z)
		p.repeat("edge", left, 1)
		p.label("end")
	})
}

func (p *neonPass) nextVertex() {
	p.op("ADD %v, %v", p.step, p.row)
	p.advance(8, p.offsets)
	p.repeat("vertex", p.vertices, 1)
}

func (n *neon) aggregate(forms string) {
	p := n.newPass(forms, "m")
	more := n.argument("more")
	n.label("vertex")
	n.op("CBNZ %v, load", more)
	for _, v := range p.rows {
		n.zero(v)
	}
	n.op("B begin")
	n.label("load")
	p.each(func(v vec, at gp) { n.load(v, at, 0) })
	n.label("begin")
	c, s := p.c.lowest(), p.s.lowest()
	p.ring(func() {}, func(form rune, f, m []vec, _ int) {
		n.by(fmlaBy, m[0], f[0], c)
		switch form {
		case 'Q':
			n.by(fmlaBy, m[1], f[1], c)
		case 'L':
			n.by(fmlaBy, m[1], f[0], s)
		case 'M': // c x - s y, s x + c y
			n.by(fmlaBy, m[1], f[0], s)
			n.by(fmlsBy, m[0], f[1], s)
			n.by(fmlaBy, m[1], f[1], c)
		case 'B':
			n.by(fmlaBy, m[1], f[0], s)
			n.by(fmlaBy, m[2], f[1], c)
			n.by(fmlaBy, m[3], f[1], s)
		}
	}, func() {})
	p.each(func(v vec, at gp) { n.store(v, at, 0) })
	p.nextVertex()
}

// dot: with C the part of the moments that cos mθ multiplies, and S that of
// sin mθ, the dot is cos mθ·⟨u, C⟩ + sin mθ·⟨u, S⟩.
func (n *neon) dot(forms string) {
	p := n.newPass(forms, "u")
	dots, dot := n.argument("dots"), n.vec(2)
	var c, s neonSum
	n.label("vertex")
	p.each(func(v vec, at gp) { n.load(v, at, 0) })
	p.ring(func() {
		c, s = neonSum{vec: n.vec(2)}, neonSum{vec: n.vec(2)}
		n.load(dot, dots, 0)
	}, func(form rune, f, u []vec, _ int) {
		n.accumulate(&c, f[0], u[0])
		switch form {
		case 'Q':
			n.accumulate(&c, f[1], u[1])
		case 'L':
			n.accumulate(&s, f[0], u[1])
		case 'M':
			n.accumulate(&c, f[1], u[1])
			n.accumulate(&s, f[0], u[1])
			n.do(fmls, s.vec, f[1], u[0])
		case 'B':
			n.accumulate(&c, f[1], u[2])
			n.accumulate(&s, f[0], u[1])
			n.accumulate(&s, f[1], u[3])
		}
	}, func() {
		n.by(fmlaBy, dot, c.vec, p.c.lowest())
		if p.phased() {
			n.by(fmlaBy, dot, s.vec, p.s.lowest())
		}
		n.storeNext(dot, dots)
	})
	p.nextVertex()
}

// neonSum is a sum of products, begun with the first.
type neonSum struct {
	vec
	begun bool
}

func (n *neon) accumulate(s *neonSum, a, b vec) {
	op := fmla
	if !s.begun {
		op, s.begun = fmul, true
	}
	n.do(op, s.vec, a, b)
}

func (n *neon) sumLanes() {
	to, dots, left := n.argument("to"), n.argument("dots"), n.argument("n")
	v := n.vecs(8, 2)
	n.label("edges")
	for i := range v {
		n.loadNext(v[i], dots)
		n.do(fadd, v[i].part(0), v[i], v[i].part(1))
	}
	// Four sums of two lanes each, then two of four.
	for distance := 1; distance < 4; distance *= 2 {
		for i := 0; i < len(v); i += 2 * distance {
			n.do(faddp, v[i].part(0), v[i], v[i+distance])
		}
	}
	n.store(v[0].part(0), to, 0)
	n.store(v[4].part(0), to, 16)
	n.advance(32, to)
	n.op("SUBS $%d, %v", len(v), left)
	n.op("BGT edges")
}
