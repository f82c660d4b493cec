package main

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"syscall"
	"unsafe"

	"libeman/core"
	"libeman/geometry"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
)

// statusError is an error that the interface itself finds.
type statusError struct {
	status C.eman_status
	text   string
}

func (e *statusError) Error() string { return e.text }

func refuse(status C.eman_status, format string, arguments ...any) error {
	return &statusError{status, fmt.Sprintf(format, arguments...)}
}

func invalidArgument(format string, arguments ...any) error {
	return refuse(C.EMAN_E_INVALID_ARGUMENT, format, arguments...)
}

// guard runs the body of an exported function and turns what it returns, or a
// panic or memory fault in it, into a status and a text.
func guard(message *C.emango_error, body func() error) C.eman_status {
	return conclude(message, recovered(body))
}

// within is guard for the body of a function on an object, which it opens; a
// fault goes to the log of the object's context.
func within[T interface{ home() *environment }](pointer unsafe.Pointer, kind boxKind, message *C.emango_error, body func(object T) error) C.eman_status {
	var env *environment
	err := recovered(func() error {
		object, err := open[T](pointer, kind)
		if err != nil {
			return err
		}
		env = object.home()
		return body(object)
	})
	if env != nil {
		env.report(err)
	}
	return conclude(message, err)
}

func conclude(message *C.emango_error, err error) C.eman_status {
	if err == nil {
		return C.EMAN_OK
	}
	status, text := statusOf(err)
	setMessage(message, text)
	return status
}

func recovered(body func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer parallel.Recover(&err)
	return body()
}

// statusOf is the status and text of an error.
func statusOf(err error) (C.eman_status, string) {
	var own *statusError
	if errors.As(err, &own) {
		return own.status, err.Error()
	}
	var fault interface{ Addr() uintptr } // a runtime.Error after a memory fault
	if errors.As(err, &fault) {
		return C.EMAN_E_INVALID_ARGUMENT, fmt.Sprintf("memory at %#x, given by the caller, cannot be accessed", fault.Addr())
	}
	for _, known := range []struct {
		target error
		status C.eman_status
	}{
		{geometry.ErrInvalidMesh, C.EMAN_E_INVALID_MESH},
		{geometry.ErrInvalidArgument, C.EMAN_E_INVALID_ARGUMENT},
		{geometry.ErrTooLarge, C.EMAN_E_UNSUPPORTED},
		{core.ErrInvalidModel, C.EMAN_E_INVALID_MODEL},
		{core.ErrInvalidArgument, C.EMAN_E_INVALID_ARGUMENT},
		{core.ErrDiverged, C.EMAN_E_DIVERGED},
		{memory.ErrOutOfMemory, C.EMAN_E_NOMEM},
		{parallel.ErrCancelled, C.EMAN_E_CANCELLED},
	} {
		if errors.Is(err, known.target) {
			return known.status, err.Error()
		}
	}
	var file *fs.PathError
	var link *os.LinkError
	var number syscall.Errno
	if errors.As(err, &file) || errors.As(err, &link) || errors.As(err, &number) {
		return C.EMAN_E_IO, err.Error()
	}
	return C.EMAN_E_INTERNAL, err.Error()
}

// setMessage copies the text, cut to fit, into the thread's error buffer.
func setMessage(message *C.emango_error, text string) {
	buffer := unsafe.Slice((*byte)(unsafe.Pointer(&message.text[0])), len(message.text))
	n := copy(buffer[:len(buffer)-1], text)
	buffer[n] = 0
}
