package simd

import "unsafe"

// Alignment is the alignment in bytes that a fast kernel finds best: a cache
// line, and the widest register.
const Alignment = 64

// Panel is a matrix [K, N] packed for the right side of a product: strips of
// Lanes columns, one after the other, each with its K rows in order. N is
// padded with columns of zeros to Padded(N), and Data[(j/Lanes*K+k)*Lanes +
// j%Lanes] is entry (k, j).
type Panel[T Float] struct {
	K, N int // N a multiple of Lanes
	Data []T
}

// NewPanel returns the zero matrix of at least n columns.
func NewPanel[T Float](k, n int) *Panel[T] {
	n = Padded(n)
	return &Panel[T]{K: k, N: n, Data: Aligned[T](k * n)}
}

// At is entry (k, j).
func (p *Panel[T]) At(k, j int) T { return p.Data[p.index(k, j)] }

// Set sets entry (k, j).
func (p *Panel[T]) Set(k, j int, value T) { p.Data[p.index(k, j)] = value }

func (p *Panel[T]) index(k, j int) int { return (j/Lanes*p.K+k)*Lanes + j%Lanes }

// Transposed is the matrix [N, K].
func (p *Panel[T]) Transposed() *Panel[T] { return p.TransposedColumns(0, p.N) }

// TransposedColumns is the transpose of the columns [first, last), multiples of
// Lanes.
func (p *Panel[T]) TransposedColumns(first, last int) *Panel[T] {
	t := NewPanel[T](last-first, p.K)
	p.TransposeColumns(t, first)
	return t
}

// TransposeColumns writes to t the transpose of t.K columns from first on, both
// multiples of Lanes.
func (p *Panel[T]) TransposeColumns(t *Panel[T], first int) {
	for strip := first / Lanes; strip < (first+t.K)/Lanes; strip++ {
		from := p.strip(strip)
		for k := range p.K {
			to := t.Data[t.index(strip*Lanes-first, k):]
			for j, x := range from[k*Lanes:][:Lanes] {
				to[j*Lanes] = x
			}
		}
	}
}

// Aligned returns n zeros at a multiple of Alignment.
func Aligned[T Float](n int) []T {
	var element T
	size := int(unsafe.Sizeof(element))
	raw := make([]T, n+Alignment/size)
	misaligned := int(uintptr(unsafe.Pointer(unsafe.SliceData(raw)))%Alignment) / size
	skip := (Alignment/size - misaligned) % (Alignment / size)
	return raw[skip : skip+n : skip+n]
}
