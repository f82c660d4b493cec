package geometry

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"libeman/geometry/internal/r3"
	"libeman/simd"
)

// What the tests of this package demand holds for every instruction set.
func TestEveryInstructionSet(t *testing.T) {
	defer func() { testSet = "" }()
	for _, set := range simd.Available() {
		testSet = set.Name()
		for name, test := range map[string]func(*testing.T){
			"angles": TestAnglesAgainstDefinitions, "RelTan": TestRelTanAgainstItsFormula, "frames": TestFramesAreOrthonormalAndOutward,
			"symmetries": TestRelTanSymmetries, "scaling": TestScalingByAPowerOfTwoChangesNoBit, "translation": TestFarTranslation,
			"gauge": TestGaugeChange, "permutation": TestPermutation, "threads": TestSameBitsForAnyNumberOfThreads,
			"smallest": TestSmallestMeshes, "coincident": TestCoincidentVerticesAreNoNeighbors, "spike": TestNeighborAlongTheNormalHasNoAngle,
			"fold": TestOppositeNormals, "near fold": TestTransportNearOppositeNormals, "scales": TestAdversarialScales,
			"overflow": TestOverflowingPowerNamesTheVertex, "far": TestDegeneracyFarFromTheOrigin, "update": TestUpdateEqualsBuildingAnew,
		} {
			t.Run(testSet+"/"+name, test)
		}
	}
}

// A mesh takes the kernels of the set in use, which simd's tests make sure of.
func TestGeometryKernelsAreTheOnesExpected(t *testing.T) {
	want := simd.Best().Name()
	_ = sphere(1, 0, 1).build(t, Options{}, 1).Read(func(v *View) error {
		got := "generic"
		if v.kernels != nil {
			got = v.kernels.Name()
		}
		if got != want {
			t.Errorf("%s kernels are in use, not %s", got, want)
		}
		return nil
	})
}

// edgesOf is the edge geometry of a mesh, one array after another.
func edgesOf[T float32 | float64](t testing.TB, m *Mesh) (all []float64) {
	t.Helper()
	err := m.Read(func(v *View) error {
		n := v.EdgeCount()
		g := EdgeGeometry[T]{make([]T, n), make([]T, n), make([]T, n), make([]T, n), make([]T, n)}
		if err := Edges(v, g, nil); err != nil {
			return err
		}
		for _, values := range [][]T{g.CosAngle, g.SinAngle, g.CosTransport, g.SinTransport, g.Length} {
			for _, x := range values {
				all = append(all, float64(x))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// patched is a sphere in which rare cases of every kind lie among others: fans
// of large degree, vertices without faces, at one place, or on a line through
// a neighbour, and faces doubled back.
func patched(random *rand.Rand) testMesh {
	m := sphere(8, 0.3, random.Uint64())
	m.name = "patched"
	for range 5 {
		m.positions = append(m.positions, random.Float64(), random.Float64(), random.Float64())
	}
	vertices := m.vertices()
	for range 30 {
		p, q := random.IntN(vertices), random.IntN(vertices)
		switch random.IntN(4) {
		case 0: // one place
			copy(m.positions[3*p:3*p+3], m.positions[3*q:3*q+3])
		case 1: // a spike
			r3.Put(m.positions, p, r3.At(m.positions, q).Times(2))
		case 2: // nearly one place
			r3.Put(m.positions, p, r3.At(m.positions, q).Plus(r3.Vec{X: 1e-160, Y: 0, Z: 1e-17}))
		case 3: // a fan
			for range 40 {
				face := 3 * random.IntN(len(m.faces)/3)
				if corner := m.faces[face : face+3]; !slices.Contains(corner, int32(q)) {
					corner[0] = int32(q)
				}
			}
		}
	}
	return m
}

// The kernels agree with the scalar code, their specification. Sums of wedges
// that nearly cancel make a normal as uncertain as the scalar code's own; what
// follows is therefore compared on the same frames.
func TestKernelsAgreeWithScalarCode(t *testing.T) {
	random := rand.New(rand.NewPCG(31, 1))
	shapes := append(smallMeshes(), fan(7), fan(300), fan(1500))
	for range 10 {
		shapes = append(shapes, patched(random))
	}
	defer func() { testSet = "" }()
	for _, shape := range shapes {
		testSet = "generic"
		scalar := shape.build(t, Options{}, 1)
		frames, ambient := framesOf(t, scalar), relTan(t, scalar, AmbientSpace, 0.5, 0.7, -2, 1, 3)
		own := Input{
			VertexCount: int64(shape.vertices()), FaceCount: int64(len(shape.faces) / 3), Frames: ReadSlice(frames, 9),
			Positions: ReadSlice(shape.positions, 3), Faces: FromSlices(shape.positions, shape.faces).Faces,
		}
		double, single := edgesOf[float64](t, scalar), edgesOf[float32](t, scalar)
		for _, set := range simd.Available() {
			testSet = set.Name()
			// Vectors of so many numbers.
			compare := func(what string, width int, got, want []float64, bound float64) {
				t.Helper()
				for i := 0; i < len(want); i += width {
					size := 1.0
					for _, x := range want[i : i+width] {
						size = max(size, math.Abs(x))
					}
					for j, x := range want[i : i+width] {
						if !(math.Abs(got[i+j]-x) <= bound*size) {
							t.Fatalf("%s: %s: number %d of %s %d is %g, not %g", testSet, shape.name, j, what, i/width, got[i+j], x)
						}
					}
				}
			}
			m := shape.build(t, Options{}, 2)
			checkFinite(t, shape.name, m)
			if shape.name != "patched" {
				compare("frame", 9, framesOf(t, m), frames, 1e-13)
			}
			same, err := New(Resources{InstructionSet: testSet}, own, Options{Gauge: CustomGauge}, nil)
			if err != nil {
				t.Fatal(err)
			}
			compare("RelTan", 3, relTan(t, same, AmbientSpace, 0.5, 0.7, -2, 1, 3), ambient, 1e-12)
			compare("edge", 1, edgesOf[float64](t, same), double, 1e-12)
			compare("edge", 1, edgesOf[float32](t, same), single, 2e-7)
			same.Close()
		}
	}
}

// Calls allocate for themselves, not for pieces or vertices.
func TestSteadyUpdatesAllocateLittle(t *testing.T) {
	shape := sphere(60, 0.3, 1)
	m := shape.build(t, Options{}, 1)
	edges := EdgeGeometry[float32]{}
	_ = m.Read(func(v *View) error {
		for _, a := range []*[]float32{&edges.CosAngle, &edges.SinAngle, &edges.CosTransport, &edges.SinTransport, &edges.Length} {
			*a = make([]float32, v.EdgeCount())
		}
		return nil
	})
	out := make([]float64, 4*shape.vertices())
	run := func() {
		if err := m.Update(ReadSlice(shape.positions, 3), nil, nil); err != nil {
			t.Fatal(err)
		}
		err := m.Read(func(v *View) error {
			if err := Edges(v, edges, nil); err != nil {
				return err
			}
			return v.RelTan(RelTanOf(0.5, 0.7), WriteSlice(out, 4), nil)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	n := testing.AllocsPerRun(5, run)
	t.Logf("%g allocations for %d vertices", n, shape.vertices())
	// The race detector drops a part of what is pooled.
	if pieces := shape.vertices() / pieceVertices; n > float64(pieces) {
		t.Errorf("more than the %d pieces", pieces)
	}
}
