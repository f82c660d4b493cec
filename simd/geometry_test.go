package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The kernels of geometry, held to their formulas written plainly. A bound
// counts roundings of 2⁻⁵³ of the sizes they act on.

func eachGeometry(t *testing.T, test func(t *testing.T, k Geometry, random *rand.Rand)) {
	found := false
	for _, set := range Available() {
		if k := GeometryOf(set.Name()); k != nil {
			found = true
			t.Run(k.Name(), func(t *testing.T) { test(t, k, rand.New(rand.NewPCG(21, 1))) })
		}
	}
	if best := Best().Name(); !found && best != "generic" {
		t.Errorf("%s has no kernels of geometry", best)
	}
}

func TestGeometryIsFoundByName(t *testing.T) {
	if GeometryOf("generic") != nil || GeometryOf("abacus") != nil {
		t.Error("kernels where there are none")
	}
	best := GeometryOf("")
	if want := Best().Name(); want == "generic" && best != nil || want != "generic" && (best == nil || best.Name() != want) {
		t.Errorf("the fastest kernels are %v, not %s", best, want)
	}
}

// output is n numbers at an odd address among others, which must not change.
type output[T Float] struct {
	whole []T
	n     int
}

func newOutput[T Float](n int) *output[T] {
	g := &output[T]{make([]T, before+n+before), n}
	for i := range g.whole {
		g.whole[i] = guard
	}
	return g
}

func (g *output[T]) values() []T { return g.whole[before : before+g.n : before+g.n] }

func (g *output[T]) check(t *testing.T) {
	t.Helper()
	for i, x := range g.whole {
		if (i < before || i >= before+g.n) && x != guard {
			t.Fatalf("number %d beside %d was written: %g", i-before, g.n, x)
		}
	}
}

// near says whether numbers agree within a bound, or are both NaN.
func near(got, want, bound float64) bool {
	return math.Abs(got-want) <= bound || math.IsNaN(got) && math.IsNaN(want)
}

// vec is the plain vectors of the formulas.
type vec [3]float64

