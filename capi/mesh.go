package main

// #include "shim.h"
import "C"

import (
	"unsafe"

	"libeman/geometry"
	"libeman/geometry/memory"
)

// meshObject is a mesh and the context that it was made with.
type meshObject struct {
	*geometry.Mesh
	environment *environment
}

func (m meshObject) home() *environment { return m.environment }

func (m meshObject) free() {
	m.Close()
	m.environment.release()
}

// counts are V and F, which never change.
func (m meshObject) counts() (vertices, faces int) {
	_ = m.Read(func(v *geometry.View) error {
		vertices, faces = v.VertexCount(), v.FaceCount()
		return nil
	})
	return vertices, faces
}

// onMesh opens a mesh and runs body, reporting faults to its context's log.
func onMesh(mesh *C.eman_mesh, message *C.emango_error, body func(m meshObject) error) C.eman_status {
	return within(unsafe.Pointer(mesh), kindMesh, message, body)
}

// onView is onMesh for what reads the mesh at rest.
func onView(mesh *C.eman_mesh, message *C.emango_error, body func(v *geometry.View) error) C.eman_status {
	return onMesh(mesh, message, func(m meshObject) error { return m.Read(body) })
}

// handOut puts a new mesh into a handle of the caller's.
func handOut(mesh *geometry.Mesh, env *environment, out **C.eman_mesh) error {
	handle, err := newBox(kindMesh, meshObject{mesh, env})
	if err != nil {
		mesh.Close()
		return err
	}
	env.retain()
	publish(unsafe.Pointer(out), handle, kindMesh, meshObject.free)
	return nil
}

//export emango_mesh_create
func emango_mesh_create(context *C.eman_context, positions, faces *C.eman_view, options *C.eman_mesh_options, control *C.eman_control, mesh **C.eman_mesh, message *C.emango_error) C.eman_status {
	return within(unsafe.Pointer(context), kindContext, message, func(env *environment) error {
		return createMesh(env, positions, faces, options, control, mesh)
	})
}

func createMesh(env *environment, positions, faces *C.eman_view, options *C.eman_mesh_options, control *C.eman_control, mesh **C.eman_mesh) error {
	watch, err := newControl(control)
	if err != nil {
		return err
	}
	p, err := inputArray("positions", positions, reals, -1, 3)
	if err != nil {
		return err
	}
	f, err := inputArray("faces", faces, integers, -1, 3)
	if err != nil {
		return err
	}
	in := geometry.Input{VertexCount: p.rows, FaceCount: f.rows, Positions: realReader(p), Faces: integerReader(f)}
	o, err := newMeshOptions(options, &in)
	if err != nil {
		return err
	}
	m, err := geometry.New(env.Resources, in, o, watch)
	if err != nil {
		return err
	}
	return handOut(m, env, mesh)
}

// newMeshOptions reads the options, and the frames into the input.
func newMeshOptions(options *C.eman_mesh_options, in *geometry.Input) (geometry.Options, error) {
	var o meshOptions
	if options == nil {
		return geometry.Options{}, nil
	}
	if err := readStruct("options", unsafe.Pointer(options), &o); err != nil {
		return geometry.Options{}, err
	}
	if o.degenerate != C.EMAN_DEGENERATE_ERROR && o.degenerate != C.EMAN_DEGENERATE_DROP {
		return geometry.Options{}, invalidArgument("options.degenerate is %d, no known choice", o.degenerate)
	}
	if o.frames != 0 {
		pointer, err := address("options.frames", o.frames)
		if err != nil {
			return geometry.Options{}, err
		}
		frames, err := framesReader("options.frames", (*C.eman_view)(pointer), in.VertexCount)
		if err != nil {
			return geometry.Options{}, err
		}
		in.Frames = frames
	}
	return geometry.Options{
		Normals:        geometry.Normals(o.normals),
		Gauge:          geometry.Gauge(o.gauge),
		Seed:           o.seed,
		DropDegenerate: o.degenerate == C.EMAN_DEGENERATE_DROP,
	}, nil
}

