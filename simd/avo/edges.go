package main

import (
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// passes are the groups that are treated in one pass, the longest first: all of
// an order m of the kernels from orders 0..1 and 0..2 with band 2, and every
// form alone. For m = 0, P is a group of one row and Q one of two.
var passes = []string{"PQQ", "LBM", "LMM", "PQ", "LB", "LM", "P", "Q", "L", "M", "B"}

// edgeKernels writes the kernels over the edges of rings, see edges.go:
// phases, weigh, rotate, the passes for each combination of groups, and the
// sum of the lanes of the dots.
func (s isa) edgeKernels() {
	s.phases()
	s.weigh()
	for order := range 5 {
		s.rotate(order)
	}
	for _, forms := range passes {
		for sets := 1; sets <= s.sets; sets++ {
			s.aggregate(forms, sets)
			s.dot(forms, sets)
		}
	}
	s.sumLanes()
}

func (s isa) phases() {
	s.function("phases", "(in, out, cosTheta, sinTheta, cosG, sinG *float32, n, order int)",
		"computes for n edges and k = 1 … order the arrays in[2k-2], in[2k-1] = Re, Im",
		"e^{ik(g-θ)} and out[2k-1], out[2k] = Re, Im e^{ikθ}; without a direction θ",
		"both are 0. Arrays have 64 entries.")
	in, out, n := argument("in"), argument("out"), argument("n")
	arrays := []reg.GPVirtual{argument("cosTheta"), argument("sinTheta"), argument("cosG"), argument("sinG")}
	Label("loop")
	p := s.first(n)
	var v []reg.VecVirtual
	for _, array := range arrays {
		v = append(v, p.load(Mem{Base: array}))
	}
	cosTheta, sinTheta, cosG, sinG := v[0], v[1], v[2], v[3]
	re, im := s.vector(), s.vector()
	VMULPS(sinTheta, sinG, re)
	VFMADD231PS(cosTheta, cosG, re)
	VMULPS(sinTheta, cosG, im)
	VFMSUB231PS(cosTheta, sinG, im)
	inRe, inIm, outRe, outIm := s.copyOf(re), s.copyOf(im), s.copyOf(cosTheta), s.copyOf(sinTheta)
	left := argument("order")
	inAt, outAt := GP64(), GP64()
	MOVQ(in, inAt)
	MOVQ(out, outAt)
	Label("power")
	VMOVUPS(inRe, Mem{Base: inAt})
	VMOVUPS(inIm, Mem{Base: inAt, Disp: arrayBytes})
	VMOVUPS(outRe, Mem{Base: outAt, Disp: arrayBytes})
	VMOVUPS(outIm, Mem{Base: outAt, Disp: 2 * arrayBytes})
	s.turn(inRe, inIm, re, im)
	s.turn(outRe, outIm, cosTheta, sinTheta)
	ADDQ(U32(2*arrayBytes), inAt)
	ADDQ(U32(2*arrayBytes), outAt)
	DECQ(left)
	JNZ(LabelRef("power"))
	for _, p := range append(arrays, in, out) {
		ADDQ(U32(s.bytes), p)
	}
	SUBQ(U32(s.lanes()), n)
	JG(LabelRef("loop"))
	done()
}

func (s isa) copyOf(v reg.VecVirtual) reg.VecVirtual {
	to := s.vector()
	VMOVAPS(v, to)
	return to
}

// turn multiplies x + iy by c + is.
func (s isa) turn(x, y, c, sin reg.VecVirtual) { VMOVAPS(s.turned(x, y, c, sin), x) }

// turned is turn with the real part in a new register.
func (s isa) turned(x, y, c, sin reg.VecVirtual) reg.VecVirtual {
	re := s.vector()
	VMULPS(y, sin, re)
	VFMSUB231PS(x, c, re)
	VMULPS(c, y, y)
	VFMADD231PS(x, sin, y)
	return re
}

func (s isa) weigh() {
	s.function("weigh", "(to, a, w, out *float32, n, arrays int)",
		"computes to[0] = a·w and to[j] = to[0]·out[j] for the arrays j = 1 … arrays and n",
		"edges. The arrays of to and out have 64 entries, of which whole registers are",
		"used.")
	to, given, w, out, n := argument("to"), argument("a"), argument("w"), argument("out"), argument("n")
	Label("loop")
	p := s.first(n)
	a := p.load(Mem{Base: given})
	VMULPS(p.load(Mem{Base: w}), a, a)
	VMOVUPS(a, Mem{Base: to})
	left, at, from := argument("arrays"), GP64(), GP64()
	MOVQ(to, at)
	MOVQ(out, from)
	TESTQ(left, left)
	JZ(LabelRef("next"))
	Label("array")
	v := s.vector()
	VMULPS(Mem{Base: from, Disp: arrayBytes}, a, v)
	VMOVUPS(v, Mem{Base: at, Disp: arrayBytes})
	ADDQ(U32(arrayBytes), at)
	ADDQ(U32(arrayBytes), from)
	DECQ(left)
	JNZ(LabelRef("array"))
	Label("next")
	for _, p := range []reg.GPVirtual{to, given, w, out} {
		ADDQ(U32(s.bytes), p)
	}
	SUBQ(U32(s.lanes()), n)
	JG(LabelRef("loop"))
	done()
}

func (s isa) rotate(order int) {
	s.function(fmt.Sprintf("rotate%d", order), "(z, f *float32, step, rowStep int, neighbors *int32, in *float32, n, known int)",
		fmt.Sprintf("computes z[e] = (z_0, ẑ_1, … ẑ_%d) with ẑ_k = e^{ik(g-θ)} z_k(q), real and imaginary", order),
		"parts, for 16 channels and n edges e = (p ← q). f is the features, step bytes",
		"for a vertex and rowStep for a component; in is of phases. neighbors has known",
		"entries, and those ahead of e are fetched into the cache.")
	z, f, step := argument("z"), argument("f"), argument("step")
	row := rowsFrom(argument("rowStep"), 2*order+1)
	neighbors, in, n, known := argument("neighbors"), argument("in"), argument("n"), argument("known")
	const ahead = 32
	e, last, q := GP64(), GP64(), GP64()
	XORQ(e, e)
	LEAQ(Mem{Base: known, Disp: -1}, last)
	Label("edge")
	next := GP64()
	LEAQ(Mem{Base: e, Disp: ahead}, next)
	CMPQ(next, last)
	CMOVQGT(last, next)
	MOVLQSX(Mem{Base: neighbors, Index: next, Scale: 4}, q)
	IMULQ(step, q)
	ADDQ(f, q)
	for k := range 2*order + 1 {
		PREFETCHT0(row(q, k))
	}
	MOVLQSX(Mem{Base: neighbors, Index: e, Scale: 4}, q)
	IMULQ(step, q)
	ADDQ(f, q)
	parts := rowBytes / s.bytes
	load := func(k, part int) reg.VecVirtual {
		v := s.vector()
		VMOVUPS(row(q, k).Offset(part*s.bytes), v)
		return v
	}
	store := func(v reg.VecVirtual, k, part int) { VMOVUPS(v, Mem{Base: z, Disp: k*rowBytes + part*s.bytes}) }
	for part := range parts {
		store(load(0, part), 0, part)
	}
	for k := 1; k <= order; k++ {
		re := s.broadcast(Mem{Base: in, Index: e, Scale: 4, Disp: (2*k - 2) * arrayBytes})
		im := s.broadcast(Mem{Base: in, Index: e, Scale: 4, Disp: (2*k - 1) * arrayBytes})
		for part := range parts {
			x, y := load(2*k-1, part), load(2*k, part)
			store(s.turned(x, y, re, im), 2*k-1, part)
			store(y, 2*k, part)
		}
	}
	ADDQ(U32(edgeBytes), z)
	INCQ(e)
	CMPQ(e, n)
	JLT(LabelRef("edge"))
	done()
}

// rowsFrom addresses the rows 0 … n-1, at most 9, that lie step bytes apart:
// the odd multiples of step are kept in registers.
func rowsFrom(step reg.GPVirtual, n int) func(base reg.GPVirtual, k int) Mem {
	odd := map[int]reg.GPVirtual{1: step}
	for k := 3; k < n; k += 2 {
		odd[k] = GP64()
		LEAQ(Mem{Base: odd[k-2], Index: step, Scale: 2}, odd[k])
	}
	return func(base reg.GPVirtual, k int) Mem {
		if k == 0 {
			return Mem{Base: base}
		}
		scale := k & -k
		return Mem{Base: base, Index: odd[k/scale], Scale: uint8(scale)}
	}
}

// rowsOf is the number of rows of moments, and of features, of a form.
var rowsOf = map[rune]struct{ moments, features int }{'P': {1, 1}, 'Q': {2, 2}, 'L': {2, 1}, 'M': {2, 2}, 'B': {4, 2}}

// pass is a loop over the edges of several vertices with the rows of some
// groups in registers.
type pass struct {
	isa
	forms                           string
	sets                            int
	rows                            [][]reg.VecVirtual // [sets][rows of moments]
	row, step, rowStep              reg.GPVirtual      // the vertex's rows in memory
	z, coefficients                 reg.GPVirtual
	offsets, vertices, e, end, base reg.GPVirtual
}

// phased says whether the groups have coefficients cos mθ, sin mθ.
func (p *pass) phased() bool { return p.forms[0] != 'P' && p.forms[0] != 'Q' }

func (p *pass) momentRows() (total int) {
	for _, form := range p.forms {
		total += rowsOf[form].moments
	}
	return total
}

const passSignature = "step, rowStep, setStep int, z, coefficients *float32, offsets *int64, base int64, vertices int"

// formNames are the names in package simd.
var formNames = map[rune]string{'P': "Scalar", 'Q': "ToScalar", 'L': "Lift", 'M': "Minus", 'B': "Both"}

func passDoc(forms string) string {
	var list []string
	for _, form := range forms {
		list = append(list, formNames[form])
	}
	return strings.Join(list, ", ")
}

func (s isa) newPass(forms string, sets int, rows string) *pass {
	p := &pass{isa: s, forms: forms, sets: sets, row: argument(rows), step: argument("step"), rowStep: argument("rowStep"),
		z: argument("z"), coefficients: argument("coefficients"), offsets: argument("offsets"), vertices: argument("vertices"),
		base: argument("base"), e: GP64(), end: GP64()}
	for range sets {
		p.rows = append(p.rows, s.vectors(p.momentRows()))
	}
	MOVQ(Mem{Base: p.offsets}, p.e)
	SUBQ(p.base, p.e)
	// z points to the first edge.
	return p
}

// each runs body for every row of the vertex with its place in memory.
func (p *pass) each(body func(v reg.VecVirtual, m Mem)) {
	at := GP64()
	MOVQ(p.row, at)
	for set, rows := range p.rows {
		if set > 0 {
			MOVQ(p.row, at)
			ADDQ(argument("setStep"), at)
		}
		for r, v := range rows {
			body(v, Mem{Base: at})
			if r < len(rows)-1 {
				ADDQ(p.rowStep, at)
			}
		}
	}
}

// coefficient is array j of a set at the edge.
func (p *pass) coefficient(set, j int) Mem {
	return Mem{Base: p.coefficients, Index: p.e, Scale: 4, Disp: set*coefficientBytes + j*arrayBytes}
}

// features loads the transported features of a group, from row at on.
func (p *pass) features(form rune, at int) []reg.VecVirtual {
	v := p.vectors(rowsOf[form].features)
	for i := range v {
		VMOVUPS(Mem{Base: p.z, Disp: (at + i) * rowBytes}, v[i])
	}
	return v
}

// ring is the loop over the edges of a vertex.
func (p *pass) ring(body func()) {
	MOVQ(Mem{Base: p.offsets, Disp: 8}, p.end)
	SUBQ(p.base, p.end)
	CMPQ(p.e, p.end)
	JGE(LabelRef("end"))
	Label("edge")
	body()
	ADDQ(U32(edgeBytes), p.z)
	INCQ(p.e)
	CMPQ(p.e, p.end)
	JLT(LabelRef("edge"))
	Label("end")
}

func (p *pass) nextVertex() {
	ADDQ(p.step, p.row)
	ADDQ(U32(8), p.offsets)
	DECQ(p.vertices)
	JNZ(LabelRef("vertex"))
	done()
}

func (s isa) aggregate(forms string, sets int) {
	s.function(fmt.Sprintf("aggregate%s%d", forms, sets), "(m *float32, "+passSignature+", more int)",
		fmt.Sprintf("computes, or with more ≠ 0 adds to, the rows of moments m_t of the groups (%s),", passDoc(forms)),
		"Σ_e c(e)·ẑ(e) with the products of EdgeAggregate, over the edges of each vertex,",
		fmt.Sprintf("for a register's channels and %d sets. z are the rows of rotate, coefficients", sets),
		"those of weigh.")
	p := s.newPass(forms, sets, "m")
	Label("vertex")
	more := argument("more")
	TESTQ(more, more)
	JNZ(LabelRef("load"))
	p.each2(func(v reg.VecVirtual) { s.zero(v) })
	JMP(LabelRef("begin"))
	Label("load")
	p.each(func(v reg.VecVirtual, m Mem) { VMOVUPS(m, v) })
	Label("begin")
	p.ring(p.aggregateEdge)
	p.each(func(v reg.VecVirtual, m Mem) { VMOVUPS(v, m) })
	p.nextVertex()
}

func (p *pass) each2(body func(v reg.VecVirtual)) {
	for _, rows := range p.rows {
		for _, v := range rows {
			body(v)
		}
	}
}

func (p *pass) aggregateEdge() {
	var c, sin []reg.VecVirtual
	for set := range p.sets {
		c = append(c, p.broadcast(p.coefficient(set, 0)))
		if p.phased() {
			sin = append(sin, p.broadcast(p.coefficient(set, 1)))
		}
	}
	row, at := 0, 0
	for _, form := range p.forms {
		f := p.features(form, at)
		for set := range p.sets {
			m := p.rows[set][row:]
			VFMADD231PS(c[set], f[0], m[0])
			switch form {
			case 'Q':
				VFMADD231PS(c[set], f[1], m[1])
			case 'L':
				VFMADD231PS(sin[set], f[0], m[1])
			case 'M': // c x - s y, s x + c y
				VFMADD231PS(sin[set], f[0], m[1])
				VFNMADD231PS(sin[set], f[1], m[0])
				VFMADD231PS(c[set], f[1], m[1])
			case 'B':
				VFMADD231PS(sin[set], f[0], m[1])
				VFMADD231PS(c[set], f[1], m[2])
				VFMADD231PS(sin[set], f[1], m[3])
			}
		}
		row += rowsOf[form].moments
		at += rowsOf[form].features
	}
}

func (s isa) dot(forms string, sets int) {
	s.function(fmt.Sprintf("dot%s%d", forms, sets), "(u *float32, "+passSignature+", dots *float32)",
		fmt.Sprintf("adds Σ_t c(e) u_t·ẑ(e), the products of EdgeDot for the groups (%s),", passDoc(forms)),
		"to the register dots[e] of each edge of each vertex, for a register's channels and",
		fmt.Sprintf("%d sets. z are the rows of rotate, coefficients those of weigh.", sets))
	p := s.newPass(forms, sets, "u")
	dots := argument("dots")
	Label("vertex")
	p.each(func(v reg.VecVirtual, m Mem) { VMOVUPS(m, v) })
	p.ring(func() { p.dotEdge(dots) })
	p.nextVertex()
}

// dotEdge: with C the part of the moments that cos mθ multiplies, and S that of
// sin mθ, the dot is cos mθ·⟨u, C⟩ + sin mθ·⟨u, S⟩.
func (p *pass) dotEdge(dots reg.GPVirtual) {
	c, sin := newSums(p.isa, p.sets), newSums(p.isa, p.sets)
	row, at := 0, 0
	for _, form := range p.forms {
		f := p.features(form, at)
		for set := range p.sets {
			u := p.rows[set][row:]
			c.add(set, f[0], u[0])
			switch form {
			case 'Q':
				c.add(set, f[1], u[1])
			case 'L':
				sin.add(set, f[0], u[1])
			case 'M':
				c.add(set, f[1], u[1])
				sin.add(set, f[0], u[1])
				sin.subtract(set, f[1], u[0])
			case 'B':
				c.add(set, f[1], u[2])
				sin.add(set, f[0], u[1])
				sin.add(set, f[1], u[3])
			}
		}
		row += rowsOf[form].moments
		at += rowsOf[form].features
	}
	dot := p.vector()
	VMOVUPS(Mem{Base: dots}, dot)
	for set := range p.sets {
		p.combine(p.coefficient(set, 0), c[set].VecVirtual, dot)
		if p.phased() {
			p.combine(p.coefficient(set, 1), sin[set].VecVirtual, dot)
		}
	}
	VMOVUPS(dot, Mem{Base: dots})
	ADDQ(U32(p.bytes), dots)
}

// combine adds m·v for a number m in memory.
func (s isa) combine(m Mem, v, to reg.VecVirtual) {
	if s.wide() {
		VFMADD231PS_BCST(m, v, to)
	} else {
		VFMADD231PS(s.broadcast(m), v, to)
	}
}

// sums is one sum for each set, begun with the first product.
type sums []*sum

type sum struct {
	reg.VecVirtual
	begun bool
}

func newSums(s isa, n int) (all sums) {
	for range n {
		all = append(all, &sum{VecVirtual: s.vector()})
	}
	return all
}

func (s sums) add(set int, a, b reg.VecVirtual) {
	if !s[set].begun {
		VMULPS(a, b, s[set].VecVirtual)
		s[set].begun = true
		return
	}
	VFMADD231PS(a, b, s[set].VecVirtual)
}

func (s sums) subtract(set int, a, b reg.VecVirtual) { VFNMADD231PS(a, b, s[set].VecVirtual) }

func (s isa) sumLanes() {
	s.function("sumLanes", "(to, dots *float32, n int)",
		"computes to[e] = Σ of the lanes of dots[e] for n edges, in whole registers: it",
		fmt.Sprintf("reads and writes up to a multiple of %d.", s.lanes()))
	to, dots, n := argument("to"), argument("dots"), argument("n")
	Label("edges")
	v := s.vectors(s.lanes())
	for i := range v {
		VMOVUPS(Mem{Base: dots, Disp: i * s.bytes}, v[i])
	}
	// fold adds the parts of a register that low and high select, of v[i] in the
	// lower half of the result and of v[i+distance] in the upper.
	fold := func(distance int, shuffle func(parts uint8, a, b, to reg.VecVirtual), low, high uint8) {
		var sums []reg.VecVirtual
		for i, a := range v {
			if i/distance%2 == 0 {
				other := s.vector()
				shuffle(high, a, v[i+distance], other)
				shuffle(low, a, v[i+distance], a)
				VADDPS(other, a, a)
				sums = append(sums, a)
			}
		}
		v = sums
	}
	quarters := func(parts uint8, a, b, to reg.VecVirtual) { VSHUFF64X2(U8(parts), b, a, to) }
	halves := func(parts uint8, a, b, to reg.VecVirtual) { VPERM2F128(U8(parts), b, a, to) }
	numbers := func(parts uint8, a, b, to reg.VecVirtual) { VSHUFPS(U8(parts), b, a, to) }
	if s.wide() {
		fold(4, quarters, 0x44, 0xee)
		fold(4, quarters, 0x88, 0xdd)
	} else {
		fold(4, halves, 0x20, 0x31)
	}
	fold(1, numbers, 0x44, 0xee)
	fold(1, numbers, 0x88, 0xdd)
	VMOVUPS(v[0], Mem{Base: to})
	ADDQ(U32(s.bytes), to)
	ADDQ(U32(s.lanes()*s.bytes), dots)
	SUBQ(U32(s.lanes()), n)
	JG(LabelRef("edges"))
	done()
}
