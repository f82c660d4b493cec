package simd

const (
	// MXCSR: bits 0-5 are sticky flags (left alone), 6 denormals-are-zero,
	// 7-12 exception masks, 13-14 rounding, 15 flush-to-zero.
	floatControlMask    = 0xFFC0
	floatControlDefault = 0x1F80
)

// floatControl returns MXCSR.
//
//go:noescape
func floatControl() uint64

// setFloatControl loads MXCSR.
//
//go:noescape
func setFloatControl(value uint64)
