package core

import (
	"cmp"
	"maps"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/mat"

	"libeman/simd"
)

// This file is the transposes of the maps from a layer's tensors to the
// matrices that are applied at run time: what the gradient of a loss with
// respect to the matrices says about the tensors. Each is linear in the
// gradient that it is given.
//
// The gradient with respect to a complex number w is ∂/∂Re w + i·∂/∂Im w. For
// y = u·w it is conj(u) times that with respect to y.

// adjoint is the conjugate transpose.
func (a *complexMatrix) adjoint() *complexMatrix {
	c := newComplexMatrix(a.columns, a.rows)
	for i := range a.rows {
		for j := range a.columns {
			c.data[j*a.rows+i] = cmplx.Conj(a.at(i, j))
		}
	}
	return c
}

// plus adds factor·b to a.
func (a *complexMatrix) plus(factor complex128, b *complexMatrix) {
	for i, x := range b.data {
		a.data[i] += factor * x
	}
}

// within is the matrix with rows rows of which a is those from from on.
func (a *complexMatrix) within(rows, from int) *complexMatrix {
	c := newComplexMatrix(rows, a.columns)
	copy(c.data[from*a.columns:], a.data)
	return c
}

// readComplex is the transpose of addComplex.
func readComplex(from *mat.Dense, at place, w *complexMatrix) {
	for o := range w.rows {
		for i := range w.columns {
			row, column := at.row+i, at.column+o
			w.add(o, i, complex(
				from.At(row, column)+from.At(row+at.step, column+at.width),
				from.At(row, column+at.width)-from.At(row+at.step, column)))
		}
	}
}

// readToReal is the transpose of addToReal.
func readToReal(from *mat.Dense, at place, w *complexMatrix) {
	for o := range w.rows {
		for i := range w.columns {
			w.add(o, i, complex(from.At(at.row+i, at.column+o), -from.At(at.row+at.step+i, at.column+o)))
		}
	}
}

// readReal is the transpose of addReal.
func readReal(from *mat.Dense, at place, w *complexMatrix) {
	for o := range w.rows {
		for i := range w.columns {
			w.add(o, i, complex(from.At(at.row+i, at.column+o), 0))
		}
	}
}

// readGroup is the transpose of addGroup.
func (w *kernelWeights) readGroup(from *mat.Dense, g simd.Group, ring, row, step, width int) {
	at := place{row: row, step: step, width: width}
	direct := w.matrix(part{g.In, g.Out, false, ring})
	switch g.Form {
	case simd.Scalar:
		readReal(from, at, direct)
	case simd.ToScalar:
		readToReal(from, at, direct)
	case simd.Lift, simd.Minus:
		readComplex(from, at, direct)
	case simd.Both:
		conjugate := w.matrix(part{g.In, g.Out, true, ring})
		ofX, ofY := newComplexMatrix(direct.rows, direct.columns), newComplexMatrix(direct.rows, direct.columns)
		readComplex(from, at, ofX)
		at.row += 2 * step
		readComplex(from, at, ofY)
		direct.plus(1, ofX)
		direct.plus(-1i, ofY)
		conjugate.plus(1, ofX)
		conjugate.plus(1i, ofY)
	}
}

// readMoments is the transpose of momentMatrix.
func (w *kernelWeights) readMoments(from *mat.Dense, plan *simd.Moments, m, ring, width int) {
	for _, g := range plan.Groups {
		if g.Out == m {
			w.readGroup(from, g, ring, g.Row*plan.Channels, plan.Channels, width)
		}
	}
}

// readSelf is the transpose of selfMatrix.
func (w *kernelWeights) readSelf(from *mat.Dense, m, ring, width int) {
	a, at := w.matrix(part{m, m, false, ring}), place{step: w.in.padded(), width: width}
	if m == 0 {
		readReal(from, at, a)
	} else {
		readComplex(from, at, a)
	}
}

// tensor is the transpose of newKernelWeights: [rows, ring, out, in].
func (w *kernelWeights) tensor(elements []Element, rows int) []float64 {
	size := w.in.Channels * w.out.Channels
	tensor := make([]float64, rows*w.rings*size)
	for b, element := range elements {
		for ring := range w.rings {
			matrix := w.matrix(part{element.In, element.Out, element.Conjugate, ring})
			to := tensor[(b*w.rings+ring)*size:][:size]
			for i, value := range matrix.data {
				to[i] = real(cmplx.Conj(element.Unit) * value)
			}
		}
	}
	return tensor
}

