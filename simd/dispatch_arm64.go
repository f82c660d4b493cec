package simd

import "github.com/klauspost/cpuid/v2"

// detect lists NEON, which every arm64 processor that Go runs on has.
func detect() (found []Kernels32) {
	if cpuid.CPU.Supports(cpuid.ASIMD) {
		found = append(found, neon)
	}
	return found
}
