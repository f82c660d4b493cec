package geometry

import (
	"fmt"
	"math"

	"libeman/geometry/internal/r3"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
)

// Resources are the threads, the memory and the instructions that a mesh may
// use. The zero value means the calling thread, the Go heap without limit and
// the fastest kernels that run here.
type Resources struct {
	Threads        *parallel.Pool
	Memory         *memory.Budget
	InstructionSet string // as simd.ByName: "generic" is scalar code
}

// NewArena returns an arena whose bytes are counted under purpose.
func (r Resources) NewArena(purpose string) *memory.Arena {
	if r.Memory == nil {
		return memory.NewBudget(0, nil).NewArena(purpose)
	}
	return r.Memory.NewArena(purpose)
}

// Input gives a mesh's arrays, in whatever layout the caller has them, a piece
// at a time and from several threads at once.
type Input struct {
	VertexCount, FaceCount int64
	// Positions writes x, y, z of the vertices [begin, end) into destination.
	Positions PositionReader
	// Faces writes the three vertex indices of the faces [begin, end).
	Faces func(destination []int64, begin, end int)
	// Frames writes the rows e1, e2, n of the vertices [begin, end); used by
	// the custom gauge only.
	Frames PositionReader
}

// PositionReader copies the rows [begin, end) of a float array to destination.
type PositionReader func(destination []float64, begin, end int)

// FromSlices is the input of packed arrays: three coordinates a vertex, three
// indices a face. The slices are borrowed for the call that gets the input.
func FromSlices[I int32 | int64 | uint32](positions []float64, faces []I) Input {
	return Input{
		VertexCount: int64(len(positions) / 3),
		FaceCount:   int64(len(faces) / 3),
		Positions:   ReadSlice(positions, 3),
		Faces: func(destination []int64, begin, end int) {
			for i, index := range faces[3*begin : 3*end] {
				destination[i] = int64(index)
			}
		},
	}
}

// ReadSlice reads packed rows of the given width.
func ReadSlice(values []float64, width int) PositionReader {
	return func(destination []float64, begin, end int) {
		copy(destination, values[width*begin:width*end])
	}
}

// buffers are one array for each thread of a loop.
type buffers[T memory.Number] struct {
	all  []T
	size int
}

func newBuffers[T memory.Number](r Resources, arena *memory.Arena, size int) (b buffers[T], err error) {
	b.size = size
	b.all, err = memory.Make[T](arena, int64(size)*int64(r.Threads.Threads()))
	return b, err
}

func (b buffers[T]) of(worker int) []T { return b.all[worker*b.size:][:b.size] }

const (
	maxVertices = math.MaxInt32
	maxFaces    = math.MaxInt32 / 3 // corners have 32-bit numbers

	maxCoordinate = 1e300 // beyond it lengths, and so GET features, overflow

	blockRows = 1024 // rows of input, or vertices, handled at a time
)

func (in *Input) checkCounts() error {
	switch {
	case in.VertexCount < 0:
		return badArgument("vertices", "the count %d is negative", in.VertexCount)
	case in.FaceCount < 0:
		return badArgument("faces", "the count %d is negative", in.FaceCount)
	case in.VertexCount > maxVertices:
		return fmt.Errorf("%w: %d vertices, at most %d are supported", ErrTooLarge, in.VertexCount, maxVertices)
	case in.FaceCount > maxFaces:
		return fmt.Errorf("%w: %d faces, at most %d are supported", ErrTooLarge, in.FaceCount, maxFaces)
	}
	return nil
}

// setPositions reads the positions, checks that every coordinate is finite,
// and sets the exponent of the largest: |coordinate| < 2^(exponent+1).
//
// Positions are kept divided by 2^exponent, an exact operation, so that
// products of coordinates neither overflow nor vanish whatever the unit of
// length, and scaling by a power of two changes no bit of what is computed.
// They are read once where the exponent is that of the state before.
func (v *View) setPositions(read PositionReader, control *parallel.Control) error {
	r := v.resources
	arena := r.NewArena("scratch")
	defer arena.Free()
	largest, err := memory.Make[uint64](arena, int64((v.VertexCount()+blockRows-1)/blockRows))
	if err != nil {
		return err
	}
	scale := scaleBy(-v.exponent)
	err = r.Threads.Range(control, v.VertexCount(), blockRows, func(_, begin, end int) error {
		rows := v.positions[3*begin : 3*end]
		read(rows, begin, end)
		m := largestMagnitude(rows)
		if m > math.Float64bits(maxCoordinate) { // so are infinity and NaN
			return badCoordinate(rows, begin)
		}
		largest[begin/blockRows] = m
		scale(rows)
		return nil
	})
	if err != nil {
		return err
	}
	m := uint64(0)
	for _, of := range largest {
		m = max(m, of)
	}
	exponent := 0
	if m > 0 {
		_, exponent = math.Frexp(math.Float64frombits(m))
		exponent--
	}
	if exponent == v.exponent {
		return nil
	}
	v.exponent = exponent
	scale = scaleBy(-exponent)
	return r.Threads.Range(nil, v.VertexCount(), blockRows, func(_, begin, end int) error {
		rows := v.positions[3*begin : 3*end]
		read(rows, begin, end)
		scale(rows)
		return nil
	})
}