// ordered lists the parts in a fixed order, as sums over them need it.
func (w *kernelWeights) ordered() []part {
	return slices.SortedFunc(maps.Keys(w.parts), func(a, b part) int {
		conjugate := 0
		if a.conjugate != b.conjugate {
			if conjugate = 1; b.conjugate {
				conjugate = -1
			}
		}
		return cmp.Or(cmp.Compare(a.in, b.in), cmp.Compare(a.out, b.out), conjugate, cmp.Compare(a.ring, b.ring))
	})
}

// like is the zero kernel of the same shape.
func (w *kernelWeights) like() *kernelWeights {
	return &kernelWeights{w.in, w.out, w.rings, map[part]*complexMatrix{}}
}

// applyGradient is the transpose of apply at a: it returns the gradient with
// respect to a and adds that with respect to the kernel to ofKernel.
func applyGradient(kernel, ofKernel *kernelWeights, m int, a, gradient *complexMatrix) *complexMatrix {
	if kernel == nil {
		return gradient
	}
	ofKernel.matrix(part{in: m, out: m}).plus(1, gradient.times(a.adjoint()))
	return kernel.matrix(part{in: m, out: m}).adjoint().times(gradient)
}

// headGradients are the gradients with respect to the maps of the heads, nil
// where these are, and to the angles of the bias.
type headGradients struct {
	query, key, value, combine *kernelWeights
	angles                     [][]float64
}

func newHeadGradients(m headMaps, angles [][]float64) headGradients {
	var g headGradients
	if m.query != nil {
		g.query, g.key, g.value, g.combine = m.query.like(), m.key.like(), m.value.like(), m.combine.like()
	}
	for _, row := range angles {
		g.angles = append(g.angles, make([]float64, len(row)))
	}
	return g
}

// ofGradient is the transpose of of.
func (m headMaps) ofGradient(w, kernel, ofKernel *kernelWeights, heads []*kernelWeights) *kernelWeights {
	result := w.like()
	for _, p := range w.ordered() {
		a := w.parts[p]
		for h, head := range heads {
			from, _ := m.span(h)
			gradient := head.matrix(p).within(a.rows, from)
			result.matrix(p).plus(1, applyGradient(kernel, ofKernel, p.out, a, gradient))
		}
	}
	return result
}

// valuesGradient is the transpose of values.
func (m headMaps) valuesGradient(w *kernelWeights, angles [][]float64, heads []*kernelWeights, to *headGradients) *kernelWeights {
	result := w.like()
	for _, p := range w.ordered() {
		a := w.parts[p]
		value := apply(m.value, p.out, a)
		for h, head := range heads {
			from, end := m.span(h)
			own := value.only(from, end)
			gradient := head.matrix(p)
			if p.out > 0 && angles != nil {
				gradient = unrotate(apply(m.combine, p.out, own), gradient, angles[p.out-1], to.angles[p.out-1])
			}
			gradient = applyGradient(m.combine, to.combine, p.out, own, gradient).only(from, end)
			result.matrix(p).plus(1, applyGradient(m.value, to.value, p.out, a, gradient))
		}
	}
	return result
}

// unrotate is the transpose of rotate at a: the gradient with respect to a,
// and, added to ofAngles, that with respect to the angles.
func unrotate(a, gradient *complexMatrix, angles, ofAngles []float64) *complexMatrix {
	result := newComplexMatrix(a.rows, a.columns)
	for i, angle := range angles {
		for j := range a.columns {
			back := cmplx.Rect(1, -angle) * gradient.at(i, j)
			result.add(i, j, back)
			ofAngles[i] += imag(back * cmplx.Conj(a.at(i, j)))
		}
	}
	return result
}

// like is the zero gradient.
func (k *keys) like() *keys {
	zeros := func(kernels []*kernelWeights) (result []*kernelWeights) {
		for _, w := range kernels {
			result = append(result, w.like())
		}
		return result
	}
	return &keys{query: zeros(k.query), key: zeros(k.key), self: zeros(k.self)}
}

// unfold is the transpose of fold: it adds to of what the gradient with respect
// to fold's result says about queries and keys.
func (k *keys) unfold(order, rings int, pairs bool, key keyMatrix, gradient *mat.Dense, of *keys) {
	height, _ := gradient.Dims()
	k.visit(rings, pairs, func(at, h, queryRing, keyRing int) {
		query, keys := k.query[h].selfMatrix(order, queryRing, k.width), key.of(h, keyRing)
		width, _ := keys.Dims()
		u := gradient.Slice(0, height, at*width, (at+1)*width)
		var ofQuery, ofKey mat.Dense
		ofQuery.Mul(u, keys)
		ofQuery.Scale(k.scale, &ofQuery)
		ofKey.Mul(u.T(), query)
		ofKey.Scale(k.scale, &ofKey)
		of.query[h].readSelf(&ofQuery, order, queryRing, k.width)
		key.read(of, h, keyRing, &ofKey)
	})
}
