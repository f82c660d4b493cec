package surface

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"libeman/geometry"
	"libeman/geometry/internal/r3"
)

// sample samples a mesh and frees the sampling at the end of the test.
func sample(t testing.TB, m testMesh, o Options, threads int) *Sampling {
	t.Helper()
	var s *Sampling
	err := m.build(t, geometry.Options{}, threads).Read(func(v *geometry.View) (err error) {
		s, err = New(v, o, nil)
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", m.name, err)
	}
	t.Cleanup(s.Free)
	return s
}

func smallOptions() Options {
	return Options{Points: []int{300, 80, 20}, Neighbors: 12, UpNeighbors: 4, Scales: []int{8, 40}, LiftNeighbors: 5}
}

// symmetry is a change of a mesh that a sampling must not see.
type symmetry struct {
	name        string
	rotation    [9]float64
	translation r3.Vec
	scale       float64
	permuted    bool
}

func symmetries(diameter float64) []symmetry {
	unit := [9]float64{0: 1, 4: 1, 8: 1}
	return []symmetry{
		{"permuted", unit, r3.Vec{}, 1, true},
		{"turned", geometry.RandomRotation(3), r3.Vec{}, 1, false},
		{"moved", unit, r3.Vec{X: 1e3 * diameter, Y: -300 * diameter}, 1, false},
		{"scaled", unit, r3.Vec{}, math.Pi * 1e10, false},
		{"all at once", geometry.RandomRotation(4), r3.Vec{Z: -50}, 1e-7, true},
	}
}

// of applies the symmetry, and gives the new number of each vertex.
func (y symmetry) of(m testMesh) (changed testMesh, number []int32) {
	random := rand.New(rand.NewPCG(1, 2))
	changed = testMesh{m.name + ", " + y.name, make([]float64, len(m.positions)), slices.Clone(m.faces)}
	number = make([]int32, m.vertices())
	for p := range number {
		number[p] = int32(p)
	}
	if y.permuted {
		geometry.RandomPermutation(5, number)
		faces := slices.Clone(m.faces)
		order := random.Perm(len(faces) / 3)
		for i, face := range order {
			turn := random.IntN(3)
			for k := range 3 {
				changed.faces[3*i+k] = number[faces[3*face+(k+turn)%3]]
			}
		}
	}
	for p, n := range number {
		r3.Put(changed.positions, int(n), r3.At(m.positions, p).Rotated(&y.rotation).Plus(y.translation).Times(y.scale))
	}
	return changed, number
}

// withHair adds a face whose corners lie on a line, away from the others: it has
// no area, and no normal but that of rounding.
func withHair(m testMesh) testMesh {
	n := int32(m.vertices())
	tip := r3.Vec{X: 0.3, Y: 0.7, Z: 0.11}
	for i := range 3 {
		p := tip.Times(2 + 0.31*float64(i))
		m.positions = append(m.positions, p.X, p.Y, p.Z)
	}
	m.faces = append(m.faces, n, n+1, n+2)
	m.name += " with a hair"
	return m
}

// The same points, graphs and moments come out whatever the numbering and the
// coordinates. Points come in the same order: the farthest first.
func TestSymmetries(t *testing.T) {
	for _, m := range withBodies(t, []int{0, 57}, mirrored(spikyBall(20)), spikyBall(12), withHair(spikyBall(12)),
		needles(40), overlapping(spikyBall(12))) {
		o := DefaultOptions()
		if m.vertices() < 5000 {
			o = smallOptions()
		}
		want := sample(t, m, o, 1)
		for _, y := range symmetries(2) {
			changed, number := y.of(m)
			got := sample(t, changed, o, 2)
			if got.Count() != want.Count() {
				t.Fatalf("%s: %d points, %d before", changed.name, got.Count(), want.Count())
			}
			turned := make([]float64, len(want.Positions))
			unit := got.Levels[0].Spacing / want.Levels[0].Spacing
			for p := range want.Count() {
				r3.Put(turned, p, r3.At(want.Positions, p).Rotated(&y.rotation).Times(unit))
			}
			const bound = 1e-9
			if d := largestDifference(got.Positions, turned); d > bound {
				t.Fatalf("%s: positions differ by %g", changed.name, d)
			}
			sameGraphs(t, changed.name, got, want, bound)
			sameLift(t, changed.name, got, want, number, bound)
		}
	}
}

// A body that is its own mirror image has the same samples after it was turned
// and stored in float32, which its symmetry survives only to rounding.
func TestMirrorImagesInSinglePrecision(t *testing.T) {
	stored := func(m testMesh, rotation [9]float64) testMesh {
		turned := testMesh{m.name, make([]float64, len(m.positions)), m.faces}
		for p := range m.vertices() {
			x := r3.At(m.positions, p).Rotated(&rotation)
			r3.Put(turned.positions, p, r3.Vec{X: float64(float32(x.X)), Y: float64(float32(x.Y)), Z: float64(float32(x.Z))})
		}
		return turned
	}
	m := stored(mirrored(spikyBall(20)), [9]float64{0: 1, 4: 1, 8: 1})
	want := sample(t, m, smallOptions(), 1)
	for seed := range uint64(6) {
		rotation := geometry.RandomRotation(seed)
		got := sample(t, stored(m, rotation), smallOptions(), 1)
		unit := got.Levels[0].Spacing / want.Levels[0].Spacing
		for p := range want.Count() {
			place := r3.At(want.Positions, p).Rotated(&rotation).Times(unit)
			if near := nearestByBruteForce(got, got.Count(), place, r3.Vec{}, anyNormal, -1)[0]; near.distance > 1e-10 {
				t.Fatalf("rotation %d: point %d lies %g from all", seed, p, math.Sqrt(near.distance))
			}
		}
	}
}

// Bodies that rotations leave the same have no first point of their own, but
// one sampling up to these.
func TestBodiesWithRotations(t *testing.T) {
	for _, m := range []testMesh{cone(16, 12, 0), cone(16, 12, 0.1), flat(9), strip(30, 0.3)} {
		want := pairwiseDistances(sample(t, m, smallOptions(), 1))
		for _, y := range symmetries(2) {
			changed, _ := y.of(m)
			if d := largestDifference(pairwiseDistances(sample(t, changed, smallOptions(), 1)), want); d > 1e-9 {
				t.Errorf("%s: distances of points differ by %g", changed.name, d)
			}
		}
	}
}

// pairwiseDistances are those of all pairs of points, in order, in units of the
// spacing.
func pairwiseDistances(s *Sampling) (distances []float64) {
	for p := range s.Count() {
		for q := range p {
			d := r3.At(s.Positions, p).Minus(r3.At(s.Positions, q)).Length()
			distances = append(distances, d/s.Levels[0].Spacing)
		}
	}
	slices.Sort(distances)
	return distances
}

// sameGraphs compares what does not depend on frames: the neighbours, the
// lengths, θ and g up to the frames' own angles, and the moments' magnitudes.
func sameGraphs(t *testing.T, name string, got, want *Sampling, bound float64) {
	t.Helper()
	for level := range want.Levels {
		g, w := &got.Levels[level], &want.Levels[level]
		for kind, pair := range [3][2]*Edges{{&g.Within, &w.Within}, {&g.Down, &w.Down}, {&g.Up, &w.Up}} {
			if !slices.Equal(pair[0].Offsets, pair[1].Offsets) || !slices.Equal(pair[0].Neighbors, pair[1].Neighbors) {
				t.Fatalf("%s: graph %d of level %d differs", name, kind, level)
			}
			unit := g.Spacing / w.Spacing
			for e, length := range pair[1].Length {
				if math.Abs(pair[0].Length[e]-unit*length) > bound*(unit*length+g.Spacing) {
					t.Fatalf("%s: length %d is %g, want %g", name, e, pair[0].Length[e], unit*length)
				}
			}
			// e^{i(θ_pq − θ_pr)} does not depend on the frame at p.
			for p := range len(pair[0].Offsets) - 1 {
				ring := pair[0].of(p)
				for i := range ring {
					e := pair[0].Offsets[p]
					f := e + int64(i)
					a := turn(pair[0].CosAngle[e], pair[0].SinAngle[e], pair[0].CosAngle[f], pair[0].SinAngle[f])
					b := turn(pair[1].CosAngle[e], pair[1].SinAngle[e], pair[1].CosAngle[f], pair[1].SinAngle[f])
					if math.Hypot(a[0]-b[0], a[1]-b[1]) > bound {
						t.Fatalf("%s: angle between neighbours %d and %d of %d: %v, want %v", name, 0, i, p, a, b)
					}
				}
			}
		}
	}
	if d := largestDifference(invariants(got.Moments), invariants(want.Moments)); d > bound {
		t.Fatalf("%s: moments differ by %g", name, d)
	}
}

func turn(c, s, c2, s2 float64) [2]float64 { return [2]float64{c*c2 + s*s2, c*s2 - s*c2} }

// invariants are ρ0 and the magnitudes of ρ1 and ρ2.
func invariants(moments []float64) (out []float64) {
	for i := 0; i < len(moments); i += momentWidth {
		m := moments[i:]
		out = append(out, m[0], math.Hypot(m[1], m[2]), math.Hypot(m[3], m[4]))
	}
	return out
}

func sameLift(t *testing.T, name string, got, want *Sampling, number []int32, bound float64) {
	t.Helper()
	values := func(s *Sampling, p int) (sum float64) {
		for i := range s.Lift.Count {
			sum += s.Lift.Weights[p*s.Lift.Count+i] * math.Sin(float64(s.Lift.Points[p*s.Lift.Count+i]))
		}
		return sum
	}
	for p, n := range number {
		if d := math.Abs(values(got, int(n)) - values(want, p)); d > bound {
			t.Fatalf("%s: vertex %d hears a value that differs by %g", name, p, d)
		}
	}
}

// largestDifference is relative to the largest magnitude in want.
func largestDifference(got, want []float64) float64 {
	difference, size := 0.0, 0.0
	for i := range want {
		difference, size = max(difference, math.Abs(got[i]-want[i])), max(size, math.Abs(want[i]))
	}
	return difference / size
}

// The result has the same bits on one thread and on three.
func TestThreads(t *testing.T) {
	m := spikyBall(20)
	one, three := sample(t, m, smallOptions(), 1), sample(t, m, smallOptions(), 3)
	for name, pair := range map[string][2][]float64{
		"positions": {one.Positions, three.Positions}, "frames": {one.Frames, three.Frames},
		"moments": {one.Moments, three.Moments}, "weights": {one.Lift.Weights, three.Lift.Weights},
		"angles": {one.Levels[1].Up.CosAngle, three.Levels[1].Up.CosAngle},
	} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s depend on the number of threads", name)
		}
	}
	if !slices.Equal(one.Lift.Points, three.Lift.Points) {
		t.Error("lift depends on the number of threads")
	}
}

