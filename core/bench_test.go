package core

import (
	"math/rand/v2"
	"runtime"
	"testing"

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
	s := convolutionSpec{in: Type{16, 2}, out: Type{16, 2}, band: 2, rings: 2, radial: RadialGlobal, mean: true, attention: true, heads: 1, bias: BiasAngular}
	c := newConvolution[float32](s, randomParameters(rand.New(rand.NewPCG(1, 2)), s))
	x, y := simd.Rows[float32]{Data: simd.Aligned[float32](mesh.Vertices() * 80), Stride: 80}, simd.Rows[float32]{Data: simd.Aligned[float32](mesh.Vertices() * 80), Stride: 80}
	sizes := c.scratchSizes(mesh.largestBlock)
	benchRunners(b, func(b *testing.B, r *Runner[float32]) {
		w := make([]scratch[float32], r.pool.Threads())
		for i := range w {
			k := &w[i]
			for j, to := range []*[]float32{&k.moments, &k.weights, &k.pairs, &k.coefficients, &k.self, &k.selfRows} {
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
	})
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
