package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// specialCase is a kernel on buffers of the shapes (rows, n), which it reads or
// replaces.
type specialCase struct {
	name   string
	shapes [][2]int
	run    func(k Kernels32, x []*buffer)
	loose  bool // NaN may come out where the specification has a number
}

func special(name string, shapes [][2]int, run func(k Kernels32, x []*buffer)) specialCase {
	return specialCase{name: name, shapes: shapes, run: run}
}

// panelOf is a panel of k rows with the numbers of a buffer.
func panelOf(b *buffer, k int) *Panel[float32] {
	return &Panel[float32]{K: k, N: b.n / k, Data: b.Row(0, b.n)}
}

func specialCases() []specialCase {
	const rows, k, n = 7, 9, 32
	product := [][2]int{{rows, n}, {rows, k}, {1, k * n}, {1, n}}
	cases := []specialCase{
		special("add", [][2]int{{3, 37}, {3, 37}}, func(kernels Kernels32, x []*buffer) { kernels.Add(x[0].Rows, x[1].Rows, 37, 3) }),
		special("rectify", [][2]int{{3, 37}}, func(kernels Kernels32, x []*buffer) { kernels.Rectify(x[0].Rows, 37, 3) }),
		special("log-softmax", [][2]int{{3, 150}}, func(kernels Kernels32, x []*buffer) { kernels.LogSoftmax(x[0].Rows, 150, 3) }),
		special("head", [][2]int{{rows, k}, {1, k * 160}, {1, 160}, {rows, 5}, {rows, 6}}, func(kernels Kernels32, x []*buffer) {
			labels, logs := make([]int32, 5*rows), make([]float32, 5*rows)
			kernels.TopK(labels, logs, x[0].Rows, panelOf(x[1], k), x[2].Data, 160, 5, rows)
			for i := range rows {
				copy(x[3].Row(i, 5), logs[5*i:])
				for j, label := range labels[5*i:][:5] {
					x[4].Row(i, 6)[j] = float32(label)
				}
			}
			kernels.ArgMax(labels, x[0].Rows, panelOf(x[1], k), x[2].Data, 160, rows)
			for i := range rows {
				x[4].Row(i, 6)[5] = float32(labels[i])
			}
		}),
	}
	for _, accumulate := range []bool{false, true} {
		cases = append(cases, special(fmt.Sprint("product ", accumulate), product, func(kernels Kernels32, x []*buffer) {
			kernels.Multiply(x[0].Rows, x[1].Rows, panelOf(x[2], k), rows, accumulate)
		}))
	}
	for _, f := range []Activation{Identity, ReLU, ELU} {
		cases = append(cases, special(fmt.Sprint("dense ", f), product, func(kernels Kernels32, x []*buffer) {
			kernels.Dense(x[0].Rows, x[1].Rows, panelOf(x[2], k), x[3].Data, rows, f)
		}))
	}
	for order := 1; order <= MaxOrder; order++ {
		cases = append(cases, nonlinearCases(order)...)
	}
	for _, degree := range []int{1, 5, 9, 70} {
		cases = append(cases, ringCases(degree)...)
	}
	return append(cases, backwardCases()...)
}

