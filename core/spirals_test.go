package core

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"libeman/geometry/parallel"
)

// hexagons is a patch of the regular triangulation: vertex 0 in the middle, 1
// to 6 around it counter-clockwise, 7 to 18 around these, all faces counter-
// clockwise.
func hexagons() (faces []int32, positions []float64) {
	at := func(x, y float64) { positions = append(positions, x, y, 0) }
	at(0, 0)
	corner := func(k int, radius float64) (x, y float64) {
		sin, cos := math.Sincos(float64(k) * math.Pi / 3)
		return radius * cos, radius * sin
	}
	for k := range 6 {
		at(corner(k, 1))
	}
	for k := range 6 {
		x, y := corner(k, 2)
		nextX, nextY := corner(k+1, 2)
		at(x, y)
		at((x+nextX)/2, (y+nextY)/2)
	}
	inner := func(k int) int32 { return int32(1 + k%6) }
	outer := func(k int) int32 { return int32(7 + (k+12)%12) }
	for k := range 6 {
		faces = append(faces, 0, inner(k), inner(k+1))
		faces = append(faces, inner(k), outer(2*k), outer(2*k+1))
		faces = append(faces, inner(k), outer(2*k+1), inner(k+1))
		faces = append(faces, inner(k), outer(2*k-1), outer(2*k))
	}
	return faces, positions
}

func spiralsOf(t *testing.T, faces []int32, positions []float64, length int, start SpiralStart) *Spirals {
	t.Helper()
	s, err := NewSpirals(parallel.New(2), nil, faces, positions, length, start)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSpiralsRunCounterClockwise(t *testing.T) {
	faces, positions := hexagons()
	byIndex := spiralsOf(t, faces, positions, 12, SpiralStartIndex)
	// Behind vertex 6, the last of the first ring, vertex 1 comes next: its
	// outer neighbours from 18 on.
	if got, want := byIndex.of(0), []int32{0, 1, 2, 3, 4, 5, 6, 18, 7, 8, 9, 10}; !slices.Equal(got, want) {
		t.Errorf("by index: %v, not %v", got, want)
	}
	positions[3*4] *= 0.9 // vertex 4 becomes the nearest of vertex 0
	byDistance := spiralsOf(t, faces, positions, 9, SpiralStartDistance)
	if got, want := byDistance.of(0), []int32{0, 4, 5, 6, 1, 2, 3, 12, 13}; !slices.Equal(got, want) {
		t.Errorf("by distance: %v, not %v", got, want)
	}
	// On the boundary the fan is open, 8, 1, 18 around 7; behind its end comes
	// its beginning.
	if got, want := byIndex.of(7)[:4], []int32{7, 1, 18, 8}; !slices.Equal(got, want) {
		t.Errorf("on the boundary: %v, not %v", got, want)
	}
}

// By distance, a spiral does not depend on the numbers of the vertices.
func TestSpiralsByDistanceFollowAPermutation(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 14))
	faces, positions := hexagons()
	for i := range positions {
		positions[i] += 0.1 * random.Float64()
	}
	vertices := len(positions) / 3
	number := random.Perm(vertices) // old → new
	moved := make([]float64, len(positions))
	for p, q := range number {
		copy(moved[3*q:], positions[3*p:3*p+3])
	}
	renamed := make([]int32, len(faces))
	for i, p := range faces {
		renamed[i] = int32(number[p])
	}
	for _, length := range []int{1, 5, 10, 19, 25} {
		before := spiralsOf(t, faces, positions, length, SpiralStartDistance)
		after := spiralsOf(t, renamed, moved, length, SpiralStartDistance)
		for p := range vertices {
			want := make([]int32, length)
			for i, q := range before.of(p) {
				want[i] = int32(number[q])
			}
			if got := after.of(number[p]); !slices.Equal(got, want) {
				t.Fatalf("length %d, vertex %d: %v, not %v", length, p, got, want)
			}
		}
	}
}

func TestShortSpiralsArePaddedWithTheNearest(t *testing.T) {
	// Two triangles that do not touch, and a vertex without faces.
	faces := []int32{0, 1, 2, 3, 4, 5}
	positions := []float64{0, 0, 0, 1, 0, 0, 0, 1, 0, 5, 0, 0, 6, 0, 0, 5, 1, 0, 9, 9, 9}
	s := spiralsOf(t, faces, positions, 9, SpiralStartIndex)
	for p, want := range [][]int32{
		{0, 1, 2, 3, 5, 4, 6, 0, 0}, // the nearest by distance; then the vertex itself
		{1, 0, 2, 3, 5, 4, 6, 1, 1},
	} {
		if got := s.of(p); !slices.Equal(got, want) {
			t.Errorf("vertex %d: %v, not %v", p, got, want)
		}
	}
	if got := s.of(6)[:2]; got[0] != 6 || got[1] != 5 {
		t.Errorf("the vertex without faces: %v", s.of(6))
	}
}

