package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"libeman/tests/need"
)

// The kernels of every instruction set that runs here, held to the formulas in
// float64: Generic[float64] on the same numbers. epsilon is the relative error
// of one rounding in float32; each bound counts the roundings on the way to a
// number and multiplies by the sum of the magnitudes they act on.
const epsilon = 1.0 / (1 << 24)

// The set in use is the one that the environment names (a run under an emulated
// processor fails if it took another path), and otherwise the fastest that the
// system says the processor has. CI must have the fastest of all: no emulator
// has it.
func TestInstructionSetIsTheOneExpected(t *testing.T) {
	want := os.Getenv("EMAN_TEST_ISA")
	if want == "" {
		want = setOfProcessor(t)
		if need.InCI() && runtime.GOARCH == "amd64" && want != "avx512" {
			t.Errorf("this machine has no AVX-512: its kernels are not tested")
		}
	}
	if got := Best().Name(); got != want {
		t.Fatalf("%s is in use, not %s", got, want)
	}
}

// setOfProcessor is the fastest set by the flags that Linux lists.
func setOfProcessor(t *testing.T) string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		need.Missing(t, err)
	}
	flags := strings.Fields(string(text))
	for _, set := range []struct {
		name  string
		flags []string
	}{
		{"avx512", []string{"avx2", "fma", "bmi2", "avx512f", "avx512dq", "avx512bw", "avx512vl"}},
		{"avx2", []string{"avx2", "fma", "bmi2"}},
		{"neon", []string{"asimd"}},
	} {
		if !slices.ContainsFunc(set.flags, func(flag string) bool { return !slices.Contains(flags, flag) }) {
			return set.name
		}
	}
	return "generic"
}

func TestKernelsAreFoundByName(t *testing.T) {
	for _, k := range Available() {
		if found, err := ByName(k.Name()); err != nil || found != k {
			t.Errorf("%s: %v, %v", k.Name(), found, err)
		}
	}
	if _, err := ByName("abacus"); err == nil {
		t.Error("an unknown name was found")
	}
}

// eachSet runs a test for every instruction set.
func eachSet(t *testing.T, test func(t *testing.T, k Kernels32)) {
	for _, k := range Available() {
		t.Run(k.Name(), func(t *testing.T) { test(t, k) })
	}
}

// buffer is rows rows of n numbers, guarded all around and at an odd address.
type buffer struct {
	Rows[float32]
	whole   []float32
	n, rows int
}

const before = 5

func newBuffer(random *rand.Rand, n, rows int) *buffer {
	return newStrided(random, n, rows, n+random.IntN(4))
}

// newDense has no guards between the rows.
func newDense(random *rand.Rand, n, rows int) *buffer { return newStrided(random, n, rows, n) }

func newStrided(random *rand.Rand, n, rows, stride int) *buffer {
	b := &buffer{whole: make([]float32, before+rows*stride+n+21), n: n, rows: rows}
	for i := range b.whole {
		b.whole[i] = guard
	}
	b.Rows = Rows[float32]{b.whole[before:], stride}
	for i := range rows {
		for j := range n {
			b.Row(i, n)[j] = float32(random.NormFloat64())
		}
	}
	return b
}

func (b *buffer) clone() *buffer {
	c := *b
	c.whole = slices.Clone(b.whole)
	c.Data = c.whole[before:]
	return &c
}

func (b *buffer) wide() Rows[float64] { return Rows[float64]{widened(b.Data), b.Stride} }

func widened(x []float32) []float64 {
	wide := make([]float64, len(x))
	for i, value := range x {
		wide[i] = float64(value)
	}
	return wide
}

func magnitudes(x []float64) []float64 {
	m := make([]float64, len(x))
	for i, value := range x {
		m[i] = math.Abs(value)
	}
	return m
}

