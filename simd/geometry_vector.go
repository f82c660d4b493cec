//go:build amd64 || arm64

package simd

import "unsafe"

// doubles is the functions of an instruction set, which treat whole registers.
type doubles struct {
	name            string
	lanes           int
	fillCenters     func(vertices, centers *int32, offsets *int64, first, n int) (count int)
	positionColumns func(columns, positions *float64, vertices *int32, n int)
	frameColumns    func(columns, frames *float64, vertices *int32, n int)
	wedges          func(rows, positions *float64, wedges, centers *int32, columns *float64, n int)
	relTan          func(rows *float64, plane int, positions *float64, neighbors, centers *int32, columns, powers *float64, count int, logarithm bool, n int)
	sumRings        func(sums, rows *float64, offsets *int64, n int)
	frames          func(frames, sums, centers, positions *float64, neighbors *int32, n int) (rare bool)
	tangents        func(to *float64, step int, sums *float64, plane int, frames, factors *float64, count, n int) (rare bool)
	edges32         func(cosTheta, sinTheta, cosG, sinG, length *float32, positions, frames *float64, neighbors, centers *int32, columns *float64, n int) (rare bool)
	edges64         func(cosTheta, sinTheta, cosG, sinG, length *float64, positions, frames *float64, neighbors, centers *int32, columns *float64, n int) (rare bool)
}

func (d *doubles) Name() string { return d.name }

// Centers: see [Geometry].
func (d *doubles) Centers(vertices, centers []int32, offsets []int64, first int) (count int) {
	n := len(offsets) - 1
	if n <= 0 {
		return 0
	}
	_, _ = vertices[n-1], centers[offsets[n]-offsets[0]+Padding-1]
	return d.fillCenters(&vertices[0], &centers[0], &offsets[0], first, n)
}

// Columns: see [Geometry].
func (d *doubles) Columns(columns *Columns, positions, frames []float64, vertices []int32) {
	n := padded(len(vertices))
	if n == 0 {
		return
	}
	_ = vertices[:n]
	d.positionColumns(&columns[0], &positions[0], &vertices[0], n)
	if frames != nil {
		d.frameColumns(&columns[0], &frames[0], &vertices[0], n)
	}
}

// padded is the next multiple of Padding.
func padded(n int) int { return (n + Padding - 1) / Padding * Padding }

// Wedges: see [Geometry].
func (d *doubles) Wedges(rows, positions []float64, wedges, centers []int32, columns *Columns) {
	n := padded(len(centers))
	if n == 0 {
		return
	}
	_, _, _ = rows[:4*n], wedges[:2*n], centers[:n]
	d.wedges(&rows[0], &positions[0], &wedges[0], &centers[0], &columns[0], n)
}

// RelTan: see [Geometry].
func (d *doubles) RelTan(rows []float64, plane int, positions []float64, neighbors, centers []int32, columns *Columns, powers []float64) {
	n := padded(len(centers))
	if n == 0 || len(powers) == 0 {
		return
	}
	logarithm := false
	for _, halved := range powers {
		logarithm = logarithm || halved != -0.25
	}
	_, _, _ = rows[:4*((len(powers)-1)*plane+n)], neighbors[:n], centers[:n]
	d.relTan(&rows[0], 32*plane, &positions[0], &neighbors[0], &centers[0], &columns[0], &powers[0], len(powers), logarithm, n)
}

// SumRings: see [Geometry].
func (d *doubles) SumRings(sums, rows []float64, offsets []int64) {
	n := len(offsets) - 1
	if n <= 0 {
		return
	}
	_ = sums[4*n-1]
	count := int(offsets[n] - offsets[0])
	_ = rows[:4*count]
	d.sumRings(&sums[0], unsafe.SliceData(rows), &offsets[0], n)
}

// Frames: see [Geometry].
func (d *doubles) Frames(frames, sums, positions []float64, first int, neighbors []int32) (done int, rare bool) {
	n := len(neighbors)
	if n < d.lanes {
		return 0, false
	}
	_, _, _ = frames[9*(first+n)-1], sums[4*n-1], positions[3*(first+n)-1]
	for i, count := range d.cover(n) {
		vertex := first + i
		found := d.frames(&frames[9*vertex], &sums[4*i], &positions[3*vertex], &positions[0], &neighbors[i], count)
		rare = rare || found
	}
	return n, rare
}

// Tangents: see [Geometry].
func (d *doubles) Tangents(to []float64, width int, sums []float64, plane int, frames, factors []float64, count int) (done int, rare bool) {
	n := len(factors)
	if n < d.lanes {
		return 0, false
	}
	_, _, _ = to[width*(n-1)+2*count-1], sums[4*((count-1)*plane+n)-1], frames[9*n-1]
	for i, vertices := range d.cover(n) {
		found := d.tangents(&to[width*i], 8*width, &sums[4*i], 32*plane, &frames[9*i], &factors[i], count, vertices)
		rare = rare || found
	}
	return n, rare
}

// cover gives runs of whole registers that cover n ≥ lanes items, the last of
// them perhaps twice.
func (d *doubles) cover(n int) func(yield func(begin, count int) bool) {
	return func(yield func(begin, count int) bool) {
		rest := n % d.lanes
		if yield(0, n-rest) && rest > 0 {
			yield(n-d.lanes, d.lanes)
		}
	}
}

// Edges32: see [Geometry].
func (d *doubles) Edges32(to EdgeArrays[float32], positions, frames []float64, neighbors, centers []int32, columns *Columns) (done int, rare bool) {
	return edges(d, d.edges32, to, positions, frames, neighbors, centers, columns)
}

// Edges64: see [Geometry].
func (d *doubles) Edges64(to EdgeArrays[float64], positions, frames []float64, neighbors, centers []int32, columns *Columns) (done int, rare bool) {
	return edges(d, d.edges64, to, positions, frames, neighbors, centers, columns)
}

func edges[T Float](d *doubles, compute func(cosTheta, sinTheta, cosG, sinG, length *T, positions, frames *float64, neighbors, centers *int32, columns *float64, n int) bool,
	to EdgeArrays[T], positions, frames []float64, neighbors, centers []int32, columns *Columns) (done int, rare bool) {
	n := len(centers)
	if n < d.lanes {
		return 0, false
	}
	_, _, _, _, _, _ = to.CosTheta[n-1], to.SinTheta[n-1], to.CosTransport[n-1], to.SinTransport[n-1], to.Length[n-1], neighbors[n-1]
	for i, count := range d.cover(n) {
		found := compute(&to.CosTheta[i], &to.SinTheta[i], &to.CosTransport[i], &to.SinTransport[i], &to.Length[i],
			&positions[0], &frames[0], &neighbors[i], &centers[i], &columns[0], count)
		rare = rare || found
	}
	return n, rare
}
