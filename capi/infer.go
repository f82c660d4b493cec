package main

// #include "shim.h"
import "C"

import (
	"unsafe"

	"libeman/core"
	"libeman/geometry"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
)

// inference is one call of a model on a mesh.
type inference struct {
	environment *environment // the model's
	model       *core.Model[float32]
	input       *core.MeshInput[float32]
	control     *parallel.Control
	scratch     *memory.Arena
}

// rows is the number of rows of the result.
func (i *inference) rows() int { return i.model.Rows(i.input.Vertices()) }

func (i *inference) classes() int { return i.model.Spec().Classes }

// infer prepares a mesh for a model and runs body while the mesh is at rest.
func infer(model *C.eman_model, mesh *C.eman_mesh, control *C.eman_control, message *C.emango_error, body func(i *inference) error) C.eman_status {
	return onModel(model, message, func(m *modelObject) error {
		target, err := open[meshObject](unsafe.Pointer(mesh), kindMesh)
		if err != nil {
			return err
		}
		watch, err := newControl(control)
		if err != nil {
			return err
		}
		return target.Read(func(v *geometry.View) error {
			call := &inference{environment: m.environment, model: m.current(), control: watch.Stage(0.1, 1)}
			return withInput(v, call.model.Spec(), watch.Stage(0, 0.1), func(input *core.MeshInput[float32]) error {
				call.input = input
				call.scratch = m.environment.NewArena("results")
				defer call.scratch.Free()
				return body(call)
			})
		})
	})
}

// layer is a layer of the model, and the graph that it runs on.
func (i *inference) layer(number C.int32_t) (l core.LayerInfo, graph *core.Graph[float32], err error) {
	if l, err = layerOf(i.model, number); err == nil {
		graph, err = i.model.LayerGraph(&i.input.Input, int(number))
	}
	return l, graph, err
}

// graphKey is that of the edge geometry of a mesh among what is kept with it.
type graphKey struct{}

// withInput calls use with what a network sees of a mesh. The edge geometry of
// the mesh, or the samples of its surface, are kept with it.
func withInput(v *geometry.View, spec core.Spec, control *parallel.Control, use func(input *core.MeshInput[float32]) error) error {
	if spec.Surface != nil {
		return geometry.Cached(v, spec.SurfaceKey(), func() (*core.MeshInput[float32], error) {
			return core.NewSurfaceInput[float32](v, spec, 0, control)
		}, use)
	}
	return geometry.Cached(v, graphKey{}, func() (*core.Graph[float32], error) {
		return core.NewMeshGraph[float32](v, control)
	}, func(graph *core.Graph[float32]) error {
		input, err := core.NewMeshInput(v, graph, spec, control)
		if err != nil {
			return err
		}
		defer input.Free()
		return use(input)
	})
}

// reals gives run an array for a real result of rows×columns, and copies it to
// the caller when run has succeeded. A packed float32 array of the caller's is
// filled directly where inPlace allows it.
func (i *inference) reals(name string, out *C.eman_mutable_view, rows, columns int, inPlace bool, run func(values []float32) error) error {
	a, err := outputArray(name, out, reals, int64(rows), int64(columns))
	if err != nil || rows == 0 {
		return err
	}
	if inPlace && a.dtype == C.EMAN_FLOAT32 {
		if values := elementsOf[float32](&a, 0, rows); values != nil {
			return run(values)
		}
	}
	values, err := memory.Make[float32](i.scratch, int64(rows)*int64(columns))
	if err != nil {
		return err
	}
	if err := run(values); err != nil {
		return err
	}
	storeReals(a, values)
	return nil
}

//export emango_model_predict
func emango_model_predict(model *C.eman_model, mesh *C.eman_mesh, control *C.eman_control, labels *C.eman_mutable_view, message *C.emango_error) C.eman_status {
	return infer(model, mesh, control, message, func(i *inference) error {
		a, err := outputArray("labels", labels, integers, int64(i.rows()), 1)
		if err != nil || i.rows() == 0 {
			return err
		}
		values, err := memory.Make[int32](i.scratch, int64(i.rows()))
		if err != nil {
			return err
		}
		if err := i.environment.runner.Predict(i.model, &i.input.Input, i.control, values); err != nil {
			return err
		}
		storeIntegers(a, values)
		return nil
	})
}

