package surface

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"libeman/geometry"
	"libeman/geometry/internal/r3"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
)

// check is what holds of every sampling.
func (s *Sampling) check(t *testing.T, name string, o *Options) {
	t.Helper()
	for what, values := range map[string][]float64{
		"positions": s.Positions, "frames": s.Frames, "moments": s.Moments, "weights": s.Lift.Weights, "centre": s.Center[:],
	} {
		for i, x := range values {
			if x-x != 0 {
				t.Fatalf("%s: value %d of %s is %g", name, i, what, x)
			}
		}
	}
	if s.Count() < 1 || s.Count() > o.Points[0] || len(s.Levels) != len(o.Points) {
		t.Fatalf("%s: %d points in %d levels", name, s.Count(), len(s.Levels))
	}
	for p := range s.Count() {
		if f := r3.FrameAt(s.Frames, p); !f.IsOrthonormal(1e-12) {
			t.Fatalf("%s: the frame of point %d is %v", name, p, f)
		}
	}
	points := s.Count()
	for i := range s.Levels {
		l := &s.Levels[i]
		if l.Points < 1 || l.Points > points {
			t.Fatalf("%s: level %d has %d points, the one before %d", name, i, l.Points, points)
		}
		l.Within.check(t, name, l.Points, l.Points)
		if i > 0 {
			l.Down.check(t, name, l.Points, points)
			l.Up.check(t, name, points, l.Points)
		}
		points = l.Points
	}
	for at := 0; at < len(s.Lift.Weights); at += s.Lift.Count {
		sum := 0.0
		for i, w := range s.Lift.Weights[at : at+s.Lift.Count] {
			if sum += w; w < 0 || s.Lift.Points[at+i] >= int32(s.Count()) {
				t.Fatalf("%s: weight %g of point %d", name, w, s.Lift.Points[at+i])
			}
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Fatalf("%s: the weights of vertex %d add up to %g", name, at/s.Lift.Count, sum)
		}
	}
}

func (e *Edges) check(t *testing.T, name string, points, among int) {
	t.Helper()
	if len(e.Offsets) != points+1 || e.Offsets[points] != int64(len(e.Neighbors)) {
		t.Fatalf("%s: %d offsets of %d points, %d neighbours", name, len(e.Offsets), points, len(e.Neighbors))
	}
	for i, q := range e.Neighbors {
		angle, transport := math.Hypot(e.CosAngle[i], e.SinAngle[i]), math.Hypot(e.CosTransport[i], e.SinTransport[i])
		if q < 0 || int(q) >= among || math.Abs(angle-1) > 1e-12 && angle != 0 || math.Abs(transport-1) > 1e-12 || !(e.Length[i] >= 0) {
			t.Fatalf("%s: edge %d to %d: |e^iθ| = %g, |e^ig| = %g, length %g", name, i, q, angle, transport, e.Length[i])
		}
	}
}

// strip is a line of triangles of the given height.
func strip(count int, height float64) testMesh {
	m := testMesh{name: "strip"}
	for i := range count {
		x := float64(i)
		m.positions = append(m.positions, x, x, 0, x+1, x+1, 0, x+0.4, x+0.4, height)
		m.faces = append(m.faces, int32(3*i), int32(3*i+1), int32(3*i+2))
	}
	return m
}

func flat(n int) testMesh {
	m := testMesh{name: "flat sheet"}
	for i := range n * n {
		m.positions = append(m.positions, float64(i%n), float64(i/n), 0)
	}
	for i := range (n - 1) * (n - 1) {
		a := int32(i/(n-1)*n + i%(n-1))
		m.faces = append(m.faces, a, a+1, a+1+int32(n), a, a+1+int32(n), a+int32(n))
	}
	return m
}

