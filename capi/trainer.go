package main

// #include "shim.h"
import "C"

import (
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"unsafe"

	"libeman/core"
	"libeman/geometry"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
)

// trainerObject is a training and the context that it was made with.
type trainerObject struct {
	environment *environment
	mutex       sync.Mutex // held during a step
	// stepping is the thread that a step runs on, by the address of what it has
	// for its errors, or 0.
	stepping atomic.Uintptr
	running  bool // a run is in progress
	freed    bool
	*core.Trainer[float32]
	lessons []*lesson
}

func (t *trainerObject) home() *environment { return t.environment }

// lock waits for a step of another thread to end. On the thread of a step, which
// the host's progress function runs on, the training is as it was before that
// step: parameters and state change together, with no call of the host between.
func (t *trainerObject) lock(message *C.emango_error) (unlock func()) {
	if t.stepping.Load() == uintptr(unsafe.Pointer(message)) {
		return func() {}
	}
	t.mutex.Lock()
	return t.mutex.Unlock
}

func (t *trainerObject) forget() (freed bool) {
	for _, l := range t.lessons {
		freed = l.forget() || freed
	}
	return freed
}

func (t *trainerObject) free() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.freed = true
	t.dispose()
}

// dispose gives up everything.
func (t *trainerObject) dispose() {
	for _, l := range t.lessons {
		l.close()
	}
	t.Free()
	t.environment.release()
}

// step makes one step. Where the memory does not suffice, the geometry of the
// meshes that was kept makes room.
func (t *trainerObject) step(control *parallel.Control, message *C.emango_error) (record core.StepRecord, err error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.freed {
		return record, errFreed
	}
	t.stepping.Store(uintptr(unsafe.Pointer(message)))
	defer func() {
		t.stepping.Store(0)
		if t.freed { // by the host's progress function
			t.dispose()
			err = errFreed
		}
	}()
	control = rising(control)
	record, err = t.Step(control)
	if errors.Is(err, memory.ErrOutOfMemory) && t.forget() {
		record, err = t.Step(control)
	}
	return record, err
}

// rising is a control whose progress never falls, also where a part of the work
// is done again.
func rising(c *parallel.Control) *parallel.Control {
	if c == nil || c.Progress == nil {
		return c
	}
	highest := 0.0
	return &parallel.Control{Cancelled: c.Cancelled, Progress: func(fraction float64) bool {
		highest = max(highest, fraction)
		return c.Progress(highest)
	}}
}

var errFreed = invalidArgument("trainer: it was freed")

// onTrainer opens a training and runs body, while nothing else uses it.
func onTrainer(trainer *C.eman_trainer, message *C.emango_error, body func(t *trainerObject) error) C.eman_status {
	return withTrainer(trainer, message, func(t *trainerObject) error {
		defer t.lock(message)()
		if t.freed {
			return errFreed
		}
		return body(t)
	})
}

// withTrainer opens a training and runs body, reporting faults to its context's
// log.
func withTrainer(trainer *C.eman_trainer, message *C.emango_error, body func(t *trainerObject) error) C.eman_status {
	return within(unsafe.Pointer(trainer), kindTrainer, message, body)
}

// begin marks a training as running; end takes that back.
func (t *trainerObject) begin(message *C.emango_error) (end func(), err error) {
	defer t.lock(message)()
	if t.running {
		return nil, invalidArgument("trainer: a run is in progress")
	}
	t.running = true
	return func() {
		t.mutex.Lock()
		defer t.mutex.Unlock()
		t.running = false
	}, nil
}

// makeTrainer builds a training in a context and hands it out.
func makeTrainer(context *C.eman_context, out **C.eman_trainer, message *C.emango_error, build func(env *environment) (*core.Trainer[float32], error)) C.eman_status {
	return guard(message, func() error {
		env, err := open[*environment](unsafe.Pointer(context), kindContext)
		if err != nil {
			return err
		}
		trainer, err := build(env)
		if err != nil {
			return err
		}
		object := &trainerObject{environment: env.retain(), Trainer: trainer}
		handle, err := newBox(kindTrainer, object)
		if err != nil {
			object.free()
			return err
		}
		publish(unsafe.Pointer(out), handle, kindTrainer, (*trainerObject).free)
		return nil
	})
}

