package core

import (
	"cmp"
	"math"
	"slices"
)

// nearest finds the nearest vertices: a k-d tree, in which the middle of a
// range of order divides it by the coordinate that its depth gives.
type nearest struct {
	positions []float64
	order     []int32
}

func newNearest(positions []float64) *nearest {
	n := &nearest{positions: positions, order: make([]int32, len(positions)/3)}
	for i := range n.order {
		n.order[i] = int32(i)
	}
	n.divide(n.order, 0)
	return n
}

func (n *nearest) divide(part []int32, axis int32) {
	if len(part) < 2 {
		return
	}
	slices.SortFunc(part, func(p, q int32) int {
		return cmp.Or(cmp.Compare(n.positions[3*p+axis], n.positions[3*q+axis]), cmp.Compare(p, q))
	})
	middle := len(part) / 2
	n.divide(part[:middle], (axis+1)%3)
	n.divide(part[middle+1:], (axis+1)%3)
}

// of lists the count vertices nearest to p, itself among them, by distance and
// index.
func (n *nearest) of(p int32, count int) []int32 {
	q := &query{nearest: n, p: p, count: count}
	q.visit(n.order, 0)
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

// visit looks through the part of the tree that may hold something nearer than
// the farthest found.
func (q *query) visit(part []int32, axis int32) {
	if len(part) == 0 {
		return
	}
	middle := len(part) / 2
	at := part[middle]
	if place, _ := slices.BinarySearchFunc(q.found, at, q.compare); place < q.count {
		q.found = slices.Insert(q.found, place, at)[:min(len(q.found)+1, q.count)]
	}
	offset := q.positions[3*q.p+axis] - q.positions[3*at+axis]
	near, far := part[:middle], part[middle+1:]
	if offset > 0 {
		near, far = far, near
	}
	q.visit(near, (axis+1)%3)
	if offset*offset <= q.reach() {
		q.visit(far, (axis+1)%3)
	}
}

// reach is the squared distance within which a vertex would be taken.
func (q *query) reach() float64 {
	if len(q.found) < q.count {
		return math.Inf(1)
	}
	return squaredDistance(q.positions, q.p, q.found[len(q.found)-1])
}