// scatter has count triangles of the given size in a unit cube.
func scatter(count int, size float64) testMesh {
	m := testMesh{name: "many components"}
	random := rand.New(rand.NewPCG(1, 1))
	for i := range count {
		corner := [3]float64{random.Float64(), random.Float64(), random.Float64()}
		for range 3 {
			for k := range 3 {
				m.positions = append(m.positions, corner[k]+size*random.Float64())
			}
		}
		m.faces = append(m.faces, int32(3*i), int32(3*i+1), int32(3*i+2))
	}
	return m
}

func (m testMesh) scaled(factor float64) testMesh {
	positions := slices.Clone(m.positions)
	for i := range positions {
		positions[i] *= factor
	}
	return testMesh{m.name + ", scaled", positions, m.faces}
}

func (m testMesh) with(name string, faces []int32, positions ...float64) testMesh {
	return testMesh{name, append(slices.Clone(m.positions), positions...), append(slices.Clone(m.faces), faces...)}
}

func TestDegenerateMeshes(t *testing.T) {
	triangle := testMesh{"one triangle", []float64{0, 0, 0, 1, 0, 0, 0.3, 0.8, 0}, []int32{0, 1, 2}}
	ball := spikyBall(8)
	for _, c := range []struct {
		mesh   testMesh
		points int // expected
	}{
		{triangle, 300},
		{flat(12), 300},
		{strip(50, 1e-6), 300},
		{strip(50, 0), 300}, // no area
		{testMesh{"one place", make([]float64, 12), []int32{0, 1, 2, 1, 2, 3}}, 1},
		{testMesh{"a point and a triangle", append(make([]float64, 9), triangle.positions...), []int32{0, 1, 2, 3, 4, 5}}, 300},
		{scatter(2000, 1e-3), 300},
		{scatter(40, 1e-9), 300},
		{ball.with("non-manifold", []int32{0, 1, 20, 0, 1, 30, 0, 1, 40}), 300},
		{ball.with("isolated vertices", nil, 0, 0, 9, 5, 5, 5), 300},
		{ball.with("doubled", ball.faces), 300},
		{testMesh{"open", ball.positions, ball.faces[:len(ball.faces)/2]}, 300},
		{ball.scaled(1e30), 300}, {ball.scaled(1e-30), 300}, {triangle.scaled(1e299), 300}, {triangle.scaled(1e-299), 300},
	} {
		o := smallOptions()
		s := sample(t, c.mesh, o, 2)
		s.check(t, c.mesh.name, &o)
		if s.Count() != c.points {
			t.Errorf("%s: %d points, want %d", c.mesh.name, s.Count(), c.points)
		}
	}
}

