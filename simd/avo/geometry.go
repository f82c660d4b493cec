package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// doubles writes the kernels of interface Geometry: float64, an edge or a
// vertex a lane. Rows of a few numbers are loaded one a lane and transposed; the
// centres of edges, which come in order, are permuted from columns.
type doubles struct {
	isa
	even, odd reg.VecVirtual // where pairs of AVX-512 lanes go in a row
}

func (s isa) geometry() {
	for _, write := range []func(d *doubles){
		(*doubles).fillCenters, (*doubles).positionColumns, (*doubles).frameColumns, (*doubles).wedges, (*doubles).sumRings, (*doubles).frames,
		func(d *doubles) { d.edges("32") }, func(d *doubles) { d.edges("64") },
		(*doubles).relTan, (*doubles).tangents,
	} {
		write(&doubles{isa: s})
	}
}

// Rows of the arrays that interface Geometry describes.
const (
	positionWidth = 3
	frameWidth    = 9
	sumBytes      = 32
	e1, e2, axis  = 0, 24, 40 // bytes into a frame; the normal follows at axis+8
)

// Bounds below which a kernel leaves an item to scalar code, by a NaN.
const (
	zeroLength     = 0x1p-1000 // of a squared length: none at all
	shortEdge      = 0x1p-200  // of a squared length whose powers are taken
	nearlyOpposite = 0x1p-4    // of 1 + n_p·n_q: digits of the transport are lost
	noProjection   = 0x1p-68   // of a squared projection, relative to what was projected
	noAngle        = 0x1p-98   // of an edge's squared projection
	noAxis         = 0x1p-900  // of the square of what an axis of a frame is made of
	noDifference   = 0x1p-100  // of a squared edge, relative to that of the place
)

// The rounding error of a sum of N ≤ 2¹⁰ wedges, with w the sum of their squared
// lengths: 2⁻⁴⁸ Σ (|a||b| + (|a| + |b|)·size) is at most
// 2⁻⁴⁸ (w/2 + size √(2Nw)), and its square at most twice the squares' sum,
// w (ofWedges·w + ofPlace·size²).
const (
	ofWedges = 0x1p-97
	ofPlace  = 0x1p-84
)

// prefetchFrames asks for the frames of as many vertices further on as a piece
// has, when a group's are treated: the next piece finds them in the cache.
func (d *doubles) prefetchFrames(frames reg.Register) {
	const ahead = 64 * 8 * frameWidth
	for at := 0; at < 8*frameWidth*d.lanes(); at += 64 {
		PREFETCHT0(Mem{Base: frames, Disp: ahead + at})
	}
}
