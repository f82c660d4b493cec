package core

import (
	"cmp"
	"slices"
)

// nearest finds the nearest vertices: a k-d tree, in which the middle of a
// range of order divides it by the coordinate that its depth gives.
type nearest struct {
	positions []float64
	order     []int32
	bounds    []bound // of the range whose middle is there in order
}

// bound says what a range of vertices is worth: none is nearer than the box,
// and none has a lower index. Where vertices coincide, only the index keeps a
// search from looking at all of them.
type bound struct {
	low, high [3]float64
	lowest    int32
}

func newNearest(positions []float64) *nearest {
	n := &nearest{positions: positions, order: make([]int32, len(positions)/3)}
	for i := range n.order {
		n.order[i] = int32(i)
	}
	n.bounds = make([]bound, len(n.order))
	n.divide(0, len(n.order), 0)
	return n
}

func middle(begin, end int) int { return begin + (end-begin)/2 }

// divide builds the tree of a range.
func (n *nearest) divide(begin, end, axis int) {
	if begin == end {
		return
	}
	slices.SortFunc(n.order[begin:end], func(p, q int32) int {
		return cmp.Or(cmp.Compare(n.positions[3*int(p)+axis], n.positions[3*int(q)+axis]), cmp.Compare(p, q))
	})
	at := middle(begin, end)
	p := n.order[at]
	b := bound{lowest: p}
	copy(b.low[:], n.positions[3*int(p):])
	b.high = b.low
	for _, part := range [][2]int{{begin, at}, {at + 1, end}} {
		if part[0] < part[1] {
			n.divide(part[0], part[1], (axis+1)%3)
			b.include(&n.bounds[middle(part[0], part[1])])
		}
	}
	n.bounds[at] = b
}

func (b *bound) include(other *bound) {
	for k := range b.low {
		b.low[k] = min(b.low[k], other.low[k])
		b.high[k] = max(b.high[k], other.high[k])
	}
	b.lowest = min(b.lowest, other.lowest)
}

// of lists the count vertices nearest to p, itself among them, by distance and
// index.
func (n *nearest) of(p int32, count int) []int32 {
	q := &query{nearest: n, p: p, count: count}
	q.visit(0, len(n.order))
	return q.found
}

type query struct {
	*nearest
	p     int32
	count int
	found []int32
}

func (q *query) compare(a, b int32) int {
	return cmp.Or(cmp.Compare(squaredDistance(q.positions, q.p, a), squaredDistance(q.positions, q.p, b)), cmp.Compare(a, b))
}

// visit looks through the parts of a range that may hold something before the
// last of what was found, the nearer half first.
func (q *query) visit(begin, end int) {
	if begin == end || !q.promises(begin, end) {
		return
	}
	at := middle(begin, end)
	if place, _ := slices.BinarySearchFunc(q.found, q.order[at], q.compare); place < q.count {
		q.found = slices.Insert(q.found, place, q.order[at])[:min(len(q.found)+1, q.count)]
	}
	near, far := [2]int{begin, at}, [2]int{at + 1, end}
	if near[0] < near[1] && far[0] < far[1] && q.distance(far[0], far[1]) < q.distance(near[0], near[1]) {
		near, far = far, near
	}
	q.visit(near[0], near[1])
	q.visit(far[0], far[1])
}

// promises says whether a range may hold a vertex that belongs to the found.
func (q *query) promises(begin, end int) bool {
	if len(q.found) < q.count {
		return true
	}
	last := q.found[len(q.found)-1]
	order := cmp.Compare(q.distance(begin, end), squaredDistance(q.positions, q.p, last))
	return order < 0 || order == 0 && q.bounds[middle(begin, end)].lowest < last
}

// distance is the squared distance of the box around a range, rounded as that
// of a vertex is.
func (q *query) distance(begin, end int) (sum float64) {
	b := &q.bounds[middle(begin, end)]
	for k := range b.low {
		x := q.positions[3*int(q.p)+k]
		d := min(max(x, b.low[k]), b.high[k]) - x
		sum += d * d
	}
	return sum
}
