// Command capi is the C interface of libeman, built with
// -buildmode=c-shared. The public functions are C (shim.c); this package holds
// their Go halves, which read and write the caller's memory and call the other
// packages.
//
// The caller's pointers are kept as numbers (uintptr or C pointers), never
// stored in Go memory, and dereferenced only in functions guarded by [guard]:
// a fault there is a status, not the end of the host.
package main

// #cgo CFLAGS: -std=c11 -I${SRCDIR}/../include -Wall -Wextra -Wno-unused-parameter -fvisibility=default
// #include "shim.h"
import "C"

func main() {} // required of a c-shared package, never called
