package geometry

import (
	"errors"
	"math"
	"slices"
	"testing"

	"libeman/geometry/internal/r3"
	"libeman/geometry/parallel"
)

// checkFinite checks every result of a mesh.
func checkFinite(t *testing.T, name string, m *Mesh) {
	t.Helper()
	for what, values := range map[string][]float64{
		"frames": framesOf(t, m), "θ": edgeAngles(t, m), "g": transportAngles(t, m), "GET": getFeatures(t, m),
		"RelTan": relTan(t, m, AmbientSpace, testPowers...),
	} {
		for i, x := range values {
			if x-x != 0 {
				t.Fatalf("%s: value %d of %s is %g", name, i, what, x)
			}
		}
	}
}

func TestSmallestMeshes(t *testing.T) {
	for _, shape := range []testMesh{
		{name: "no vertices"},
		{name: "two vertices", positions: []float64{0, 0, 0, 1, 1, 1}},
		{name: "one triangle", positions: []float64{0, 0, 0, 1, 0, 0, 0, 1, 0}, faces: []int32{0, 1, 2}},
		{name: "one point thrice", positions: make([]float64, 9), faces: []int32{0, 1, 2}},
		{name: "a line", positions: []float64{0, 0, 0, 1, 1, 1, 2, 2, 2}, faces: []int32{0, 1, 2}},
		fan(10_000),
	} {
		m := shape.build(t, Options{}, 2)
		checkFinite(t, shape.name, m)
		r, err := m.Examine(nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
	}
}

func TestFanDegree(t *testing.T) {
	m := fan(10_000).build(t, Options{}, 2)
	if n := len(neighborsOf(t, m, 0)); n != 10_000 {
		t.Errorf("the centre has %d neighbours", n)
	}
}

func TestCoincidentVerticesAreNoNeighbors(t *testing.T) {
	shape := sphere(4, 0.2, 1)
	m := shape.build(t, Options{}, 2)
	ring := neighborsOf(t, m, 0)
	folded := slices.Clone(shape.positions)
	copy(folded[3*ring[0]:3*ring[0]+3], folded[:3])
	for round := range 3 {
		if err := m.Update(ReadSlice(folded, 3), nil, nil); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(neighborsOf(t, m, 0), ring[0]) || slices.Contains(neighborsOf(t, m, int(ring[0])), 0) {
			t.Fatalf("round %d: vertices at one place are neighbours", round)
		}
		checkFinite(t, "folded", m)
		fresh := testMesh{"folded", folded, shape.faces}.build(t, Options{}, 1)
		if !slices.Equal(relTan(t, m, TangentSpace, 0.7), relTan(t, fresh, TangentSpace, 0.7)) {
			t.Error("an updated mesh differs from a new one")
		}
		err := m.Read(func(v *View) error {
			for e, back := range v.ReverseEdges() {
				if v.ReverseEdges()[back] != int32(e) {
					t.Fatalf("edge %d: the reverse of its reverse is %d", e, v.ReverseEdges()[back])
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Update(ReadSlice(shape.positions, 3), nil, nil); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(neighborsOf(t, m, 0), ring) {
			t.Fatalf("round %d: vertices that part are not neighbours again", round)
		}
	}
}

func TestDroppedFaces(t *testing.T) {
	positions := []float64{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 2, 2, 2}
	faces := []int32{0, 0, 1, 0, 1, 2, 3, 4, 4, 0, 2, 3, 4, 4, 4}
	m, err := New(Resources{}, FromSlices(positions, faces), Options{DropDegenerate: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	_ = m.Read(func(v *View) error {
		if !slices.Equal(v.Faces(), []int32{0, 1, 2, 0, 2, 3}) {
			t.Errorf("faces %v", v.Faces())
		}
		return nil
	})
	r, err := m.Examine(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := r.Indices(DroppedFaces); !slices.Equal(got, []int32{0, 2, 4}) {
		t.Errorf("dropped faces %v", got)
	}
	if got := r.Indices(IsolatedVertices); !slices.Equal(got, []int32{4}) {
		t.Errorf("isolated vertices %v", got)
	}
	if _, err := New(Resources{}, FromSlices(positions, faces), Options{}, nil); !errors.Is(err, ErrInvalidMesh) {
		t.Errorf("not asked to drop: %v", err)
	}
}

func TestNeighborAlongTheNormalHasNoAngle(t *testing.T) {
	// A flat ring around p, and a face that is a vertical segment doubled back:
	// the spike's tip s lies on p's normal.
	positions := []float64{0, 0, 0, 1, 0, 0, 0, 1, 0, -1, -1, 0, 0, 0, 1, 0, 0, 2}
	faces := []int32{0, 1, 2, 0, 2, 3, 0, 3, 1, 0, 4, 5}
	m := testMesh{"spike", positions, faces}.build(t, Options{}, 1)
	err := m.Read(func(v *View) error {
		n := v.EdgeCount()
		g := EdgeGeometry[float64]{CosAngle: make([]float64, n), SinAngle: make([]float64, n), Length: make([]float64, n)}
		if err := Edges(v, g, nil); err != nil {
			return err
		}
		for i, q := range v.Neighbors()[:v.Offsets()[1]] {
			norm := math.Hypot(g.CosAngle[i], g.SinAngle[i])
			if want := map[bool]float64{true: 0, false: 1}[q >= 4]; math.Abs(norm-want) > 1e-15 {
				t.Errorf("neighbour %d: |e^{iθ}| = %g, want %g", q, norm, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	checkFinite(t, "spike", m)
}

// Over a sharp fold the transport must follow a change of gauge as elsewhere,
// and undo itself on the way back.
func TestOppositeNormals(t *testing.T) {
	// Two triangles folded onto each other along the edge 0–1, and a third that
	// makes the tips 2 and 3 neighbours, too thin to change their normals.
	positions := []float64{0, 0, 0, 0, 1, 0, 1, 0, 0, 1, 0.5, 0}
	positions = append(positions, 1, 0.25, 0) // on the line from 2 to 3: no area
	mesh := testMesh{"fold", positions, []int32{0, 1, 2, 1, 0, 3, 2, 3, 4}}.build(t, Options{}, 1)
	checkFinite(t, "fold", mesh)
	frames := framesOf(t, mesh)
	if n := r3.At(frames, 3*2+2).Dot(r3.At(frames, 3*3+2)); n != -1 {
		t.Fatalf("the normals' cosine is %g, so the test proves nothing", n)
	}
	angles := []float64{0.3, -1, 2, 0.7, 1.1}
	turned, err := mesh.ChangeGauge(angles, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer turned.Close()
	before, after := transportAngles(t, mesh), transportAngles(t, turned)
	_ = mesh.Read(func(v *View) error {
		for p := range 5 {
			for e := v.Offsets()[p]; e < v.Offsets()[p+1]; e++ {
				q := v.Neighbors()[e]
				if x := math.Remainder(after[e]-(before[e]+angles[q]-angles[p]), 2*math.Pi); math.Abs(x) > 1e-12 {
					t.Errorf("g of %d→%d follows the gauge to %g only", q, p, x)
				}
				if x := math.Remainder(before[e]+before[v.ReverseEdges()[e]], 2*math.Pi); math.Abs(x) > 1e-12 {
					t.Errorf("g of %d→%d and back add up to %g", q, p, x)
				}
			}
		}
		return nil
	})
}

func TestAdversarialScales(t *testing.T) {
	base := sphere(5, 0.3, 2)
	stretched := func(x, y, z float64) testMesh {
		m := testMesh{name: "stretched", faces: base.faces}
		for i, c := range base.positions {
			m.positions = append(m.positions, c*[3]float64{x, y, z}[i%3])
		}
		return m
	}
	for _, shape := range []testMesh{
		stretched(1e30, 1e30, 1e30), stretched(1e-30, 1e-30, 1e-30), stretched(1e299, 1e299, 1e299),
		stretched(1e-305, 1e-305, 1e-305), stretched(1, 1e-8, 1), stretched(1, 1e-8, 1e-16), stretched(1, 1, 0),
		stretched(1, 0, 0), stretched(1e-320, 1e-320, 1e-320),
	} {
		checkFinite(t, shape.name, shape.build(t, Options{}, 2))
		checkFinite(t, shape.name, shape.build(t, Options{Normals: AngleNormals}, 2))
	}
}

func TestOverflowingPowerNamesTheVertex(t *testing.T) {
	positions := []float64{0, 0, 0, 1, 0, 0, 0.5, 1e-9, 0, 5, 5, 5, 6, 5, 5, 5, 6, 5}
	m := testMesh{"needle", positions, []int32{3, 4, 5, 0, 1, 2}}.build(t, Options{}, 1)
	short := slices.Clone(positions)
	copy(short[3:], []float64{1e-120, 0, 0})
	if err := m.Update(ReadSlice(short, 3), nil, nil); err != nil {
		t.Fatal(err)
	}
	err := m.Read(func(v *View) error {
		return v.RelTan(RelTanOf(-8), WriteSlice(make([]float64, 12), 2), nil)
	})
	if !errors.Is(err, ErrInvalidMesh) || err.Error() != "vertex 0: a RelTan feature of powers [-8] overflows" {
		t.Errorf("%v", err)
	}
}

// FuzzNew builds meshes of arbitrary bytes: a result or an error, never a
// panic, and finite features.
func FuzzNew(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 1, 0}, []byte{0, 1, 2}, uint8(0))
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 1, 0, 9, 9, 9}, []byte{0, 1, 2, 2, 1, 3, 0, 0, 1, 3, 3, 3}, uint8(5))
	f.Add([]byte{7, 7, 7, 7, 7, 7, 7, 7, 7, 255, 0, 1}, []byte{0, 1, 2, 0, 2, 1, 1, 2, 3}, uint8(2))
	f.Add([]byte{}, []byte{}, uint8(1))
	f.Fuzz(func(t *testing.T, coordinates, indices []byte, choice uint8) {
		// Bytes 0 … 247 are small integers, so that coincidences are common; the
		// others are awkward numbers.
		awkward := []float64{math.NaN(), math.Inf(1), 1e-300, -1e-300, 1e299, -1e299, 1e-9, math.SmallestNonzeroFloat64}
		var positions []float64
		for _, b := range coordinates[:len(coordinates)/3*3] {
			x := float64(b) - 100
			if b >= 248 {
				x = awkward[b-248]
			}
			positions = append(positions, x)
		}
		var faces []int32
		for _, b := range indices[:len(indices)/3*3] {
			faces = append(faces, int32(int8(b)))
		}
		options := Options{Normals: Normals(choice & 1), Gauge: Gauge(choice >> 1 & 1), DropDegenerate: choice&4 != 0}
		m, err := New(Resources{Threads: parallel.New(2)}, FromSlices(positions, faces), options, nil)
		if err != nil {
			if !errors.Is(err, ErrInvalidMesh) {
				t.Fatal(err)
			}
			return
		}
		defer m.Close()
		checkFinite(t, "fuzzed", m)
		r, err := m.Examine(nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
	})
}