//export emango_trainer_create
func emango_trainer_create(context *C.eman_context, model *C.eman_model, description *C.char, trainer **C.eman_trainer, message *C.emango_error) C.eman_status {
	return makeTrainer(context, trainer, message, func(env *environment) (*core.Trainer[float32], error) {
		m, err := open[*modelObject](unsafe.Pointer(model), kindModel)
		if err != nil {
			return nil, err
		}
		text, err := readText("description", description)
		if err != nil {
			return nil, err
		}
		spec, err := core.ParseTraining([]byte(text))
		if err != nil {
			return nil, err
		}
		current := m.current()
		if err := env.admit(core.TrainerMemoryBytes(current.Spec())); err != nil {
			return nil, err
		}
		return core.NewTrainer(env.runner, current, spec)
	})
}

//export emango_trainer_load
func emango_trainer_load(context *C.eman_context, path *C.char, trainer **C.eman_trainer, message *C.emango_error) C.eman_status {
	return makeTrainer(context, trainer, message, func(env *environment) (*core.Trainer[float32], error) {
		name, err := readText("path", path)
		if err != nil {
			return nil, err
		}
		return core.LoadTrainer(env.runner, name, env.admit)
	})
}

//export emango_trainer_free
func emango_trainer_free(trainer *C.eman_trainer, message *C.emango_error) {
	closeBox(unsafe.Pointer(trainer), kindTrainer, func(t *trainerObject) {
		if t.stepping.Load() == uintptr(unsafe.Pointer(message)) {
			t.freed = true // the step frees the rest
			return
		}
		t.free()
	})
}

//export emango_trainer_add_mesh
func emango_trainer_add_mesh(trainer *C.eman_trainer, mesh *C.eman_mesh, labels *C.eman_view, name *C.char, validation C.int32_t, message *C.emango_error) C.eman_status {
	return onTrainer(trainer, message, func(t *trainerObject) error {
		if t.running {
			return invalidArgument("trainer: a run is in progress")
		}
		if validation != 0 && validation != 1 {
			return invalidArgument("validation is %d, neither 0 nor 1", validation)
		}
		m, err := open[meshObject](unsafe.Pointer(mesh), kindMesh)
		if err != nil {
			return err
		}
		text := ""
		if name != nil {
			if text, err = readLimited("name", name, maxName); err != nil {
				return err
			}
		}
		spec := t.Network()
		vertices, _ := m.counts()
		l := &lesson{spec: spec, arena: t.environment.Memory.NewArena("training")}
		known, err := readLabels(l.arena, labels, core.RowsOf(spec, vertices))
		if err != nil {
			err = core.Named(text, err)
		} else {
			l.mesh, err = m.Transform(geometry.Similarity{Rotation: [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1}, Scale: 1}, nil)
		}
		if err == nil {
			err = l.mesh.Read(func(v *geometry.View) error {
				l.width = v.Diagonal()
				return nil
			})
		}
		if err == nil {
			err = t.Add(core.Example[float32]{Name: text, Load: l.load, Labels: known}, validation == 1)
		}
		if err != nil {
			l.close()
			return err
		}
		t.lessons = append(t.lessons, l)
		return nil
	})
}

//export emango_trainer_run
func emango_trainer_run(trainer *C.eman_trainer, control *C.eman_control, step, user C.uintptr_t, message *C.emango_error) C.eman_status {
	return withTrainer(trainer, message, func(t *trainerObject) error {
		watch, err := newControl(control)
		if err != nil {
			return err
		}
		if step != 0 {
			if _, err := address("step", uintptr(step)); err != nil {
				return err
			}
		}
		end, err := t.begin(message)
		if err != nil {
			return err
		}
		defer end()
		info := (*C.eman_step_info)(C.emango_allocate(C.sizeof_eman_step_info)) // the host sees C memory only
		if info == nil {
			return refuse(C.EMAN_E_NOMEM, "out of memory: no room for a step's results")
		}
		defer C.emango_release(unsafe.Pointer(info))
		for first := t.State().Step; !t.Done(); {
			done, next := t.Progress(first)
			record, err := t.step(watch.Stage(done, next), message)
			if err != nil {
				return err
			}
			if step == 0 {
				continue
			}
			*info = stepInfo(record)
			info.struct_size = C.sizeof_eman_step_info
			if C.emango_call_step(step, user, info) != 0 {
				return parallel.ErrCancelled
			}
		}
		return nil
	})
}

//export emango_trainer_step
func emango_trainer_step(trainer *C.eman_trainer, control *C.eman_control, info *C.eman_step_info, message *C.emango_error) C.eman_status {
	return withTrainer(trainer, message, func(t *trainerObject) error {
		watch, err := newControl(control)
		if err != nil {
			return err
		}
		if _, err := structSize("info", info); err != nil {
			return err
		}
		end, err := t.begin(message)
		if err != nil {
			return err
		}
		defer end()
		record, err := t.step(watch, message)
		if err != nil {
			return err
		}
		result := stepInfo(record)
		return writeStruct("info", info, &result)
	})
}

