package surface

import (
	"slices"

	"libeman/geometry"
	"libeman/geometry/internal/r3"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
)

const (
	// sameSheet is what the product of the normals of neighbours exceeds: an arm
	// that lies on the hip is not its neighbour.
	sameSheet = -0.2

	pointsPerLeaf = 16
	pointRows     = 64 // points handled at a time
)

// Edges are the directed edges p ← q of a graph of points, in compressed sparse
// rows: the neighbours of p, in increasing order, are
// Neighbors[Offsets[p]:Offsets[p+1]]. They are those nearest in space whose
// normals agree, and need not be mutual. Lengths are in the unit of positions.
type Edges struct {
	Offsets   []int64
	Neighbors []int32
	geometry.EdgeGeometry[float64]
}

// of are the neighbours of p.
func (e *Edges) of(p int) []int32 { return e.Neighbors[e.Offsets[p]:e.Offsets[p+1]] }

// sheet prepares the first count points for searches, in memory of the arena.
func (s *Sampling) sheet(arena *memory.Arena, count int) (l *sheet, err error) {
	l = &sheet{}
	if l.boxes, err = newBoxes(s.resources, arena, s.Positions[:3*count], pointsPerLeaf, nil); err != nil {
		return nil, err
	}
	if l.normals, err = memory.Make[float64](arena, 3*int64(count)); err != nil {
		return nil, err
	}
	for i, number := range l.numbers {
		r3.Put(l.normals, i, s.normal(int(number)))
	}
	l.cones, err = l.bound(s.resources, arena, l.normals)
	return l, err
}

func (s *Sampling) normal(p int) r3.Vec { return r3.At(s.Frames, 3*p+2) }

// searches returns one search for each thread.
func (l *sheet) searches(threads int) []search {
	searches := make([]search, threads)
	for i := range searches {
		searches[i].sheet = l
	}
	return searches
}

// from places a search at a point of the sampling, on its sheet.
func (q *search) from(s *Sampling, p int) {
	q.place, q.normal, q.agreement, q.except = r3.At(s.Positions, p), s.normal(p), sameSheet, -1
}

// connect builds the graphs of all levels, and the moments. It returns the
// finest level to search in.
func (s *Sampling) connect(scratch *memory.Arena, o *Options, control *parallel.Control) (finest *sheet, err error) {
	if finest, err = s.sheet(scratch, s.Count()); err != nil {
		return nil, err
	}
	if err = s.connectFinest(o, finest, control.Stage(0, 0.6)); err != nil {
		return nil, err
	}
	finer := finest
	share := 0.4 / float64(len(s.Levels))
	for i := 1; i < len(s.Levels); i++ {
		stage := control.Stage(0.6+float64(i-1)*share, 0.6+float64(i)*share)
		if finer, err = s.connectCoarser(scratch, o, i, finer, stage); err != nil {
			return nil, err
		}
	}
	return finest, control.Finish()
}

// connectCoarser builds the graphs of level i, and returns it to search in.
func (s *Sampling) connectCoarser(scratch *memory.Arena, o *Options, i int, finer *sheet, control *parallel.Control) (own *sheet, err error) {
	to := &s.Levels[i]
	if own, err = s.sheet(scratch, to.Points); err != nil {
		return nil, err
	}
	if err = s.edges(&to.Within, own, own, o.Neighbors, nearestOthers, control.Stage(0, 0.3)); err != nil {
		return nil, err
	}
	to.Spacing = to.Within.meanLength()
	if err = s.edges(&to.Down, own, finer, o.Neighbors, nearestPoints, control.Stage(0.3, 0.6)); err != nil {
		return nil, err
	}
	return own, s.edges(&to.Up, finer, own, o.UpNeighbors, nearestPoints, control.Stage(0.6, 1))
}

