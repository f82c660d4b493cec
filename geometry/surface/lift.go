package surface

import (
	"math"

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

// surroundings list, for each point, the nearest width points, itself the first,
// in order of distance. A vertex near the point finds its own nearest there.
type surroundings struct {
	width    int
	points   []int32   // K×width
	distance []float64 // K×width
	rows     []float64 // K×6: place and normal of each point
}

const surroundingWidth = 48

func (s *Sampling) surroundings(arena *memory.Arena, l *sheet) (a surroundings, err error) {
	count := s.Count()
	a.width = min(surroundingWidth, count)
	size := int64(count) * int64(a.width)
	if a.points, err = memory.Make[int32](arena, size); err != nil {
		return a, err
	}
	if a.distance, err = memory.Make[float64](arena, size); err != nil {
		return a, err
	}
	if a.rows, err = memory.Make[float64](arena, 6*int64(count)); err != nil {
		return a, err
	}
	threads := s.resources.Threads
	searches := l.searches(threads.Threads())
	return a, threads.Range(nil, count, pointRows, func(worker, begin, end int) error {
		q := &searches[worker]
		q.guess = 0
		for _, number := range l.numbers[begin:end] {
			p := int(number)
			r3.Put(a.rows, 2*p, r3.At(s.Positions, p))
			r3.Put(a.rows, 2*p+1, s.normal(p))
			q.from(s, p)
			q.agreement = anyNormal
			hits := q.nearest(a.width)
			for i, h := range hits[:a.width] {
				a.points[p*a.width+i], a.distance[p*a.width+i] = h.point, math.Sqrt(h.distance)
			}
		}
		return nil
	})
}

// near is search.nearest for a place near the given point. It returns the
// nearest point of all, for the next search; complete is false where there may
// be nearer hits than the surroundings have.
func (a *surroundings) near(s *search, point int32, count int) (nearest int32, complete bool) {
	s.begin(count)
	away := r3.At(a.rows, 2*int(point)).Minus(s.place).Length()
	least := math.Inf(1)
	distances := a.distance[int(point)*a.width:][:a.width]
	for i, q := range a.points[int(point)*a.width:][:a.width] {
		// No point from here on is nearer than this.
		if rest := distances[i] - away; rest > 0 && rest*rest*(1-tie) > s.bound {
			return nearest, true
		}
		distance := r3.At(a.rows, 2*int(q)).Minus(s.place).Squared()
		if distance < least {
			nearest, least = q, distance
		}
		if distance <= s.bound && r3.At(a.rows, 2*int(q)+1).Dot(s.normal) > s.agreement {
			s.take(hit{distance, q})
		}
	}
	return nearest, a.width*a.width == len(a.points)
}

// setLift finds the points of all vertices, and their weights.
func (s *Sampling) setLift(v *geometry.View, scratch *memory.Arena, finest *sheet, count int, control *parallel.Control) (err error) {
	threads := s.resources.Threads
	l := &s.Lift
	l.Count = min(count, s.Count())
	size := int64(l.Count) * int64(v.VertexCount())
	if l.Points, err = memory.Make[int32](s.arena, size); err != nil {
		return err
	}
	if l.Weights, err = memory.Make[float64](s.weights, size); err != nil {
		return err
	}
	around, err := s.surroundings(scratch, finest)
	if err != nil {
		return err
	}
	searches := finest.searches(threads.Threads())
	centre := r3.At(s.Center[:], 0)
	wanted := min(count+1, s.Count())
	return threads.Range(control, v.VertexCount(), vertexRows, func(worker, begin, end int) error {
		q := &searches[worker]
		q.except = -1
		point := int32(0) // near the vertex before
		for p := begin; p < end; p++ {
			q.place = r3.At(v.ScaledPositions(), p).Minus(centre)
			q.normal = r3.At(v.FrameRows(), 3*p+2)
			agreements := []float64{ownSheet, sameSheet, anyNormal}
			if !v.HasNormal(p) {
				agreements = agreements[2:]
			}
			for _, q.agreement = range agreements {
				if point = around.search(q, point, wanted); len(q.hits) >= wanted {
					break
				}
			}
			l.set(p, q.hits[:wanted])
		}
		return nil
	})
}

// search is search.nearest, begun at a point that may be near. It returns the
// nearest point of all.
func (a *surroundings) search(s *search, point int32, count int) int32 {
	if count <= fewHits {
		// Towards the place, as long as that brings something.
		for range maxSteps {
			next, complete := a.near(s, point, count)
			if complete {
				return next
			}
			if next == point {
				break
			}
			point = next
		}
	}
	s.guess = 0
	if s.nearest(count); len(s.hits) > 0 {
		point = s.hits[0].point
	}
	return point
}

// maxSteps bounds the way from one vertex to the next.
const maxSteps = 2

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
