package main

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// box is what a public handle points to: C memory, so that no Go pointer
// leaves the library. The caller may hand in any address, so a box is read only
// under guard and its marks are checked before its place is used.
type box struct {
	magic uint64
	kind  uint64
	place uint64 // in objects
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

// table keeps the objects of the handles. Reading takes no lock and touches two
// cache lines, as every call of the interface reads one.
type table struct {
	places atomic.Pointer[[]atomic.Pointer[any]]

	mutex sync.Mutex // of what writes
	free  []uint64   // places without an object
}

var objects table

// put returns the place of a new object.
func (t *table) put(object any) (place uint64) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if len(t.free) == 0 {
		t.grow()
	}
	last := len(t.free) - 1
	place, t.free = t.free[last], t.free[:last]
	(*t.places.Load())[place].Store(&object)
	return place
}

// grow doubles the places. Who reads the old ones meanwhile finds there every
// object whose handle exists.
func (t *table) grow() {
	var old []atomic.Pointer[any]
	if places := t.places.Load(); places != nil {
		old = *places
	}
	places := make([]atomic.Pointer[any], max(64, 2*len(old)))
	for i := range old {
		places[i].Store(old[i].Load())
	}
	for i := len(places) - 1; i >= len(old); i-- {
		t.free = append(t.free, uint64(i))
	}
	t.places.Store(&places)
}

// get returns the object at a place that put gave.
func (t *table) get(place uint64) any {
	return *(*t.places.Load())[place].Load()
}

// remove makes a place free for another object.
func (t *table) remove(place uint64) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	(*t.places.Load())[place].Store(nil)
	t.free = append(t.free, place)
}

// newBox allocates a box that holds value.
func newBox(kind boxKind, value any) (unsafe.Pointer, error) {
	b := (*box)(C.malloc(C.size_t(unsafe.Sizeof(box{}))))
	if b == nil {
		return nil, refuse(C.EMAN_E_NOMEM, "out of memory: no room for a handle")
	}
	*b = box{magic: boxMagic, kind: uint64(kind), place: objects.put(value)}
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
	return objects.get(b.place).(T), nil
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
		objects.remove(b.place)
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