// The bucketed selection chooses what the plain one chooses.
func TestFarthestIsGreedy(t *testing.T) {
	for _, m := range withBodies(t, []int{11}, spikyBall(9), needles(30)) {
		err := m.build(t, geometry.Options{}, 1).Read(func(v *geometry.View) error {
			r := v.Resources()
			arena := r.NewArena("test")
			defer arena.Free()
			const count = 150
			c, err := newCandidates(v, arena, count, 0, nil)
			if err != nil {
				return err
			}
			chosen, err := chooseFarthest(r, arena, c, count, nil)
			if err != nil {
				return err
			}
			distances := make([]float64, len(c.positions)/3)
			for i := range distances {
				distances[i] = r3.At(c.positions, i).Length()
			}
			margin := stored*slices.Max(distances) + 1e-12
			for i, number := range chosen {
				if far := slices.Max(distances); distances[number] < far-margin {
					t.Fatalf("%s: point %d has the distance %g, another %g", m.name, i, distances[number], far)
				}
				for j := range distances {
					d := r3.At(c.positions, j).Minus(r3.At(c.positions, int(number))).Length()
					if i == 0 || d < distances[j] {
						distances[j] = d
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Thousands of ties are put in the order in which they would be settled one after
// another.
func TestTiesInOrder(t *testing.T) {
	var points []float64
	var tied []int32
	random := rand.New(rand.NewPCG(8, 9))
	for i := range 600 {
		x := r3.Vec{X: float64(i % 10), Y: float64(i / 10 % 10), Z: float64(i / 100)} // a lattice
		if random.IntN(3) == 0 {
			x = x.Times(1 + 1e-14*random.Float64())
		}
		points = append(points, x.X, x.Y, x.Z)
		tied = append(tied, int32(i))
	}
	l := ties{size2: 400}
	l.know(r3.Vec{X: 9, Y: 2, Z: 1})
	l.know(r3.Vec{X: -3, Y: 8, Z: 2})
	if l.known != 2 {
		t.Fatal("the directions are not known")
	}
	ordered := slices.Clone(tied)
	random.Shuffle(len(ordered), func(i, j int) { ordered[i], ordered[j] = ordered[j], ordered[i] })
	l.order(points, ordered, 0)
	for i, number := range ordered {
		left := slices.Clone(tied)
		if l.settle(points, left); left[0] != number {
			t.Fatalf("candidate %d comes at %d, not %d", number, i, left[0])
		}
		tied = slices.DeleteFunc(tied, func(j int32) bool { return j == number })
	}
}

// nearestByBruteForce lists the points of the first count that agree with a
// normal, by distance.
func nearestByBruteForce(s *Sampling, count int, place, normal r3.Vec, agreement float64, except int) (found []hit) {
	for q := range count {
		if q != except && s.normal(q).Dot(normal) > agreement {
			found = append(found, hit{r3.At(s.Positions, q).Minus(place).Squared(), int32(q)})
		}
	}
	slices.SortFunc(found, func(a, b hit) int { return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.point, b.point)) })
	return found
}

// withTies cuts a sorted list after count, and those as far as the last.
func withTies(found []hit, count int) []hit {
	end := min(count, len(found))
	for end < len(found) && end < 2*count && found[end].distance <= found[count-1].distance*(1+tie) {
		end++
	}
	return found[:end]
}

func TestNeighborsAreTheNearest(t *testing.T) {
	o := smallOptions()
	for _, m := range withBodies(t, []int{21}, spikyBall(9), twoSheets(30)) {
		s := sample(t, m, o, 2)
		for level := range s.Levels {
			l := &s.Levels[level]
			check := func(kind string, e *Edges, points, among, count int, self bool) {
				for p := range points {
					except := p
					if self {
						except = -1
					}
					want := withTies(nearestByBruteForce(s, among, r3.At(s.Positions, p), s.normal(p), sameSheet, except), count)
					if got := e.of(p); len(got) != len(want) || !slices.IsSorted(got) {
						t.Fatalf("%s: %s of level %d: point %d has %d neighbours, want %d", m.name, kind, level, p, len(got), len(want))
					}
					for _, h := range want {
						if _, ok := slices.BinarySearch(e.of(p), h.point); !ok {
							t.Fatalf("%s: %s of level %d: point %d does not hear %d", m.name, kind, level, p, h.point)
						}
					}
				}
			}
			check("within", &l.Within, l.Points, l.Points, o.Neighbors, false)
			if level > 0 {
				check("down", &l.Down, l.Points, s.Levels[level-1].Points, o.Neighbors, true)
				check("up", &l.Up, s.Levels[level-1].Points, l.Points, o.UpNeighbors, true)
			}
		}
	}
}

// What a search leaves out where hardly a normal agrees has none that does: on a
// sheet everything, for a normal from its other side.
func TestLeavingOutNormals(t *testing.T) {
	for _, m := range []testMesh{spikyBall(12), flat(12)} {
		s := sample(t, m, smallOptions(), 1)
		l, err := s.sheet(s.arena, s.Count())
		if err != nil {
			t.Fatal(err)
		}
		left := 0
		for p := range s.Count() {
			n := s.normal(p).Times(-1)
			for leaf := l.leaves; leaf < 2*l.leaves; leaf++ {
				if l.agrees(leaf, n, sameSheet) {
					continue
				}
				begin, end := l.leaf(leaf)
				for i := begin; i < end; i++ {
					if r3.At(l.normals, i).Dot(n) > sameSheet {
						t.Fatalf("%s: a leaf without point %d, whose normal agrees", m.name, l.numbers[i])
					}
				}
				left += end - begin
			}
			if m.name == "flat sheet" && l.agrees(1, n, sameSheet) {
				t.Fatalf("%s: the other side is searched", m.name)
			}
		}
		if left == 0 {
			t.Errorf("%s: nothing is left out", m.name)
		}
	}
}

// Moments against their definition, and the change of z_n under a gauge change.
func TestMoments(t *testing.T) {
	o := smallOptions()
	s := sample(t, spikyBall(9), o, 1)
	channels := MomentChannels(len(o.Scales))
	for p := range s.Count() {
		f := r3.FrameAt(s.Frames, p)
		for i, scale := range o.Scales {
			near := withTies(nearestByBruteForce(s, s.Count(), r3.At(s.Positions, p), s.normal(p), sameSheet, p), scale)
			squares := 0.0
			for _, h := range near {
				squares += h.distance / float64(len(near))
			}
			var dd, nn, dn [3][3]float64
			var mean [3]float64
			for _, h := range near {
				d := local(&f, r3.At(s.Positions, int(h.point)).Minus(r3.At(s.Positions, p)).Times(1/math.Sqrt(squares)))
				n := local(&f, s.normal(int(h.point)))
				for a := range 3 {
					mean[a] += d[a] / float64(len(near))
					for b := range 3 {
						dd[a][b] += d[a] * d[b] / float64(len(near))
						nn[a][b] += n[a] * n[b] / float64(len(near))
						dn[a][b] += d[a] * n[b] / float64(len(near))
					}
				}
			}
			want := [scaleChannels][momentWidth]float64{
				{(dd[0][0] + dd[1][1]) / 2, dd[2][0], dd[2][1], (dd[0][0] - dd[1][1]) / 2, dd[0][1]},
				{dd[2][2], nn[2][0], nn[2][1], (nn[0][0] - nn[1][1]) / 2, nn[0][1]},
				{(nn[0][0] + nn[1][1]) / 2, dn[2][0], dn[2][1], (dn[0][0] - dn[1][1]) / 2, (dn[0][1] + dn[1][0]) / 2},
				{nn[2][2], dn[0][2], dn[1][2]},
				{(dn[0][0] + dn[1][1]) / 2, mean[0], mean[1]},
				{dn[2][2]}, {(dn[1][0] - dn[0][1]) / 2}, {mean[2]},
			}
			for channel := range want {
				for k, x := range want[channel] {
					if got := s.Moments[(p*channels+i*scaleChannels+channel)*momentWidth+k]; math.Abs(got-x) > 1e-12 {
						t.Fatalf("point %d, scale %d, channel %d, component %d: %g, want %g", p, scale, channel, k, got, x)
					}
				}
			}
		}
	}
	s.checkGaugeChange(t, o.Scales)
}

func local(f *r3.Frame, v r3.Vec) [3]float64 { return [3]float64{v.Dot(f.E1), v.Dot(f.E2), v.Dot(f.N)} }

// checkGaugeChange turns all frames and compares with z_n → e^{−ing} z_n.
func (s *Sampling) checkGaugeChange(t *testing.T, scales []int) {
	t.Helper()
	width := MomentChannels(len(scales)) * momentWidth
	turned := *s
	turned.Frames = slices.Clone(s.Frames)
	row := make([]float64, width)
	for p := range s.Count() {
		g := 0.1 + float64(p)
		r3.PutFrame(turned.Frames, p, r3.FrameAt(s.Frames, p).Turned(g))
		var q search
		q.hits = nearestByBruteForce(s, s.Count(), r3.At(s.Positions, p), s.normal(p), sameSheet, p)
		turned.setMoments(row, p, &q, scales)
		for i := 0; i < width; i += momentWidth {
			before := s.Moments[p*width+i:]
			for n := range 3 {
				x, y := before[max(0, 2*n-1)], 0.0
				gotX, gotY := row[i+max(0, 2*n-1)], 0.0
				if n > 0 {
					y, gotY = before[2*n], row[i+2*n]
				}
				sin, cos := math.Sincos(-float64(n) * g)
				if math.Hypot(gotX-(cos*x-sin*y), gotY-(sin*x+cos*y)) > 1e-12 {
					t.Fatalf("point %d, order %d: %g + %gi became %g + %gi at the angle %g", p, n, x, y, gotX, gotY, g)
				}
			}
		}
	}
}

// RelTan over the neighbours of each point, by its definition (§4).
func TestRelTan(t *testing.T) {
	s := sample(t, spikyBall(9), smallOptions(), 2)
	powers := []float64{0.5, 0.7, -1}
	for level := range s.Levels {
		l := &s.Levels[level]
		got := make([]float64, 2*len(powers)*l.Points)
		if err := s.RelTan(level, geometry.RelTanOf(powers...), got); err != nil {
			t.Fatal(err)
		}
		for p := range l.Points {
			ring := l.Within.of(p)
			for i, r := range powers {
				var sum r3.Vec
				lengths := 0.0
				for _, q := range ring {
					d := r3.At(s.Positions, int(q)).Minus(r3.At(s.Positions, p))
					sum = sum.Plus(d.Times(math.Pow(d.Length(), -r)))
					lengths += math.Pow(d.Length(), r-1)
				}
				f := r3.FrameAt(s.Frames, p)
				want := local(&f, sum.Times(lengths*math.Pow(float64(len(ring)), -1.5)))
				row := got[2*(len(powers)*p+i):]
				if math.Hypot(row[0]-want[0], row[1]-want[1]) > 1e-12 {
					t.Fatalf("level %d, point %d, power %g: %v, want %v", level, p, r, row[:2], want[:2])
				}
			}
		}
	}
}

func TestLift(t *testing.T) {
	o := smallOptions()
	for _, m := range withBodies(t, []int{33}, spikyBall(12), twoSheets(30)) {
		s := sample(t, m, o, 2)
		err := m.build(t, geometry.Options{}, 1).Read(func(v *geometry.View) error {
			for p := range v.VertexCount() {
				place := r3.At(v.ScaledPositions(), p).Minus(r3.At(s.Center[:], 0))
				var near []hit
				for _, agreement := range []float64{ownSheet, sameSheet, anyNormal} {
					if near = nearestByBruteForce(s, s.Count(), place, r3.At(v.FrameRows(), 3*p+2), agreement, -1); len(near) > o.LiftNeighbors {
						break
					}
				}
				h2 := near[o.LiftNeighbors].distance
				sum := 0.0
				for _, h := range near[:o.LiftNeighbors] {
					sum += math.Pow(1-h.distance/h2, 2)
				}
				for i := range o.LiftNeighbors {
					at := p*o.LiftNeighbors + i
					if want := math.Pow(1-near[i].distance/h2, 2) / sum; s.Lift.Points[at] != near[i].point || math.Abs(s.Lift.Weights[at]-want) > 1e-9 {
						t.Fatalf("%s: vertex %d hears %g of %d, want %g of %d", m.name, p, s.Lift.Weights[at], s.Lift.Points[at], want, near[i].point)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Points lie evenly: none much nearer to its nearest than the mean, and no
// vertex much farther from all. A disc of a thousand sectors is as even as others.
func TestEvenness(t *testing.T) {
	for _, m := range withBodies(t, []int{0, 99}, spikyBall(15), disc(1000)) {
		s := sample(t, m, smallOptions(), 1)
		near := func(place r3.Vec, except int) float64 {
			return math.Sqrt(nearestByBruteForce(s, s.Count(), place, r3.Vec{}, anyNormal, except)[0].distance)
		}
		least, mean, farthest := math.Inf(1), 0.0, 0.0
		for p := range s.Count() {
			d := near(r3.At(s.Positions, p), p)
			least, mean = min(least, d), mean+d/float64(s.Count())
		}
		unit := math.Ldexp(1, -math.Ilogb(max(slices.Max(m.positions), -slices.Min(m.positions))))
		for p := 0; p < m.vertices(); p += 10 {
			place := r3.At(m.positions, p).Times(unit).Minus(r3.At(s.Center[:], 0))
			farthest = max(farthest, near(place, -1))
		}
		if least < 0.8*mean || farthest > 1.2*mean {
			t.Errorf("%s: the nearest two points have %.2f of the mean distance, and a vertex lies %.2f from all", m.name, least/mean, farthest/mean)
		}
	}
}
