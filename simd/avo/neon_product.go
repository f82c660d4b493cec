package main

// product writes the tile of rows × 16 columns: a register holds four entries
// of a row of a, each of which multiplies the 16 of a row of b. The large tile
// takes all 32 registers: 24 of sums, 6 of a and 2 of b.
func (n *neon) product(rows int) {
	c, cStep, addend, addendStep := n.argument("c"), n.argument("cStep"), n.argument("addend"), n.argument("addendStep")
	next, step, panel, k := n.argument("a"), n.argument("aStep"), n.argument("b"), n.argument("k")
	groups, b, left, a := n.argument("groups"), n.gp(), n.gp(), n.pointers(rows)
	sums := n.vecs(rows, 4)

	n.label("group")
	for _, row := range a {
		n.copy(next, row)
		n.op("ADD %v, %v", step, next)
	}
	n.copy(panel, b)
	for _, sum := range sums {
		n.zero(sum)
	}
	n.scope(func() {
		entries, weights := n.vecs(rows, 1), n.vec(2)
		multiply := func(k int) {
			for half := range 2 {
				n.load(weights, b, k*rowBytes+half*32)
				for i, sum := range sums {
					n.by(fmlaBy, vec{first: sum.number(2 * half), registers: 2}, weights, element{entries[i].first, k})
				}
			}
		}
		const unroll = 4
		n.op("SUBS $%d, %v, %v", unroll, k, left)
		n.op("BLT rest")
		n.label("four")
		for i, row := range a {
			n.loadNext(entries[i], row)
		}
		for k := range unroll {
			multiply(k)
		}
		n.advance(unroll*rowBytes, b)
		n.op("SUBS $%d, %v", unroll, left)
		n.op("BGE four")
		n.label("rest")
		n.op("ADDS $%d, %v", unroll, left)
		n.op("BEQ sums")
		n.label("one")
		for i, row := range a {
			entries[i].single = true
			n.loadNext(entries[i], row)
		}
		multiply(0)
		n.advance(rowBytes, b)
		n.repeat("one", left, 1)
		n.label("sums")
	})
	n.scope(func() {
		floor, term := n.broadcast("floor"), n.vec(4)
		for _, sum := range sums {
			n.load(term, addend, 0)
			n.do(fadd, sum, sum, term)
			n.do(fmax, sum, sum, floor)
			n.store(sum, c, 0)
			n.op("ADD %v, %v", cStep, c)
			n.op("ADD %v, %v", addendStep, addend)
		}
	})
	n.repeat("group", groups, 1)
}

// sixteen writes a loop over n numbers from x on, 16 at a time.
func (n *neon) sixteen(x gp, body func(v vec)) {
	left, v := n.argument("n"), n.vec(4)
	n.label("loop")
	n.load(v, x, 0)
	body(v)
	n.storeNext(v, x)
	n.repeat("loop", left, rowLanes)
}

func (n *neon) add() {
	a, term := n.argument("a"), n.vec(4)
	n.sixteen(n.argument("c"), func(v vec) {
		n.loadNext(term, a)
		n.do(fadd, v, v, term)
	})
}

func (n *neon) shift() {
	first, second := n.broadcast("first"), n.broadcast("second")
	n.sixteen(n.argument("x"), func(v vec) {
		n.do(fsub, v, v, first)
		n.do(fsub, v, v, second)
	})
}

func (n *neon) rectify() {
	zero := n.vec(1)
	n.zero(zero)
	n.sixteen(n.argument("x"), func(v vec) { n.do(fmax, v, v, zero) })
}
