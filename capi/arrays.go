package main

// #include "shim.h"
import "C"

import (
	"math"
	"math/bits"
	"unsafe"

	"libeman/geometry"
	"libeman/geometry/memory"
)

// firstAddress: no object lies below it. The Go runtime ends the process when
// it finds such a number in a pointer variable.
const firstAddress = 4096

// array is a checked copy of an eman_view or eman_mutable_view.
type array struct {
	data                    uintptr
	rows, columns           int64
	rowStride, columnStride int64
	dtype                   C.eman_dtype
}

// viewLayout is eman_view with its pointer as a number.
type viewLayout struct {
	data                    uintptr
	rows, columns           int64
	rowStride, columnStride int64
	dtype, reserved         int32
}

var elementSizes = map[C.eman_dtype]int64{
	C.EMAN_FLOAT32: 4, C.EMAN_FLOAT64: 8, C.EMAN_INT32: 4, C.EMAN_UINT32: 4, C.EMAN_INT64: 8,
}

// elements tells real from integer arrays.
type elements int

const (
	reals elements = iota
	integers
)

// newArray checks a view: its type, and that what it spans is a range of
// addresses.
func newArray(name string, view *viewLayout, want elements) (array, error) {
	a := array{view.data, view.rows, view.columns, view.rowStride, view.columnStride, C.eman_dtype(view.dtype)}
	size, known := elementSizes[a.dtype]
	switch {
	case !known:
		return a, invalidArgument("%s.dtype is %d, no known type", name, view.dtype)
	case want == reals && a.dtype != C.EMAN_FLOAT32 && a.dtype != C.EMAN_FLOAT64:
		return a, invalidArgument("%s.dtype is an integer type, float32 or float64 is needed", name)
	case want == integers && (a.dtype == C.EMAN_FLOAT32 || a.dtype == C.EMAN_FLOAT64):
		return a, invalidArgument("%s.dtype is a real type, an integer type is needed", name)
	case view.reserved != 0:
		return a, invalidArgument("%s.reserved is %d, not 0", name, view.reserved)
	case a.rows < 0:
		return a, invalidArgument("%s.rows is %d", name, a.rows)
	case a.columns < 0:
		return a, invalidArgument("%s.columns is %d", name, a.columns)
	}
	if a.columnStride == 0 {
		a.columnStride = size
	}
	if a.rowStride == 0 {
		hi, lo := bits.Mul64(uint64(a.columns), uint64(size))
		if hi != 0 || lo > math.MaxInt64 {
			return a, invalidArgument("%s: %d columns overflow the address space", name, a.columns)
		}
		a.rowStride = max(size, int64(lo))
	}
	if a.rows == 0 || a.columns == 0 {
		return a, nil
	}
	if a.data == 0 {
		return a, invalidArgument("%s.data is NULL", name)
	}
	return a, a.checkSpan(name, size)
}

