package geometry

import (
	"math"
	"testing"

	"libeman/geometry/parallel"
)

// octahedron has its vertices on the axes and faces oriented outwards.
func octahedron() (positions []float64, faces []int32) {
	return []float64{1, 0, 0, -1, 0, 0, 0, 1, 0, 0, -1, 0, 0, 0, 1, 0, 0, -1},
		[]int32{0, 2, 4, 2, 1, 4, 1, 3, 4, 3, 0, 4, 2, 0, 5, 1, 2, 5, 3, 1, 5, 0, 3, 5}
}

func mustNew(t testing.TB, positions []float64, faces []int32, options Options, threads int) *Mesh {
	t.Helper()
	m, err := New(Resources{Threads: parallel.New(threads)}, FromSlices(positions, faces), options, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func TestOctahedron(t *testing.T) {
	positions, faces := octahedron()
	m := mustNew(t, positions, faces, Options{}, 2)
	err := m.Read(func(v *View) error {
		if v.VertexCount() != 6 || v.FaceCount() != 8 || v.EdgeCount() != 24 {
			t.Errorf("counts %d, %d, %d", v.VertexCount(), v.FaceCount(), v.EdgeCount())
		}
		for e, back := range v.ReverseEdges() {
			if v.ReverseEdges()[back] != int32(e) {
				t.Errorf("edge %d: the reverse of its reverse is %d", e, v.ReverseEdges()[back])
			}
		}
		normals := make([]float64, 18)
		if err := v.VertexNormals(WriteSlice(normals, 3)); err != nil {
			return err
		}
		for i := range normals {
			if math.Abs(normals[i]-positions[i]) > 1e-15 {
				t.Errorf("normal component %d: %g, want %g", i, normals[i], positions[i])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Examine(nil)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Closed || !r.Manifold || !r.Oriented || r.EulerCharacteristic != 2 || r.ComponentCount != 1 {
		t.Errorf("%+v", r)
	}
}
