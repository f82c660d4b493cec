package geometry

import (
	"math"

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
					setEdge(v, out, e, at(v.positions, p), frameAt(v.frames, p))
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
		centre, gauge := at(v.positions, p), frameAt(v.frames, p)
		for e := v.edges.offsets[p]; e < v.edges.offsets[p+1]; e++ {
			setEdge(v, out, e, centre, gauge)
		}
	}
}

// setEdge computes the geometry of edge e, of a vertex and its frame.
func setEdge[T float32 | float64](v *View, out EdgeGeometry[T], e int64, centre vec3, gauge frame) {
	q := int(v.edges.neighbors[e])
	d := at(v.positions, q).minus(centre)
	if out.CosAngle != nil {
		cos, sin := logMap(&gauge, d, centre.maxAbs())
		out.CosAngle[e], out.SinAngle[e] = T(cos), T(sin)
	}
	if out.CosTransport != nil {
		row := v.frames[9*q : 9*q+9 : 9*q+9]
		cos, sin := transport(&gauge, vec3{row[0], row[1], row[2]}, vec3{row[6], row[7], row[8]}, d)
		out.CosTransport[e], out.SinTransport[e] = T(cos), T(sin)
	}
	if out.Length != nil {
		out.Length[e] = T(d.length())
	}
}

// logMap is (cos θ, sin θ) of d in the gauge, or (0, 0) where d has no tangent
// projection (§3.3; no trigonometric function is needed). size bounds the
// coordinates that d is the difference of.
func logMap(gauge *frame, d vec3, size float64) (cos, sin float64) {
	x, y := gauge.e1.dot(d), gauge.e2.dot(d)
	tangent2 := x*x + y*y
	if !projects(tangent2, d.squared(), size) {
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
func transport(gauge *frame, e1, n, d vec3) (cos, sin float64) {
	s := n.plus(gauge.n)
	squared := s.squared()
	if squared <= opposite {
		return halfTurn(gauge, e1, d)
	}
	k := 2 * s.dot(e1) / squared
	return unit(e1.dot(gauge.e1)-k*s.dot(gauge.e1), e1.dot(gauge.e2)-k*s.dot(gauge.e2))
}

// halfTurn is the transport between opposite normals, as over a sharp fold: of
// all rotations that take one to the other, that by π about the line of the
// tangent plane normal to the edge, w. It depends on no gauge and is its own
// inverse. Without a direction of the edge there is no such line, and no
// feature but scalars passes: (0, 0).
func halfTurn(gauge *frame, e1, d vec3) (cos, sin float64) {
	cosTheta, sinTheta := logMap(gauge, d, 0)
	if cosTheta == 0 && sinTheta == 0 {
		return 0, 0
	}
	x, y := e1.dot(gauge.e1), e1.dot(gauge.e2)
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
	return v.writeEdges(write, func(gauge *frame, centre vec3, q int) float64 {
		cos, sin := logMap(gauge, at(v.positions, q).minus(centre), centre.maxAbs())
		return angle(cos, sin)
	})
}

// TransportAngles writes g_{q→p} of each directed edge, in radians in (−π, π].
func (v *View) TransportAngles(write RowWriter) error {
	return v.writeEdges(write, func(gauge *frame, centre vec3, q int) float64 {
		from := frameAt(v.frames, q)
		return angle(transport(gauge, from.e1, from.n, at(v.positions, q).minus(centre)))
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
func (v *View) writeEdges(write RowWriter, value func(gauge *frame, centre vec3, q int) float64) error {
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
			centre, gauge := at(v.positions, p), frameAt(v.frames, p)
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
