package geometry

import (
	"math"
	"math/rand/v2"
	"testing"

	"libeman/geometry/internal/r3"
	"libeman/geometry/parallel"
)

// testMesh is a mesh made for tests.
type testMesh struct {
	name      string
	positions []float64
	faces     []int32
}

// testSet is the instruction set that meshes are built with; the fastest for "".
var testSet string

func (m testMesh) vertices() int { return len(m.positions) / 3 }

// build makes the mesh and closes it at the end of the test.
func (m testMesh) build(t testing.TB, options Options, threads int) *Mesh {
	t.Helper()
	mesh, err := New(Resources{Threads: parallel.New(threads), InstructionSet: testSet}, FromSlices(m.positions, m.faces), options, nil)
	if err != nil {
		t.Fatalf("%s: %v", m.name, err)
	}
	t.Cleanup(mesh.Close)
	return mesh
}

// sphere is an octahedron with its faces divided n×n, on the unit sphere, each
// vertex moved by up to jitter edge lengths: closed and irregular.
func sphere(n int, jitter float64, seed uint64) testMesh {
	index := map[[3]int]int32{}
	m := testMesh{name: "sphere"}
	random := rand.New(rand.NewPCG(seed, 1))
	vertex := func(x, y, z int) int32 {
		key := [3]int{x, y, z}
		if i, ok := index[key]; ok {
			return i
		}
		v := r3.Vec{X: float64(x), Y: float64(y), Z: float64(z)}.Normalised()
		noise := r3.Vec{X: random.Float64() - 0.5, Y: random.Float64() - 0.5, Z: random.Float64() - 0.5}
		v = v.Plus(noise.Times(2 * jitter / float64(n)))
		index[key] = int32(len(m.positions) / 3)
		m.positions = append(m.positions, v.X, v.Y, v.Z)
		return index[key]
	}
	for octant := range 8 {
		sx, sy, sz := 1-octant&1*2, 1-octant>>1&1*2, 1-octant>>2&1*2
		at := func(i, j int) int32 { return vertex(sx*i, sy*j, sz*(n-i-j)) }
		add := func(a, b, c int32) {
			if sx*sy*sz < 0 {
				b, c = c, b
			}
			m.faces = append(m.faces, a, b, c)
		}
		for i := range n {
			for j := range n - i {
				add(at(i, j), at(i+1, j), at(i, j+1))
				if i+j+1 < n {
					add(at(i+1, j), at(i+1, j+1), at(i, j+1))
				}
			}
		}
	}
	return m
}

// grid is an open sheet of n×n vertices over the unit square, with a random
// height and jitter.
func grid(n int, jitter float64, seed uint64) testMesh {
	m := testMesh{name: "grid"}
	random := rand.New(rand.NewPCG(seed, 2))
	for i := range n {
		for j := range n {
			step := jitter / float64(n)
			m.positions = append(m.positions,
				float64(i)/float64(n)+step*(random.Float64()-0.5),
				float64(j)/float64(n)+step*(random.Float64()-0.5),
				0.3*math.Sin(4*float64(i)/float64(n))*math.Cos(5*float64(j)/float64(n))+step*(random.Float64()-0.5))
		}
	}
	for i := range int32(n - 1) {
		for j := range int32(n - 1) {
			a := i*int32(n) + j
			b, c, d := a+int32(n), a+int32(n)+1, a+1
			if random.IntN(2) == 0 {
				m.faces = append(m.faces, a, b, c, a, c, d)
			} else {
				m.faces = append(m.faces, a, b, d, b, c, d)
			}
		}
	}
	return m
}

// fan has one vertex of the given degree in the middle of a ring.
func fan(degree int) testMesh {
	m := testMesh{name: "fan", positions: []float64{0, 0, 0.5}}
	for i := range degree {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(degree))
		m.positions = append(m.positions, cos, sin, 0.1*math.Sin(7*float64(i)))
		m.faces = append(m.faces, 0, int32(i+1), int32((i+1)%degree+1))
	}
	return m
}

func smallMeshes() []testMesh {
	return []testMesh{sphere(6, 0.3, 1), sphere(3, 0, 2), grid(12, 0.5, 3), fan(40)}
}

// Results of a mesh as packed slices.

func rows(t testing.TB, m *Mesh, width int, count func(v *View) int, compute func(v *View, write RowWriter) error) []float64 {
	t.Helper()
	var out []float64
	err := m.Read(func(v *View) error {
		out = make([]float64, width*count(v))
		return compute(v, WriteSlice(out, width))
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func relTan(t testing.TB, m *Mesh, space Space, powers ...float64) []float64 {
	o := RelTanOf(powers...)
	o.Space = space
	return rows(t, m, o.RowWidth(), (*View).VertexCount, func(v *View, write RowWriter) error { return v.RelTan(o, write, nil) })
}

func framesOf(t testing.TB, m *Mesh) []float64 {
	return rows(t, m, 9, (*View).VertexCount, (*View).Frames)
}

func getFeatures(t testing.TB, m *Mesh) []float64 {
	return rows(t, m, 3, (*View).VertexCount, (*View).GET)
}

func edgeAngles(t testing.TB, m *Mesh) []float64 {
	return rows(t, m, 1, (*View).EdgeCount, (*View).EdgeAngles)
}

func transportAngles(t testing.TB, m *Mesh) []float64 {
	return rows(t, m, 1, (*View).EdgeCount, (*View).TransportAngles)
}

func neighborsOf(t testing.TB, m *Mesh, p int) (ring []int32) {
	t.Helper()
	_ = m.Read(func(v *View) error {
		ring = append(ring, v.Neighbors()[v.Offsets()[p]:v.Offsets()[p+1]]...)
		return nil
	})
	return ring
}

// largestDifference is relative to the largest magnitude in want.
func largestDifference(t testing.TB, got, want []float64) float64 {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d values, want %d", len(got), len(want))
	}
	difference, size := 0.0, 0.0
	for i := range want {
		d := math.Abs(got[i] - want[i])
		if math.IsNaN(d) {
			return math.Inf(1)
		}
		difference, size = max(difference, d), max(size, math.Abs(want[i]))
	}
	if difference == 0 {
		return 0
	}
	return difference / size
}

// angleDifference compares angles modulo 2π.
func angleDifference(got, want []float64) (worst float64) {
	for i := range want {
		worst = max(worst, math.Abs(math.Remainder(got[i]-want[i], 2*math.Pi)))
	}
	return worst
}
