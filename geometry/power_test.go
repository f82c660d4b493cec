package geometry

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestLog2AndExp2(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	worstLog, worstExp := 0.0, 0.0
	for range 200000 {
		x := math.Ldexp(1+random.Float64(), random.IntN(600)-300)
		worstLog = max(worstLog, math.Abs(log2(x)-math.Log2(x))/max(1, math.Abs(math.Log2(x))))
		y := random.Float64()*80 - 40
		worstExp = max(worstExp, math.Abs(exp2(y)/math.Exp2(y)-1))
	}
	t.Logf("largest error: log2 %.2g, exp2 %.2g relative", worstLog, worstExp)
	if worstLog > 5e-16 || worstExp > 5e-16 {
		t.Error("more than two units in the last place")
	}
	for _, x := range []float64{1, 2, 0.5, math.Nextafter(2, 0), math.Nextafter(1, 2), 0x1p-1022, math.MaxFloat64} {
		if got, want := log2(x), math.Log2(x); math.Abs(got-want) > 4e-16*max(1, math.Abs(want)) {
			t.Errorf("log2(%g) = %.17g, want %.17g", x, got, want)
		}
	}
	for _, y := range []float64{0, 1, -1, 999.9, -999.9, 1023, -1060, 2000, -2000} {
		if got, want := exp2(y), math.Exp2(y); got != want && math.Abs(got/want-1) > 4e-16 {
			t.Errorf("exp2(%g) = %g, want %g", y, got, want)
		}
	}
}
