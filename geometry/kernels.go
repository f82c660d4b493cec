package geometry

import (
	"sync"

	"libeman/geometry/internal/r3"
	"libeman/simd"
)

// The kernels treat the edges, or the corners, of a piece of consecutive
// vertices as one list, whatever their degrees, and then add up each ring. What
// a piece holds stays in the nearest caches. Lanes that the kernels leave to
// scalar code they mark by NaN.

const (
	pieceVertices = simd.MaxCenters
	pieceRows     = 1024 // edges or corners of a piece; one with more is left to scalar code
	pieceLists    = 4    // powers of RelTan at a time
	rowPlane      = pieceRows + simd.Padding
)

// scratch is the memory of a piece.
type scratch struct {
	vertices  [pieceVertices + simd.Padding]int32 // those with a row
	centers   [rowPlane]int32                     // of each row: the place of its vertex among these
	columns   simd.Columns                        // of these
	first     [pieceVertices]int32
	rows      [4 * pieceLists * rowPlane]float64
	sums      [4 * pieceLists * pieceVertices]float64
	halfPower [pieceLists]float64
	factors   [pieceVertices]float64
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// inPieces calls body for pieces of the vertices [begin, end) with their centres
// in scratch memory, or without where a piece has too many rows. offsets delimit
// the rows of each vertex. frames may be nil, where only positions are needed.
func (v *View) inPieces(offsets []int64, frames []float64, begin, end int, body func(begin, end int, s *scratch) error) error {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	for ; begin < end; begin += pieceVertices {
		last, usable := min(begin+pieceVertices, end), s
		if offsets[last]-offsets[begin] > pieceRows {
			usable = nil
		} else {
			v.setCenters(s, offsets[begin:last+1], frames, begin)
		}
		if err := body(begin, last, usable); err != nil {
			return err
		}
	}
	return nil
}

// setCenters fills in the centres of a piece that begins with vertex p.
func (v *View) setCenters(s *scratch, offsets []int64, frames []float64, p int) {
	count := v.kernels.Centers(s.vertices[:], s.centers[:], offsets, p)
	v.kernels.Columns(&s.columns, v.positions, frames, s.vertices[:count])
}

// kernelFrames is scalarFrames by the kernels: for the area-weighted normals.
func (v *View) kernelFrames(begin, end int, options Options) (touching bool) {
	t := v.topology
	_ = v.inPieces(t.cornerOffsets, nil, begin, end, func(begin, end int, s *scratch) error {
		if s == nil {
			touching = v.scalarFrames(begin, end, options) || touching
			return nil
		}
		offsets := t.cornerOffsets[begin : end+1]
		first, last := offsets[0], offsets[end-begin]
		v.kernels.Wedges(s.rows[:], v.positions, t.wedges[2*first:2*last], s.centers[:last-first], &s.columns)
		v.kernels.SumRings(s.sums[:], s.rows[:], offsets)
		for p := begin; p < end; p++ {
			q := int32(p) // without a neighbour: rare
			if at := t.edges.offsets[p]; at < t.edges.offsets[p+1] {
				q = t.edges.neighbors[at]
			}
			s.first[p-begin] = q
		}
		done, rare := v.kernels.Frames(v.frames, s.sums[:], v.positions, begin, s.first[:end-begin])
		if done == end-begin && !rare && options.Gauge == FirstNeighborGauge {
			return nil
		}
		for p := begin; p < end; p++ {
			if n := v.frames[9*p+6]; p >= begin+done || rare && n != n {
				touching = v.setFrame(p, options) || touching
			} else {
				v.turnFrame(p, options)
			}
		}
		return nil
	})
	return touching
}

// kernelRelTan is scalarRelTan by the kernels: for powers within simd.MaxPower.
func (v *View) kernelRelTan(rows []float64, begin, end int, o *RelTanOptions, factors *degreeFactors) error {
	width := o.RowWidth()
	start := begin
	return v.inPieces(v.edges.offsets, nil, begin, end, func(begin, end int, s *scratch) error {
		rows := rows[width*(begin-start) : width*(end-start)]
		if s == nil {
			return v.scalarRelTan(rows, begin, end, o, factors)
		}
		unchecked := false
		for i := 0; i < len(o.Powers); i += pieceLists {
			found := v.putVectors(rows, begin, end, s, o, factors, i, min(i+pieceLists, len(o.Powers)))
			unchecked = unchecked || found
		}
		if !unchecked {
			return nil
		}
		for p := begin; p < end; p++ {
			row := rows[width*(p-begin):][:width]
			if finite(row) {
				continue
			}
			if err := v.setRelTan(row, p, o, factors); err != nil {
				return err
			}
		}
		return nil
	})
}

// putVectors fills the vectors of the powers [from, to) of a piece, and tells
// whether a number may not be finite.
func (v *View) putVectors(rows []float64, begin, end int, s *scratch, o *RelTanOptions, factors *degreeFactors, from, to int) (unchecked bool) {
	offsets := v.edges.offsets[begin : end+1]
	first, last := offsets[0], offsets[end-begin]
	powers := s.halfPower[:to-from]
	for i := range powers {
		powers[i] = -0.5 * o.Powers[from+i]
	}
	v.kernels.RelTan(s.rows[:], rowPlane, v.positions, v.edges.neighbors[first:last], s.centers[:last-first], &s.columns, powers)
	for i := range powers {
		v.kernels.SumRings(s.sums[4*i*pieceVertices:], s.rows[4*i*rowPlane:], offsets)
	}
	width, n := o.RowWidth(), end-begin
	for j := range n {
		s.factors[j] = factors.of(int(offsets[j+1] - offsets[j]))
	}
	done := 0
	if o.Space == TangentSpace {
		done, unchecked = v.kernels.Tangents(rows[2*from:], width, s.sums[:], pieceVertices, v.frames[9*begin:9*end], s.factors[:n], len(powers))
	}
	for j := done; j < n; j++ {
		e1, e2 := r3.At(v.frames, 3*(begin+j)), r3.At(v.frames, 3*(begin+j)+1)
		for i := range powers {
			sums := s.sums[4*(i*pieceVertices+j):][:4]
			of := relTanSums{r3.Vec{X: sums[0], Y: sums[1], Z: sums[2]}, sums[3]}
			of.putVector(rows[width*j:][:width], from+i, s.factors[j], e1, e2, o.Space)
		}
	}
	return unchecked || done < n
}
