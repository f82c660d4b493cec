package core

import "libeman/simd"

// Nonlinearity is the function at the end of a block.
type Nonlinearity string

const (
	// NonlinearityPoly is exactly equivariant: a polynomial close to ReLU,
	// applied to a channel's function on the circle (simd.Circle).
	NonlinearityPoly Nonlinearity = "poly"
	// NonlinearityGate is exactly equivariant: ReLU on rho_0, z·σ(a|z| + b) on
	// rho_n.
	NonlinearityGate Nonlinearity = "gate"
	// NonlinearityRegular samples the circle and applies ReLU (the authors'
	// code); equivariant only under the rotations of the samples.
	NonlinearityRegular Nonlinearity = "regular"
	// NonlinearityNone is the identity.
	NonlinearityNone Nonlinearity = "none"
)

// activation is a non-linearity ready to run on features of one type. On
// features of order 0 every one but the identity is ReLU.
type activation[T simd.Float] struct {
	kind   Nonlinearity
	of     Type
	circle *simd.Circle[T]
	// scale and offset are the gate's a and b, [order, padded channels].
	scale, offset []T
}

// newActivation reads a gate's parameters, [order, channels] each, from p.
func newActivation[T simd.Float](kind Nonlinearity, of Type, samples int, p layerParameters) activation[T] {
	a := activation[T]{kind: kind, of: of}
	switch kind {
	case NonlinearityPoly:
		a.circle = simd.NewCircle[T](of.Order, simd.PolySamples(of.Order))
	case NonlinearityRegular:
		a.circle = simd.NewCircle[T](of.Order, samples)
	case NonlinearityGate:
		a.scale, a.offset = padRows[T](p["gate_scale"], of), padRows[T](p["gate_offset"], of)
	}
	return a
}

// padRows copies [rows, channels] to [rows, padded channels].
func padRows[T simd.Float](values []float64, of Type) []T {
	rows := len(values) / of.Channels
	padded := make([]T, rows*of.padded())
	for i, value := range values {
		padded[i/of.Channels*of.padded()+i%of.Channels] = T(value)
	}
	return padded
}

// apply replaces the features of n vertices.
func (a *activation[T]) apply(k simd.Kernels[T], x simd.Rows[T], n int) {
	channels := a.of.padded()
	switch {
	case a.kind == NonlinearityNone || a.kind == "":
	case a.of.Order == 0:
		k.Rectify(x, channels, n)
	case a.kind == NonlinearityGate:
		k.Gate(x, a.scale, a.offset, a.of.Order, channels, n)
	case a.kind == NonlinearityPoly:
		k.Poly(x, a.circle, channels, n)
	default:
		k.Regular(x, a.circle, channels, n)
	}
}

// residual adds the input of a block to its output, order by order as far as
// both have it; where the widths differ, through a map of the channels that is
// the same for all components.
type residual[T simd.Float] struct {
	in, out Type
	channel *simd.Panel[T] // [in, out]; nil for equal widths
}

// newResidual reads the map's weights [out, in], if there are any.
func newResidual[T simd.Float](in, out Type, weights []float64) *residual[T] {
	r := &residual[T]{in: in, out: out}
	if weights != nil {
		r.channel = packTransposed[T](weights, out.Channels, in.Channels, in.padded())
	}
	return r
}

func (r *residual[T]) add(k simd.Kernels[T], x, y simd.Rows[T], n int) {
	components := min(r.in.Components(), r.out.Components())
	if r.channel == nil {
		k.Add(y, x, components*r.out.padded(), n)
		return
	}
	for i := range components {
		k.Multiply(y.Columns(i*r.out.padded()), x.Columns(i*r.in.padded()), r.channel, n, true)
	}
}

// packTransposed packs weights [out, in] of a map of row vectors, its rows
// padded with zeros to height.
func packTransposed[T, S simd.Float](weights []S, out, in, height int) *simd.Panel[T] {
	panel := simd.NewPanel[T](height, out)
	fillTransposed(panel, weights, out, in)
	return panel
}

// fillTransposed is packTransposed into a panel of the same shape.
func fillTransposed[T, S simd.Float](panel *simd.Panel[T], weights []S, out, in int) {
	for o := range out {
		for i := range in {
			panel.Set(i, o, T(weights[o*in+i]))
		}
	}
}