// check compares with the result in float64, and the guards with themselves.
func (b *buffer) check(t *testing.T, what string, want Rows[float64], bound func(i, j int) float64) {
	t.Helper()
	inside := make([]bool, len(b.whole))
	for i := range b.rows {
		for j := range b.n {
			inside[before+i*b.Stride+j] = true
			got, want := float64(b.Row(i, b.n)[j]), want.Row(i, b.n)[j]
			if math.IsNaN(want) && math.IsNaN(got) || got == want {
				continue
			}
			if !(math.Abs(got-want) <= bound(i, j)) {
				t.Fatalf("%s: entry (%d, %d) is %g, not %g: off by %g, bound %g", what, i, j, got, want, got-want, bound(i, j))
			}
		}
	}
	for i, value := range b.whole {
		if !inside[i] && value != guard {
			t.Fatalf("%s: number %d outside was written: %g", what, i-before, value)
		}
	}
}

func relative(want Rows[float64], n int, roundings float64) func(i, j int) float64 {
	return func(i, j int) float64 {
		return roundings*epsilon*math.Abs(want.Row(i, n)[j]) + math.SmallestNonzeroFloat32
	}
}

// narrowPanel is a panel of random numbers, with its copy in float64 and that
// of their magnitudes.
func narrowPanel(random *rand.Rand, k, n int) (p *Panel[float32], wide, magnitude *Panel[float64]) {
	p = NewPanel[float32](k, n)
	for i := range k {
		for j := range n {
			p.Set(i, j, float32(random.NormFloat64()))
		}
	}
	wide = &Panel[float64]{K: k, N: p.N, Data: widened(p.Data)}
	return p, wide, &Panel[float64]{K: k, N: p.N, Data: magnitudes(wide.Data)}
}

func TestProductsOfEverySet(t *testing.T) {
	eachSet(t, func(t *testing.T, kernels Kernels32) {
		random := rand.New(rand.NewPCG(11, 1))
		for size := range 200 {
			checkProducts(t, kernels, random, random.IntN(40), size, 1+random.IntN(70))
			checkProducts(t, kernels, random, size, random.IntN(20), 1+random.IntN(70))
			checkProducts(t, kernels, random, random.IntN(30), random.IntN(20), 1+size)
		}
	})
}

func checkProducts(t *testing.T, kernels Kernels32, random *rand.Rand, rows, k, n int) {
	t.Helper()
	b, wideB, magnitudeB := narrowPanel(random, k, n)
	a := newBuffer(random, k, rows)
	if rows > 0 && k > 0 && random.IntN(3) == 0 {
		special := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 1e-44, math.MaxFloat32 / 1e3}
		a.Row(random.IntN(rows), k)[random.IntN(k)] = special[random.IntN(len(special))]
	}
	bias := newBuffer(random, b.N, 1)
	given := newBuffer(random, b.N, rows)
	kept := a.clone()
	exact, sum := Generic[float64]{}, Rows[float64]{make([]float64, rows*b.N), b.N}
	exact.Multiply(sum, Rows[float64]{magnitudes(widened(a.Data)), a.Stride}, magnitudeB, rows, false)
	bound := func(own func(i, j int) float64) func(i, j int) float64 {
		return func(i, j int) float64 {
			return float64(k+2) * (epsilon*(sum.Row(i, b.N)[j]+math.Abs(own(i, j))) + math.SmallestNonzeroFloat32)
		}
	}
	name := func(what string) string { return fmt.Sprintf("%s %d×%d×%d", what, rows, k, n) }
	for _, accumulate := range []bool{false, true} {
		got, want := given.clone(), given.wide()
		kernels.Multiply(got.Rows, a.Rows, b, rows, accumulate)
		exact.Multiply(want, a.wide(), wideB, rows, accumulate)
		got.check(t, name("product"), want, bound(func(i, j int) float64 { return float64(given.Row(i, b.N)[j]) }))
	}
	for _, f := range []Activation{Identity, ReLU, ELU} {
		got, want := given.clone(), given.wide()
		kernels.Dense(got.Rows, a.Rows, b, bias.Row(0, b.N), rows, f)
		exact.Dense(want, a.wide(), wideB, widened(bias.Row(0, b.N)), rows, f)
		of := bound(func(_, j int) float64 { return float64(bias.Row(0, b.N)[j]) })
		got.check(t, name(fmt.Sprint("dense ", f)), want, func(i, j int) float64 { return of(i, j) + 4*epsilon*math.Abs(want.Row(i, b.N)[j]) })
	}
	if !sameBits(a.whole, kept.whole) {
		t.Fatal(name("product") + ": the left operand was written")
	}
}

