//go:build amd64 || arm64

package simd

import (
	"math"
	"sync"
	"unsafe"
)

// vector is the kernels of an instruction set: the loops over tiles, chunks
// of edges and rows around its assembly. The declarations of the functions say
// what each computes; steps are in bytes.
type vector struct {
	Generic[float32] // what has no assembly

	name  string
	lanes int // of a register, for NEON of two side by side
	sets  int // that a pass over edges treats at once

	products             []productTile // the tallest first
	add                  func(c, a *float32, n int)
	rectify              func(x *float32, n int)
	shift                func(x *float32, n int, first, second float32)
	expm1                func(x *float32, n int)
	rowMax               func(x *float32, n int) float32
	sumExp               func(x *float32, n int, shift float32) float32
	softmax              func(x *float32, n int, scale float32)
	shortSoftmaxes       func(to, x *float32, offsets *int64, rings int, scaled bool)
	gate                 func(re, im, a, b *float32, n int)
	regular, polynomials []circleFunction // by order

	phases   func(in, out, cosTheta, sinTheta, cosG, sinG *float32, n, order int)
	weigh    func(to, a, w, out *float32, n, arrays int)
	rotate   []rotateFunction // by order
	passes   []pass           // the longest first
	sumLanes func(to, dots *float32, n int)

	// Of the backward passes.
	correlations                          []correlationTile // the tallest first
	exponentiate                          func(x *float32, n int, shift float32) float32
	scale                                 func(x *float32, n int, factor float32)
	mask                                  func(g, y *float32, n int)
	adam                                  func(w, first, second, gradient *float32, n int, beta1, beta2, other1, other2, rate, root, epsilon, decay, penalty, factor float32)
	regularGradients, polynomialGradients []circleGradientFunction // by order
	unrotate, addUnrotated                []unrotateFunction       // by order
}

// productTile is the products for one height of tiles, by the number of
// strips less one.
type productTile struct {
	rows   int
	strips []productFunction
}

type productFunction func(c *float32, cStep int, a *float32, aStep int, b *float32, bStep, k, groups int, addend *float32, addendStep int, floor float32)

type circleFunction func(x *float32, rowStep int, basis *float32, sampleStep, samples int, bound, scale float32)

var _ Kernels32 = (*vector)(nil)

func (v *vector) Name() string { return v.name }

// vectorScratch is the memory of a call: what is handed to a function through
// a variable cannot be on a stack. An object of this size begins at a page, so
// its arrays are aligned.
type vectorScratch struct {
	edgeScratch
	headScratch
	softmaxScratch
}

var vectorScratches = sync.Pool{New: func() any { return new(vectorScratch) }}

// at is the address of entry i, which may lie behind the last.
func at[E any](x []E, i int) *E {
	if i == len(x) {
		return unsafe.SliceData(x)
	}
	return &x[i]
}

// product computes c = max(floor, a·b + addend) for the strips [first, last)
// of b, whose columns c and addend begin with. addend is a row for all rows
// if its stride is 0.
func (v *vector) product(c, a Rows[float32], b *Panel[float32], first, last, rows int, addend Rows[float32], floor float32) {
	if rows == 0 || first == last {
		return
	}
	width := (last - first) * Lanes
	_, _, _ = a.Row(rows-1, b.K), c.Row(rows-1, width), addend.Row(rows-1, width)
	p := partialProduct{c: c, a: a, addend: addend, b: b, first: first, depth: maxDepth, floor: noFloor}
	for b.K-p.from > maxDepth {
		v.strips(&p, last, rows)
		p.from, p.addend = p.from+maxDepth, c
	}
	p.depth, p.floor = b.K-p.from, floor
	v.strips(&p, last, rows)
}

// partialProduct is the part of a product over the rows [from, from+depth) of b.
type partialProduct struct {
	c, a, addend Rows[float32]
	b            *Panel[float32]
	first        int // the strip whose columns c and addend begin with
	from, depth  int
	floor        float32
}

// strips computes a part of a product up to a last strip.
func (v *vector) strips(p *partialProduct, last, rows int) {
	// So many rows of a stay in the second-level cache while the strips pass.
	block := max(productBlock/max(p.depth, 1)/v.products[0].rows, 1) * v.products[0].rows
	most := len(v.products[0].strips)
	for begin := 0; begin < rows; begin += block {
		end := min(begin+block, rows)
		for strip := p.first; strip < last; strip += most {
			v.column(p, strip, min(most, last-strip), begin, end)
		}
	}
}

// productBlock is the number of entries of a block of the left operand.
const productBlock = 1 << 16

