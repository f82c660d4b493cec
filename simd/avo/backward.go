package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// backward writes the kernels of the backward passes.
func (s isa) backward() {
	for _, rows := range s.heights() {
		for strips := s.strips; strips >= 1; strips-- {
			s.correlation(rows, strips)
		}
	}
	s.exponentiate()
	s.scale()
	s.mask()
	s.adam()
	for order := 1; order <= s.orders; order++ {
		s.circleGradient(order, "regularGradient", []string{
			"replaces gradient by Bᵀ·([B·x > 0] B·g) for 16 channels of a vertex, see regular;",
			"x and gradient have rows rowStep bytes apart. bound and scale are not used.",
		}, (*circleGradient).relu)
		s.circleGradient(order, "polyGradient", []string{
			"replaces gradient by the gradient of poly at x for 16 channels of a vertex, see",
			"Circle.polyGradient and poly for the arguments; inverse is 1/samples.",
		}, (*circleGradient).polynomial)
	}
	for _, forms := range passes {
		for sets := 1; sets <= s.sets; sets++ {
			s.spread(forms, sets)
		}
	}
	for order := range 5 {
		s.unrotate(order, "unrotate", "becomes", false)
		s.unrotate(order, "addUnrotated", "grows by", true)
	}
}

// correlation is a product whose left operand is read by columns.
func (s isa) correlation(rows, strips int) {
	s.function(fmt.Sprintf("correlation%dx%d", rows, strips),
		"(c *float32, cStep int, a *float32, aStep int, b *float32, bStep int, k, groups int)",
		"computes", "",
		"\tc[i][j] += Σ_k a[k][i] b[k][j]", "",
		fmt.Sprintf("for groups groups of %d rows i and %d strips of 16 columns j, over k ≥ 1 rows;", rows, strips),
		"steps are in bytes between rows.")
	c, a0, b0 := argument("c"), argument("a"), argument("b")
	aStep, bStep := argument("aStep"), argument("bStep")
	groups := argument("groups")
	// Rows of a may lie far apart, in no cache yet: of the sixteenth row from
	// here the last entry is prefetched, as the first may be in a line that the
	// group before has read.
	ahead := GP64()
	MOVQ(aStep, ahead)
	SHLQ(U8(4), ahead)
	var sums [][]reg.VecVirtual
	for range rows {
		sums = append(sums, s.vectors(strips*rowBytes/s.bytes))
	}
	a, b, left := GP64(), GP64(), GP64()

	Label("group")
	MOVQ(a0, a)
	MOVQ(b0, b)
	Load(Param("k"), left)
	s.begin(sums, c)
	Label("row")
	PREFETCHT0(Mem{Base: a, Index: ahead, Scale: 1, Disp: 4 * (rows - 1)})
	s.multiplyRow(sums, a, b)
	ADDQ(aStep, a)
	ADDQ(bStep, b)
	DECQ(left)
	JNZ(LabelRef("row"))
	cStep := argument("cStep")
	for _, row := range sums {
		for j, sum := range row {
			m := Mem{Base: c, Disp: j * s.bytes}
			VADDPS(m, sum, sum)
			VMOVUPS(sum, m)
		}
		ADDQ(cStep, c)
	}
	ADDQ(U32(4*rows), a0)
	DECQ(groups)
	JNZ(LabelRef("group"))
	done()
}

// multiplyRow adds the products of the numbers at a and the row at b.
func (s isa) multiplyRow(sums [][]reg.VecVirtual, a, b reg.GPVirtual) {
	var v []reg.VecVirtual
	for j := range sums[0] {
		v = append(v, s.vector())
		VMOVUPS(Mem{Base: b, Disp: j * s.bytes}, v[j])
	}
	for i, row := range sums {
		m := Mem{Base: a, Disp: 4 * i}
		if s.wide() && len(row) == 1 {
			VFMADD231PS_BCST(m, v[0], row[0])
			continue
		}
		x := s.broadcast(m)
		for j, sum := range row {
			VFMADD231PS(v[j], x, sum)
		}
	}
}

// whole is a loop over n numbers, a multiple of 16, at the given places.
func (s isa) whole(n reg.GPVirtual, places []reg.GPVirtual, body func(at int)) {
	Label("loop")
	for at := 0; at < rowBytes; at += s.bytes {
		body(at)
	}
	for _, p := range places {
		ADDQ(U32(rowBytes), p)
	}
	SUBQ(U32(16), n)
	JNZ(LabelRef("loop"))
}

