package core

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"libeman/geometry/memory"
	"libeman/simd"
	"libeman/tests/npz"
)

// goldenMesh is a mesh of the reference vectors: its edges sorted by their
// receiving vertex, and edge e's number in the file.
type goldenMesh struct {
	file      npz.File
	offsets   []int64
	neighbors []int32
	geometry  EdgeGeometry
	number    []int
}

var goldenMeshes sync.Map // name → *goldenMesh

func loadGoldenMesh(t testing.TB, name string) *goldenMesh {
	if mesh, found := goldenMeshes.Load(name); found {
		return mesh.(*goldenMesh)
	}
	file := npz.MustRead(t, "mesh_"+name+".npz")
	mesh := newGoldenMesh(file, file["V"].Shape[0])
	goldenMeshes.Store(name, mesh)
	return mesh
}

func newGoldenMesh(file npz.File, vertices int) *goldenMesh {
	index := file["edge_index"].Int32()
	edges := len(index) / 2
	m := &goldenMesh{file: file, offsets: make([]int64, vertices+1)}
	for e := range edges {
		m.number = append(m.number, e)
		m.offsets[index[e]+1]++
	}
	for p := range vertices {
		m.offsets[p+1] += m.offsets[p]
	}
	slices.SortStableFunc(m.number, func(a, b int) int { return int(index[a] - index[b]) })
	for _, e := range m.number {
		m.neighbors = append(m.neighbors, index[edges+e])
		sinTheta, cosTheta := math.Sincos(file["edge_coords"].Data[2*e+1])
		sinG, cosG := math.Sincos(file["connection"].Data[e])
		m.geometry.CosTheta = append(m.geometry.CosTheta, cosTheta)
		m.geometry.SinTheta = append(m.geometry.SinTheta, sinTheta)
		m.geometry.CosTransport = append(m.geometry.CosTransport, cosG)
		m.geometry.SinTransport = append(m.geometry.SinTransport, sinG)
		m.geometry.Length = append(m.geometry.Length, file["edge_coords"].Data[2*e])
	}
	return m
}

func graphOf[T simd.Float](t testing.TB, m *goldenMesh) *Graph[T] {
	t.Helper()
	g, err := NewGraph[T](memory.NewBudget(0, nil), m.offsets, m.neighbors, nil, m.geometry)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// toRows brings features [vertices, channels, components] into the layout of
// the kernels.
func toRows[T simd.Float](features []float64, of Type) simd.Rows[T] {
	vertices := len(features) / (of.Channels * of.Components())
	rows := simd.Rows[T]{Data: make([]T, vertices*of.size()), Stride: of.size()}
	for i, value := range features {
		p, rest := i/(of.Channels*of.Components()), i%(of.Channels*of.Components())
		rows.Row(p, of.size())[rest%of.Components()*of.padded()+rest/of.Components()] = T(value)
	}
	return rows
}

func fromRows[T simd.Float](rows simd.Rows[T], of Type) (features []float64) {
	for p := range len(rows.Data) / of.size() {
		for c := range of.Channels {
			for k := range of.Components() {
				features = append(features, float64(rows.Row(p, of.size())[k*of.padded()+c]))
			}
		}
	}
	return features
}

// runConvolution applies a layer to a whole graph.
func runConvolution[T simd.Float](c *convolution[T], g *Graph[T], features []float64) (y, alpha []float64) {
	x := toRows[T](features, c.in)
	out := simd.Rows[T]{Data: make([]T, g.Vertices()*c.out.size()), Stride: c.out.size()}
	coefficients := make([]T, g.Edges()*c.heads)
	sizes := c.scratchSizes(g.largestBlock)
	w := &scratch[T]{}
	for i, to := range w.arrays() {
		*to = make([]T, sizes[i])
	}
	for begin := 0; begin < g.Vertices(); begin += blockVertices {
		c.forward(testKernels[T](), w, g, x, x, out, begin, min(begin+blockVertices, g.Vertices()), coefficients)
	}
	for _, a := range coefficients {
		alpha = append(alpha, float64(a))
	}
	return fromRows(out, c.out), alpha
}

// largestError is max|got - want| over max|want|.
func largestError(t testing.TB, got, want []float64) float64 {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d numbers, not %d", len(got), len(want))
	}
	difference, scale := 0.0, 0.0
	for i := range want {
		if math.IsNaN(got[i]) != math.IsNaN(want[i]) {
			t.Fatalf("number %d is %g, not %g", i, got[i], want[i])
		}
		difference = max(difference, math.Abs(got[i]-want[i]))
		scale = max(scale, math.Abs(want[i]))
	}
	return difference / scale
}

