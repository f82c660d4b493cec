package core

import (
	"errors"

	"libeman/geometry"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
)

// cachedRows is about how many vertices' features stay in a second-level cache.
const cachedRows = 1 << 12

// scattered says whether another order of the vertices pays. The features of a
// ring are gathered from wherever its vertices lie in memory; where their
// numbers are far apart, most come from beyond the caches. It counts the
// gathers that a cache of cachedRows rows, each in the place that its number
// gives, would miss: one for each vertex cannot be avoided.
func (g *Graph[T]) scattered() bool {
	var cache [cachedRows]int32 // one more than the number of the row
	missed := 0
	for _, q := range g.Neighbors {
		if row := &cache[q%cachedRows]; *row != q+1 {
			*row = q + 1
			missed++
		}
	}
	return missed-g.Vertices() > g.Edges()/2
}

// setLocal makes local for a scattered graph: a copy whose vertices are in the
// order of a breadth-first search. The edges of a ring keep their order, so a
// vertex comes to the same bits in either graph. Where the memory for it is
// refused, the layers do without.
func (g *Graph[T]) setLocal(r geometry.Resources, control *parallel.Control) error {
	if !g.scattered() {
		return nil
	}
	local, err := g.reordered(r, control.Stage(1, 1))
	if err == nil {
		g.local = local
	} else if errors.Is(err, memory.ErrOutOfMemory) {
		err = nil
	}
	return err
}

// reordered is the graph in the order of a breadth-first search.
func (g *Graph[T]) reordered(r geometry.Resources, control *parallel.Control) (*Graph[T], error) {
	local := &Graph[T]{mesh: g, sources: g.sources, arena: r.NewArena("edge geometry")}
	search := r.NewArena("order of the vertices")
	defer search.Free()
	position, err := memory.Make[int32](search, int64(g.Vertices()))
	if err == nil {
		err = local.makeLike(g)
	}
	if err == nil {
		g.search(local.order, position)
		err = local.take(g, position, r.Threads, control)
	}
	if err != nil {
		local.Free()
		return nil, err
	}
	local.setLargestBlock()
	return local, nil
}

// makeLike makes the arrays of a local graph.
func (g *Graph[T]) makeLike(mesh *Graph[T]) (err error) {
	vertices, edges := int64(mesh.Vertices()), int64(mesh.Edges())
	if g.order, err = memory.Make[int32](g.arena, vertices); err != nil {
		return err
	}
	if g.Offsets, err = memory.Make[int64](g.arena, vertices+1); err != nil {
		return err
	}
	if g.Neighbors, err = memory.Make[int32](g.arena, edges); err != nil {
		return err
	}
	for _, array := range g.geometry() {
		if *array, err = memory.Make[T](g.arena, edges); err != nil {
			return err
		}
	}
	return nil
}

// search lists the vertices in the order in which a breadth-first search finds
// them, component by component from the lowest number on, and for each vertex
// its place in that order. position is zero.
func (g *Graph[T]) search(order, position []int32) {
	found := 0
	find := func(p int) {
		if position[p] == 0 {
			order[found] = int32(p)
			found++
			position[p] = int32(found) // one more than its place until the end
		}
	}
	for start, next := 0, 0; start < len(order); start++ {
		find(start)
		for ; next < found; next++ {
			p := order[next]
			for _, q := range g.Neighbors[g.Offsets[p]:g.Offsets[p+1]] {
				find(int(q))
			}
		}
	}
	for p := range position {
		position[p]--
	}
}

// take copies the rings of a mesh in the order of g.
func (g *Graph[T]) take(mesh *Graph[T], position []int32, pool *parallel.Pool, control *parallel.Control) error {
	for i, p := range g.order {
		g.Offsets[i+1] = g.Offsets[i] + mesh.Offsets[p+1] - mesh.Offsets[p]
	}
	from, to := mesh.geometry(), g.geometry()
	return pool.Range(control, len(g.order), poolRows, func(_, begin, end int) error {
		for i := begin; i < end; i++ {
			first, at := mesh.Offsets[g.order[i]], g.Offsets[i]
			ring := mesh.Neighbors[first:mesh.Offsets[g.order[i]+1]]
			for j, q := range ring {
				g.Neighbors[at+int64(j)] = position[q]
			}
			for k := range to {
				copy((*to[k])[at:], (*from[k])[first:first+int64(len(ring))])
			}
		}
		return nil
	})
}

// forLayers is the graph that the layers run on.
func (g *Graph[T]) forLayers() *Graph[T] {
	if g.local != nil {
		return g.local
	}
	return g
}

// vertex is the number in the mesh of vertex p.
func (g *Graph[T]) vertex(p int) int {
	if g.order == nil {
		return p
	}
	return int(g.order[p])
}

// firstEdge is the number in the mesh of the first edge of the ring of p.
func (g *Graph[T]) firstEdge(p int) int64 {
	if g.mesh == nil {
		return g.Offsets[p]
	}
	return g.mesh.Offsets[g.order[p]]
}
