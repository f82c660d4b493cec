package surface

import (
	"fmt"
	"math"

	"libeman/geometry"
	"libeman/geometry/internal/r3"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
)

// Options of a sampling.
type Options struct {
	Points        []int  // of each level, falling
	Neighbors     int    // of a point in its own level and the next finer one
	UpNeighbors   int    // of a point in the next coarser level
	Scales        []int  // neighbours that second moments are taken over, rising
	LiftNeighbors int    // points that a vertex hears
	Seed          uint64 // 0: the sampling that the surface alone defines; others: a random one
}

// DefaultOptions are two levels and three scales.
func DefaultOptions() Options {
	return Options{Points: []int{1024, 256}, Neighbors: 24, UpNeighbors: 6, Scales: []int{24, 48, 192}, LiftNeighbors: 6}
}

const (
	maxPoints    = 1 << 20
	maxNeighbors = 1 << 12
	maxLists     = 16 // levels, and scales
)

// Check says what is wrong with the options.
func (o *Options) Check() error {
	if len(o.Points) == 0 || len(o.Points) > maxLists {
		return badArgument("points", "%d levels are given, from 1 to %d are allowed", len(o.Points), maxLists)
	}
	for level, n := range o.Points {
		switch {
		case n < 1 || n > maxPoints:
			return badArgument("points", "%d points in level %d, from 1 to %d are allowed", n, level, maxPoints)
		case level > 0 && n > o.Points[level-1]:
			return badArgument("points", "level %d has %d points, more than the level before", level, n)
		}
	}
	if len(o.Scales) > maxLists {
		return badArgument("scales", "%d scales are given, at most %d are allowed", len(o.Scales), maxLists)
	}
	for i, n := range o.Scales {
		if err := checkNeighbors("scales", n); err != nil {
			return err
		}
		if i > 0 && n <= o.Scales[i-1] {
			return badArgument("scales", "%d neighbours after %d, they must rise", n, o.Scales[i-1])
		}
	}
	if err := checkNeighbors("neighbors", o.Neighbors); err != nil {
		return err
	}
	if err := checkNeighbors("up_neighbors", o.UpNeighbors); err != nil {
		return err
	}
	return checkNeighbors("lift_neighbors", o.LiftNeighbors)
}

// Bytes is about how much memory a sampling of a mesh takes: at most while it is
// made; then; and for the weights of the lift in addition.
func (o *Options) Bytes(vertices, faces int64) (making, kept, weights int64) {
	const (
		offset, index, number = 8, 4, 8
		// Of a candidate: its place, that in the tree, a key twice, its number, and
		// its part of the boxes.
		candidate = 2*3*number + 2*number + index + 3
		// Of a point: place, frame, and twice the place and the normal to search.
		point  = (3 + 9 + 2*6) * number
		around = surroundingWidth * (index + number)
	)
	candidates := vertices
	if faces > 0 {
		n := math.Sqrt(perPoint*float64(o.Points[0])/float64(faces)) + 0.5
		candidates = int64(float64(faces) * max(1, n*n))
	}
	choosing := candidate*candidates + offset*faces

	points := int64(o.Points[0])
	kept = points*(point+number*int64(MomentChannels(len(o.Scales))*momentWidth)) + (index+5*number)*o.Edges()
	kept += index * int64(o.LiftNeighbors) * vertices
	weights = number * int64(o.LiftNeighbors) * vertices
	return max(choosing, kept+weights+around*points), kept, weights
}

// Edges is how many the graphs within and between all levels have, but for
// points at equal distances.
func (o *Options) Edges() (edges int64) {
	for level, points := range o.Points {
		edges += int64(points) * int64(o.Neighbors)
		if level > 0 {
			edges += int64(points)*int64(o.Neighbors) + int64(o.Points[level-1])*int64(o.UpNeighbors)
		}
	}
	return edges
}

func checkNeighbors(argument string, n int) error {
	if n < 1 || n > maxNeighbors {
		return badArgument(argument, "%d is not in [1, %d]", n, maxNeighbors)
	}
	return nil
}

func badArgument(argument, format string, arguments ...any) error {
	return &geometry.ArgumentError{Argument: argument, Problem: fmt.Sprintf(format, arguments...)}
}

