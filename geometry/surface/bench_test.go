package surface

import (
	"fmt"
	"testing"

	"libeman/geometry"
)

// BenchmarkSample samples a body as it is, of 7k vertices, and subdivided to 110k
// and 1.8M, with everything a network needs.
func BenchmarkSample(b *testing.B) {
	body := human(b, 0)
	for _, shape := range []testMesh{body, body.subdivided(2), body.subdivided(4)} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("V=%d/threads=%d", shape.vertices(), threads), func(b *testing.B) {
				m := shape.build(b, geometry.Options{}, threads)
				for b.Loop() {
					err := m.Read(func(v *geometry.View) error {
						s, err := New(v, DefaultOptions(), nil)
						if err == nil {
							s.Free()
						}
						return err
					})
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkParts times the parts of BenchmarkSample on one thread.
func BenchmarkParts(b *testing.B) {
	body := human(b, 0)
	for _, shape := range []testMesh{body, body.subdivided(4)} {
		m := shape.build(b, geometry.Options{}, 1)
		_ = m.Read(func(v *geometry.View) error {
			o := DefaultOptions()
			r := v.Resources()
			part := func(name string, run func() error) {
				b.Run(fmt.Sprintf("V=%d/%s", shape.vertices(), name), func(b *testing.B) {
					for b.Loop() {
						if err := run(); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
			var s *Sampling
			var finest *level
			arena := r.NewArena("test")
			var c *candidates
			part("candidates", func() (err error) { c, err = newCandidates(v, arena, o.Points[0], 0, nil); return err })
			part("boxes", func() error { _, err := newBoxes(r, arena, c.positions, candidatesPerLeaf); return err })
			part("farthest", func() error { _, err := chooseFarthest(r, arena, c, o.Points[0], nil); return err })
			part("choose", func() error { s = &Sampling{arena: r.NewArena("test")}; return s.choose(v, &o, nil) })
			part("connect", func() (err error) { finest, err = s.connect(r, &o, nil); return err })
			part("lift", func() error { return s.setLift(v, finest, o.LiftNeighbors, nil) })
			return nil
		})
	}
}
