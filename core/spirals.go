package core

import (
	"cmp"
	"slices"
	"sync"

	"libeman/geometry/memory"
	"libeman/geometry/parallel"
)

// Spirals are for each vertex the vertices of its spiral, itself first: the
// neighbourhood of SpiralNet++ (app. E).
type Spirals struct {
	length  int
	indices []int32 // [vertices, length]
	holding inverse // the places that hold each vertex
}

// Indices are the spirals as [vertices, length]; read them only.
func (s *Spirals) Indices() []int32 { return s.indices }

func (s *Spirals) of(p int) []int32 { return s.indices[p*s.length:][:s.length] }

func (s *Spirals) vertices() int { return len(s.indices) / s.length }

// places lists for each vertex where it is in the spirals: in Go's memory, as
// the spirals themselves.
func (s *Spirals) places() (places []int32, offsets []int64, err error) {
	return s.holding.of(s.indices, s.vertices(), memory.NewBudget(0, nil).NewArena("spirals"))
}

// spiralBlock is the number of vertices between two looks at the control.
const spiralBlock = 64

// NewSpirals builds the spirals of a mesh of faces [faces, 3] and positions
// [vertices, 3].
//
// A spiral runs through the rings around its vertex: the neighbours, counter-
// clockwise as the faces are oriented, from a first one on (the one of lowest
// index, or the nearest); then the new neighbours of these, of each in turn,
// counter-clockwise from its predecessor in the ring on; and so forth. Where a
// component of the mesh ends before the spiral is full, the nearest vertices
// that it does not hold follow, and in a mesh too small for that, the vertex
// itself.
func NewSpirals(pool *parallel.Pool, control *parallel.Control, faces []int32, positions []float64, length int, start SpiralStart) (*Spirals, error) {
	vertices := len(positions) / 3
	if length < 1 || length > maximalSpiral {
		return nil, invalidArgument("length", "%d is out of range [1, %d]", length, maximalSpiral)
	}
	if err := oneOf("start", start, SpiralStartIndex, SpiralStartDistance); err != nil {
		return nil, invalidArgument("start", "%q is neither %s nor %s", start, SpiralStartIndex, SpiralStartDistance)
	}
	for i, v := range faces {
		if v < 0 || int(v) >= vertices {
			return nil, invalidArgument("faces", "face %d: vertex %d is out of range [0, %d)", i/3, v, vertices)
		}
	}
	for i, x := range positions {
		if !isFinite(x) {
			return nil, invalidArgument("positions", "vertex %d: %g", i/3, x)
		}
	}
	rings, err := orderedRings(pool, control.Stage(0, 0.5), faces, vertices)
	if err != nil {
		return nil, err
	}
	b := &spiralBuilder{
		Spirals: Spirals{length: length, indices: make([]int32, vertices*length)},
		rings:   rings, positions: positions, start: start,
	}
	b.search = sync.OnceValue(func() *nearest { return newNearest(positions) })
	err = pool.Range(control.Stage(0.5, 1), vertices, spiralBlock, func(_, begin, end int) error {
		for p := begin; p < end; p++ {
			b.build(int32(p))
		}
		return nil
	})
	return &b.Spirals, err
}

type spiralBuilder struct {
	Spirals
	rings     rings
	positions []float64
	start     SpiralStart
	search    func() *nearest // most meshes never need it
}

// build fills the spiral of p.
func (b *spiralBuilder) build(p int32) {
	spiral := append(b.of(int(p))[:0], p)
	ring := rotated(b.rings.of(p), b.first(p))
	for len(ring) > 0 && len(spiral) < b.length {
		spiral = append(spiral, ring[:min(len(ring), b.length-len(spiral))]...)
		if len(spiral) < b.length {
			ring = b.next(ring, spiral)
		}
	}
	if len(spiral) < b.length {
		for _, q := range b.search().of(p, b.length) {
			if len(spiral) < b.length && !slices.Contains(spiral, q) {
				spiral = append(spiral, q)
			}
		}
	}
	for len(spiral) < b.length {
		spiral = append(spiral, p)
	}
}

