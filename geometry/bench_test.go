package geometry

import (
	"fmt"
	"slices"
	"testing"

	"libeman/geometry/parallel"
	"libeman/simd"
)

// Spheres of about 7k, 50k and 850k vertices (4n²+2).
var benchSizes = []int{42, 112, 461}

// benchSets runs what the kernels do with each instruction set.
func benchSets(b *testing.B, run func(b *testing.B, shape testMesh, threads int)) {
	defer func() { testSet = "" }()
	for _, set := range simd.Available() {
		testSet = set.Name()
		b.Run(testSet, func(b *testing.B) { benchMesh(b, run) })
	}
}

func benchMesh(b *testing.B, run func(b *testing.B, shape testMesh, threads int)) {
	for _, n := range benchSizes {
		shape := sphere(n, 0.4, 1)
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("V=%d/threads=%d", shape.vertices(), threads), func(b *testing.B) { run(b, shape, threads) })
		}
	}
}

// BenchmarkCopy is the limit of what does not fit into the caches: compare its
// GB/s, of reading and writing, with those of the largest mesh.
func BenchmarkCopy(b *testing.B) {
	from, to := slices.Repeat([]float64{1}, 1<<24), slices.Repeat([]float64{2}, 1<<24) // pages that are there
	for b.Loop() {
		copy(to, from)
	}
	reportTraffic(b, 16*len(from))
}

// reportTraffic takes the bytes that a call must move to and from memory when
// nothing stays in the caches.
func reportTraffic(b *testing.B, bytes int) {
	b.ReportMetric(float64(bytes)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GB/s")
}

func reportPerEdge(b *testing.B, shape testMesh) {
	edges := len(shape.faces) // a closed mesh has 3F/2 edges, each in two directions
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(edges), "ns/edge")
}

func BenchmarkNew(b *testing.B) {
	benchMesh(b, func(b *testing.B, shape testMesh, threads int) {
		r := Resources{Threads: parallel.New(threads)}
		for b.Loop() {
			m, err := New(r, FromSlices(shape.positions, shape.faces), Options{}, nil)
			if err != nil {
				b.Fatal(err)
			}
			m.Close()
		}
		reportPerEdge(b, shape)
	})
}

// Update + edge geometry in float32: what a network needs of a deformed mesh.
func BenchmarkUpdateAndEdges(b *testing.B) {
	benchSets(b, func(b *testing.B, shape testMesh, threads int) {
		m := shape.build(b, Options{}, threads)
		n := len(shape.faces)
		g := EdgeGeometry[float32]{make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)}
		for b.Loop() {
			if err := m.Update(ReadSlice(shape.positions, 3), nil, nil); err != nil {
				b.Fatal(err)
			}
			if err := m.Read(func(v *View) error { return Edges(v, g, nil) }); err != nil {
				b.Fatal(err)
			}
		}
		reportPerEdge(b, shape)
		// Positions in, out, and read for normals and edges; wedges, neighbours
		// twice, offsets thrice; frames out and read; five numbers an edge.
		reportTraffic(b, shape.vertices()*(4*24+3*8+2*72)+n*(8+2*4+5*4))
	})
}

func BenchmarkRelTan(b *testing.B) {
	benchSets(b, func(b *testing.B, shape testMesh, threads int) {
		m := shape.build(b, Options{}, threads)
		o := RelTanOf(0.5, 0.7)
		out := make([]float64, 4*shape.vertices())
		for b.Loop() {
			if err := m.Read(func(v *View) error { return v.RelTan(o, WriteSlice(out, 4), nil) }); err != nil {
				b.Fatal(err)
			}
		}
		reportPerEdge(b, shape)
		reportTraffic(b, shape.vertices()*(24+8+72+4*8)+4*len(shape.faces))
	})
}

func BenchmarkExamine(b *testing.B) {
	benchMesh(b, func(b *testing.B, shape testMesh, threads int) {
		m := shape.build(b, Options{}, threads)
		for b.Loop() {
			r, err := m.Examine(nil)
			if err != nil {
				b.Fatal(err)
			}
			r.Close()
		}
		reportPerEdge(b, shape)
	})
}
