package main

// correlation writes the tile of rows × 16 columns: the entries of a row of a
// are the lanes of one or two registers, each of which multiplies the row of b.
func (n *neon) correlation(rows int) {
	c, cStep, a0, aStep := n.argument("c"), n.argument("cStep"), n.argument("a"), n.argument("aStep")
	b0, bStep, k, groups := n.argument("b"), n.argument("bStep"), n.argument("k"), n.argument("groups")
	a, b, left := n.gp(), n.gp(), n.gp()
	sums, entries, row := n.vecs(rows, 4), n.vec(2), n.vec(4)
	n.label("group")
	for _, copied := range [][2]gp{{a0, a}, {b0, b}, {k, left}} {
		n.copy(copied[0], copied[1])
	}
	for _, sum := range sums {
		n.zero(sum)
	}
	n.label("row")
	// The 1, 2 or 6 entries, and nothing behind them.
	for at := 0; at < rows; at += 4 {
		load := [...]string{1: "FMOVS", 2: "FMOVD", 4: "FMOVQ"}[min(4, rows-at)]
		n.op("%s %d(%v), F%d", load, 4*at, a, entries.number(at/4))
	}
	n.load(row, b, 0)
	for i, sum := range sums {
		n.by(fmlaBy, sum, row, element{entries.number(i / 4), i % 4})
	}
	n.op("ADD %v, %v", aStep, a)
	n.op("ADD %v, %v", bStep, b)
	n.repeat("row", left, 1)
	for _, sum := range sums {
		n.load(row, c, 0)
		n.do(fadd, sum, sum, row)
		n.store(sum, c, 0)
		n.op("ADD %v, %v", cStep, c)
	}
	n.advance(4*rows, a0)
	n.repeat("group", groups, 1)
}

func (n *neon) scale() {
	factor := n.number("factor")
	n.sixteen(n.argument("x"), func(v vec) { n.by(fmulBy, v, v, factor.lowest()) })
}

func (n *neon) mask() {
	y, of := n.argument("y"), n.vec(4)
	n.sixteen(n.argument("gradient"), func(v vec) {
		n.loadNext(of, y)
		n.compare(fcmle0, of, of)
		n.clear(v, of)
	})
}

func (n *neon) adam() {
	w, first, second, gradient, left := n.argument("w"), n.argument("first"), n.argument("second"), n.argument("gradient"), n.argument("n")
	numbers := map[string]element{}
	for _, name := range []string{"beta1", "beta2", "other1", "other2", "rate", "root", "decay", "penalty", "factor"} {
		numbers[name] = n.number(name).lowest()
	}
	epsilon := n.broadcast("epsilon")
	x, g, m, v, c := n.vec(2), n.vec(2), n.vec(2), n.vec(2), n.vec(2)
	n.label("loop")
	n.load(x, w, 0)
	n.loadNext(g, gradient)
	n.load(m, first, 0)
	n.load(v, second, 0)
	n.by(fmulBy, g, g, numbers["factor"])
	n.by(fmlaBy, g, x, numbers["penalty"])
	n.by(fmulBy, m, m, numbers["beta1"])
	n.by(fmlaBy, m, g, numbers["other1"])
	n.storeNext(m, first)
	n.by(fmulBy, v, v, numbers["beta2"])
	n.do(fmul, g, g, g)
	n.by(fmlaBy, v, g, numbers["other2"])
	n.storeNext(v, second)
	n.of(fsqrt, v, v)
	n.set(c, epsilon)
	n.by(fmlaBy, c, v, numbers["root"])
	n.by(fmulBy, m, m, numbers["rate"])
	n.do(fdiv, m, m, c)
	n.of(fneg, m, m)
	n.by(fmlaBy, m, x, numbers["decay"])
	n.storeNext(m, w)
	n.repeat("loop", left, 8)
}

// neonGradient is the registers of the backward pass of a non-linearity.
type neonGradient struct {
	*neon
	x, out []vec
}