func row(rows []float64, width, i, from int) vec { return vec(rows[width*i+from:]) }
func (a vec) minus(b vec) vec                    { return vec{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }
func (a vec) times(s float64) vec                { return vec{s * a[0], s * a[1], s * a[2]} }
func (a vec) dot(b vec) float64                  { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }
func (a vec) length() float64                    { return math.Sqrt(a.dot(a)) }
func (a vec) cross(b vec) vec {
	return vec{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}
func (g *geometryCase) to(q, p int32) vec {
	return row(g.positions, 3, int(q), 0).minus(row(g.positions, 3, int(p), 0))
}

// eachCase runs a test for 0 … 200 edges of rings of 1 … 9.
func eachCase(random *rand.Rand, test func(g *geometryCase)) {
	for edges := range 201 {
		test(geometryCaseOf(random, edges, 9))
	}
}

// geometryCaseOf has up to so many edges, in rings of up to most.
func geometryCaseOf(random *rand.Rand, edges, most int) *geometryCase {
	return newGeometryCase(random, 50, func() int {
		degree := min(edges, random.IntN(most+1))
		edges -= degree
		return degree
	})
}

func TestCentersOfEveryDegree(t *testing.T) {
	eachGeometry(t, func(t *testing.T, k Geometry, random *rand.Rand) {
		for most := range 41 {
			for rings := 1; rings < 20; rings++ {
				checkCenters(t, k, random, rings, most)
			}
		}
	})
}

func checkCenters(t *testing.T, k Geometry, random *rand.Rand, rings, most int) {
	t.Helper()
	offsets := []int64{7}
	want, place := []int32(nil), int32(0)
	var used []int32
	for i := range rings {
		degree := random.IntN(most + 1)
		offsets = append(offsets, offsets[i]+int64(degree))
		want = append(want, slices.Repeat([]int32{place}, degree)...)
		if degree > 0 {
			used = append(used, int32(100+i))
			place++
		}
	}
	got := slices.Repeat([]int32{-1}, len(want)+Padding+2)
	vertices := slices.Repeat([]int32{-1}, rings+2)
	count := k.Centers(vertices[1:], got[1:], offsets, 100)
	if !slices.Equal(vertices[1:][:count], used) || vertices[0] != -1 || vertices[rings+1] != -1 {
		t.Fatalf("%d rings of up to %d: vertices %d, not %d", rings, most, vertices, used)
	}
	if !slices.Equal(got[1:][:len(want)], want) || got[0] != -1 || got[len(got)-1] != -1 {
		t.Fatalf("%d rings of up to %d: %d, not %d", rings, most, got, want)
	}
	for _, behind := range got[1:][len(want):][:Padding] {
		if behind < 0 || behind > max(place-1, 0) {
			t.Fatalf("%d rings of up to %d: %d follows %d", rings, most, behind, want)
		}
	}
}

func TestColumnsOfEveryLength(t *testing.T) {
	eachGeometry(t, func(t *testing.T, k Geometry, random *rand.Rand) {
		for n := range MaxCenters + 1 {
			checkColumns(t, k, random, n)
		}
	})
}

func checkColumns(t *testing.T, k Geometry, random *rand.Rand, n int) {
	t.Helper()
	g := newGeometryCase(random, 70, func() int { return 1 })
	g.setFrames(random)
	vertices := make([]int32, n, n+Padding)
	for i := range vertices {
		vertices[i] = int32(random.IntN(70))
	}
	k.Columns(&g.columns, g.positions, g.frames, vertices)
	for i, p := range vertices {
		all := slices.Concat(g.positions[3*p:3*p+3], g.frames[9*p:9*p+9])
		for j, x := range all {
			if got := g.columns[j*(MaxCenters+Padding)+i]; got != x {
				t.Fatalf("%d vertices: number %d of vertex %d is %g, not %g", n, j, i, got, x)
			}
		}
	}
}

func TestWedgesOfEveryLength(t *testing.T) {
	eachGeometry(t, func(t *testing.T, k Geometry, random *rand.Rand) {
		eachCase(random, func(g *geometryCase) {
			checkWedges(t, k, random, g)
		})
	})
}

func checkWedges(t *testing.T, k Geometry, random *rand.Rand, g *geometryCase) {
	t.Helper()
	n := len(g.centers)
	short := -1
	if n > 0 {
		short = random.IntN(n)
		g.wedges[2*short+random.IntN(2)] = g.centers[short]
	}
	rows := newOutput[float64](4 * ((n + Padding - 1) / Padding * Padding))
	g.place(k)
	k.Wedges(rows.values(), g.positions, g.wedges, g.places, &g.columns)
	rows.check(t)
	for i, p := range g.centers {
		a, b := g.to(g.wedges[2*i], p), g.to(g.wedges[2*i+1], p)
		want := a.cross(b)
		got := row(rows.values(), 4, i, 0)
		sum := rows.values()[4*i+3]
		if got.minus(want).length() > 4*0x1p-53*a.length()*b.length() ||
			math.IsNaN(sum) != (i == short) || i != short && !near(sum, a.dot(a)+b.dot(b), 8*0x1p-53*sum) {
			t.Fatalf("corner %d of %d: %v %g, want %v", i, n, got, sum, want)
		}
	}
}

func TestRelTanRowsOfEveryLength(t *testing.T) {
	eachGeometry(t, func(t *testing.T, k Geometry, random *rand.Rand) {
		eachCase(random, func(g *geometryCase) {
			checkRelTan(t, k, random, g)
		})
	})
}

func checkRelTan(t *testing.T, k Geometry, random *rand.Rand, g *geometryCase) {
	t.Helper()
	n := len(g.centers)
	short := -1
	if n > 0 {
		short = random.IntN(n)
		g.neighbors[short] = g.centers[short]
	}
	powers := [][]float64{{0.5}, {0.5, 0.7}, {-8, 1, 8}, {0, 0.5, 3.3, -2}, {16*random.Float64() - 8, 0.5}}[random.IntN(5)]
	var halved []float64
	for _, r := range powers {
		halved = append(halved, -0.5*r)
	}
	plane := (n + Padding - 1) / Padding * Padding
	rows := newOutput[float64](4 * plane * len(powers))
	g.place(k)
	k.RelTan(rows.values(), plane, g.positions, g.neighbors, g.places, &g.columns, halved)
	rows.check(t)
	for j, r := range powers {
		for i, q := range g.neighbors {
			d := g.to(q, g.centers[i])
			got, other := row(rows.values(), 4, j*plane+i, 0), rows.values()[4*(j*plane+i)+3]
			if math.IsNaN(other) != (i == short) {
				t.Fatalf("edge %d of %d has |d|^(%g-1) = %g", i, n, r, other)
			}
			if i == short {
				continue
			}
			// log2 is exact to a rounding of its size, which r multiplies.
			length := d.length()
			bound := (8 + 4*math.Abs(r)*(1+math.Abs(math.Log2(length)))) * 0x1p-53
			want := d.times(math.Pow(length, -r))
			if got.minus(want).length() > bound*want.length() || !near(other, math.Pow(length, r-1), bound*other) {
				t.Fatalf("edge %d of %d, power %g: %v %g, want %v %g", i, n, r, got, other, want, math.Pow(length, r-1))
			}
		}
	}
}

// Powers of every length that the kernels take on, down to the last bits.
func TestRelTanOfEveryScale(t *testing.T) {
	eachGeometry(t, func(t *testing.T, k Geometry, random *rand.Rand) {
		worst := 0.0
		rows := make([]float64, 4*Padding)
		positions := make([]float64, 3*(Padding+1)+1)
		neighbors, places := make([]int32, Padding), make([]int32, Padding)
		var columns Columns // all of vertex 0, at the origin
		for i := range neighbors {
			neighbors[i] = int32(i + 1)
		}
		for exponent := -99.9; exponent < 0.9; exponent += 0.01 {
			for i := range neighbors {
				positions[3*(i+1)] = math.Exp2(exponent + 0.001*float64(i))
			}
			r := 16*random.Float64() - 8
			k.RelTan(rows, Padding, positions, neighbors, places, &columns, []float64{-0.5 * r})
			for i := range neighbors {
				length := positions[3*(i+1)]
				exact := math.Pow(length, r-1)
				worst = max(worst, math.Abs(rows[4*i+3]/exact-1)/(1+math.Abs(r*math.Log2(length))))
			}
		}
		t.Logf("largest error: %.2g", worst)
		if !(worst < 4*0x1p-53) {
			t.Error("more than the roundings of log2, exp2 and their product")
		}
	})
}

func TestSumsOfRingsOfEveryDegree(t *testing.T) {
	eachGeometry(t, func(t *testing.T, k Geometry, random *rand.Rand) {
		for most := range 41 {
			for vertices := range 12 {
				checkRingSums(t, k, random, vertices, most)
			}
		}
	})
}

func checkRingSums(t *testing.T, k Geometry, random *rand.Rand, vertices, most int) {
	t.Helper()
	offsets := []int64{3}
	for p := range vertices {
		offsets = append(offsets, offsets[p]+int64(random.IntN(most+1)))
	}
	rows := newOutput[float64](4 * int(offsets[vertices]-3))
	for i := range rows.values() {
		rows.values()[i] = random.NormFloat64()
	}
	kept := slices.Clone(rows.whole)
	sums := newOutput[float64](4 * vertices)
	k.SumRings(sums.values(), rows.values(), offsets)
	sums.check(t)
	if !slices.Equal(rows.whole, kept) {
		t.Fatal("the rows were written")
	}
	for p := range vertices {
		for j := range 4 {
			want, size := 0.0, 0.0
			for i := offsets[p] - 3; i < offsets[p+1]-3; i++ {
				want += rows.values()[4*i+int64(j)]
				size += math.Abs(rows.values()[4*i+int64(j)])
			}
			if got := sums.values()[4*p+j]; !near(got, want, float64(most)*0x1p-53*size) {
				t.Fatalf("ring %d of %d: number %d is %g, not %g", p, vertices, j, got, want)
			}
		}
	}
}

func TestTangentsOfEveryLength(t *testing.T) {
	eachGeometry(t, func(t *testing.T, k Geometry, random *rand.Rand) {
		for n := range 201 {
			checkTangents(t, k, random, n)
		}
	})
}

func checkTangents(t *testing.T, k Geometry, random *rand.Rand, n int) {
	t.Helper()
	count, plane := 1+random.IntN(4), n+random.IntN(3)
	width := 2*count + random.IntN(4)
	sums, frames, factors := normals(random, 4*count*plane), normals(random, 9*n), normals(random, n)
	odd := -1
	if n > 0 && random.IntN(2) == 0 {
		odd = random.IntN(n)
		sums[4*(random.IntN(count)*plane+odd)+random.IntN(4)] = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[random.IntN(3)]
	}
	to := newOutput[float64](width * n)
	done, rare := k.Tangents(to.values(), width, sums, plane, frames, factors, count)
	if done != n {
		if done != 0 || n >= Padding {
			t.Fatalf("%d of %d", done, n)
		}
		return
	}
	if rare != (odd >= 0) {
		t.Fatalf("%d vertices, not finite at %d: rare is %t", n, odd, rare)
	}
	to.check(t)
	for i := range n {
		for j := range width {
			got := to.values()[width*i+j]
			if j >= 2*count {
				if got != guard {
					t.Fatalf("number %d of row %d of %d was written", j, i, n)
				}
				continue
			}
			at := 4 * (j/2*plane + i)
			s, scale := row(sums, 1, at, 0), sums[at+3]*factors[i]
			axis := row(frames, 9, i, 3*(j%2))
			want := scale * axis.dot(s)
			if want-want != 0 && got-got != 0 {
				continue // infinite or NaN: rare has told it
			}
			if !near(got, want, 8*0x1p-53*math.Abs(scale)*axis.length()*s.length()) {
				t.Fatalf("number %d of row %d of %d is %g, not %g", j, i, n, got, want)
			}
		}
	}
}

func normals(random *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = random.NormFloat64()
	}
	return x
}

func TestFramesOfEveryLength(t *testing.T) {
	eachGeometry(t, func(t *testing.T, k Geometry, random *rand.Rand) {
		for n := range 201 {
			checkFrames(t, k, random, n)
		}
	})
}

func checkFrames(t *testing.T, k Geometry, random *rand.Rand, n int) {
	t.Helper()
	first := random.IntN(5)
	g := newGeometryCase(random, first+n+2, func() int { return 1 })
	neighbors := g.neighbors[first : first+n]
	sums := normals(random, 4*n)
	for i := range n {
		sums[4*i+3] = math.Abs(sums[4*i+3])
	}
	// Each kind of what the scalar code must redo, anywhere.
	odd, kind := -1, n%5
	if n > 0 {
		odd = random.IntN(n)
		p := first + odd
		switch kind {
		case 0:
			neighbors[odd] = int32(p)
		case 1:
			copy(sums[4*odd:], []float64{1e-20, 0, 0})
		case 2:
			sums[4*odd+3] = math.NaN()
		case 3:
			copy(sums[4*odd:], []float64{1e-160, 0, 1e-160, 1e-300})
		case 4: // along the normal
			d := g.to(neighbors[odd], int32(p))
			copy(sums[4*odd:], d[:])
		}
	}
	frames := newOutput[float64](9 * (first + n + 2))
	done, rare := k.Frames(frames.values(), sums, g.positions, first, neighbors)
	frames.check(t)
	if done != n {
		if done != 0 || n >= Padding {
			t.Fatalf("%d of %d", done, n)
		}
		return
	}
	if rare != (odd >= 0) {
		t.Fatalf("%d vertices, kind %d: rare is %v", n, kind, rare)
	}
	for i, x := range frames.values() {
		if (i < 9*first || i >= 9*(first+n)) && x != guard {
			t.Fatalf("number %d outside of %d vertices was written", i, n)
		}
	}
	for i, q := range neighbors {
		e1, e2, normal := row(frames.values(), 9, first+i, 0), row(frames.values(), 9, first+i, 3), row(frames.values(), 9, first+i, 6)
		if math.IsNaN(normal[0]) != (i == odd) {
			t.Fatalf("vertex %d of %d, kind %d at %d: n = %v", i, n, kind, odd, normal)
		}
		if i == odd {
			continue
		}
		want := row(sums, 4, i, 0)
		want = want.times(1 / want.length())
		d := g.to(q, int32(first+i))
		tangent := d.minus(want.times(d.dot(want)))
		lost := 16 * 0x1p-53 * d.length() / tangent.length()
		tangent = tangent.times(1 / tangent.length())
		if normal.minus(want).length() > 8*0x1p-53 || e1.minus(tangent).length() > lost ||
			math.Abs(e1.dot(normal)) > 8*0x1p-53 || math.Abs(e1.length()-1) > 8*0x1p-53 ||
			e2.minus(normal.cross(e1)).length() > 4*0x1p-53 {
			t.Fatalf("vertex %d of %d: %v %v %v", i, n, e1, e2, normal)
		}
	}
}

func TestEdgesOfEveryLength(t *testing.T) {
	eachGeometry(t, func(t *testing.T, k Geometry, random *rand.Rand) {
		eachCase(random, func(g *geometryCase) {
			checkAngles(t, k, random, g, 0x1p-24, k.Edges32)
			checkAngles(t, k, random, g, 0, k.Edges64)
		})
	})
}

// checkAngles compares with the rotation of Rodrigues' formula. rounding is that
// of the type of the results.
func checkAngles[T Float](t *testing.T, k Geometry, random *rand.Rand, g *geometryCase, rounding float64,
	compute func(to EdgeArrays[T], positions, frames []float64, neighbors, places []int32, columns *Columns) (int, bool)) {
	t.Helper()
	g.setFrames(random)
	n := len(g.centers)
	// One edge along its normal or over a fold, anywhere.
	noAngle, noTransport := -1, -1
	if n > 0 {
		i := random.IntN(n)
		p, q := int(g.centers[i]), int(g.neighbors[i])
		if p == q || random.IntN(2) == 0 {
			noAngle = i
			g.neighbors[i] = int32(p)
		} else {
			copy(g.frames[9*q:9*q+9], g.frames[9*p:9*p+9])
			for j := 3; j < 9; j++ {
				g.frames[9*q+j] = -g.frames[9*q+j]
			}
			noTransport = i
		}
	}
	var arrays [5]*output[T]
	for i := range arrays {
		arrays[i] = newOutput[T](n)
	}
	v := func(i int) []T { return arrays[i].values() }
	g.place(k)
	done, rare := compute(EdgeArrays[T]{v(0), v(1), v(2), v(3), v(4)}, g.positions, g.frames, g.neighbors, g.places, &g.columns)
	for _, a := range arrays {
		a.check(t)
	}
	if done != n {
		if done != 0 || n >= Padding {
			t.Fatalf("%d of %d", done, n)
		}
		return
	}
	found := false
	for i, p := range g.centers {
		q := g.neighbors[i]
		frame := func(vertex int32, axis int) vec { return row(g.frames, 9, int(vertex), 3*axis) }
		got := [5]float64{float64(v(0)[i]), float64(v(1)[i]), float64(v(2)[i]), float64(v(3)[i]), float64(v(4)[i])}
		d := g.to(q, p)
		x, y := d.dot(frame(p, 0)), d.dot(frame(p, 1))
		tangent := math.Hypot(x, y)
		if i == noAngle || tangent <= 0x1p-34*d.length() {
			x, y, tangent, found = math.NaN(), got[1], 1, true
		}
		normal, target := frame(q, 2), frame(p, 2)
		w, c := normal.cross(target), normal.dot(target)
		e := frame(q, 0)
		turned := e.times(c).minus(e.cross(w)).minus(w.times(-w.dot(e) / (1 + c)))
		want := [5]float64{x / tangent, y / tangent, turned.dot(frame(p, 0)), turned.dot(frame(p, 1)), d.length()}
		if 1+c <= 0x1p-4 {
			want[2], want[3], found = math.NaN(), math.NaN(), true
		} else if i == noTransport {
			t.Fatal("the fold is none")
		}
		if i == noAngle {
			want[1] = got[1]
		}
		lost := 8*0x1p-53*max(1, d.length()/tangent) + rounding
		folded := 64*0x1p-53*(1+1/(1+c)) + rounding
		for j, bound := range [5]float64{lost, lost, folded, folded, (4*0x1p-53 + rounding) * want[4]} {
			if !near(got[j], want[j], bound) {
				t.Fatalf("edge %d of %d: number %d is %g, not %g", i, n, j, got[j], want[j])
			}
		}
	}
	if rare != found {
		t.Fatalf("%d edges: rare is %v", n, rare)
	}
}

// setFrames gives every vertex a random frame.
func (g *geometryCase) setFrames(random *rand.Rand) {
	for p := range len(g.frames) / 9 {
		n, e1 := vec(normals(random, 3)), vec(normals(random, 3))
		n = n.times(1 / n.length())
		for range 2 { // once leaves an error where e1 is nearly along n
			e1 = e1.minus(n.times(e1.dot(n)))
			e1 = e1.times(1 / e1.length())
		}
		e2 := n.cross(e1)
		for j, axis := range []vec{e1, e2, n} {
			copy(g.frames[9*p+3*j:], axis[:])
		}
	}
}

// What a piece of a mesh costs: 64 vertices of 6 neighbours each.
//
// What bounds it was measured by leaving parts out, with AVX-512 on a processor
// of 256-bit units (as many flops as with AVX2) at 3.4 GHz; minima in ns/edge:
//
//	            as it is  rows not transposed  no 1/√   no log2, exp2 and quotients
//	edges         2.90          2.65            2.83
//	wedges        1.62          1.30            1.60
//	frames        1.22          1.11            0.94
//	relTan-root   1.70          1.63            1.36
//	relTan-0.7    3.48          3.32            3.23              1.44
//	relTan-both   4.39          4.14            3.76              2.37
//
// Finding the rows of neighbours costs nothing beside it (2.85 for edges). No
// part but the power function stands out: the 122 vector instructions of eight
// edges, of two halves each, take 61 of their 79 cycles in the four units.
func BenchmarkGeometry(b *testing.B) {
	const vertices, degree = 64, 6
	random := rand.New(rand.NewPCG(1, 1))
	g := newGeometryCase(random, vertices, func() int { return degree })
	for _, set := range []string{"avx512", "avx2", "neon"} {
		k := GeometryOf(set)
		if k == nil {
			continue
		}
		g.place(k)
		n := len(g.centers)
		rows := make([]float64, 2*4*(n+Padding))
		sums, factors := make([]float64, 2*4*vertices), make([]float64, vertices)
		to := EdgeArrays[float32]{make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)}
		powers := []float64{-0.25, -0.35}
		for _, kernel := range []struct {
			name string
			run  func()
		}{
			{"centers", func() { k.Centers(g.used[:vertices], g.places[:n+Padding], g.offsets, 0) }},
			{"columns", func() { k.Columns(&g.columns, g.positions, g.frames, g.used) }},
			{"wedges", func() { k.Wedges(rows, g.positions, g.wedges, g.places, &g.columns) }},
			{"relTan-root", func() { k.RelTan(rows, n+Padding, g.positions, g.neighbors, g.places, &g.columns, powers[:1]) }},
			{"relTan-0.7", func() { k.RelTan(rows, n+Padding, g.positions, g.neighbors, g.places, &g.columns, powers[1:]) }},
			{"relTan-both", func() { k.RelTan(rows, n+Padding, g.positions, g.neighbors, g.places, &g.columns, powers) }},
			{"tangents-both", func() { k.Tangents(rows, 4, sums, vertices, g.frames, factors, 2) }},
			{"sumRings", func() { k.SumRings(sums, rows, g.offsets) }},
			{"frames", func() { k.Frames(g.frames, sums, g.positions, 0, g.neighbors[:vertices]) }},
			{"edges", func() { k.Edges32(to, g.positions, g.frames, g.neighbors, g.places, &g.columns) }},
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
	used                       []int32 // the vertices with a ring, with Padding more
	places                     []int32 // of the centres among these
	columns                    Columns
}

// place sets what the kernels need to know of the centres.
func (g *geometryCase) place(k Geometry) {
	g.used = make([]int32, len(g.offsets)+Padding)
	g.places = make([]int32, len(g.centers)+Padding)
	g.used = g.used[:k.Centers(g.used, g.places, g.offsets, 0)]
	g.places = g.places[:len(g.centers)]
	k.Columns(&g.columns, g.positions, g.frames, g.used)
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