// largestMagnitude is the greatest of |x|, as bits, whose order is that of the
// magnitudes, with NaN above infinity.
func largestMagnitude(values []float64) uint64 {
	const magnitude = 1<<63 - 1
	var m [4]uint64 // chains that run beside each other
	for ; len(values) >= 4; values = values[4:] {
		m[0] = max(m[0], math.Float64bits(values[0])&magnitude)
		m[1] = max(m[1], math.Float64bits(values[1])&magnitude)
		m[2] = max(m[2], math.Float64bits(values[2])&magnitude)
		m[3] = max(m[3], math.Float64bits(values[3])&magnitude)
	}
	for _, x := range values {
		m[0] = max(m[0], math.Float64bits(x)&magnitude)
	}
	return max(m[0], m[1], m[2], m[3])
}

func badCoordinate(rows []float64, first int) error {
	for i, x := range rows {
		if math.Abs(x) <= maxCoordinate {
			continue
		}
		limit := ""
		if math.Abs(x) <= math.MaxFloat64 {
			limit = fmt.Sprintf(", beyond %g", maxCoordinate)
		}
		return badVertex(first+i/3, "coordinate %c is %g%s", "xyz"[i%3], x, limit)
	}
	return nil
}

// scaleBy multiplies by 2^exponent. One such factor may itself be out of
// range: there are two.
func scaleBy(exponent int) func(values []float64) {
	half := exponent / 2
	first, second := math.Ldexp(1, half), math.Ldexp(1, exponent-half)
	return func(values []float64) {
		for i, x := range values {
			values[i] = x * first * second
		}
	}
}

// readFrames copies the caller's frames to destination, made exactly
// orthonormal. Frames with a product of two vectors further than 10⁻³ from that
// of an orthonormal right-handed basis are refused: they are a mistake, not rounding.
func readFrames(r Resources, destination []float64, read PositionReader, control *parallel.Control) error {
	return r.Threads.Range(control, len(destination)/9, blockRows, func(_, begin, end int) error {
		rows := destination[9*begin : 9*end]
		read(rows, begin, end)
		for i := range end - begin {
			f, ok := orthonormal(r3.FrameAt(rows, i))
			if !ok {
				return badVertex(begin+i, "its frame is not a right-handed orthonormal basis with rows e1, e2, n")
			}
			r3.PutFrame(rows, i, f)
		}
		return nil
	})
}

func orthonormal(f r3.Frame) (r3.Frame, bool) {
	if !f.IsOrthonormal(1e-3) {
		return r3.Frame{}, false
	}
	n := f.N.Normalised()
	e1 := f.E1.Without(n).Normalised()
	return r3.Frame{E1: e1, E2: n.Cross(e1), N: n}, true
}

// readFaces copies the faces to destination as 32-bit indices and refuses an
// index out of range or, unless drop, a repeated one. It returns how many
// faces repeat an index; those are marked by a first index of −1.
func readFaces(r Resources, destination []int32, in *Input, drop bool, control *parallel.Control) (dropped int64, err error) {
	arena := r.NewArena("scratch")
	defer arena.Free()
	blocks := (in.FaceCount + blockRows - 1) / blockRows
	droppedIn, err := memory.Make[int32](arena, blocks)
	if err != nil {
		return 0, err
	}
	buffers, err := newBuffers[int64](r, arena, 3*blockRows)
	if err != nil {
		return 0, err
	}
	err = r.Threads.Range(control, int(in.FaceCount), blockRows, func(worker, begin, end int) error {
		rows := buffers.of(worker)[:3*(end-begin)]
		in.Faces(rows, begin, end)
		for i := 0; i < len(rows); i += 3 {
			face := int64(begin + i/3)
			a, b, c := rows[i], rows[i+1], rows[i+2]
			for _, index := range rows[i : i+3] {
				if uint64(index) >= uint64(in.VertexCount) {
					return badFace(face, "vertex index %d is out of range [0, %d)", index, in.VertexCount)
				}
			}
			if a == b || b == c || c == a {
				if !drop {
					return badFace(face, "vertex %d is named twice (%d, %d, %d)", repeated(a, b, c), a, b, c)
				}
				droppedIn[begin/blockRows]++
				a = -1
			}
			destination[3*face], destination[3*face+1], destination[3*face+2] = int32(a), int32(b), int32(c)
		}
		return nil
	})
	for _, n := range droppedIn {
		dropped += int64(n)
	}
	return dropped, err
}

func repeated(a, b, c int64) int64 {
	if a == b || a == c {
		return a
	}
	return b
}