// Sampling is a set of points on a surface, in levels, with what a network
// needs of them. It does not change, and needs neither mesh nor view any more.
type Sampling struct {
	Center    [3]float64 // of the surface's area; like all lengths divided by 2^Exponent
	Exponent  int
	Positions []float64 // K×3, from the centre
	Frames    []float64 // K×9, rows e1, e2, n; e1 is some tangent
	Levels    []Level   // from fine to coarse
	// Moments are K × MomentChannels × 5, the components ρ0, ρ1 (2), ρ2 (2) of
	// each channel.
	Moments []float64
	Lift    Lift

	resources geometry.Resources
	arena     *memory.Arena
	weights   *memory.Arena // of the lift
}

// Level is the first points of a sampling, themselves an even sampling.
type Level struct {
	Points  int
	Spacing float64 // the mean length of the edges in Within
	Within  Edges   // the neighbours of each point among the others
	// Down are the neighbours of each point in the next finer level, itself
	// among them; Up those of each of its points in this level. The finest level
	// has neither.
	Down, Up Edges
}

// New samples the surface of a mesh, or takes points from a mesh without faces
// that has frames of its own. Errors match geometry.ErrInvalidMesh,
// geometry.ErrInvalidArgument, geometry.ErrTooLarge, memory.ErrOutOfMemory or
// parallel.ErrCancelled.
func New(v *geometry.View, o Options, control *parallel.Control) (s *Sampling, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if v.FaceCount() == 0 && !(v.VertexCount() > 0 && v.HasOwnFrames()) {
		return nil, &geometry.InvalidMeshError{Element: "face", Problem: "there is none to sample, and no vertex with a normal of its own"}
	}
	r := v.Resources()
	s = &Sampling{Exponent: v.Exponent(), resources: r, arena: r.NewArena("surface"), weights: r.NewArena("surface")}
	defer func() {
		if err != nil {
			s.Free()
			s = nil
		}
	}()
	if err = s.choose(v, &o, control.Stage(0, 0.6)); err != nil {
		return s, err
	}
	scratch := r.NewArena("scratch")
	defer scratch.Free()
	finest, err := s.connect(scratch, &o, control.Stage(0.6, 0.8))
	if err != nil {
		return s, err
	}
	return s, s.setLift(v, scratch, finest, o.LiftNeighbors, control.Stage(0.8, 1))
}

// Free gives the sampling's memory back.
func (s *Sampling) Free() {
	s.FreeWeights()
	s.arena.Free()
}

// FreeWeights gives those of the lift back, the largest array: they are not used
// any more.
func (s *Sampling) FreeWeights() {
	s.weights.Free()
	s.Lift.Weights = nil
}

// Write writes the places of the points in the coordinates of the mesh, K×3, and
// their normals.
func (s *Sampling) Write(positions, normals []float64) {
	centre, unit := r3.At(s.Center[:], 0), math.Ldexp(1, s.Exponent)
	for p := range s.Count() {
		r3.Put(positions, p, r3.At(s.Positions, p).Plus(centre).Times(unit))
		r3.Put(normals, p, s.normal(p))
	}
}

// Count is the number of points, those of the finest level.
func (s *Sampling) Count() int { return len(s.Positions) / 3 }

// choose sets the points and their frames.
func (s *Sampling) choose(v *geometry.View, o *Options, control *parallel.Control) error {
	r := v.Resources()
	scratch := r.NewArena("scratch")
	defer scratch.Free()
	c, err := newCandidates(v, scratch, o.Points[0], o.Seed, control.Stage(0, 0.4))
	if err != nil {
		return err
	}
	chosen, err := chooseFarthest(r, scratch, c, o.Points[0], control.Stage(0.4, 1))
	if err != nil {
		return err
	}
	s.Center = [3]float64{c.centre.X, c.centre.Y, c.centre.Z}
	if s.Positions, err = memory.Make[float64](s.arena, 3*int64(len(chosen))); err != nil {
		return err
	}
	if s.Frames, err = memory.Make[float64](s.arena, 9*int64(len(chosen))); err != nil {
		return err
	}
	for i, number := range chosen {
		place, n := c.point(number)
		e1 := n.Perpendicular()
		r3.Put(s.Positions, i, place)
		r3.PutFrame(s.Frames, i, r3.Frame{E1: e1, E2: n.Cross(e1), N: n})
	}
	s.Levels = make([]Level, len(o.Points))
	for level, wanted := range o.Points {
		share := float64(wanted) * float64(len(chosen)) / float64(o.Points[0])
		s.Levels[level].Points = max(1, int(math.Round(share)))
	}
	return nil
}
