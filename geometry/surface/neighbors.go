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

// before orders hits by distance, and those at one by number.
func (h hit) before(other hit) bool {
	return h.distance < other.distance || h.distance == other.distance && h.point < other.point
}

// sheet is a set of points with normals to search in.
type sheet struct {
	*boxes
	normals []float64 // in Morton order
	cones   []float64 // their bounds below each node
}

// agrees says whether a normal below a node may have a product with n above the
// agreement.
func (l *sheet) agrees(node int, n r3.Vec, agreement float64) bool {
	low, high := r3.At(l.cones, 2*node), r3.At(l.cones, 2*node+1)
	return max(low.X*n.X, high.X*n.X)+max(low.Y*n.Y, high.Y*n.Y)+max(low.Z*n.Z, high.Z*n.Z) > agreement
}

// search finds the nearest points of a sheet whose normals agree with one. It
// is used by one thread.
type search struct {
	*sheet
	place, normal r3.Vec
	agreement     float64 // what the product of the normals exceeds; below −1, any
	except        int32   // a point not to be found; −1 for none
	count         int
	hits          []hit
	full          int     // the number of hits at which those too far are dropped
	bound         float64 // beyond which no further one is wanted
	guess         float64 // the bound that the search before ended with; 0 for none

	spare []hit
	bins  []int32
}

const (
	// anyNormal is an agreement that all normals reach.
	anyNormal = -2
	// fewHits is the largest count for which hits are kept in order all the time,
	// the cheaper way.
	fewHits = 32
	// likely is how much larger the bound of a search may be than that of the one
	// before, on an even sampling.
	likely = 1.4
)

// nearest finds the count nearest points to the place, and all that are as far
// as the last, but no more than twice the count. They come in order of distance,
// and are valid until the next call.
func (s *search) nearest(count int) []hit {
	s.begin(count)
	if guess := likely * s.guess; guess > 0 {
		s.bound = guess
	}
	bounded := !math.IsInf(s.bound, 1)
	s.visit(1)
	if bounded && len(s.hits) < count {
		s.begin(count)
		s.visit(1)
	}
	if count > fewHits {
		s.cut()
	}
	s.guess = s.bound
	return s.hits
}

func (s *search) begin(count int) {
	s.count, s.bound = count, math.Inf(1)
	s.hits, s.full = s.hits[:0], 2*count
}

func (s *search) visit(node int) {
	if node >= s.leaves {
		if s.count > fewHits {
			s.collectLeaf(node)
		} else {
			s.visitLeaf(node)
		}
		return
	}
	// Where hardly a normal agrees there is no bound, and all points would be
	// looked at.
	if math.IsInf(s.bound, 1) && !s.agrees(node, s.normal, s.agreement) {
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

// take puts one of few hits, within the bound, in its place.
func (s *search) take(h hit) {
	s.hits = append(s.hits, h)
	sink(s.hits, len(s.hits)-1)
	if len(s.hits) >= s.count {
		s.drop()
	}
}

// sink moves hit i down to its place among those before it, which are in order.
func sink(hits []hit, i int) {
	h := hits[i]
	for ; i > 0 && h.before(hits[i-1]); i-- {
		hits[i] = hits[i-1]
	}
	hits[i] = h
}

// drop sets the bound from hits in order, at least as many as are wanted, and
// drops what is beyond it.
func (s *search) drop() {
	n := s.prefix(s.count)
	s.bound = min(s.bound, s.hits[n-1].distance*(1+tie))
	s.hits = s.hits[:n]
}

// prefix is how many of the hits, in order, are among the count nearest or as
// far as the last of these, up to twice the count.
func (s *search) prefix(count int) int {
	n := min(count, len(s.hits))
	for n < min(2*count, len(s.hits)) && s.hits[n].distance <= s.hits[count-1].distance*(1+tie) {
		n++
	}
	return n
}

// collectLeaf appends the hits of a leaf, in no order. Which points are kept is
// past predicting: the loop has no branch on it.
func (s *search) collectLeaf(node int) {
	begin, end := s.leaf(node)
	if cap(s.hits) < len(s.hits)+end-begin {
		s.hits = append(make([]hit, 0, 2*s.full+s.leafSize), s.hits...)
	}
	n := len(s.hits)
	hits := s.hits[:n+end-begin]
	for i := begin; i < end; i++ {
		distance := r3.At(s.points, i).Minus(s.place).Squared()
		hits[n] = hit{distance, s.numbers[i]}
		keep := 1
		if distance > s.bound {
			keep = 0
		}
		if r3.At(s.normals, i).Dot(s.normal) <= s.agreement {
			keep = 0
		}
		if s.numbers[i] == s.except {
			keep = 0
		}
		n += keep
	}
	if s.hits = hits[:n]; n >= s.full {
		s.cut()
		s.full = len(s.hits) + s.count
	}
}

// cut puts many hits in order and drops those beyond the count.
func (s *search) cut() {
	s.sort()
	if len(s.hits) >= s.count {
		s.drop()
	}
}

// sort puts the hits in order: first into as many bins of equal width as there
// are hits. On a surface squared distances are spread evenly, and little is left
// to do within the bins.
func (s *search) sort() {
	n := len(s.hits)
	if cap(s.spare) < n {
		s.spare, s.bins = make([]hit, 2*n), make([]int32, 2*n)
	}
	farthest := 0.0
	for _, h := range s.hits {
		farthest = max(farthest, h.distance)
	}
	if farthest == 0 {
		return
	}
	scale := (float64(n) - 0.5) / farthest
	bins, sorted := s.bins[:n], s.spare[:n]
	clear(bins)
	for _, h := range s.hits {
		bins[int(h.distance*scale)]++
	}
	sum := int32(0)
	for bin, n := range bins {
		bins[bin], sum = sum, sum+n
	}
	for _, h := range s.hits {
		place := &bins[int(h.distance*scale)]
		sorted[*place] = h
		*place++
	}
	for i := range sorted {
		sink(sorted, i)
	}
	copy(s.hits, sorted)
}
