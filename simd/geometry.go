package simd

//go:generate go run -C avo . -kernels geometry -isa avx512 -o ../geometry_avx512_amd64.s -s ../geometry_avx512_amd64.go
//go:generate go run -C avo . -kernels geometry -isa avx2 -o ../geometry_avx2_amd64.s -s ../geometry_avx2_amd64.go
//go:generate go run -C avo . -kernels geometry -isa neon -o ../geometry_neon_arm64.s -s ../geometry_neon_arm64.go

// Geometry is the loops over edges and vertices of package geometry, in
// float64. That package's scalar code is their specification, and does what
// they leave to it: items that need care (a vanishing length, a direction lost
// in rounding, nearly opposite normals) are marked by a NaN, which no result is
// otherwise; and items too few to fill a register.
//
// Positions are rows of 3, with one readable number behind the last, of
// magnitude below 2; frames are rows of 9, e1, e2, n. Indices are rows of
// these arrays and are not checked. The centre of an edge, the vertex that the
// others of its ring share, is given by its place in Columns.
type Geometry interface {
	// Name is the instruction set's.
	Name() string

	// Centers lists those of the vertices from first on whose rings, delimited
	// by offsets, are not empty, and returns how many they are. It writes the
	// place of ring i's vertex in this list, and in Columns, to the centers from
	// offsets[i] − offsets[0] to offsets[i+1] − offsets[0], and some place to the
	// Padding behind. vertices needs room for all.
	Centers(vertices, centers []int32, offsets []int64, first int) (count int)

	// Columns fills the columns for up to MaxCenters vertices; without frames
	// their positions only. Indices are read as by Wedges.
	Columns(columns *Columns, positions, frames []float64, vertices []int32)

	// Wedges writes rows (a×b, |a|² + |b|²) with a and b from the centre of
	// corner i to the vertices wedges[2i] and wedges[2i+1]: the last is NaN where
	// a or b is no longer than 2⁻⁵⁰⁰. Indices and rows are read and written up
	// to the next multiple of Padding: slices need that capacity.
	Wedges(rows, positions []float64, wedges, centers []int32, columns *Columns)

	// RelTan writes, for each edge and power r, given as −r/2, the rows
	// (d|d|^{−r}, |d|^{r−1}) with d from its centre to neighbors[i]. Row i of
	// power j is rows[4(j·plane+i):]; its last number is NaN where |d| ≤ 2⁻¹⁰⁰.
	// |r| is at most MaxPower. Capacity is needed as for Wedges.
	RelTan(rows []float64, plane int, positions []float64, neighbors, centers []int32, columns *Columns, powers []float64)

	// SumRings adds up, in order, the rows of 4 from offsets[i] − offsets[0] to
	// offsets[i+1] − offsets[0] for each i.
	SumRings(sums, rows []float64, offsets []int64)

	// Tangents writes factor·L·(e1·S, e2·S) for the vertices with the given
	// frames and for count ≥ 1 powers side by side, to rows of width numbers.
	// (S, L), the sum of the rows of RelTan, is row i of power j in
	// sums[4(j·plane+i):]. It returns how many vertices it did, all or none, and
	// whether some number is not finite.
	Tangents(to []float64, width int, sums []float64, plane int, frames, factors []float64, count int) (done int, rare bool)

	// Frames writes the frames of the vertices from first on, whose wedges have
	// the given sums (of at most 2¹⁰ rows each) and whose e1 point to the
	// given neighbours. It returns how many it did, all or none, and whether
	// one could not be told from noise: the first number of its n is NaN.
	Frames(frames, sums, positions []float64, first int, neighbors []int32) (done int, rare bool)

	// Edges32 and Edges64 compute the geometry of edges, all or none as Frames.
	// NaN are in CosTheta where the projection of d is below 2⁻³⁴ of it or
	// 2⁻⁴⁹, and in CosTransport where 1 + n_p·n_q ≤ 1/16.
	Edges32(to EdgeArrays[float32], positions, frames []float64, neighbors, centers []int32, columns *Columns) (done int, rare bool)
	Edges64(to EdgeArrays[float64], positions, frames []float64, neighbors, centers []int32, columns *Columns) (done int, rare bool)
}

// Columns is the positions and frames of vertices, one number of all of them
// after another, which the kernels read in runs of up to Padding.
type Columns [(3 + 9) * (MaxCenters + Padding)]float64

// MaxCenters is the number of vertices whose edges are treated together.
const MaxCenters = 64

// Padding is the number of items that a loop of Geometry may treat at a time.
const Padding = 8

// MaxPower bounds the powers of Geometry.RelTan: for lengths above 2⁻¹⁰⁰ no
// result or factor of it leaves the range of float64.
const MaxPower = 8

// EdgeArrays are one number of each kind for every edge.
type EdgeArrays[T Float] struct {
	CosTheta, SinTheta, CosTransport, SinTransport, Length []T
}

// GeometryOf is the kernels of an instruction set that runs here, or of the
// fastest for "". nil is scalar code: for "generic", and where there are none.
func GeometryOf(set string) Geometry {
	for _, k := range available {
		if set == "" || set == k.Name() {
			return geometries[k.Name()]
		}
	}
	return nil
}
