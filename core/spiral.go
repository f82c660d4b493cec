package core

import "libeman/simd"

// spiralLayer is a layer of SpiralNet++ (app. E): the features of the vertices
// of p's spiral, one after the other, through a dense layer,
//
//	x'_p = ELU(W·(x_j)_{j ∈ S(p)} + b).
//
// A spiral of length 1 is the vertex alone: a plain dense layer.
type spiralLayer[T simd.Float] struct {
	in, out, length int            // channels, and vertices of a spiral
	weights         *simd.Panel[T] // [length·padded in, out]
	bias            []T            // [padded out]
}

// newSpiralLayer reads weights [out, length·in] and bias [out].
func newSpiralLayer[T simd.Float](in, out, length int, p layerParameters) *spiralLayer[T] {
	l := &spiralLayer[T]{in: in, out: out, length: length, bias: padRows[T](p["bias"], Type{Channels: out})}
	padded := simd.Padded(in)
	l.weights = simd.NewPanel[T](length*padded, out)
	for o := range out {
		for j := range length {
			for i := range in {
				l.weights.Set(j*padded+i, o, T(p["weight"][(o*length+j)*in+i]))
			}
		}
	}
	return l
}

// forward computes the vertices [begin, end) of y from all of x.
func (l *spiralLayer[T]) forward(k simd.Kernels[T], w *scratch[T], spirals *Spirals, x, y simd.Rows[T], begin, end int) {
	k.Dense(y.From(begin), l.rows(w, spirals, x, begin, end), l.weights, l.bias, end-begin, simd.ELU)
}

// rows is the features of the spirals of the vertices [begin, end).
func (l *spiralLayer[T]) rows(w *scratch[T], spirals *Spirals, x simd.Rows[T], begin, end int) simd.Rows[T] {
	if l.length == 1 {
		return x.From(begin)
	}
	width := simd.Padded(l.in)
	rows := simd.Rows[T]{Data: w.moments, Stride: l.length * width}
	for p := begin; p < end; p++ {
		for j, q := range spirals.of(p) {
			copy(rows.Row(p-begin, l.length*width)[j*width:], x.Row(int(q), width))
		}
	}
	return rows
}
