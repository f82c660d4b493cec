// Package surface samples the surface of a mesh and gives what a network on the
// samples needs: their neighbours with log map and transport, second moments as
// input features, and the way back to the vertices.
//
// A network on the vertices of a mesh sees how it was triangulated. One on
// samples sees the surface: the points of a [Sampling] do not depend on the
// numbering of vertices, faces and corners, nor on rotation, translation and
// scale, up to rounding. They are chosen from candidates spread evenly over each
// face, the farthest first, from a start that the shape defines; nothing is
// decided by an index while any invariant can decide it.
//
//	sampling, err := surface.New(view, surface.DefaultOptions(), nil)
//	if err != nil {
//		return err
//	}
//	defer sampling.Free()
//
// The layers of a network (§3, §6 of the paper) need no faces: points with
// normals, neighbours, and frames E_p are enough. The frames here begin with some
// tangent; networks do not depend on it.
//
// # Degenerate input
//
// Where there are fewer distinct candidates than points wanted all are taken,
// and the levels shrink alike. Faces without area hold no candidates; a surface
// without any area is sampled by length, and one that is a single place by one
// point. Such a surface has no normals: what the mesh has in
// their place is used, and only its positions are free of the numbering.
// Vertices without a face take no part in the sampling of a mesh that has faces,
// and hear the nearest points, whatever their normals.
package surface
