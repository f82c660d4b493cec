package simd

import "math"

// AdamStep are the numbers of one step of Adam (Kingma and Ba 2015), with the
// corrections of the moments' bias in Rate and Root.
type AdamStep struct {
	Beta1, Beta2 float64 // of the moments
	Rate         float64 // learning rate / (1 - Beta1^t)
	Root         float64 // √(1 - Beta2^t)
	Epsilon      float64
	Decay        float64 // what is left of a parameter: 1, or less with decoupled weight decay (AdamW)
	Penalty      float64 // times the parameter is added to its gradient: weight decay of Adam
	Scale        float64 // of the gradient
}

// Adam: see [Kernels].
func (Generic[T]) Adam(parameters, first, second, gradient []T, s *AdamStep) {
	beta1, beta2, rate, root := T(s.Beta1), T(s.Beta2), T(s.Rate), T(1/s.Root)
	other1, other2 := T(1-s.Beta1), T(1-s.Beta2)
	epsilon, decay, penalty, scale := T(s.Epsilon), T(s.Decay), T(s.Penalty), T(s.Scale)
	for i, g := range gradient {
		g = scale*g + penalty*parameters[i]
		m := beta1*first[i] + other1*g
		v := beta2*second[i] + other2*g*g
		first[i], second[i] = m, v
		parameters[i] = decay*parameters[i] - rate*m/(T(math.Sqrt(float64(v)))*root+epsilon)
	}
}