// backwardCases is those of the backward passes that belong to no ring and no
// circle.
func backwardCases() []specialCase {
	const rows, k, n, parameters = 11, 13, 32, 53
	return []specialCase{
		special("correlate", [][2]int{{k, n}, {rows, k}, {rows, n}}, func(kernels Kernels32, x []*buffer) {
			kernels.Correlate(x[0].Rows, x[1].Rows, x[2].Rows, k, n, rows)
		}),
		special("cross-entropy", [][2]int{{rows, 37}, {1, rows}, {1, 2}}, func(kernels Kernels32, x []*buffer) {
			labels := []int32{0, 36, 35, 1, 2, 31, 32, 17, 16, 15, 14}
			loss, hits := kernels.CrossEntropy(x[0].Rows, labels, x[1].Row(0, rows), 37, rows)
			copy(x[2].Data, []float32{float32(loss), float32(hits)})
		}),
		special("gather", [][2]int{{3, n}, {6, n}}, func(kernels Kernels32, x []*buffer) {
			kernels.Gather(x[0].Rows, x[1].Rows, []int32{5, 0, 3, 2}, []int64{0, 3, 3, 4}, n)
		}),
		special("rectify gradient", [][2]int{{rows, n}, {rows, n}}, func(kernels Kernels32, x []*buffer) {
			kernels.RectifyGradient(x[0].Rows, x[1].Rows, n, rows)
		}),
		special("adam", [][2]int{{1, parameters}, {1, parameters}, {1, parameters}, {1, parameters}}, func(kernels Kernels32, x []*buffer) {
			second := x[2].Row(0, parameters)
			for i := range second {
				second[i] = max(second[i], -second[i])
			}
			step := AdamStep{Beta1: 0.9, Beta2: 0.99, Rate: 0.01, Root: 0.3, Epsilon: 1e-3, Decay: 0.98, Penalty: 0.1, Scale: 0.7}
			kernels.Adam(x[0].Row(0, parameters), x[1].Row(0, parameters), second, x[3].Row(0, parameters), &step)
		}),
	}
}

func nonlinearCases(order int) []specialCase {
	const rows, channels = 2, 32
	shape := [2]int{rows, (2*order + 1) * channels}
	return []specialCase{
		special(fmt.Sprint("regular ", order), [][2]int{shape}, func(kernels Kernels32, x []*buffer) {
			kernels.Regular(x[0].Rows, NewCircle[float32](order, 7), channels, rows)
		}),
		special(fmt.Sprint("poly ", order), [][2]int{shape}, func(kernels Kernels32, x []*buffer) {
			kernels.Poly(x[0].Rows, NewCircle[float32](order, PolySamples(order)), channels, rows)
		}),
		special(fmt.Sprint("gate ", order), [][2]int{shape, {1, order * channels}, {1, order * channels}}, func(kernels Kernels32, x []*buffer) {
			kernels.Gate(x[0].Rows, x[1].Data, x[2].Data, order, channels, rows)
		}),
		special(fmt.Sprint("gradient of regular ", order), [][2]int{shape, shape}, func(kernels Kernels32, x []*buffer) {
			kernels.RegularGradient(x[0].Rows, x[1].Rows, NewCircle[float32](order, 7), channels, rows)
		}),
		special(fmt.Sprint("gradient of poly ", order), [][2]int{shape, shape}, func(kernels Kernels32, x []*buffer) {
			kernels.PolyGradient(x[0].Rows, x[1].Rows, NewCircle[float32](order, PolySamples(order)), channels, rows)
		}),
	}
}

// ringCases is the kernels on three rings, the second of a degree; all edges
// have a direction.
func ringCases(degree int) []specialCase {
	const heads, sets = 2, 2
	degrees := []int{3, degree, 0}
	edges := 3 + degree
	offsets := []int64{0, 3, int64(edges), int64(edges)}
	cases := []specialCase{
		special(fmt.Sprint("softmax ", degree), [][2]int{{1, edges}}, func(kernels Kernels32, x []*buffer) {
			kernels.Softmax(x[0].Row(0, edges), nil, offsets, 1, true)
		}),
		special(fmt.Sprint("softmax with self ", degree), [][2]int{{1, edges * heads}, {1, len(degrees) * heads}}, func(kernels Kernels32, x []*buffer) {
			kernels.Softmax(x[0].Row(0, edges*heads), x[1].Data, offsets, heads, false)
		}),
	}
	for in := range 3 {
		cases = append(cases, edgeCase(in, degrees, heads, sets, 0.6, 0.8), edgeCase(in, degrees, heads, sets, 0, 0))
	}
	return cases
}

