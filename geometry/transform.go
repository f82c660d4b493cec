package geometry

import (
	"math"

	"libeman/geometry/internal/r3"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
)

// The transformations of §3.5 that a network should be equivariant to. Each
// gives a new mesh with the same options, to compare results on.

// ChangeGauge returns the mesh with the frame of each vertex turned by its
// angle about its normal. It has the custom gauge. The coordinates z_n of a
// feature at p become e^{−in·angles[p]} z_n.
func (m *Mesh) ChangeGauge(angles []float64, control *parallel.Control) (changed *Mesh, err error) {
	err = m.Read(func(v *View) error {
		if len(angles) != v.VertexCount() {
			return badArgument("angles", "%d angles are given for %d vertices", len(angles), v.VertexCount())
		}
		for p, angle := range angles {
			if angle-angle != 0 {
				return badArgument("angles", "angle %d is %g", p, angle)
			}
		}
		in := v.input()
		in.Frames = func(destination []float64, begin, end int) {
			for p := begin; p < end; p++ {
				r3.PutFrame(destination, p-begin, r3.FrameAt(v.frames, p).Turned(angles[p]))
			}
		}
		options := m.options
		options.Gauge = CustomGauge
		changed, err = newMesh(v.resources, v.topology, &in, options, control)
		return err
	})
	return changed, err
}

// input reads the view's own arrays, in the mesh's unit.
func (v *View) input() Input {
	return Input{
		VertexCount: int64(v.VertexCount()),
		FaceCount:   int64(v.FaceCount()),
		Positions: func(destination []float64, begin, end int) {
			for i, x := range v.positions[3*begin : 3*end] {
				destination[i] = math.Ldexp(x, v.exponent)
			}
		},
		Faces: func(destination []int64, begin, end int) {
			for i, q := range v.topology.faces[3*begin : 3*end] {
				destination[i] = int64(q)
			}
		},
	}
}

// Similarity is x ↦ Scale·R·x + Translation with the rotation R given row by
// row. The mesh's unit is that of Translation.
type Similarity struct {
	Rotation    [9]float64
	Translation [3]float64
	Scale       float64
}

func (s *Similarity) check() error {
	if rows := r3.FrameAt(s.Rotation[:], 0); !rows.IsOrthonormal(1e-6) {
		return badArgument("rotation", "the matrix is not a rotation")
	}
	for i, x := range s.Translation {
		if x-x != 0 {
			return badArgument("translation", "component %d is %g", i, x)
		}
	}
	if !(s.Scale > 0 && s.Scale <= math.MaxFloat64) {
		return badArgument("scale", "%g is not positive and finite", s.Scale)
	}
	return nil
}

func (s *Similarity) apply(x r3.Vec) r3.Vec {
	t := r3.Vec{X: s.Translation[0], Y: s.Translation[1], Z: s.Translation[2]}
	return x.Rotated(&s.Rotation).Times(s.Scale).Plus(t)
}

// Transform returns the mesh moved by a similarity. Custom frames turn with
// it; other gauges are chosen anew by their own rule. Tangent coordinates of
// results stay the same, vectors of ℝ³ turn by the rotation.
func (m *Mesh) Transform(s Similarity, control *parallel.Control) (moved *Mesh, err error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	err = m.Read(func(v *View) error {
		in := v.input()
		original := in.Positions
		in.Positions = func(destination []float64, begin, end int) {
			original(destination, begin, end)
			for i := range end - begin {
				r3.Put(destination, i, s.apply(r3.At(destination, i)))
			}
		}
		if m.options.Gauge == CustomGauge {
			in.Frames = func(destination []float64, begin, end int) {
				for p := begin; p < end; p++ {
					f := r3.FrameAt(v.frames, p)
					r := &s.Rotation
					r3.PutFrame(destination, p-begin, r3.Frame{E1: f.E1.Rotated(r), E2: f.E2.Rotated(r), N: f.N.Rotated(r)})
				}
			}
		}
		moved, err = newMesh(v.resources, v.topology, &in, m.options, control)
		return err
	})
	return moved, err
}

// Diagonal is the length of the diagonal of the mesh's bounding box.
func (v *View) Diagonal() float64 {
	if v.VertexCount() == 0 {
		return 0
	}
	low, high := r3.At(v.positions, 0), r3.At(v.positions, 0)
	for p := range v.VertexCount() {
		x := r3.At(v.positions, p)
		low = r3.Vec{X: min(low.X, x.X), Y: min(low.Y, x.Y), Z: min(low.Z, x.Z)}
		high = r3.Vec{X: max(high.X, x.X), Y: max(high.Y, x.Y), Z: max(high.Z, x.Z)}
	}
	return math.Ldexp(high.Minus(low).Length(), v.exponent)
}

