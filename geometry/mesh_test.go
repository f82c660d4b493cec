package geometry

import (
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	gonum "gonum.org/v1/gonum/spatial/r3"

	"libeman/geometry/internal/r3"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
)

func checkArgumentError(t *testing.T, err error, text string) {
	t.Helper()
	if !errors.Is(err, ErrInvalidArgument) || !strings.Contains(err.Error(), text) {
		t.Errorf("error %q, want an invalid argument with %q", err, text)
	}
}

// The angles against their definitions, with explicit rotations and atan2.
func TestAnglesAgainstDefinitions(t *testing.T) {
	for _, shape := range smallMeshes() {
		for _, options := range []Options{{}, {Normals: AngleNormals}, {Gauge: RandomGauge, Seed: 4}} {
			m := shape.build(t, options, 2)
			frames, theta, transport := framesOf(t, m), edgeAngles(t, m), transportAngles(t, m)
			r := func(row int) gonum.Vec { v := r3.At(frames, row); return gonum.Vec{X: v.X, Y: v.Y, Z: v.Z} }
			e := 0
			for p := range shape.vertices() {
				e1, e2, n := r(3*p), r(3*p+1), r(3*p+2)
				for _, q := range neighborsOf(t, m, p) {
					dv := r3.At(shape.positions, int(q)).Minus(r3.At(shape.positions, p))
					d := gonum.Vec{X: dv.X, Y: dv.Y, Z: dv.Z}
					want := math.Atan2(gonum.Dot(e2, d), gonum.Dot(e1, d))
					if x := math.Remainder(theta[e]-want, 2*math.Pi); math.Abs(x) > 1e-12 {
						t.Fatalf("%s: θ of %d→%d is %g, want %g", shape.name, p, q, theta[e], want)
					}
					f1, nq := r(3*int(q)), r(3*int(q)+2)
					axis := gonum.Cross(nq, n)
					moved := f1
					if gonum.Norm(axis) > 0 {
						moved = gonum.NewRotation(math.Atan2(gonum.Norm(axis), gonum.Dot(nq, n)), axis).Rotate(f1)
					}
					want = math.Atan2(gonum.Dot(moved, e2), gonum.Dot(moved, e1))
					if x := math.Remainder(transport[e]-want, 2*math.Pi); math.Abs(x) > 1e-12 {
						t.Fatalf("%s: g of %d→%d is %g, want %g", shape.name, q, p, transport[e], want)
					}
					e++
				}
			}
		}
	}
}

// RelTan against its formula (§4) term by term.
func TestRelTanAgainstItsFormula(t *testing.T) {
	powers := []float64{-3, -2, 0, 0.5, 0.7, 1, 2, 3}
	for _, shape := range smallMeshes() {
		m := shape.build(t, Options{}, 2)
		frames := framesOf(t, m)
		want := make([]float64, 3*len(powers)*shape.vertices())
		for p := range shape.vertices() {
			ring := neighborsOf(t, m, p)
			for i, r := range powers {
				var sum r3.Vec
				lengths := 0.0
				for _, q := range ring {
					d := r3.At(shape.positions, int(q)).Minus(r3.At(shape.positions, p))
					sum = sum.Plus(d.Times(math.Pow(d.Length(), -r)))
					lengths += math.Pow(d.Length(), r-1)
				}
				v := sum.Times(lengths * math.Pow(float64(len(ring)), -1.5)).Without(r3.At(frames, 3*p+2))
				r3.Put(want, p*len(powers)+i, v)
			}
		}
		got := relTan(t, m, AmbientSpace, powers...)
		for i := range powers { // each power on its own scale
			column := func(x []float64) (c []float64) {
				for p := range shape.vertices() {
					c = append(c, x[3*(p*len(powers)+i):][:3]...)
				}
				return c
			}
			if d := largestDifference(t, column(got), column(want)); d > 1e-12 {
				t.Errorf("%s: power %g differs by %g", shape.name, powers[i], d)
			}
		}
	}
}

