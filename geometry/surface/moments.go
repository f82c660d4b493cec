package surface

import (
	"math"

	"libeman/geometry/internal/r3"
)

// momentWidth are the components of a channel: one of ρ0, two of ρ1 and ρ2 each.
const momentWidth = 5

// Channels of one scale: 8 numbers of type ρ0, 5 of ρ1, 3 of ρ2.
const scaleChannels = 8

// MomentChannels is the number of channels that second moments at so many
// scales fill. Of the eight channels of a scale all have a ρ0, the first five a
// ρ1, the first three a ρ2; the others are 0.
func MomentChannels(scales int) int { return scaleChannels * scales }

// momentSums are sums over the neighbours q of a point, with d = q−p and n the
// normal at q.
type momentSums struct {
	count      float64
	d          r3.Vec
	dd, nn, dn matrix
}

// matrix is given row by row.
type matrix [3]r3.Vec

// add adds a⊗b.
func (m *matrix) add(a, b r3.Vec) {
	m[0] = m[0].Plus(b.Times(a.X))
	m[1] = m[1].Plus(b.Times(a.Y))
	m[2] = m[2].Plus(b.Times(a.Z))
}

// in gives the matrix, scaled, in a frame.
func (m *matrix) in(f *r3.Frame, scale float64) (out [3][3]float64) {
	axes := [3]r3.Vec{f.E1, f.E2, f.N}
	for i, a := range axes {
		row := m[0].Times(a.X).Plus(m[1].Times(a.Y)).Plus(m[2].Times(a.Z)).Times(scale)
		for j, b := range axes {
			out[i][j] = row.Dot(b)
		}
	}
	return out
}

// setMoments sets the second moments of p over the nearest of what a search
// found, at each scale: with d̂ = d over its root mean square, the means of
// d̂⊗d̂, n⊗n, d̂⊗n and d̂ in the frame of p, in their irreducible parts. They do
// not depend on the unit of length.
func (s *Sampling) setMoments(row []float64, p int, q *search, scales []int) {
	if len(scales) == 0 {
		return
	}
	// The hits of a scale are the first of those of the next: their numbers,
	// from the largest.
	var ends [maxLists]int
	all := q.hits
	for i := len(scales) - 1; i >= 0; i-- {
		ends[i] = q.prefix(scales[i])
		q.hits = q.hits[:ends[i]]
	}
	q.hits = all
	place, frame := r3.At(s.Positions, p), r3.FrameAt(s.Frames, p)
	var sums momentSums
	begin := 0
	for i := range scales {
		for _, h := range q.hits[begin:ends[i]] {
			d, n := r3.At(s.Positions, int(h.point)).Minus(place), s.normal(int(h.point))
			sums.count++
			sums.d = sums.d.Plus(d)
			sums.dd.add(d, d)
			sums.nn.add(n, n)
			sums.dn.add(d, n)
		}
		begin = ends[i]
		sums.put(row[i*scaleChannels*momentWidth:][:scaleChannels*momentWidth], &frame)
	}
}

// put splits the means into irreducible parts. A rotation of the frame by g
// about n multiplies the z = x + iy of a ρm by e^{−img}. For a matrix M in the
// frame (e1, e2, n) these are
//
//	ρ0: (M11+M22)/2, M33, (M21−M12)/2
//	ρ1: (M31, M32), (M13, M23)
//	ρ2: ((M11−M22)/2, (M12+M21)/2),
//
// of which a symmetric one lacks the third ρ0 and the second ρ1.
func (m *momentSums) put(row []float64, f *r3.Frame) {
	squares := m.dd[0].X + m.dd[1].Y + m.dd[2].Z
	if m.count == 0 || squares == 0 {
		return
	}
	mean := 1 / m.count
	scale := math.Sqrt(m.count / squares) // 1/rms(d)
	dd, nn, dn := m.dd.in(f, mean*scale*scale), m.nn.in(f, mean), m.dn.in(f, mean*scale)
	d := m.d.Times(mean * scale)
	for channel, rho0 := range [scaleChannels]float64{
		(dd[0][0] + dd[1][1]) / 2, dd[2][2],
		(nn[0][0] + nn[1][1]) / 2, nn[2][2],
		(dn[0][0] + dn[1][1]) / 2, dn[2][2], (dn[1][0] - dn[0][1]) / 2,
		d.Dot(f.N),
	} {
		row[momentWidth*channel] = rho0
	}
	for channel, rho1 := range [][2]float64{
		{dd[2][0], dd[2][1]}, {nn[2][0], nn[2][1]}, {dn[2][0], dn[2][1]}, {dn[0][2], dn[1][2]},
		{d.Dot(f.E1), d.Dot(f.E2)},
	} {
		row[momentWidth*channel+1], row[momentWidth*channel+2] = rho1[0], rho1[1]
	}
	for channel, m := range [...]*[3][3]float64{&dd, &nn, &dn} {
		row[momentWidth*channel+3], row[momentWidth*channel+4] = (m[0][0]-m[1][1])/2, (m[0][1]+m[1][0])/2
	}
}
