package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// guard surrounds what a kernel may write.
const guard = 12345.0

// guarded is a view of rows rows of n entries, with guards between and around
// them.
func guarded(rows, n int) (view Rows[float64], whole []float64) {
	stride := n + 3
	whole = make([]float64, rows*stride+6)
	for i := range whole {
		whole[i] = guard
	}
	return Rows[float64]{whole[3:], stride}, whole
}

// checkGuards fails where anything but rows rows of n entries was written.
func checkGuards(t *testing.T, whole []float64, rows, n int) {
	t.Helper()
	for i, value := range whole {
		at := i - 3
		if inside := at >= 0 && at/(n+3) < rows && at%(n+3) < n; !inside && value != guard {
			t.Fatalf("entry %d outside of %d rows of %d was written: %g", at, rows, n, value)
		}
	}
}

func numbers(random *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = random.NormFloat64()
	}
	return x
}

func randomPanel(random *rand.Rand, k, n int) *Panel[float64] {
	p := NewPanel[float64](k, n)
	for i := range k {
		for j := range n {
			p.Set(i, j, random.NormFloat64())
		}
	}
	return p
}

// dense is the panel's matrix, row-major.
func (p *Panel[T]) dense() (matrix []float64) {
	for k := range p.K {
		for j := range p.N {
			matrix = append(matrix, float64(p.At(k, j)))
		}
	}
	return matrix
}

func closeTo(got, want float64) bool { return math.Abs(got-want) <= 1e-12*(1+math.Abs(want)) }

func TestMultiplyAndDenseAgainstGonum(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	kernels := Generic[float64]{}
	for range 200 {
		rows, k, n := random.IntN(20), 1+random.IntN(40), 1+random.IntN(60)
		b := randomPanel(random, k, n)
		a := Rows[float64]{numbers(random, (rows+1)*(k+2)), k + 2}
		bias := numbers(random, b.N)
		want := make([]float64, (rows+1)*b.N)
		if rows > 0 {
			blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, blas64.General{Rows: rows, Cols: k, Stride: a.Stride, Data: a.Data},
				blas64.General{Rows: k, Cols: b.N, Stride: b.N, Data: b.dense()}, 0, blas64.General{Rows: rows, Cols: b.N, Stride: b.N, Data: want})
		}
		before := slices.Clone(a.Data)
		check := func(name string, run func(c Rows[float64]), expected func(i, j int) float64) {
			t.Helper()
			c, whole := guarded(rows, b.N)
			run(c)
			checkGuards(t, whole, rows, b.N)
			for i := range rows {
				for j, got := range c.Row(i, b.N) {
					if !closeTo(got, expected(i, j)) {
						t.Fatalf("%s %d×%d×%d: entry (%d, %d) is %g, not %g", name, rows, k, n, i, j, got, expected(i, j))
					}
				}
			}
		}
		product := func(i, j int) float64 { return want[i*b.N+j] }
		check("product", func(c Rows[float64]) { kernels.Multiply(c, a, b, rows, false) }, product)
		check("sum", func(c Rows[float64]) { kernels.Multiply(c, a, b, rows, true) }, func(i, j int) float64 { return guard + product(i, j) })
		for activation, f := range map[Activation]func(float64) float64{
			Identity: func(x float64) float64 { return x },
			ReLU:     func(x float64) float64 { return math.Max(x, 0) },
			ELU:      func(x float64) float64 { return math.Max(x, 0) + math.Expm1(math.Min(x, 0)) },
		} {
			check(fmt.Sprint("dense ", activation), func(c Rows[float64]) { kernels.Dense(c, a, b, bias, rows, activation) },
				func(i, j int) float64 { return f(product(i, j) + bias[j]) })
		}
		if !slices.Equal(a.Data, before) {
			t.Fatal("the left operand was written")
		}
	}
}

