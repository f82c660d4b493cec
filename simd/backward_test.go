package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The kernels of the backward passes: Generic against what they are the
// transposes and derivatives of, and every set against Generic in float64.

func inner(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// ⟨EdgeAggregate(f), m⟩ = ⟨f, EdgeTranspose(m)⟩: the moments are linear in the
// features.
func TestEdgeTransposeIsTheTransposeOfEdgeAggregate(t *testing.T) {
	random := rand.New(rand.NewPCG(41, 1))
	for in := range MaxOrder + 1 {
		for out := range MaxOrder + 1 {
			for band := -1; band <= 4; band++ {
				heads, sets := 1+random.IntN(3), 1+random.IntN(3)
				plan := NewMoments(in, out, band, 16)
				_, rings := narrowRings(random, []int{3, 0, 12, 1}, in, 16, sets)
				size, width := plan.Size(heads, sets), (2*in+1)*16
				m := Rows[float64]{numbers(random, 4*size), size}
				a := numbers(random, rings.Edges()*heads)
				moments := Rows[float64]{make([]float64, 4*size), size}
				Generic[float64]{}.EdgeAggregate(moments, a, plan, rings, heads)
				records := Rows[float64]{make([]float64, rings.Edges()*width), width}
				Generic[float64]{}.EdgeTranspose(records, m, a, plan, rings, heads, false)
				got := 0.0
				for e := range rings.Edges() {
					q := int(rings.Neighbors[rings.Offsets[0]+int64(e)])
					got += inner(records.Row(e, width), rings.Features.Row(q, width))
				}
				if want := inner(moments.Data, m.Data); !closeTo(got/100, want/100) {
					t.Errorf("%d → %d, band %d: %g, not %g", in, out, band, got, want)
				}
			}
		}
	}
}

// differentiate checks a gradient against the central difference of ⟨f(x), c⟩
// along a direction.
func differentiate(t *testing.T, what string, x, c, gradient []float64, f func(x []float64) []float64) {
	t.Helper()
	random := rand.New(rand.NewPCG(42, 1))
	direction := numbers(random, len(x))
	const h = 1e-5
	at := func(step float64) float64 {
		moved := slices.Clone(x)
		for i := range moved {
			moved[i] += step * direction[i]
		}
		return inner(f(moved), c)
	}
	want := (at(h) - at(-h)) / (2 * h)
	if got := inner(gradient, direction); !(math.Abs(got-want) < 1e-7*(1+math.Abs(want))) {
		t.Errorf("%s: the derivative is %g, not %g", what, got, want)
	}
}

func TestGradientsOfNonlinearities(t *testing.T) {
	random := rand.New(rand.NewPCG(43, 1))
	g := Generic[float64]{}
	for order := 1; order <= MaxOrder; order++ {
		const channels, rows = 5, 3
		n := (2*order + 1) * channels
		x, c := numbers(random, rows*n), numbers(random, rows*n)
		a, b := numbers(random, order*channels), numbers(random, order*channels)
		view := func(data []float64) Rows[float64] { return Rows[float64]{data, n} }
		for name, run := range map[string]struct {
			forward  func(x []float64)
			backward func(gradient []float64)
		}{
			"regular": {
				func(x []float64) { g.Regular(view(x), NewCircle[float64](order, 7), channels, rows) },
				func(gradient []float64) {
					g.RegularGradient(view(gradient), view(x), NewCircle[float64](order, 7), channels, rows)
				},
			},
			"poly": {
				func(x []float64) { g.Poly(view(x), NewCircle[float64](order, PolySamples(order)), channels, rows) },
				func(gradient []float64) {
					g.PolyGradient(view(gradient), view(x), NewCircle[float64](order, PolySamples(order)), channels, rows)
				},
			},
			"gate": {
				func(x []float64) { g.Gate(view(x), a, b, order, channels, rows) },
				func(gradient []float64) {
					da, db := make([]float64, len(a)), make([]float64, len(b))
					g.GateGradient(view(gradient), view(x), a, b, da, db, order, channels, rows)
					gate := func(a, b []float64) []float64 {
						y := slices.Clone(x)
						g.Gate(view(y), a, b, order, channels, rows)
						return y
					}
					differentiate(t, "gate, a", a, c, da, func(a []float64) []float64 { return gate(a, b) })
					differentiate(t, "gate, b", b, c, db, func(b []float64) []float64 { return gate(a, b) })
				},
			},
		} {
			gradient := slices.Clone(c)
			run.backward(gradient)
			differentiate(t, fmt.Sprintf("%s, order %d", name, order), x, c, gradient, func(x []float64) []float64 {
				run.forward(x)
				return x
			})
		}
	}
}

func TestGradientsOfSoftmaxAndCrossEntropy(t *testing.T) {
	random := rand.New(rand.NewPCG(44, 1))
	g := Generic[float64]{}
	offsets := []int64{7, 10, 10, 18, 19}
	const heads, edges, vertices = 3, 12, 4
	for _, self := range []bool{false, true} {
		for _, scaled := range []bool{false, true} {
			n := edges * heads
			if self {
				n += vertices * heads
			}
			x, c := numbers(random, n), numbers(random, n)
			split := func(x []float64) (ring, own []float64) {
				if !self {
					return x, nil
				}
				return x[:edges*heads], x[edges*heads:]
			}
			forward := func(x []float64) []float64 {
				ring, own := split(x)
				g.Softmax(ring, own, offsets, heads, scaled)
				return x
			}
			gradient := slices.Clone(c)
			ofRing, ofOwn := split(gradient)
			alpha, own := split(forward(slices.Clone(x)))
			g.SoftmaxGradient(ofRing, ofOwn, alpha, own, offsets, heads, scaled)
			differentiate(t, fmt.Sprintf("softmax, self %t, scaled %t", self, scaled), x, c, gradient, forward)
		}
	}
	const rows, classes = 6, 9
	x := numbers(random, rows*classes)
	labels, weights := []int32{0, 8, 3, 3, 1, 5}, []float64{1, 0.5, 0, 2, 1, 3}
	gradient := slices.Clone(x)
	g.CrossEntropy(Rows[float64]{gradient, classes}, labels, weights, classes, rows)
	differentiate(t, "cross-entropy", x, []float64{1}, gradient, func(x []float64) []float64 {
		loss, _ := g.CrossEntropy(Rows[float64]{slices.Clone(x), classes}, labels, weights, classes, rows)
		return []float64{loss}
	})
}

func TestCorrelationsOfEverySet(t *testing.T) {
	eachSet(t, func(t *testing.T, kernels Kernels32) {
		random := rand.New(rand.NewPCG(45, 1))
		for size := range 100 {
			checkCorrelation(t, kernels, random, size, 16*random.IntN(5), random.IntN(60))
			checkCorrelation(t, kernels, random, random.IntN(40), 16*random.IntN(5), size)
		}
		checkCorrelation(t, kernels, random, 13, 48, 700)
	})
}

func checkCorrelation(t *testing.T, kernels Kernels32, random *rand.Rand, k, n, rows int) {
	t.Helper()
	a, b, c := newBuffer(random, k, rows), newBuffer(random, n, rows), newBuffer(random, n, k)
	want, sum := c.wide(), Rows[float64]{magnitudes(widened(c.Data)), c.Stride}
	kept := append(slices.Clone(a.whole), b.whole...)
	kernels.Correlate(c.Rows, a.Rows, b.Rows, k, n, rows)
	Generic[float64]{}.Correlate(want, a.wide(), b.wide(), k, n, rows)
	Generic[float64]{}.Correlate(sum, Rows[float64]{magnitudes(widened(a.Data)), a.Stride}, Rows[float64]{magnitudes(widened(b.Data)), b.Stride}, k, n, rows)
	c.check(t, fmt.Sprintf("correlation %d×%d of %d rows", k, n, rows), want, func(i, j int) float64 {
		return float64(rows+2) * (epsilon*sum.Row(i, n)[j] + math.SmallestNonzeroFloat32)
	})
	if !slices.Equal(kept, append(slices.Clone(a.whole), b.whole...)) {
		t.Fatal("correlation: an operand was written")
	}
}

func TestCrossEntropyOfEverySet(t *testing.T) {
	eachSet(t, func(t *testing.T, kernels Kernels32) {
		random := rand.New(rand.NewPCG(46, 1))
		for n := 1; n < 300; n += 1 + n/9 {
			checkCrossEntropy(t, kernels, random, n, 1+random.IntN(5), 1)
			checkCrossEntropy(t, kernels, random, n, 2, 40)
		}
		// What is not finite comes out as in the specification.
		for _, special := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
			for at := range 40 {
				x := newBuffer(random, 40, 1)
				x.Data[at] = special
				want := x.clone()
				loss, hits := kernels.CrossEntropy(x.Rows, []int32{11}, []float32{1}, 40, 1)
				wantLoss, wantHits := Generic[float32]{}.CrossEntropy(want.Rows, []int32{11}, []float32{1}, 40, 1)
				if !(math.Abs(loss-wantLoss) < 1e-5) && !(math.IsNaN(loss) && math.IsNaN(wantLoss)) && loss != wantLoss || hits != wantHits && !math.IsNaN(wantLoss) {
					t.Fatalf("%g at %d: loss %g, %d hits, not %g, %d", special, at, loss, hits, wantLoss, wantHits)
				}
			}
		}
	})
}

