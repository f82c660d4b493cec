package geometry

import (
	"math"

	"libeman/geometry/internal/r3"
	"libeman/geometry/parallel"
	"libeman/simd"
)

// EdgeGeometry is what the kernels of a network need of each directed edge
// p ← q, in the order of [View.Neighbors]: the polar angle θ of q−p in the
// gauge of p (the log map, §3.3), the angle g of the transport from q to p,
// and the distance |q−p|. Nil slices are left out.
type EdgeGeometry[T float32 | float64] struct {
	CosAngle, SinAngle         []T // both 0 where q−p has no tangent projection
	CosTransport, SinTransport []T // both 0 between opposite normals along such an edge
	Length                     []T // in units of 2^Exponent of the mesh's unit
}

// Exponent is the power of two that [EdgeGeometry] lengths are divided by.
func (v *View) Exponent() int { return v.exponent }

// Edges computes the geometry of all directed edges.
func Edges[T float32 | float64](v *View, out EdgeGeometry[T], control *parallel.Control) error {
	kernel := edgeKernel(v, out)
	return v.resources.Threads.Range(control, v.VertexCount(), outputRows, func(_, begin, end int) error {
		if kernel == nil {
			setEdges(v, out, begin, end)
			return nil
		}
		return v.inPieces(v.edges.offsets, v.frames, begin, end, func(begin, end int, s *scratch) error {
			if s == nil {
				setEdges(v, out, begin, end)
				return nil
			}
			first, last := v.edges.offsets[begin], v.edges.offsets[end]
			done, rare := kernel(first, last, s)
			if done == int(last-first) && !rare {
				return nil
			}
			for i, place := range s.centers[:last-first] {
				e, p := first+int64(i), int(s.vertices[place])
				if i >= done || rare && (out.CosAngle[e] != out.CosAngle[e] || out.CosTransport[e] != out.CosTransport[e]) {
					out.Set(e, v.positions, v.frames, p, int(v.edges.neighbors[e]))
				}
			}
			return nil
		})
	})
}

// edgeKernel computes the edges [first, last) of a piece; nil where not all
// arrays are wanted or no kernels run.
func edgeKernel[T float32 | float64](v *View, out EdgeGeometry[T]) func(first, last int64, s *scratch) (done int, rare bool) {
	if v.kernels == nil || out.CosAngle == nil || out.CosTransport == nil || out.Length == nil {
		return nil
	}
	return func(first, last int64, s *scratch) (done int, rare bool) {
		to := simd.EdgeArrays[T]{
			CosTheta: out.CosAngle[first:last], SinTheta: out.SinAngle[first:last],
			CosTransport: out.CosTransport[first:last], SinTransport: out.SinTransport[first:last],
			Length: out.Length[first:last],
		}
		neighbors, centers := v.edges.neighbors[first:last], s.centers[:last-first]
		if single, ok := any(to).(simd.EdgeArrays[float32]); ok {
			return v.kernels.Edges32(single, v.positions, v.frames, neighbors, centers, &s.columns)
		}
		return v.kernels.Edges64(any(to).(simd.EdgeArrays[float64]), v.positions, v.frames, neighbors, centers, &s.columns)
	}
}

// setEdges computes the geometry of the edges of the vertices [begin, end).
func setEdges[T float32 | float64](v *View, out EdgeGeometry[T], begin, end int) {
	for p := begin; p < end; p++ {
		for e := v.edges.offsets[p]; e < v.edges.offsets[p+1]; e++ {
			out.Set(e, v.positions, v.frames, p, int(v.edges.neighbors[e]))
		}
	}
}

// Set computes edge e, p ← q, of any set of points with packed positions and
// frames (rows e1, e2, n). Points at one place have no direction: cos θ and sin θ
// are 0.
func (g EdgeGeometry[T]) Set(e int64, positions, frames []float64, p, q int) {
	centre, gauge := r3.At(positions, p), r3.FrameAt(frames, p)
	d := r3.At(positions, q).Minus(centre)
	if g.CosAngle != nil {
		cos, sin := logMap(&gauge, d, centre.MaxAbs())
		g.CosAngle[e], g.SinAngle[e] = T(cos), T(sin)
	}
	if g.CosTransport != nil {
		from := r3.FrameAt(frames, q)
		cos, sin := transport(&gauge, from.E1, from.N, d)
		g.CosTransport[e], g.SinTransport[e] = T(cos), T(sin)
	}
	if g.Length != nil {
		g.Length[e] = T(d.Length())
	}
}