//export emango_model_top
func emango_model_top(model *C.eman_model, mesh *C.eman_mesh, k C.int32_t, control *C.eman_control, labels, probabilities *C.eman_mutable_view, message *C.emango_error) C.eman_status {
	return infer(model, mesh, control, message, func(i *inference) error {
		if k < 1 || int(k) > i.classes() {
			return invalidArgument("k is %d, not in [1, %d]", k, i.classes())
		}
		a, err := outputArray("labels", labels, integers, int64(i.rows()), int64(k))
		if err != nil {
			return err
		}
		return i.reals("probabilities", probabilities, i.rows(), int(k), false, func(values []float32) error {
			best, err := memory.Make[int32](i.scratch, int64(len(values)))
			if err != nil {
				return err
			}
			if err := i.environment.runner.TopK(i.model, &i.input.Input, i.control, int(k), best, values); err != nil {
				return err
			}
			storeIntegers(a, best)
			return nil
		})
	})
}

//export emango_model_logits
func emango_model_logits(model *C.eman_model, mesh *C.eman_mesh, control *C.eman_control, logits *C.eman_mutable_view, message *C.emango_error) C.eman_status {
	return infer(model, mesh, control, message, func(i *inference) error {
		return i.reals("logits", logits, i.rows(), i.classes(), true, func(values []float32) error {
			return i.environment.runner.Logits(i.model, &i.input.Input, i.control, values)
		})
	})
}

//export emango_model_attention
func emango_model_attention(model *C.eman_model, mesh *C.eman_mesh, layer C.int32_t, control *C.eman_control, attention *C.eman_mutable_view, message *C.emango_error) C.eman_status {
	return infer(model, mesh, control, message, func(i *inference) error {
		l, graph, err := i.layer(layer)
		if err != nil {
			return err
		}
		if l.Heads == 0 {
			return invalidArgument("layer %d, %s, has no attention", layer, l.Name)
		}
		return i.reals("attention", attention, graph.Edges(), l.Heads, false, func(values []float32) error {
			return i.environment.runner.Attention(i.model, &i.input.Input, i.control, int(layer), values)
		})
	})
}

//export emango_model_features
func emango_model_features(model *C.eman_model, mesh *C.eman_mesh, layer C.int32_t, control *C.eman_control, features *C.eman_mutable_view, message *C.emango_error) C.eman_status {
	return infer(model, mesh, control, message, func(i *inference) error {
		l, graph, err := i.layer(layer)
		if err != nil {
			return err
		}
		width := l.Type.Channels * l.Type.Components()
		return i.reals("features", features, graph.Vertices(), width, false, func(values []float32) error {
			return i.environment.runner.Features(i.model, &i.input.Input, i.control, int(layer), values)
		})
	})
}

//export emango_model_layer_size
func emango_model_layer_size(model *C.eman_model, mesh *C.eman_mesh, layer C.int32_t, control *C.eman_control, rows, edges *C.int64_t, message *C.emango_error) C.eman_status {
	return infer(model, mesh, control, message, func(i *inference) error {
		_, graph, err := i.layer(layer)
		if err != nil {
			return err
		}
		*rows, *edges = C.int64_t(graph.Vertices()), C.int64_t(graph.Edges())
		return nil
	})
}

//export emango_model_layer_neighbors
func emango_model_layer_neighbors(model *C.eman_model, mesh *C.eman_mesh, layer C.int32_t, control *C.eman_control, offsets, indices *C.eman_mutable_view, message *C.emango_error) C.eman_status {
	return infer(model, mesh, control, message, func(i *inference) error {
		_, graph, err := i.layer(layer)
		if err != nil {
			return err
		}
		return writeNeighbors(offsets, indices, graph.Offsets, graph.Neighbors)
	})
}

//export emango_model_samples
func emango_model_samples(model *C.eman_model, mesh *C.eman_mesh, control *C.eman_control, positions, normals *C.eman_mutable_view, message *C.emango_error) C.eman_status {
	return infer(model, mesh, control, message, func(i *inference) error {
		count := i.input.SampleCount()
		if count == 0 {
			return invalidArgument("model: its network runs on the vertices of a mesh, not on samples of a surface")
		}
		if _, err := outputArray("normals", normals, reals, int64(count), 3); err != nil {
			return err
		}
		places, err := memory.Make[float64](i.scratch, 3*int64(count))
		if err != nil {
			return err
		}
		directions, err := memory.Make[float64](i.scratch, 3*int64(count))
		if err != nil {
			return err
		}
		i.input.Samples(places, directions)
		for _, output := range []struct {
			name   string
			view   *C.eman_mutable_view
			values []float64
		}{{"positions", positions, places}, {"normals", normals, directions}} {
			err := writeReals(output.name, output.view, count, 3, func(write geometry.RowWriter) error {
				return write(output.values, 0, count)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}