func framesReader(name string, view *C.eman_view, vertices int64) (geometry.PositionReader, error) {
	a, err := inputArray(name, view, reals, vertices, 9)
	if err != nil {
		return nil, err
	}
	return realReader(a), nil
}

//export emango_mesh_free
func emango_mesh_free(mesh *C.eman_mesh) {
	closeBox(unsafe.Pointer(mesh), kindMesh, meshObject.free)
}

//export emango_mesh_update
func emango_mesh_update(mesh *C.eman_mesh, positions, frames *C.eman_view, control *C.eman_control, message *C.emango_error) C.eman_status {
	return onMesh(mesh, message, func(m meshObject) error {
		count, _ := m.counts()
		vertices := int64(count)
		p, err := inputArray("positions", positions, reals, vertices, 3)
		if err != nil {
			return err
		}
		var newFrames geometry.PositionReader
		if frames != nil {
			if newFrames, err = framesReader("frames", frames, vertices); err != nil {
				return err
			}
		}
		watch, err := newControl(control)
		if err != nil {
			return err
		}
		return m.Update(realReader(p), newFrames, watch)
	})
}

//export emango_mesh_counts
func emango_mesh_counts(mesh *C.eman_mesh, vertices, faces, edges *C.int64_t, message *C.emango_error) C.eman_status {
	return onView(mesh, message, func(v *geometry.View) error {
		*vertices = C.int64_t(v.VertexCount())
		*faces = C.int64_t(v.FaceCount())
		*edges = C.int64_t(v.EdgeCount())
		return nil
	})
}

// writeReals opens a real output of rows×columns and lets compute fill it.
func writeReals(name string, out *C.eman_mutable_view, rows, columns int, compute func(geometry.RowWriter) error) error {
	a, err := outputArray(name, out, reals, int64(rows), int64(columns))
	if err != nil || rows == 0 {
		return err
	}
	return compute(realWriter(a))
}

// writeIntegers copies values to an integer output with the given columns.
func writeIntegers[T int32 | int64](name string, out *C.eman_mutable_view, columns int, values []T) error {
	a, err := outputArray(name, out, integers, int64(len(values)/columns), int64(columns))
	if err != nil || len(values) == 0 {
		return err
	}
	storeIntegers(a, values)
	return nil
}

//export emango_mesh_positions
func emango_mesh_positions(mesh *C.eman_mesh, out *C.eman_mutable_view, message *C.emango_error) C.eman_status {
	return onView(mesh, message, func(v *geometry.View) error {
		return writeReals("positions", out, v.VertexCount(), 3, v.Positions)
	})
}

//export emango_mesh_faces
func emango_mesh_faces(mesh *C.eman_mesh, out *C.eman_mutable_view, message *C.emango_error) C.eman_status {
	return onView(mesh, message, func(v *geometry.View) error {
		return writeIntegers("faces", out, 3, v.Faces())
	})
}

//export emango_mesh_vertex_normals
func emango_mesh_vertex_normals(mesh *C.eman_mesh, out *C.eman_mutable_view, message *C.emango_error) C.eman_status {
	return onView(mesh, message, func(v *geometry.View) error {
		return writeReals("normals", out, v.VertexCount(), 3, v.VertexNormals)
	})
}

//export emango_mesh_frames
func emango_mesh_frames(mesh *C.eman_mesh, out *C.eman_mutable_view, message *C.emango_error) C.eman_status {
	return onView(mesh, message, func(v *geometry.View) error {
		return writeReals("frames", out, v.VertexCount(), 9, v.Frames)
	})
}

//export emango_mesh_neighbors
func emango_mesh_neighbors(mesh *C.eman_mesh, offsets, indices *C.eman_mutable_view, message *C.emango_error) C.eman_status {
	return onView(mesh, message, func(v *geometry.View) error {
		return writeNeighbors(offsets, indices, v.Offsets(), v.Neighbors())
	})
}