// circleGradient writes the backward pass for 4 channels at a time. The
// components of x stay in registers, those of the gradient in memory.
func (n *neon) circleGradient(order int, prepare func(*neonGradient) (sample func(f, g vec), finish func())) {
	g, x, samples := n.argument("gradient"), n.argument("x"), n.argument("samples")
	parts, left := n.gp(), n.gp()
	components := 2*order + 1
	rows, basis := n.pointers(components), n.pointers(components)
	n.op("MOVD $0, %v", rows[0])
	n.op("MOVD %s, %v", n.parameters["rowStep"], left)
	for k, row := range rows[1:] {
		n.op("ADD %v, %v, %v", left, rows[k], row)
	}
	n.op("MOVD $%d, %v", rowLanes/4, parts)
	c := &neonGradient{n, n.vecs(components, 1), n.vecs(components, 1)}
	n.label("part")
	for k, v := range c.x {
		n.loadAt(v, x, rows[k])
	}
	sample, finish := prepare(c)
	for _, v := range c.out {
		n.zero(v)
	}
	n.op("MOVD %s, %v", n.parameters["basis"], basis[0])
	n.op("MOVD %s, %v", n.parameters["sampleStep"], left)
	for k, p := range basis[1:] {
		n.op("ADD %v, %v, %v", left, basis[k], p)
	}
	n.copy(samples, left)
	n.label("sample")
	n.scope(func() {
		f, of, number, gradient := n.vec(1), n.vec(1), n.vec(1), n.vec(1)
		number.single = true
		for k, v := range c.x {
			n.load(number, basis[k], 0)
			n.loadAt(gradient, g, rows[k])
			op := fmlaBy
			if k == 0 {
				op = fmulBy
			}
			n.by(op, f, v, number.lowest())
			n.by(op, of, gradient, number.lowest())
		}
		n.scope(func() { sample(f, of) })
		for k, v := range c.out {
			n.loadNext(number, basis[k])
			n.by(fmlaBy, v, of, number.lowest())
		}
	})
	n.repeat("sample", left, 1)
	n.scope(finish)
	for k, v := range c.out {
		n.storeAt(v, g, rows[k])
	}
	n.advance(16, x, g)
	n.repeat("part", parts, 1)
}

// relu prepares (f, g) ↦ [f > 0] g.
func (c *neonGradient) relu() (sample func(f, g vec), finish func()) {
	return func(f, g vec) {
		c.compare(fcmle0, f, f)
		c.clear(g, f)
	}, func() {}
}

// polynomial prepares (f, g) ↦ P'(u) g for u = f·√N/s, and adds what reaches
// x by way of s.
func (c *neonGradient) polynomial() (sample func(f, g vec), finish func()) {
	constants, inverse, ofSize, zero := c.vec(2), c.vec(1), c.vec(1), c.vec(1)
	c.scope(func() { c.load(constants, c.address("circle"), 0) })
	number := func(i int) element { return element{constants.number(i / 4), i % 4} }
	c.do(fmul, zero, c.x[0], c.x[0])
	for _, v := range c.x[1:] {
		c.do(fmla, zero, v, v)
	}
	// t = u/U = f·inverse. Where s = 0 it is 0, and finish clears the rest.
	c.of(fsqrt, inverse, zero)
	c.compare(fcmeq0, zero, zero)
	c.scope(func() {
		c.by(fmulBy, inverse, inverse, c.number("bound").lowest())
		c.do(fdiv, inverse, c.broadcast("scale"), inverse)
	})
	c.clear(inverse, zero)
	c.zero(ofSize)
	sample = func(f, g vec) {
		v, sum, next := c.vec(1), c.vec(1), c.vec(1)
		c.do(fmul, f, f, inverse)
		c.do(fmul, v, f, f)
		// P - u P' over U/2: c0 - v (c1 + 3 c2 v)
		c.dup(sum, number(5))
		c.by(fmlaBy, sum, v, number(4))
		c.dup(next, number(2))
		c.do(fmla, next, v, sum)
		c.do(fmla, ofSize, next, g)
		// P' = 1/2 + t (c1 + 2 c2 v)
		c.dup(sum, number(1))
		c.by(fmlaBy, sum, v, number(6))
		c.dup(next, number(3))
		c.do(fmla, next, f, sum)
		c.do(fmul, g, g, next)
	}
	finish = func() {
		// ofSize·U/2·scale/(s N) = ofSize·inverse·U²/2/N
		bound := c.number("bound").lowest()
		c.by(fmulBy, ofSize, ofSize, bound)
		c.by(fmulBy, ofSize, ofSize, bound)
		c.by(fmulBy, ofSize, ofSize, c.number("inverse").lowest())
		c.by(fmulBy, ofSize, ofSize, number(3))
		c.do(fmul, ofSize, ofSize, inverse)
		for k, v := range c.out {
			c.do(fmla, v, c.x[k], ofSize)
			c.clear(v, zero)
		}
	}
	return sample, finish
}

