package core

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"libeman/geometry/memory"
)

// This file computes the layers as the paper writes them: a matrix K(θ_pq) for
// every edge, from the table of appendix A, in float64. Nothing of the layers'
// own code is used but the shapes of the parameters.

// tableMatrix is solution number k (from 1) of the neighbour kernel from ρ_n to
// ρ_m in the paper's table, and its frequency.
func tableMatrix(n, m, k int, cosine, sine func(frequency int) float64) (matrix [][]float64, frequency int) {
	minus, plus := m-n, m+n
	c, s := cosine(minus), sine(minus)
	switch {
	case n == 0 && m == 0:
		return [][]float64{{1}}, 0
	case m == 0:
		c, s = cosine(n), sine(n)
		return [][][]float64{{{c, s}}, {{s, -c}}}[k-1], n
	case n == 0:
		c, s = cosine(m), sine(m)
		return [][][]float64{{{c}, {s}}, {{s}, {-c}}}[k-1], m
	case k <= 2:
		return [][][]float64{{{c, -s}, {s, c}}, {{s, c}, {-c, s}}}[k-1], max(minus, -minus)
	default:
		c, s = cosine(plus), sine(plus)
		return [][][]float64{{{c, s}, {s, -c}}, {{-s, c}, {c, s}}}[k-3], plus
	}
}

// signedSolution is a solution of the table and the sign it has in the authors'
// weight tensors.
type signedSolution struct {
	k    int
	sign float64
}

// authorsOrder lists the solutions from ρ_n to ρ_m in the order of the tensors.
func authorsOrder(n, m int) []signedSolution {
	switch {
	case n == 0 && m == 0:
		return []signedSolution{{1, 1}}
	case m == 0:
		return []signedSolution{{1, 1}, {2, 1}}
	case n == 0:
		return []signedSolution{{1, 1}, {2, -1}}
	case n == m:
		return []signedSolution{{1, 1}, {2, -1}, {4, 1}, {3, 1}}
	case m > n:
		return []signedSolution{{2, 1}, {1, 1}, {4, 1}, {3, 1}}
	default:
		return []signedSolution{{2, -1}, {1, 1}, {4, 1}, {3, 1}}
	}
}

// solutionMatrix is one row of a weight tensor for one edge.
type solutionMatrix struct {
	in, out   int // orders
	frequency int
	matrix    [][]float64
}

// edgeBasis lists K_b(θ) for the rows of a weight tensor. Without a direction,
// every e^{ikθ} with k ≥ 1 is zero.
func edgeBasis(in, out, band int, cos, sin float64) (list []solutionMatrix) {
	directed := cos != 0 || sin != 0
	theta := math.Atan2(sin, cos)
	part := func(f func(float64) float64) func(int) float64 {
		return func(frequency int) float64 {
			if frequency != 0 && !directed {
				return 0
			}
			return f(float64(frequency) * theta)
		}
	}
	for n := 0; n <= in; n++ {
		for m := 0; m <= out; m++ {
			for _, s := range authorsOrder(n, m) {
				matrix, frequency := tableMatrix(n, m, s.k, part(math.Cos), part(math.Sin))
				if band >= 0 && frequency > band {
					continue
				}
				for _, row := range matrix {
					for j := range row {
						row[j] *= s.sign
					}
				}
				list = append(list, solutionMatrix{n, m, frequency, matrix})
			}
		}
	}
	return list
}

// selfBasisMatrices lists the solutions of the self kernels.
func selfBasisMatrices(in, out int) (list []solutionMatrix) {
	for _, s := range edgeBasis(in, out, 0, 1, 0) {
		if s.in == s.out {
			list = append(list, s)
		}
	}
	return list
}

// feature is one vertex's feature: [channel][component].
type feature [][]float64

func newFeature(of Type) feature {
	f := make(feature, of.Channels)
	for c := range f {
		f[c] = make([]float64, of.Components())
	}
	return f
}

func (f feature) add(g feature, scale float64) {
	for c := range f {
		for k := range f[c] {
			f[c][k] += scale * g[c][k]
		}
	}
}

func (f feature) dot(g feature, from, to int) (sum float64) {
	for c := from; c < to; c++ {
		for k := range f[c] {
			sum += f[c][k] * g[c][k]
		}
	}
	return sum
}

