package core

import (
	"os"
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

// forced is the set that the environment says must have been chosen: on a
// processor without a faster one, or in a build with the tag emantest.
func forced() string { return os.Getenv("EMAN_TEST_ISA") }

func TestKernelsAreTheForcedOnes(t *testing.T) {
	if got, want := simd.Best().Name(), forced(); want != "" && got != want {
		t.Fatalf("%s is in use, not %s", got, want)
	}
}

// eachSet runs a test with the kernels of every instruction set that runs here,
// or with the forced one.
func eachSet(t *testing.T, test func(t *testing.T)) {
	best := kernels32
	defer func() { kernels32 = best }()
	for _, k := range simd.Available() {
		if forced() != "" && k.Name() != forced() {
			continue
		}
		kernels32 = k
		t.Run(k.Name(), test)
	}
}
