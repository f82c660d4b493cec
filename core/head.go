package core

import "libeman/simd"

// denseHead is the end of a network (app. F): a dense layer with ReLU (ELU
// behind spirals), dropout, which does nothing at inference, the mean over the
// vertices for classification, and a dense layer to the classes with
// log-softmax.
type denseHead[T simd.Float] struct {
	in, hidden, classes int
	activation          simd.Activation
	first, second       *simd.Panel[T]
	firstBias           []T // [padded hidden]
	secondBias          []T // [padded classes]
}

func newDenseHead[T simd.Float](spec Spec, parameter func(string) []T) denseHead[T] {
	in := spec.outputType().Channels
	head := denseHead[T]{
		in: in, hidden: spec.Hidden, classes: spec.Classes, activation: simd.ReLU,
		first:      packTransposed[T](parameter("dense1.weight"), spec.Hidden, in, simd.Padded(in)),
		second:     packTransposed[T](parameter("dense2.weight"), spec.Classes, spec.Hidden, simd.Padded(spec.Hidden)),
		firstBias:  padded(parameter("dense1.bias")),
		secondBias: padded(parameter("dense2.bias")),
	}
	if spec.Kind == KindSpiral {
		head.activation = simd.ELU
	}
	return head
}

// padded is a copy of values with zeros behind them.
func padded[T simd.Float](values []T) []T {
	row := make([]T, simd.Padded(len(values)))
	copy(row, values)
	return row
}

// hide computes the first dense layer for n rows into w.hidden.
func (h *denseHead[T]) hide(k simd.Kernels[T], w *scratch[T], x simd.Rows[T], n int) simd.Rows[T] {
	hidden := simd.Rows[T]{Data: w.hidden, Stride: simd.Padded(h.hidden)}
	k.Dense(hidden, x, h.first, h.firstBias, n, h.activation)
	return hidden
}