func TestArgMaxAndTopKAgainstSorting(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	kernels := Generic[float64]{}
	for try := range 100 {
		rows, k, classes := 1+random.IntN(6), 1+random.IntN(8), 1+random.IntN(50)
		if try%10 == 0 {
			classes = 2000
		}
		b, a := randomPanel(random, k, classes), Rows[float64]{numbers(random, rows*k), k}
		bias := numbers(random, b.N)
		for j := range bias { // whole numbers, of which many are equal
			bias[j] = math.Round(bias[j])
		}
		if random.IntN(2) == 0 {
			clear(a.Data)
		}
		scores, _ := guarded(rows, b.N)
		kernels.Dense(scores, a, b, bias, rows, Identity)
		best := 1 + random.IntN(classes)
		if try%20 == 0 {
			best = classes
		}
		labels, top := make([]int32, rows), make([]int32, rows*best)
		logs := make([]float64, rows*best)
		kernels.ArgMax(labels, a, b, bias, classes, rows)
		kernels.TopK(top, logs, a, b, bias, classes, best, rows)
		for i := range rows {
			row := scores.Row(i, classes)
			order := make([]int32, classes)
			total := 0.0
			for j := range order {
				order[j] = int32(j)
				total += math.Exp(row[j])
			}
			slices.SortStableFunc(order, func(x, y int32) int {
				switch {
				case row[x] > row[y]:
					return -1
				case row[x] < row[y]:
					return 1
				}
				return 0
			})
			if labels[i] != order[0] || !slices.Equal(top[i*best:][:best], order[:best]) {
				t.Fatalf("label %d, best %v, not %v", labels[i], top[i*best:][:best], order[:best])
			}
			for j, value := range logs[i*best:][:best] {
				if want := row[order[j]] - math.Log(total); !closeTo(value, want) {
					t.Fatalf("log-probability %g, not %g", value, want)
				}
			}
		}
	}
}

func TestSoftmaxOfLargeNumbersAndSpecialOnes(t *testing.T) {
	kernels := Generic[float32]{}
	inf := float32(math.Inf(1))
	nan := float32(math.NaN())
	row := Rows[float32]{[]float32{1e30, 1e30, 0, guard}, 4}
	kernels.LogSoftmax(row, 3, 1)
	if half := float32(math.Log(0.5)); row.Data[0] != half || row.Data[1] != half || row.Data[2] != -1e30 || row.Data[3] != guard {
		t.Errorf("log-softmax: %v", row.Data)
	}
	// Rings of 3, 0 and 1 edges, two heads.
	logits := []float32{0, 5, 0, -inf, 0, 5, 1e38, nan}
	kernels.Softmax(logits, nil, []int64{10, 13, 13, 14}, 2, false)
	want := []float32{1. / 3, 0.5, 1. / 3, 0, 1. / 3, 0.5, 1}
	for i := range want {
		if math.Abs(float64(logits[i]-want[i])) > 1e-7 {
			t.Errorf("softmax: number %d is %g, not %g", i, logits[i], want[i])
		}
	}
	if !math.IsNaN(float64(logits[7])) {
		t.Errorf("NaN became %g", logits[7])
	}
	// With the vertices themselves, and times the number of terms.
	logits, self := []float32{0, 0, 0}, []float32{0, 7}
	kernels.Softmax(logits, self, []int64{0, 3, 3}, 1, true)
	for _, a := range append(logits, self...) {
		if math.Abs(float64(a-1)) > 1e-6 {
			t.Errorf("with the vertex itself: %v and %v, not 1", logits, self)
		}
	}
}

// randomRings is a run of vertices in the middle of a mesh.
func randomRings(random *rand.Rand, order, channels, sets int) *Rings[float64] {
	const vertices = 20
	r := &Rings[float64]{Sets: sets, Features: Rows[float64]{numbers(random, vertices*((2*order+1)*channels+5)), (2*order+1)*channels + 5}}
	first := int64(7)
	r.Offsets = []int64{first}
	for range 6 {
		r.Offsets = append(r.Offsets, r.Offsets[len(r.Offsets)-1]+int64(random.IntN(9)))
	}
	for range r.Offsets[6] {
		theta, g := random.Float64()*7, random.Float64()*7
		if random.IntN(5) == 0 {
			r.CosTheta, r.SinTheta = append(r.CosTheta, 0), append(r.SinTheta, 0)
		} else {
			r.CosTheta, r.SinTheta = append(r.CosTheta, math.Cos(theta)), append(r.SinTheta, math.Sin(theta))
		}
		r.CosTransport, r.SinTransport = append(r.CosTransport, math.Cos(g)), append(r.SinTransport, math.Sin(g))
		r.Neighbors = append(r.Neighbors, int32(random.IntN(vertices)))
	}
	r.Weights = numbers(random, r.Edges()*sets)
	return r
}

