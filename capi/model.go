package main

// #include "shim.h"
import "C"

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"libeman/core"
	"libeman/geometry/memory"
)

// modelObject is a model and the context that it was made with. The model
// itself is immutable; setting parameters puts another in its place.
type modelObject struct {
	environment *environment
	model       atomic.Pointer[core.Model[float32]]
	setting     sync.Mutex // held while parameters are being set
}

func (m *modelObject) current() *core.Model[float32] { return m.model.Load() }

// admit refuses memory for a model that the context's limit or the system does
// not have. Models lie in Go's memory, which cannot refuse: so the system is
// asked first.
func (e *environment) admit(bytes int64) error {
	if err := e.Memory.Check("a model", bytes); err != nil {
		return err
	}
	trial := mallocSource{}.Allocate(bytes)
	if trial == nil {
		return &memory.LimitError{Purpose: "a model", Requested: bytes}
	}
	mallocSource{}.Free(trial, bytes)
	return nil
}

func (m *modelObject) home() *environment { return m.environment }

func (m *modelObject) free() { m.environment.release() }

// makeModel builds a model in a context and hands it out.
func makeModel(context *C.eman_context, out **C.eman_model, message *C.emango_error, build func(env *environment) (*core.Model[float32], error)) C.eman_status {
	return guard(message, func() error {
		env, err := open[*environment](unsafe.Pointer(context), kindContext)
		if err != nil {
			return err
		}
		model, err := build(env)
		if err != nil {
			return err
		}
		return handOutModel(env, model, out)
	})
}

// handOutModel makes a handle for a model.
func handOutModel(env *environment, model *core.Model[float32], out **C.eman_model) error {
	object := &modelObject{environment: env.retain()}
	object.model.Store(model)
	handle, err := newBox(kindModel, object)
	if err != nil {
		env.release()
		return err
	}
	publish(unsafe.Pointer(out), handle, kindModel, (*modelObject).free)
	return nil
}

// onModel opens a model and runs body, reporting faults to its context's log.
func onModel(model *C.eman_model, message *C.emango_error, body func(m *modelObject) error) C.eman_status {
	return within(unsafe.Pointer(model), kindModel, message, body)
}

//export emango_model_create
func emango_model_create(context *C.eman_context, description *C.char, seed C.uint64_t, model **C.eman_model, message *C.emango_error) C.eman_status {
	return makeModel(context, model, message, func(env *environment) (*core.Model[float32], error) {
		text, err := readText("description", description)
		if err != nil {
			return nil, err
		}
		spec, err := core.ParseSpec([]byte(text))
		if err != nil {
			return nil, err
		}
		if err := env.admit(spec.MemoryBytes()); err != nil {
			return nil, err
		}
		return core.NewModel[float32](spec, uint64(seed))
	})
}

//export emango_model_load
func emango_model_load(context *C.eman_context, path *C.char, model **C.eman_model, message *C.emango_error) C.eman_status {
	return makeModel(context, model, message, func(env *environment) (*core.Model[float32], error) {
		name, err := readText("path", path)
		if err != nil {
			return nil, err
		}
		return core.Load[float32](name, env.admit)
	})
}

//export emango_model_load_memory
func emango_model_load_memory(context *C.eman_context, data unsafe.Pointer, size C.int64_t, model **C.eman_model, message *C.emango_error) C.eman_status {
	return makeModel(context, model, message, func(env *environment) (*core.Model[float32], error) {
		if size < 0 || uint64(size) > uint64(^uintptr(0)>>1)-uint64(uintptr(data)) {
			return nil, invalidArgument("size is %d", size)
		}
		return core.Decode[float32](unsafe.Slice((*byte)(data), size), env.admit)
	})
}

//export emango_model_from_authors
func emango_model_from_authors(context *C.eman_context, config *C.char, tensors *C.eman_tensor, count C.int32_t, model **C.eman_model, message *C.emango_error) C.eman_status {
	return makeModel(context, model, message, func(env *environment) (*core.Model[float32], error) {
		text, err := readText("config", config)
		if err != nil {
			return nil, err
		}
		parsed, err := core.ParseAuthorsConfig([]byte(text))
		if err != nil {
			return nil, err
		}
		state, err := readTensors(env, tensors, count)
		if err != nil {
			return nil, err
		}
		return core.FromAuthors(state, parsed)
	})
}

//export emango_model_free
func emango_model_free(model *C.eman_model) {
	closeBox(unsafe.Pointer(model), kindModel, (*modelObject).free)
}

//export emango_model_save
func emango_model_save(model *C.eman_model, path *C.char, message *C.emango_error) C.eman_status {
	return onModel(model, message, func(m *modelObject) error {
		name, err := readText("path", path)
		if err != nil {
			return err
		}
		return m.current().Save(name)
	})
}

//export emango_model_save_memory
func emango_model_save_memory(model *C.eman_model, data unsafe.Pointer, capacity C.int64_t, size *C.int64_t, message *C.emango_error) C.eman_status {
	return onModel(model, message, func(m *modelObject) error {
		if capacity < 0 {
			return invalidArgument("capacity is %d", capacity)
		}
		content := m.current().Encode()
		*size = C.int64_t(len(content))
		if int64(capacity) < int64(len(content)) {
			return refuse(C.EMAN_E_BUFFER_TOO_SMALL, "data has room for %d bytes, %d are needed", capacity, len(content))
		}
		copy(unsafe.Slice((*byte)(data), len(content)), content)
		return nil
	})
}

//export emango_model_spec
func emango_model_spec(model *C.eman_model, text *C.char, capacity C.int64_t, length *C.int64_t, message *C.emango_error) C.eman_status {
	return onModel(model, message, func(m *modelObject) error {
		return writeText(m.current().Spec().JSON(), text, capacity, length)
	})
}

