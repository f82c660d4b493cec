package surface

import (
	"fmt"
	"testing"

	"libeman/geometry"
	"libeman/geometry/memory"
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
	for _, times := range []int{0, 4} {
		b.Run(fmt.Sprintf("subdivided=%d", times), func(b *testing.B) {
			_ = body.subdivided(times).build(b, geometry.Options{}, 1).Read(func(v *geometry.View) error {
				benchmarkParts(b, v)
				return nil
			})
		})
	}
}

func benchmarkParts(b *testing.B, v *geometry.View) {
	o, r := DefaultOptions(), v.Resources()
	c, err := newCandidates(v, r.NewArena("test"), o.Points[0], 0, nil)
	if err != nil {
		b.Fatal(err)
	}
	s := &Sampling{resources: r, arena: r.NewArena("test")}
	if err := s.choose(v, &o, nil); err != nil {
		b.Fatal(err)
	}
	finest, err := s.connect(s.arena, &o, nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, part := range []struct {
		name string
		run  func(arena *memory.Arena) error
	}{
		{"candidates", func(arena *memory.Arena) error {
			_, err := newCandidates(v, arena, o.Points[0], 0, nil)
			return err
		}},
		{"boxes", func(arena *memory.Arena) error {
			_, err := newBoxes(r, arena, c.positions, candidatesPerLeaf, nil)
			return err
		}},
		{"farthest", func(arena *memory.Arena) error {
			_, err := chooseFarthest(r, arena, c, o.Points[0], nil)
			return err
		}},
		{"connect", func(arena *memory.Arena) error {
			fresh := Sampling{resources: r, Positions: s.Positions, Frames: s.Frames, Levels: s.Levels, arena: arena}
			_, err := fresh.connect(arena, &o, nil)
			return err
		}},
		{"lift", func(arena *memory.Arena) error {
			fresh := Sampling{Center: s.Center, resources: r, Positions: s.Positions, Frames: s.Frames, arena: arena, weights: arena}
			return fresh.setLift(v, arena, finest, o.LiftNeighbors, nil)
		}},
	} {
		b.Run(part.name, func(b *testing.B) {
			for b.Loop() {
				arena := r.NewArena("test")
				if err := part.run(arena); err != nil {
					b.Fatal(err)
				}
				arena.Free()
			}
		})
	}
}
