package simd

import (
	"math/rand/v2"
	"testing"
)

// Benchmarks of the shapes of a network on 6890 vertices (FAUST), each for
// every instruction set. BenchmarkPeak is the limit of the same processor in
// the same run: products of numbers that never leave the first-level cache.

func benchSets(b *testing.B, run func(b *testing.B, k Kernels32)) {
	for _, k := range Available() {
		b.Run(k.Name(), func(b *testing.B) { run(b, k) })
	}
}

func reportFlops(b *testing.B, flops float64) {
	b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

func alignedRows(rows, n int) Rows[float32] {
	random := rand.New(rand.NewPCG(1, 2))
	x := Rows[float32]{Aligned[float32](rows * n), n}
	for i := range x.Data {
		x.Data[i] = float32(random.NormFloat64())
	}
	return x
}

func benchMultiply(b *testing.B, rows, k, n int) {
	benchSets(b, func(b *testing.B, kernels Kernels32) {
		a, c := alignedRows(rows, k), alignedRows(rows, Padded(n))
		panel, _, _ := narrowPanel(rand.New(rand.NewPCG(3, 4)), k, n)
		for b.Loop() {
			kernels.Multiply(c, a, panel, rows, false)
		}
		reportFlops(b, 2*float64(rows)*float64(k)*float64(panel.N))
	})
}

func BenchmarkPeak(b *testing.B) { benchMultiply(b, 12, 160, 32) }

func BenchmarkMultiply48x608x80(b *testing.B)   { benchMultiply(b, 48, 608, 80) }
func BenchmarkMultiply6890x608x80(b *testing.B) { benchMultiply(b, 6890, 608, 80) }
func BenchmarkMultiply6890x16x256(b *testing.B) { benchMultiply(b, 6890, 16, 256) }

// The products of a convolution 2 → 2 with band 2 and two rings, for a block of
// vertices: orders 0, 1, 2 of the moments.
func BenchmarkStructuredProduct(b *testing.B) {
	const rows, size = 48, 608
	blocks := []struct{ start, k, n int }{{0, 160, 16}, {160, 256, 32}, {416, 192, 32}}
	benchSets(b, func(b *testing.B, kernels Kernels32) {
		m, y := alignedRows(rows, size), alignedRows(rows, 80)
		var panels []*Panel[float32]
		flops := 0.0
		for _, block := range blocks {
			panel, _, _ := narrowPanel(rand.New(rand.NewPCG(3, 4)), block.k, block.n)
			panels = append(panels, panel)
			flops += 2 * rows * float64(block.k*block.n)
		}
		for b.Loop() {
			at := 0
			for i, block := range blocks {
				kernels.Multiply(y.Columns(at), m.Columns(block.start), panels[i], rows, true)
				at += block.n
			}
		}
		reportFlops(b, flops)
	})
}

func BenchmarkArgMax240x256x6890(b *testing.B) {
	const rows, k, classes = 240, 256, 6890
	benchSets(b, func(b *testing.B, kernels Kernels32) {
		a := alignedRows(rows, k)
		panel, _, _ := narrowPanel(rand.New(rand.NewPCG(3, 4)), k, classes)
		bias, labels := make([]float32, panel.N), make([]int32, rows)
		for b.Loop() {
			kernels.ArgMax(labels, a, panel, bias, classes, rows)
		}
		reportFlops(b, 2*rows*k*classes)
	})
}

// benchEdges runs a kernel on a block of 48 vertices with 6 edges each.
func benchEdges(b *testing.B, run func(kernels Kernels32, plan *Moments, rings *Rings[float32], u Rows[float32], logits []float32)) {
	benchSets(b, func(b *testing.B, kernels Kernels32) {
		degrees := make([]int, 48)
		for i := range degrees {
			degrees[i] = 4 + i%5
		}
		plan := NewMoments(2, 2, 2, 16)
		rings, _ := narrowRings(rand.New(rand.NewPCG(5, 6)), degrees, 2, 16, 2)
		for e := range rings.CosTheta {
			rings.CosTheta[e] = 1 // no edge without a direction
		}
		rings.Features = alignedRows(20, 80)
		u, logits := alignedRows(48, plan.Size(1, 2)), make([]float32, rings.Edges())
		for b.Loop() {
			run(kernels, plan, rings, u, logits)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rings.Edges()), "ns/edge")
	})
}

// BenchmarkEdgeAttention has beside it, as BenchmarkEdgeAttentionLimit, the time
// that its multiply-adds of 16 channels take at the rate of BenchmarkPeak: 8
// transport the features of an edge, 50 are in the moments of two sets (five
// features, each times 1, cos θ, sin θ, cos 2θ and sin 2θ) and as many in the
// dots, and 10 put the sums of the latter together.
func BenchmarkEdgeAttention(b *testing.B) {
	benchEdges(b, func(k Kernels32, plan *Moments, rings *Rings[float32], u Rows[float32], logits []float32) {
		k.EdgeAttention(u, u, logits, nil, plan, plan, rings, rings, 1, false)
	})
}

func BenchmarkEdgeAttentionLimit(b *testing.B) {
	benchSets(b, func(b *testing.B, k Kernels32) {
		const rows, inner, columns, edge = 12, 160, 32, (8 + 50 + 50 + 10) * Lanes
		a, c := alignedRows(rows, inner), alignedRows(rows, columns)
		panel, _, _ := narrowPanel(rand.New(rand.NewPCG(3, 4)), inner, columns)
		for b.Loop() {
			k.Multiply(c, a, panel, rows, false)
		}
		b.ReportMetric(edge*float64(b.Elapsed().Nanoseconds())/float64(b.N*rows*inner*columns), "ns/edge")
	})
}

func BenchmarkEdgeDot(b *testing.B) {
	benchEdges(b, func(k Kernels32, plan *Moments, rings *Rings[float32], u Rows[float32], logits []float32) {
		k.EdgeDot(logits, u, plan, rings, 1)
	})
}

func BenchmarkEdgeAggregate(b *testing.B) {
	benchEdges(b, func(k Kernels32, plan *Moments, rings *Rings[float32], u Rows[float32], logits []float32) {
		k.EdgeAggregate(u, logits, plan, rings, 1)
	})
}

func BenchmarkSoftmax(b *testing.B) {
	benchEdges(b, func(k Kernels32, _ *Moments, rings *Rings[float32], _ Rows[float32], logits []float32) {
		k.Softmax(logits, nil, rings.Offsets, 1, false)
	})
}

func BenchmarkPoly(b *testing.B) {
	benchSets(b, func(b *testing.B, kernels Kernels32) {
		x, circle := alignedRows(48, 80), NewCircle[float32](2, PolySamples(2))
		for b.Loop() {
			kernels.Poly(x, circle, 16, 48)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*48), "ns/vertex")
	})
}
