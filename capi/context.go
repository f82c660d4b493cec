package main

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"

	"libeman/core"
	"libeman/geometry"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
	"libeman/simd"
)

// mallocSource takes large arrays from the C heap, which can refuse.
type mallocSource struct{}

func (mallocSource) Allocate(bytes int64) unsafe.Pointer { return C.emango_allocate(C.int64_t(bytes)) }
func (mallocSource) Free(block unsafe.Pointer, _ int64)  { C.emango_release(block) }

// environment is what a context stands for. It lives as long as the context's
// handle or an object made with it.
type environment struct {
	geometry.Resources
	runner         *core.Runner[float32]
	instructionSet C.eman_instruction_set
	log, logUser   uintptr // the host's function and argument, or 0
	users          atomic.Int64
}

// environments are those that live, for eman_trim.
var environments struct {
	sync.Mutex
	alive map[*environment]struct{}
}

func (e *environment) home() *environment { return e }

func (e *environment) retain() *environment {
	if e.users.Add(1) == 1 {
		environments.Lock()
		defer environments.Unlock()
		if environments.alive == nil {
			environments.alive = map[*environment]struct{}{}
		}
		environments.alive[e] = struct{}{}
	}
	return e
}

func (e *environment) release() {
	if e.users.Add(-1) == 0 {
		environments.Lock()
		defer environments.Unlock()
		delete(environments.alive, e)
		e.Memory.Reclaim()
	}
}

// trimEnvironments gives the memory back that contexts keep between calls.
func trimEnvironments() {
	environments.Lock()
	defer environments.Unlock()
	for e := range environments.alive {
		e.Memory.Reclaim()
	}
}

const maxThreads = 1024

func newEnvironment(options *C.eman_context_options) (*environment, error) {
	var o contextOptions
	if options != nil {
		if err := readStruct("options", unsafe.Pointer(options), &o); err != nil {
			return nil, err
		}
	}
	if err := checkReserved("options", o.reserved); err != nil {
		return nil, err
	}
	if o.threads < 0 || o.threads > maxThreads {
		return nil, invalidArgument("options.threads is %d, not in [0, %d]", o.threads, maxThreads)
	}
	if o.memoryLimit < 0 {
		return nil, invalidArgument("options.memory_limit is %d", o.memoryLimit)
	}
	if o.log != 0 {
		if _, err := address("options.log", o.log); err != nil {
			return nil, err
		}
	}
	kernels, err := chooseKernels(C.eman_instruction_set(o.instructionSet))
	if err != nil {
		return nil, err
	}
	resources := geometry.Resources{
		Threads:        parallel.New(int(o.threads)),
		Memory:         memory.NewBudget(o.memoryLimit, mallocSource{}),
		InstructionSet: kernels.Name(),
	}
	return &environment{
		Resources:      resources,
		runner:         core.NewRunner[float32](kernels, resources.Threads, resources.Memory),
		instructionSet: instructionSetOf(kernels),
		log:            o.log,
		logUser:        o.logUser,
	}, nil
}

var instructionSetNames = map[C.eman_instruction_set]string{
	C.EMAN_ISA_GENERIC: "generic", C.EMAN_ISA_AVX2: "avx2", C.EMAN_ISA_AVX512: "avx512", C.EMAN_ISA_NEON: "neon",
}

// instructionSetOf is the number of a set of kernels.
func instructionSetOf(kernels simd.Kernels32) C.eman_instruction_set {
	for set, name := range instructionSetNames {
		if name == kernels.Name() {
			return set
		}
	}
	return C.EMAN_ISA_AUTO
}

// chooseKernels resolves AUTO and refuses what this processor, operating system
// or build does not have.
func chooseKernels(wanted C.eman_instruction_set) (simd.Kernels32, error) {
	if wanted == C.EMAN_ISA_AUTO {
		return simd.Best(), nil
	}
	name, known := instructionSetNames[wanted]
	if !known {
		return nil, invalidArgument("options.instruction_set is %d, no known set", wanted)
	}
	kernels, err := simd.ByName(name)
	if err != nil {
		return nil, refuse(C.EMAN_E_UNSUPPORTED, "no %s kernels run here: the processor, its operating system or this build lacks them", name)
	}
	return kernels, nil
}

// report hands an internal fault, with its stack, to the context's log.
func (e *environment) report(err error) {
	if err == nil || e.log == 0 {
		return
	}
	var fault *parallel.PanicError
	if !errors.As(err, &fault) {
		return
	}
	text := C.CString(fmt.Sprintf("%v\n%s", fault, fault.Stack))
	defer C.free(unsafe.Pointer(text))
	C.emango_call_log(C.uintptr_t(e.log), C.uintptr_t(e.logUser), C.EMAN_LOG_ERROR, text)
}

//export emango_context_create
func emango_context_create(options *C.eman_context_options, context **C.eman_context, message *C.emango_error) C.eman_status {
	return guard(message, func() error {
		env, err := newEnvironment(options)
		if err != nil {
			return err
		}
		handle, err := newBox(kindContext, env)
		if err != nil {
			return err
		}
		env.retain()
		publish(unsafe.Pointer(context), handle, kindContext, (*environment).release)
		return nil
	})
}

//export emango_context_free
func emango_context_free(context *C.eman_context) {
	closeBox(unsafe.Pointer(context), kindContext, (*environment).release)
}

//export emango_context_describe
func emango_context_describe(context *C.eman_context, info *C.eman_context_info, message *C.emango_error) C.eman_status {
	return guard(message, func() error {
		env, err := open[*environment](unsafe.Pointer(context), kindContext)
		if err != nil {
			return err
		}
		used, peak, limit := env.Memory.Usage()
		return writeStruct("info", info, &C.eman_context_info{
			threads:         C.int32_t(env.Threads.Threads()),
			instruction_set: env.instructionSet,
			memory_used:     C.int64_t(used),
			memory_peak:     C.int64_t(peak),
			memory_limit:    C.int64_t(limit),
		})
	})
}

//export emango_build_info
func emango_build_info(text *C.char, capacity C.int64_t, length *C.int64_t, message *C.emango_error) C.eman_status {
	return guard(message, func() error {
		info, err := json.Marshal(map[string]any{
			"version":         C.EMAN_VERSION_STRING,
			"abi_version":     C.EMAN_ABI_VERSION,
			"go_version":      runtime.Version(),
			"platform":        runtime.GOOS + "/" + runtime.GOARCH,
			"instruction_set": simd.Best().Name(),
			"threads":         runtime.GOMAXPROCS(0),
		})
		if err != nil {
			return err
		}
		return writeText(info, text, capacity, length)
	})
}

//export emango_trim
func emango_trim(message *C.emango_error) C.eman_status {
	return guard(message, func() error {
		trimEnvironments()
		debug.FreeOSMemory()
		C.emango_trim_heap()
		return nil
	})
}