// The bits of a row do not depend on the rows around it, so not on how a mesh
// is cut into blocks.
func TestRowsOfAProductDoNotDependOnOthers(t *testing.T) {
	eachSet(t, func(t *testing.T, kernels Kernels32) {
		random := rand.New(rand.NewPCG(12, 1))
		b, _, _ := narrowPanel(random, 37, 83)
		a := newBuffer(random, 37, 60)
		all := newBuffer(random, b.N, 60)
		kernels.Multiply(all.Rows, a.Rows, b, 60, false)
		one := newBuffer(random, b.N, 1)
		for i := range 60 {
			kernels.Multiply(one.Rows, a.From(i), b, 1, false)
			if !slices.Equal(one.Row(0, b.N), all.Row(i, b.N)) {
				t.Fatalf("row %d alone has other bits", i)
			}
		}
	})
}

func TestElementwiseOfEverySet(t *testing.T) {
	eachSet(t, func(t *testing.T, kernels Kernels32) {
		random := rand.New(rand.NewPCG(13, 1))
		for n := range 200 {
			checkElementwise(t, kernels, random, n, random.IntN(4))
		}
	})
}

func checkElementwise(t *testing.T, kernels Kernels32, random *rand.Rand, n, rows int) {
	t.Helper()
	a, x := newBuffer(random, n, rows), newBuffer(random, n, rows)
	if n > 3 && rows > 0 {
		copy(x.Data, []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 1e-44})
	}
	for name, run := range map[string]func(k Kernels32, x Rows[float32]){
		"sum":              func(k Kernels32, x Rows[float32]) { k.Add(x, a.Rows, n, rows) },
		"rectify":          func(k Kernels32, x Rows[float32]) { k.Rectify(x, n, rows) },
		"rectify gradient": func(k Kernels32, x Rows[float32]) { k.RectifyGradient(x, a.Rows, n, rows) },
	} {
		got, want := x.clone(), x.clone()
		run(kernels, got.Rows)
		run(Generic[float32]{}, want.Rows)
		got.check(t, name, want.wide(), func(int, int) float64 { return 0 })
	}
	got, want := x.clone(), x.wide()
	kernels.LogSoftmax(got.Rows, n, rows)
	Generic[float64]{}.LogSoftmax(want, n, rows)
	// The sum of n terms, its logarithm, and two differences.
	got.check(t, "log-softmax", want, func(i, j int) float64 { return 16*epsilon + 3*epsilon*math.Abs(want.Row(i, n)[j]) })
}

func TestHeadsOfEverySet(t *testing.T) {
	eachSet(t, func(t *testing.T, kernels Kernels32) {
		random := rand.New(rand.NewPCG(14, 1))
		for classes := 1; classes <= 300; classes += 1 + classes/20 {
			rows, k := random.IntN(60), random.IntN(12)
			if classes == 20 {
				rows = 2*240 + 7
			}
			checkHead(t, kernels, random, rows, k, classes)
		}
		checkHead(t, kernels, random, 13, 40, 6890)
		checkHead(t, kernels, random, 5, 12, 2000)
	})
}

