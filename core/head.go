package core

import (
	"fmt"
	"math"
	"unsafe"

	"libeman/simd"
)

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
	// Up to which size numbers may enter a dense layer without any overflow.
	firstLimit, secondLimit T
}

func newDenseHead[T simd.Float](spec Spec, parameter func(string) []T) denseHead[T] {
	in := spec.outputType().Channels
	head := denseHead[T]{
		in: in, hidden: spec.Hidden, classes: spec.Classes, activation: simd.ReLU,
		first:     simd.NewPanel[T](simd.Padded(in), spec.Hidden),
		second:    simd.NewPanel[T](simd.Padded(spec.Hidden), spec.Classes),
		firstBias: make([]T, simd.Padded(spec.Hidden)), secondBias: make([]T, simd.Padded(spec.Classes)),
	}
	head.fill(parameter)
	if spec.Kind == KindSpiral {
		head.activation = simd.ELU
	}
	return head
}

// fill reads the parameters.
func (h *denseHead[T]) fill(parameter func(string) []T) {
	fillTransposed(h.first, parameter("dense1.weight"), h.hidden, h.in)
	fillTransposed(h.second, parameter("dense2.weight"), h.classes, h.hidden)
	copy(h.firstBias, parameter("dense1.bias"))
	copy(h.secondBias, parameter("dense2.bias"))
	h.firstLimit, h.secondLimit = largestInput(h.first, h.firstBias), largestInput(h.second, h.secondBias)
}

// largestInput is how large the inputs of a dense layer may be so that no sum
// in it overflows, whatever the order of its terms: Σ|w x| + |b| ≤ K·|w||x| + |b|
// with the greatest |w| and |b|. It is negative where the biases alone are too
// large.
func largestInput[T simd.Float](weights *simd.Panel[T], bias []T) T {
	// Half the greatest number leaves room for rounding, and another half for
	// the differences that log-softmax takes.
	room := greatest[T]()/4 - largest(bias)
	return T(min(room/(float64(weights.K)*max(largest(weights.Data), 1)), greatest[T]()))
}

// largest is the greatest |x|.
func largest[T simd.Float](x []T) (most float64) {
	for _, value := range x {
		most = max(most, math.Abs(float64(value)))
	}
	return most
}

// greatest is the greatest number of a type.
func greatest[T simd.Float]() float64 {
	var x T
	if unsafe.Sizeof(x) == 4 {
		return math.MaxFloat32
	}
	return math.MaxFloat64
}

// hide computes the first dense layer for n rows, of the vertices from first on,
// into w.hidden. It refuses features with which it, or the second dense layer,
// would overflow: kernels may lose a NaN, and labels would then mean nothing.
func (h *denseHead[T]) hide(k simd.Kernels[T], w *scratch[T], x simd.Rows[T], first, n int) (simd.Rows[T], error) {
	hidden := simd.Rows[T]{Data: w.hidden, Stride: simd.Padded(h.hidden)}
	if err := checkRows(x, h.in, first, n, h.firstLimit); err != nil {
		return hidden, err
	}
	k.Dense(hidden, x, h.first, h.firstBias, n, h.activation)
	return hidden, checkRows(hidden, h.hidden, first, n, h.secondLimit)
}

// checkRows refuses numbers beyond ±limit, and NaN, among the first width of
// each row.
func checkRows[T simd.Float](x simd.Rows[T], width, first, n int, limit T) error {
	for i := range n {
		for _, value := range x.Row(i, width) {
			if !(value <= limit && value >= -limit) {
				var of T
				return &refusal{errOverflow, fmt.Sprintf("vertex %d: the network's features overflow %T", first+i, of)}
			}
		}
	}
	return nil
}