func (s isa) exponentiate() {
	s.function("exponentiate", "(x *float32, n int, shift float32) float32",
		"computes x[i] = exp(x[i] - shift) for n numbers, a multiple of 16, and returns their sum.")
	x, n, shift := argument("x"), argument("n"), s.parameter("shift")
	exp := s.exponential()
	sums := s.vectors(rowBytes / s.bytes)
	for _, sum := range sums {
		s.zero(sum)
	}
	s.whole(n, []reg.GPVirtual{x}, func(at int) {
		v, sum := s.vector(), sums[at/s.bytes]
		VMOVUPS(Mem{Base: x, Disp: at}, v)
		VSUBPS(shift, v, v)
		exp.of(v)
		VMOVUPS(v, Mem{Base: x, Disp: at})
		VADDPS(v, sum, sum)
	})
	for _, sum := range sums[1:] {
		VADDPS(sum, sums[0], sums[0])
	}
	Store(s.reduce(sums[0], add).AsX(), ReturnIndex(0))
	done()
}

func (s isa) scale() {
	s.function("scale", "(x *float32, n int, factor float32)", "computes x[i] *= factor for n numbers, a multiple of 16.")
	x, n, factor := argument("x"), argument("n"), s.parameter("factor")
	s.whole(n, []reg.GPVirtual{x}, func(at int) {
		v := s.vector()
		VMULPS(Mem{Base: x, Disp: at}, factor, v)
		VMOVUPS(v, Mem{Base: x, Disp: at})
	})
	done()
}

func (s isa) mask() {
	s.function("mask", "(gradient, y *float32, n int)", "sets gradient[i] to 0 where y[i] ≤ 0, for n numbers, a multiple of 16.")
	g, y, n := argument("gradient"), argument("y"), argument("n")
	zero := s.vector()
	s.zero(zero)
	s.whole(n, []reg.GPVirtual{g, y}, func(at int) {
		v := s.vector()
		VMOVUPS(Mem{Base: y, Disp: at}, v)
		x := s.vector()
		VMOVUPS(Mem{Base: g, Disp: at}, x)
		s.clearUnlessPositive(x, v, zero)
		VMOVUPS(x, Mem{Base: g, Disp: at})
	})
	done()
}

// clearUnlessPositive sets the lanes of x to 0 where v ≤ 0, not where it is
// NaN.
func (s isa) clearUnlessPositive(x, v, zero reg.VecVirtual) {
	const notLessOrEqual = 6
	if s.wide() {
		k := K()
		VCMPPS(U8(notLessOrEqual), zero, v, k)
		VMOVAPS_Z(x, k, x)
		return
	}
	mask := s.vector()
	VCMPPS(U8(notLessOrEqual), zero, v, mask)
	VANDPS(mask, x, x)
}

func (s isa) adam() {
	s.function("adam", "(w, first, second, gradient *float32, n int, beta1, beta2, other1, other2, rate, root, epsilon, decay, penalty, factor float32)",
		"is Adam for n numbers, a multiple of 16: other1 and other2 are 1 - beta1 and 1 -",
		"beta2, root is 1/Root, and factor the gradient's.")
	w, first, second, gradient, n := argument("w"), argument("first"), argument("second"), argument("gradient"), argument("n")
	number := func(name string, v reg.VecVirtual) { VBROADCASTSS(parameterAddress(name), v) }
	s.whole(n, []reg.GPVirtual{w, first, second, gradient}, func(at int) {
		x, g, m, v, c := s.vector(), s.vector(), s.vector(), s.vector(), s.vector()
		VMOVUPS(Mem{Base: w, Disp: at}, x)
		number("factor", g)
		VMULPS(Mem{Base: gradient, Disp: at}, g, g)
		number("penalty", c)
		VFMADD231PS(x, c, g)
		number("beta1", m)
		VMULPS(Mem{Base: first, Disp: at}, m, m)
		number("other1", c)
		VFMADD231PS(g, c, m)
		VMOVUPS(m, Mem{Base: first, Disp: at})
		number("beta2", v)
		VMULPS(Mem{Base: second, Disp: at}, v, v)
		VMULPS(g, g, g)
		number("other2", c)
		VFMADD231PS(g, c, v)
		VMOVUPS(v, Mem{Base: second, Disp: at})
		VSQRTPS(v, v)
		number("root", c)
		number("epsilon", g)
		VFMADD231PS(v, c, g)
		number("rate", c)
		VMULPS(c, m, m)
		VDIVPS(g, m, m)
		number("decay", c)
		VFMSUB132PS(c, m, x)
		VMOVUPS(x, Mem{Base: w, Disp: at})
	})
	done()
}