func checkCrossEntropy(t *testing.T, kernels Kernels32, random *rand.Rand, n, rows int, spread float32) {
	t.Helper()
	x := newBuffer(random, n, rows)
	labels, weights := make([]int32, rows), make([]float32, rows)
	for i := range rows {
		labels[i], weights[i] = int32(random.IntN(n)), float32(random.IntN(3))
		for j := range n {
			x.Row(i, n)[j] *= spread
		}
		if random.IntN(2) == 0 { // two largest scores
			x.Row(i, n)[n-1], x.Row(i, n)[n/2] = 9*spread, 9*spread
			labels[i] = int32(n / 2)
		}
	}
	want := x.wide()
	loss, hits := kernels.CrossEntropy(x.Rows, labels, weights, n, rows)
	wantLoss, wantHits := Generic[float64]{}.CrossEntropy(want, labels, widened(weights), n, rows)
	total := 0.0
	for _, w := range weights {
		total += float64(w)
	}
	if !(math.Abs(loss-wantLoss) <= (16+float64(spread))*epsilon*(total+wantLoss)) || hits != wantHits {
		t.Fatalf("%d classes: loss %g, %d hits, not %g, %d", n, loss, hits, wantLoss, wantHits)
	}
	x.check(t, fmt.Sprintf("gradient of %d scores", n), want, func(i, j int) float64 {
		return (16 + 16*float64(spread)) * epsilon * float64(weights[i])
	})
}

