package core

import (
	"fmt"
	"testing"

	"libeman/geometry"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
)

// BenchmarkSurface labels a body with the preset surface, as it is, of 7k
// vertices, and subdivided to 1.8M: all of it, what sees the mesh for the first
// time (samples, graphs, moments, lift), and what a network does with that.
func BenchmarkSurface(b *testing.B) {
	body := human(b, 0)
	m := randomSurfaceModel(b, KindGEM, nil)
	for _, s := range []shape{body, body.subdivided(4)} {
		labels := make([]int32, s.vertices())
		for _, threads := range []int{1, 2} {
			budget := memory.NewBudget(0, nil)
			mesh := s.build(b, budget, threads)
			r := NewRunner(testKernels[float32](), parallel.New(threads), budget)
			see := func() (in *MeshInput[float32], err error) {
				err = mesh.Read(func(v *geometry.View) (err error) {
					in, err = NewSurfaceInput[float32](v, m.spec, 0, nil)
					return err
				})
				return in, err
			}
			seen, err := see()
			if err != nil {
				b.Fatal(err)
			}
			predict := func(in *MeshInput[float32]) error { return r.Predict(m, &in.Input, nil, labels) }
			for _, part := range []struct {
				name string
				run  func() error
			}{
				{"labels", func() error {
					in, err := see()
					if err != nil {
						return err
					}
					defer in.Free()
					return predict(in)
				}},
				{"input", func() error {
					in, err := see()
					if err == nil {
						in.Free()
					}
					return err
				}},
				{"again", func() error { return predict(seen) }},
			} {
				b.Run(fmt.Sprintf("%s/V=%d/threads=%d", part.name, s.vertices(), threads), func(b *testing.B) {
					for b.Loop() {
						if err := part.run(); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
			seen.Free()
		}
	}
}
