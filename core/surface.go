package core

import (
	"cmp"
	"fmt"

	"libeman/geometry"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
	"libeman/geometry/surface"
	"libeman/simd"
)

// options of the sampling that the network runs on; seed 0 is that which the
// surface alone defines.
func (s *SurfaceSpec) options(seed uint64) surface.Options {
	return surface.Options{
		Points: s.Points, Neighbors: s.Neighbors, UpNeighbors: s.UpNeighbors,
		Scales: s.Scales, LiftNeighbors: s.LiftNeighbors, Seed: seed,
	}
}

// SurfaceKey tells apart what networks see of one surface: those with equal keys
// may share a [NewSurfaceInput].
type SurfaceKey string

// SurfaceKey is that of a network on a surface.
func (s Spec) SurfaceKey() SurfaceKey {
	return SurfaceKey(fmt.Sprint(s.Surface.options(0), s.Features, s.Powers, s.DegreePower, s.RelativeConstant))
}

// NewSurfaceInput samples the surface of a mesh (ROBUST) and computes what a
// network on the samples wants: graphs, moments and RelTan of the points, and
// the lift to the vertices. The seed 0 gives the samples that the surface alone
// defines; another one gives random ones, for training. A feature too large for
// float32 is a geometry.InvalidMeshError naming the sample. The input does not
// need the view any more.
func NewSurfaceInput[T simd.Float](v *geometry.View, spec Spec, seed uint64, control *parallel.Control) (in *MeshInput[T], err error) {
	sampling, err := surface.New(v, spec.Surface.options(seed), control.Stage(0, 0.9))
	if err != nil {
		return nil, err
	}
	budget := cmp.Or(v.Resources().Memory, memory.NewBudget(0, nil))
	in = &MeshInput[T]{arena: budget.NewArena("input features"), sampling: sampling}
	defer func() {
		if err != nil {
			in.Free()
			in = nil
		}
	}()
	if err = in.setLevels(budget, sampling); err != nil {
		return in, err
	}
	if err = in.setLift(budget, sampling, v.VertexCount()); err != nil {
		return in, err
	}
	return in, in.setPointFeatures(sampling, spec)
}

func (in *MeshInput[T]) setLift(budget *memory.Budget, s *surface.Sampling, vertices int) error {
	offsets, err := memory.Make[int64](in.arena, int64(vertices)+1)
	if err != nil {
		return err
	}
	for v := range offsets {
		offsets[v] = int64(v * s.Lift.Count)
	}
	in.Lift, err = NewLift[T](budget, s.Count(), offsets, s.Lift.Points, s.Lift.Weights)
	s.FreeWeights()
	return err
}

// SampleCount is the number of samples of the finest level; 0 for a network on
// vertices.
func (in *MeshInput[T]) SampleCount() int {
	if in.sampling == nil {
		return 0
	}
	return in.sampling.Count()
}

// Samples writes the places of the samples, K×3 in the coordinates of the mesh,
// and their unit normals. The first of them are those of the coarser levels.
func (in *MeshInput[T]) Samples(positions, normals []float64) { in.sampling.Write(positions, normals) }

// setLevels makes the graphs of all levels.
func (in *MeshInput[T]) setLevels(budget *memory.Budget, s *surface.Sampling) (err error) {
	in.Levels = make([]Level[T], len(s.Levels))
	graph := func(to **Graph[T], sources int, e *surface.Edges) {
		if err == nil {
			*to, err = NewSurfaceGraph[T](budget, sources, e.Offsets, e.Neighbors, EdgeGeometry{
				CosTheta: e.CosAngle, SinTheta: e.SinAngle, CosTransport: e.CosTransport, SinTransport: e.SinTransport, Length: e.Length,
			})
		}
	}
	for i := range s.Levels {
		level := &s.Levels[i]
		graph(&in.Levels[i].Within, level.Points, &level.Within)
		if i > 0 {
			finer := &in.Levels[i-1]
			graph(&finer.Down, s.Levels[i-1].Points, &level.Down)
			graph(&finer.Up, level.Points, &level.Up)
		}
	}
	return err
}

// setPointFeatures writes the moments of the points and behind them their
// RelTan, as the network wants them.
func (in *MeshInput[T]) setPointFeatures(s *surface.Sampling, spec Spec) (err error) {
	of := spec.InputType()
	points, width := s.Count(), of.Channels*of.Components()
	if in.Features, err = memory.Make[float64](in.arena, int64(points)*int64(width)); err != nil {
		return err
	}
	if spec.Features.moments() {
		moments := len(s.Moments) / points
		for p := range points {
			copy(in.Features[p*width:], s.Moments[p*moments:][:moments])
		}
	}
	if spec.Features.relTan() {
		if err := in.setRelTan(s, spec, width); err != nil {
			return err
		}
	}
	return checkFeatures(in.Features, "sample", width)
}

// setRelTan writes RelTan at the end of each row of features.
func (in *MeshInput[T]) setRelTan(s *surface.Sampling, spec Spec, width int) error {
	o := geometry.RelTanOptions{Powers: spec.Powers, DegreePower: spec.DegreePower, Constant: spec.RelativeConstant}
	rows, err := memory.Make[float64](in.arena, int64(s.Count())*int64(o.RowWidth()))
	if err != nil {
		return err
	}
	if err := s.RelTan(0, o, rows); err != nil {
		return err
	}
	components := spec.InputType().Components()
	for i := range s.Count() * len(spec.Powers) {
		p, after := i/len(spec.Powers), len(spec.Powers)-i%len(spec.Powers)
		copy(in.Features[(p+1)*width-after*components+1:], rows[2*i:2*i+2]) // rho_1, behind rho_0
	}
	return nil
}