// A cloud has no more candidates than points: all levels shrink alike.
func TestPointClouds(t *testing.T) {
	ball := spikyBall(4)
	for _, count := range []int{1, 2, 5, ball.vertices()} {
		in := geometry.FromSlices[int32](ball.positions[:3*count], nil)
		in.Frames = func(destination []float64, begin, end int) {
			for p := begin; p < end; p++ {
				n := r3.At(ball.positions, p).Normalised()
				e1 := n.Perpendicular()
				r3.PutFrame(destination, p-begin, r3.Frame{E1: e1, E2: n.Cross(e1), N: n})
			}
		}
		m, err := geometry.New(geometry.Resources{}, in, geometry.Options{Gauge: geometry.CustomGauge}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		o := smallOptions()
		err = m.Read(func(v *geometry.View) error {
			s, err := New(v, o, nil)
			if err != nil {
				return err
			}
			defer s.Free()
			s.check(t, "cloud", &o)
			if want := max(1, int(math.Round(80.0/300*float64(count)))); s.Count() != count || s.Levels[1].Points != want {
				t.Errorf("%d vertices: %d points and %d in the next level, want %d", count, s.Count(), s.Levels[1].Points, want)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestNothingToSample(t *testing.T) {
	for _, m := range []testMesh{{name: "empty"}, {name: "vertices alone", positions: []float64{0, 0, 0, 1, 1, 1}}} {
		err := m.build(t, geometry.Options{}, 1).Read(func(v *geometry.View) error {
			_, err := New(v, DefaultOptions(), nil)
			return err
		})
		if !errors.Is(err, geometry.ErrInvalidMesh) {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

func TestOptions(t *testing.T) {
	change := func(set func(o *Options)) Options {
		o := DefaultOptions()
		set(&o)
		return o
	}
	for i, o := range []Options{
		{},
		change(func(o *Options) { o.Points = nil }),
		change(func(o *Options) { o.Points = []int{100, 200} }),
		change(func(o *Options) { o.Points = []int{0} }),
		change(func(o *Options) { o.Points = make([]int, 17) }),
		change(func(o *Options) { o.Neighbors = 0 }),
		change(func(o *Options) { o.UpNeighbors = -1 }),
		change(func(o *Options) { o.Scales = []int{24, 24} }),
		change(func(o *Options) { o.Scales = []int{1 << 20} }),
		change(func(o *Options) { o.LiftNeighbors = 0 }),
	} {
		if err := o.Check(); !errors.Is(err, geometry.ErrInvalidArgument) {
			t.Errorf("options %d: %v", i, err)
		}
	}
	defaults := DefaultOptions()
	if err := defaults.Check(); err != nil {
		t.Error(err)
	}
}

// FuzzSample samples small meshes of any kind: few places, far apart and close
// together, any faces. A sampling in order, or an error.
func FuzzSample(f *testing.F) {
	random := rand.New(rand.NewPCG(7, 7))
	for choice := range 200 {
		places := 1 + random.IntN(10)
		coordinates, indices := make([]byte, 3*(3+random.IntN(8))), make([]byte, 3*(1+random.IntN(8)))
		for i := range coordinates {
			coordinates[i] = byte(random.IntN(places))
		}
		for i := range indices {
			indices[i] = byte(random.IntN(len(coordinates) / 3))
		}
		f.Add(coordinates, indices, uint8(choice%2))
	}
	places := []float64{0, 1, -1, 0.5, 1e-9, 1e-17, 1e-160, 1e9, 1 + 1e-15, -3, 1e299, -1e-300}
	o := Options{Points: []int{40, 12}, Neighbors: 6, UpNeighbors: 3, Scales: []int{5, 40}, LiftNeighbors: 4}
	f.Fuzz(func(t *testing.T, coordinates, indices []byte, seed uint8) {
		m := testMesh{name: "arbitrary"}
		for _, b := range coordinates[:min(len(coordinates), 150)/3*3] {
			m.positions = append(m.positions, places[int(b)%len(places)])
		}
		if m.vertices() == 0 {
			return
		}
		for _, b := range indices[:min(len(indices), 150)/3*3] {
			m.faces = append(m.faces, int32(int(b)%m.vertices()))
		}
		o := o
		o.Seed = uint64(seed)
		err := m.build(t, geometry.Options{DropDegenerate: true}, 1).Read(func(v *geometry.View) error {
			s, err := New(v, o, nil)
			if err != nil {
				return err
			}
			defer s.Free()
			s.check(t, m.name, &o)
			return nil
		})
		if err != nil && !errors.Is(err, geometry.ErrInvalidMesh) {
			t.Error(err)
		}
	})
}

// Far more components than points, each far smaller than the spacing of these.
func TestManyComponents(t *testing.T) {
	o := DefaultOptions()
	s := sample(t, scatter(100_000, 1e-4), o, 2)
	s.check(t, "many components", &o)
	if s.Count() != o.Points[0] {
		t.Errorf("%d points", s.Count())
	}
}

// A random sampling depends on its seed, and lies on the surface as well.
func TestRandomSampling(t *testing.T) {
	m := spikyBall(5)
	o := smallOptions()
	canonical := sample(t, m, o, 1)
	o.Seed = 1
	one, again := sample(t, m, o, 1), sample(t, m, o, 3)
	o.Seed = 2
	two := sample(t, m, o, 1)
	if !slices.Equal(one.Positions, again.Positions) || slices.Equal(one.Positions, two.Positions) || slices.Equal(one.Positions, canonical.Positions) {
		t.Error("the seed does not tell the sampling")
	}
	for _, s := range []*Sampling{canonical, one, two} {
		s.check(t, m.name, &o)
		for p := range s.Count() {
			if d := m.distance(r3.At(s.Positions, p).Plus(r3.At(s.Center[:], 0))); d > 1e-12 {
				t.Fatalf("seed %d: point %d is %g off the surface", o.Seed, p, d)
			}
		}
	}
}

// distance is that of a place to the nearest face, taken to project inside it.
func (m testMesh) distance(p r3.Vec) float64 {
	nearest := math.Inf(1)
	for f := 0; f < len(m.faces); f += 3 {
		a := r3.At(m.positions, int(m.faces[f]))
		u, v := r3.At(m.positions, int(m.faces[f+1])).Minus(a), r3.At(m.positions, int(m.faces[f+2])).Minus(a)
		n := u.Cross(v)
		d := p.Minus(a)
		x, y := d.Cross(v).Dot(n)/n.Squared(), u.Cross(d).Dot(n)/n.Squared()
		if x >= -1e-9 && y >= -1e-9 && x+y <= 1+1e-9 {
			nearest = min(nearest, math.Abs(d.Dot(n))/n.Length())
		}
	}
	return nearest
}

func TestCancelAndProgress(t *testing.T) {
	m := spikyBall(30).build(t, geometry.Options{}, 2)
	polls := 0
	last := 0.0
	err := m.Read(func(v *geometry.View) error {
		s, err := New(v, smallOptions(), &parallel.Control{Progress: func(fraction float64) bool {
			if fraction < last {
				t.Errorf("progress fell from %g to %g", last, fraction)
			}
			last = fraction
			polls++
			return true
		}})
		if err == nil {
			s.Free()
		}
		return err
	})
	if err != nil || last != 1 {
		t.Fatalf("last progress %g, %v", last, err)
	}
	budget := memory.NewBudget(0, nil)
	shape := spikyBall(30)
	counted, err := geometry.New(geometry.Resources{Memory: budget}, geometry.FromSlices(shape.positions, shape.faces), geometry.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer counted.Close()
	before, _, _ := budget.Usage()
	for stop := 0; stop < polls; stop += 5 {
		n := 0
		err := counted.Read(func(v *geometry.View) error {
			_, err := New(v, smallOptions(), &parallel.Control{Progress: func(float64) bool { n++; return n <= stop }})
			return err
		})
		if used, _, _ := budget.Usage(); !errors.Is(err, parallel.ErrCancelled) || used != before {
			t.Fatalf("stopped at report %d: %v, %d bytes are left", stop, err, used-before)
		}
	}
}

// Every refusal of memory is an error that leaves nothing behind.
func TestLittleMemory(t *testing.T) {
	shape := spikyBall(10)
	refusals := 0
	for limit := int64(1 << 10); ; limit += limit / 8 {
		b := memory.NewBudget(limit, nil)
		m, err := geometry.New(geometry.Resources{Memory: b}, geometry.FromSlices(shape.positions, shape.faces), geometry.Options{}, nil)
		if err != nil {
			continue
		}
		before, _, _ := b.Usage()
		err = m.Read(func(v *geometry.View) error {
			s, err := New(v, smallOptions(), nil)
			if err == nil {
				s.Free()
			}
			return err
		})
		after, _, _ := b.Usage()
		m.Close()
		if after != before {
			t.Fatalf("limit %d: %d bytes are left", limit, after-before)
		}
		if err == nil {
			break
		}
		if refusals++; !errors.Is(err, memory.ErrOutOfMemory) {
			t.Fatal(err)
		}
	}
	if refusals < 5 {
		t.Errorf("%d refusals", refusals)
	}
}