// first is the neighbour of p at which its spiral begins.
func (b *spiralBuilder) first(p int32) int32 {
	ring := b.rings.of(p)
	if len(ring) == 0 {
		return p
	}
	return slices.MinFunc(ring, func(q, r int32) int {
		if b.start == SpiralStartDistance {
			if order := cmp.Compare(squaredDistance(b.positions, p, q), squaredDistance(b.positions, p, r)); order != 0 {
				return order
			}
		}
		return cmp.Compare(q, r)
	})
}

// next is the ring around a ring that ends a spiral which is not yet full.
func (b *spiralBuilder) next(ring, spiral []int32) (outer []int32) {
	for i, u := range ring {
		predecessor := ring[(i+len(ring)-1)%len(ring)]
		for _, q := range rotated(b.rings.of(u), predecessor) {
			if !slices.Contains(spiral, q) && !slices.Contains(outer, q) {
				if outer = append(outer, q); len(spiral)+len(outer) == b.length {
					return outer
				}
			}
		}
	}
	return outer
}

// rotated is a ring from q on, or as it is where it does not hold q.
func rotated(ring []int32, q int32) []int32 {
	at := slices.Index(ring, q)
	if at <= 0 {
		return ring
	}
	return append(append(make([]int32, 0, len(ring)), ring[at:]...), ring[:at]...)
}

func squaredDistance(positions []float64, p, q int32) (sum float64) {
	for k := range int32(3) {
		d := positions[3*q+k] - positions[3*p+k]
		sum += d * d
	}
	return sum
}

// rings are the neighbours of each vertex in the order of the faces around it.
type rings [][]int32

func (r rings) of(p int32) []int32 { return r[p] }

// corner says that around the vertex v, from comes just before to: a face v,
// from, to.
type corner struct{ v, from, to int32 }

// orderedRings walks around each vertex. A vertex on a boundary has an open
// fan, which begins where no face comes before; one where several fans meet
// has them one after the other.
func orderedRings(pool *parallel.Pool, control *parallel.Control, faces []int32, vertices int) (rings, error) {
	corners, offsets := cornersByVertex(faces, vertices)
	neighbors := make([]int32, 2*len(corners)) // a corner brings at most two
	r := make(rings, vertices)
	return r, pool.Range(control, vertices, spiralBlock, func(_, begin, end int) error {
		for v := begin; v < end; v++ {
			around := corners[offsets[v]:offsets[v+1]]
			slices.SortFunc(around, func(a, b corner) int {
				return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
			})
			r[v] = appendRing(neighbors[2*offsets[v]:][:0:2*len(around)], around)
		}
		return nil
	})
}

// cornersByVertex lists the corners of the faces that have three different
// vertices: those of v are [offsets[v], offsets[v+1]).
func cornersByVertex(faces []int32, vertices int) (corners []corner, offsets []int) {
	offsets = make([]int, vertices+1)
	each := func(see func(corner)) {
		for f := 0; f+2 < len(faces); f += 3 {
			p, q, r := faces[f], faces[f+1], faces[f+2]
			if p != q && q != r && r != p {
				see(corner{p, q, r})
				see(corner{q, r, p})
				see(corner{r, p, q})
			}
		}
	}
	each(func(c corner) { offsets[c.v+1]++ })
	for v := range vertices {
		offsets[v+1] += offsets[v]
	}
	corners = make([]corner, offsets[vertices])
	next := slices.Clone(offsets)
	each(func(c corner) {
		corners[next[c.v]] = c
		next[c.v]++
	})
	return corners, offsets
}

// appendRing adds the ring of one vertex's corners, sorted by from.
func appendRing(ring []int32, corners []corner) []int32 {
	begun := map[int32]bool{} // a corner leads to it
	done := map[int32]bool{}
	for _, c := range corners {
		begun[c.to] = true
	}
	walk := func(q int32) {
		for !done[q] {
			done[q] = true
			ring = append(ring, q)
			at, found := slices.BinarySearchFunc(corners, q, func(c corner, q int32) int { return cmp.Compare(c.from, q) })
			if !found {
				return
			}
			q = corners[at].to
		}
	}
	for _, c := range corners { // open fans
		if !begun[c.from] {
			walk(c.from)
		}
	}
	for _, c := range corners { // closed ones, and what a wrong orientation left
		walk(c.from)
		walk(c.to)
	}
	return ring
}