// Σ_e a_e·dot_e(u) = ⟨aggregate(a), u⟩: the one is the transpose of the other.
func TestEdgeAggregateIsTheTransposeOfEdgeDot(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	kernels := Generic[float64]{}
	for in := range MaxOrder + 1 {
		for out := range MaxOrder + 1 {
			band, sets, heads := random.IntN(9)-1, 1+random.IntN(4), 1+random.IntN(3)
			plan := NewMoments(in, out, band, 32)
			rings := randomRings(random, in, 32, sets)
			size := plan.Size(heads, sets)
			u := Rows[float64]{numbers(random, 6*(size+3)), size + 3}
			a := numbers(random, rings.Edges()*heads)
			logits := make([]float64, len(a)+1)
			logits[len(a)] = guard
			m, whole := guarded(6, size)
			kernels.EdgeDot(logits[:len(a)], u, plan, rings, heads)
			kernels.EdgeAggregate(m, a, plan, rings, heads)
			checkGuards(t, whole, 6, size)
			left, right := 0.0, 0.0
			for i := range a {
				left += a[i] * logits[i]
			}
			for i := range 6 {
				for j, value := range m.Row(i, size) {
					right += value * u.Row(i, size)[j]
				}
			}
			if math.Abs(left-right) > 1e-10*(1+math.Abs(left)) || logits[len(a)] != guard {
				t.Errorf("%d → %d, band %d: %g and %g", in, out, band, left, right)
			}
		}
	}
}

func TestMomentsAreCounted(t *testing.T) {
	for _, c := range []struct {
		in, out, band int
		rows          []int
	}{
		{2, 2, 2, []int{5, 8, 6}}, {2, 2, -1, []int{5, 10, 10}}, {1, 2, 2, []int{3, 6, 4}}, {2, 0, 2, []int{5}}, {0, 2, 1, []int{1, 2, 0}},
	} {
		plan := NewMoments(c.in, c.out, c.band, 16)
		if !slices.Equal(plan.Rows, c.rows) {
			t.Errorf("%+v: %v", c, plan.Rows)
		}
		at := 0
		for m := range plan.Rows {
			start, size := plan.Block(m, 3, 2)
			if start != at || size != 3*2*16*plan.Rows[m] {
				t.Errorf("%+v: order %d lies at %d with %d numbers", c, m, start, size)
			}
			at += size
		}
		if at != plan.Size(3, 2) {
			t.Errorf("%+v: %d numbers, not %d", c, plan.Size(3, 2), at)
		}
	}
}

func TestNonlinearitiesKeepZerosAndGuards(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	kernels := Generic[float64]{}
	const rows, channels, used = 5, 16, 11
	for order := 1; order <= MaxOrder; order++ {
		n := (2*order + 1) * channels
		gate := numbers(random, order*channels)
		for name, run := range map[string]func(x Rows[float64]){
			"regular": func(x Rows[float64]) { kernels.Regular(x, NewCircle[float64](order, 2*order+1), channels, rows) },
			"poly":    func(x Rows[float64]) { kernels.Poly(x, NewCircle[float64](order, PolySamples(order)), channels, rows) },
			"gate":    func(x Rows[float64]) { kernels.Gate(x, gate, gate, order, channels, rows) },
			"rectify": func(x Rows[float64]) { kernels.Rectify(x, n, rows) },
		} {
			x, whole := guarded(rows, n)
			for i := range rows {
				for j := range n {
					x.Row(i, n)[j] = 0
					if j%channels < used && i > 0 {
						x.Row(i, n)[j] = random.NormFloat64()
					}
				}
			}
			run(x)
			checkGuards(t, whole, rows, n)
			changed := 0
			for i := range rows {
				for j, value := range x.Row(i, n) {
					if value != 0 && (j%channels >= used || i == 0) {
						t.Fatalf("%s, order %d: zero became %g", name, order, value)
					}
					if value != 0 {
						changed++
					}
				}
			}
			if changed == 0 {
				t.Errorf("%s, order %d: everything became zero", name, order)
			}
		}
	}
}

func TestPanelsAreAlignedAndPacked(t *testing.T) {
	for k := 1; k < 20; k++ {
		p := NewPanel[float32](k, 17)
		if address := uintptr(unsafe.Pointer(&p.Data[0])); address%Alignment != 0 || p.N != 32 || len(p.Data) != k*32 {
			t.Fatalf("%d rows: address %#x, %d columns, %d numbers", k, address, p.N, len(p.Data))
		}
		p.Set(k-1, 16, 5)
		if p.Data[(k+k-1)*Lanes] != 5 || p.At(k-1, 16) != 5 {
			t.Fatalf("%d rows: entry (%d, 16) is not where it should be", k, k-1)
		}
	}
}
