package core

import (
	"fmt"
	"math"

	"libeman/geometry"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
	"libeman/geometry/surface"
	"libeman/simd"
)

// NewMeshGraph returns the graph of a mesh. It borrows the view's neighbours,
// and so may be used as long as the view; the geometry is its own, to be given
// back with Free.
func NewMeshGraph[T simd.Float](v *geometry.View, control *parallel.Control) (*Graph[T], error) {
	g := &Graph[T]{
		Offsets: v.Offsets(), Neighbors: v.Neighbors(), Reverse: v.ReverseEdges(),
		sources: v.VertexCount(), arena: v.Resources().NewArena("edge geometry"),
	}
	for _, array := range g.geometry() {
		values, err := memory.Make[T](g.arena, int64(v.EdgeCount()))
		if err != nil {
			g.Free()
			return nil, err
		}
		*array = values
	}
	err := geometry.Edges(v, geometry.EdgeGeometry[T]{
		CosAngle: g.CosTheta, SinAngle: g.SinTheta,
		CosTransport: g.CosTransport, SinTransport: g.SinTransport, Length: g.Radius,
	}, control)
	if err != nil {
		g.Free()
		return nil, err
	}
	g.scaleRadii()
	g.setLargestBlock()
	if err := g.setLocal(v.Resources(), control); err != nil {
		g.Free()
		return nil, err
	}
	return g, nil
}

// scaleRadii divides lengths by the greatest.
func (g *Graph[T]) scaleRadii() {
	greatest := T(0)
	for _, length := range g.Radius {
		greatest = max(greatest, length)
	}
	if greatest == 0 {
		return
	}
	for e, length := range g.Radius {
		g.Radius[e] = length / greatest
	}
}

// MeshInput is the input of a mesh to models whose input features are alike.
type MeshInput[T simd.Float] struct {
	Input[T]
	arena    *memory.Arena
	sampling *surface.Sampling // of a network on samples; or nil
}

// Free gives the memory back, but not that of the mesh's own graph.
func (in *MeshInput[T]) Free() {
	for _, l := range in.Levels {
		for _, g := range []*Graph[T]{l.Within, l.Down, l.Up} {
			if g != nil {
				g.Free()
			}
		}
	}
	if in.Lift != nil {
		in.Lift.Free()
	}
	if in.sampling != nil {
		in.sampling.Free()
	}
	in.arena.Free()
}

// largestFeature bounds input features: beyond it, products of features may
// overflow in float32.
const largestFeature = 1e12

// NewMeshInput computes the input features that a network wants of a mesh:
// RelTan (§4), GET (app. G) or coordinates. A feature too large for float32 is
// a geometry.InvalidMeshError naming the vertex.
func NewMeshInput[T simd.Float](v *geometry.View, graph *Graph[T], spec Spec, control *parallel.Control) (*MeshInput[T], error) {
	if spec.Surface != nil {
		return nil, invalidArgument("mesh", "the network runs on samples of a surface, not on vertices")
	}
	in := &MeshInput[T]{Input: Input[T]{Graph: graph}, arena: v.Resources().NewArena("input features")}
	err := in.setFeatures(v, spec, control)
	if err == nil && spec.Kind == KindSpiral {
		err = in.setSpirals(v, spec, control)
	}
	if err != nil {
		in.Free()
		return nil, err
	}
	return in, nil
}

func (in *MeshInput[T]) setFeatures(v *geometry.View, spec Spec, control *parallel.Control) (err error) {
	of := spec.InputType()
	width := of.Channels * of.Components()
	if in.Features, err = memory.Make[float64](in.arena, int64(v.VertexCount())*int64(width)); err != nil {
		return err
	}
	switch spec.Features {
	case FeaturesRelTan:
		o := geometry.RelTanOptions{Powers: spec.Powers, DegreePower: spec.DegreePower, Constant: spec.RelativeConstant}
		err = v.RelTan(o, in.packTangent(len(spec.Powers)), control)
	case FeaturesGET:
		err = v.GET(geometry.WriteSlice(in.Features, width))
	default:
		err = v.Positions(geometry.WriteSlice(in.Features, width))
	}
	if err != nil {
		return err
	}
	return checkFeatures(in.Features, "vertex", width)
}

// checkFeatures names an element, of those with so many features each, that has
// one too large.
func checkFeatures(features []float64, element string, width int) error {
	for i, x := range features {
		if !(math.Abs(x) <= largestFeature) {
			return &geometry.InvalidMeshError{
				Element: element, Index: int64(i / width),
				Problem: fmt.Sprintf("its input feature %g is too large for the network", x),
			}
		}
	}
	return nil
}

// packTangent takes RelTan vectors in tangent coordinates and makes each power
// one channel whose rho_0 is zero (app. F).
func (in *MeshInput[T]) packTangent(powers int) geometry.RowWriter {
	return func(rows []float64, begin, end int) error {
		to := in.Features[3*powers*begin : 3*powers*end]
		for i := range len(rows) / 2 {
			to[3*i], to[3*i+1], to[3*i+2] = 0, rows[2*i], rows[2*i+1]
		}
		return nil
	}
}

func (in *MeshInput[T]) setSpirals(v *geometry.View, spec Spec, control *parallel.Control) error {
	positions, err := memory.Make[float64](in.arena, 3*int64(v.VertexCount()))
	if err != nil {
		return err
	}
	if err := v.Positions(geometry.WriteSlice(positions, 3)); err != nil {
		return err
	}
	in.Spirals, err = NewSpirals(v.Resources().Threads, control, v.Faces(), positions, spec.SpiralLength, spec.SpiralStart)
	return err
}
