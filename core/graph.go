package core

import (
	"math"

	"libeman/geometry"
	"libeman/geometry/memory"
	"libeman/simd"
)

// EdgeGeometry is what the layers need of each directed edge p ← q: the
// direction θ_pq of q in p's gauge and the transport angle g_{q→p} as unit
// vectors, and the length |q-p| in the mesh's units. An edge whose direction
// has no projection to the tangent plane has cos θ = sin θ = 0; one without a
// transport has cos g = sin g = 0, and lets only scalars pass.
type EdgeGeometry struct {
	CosTheta, SinTheta, CosTransport, SinTransport, Length []float64
}

// graphArrays is how many numbers a Graph holds for each edge.
const graphArrays = 5

// Graph is a mesh as the layers see it: rings of neighbours, no faces and no
// coordinates. Between two levels of the samples of a surface, the neighbours
// are points of another set, of which this one is a part or which is a part of
// it: a point of both has one number. It is immutable and may be used by many
// calls at once.
type Graph[T simd.Float] struct {
	// Edges p ← q with the same p are consecutive: the ring of p is
	// [Offsets[p], Offsets[p+1]), and Neighbors holds q.
	Offsets   []int64
	Neighbors []int32
	// Reverse holds for each edge p ← q the edge q ← p, or is nil.
	Reverse []int32

	CosTheta, SinTheta, CosTransport, SinTransport []T
	// Radius is |q-p| divided by the greatest over all edges.
	Radius []T

	arena        *memory.Arena
	sources      int     // q is one of so many
	largestBlock int64   // the most edges that one block of vertices has
	leading      inverse // the edges that lead from each q, without Reverse

	// local is the same graph in an order that has neighbours near to one
	// another, where this one has not; nil otherwise. A local graph knows its
	// mesh, and the number in it of each vertex.
	local *Graph[T]
	mesh  *Graph[T]
	order []int32
}

// NewGraph checks the arrays and copies the geometry, counted under budget;
// offsets [V+1], neighbors and reverse [E] are kept and must not change.
// reverse may be nil.
func NewGraph[T simd.Float](budget *memory.Budget, offsets []int64, neighbors, reverse []int32, edges EdgeGeometry) (*Graph[T], error) {
	g := &Graph[T]{Offsets: offsets, Neighbors: neighbors, Reverse: reverse, sources: len(offsets) - 1}
	if err := g.set(budget, edges); err != nil {
		return nil, err
	}
	if err := g.setLocal(geometry.Resources{Memory: budget}, nil); err != nil {
		g.Free()
		return nil, err
	}
	return g, nil
}

// NewSurfaceGraph is NewGraph for samples of a surface, of one level (sources is
// V) or from one level to another: the neighbours are of so many sources. The
// edge of a point to itself has the length 0, no direction (cos θ = sin θ = 0)
// and the transport 1.
func NewSurfaceGraph[T simd.Float](budget *memory.Budget, sources int, offsets []int64, neighbors []int32, edges EdgeGeometry) (*Graph[T], error) {
	g := &Graph[T]{Offsets: offsets, Neighbors: neighbors, sources: sources}
	if err := g.set(budget, edges); err != nil {
		return nil, err
	}
	return g, nil
}

// set checks the topology and the geometry, and copies the latter.
func (g *Graph[T]) set(budget *memory.Budget, edges EdgeGeometry) error {
	g.arena = budget.NewArena("edge geometry")
	if err := g.checkTopology(); err != nil {
		return err
	}
	if err := edges.check(g.Edges()); err != nil {
		return err
	}
	if err := g.setGeometry(edges); err != nil {
		g.Free()
		return err
	}
	g.setLargestBlock()
	return nil
}

// geometry is the arrays over the edges, graphArrays of them.
func (g *Graph[T]) geometry() [graphArrays]*[]T {
	return [...]*[]T{&g.CosTheta, &g.SinTheta, &g.CosTransport, &g.SinTransport, &g.Radius}
}

func (g *Graph[T]) setLargestBlock() {
	for begin := 0; begin < g.Vertices(); begin += blockVertices {
		end := min(begin+blockVertices, g.Vertices())
		g.largestBlock = max(g.largestBlock, g.Offsets[end]-g.Offsets[begin])
	}
}

// Vertices is the number of vertices.
func (g *Graph[T]) Vertices() int { return len(g.Offsets) - 1 }

// Sources is the number of vertices that may be neighbours: Vertices, but for a
// graph between two levels.
func (g *Graph[T]) Sources() int { return g.sources }

// Edges is the number of directed edges.
func (g *Graph[T]) Edges() int { return len(g.Neighbors) }

// Free gives the graph's memory back; it must not be used any more.
func (g *Graph[T]) Free() {
	g.arena.Free()
	if g.local != nil {
		g.local.Free()
	}
}

