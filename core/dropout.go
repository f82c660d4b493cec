package core

import "libeman/simd"

// dropout sets numbers to 0 at random and scales the others up, in training:
// number (row, column) of the step's stream decides, so the mask is the same
// for any number of threads and needs no memory. A zero rate does nothing.
type dropout struct {
	stream    stream
	threshold uint64 // of 2^16: the numbers below are dropped
	columns   int
}

// newDropout rounds the rate, in [0, 1), to a multiple of 2^-16.
func newDropout(rate float64, seed uint64, name string, columns int) dropout {
	return dropout{newStream(seed, name), uint64(rate * (1 << 16)), columns}
}

// scale keeps the expected value of what is left.
func (d dropout) scale() float64 { return (1 << 16) / float64(1<<16-d.threshold) }

// dropRows treats columns numbers of n rows, the first of which has the number
// first. Applied to a gradient, it is its own backward pass.
func dropRows[T simd.Float](d dropout, x simd.Rows[T], first, n int) {
	if d.threshold == 0 {
		return
	}
	scale := T(d.scale())
	words := (d.columns + 3) / 4
	for i := range n {
		row := x.Row(i, d.columns)
		for w := range words {
			bits := d.stream.bits((first+i)*words + w)
			for j := 4 * w; j < min(4*w+4, len(row)); j++ {
				if bits&0xFFFF < d.threshold {
					row[j] = 0
				} else {
					row[j] *= scale
				}
				bits >>= 16
			}
		}
	}
}