// column computes a part of a product in strips strips from strip on and the
// rows [row, end).
func (v *vector) column(p *partialProduct, strip, strips, row, end int) {
	column := (strip - p.first) * Lanes
	b := at(p.b.Data, (strip*p.b.K+p.from)*Lanes)
	for _, tile := range v.products {
		for groups := (end - row) / tile.rows; groups > 0; groups = (end - row) / tile.rows {
			groups = min(groups, 1+maxTileWork/(tile.rows*strips*Lanes*(p.depth+1)))
			tile.strips[strips-1](&p.c.Data[row*p.c.Stride+column], 4*p.c.Stride, at(p.a.Data, row*p.a.Stride+p.from), 4*p.a.Stride,
				b, 4*Lanes*p.b.K, p.depth, groups, &p.addend.Data[row*p.addend.Stride+column], 4*p.addend.Stride, p.floor)
			row += groups * tile.rows
		}
	}
}

// Assembly cannot be interrupted, and the garbage collector waits for it: what
// bounds a call, so that it takes some 20 µs, or 60 where it waits for memory.
const (
	maxTileWork = 1 << 21 // multiply-adds, about, of several groups of a tile
	maxDepth    = 1 << 13 // terms of a sum of products
	maxRun      = 1 << 14 // numbers of a row
)

var (
	noFloor = float32(math.Inf(-1))
	// zeros is the addend of a plain product; its stride is 0.
	zeros = make([]float32, 1<<10)
)

// Multiply: see [Kernels].
func (v *vector) Multiply(c, a Rows[float32], b *Panel[float32], rows int, accumulate bool) {
	if accumulate {
		v.product(c, a, b, 0, b.N/Lanes, rows, c, noFloor)
		return
	}
	const most = 1 << 10 / Lanes
	for first := 0; first < b.N/Lanes; first += most {
		v.product(c.Columns(first*Lanes), a, b, first, min(first+most, b.N/Lanes), rows, Rows[float32]{Data: zeros}, noFloor)
	}
}

// Dense: see [Kernels].
func (v *vector) Dense(c, a Rows[float32], b *Panel[float32], bias []float32, rows int, f Activation) {
	floor := noFloor
	if f == ReLU {
		floor = 0
	}
	v.product(c, a, b, 0, b.N/Lanes, rows, Rows[float32]{Data: bias}, floor)
	if f != ELU {
		return
	}
	for i := range rows {
		row := c.Row(i, b.N)
		for j := 0; j < b.N; j += maxRun {
			v.expm1(&row[j], min(maxRun, b.N-j))
		}
	}
}

// Add: see [Kernels].
func (v *vector) Add(c, a Rows[float32], n, rows int) {
	whole := n / Lanes * Lanes
	for i := range rows {
		sum, term := c.Row(i, n), a.Row(i, n)
		for j := 0; j < whole; j += maxRun {
			v.add(&sum[j], &term[j], min(maxRun, whole-j))
		}
		for j := whole; j < n; j++ {
			sum[j] += term[j]
		}
	}
}

// Rectify: see [Kernels].
func (v *vector) Rectify(x Rows[float32], n, rows int) {
	whole := n / Lanes * Lanes
	for i := range rows {
		row := x.Row(i, n)
		for j := 0; j < whole; j += maxRun {
			v.rectify(&row[j], min(maxRun, whole-j))
		}
		for j := whole; j < n; j++ {
			row[j] = max(row[j], 0)
		}
	}
}

// Regular: see [Kernels].
func (v *vector) Regular(x Rows[float32], circle *Circle[float32], channels, rows int) {
	if circle.Order >= len(v.regular) || circle.Order == 0 || channels%Lanes != 0 {
		Generic[float32]{}.Regular(x, circle, channels, rows)
		return
	}
	v.onCircle(v.regular[circle.Order], x, circle, channels, rows)
}

// Poly: see [Kernels].
func (v *vector) Poly(x Rows[float32], circle *Circle[float32], channels, rows int) {
	if circle.Order >= len(v.polynomials) || circle.Order == 0 || channels%Lanes != 0 {
		Generic[float32]{}.Poly(x, circle, channels, rows)
		return
	}
	v.onCircle(v.polynomials[circle.Order], x, circle, channels, rows)
}

func (v *vector) onCircle(f circleFunction, x Rows[float32], circle *Circle[float32], channels, rows int) {
	bound := float32(math.Sqrt(float64(2*circle.Order + 1)))
	scale := float32(math.Sqrt(float64(circle.Samples)))
	_ = circle.Basis[(2*circle.Order+1)*circle.Samples-1]
	for i := range rows {
		row := x.Row(i, (2*circle.Order+1)*channels)
		for c := 0; c < channels; c += Lanes {
			f(&row[c], 4*channels, &circle.Basis[0], 4*circle.Samples, circle.Samples, bound, scale)
		}
	}
}

// Gate: see [Kernels].
func (v *vector) Gate(x Rows[float32], a, b []float32, order, channels, rows int) {
	if channels == 0 || channels > maxRun || channels%Lanes != 0 {
		Generic[float32]{}.Gate(x, a, b, order, channels, rows)
		return
	}
	for i := range rows {
		row := x.Row(i, (2*order+1)*channels)
		v.rectify(&row[0], channels)
		for n := range order {
			v.gate(&row[(2*n+1)*channels], &row[(2*n+2)*channels], &a[n*channels], &b[n*channels:][:channels][0], channels)
		}
	}
}
