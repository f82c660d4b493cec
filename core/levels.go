package core

import "libeman/simd"

// Level is one level of the samples of a surface, and the ways to the next
// coarser one, whose points are the first of its own.
type Level[T simd.Float] struct {
	Within *Graph[T] // among its points
	// Down leads to the points of the next level, from those of this one, and Up
	// back; nil for the last level.
	Down, Up *Graph[T]
}

// points is the number of points of the finest level, or of vertices.
func (in *Input[T]) points() int {
	g := in.Graph
	if len(in.Levels) > 0 {
		g = in.Levels[0].Within
	}
	if g == nil {
		return 0
	}
	return g.Vertices()
}

// Vertices is the number of vertices that a network labels: those of the lift;
// without one, the points of the finest level, or the vertices of the graph.
func (in *Input[T]) Vertices() int {
	if in.Lift != nil {
		return in.Lift.Vertices()
	}
	return in.points()
}

// graph is that on which a layer runs from points of one level to those of
// another; 0 is the finest.
func (in *Input[T]) graph(from, to int) *Graph[T] {
	switch {
	case in.Levels == nil:
		return in.Graph
	case from == to:
		return in.Levels[to].Within
	case from < to:
		return in.Levels[from].Down
	default:
		return in.Levels[to].Up
	}
}

// rows is the features of the vertices [begin, end), n numbers each, where x are
// those of the points: some of them, or lifted into a memory.
func (in *Input[T]) rows(x simd.Rows[T], memory []T, n, begin, end int) simd.Rows[T] {
	if in.Lift == nil {
		return x.From(begin)
	}
	y := simd.Rows[T]{Data: memory, Stride: n}
	in.Lift.apply(y, x, n, begin, end)
	return y
}

// LayerGraph is the graph on which a layer of Layers runs: Features of the layer
// are those of its Vertices, Attention is that of its Edges. It refuses an input
// that is not one of the model's.
func (m *Model[T]) LayerGraph(in *Input[T], layer int) (*Graph[T], error) {
	if layer < 0 || layer >= len(m.layers) {
		return nil, invalidArgument("layer", "%d is out of range [0, %d)", layer, len(m.layers))
	}
	if err := m.checkInput(in); err != nil {
		return nil, err
	}
	return in.graph(m.layers[layer].from, m.layers[layer].to), nil
}

// checkGraphs refuses an input of vertices for a network on a surface, and the
// reverse, and levels that do not fit together.
func (m *Model[T]) checkGraphs(in *Input[T]) error {
	if m.spec.Surface == nil {
		if in.Graph == nil || in.Levels != nil || in.Lift != nil {
			return invalidArgument("mesh", "the network runs on the vertices of a mesh, not on samples of a surface")
		}
		return checkGraph("mesh", 0, in.Graph, in.Graph.Vertices(), in.Graph.Vertices())
	}
	if in.Graph != nil || len(in.Levels) != len(m.spec.Surface.Points) {
		return invalidArgument("levels", "%d of them, not %d levels of samples of a surface", len(in.Levels), len(m.spec.Surface.Points))
	}
	points := in.points()
	for i, l := range in.Levels {
		if err := checkGraph("within", i, l.Within, points, points); err != nil {
			return err
		}
		if i == len(in.Levels)-1 {
			break
		}
		if l.Down == nil || l.Down.Vertices() > points {
			return invalidArgument("levels", "level %d: there is none below, or it is no part of this one", i)
		}
		coarser := l.Down.Vertices()
		if err := checkGraph("down", i, l.Down, points, coarser); err != nil {
			return err
		}
		if err := checkGraph("up", i, l.Up, coarser, points); err != nil {
			return err
		}
		points = coarser
	}
	if in.Lift != nil && in.Lift.samples != in.points() {
		return invalidArgument("lift", "from %d samples, not from the %d of the finest level", in.Lift.samples, in.points())
	}
	return nil
}

// checkGraph refuses a graph between other numbers of points.
func checkGraph[T simd.Float](name string, level int, g *Graph[T], sources, vertices int) error {
	if g == nil {
		return invalidArgument(name, "level %d: the graph is missing", level)
	}
	if g.Sources() != sources || g.Vertices() != vertices {
		return invalidArgument(name, "level %d: from %d points to %d, not from %d to %d", level, g.Sources(), g.Vertices(), sources, vertices)
	}
	return nil
}
