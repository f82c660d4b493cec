package main

// #include "shim.h"
import "C"

import (
	"sync/atomic"
	"unsafe"

	"libeman/geometry/parallel"
)

// Option structs that hold pointers, with the pointers as numbers: the caller's
// may be anything, and the Go runtime ends the process when it meets a small
// number in a pointer variable.
type (
	contextOptions struct {
		structSize               uint32
		threads                  int32
		memoryLimit              int64
		instructionSet, reserved int32
		log, logUser             uintptr
	}
	controlOptions struct {
		structSize             uint32
		reserved               int32
		cancel, progress, user uintptr
	}
	meshOptions struct {
		structSize                 uint32
		normals, gauge, degenerate int32
		seed                       uint64
		frames                     uintptr
	}
)

// The sizes agree with the header, or this does not compile.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(contextOptions{})-C.sizeof_eman_context_options]
	_ = [1]struct{}{}[unsafe.Sizeof(controlOptions{})-C.sizeof_eman_control]
	_ = [1]struct{}{}[unsafe.Sizeof(meshOptions{})-C.sizeof_eman_mesh_options]
	_ = [1]struct{}{}[unsafe.Sizeof(viewLayout{})-C.sizeof_eman_view]
)

// address checks a pointer that the caller stored in a struct.
func address(name string, number uintptr) (unsafe.Pointer, error) {
	if number < firstAddress {
		return nil, invalidArgument("%s: %#x is not a valid address", name, number)
	}
	return unsafe.Add(unsafe.Pointer(nil), number), nil
}

// maxStructSize bounds struct_size: more is not a struct of any version.
const maxStructSize = 4096

// readStruct copies the caller's options struct, of possibly another version's
// size, into *known, whose fields keep their defaults where the caller's struct
// is shorter. A longer one may hold only zeros beyond.
func readStruct[T any](name string, pointer unsafe.Pointer, known *T) error {
	size, err := structSize(name, (*T)(pointer))
	if err != nil {
		return err
	}
	given := unsafe.Slice((*byte)(pointer), size)
	n := copy(unsafe.Slice((*byte)(unsafe.Pointer(known)), unsafe.Sizeof(*known)), given)
	for i, b := range given[n:] {
		if b != 0 {
			return refuse(C.EMAN_E_VERSION, "%s: byte %d is set, beyond the %d bytes that this version of the library knows", name, n+i, n)
		}
	}
	return nil
}

// writeStruct copies *known into the caller's struct, as far as that reaches,
// and zeroes what is beyond. The size field stays the caller's.
func writeStruct[T any](name string, pointer, known *T) error {
	size, err := structSize(name, pointer)
	if err != nil {
		return err
	}
	fillStruct(unsafe.Pointer(pointer), size, unsafe.Pointer(known), uint32(unsafe.Sizeof(*known)))
	return nil
}

// fillStruct writes a struct of size bytes: its size, the known content, zeros.
func fillStruct(pointer unsafe.Pointer, size uint32, known unsafe.Pointer, knownSize uint32) {
	to := unsafe.Slice((*byte)(pointer), size)
	clear(to[copy(to, unsafe.Slice((*byte)(known), knownSize)):])
	*(*uint32)(pointer) = size
}

// All structs with defaults have the alignment of contextOptions: a pointer's.
//
//export emango_init_struct
func emango_init_struct(pointer unsafe.Pointer, size C.uint32_t, defaults unsafe.Pointer, knownSize C.uint32_t, message *C.emango_error) C.eman_status {
	return guard(message, func() error {
		if size < 4 || size > maxStructSize || uintptr(size)%unsafe.Alignof(contextOptions{}) != 0 {
			return invalidArgument("struct_size is %d: it must be the size of the struct", size)
		}
		fillStruct(pointer, uint32(size), defaults, uint32(knownSize))
		return nil
	})
}

// structSize reads the size of the caller's struct. That of any version is a
// multiple of its alignment, so no field is cut in two.
func structSize[T any](name string, pointer *T) (uint32, error) {
	size := *(*uint32)(unsafe.Pointer(pointer))
	if size < 4 || size > maxStructSize || uintptr(size)%unsafe.Alignof(*pointer) != 0 {
		return 0, invalidArgument("%s.struct_size is %d: it must be the size of the struct", name, size)
	}
	return size, nil
}

func checkReserved(name string, value int32) error {
	if value != 0 {
		return invalidArgument("%s.reserved is %d, not 0", name, value)
	}
	return nil
}

// newControl reads a control; nil means none.
func newControl(pointer *C.eman_control) (*parallel.Control, error) {
	if pointer == nil {
		return nil, nil
	}
	var c controlOptions
	if err := readStruct("control", unsafe.Pointer(pointer), &c); err != nil {
		return nil, err
	}
	if err := checkReserved("control", c.reserved); err != nil {
		return nil, err
	}
	control := &parallel.Control{}
	if c.cancel != 0 {
		word, err := address("control.cancel", c.cancel)
		if err != nil {
			return nil, err
		}
		control.Cancelled = func() bool { return atomic.LoadInt32((*int32)(word)) != 0 }
	}
	if c.progress != 0 {
		if _, err := address("control.progress", c.progress); err != nil {
			return nil, err
		}
		control.Progress = func(fraction float64) bool {
			return C.emango_call_progress(C.uintptr_t(c.progress), C.uintptr_t(c.user), C.double(fraction)) == 0
		}
	}
	return control, nil
}
