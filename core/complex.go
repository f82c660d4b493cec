package core

import (
	"math/cmplx"

	"gonum.org/v1/gonum/mat"

	"libeman/simd"
)

// complexMatrix is a small matrix of weights from channels to channels.
type complexMatrix struct {
	rows, columns int
	data          []complex128 // row-major
}

func newComplexMatrix(rows, columns int) *complexMatrix {
	return &complexMatrix{rows, columns, make([]complex128, rows*columns)}
}

func (a *complexMatrix) at(i, j int) complex128 { return a.data[i*a.columns+j] }

// add adds value to an entry.
func (a *complexMatrix) add(i, j int, value complex128) { a.data[i*a.columns+j] += value }

// rotate multiplies row i by e^{i·angles[i]}.
func (a *complexMatrix) rotate(angles []float64) {
	for i, angle := range angles {
		for j := range a.columns {
			a.data[i*a.columns+j] *= cmplx.Rect(1, angle)
		}
	}
}

// times is the product a·b.
func (a *complexMatrix) times(b *complexMatrix) *complexMatrix {
	c := newComplexMatrix(a.rows, b.columns)
	for i := range a.rows {
		for k := range a.columns {
			for j := range b.columns {
				c.add(i, j, a.at(i, k)*b.at(k, j))
			}
		}
	}
	return c
}

// slice copies rows [from, to).
func (a *complexMatrix) slice(from, to int) *complexMatrix {
	return &complexMatrix{to - from, a.columns, append([]complex128(nil), a.data[from*a.columns:to*a.columns]...)}
}

// only is the matrix with all rows but [from, to) set to zero.
func (a *complexMatrix) only(from, to int) *complexMatrix {
	c := newComplexMatrix(a.rows, a.columns)
	copy(c.data[from*a.columns:to*a.columns], a.data[from*a.columns:])
	return c
}

// place is where a complex weight from channel i of the right operand to
// channel o of the result lies in a real matrix that multiplies row vectors:
// rows row+i (real part) and row+step+i (imaginary), columns column+o and
// column+width+o. A real operand has no second row, a real result no second
// column.
type place struct {
	row, step     int
	column, width int
}

// addComplex adds the map of complex numbers z → w·z.
func addComplex(to *mat.Dense, at place, w *complexMatrix) {
	for o := range w.rows {
		for i := range w.columns {
			re, im := real(w.at(o, i)), imag(w.at(o, i))
			row, column := at.row+i, at.column+o
			addTo(to, row, column, re)
			addTo(to, row, column+at.width, im)
			addTo(to, row+at.step, column, -im)
			addTo(to, row+at.step, column+at.width, re)
		}
	}
}

// addToReal adds the map of complex numbers z → Re(w·z).
func addToReal(to *mat.Dense, at place, w *complexMatrix) {
	for o := range w.rows {
		for i := range w.columns {
			addTo(to, at.row+i, at.column+o, real(w.at(o, i)))
			addTo(to, at.row+at.step+i, at.column+o, -imag(w.at(o, i)))
		}
	}
}

// addReal adds the map of real numbers x → Re(w)·x.
func addReal(to *mat.Dense, at place, w *complexMatrix) {
	for o := range w.rows {
		for i := range w.columns {
			addTo(to, at.row+i, at.column+o, real(w.at(o, i)))
		}
	}
}

func addTo(to *mat.Dense, i, j int, value float64) { to.Set(i, j, to.At(i, j)+value) }

// pack rounds a matrix to T and packs it for products.
func pack[T simd.Float](a *mat.Dense) *simd.Panel[T] {
	rows, columns := a.Dims()
	panel := simd.NewPanel[T](rows, columns)
	for i := range rows {
		for j := range columns {
			panel.Set(i, j, T(a.At(i, j)))
		}
	}
	return panel
}
