package simd

import "github.com/klauspost/cpuid/v2"

// detect lists the sets that the processor has and whose registers the
// operating system saves.
func detect() (found []Kernels32) {
	cpu := &cpuid.CPU
	fused := cpu.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.BMI2)
	if fused && cpu.Supports(cpuid.AVX512F, cpuid.AVX512DQ, cpuid.AVX512BW, cpuid.AVX512VL) {
		found = append(found, avx512)
	}
	if fused {
		found = append(found, avx2)
	}
	return found
}