//export emango_model_parameter_count
func emango_model_parameter_count(model *C.eman_model, count *C.int32_t, message *C.emango_error) C.eman_status {
	return onModel(model, message, func(m *modelObject) error {
		*count = C.int32_t(len(m.current().Parameters()))
		return nil
	})
}

// parameter is the model's tensor of that number.
func (m *modelObject) parameter(index C.int32_t) (p core.Parameter[float32], err error) {
	parameters := m.current().Parameters()
	if index < 0 || int(index) >= len(parameters) {
		return p, invalidArgument("index is %d, not in [0, %d)", index, len(parameters))
	}
	return parameters[index], nil
}

//export emango_model_describe_parameter
func emango_model_describe_parameter(model *C.eman_model, index C.int32_t, info *C.eman_parameter_info, message *C.emango_error) C.eman_status {
	return onModel(model, message, func(m *modelObject) error {
		p, err := m.parameter(index)
		if err != nil {
			return err
		}
		result := C.eman_parameter_info{rank: C.int32_t(len(p.Shape)), size: C.int64_t(len(p.Data))}
		for i := range result.shape {
			result.shape[i] = 1
			if i < len(p.Shape) {
				result.shape[i] = C.int64_t(p.Shape[i])
			}
		}
		writeName(result.name[:], p.Name)
		return writeStruct("info", info, &result)
	})
}

//export emango_model_get_parameter
func emango_model_get_parameter(model *C.eman_model, index C.int32_t, values *C.eman_mutable_view, message *C.emango_error) C.eman_status {
	return onModel(model, message, func(m *modelObject) error {
		p, err := m.parameter(index)
		if err != nil {
			return err
		}
		a, err := outputArray("values", values, reals, int64(len(p.Data)), 1)
		if err != nil || len(p.Data) == 0 {
			return err
		}
		storeReals(a, p.Data)
		return nil
	})
}

//export emango_model_set_parameters
func emango_model_set_parameters(model *C.eman_model, tensors *C.eman_tensor, count C.int32_t, message *C.emango_error) C.eman_status {
	return onModel(model, message, func(m *modelObject) error {
		m.setting.Lock()
		defer m.setting.Unlock()
		if err := m.environment.admit(m.current().Spec().MemoryBytes()); err != nil {
			return err
		}
		given, err := readTensors(m.environment, tensors, count)
		if err != nil {
			return err
		}
		changed, err := m.current().WithParameters(given)
		if err != nil {
			return err
		}
		m.model.Store(changed)
		return nil
	})
}

//export emango_model_layer_count
func emango_model_layer_count(model *C.eman_model, count *C.int32_t, message *C.emango_error) C.eman_status {
	return onModel(model, message, func(m *modelObject) error {
		*count = C.int32_t(len(m.current().Layers()))
		return nil
	})
}

//export emango_model_describe_layer
func emango_model_describe_layer(model *C.eman_model, layer C.int32_t, info *C.eman_layer_info, message *C.emango_error) C.eman_status {
	return onModel(model, message, func(m *modelObject) error {
		l, err := layerOf(m.current(), layer)
		if err != nil {
			return err
		}
		result := C.eman_layer_info{
			channels: C.int32_t(l.Type.Channels), order: C.int32_t(l.Type.Order), heads: C.int32_t(l.Heads),
		}
		writeName(result.name[:], l.Name)
		return writeStruct("info", info, &result)
	})
}

func layerOf(model *core.Model[float32], layer C.int32_t) (l core.LayerInfo, err error) {
	layers := model.Layers()
	if layer < 0 || int(layer) >= len(layers) {
		return l, invalidArgument("layer is %d, not in [0, %d)", layer, len(layers))
	}
	return layers[layer], nil
}

//export emango_model_estimate
func emango_model_estimate(model *C.eman_model, vertices, edges C.int64_t, bytes *C.int64_t, message *C.emango_error) C.eman_status {
	return onModel(model, message, func(m *modelObject) error {
		if err := checkCounts(vertices, edges); err != nil {
			return err
		}
		*bytes = C.int64_t(m.environment.runner.Estimate(m.current(), int64(vertices), int64(edges)))
		return nil
	})
}

//export emango_model_estimate_work
func emango_model_estimate_work(model *C.eman_model, vertices, edges C.int64_t, work *C.eman_work, message *C.emango_error) C.eman_status {
	return onModel(model, message, func(m *modelObject) error {
		return writeWork(work, vertices, edges, func(vertices, edges int64) (flops, seconds float64) {
			return m.environment.runner.EstimateWork(m.current(), vertices, edges)
		})
	})
}

// writeWork writes the work that estimate finds for a mesh.
func writeWork(work *C.eman_work, vertices, edges C.int64_t, estimate func(vertices, edges int64) (flops, seconds float64)) error {
	if err := checkCounts(vertices, edges); err != nil {
		return err
	}
	flops, seconds := estimate(int64(vertices), int64(edges))
	return writeStruct("work", work, &C.eman_work{flops: C.double(flops), seconds: C.double(seconds)})
}

// checkCounts refuses numbers of vertices and edges that no mesh has.
func checkCounts(vertices, edges C.int64_t) error {
	if vertices < 0 || vertices > maxElements {
		return invalidArgument("vertices is %d, not in [0, %d]", vertices, maxElements)
	}
	if edges < 0 || edges > maxElements {
		return invalidArgument("edges is %d, not in [0, %d]", edges, maxElements)
	}
	return nil
}

// maxElements is the largest number of vertices or edges of a mesh.
const maxElements = 1<<31 - 1
