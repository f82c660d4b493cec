package simd

import (
	"math"
	"runtime"
	"testing"
)

// denormalSurvives multiplies two numbers whose product is denormal.
//
//go:noinline
func denormalSurvives(a, b float64) bool { return a*b != 0 }

func TestFloatEnvironment(t *testing.T) {
	if floatControlMask == 0 {
		t.Logf("%s has no floating-point control register known here; the calls do nothing", runtime.GOARCH)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	original := floatControl()
	defer setFloatControl(original)

	flush := map[string]uint64{"amd64": 0x8040, "arm64": 1 << 24}[runtime.GOARCH]
	setFloatControl(original | flush)
	if flush != 0 && denormalSurvives(math.SmallestNonzeroFloat64*4, 0.5) {
		t.Fatal("flush-to-zero did not take effect, so the test proves nothing")
	}
	host := EnterDefaultFloatEnvironment()
	if !denormalSurvives(math.SmallestNonzeroFloat64*4, 0.5) {
		t.Error("denormal numbers are flushed in the default environment")
	}
	LeaveFloatEnvironment(host)
	if got := floatControl() & floatControlMask; got != (original|flush)&floatControlMask {
		t.Errorf("environment after leaving: %#x, want %#x", got, (original|flush)&floatControlMask)
	}
}