// circleGradient is the backward pass of a non-linearity on the samples of a
// channel's function, whose components stay in memory.
type circleGradient struct {
	isa
	in, gradient []Mem
}

func (s isa) circleGradient(order int, name string, doc []string, prepare func(*circleGradient) (sample func(f, g reg.VecVirtual), finish func(out []reg.VecVirtual))) {
	s.function(fmt.Sprintf("%s%d", name, order), "(gradient, x *float32, rowStep int, basis *float32, sampleStep, samples int, bound, scale, inverse float32)", doc...)
	components := 2*order + 1
	g, x := argument("gradient"), argument("x")
	row, place := rowsFrom(argument("rowStep"), components), rowsFrom(argument("sampleStep"), components)
	parts := GP64()
	MOVQ(U32(rowBytes/s.bytes), parts)
	c := &circleGradient{isa: s}
	for k := range components {
		c.in, c.gradient = append(c.in, row(x, k)), append(c.gradient, row(g, k))
	}

	Label("part")
	sample, finish := prepare(c)
	out := s.vectors(components)
	for _, v := range out {
		s.zero(v)
	}
	basis, left := argument("basis"), argument("samples")
	Label("sample")
	f, of := s.vector(), s.vector()
	for k := range components {
		b := s.broadcast(place(basis, k))
		if k == 0 {
			VMULPS(c.in[k], b, f)
			VMULPS(c.gradient[k], b, of)
		} else {
			VFMADD231PS(c.in[k], b, f)
			VFMADD231PS(c.gradient[k], b, of)
		}
	}
	sample(f, of)
	for k, v := range out {
		VFMADD231PS(s.broadcast(place(basis, k)), of, v)
	}
	ADDQ(U32(4), basis)
	DECQ(left)
	JNZ(LabelRef("sample"))
	finish(out)
	for k, v := range out {
		VMOVUPS(v, c.gradient[k])
	}
	ADDQ(U32(s.bytes), x)
	ADDQ(U32(s.bytes), g)
	DECQ(parts)
	JNZ(LabelRef("part"))
	done()
}

// relu prepares (f, g) ↦ [f > 0] g.
func (c *circleGradient) relu() (func(f, g reg.VecVirtual), func([]reg.VecVirtual)) {
	zero := c.vector()
	c.zero(zero)
	return func(f, g reg.VecVirtual) { c.clearUnlessPositive(g, f, zero) }, func([]reg.VecVirtual) {}
}

// polynomial prepares (f, g) ↦ P'(u) g for u = f·√N/s, and adds what reaches
// x by way of s.
func (c *circleGradient) polynomial() (func(f, g reg.VecVirtual), func([]reg.VecVirtual)) {
	s2 := c.vector()
	for k, m := range c.in {
		v := c.vector()
		VMOVUPS(m, v)
		if k == 0 {
			VMULPS(v, v, s2)
		} else {
			VFMADD231PS(v, v, s2)
		}
	}
	// t = u/U = f·inverse. Where s = 0 it is 0, and finish clears the rest.
	inverse, ofSize := c.vector(), c.vector()
	VSQRTPS(s2, inverse)
	VMULPS(c.parameter("bound"), inverse, inverse)
	scale := c.parameter("scale")
	VDIVPS(inverse, scale, inverse)
	c.clearWhereZero(inverse, s2)
	c.zero(ofSize)
	sample := func(f, g reg.VecVirtual) {
		v, sum := c.vector(), c.vector()
		VMULPS(inverse, f, f)
		VMULPS(f, f, v)
		// P - u P' over U/2: c0 - v (c1 + 3 c2 v)
		VBROADCASTSS(constant(math.Float32bits(-3*c2)), sum)
		VFMADD213PS(c.constant(-c1), v, sum)
		VFMADD213PS(c.constant(c0), v, sum)
		VFMADD231PS(sum, g, ofSize)
		// P' = 1/2 + t (c1 + 2 c2 v)
		VBROADCASTSS(constant(math.Float32bits(2*c2)), sum)
		VFMADD213PS(c.constant(c1), v, sum)
		VFMADD213PS(c.constant(0.5), f, sum)
		VMULPS(sum, g, g)
	}
	finish := func(out []reg.VecVirtual) {
		// ofSize·U/2·scale/(s N) = ofSize·inverse·U²/2/N
		bound := c.parameter("bound")
		VMULPS(bound, ofSize, ofSize)
		VMULPS(bound, ofSize, ofSize)
		VMULPS(c.parameter("inverse"), ofSize, ofSize)
		VMULPS(c.constant(0.5), ofSize, ofSize)
		VMULPS(inverse, ofSize, ofSize)
		for k, v := range out {
			VFMADD231PS(c.in[k], ofSize, v)
			c.clearWhereZero(v, s2)
		}
	}
	return sample, finish
}

