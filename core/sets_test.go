package core

import (
	"testing"

	"libeman/simd"
)

// kernels32 is what the tests compute with in float32; in float64 there is
// only the specification.
var kernels32 = simd.Best()

func testKernels[T simd.Float]() simd.Kernels[T] {
	if k, narrow := any(kernels32).(simd.Kernels[T]); narrow {
		return k
	}
	return simd.Generic[T]{}
}

// eachSet runs a test with the kernels of every instruction set that runs here.
func eachSet(t *testing.T, test func(t *testing.T)) {
	best := kernels32
	defer func() { kernels32 = best }()
	for _, k := range simd.Available() {
		kernels32 = k
		t.Run(k.Name(), test)
	}
}
