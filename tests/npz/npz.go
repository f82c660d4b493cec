// Package npz reads the arrays of numpy's .npz files, as far as the reference
// vectors need it: numbers in C order, little-endian.
package npz

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Array is an array of numbers, whatever their type in the file.
type Array struct {
	Shape []int
	Data  []float64
}

// File holds arrays by name. Arrays that are not of numbers are left out.
type File map[string]Array

// Read reads a whole file.
func Read(path string) (File, error) {
	archive, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	file := File{}
	for _, entry := range archive.File {
		name := strings.TrimSuffix(entry.Name, ".npy")
		array, isNumeric, err := readEntry(entry)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, name, err)
		}
		if isNumeric {
			file[name] = array
		}
	}
	return file, nil
}

func readEntry(entry *zip.File) (array Array, isNumeric bool, err error) {
	stream, err := entry.Open()
	if err != nil {
		return Array{}, false, err
	}
	defer stream.Close()
	content, err := io.ReadAll(stream)
	if err != nil {
		return Array{}, false, err
	}
	return parse(content)
}

var header = regexp.MustCompile(`'descr': '([^']*)', 'fortran_order': (True|False), 'shape': \(([^)]*)\)`)

// parse reads the .npy format: a magic string, the version, the length of the
// header, the header as a Python dict, the numbers.
func parse(content []byte) (array Array, isNumeric bool, err error) {
	if len(content) < 10 || string(content[:6]) != "\x93NUMPY" || content[6] != 1 {
		return Array{}, false, fmt.Errorf("not a .npy file of version 1")
	}
	data := 10 + int(binary.LittleEndian.Uint16(content[8:]))
	fields := header.FindSubmatch(content[10:data])
	if fields == nil || string(fields[2]) != "False" {
		return Array{}, false, fmt.Errorf("header %q", content[10:data])
	}
	count := 1
	for _, dimension := range strings.FieldsFunc(string(fields[3]), func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.Atoi(dimension)
		if err != nil {
			return Array{}, false, err
		}
		array.Shape = append(array.Shape, n)
		count *= n
	}
	number, size := decoder(string(fields[1]))
	if number == nil {
		return Array{}, false, nil
	}
	array.Data = make([]float64, count)
	for i := range array.Data {
		array.Data[i] = number(content[data+i*size:])
	}
	return array, true, nil
}

// decoder reads one number of a numpy type; nil for types that are not numbers.
func decoder(descr string) (number func([]byte) float64, size int) {
	order := binary.LittleEndian
	switch descr {
	case "<f8":
		return func(b []byte) float64 { return math.Float64frombits(order.Uint64(b)) }, 8
	case "<f4":
		return func(b []byte) float64 { return float64(math.Float32frombits(order.Uint32(b))) }, 4
	case "<i8":
		return func(b []byte) float64 { return float64(int64(order.Uint64(b))) }, 8
	case "<i4":
		return func(b []byte) float64 { return float64(int32(order.Uint32(b))) }, 4
	case "|i1":
		return func(b []byte) float64 { return float64(int8(b[0])) }, 1
	}
	return nil, 0
}

// Float32 is the data rounded to float32.
func (a Array) Float32() []float32 {
	narrow := make([]float32, len(a.Data))
	for i, value := range a.Data {
		narrow[i] = float32(value)
	}
	return narrow
}

// Int32 is the data as integers.
func (a Array) Int32() []int32 {
	integers := make([]int32, len(a.Data))
	for i, value := range a.Data {
		integers[i] = int32(value)
	}
	return integers
}