func (c *circleGradient) clearWhereZero(v, s reg.VecVirtual) {
	(&circle{isa: c.isa}).clearWhereZero(v, s)
}

// spread is the transpose of aggregate with respect to the features.
func (s isa) spread(forms string, sets int) {
	s.function(fmt.Sprintf("spread%s%d", forms, sets), "(m *float32, "+passSignature+")",
		fmt.Sprintf("adds to the rows z of each edge of each vertex, those of the groups (%s),", passDoc(forms)),
		"Σ_t c(e) m_t·∂m_t/∂z for the vertex's rows m, a register's channels and",
		fmt.Sprintf("%d sets. coefficients are those of weigh.", sets))
	p := s.newPass(forms, sets, "m")
	Label("vertex")
	p.each(func(v reg.VecVirtual, m Mem) { VMOVUPS(m, v) })
	p.ring(p.spreadEdge)
	p.nextVertex()
}

func (p *pass) spreadEdge() {
	at := 0
	for _, form := range p.forms {
		f := p.features(form, at)
		row := p.rowOf(at)
		for set := range p.sets {
			m := p.rows[set][row:]
			c := p.broadcast(p.coefficient(set, 0))
			VFMADD231PS(c, m[0], f[0])
			switch form {
			case 'Q':
				VFMADD231PS(c, m[1], f[1])
			case 'M': // c r + s r', c r' - s r
				VFMADD231PS(c, m[1], f[1])
			case 'B':
				VFMADD231PS(c, m[2], f[1])
			}
			if !p.phased() {
				continue
			}
			sin := p.broadcast(p.coefficient(set, 1))
			VFMADD231PS(sin, m[1], f[0])
			switch form {
			case 'M':
				VFNMADD231PS(sin, m[0], f[1])
			case 'B':
				VFMADD231PS(sin, m[3], f[1])
			}
		}
		for i, v := range f {
			VMOVUPS(v, Mem{Base: p.z, Disp: (at + i) * rowBytes})
		}
		at += rowsOf[form].features
	}
}

// rowOf is the first row of moments of the group whose features begin at a row.
func (p *pass) rowOf(feature int) (row int) {
	at := 0
	for _, form := range p.forms {
		if at == feature {
			return row
		}
		row += rowsOf[form].moments
		at += rowsOf[form].features
	}
	panic("no group begins there")
}

func (s isa) unrotate(order int, name, verb string, adds bool) {
	s.function(fmt.Sprintf("%s%d", name, order), "(f *float32, step, rowStep int, z, in *float32, n int)",
		fmt.Sprintf("is the transpose of rotate%d: row e of f, step bytes apart, %s z_0,", order, verb),
		"e^{-ik(g-θ)} ẑ_k of z[e] for n edges e.")
	f, step := argument("f"), argument("step")
	row := rowsFrom(argument("rowStep"), 2*order+1)
	z, in, n := argument("z"), argument("in"), argument("n")
	e := GP64()
	XORQ(e, e)
	Label("edge")
	load := func(k, at int) reg.VecVirtual {
		v := s.vector()
		VMOVUPS(Mem{Base: z, Disp: k*rowBytes + at}, v)
		return v
	}
	store := func(v reg.VecVirtual, k, at int) {
		if adds {
			VADDPS(row(f, k).Offset(at), v, v)
		}
		VMOVUPS(v, row(f, k).Offset(at))
	}
	for at := 0; at < rowBytes; at += s.bytes {
		store(load(0, at), 0, at)
	}
	for k := 1; k <= order; k++ {
		re := s.broadcast(Mem{Base: in, Index: e, Scale: 4, Disp: (2*k - 2) * arrayBytes})
		im := s.broadcast(Mem{Base: in, Index: e, Scale: 4, Disp: (2*k - 1) * arrayBytes})
		for at := 0; at < rowBytes; at += s.bytes {
			x, y, toX := load(2*k-1, at), load(2*k, at), s.vector()
			VMULPS(y, im, toX)
			VFMADD231PS(x, re, toX)
			VMULPS(x, im, x)
			VFMSUB231PS(y, re, x)
			store(toX, 2*k-1, at)
			store(x, 2*k, at)
		}
	}
	ADDQ(U32(edgeBytes), z)
	ADDQ(step, f)
	INCQ(e)
	CMPQ(e, n)
	JLT(LabelRef("edge"))
	done()
}
