package core

import "unsafe"

// Sizes of entries, in bytes.
const (
	offsetBytes, neighborBytes, labelBytes = 8, 4, 4
	featureBytes                           = 8
	placeBytes                             = 3 * 8 // of a vertex
	frameBytes                             = 9 * 8
)

// Estimate is about how many bytes a call on a mesh of this size takes, on the
// runner's threads: its own work, and what belongs to the mesh, which is the
// edges' geometry, the input features, and one label for each vertex. It
// assumes that no block of vertices has more than four times the average number
// of edges, and leaves out the copy of a scattered mesh, which is made only where
// there is room. A network on a surface has the samples, which must be found, in
// place of the mesh's edges; a third of these is taken for the number of faces.
func (r *Runner[T]) Estimate(m *Model[T], vertices, edges int64) int64 {
	in := m.extent(vertices, edges)
	blockEdges := in.graph(0, 0).blockEdges
	if s := m.spec.Surface; s != nil {
		blockEdges = s.blockEdges()
	}
	work := m.workspaceSizes(in.points, blockEdges, r.pool.Threads()).bytes(r.elementBytes())
	making, kept := r.inputBytes(m, vertices, edges)
	return max(making, kept+work+labelBytes*vertices)
}

func (r *Runner[T]) elementBytes() int64 {
	var element T
	return int64(unsafe.Sizeof(element))
}

// extent is that of the input of a mesh of so many vertices and edges.
func (m *Model[T]) extent(vertices, edges int64) extent {
	if s := m.spec.Surface; s != nil {
		return extent{int64(s.Points[0]), vertices, true, s.graph}
	}
	blocks := max(1, (vertices+blockVertices-1)/blockVertices)
	all := graphExtent{vertices, edges, min(edges, 4*(edges/blocks+1))}
	return extent{vertices, vertices, false, func(int, int) graphExtent { return all }}
}

// inputBytes is about what the input of a mesh takes: at most while it is made,
// and then.
func (r *Runner[T]) inputBytes(m *Model[T], vertices, edges int64) (making, kept int64) {
	of, element := m.spec.InputType(), r.elementBytes()
	features := featureBytes * int64(of.Channels*of.Components())
	s := m.spec.Surface
	if s == nil {
		kept = features*vertices + graphArrays*element*edges
		return kept, kept
	}
	options := s.options(0)
	making, sampling, weights := options.Bytes(vertices, edges/3)
	lift := vertices * (offsetBytes + element*int64(s.LiftNeighbors))
	kept = sampling + lift + graphArrays*element*options.Edges() + features*int64(s.Points[0])
	return max(making, kept+weights), kept
}

// Estimate is about how many bytes a step takes on a mesh of this size: the
// network, its gradient and moments, what the passes keep, and what they see of
// the mesh, which is made anew before a step where it changes.
func (t *Trainer[T]) Estimate(vertices, edges int64) int64 {
	r, m := t.runner, t.model
	in := m.extent(vertices, edges)
	making, kept := r.inputBytes(m, vertices, edges)
	shape := int64(0) // the mesh in another one
	if a := t.spec.Augment; a.deforms() {
		shape = (placeBytes + frameBytes) * vertices
	}
	passes := newGradientWorkspace[T](r.budget, r.pool.Threads()).bytes(t.gradient, in)
	return TrainerMemoryBytes(m.spec) + labelBytes*vertices + passes + shape + max(making, kept+backwardBytes(m.spec.Surface, vertices))
}

// backwardBytes is what the graphs and the lift of samples keep for the way
// back: the edges that lead from each point, and the vertices of each sample.
func backwardBytes(s *SurfaceSpec, vertices int64) int64 {
	if s == nil {
		return 0 // a mesh knows its reversed edges
	}
	const vertexBytes = 4
	options, points := s.options(0), int64(0)
	for _, n := range s.Points {
		points += 4 * int64(n) // within, down, up and of the lift, at most
	}
	return offsetBytes*points + neighborBytes*options.Edges() + vertices*int64(s.LiftNeighbors)*(neighborBytes+vertexBytes)
}
