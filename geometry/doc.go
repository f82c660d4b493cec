// Package geometry turns a triangle mesh into what equivariant networks need:
// neighbours, normals, gauges, the angles of the log map, the parallel
// transport between tangent planes, and the input features RelTan, GET and
// XYZ. Section numbers are those of "Equivariant Mesh Attention Networks"
// (Basu et al., TMLR 2022).
//
// A [Mesh] is built once from positions and faces; [Mesh.Update] moves its
// vertices and keeps the topology. All arithmetic is in float64 and every
// result is the same, to the bit, for any number of threads.
//
//	mesh, err := geometry.New(resources, geometry.FromSlices(positions, faces), geometry.Options{}, nil)
//	if err != nil {
//		return err // an *InvalidMeshError names the face or vertex
//	}
//	defer mesh.Close()
//	err = mesh.Read(func(v *geometry.View) error {
//		features := make([]float64, 4*v.VertexCount())
//		return v.RelTan(geometry.RelTanOf(0.5, 0.7), geometry.WriteSlice(features, 4), nil)
//	})
//
// # Degenerate input
//
// What a mesh may contain, and what becomes of it:
//
//   - An index out of range and a coordinate that is NaN, infinite or beyond
//     1e300 are refused.
//   - A face that names a vertex twice is refused, or dropped and counted
//     ([Options].DropDegenerate).
//   - An isolated vertex has the frame of a coordinate axis, and RelTan and GET
//     features of zero.
//   - Two vertices at one place (or nearer than 2⁻⁵⁰⁰ of the largest coordinate)
//     are no neighbours: an edge of zero length has no direction. An [Mesh.Update]
//     that parts them makes them neighbours again.
//   - A face of zero area has no normal and adds nothing to its vertices'.
//   - A vertex whose normal vanishes (all its faces have zero area, or cancel)
//     takes the cross product of the first two independent directions to its
//     neighbours, or, if there are none, some perpendicular of its ring.
//   - A neighbour straight above or below along the normal has no angle:
//     e^{ikθ} = 0 for k ≥ 1, which keeps every layer exactly equivariant.
//   - Between opposite normals the minimal rotation is not unique; the transport
//     is then the half-turn about the tangent line normal to the edge, which
//     needs no gauge either.
//   - Boundaries, non-manifold edges and vertices, inconsistent orientation,
//     several components and duplicate faces are accepted as they are.
//
// [Mesh.Examine] finds and names all of these.
package geometry
