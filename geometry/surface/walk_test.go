package surface

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"libeman/geometry/internal/r3"
)

func geodesic(o Options) Options {
	o.Geodesic = true
	return o
}

// pathsByBruteForce are the lengths of the shortest paths between all points
// (Floyd and Warshall's algorithm).
func pathsByBruteForce(s *Sampling) (lengths [][]float64) {
	n := s.Count()
	for p := range n {
		row := slices.Repeat([]float64{math.Inf(1)}, n)
		row[p] = 0
		for _, h := range withTies(nearestByBruteForce(s, n, r3.At(s.Positions, p), s.normal(p), sameSheet, p), pathNeighbors) {
			row[h.point] = math.Sqrt(h.distance)
		}
		lengths = append(lengths, row)
	}
	for by := range n {
		for p := range n {
			for q := range n {
				lengths[p][q] = min(lengths[p][q], lengths[p][by]+lengths[by][q])
			}
		}
	}
	return lengths
}

// alongTheSurface lists the neighbours of p among the first points: by the
// lengths of paths, then those to which there is none, by distance.
func alongTheSurface(s *Sampling, lengths []float64, p, among, count, except int) (found []hit) {
	var apart []hit
	for _, h := range nearestByBruteForce(s, among, r3.At(s.Positions, p), s.normal(p), sameSheet, except) {
		if math.IsInf(lengths[h.point], 1) {
			apart = append(apart, h)
		}
	}
	for q := range among {
		if q != except && s.normal(q).Dot(s.normal(p)) > sameSheet && !math.IsInf(lengths[q], 1) {
			found = append(found, hit{lengths[q] * lengths[q], int32(q)})
		}
	}
	slices.SortFunc(found, func(a, b hit) int { return cmp.Compare(a.distance, b.distance) })
	if missing := count - len(found); missing > 0 {
		return append(found, withTies(apart, missing)...)
	}
	return withTies(found, count)
}

func TestGeodesicNeighborsAreTheNearest(t *testing.T) {
	o := geodesic(smallOptions())
	for _, m := range withBodies(t, []int{21}, spikyBall(9), twoSheets(30), horseshoe(0.9), strip(50, 1e-3), scatter(90, 1e-2)) {
		s := sample(t, m, o, 2)
		lengths := pathsByBruteForce(s)
		check := func(kind string, e *Edges, points, among, count int, self bool) {
			for p := range points {
				except := p
				if self {
					except = -1
				}
				want := alongTheSurface(s, lengths[p], p, among, count, except)
				slices.SortFunc(want, func(a, b hit) int { return cmp.Compare(a.point, b.point) })
				if !slices.EqualFunc(want, e.of(p), func(h hit, q int32) bool { return h.point == q }) {
					t.Fatalf("%s, %s: point %d has the neighbours %v, not %v", m.name, kind, p, e.of(p), want)
				}
			}
		}
		for level := range s.Levels {
			l := &s.Levels[level]
			check("within", &l.Within, l.Points, l.Points, o.Neighbors, false)
			if level > 0 {
				finer := s.Levels[level-1].Points
				check("down", &l.Down, l.Points, finer, o.Neighbors, true)
				check("up", &l.Up, finer, l.Points, o.UpNeighbors, true)
			}
		}
	}
}

// horseshoe is a flat one: two arms of length 10 and width 1, a gap apart.
func horseshoe(gap float64) testMesh {
	m := testMesh{name: "horseshoe"}
	return m.with(m.name, []int32{0, 1, 5, 0, 5, 4, 0, 4, 7, 0, 7, 3, 3, 7, 6, 3, 6, 2},
		0, 0, 0, 10, 0, 0, 10, 2+gap, 0, 0, 2+gap, 0, // the corners outside
		1, 1, 0, 10, 1, 0, 10, 1+gap, 0, 1, 1+gap, 0) // and inside
}

// No edge leads across the gap of a horseshoe, on any level, but for the paths
// round its closed end; in space a fifth of them do.
func TestGeodesicNeighborsStayOnTheirSide(t *testing.T) {
	const end = 5.0 // from the closed one: farther than the coarsest level's neighbours
	across := func(o Options) (across, all int) {
		s := sample(t, horseshoe(0.9), o, 1)
		place := func(p int) r3.Vec { return r3.At(s.Positions, p).Plus(r3.At(s.Center[:], 0)) }
		for _, l := range s.Levels {
			for p := range l.Points {
				for _, q := range l.Within.of(p) {
					from, to := place(p), place(int(q))
					if from.X > end && to.X > end {
						all++
						if (from.Y < 1.45) != (to.Y < 1.45) {
							across++
						}
					}
				}
			}
		}
		return across, all
	}
	if n, all := across(geodesic(smallOptions())); n > 0 {
		t.Errorf("%d of %d edges lead across the gap", n, all)
	}
	if n, all := across(smallOptions()); 5*n < all {
		t.Errorf("%d of %d edges lead across the gap in space: the test sees nothing", n, all)
	}
}

// Neighbours are of a point's own component, and of another where that has too
// few.
func TestGeodesicNeighborsOnOtherComponents(t *testing.T) {
	m := horseshoe(0.9)
	m.faces = slices.Concat(m.faces[:6], m.faces[12:]) // without the closed end
	o := geodesic(smallOptions())
	s := sample(t, m, o, 1)
	for level, l := range s.Levels {
		across := 0
		for p := range l.Points {
			ring := l.Within.of(p)
			if len(ring) < o.Neighbors {
				t.Fatalf("level %d: point %d has %d neighbours", level, p, len(ring))
			}
			for _, q := range ring {
				if (s.Positions[3*p+1] < 0) != (s.Positions[3*q+1] < 0) {
					across++
				}
			}
		}
		if few := l.Points/2 <= o.Neighbors; few != (across > 0) {
			t.Errorf("level %d: %d edges between components of %d points each", level, across, l.Points/2)
		}
	}
}