func TestNearestAgainstAllVertices(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 16))
	positions := randomNumbers(random, 3*400)
	copy(positions[30:60], positions[:30]) // ten vertices twice
	search := newNearest(positions)
	for p := range int32(400) {
		all := &query{nearest: search, p: p}
		want := make([]int32, 400)
		for i := range want {
			want[i] = int32(i)
		}
		slices.SortFunc(want, all.compare)
		if got := search.of(p, 12); !slices.Equal(got, want[:12]) {
			t.Fatalf("vertex %d: %v, not %v", p, got, want[:12])
		}
	}
}

// Vertices that coincide have no distance to tell them apart: a search that
// looked at all of them took minutes here.
func TestNearestOfCoincidentVertices(t *testing.T) {
	const vertices = 100000
	positions := make([]float64, 3*vertices)
	for p := vertices / 2; p < vertices; p++ { // two clusters
		copy(positions[3*p:], []float64{1, 1, 0})
	}
	positions[0] = 3 // alone, and nearer to the second
	search := newNearest(positions)
	for p := range int32(vertices) {
		want := []int32{1, 2, 3, 4}
		if p >= vertices/2 || p == 0 {
			want = []int32{vertices / 2, vertices/2 + 1, vertices/2 + 2, vertices/2 + 3}
		}
		if p == 0 {
			want = append([]int32{0}, want[:3]...)
		}
		if got := search.of(p, 4); !slices.Equal(got, want) {
			t.Fatalf("vertex %d: %v, not %v", p, got, want)
		}
	}
}

func TestSpiralsObeyTheControl(t *testing.T) {
	faces, positions := hexagons()
	looks := 0
	control := &parallel.Control{Cancelled: func() bool { looks++; return looks > 1 }}
	if _, err := NewSpirals(nil, control, faces, positions, 5, SpiralStartIndex); !errors.Is(err, parallel.ErrCancelled) || looks != 2 {
		t.Errorf("%v after %d looks", err, looks)
	}
	last := 0.0
	control = &parallel.Control{Progress: func(fraction float64) bool {
		if fraction < last {
			t.Errorf("progress %g after %g", fraction, last)
		}
		last = fraction
		return true
	}}
	if _, err := NewSpirals(nil, control, faces, positions, 5, SpiralStartIndex); err != nil || last != 1 {
		t.Errorf("%v, progress %g", err, last)
	}
}

func TestSpiralsOfBadMeshes(t *testing.T) {
	good := make([]float64, 9)
	for name, c := range map[string]struct {
		faces     []int32
		positions []float64
		length    int
		start     SpiralStart
	}{
		"faces: face 0":        {[]int32{0, 1, 3}, good, 5, SpiralStartIndex},
		"positions: vertex 1":  {[]int32{0, 1, 2}, []float64{0, 0, 0, math.NaN(), 0, 0, 0, 0, 0}, 5, SpiralStartIndex},
		"length: 0":            {[]int32{0, 1, 2}, good, 0, SpiralStartIndex},
		"start: \"elsewhere\"": {[]int32{0, 1, 2}, good, 5, "elsewhere"},
	} {
		_, err := NewSpirals(nil, nil, c.faces, c.positions, c.length, c.start)
		if !errors.Is(err, ErrInvalidArgument) || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%q: %v", name, err)
		}
	}
	// Faces of every orientation, twice the same, with a corner twice: no rule
	// but that each spiral begins with its vertex and holds vertices.
	messy := []int32{0, 1, 2, 0, 2, 1, 0, 1, 2, 0, 0, 1, 2, 1, 3, 1, 2, 3, 3, 2, 1}
	s := spiralsOf(t, messy, make([]float64, 15), 7, SpiralStartIndex)
	for p := range s.vertices() {
		if row := s.of(p); row[0] != int32(p) || slices.Max(row) > 4 || slices.Min(row) < 0 {
			t.Errorf("vertex %d: %v", p, row)
		}
	}
}