type goldenLayer struct {
	File      string
	Kind      string
	Mesh      string
	InOrder   int  `json:"in_order"`
	OutOrder  int  `json:"out_order"`
	Rings     int  `json:"n_rings"`
	BandLimit *int `json:"band_limit"`
	EquivBias bool `json:"equiv_bias"`
	Heads     int  `json:"n_heads"`
	In        int  `json:"c_in"`
	Out       int  `json:"c_out"`
}

func readJSON(t testing.TB, name string, to any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(npz.Golden(t), name))
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (l goldenLayer) spec() convolutionSpec {
	s := convolutionSpec{
		in: Type{l.In, l.InOrder}, out: Type{l.Out, l.OutOrder}, band: -1, rings: l.Rings, radial: RadialGlobal,
		mean: true, attention: l.Kind == "eman", heads: max(1, l.Heads), queryRadial: true, bias: BiasAdditive,
	}
	if l.BandLimit != nil {
		s.band = *l.BandLimit
	}
	if l.EquivBias {
		s.bias = BiasAngularAuthors
	}
	return s
}

func (l goldenLayer) parameters(file npz.File) layerParameters {
	return layerParameters{
		"value": file["w:weight"].Data, "key": file["w:eman_attn_layer.neigh_weight"].Data, "query": file["w:eman_attn_layer.self_weight"].Data,
		"bias": file["w:bias"].Data, "angles": append(append([]float64(nil), file["w:ang_bias1"].Data...), file["w:ang_bias2"].Data...),
	}
}

// The bounds that the layers are held to, relative to the largest value.
const (
	bound64 = 1e-9
	bound32 = 2e-6
)

func TestLayersAgainstTheAuthorsCode(t *testing.T) { eachSet(t, checkLayers) }

func checkLayers(t *testing.T) {
	var layers []goldenLayer
	readJSON(t, "layers.json", &layers)
	var worst64, worst32 float64
	for _, l := range layers {
		file := npz.MustRead(t, l.File)
		error64 := checkLayer[float64](t, l, file, bound64)
		error32 := checkLayer[float32](t, l, file, bound32)
		worst64, worst32 = max(worst64, error64), max(worst32, error32)
	}
	t.Logf("%d layers: largest relative error %.2g in float64, %.2g in float32", len(layers), worst64, worst32)
}

func checkLayer[T simd.Float](t *testing.T, l goldenLayer, file npz.File, bound float64) (worst float64) {
	mesh := loadGoldenMesh(t, l.Mesh)
	c := newConvolution[T](l.spec(), l.parameters(file))
	y, alpha := runConvolution(c, graphOf[T](t, mesh), file["x"].Data)
	worst = largestError(t, y, file["y"].Data)
	if worst > bound {
		t.Errorf("%s: relative error %g", l.File, worst)
	}
	if l.Kind != "eman" {
		return worst
	}
	var want []float64
	for _, e := range mesh.number {
		want = append(want, file["attention"].Data[e*l.Heads:(e+1)*l.Heads]...)
	}
	ofAlpha := largestError(t, alpha, want)
	if ofAlpha > bound {
		t.Errorf("%s: relative error %g of the attention", l.File, ofAlpha)
	}
	return max(worst, ofAlpha)
}

func TestRegularAgainstTheAuthorsCode(t *testing.T) { eachSet(t, checkRegular) }

func checkRegular(t *testing.T) {
	file := npz.MustRead(t, "regular_nonlin.npz")
	cases := 0
	for name, x := range file {
		var order, samples int
		if n, _ := fmt.Sscanf(name, "x_o%d_s%d", &order, &samples); n != 2 {
			continue
		}
		cases++
		of := Type{x.Shape[1], order}
		rows := toRows[float64](x.Data, of)
		a := newActivation[float64](NonlinearityRegular, of, samples, nil)
		a.apply(simd.Generic[float64]{}, rows, x.Shape[0])
		if e := largestError(t, fromRows(rows, of), file["y"+name[1:]].Data); e > bound64 {
			t.Errorf("%s: relative error %g", name, e)
		}
		narrow := toRows[float32](x.Data, of)
		b := newActivation[float32](NonlinearityRegular, of, samples, nil)
		b.apply(kernels32, narrow, x.Shape[0])
		if e := largestError(t, fromRows(narrow, of), file["y"+name[1:]].Data); e > bound32 {
			t.Errorf("%s: relative error %g in float32", name, e)
		}
	}
	if cases != 6 {
		t.Errorf("%d cases, not 6", cases)
	}
}
