//go:build emantest

package simd

import (
	"os"
	"slices"
)

// In builds with the tag emantest, EMAN_TEST_ISA names the fastest kernels that
// Available lists, as on a processor that has no faster ones.
func init() {
	name := os.Getenv("EMAN_TEST_ISA")
	i := slices.IndexFunc(available, func(k Kernels32) bool { return k.Name() == name })
	if i < 0 && name != "" {
		panic("EMAN_TEST_ISA: " + name + " does not run here")
	}
	available = available[max(i, 0):]
}
