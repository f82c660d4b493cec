package core

import (
	"cmp"
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"libeman/geometry"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
	"libeman/simd"
)

// Benchmarks on the mesh of the reference vectors with 6890 vertices, the size
// of a FAUST scan, for every instruction set and on one and all processors.

func benchRunners(b *testing.B, run func(b *testing.B, r *Runner[float32])) {
	for _, k := range simd.Available() {
		b.Run(k.Name(), func(b *testing.B) {
			if k.Name() == "generic" && testing.Short() {
				b.Skip("slow")
			}
			for _, threads := range []int{1, runtime.GOMAXPROCS(0)} {
				b.Run([]string{"", "1 thread", "2 threads"}[min(threads, 2)], func(b *testing.B) {
					run(b, NewRunner(k, parallel.New(threads), memory.NewBudget(0, nil)))
				})
			}
		})
	}
}

func benchModel(b *testing.B, classes int) (*Model[float32], *Input[float32]) {
	spec, err := NewSpec(PresetAuthors, KindEMAN)
	if err != nil {
		b.Fatal(err)
	}
	spec.Classes = classes
	m, err := NewModel[float32](spec, 1)
	if err != nil {
		b.Fatal(err)
	}
	return m, inputOf[float32](b, spec, loadGoldenMesh(b, "spot6890"))
}

