package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"libeman/simd"
)

// A model file is a safetensors file with float32 tensors, the parameters by
// name, and the metadata
//
//	format          "eman"
//	format_version  "1"
//	model           the description, JSON (Spec)
//	labels          the names of the classes, a JSON array; absent without names
const (
	formatName    = "eman"
	formatVersion = "1"
)

// maximalFile is the size of the largest file that can hold a model, or a
// checkpoint with four numbers for each of its parameters.
const maximalFile = 8 + maximalHeader + 16*maximalParameters

// Encode returns the model as a file's content. Parameters are stored as
// float32.
func (m *Model[T]) Encode() []byte { return m.tensorFile(formatName).encode() }

// tensorFile is the model as a file of a format.
func (m *Model[T]) tensorFile(format string) *tensorFile {
	spec := m.spec
	labels := spec.Labels
	spec.Labels = nil
	file := &tensorFile{metadata: map[string]string{
		"format": format, "format_version": formatVersion, "model": string(spec.JSON()),
	}}
	if labels != nil {
		text, err := json.Marshal(labels)
		if err != nil {
			panic(err) // strings always marshal
		}
		file.metadata["labels"] = string(text)
	}
	for _, p := range m.parameters {
		file.add(p.Name, p.Shape, narrowed(p.Data))
	}
	return file
}

// Admit says whether so many bytes of memory may be taken, before they are. nil
// admits everything.
type Admit func(bytes int64) error

func (a Admit) check(bytes int64) error {
	if a == nil {
		return nil
	}
	return a(bytes)
}

// Decode reads a model from a file's content. Nothing of it is believed; an
// error names the tensor or the field that is wrong.
func Decode[T simd.Float](content []byte, admit Admit) (*Model[T], error) {
	file, err := decodeTensors(content)
	if err != nil {
		return nil, err
	}
	spec, err := file.spec(formatName)
	if err != nil {
		return nil, err
	}
	if err := admit.check(spec.MemoryBytes()); err != nil {
		return nil, err
	}
	var parameters []Parameter[T]
	for _, tensor := range file.tensors {
		data := make([]T, len(tensor.Data))
		for i, value := range tensor.Data {
			data[i] = T(value)
		}
		parameters = append(parameters, Parameter[T]{tensor.Name, tensor.Shape, data})
	}
	return NewModelFrom(spec, parameters)
}

// spec reads the description from the metadata of a file of a format.
func (f *tensorFile) spec(want string) (spec Spec, err error) {
	if format := f.metadata["format"]; format != want {
		return spec, invalidModel("format", "it is %q, not %q", format, want)
	}
	if version := f.metadata["format_version"]; version != formatVersion {
		return spec, invalidModel("format_version", "%q; this library reads version %s", version, formatVersion)
	}
	if spec, err = ParseSpec([]byte(f.metadata["model"])); err != nil {
		return spec, err
	}
	if text, given := f.metadata["labels"]; given {
		if spec.Labels != nil {
			return spec, invalidModel("labels", "they are there twice")
		}
		if err := json.Unmarshal([]byte(text), &spec.Labels); err != nil {
			return spec, invalidModel("labels", "%v", jsonError(err))
		}
	}
	return spec, spec.Validate()
}

// Load reads a model from a file.
func Load[T simd.Float](path string, admit Admit) (*Model[T], error) {
	content, err := readRegular(path, admit)
	if err != nil {
		return nil, err
	}
	m, err := Decode[T](content, admit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// readRegular reads a regular file: a device may have no end, and a pipe no
// beginning.
func readRegular(path string, admit Admit) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular("open", path)
	}
	if info.Size() > maximalFile {
		return nil, invalidModel(path, "%d bytes are more than any model has", info.Size())
	}
	if err := admit.check(info.Size()); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(file, maximalFile))
}

func notRegular(operation, path string) error {
	return &fs.PathError{Op: operation, Path: path, Err: errors.New("it is not a regular file")}
}

// Save writes the model to a file, which at every moment is the old one or the
// new one as a whole. A symbolic link is followed, and the permissions of an
// old file stay.
func (m *Model[T]) Save(path string) error { return saveFile(path, m.Encode()) }

func saveFile(path string, content []byte) error {
	if err := writeAtomically(path, content); err != nil {
		return fmt.Errorf("saving %s: %w", path, err)
	}
	return nil
}

// writeAtomically writes a temporary file beside the target, makes sure that it
// is on the disk, and gives it the target's name.
func writeAtomically(path string, content []byte) (err error) {
	target, mode, err := targetOf(path)
	if err != nil {
		return err
	}
	temporary, err := createBeside(target)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(temporary.Name())
		}
	}()
	_, err = temporary.Write(content)
	if err == nil && mode != 0 {
		err = temporary.Chmod(mode)
	}
	if err == nil {
		err = temporary.Sync()
	}
	if closing := temporary.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	if err = os.Rename(temporary.Name(), target); err != nil {
		return err
	}
	syncFolder(filepath.Dir(target))
	return nil
}

// targetOf follows links and returns the permissions of the file that is there,
// 0 where none is.
func targetOf(path string) (target string, mode fs.FileMode, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	if !info.Mode().IsRegular() {
		return "", 0, notRegular("save", path)
	}
	target, err = filepath.EvalSymlinks(path)
	return target, info.Mode().Perm(), err
}

// createBeside creates a new file in the folder of path, with the permissions
// that a new file has (os.CreateTemp would give it to the owner alone).
func createBeside(path string) (*os.File, error) {
	for i := range 1000 {
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".eman-%d-%d.tmp", os.Getpid(), i))
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			return file, err
		}
	}
	return nil, &fs.PathError{Op: "save", Path: path, Err: errors.New("too many temporary files beside it")}
}

// syncFolder asks for a new name to be on the disk. Not every system can do
// that for a folder, and the file itself is safe in any case, so a refusal is
// no error.
func syncFolder(path string) {
	if folder, err := os.Open(path); err == nil {
		_ = folder.Sync()
		folder.Close()
	}
}
