package simd

const (
	// FPCR: bits 8-12 and 15 trap enables, 22-23 rounding, 24 flush-to-zero,
	// 25 default-NaN, 19 flush-to-zero of half precision.
	floatControlMask    = 0x03C8_9F00
	floatControlDefault = 0
)

// floatControl returns FPCR.
//
//go:noescape
func floatControl() uint64

// setFloatControl writes FPCR.
//
//go:noescape
func setFloatControl(value uint64)
