//go:build !amd64 && !arm64

package simd

const (
	floatControlMask    = 0
	floatControlDefault = 0
)

func floatControl() uint64   { return 0 }
func setFloatControl(uint64) {}
