package core

import (
	"libeman/simd"
)

// activationGradient is the backward pass of a non-linearity.
type activationGradient[T simd.Float] struct {
	*activation[T]
	scale, offset sum // [order, padded channels], of a gate
}

func newActivationGradient[T simd.Float](a *activation[T], l *ledger) activationGradient[T] {
	g := activationGradient[T]{activation: a}
	if a.scale != nil && a.of.Order > 0 {
		g.scale, g.offset = l.add(a.of.Order, a.of.padded()), l.add(a.of.Order, a.of.padded())
	}
	return g
}

// keepsInput says whether the backward pass needs what the non-linearity was
// applied to; otherwise its result is enough.
func (a *activation[T]) keepsInput() bool {
	return a.of.Order > 0 && a.kind != NonlinearityNone && a.kind != ""
}

// backward replaces the gradient of n vertices with respect to the result y by
// that with respect to the input x.
func (g *activationGradient[T]) backward(k simd.Kernels[T], gradient, x, y simd.Rows[T], n int, sums []T) {
	channels := g.of.padded()
	switch {
	case g.kind == NonlinearityNone || g.kind == "":
	case g.of.Order == 0:
		k.RectifyGradient(gradient, y, channels, n)
	case g.kind == NonlinearityGate:
		k.GateGradient(gradient, x, g.activation.scale, g.activation.offset, view(g.scale, sums).Data, view(g.offset, sums).Data, g.of.Order, channels, n)
	case g.kind == NonlinearityPoly:
		k.PolyGradient(gradient, x, g.circle, channels, n)
	default:
		k.RegularGradient(gradient, x, g.circle, channels, n)
	}
}

// parameterGradients adds those of a gate.
func (g *activationGradient[T]) parameterGradients(sums []float64, result layerParameters) {
	if g.scale.rows == 0 {
		return
	}
	result["gate_scale"], result["gate_offset"] = unpadRows(sums[g.scale.at:], g.of), unpadRows(sums[g.offset.at:], g.of)
}

// unpadRows is the transpose of padRows for the orders from 1 on.
func unpadRows(padded []float64, of Type) (values []float64) {
	for n := range of.Order {
		values = append(values, padded[n*of.padded():][:of.Channels]...)
	}
	return values
}

// residualGradient is the backward pass of a block's residual.
type residualGradient[T simd.Float] struct {
	*residual[T]
	channel *simd.Panel[T] // transposed; or nil
	sum     sum
}

func newResidualGradient[T simd.Float](r *residual[T], l *ledger) *residualGradient[T] {
	if r == nil {
		return nil
	}
	g := &residualGradient[T]{residual: r}
	if r.channel != nil {
		g.channel, g.sum = r.channel.Transposed(), l.add(r.channel.K, r.channel.N)
	}
	return g
}

// backward adds to the gradient to with respect to the block's input x, unless to
// is empty, what the gradient with respect to its output says.
func (g *residualGradient[T]) backward(k simd.Kernels[T], gradient, x, to simd.Rows[T], n int, sums []T) {
	components := min(g.in.Components(), g.out.Components())
	if g.channel == nil {
		if to.Data != nil {
			k.Add(to, gradient, components*g.out.padded(), n)
		}
		return
	}
	for i := range components {
		y := gradient.Columns(i * g.out.padded())
		k.Correlate(view(g.sum, sums), x.Columns(i*g.in.padded()), y, g.sum.rows, g.sum.columns, n)
		if to.Data != nil {
			k.Multiply(to.Columns(i*g.in.padded()), y, g.channel, n, true)
		}
	}
}

// weights is the gradient of the map's tensor [out, in].
func (g *residualGradient[T]) weights(sums []float64) []float64 {
	return transposedTensor(g.sum, sums, g.out.Channels, g.in.Channels)
}

// transposedTensor is the transpose of packTransposed.
func transposedTensor(s sum, sums []float64, out, in int) []float64 {
	tensor := make([]float64, out*in)
	for o := range out {
		for i := range in {
			tensor[o*in+i] = sums[s.at+i*s.columns+o]
		}
	}
	return tensor
}

// spiralGradient is the backward pass of a layer of SpiralNet++.
type spiralGradient[T simd.Float] struct {
	*spiralLayer[T]
	weights             *simd.Panel[T] // transposed
	weightsSum, biasSum sum
}

func newSpiralGradient[T simd.Float](s *spiralLayer[T], l *ledger) *spiralGradient[T] {
	return &spiralGradient[T]{s, s.weights.Transposed(), l.add(s.weights.K, s.weights.N), l.add(1, s.weights.N)}
}

// backward treats the vertices [begin, end) from the gradient with respect to
// their results y, which it replaces by that before the activation. The
// gradient with respect to the vertices of the spirals goes to records
// [vertices of the block, length·padded in], unless these are empty.
func (g *spiralGradient[T]) backward(k simd.Kernels[T], w *scratch[T], spirals *Spirals, x, y, gradient, records simd.Rows[T], begin, end int, sums []T) {
	n, columns := end-begin, g.spiralLayer.weights.N
	for i := range n {
		unELU(gradient.Row(i, columns), y.Row(i, columns), 1)
		k.Add(view(g.biasSum, sums), gradient.From(i), columns, 1)
	}
	rows := g.rows(w, spirals, x, begin, end)
	k.Correlate(view(g.weightsSum, sums), rows, gradient, g.weights.N, columns, n)
	if records.Data != nil {
		k.Multiply(records, gradient, g.weights, n, false)
	}
}

// unELU multiplies the gradient with respect to ELU(x) by the derivative; y is
// ELU(x)/unit.
func unELU[T simd.Float](gradient, y []T, unit T) {
	for j, value := range y {
		if value <= 0 {
			gradient[j] *= value*unit + 1
		}
	}
}

// parameterGradients is what finished sums say about the layer's tensors.
func (g *spiralGradient[T]) parameterGradients(sums []float64) layerParameters {
	weights := make([]float64, g.out*g.length*g.in)
	padded := simd.Padded(g.in)
	for o := range g.out {
		for j := range g.length {
			for i := range g.in {
				weights[(o*g.length+j)*g.in+i] = sums[g.weightsSum.at+(j*padded+i)*g.weightsSum.columns+o]
			}
		}
	}
	return layerParameters{"weight": weights, "bias": sums[g.biasSum.at:][:g.out]}
}
