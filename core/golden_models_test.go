package core

import (
	"strings"
	"testing"

	"libeman/geometry/memory"
	"libeman/geometry/parallel"
	"libeman/simd"
	"libeman/tests/npz"
)

// logBound32 is what the log-probabilities of the shipped precision are held
// to.
const logBound32 = 1e-4

func stateOf[T simd.Float](file npz.File) (state []Parameter[T]) {
	for name, array := range file {
		if rest, found := strings.CutPrefix(name, "w:"); found {
			p := Parameter[T]{Name: rest, Shape: array.Shape, Data: make([]T, len(array.Data))}
			for i, value := range array.Data {
				p.Data[i] = T(value)
			}
			state = append(state, p)
		}
	}
	return state
}

// inputOf is what a model sees of a mesh of the reference vectors.
func inputOf[T simd.Float](t testing.TB, spec Spec, m *goldenMesh) *Input[T] {
	in := &Input[T]{Graph: graphOf[T](t, m)}
	if spec.Features == FeaturesXYZ {
		in.Features = m.file["V"].Data
		return in
	}
	vertices := in.Graph.Vertices()
	tangent := make([]float64, vertices*len(spec.Powers)*2)
	for k, power := range spec.Powers {
		for i, given := range m.file["powers"].Data {
			if given != power {
				continue
			}
			for p := range vertices {
				copy(tangent[(p*len(spec.Powers)+k)*2:], m.file["reltan_tan"].Data[(i*vertices+p)*2:][:2])
			}
		}
	}
	in.Features = RelTanFeatures(tangent)
	return in
}

func newTestRunner[T simd.Float](threads int) *Runner[T] {
	return NewRunner(testKernels[T](), parallel.New(threads), memory.NewBudget(0, nil))
}

func logitsOf[T simd.Float](t testing.TB, m *Model[T], in *Input[T]) (logits []float64) {
	t.Helper()
	out := make([]T, m.Rows(in.Vertices())*m.Spec().Classes)
	if err := newTestRunner[T](2).Logits(m, in, nil, out); err != nil {
		t.Fatal(err)
	}
	for _, value := range out {
		logits = append(logits, float64(value))
	}
	return logits
}

func largestDifference(t testing.TB, got, want []float64) (difference float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d numbers, not %d", len(got), len(want))
	}
	for i := range want {
		if !(abs(got[i]-want[i]) <= difference) {
			difference = abs(got[i] - want[i])
		}
	}
	return difference
}

func abs(x float64) float64 { return max(x, -x) }

// goldenCase is one array of log-probabilities of a model.
type goldenCase struct {
	name, array string
	task        Task
	mesh        *goldenMesh
	// The function amplifies rounding: raw coordinates far from the origin
	// saturate the softmax of the attention. How much shows in the error in
	// float64, whose unit is 2^-29 of that of float32; float32 is held to four
	// times what this predicts.
	illConditioned bool
}

func checkModel(t *testing.T, file npz.File, config AuthorsConfig, cases []goldenCase) {
	t.Helper()
	for _, c := range cases {
		config.Task = c.task
		error64 := modelError[float64](t, file, config, c)
		error32 := modelError[float32](t, file, config, c)
		bound := logBound32
		if c.illConditioned {
			bound = 4 * error64 * (1 << 29)
			if bound < logBound32 {
				t.Errorf("%s: well conditioned: %g in float64", c.name, error64)
			}
		}
		t.Logf("%s: log-probabilities within %.2g in float64, %.2g in float32 (bound %.2g)", c.name, error64, error32, bound)
		if !(error64 <= bound64) || !(error32 <= bound) {
			t.Errorf("%s: off by %g in float64, %g in float32", c.name, error64, error32)
		}
	}
}