// turned is ρ(angle) f.
func (f feature) turned(angle float64) feature {
	g := make(feature, len(f))
	for c := range f {
		g[c] = append([]float64(nil), f[c]...)
		for n := 1; 2*n < len(f[c]); n++ {
			sin, cos := math.Sincos(float64(n) * angle)
			g[c][2*n-1] = cos*f[c][2*n-1] - sin*f[c][2*n]
			g[c][2*n] = sin*f[c][2*n-1] + cos*f[c][2*n]
		}
	}
	return g
}

// applyKernel is K·f for the kernel Σ_b Σ_r w_r W[b, r] K_b.
func applyKernel(weights []float64, basis []solutionMatrix, rings []float64, in, out Type, f feature) feature {
	result := newFeature(out)
	for b, solution := range basis {
		for r, ring := range rings {
			for o := range out.Channels {
				for i := range in.Channels {
					w := ring * weights[((b*len(rings)+r)*out.Channels+o)*in.Channels+i]
					for j, row := range solution.matrix {
						for k, value := range row {
							result[o][firstRow(solution.out)+j] += w * value * f[i][firstRow(solution.in)+k]
						}
					}
				}
			}
		}
	}
	return result
}

// naiveRings is the radial weights of an edge.
func naiveRings(s convolutionSpec, length, longest, meanOfRing float64) []float64 {
	if s.rings == 1 {
		return []float64{1}
	}
	x := length / longest
	switch {
	case s.radial == RadialLocal && meanOfRing == 0:
		x = 0
	case s.radial == RadialLocal:
		x = min(1, length/(2*meanOfRing))
	}
	weights := make([]float64, s.rings)
	for r := range weights {
		weights[r] = max(0, 1-math.Abs(x*float64(s.rings-1)-float64(r)))
	}
	return weights
}

// naive is a layer applied edge by edge.
type naive struct {
	convolutionSpec
	p        layerParameters
	geometry EdgeGeometry
	longest  float64
}

func (l *naive) message(tensor string, e int, rings []float64, f feature) feature {
	basis := edgeBasis(l.in.Order, l.out.Order, l.band, l.geometry.CosTheta[e], l.geometry.SinTheta[e])
	angle := math.Atan2(l.geometry.SinTransport[e], l.geometry.CosTransport[e])
	return applyKernel(l.p[tensor], basis, rings, l.in, l.out, f.turned(angle))
}

func (l *naive) own(tensor string, f feature) feature {
	return applyKernel(l.p[tensor], selfBasisMatrices(l.in.Order, l.out.Order), []float64{1}, l.in, l.out, f)
}

// query is K_query f_p, in the authors' form weighted like the edge's key: the
// elements of the neighbour basis that lead from an order to itself without θ.
func (l *naive) query(rings []float64, f feature) feature {
	if !l.queryRadial {
		return l.own("query", f)
	}
	basis := edgeBasis(l.in.Order, l.out.Order, l.band, 1, 0)
	for b, s := range basis {
		if s.in != s.out || s.frequency != 0 {
			basis[b].matrix = nil
		}
	}
	return applyKernel(l.p["query"], basis, rings, l.in, l.out, f)
}

// headMap is W^h of appendix D.3, or the part of f in the channels of head h.
func (l *naive) headMap(tensor string, h int, f feature) feature {
	if l.projected {
		f = applyKernel(l.p[tensor], selfBasisMatrices(l.out.Order, l.out.Order), []float64{1}, l.out, l.out, f)
	}
	width := l.out.Channels / l.heads
	g := newFeature(l.out)
	copy(g[h*width:(h+1)*width], f[h*width:(h+1)*width])
	return g
}

// vertex is the layer's result at p, whose own features are own, and α for its
// edges and heads.
func (l *naive) vertex(p int, own feature, offsets []int64, neighbors []int32, features []feature) (result feature, alpha [][]float64) {
	var values []feature
	var logits [][]float64 // [term][head]
	add := func(query, key, value feature) {
		values = append(values, value)
		row := make([]float64, l.heads)
		width := float64(l.out.Channels / l.heads * l.out.Components())
		for h := range row {
			if l.attention {
				row[h] = l.headMap("head_query", h, query).dot(l.headMap("head_key", h, key), 0, l.out.Channels) / math.Sqrt(width)
			}
		}
		logits = append(logits, row)
	}
	meanOfRing := 0.0
	for e := offsets[p]; e < offsets[p+1]; e++ {
		meanOfRing += l.geometry.Length[e] / float64(offsets[p+1]-offsets[p])
	}
	for e := offsets[p]; e < offsets[p+1]; e++ {
		rings := naiveRings(l.convolutionSpec, l.geometry.Length[e], l.longest, meanOfRing)
		f := features[neighbors[e]]
		if !l.attention {
			add(nil, nil, l.message("value", int(e), rings, f))
			continue
		}
		add(l.query(rings, own), l.message("key", int(e), rings, f), l.message("value", int(e), rings, f))
	}
	if l.selfTerm && l.attention {
		atZero := append([]float64{1}, make([]float64, l.rings-1)...)
		add(l.query(atZero, own), l.own("self_key", own), l.own("self_value", own))
	}
	alpha = l.coefficients(logits)
	result = l.combine(values, alpha)
	if l.selfTerm && !l.attention {
		result.add(l.own("self", own), 1)
	}
	if len(values) == 0 && !l.selfTerm {
		return result, alpha
	}
	return l.biased(result), alpha
}