func stepInfo(r core.StepRecord) C.eman_step_info {
	info := C.eman_step_info{
		epoch: C.int32_t(r.Epoch), step: C.int64_t(r.Step), steps: C.int64_t(r.Steps),
		loss: C.double(r.Loss), accuracy: C.double(r.Accuracy),
		gradient_norm: C.double(r.GradientNorm), learning_rate: C.double(r.LearningRate),
	}
	if e := r.Finished; e != nil {
		info.epoch_ended, info.epoch_loss, info.epoch_accuracy = 1, C.double(e.Loss), C.double(e.Accuracy)
		if e.ValidationLoss != nil {
			info.validated, info.validation_loss, info.validation_accuracy = 1, C.double(*e.ValidationLoss), C.double(*e.ValidationAccuracy)
		}
	}
	return info
}

//export emango_trainer_estimate
func emango_trainer_estimate(trainer *C.eman_trainer, vertices, edges C.int64_t, bytes *C.int64_t, message *C.emango_error) C.eman_status {
	return onTrainer(trainer, message, func(t *trainerObject) error {
		if err := checkCounts(vertices, edges); err != nil {
			return err
		}
		*bytes = C.int64_t(t.Estimate(int64(vertices), int64(edges)))
		return nil
	})
}

//export emango_trainer_estimate_work
func emango_trainer_estimate_work(trainer *C.eman_trainer, vertices, edges C.int64_t, work *C.eman_work, message *C.emango_error) C.eman_status {
	return onTrainer(trainer, message, func(t *trainerObject) error {
		return writeWork(work, vertices, edges, t.EstimateWork)
	})
}

//export emango_trainer_state
func emango_trainer_state(trainer *C.eman_trainer, text *C.char, capacity C.int64_t, length *C.int64_t, message *C.emango_error) C.eman_status {
	return onTrainer(trainer, message, func(t *trainerObject) error {
		s := t.State()
		content, err := json.Marshal(struct {
			Done     bool               `json:"done"`
			Step     int64              `json:"step"`
			Epoch    int                `json:"epoch"`
			Best     int                `json:"best"`
			History  []core.EpochRecord `json:"history"`
			Training core.TrainingSpec  `json:"training"`
		}{t.Done(), s.Step, s.Epoch, s.Best, s.History, t.Spec()})
		if err != nil {
			return err
		}
		return writeText(content, text, capacity, length)
	})
}

//export emango_trainer_model
func emango_trainer_model(trainer *C.eman_trainer, best C.int32_t, model **C.eman_model, message *C.emango_error) C.eman_status {
	return onTrainer(trainer, message, func(t *trainerObject) error {
		if best != 0 && best != 1 {
			return invalidArgument("best is %d, neither 0 nor 1", best)
		}
		if err := t.environment.admit(t.Network().MemoryBytes()); err != nil {
			return err
		}
		if best == 1 {
			return handOutModel(t.environment, t.BestModel(), model)
		}
		return handOutModel(t.environment, t.Model(), model)
	})
}

//export emango_trainer_save
func emango_trainer_save(trainer *C.eman_trainer, path *C.char, message *C.emango_error) C.eman_status {
	return onTrainer(trainer, message, func(t *trainerObject) error {
		name, err := readText("path", path)
		if err != nil {
			return err
		}
		return t.Save(name)
	})
}

//export emango_model_evaluate
func emango_model_evaluate(model *C.eman_model, mesh *C.eman_mesh, labels *C.eman_view, control *C.eman_control, result *C.eman_evaluation, confusion *C.eman_mutable_view, message *C.emango_error) C.eman_status {
	return infer(model, mesh, control, message, func(i *inference) error {
		if _, err := structSize("result", result); err != nil {
			return err
		}
		known, err := readLabels(i.scratch, labels, i.rows())
		if err != nil {
			return err
		}
		classes := int64(i.classes())
		var counts []int64
		var table array
		if confusion != nil {
			if table, err = outputArray("confusion", confusion, integers, classes, classes); err != nil {
				return err
			}
			if counts, err = memory.Make[int64](i.scratch, classes*classes); err != nil {
				return err
			}
		}
		sums, err := i.environment.runner.Evaluate(i.model, &i.input.Input, &core.Target{Labels: known}, i.control, counts)
		if err != nil {
			return err
		}
		if confusion != nil {
			storeIntegers(table, counts)
		}
		e := C.eman_evaluation{labels: C.int64_t(sums.Labels), correct: C.int64_t(sums.Hits)}
		if sums.Labels > 0 {
			e.loss = C.double(sums.Loss / sums.Weight)
		}
		return writeStruct("result", result, &e)
	})
}