func TestRelTanOptions(t *testing.T) {
	shape := sphere(3, 0.2, 1)
	m := shape.build(t, Options{}, 1)
	plain := relTan(t, m, TangentSpace, 0.7)
	scaled := make([]float64, len(plain))
	err := m.Read(func(v *View) error {
		return v.RelTan(RelTanOptions{Powers: []float64{0.7}, DegreePower: 1, Constant: 2}, WriteSlice(scaled, 2), nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range plain {
		degree := float64(len(neighborsOf(t, m, i/2)))
		if want := plain[i] * math.Sqrt(degree) / 2; math.Abs(scaled[i]-want) > 1e-14 {
			t.Fatalf("value %d is %g, want %g", i, scaled[i], want)
		}
	}
	for text, change := range map[string]func(o *RelTanOptions){
		"powers: 0 powers": func(o *RelTanOptions) { o.Powers = nil },
		"power 1 is NaN":   func(o *RelTanOptions) { o.Powers = []float64{1, math.NaN()} },
		"power 0 is +Inf":  func(o *RelTanOptions) { o.Powers = []float64{math.Inf(1)} },
		"powers: 65":       func(o *RelTanOptions) { o.Powers = make([]float64, 65) },
		"space":            func(o *RelTanOptions) { o.Space = 7 },
		"degree_power":     func(o *RelTanOptions) { o.DegreePower = math.NaN() },
		"constant: 0":      func(o *RelTanOptions) { o.Constant = 0 },
		"constant: +Inf":   func(o *RelTanOptions) { o.Constant = math.Inf(1) },
	} {
		o := RelTanOf(0.5)
		change(&o)
		err := m.Read(func(v *View) error { return v.RelTan(o, WriteSlice(nil, 0), nil) })
		checkArgumentError(t, err, text)
	}
}

func TestGET(t *testing.T) {
	shape := sphere(4, 0.2, 3)
	m := shape.build(t, Options{}, 1)
	frames, got := framesOf(t, m), getFeatures(t, m)
	for p := range shape.vertices() {
		position := r3.At(shape.positions, p)
		want := r3.Vec{X: position.Dot(r3.At(frames, 3*p+2)), Y: position.Dot(r3.At(frames, 3*p)), Z: position.Dot(r3.At(frames, 3*p+1))}
		if r3.At(got, p).Minus(want).MaxAbs() > 1e-15 {
			t.Fatalf("vertex %d: %v, want %v", p, r3.At(got, p), want)
		}
	}
}

func TestFramesAreOrthonormalAndOutward(t *testing.T) {
	for _, options := range []Options{{}, {Normals: AngleNormals}, {Gauge: RandomGauge}} {
		shape := sphere(7, 0.4, 5)
		frames := framesOf(t, shape.build(t, options, 2))
		for p := range shape.vertices() {
			f := r3.FrameAt(frames, p)
			for _, x := range []float64{f.E1.Squared() - 1, f.E2.Squared() - 1, f.N.Squared() - 1, f.E1.Dot(f.E2), f.E1.Dot(f.N), f.E2.Dot(f.N), f.E1.Cross(f.E2).Dot(f.N) - 1} {
				if math.Abs(x) > 2e-15 {
					t.Fatalf("frame %d is orthonormal to %g only", p, x)
				}
			}
			if f.N.Dot(r3.At(shape.positions, p)) < 0.5 {
				t.Fatalf("normal %d points inwards", p)
			}
		}
	}
}

func TestSameBitsForAnyNumberOfThreads(t *testing.T) {
	shape := sphere(40, 0.4, 1) // 6400 vertices: several blocks
	results := func(threads int) (all []float64) {
		m := shape.build(t, Options{}, threads)
		all = append(all, relTan(t, m, AmbientSpace, testPowers...)...)
		all = append(all, framesOf(t, m)...)
		all = append(all, edgeAngles(t, m)...)
		return append(all, transportAngles(t, m)...)
	}
	want := results(1)
	for _, threads := range []int{2, 3, 7} {
		if !slices.Equal(results(threads), want) {
			t.Errorf("%d threads give other bits", threads)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	shape := sphere(10, 0.3, 1)
	m := shape.build(t, Options{}, 2)
	want := relTan(t, m, TangentSpace, 0.7)
	doubled := make([]float64, len(shape.positions))
	for i, x := range shape.positions {
		doubled[i] = 2 * x
	}
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 20 {
				if worker == 0 {
					positions := shape.positions
					if i%2 == 0 {
						positions = doubled
					}
					if err := m.Update(ReadSlice(positions, 3), nil, nil); err != nil {
						t.Error(err)
					}
				}
				if !slices.Equal(relTan(t, m, TangentSpace, 0.7), want) {
					t.Error("other bits while the mesh is scaled by two")
				}
			}
		})
	}
	group.Wait()
}

func TestUpdateEqualsBuildingAnew(t *testing.T) {
	shape, other := sphere(6, 0.1, 1), sphere(6, 0.5, 2)
	if !slices.Equal(shape.faces, other.faces) {
		t.Fatal("the shapes differ in topology, so the test proves nothing")
	}
	for _, options := range []Options{{}, {Normals: AngleNormals}, {Gauge: RandomGauge, Seed: 2}} {
		m, fresh := shape.build(t, options, 2), other.build(t, options, 2)
		for range 2 { // there, back (checked by the second round) and there again
			if err := m.Update(ReadSlice(other.positions, 3), nil, nil); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(framesOf(t, m), framesOf(t, fresh)) || !slices.Equal(relTan(t, m, TangentSpace, 0.7), relTan(t, fresh, TangentSpace, 0.7)) {
				t.Error("an updated mesh differs from a new one")
			}
			if err := m.Update(ReadSlice(shape.positions, 3), nil, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestUpdateOfCustomFrames(t *testing.T) {
	shape := sphere(3, 0.2, 1)
	m := shape.build(t, Options{}, 1)
	checkArgumentError(t, m.Update(ReadSlice(shape.positions, 3), ReadSlice(framesOf(t, m), 9), nil), "frames")
	custom, err := m.ChangeGauge(make([]float64, shape.vertices()), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(custom.Close)
	checkArgumentError(t, custom.Update(ReadSlice(shape.positions, 3), nil, nil), "frames")
	frames := framesOf(t, custom)
	frames[9*5] = math.NaN()
	err = custom.Update(ReadSlice(shape.positions, 3), ReadSlice(frames, 9), nil)
	if !errors.Is(err, ErrInvalidMesh) || !strings.HasPrefix(err.Error(), "vertex 5: ") {
		t.Errorf("%v", err)
	}
	turned := shape.build(t, Options{Gauge: RandomGauge}, 1)
	if err := custom.Update(ReadSlice(shape.positions, 3), ReadSlice(framesOf(t, turned), 9), nil); err != nil {
		t.Fatal(err)
	}
	if d := largestDifference(t, framesOf(t, custom), framesOf(t, turned)); d > 1e-15 {
		t.Errorf("frames differ by %g", d)
	}
}

func TestFailedUpdateChangesNothing(t *testing.T) {
	shape := sphere(6, 0.3, 1)
	m := shape.build(t, Options{}, 2)
	want := relTan(t, m, TangentSpace, 0.7)
	bad := slices.Clone(shape.positions)
	bad[3*17+1] = math.Inf(-1)
	err := m.Update(ReadSlice(bad, 3), nil, nil)
	if !errors.Is(err, ErrInvalidMesh) || err.Error() != "vertex 17: coordinate y is -Inf" {
		t.Errorf("%v", err)
	}
	if !slices.Equal(relTan(t, m, TangentSpace, 0.7), want) {
		t.Error("the mesh changed")
	}
}

// An update that makes vertices coincide needs new memory for the edges; where
// there is none the mesh stays as it was.
func TestUpdateWithoutMemoryChangesNothing(t *testing.T) {
	shape := sphere(6, 0.3, 1)
	budget := memory.NewBudget(400_000, nil)
	m, err := New(Resources{Memory: budget}, FromSlices(shape.positions, shape.faces), Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.Update(ReadSlice(shape.positions, 3), nil, nil); err != nil { // takes the spare positions
		t.Fatal(err)
	}
	want := relTan(t, m, TangentSpace, 0.7)
	ballast := budget.NewArena("ballast")
	defer ballast.Free()
	used, _, limit := budget.Usage()
	if _, err := memory.Make[uint8](ballast, limit-used-1000); err != nil {
		t.Fatal(err)
	}
	folded := slices.Clone(shape.positions)
	q := neighborsOf(t, m, 0)[0]
	copy(folded[3*q:3*q+3], folded[:3])
	if err := m.Update(ReadSlice(folded, 3), nil, nil); !errors.Is(err, memory.ErrOutOfMemory) {
		t.Fatalf("%v", err)
	}
	if !slices.Equal(framesOf(t, m), framesOf(t, shape.build(t, Options{}, 1))) {
		t.Error("frames changed")
	}
	ballast.Free()
	if !slices.Equal(relTan(t, m, TangentSpace, 0.7), want) {
		t.Error("features changed")
	}
}

func TestInvalidInput(t *testing.T) {
	positions := []float64{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1}
	with := func(i int, x float64) []float64 {
		p := slices.Clone(positions)
		p[i] = x
		return p
	}
	for _, c := range []struct {
		name      string
		positions []float64
		faces     []int64
		want      string
	}{
		{"negative index", positions, []int64{0, 1, 2, 0, -1, 2}, "face 1: vertex index -1 is out of range [0, 4)"},
		{"index V", positions, []int64{0, 1, 2, 1, 2, 4}, "face 1: vertex index 4 is out of range [0, 4)"},
		{"index 2^31", positions, []int64{0, 1, 1 << 31}, "face 0: vertex index 2147483648 is out of range [0, 4)"},
		{"index 2^32", positions, []int64{0, 1, 1 << 32}, "face 0: vertex index 4294967296 is out of range [0, 4)"},
		{"largest index", positions, []int64{0, math.MaxInt64, 1}, "face 0: vertex index 9223372036854775807 is out of range [0, 4)"},
		{"repeated index", positions, []int64{0, 1, 2, 3, 2, 3}, "face 1: vertex 3 is named twice (3, 2, 3)"},
		{"NaN", with(7, math.NaN()), []int64{0, 1, 2}, "vertex 2: coordinate y is NaN"},
		{"infinite", with(11, math.Inf(1)), []int64{0, 1, 2}, "vertex 3: coordinate z is +Inf"},
		{"huge", with(0, 1e301), []int64{0, 1, 2}, "vertex 0: coordinate x is 1e+301, beyond 1e+300"},
	} {
		_, err := New(Resources{}, FromSlices(c.positions, c.faces), Options{}, nil)
		if !errors.Is(err, ErrInvalidMesh) || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	in := FromSlices(positions, []int32{0, 1, 2})
	for text, change := range map[string]func(in *Input, o *Options){
		"vertices: ":      func(in *Input, _ *Options) { in.VertexCount = -1 },
		"faces: ":         func(in *Input, _ *Options) { in.FaceCount = -1 },
		"gauge: ":         func(_ *Input, o *Options) { o.Gauge = 9 },
		"normals: ":       func(_ *Input, o *Options) { o.Normals = -1 },
		"frames: the cus": func(_ *Input, o *Options) { o.Gauge = CustomGauge },
		"frames: frames ": func(in *Input, _ *Options) { in.Frames = in.Positions },
	} {
		changed, options := in, Options{}
		change(&changed, &options)
		_, err := New(Resources{}, changed, options, nil)
		checkArgumentError(t, err, text)
	}
	in.VertexCount = math.MaxInt32 + 1
	if _, err := New(Resources{}, in, Options{}, nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("2^31 vertices: %v", err)
	}
	in.VertexCount, in.FaceCount = 4, maxFaces+1
	if _, err := New(Resources{}, in, Options{}, nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too many faces: %v", err)
	}
}

func TestMemoryLimitAndCancellation(t *testing.T) {
	shape := sphere(30, 0.3, 1)
	in := FromSlices(shape.positions, shape.faces)
	// Every limit up to what is needed is refused and leaves nothing behind.
	needed := func() int64 {
		budget := memory.NewBudget(0, nil)
		m, err := New(Resources{Memory: budget}, in, Options{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		m.Close()
		_, peak, _ := budget.Usage()
		return peak
	}()
	for limit := int64(1); limit < needed; limit += needed / 50 {
		budget := memory.NewBudget(limit, nil)
		if _, err := New(Resources{Memory: budget}, in, Options{}, nil); !errors.Is(err, memory.ErrOutOfMemory) {
			t.Fatalf("limit %d of %d: %v", limit, needed, err)
		}
		if used, _, _ := budget.Usage(); used != 0 {
			t.Fatalf("limit %d: %d bytes are still in use", limit, used)
		}
	}
	// Cancelled at every poll in turn.
	for stopAt := 1; ; stopAt++ {
		budget := memory.NewBudget(0, nil)
		polls := 0
		control := &parallel.Control{Cancelled: func() bool { polls++; return polls >= stopAt }}
		m, err := New(Resources{Memory: budget}, in, Options{}, control)
		if err == nil {
			m.Close()
			if stopAt < 20 {
				t.Errorf("a mesh of %d vertices polls its control %d times only", shape.vertices(), stopAt-1)
			}
			break
		}
		if used, _, _ := budget.Usage(); used != 0 || !errors.Is(err, parallel.ErrCancelled) {
			t.Fatalf("cancelled at poll %d: %v, %d bytes in use", stopAt, err, used)
		}
	}
	last := 0.0
	control := &parallel.Control{Progress: func(f float64) bool {
		if f < last || f > 1 {
			t.Errorf("progress from %g to %g", last, f)
		}
		last = f
		return true
	}}
	m, err := New(Resources{}, in, Options{}, control)
	if err != nil || last != 1 {
		t.Fatalf("%v, last progress %g", err, last)
	}
	m.Close()
}

func TestNothingIsKeptAfterClose(t *testing.T) {
	shape := sphere(8, 0.3, 1)
	budget := memory.NewBudget(0, nil)
	m, err := New(Resources{Memory: budget}, FromSlices(shape.positions, shape.faces), Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := m.ChangeGauge(make([]float64, shape.vertices()), nil)
	if err != nil {
		t.Fatal(err)
	}
	relTan(t, m, TangentSpace, 0.5)
	report, err := m.Examine(nil)
	if err != nil {
		t.Fatal(err)
	}
	report.Close()
	m.Close()
	relTan(t, changed, TangentSpace, 0.5) // the topology that they share is still there
	changed.Close()
	if usage := budget.UsageByPurpose(); len(usage) != 0 {
		t.Errorf("still in use: %v", usage)
	}
}
