package main

// #include "shim.h"
import "C"

import (
	"unsafe"

	"libeman/geometry"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
)

// derive hands out a mesh made from another one, in the same context.
func derive(mesh *C.eman_mesh, control *C.eman_control, out **C.eman_mesh, message *C.emango_error, make func(m meshObject, watch *parallel.Control) (*geometry.Mesh, error)) C.eman_status {
	return onMesh(mesh, message, func(m meshObject) error {
		watch, err := newControl(control)
		if err != nil {
			return err
		}
		derived, err := make(m, watch)
		if err != nil {
			return err
		}
		return handOut(derived, m.environment, out)
	})
}

//export emango_mesh_change_gauge
func emango_mesh_change_gauge(mesh *C.eman_mesh, angles *C.eman_view, control *C.eman_control, changed **C.eman_mesh, message *C.emango_error) C.eman_status {
	return derive(mesh, control, changed, message, func(m meshObject, watch *parallel.Control) (*geometry.Mesh, error) {
		vertices, _ := m.counts()
		a, err := inputArray("angles", angles, reals, int64(vertices), 1)
		if err != nil {
			return nil, err
		}
		scratch := m.environment.Memory.NewArena("scratch")
		defer scratch.Free()
		values, err := memory.Make[float64](scratch, a.rows)
		if err != nil {
			return nil, err
		}
		realReader(a)(values, 0, len(values))
		return m.ChangeGauge(values, watch)
	})
}

//export emango_mesh_transform
func emango_mesh_transform(mesh *C.eman_mesh, rotation, translation *C.double, scale C.double, control *C.eman_control, moved **C.eman_mesh, message *C.emango_error) C.eman_status {
	return derive(mesh, control, moved, message, func(m meshObject, watch *parallel.Control) (*geometry.Mesh, error) {
		return m.Transform(geometry.Similarity{
			Rotation:    [9]float64(readNumbers(rotation, 9)),
			Translation: [3]float64(readNumbers(translation, 3)),
			Scale:       float64(scale),
		}, watch)
	})
}

//export emango_mesh_permute
func emango_mesh_permute(mesh *C.eman_mesh, vertexOrder, faceOrder, cornerShift *C.eman_view, control *C.eman_control, permuted **C.eman_mesh, message *C.emango_error) C.eman_status {
	return derive(mesh, control, permuted, message, func(m meshObject, watch *parallel.Control) (*geometry.Mesh, error) {
		vertices, faces := m.counts()
		scratch := m.environment.Memory.NewArena("scratch")
		defer scratch.Free()
		var p geometry.Permutation
		for _, list := range []struct {
			name   string
			view   *C.eman_view
			count  int
			values *[]int64
		}{
			{"vertex_order", vertexOrder, vertices, &p.VertexOrder},
			{"face_order", faceOrder, faces, &p.FaceOrder},
			{"corner_shift", cornerShift, faces, &p.CornerShift},
		} {
			if list.view == nil {
				continue
			}
			values, err := loadIntegers(scratch, list.name, list.view, list.count)
			if err != nil {
				return nil, err
			}
			*list.values = values
		}
		return m.Permute(p, watch)
	})
}

//export emango_random_angles
func emango_random_angles(seed C.uint64_t, angles *C.eman_mutable_view, message *C.emango_error) C.eman_status {
	return guard(message, func() error {
		a, err := outputArray("angles", angles, reals, 0, 1)
		if err != nil || a.rows == 0 {
			return err
		}
		if a.columns != 1 {
			return invalidArgument("angles has %d columns, 1 is needed", a.columns)
		}
		write := realWriter(a)
		var piece [1024]float64
		for begin := 0; begin < int(a.rows); begin += len(piece) {
			end := min(begin+len(piece), int(a.rows))
			geometry.RandomAngles(uint64(seed), begin, piece[:end-begin])
			if err := write(piece[:end-begin], begin, end); err != nil {
				return err
			}
		}
		return nil
	})
}

//export emango_random_rotation
func emango_random_rotation(seed C.uint64_t, rotation *C.double, message *C.emango_error) C.eman_status {
	return guard(message, func() error {
		r := geometry.RandomRotation(uint64(seed))
		copy(unsafe.Slice((*float64)(unsafe.Pointer(rotation)), 9), r[:])
		return nil
	})
}

//export emango_random_permutation
func emango_random_permutation(seed C.uint64_t, order *C.eman_mutable_view, message *C.emango_error) C.eman_status {
	return guard(message, func() error {
		a, err := outputArray("order", order, integers, 0, 1)
		if err != nil || a.rows == 0 {
			return err
		}
		if a.columns != 1 {
			return invalidArgument("order has %d columns, 1 is needed", a.columns)
		}
		arena := memory.NewBudget(0, mallocSource{}).NewArena("scratch")
		defer arena.Free()
		values, err := memory.Make[int64](arena, a.rows)
		if err != nil {
			return err
		}
		geometry.RandomPermutation(uint64(seed), values)
		storeIntegers(a, values)
		return nil
	})
}