// connectFinest builds the graph of the finest level, and the moments of its
// points.
func (s *Sampling) connectFinest(o *Options, finest *sheet, control *parallel.Control) (err error) {
	channels := MomentChannels(len(o.Scales))
	if s.Moments, err = memory.Make[float64](s.arena, int64(s.Count()*channels*momentWidth)); err != nil {
		return err
	}
	to := &s.Levels[0]
	err = s.edges(&to.Within, finest, finest, o.Neighbors, func(q *search, p, count int) []hit {
		if len(o.Scales) > 0 {
			count = max(count, o.Scales[len(o.Scales)-1])
		}
		nearestOthers(q, p, count)
		s.setMoments(s.Moments[p*channels*momentWidth:][:channels*momentWidth], p, q, o.Scales)
		return q.hits[:q.prefix(o.Neighbors)]
	}, control)
	to.Spacing = to.Within.meanLength()
	return err
}

// nearestPoints and nearestOthers find neighbours of p, with p and without.
func nearestPoints(q *search, _, count int) []hit { return q.nearest(count) }

func nearestOthers(q *search, p, count int) []hit {
	q.except = int32(p)
	return q.nearest(count)
}

// edges connects the points of a level to what find finds in another, about
// count each.
func (s *Sampling) edges(to *Edges, of, in *sheet, count int, find func(q *search, p, count int) []hit, control *parallel.Control) (err error) {
	r := s.resources
	scratch := r.NewArena("scratch")
	defer scratch.Free()
	points, stride := len(of.numbers), min(2*count, len(in.numbers))
	found, err := memory.Make[int32](scratch, int64(points)*int64(stride))
	if err != nil {
		return err
	}
	if to.Offsets, err = memory.Make[int64](s.arena, int64(points)+1); err != nil {
		return err
	}
	searches := in.searches(r.Threads.Threads())
	err = r.Threads.Range(control, points, pointRows, func(worker, begin, end int) error {
		q := &searches[worker]
		q.guess = 0                                    // what a block finds first does not depend on the thread
		for _, number := range of.numbers[begin:end] { // near one another
			p := int(number)
			q.from(s, p)
			hits := find(q, p, count)
			ring := found[p*stride:][:len(hits)]
			for i, h := range hits {
				ring[i] = h.point
			}
			slices.Sort(ring)
			to.Offsets[p+1] = int64(len(ring))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for p := range points {
		to.Offsets[p+1] += to.Offsets[p]
	}
	total := to.Offsets[points]
	if to.Neighbors, err = memory.Make[int32](s.arena, total); err != nil {
		return err
	}
	for _, array := range []*[]float64{&to.CosAngle, &to.SinAngle, &to.CosTransport, &to.SinTransport, &to.Length} {
		if *array, err = memory.Make[float64](s.arena, total); err != nil {
			return err
		}
	}
	return r.Threads.Range(nil, points, pointRows, func(_, begin, end int) error {
		for p := begin; p < end; p++ {
			copy(to.of(p), found[p*stride:])
			for e := to.Offsets[p]; e < to.Offsets[p+1]; e++ {
				to.Set(e, s.Positions, s.Frames, p, int(to.Neighbors[e]))
			}
		}
		return nil
	})
}

// meanLength is 0 without edges.
func (e *Edges) meanLength() float64 {
	sum := 0.0
	for _, length := range e.Length {
		sum += length
	}
	return sum / float64(max(1, len(e.Length)))
}

// RelTan writes the relative tangential features of the points of a level over
// their neighbours in it: geometry's RelTan, a row of o.RowWidth() for each.
func (s *Sampling) RelTan(level int, o geometry.RelTanOptions, rows []float64) error {
	if err := o.Check(); err != nil {
		return err
	}
	width := o.RowWidth()
	within := &s.Levels[level].Within
	return s.resources.Threads.Range(nil, s.Levels[level].Points, pointRows, func(_, begin, end int) error {
		for p := begin; p < end; p++ {
			if err := o.PointRow(rows[width*p:][:width], s.Positions, s.Frames, p, within.of(p)); err != nil {
				return err
			}
		}
		return nil
	})
}