func modelError[T simd.Float](t *testing.T, file npz.File, config AuthorsConfig, c goldenCase) float64 {
	t.Helper()
	m, err := FromAuthors(stateOf[T](file), config)
	if err != nil {
		t.Fatal(err)
	}
	return largestDifference(t, logitsOf(t, m, inputOf[T](t, m.Spec(), c.mesh)), file[c.array].Data)
}

func TestModelsAgainstTheAuthorsCode(t *testing.T) { eachSet(t, checkModels) }

func checkModels(t *testing.T) {
	for _, name := range []string{"RelTanEMAN", "EMAN", "RelTanGemCNN", "GemCNN"} {
		file := npz.MustRead(t, "model_"+name+".npz")
		control, boundary := loadGoldenMesh(t, "spotcontrol"), loadGoldenMesh(t, "gridopen_a")
		saturated := name == "EMAN"
		checkModel(t, file, DefaultAuthorsConfig(name), []goldenCase{
			{name + ", segmentation", "seg_logp", TaskSegmentation, control, false},
			{name + ", classification", "cls_logp", TaskClassification, control, false},
			{name + ", boundary, segmentation", "boundary_seg_logp", TaskSegmentation, boundary, saturated},
			{name + ", boundary, classification", "boundary_cls_logp", TaskClassification, boundary, saturated},
			{name + ", 6890 vertices", "big_seg_logp", TaskSegmentation, loadGoldenMesh(t, "spot6890"), false},
		})
	}
}

func TestVariantsAgainstTheAuthorsCode(t *testing.T) { eachSet(t, checkVariants) }

func checkVariants(t *testing.T) {
	heads := DefaultAuthorsConfig("RelTanEMAN")
	heads.Heads, heads.RegularNonLin = 2, true
	additive := DefaultAuthorsConfig("RelTanGemCNN")
	additive.EquivariantBias, additive.RegularNonLin, additive.Rings, additive.Powers = false, true, 1, []float64{0.7}
	for name, config := range map[string]AuthorsConfig{"variant_0.npz": heads, "variant_1.npz": additive} {
		mesh := loadGoldenMesh(t, "spotcontrol")
		checkModel(t, npz.MustRead(t, name), config, []goldenCase{
			{name, "seg_logp", TaskSegmentation, mesh, false}, {name, "cls_logp", TaskClassification, mesh, false},
		})
	}
}

// The mesh of the models with one more vertex, which no face uses.
func TestIsolatedVertexAgainstTheAuthorsCode(t *testing.T) {
	file, weights := npz.MustRead(t, "isolated.npz"), npz.MustRead(t, "model_RelTanEMAN.npz")
	isolated := int(file["iso"].Data[0])
	whole := loadGoldenMesh(t, "spotcontrol")
	shifted := insertVertex(whole.file, isolated)
	for name, array := range weights {
		if strings.HasPrefix(name, "w:") {
			file[name] = array
		}
	}
	config := DefaultAuthorsConfig("RelTanEMAN")
	config.NullIsolated = true
	checkModel(t, file, config, []goldenCase{{"isolated vertex", "seg_logp", TaskSegmentation, shifted, false}})
}

// insertVertex adds a vertex without edges or features at an index.
func insertVertex(file npz.File, at int) *goldenMesh {
	vertices := file["V"].Shape[0] + 1
	changed := npz.File{}
	for name, array := range file {
		changed[name] = array
	}
	index := npz.Array{}
	for _, v := range file["edge_index"].Data {
		if int(v) >= at {
			v++
		}
		index.Data = append(index.Data, v)
	}
	changed["edge_index"] = index
	old := file["reltan_tan"]
	tangent := npz.Array{Data: make([]float64, old.Shape[0]*vertices*2)}
	for k := range old.Shape[0] {
		for p := range vertices - 1 {
			to := p
			if p >= at {
				to++
			}
			copy(tangent.Data[(k*vertices+to)*2:], old.Data[(k*(vertices-1)+p)*2:][:2])
		}
	}
	changed["reltan_tan"] = tangent
	return newGoldenMesh(changed, vertices)
}
