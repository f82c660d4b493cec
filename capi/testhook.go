//go:build emantest

package main

// #cgo CFLAGS: -DEMAN_TEST_HOOKS
// #include "shim.h"
import "C"

import (
	"unsafe"

	"libeman/geometry/parallel"
)

// emango_test_fault fails on purpose: in the export itself (0), in a worker of
// a loop (1), or by reading an address that is not there (2). Only builds with
// the tag emantest have it.
//
//export emango_test_fault
func emango_test_fault(context *C.eman_context, kind C.int32_t, message *C.emango_error) C.eman_status {
	return within(unsafe.Pointer(context), kindContext, message, func(env *environment) error {
		return testFault(env.Threads, int(kind))
	})
}

func testFault(pool *parallel.Pool, kind int) error {
	var none []int
	switch kind {
	case 0:
		none[kind]++
	case 1:
		return pool.For(nil, 64, func(worker, block int) error {
			if block == 40 {
				none[block]++
			}
			return nil
		})
	case 2:
		*(*byte)(unsafe.Add(unsafe.Pointer(nil), 1<<40)) = 1
	}
	return nil
}
