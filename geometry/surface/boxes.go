package surface

import (
	"math"

	"libeman/geometry"
	"libeman/geometry/internal/r3"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
)

// boxes is a binary tree of bounding boxes over points in Morton order, each
// leaf over leafSize consecutive ones. It is built in linear time, and whatever
// it is used for finds the same with any other tree.
type boxes struct {
	points   []float64 // N×3, in Morton order
	numbers  []int32   // of these points, where they were given
	leafSize int
	leaves   int       // a power of two; the last ones may hold nothing
	bounds   []float64 // low and high corner of each node: the root is 1, the children of i are 2i and 2i+1
}

// newBoxes builds the tree of packed positions. Its arrays come from the arena.
func newBoxes(r geometry.Resources, arena *memory.Arena, positions []float64, leafSize int, control *parallel.Control) (b *boxes, err error) {
	count := len(positions) / 3
	b = &boxes{leafSize: leafSize, leaves: 1}
	for b.leaves*leafSize < count {
		b.leaves *= 2
	}
	if b.points, err = memory.Make[float64](arena, 3*int64(count)); err != nil {
		return nil, err
	}
	if b.numbers, err = mortonOrder(r, arena, positions, control); err != nil {
		return nil, err
	}
	err = r.Threads.Range(nil, count, blockRows, func(_, begin, end int) error {
		for i := begin; i < end; i++ {
			r3.Put(b.points, i, r3.At(positions, int(b.numbers[i])))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	b.bounds, err = b.bound(r, arena, b.points)
	return b, err
}

// bound returns the low and high corner of each node for vectors of the points,
// in Morton order.
func (b *boxes) bound(r geometry.Resources, arena *memory.Arena, vectors []float64) (bounds []float64, err error) {
	if bounds, err = memory.Make[float64](arena, 12*int64(b.leaves)); err != nil {
		return nil, err
	}
	err = r.Threads.Range(nil, b.leaves, leavesAtOnce, func(_, begin, end int) error {
		for node := b.leaves + begin; node < b.leaves+end; node++ {
			first, last := b.leaf(node)
			boundLeaf(bounds[6*node:][:6], vectors[3*first:3*last])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for node := b.leaves - 1; node > 0; node-- {
		box, left, right := bounds[6*node:][:6], bounds[12*node:][:6], bounds[12*node+6:][:6]
		for k := range 3 {
			box[k], box[3+k] = min(left[k], right[k]), max(left[3+k], right[3+k])
		}
	}
	return bounds, nil
}

const leavesAtOnce = 64

// leaf gives the range of points of a leaf, empty beyond the last.
func (b *boxes) leaf(node int) (begin, end int) {
	count := len(b.numbers)
	begin = min((node-b.leaves)*b.leafSize, count)
	return begin, min(begin+b.leafSize, count)
}

func boundLeaf(box, vectors []float64) {
	inf := math.Inf(1)
	copy(box, []float64{inf, inf, inf, -inf, -inf, -inf})
	for i, x := range vectors {
		k := i % 3
		box[k], box[3+k] = min(box[k], x), max(box[3+k], x)
	}
}

// distance is the squared distance of a place to the box of a node; infinite
// where that is empty.
func (b *boxes) distance(node int, place r3.Vec) float64 {
	box := b.bounds[6*node : 6*node+6 : 6*node+6]
	x := max(box[0]-place.X, place.X-box[3], 0)
	y := max(box[1]-place.Y, place.Y-box[4], 0)
	z := max(box[2]-place.Z, place.Z-box[5], 0)
	return x*x + y*y + z*z
}

const (
	mortonBits = 11 // of each coordinate: of 64 bits, 31 are left for the number
	numberBits = 31
	digits     = 3 // of mortonBits each
)

// mortonOrder sorts points by the interleaved bits of their coordinates, so
// that those near in the order are near in space (a radix sort).
func mortonOrder(r geometry.Resources, arena *memory.Arena, positions []float64, control *parallel.Control) (order []int32, err error) {
	scratch := r.NewArena("scratch")
	defer scratch.Free()
	count := len(positions) / 3
	if order, err = memory.Make[int32](arena, int64(count)); err != nil {
		return nil, err
	}
	keys, err := memory.Make[uint64](scratch, 2*int64(count))
	if err != nil {
		return nil, err
	}
	keys, spare := keys[:count], keys[count:]
	low, scale := grid(positions)
	err = r.Threads.Range(nil, count, blockRows, func(_, begin, end int) error {
		for i := begin; i < end; i++ {
			p := r3.At(positions, i).Minus(low).Times(scale)
			keys[i] = (spread(p.X)|spread(p.Y)<<1|spread(p.Z)<<2)<<numberBits | uint64(i)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for digit := range digits {
		if err := control.Stopped(); err != nil {
			return nil, err
		}
		sortByDigit(keys, spare, numberBits+mortonBits*digit)
		keys, spare = spare, keys
	}
	for i, key := range keys {
		order[i] = int32(key & (1<<numberBits - 1))
	}
	return order, nil
}

// grid maps the box of all points to the cells of a Morton order.
func grid(positions []float64) (low r3.Vec, scale float64) {
	if len(positions) == 0 {
		return r3.Vec{}, 0
	}
	low = r3.At(positions, 0)
	high := low
	for i := range len(positions) / 3 {
		p := r3.At(positions, i)
		low = r3.Vec{X: min(low.X, p.X), Y: min(low.Y, p.Y), Z: min(low.Z, p.Z)}
		high = r3.Vec{X: max(high.X, p.X), Y: max(high.Y, p.Y), Z: max(high.Z, p.Z)}
	}
	if extent := high.Minus(low).MaxAbs(); extent > coincident {
		scale = (1<<mortonBits - 0.5) / extent
	}
	return low, scale
}

// spread puts two zeros behind each bit of a cell number.
func spread(cell float64) uint64 {
	x := uint64(cell)
	x = (x | x<<16) & 0x0000FF0000FF
	x = (x | x<<8) & 0x00F00F00F00F
	x = (x | x<<4) & 0x0C30C30C30C3
	return (x | x<<2) & 0x249249249249
}

// sortByDigit is one pass of a radix sort.
func sortByDigit(keys, to []uint64, shift int) {
	const size = 1 << mortonBits
	var starts [size]int32
	for _, key := range keys {
		starts[key>>shift%size]++
	}
	sum := int32(0)
	for digit, n := range starts {
		starts[digit], sum = sum, sum+n
	}
	for _, key := range keys {
		place := &starts[key>>shift%size]
		to[*place] = key
		*place++
	}
}
