package simd

// The floating-point environment of the x86 MXCSR and arm64 FPCR registers
// decides rounding and whether denormal numbers are flushed to zero. A host
// may have changed it (renderers are advised to), and a new thread inherits
// its creator's. Every thread that computes for the library therefore runs in
// the default environment: round to nearest, denormals kept, exceptions masked.
//
// The register belongs to the operating-system thread: a goroutine that calls
// EnterDefaultFloatEnvironment must be locked to its thread until it calls
// LeaveFloatEnvironment with the value it got.

// EnterDefaultFloatEnvironment sets the default floating-point environment on
// the calling thread and returns the previous one.
func EnterDefaultFloatEnvironment() (previous uint64) {
	previous = floatControl()
	if previous&floatControlMask != floatControlDefault {
		setFloatControl(previous&^floatControlMask | floatControlDefault)
	}
	return previous
}

// LeaveFloatEnvironment restores what EnterDefaultFloatEnvironment returned.
func LeaveFloatEnvironment(previous uint64) {
	if previous&floatControlMask != floatControlDefault {
		setFloatControl(previous)
	}
}
