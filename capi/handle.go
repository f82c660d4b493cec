package main

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"runtime/cgo"
	"unsafe"
)

// box is what a public handle points to: C memory, so that no Go pointer
// leaves the library. The caller may hand in any address, so a box is read only
// under guard and its marks are checked before its handle is used.
type box struct {
	magic  uint64
	kind   uint64
	handle cgo.Handle
}

const boxMagic = 0x6e616d65_2d786f62 // "box-eman"

// kinds of boxes, by the Go type that they hold.
type boxKind uint64

const (
	kindContext boxKind = 0x10 + iota
	kindMesh
	kindReport
	kindModel
	kindTrainer
)

func (k boxKind) String() string {
	return map[boxKind]string{kindContext: "context", kindMesh: "mesh", kindReport: "report", kindModel: "model", kindTrainer: "trainer"}[k]
}

// newBox allocates a box that holds value.
func newBox(kind boxKind, value any) (unsafe.Pointer, error) {
	b := (*box)(C.malloc(C.size_t(unsafe.Sizeof(box{}))))
	if b == nil {
		return nil, refuse(C.EMAN_E_NOMEM, "out of memory: no room for a handle")
	}
	*b = box{magic: boxMagic, kind: uint64(kind), handle: cgo.NewHandle(value)}
	return unsafe.Pointer(b), nil
}

// open returns what a box holds.
func open[T any](pointer unsafe.Pointer, kind boxKind) (value T, err error) {
	b := (*box)(pointer)
	if b.magic != boxMagic {
		return value, invalidArgument("%v: the pointer is not a handle, or the object was freed", kind)
	}
	if b.kind != uint64(kind) {
		return value, invalidArgument("%v: the handle is that of a %v", kind, boxKind(b.kind))
	}
	return b.handle.Value().(T), nil
}

// closeBox frees a box and what it holds; anything but a handle of the kind is
// left alone.
func closeBox[T any](pointer unsafe.Pointer, kind boxKind, free func(T)) {
	_ = recovered(func() error {
		value, err := open[T](pointer, kind)
		if err != nil {
			return err
		}
		b := (*box)(pointer)
		b.magic = 0
		b.handle.Delete()
		C.free(pointer)
		free(value)
		return nil
	})
}

// publish stores a handle that was just made where the caller wants it. Should
// that memory not be writable, the object is freed before the fault goes on. It
// is stored as a number: a pointer would make Go look at what was there before.
func publish[V any](out unsafe.Pointer, handle unsafe.Pointer, kind boxKind, free func(V)) {
	stored := false
	defer func() {
		if !stored {
			closeBox(handle, kind, free)
		}
	}()
	*(*uintptr)(out) = uintptr(handle)
	stored = true
}