func TestSoftmaxGradientsOfEverySet(t *testing.T) {
	eachSet(t, func(t *testing.T, kernels Kernels32) {
		random := rand.New(rand.NewPCG(50, 1))
		for n := range 100 {
			checkSoftmaxGradient(t, kernels, random, []int{random.IntN(9), n, 0, 1}, 1+n%3, n%2 == 0, n%5 == 0)
		}
	})
}

func checkSoftmaxGradient(t *testing.T, kernels Kernels32, random *rand.Rand, degrees []int, heads int, self, scaled bool) {
	t.Helper()
	offsets := []int64{17}
	for _, degree := range degrees {
		offsets = append(offsets, offsets[len(offsets)-1]+int64(degree))
	}
	edges := int(offsets[len(degrees)] - 17)
	alpha, own := newDense(random, heads, edges), newDense(random, heads, len(degrees))
	ofAlpha, ofOwn := newDense(random, heads, edges), newDense(random, heads, len(degrees))
	want, wantOwn := ofAlpha.wide(), ofOwn.wide()
	most := slices.Max(magnitudes(slices.Concat(want.Data[:edges*heads], wantOwn.Data[:len(degrees)*heads])))
	selfAlpha, selfGradient, selfWant := own.Data, ofOwn.Data, wantOwn.Data
	if !self {
		selfAlpha, selfGradient, selfWant = nil, nil, nil
	}
	ring, ofRing := alpha.Data[:edges*heads], ofAlpha.Data[:edges*heads]
	Generic[float32]{}.Softmax(ring, selfAlpha, offsets, heads, scaled)
	kernels.SoftmaxGradient(ofRing, selfGradient, ring, selfAlpha, offsets, heads, scaled)
	Generic[float64]{}.SoftmaxGradient(want.Data[:edges*heads], selfWant, widened(ring), widened(selfAlpha), offsets, heads, scaled)
	// α (dα - Σ α dα / Σ α), the difference no more than twice the largest |dα|.
	bound := func(alpha *buffer) func(i, j int) float64 {
		return func(i, j int) float64 { return 4 * epsilon * most * float64(alpha.Row(i, heads)[j]) }
	}
	ofAlpha.check(t, "gradient of a softmax", want, bound(alpha))
	ofOwn.check(t, "gradient of a softmax for the vertex itself", wantOwn, bound(own))
}

