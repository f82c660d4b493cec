// Package simd holds the arithmetic kernels: the generic Go versions, which
// are the specification, and the versions in assembly that are tested against
// them. It imports nothing else of this module and starts no goroutine.
package simd
