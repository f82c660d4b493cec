package surface

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"libeman/geometry"
	"libeman/geometry/internal/r3"
	"libeman/geometry/parallel"
	"libeman/tests/need"
	"libeman/tests/npz"
)

// testMesh is a mesh made for tests.
type testMesh struct {
	name      string
	positions []float64
	faces     []int32
}

func (m testMesh) vertices() int { return len(m.positions) / 3 }

// build makes the mesh and closes it at the end of the test.
func (m testMesh) build(t testing.TB, options geometry.Options, threads int) *geometry.Mesh {
	t.Helper()
	r := geometry.Resources{Threads: parallel.New(threads)}
	mesh, err := geometry.New(r, geometry.FromSlices(m.positions, m.faces), options, nil)
	if err != nil {
		t.Fatalf("%s: %v", m.name, err)
	}
	t.Cleanup(mesh.Close)
	return mesh
}

var humans = sync.OnceValues(func() (npz.File, error) {
	path := filepath.Join("..", "..", "..", "shared", "data", "humans.npz")
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return npz.Read(path)
})

// human is one of the bodies of humans.npz.
func human(t testing.TB, number int) testMesh {
	t.Helper()
	file, err := humans()
	if err != nil {
		need.Missing(t, err)
	}
	all := file["vertices"]
	size := 3 * all.Shape[1]
	m := testMesh{name: "human", positions: all.Data[number*size:][:size]}
	for _, index := range file["faces"].Data {
		m.faces = append(m.faces, int32(index))
	}
	return m
}

// withBodies adds bodies to shapes that need no file, where there is one.
func withBodies(t testing.TB, bodies []int, shapes ...testMesh) []testMesh {
	t.Helper()
	if _, err := humans(); err != nil && !need.InCI() {
		t.Logf("without bodies: %v", err)
		return shapes
	}
	for _, number := range bodies {
		shapes = append(shapes, human(t, number))
	}
	return shapes
}

// subdivided divides each face into four, several times.
func (m testMesh) subdivided(times int) testMesh {
	for range times {
		next := testMesh{name: m.name, positions: append([]float64(nil), m.positions...)}
		middles := map[[2]int32]int32{}
		middle := func(p, q int32) int32 {
			key := [2]int32{min(p, q), max(p, q)}
			if _, ok := middles[key]; !ok {
				middles[key] = int32(len(next.positions) / 3)
				x := r3.At(m.positions, int(p)).Plus(r3.At(m.positions, int(q))).Times(0.5)
				next.positions = append(next.positions, x.X, x.Y, x.Z)
			}
			return middles[key]
		}
		for i := 0; i < len(m.faces); i += 3 {
			a, b, c := m.faces[i], m.faces[i+1], m.faces[i+2]
			ab, bc, ca := middle(a, b), middle(b, c), middle(c, a)
			next.faces = append(next.faces, a, ab, ca, ab, b, bc, ca, bc, c, ab, bc, ca)
		}
		m = next
	}
	return m
}