// checkHead uses whole numbers, whose sums are exact: labels must agree, and
// many scores are equal.
func checkHead(t *testing.T, kernels Kernels32, random *rand.Rand, rows, k, classes int) {
	t.Helper()
	b, wideB, _ := narrowPanel(random, k, classes)
	for i, x := range b.Data {
		b.Data[i] = float32(math.Round(float64(x)))
	}
	wideB.Data = widened(b.Data)
	a, bias := newBuffer(random, k, rows), newBuffer(random, b.N, 1)
	for _, x := range [][]float32{a.Data, bias.Data} {
		for i := range x {
			x[i] = float32(math.Round(float64(x[i])))
		}
	}
	row := bias.Row(0, b.N)
	if classes > 3 {
		row[2], row[classes-1] = float32(math.NaN()), float32(math.Inf(-1))
		if classes%2 == 0 {
			row[2] = 0
		}
	}
	exact, top := Generic[float64]{}, 1+random.IntN(min(classes, 20))
	if classes == 2000 {
		top = classes
	}
	labels, want := make([]int32, rows+1), make([]int32, rows)
	labels[rows] = -1
	kernels.ArgMax(labels, a.Rows, b, row, classes, rows)
	exact.ArgMax(want, a.wide(), wideB, widened(row), classes, rows)
	if !slices.Equal(labels[:rows], want) || labels[rows] != -1 {
		t.Fatalf("%d rows, %d classes: labels %v, not %v", rows, classes, labels, want)
	}
	best, wantBest := make([]int32, rows*top), make([]int32, rows*top)
	logs, wantLogs := newBuffer(random, top, rows), make([]float64, rows*top)
	tight := make([]float32, rows*top)
	kernels.TopK(best, tight, a.Rows, b, row, classes, top, rows)
	exact.TopK(wantBest, wantLogs, a.wide(), wideB, widened(row), classes, top, rows)
	if !slices.Equal(best, wantBest) {
		t.Fatalf("%d rows, %d classes: best %v, not %v", rows, classes, best, wantBest)
	}
	for i := range rows {
		copy(logs.Row(i, top), tight[i*top:])
	}
	logs.check(t, "log-probabilities", Rows[float64]{wantLogs, top}, func(i, j int) float64 {
		return 16*epsilon + 3*epsilon*math.Abs(wantLogs[i*top+j])
	})
}

func TestSoftmaxOfEverySet(t *testing.T) {
	eachSet(t, func(t *testing.T, kernels Kernels32) {
		random := rand.New(rand.NewPCG(15, 1))
		for n := range 1100 {
			if n > 70 && n%129 != 0 {
				continue
			}
			checkSoftmax(t, kernels, random, n, 1+n%3, n%2 == 0, n%5 == 0, 1)
			checkSoftmax(t, kernels, random, n, 1, false, false, 60)
		}
		// Far below the greatest, exp is denormal and then 0.
		x := []float32{0, -86, -87.5, -90, -100, -103.5, -104, -200, float32(math.Inf(-1)), 0}
		got, want := slices.Clone(x), widened(x)
		kernels.Softmax(got, nil, []int64{0, 10}, 1, false)
		Generic[float64]{}.Softmax(want, nil, []int64{0, 10}, 1, false)
		for i := range x {
			if math.Abs(float64(got[i])-want[i]) > 8*epsilon*want[i]+math.SmallestNonzeroFloat32 {
				t.Errorf("softmax of %g is %g, not %g", x[i], got[i], want[i])
			}
		}
	})
}

func checkSoftmax(t *testing.T, kernels Kernels32, random *rand.Rand, n, heads int, self, scaled bool, spread float32) {
	t.Helper()
	sizes := []int{random.IntN(9), n, 0, 1}
	offsets := []int64{17}
	for _, size := range sizes {
		offsets = append(offsets, offsets[len(offsets)-1]+int64(size))
	}
	edges := int(offsets[len(sizes)] - 17)
	x, own := newDense(random, heads, edges), newDense(random, heads, len(sizes))
	for _, b := range []*buffer{x, own} {
		for i := range b.rows * b.n {
			b.Data[i] *= spread
		}
	}
	wantX, wantOwn := x.wide(), own.wide()
	ownData, wantOwnData := own.Data, wantOwn.Data
	if !self {
		ownData, wantOwnData = nil, nil
	}
	kernels.Softmax(x.Data[:edges*heads], ownData, offsets, heads, scaled)
	Generic[float64]{}.Softmax(wantX.Data[:edges*heads], wantOwnData, offsets, heads, scaled)
	// The difference to the greatest (its rounding grows with it), exp, a sum
	// of n terms in at least 8 lanes, and the quotient.
	roundings := 8 + float64(n)/8 + 16*float64(spread)
	x.check(t, fmt.Sprintf("softmax of %d", n), wantX, relative(wantX, heads, roundings))
	own.check(t, "softmax of the vertex itself", wantOwn, relative(wantOwn, heads, roundings))
}