func TestGradientsOfNonlinearitiesOfEverySet(t *testing.T) {
	eachSet(t, func(t *testing.T, kernels Kernels32) {
		random := rand.New(rand.NewPCG(47, 1))
		for order := 1; order <= MaxOrder; order++ {
			for _, channels := range []int{16, 32, 7} {
				checkNonlinearGradients(t, kernels, random, order, channels)
			}
		}
	})
}

func checkNonlinearGradients(t *testing.T, kernels Kernels32, random *rand.Rand, order, channels int) {
	t.Helper()
	n, rows := (2*order+1)*channels, 3
	samples := PolySamples(order)
	a, b := newDense(random, channels, order), newDense(random, channels, order)
	x, g := newBuffer(random, n, rows), newBuffer(random, n, rows)
	for k := range 2*order + 1 {
		x.Row(1, n)[k*channels+3] = 0
	}
	da, db := newDense(random, channels, order), newDense(random, channels, order)
	wantA, wantB := da.wide(), db.wide()
	// Sums of products as in the forward pass, of both operands; the polynomial
	// divides by the size of x, so its derivative is of the size of g.
	bound := func(i, j int) float64 {
		norm := 0.0
		for k := range 2*order + 1 {
			norm += math.Abs(float64(g.Row(i, n)[k*channels+j%channels]))
		}
		return float64(20*samples+40*order) * epsilon * norm
	}
	for name, run := range map[string]struct {
		narrow func(g Rows[float32])
		wide   func(g Rows[float64])
	}{
		"regular": {
			func(g Rows[float32]) {
				kernels.RegularGradient(g, x.Rows, NewCircle[float32](order, 7), channels, rows)
			},
			func(g Rows[float64]) {
				Generic[float64]{}.RegularGradient(g, x.wide(), NewCircle[float64](order, 7), channels, rows)
			},
		},
		"poly": {
			func(g Rows[float32]) {
				kernels.PolyGradient(g, x.Rows, NewCircle[float32](order, samples), channels, rows)
			},
			func(g Rows[float64]) {
				Generic[float64]{}.PolyGradient(g, x.wide(), NewCircle[float64](order, samples), channels, rows)
			},
		},
		"gate": {
			func(g Rows[float32]) {
				kernels.GateGradient(g, x.Rows, a.Data, b.Data, da.Data, db.Data, order, channels, rows)
			},
			func(g Rows[float64]) {
				Generic[float64]{}.GateGradient(g, x.wide(), widened(a.Data), widened(b.Data), wantA.Data, wantB.Data, order, channels, rows)
			},
		},
	} {
		got, want := g.clone(), g.wide()
		kept := slices.Clone(x.whole)
		run.narrow(got.Rows)
		run.wide(want)
		got.check(t, fmt.Sprintf("gradient of %s, order %d, %d channels", name, order, channels), want, bound)
		if !slices.Equal(kept, x.whole) {
			t.Fatalf("gradient of %s: x was written", name)
		}
	}
	for _, c := range []struct {
		got  *buffer
		want Rows[float64]
	}{{da, wantA}, {db, wantB}} {
		c.got.check(t, "gradient of the gate's parameters", c.want, func(i, j int) float64 { return 1e-5 * (1 + math.Abs(c.want.Row(i, channels)[j])) })
	}
}

func TestEdgeTransposesOfEverySet(t *testing.T) {
	eachSet(t, func(t *testing.T, kernels Kernels32) {
		random := rand.New(rand.NewPCG(48, 1))
		for in := range MaxOrder + 1 {
			for out := range MaxOrder + 1 {
				for band := -1; band <= 4; band++ {
					sets, heads, channels := 1+random.IntN(4), 1+random.IntN(3), 16*(1+random.IntN(2))
					checkTranspose(t, kernels, random, NewMoments(in, out, band, channels), []int{random.IntN(9), 0, random.IntN(20), 1}, sets, heads)
				}
			}
		}
		for degree := range 150 {
			checkTranspose(t, kernels, random, NewMoments(2, 2, 2, 16), []int{0, 3, degree, 2}, 1+degree%3, 1)
		}
	})
}

