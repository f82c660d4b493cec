package core

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// smallModel has every kind of tensor and a short file.
func smallModel(t testing.TB) *Model[float32] {
	return testModel[float32](t, func(s *Spec) {
		s.Classes, s.Labels = 2, []string{"links", "rechts Ω"}
		s.Hidden, s.Width, s.Blocks, s.MaxOrder, s.Nonlinearity = 3, 2, 2, 1, NonlinearityGate
	})
}

func TestSavedModelsLoadTheSame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	for _, change := range []func(*Spec){
		nil,
		func(s *Spec) { s.Labels = make([]string, s.Classes) },
		func(s *Spec) { s.HeadForm, s.Heads, s.BandLimit = HeadProjected, 2, nil },
		func(s *Spec) { *s, _ = NewSpec(PresetAuthors, KindGEM) },
		func(s *Spec) { *s, _ = NewSpec(PresetPaper, KindSpiral) },
		func(s *Spec) { *s, _ = NewSpec(PresetSurface, KindGEM) },
	} {
		m := testModel[float32](t, change)
		if err := m.Save(path); err != nil {
			t.Fatal(err)
		}
		loaded, err := Load[float32](path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(loaded.Encode(), m.Encode()) || !bytes.Equal(loaded.Spec().JSON(), m.Spec().JSON()) {
			t.Errorf("%s: the loaded model is another one", m.Spec().JSON())
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("files left behind: %v, %v", entries, err)
	}
}

func TestSavingKeepsTheOldFileOnFailure(t *testing.T) {
	folder := t.TempDir()
	if err := smallModel(t).Save(filepath.Join(folder, "missing", "model")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("into a missing folder: %v", err)
	}
	// A folder of that name cannot be replaced by a file.
	path := filepath.Join(folder, "model")
	if err := os.MkdirAll(filepath.Join(path, "kept"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := smallModel(t).Save(path); err == nil {
		t.Error("a folder was replaced")
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("files left behind: %v, %v", entries, err)
	}
}

func TestLoadingWhatIsNoModel(t *testing.T) {
	if _, err := Load[float32](filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	path := filepath.Join(t.TempDir(), "huge")
	file, err := os.Create(path)
	if err == nil {
		err = errors.Join(file.Truncate(maximalFile+1), file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load[float32](path, nil); !errors.Is(err, ErrInvalidModel) {
		t.Errorf("a huge file: %v", err)
	}
}

// split takes a file apart into its header's members and its data.
func split(t testing.TB, content []byte) (header map[string]json.RawMessage, data []byte) {
	t.Helper()
	length := binary.LittleEndian.Uint64(content)
	if err := json.Unmarshal(content[8:8+length], &header); err != nil {
		t.Fatal(err)
	}
	return header, content[8+length:]
}

// join is the inverse of split for any header text.
func join(header string, data []byte) []byte {
	content := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(content, header...), data...)
}

func joinMembers(t testing.TB, header map[string]json.RawMessage, data []byte) []byte {
	t.Helper()
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	return join(string(text), data)
}

func TestTruncatedFilesAreRefused(t *testing.T) {
	content := smallModel(t).Encode()
	for n := range content {
		if _, err := Decode[float32](content[:n], nil); !errors.Is(err, ErrInvalidModel) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
	if _, err := Decode[float32](append(slices.Clone(content), 0), nil); !errors.Is(err, ErrInvalidModel) {
		t.Errorf("a byte too many: %v", err)
	}
}

func TestBadFilesAreRefusedByName(t *testing.T) {
	content := smallModel(t).Encode()
	const tensor = "blocks.0.conv1.value"
	edited := func(edit func(header map[string]json.RawMessage, data []byte)) []byte {
		header, data := split(t, content)
		data = slices.Clone(data)
		edit(header, data)
		return joinMembers(t, header, data)
	}
	replaced := func(name, old, new string) []byte {
		return edited(func(header map[string]json.RawMessage, _ []byte) {
			text := strings.Replace(string(header[name]), old, new, 1)
			if text == string(header[name]) {
				t.Fatalf("%s has no %q: %s", name, old, text)
			}
			header[name] = json.RawMessage(text)
		})
	}
	withBits := func(value float32) []byte {
		return edited(func(_ map[string]json.RawMessage, data []byte) {
			binary.LittleEndian.PutUint32(data, math.Float32bits(value))
		})
	}
	huge := slices.Clone(content)
	binary.LittleEndian.PutUint64(huge, 4<<30)
	negative := slices.Clone(content)
	binary.LittleEndian.PutUint64(negative, math.MaxUint64)

	for name, c := range map[string]struct {
		content []byte
		subject string // what the message begins with
	}{
		"a header of 4 GB":          {huge, "header: "},
		"a negative header":         {negative, "header: "},
		"no JSON":                   {join("}", nil), "header: "},
		"an array":                  {join("[]", nil), "header: "},
		"text behind the header":    {join("{} {}", nil), "header: "},
		"an empty header":           {join("{}", nil), "format: "},
		"a name twice":              {join(`{"a":{},"a":{}}`, nil), `header: "a" is there twice`},
		"another type":              {replaced(tensor, "F32", "F16"), tensor + ": its type"},
		"an unknown member":         {replaced(tensor, `"dtype"`, `"stride":1,"dtype"`), tensor + ": "},
		"one offset":                {replaced(tensor, "[0,", "["), tensor + ": 1 data offsets"},
		"a negative offset":         {replaced(tensor, "[0,", "[-4,"), tensor + ": its data"},
		"an offset behind the end":  {replaced(tensor, "[0,", "[999999999,"), tensor + ": its data"},
		"an offset beyond int64":    {replaced(tensor, "[0,", "[99999999999999999999,"), tensor + ": "},
		"a negative shape":          {replaced(tensor, `"shape":[`, `"shape":[-1,`), tensor + ": its shape"},
		"an overflowing shape":      {replaced(tensor, `"shape":[`, `"shape":[4611686018427387904,4,`), tensor + ": its shape"},
		"a larger shape":            {replaced(tensor, `"shape":[`, `"shape":[2,`), tensor + ": its shape"},
		"the shape of another":      {replaced(tensor, `"shape":[9,`, `"shape":[3,3,`), tensor + ": its shape"},
		"NaN":                       {withBits(float32(math.NaN())), tensor + ": number 0 is NaN"},
		"infinity":                  {withBits(float32(math.Inf(1))), tensor + ": number 0 is +Inf"},
		"another format":            {replaced(metadataKey, `"format":"eman"`, `"format":"pt"`), "format: "},
		"a later version":           {replaced(metadataKey, `"format_version":"1"`, `"format_version":"2"`), "format_version: "},
		"no description":            {replaced(metadataKey, `"model":`, `"other":`), "description: "},
		"metadata that are numbers": {replaced(metadataKey, `"eman"`, `1`), "__metadata__: "},
		"a missing label":           {replaced(metadataKey, `[\"links\",`, `[`), "labels: 1 names"},
		"labels that are no list":   {replaced(metadataKey, `[\"links\",\"rechts Ω\"]`, `{}`), "labels: "},
		"another number of classes": {replaced(metadataKey, `\"classes\":2`, `\"classes\":3`), "labels: 2 names"},
		"another width":             {replaced(metadataKey, `\"width\":2`, `\"width\":4`), tensor + ": its shape"},
		"a field that is unknown":   {replaced(metadataKey, `\"width\":2`, `\"width\":2,\"depth\":1`), `description: unknown field "depth"`},
	} {
		_, err := Decode[float32](c.content, nil)
		if !errors.Is(err, ErrInvalidModel) || !strings.HasPrefix(err.Error(), c.subject) {
			t.Errorf("%s: %v, not %q", name, err, c.subject)
		}
	}
}

func TestBadFilesOfSurfacesAreRefusedByName(t *testing.T) {
	content := surfaceModel[float32](t, KindGEM, 2, nil).Encode()
	for edit, message := range map[[2]string]string{
		{`\"points\":[1024,512]`, `\"points\":[512,512]`}:          "surface.points: level 1",
		{`\"points\":[1024,512]`, `\"points\":[1024,512,8]`}:       "surface.blocks: 3 numbers",
		{`\"points\":[1024,512]`, `\"points\":null`}:               "description: surface: points",
		{`\"scales\":[24]`, `\"scales\":[24,48]`}:                  "levels.0.down.0.conv1.value: its shape",
		{`\"blocks\":[1,2,1]`, `\"blocks\":[1,2,2]`}:               "levels.0.up.0.conv2.value: its shape",
		{`\"blocks\":[1,2,1]`, `\"blocks\":[1,3,1]`}:               "levels.1.down.2.conv1.value: the tensor is missing",
		{`\"blocks\":[1,2,1]`, `\"blocks\":[1,1,1]`}:               "levels.1.down.1.conv1.value: the network has no such tensor",
		{`\"neighbors\":24`, `\"neighbors\":99999999999999999999`}: "description: surface: neighbors",
		{`\"neighbors\":24`, `\"near\":24`}:                        `description: surface: unknown field "near"`,
	} {
		header, data := split(t, content)
		text := strings.Replace(string(header[metadataKey]), edit[0], edit[1], 1)
		if text == string(header[metadataKey]) {
			t.Fatalf("no %s in %s", edit[0], text)
		}
		header[metadataKey] = json.RawMessage(text)
		_, err := Decode[float32](joinMembers(t, header, data), nil)
		if !errors.Is(err, ErrInvalidModel) || !strings.HasPrefix(err.Error(), message) {
			t.Errorf("%s: %v, not %q", edit[1], err, message)
		}
	}
}

func TestTensorsThatOverlapLackOrAreTooMany(t *testing.T) {
	content := smallModel(t).Encode()
	expect := func(name string, edit func(header map[string]json.RawMessage, data []byte) []byte, messages ...string) {
		t.Helper()
		header, data := split(t, content)
		data = edit(header, data)
		_, err := Decode[float32](joinMembers(t, header, data), nil)
		if !errors.Is(err, ErrInvalidModel) || !slices.ContainsFunc(messages, func(m string) bool { return strings.Contains(err.Error(), m) }) {
			t.Errorf("%s: %v", name, err)
		}
	}
	expect("overlapping", func(header map[string]json.RawMessage, data []byte) []byte {
		header["extra"] = json.RawMessage(`{"dtype":"F32","shape":[1],"data_offsets":[4,8]}`)
		return data
	}, "extra: its data overlaps that of blocks.0.conv1.value")
	expect("a gap", func(header map[string]json.RawMessage, data []byte) []byte {
		delete(header, "blocks.0.conv1.value")
		return data
	}, "bytes before its data belong to no tensor")
	expect("an unknown tensor", func(header map[string]json.RawMessage, data []byte) []byte {
		header["extra"] = json.RawMessage(`{"dtype":"F32","shape":[0],"data_offsets":[0,0]}`)
		return data
	}, "extra: the network has no such tensor")
	expect("a missing tensor", func(header map[string]json.RawMessage, _ []byte) []byte {
		for name := range header {
			if name != metadataKey {
				delete(header, name)
			}
		}
		return nil
	}, "blocks.0.conv1.value: the tensor is missing")
}

// Whatever the bytes, reading ends with a model that writes a readable file, or
// with ErrInvalidModel.
func FuzzDecode(f *testing.F) {
	content := smallModel(f).Encode()
	f.Add(content)
	f.Add(content[:len(content)/2])
	f.Add(surfaceModel[float32](f, KindGEM, 2, nil).Encode())
	f.Add(join(`{"__metadata__":{"format":"eman"}}`, nil))
	f.Add(join(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, make([]byte, 8)))
	f.Fuzz(func(t *testing.T, content []byte) {
		m, err := Decode[float32](content, nil)
		if err != nil {
			if !errors.Is(err, ErrInvalidModel) {
				t.Fatal(err)
			}
			return
		}
		again, err := Decode[float32](m.Encode(), nil)
		if err != nil || !bytes.Equal(again.Encode(), m.Encode()) {
			t.Fatalf("a model that was read does not survive writing: %v", err)
		}
	})
}