// checkSpan refuses an array whose first or last byte has no address.
func (a *array) checkSpan(name string, size int64) error {
	down, up := int64(0), size
	for _, axis := range [2]struct{ count, stride int64 }{{a.rows, a.rowStride}, {a.columns, a.columnStride}} {
		hi, lo := bits.Mul64(uint64(axis.count-1), magnitude(axis.stride))
		reach := int64(lo)
		if hi != 0 || reach < 0 {
			return invalidArgument("%s: %d×%d elements with strides of %d and %d bytes overflow the address space",
				name, a.rows, a.columns, a.rowStride, a.columnStride)
		}
		if axis.stride < 0 {
			down += reach
		} else {
			up += reach
		}
		if down < 0 || up < 0 {
			return invalidArgument("%s: %d×%d elements with strides of %d and %d bytes overflow the address space",
				name, a.rows, a.columns, a.rowStride, a.columnStride)
		}
	}
	if uint64(a.data) < firstAddress+uint64(down) || uint64(up) > math.MaxUint64-uint64(a.data) {
		return invalidArgument("%s.data: %#x is no valid address for what the view spans", name, a.data)
	}
	return nil
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

// element is the address of (row, column).
func (a *array) element(row, column int64) unsafe.Pointer {
	offset := row*a.rowStride + column*a.columnStride
	return unsafe.Add(unsafe.Pointer(nil), a.data+uintptr(offset))
}

// inputArray is a view to be read with a fixed number of columns; rows < 0
// means any number of rows.
func inputArray(name string, view *C.eman_view, want elements, rows, columns int64) (array, error) {
	a, err := newArray(name, (*viewLayout)(unsafe.Pointer(view)), want)
	if err != nil {
		return a, err
	}
	if a.columns != columns && !(a.rows == 0 && rows <= 0) {
		return a, invalidArgument("%s has %d columns, %d are needed", name, a.columns, columns)
	}
	if rows >= 0 && a.rows != rows {
		return a, invalidArgument("%s has %d rows, %d are needed", name, a.rows, rows)
	}
	return a, nil
}

// outputArray is a view to be written with the given shape.
func outputArray(name string, view *C.eman_mutable_view, want elements, rows, columns int64) (array, error) {
	a, err := newArray(name, (*viewLayout)(unsafe.Pointer(view)), want)
	if err != nil {
		return a, err
	}
	if rows == 0 {
		return a, nil
	}
	if a.columns != columns {
		return a, invalidArgument("%s has %d columns, %d are needed", name, a.columns, columns)
	}
	if a.rows < rows {
		return a, refuse(C.EMAN_E_BUFFER_TOO_SMALL, "%s has room for %d rows, %d are needed", name, a.rows, rows)
	}
	return a, nil
}

// number is any element type, in the caller's memory or ours.
type number interface {
	int32 | uint32 | int64 | float32 | float64
}

// elementsOf are the rows [begin, end) of an array without gaps; nil for other
// layouts.
func elementsOf[T number](a *array, begin, end int) []T {
	var element T
	size := int64(unsafe.Sizeof(element))
	if begin == end || a.columnStride != size || a.rowStride != size*a.columns || int64(a.data)%size != 0 {
		return nil
	}
	return unsafe.Slice((*T)(a.element(int64(begin), 0)), int64(end-begin)*a.columns)
}

// convert copies as many elements as destination has.
func convert[From, To number](destination []To, source []From) {
	source = source[:len(destination)]
	for i, x := range source {
		destination[i] = To(x)
	}
}

// load copies the rows [begin, end) into packed destination.
func load[From, To number](a *array, destination []To, begin, end int) {
	columns := int(a.columns)
	if packed := elementsOf[From](a, begin, end); packed != nil {
		convert(destination[:columns*(end-begin)], packed)
		return
	}
	for i := begin; i < end; i++ {
		row := a.element(int64(i), 0)
		out := destination[columns*(i-begin):][:columns]
		for j := range out {
			out[j] = To(*(*From)(unsafe.Add(row, int64(j)*a.columnStride)))
		}
	}
}

// store copies packed rows into the rows [begin, end).
func store[From, To number](a *array, source []From, begin, end int) {
	columns := int(a.columns)
	if packed := elementsOf[To](a, begin, end); packed != nil {
		convert(packed, source)
		return
	}
	for i := begin; i < end; i++ {
		row := a.element(int64(i), 0)
		in := source[columns*(i-begin):][:columns]
		for j := range in {
			*(*To)(unsafe.Add(row, int64(j)*a.columnStride)) = To(in[j])
		}
	}
}

// checkFloat32 refuses numbers that float32 cannot hold.
func checkFloat32(rows []float64, begin, columns int) error {
	for i, x := range rows {
		if math.Abs(x) > math.MaxFloat32 {
			return invalidArgument("row %d of the result holds %g, too large for float32", begin+i/columns, x)
		}
	}
	return nil
}

// realReader reads a real array as float64.
func realReader(a array) geometry.PositionReader {
	if a.dtype == C.EMAN_FLOAT32 {
		return func(destination []float64, begin, end int) { load[float32](&a, destination, begin, end) }
	}
	return func(destination []float64, begin, end int) { load[float64](&a, destination, begin, end) }
}

// integerReader reads an integer array as int64.
func integerReader(a array) func(destination []int64, begin, end int) {
	switch a.dtype {
	case C.EMAN_INT32:
		return func(destination []int64, begin, end int) { load[int32](&a, destination, begin, end) }
	case C.EMAN_UINT32:
		return func(destination []int64, begin, end int) { load[uint32](&a, destination, begin, end) }
	}
	return func(destination []int64, begin, end int) { load[int64](&a, destination, begin, end) }
}

// realWriter writes a real array from float64.
func realWriter(a array) geometry.RowWriter {
	if a.dtype == C.EMAN_FLOAT32 {
		return func(rows []float64, begin, end int) error {
			if err := checkFloat32(rows, begin, int(a.columns)); err != nil {
				return err
			}
			store[float64, float32](&a, rows, begin, end)
			return nil
		}
	}
	return func(rows []float64, begin, end int) error {
		store[float64, float64](&a, rows, begin, end)
		return nil
	}
}

// storeIntegers writes a whole integer array.
func storeIntegers[From int32 | int64](a array, values []From) {
	rows := 0
	if a.columns > 0 {
		rows = len(values) / int(a.columns)
	}
	switch a.dtype {
	case C.EMAN_INT32:
		store[From, int32](&a, values, 0, rows)
	case C.EMAN_UINT32:
		store[From, uint32](&a, values, 0, rows)
	default:
		store[From, int64](&a, values, 0, rows)
	}
}

// loadIntegers reads a whole integer array with one column and the given rows
// into memory of the arena.
func loadIntegers(arena *memory.Arena, name string, view *C.eman_view, rows int) ([]int64, error) {
	a, err := inputArray(name, view, integers, int64(rows), 1)
	if err != nil {
		return nil, err
	}
	values, err := memory.Make[int64](arena, a.rows)
	if err != nil {
		return nil, err
	}
	integerReader(a)(values, 0, len(values))
	return values, nil
}

// readNumbers copies n numbers from the caller.
func readNumbers(pointer *C.double, n int) []float64 {
	values := make([]float64, n)
	copy(values, unsafe.Slice((*float64)(unsafe.Pointer(pointer)), n))
	return values
}

// writeText copies a text and its NUL to the caller, and tells its length even
// where there is no room for it.
func writeText(content []byte, text *C.char, capacity C.int64_t, length *C.int64_t) error {
	if capacity < 0 {
		return invalidArgument("capacity is %d", capacity)
	}
	*length = C.int64_t(len(content))
	if int64(capacity) <= int64(len(content)) {
		return refuse(C.EMAN_E_BUFFER_TOO_SMALL, "text has room for %d bytes, %d are needed", capacity, len(content)+1)
	}
	buffer := unsafe.Slice((*byte)(unsafe.Pointer(text)), len(content)+1)
	copy(buffer, content)
	buffer[len(content)] = 0
	return nil
}

// writeName copies a name and its NUL, cut to fit, into a field of a struct.
func writeName(field []C.char, name string) {
	buffer := unsafe.Slice((*byte)(unsafe.Pointer(&field[0])), len(field))
	n := copy(buffer[:len(buffer)-1], name)
	buffer[n] = 0
}

// storeReals writes a whole real array.
func storeReals(a array, values []float32) {
	rows := len(values) / int(a.columns)
	if a.dtype == C.EMAN_FLOAT32 {
		store[float32, float32](&a, values, 0, rows)
	} else {
		store[float32, float64](&a, values, 0, rows)
	}
}
