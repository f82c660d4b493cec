package core

import "libeman/simd"

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

// ringWeights fills weights [rings, edges] for the vertices [begin, end): the
// hat functions of rings equidistant knots on [0, 1] at x. They sum to 1; a
// single ring has the weight 1.
func (g *Graph[T]) ringWeights(weights []T, begin, end, rings int, radial Radial) {
	if rings == 1 {
		for i := range weights {
			weights[i] = 1
		}
		return
	}
	edges := len(weights) / rings
	first := g.Offsets[begin]
	if radial != RadialLocal {
		hats(weights, g.Radius[first:g.Offsets[end]], 1, rings, 0, edges)
		return
	}
	for p := begin; p < end; p++ {
		radii := g.Radius[g.Offsets[p]:g.Offsets[p+1]]
		hats(weights, radii, 2*mean(radii), rings, int(g.Offsets[p]-first), edges)
	}
}

// hats sets the weights of the edges from at on: those of the knots around x =
// min(1, radius/unit).
func hats[T simd.Float](weights, radii []T, unit T, rings, at, edges int) {
	if unit == 0 { // the mean of a ring whose lengths all are 0
		unit = 1
	}
	if rings == 2 {
		near, far := weights[at:][:len(radii)], weights[edges+at:][:len(radii)]
		for e, radius := range radii {
			x := min(1, radius/unit)
			near[e], far[e] = 1-x, x
		}
		return
	}
	for ring := range rings {
		clear(weights[ring*edges+at:][:len(radii)])
	}
	intervals := rings - 1
	for e, radius := range radii {
		place := min(1, radius/unit) * T(intervals)
		knot := min(int(place), intervals-1)
		weights[(knot+1)*edges+at+e] = place - T(knot)
		weights[knot*edges+at+e] = 1 - (place - T(knot))
	}
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

// pairWeights replaces weights [rings, edges] by products [rings(rings+1)/2,
// edges]: w_r w_r' for r ≤ r', what a query that is weighted like the key makes
// of the logits (authors' code).
func pairWeights[T simd.Float](pairs, weights []T, rings int) {
	edges := len(weights) / rings
	for r := range rings {
		for s := r; s < rings; s++ {
			product, other := pairs[:edges], weights[s*edges:]
			for e, weight := range weights[r*edges:][:edges] {
				product[e] = weight * other[e]
			}
			pairs = pairs[edges:]
		}
	}
}

// pairCount is the number of pairs r ≤ r'.
func pairCount(rings int) int { return rings * (rings + 1) / 2 }
