package main

// #include "shim.h"
import "C"

import (
	"libeman/core"
	"libeman/geometry"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
)

// lesson is a mesh that a training learns from, as it was when it was added.
type lesson struct {
	mesh  *geometry.Mesh
	arena *memory.Arena // of the labels
	spec  core.Spec
	graph *core.Graph[float32]     // kept as long as there is memory
	input *core.MeshInput[float32] // likewise
	width float64                  // the diagonal of the mesh's bounding box
}

// load gives the training what it sees of the mesh.
func (l *lesson) load(move *core.Motion, control *parallel.Control) (*core.Input[float32], func(), error) {
	if l.spec.Surface != nil {
		return l.sampled(move, control)
	}
	if move != nil && move.Deformation != nil {
		return l.deformed(move, control)
	}
	err := l.mesh.Read(func(v *geometry.View) (err error) {
		if l.graph == nil {
			l.graph, err = core.NewMeshGraph[float32](v, control)
		}
		if err == nil && l.input == nil {
			l.input, err = core.NewMeshInput(v, l.graph, l.spec, control)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if move == nil || l.spec.Features == core.FeaturesRelTan {
		return &l.input.Input, func() {}, nil
	}
	return l.moved(l.mesh, move, l.graph, control)
}

// sampled is what the training sees of the surface, in any shape. Rotation,
// translation and scale change nothing of it.
func (l *lesson) sampled(move *core.Motion, control *parallel.Control) (*core.Input[float32], func(), error) {
	var sampling uint64
	mesh, done := l.mesh, func() {}
	if move != nil {
		sampling = move.Sampling
		if move.Deformation != nil {
			shape, err := l.mesh.Deform(*move.Deformation, control)
			if err != nil {
				return nil, nil, err
			}
			mesh, done = shape, shape.Close
		}
	}
	kept := mesh == l.mesh && sampling == 0
	if kept && l.input != nil {
		return &l.input.Input, done, nil
	}
	defer done()
	var input *core.MeshInput[float32]
	err := mesh.Read(func(v *geometry.View) (err error) {
		input, err = core.NewSurfaceInput[float32](v, l.spec, sampling, control)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if kept {
		l.input = input
		return &input.Input, func() {}, nil
	}
	return &input.Input, input.Free, nil
}

// deformed is what the training sees of the mesh in another shape, which needs
// another graph.
func (l *lesson) deformed(move *core.Motion, control *parallel.Control) (*core.Input[float32], func(), error) {
	shape, err := l.mesh.Deform(*move.Deformation, control)
	if err != nil {
		return nil, nil, err
	}
	var graph *core.Graph[float32] // borrows from the shape
	done := func() {
		if graph != nil {
			graph.Free()
		}
		shape.Close()
	}
	err = shape.Read(func(v *geometry.View) (err error) {
		graph, err = core.NewMeshGraph[float32](v, control)
		return err
	})
	if err != nil {
		done()
		return nil, nil, err
	}
	input, free, err := l.moved(shape, move, graph, control)
	if err != nil {
		done()
		return nil, nil, err
	}
	return input, func() { free(); done() }, nil
}

// moved computes the input features of a mesh that a similarity moves, which
// RelTan does not notice; its graph stays the same.
func (l *lesson) moved(mesh *geometry.Mesh, move *core.Motion, graph *core.Graph[float32], control *parallel.Control) (*core.Input[float32], func(), error) {
	if l.spec.Features != core.FeaturesRelTan {
		s := geometry.Similarity{Rotation: move.Rotation, Scale: move.Scale}
		for i, x := range move.Translation {
			s.Translation[i] = x * l.width
		}
		moved, err := mesh.Transform(s, control)
		if err != nil {
			return nil, nil, err
		}
		defer moved.Close()
		mesh = moved
	}
	var input *core.MeshInput[float32]
	err := mesh.Read(func(v *geometry.View) (err error) {
		input, err = core.NewMeshInput(v, graph, l.spec, control)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return &input.Input, input.Free, nil
}

// forget gives up what can be computed again, and says whether there was any.
func (l *lesson) forget() (freed bool) {
	if l.input != nil {
		l.input.Free()
		l.input, freed = nil, true
	}
	if l.graph != nil {
		l.graph.Free()
		l.graph, freed = nil, true
	}
	return freed
}

// close gives everything back.
func (l *lesson) close() {
	l.forget()
	l.arena.Free()
	if l.mesh != nil {
		l.mesh.Close()
	}
}

// readLabels copies the caller's labels to memory of the arena.
func readLabels(arena *memory.Arena, labels *C.eman_view, rows int) ([]int32, error) {
	a, err := inputArray("labels", labels, integers, int64(rows), 1)
	if err != nil {
		return nil, err
	}
	known, err := memory.Make[int32](arena, a.rows)
	if err != nil {
		return nil, err
	}
	read := integerReader(a)
	var part [256]int64
	for begin := 0; begin < len(known); begin += len(part) {
		given := part[:min(len(part), len(known)-begin)]
		read(given, begin, begin+len(given))
		for i, label := range given {
			if known[begin+i] = int32(label); int64(known[begin+i]) != label {
				return nil, invalidArgument("labels: label %d is %d, which is no class", begin+i, label)
			}
		}
	}
	return known, nil
}