// spikyBall is an octahedron divided n×n on a sphere with waves: closed, with
// no symmetry.
func spikyBall(n int) testMesh {
	m := testMesh{name: "ball"}
	index := map[[3]int]int32{}
	vertex := func(key [3]int) int32 {
		if _, ok := index[key]; !ok {
			index[key] = int32(m.vertices())
			v := r3.Vec{X: float64(key[0]), Y: float64(key[1]), Z: float64(key[2])}.Normalised()
			v = v.Times(1 + 0.2*math.Sin(5*v.X+1) + 0.15*math.Cos(4*v.Y-2*v.Z+0.3))
			m.positions = append(m.positions, v.X, v.Y, 1.3*v.Z)
		}
		return index[key]
	}
	for octant := range 8 {
		x, y, z := 1-octant&1*2, 1-octant>>1&1*2, 1-octant>>2&1*2
		at := func(i, j int) int32 { return vertex([3]int{x * i, y * j, z * (n - i - j)}) }
		add := func(a, b, c int32) {
			if x*y*z < 0 {
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

// cone has rings of n vertices, each turned against the one below.
func cone(n, rings int, twist float64) testMesh {
	m := testMesh{name: "cone"}
	for j := range rings {
		for i := range n {
			sin, cos := math.Sincos(2*math.Pi*float64(i)/float64(n) + twist*float64(j))
			radius := 1 + 0.02*float64(j)
			m.positions = append(m.positions, radius*cos, radius*sin, 0.3*float64(j))
		}
	}
	for j := range rings - 1 {
		for i := range n {
			a, b := int32(j*n+i), int32(j*n+(i+1)%n)
			m.faces = append(m.faces, a, b, b+int32(n), a, b+int32(n), a+int32(n))
		}
	}
	return m
}

// disc has so many sectors around its middle.
func disc(sectors int) testMesh {
	m := testMesh{name: "disc", positions: []float64{0.3, 0.2, 0.1}}
	for i := range sectors {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(sectors))
		m.positions = append(m.positions, 0.3+cos, 0.2+sin, 0.1)
		m.faces = append(m.faces, 0, int32(i+1), int32((i+1)%sectors+1))
	}
	return m
}

// needles are long thin triangles along a bent line.
func needles(count int) testMesh {
	m := testMesh{name: "needles"}
	for i := range count {
		x := float64(i)
		m.positions = append(m.positions, x, 0.01*x*x, 0, x+0.9, 0.01*x*x, 1e-4*x, x+0.3, 0.01*x*x+1e-3, 0)
		m.faces = append(m.faces, int32(3*i), int32(3*i+1), int32(3*i+2))
	}
	return m
}

// twoSheets are n×n grids, close to each other and facing away.
func twoSheets(n int) testMesh {
	m := testMesh{name: "two sheets"}
	for sheet := range 2 {
		for i := range n * n {
			x, y := float64(i%n)/float64(n), float64(i/n)/float64(n)
			m.positions = append(m.positions, x, y+0.03*x*x, 0.01*float64(sheet)+0.1*x*y)
		}
		for i := range n - 1 {
			for j := range n - 1 {
				a := int32(sheet*n*n + i*n + j)
				b, c, d := a+1, a+1+int32(n), a+int32(n)
				if sheet == 0 {
					b, d = d, b
				}
				m.faces = append(m.faces, a, b, c, a, c, d)
			}
		}
	}
	return m
}

// mirrored is a body made of its own one half and the mirror image: exactly
// symmetric, without a seam between the halves.
func mirrored(m testMesh) testMesh {
	out := testMesh{name: "mirrored"}
	n := int32(m.vertices())
	for side := range 2 {
		for p := range m.vertices() {
			x := r3.At(m.positions, p)
			x.X += 0.7
			if side == 1 {
				x.X = -x.X
			}
			out.positions = append(out.positions, x.X, x.Y, x.Z)
		}
		for i := 0; i < len(m.faces); i += 3 {
			f := [3]int32{m.faces[i], m.faces[i+1], m.faces[i+2]}
			if side == 1 {
				f = [3]int32{f[0] + n, f[2] + n, f[1] + n}
			}
			out.faces = append(out.faces, f[0], f[1], f[2])
		}
	}
	return out
}

// overlapping is a mesh in two parts with a strip of faces in both, whose normals
// differ where the strip ends.
func overlapping(m testMesh) testMesh {
	n := int32(m.vertices())
	from, to := len(m.faces)/3*2/5*3, len(m.faces)/3*3/5*3
	second := slices.Clone(m.faces[from:])
	for i := range second {
		second[i] += n
	}
	m.name += " in overlapping parts"
	m.positions = slices.Concat(m.positions, m.positions)
	m.faces = slices.Concat(m.faces[:to], second)
	return m
}