// coefficients is N_p·softmax, or 1 without attention.
func (l *naive) coefficients(logits [][]float64) [][]float64 {
	alpha := make([][]float64, len(logits))
	for j := range alpha {
		alpha[j] = make([]float64, l.heads)
		for h := range l.heads {
			total := 0.0
			for _, other := range logits {
				total += math.Exp(other[h] - logits[j][h])
			}
			alpha[j][h] = float64(len(logits)) / total
		}
	}
	return alpha
}

// combine is Σ α V over the terms, through the heads' maps; a mean divides by
// their number.
func (l *naive) combine(values []feature, alpha [][]float64) feature {
	result := newFeature(l.out)
	for j, value := range values {
		scale := 1.0
		if l.mean {
			scale = 1 / float64(len(values))
		}
		for h := range l.heads {
			result.add(l.headMap("head_value", h, value), scale*alpha[j][h])
		}
	}
	if l.projected {
		result = applyKernel(l.p["head_output"], selfBasisMatrices(l.out.Order, l.out.Order), []float64{1}, l.out, l.out, result)
	}
	return result
}

func (l *naive) biased(f feature) feature {
	for c := range f {
		switch l.bias {
		case BiasNone:
		case BiasAdditive:
			for k := range f[c] {
				f[c][k] += l.p["bias"][c]
			}
		default:
			f[c][0] += l.p["bias"][c]
			for n := 1; n <= l.out.Order; n++ {
				angle := l.p["angles"][(n-1)*l.out.Channels+c]
				if l.bias == BiasAngular {
					angle *= float64(n)
				} else if n > 2 {
					angle = 0
				}
				sin, cos := math.Sincos(angle)
				re, im := f[c][2*n-1], f[c][2*n]
				f[c][2*n-1], f[c][2*n] = cos*re-sin*im, sin*re+cos*im
			}
		}
	}
	return f
}

// randomMesh is a directed graph with every kind of edge: a vertex without
// edges, rings of one edge, edges without a direction, an edge of length 0.
type randomMesh struct {
	offsets   []int64
	neighbors []int32
	geometry  EdgeGeometry
}

func newRandomMesh(random *rand.Rand, vertices int) *randomMesh {
	return newRandomGraph(random, vertices, vertices)
}

// newRandomGraph is one whose neighbours are other points.
func newRandomGraph(random *rand.Rand, vertices, sources int) *randomMesh {
	m := &randomMesh{offsets: []int64{0}}
	for p := range vertices {
		degree := random.IntN(8)
		if p == 0 {
			degree = 0
		}
		for range degree {
			sinTheta, cosTheta := math.Sincos(2 * math.Pi * random.Float64())
			if random.IntN(10) == 0 {
				sinTheta, cosTheta = 0, 0
			}
			sinG, cosG := math.Sincos(2 * math.Pi * random.Float64())
			length := random.Float64()
			if random.IntN(30) == 0 {
				length = 0
			}
			m.neighbors = append(m.neighbors, int32(random.IntN(sources)))
			m.geometry.CosTheta = append(m.geometry.CosTheta, cosTheta)
			m.geometry.SinTheta = append(m.geometry.SinTheta, sinTheta)
			m.geometry.CosTransport = append(m.geometry.CosTransport, cosG)
			m.geometry.SinTransport = append(m.geometry.SinTransport, sinG)
			m.geometry.Length = append(m.geometry.Length, length)
		}
		m.offsets = append(m.offsets, int64(len(m.neighbors)))
	}
	return m
}

