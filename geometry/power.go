package geometry

import (
	"math"
	"runtime"

	"libeman/simd"
)

// log2 and exp2 for the powers of RelTan. They are exact to a few units in the
// last place of the result's natural scale (absolute for log2, relative for
// exp2).

const (
	tableBits = 7
	tableSize = 1 << tableBits
)

type log2Entry struct{ inverse, log2 float64 }

var (
	log2Table [tableSize]log2Entry // for the centre c of each 1/128 of [1, 2): 1/c, log2 c
	exp2Table [tableSize]float64   // 2^{i/128}
)

// The library is loaded on a thread of the host, whose rounding mode must not
// decide the tables for ever.
func init() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer simd.LeaveFloatEnvironment(simd.EnterDefaultFloatEnvironment())
	for i := range tableSize {
		centre := 1 + (float64(i)+0.5)/tableSize
		inverse := 1 / centre
		// log2 of the rounded inverse, so that the pair is consistent.
		log2Table[i] = log2Entry{inverse, -math.Log2(inverse)}
		exp2Table[i] = math.Exp2(float64(i) / tableSize)
	}
}

// Taylor coefficients of log2(1+z) and of 2^x.
const (
	log2c1 = 1 / math.Ln2
	log2c2 = -1 / (2 * math.Ln2)
	log2c3 = 1 / (3 * math.Ln2)
	log2c4 = -1 / (4 * math.Ln2)
	log2c5 = 1 / (5 * math.Ln2)
	log2c6 = -1 / (6 * math.Ln2)

	exp2c1 = math.Ln2
	exp2c2 = math.Ln2 * math.Ln2 / 2
	exp2c3 = math.Ln2 * math.Ln2 * math.Ln2 / 6
	exp2c4 = math.Ln2 * math.Ln2 * math.Ln2 * math.Ln2 / 24
	exp2c5 = math.Ln2 * math.Ln2 * math.Ln2 * math.Ln2 * math.Ln2 / 120
)

// log2 of a positive normal number.
// With x = 2^e·m and c the centre of m's table interval, z = m/c − 1 is below
// 2⁻⁸ and log2 x = e + log2 c + log2(1+z).
func log2(x float64) float64 {
	bits := math.Float64bits(x)
	entry := &log2Table[bits>>(52-tableBits)%tableSize]
	m := math.Float64frombits(bits&(1<<52-1) | 1023<<52)
	z := m*entry.inverse - 1
	tail := z * (log2c1 + z*(log2c2+z*(log2c3+z*(log2c4+z*(log2c5+z*log2c6)))))
	return float64(exponentOf(x)) + (entry.log2 + tail)
}

// exponentOf is the e of x = 2^e·m, 1 ≤ m < 2, for positive normal x.
func exponentOf(x float64) int { return int(math.Float64bits(x)>>52) - 1023 }

// powerOfTwo is 2^e for −1022 ≤ e ≤ 1023.
func powerOfTwo(e int) float64 { return math.Float64frombits(uint64(e+1023) << 52) }

// exp2 is 2^y; beyond the range of float64 it is 0 or infinite.
func exp2(y float64) float64 {
	if !(y > -1000 && y < 1000) {
		return math.Exp2(y)
	}
	const shift = 0x1.8p52 // adding it rounds to an integer in the low bits
	rounded := y*tableSize + shift
	index := math.Float64bits(rounded)
	x := y - (rounded-shift)*(1.0/tableSize)
	scale := exp2Table[index%tableSize]
	scale = math.Float64frombits(math.Float64bits(scale) + index>>tableBits<<52)
	return scale + scale*(x*(exp2c1+x*(exp2c2+x*(exp2c3+x*(exp2c4+x*exp2c5)))))
}