func TestNonlinearitiesOfEverySet(t *testing.T) {
	eachSet(t, func(t *testing.T, kernels Kernels32) {
		random := rand.New(rand.NewPCG(16, 1))
		for order := 1; order <= MaxOrder; order++ {
			for _, channels := range []int{16, 32, 48} {
				checkNonlinearities(t, kernels, random, order, channels)
			}
		}
	})
}

func checkNonlinearities(t *testing.T, kernels Kernels32, random *rand.Rand, order, channels int) {
	t.Helper()
	n, rows := (2*order+1)*channels, 3
	a, b := newDense(random, channels, order), newDense(random, channels, order)
	samples := PolySamples(order)
	for name, run := range map[string]struct {
		narrow func(x Rows[float32])
		wide   func(x Rows[float64])
	}{
		"regular": {
			func(x Rows[float32]) { kernels.Regular(x, NewCircle[float32](order, 7), channels, rows) },
			func(x Rows[float64]) { Generic[float64]{}.Regular(x, NewCircle[float64](order, 7), channels, rows) },
		},
		"poly": {
			func(x Rows[float32]) { kernels.Poly(x, NewCircle[float32](order, samples), channels, rows) },
			func(x Rows[float64]) { Generic[float64]{}.Poly(x, NewCircle[float64](order, samples), channels, rows) },
		},
		"gate": {
			func(x Rows[float32]) { kernels.Gate(x, a.Data, b.Data, order, channels, rows) },
			func(x Rows[float64]) {
				Generic[float64]{}.Gate(x, widened(a.Data), widened(b.Data), order, channels, rows)
			},
		},
	} {
		x := newBuffer(random, n, rows)
		for k := range 2*order + 1 {
			x.Row(1, n)[k*channels+3] = 0
		}
		got, want := x.clone(), x.wide()
		run.narrow(got.Rows)
		run.wide(want)
		got.check(t, fmt.Sprintf("%s, order %d, %d channels", name, order, channels), want, func(i, j int) float64 {
			// Two sums of products with Σ|B| ≤ √(N·components), the function's
			// own dozen roundings between them.
			norm := 0.0
			for k := range 2*order + 1 {
				norm += math.Abs(float64(x.Row(i, n)[k*channels+j%channels]))
			}
			return float64(samples+4*order+12) * epsilon * norm
		})
	}
}

// narrowRings is randomRings in both precisions, with rings of the given
// degrees.
func narrowRings(random *rand.Rand, degrees []int, order, channels, sets int) (*Rings[float32], *Rings[float64]) {
	const vertices = 20
	first := int64(3)
	n, w := &Rings[float32]{Sets: sets, Offsets: []int64{first}}, &Rings[float64]{Sets: sets}
	for _, degree := range degrees {
		n.Offsets = append(n.Offsets, n.Offsets[len(n.Offsets)-1]+int64(degree))
	}
	edges := int(n.Offsets[len(degrees)])
	unit := func(zeros int) (c, s []float32) {
		for range edges {
			sin, cos := math.Sincos(7 * random.Float64())
			if random.IntN(10) < zeros {
				sin, cos = 0, 0
			}
			c, s = append(c, float32(cos)), append(s, float32(sin))
		}
		return c, s
	}
	n.CosTheta, n.SinTheta = unit(random.IntN(2))
	n.CosTransport, n.SinTransport = unit(0)
	for range edges {
		n.Neighbors = append(n.Neighbors, int32(random.IntN(vertices)))
	}
	width := (2*order + 1) * channels
	features := newBuffer(random, width, vertices)
	n.Features = features.Rows
	n.Weights = newBuffer(random, n.Edges()*sets+1, 1).Row(0, n.Edges()*sets)
	w.Offsets, w.Neighbors = n.Offsets, n.Neighbors
	w.CosTheta, w.SinTheta = widened(n.CosTheta), widened(n.SinTheta)
	w.CosTransport, w.SinTransport = widened(n.CosTransport), widened(n.SinTransport)
	w.Features, w.Weights = features.wide(), widened(n.Weights)
	return n, w
}

