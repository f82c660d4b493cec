package core

import (
	"runtime/debug"
	"testing"

	"libeman/geometry"
	"libeman/geometry/memory"
)

// Nothing recurs over a mesh: a strip of five million faces, one after another,
// takes no more stack than a triangle. Beyond the limit Go ends the process.
func TestAStripTakesNoStack(t *testing.T) {
	if testing.Short() {
		t.Skip("the stack does not depend on the instruction set")
	}
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 17))
	const faces = 5_000_000
	shape := band(faces, 1)
	mesh := shape.build(t, memory.NewBudget(0, nil), 2)
	report, err := mesh.Examine(nil)
	if err != nil {
		t.Fatal(err)
	}
	report.Close()
	err = mesh.Read(func(v *geometry.View) error {
		in, err := NewSurfaceInput[float32](v, randomSurfaceModel(t, KindGEM, nil).spec, 0, nil)
		if err != nil {
			return err
		}
		in.Free()
		spirals, err := NewSpirals(v.Resources().Threads, nil, v.Faces(), shape.positions, 5, SpiralStartDistance)
		if err == nil && spirals.vertices() != faces+2 {
			t.Errorf("%d spirals", spirals.vertices())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// Where neighbours lie far apart in memory the vertices are renumbered.
	err = band(500_000, 314159).build(t, memory.NewBudget(0, nil), 2).Read(func(v *geometry.View) error {
		graph, err := NewMeshGraph[float32](v, nil)
		if err != nil {
			return err
		}
		defer graph.Free()
		if graph.local == nil {
			t.Error("not renumbered")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// band is a strip of faces, its vertices so far apart in their numbers.
func band(faces, apart int) shape {
	s := shape{name: "strip", positions: make([]float64, 3*(faces+2)), faces: make([]int32, 3*faces)}
	number := func(p int) int { return p * apart % (faces + 2) }
	for p := range faces + 2 {
		copy(s.positions[3*number(p):], []float64{float64(p / 2), float64(p % 2), 0.1 * float64(p%7)})
	}
	for f := range faces {
		for k, p := range []int{f, f + 1 + f%2, f + 2 - f%2} {
			s.faces[3*f+k] = int32(number(p))
		}
	}
	return s
}
