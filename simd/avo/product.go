package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// products writes the matrix products: tiles of rows × strips of 16 columns
// whose sums stay in registers. Each sum is one chain of fused multiply-adds
// in the order of k, whatever the tile, so its bits do not depend on the tile
// a row falls into.
func (s isa) products() {
	for _, rows := range s.heights() {
		for strips := s.strips; strips >= 1; strips-- {
			s.product(rows, strips)
		}
	}
}

// heights are the rows of the tiles: of the large one, and of those behind it.
func (s isa) heights() []int { return []int{s.rows, s.rows / 3, 1} }

// tile is the registers of a product.
type tile struct {
	isa
	rows, strips int
	sums         [][]reg.VecVirtual // [rows][registers of a row]
	a            []reg.GPVirtual    // every fourth row
	step, step3  reg.GPVirtual      // bytes between rows of a, and three times
	b, strip     reg.GPVirtual      // and bytes between strips
}

func (s isa) product(rows, strips int) {
	s.function(fmt.Sprintf("product%dx%d", rows, strips),
		"(c *float32, cStep int, a *float32, aStep int, b *float32, bStep, k, groups int, addend *float32, addendStep int, floor float32)",
		"computes", "",
		"\tc[i][j] = max(floor, Σ_k a[i][k] b[k][j] + addend[i][j])", "",
		fmt.Sprintf("for groups groups of %d rows i and %d strips of 16 columns j, over k rows of a panel;", rows, strips),
		"bStep is in bytes between strips, the other steps between rows.")
	t := tile{isa: s, rows: rows, strips: strips, step: argument("aStep"), step3: GP64()}
	LEAQ(Mem{Base: t.step, Index: t.step, Scale: 2}, t.step3)
	c, addend := argument("c"), argument("addend")
	a := argument("a")
	if strips > 1 {
		t.strip = argument("bStep")
	}
	for range rows {
		t.sums = append(t.sums, s.vectors(strips*rowBytes/s.bytes))
	}
	for range (rows + 3) / 4 {
		t.a = append(t.a, GP64())
	}
	t.b = GP64()

	Label("group")
	MOVQ(a, t.a[0])
	for i := 1; i < len(t.a); i++ {
		LEAQ(Mem{Base: t.a[i-1], Index: t.step, Scale: 4}, t.a[i])
	}
	Load(Param("b"), t.b)
	s.begin(t.sums, c)
	t.loop()
	t.finish(c, addend)
	for range rows {
		ADDQ(t.step, a)
	}
	groups, err := Param("groups").Resolve()
	if err != nil {
		panic(err)
	}
	DECQ(groups.Addr)
	JNZ(LabelRef("group"))
	done()
}

// begin clears the sums of a tile, and asks for the lines of c that they go to:
// a large result is in no near cache.
func (s isa) begin(sums [][]reg.VecVirtual, c reg.GPVirtual) {
	step, to := argument("cStep"), GP64()
	MOVQ(c, to)
	for _, row := range sums {
		for j, sum := range row {
			PREFETCHT0(Mem{Base: to, Disp: j * s.bytes})
			s.zero(sum)
		}
		ADDQ(step, to)
	}
}

// loop adds the products over k, four at a time and then one.
func (t *tile) loop() {
	const (
		unroll = 4
		ahead  = 64 // rows of b
	)
	left := argument("k")
	SUBQ(U32(unroll), left)
	JLT(LabelRef("rest"))
	Label("four")
	for k := range unroll {
		t.multiply(k)
		for strip := range t.strips {
			PREFETCHT0(t.weights(strip, (k+ahead)*rowBytes))
		}
	}
	t.advance(unroll)
	SUBQ(U32(unroll), left)
	JGE(LabelRef("four"))
	Label("rest")
	ADDQ(U32(unroll), left)
	JZ(LabelRef("sums"))
	Label("one")
	t.multiply(0)
	t.advance(1)
	DECQ(left)
	JNZ(LabelRef("one"))
	Label("sums")
}

// advance moves on by n rows of b.
func (t *tile) advance(n int) {
	for _, a := range t.a {
		ADDQ(U32(4*n), a)
	}
	ADDQ(U32(rowBytes*n), t.b)
}

// multiply adds the products of entry k from here.
func (t *tile) multiply(k int) {
	var b []reg.VecVirtual
	for strip := range t.strips {
		for at := 0; at < rowBytes; at += t.bytes {
			v := t.vector()
			VMOVUPS(t.weights(strip, k*rowBytes+at), v)
			b = append(b, v)
		}
	}
	for i, row := range t.sums {
		if t.wide() && t.strips == 1 {
			VFMADD231PS_BCST(t.entry(i, k), b[0], row[0])
			continue
		}
		x := t.broadcast(t.entry(i, k))
		for j, sum := range row {
			VFMADD231PS(b[j], x, sum)
		}
	}
}

// weights is the place in a strip of b, so many bytes from here.
func (t *tile) weights(strip, at int) Mem {
	m := Mem{Base: t.b, Disp: at}
	if strip > 0 {
		m.Index, m.Scale = t.strip, 1
	}
	return m
}

// entry is entry k of row i of a, from here.
func (t *tile) entry(i, k int) Mem {
	m := Mem{Base: t.a[i/4], Disp: 4 * k}
	switch i % 4 {
	case 1:
		m.Index, m.Scale = t.step, 1
	case 2:
		m.Index, m.Scale = t.step, 2
	case 3:
		m.Index, m.Scale = t.step3, 1
	}
	return m
}

// finish stores the sums.
func (t *tile) finish(c, addend reg.GPVirtual) {
	floor := t.parameter("floor")
	cStep, addendStep := argument("cStep"), argument("addendStep")
	for _, row := range t.sums {
		for j, sum := range row {
			at := j * t.bytes
			VADDPS(Mem{Base: addend, Disp: at}, sum, sum)
			VMAXPS(sum, floor, sum) // of floor and NaN, NaN
			VMOVUPS(sum, Mem{Base: c, Disp: at})
		}
		ADDQ(cStep, c)
		ADDQ(addendStep, addend)
	}
}
