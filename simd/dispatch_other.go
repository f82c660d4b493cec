//go:build !amd64 && !arm64

package simd

// detect finds nothing: there is no assembly for this processor.
func detect() []Kernels32 { return nil }
