package core

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

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
			benchThreads(b, func(b *testing.B, threads int) {
				run(b, NewRunner(k, parallel.New(threads), memory.NewBudget(0, nil)))
			})
		})
	}
}

func benchThreads(b *testing.B, run func(b *testing.B, threads int)) {
	for _, threads := range []int{1, runtime.GOMAXPROCS(0)} {
		b.Run([]string{"", "1 thread", "2 threads"}[min(threads, 2)], func(b *testing.B) { run(b, threads) })
	}
}

// reportWork says what a call cannot do without, for the limits of tests/bench:
// floating point operations, and bytes to and from memory when nothing stays in
// the caches.
func reportWork(b *testing.B, flops, bytes float64) {
	b.ReportMetric(flops/1e9, "GFLOP/op")
	b.ReportMetric(bytes/1e6, "MB/op")
}

// hot calls body a thousand times in parts on the threads of a pool, so often
// that starting them costs nothing. The worker tells memory apart.
func hot(b *testing.B, pool *parallel.Pool, body func(worker int)) {
	for b.Loop() {
		err := pool.For(nil, 50, func(worker, _ int) error {
			for range 20 {
				body(worker)
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPeak is the limit of all products: one of numbers that never leave
// the first-level cache.
func BenchmarkPeak(b *testing.B) {
	const rows, inner, columns = 12, 160, 32
	benchRunners(b, func(b *testing.B, r *Runner[float32]) {
		a, panel := randomRows(rows, inner), randomPanel(inner, columns)
		y := randomRows(r.pool.Threads()*rows, columns)
		hot(b, r.pool, func(worker int) { r.kernels.Multiply(y.From(worker*rows), a, panel, rows, false) })
		reportWork(b, 1000*2*rows*inner*columns, 0)
	})
}

// BenchmarkMemory is the limit of what is in a cache, or in none: reading two
// arrays that are compared, and copying one.
func BenchmarkMemory(b *testing.B) {
	for _, level := range []struct {
		name        string
		size, parts int // bytes for each thread; in so many parts
	}{{"L1", 16 << 10, 1}, {"L2", 512 << 10, 1}, {"L3", 4 << 20, 1}, {"DRAM", 128 << 20, 1000}} {
		part := level.size / level.parts / 2
		for _, c := range []struct {
			name string
			move func(x, y []byte)
		}{
			{"read", func(x, y []byte) {
				if !bytes.Equal(x, y) {
					b.Error("two arrays of zeros differ")
				}
			}},
			{"copy", func(x, y []byte) { copy(x, y) }},
		} {
			b.Run(level.name+"/"+c.name, func(b *testing.B) {
				benchThreads(b, func(b *testing.B, threads int) {
					buffers, at := make([][]byte, threads), make([]int, threads)
					for i := range buffers {
						buffers[i] = make([]byte, level.size)
						clear(buffers[i]) // so that it has pages of its own
					}
					hot(b, parallel.New(threads), func(worker int) {
						x := buffers[worker][at[worker]*2*part:]
						c.move(x[:part], x[part:2*part])
						at[worker] = (at[worker] + 1) % level.parts
					})
					reportWork(b, 0, float64(1000*2*part))
				})
			})
		}
	}
}

func randomRows(rows, n int) simd.Rows[float32] {
	random := rand.New(rand.NewPCG(1, 2))
	x := simd.Rows[float32]{Data: simd.Aligned[float32](rows * n), Stride: n}
	for i := range x.Data {
		x.Data[i] = float32(random.NormFloat64())
	}
	return x
}

func randomPanel(k, n int) *simd.Panel[float32] {
	panel := simd.NewPanel[float32](k, n)
	copy(panel.Data, randomRows(k, panel.N).Data)
	return panel
}

// BenchmarkProduct is the matrix products of a network on 6890 vertices, beside
// gonum's.
func BenchmarkProduct(b *testing.B) {
	for _, shape := range [][3]int{{6890, 608, 80}, {6890, 304, 80}, {6890, 16, 256}, {6890, 256, 6890}} {
		m, k, n := shape[0], shape[1], shape[2]
		flops := 2 * float64(m) * float64(k) * float64(n)
		b.Run(fmt.Sprintf("%dx%dx%d", m, k, n), func(b *testing.B) {
			a, panel := randomRows(m, k), randomPanel(k, n)
			y := randomRows(m, panel.N)
			benchRunners(b, func(b *testing.B, r *Runner[float32]) {
				for b.Loop() {
					err := r.pool.Range(nil, m, headRows, func(_, begin, end int) error {
						r.kernels.Multiply(y.From(begin), a.From(begin), panel, end-begin, false)
						return nil
					})
					if err != nil {
						b.Fatal(err)
					}
				}
				reportWork(b, flops, 0)
			})
			b.Run("gonum", func(b *testing.B) {
				w := randomRows(k, n)
				benchThreads(b, func(b *testing.B, threads int) {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
					for b.Loop() {
						blas32.Gemm(blas.NoTrans, blas.NoTrans, 1,
							blas32.General{Rows: m, Cols: k, Stride: k, Data: a.Data},
							blas32.General{Rows: k, Cols: n, Stride: n, Data: w.Data},
							0, blas32.General{Rows: m, Cols: n, Stride: panel.N, Data: y.Data})
					}
					reportWork(b, flops, 0)
				})
			})
		})
	}
}

// BenchmarkHead is the last dense layer of 6890 classes with the arg-max.
func BenchmarkHead(b *testing.B) {
	m, in := benchModel(b, 6890)
	h, labels := &m.head, make([]int32, in.Graph.Vertices())
	hidden := randomRows(len(labels), simd.Padded(h.hidden))
	benchRunners(b, func(b *testing.B, r *Runner[float32]) {
		for b.Loop() {
			err := r.pool.Range(nil, len(labels), h.block(1), func(_, begin, end int) error {
				r.kernels.ArgMax(labels[begin:end], hidden.From(begin), h.second, h.secondBias, h.classes, end-begin)
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		reportWork(b, float64(len(labels))*panelFlops(h.second), 0)
	})
}

// BenchmarkCorrelate is the gradient of the head's weights, as a training step
// computes it: for a chunk of classes at a time, from rows of the scores of all.
// These, 16 MB, are in no cache of the processor's own when they are first read,
// 12 of each row: on scores that are, Zen 4 reaches its FMA peak, here 94 %.
func BenchmarkCorrelate(b *testing.B) {
	const classes, width = 6720, 256
	rows := headScores / classes / headTile * headTile
	scores, hidden, weights := randomRows(rows, classes), randomRows(rows, width), randomRows(classes, width)
	benchRunners(b, func(b *testing.B, r *Runner[float32]) {
		for b.Loop() {
			err := r.pool.For(nil, classes/classChunk, func(_, chunk int) error {
				at := chunk * classChunk
				r.kernels.Correlate(weights.From(at), scores.Columns(at), hidden, classChunk, width, rows)
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		reportWork(b, 2*float64(rows*classes*width), 0)
	})
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
		products, edges := m.flops(in.extent())
		reportWork(b, products+edges, 0)
	})
}

// BenchmarkPredict is what eman_model_predict does with a small mesh on one thread:
// input features, layers, labels. tests/bench/calls.c calls it from C.
func BenchmarkPredict(b *testing.B) {
	spec, err := ParseSpec([]byte(`{"classes": 16}`))
	if err != nil {
		b.Fatal(err)
	}
	m, err := NewModel[float32](spec, 1)
	if err != nil {
		b.Fatal(err)
	}
	budget := memory.NewBudget(0, nil)
	sheet := grid("sheet", 20, hills)
	mesh, labels := sheet.build(b, budget, 1), make([]int32, sheet.vertices())
	predict := func(v *geometry.View, graph *Graph[float32], r *Runner[float32]) error {
		in, err := NewMeshInput(v, graph, spec, nil)
		if err != nil {
			return err
		}
		defer in.Free()
		return r.Predict(m, &in.Input, nil, labels)
	}
	for _, k := range simd.Available() {
		b.Run(k.Name(), func(b *testing.B) {
			r := NewRunner(k, parallel.New(1), budget)
			err := mesh.Read(func(v *geometry.View) error {
				graph, err := NewMeshGraph[float32](v, nil)
				if err != nil {
					return err
				}
				defer graph.Free()
				for b.Loop() && err == nil {
					err = predict(v, graph, r)
				}
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
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
	benchRunners(b, func(b *testing.B, r *Runner[float32]) { benchConvolution(b, r, mesh, benchSpec()) })
}

// BenchmarkSurfaceConvolution is a layer 2 → 2 on 1024 samples of a surface with
// 24 neighbours each: in the network, with attention, and on the input features
// of three scales.
func BenchmarkSurfaceConvolution(b *testing.B) {
	const points, degree = 1024, 24
	samples := randomRings(b, points, degree)
	inner, attention, input := benchSpec(), benchSpec(), benchSpec()
	inner.attention, input.attention, input.in = false, false, Type{3 * momentChannels, 2}
	for _, c := range []struct {
		name string
		spec convolutionSpec
	}{{"gem", inner}, {"eman", attention}, {"gem of 24 channels", input}} {
		c.spec.radial = RadialLocal
		b.Run(c.name, func(b *testing.B) {
			benchRunners(b, func(b *testing.B, r *Runner[float32]) { benchConvolution(b, r, samples, c.spec) })
		})
	}
}

// randomRings is a graph of points with so many neighbours each, at random.
func randomRings(b *testing.B, points, degree int) *Graph[float32] {
	random := rand.New(rand.NewPCG(1, 2))
	offsets, neighbors := make([]int64, points+1), make([]int32, points*degree)
	for p := range offsets {
		offsets[p] = int64(p * degree)
	}
	for e := range neighbors {
		neighbors[e] = int32(random.IntN(points))
	}
	g, err := NewSurfaceGraph[float32](memory.NewBudget(0, nil), points, offsets, neighbors, randomEdges(random, len(neighbors)))
	if err != nil {
		b.Fatal(err)
	}
	return g
}

// randomEdges is edges in directions at random.
func randomEdges(random *rand.Rand, edges int) (x EdgeGeometry) {
	for range edges {
		sin, cos := math.Sincos(7 * random.Float64())
		x.CosTheta, x.SinTheta = append(x.CosTheta, cos), append(x.SinTheta, sin)
		x.CosTransport, x.SinTransport = append(x.CosTransport, sin), append(x.SinTransport, cos)
		x.Length = append(x.Length, 1+random.Float64())
	}
	return x
}

// BenchmarkLift is the labels of 2^16 vertices from the features of 1024 samples,
// 6 for each: the lift, and the dense layers behind it.
func BenchmarkLift(b *testing.B) {
	const vertices, samples, each = 1 << 16, 1024, 6
	spec, err := NewSpec(PresetSurface, KindGEM)
	if err != nil {
		b.Fatal(err)
	}
	spec.Classes = 16
	m, err := NewModel[float32](spec, 1)
	if err != nil {
		b.Fatal(err)
	}
	rings := randomRings(b, vertices, each)
	for i := range rings.Neighbors {
		rings.Neighbors[i] %= samples
	}
	lift, err := NewLift[float32](memory.NewBudget(0, nil), samples, rings.Offsets, rings.Neighbors, slices.Repeat([]float64{1. / each}, vertices*each))
	if err != nil {
		b.Fatal(err)
	}
	h, x, labels := &m.head, randomRows(samples, m.head.first.K), make([]int32, vertices)
	benchRunners(b, func(b *testing.B, r *Runner[float32]) {
		w := make([]scratch[float32], r.pool.Threads())
		for i := range w {
			w[i].lifted, w[i].hidden = simd.Aligned[float32](headRows*h.first.K), simd.Aligned[float32](headRows*h.second.K)
		}
		in := &Input[float32]{Lift: lift}
		overRows := func(b *testing.B, body func(w *scratch[float32], begin, end int) error) {
			for b.Loop() {
				err := r.pool.Range(nil, vertices, headRows, func(worker, begin, end int) error { return body(&w[worker], begin, end) })
				if err != nil {
					b.Fatal(err)
				}
			}
		}
		b.Run("lift", func(b *testing.B) {
			overRows(b, func(w *scratch[float32], begin, end int) error {
				in.rows(x, w.lifted, h.first.K, begin, end)
				return nil
			})
		})
		b.Run("head", func(b *testing.B) {
			overRows(b, func(w *scratch[float32], begin, end int) error {
				hidden, err := h.hide(r.kernels, w, simd.Rows[float32]{Data: w.lifted, Stride: h.first.K}, begin, end-begin)
				r.kernels.ArgMax(labels[begin:end], hidden, h.second, h.secondBias, h.classes, end-begin)
				return err
			})
		})
	})
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
				b.Run("as given", func(b *testing.B) { benchConvolution(b, r, mesh, benchSpec()) })
				b.Run("searched", func(b *testing.B) { benchConvolution(b, r, local, benchSpec()) })
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
	x := randomEdges(rand.New(rand.NewPCG(3, 4)), len(neighbors))
	g, err := NewGraph[float32](memory.NewBudget(0, nil), offsets, neighbors, nil, x)
	if err != nil {
		b.Fatal(err)
	}
	return g
}

// benchSpec is a convolution 2 → 2 with attention, band 2 and two rings.
func benchSpec() convolutionSpec {
	return convolutionSpec{in: Type{16, 2}, out: Type{16, 2}, band: 2, rings: 2, radial: RadialGlobal, mean: true, attention: true, heads: 1, bias: BiasAngular}
}

// benchLayer is a convolution on features at random.
type benchLayer struct {
	*convolution[float32]
	mesh    *Graph[float32]
	x, y    simd.Rows[float32]
	scratch []scratch[float32] // of each worker
}

func newBenchLayer(mesh *Graph[float32], threads int, s convolutionSpec) *benchLayer {
	c := newConvolution[float32](s, randomParameters(rand.New(rand.NewPCG(1, 2)), s))
	l := &benchLayer{c, mesh, randomRows(mesh.Vertices(), s.in.size()), randomRows(mesh.Vertices(), s.out.size()), make([]scratch[float32], threads)}
	sizes := c.scratchSizes(mesh.largestBlock)
	for i := range l.scratch {
		for j, to := range l.scratch[i].arrays() {
			*to = simd.Aligned[float32](int(sizes[j]))
		}
	}
	return l
}

// overBlocks calls body for the blocks of the mesh until b ends.
func (l *benchLayer) overBlocks(b *testing.B, r *Runner[float32], body func(w *scratch[float32], begin, end int)) {
	for b.Loop() {
		err := r.pool.Range(nil, l.mesh.Vertices(), blockVertices, func(worker, begin, end int) error {
			body(&l.scratch[worker], begin, end)
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func benchConvolution(b *testing.B, r *Runner[float32], mesh *Graph[float32], s convolutionSpec) {
	l := newBenchLayer(mesh, r.pool.Threads(), s)
	l.overBlocks(b, r, func(w *scratch[float32], begin, end int) {
		l.forward(r.kernels, w, mesh, l.x, l.x, l.y, begin, end, nil)
	})
	vertices, edges := float64(mesh.Vertices()), float64(mesh.Edges())
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/(float64(b.N)*edges), "ns/edge")
	// Features in and out and an offset; a neighbour, four numbers and a length.
	reportWork(b, vertices*l.vertexFlops()+edges*l.edgeFlops(), vertices*float64((s.in.size()+s.out.size())*4+8)+edges*(4+5*4))
}

// BenchmarkEdgePass is the edge pass of such a layer, the logits, their softmax
// and the moments.
func BenchmarkEdgePass(b *testing.B) {
	mesh := graphOf[float32](b, loadGoldenMesh(b, "spot6890"))
	benchRunners(b, func(b *testing.B, r *Runner[float32]) {
		l := newBenchLayer(mesh, r.pool.Threads(), benchSpec())
		blocks := make([]simd.Rings[float32], (mesh.Vertices()+blockVertices-1)/blockVertices)
		for i := range blocks {
			begin, end := i*blockVertices, min((i+1)*blockVertices, mesh.Vertices())
			weights := make([]float32, int(mesh.Offsets[end]-mesh.Offsets[begin])*l.rings)
			mesh.ringWeights(weights, begin, end, l.rings, l.radial)
			blocks[i] = mesh.rings(begin, end, l.x, weights, l.rings)
		}
		l.overBlocks(b, r, func(w *scratch[float32], begin, end int) {
			rings, a := &blocks[begin/blockVertices], l.attention
			u := simd.Rows[float32]{Data: w.moments, Stride: a.stride(l.moments)}
			r.kernels.EdgeAttention(u, u, w.coefficients[:rings.Edges()], nil, a.moments, l.moments, rings, rings, 1, false)
		})
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*mesh.Edges()), "ns/edge")
		reportWork(b, float64(mesh.Edges())*l.edgeFlops(), 0)
	})
}

// BenchmarkStructuredProduct is the product of a block's moments with the weights
// of such a layer.
func BenchmarkStructuredProduct(b *testing.B) {
	mesh := graphOf[float32](b, loadGoldenMesh(b, "spot6890"))
	benchRunners(b, func(b *testing.B, r *Runner[float32]) {
		l := newBenchLayer(mesh, r.pool.Threads(), benchSpec())
		m := randomRows(blockVertices, l.moments.Size(1, l.rings))
		hot(b, r.pool, func(worker int) {
			w := &l.scratch[worker]
			w.rings = mesh.rings(0, blockVertices, l.x, nil, l.rings)
			l.combine(r.kernels, w, m, l.x, l.y.From(worker*blockVertices))
		})
		reportWork(b, 1000*blockVertices*panelFlops(l.value...), 0)
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
		products, _ := m.flops(in.extent())
		reportWork(b, 3*products, 0) // backwards a product is two
	})
}