func checkTranspose(t *testing.T, kernels Kernels32, random *rand.Rand, plan *Moments, degrees []int, sets, heads int) {
	t.Helper()
	narrow, wide := narrowRings(random, degrees, plan.In, plan.Channels, sets)
	size, width, edges := plan.Size(heads, sets), (2*plan.In+1)*plan.Channels, narrow.Edges()
	m, a := newBuffer(random, size, len(degrees)), newDense(random, heads, edges)
	records := newBuffer(random, width, edges)
	what := fmt.Sprintf("%d → %d with rows %v, %d sets, %d heads, degrees %v", plan.In, plan.Out, plan.Rows, sets, heads, degrees)
	for _, accumulate := range []bool{false, true} {
		got, want := records.clone(), records.wide()
		kernels.EdgeTranspose(got.Rows, m.Rows, a.Data[:heads*edges], plan, narrow, heads, accumulate)
		Generic[float64]{}.EdgeTranspose(want, m.wide(), widened(a.Data[:heads*edges]), plan, wide, heads, accumulate)
		got.check(t, fmt.Sprintf("transpose of %s, accumulate %t", what, accumulate), want, func(e, j int) float64 {
			p := 0
			for narrow.Offsets[p+1]-narrow.Offsets[0] <= int64(e) {
				p++
			}
			moments, weight := 0.0, 0.0
			for _, x := range m.Row(p, size) {
				moments += math.Abs(float64(x))
			}
			for h := range heads {
				for s := range sets {
					weight = max(weight, math.Abs(float64(a.Data[e*heads+h])*wide.weight(s, e)))
				}
			}
			return float64(plan.TotalRows()*sets*heads+2*plan.In+2*plan.Out+12) * epsilon * (moments*weight + math.Abs(float64(records.Row(e, width)[j])))
		})
	}
}

func TestGatherAndAdamOfEverySet(t *testing.T) {
	eachSet(t, func(t *testing.T, kernels Kernels32) {
		random := rand.New(rand.NewPCG(49, 1))
		for n := range 100 {
			checkGather(t, kernels, random, n, 4, 9)
			checkAdam(t, kernels, random, n)
		}
	})
}

func checkGather(t *testing.T, kernels Kernels32, random *rand.Rand, n, vertices, rows int) {
	t.Helper()
	x, records := newBuffer(random, n, vertices), newBuffer(random, n, rows)
	edges, offsets := []int32{0}, []int64{1}
	for range vertices {
		for range random.IntN(4) {
			edges = append(edges, int32(random.IntN(rows)))
		}
		offsets = append(offsets, int64(len(edges)))
	}
	got, want := x.clone(), x.clone()
	kernels.Gather(got.Rows, records.Rows, edges, offsets, n)
	Generic[float32]{}.Gather(want.Rows, records.Rows, edges, offsets, n)
	got.check(t, "gather", want.wide(), func(int, int) float64 { return 0 })
}

func checkAdam(t *testing.T, kernels Kernels32, random *rand.Rand, n int) {
	t.Helper()
	var state [4]*buffer
	for i := range state {
		state[i] = newBuffer(random, n, 1)
	}
	for j := range state[2].Row(0, n) {
		state[2].Row(0, n)[j] = float32(math.Abs(float64(state[2].Row(0, n)[j])))
	}
	step := &AdamStep{Beta1: 0.9, Beta2: 0.999, Rate: 0.03, Root: 0.1, Epsilon: 1e-8, Decay: 0.99, Penalty: 0.01, Scale: 0.5}
	w, first, second, g := state[0].wide(), state[1].wide(), state[2].wide(), state[3].wide()
	kernels.Adam(state[0].Row(0, n), state[1].Row(0, n), state[2].Row(0, n), state[3].Row(0, n), step)
	Generic[float64]{}.Adam(w.Row(0, n), first.Row(0, n), second.Row(0, n), g.Row(0, n), step)
	for i, want := range []Rows[float64]{w, first, second, g} {
		state[i].check(t, fmt.Sprintf("array %d of Adam", i), want, func(_, j int) float64 {
			return 16 * epsilon * (1 + math.Abs(want.Data[j]))
		})
	}
}