// writeNeighbors copies a graph to the caller, or none of it.
func writeNeighbors(offsets, indices *C.eman_mutable_view, ends []int64, neighbors []int32) error {
	if _, err := outputArray("indices", indices, integers, int64(len(neighbors)), 1); err != nil {
		return err
	}
	if err := writeIntegers("offsets", offsets, 1, ends); err != nil {
		return err
	}
	return writeIntegers("indices", indices, 1, neighbors)
}

//export emango_mesh_reverse_edges
func emango_mesh_reverse_edges(mesh *C.eman_mesh, out *C.eman_mutable_view, message *C.emango_error) C.eman_status {
	return onView(mesh, message, func(v *geometry.View) error {
		return writeIntegers("edges", out, 1, v.ReverseEdges())
	})
}

//export emango_mesh_edge_angles
func emango_mesh_edge_angles(mesh *C.eman_mesh, out *C.eman_mutable_view, message *C.emango_error) C.eman_status {
	return onView(mesh, message, func(v *geometry.View) error {
		return writeReals("angles", out, v.EdgeCount(), 1, v.EdgeAngles)
	})
}

//export emango_mesh_transport_angles
func emango_mesh_transport_angles(mesh *C.eman_mesh, out *C.eman_mutable_view, message *C.emango_error) C.eman_status {
	return onView(mesh, message, func(v *geometry.View) error {
		return writeReals("angles", out, v.EdgeCount(), 1, v.TransportAngles)
	})
}

//export emango_mesh_reltan
func emango_mesh_reltan(mesh *C.eman_mesh, powers *C.double, count C.int32_t, options *C.eman_reltan_options, control *C.eman_control, out *C.eman_mutable_view, message *C.emango_error) C.eman_status {
	return onView(mesh, message, func(v *geometry.View) error {
		if count < 1 || count > geometry.MaxPowers {
			return invalidArgument("count is %d, not in [1, %d]", count, geometry.MaxPowers)
		}
		o := C.eman_reltan_options{degree_power: 1.5, constant: 1}
		if options != nil {
			if err := readStruct("options", unsafe.Pointer(options), &o); err != nil {
				return err
			}
		}
		watch, err := newControl(control)
		if err != nil {
			return err
		}
		wanted := geometry.RelTanOptions{
			Powers:      readNumbers(powers, int(count)),
			Space:       geometry.Space(o.space),
			DegreePower: float64(o.degree_power),
			Constant:    float64(o.constant),
		}
		if err := wanted.Check(); err != nil {
			return err
		}
		return writeReals("features", out, v.VertexCount(), wanted.RowWidth(), func(write geometry.RowWriter) error {
			return v.RelTan(wanted, write, watch)
		})
	})
}

//export emango_mesh_get_features
func emango_mesh_get_features(mesh *C.eman_mesh, out *C.eman_mutable_view, message *C.emango_error) C.eman_status {
	return onView(mesh, message, func(v *geometry.View) error {
		return writeReals("features", out, v.VertexCount(), 3, v.GET)
	})
}

//export emango_mesh_components
func emango_mesh_components(mesh *C.eman_mesh, out *C.eman_mutable_view, count *C.int64_t, message *C.emango_error) C.eman_status {
	return onView(mesh, message, func(v *geometry.View) error {
		if _, err := outputArray("labels", out, integers, int64(v.VertexCount()), 1); err != nil {
			return err
		}
		scratch := v.Resources().Memory.NewArena("scratch")
		defer scratch.Free()
		labels, err := memory.Make[int32](scratch, int64(v.VertexCount()))
		if err != nil {
			return err
		}
		components := v.Components(labels)
		*count = C.int64_t(components)
		return writeIntegers("labels", out, 1, labels)
	})
}
