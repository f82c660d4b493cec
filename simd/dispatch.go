package simd

//go:generate go run -C avo . -isa avx512 -o ../avx512_amd64.s -s ../avx512_amd64.go -t ../avx512_table_amd64.go
//go:generate go run -C avo . -isa avx2 -o ../avx2_amd64.s -s ../avx2_amd64.go -t ../avx2_table_amd64.go
//go:generate go run -C avo . -isa neon -o ../neon_arm64.s -s ../neon_arm64.go -t ../neon_table_arm64.go

import (
	"errors"
	"fmt"
)

// ErrUnsupported is what a request for kernels that this processor, operating
// system or build does not have matches (errors.Is).
var ErrUnsupported = errors.New("unsupported instruction set")

// Available lists the kernels that run here, the fastest first. The last is
// Generic.
func Available() []Kernels32 { return available }

// available is found once, at the start.
var available = append(detect(), Kernels32(Generic[float32]{}))

// Best is the fastest kernels that run here.
func Best() Kernels32 { return available[0] }

// ByName is the kernels of an instruction set: "generic", "avx2", "avx512" or
// "neon".
func ByName(name string) (Kernels32, error) {
	for _, k := range available {
		if k.Name() == name {
			return k, nil
		}
	}
	return nil, fmt.Errorf("%w: %q", ErrUnsupported, name)
}