func (m *randomMesh) graph(t testing.TB) *Graph[float64] {
	t.Helper()
	g, err := NewGraph[float64](memory.NewBudget(0, nil), m.offsets, m.neighbors, nil, m.geometry)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func randomNumbers(random *rand.Rand, n int) []float64 {
	numbers := make([]float64, n)
	for i := range numbers {
		numbers[i] = random.NormFloat64()
	}
	return numbers
}

func randomParameters(random *rand.Rand, s convolutionSpec) layerParameters {
	p := layerParameters{}
	for _, parameter := range s.parameters("") {
		p[parameter.name] = randomNumbers(random, int(parameter.size()))
	}
	return p
}

// layerVariants is every option of a layer at least once, over orders 0..4.
func layerVariants() (list []convolutionSpec) {
	orders := [][2]int{{0, 0}, {0, 2}, {1, 2}, {2, 0}, {2, 1}, {2, 2}, {3, 4}, {4, 3}, {4, 4}}
	biases := []Bias{BiasAngular, BiasAngularAuthors, BiasNone, BiasAdditive}
	radials := []Radial{RadialGlobal, RadialLocal}
	for i, order := range orders {
		for variant := range 8 {
			s := convolutionSpec{
				in: Type{2 + i%3, order[0]}, out: Type{4, order[1]}, band: -1 + (i+variant)%4, rings: 1 + variant%4,
				radial: radials[variant/2%2], mean: variant%2 == 0, selfTerm: variant/3%2 == 1,
				attention: variant >= 2, heads: 1, bias: biases[(i+variant)%4],
			}
			if s.band == 0 {
				s.band = 5
			}
			if s.attention {
				s.heads = []int{1, 2, 4}[variant%3]
				s.projected = variant >= 5
				s.queryRadial = variant%2 == 1
			}
			list = append(list, s)
		}
	}
	return append(list, convolutionSpec{
		in: Type{20, 2}, out: Type{24, 2}, band: 2, rings: 2, radial: RadialGlobal, attention: true, heads: 3, bias: BiasAngular,
	})
}

func (s convolutionSpec) String() string {
	return fmt.Sprintf("%v→%v band %d rings %d %s mean %t self %t attention %t heads %d projected %t radial query %t bias %s",
		s.in, s.out, s.band, s.rings, s.radial, s.mean, s.selfTerm, s.attention, s.heads, s.projected, s.queryRadial, s.bias)
}

func TestAggregateFirstEqualsTheKernelMatricesOfThePaper(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	mesh := newRandomMesh(random, 70)
	for _, s := range layerVariants() {
		p := randomParameters(random, s)
		x := randomNumbers(random, 70*s.in.Channels*s.in.Components())
		got, gotAlpha := runConvolution(newConvolution[float64](s, p), mesh.graph(t), x)
		want, wantAlpha := naiveLayer(s, p, mesh, x)
		if e := largestError(t, got, want); !(e < 1e-12) {
			t.Errorf("%v: relative error %g", s, e)
		}
		if e := largestError(t, gotAlpha, wantAlpha); s.attention && !(e < 1e-12) {
			t.Errorf("%v: relative error %g of α", s, e)
		}
	}
}

// naiveLayer applies a layer to a mesh; features as [vertices, channels,
// components], α as [edges, heads].
func naiveLayer(s convolutionSpec, p layerParameters, mesh *randomMesh, x []float64) (y, alpha []float64) {
	return naiveLayerBetween(s, p, mesh, x, x)
}

// naiveLayerBetween is naiveLayer from the points with the features x to those
// whose own are own.
func naiveLayerBetween(s convolutionSpec, p layerParameters, mesh *randomMesh, x, own []float64) (y, alpha []float64) {
	l := &naive{convolutionSpec: s, p: p, geometry: mesh.geometry}
	for _, length := range mesh.geometry.Length {
		l.longest = max(l.longest, length)
	}
	sources, targets := toFeatures(x, s.in), toFeatures(own, s.in)
	for i := range len(mesh.offsets) - 1 {
		f, a := l.vertex(i, targets[i], mesh.offsets, mesh.neighbors, sources)
		for _, channel := range f {
			y = append(y, channel...)
		}
		for j := range mesh.offsets[i+1] - mesh.offsets[i] {
			alpha = append(alpha, a[j]...)
		}
	}
	return y, alpha
}

// toFeatures takes [points, channels, components] apart.
func toFeatures(x []float64, of Type) (features []feature) {
	for len(x) > 0 {
		f := newFeature(of)
		for c := range f {
			x = x[copy(f[c], x):]
		}
		features = append(features, f)
	}
	return features
}
