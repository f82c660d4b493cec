package core

import (
	"fmt"
	"slices"
)

// SurfaceSpec is the part of a description that only a network on samples of a
// surface has. Its layers run on levels of points, each level a part of the
// finer one before it: down from level to level, and up again.
type SurfaceSpec struct {
	// Points are how many there are on each level, the finest first.
	Points []int `json:"points"`
	// Neighbors are those of a point on its own level, and those on the finer
	// level on the way down; UpNeighbors those on the coarser level on the way
	// up.
	Neighbors   int `json:"neighbors"`
	UpNeighbors int `json:"up_neighbors"`
	// Scales are the neighbourhoods of which moments are taken, in neighbours;
	// none without such features.
	Scales []int `json:"scales,omitempty"`
	// LiftNeighbors are the samples from which a vertex of the mesh takes its
	// features.
	LiftNeighbors int `json:"lift_neighbors"`
	// Blocks are the residual blocks on each level on the way down, and on each
	// but the coarsest on the way up: 2·levels - 1 numbers.
	Blocks []int `json:"blocks"`
}

// Bounds of the numbers.
const (
	maximalLevels        = 8
	maximalPoints        = 1 << 20
	maximalSurfaceDegree = 1 << 10
	maximalScale         = 1 << 12
	maximalScales        = 16
)

// momentChannels is how many channels the moments of one neighbourhood make
// (ROBUST: offsets d̂⊗d̂, normals n⊗n and both d̂⊗n, and the mean offset, split
// into their irreducible parts): 8 of rho_0, 5 of rho_1 and 3 of rho_2, as 8
// channels of order 2 in which those that are not there are zero.
const momentChannels = 8

// defaultSurface is that of PresetSurface.
func defaultSurface() *SurfaceSpec {
	return &SurfaceSpec{
		Points: []int{1024, 256, 64}, Neighbors: 24, UpNeighbors: 6, Scales: []int{24, 48, 192}, LiftNeighbors: 6,
		Blocks: []int{2, 2, 2, 2, 2},
	}
}

// UnmarshalJSON refuses unknown fields, as ParseSpec does. Fields that are not
// given keep their values.
func (s *SurfaceSpec) UnmarshalJSON(text []byte) error {
	type fields SurfaceSpec // without this method
	if err := decodeStrictly(text, (*fields)(s)); err != nil {
		return fmt.Errorf("surface: %v", jsonError(err))
	}
	return nil
}

// clone shares nothing with s.
func (s *SurfaceSpec) clone() *SurfaceSpec {
	if s == nil {
		return nil
	}
	c := *s
	c.Points, c.Scales, c.Blocks = slices.Clone(s.Points), slices.Clone(s.Scales), slices.Clone(s.Blocks)
	return &c
}

// checkSurface refuses a description that is neither of a network on vertices
// nor of one on samples.
func (s Spec) checkSurface() error {
	sampled := s.Features.moments() || s.Features == FeaturesRelTan
	switch {
	case s.Surface == nil && s.Features.moments():
		return invalidModel("features", "%s are of the samples of a surface: the field surface is missing", s.Features)
	case s.Surface == nil:
		return nil
	case s.Kind == KindSpiral:
		return invalidModel("surface", "a spiral network runs on vertices")
	case !sampled:
		return invalidModel("features", "a network on a surface does not take %s", s.Features)
	case s.Blocks != 0:
		return invalidModel("blocks", "a network on a surface has surface.blocks: it must be 0 here")
	case s.Features.moments() != (len(s.Surface.Scales) > 0):
		return invalidModel("surface.scales", "%d of them for the features %s", len(s.Surface.Scales), s.Features)
	}
	return s.Surface.check()
}

func (s *SurfaceSpec) check() error {
	levels := len(s.Points)
	if levels < 1 || levels > maximalLevels {
		return invalidModel("surface.points", "%d levels, not between 1 and %d", levels, maximalLevels)
	}
	if len(s.Blocks) != 2*levels-1 {
		return invalidModel("surface.blocks", "%d numbers, not %d for %d levels", len(s.Blocks), 2*levels-1, levels)
	}
	if len(s.Scales) > maximalScales {
		return invalidModel("surface.scales", "%d of them, more than %d", len(s.Scales), maximalScales)
	}
	for _, list := range []struct {
		field  string
		values []int
		top    int
	}{
		{"points", s.Points, maximalPoints}, {"scales", s.Scales, maximalScale}, {"blocks", s.Blocks, maximalBlocks},
		{"neighbors", []int{s.Neighbors}, maximalSurfaceDegree}, {"up_neighbors", []int{s.UpNeighbors}, maximalSurfaceDegree},
		{"lift_neighbors", []int{s.LiftNeighbors}, maximalSurfaceDegree},
	} {
		for _, n := range list.values {
			if n < 1 || n > list.top {
				return invalidModel("surface."+list.field, "%d is out of range [1, %d]", n, list.top)
			}
		}
	}
	for i := 1; i < len(s.Scales); i++ {
		if s.Scales[i] <= s.Scales[i-1] {
			return invalidModel("surface.scales", "%d after %d, they must rise", s.Scales[i], s.Scales[i-1])
		}
	}
	for l := range levels - 1 {
		if s.Points[l+1] >= s.Points[l] {
			return invalidModel("surface.points", "level %d has %d, no fewer than the %d of the level before", l+1, s.Points[l+1], s.Points[l])
		}
	}
	return nil
}

// last is the level of the fewest points.
func (s *SurfaceSpec) last() int { return len(s.Points) - 1 }

// blockEdges is how many edges a block of points has at most.
func (s *SurfaceSpec) blockEdges() int64 {
	return int64(blockVertices * max(s.Neighbors, s.UpNeighbors))
}

// graph is the extent of the graph between two levels.
func (s *SurfaceSpec) graph(from, to int) graphExtent {
	degree := s.Neighbors
	if from > to {
		degree = s.UpNeighbors
	}
	points := int64(s.Points[to])
	return graphExtent{points, points * int64(degree), min(points, blockVertices) * int64(degree)}
}

// surfaceLayers lists the layers of a network on a surface: residual blocks at
// every level, a convolution behind the non-linearity down to each coarser
// level, and one up from it, to which the finer level's features from before
// the way down are added.
func (s Spec) surfaceLayers() []layerSpec {
	n, last, stage := newStack(s), s.Surface.last(), 0
	blocks := func(level int, way string) {
		count := s.Surface.Blocks[stage]
		stage++
		for b := range count {
			n.block(fmt.Sprintf("levels.%d.%s.%d.", level, way, b), level, stage == len(s.Surface.Blocks) && b == count-1)
		}
	}
	var before []int // what goes down from each level
	for level := range last {
		blocks(level, "down")
		before = append(before, len(n.layers))
		n.add(layerSpec{name: fmt.Sprintf("levels.%d.pool.", level+1), from: level, to: level + 1, nonlinearity: s.Nonlinearity}, n.inner())
	}
	blocks(last, "down")
	for level := last - 1; level >= 0; level-- {
		n.add(layerSpec{
			name: fmt.Sprintf("levels.%d.unpool.", level), from: level + 1, to: level, nonlinearity: s.Nonlinearity,
			residual: &residualSpec{from: before[level], in: n.inner(), out: n.inner()},
		}, n.inner())
		blocks(level, "up")
	}
	return n.layers
}