// BenchmarkForward is the authors' EMAN with labels for 6890 vertices of 6890
// classes.
func BenchmarkForward(b *testing.B) {
	m, in := benchModel(b, 6890)
	labels := make([]int32, in.Graph.Vertices())
	benchRunners(b, func(b *testing.B, r *Runner[float32]) {
		for b.Loop() {
			if err := r.Predict(m, in, nil, labels); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkForwardTwoClasses is the network nearly without its head.
func BenchmarkForwardTwoClasses(b *testing.B) {
	m, in := benchModel(b, 2)
	labels := make([]int32, in.Graph.Vertices())
	benchRunners(b, func(b *testing.B, r *Runner[float32]) {
		for b.Loop() {
			if err := r.Predict(m, in, nil, labels); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkConvolution is one layer 2 → 2 with attention, band 2 and two
// rings; the query has no radius (paper).
func BenchmarkConvolution(b *testing.B) {
	mesh := graphOf[float32](b, loadGoldenMesh(b, "spot6890"))
	benchRunners(b, func(b *testing.B, r *Runner[float32]) { benchConvolution(b, r, mesh) })
}

// BenchmarkConvolutionOfAMillion is the same on a torus of 2^20 vertices, whose
// numbers run along its rows, or as repeated subdivision gives them (the coarse
// mesh first), or are shuffled; and on the local graphs of these.
func BenchmarkConvolutionOfAMillion(b *testing.B) {
	const side = 1 << 10
	level := func(v int) int { return -bits.TrailingZeros(uint(v/side | v%side | side)) }
	shuffled := rand.New(rand.NewPCG(1, 2)).Perm(side * side)
	for _, c := range []struct {
		name string
		less func(v, w int) int
	}{
		{"rows", cmp.Compare[int]},
		{"subdivided", func(v, w int) int { return cmp.Or(cmp.Compare(level(v), level(w)), cmp.Compare(v, w)) }},
		{"shuffled", func(v, w int) int { return cmp.Compare(shuffled[v], shuffled[w]) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			mesh := torus(b, side, c.less)
			local, err := mesh.reordered(geometry.Resources{}, nil)
			if err != nil {
				b.Fatal(err)
			}
			benchRunners(b, func(b *testing.B, r *Runner[float32]) {
				b.Run("as given", func(b *testing.B) { benchConvolution(b, r, mesh) })
				b.Run("searched", func(b *testing.B) { benchConvolution(b, r, local) })
			})
		})
	}
}

// BenchmarkReordering makes the local graph of a shuffled mesh of 2^20 vertices.
func BenchmarkReordering(b *testing.B) {
	const side = 1 << 10
	shuffled := rand.New(rand.NewPCG(1, 2)).Perm(side * side)
	mesh := torus(b, side, func(v, w int) int { return cmp.Compare(shuffled[v], shuffled[w]) })
	b.Run("measure", func(b *testing.B) {
		for b.Loop() {
			if !mesh.scattered() {
				b.Fatal("a shuffled mesh is not scattered")
			}
		}
	})
	b.Run("copy", func(b *testing.B) {
		for b.Loop() {
			if _, err := mesh.reordered(geometry.Resources{}, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// torus is a triangulated torus of side² vertices, numbered in the order that
// less sorts their places into, with angles at random.
func torus(b *testing.B, side int, less func(v, w int) int) *Graph[float32] {
	order, number := make([]int, side*side), make([]int32, side*side)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, less)
	for i, v := range order {
		number[v] = int32(i)
	}
	offsets := []int64{0}
	var neighbors []int32
	for _, v := range order {
		row, column := v/side, v%side
		for _, step := range [][2]int{{0, 1}, {1, 1}, {1, 0}, {0, -1}, {-1, -1}, {-1, 0}} {
			neighbors = append(neighbors, number[(row+step[0]+side)%side*side+(column+step[1]+side)%side])
		}
		offsets = append(offsets, int64(len(neighbors)))
	}
	random := rand.New(rand.NewPCG(3, 4))
	x := EdgeGeometry{Length: make([]float64, len(neighbors))}
	for e := range neighbors {
		sin, cos := math.Sincos(7 * random.Float64())
		x.CosTheta, x.SinTheta = append(x.CosTheta, cos), append(x.SinTheta, sin)
		x.CosTransport, x.SinTransport = append(x.CosTransport, sin), append(x.SinTransport, cos)
		x.Length[e] = 1 + random.Float64()
	}
	g, err := NewGraph[float32](memory.NewBudget(0, nil), offsets, neighbors, nil, x)
	if err != nil {
		b.Fatal(err)
	}
	return g
}

func benchConvolution(b *testing.B, r *Runner[float32], mesh *Graph[float32]) {
	s := convolutionSpec{in: Type{16, 2}, out: Type{16, 2}, band: 2, rings: 2, radial: RadialGlobal, mean: true, attention: true, heads: 1, bias: BiasAngular}
	c := newConvolution[float32](s, randomParameters(rand.New(rand.NewPCG(1, 2)), s))
	x, y := simd.Rows[float32]{Data: simd.Aligned[float32](mesh.Vertices() * 80), Stride: 80}, simd.Rows[float32]{Data: simd.Aligned[float32](mesh.Vertices() * 80), Stride: 80}
	sizes := c.scratchSizes(mesh.largestBlock)
	w := make([]scratch[float32], r.pool.Threads())
	for i := range w {
		k := &w[i]
		for j, to := range k.arrays() {
			*to = simd.Aligned[float32](int(sizes[j]))
		}
	}
	for b.Loop() {
		err := r.pool.Range(nil, mesh.Vertices(), blockVertices, func(worker, begin, end int) error {
			c.forward(r.kernels, &w[worker], mesh, x, y, begin, end, nil)
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*mesh.Edges()), "ns/edge")
}

// BenchmarkStep is a training step of the authors' EMAN at that size.
func BenchmarkStep(b *testing.B) {
	m, in := benchModel(b, 6890)
	labels := make([]int32, in.Graph.Vertices())
	for i := range labels {
		labels[i] = int32(i)
	}
	benchRunners(b, func(b *testing.B, r *Runner[float32]) {
		trainer, err := NewTrainer(r, m, DefaultTraining())
		if err != nil {
			b.Fatal(err)
		}
		defer trainer.Free()
		if err := trainer.Add(exampleOf("spot", in, labels), false); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := trainer.Step(nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