// edgeCase is both kernels over edges whose direction has this cosine and sine.
// Where there is no direction, the specification has moments that are 0
// whatever the features are; the others multiply by 0.
func edgeCase(in int, degrees []int, heads, sets int, cosine, sine float32) specialCase {
	plan := NewMoments(in, 2, 2, 16)
	rings, _ := narrowRings(rand.New(rand.NewPCG(21, 1)), degrees, in, 16, sets)
	for i := range rings.CosTheta {
		rings.CosTheta[i], rings.SinTheta[i] = cosine, sine
	}
	edges := rings.Edges()
	// The features, the weights, u and then the moments, the logits, a.
	shapes := [][2]int{{20, (2*in + 1) * 16}, {1, edges * sets}, {len(degrees), plan.Size(heads, sets)}, {1, edges * heads}, {1, edges * heads}}
	shapes = append(shapes, [2]int{edges, (2*in + 1) * 16}) // records
	c := special(fmt.Sprintf("edges of order %d, degrees %d, direction (%g, %g)", in, degrees, cosine, sine), shapes, func(kernels Kernels32, x []*buffer) {
		of := *rings
		of.Features, of.Weights = x[0].Rows, x[1].Row(0, edges*sets)
		kernels.EdgeDot(x[3].Row(0, edges*heads), x[2].Rows, plan, &of, heads)
		kernels.EdgeTranspose(x[5].Rows, x[2].Rows, x[4].Row(0, edges*heads), plan, &of, heads, in == 1)
		kernels.EdgeAggregate(x[2].Rows, x[4].Row(0, edges*heads), plan, &of, heads)
	})
	c.loose = cosine == 0 && sine == 0
	return c
}

// Whatever the set, NaN comes out where the specification has it, infinities
// lead to numbers that are not finite in the same places, and other numbers to
// finite ones. Whether it is ∞ or NaN that an infinity leads to may depend on
// the order of a sum. What the specification only reads keeps its bits.
func TestSpecialNumbersOfEverySet(t *testing.T) {
	values := []float32{
		float32(math.NaN()), math.Float32frombits(0x7f800001), float32(math.Inf(1)), float32(math.Inf(-1)),
		1e30, 3e-42, -1e-45, 0, float32(math.Copysign(0, -1)),
	}
	cases := specialCases()
	eachSet(t, func(t *testing.T, kernels Kernels32) {
		random := rand.New(rand.NewPCG(20, 1))
		for _, value := range values {
			for _, c := range cases {
				for input := range c.shapes {
					checkSpecial(t, kernels, random, c, input, value)
				}
			}
		}
	})
}

// checkSpecial compares with the specification where one number of an input is
// the given one.
func checkSpecial(t *testing.T, kernels Kernels32, random *rand.Rand, c specialCase, input int, value float32) {
	t.Helper()
	var given, got, want []*buffer
	for i, shape := range c.shapes {
		b := newDense(random, shape[1], shape[0])
		if i == input {
			b.Row(random.IntN(shape[0]), shape[1])[random.IntN(shape[1])] = value
		}
		given, got, want = append(given, b), append(got, b.clone()), append(want, b.clone())
	}
	c.run(kernels, got)
	c.run(Generic[float32]{}, want)
	for i := range got {
		if sameBits(want[i].whole, given[i].whole) && !sameBits(got[i].whole, given[i].whole) {
			t.Fatalf("%s, %g in input %d: buffer %d was written", c.name, value, input, i)
		}
		for j, x := range got[i].whole {
			if y := want[i].whole[j]; !c.alike(float64(x), float64(y), float64(value)) {
				t.Fatalf("%s, %g in input %d: number %d of buffer %d is %g, not %g", c.name, value, input, j-before, i, x, y)
			}
		}
	}
}

// alike says whether x may stand for y, to which a special value has led.
func (c *specialCase) alike(x, y, special float64) bool {
	finite := func(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }
	switch {
	case !finite(y) || !finite(x):
		return finite(x) == finite(y) && (!math.IsNaN(special) || math.IsNaN(x) == math.IsNaN(y)) || c.loose && !finite(special)
	case math.Abs(special) > 1 && finite(special):
		return true // rounding swallows the others
	default:
		return math.Abs(x-y) <= 1e-4*(1+math.Abs(y))
	}
}
