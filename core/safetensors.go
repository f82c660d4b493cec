package core

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// The safetensors format: eight bytes with the length of the header
// (little-endian), the header, a JSON object, and the data of the tensors. The
// header maps each tensor's name to its type, shape and place in the data, and
// "__metadata__" to strings. The tensors fill the data without gaps.

const (
	metadataKey = "__metadata__"
	// maximalHeader is what the reference implementation accepts.
	maximalHeader = 100_000_000
)

// tensorFile is the content of a file.
type tensorFile struct {
	metadata map[string]string
	tensors  []Parameter[float32] // in the order of their data
}

// tensorHeader is the description of a tensor in the header.
type tensorHeader struct {
	DType   string  `json:"dtype"`
	Shape   []int64 `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
	name    string
}

// encode writes the file's bytes; tensors keep their order.
func (f *tensorFile) encode() []byte {
	header := bytes.NewBufferString("{")
	writeJSON(header, metadataKey, f.metadata)
	end := int64(0)
	for _, tensor := range f.tensors {
		begin := end
		end += 4 * int64(len(tensor.Data))
		header.WriteByte(',')
		shape := make([]int64, len(tensor.Shape))
		for i, n := range tensor.Shape {
			shape[i] = int64(n)
		}
		writeJSON(header, tensor.Name, tensorHeader{DType: "F32", Shape: shape, Offsets: []int64{begin, end}})
	}
	header.WriteByte('}')
	for header.Len()%8 != 0 { // so that the data is aligned
		header.WriteByte(' ')
	}
	content := make([]byte, 8, 8+int64(header.Len())+end)
	binary.LittleEndian.PutUint64(content, uint64(header.Len()))
	content = append(content, header.Bytes()...)
	for _, tensor := range f.tensors {
		for _, value := range tensor.Data {
			content = binary.LittleEndian.AppendUint32(content, math.Float32bits(value))
		}
	}
	return content
}

// writeJSON writes one member of an object.
func writeJSON(to *bytes.Buffer, key string, value any) {
	name, err := json.Marshal(key)
	if err == nil {
		var text []byte
		text, err = json.Marshal(value)
		fmt.Fprintf(to, "%s:%s", name, text)
	}
	if err != nil {
		panic(err) // strings and integers always marshal
	}
}

// decodeTensors reads a file. It believes nothing: every length, offset and
// shape is checked before use.
func decodeTensors(content []byte) (*tensorFile, error) {
	if len(content) < 8 {
		return nil, invalidModel("file", "%d bytes are too few for a header", len(content))
	}
	length := binary.LittleEndian.Uint64(content)
	if length > maximalHeader || length > uint64(len(content)-8) {
		return nil, invalidModel("header", "its length of %d bytes is more than the file has", length)
	}
	text, data := content[8:8+length], content[8+length:]
	members, err := objectMembers(text)
	if err != nil {
		return nil, invalidModel("header", "%v", err)
	}
	file := &tensorFile{metadata: map[string]string{}}
	var headers []tensorHeader
	for _, member := range members {
		if member.name == metadataKey {
			if err := json.Unmarshal(member.value, &file.metadata); err != nil {
				return nil, invalidModel(metadataKey, "%v", jsonError(err))
			}
			continue
		}
		header := tensorHeader{name: member.name}
		if err := decodeStrictly(member.value, &header); err != nil {
			return nil, invalidModel(member.name, "%v", jsonError(err))
		}
		headers = append(headers, header)
	}
	return file, file.read(headers, data)
}

// member is one member of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// objectMembers splits a JSON object, and refuses a name that is there twice.
func objectMembers(text []byte) (members []member, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, fmt.Errorf("it is not a JSON object")
	}
	seen := map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, jsonError(err)
		}
		m := member{name: token.(string)} // the decoder gives nothing else here
		if seen[m.name] {
			return nil, fmt.Errorf("%q is there twice", m.name)
		}
		seen[m.name] = true
		if err := decoder.Decode(&m.value); err != nil {
			return nil, jsonError(err)
		}
		members = append(members, m)
	}
	if _, err := decoder.Token(); err != nil {
		return nil, jsonError(err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fmt.Errorf("there is text after the object")
	}
	return members, nil
}

// read takes the tensors from the data, which they must fill exactly.
func (f *tensorFile) read(headers []tensorHeader, data []byte) error {
	for _, header := range headers {
		if err := header.check(int64(len(data))); err != nil {
			return err
		}
	}
	slices.SortStableFunc(headers, func(a, b tensorHeader) int {
		if a.Offsets[0] != b.Offsets[0] {
			return int(max(-1, min(1, a.Offsets[0]-b.Offsets[0])))
		}
		return int(max(-1, min(1, a.Offsets[1]-b.Offsets[1])))
	})
	end := int64(0)
	for i, header := range headers {
		switch begin := header.Offsets[0]; {
		case begin < end:
			return invalidModel(header.name, "its data overlaps that of %s", headers[i-1].name)
		case begin > end:
			return invalidModel(header.name, "%d bytes before its data belong to no tensor", begin-end)
		}
		end = header.Offsets[1]
	}
	if end != int64(len(data)) {
		return invalidModel("file", "%d bytes at its end belong to no tensor", int64(len(data))-end)
	}
	for _, header := range headers {
		f.tensors = append(f.tensors, header.tensor(data))
	}
	return nil
}

// check looks at one description, for data of the given length.
func (h tensorHeader) check(length int64) error {
	if h.DType != "F32" {
		return invalidModel(h.name, "its type is %q, not F32", h.DType)
	}
	if len(h.Offsets) != 2 {
		return invalidModel(h.name, "%d data offsets, not 2", len(h.Offsets))
	}
	begin, end := h.Offsets[0], h.Offsets[1]
	if begin < 0 || end < begin || end > length {
		return invalidModel(h.name, "its data [%d, %d) is not within the %d bytes of data", begin, end, length)
	}
	count := int64(1)
	for _, n := range h.Shape {
		if n < 0 || n > 0 && count > length/n {
			return invalidModel(h.name, "its shape %v does not fit the file", h.Shape)
		}
		count *= n
	}
	if 4*count != end-begin {
		return invalidModel(h.name, "its shape %v needs %d bytes, its data has %d", h.Shape, 4*count, end-begin)
	}
	return nil
}

// tensor reads the numbers of a checked description.
func (h tensorHeader) tensor(data []byte) Parameter[float32] {
	tensor := Parameter[float32]{Name: h.name, Data: make([]float32, (h.Offsets[1]-h.Offsets[0])/4)}
	for _, n := range h.Shape {
		tensor.Shape = append(tensor.Shape, int(n))
	}
	for i := range tensor.Data {
		tensor.Data[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[h.Offsets[0]+4*int64(i):]))
	}
	return tensor
}
