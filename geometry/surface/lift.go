package surface

import (
	"slices"

	"libeman/geometry"
	"libeman/geometry/internal/r3"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
)

// Lift takes values at points back to the vertices of the mesh: that at vertex v
// is Σ Weights[i]·value(Points[i]) over the Count i from v·Count on. The points
// are those nearest to the vertex on its sheet, and a point's weight vanishes
// where another takes its place, so the result is continuous over the surface.
type Lift struct {
	Count   int
	Points  []int32   // V×Count
	Weights []float64 // V×Count; those of a vertex add up to 1
}

// ownSheet is what the product of the normals of a vertex and its points
// exceeds, where there are enough such points: just less than a right angle,
// which is frequent.
const ownSheet = 0.05

const vertexRows = 256 // vertices handled at a time

// setLift finds the points of all vertices, and their weights.
func (s *Sampling) setLift(v *geometry.View, finest *level, count int, control *parallel.Control) (err error) {
	l := &s.Lift
	l.Count = min(count, s.Count())
	size := int64(l.Count) * int64(v.VertexCount())
	if l.Points, err = memory.Make[int32](s.arena, size); err != nil {
		return err
	}
	if l.Weights, err = memory.Make[float64](s.arena, size); err != nil {
		return err
	}
	searches := finest.searches(v.Resources())
	centre := r3.At(s.Center[:], 0)
	return v.Resources().Threads.Range(control, v.VertexCount(), vertexRows, func(worker, begin, end int) error {
		q := &searches[worker]
		q.except = -1
		for p := begin; p < end; p++ {
			q.place = r3.At(v.ScaledPositions(), p).Minus(centre)
			q.normal = r3.At(v.FrameRows(), 3*p+2)
			hits := q.onSheet(min(count+1, s.Count()), hasNormal(v, p))
			l.set(p, hits)
		}
		return nil
	})
}

// hasNormal says whether a vertex has a normal: its own, or that of a face.
func hasNormal(v *geometry.View, p int) bool {
	return v.HasOwnFrames() || v.Offsets()[p] < v.Offsets()[p+1]
}

// onSheet finds the count nearest points, in order of distance, on the sheet
// that the normal tells, as far as there are so many.
func (s *search) onSheet(count int, hasNormal bool) (hits []hit) {
	agreements := []float64{ownSheet, sameSheet, anyNormal}
	if !hasNormal {
		agreements = agreements[2:]
	}
	for _, s.agreement = range agreements {
		if hits = s.nearest(count); len(hits) >= count {
			break
		}
	}
	slices.SortFunc(hits, byDistance)
	return hits[:count]
}

// set sets the weights (1 − d²/h²)² of a vertex, h being the distance of the
// first point left out, or twice that of the last where none is.
func (l *Lift) set(vertex int, hits []hit) {
	points, weights := l.Points[vertex*l.Count:][:l.Count], l.Weights[vertex*l.Count:][:l.Count]
	last := hits[len(hits)-1].distance
	if len(hits) == l.Count {
		last *= 4
	}
	sum := 0.0
	for i := range points {
		points[i] = hits[i].point
		if last > 0 {
			w := 1 - hits[i].distance/last
			weights[i] = w * w
			sum += weights[i]
		}
	}
	for i := range weights {
		if sum > noWeight {
			weights[i] /= sum
		} else {
			weights[i] = 1 / float64(l.Count)
		}
	}
}

// noWeight bounds the sum of weights that are rounding errors: all points are
// equally far.
const noWeight = 1e-12
