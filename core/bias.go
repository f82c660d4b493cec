package core

import "libeman/simd"

// Bias is how a layer's bias acts (§5).
type Bias string

const (
	// BiasAngular adds b to rho_0 and turns rho_n by ρ_n(b_n), the angle n·b_n
	// (paper): it commutes with gauge changes.
	BiasAngular Bias = "angular"
	// BiasAngularAuthors turns rho_1 by b_1 and rho_2 by b_2 itself, as the
	// authors' code does, and no higher order, whatever its parameter.
	BiasAngularAuthors Bias = "angular_authors"
	// BiasAdditive adds one number to all components of a channel, which
	// breaks gauge equivariance; for comparison.
	BiasAdditive Bias = "additive"
	// BiasNone has no bias.
	BiasNone Bias = "none"
)

func (b Bias) angular() bool { return b == BiasAngular || b == BiasAngularAuthors }

// rotations returns, for each order from 1 on, the angles by which its
// channels are turned, or nil. parameters is [orders, channels].
func (b Bias) rotations(out Type, parameters []float64) (angles [][]float64) {
	if !b.angular() {
		return nil
	}
	for n := 1; n <= out.Order; n++ {
		scale := b.turn(n)
		row := make([]float64, out.Channels)
		for c := range row {
			row[c] = scale * parameters[(n-1)*out.Channels+c]
		}
		angles = append(angles, row)
	}
	return angles
}

// turn is the angle by which rho_n is turned, in units of b_n.
func (b Bias) turn(n int) float64 {
	switch {
	case b != BiasAngularAuthors:
		return float64(n)
	case n <= 2:
		return 1
	default:
		return 0
	}
}

// additiveBias is the row that is added to the features, or nil.
func additiveBias[T simd.Float](s convolutionSpec, parameters []float64) []T {
	if s.bias == BiasNone {
		return nil
	}
	components := 1
	if s.bias == BiasAdditive {
		components = s.out.Components()
	}
	row := make([]T, s.out.size())
	for k := range components {
		for c, value := range parameters {
			row[k*s.out.padded()+c] = T(value)
		}
	}
	return row
}
