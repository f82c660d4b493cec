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
	maxText    = 1 << 20 // bytes of a text of the caller's
	maxName    = 1 << 10 // bytes of a tensor's name
	maxTensors = 1 << 16
	maxRank    = 8
)

// readText copies a NUL-terminated UTF-8 text of the caller's.
func readText(name string, text *C.char) (string, error) { return readLimited(name, text, maxText) }

func readLimited(name string, text *C.char, limit int) (string, error) {
	start := unsafe.Pointer(text)
	for n := range limit {
		if *(*byte)(unsafe.Add(start, n)) != 0 {
			continue
		}
		result := strings.Clone(unsafe.String((*byte)(start), n))
		if !utf8.ValidString(result) {
			return "", invalidArgument("%s is not valid UTF-8", name)
		}
		return result, nil
	}
	return "", invalidArgument("%s has no end within %d bytes", name, limit)
}

// tensorLayout is eman_tensor with its pointers as numbers.
type tensorLayout struct {
	name, data, shape uintptr
	rank, dtype       int32
}

var _ = [1]struct{}{}[unsafe.Sizeof(tensorLayout{})-C.sizeof_eman_tensor]

// readTensors copies the caller's tensors as float32, when their names and
// shapes have been read and there is memory for all.
func readTensors(env *environment, pointer *C.eman_tensor, count C.int32_t) ([]core.Parameter[float32], error) {
	if count < 0 || count > maxTensors {
		return nil, invalidArgument("count is %d, not in [0, %d]", count, maxTensors)
	}
	tensors := make([]core.Parameter[float32], count)
	arrays := make([]array, count)
	seen := map[string]bool{}
	total := int64(0)
	for i := range tensors {
		t := *(*tensorLayout)(unsafe.Add(unsafe.Pointer(pointer), i*C.sizeof_eman_tensor))
		var err error
		if tensors[i], arrays[i], err = t.describe(); err != nil {
			return nil, err
		}
		if name := tensors[i].Name; seen[name] {
			return nil, refuse(C.EMAN_E_INVALID_MODEL, "%s: the tensor is there twice", name)
		}
		seen[tensors[i].Name] = true
		total += arrays[i].rows
	}
	if err := env.admit(4 * total); err != nil {
		return nil, err
	}
	for i, a := range arrays {
		tensors[i].Data = make([]float32, a.rows)
		if a.dtype == C.EMAN_FLOAT32 {
			load[float32](&a, tensors[i].Data, 0, int(a.rows))
		} else {
			load[float64](&a, tensors[i].Data, 0, int(a.rows))
		}
	}
	return tensors, nil
}

// describe reads a tensor's name and shape, and where its elements are.
func (t *tensorLayout) describe() (p core.Parameter[float32], a array, err error) {
	name, err := address("tensors.name", t.name)
	if err != nil {
		return p, a, err
	}
	if p.Name, err = readLimited("tensors.name", (*C.char)(name), maxName); err != nil {
		return p, a, err
	}
	if p.Shape, err = t.readShape(p.Name); err != nil {
		return p, a, err
	}
	size := uint64(1)
	for _, n := range p.Shape {
		hi, lo := bits.Mul64(size, uint64(n))
		if hi != 0 || lo > math.MaxInt32 {
			return p, a, invalidArgument("tensor %s: its shape %v has too many elements", p.Name, p.Shape)
		}
		size = lo
	}
	view := viewLayout{data: t.data, rows: int64(size), columns: 1, dtype: t.dtype}
	a, err = newArray("tensor "+p.Name, &view, reals)
	return p, a, err
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
