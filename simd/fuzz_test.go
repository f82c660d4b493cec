package simd

import (
	"math/rand/v2"
	"testing"
)

// Shapes and numbers from outside, for every instruction set: the checks of the
// other tests, with their bounds and guards.
func FuzzKernels(f *testing.F) {
	for kernel := range uint8(6) {
		f.Add(uint64(1), kernel, uint16(0), uint16(0), uint16(0), uint16(0))
		f.Add(uint64(2), kernel, uint16(13), uint16(29), uint16(67), uint16(1))
		f.Add(uint64(3), kernel, uint16(151), uint16(8), uint16(5), uint16(7))
	}
	f.Fuzz(func(t *testing.T, seed uint64, kernel uint8, x, y, z, w uint16) {
		for _, kernels := range Available() {
			random := rand.New(rand.NewPCG(seed, 1))
			fuzzKernel(t, kernels, random, kernel%6, int(x), int(y), int(z), int(w))
		}
	})
}

func fuzzKernel(t *testing.T, kernels Kernels32, random *rand.Rand, kernel uint8, x, y, z, w int) {
	order, sets, heads := x%(MaxOrder+1), 1+z%4, 1+w%3
	degrees := []int{y % 9, 0, y % 200, z % 9, w % 20}
	switch kernel {
	case 0:
		checkProducts(t, kernels, random, x%100, y%100, 1+z%300)
	case 1:
		checkHead(t, kernels, random, x%300, y%30, 1+z%1000)
	case 2:
		checkSoftmax(t, kernels, random, x%3000, heads, y%2 == 0, z%2 == 0, 1)
	case 3:
		checkNonlinearities(t, kernels, random, 1+x%MaxOrder, Lanes*(1+y%5))
	case 4:
		checkEdges(t, kernels, random, NewMoments(order, y%(MaxOrder+1), w%6-1, Lanes*(1+w%3)), degrees, sets, heads)
	default:
		checkAttention(t, kernels, random, order, y%(MaxOrder+1), w%6-1, Lanes*(1+w%3), degrees)
	}
}