func TestEdgeKernelsOfEverySet(t *testing.T) {
	eachSet(t, func(t *testing.T, kernels Kernels32) {
		random := rand.New(rand.NewPCG(17, 1))
		for in := range MaxOrder + 1 {
			for out := range MaxOrder + 1 {
				for band := -1; band <= 4; band++ {
					sets, heads, channels := 1+random.IntN(4), 1+random.IntN(3), 16*(1+random.IntN(2))
					degrees := []int{random.IntN(9), 0, random.IntN(20), 1, 0}
					checkEdges(t, kernels, random, NewMoments(in, out, band, channels), degrees, sets, heads)
				}
			}
		}
		for degree := range 150 {
			checkEdges(t, kernels, random, NewMoments(2, 2, 2, 16), []int{0, 3, degree, 2}, 1+degree%3, 1)
		}
		checkEdges(t, kernels, random, NewMoments(2, 2, 2, 16), []int{0, 0}, 2, 1)
	})
}

func checkEdges(t *testing.T, kernels Kernels32, random *rand.Rand, plan *Moments, degrees []int, sets, heads int) {
	t.Helper()
	narrow, wide := narrowRings(random, degrees, plan.In, plan.Channels, sets)
	size := plan.Size(heads, sets)
	u, m := newBuffer(random, size, len(degrees)), newBuffer(random, size, len(degrees))
	a, logits := newDense(random, heads, narrow.Edges()), newDense(random, heads, narrow.Edges())
	whatever := fmt.Sprintf("%d → %d with rows %v, %d sets, %d heads, degrees %v", plan.In, plan.Out, plan.Rows, sets, heads, degrees)
	scale := magnitudeOfMoments(wide, plan)
	if degrees[0] > 0 && !slices.Contains(narrow.CosTheta, 0) && random.IntN(4) == 0 {
		at := int(narrow.Neighbors[narrow.Offsets[0]])*narrow.Features.Stride + random.IntN((2*plan.In+1)*plan.Channels)
		narrow.Features.Data[at], wide.Features.Data[at] = float32(math.NaN()), math.NaN()
	}
	features := widened(narrow.Features.Data)

	kernels.EdgeAggregate(m.Rows, a.Data[:heads*narrow.Edges()], plan, narrow, heads)
	want := Rows[float64]{make([]float64, len(degrees)*size), size}
	Generic[float64]{}.EdgeAggregate(want, widened(a.Data[:heads*narrow.Edges()]), plan, wide, heads)
	// The powers of two phases, the rotation, the weight, and the sum.
	roundings := func(degree int) float64 { return float64(degree + 2*plan.In + 2*plan.Out + 8) }
	m.check(t, "moments "+whatever, want, func(i, j int) float64 {
		bound := 0.0
		for e := narrow.Offsets[i]; e < narrow.Offsets[i+1]; e++ {
			local := int(e - narrow.Offsets[0])
			for h := range heads {
				for s := range sets {
					bound = max(bound, scale[local]*math.Abs(float64(a.Data[local*heads+h])*wide.weight(s, local)))
				}
			}
		}
		return roundings(degrees[i]) * epsilon * bound * float64(degrees[i])
	})

	kernels.EdgeDot(logits.Data[:heads*narrow.Edges()], u.Rows, plan, narrow, heads)
	dots := Rows[float64]{make([]float64, narrow.Edges()*heads), heads}
	Generic[float64]{}.EdgeDot(dots.Data, u.wide(), plan, wide, heads)
	logits.check(t, "logits "+whatever, dots, func(e, _ int) float64 {
		p := 0
		for narrow.Offsets[p+1]-narrow.Offsets[0] <= int64(e) {
			p++
		}
		bound := 0.0
		for _, x := range u.Row(p, size) {
			bound += math.Abs(float64(x))
		}
		weight := 0.0
		for s := range sets {
			weight = max(weight, math.Abs(wide.weight(s, e)))
		}
		return (roundings(0) + float64(plan.TotalRows()*sets) + 8) * epsilon * bound * scale[e] * weight
	})
	same := func(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) }
	if !slices.EqualFunc(features, widened(narrow.Features.Data), same) {
		t.Fatal(whatever + ": the features were written")
	}
}

