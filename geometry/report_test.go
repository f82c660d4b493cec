package geometry

import (
	"math"
	"slices"
	"testing"

	"libeman/geometry/internal/r3"
)

func examined(t *testing.T, shape testMesh, options Options) *Report {
	t.Helper()
	r, err := shape.build(t, options, 2).Examine(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// checkFindings checks that the report has exactly the findings given.
func checkFindings(t *testing.T, name string, r *Report, want map[Finding][]int32) {
	t.Helper()
	for f := range Finding(FindingCount) {
		if got := r.Indices(f); !slices.Equal(got, want[f]) {
			t.Errorf("%s: %v are %v, want %v", name, f, got, want[f])
		}
	}
}

func TestCleanMeshes(t *testing.T) {
	closed := examined(t, sphere(5, 0.2, 1), Options{})
	checkFindings(t, "sphere", closed, nil)
	if !closed.Closed || !closed.Manifold || !closed.Oriented || closed.EulerCharacteristic != 2 || closed.ComponentCount != 1 {
		t.Errorf("%+v", closed)
	}
	open := examined(t, grid(5, 0.2, 1), Options{})
	if n := open.Count(BoundaryEdges); n != 16 || open.Closed || !open.Manifold || open.EulerCharacteristic != 1 {
		t.Errorf("%d boundary edges, %+v", n, open)
	}
	unit := examined(t, testMesh{"right triangle", []float64{0, 0, 0, 3, 0, 0, 0, 4, 0}, []int32{0, 1, 2}}, Options{})
	if unit.Area != 6 || unit.MinLength != 3 || unit.MaxLength != 5 || unit.MeanLength != 4 || unit.MinDegree != 2 || unit.MaxDegree != 2 {
		t.Errorf("%+v", unit)
	}
}

func TestPlantedDefects(t *testing.T) {
	tetrahedron := []int32{0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2}
	corners := []float64{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1}
	with := func(positions []float64, faces ...int32) testMesh {
		return testMesh{"", append(slices.Clone(corners), positions...), append(slices.Clone(tetrahedron), faces...)}
	}
	flipped := slices.Clone(tetrahedron)
	flipped[0], flipped[1] = flipped[1], flipped[0]

	for _, c := range []struct {
		name  string
		shape testMesh
		want  map[Finding][]int32
	}{
		{"isolated vertex", with([]float64{5, 5, 5}), map[Finding][]int32{IsolatedVertices: {4}}},
		{"coincident vertex", with([]float64{1, 0, 0, 9, 9, 9, 0, 0, 0}), map[Finding][]int32{IsolatedVertices: {4, 5, 6}, CoincidentVertices: {4, 6}}},
		{"fin on an edge", with([]float64{1, 1, 1}, 1, 2, 4), map[Finding][]int32{
			NonManifoldEdges: {1, 2}, BoundaryEdges: {1, 4, 2, 4},
		}},
		{"duplicate face", with(nil, 1, 3, 0), map[Finding][]int32{
			DuplicateFaces: {4}, NonManifoldEdges: {0, 1, 0, 3, 1, 3},
		}},
		{"two tetrahedra at one vertex", with([]float64{-1, 0, 0, 0, -1, 0, 0, 0, -1}, 0, 5, 4, 0, 4, 6, 4, 5, 6, 0, 6, 5), map[Finding][]int32{
			NonManifoldVertices: {0},
		}},
		{"flipped face", testMesh{"", corners, flipped}, map[Finding][]int32{InconsistentEdges: {0, 1, 0, 2, 1, 2}}},
		{"face without area", testMesh{"", []float64{0, 0, 0, 1, 1, 1, 3, 3, 3}, []int32{0, 1, 2}}, map[Finding][]int32{
			ZeroAreaFaces: {0}, ZeroNormalVertices: {0, 1, 2}, BoundaryEdges: {0, 1, 0, 2, 1, 2},
		}},
		{"needle", testMesh{"", []float64{0, 0, 0, 1, 0, 0, 0.5, 5e-4, 0}, []int32{0, 1, 2}}, map[Finding][]int32{
			NeedleFaces: {0}, BoundaryEdges: {0, 1, 0, 2, 1, 2},
		}},
		{"edge without length", testMesh{"", []float64{0, 0, 0, 0, 0, 0, 1, 0, 0}, []int32{0, 1, 2}}, map[Finding][]int32{
			ZeroLengthEdges: {0, 1}, CoincidentVertices: {1}, ZeroAreaFaces: {0}, ZeroNormalVertices: {0, 1, 2},
			BoundaryEdges: {0, 1, 0, 2, 1, 2},
		}},
		{"cancelling normals", testMesh{"", []float64{0, 0, 0, 1, 0, 0, 0, 1, 0}, []int32{0, 1, 2, 2, 1, 0}}, map[Finding][]int32{
			ZeroNormalVertices: {0, 1, 2}, DuplicateFaces: {1},
		}},
	} {
		checkFindings(t, c.name, examined(t, c.shape, Options{}), c.want)
	}
}

// Numbers of faces are the caller's, also behind faces that were dropped.
func TestFindingsAfterDroppedFaces(t *testing.T) {
	shape := testMesh{"", []float64{0, 0, 0, 1, 0, 0, 0, 1, 0, 2, 0, 0}, []int32{1, 1, 2, 0, 1, 2, 0, 1, 3, 2, 1, 0}}
	r := examined(t, shape, Options{DropDegenerate: true})
	for f, want := range map[Finding][]int32{DroppedFaces: {0}, ZeroAreaFaces: {2}, DuplicateFaces: {3}} {
		if got := r.Indices(f); !slices.Equal(got, want) {
			t.Errorf("%v are %v, want %v", f, got, want)
		}
	}
}

func TestComponents(t *testing.T) {
	one, two := sphere(4, 0.2, 1), sphere(3, 0.2, 2)
	shape := testMesh{"two spheres", slices.Concat(one.positions, []float64{9, 9, 9}, two.positions), slices.Clone(one.faces)}
	for _, i := range two.faces {
		shape.faces = append(shape.faces, i+int32(one.vertices())+1)
	}
	if r := examined(t, shape, Options{}); r.ComponentCount != 2 || r.EulerCharacteristic != 4 {
		t.Errorf("%d components, characteristic %d", r.ComponentCount, r.EulerCharacteristic)
	}
	_ = shape.build(t, Options{}, 1).Read(func(v *View) error {
		labels := make([]int32, v.VertexCount())
		if n := v.Components(labels); n != 3 {
			t.Errorf("%d components with the isolated vertex", n)
		}
		for p, label := range labels {
			want := int32(0)
			if p == one.vertices() {
				want = 1
			} else if p > one.vertices() {
				want = 2
			}
			if label != want {
				t.Fatalf("vertex %d is in component %d, want %d", p, label, want)
			}
		}
		return nil
	})
}

func TestSubstituteNormalTurnsWithTheMesh(t *testing.T) {
	// Two faces that cancel: the substitute is the cross product of directions.
	m := testMesh{"", []float64{0, 0, 0, 1, 0, 0, 0, 1, 0}, []int32{0, 1, 2, 2, 1, 0}}.build(t, Options{}, 1)
	s := Similarity{Rotation: RandomRotation(3), Scale: 1}
	moved, err := m.Transform(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer moved.Close()
	before, after := framesOf(t, m), framesOf(t, moved)
	for p := range 3 {
		want := r3.At(before, 3*p+2).Rotated(&s.Rotation)
		if d := r3.At(after, 3*p+2).Minus(want).MaxAbs(); d > 1e-15 || math.Abs(want.Squared()-1) > 1e-14 {
			t.Errorf("normal %d differs by %g", p, d)
		}
	}
}
