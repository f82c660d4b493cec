package simd

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// What a piece of a mesh costs: 64 vertices of 6 neighbours each.
func BenchmarkGeometry(b *testing.B) {
	const vertices, degree = 64, 6
	random := rand.New(rand.NewPCG(1, 1))
	g := newGeometryCase(random, vertices, func() int { return degree })
	for _, set := range []string{"avx512", "avx2"} {
		k := GeometryOf(set)
		if k == nil {
			continue
		}
		n := len(g.centers)
		rows := make([]float64, 2*4*(n+Padding))
		sums := make([]float64, 4*vertices)
		to := EdgeArrays[float32]{make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)}
		powers := []float64{-0.25, -0.35}
		for _, kernel := range []struct {
			name string
			run  func()
		}{
			{"wedges", func() { k.Wedges(rows, g.positions, g.wedges, g.centers) }},
			{"relTan-root", func() { k.RelTan(rows, n+Padding, g.positions, g.neighbors, g.centers, powers[:1]) }},
			{"relTan-0.7", func() { k.RelTan(rows, n+Padding, g.positions, g.neighbors, g.centers, powers[1:]) }},
			{"relTan-both", func() { k.RelTan(rows, n+Padding, g.positions, g.neighbors, g.centers, powers) }},
			{"sumRings", func() { k.SumRings(sums, rows, g.offsets) }},
			{"frames", func() { k.Frames(g.frames, sums, g.positions, 0, g.neighbors[:vertices]) }},
			{"edges", func() { k.Edges32(to, g.positions, g.frames, g.neighbors, g.centers) }},
		} {
			b.Run(fmt.Sprintf("%s/%s", set, kernel.name), func(b *testing.B) {
				for b.Loop() {
					kernel.run()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/edge")
			})
		}
	}
}

// geometryCase is vertices with rings of neighbours, and the same as wedges.
type geometryCase struct {
	positions, frames          []float64
	offsets                    []int64
	centers, neighbors, wedges []int32 // with Padding more
}

func newGeometryCase(random *rand.Rand, vertices int, degree func() int) *geometryCase {
	g := &geometryCase{
		positions: make([]float64, 3*vertices, 3*vertices+1),
		frames:    make([]float64, 9*vertices),
		offsets:   make([]int64, vertices+1),
	}
	for i := range g.positions {
		g.positions[i] = 2*random.Float64() - 1
	}
	for p := range vertices {
		for range degree() {
			g.centers = append(g.centers, int32(p))
			for _, list := range []*[]int32{&g.neighbors, &g.wedges, &g.wedges} {
				*list = append(*list, int32((p+1+random.IntN(vertices-1))%vertices))
			}
		}
		g.offsets[p+1] = int64(len(g.centers))
	}
	padding := make([]int32, 2*Padding)
	n := len(g.centers)
	g.centers = append(g.centers, padding...)[:n]
	g.neighbors = append(g.neighbors, padding...)[:n]
	g.wedges = append(g.wedges, padding...)[:2*n]
	return g
}
