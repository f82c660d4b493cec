package core

import (
	"slices"

	"libeman/simd"
)

// Radial is how an edge's length becomes a place x in [0, 1] between the knots
// of the radial rings (authors' code; the paper's kernels do not see lengths).
type Radial string

const (
	// RadialGlobal divides by the longest edge of the mesh: x = |d| / max|d|.
	RadialGlobal Radial = "global"
	// RadialLocal compares with the mean of the vertex's own ring, so that no
	// far-away edge matters: x = min(1, |d| / (2·mean|d|)); a mean edge lies
	// in the middle.
	RadialLocal Radial = "local"
)

// ringWeights fills weights [edges, rings] for the vertices [begin, end): the
// hat functions of rings equidistant knots on [0, 1] at x. They sum to 1; a
// single ring has the weight 1.
func (g *Graph[T]) ringWeights(weights []T, begin, end, rings int, radial Radial) {
	if rings == 1 {
		for i := range weights {
			weights[i] = 1
		}
		return
	}
	next := 0
	for p := begin; p < end; p++ {
		radii := g.Radius[g.Offsets[p]:g.Offsets[p+1]]
		unit := T(1)
		if radial == RadialLocal {
			unit = 2 * mean(radii)
		}
		for _, radius := range radii {
			hats(weights[next:][:rings], radius, unit)
			next += rings
		}
	}
}

// hats sets the weights of the knots around x = min(1, radius/unit), or 0
// where the unit is 0.
func hats[T simd.Float](weights []T, radius, unit T) {
	clear(weights)
	x := T(0)
	if unit > 0 {
		x = min(1, radius/unit)
	}
	intervals := len(weights) - 1
	place := x * T(intervals)
	knot := min(int(place), intervals-1)
	weights[knot+1] = place - T(knot)
	weights[knot] = 1 - weights[knot+1]
}

// mean is the mean of the values, summed in float64; 0 for none.
func mean[T simd.Float](values []T) T {
	var sum float64
	for _, value := range values {
		sum += float64(value)
	}
	if len(values) == 0 {
		return 0
	}
	return T(sum / float64(len(values)))
}

// pairWeights replaces weights [edges, rings] by products [edges,
// rings(rings+1)/2]: w_r w_r' for r ≤ r' (pairIndex), what a query that is
// weighted like the key makes of the logits (authors' code).
func pairWeights[T simd.Float](pairs, weights []T, rings int) {
	next := 0
	for edge := range slices.Chunk(weights, rings) {
		for r := range rings {
			for s := r; s < rings; s++ {
				pairs[next] = edge[r] * edge[s]
				next++
			}
		}
	}
}

// pairCount is the number of pairs r ≤ r'.
func pairCount(rings int) int { return rings * (rings + 1) / 2 }
