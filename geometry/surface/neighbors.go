package surface

import (
	"cmp"
	"math"
	"slices"

	"libeman/geometry/internal/r3"
)

// hit is a point that a search found.
type hit struct {
	distance float64 // squared
	point    int32
}

// sheet is a set of points with normals to search in.
type sheet struct {
	*boxes
	normals []float64 // in Morton order
}

// search finds the nearest points of a sheet whose normals agree with one. It
// is used by one thread.
type search struct {
	*sheet
	place, normal r3.Vec
	agreement     float64 // the least product of the normals; below −1, any
	except        int32   // a point not to be found; −1 for none
	count         int
	hits          []hit
	full          int     // the number of hits at which those too far are dropped
	bound         float64 // beyond which no further one is wanted
}

// anyNormal is an agreement that all normals reach.
const anyNormal = -2

// nearest finds the count nearest points to the place, and all that are as far
// as the last, but no more than twice the count. They come in no order, and are
// valid until the next call.
func (s *search) nearest(count int) []hit {
	s.count, s.bound = count, math.Inf(1)
	s.hits, s.full = s.hits[:0], count+max(count/2, 8)
	s.visit(1)
	s.hits = s.hits[:s.prefix(count)]
	return s.hits
}

func (s *search) visit(node int) {
	if node >= s.leaves {
		s.visitLeaf(node)
		return
	}
	near, far := 2*node, 2*node+1
	nearest, farthest := s.distance(near, s.place), s.distance(far, s.place)
	if farthest < nearest {
		near, far, nearest, farthest = far, near, farthest, nearest
	}
	if nearest <= s.bound && !math.IsInf(nearest, 1) {
		s.visit(near)
	}
	if farthest <= s.bound && !math.IsInf(farthest, 1) {
		s.visit(far)
	}
}

func (s *search) visitLeaf(node int) {
	for i, end := s.leaf(node); i < end; i++ {
		distance := r3.At(s.points, i).Minus(s.place).Squared()
		if distance > s.bound || s.numbers[i] == s.except || r3.At(s.normals, i).Dot(s.normal) <= s.agreement {
			continue
		}
		if s.hits = append(s.hits, hit{distance, s.numbers[i]}); len(s.hits) == s.full {
			s.hits = s.hits[:s.prefix(s.count)]
			s.full = len(s.hits) + max(s.count/2, 8)
		}
	}
}

// prefix moves the count nearest hits to the front, with all that are as far as
// the last of them, up to twice the count, and returns how many these are.
func (s *search) prefix(count int) int {
	if len(s.hits) < count {
		return len(s.hits)
	}
	selectNearest(s.hits, count)
	last := 0.0
	for _, h := range s.hits[:count] {
		last = max(last, h.distance)
	}
	bound := last * (1 + tie)
	s.bound = min(s.bound, bound)
	n := count
	for i := count; i < len(s.hits) && n < 2*count; i++ {
		if s.hits[i].distance <= bound {
			s.hits[i], s.hits[n] = s.hits[n], s.hits[i]
			n++
		}
	}
	return n
}

// selectNearest moves the count nearest hits to the front (Hoare's selection).
func selectNearest(hits []hit, count int) {
	for len(hits) > 12 && count > 0 && count < len(hits) {
		pivot := medianOfThree(hits[0].distance, hits[len(hits)/2].distance, hits[len(hits)-1].distance)
		i, j := 0, len(hits)-1
		for i <= j {
			for hits[i].distance < pivot {
				i++
			}
			for hits[j].distance > pivot {
				j--
			}
			if i <= j {
				hits[i], hits[j] = hits[j], hits[i]
				i++
				j--
			}
		}
		// hits[:j+1] ≤ pivot ≤ hits[i:], and what lies between equals it.
		switch {
		case count <= j+1:
			hits = hits[:j+1]
		case count >= i:
			hits, count = hits[i:], count-i
		default:
			return
		}
	}
	if count > 0 && count < len(hits) {
		slices.SortFunc(hits, byDistance)
	}
}

func byDistance(a, b hit) int { return cmp.Compare(a.distance, b.distance) }

func medianOfThree(a, b, c float64) float64 { return max(min(a, b), min(max(a, b), c)) }