// SpiralNet++ written out: dense layers over the concatenated spirals.
func TestSpiralNetAgainstItsFormula(t *testing.T) {
	faces, positions := hexagons()
	spec, _ := NewSpec(PresetPaper, KindSpiral)
	spec.Classes, spec.Width, spec.Hidden, spec.Blocks = 5, 4, 6, 2
	m, err := NewModel[float64](spec, 5)
	if err != nil {
		t.Fatal(err)
	}
	spirals := spiralsOf(t, faces, positions, spec.SpiralLength, SpiralStartIndex)
	vertices := spirals.vertices()
	offsets := make([]int64, vertices+1)
	graph, err := NewGraph[float64](newTestRunner[float64](1).budget, offsets, nil, nil, EdgeGeometry{})
	if err != nil {
		t.Fatal(err)
	}
	got := logitsOf(t, m, &Input[float64]{Graph: graph, Features: positions, Spirals: spirals})

	elu := func(x float64) float64 {
		if x > 0 {
			return x
		}
		return math.Exp(x) - 1
	}
	dense := func(name string, x []float64, f func(float64) float64) (y []float64) {
		weight := m.parameter(name + ".weight")
		for o, bias := range m.parameter(name + ".bias") {
			for i, value := range x {
				bias += weight[o*len(x)+i] * value
			}
			y = append(y, f(bias))
		}
		return y
	}
	layer := func(name string, x [][]float64, length int) (y [][]float64) {
		for p := range x {
			var row []float64
			for _, q := range spirals.of(p)[:length] {
				row = append(row, x[q]...)
			}
			y = append(y, dense(name, row, elu))
		}
		return y
	}
	var x [][]float64
	for p := range vertices {
		x = append(x, positions[3*p:3*p+3])
	}
	x = layer("input", x, 1)
	x = layer("spirals.0", x, spec.SpiralLength)
	x = layer("spirals.1", x, spec.SpiralLength)
	x = layer("dense1", x, 1)
	var want []float64
	for _, row := range x {
		logits := dense("dense2", row, func(x float64) float64 { return x })
		total := 0.0
		for _, value := range logits {
			total += math.Exp(value)
		}
		for _, value := range logits {
			want = append(want, value-math.Log(total))
		}
	}
	if e := largestDifference(t, got, want); e > 1e-12 {
		t.Errorf("off by %g", e)
	}
}

// Spirals of arbitrary faces: each begins with its vertex and names vertices of
// the mesh, none twice before the end of those that there are; the same on any
// number of threads.
func FuzzSpirals(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 1, 0}, []byte{0, 1, 2}, uint16(5))
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1}, []byte{0, 1, 2, 2, 1, 3, 0, 0, 1}, uint16(264))
	f.Add([]byte{7, 7, 7, 7, 7, 7, 7, 7, 7}, []byte{0, 1, 2, 0, 2, 1, 1, 1, 1}, uint16(3))
	f.Fuzz(func(t *testing.T, coordinates, indices []byte, choice uint16) {
		coordinates, indices = coordinates[:min(len(coordinates), 300)/3*3], indices[:min(len(indices), 300)/3*3]
		var positions []float64
		for _, b := range coordinates {
			positions = append(positions, float64(int8(b)))
		}
		var faces []int32
		for _, b := range indices {
			faces = append(faces, int32(int8(b)))
		}
		length, start := int(choice&255), []SpiralStart{SpiralStartIndex, SpiralStartDistance}[choice>>8&1]
		spirals, err := NewSpirals(parallel.New(1), nil, faces, positions, length, start)
		if err != nil {
			if !errors.Is(err, ErrInvalidArgument) {
				t.Fatal(err)
			}
			return
		}
		vertices := len(positions) / 3
		for p := range vertices {
			spiral := spirals.of(p)
			distinct := map[int32]bool{}
			for _, q := range spiral {
				if q < 0 || int(q) >= vertices {
					t.Fatalf("vertex %d: %v", p, spiral)
				}
				distinct[q] = true
			}
			if spiral[0] != int32(p) || len(distinct) != min(length, vertices) {
				t.Fatalf("vertex %d of %d: %v", p, vertices, spiral)
			}
		}
		again, err := NewSpirals(parallel.New(3), nil, faces, positions, length, start)
		if err != nil || !slices.Equal(again.Indices(), spirals.Indices()) {
			t.Fatalf("other spirals on three threads: %v", err)
		}
	})
}