// incoming lists for each vertex the edges that lead from it: of q those with
// the neighbour q, at [offsets[q], offsets[q+1]) of edges. It is the reversed
// edges, or is counted once where the graph does not know them.
func (g *Graph[T]) incoming() (edges []int32, offsets []int64, err error) {
	if g.Reverse != nil {
		return g.Reverse, g.Offsets, nil
	}
	return g.leading.of(g.Neighbors, g.sources, g.arena)
}

func (g *Graph[T]) checkTopology() error {
	if err := checkOffsets(g.Offsets, g.Edges()); err != nil {
		return err
	}
	if g.sources < 0 {
		return invalidArgument("sources", "%d", g.sources)
	}
	for e, q := range g.Neighbors {
		if q < 0 || int(q) >= g.sources {
			return invalidArgument("neighbors", "edge %d: vertex %d is out of range [0, %d)", e, q, g.sources)
		}
	}
	return g.checkReverse()
}

// checkOffsets refuses what does not divide a number of entries.
func checkOffsets(offsets []int64, entries int) error {
	last := len(offsets) - 1
	if last < 0 || offsets[0] != 0 || offsets[last] != int64(entries) {
		return invalidArgument("offsets", "they must begin with 0 and end with the number of entries, %d", entries)
	}
	for p := range last {
		if offsets[p+1] < offsets[p] {
			return invalidArgument("offsets", "vertex %d: %d is followed by %d", p, offsets[p], offsets[p+1])
		}
	}
	return nil
}

func (g *Graph[T]) checkReverse() error {
	if g.Reverse == nil {
		return nil
	}
	if len(g.Reverse) != g.Edges() {
		return invalidArgument("reverse", "%d entries for %d edges", len(g.Reverse), g.Edges())
	}
	for p := range g.Vertices() {
		for e := g.Offsets[p]; e < g.Offsets[p+1]; e++ {
			r := int64(g.Reverse[e])
			q := g.Neighbors[e]
			if r < g.Offsets[q] || r >= g.Offsets[q+1] || int(g.Neighbors[r]) != p {
				return invalidArgument("reverse", "edge %d from vertex %d to %d: edge %d is not its reverse", e, q, p, r)
			}
		}
	}
	return nil
}

func (x EdgeGeometry) check(edges int) error {
	for _, array := range []struct {
		name   string
		values []float64
	}{{"cos theta", x.CosTheta}, {"sin theta", x.SinTheta}, {"cos transport", x.CosTransport}, {"sin transport", x.SinTransport}, {"length", x.Length}} {
		if len(array.values) != edges {
			return invalidArgument(array.name, "%d entries for %d edges", len(array.values), edges)
		}
	}
	for e := range edges {
		if c, s := x.CosTheta[e], x.SinTheta[e]; !isUnit(c, s) && (c != 0 || s != 0) {
			return invalidArgument("theta", "edge %d: (%g, %g) is neither a unit vector nor zero", e, c, s)
		}
		if c, s := x.CosTransport[e], x.SinTransport[e]; !isUnit(c, s) && (c != 0 || s != 0) {
			return invalidArgument("transport", "edge %d: (%g, %g) is neither a unit vector nor zero", e, c, s)
		}
		if length := x.Length[e]; !(length >= 0 && length <= math.MaxFloat64) {
			return invalidArgument("length", "edge %d: %g", e, length)
		}
	}
	return nil
}

// isUnit is false for NaN.
func isUnit(c, s float64) bool { return math.Abs(c*c+s*s-1) < 1e-6 }

func (g *Graph[T]) setGeometry(x EdgeGeometry) error {
	greatest := 0.0
	for _, length := range x.Length {
		greatest = max(greatest, length)
	}
	if greatest == 0 {
		greatest = 1
	}
	for _, array := range []struct {
		to   *[]T
		from []float64
		unit float64
	}{
		{&g.CosTheta, x.CosTheta, 1}, {&g.SinTheta, x.SinTheta, 1},
		{&g.CosTransport, x.CosTransport, 1}, {&g.SinTransport, x.SinTransport, 1},
		{&g.Radius, x.Length, greatest},
	} {
		values, err := memory.Make[T](g.arena, int64(len(array.from)))
		if err != nil {
			return err
		}
		for e, value := range array.from {
			values[e] = T(value / array.unit)
		}
		*array.to = values
	}
	return nil
}

// rings is the view of the vertices [begin, end) for the edge kernels.
func (g *Graph[T]) rings(begin, end int, features simd.Rows[T], weights []T, sets int) simd.Rings[T] {
	return simd.Rings[T]{
		Offsets: g.Offsets[begin : end+1], Neighbors: g.Neighbors,
		CosTheta: g.CosTheta, SinTheta: g.SinTheta, CosTransport: g.CosTransport, SinTransport: g.SinTransport,
		Features: features, Weights: weights, Sets: sets,
	}
}
