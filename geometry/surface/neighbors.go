package surface

import (
	"math"

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

// fewHits is the largest count for which hits are kept in order, the cheaper way.
const fewHits = 32

// nearest finds the count nearest points to the place, and all that are as far
// as the last, but no more than twice the count. They come in no order unless
// they are few, and are valid until the next call.
func (s *search) nearest(count int) []hit {
	s.begin(count)
	s.visit(1)
	if count > fewHits {
		s.hits = s.hits[:s.prefix(count)]
	}
	return s.hits
}

func (s *search) begin(count int) {
	s.count, s.bound = count, math.Inf(1)
	s.hits, s.full = s.hits[:0], count+count/2
}

// take adds a hit within the bound.
func (s *search) take(h hit) {
	if s.count > fewHits {
		if s.hits = append(s.hits, h); len(s.hits) == s.full {
			s.hits = s.hits[:s.prefix(s.count)]
			s.full = len(s.hits) + s.count/2
		}
		return
	}
	i := len(s.hits)
	s.hits = append(s.hits, h)
	for ; i > 0 && h.before(s.hits[i-1]); i-- {
		s.hits[i] = s.hits[i-1]
	}
	s.hits[i] = h
	if len(s.hits) < s.count {
		return
	}
	s.bound = s.hits[s.count-1].distance * (1 + tie)
	for n := len(s.hits); n > s.count && (n > 2*s.count || s.hits[n-1].distance > s.bound); n-- {
		s.hits = s.hits[:n-1]
	}
}

// before orders hits by distance, and those at one by number.
func (h hit) before(other hit) bool {
	return h.distance < other.distance || h.distance == other.distance && h.point < other.point
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
		s.take(hit{distance, s.numbers[i]})
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
	for i := 1; i < len(hits); i++ {
		h, j := hits[i], i
		for ; j > 0 && h.distance < hits[j-1].distance; j-- {
			hits[j] = hits[j-1]
		}
		hits[j] = h
	}
}

func medianOfThree(a, b, c float64) float64 { return max(min(a, b), min(max(a, b), c)) }
