//go:build amd64 || arm64

package simd

import (
	"math/rand/v2"
	"testing"
)

// timid is a set whose functions fail where one call has more to do than what
// may hold up the garbage collector: those over rows whose length users decide.
func timid(t *testing.T, set *vector) *vector {
	short := func(what string, n, most int) {
		t.Helper()
		if n > most {
			t.Fatalf("%s over %d in one call, not at most %d", what, n, most)
		}
	}
	v := *set
	v.products = nil
	for _, tile := range set.products {
		of := productTile{rows: tile.rows}
		for i, product := range tile.strips {
			of.strips = append(of.strips, func(c *float32, cStep int, a *float32, aStep int, b *float32, bStep, k, groups int, addend *float32, addendStep int, floor float32) {
				short("a sum of products", k, maxDepth)
				short("products", (groups-1)*tile.rows*(i+1)*Lanes*k, maxTileWork)
				product(c, cStep, a, aStep, b, bStep, k, groups, addend, addendStep, floor)
			})
		}
		v.products = append(v.products, of)
	}
	v.add = func(c, a *float32, n int) { short("add", n, maxRun); set.add(c, a, n) }
	v.rectify = func(x *float32, n int) { short("rectify", n, maxRun); set.rectify(x, n) }
	v.mask = func(g, y *float32, n int) { short("mask", n, maxRun); set.mask(g, y, n) }
	v.expm1 = func(x *float32, n int) { short("expm1", n, maxRun); set.expm1(x, n) }
	v.shift = func(x *float32, n int, first, second float32) {
		short("shift", n, maxRun)
		set.shift(x, n, first, second)
	}
	v.scale = func(x *float32, n int, factor float32) { short("scale", n, maxRun); set.scale(x, n, factor) }
	v.rowMax = func(x *float32, n int) float32 { short("rowMax", n, maxRun); return set.rowMax(x, n) }
	v.sumExp = func(x *float32, n int, shift float32) float32 {
		short("sumExp", n, maxRun)
		return set.sumExp(x, n, shift)
	}
	v.exponentiate = func(x *float32, n int, shift float32) float32 {
		short("exponentiate", n, maxRun)
		return set.exponentiate(x, n, shift)
	}
	v.softmax = func(x *float32, n int, scale float32) { short("softmax", n, maxRun); set.softmax(x, n, scale) }
	v.shortSoftmaxes = func(to, x *float32, offsets *int64, rings int, scaled bool) {
		short("shortSoftmaxes", rings, softmaxTerms)
		set.shortSoftmaxes(to, x, offsets, rings, scaled)
	}
	v.adam = func(w, first, second, gradient *float32, n int, beta1, beta2, other1, other2, rate, root, epsilon, decay, penalty, factor float32) {
		short("adam", n, maxRun)
		set.adam(w, first, second, gradient, n, beta1, beta2, other1, other2, rate, root, epsilon, decay, penalty, factor)
	}
	v.gate = func(re, im, a, b *float32, n int) { short("gate", n, maxRun); set.gate(re, im, a, b, n) }
	v.phases = func(in, out, cosTheta, sinTheta, cosG, sinG *float32, n, order int) {
		short("phases", n, edgeChunk)
		set.phases(in, out, cosTheta, sinTheta, cosG, sinG, n, order)
	}
	v.passes = nil
	for _, p := range set.passes {
		of := pass{forms: p.forms}
		for i := range p.dot {
			of.aggregate = append(of.aggregate, func(m *float32, step, rowStep, setStep int, z, coefficients *float32, offsets *int64, base int64, vertices, more int) {
				short("aggregate", vertices, edgeChunk)
				p.aggregate[i](m, step, rowStep, setStep, z, coefficients, offsets, base, vertices, more)
			})
			of.dot = append(of.dot, func(u *float32, step, rowStep, setStep int, z, coefficients *float32, offsets *int64, base int64, vertices int, dots *float32) {
				short("dot", vertices, edgeChunk)
				p.dot[i](u, step, rowStep, setStep, z, coefficients, offsets, base, vertices, dots)
			})
			of.spread = append(of.spread, func(m *float32, step, rowStep, setStep int, z, coefficients *float32, offsets *int64, base int64, vertices int) {
				short("spread", vertices, edgeChunk)
				p.spread[i](m, step, rowStep, setStep, z, coefficients, offsets, base, vertices)
			})
		}
		v.passes = append(v.passes, of)
	}
	return &v
}

// Rows, rings and sums of any length are cut into calls that are short, and
// come out right on both sides of each cut.
func TestNoCallIsLong(t *testing.T) {
	eachSet(t, func(t *testing.T, kernels Kernels32) {
		set, ok := kernels.(*vector)
		if !ok {
			return // the generic kernels have no assembly to call
		}
		v, random := timid(t, set), rand.New(rand.NewPCG(22, 1))
		for _, n := range []int{maxRun - 1, maxRun, maxRun + 1, maxRun + Lanes, 3*maxRun + 37} {
			checkElementwise(t, v, random, n, 2)
			checkCrossEntropy(t, v, random, n, 2, 1)
			checkAdam(t, v, random, n)
			checkGather(t, v, random, n, 2, 3)
			checkProducts(t, v, random, 2, 1, n)
			checkSoftmax(t, v, random, n, 1, false, true, 1)
			checkSoftmax(t, v, random, n, 2, true, false, 1)
			checkHead(t, v, random, 3, 2, n)
		}
		checkNonlinearities(t, v, random, 1, maxRun+Lanes)
		for _, depth := range []int{maxDepth, maxDepth + 1, 2*maxDepth + 5} {
			checkProducts(t, v, random, 20, depth, 40)
		}
		checkProducts(t, v, random, 4000, 70, 40)
		degrees := make([]int, 3*edgeChunk)
		degrees[edgeChunk], degrees[edgeChunk+1] = 5, 3*edgeChunk+1
		checkEdges(t, v, random, NewMoments(2, 2, 2, Lanes), degrees, 2, 1)
		checkTranspose(t, v, random, NewMoments(2, 2, 2, Lanes), degrees, 2, 1)
		offsets := make([]int64, 3*softmaxTerms)
		v.Softmax(nil, nil, offsets, 1, false) // of empty rings
	})
}
