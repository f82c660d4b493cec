package core

import (
	"gonum.org/v1/gonum/mat"

	"libeman/simd"
)

// kernelWeights is a weight tensor as complex matrices: for every pair of
// orders, every ring and both moments of a pair (ẑ and its conjugate) the
// weight A of A·e^{ikθ}ẑ, the sum of the basis elements' units times weights.
type kernelWeights struct {
	in, out Type
	rings   int
	parts   map[part]*complexMatrix // [out.Channels, in.Channels]
}

type part struct {
	in, out   int
	conjugate bool
	ring      int
}

// newKernelWeights reads a tensor [basis, ring, out, in], of which only the
// first len(elements) rows count.
func newKernelWeights[T simd.Float](tensor []T, elements []Element, in, out Type, rings int) *kernelWeights {
	w := &kernelWeights{in, out, rings, map[part]*complexMatrix{}}
	size := in.Channels * out.Channels
	for b, element := range elements {
		for ring := range rings {
			matrix := w.matrix(part{element.In, element.Out, element.Conjugate, ring})
			for i, value := range tensor[(b*rings+ring)*size:][:size] {
				matrix.data[i] += element.Unit * complex(float64(value), 0)
			}
		}
	}
	return w
}

// matrix is the weight of a part, created as zero.
func (w *kernelWeights) matrix(p part) *complexMatrix {
	if w.parts[p] == nil {
		w.parts[p] = newComplexMatrix(w.out.Channels, w.in.Channels)
	}
	return w.parts[p]
}

// mapped is the kernel followed by a map of its result: f gets each matrix
// with the order that it leads to.
func (w *kernelWeights) mapped(channels int, f func(order int, a *complexMatrix) *complexMatrix) *kernelWeights {
	result := &kernelWeights{w.in, Type{channels, w.out.Order}, w.rings, map[part]*complexMatrix{}}
	for p, a := range w.parts {
		result.parts[p] = f(p.out, a)
	}
	return result
}

// addGroup adds the weights that a group of moments has in the product of a
// row of moments with a matrix [rows, components of the result]. row is the
// group's first row; rows are step apart, columns of real and imaginary part
// width.
func (w *kernelWeights) addGroup(to *mat.Dense, g simd.Group, ring, row, step, width int) {
	at := place{row: row, step: step, width: width}
	direct := w.matrix(part{g.In, g.Out, false, ring})
	switch g.Form {
	case simd.Scalar:
		addReal(to, at, direct)
	case simd.ToScalar:
		addToReal(to, at, direct)
	case simd.Lift, simd.Minus:
		addComplex(to, at, direct)
	case simd.Both:
		// With ẑ = x + iy: A·ẑ + A'·conj ẑ = (A + A')x + i(A - A')y.
		conjugate := w.matrix(part{g.In, g.Out, true, ring})
		ofX, ofY := newComplexMatrix(direct.rows, direct.columns), newComplexMatrix(direct.rows, direct.columns)
		for i := range direct.data {
			ofX.data[i] = direct.data[i] + conjugate.data[i]
			ofY.data[i] = 1i * (direct.data[i] - conjugate.data[i])
		}
		addComplex(to, at, ofX)
		at.row += 2 * step
		addComplex(to, at, ofY)
	}
}

// momentMatrix is the matrix [moments of order m in one ring, components of
// order m] of a kernel: f'_m = Σ_ring moments·momentMatrix. width is the number
// of columns of one component.
func (w *kernelWeights) momentMatrix(plan *simd.Moments, m, ring, width int) *mat.Dense {
	to := mat.NewDense(plan.Rows[m]*plan.Channels, rowsOf(m)*width, nil)
	for _, g := range plan.Groups {
		if g.Out == m {
			w.addGroup(to, g, ring, g.Row*plan.Channels, plan.Channels, width)
		}
	}
	return to
}

// selfMatrix is the matrix [components of order m, components of order m] of a
// self kernel.
func (w *kernelWeights) selfMatrix(m, ring, width int) *mat.Dense {
	step := w.in.padded()
	to := mat.NewDense(rowsOf(m)*step, rowsOf(m)*width, nil)
	a, at := w.matrix(part{m, m, false, ring}), place{step: step, width: width}
	if m == 0 {
		addReal(to, at, a)
	} else {
		addComplex(to, at, a)
	}
	return to
}