// logMap is (cos θ, sin θ) of d in the gauge, or (0, 0) where d has no tangent
// projection (§3.3; no trigonometric function is needed). size bounds the
// coordinates that d is the difference of.
func logMap(gauge *r3.Frame, d r3.Vec, size float64) (cos, sin float64) {
	x, y := gauge.E1.Dot(d), gauge.E2.Dot(d)
	tangent2 := x*x + y*y
	if !projects(tangent2, d.Squared(), size) {
		return 0, 0
	}
	scale := 1 / math.Sqrt(tangent2)
	return x * scale, y * scale
}

// opposite bounds |n_p + n_q|² of normals whose minimal rotation is undefined.
const opposite = 0x1p-43

// transport is (cos g, sin g) of the transport R from the tangent plane at q,
// with first axis e1 and normal n, to that at p, where d = q−p: the minimal
// rotation that takes n to n_p. With s = n + n_p, for v ⟂ n,
//
//	R v = v − 2 s (s·v)/(s·s),
//
// which is the usual formula without its loss of digits near opposite normals.
// R e1 has the coordinates cos g, sin g in the gauge of p. With these, ρ(g) f_q
// are the coordinates of q's feature at p (§3.4; the sign is that of the
// authors' code, opposite to the paper's formula).
func transport(gauge *r3.Frame, e1, n, d r3.Vec) (cos, sin float64) {
	s := n.Plus(gauge.N)
	squared := s.Squared()
	if squared <= opposite {
		return halfTurn(gauge, e1, d)
	}
	k := 2 * s.Dot(e1) / squared
	return unit(e1.Dot(gauge.E1)-k*s.Dot(gauge.E1), e1.Dot(gauge.E2)-k*s.Dot(gauge.E2))
}

// halfTurn is the transport between opposite normals, as over a sharp fold: of
// all rotations that take one to the other, that by π about the line of the
// tangent plane normal to the edge, w. It depends on no gauge and is its own
// inverse. Without a direction of the edge there is no such line, and no
// feature but scalars passes: (0, 0).
func halfTurn(gauge *r3.Frame, e1, d r3.Vec) (cos, sin float64) {
	cosTheta, sinTheta := logMap(gauge, d, 0)
	if cosTheta == 0 && sinTheta == 0 {
		return 0, 0
	}
	x, y := e1.Dot(gauge.E1), e1.Dot(gauge.E2)
	along := 2 * (cosTheta*y - sinTheta*x) // 2 w·e1 with w = (−sin θ, cos θ)
	return unit(-along*sinTheta-x, along*cosTheta-y)
}

// unit scales a vector of about unit length to it.
func unit(x, y float64) (float64, float64) {
	scale := 1 / math.Sqrt(x*x+y*y)
	return x * scale, y * scale
}

// EdgeAngles writes θ of each directed edge, in radians in (−π, π]; 0 where
// there is no tangent projection.
func (v *View) EdgeAngles(write RowWriter) error {
	return v.writeEdges(write, func(gauge *r3.Frame, centre r3.Vec, q int) float64 {
		cos, sin := logMap(gauge, r3.At(v.positions, q).Minus(centre), centre.MaxAbs())
		return angle(cos, sin)
	})
}

// TransportAngles writes g_{q→p} of each directed edge, in radians in (−π, π].
func (v *View) TransportAngles(write RowWriter) error {
	return v.writeEdges(write, func(gauge *r3.Frame, centre r3.Vec, q int) float64 {
		from := r3.FrameAt(v.frames, q)
		return angle(transport(gauge, from.E1, from.N, r3.At(v.positions, q).Minus(centre)))
	})
}

// angle is atan2(sin, cos) in (−π, π].
func angle(cos, sin float64) float64 {
	a := math.Atan2(sin, cos)
	if a == -math.Pi {
		return math.Pi
	}
	return a
}

// writeEdges computes one number for each directed edge and hands them to
// write in pieces.
func (v *View) writeEdges(write RowWriter, value func(gauge *r3.Frame, centre r3.Vec, q int) float64) error {
	scratch := v.resources.NewArena("scratch")
	defer scratch.Free()
	buffers, err := newBuffers[float64](v.resources, scratch, outputRows)
	if err != nil {
		return err
	}
	return v.resources.Threads.Range(nil, v.VertexCount(), outputRows, func(worker, begin, end int) error {
		buffer := buffers.of(worker)
		filled := 0
		last := int(v.edges.offsets[begin])
		for p := begin; p < end; p++ {
			centre, gauge := r3.At(v.positions, p), r3.FrameAt(v.frames, p)
			for _, q := range v.edges.of(p) {
				if filled == len(buffer) {
					if err := write(buffer, last, last+filled); err != nil {
						return err
					}
					last, filled = last+filled, 0
				}
				buffer[filled] = value(&gauge, centre, int(q))
				filled++
			}
		}
		return write(buffer[:filled], last, last+filled)
	})
}
