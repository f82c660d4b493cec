package geometry

import (
	"errors"
	"fmt"
)

// What errors of this package match (errors.Is).
var (
	ErrInvalidMesh     = errors.New("invalid mesh")
	ErrInvalidArgument = errors.New("invalid argument")
	// ErrTooLarge: more vertices, faces or edges than 32-bit indices can name.
	ErrTooLarge = errors.New("mesh too large")
)

// InvalidMeshError names the element of a mesh that cannot be used.
type InvalidMeshError struct {
	Element string // "face", "vertex", or "sample" of its surface
	Index   int64
	Problem string
}

func (e *InvalidMeshError) Error() string {
	return fmt.Sprintf("%s %d: %s", e.Element, e.Index, e.Problem)
}

// Is makes every InvalidMeshError match ErrInvalidMesh.
func (e *InvalidMeshError) Is(target error) bool { return target == ErrInvalidMesh }

func badFace(face int64, format string, arguments ...any) error {
	return &InvalidMeshError{Element: "face", Index: face, Problem: fmt.Sprintf(format, arguments...)}
}

func badVertex(vertex int, format string, arguments ...any) error {
	return &InvalidMeshError{Element: "vertex", Index: int64(vertex), Problem: fmt.Sprintf(format, arguments...)}
}

// ArgumentError names an argument that cannot be used.
type ArgumentError struct{ Argument, Problem string }

func (e *ArgumentError) Error() string { return e.Argument + ": " + e.Problem }

// Is makes every ArgumentError match ErrInvalidArgument.
func (e *ArgumentError) Is(target error) bool { return target == ErrInvalidArgument }

func badArgument(argument, format string, arguments ...any) error {
	return &ArgumentError{Argument: argument, Problem: fmt.Sprintf(format, arguments...)}
}
