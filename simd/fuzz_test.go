package simd

import (
	"math/rand/v2"
	"testing"
)

// Shapes and numbers from outside, for every instruction set: the checks of the
// other tests, with their bounds and guards.

// fuzz adds some shapes for each of count kernels, and runs check for those
// that the fuzzer finds.
func fuzz(f *testing.F, count uint8, check func(t *testing.T, random *rand.Rand, kernel uint8, x, y, z, w int)) {
	for kernel := range count {
		f.Add(uint64(1), kernel, uint16(0), uint16(0), uint16(0), uint16(0))
		f.Add(uint64(2), kernel, uint16(13), uint16(29), uint16(67), uint16(1))
		f.Add(uint64(3), kernel, uint16(151), uint16(8), uint16(5), uint16(7))
	}
	f.Fuzz(func(t *testing.T, seed uint64, kernel uint8, x, y, z, w uint16) {
		check(t, rand.New(rand.NewPCG(seed, 1)), kernel%count, int(x), int(y), int(z), int(w))
	})
}

func FuzzKernels(f *testing.F) {
	fuzz(f, 14, func(t *testing.T, random *rand.Rand, kernel uint8, x, y, z, w int) {
		for _, kernels := range Available() {
			fuzzKernel(t, kernels, random, kernel, x, y, z, w)
		}
	})
}

func fuzzKernel(t *testing.T, kernels Kernels32, random *rand.Rand, kernel uint8, x, y, z, w int) {
	order, sets, heads, channels := x%(MaxOrder+1), 1+z%4, 1+w%3, Lanes*(1+w%3)
	degrees := []int{y % 9, 0, y % 200, z % 9, w % 20}
	plan := NewMoments(order, y%(MaxOrder+1), w%6-1, channels)
	switch kernel {
	case 0:
		checkProducts(t, kernels, random, x%100, y%100, 1+z%300)
	case 1:
		checkHead(t, kernels, random, x%300, y%30, 1+z%1000)
	case 2:
		checkSoftmax(t, kernels, random, x%3000, heads, y%2 == 0, z%2 == 0, 1)
	case 3:
		checkNonlinearities(t, kernels, random, 1+x%MaxOrder, channels)
	case 4:
		checkEdges(t, kernels, random, plan, degrees, sets, heads)
	case 5:
		checkAttention(t, kernels, random, order, y%(MaxOrder+1), w%6-1, channels, degrees)
	case 6:
		checkElementwise(t, kernels, random, x, y%4)
	case 7:
		checkCorrelation(t, kernels, random, x%200, Lanes*(y%8), z%600)
	case 8:
		checkCrossEntropy(t, kernels, random, 1+x%2000, 1+y%5, 1+float32(z%40))
	case 9:
		checkSoftmaxGradient(t, kernels, random, degrees, heads, x%2 == 0, z%2 == 0)
	case 10:
		checkNonlinearGradients(t, kernels, random, 1+x%MaxOrder, 4+y%50)
	case 11:
		checkTranspose(t, kernels, random, plan, degrees, sets, heads)
	case 12:
		checkGather(t, kernels, random, x%500, y%9, 1+z%30)
	default:
		checkAdam(t, kernels, random, x)
	}
}

func FuzzGeometry(f *testing.F) {
	fuzz(f, 8, func(t *testing.T, random *rand.Rand, kernel uint8, x, y, z, w int) {
		for _, set := range Available() {
			if k := GeometryOf(set.Name()); k != nil {
				fuzzGeometry(t, k, random, kernel, x, y, z, w)
			}
		}
	})
}

func fuzzGeometry(t *testing.T, k Geometry, random *rand.Rand, kernel uint8, x, y, z, w int) {
	n := x % 2000
	g := geometryCaseOf(random, n, 1+y%100)
	switch kernel {
	case 0:
		checkCenters(t, k, random, 1+x%MaxCenters, y%200)
	case 1:
		checkColumns(t, k, random, x%(MaxCenters+1))
	case 2:
		checkWedges(t, k, random, g)
	case 3:
		checkRelTan(t, k, random, g)
	case 4:
		checkRingSums(t, k, random, z%100, w%100)
	case 5:
		checkTangents(t, k, random, n)
	case 6:
		checkFrames(t, k, random, n)
	default:
		checkAngles(t, k, random, g, 0x1p-24, k.Edges32)
		checkAngles(t, k, random, g, 0, k.Edges64)
	}
}