// spread: see aggregate, of which it is the transpose.
func (n *neon) spread(forms string) {
	p := n.newPass(forms, "m")
	n.label("vertex")
	p.each(func(v vec, at gp) { n.load(v, at, 0) })
	c, s := p.c.lowest(), p.s.lowest()
	p.ring(func() {}, func(form rune, f, m []vec, at int) {
		n.by(fmlaBy, f[0], m[0], c)
		switch form {
		case 'Q':
			n.by(fmlaBy, f[1], m[1], c)
		case 'L':
			n.by(fmlaBy, f[0], m[1], s)
		case 'M': // c r + s r', c r' - s r
			n.by(fmlaBy, f[1], m[1], c)
			n.by(fmlaBy, f[0], m[1], s)
			n.by(fmlsBy, f[1], m[0], s)
		case 'B':
			n.by(fmlaBy, f[1], m[2], c)
			n.by(fmlaBy, f[0], m[1], s)
			n.by(fmlaBy, f[1], m[3], s)
		}
		for i, v := range f {
			n.store(v, p.z, at+i*rowBytes)
		}
	}, func() {})
	p.nextVertex()
}

// unrotate: see rotate, of which it is the transpose.
func (n *neon) unrotate(order int, adds bool) {
	f, step, rowStep := n.argument("f"), n.argument("step"), n.argument("rowStep")
	z, in, left, q := n.argument("z"), n.argument("in"), n.argument("n"), n.gp()
	x, y, re, im, c, s := n.vec(4), n.vec(4), n.vec(4), n.vec(4), n.vec(1), n.vec(1)
	c.single, s.single = true, true
	store := func(v vec) {
		if adds {
			n.scope(func() {
				given := n.vec(4)
				n.load(given, q, 0)
				n.do(fadd, v, v, given)
			})
		}
		n.store(v, q, 0)
	}
	n.label("edge")
	n.copy(f, q)
	n.load(x, z, 0)
	store(x)
	for k := 1; k <= order; k++ {
		n.load(c, in, (2*k-2)*arrayBytes)
		n.load(s, in, (2*k-1)*arrayBytes)
		n.load(x, z, (2*k-1)*rowBytes)
		n.load(y, z, 2*k*rowBytes)
		n.by(fmulBy, re, x, c.lowest())
		n.by(fmlaBy, re, y, s.lowest())
		n.by(fmulBy, im, y, c.lowest())
		n.by(fmlsBy, im, x, s.lowest())
		for _, v := range []vec{re, im} {
			n.op("ADD %v, %v", rowStep, q)
			store(v)
		}
	}
	n.advance(4, in)
	n.advance(edgeBytes, z)
	n.op("ADD %v, %v", step, f)
	n.repeat("edge", left, 1)
}
