package core

import "libeman/simd"

// Type is a feature type: Channels copies of rho_0 ⊕ rho_1 ⊕ … ⊕ rho_Order.
// rho_0 is one real number, rho_n (n ≥ 1) two, the real and imaginary part of
// z_n; a gauge change by the angle g sends z_n to e^{-ing} z_n (§3.2).
type Type struct{ Channels, Order int }

// Components is the number of reals of one channel.
func (t Type) Components() int { return 2*t.Order + 1 }

// padded is the number of channels that a row holds in memory.
func (t Type) padded() int { return simd.Padded(t.Channels) }

// size is the length of a vertex's features in memory: Components rows of
// padded channels.
func (t Type) size() int { return t.Components() * t.padded() }

// rowsOf is the number of components of order n, and firstRow the place of
// the first among all of a channel's components.
func rowsOf(n int) int {
	if n == 0 {
		return 1
	}
	return 2
}

func firstRow(n int) int { return max(0, 2*n-1) }

// Element is one element of the basis of kernels K(θ) between irreducible
// representations (app. A, table of the neighbour kernels): it contributes
// Unit·e^{i·Frequency·θ}·ẑ to order Out, where ẑ is the transported
// ẑ_In = e^{i·In·g} z_In(q), or its complex conjugate; for Out = 0, the real
// part. The table's matrices are these maps written in reals:
//
//	rho_0 → rho_0   (1)                             ẑ
//	rho_n → rho_0   (cos nθ, sin nθ)                Re(e^{-inθ} ẑ)
//	                (sin nθ, -cos nθ)               Re(i e^{-inθ} ẑ)
//	rho_0 → rho_m   (cos mθ, sin mθ)ᵀ               e^{imθ} ẑ
//	                (sin mθ, -cos mθ)ᵀ              its multiple -i e^{imθ} ẑ
//	rho_n → rho_m   c_-, -s_- / s_-, c_-            e^{i(m-n)θ} ẑ
//	                s_-, c_- / -c_-, s_-            -i e^{i(m-n)θ} ẑ
//	                c_+, s_+ / s_+, -c_+            e^{i(m+n)θ} conj ẑ
//	                -s_+, c_+ / c_+, s_+            i e^{i(m+n)θ} conj ẑ
//
// Order and signs here are those of the authors' weight tensors, which span
// the same space.
type Element struct {
	In, Out   int
	Conjugate bool
	Frequency int // of e^{i·Frequency·θ}; its absolute value is the band
	Unit      complex128
}

// Basis lists the elements for orders 0..in to 0..out in the order of the
// first dimension of a weight tensor [basis, ring, out, in]. Elements of a
// band above the limit are left out and the list closes up; a negative limit
// means none.
func Basis(in, out, band int) (elements []Element) {
	for n := 0; n <= in; n++ {
		for m := 0; m <= out; m++ {
			for _, e := range elementsBetween(n, m) {
				if band < 0 || max(e.Frequency, -e.Frequency) <= band {
					elements = append(elements, e)
				}
			}
		}
	}
	return elements
}

// elementsBetween lists the basis from rho_n to rho_m.
func elementsBetween(n, m int) []Element {
	pair := func(conjugate bool, frequency int, first, second complex128) []Element {
		return []Element{{n, m, conjugate, frequency, first}, {n, m, conjugate, frequency, second}}
	}
	switch {
	case n == 0 && m == 0:
		return []Element{{Unit: 1}}
	case n == 0 || m == 0:
		return pair(false, m-n, 1, 1i)
	case m == n:
		return append(pair(false, 0, 1, 1i), pair(true, m+n, 1i, 1)...)
	case m > n:
		return append(pair(false, m-n, -1i, 1), pair(true, m+n, 1i, 1)...)
	default:
		return append(pair(false, m-n, 1i, 1), pair(true, m+n, 1i, 1)...)
	}
}

// basisSize is the first dimension of a weight tensor: the number of elements
// without a band limit. With one, the last rows are unused.
func basisSize(in, out int) int { return 4*in*out + 2*(in+out) + 1 }

// SelfBasis lists the elements of the self kernels (app. A, second table):
// those of Basis that do not depend on θ.
func SelfBasis(in, out int) (elements []Element) {
	for n := 0; n <= min(in, out); n++ {
		elements = append(elements, Element{In: n, Out: n, Unit: 1})
		if n > 0 {
			elements = append(elements, Element{In: n, Out: n, Unit: 1i})
		}
	}
	return elements
}

// selfBasisSize is the number of elements of SelfBasis.
func selfBasisSize(in, out int) int { return 2*min(in, out) + 1 }