// Permutation renumbers a mesh: vertex i of the new one is VertexOrder[i] of
// the old, face i is FaceOrder[i], and starts at the corner CornerShift[i]
// (0, 1 or 2) of that face, which keeps its orientation. Empty FaceOrder and
// CornerShift leave the faces in place.
type Permutation struct {
	VertexOrder []int64
	FaceOrder   []int64
	CornerShift []int64
}

// RandomPermutationOf renumbers vertices, faces and corners of a mesh with the
// given counts at random.
func RandomPermutationOf(seed uint64, vertices, faces int) Permutation {
	p := Permutation{
		VertexOrder: make([]int64, vertices),
		FaceOrder:   make([]int64, faces),
		CornerShift: make([]int64, faces),
	}
	RandomPermutation(randomBits(seed, 0), p.VertexOrder)
	RandomPermutation(randomBits(seed, 1), p.FaceOrder)
	for i := range p.CornerShift {
		p.CornerShift[i] = int64(randomBits(randomBits(seed, 2), uint64(i)) % 3)
	}
	return p
}

// Permute returns the mesh renumbered. Custom frames move with their vertices;
// other gauges are chosen anew, so that a gauge by first neighbour changes.
// Row i of a per-vertex result belongs to vertex VertexOrder[i] of the old mesh.
func (m *Mesh) Permute(p Permutation, control *parallel.Control) (permuted *Mesh, err error) {
	err = m.Read(func(v *View) error {
		scratch := v.resources.NewArena("scratch")
		defer scratch.Free()
		newNumber, err := inverse(scratch, "vertex_order", p.VertexOrder, v.VertexCount())
		if err != nil {
			return err
		}
		if len(p.FaceOrder) > 0 {
			if _, err := inverse(scratch, "face_order", p.FaceOrder, v.FaceCount()); err != nil {
				return err
			}
		}
		if err := checkShifts(p.CornerShift, v.FaceCount()); err != nil {
			return err
		}
		in := v.permutedInput(&p, newNumber)
		if m.options.Gauge == CustomGauge {
			in.Frames = func(destination []float64, begin, end int) {
				for i := begin; i < end; i++ {
					r3.PutFrame(destination, i-begin, r3.FrameAt(v.frames, int(p.VertexOrder[i])))
				}
			}
		}
		permuted, err = New(v.resources, in, m.options, control)
		return err
	})
	return permuted, err
}

func (v *View) permutedInput(p *Permutation, newNumber []int64) Input {
	in := v.input()
	in.Positions = func(destination []float64, begin, end int) {
		for i := begin; i < end; i++ {
			for k, x := range v.positions[3*p.VertexOrder[i]:][:3] {
				destination[3*(i-begin)+k] = math.Ldexp(x, v.exponent)
			}
		}
	}
	in.Faces = func(destination []int64, begin, end int) {
		for i := begin; i < end; i++ {
			face, shift := int64(i), int64(0)
			if len(p.FaceOrder) > 0 {
				face = p.FaceOrder[i]
			}
			if len(p.CornerShift) > 0 {
				shift = p.CornerShift[i]
			}
			corners := v.topology.faces[3*face:][:3]
			for k := range int64(3) {
				destination[3*int64(i-begin)+k] = newNumber[corners[(k+shift)%3]]
			}
		}
	}
	return in
}

// inverse checks that order is a permutation of [0, n) and inverts it.
func inverse(arena *memory.Arena, name string, order []int64, n int) ([]int64, error) {
	if len(order) != n {
		return nil, badArgument(name, "%d numbers are given for %d elements", len(order), n)
	}
	result, err := memory.Make[int64](arena, int64(n))
	if err != nil {
		return nil, err
	}
	for i := range result {
		result[i] = -1
	}
	for i, old := range order {
		if old < 0 || old >= int64(n) {
			return nil, badArgument(name, "element %d is %d, out of range [0, %d)", i, old, n)
		}
		if result[old] >= 0 {
			return nil, badArgument(name, "%d stands there twice, at %d and %d", old, result[old], i)
		}
		result[old] = int64(i)
	}
	return result, nil
}

func checkShifts(shifts []int64, faces int) error {
	if len(shifts) > 0 && len(shifts) != faces {
		return badArgument("corner_shift", "%d numbers are given for %d faces", len(shifts), faces)
	}
	for i, s := range shifts {
		if s < 0 || s > 2 {
			return badArgument("corner_shift", "element %d is %d, not 0, 1 or 2", i, s)
		}
	}
	return nil
}