// EdgeAttention is its three parts in sequence, to the bit, whether its result
// has its own memory or that of u.
func TestEdgeAttentionIsItsParts(t *testing.T) {
	eachSet(t, func(t *testing.T, kernels Kernels32) {
		random := rand.New(rand.NewPCG(18, 1))
		for in := range MaxOrder + 1 {
			for out := range MaxOrder + 1 {
				for trial := range 6 {
					// One run in six has a ring longer than any chunk of edges.
					degrees := []int{random.IntN(9), 0, random.IntN(41), 1, 3 + random.IntN(6), 0, trial / 5 * 150}
					checkAttention(t, kernels, random, in, out, random.IntN(6)-1, 16*(1+random.IntN(2)), degrees)
				}
			}
		}
	})
}

func checkAttention(t *testing.T, kernels Kernels32, random *rand.Rand, in, out, band, channels int, degrees []int) {
	t.Helper()
	keySets, sets, heads, scaled := 1+random.IntN(4), 1+random.IntN(4), 1+random.IntN(3), random.IntN(2) == 0
	key, value := NewMoments(in, min(in, out), band, channels), NewMoments(in, out, band, channels)
	rings, _ := narrowRings(random, degrees, in, channels, sets)
	keys := *rings
	keys.Sets, keys.Weights = keySets, newBuffer(random, rings.Edges()*keySets+1, 1).Row(0, rings.Edges()*keySets)
	vertices, size := len(degrees), value.Size(heads, sets)
	stride := max(key.Size(heads, keySets), size)
	a, self := newDense(random, heads, rings.Edges()), newDense(random, heads, vertices)
	own := func(b *buffer) []float32 { return b.Data[:heads*vertices] }
	if random.IntN(2) == 0 {
		own = func(*buffer) []float32 { return nil }
	}
	u, m := newStrided(random, key.Size(heads, keySets), vertices, stride), newStrided(random, size, vertices, stride)
	for i := range u.whole {
		u.whole[i] /= 16 // logits of a size at which many coefficients count
	}

	parts, partsSelf, partsM := a.clone(), self.clone(), m.clone()
	ring := parts.Data[:heads*rings.Edges()]
	kernels.EdgeDot(ring, u.Rows, key, &keys, heads)
	kernels.Softmax(ring, own(partsSelf), rings.Offsets, heads, scaled)
	kernels.EdgeAggregate(partsM.Rows, ring, value, rings, heads)

	what := fmt.Sprintf("%d → %d, band %d, %d channels, %d and %d sets, %d heads, degrees %v", in, out, band, channels, keySets, sets, heads, degrees)
	shared := u.clone()
	for _, to := range []*buffer{m, shared} {
		from := u
		if to == shared {
			from = shared
		}
		whole, wholeSelf := a.clone(), self.clone()
		kernels.EdgeAttention(to.Rows, from.Rows, whole.Data[:heads*rings.Edges()], own(wholeSelf), key, value, &keys, rings, heads, scaled)
		if !sameBits(whole.whole, parts.whole) || !sameBits(wholeSelf.whole, partsSelf.whole) {
			t.Fatal(what + ": other coefficients")
		}
		for i := range vertices {
			if !sameBits(to.Row(i, size), partsM.Row(i, size)) {
				t.Fatalf("%s: other moments of vertex %d", what, i)
			}
		}
	}
	if !sameBits(m.whole, partsM.whole) {
		t.Fatal(what + ": written outside")
	}
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// magnitudeOfMoments is for each edge a bound of its moments: √2 times the
// largest feature of its neighbour.
func magnitudeOfMoments(rings *Rings[float64], plan *Moments) (bounds []float64) {
	for e := rings.Offsets[0]; e < rings.Offsets[len(rings.Offsets)-1]; e++ {
		largest := 0.0
		for _, x := range rings.Features.Row(int(rings.Neighbors[e]), (2*plan.In+1)*plan.Channels) {
			largest = max(largest, math.Abs(x))
		}
		bounds = append(bounds, 2*largest)
	}
	return bounds
}
