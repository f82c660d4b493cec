package main

// #include "shim.h"
import "C"

import (
	"math"
	"math/bits"
	"strings"
	"unicode/utf8"
	"unsafe"

	"libeman/core"
)

const (
	maxText    = 1 << 24 // bytes of a text of the caller's
	maxTensors = 1 << 20
	maxRank    = 8
)

// readText copies a NUL-terminated UTF-8 text of the caller's.
func readText(name string, text *C.char) (string, error) {
	start := unsafe.Pointer(text)
	for n := range maxText {
		if *(*byte)(unsafe.Add(start, n)) != 0 {
			continue
		}
		result := strings.Clone(unsafe.String((*byte)(start), n))
		if !utf8.ValidString(result) {
			return "", invalidArgument("%s is not valid UTF-8", name)
		}
		return result, nil
	}
	return "", invalidArgument("%s has no end within %d bytes", name, maxText)
}

// tensorLayout is eman_tensor with its pointers as numbers.
type tensorLayout struct {
	name, data, shape uintptr
	rank, dtype       int32
}

var _ = [1]struct{}{}[unsafe.Sizeof(tensorLayout{})-C.sizeof_eman_tensor]

// readTensors copies the caller's tensors as float32.
func readTensors(pointer *C.eman_tensor, count C.int32_t) ([]core.Parameter[float32], error) {
	if count < 0 || count > maxTensors {
		return nil, invalidArgument("count is %d, not in [0, %d]", count, maxTensors)
	}
	var tensors []core.Parameter[float32]
	for i := range int(count) {
		t := *(*tensorLayout)(unsafe.Add(unsafe.Pointer(pointer), i*C.sizeof_eman_tensor))
		tensor, err := t.read(i)
		if err != nil {
			return nil, err
		}
		tensors = append(tensors, tensor)
	}
	return tensors, nil
}

func (t *tensorLayout) read(i int) (p core.Parameter[float32], err error) {
	name, err := address("tensors.name", t.name)
	if err != nil {
		return p, err
	}
	if p.Name, err = readText("tensors.name", (*C.char)(name)); err != nil {
		return p, err
	}
	if p.Shape, err = t.readShape(p.Name); err != nil {
		return p, err
	}
	size := uint64(1)
	for _, n := range p.Shape {
		hi, lo := bits.Mul64(size, uint64(n))
		if hi != 0 || lo > math.MaxInt32 {
			return p, invalidArgument("tensor %s: its shape %v has too many elements", p.Name, p.Shape)
		}
		size = lo
	}
	view := viewLayout{data: t.data, rows: int64(size), columns: 1, dtype: t.dtype}
	a, err := newArray("tensor "+p.Name, &view, reals)
	if err != nil || size == 0 {
		return p, err
	}
	// Read a last element first: a fault must come before the allocation.
	_ = *(*byte)(a.element(int64(size)-1, 0))
	p.Data = make([]float32, size)
	if a.dtype == C.EMAN_FLOAT32 {
		load[float32](&a, p.Data, 0, int(size))
	} else {
		load[float64](&a, p.Data, 0, int(size))
	}
	return p, nil
}

func (t *tensorLayout) readShape(name string) ([]int, error) {
	if t.rank < 0 || t.rank > maxRank {
		return nil, invalidArgument("tensor %s: its rank is %d, not in [0, %d]", name, t.rank, maxRank)
	}
	shape := make([]int, t.rank)
	if t.rank == 0 {
		return shape, nil
	}
	pointer, err := address("tensor "+name+": shape", t.shape)
	if err != nil {
		return nil, err
	}
	for i := range shape {
		n := *(*int64)(unsafe.Add(pointer, 8*i))
		if n < 0 || n > math.MaxInt32 {
			return nil, invalidArgument("tensor %s: size %d of its shape is %d", name, i, n)
		}
		shape[i] = int(n)
	}
	return shape, nil
}
