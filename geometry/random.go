package geometry

import "math"

// Random numbers come from a counter: the i-th number of a seed is a hash of
// the pair, so it depends neither on threads nor on what was drawn before.

// randomBits is the i-th of the seed's 64-bit numbers (the output function of
// SplitMix64; Steele, Lea, Flood, OOPSLA 2014).
func randomBits(seed, i uint64) uint64 {
	return mix(mix(seed) + (i+1)*0x9E3779B97F4A7C15)
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// RandomUniform is the i-th of the seed's independent numbers, uniform in [0, 1).
func RandomUniform(seed, i uint64) float64 {
	return float64(randomBits(seed, i)>>11) * 0x1p-53
}

// randomAngle is in [−π, π).
func randomAngle(seed, i uint64) float64 {
	return (2*RandomUniform(seed, i) - 1) * math.Pi
}

// RandomAngles fills angles with the seed's independent uniform angles in
// [−π, π) from the first one on, for [Mesh.ChangeGauge].
func RandomAngles(seed uint64, first int, angles []float64) {
	for i := range angles {
		angles[i] = randomAngle(seed, uint64(first+i))
	}
}

// RandomRotation returns a rotation matrix, row by row, uniform over SO(3): a
// unit quaternion by the subgroup algorithm (Shoemake, Graphics Gems III).
func RandomRotation(seed uint64) (r [9]float64) {
	u := RandomUniform(seed, 0)
	sin1, cos1 := math.Sincos(2 * math.Pi * RandomUniform(seed, 1))
	sin2, cos2 := math.Sincos(2 * math.Pi * RandomUniform(seed, 2))
	x, y := math.Sqrt(1-u)*sin1, math.Sqrt(1-u)*cos1
	z, w := math.Sqrt(u)*sin2, math.Sqrt(u)*cos2
	return [9]float64{
		1 - 2*(y*y+z*z), 2 * (x*y - z*w), 2 * (x*z + y*w),
		2 * (x*y + z*w), 1 - 2*(x*x+z*z), 2 * (y*z - x*w),
		2 * (x*z - y*w), 2 * (y*z + x*w), 1 - 2*(x*x+y*y),
	}
}

// RandomPermutation fills order with the numbers 0 … len−1, each order equally
// likely (Fisher and Yates).
func RandomPermutation[I int32 | int64](seed uint64, order []I) {
	for i := range order {
		order[i] = I(i)
	}
	for i := len(order) - 1; i > 0; i-- {
		// Bias of the modulo: below i/2⁶⁴.
		j := randomBits(seed, uint64(i)) % uint64(i+1)
		order[i], order[j] = order[j], order[i]
	}
}
