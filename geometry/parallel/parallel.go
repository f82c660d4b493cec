// Package parallel runs loops over blocks on several threads. It is the only
// place of the library that starts goroutines.
//
// The blocks of a loop are fixed by the caller and do not depend on the number
// of threads; a body that writes only what belongs to its block therefore
// gives the same bits for any number of threads. A panic or a memory fault in
// a body becomes an error of the loop, never the end of the process.
package parallel

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"libeman/simd"
)

// ErrCancelled is returned by a loop that its [Control] stopped.
var ErrCancelled = errors.New("cancelled by the caller")

// PanicError is a panic in the body of a loop.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("internal error: %v", e.Value) }

// Unwrap gives the panic's value where it was an error (a memory fault is a
// runtime.Error with an Addr method).
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Recover turns a panic into a *PanicError. Use it as
//
//	defer parallel.Recover(&err)
func Recover(err *error) {
	if value := recover(); value != nil {
		*err = &PanicError{Value: value, Stack: debug.Stack()}
	}
}

// Control watches a long call. The zero value and nil never stop anything.
type Control struct {
	// Cancelled is polled between blocks on every thread; true stops the loop.
	Cancelled func() bool
	// Progress is called on the calling goroutine only, with the fraction
	// done in [0, 1]; false stops the loop.
	Progress func(fraction float64) bool
}

func (c *Control) cancelled() bool {
	return c != nil && c.Cancelled != nil && c.Cancelled()
}

// Stopped polls the control once outside a loop: ErrCancelled or nil.
func (c *Control) Stopped() error {
	if c.cancelled() {
		return ErrCancelled
	}
	return nil
}

// Finish reports that a part is done, and polls the control once.
func (c *Control) Finish() error {
	if err := c.Stopped(); err != nil {
		return err
	}
	if c != nil && c.Progress != nil && !report(c.Progress, 1) {
		return ErrCancelled
	}
	return nil
}

// Stage gives the control of one part of a longer work, whose progress fills
// the interval [from, to] of the whole.
func (c *Control) Stage(from, to float64) *Control {
	if c == nil || c.Progress == nil {
		return c
	}
	whole := c.Progress
	return &Control{
		Cancelled: c.Cancelled,
		Progress:  func(fraction float64) bool { return whole(from + (to-from)*fraction) },
	}
}

// Pool is a number of threads. Its methods may be called from many goroutines
// at once, and from inside a body. A nil *Pool runs on the caller alone.
type Pool struct{ threads int }

// New returns a pool of the given number of threads, the caller's among them;
// zero or less means one for each processor. No pool has more than MaxThreads.
func New(threads int) *Pool {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	return &Pool{threads: min(threads, MaxThreads())}
}

// MaxThreads bounds the threads of a pool, and the helpers of all loops that
// run at a time: more bring nothing, and a process that may start no further
// thread is ended by the Go runtime.
func MaxThreads() int { return max(16, runtime.GOMAXPROCS(0)) }

// helpers is the number of helper threads at work in the process.
var helpers atomic.Int64

// hire reserves up to n helpers and returns how many it got.
func hire(n int) int {
	for hired := range n {
		if helpers.Add(1) > int64(MaxThreads()) {
			helpers.Add(-1)
			return hired
		}
	}
	return n
}

// Threads is the number of threads of the pool, and the bound of the worker
// numbers that its loops pass to their bodies.
func (p *Pool) Threads() int {
	if p == nil {
		return 1
	}
	return p.threads
}

// loop is one run of Range.
type loop struct {
	control *Control
	body    func(worker, begin, end int) error
	n, size int
	blocks  int64
	next    atomic.Int64 // the next block to hand out
	done    atomic.Int64 // blocks finished
	stop    atomic.Bool  // hand out no more

	reported int64 // the blocks done at the caller's last report

	mutex    sync.Mutex
	failed   error
	failedAt int64 // the lowest block that failed
	group    sync.WaitGroup
}

// loops are kept for later runs.
var loops = sync.Pool{New: func() any { return new(loop) }}

// For calls body(worker, block) once for every block in [0, blocks): Range with
// blocks of one item.
func (p *Pool) For(control *Control, blocks int, body func(worker, block int) error) error {
	return p.Range(control, blocks, 1, func(worker, block, _ int) error { return body(worker, block) })
}

// Range calls body(worker, begin, end) once for each of the consecutive blocks
// of [0, n) of size items, the last one shorter: block b covers [b*size, min(n,
// (b+1)*size)). They run in no particular order, with worker < p.Threads()
// telling the threads apart (for scratch memory). It returns when all calls
// have returned. Where the process is short of helpers the caller does more of
// the work.
//
// Blocks are handed out in increasing order, so the error returned, that of
// the lowest failing block, does not depend on the number of threads. Blocks
// above a failed one may not have run.
func (p *Pool) Range(control *Control, n, size int, body func(worker, begin, end int) error) error {
	if n <= 0 {
		return control.Finish()
	}
	l := loops.Get().(*loop)
	l.begin(control, n, size, body)
	for worker := range hire(min(p.Threads(), int(l.blocks)) - 1) {
		l.group.Add(1)
		go l.help(worker + 1)
	}
	var progress func(float64) bool
	if control != nil {
		progress = control.Progress
	}
	l.work(0, progress)
	l.group.Wait()
	err, unreported := l.failed, progress != nil && l.reported < l.blocks
	l.begin(nil, 0, 1, nil)
	loops.Put(l)
	if err == nil && unreported {
		return control.Finish()
	}
	return err
}

// begin makes a loop ready for a run.
func (l *loop) begin(control *Control, n, size int, body func(worker, begin, end int) error) {
	l.control, l.body, l.n, l.size, l.blocks = control, body, n, size, int64((n+size-1)/size)
	l.next.Store(0)
	l.done.Store(0)
	l.stop.Store(false)
	l.reported, l.failed, l.failedAt = 0, nil, 0
}

// help works on a thread of its own.
func (l *loop) help(worker int) {
	defer l.group.Done()
	defer helpers.Add(-1)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer simd.LeaveFloatEnvironment(simd.EnterDefaultFloatEnvironment())
	l.work(worker, nil)
}

// work takes blocks until none is left or one failed.
func (l *loop) work(worker int, progress func(float64) bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	for !l.stop.Load() {
		block := l.next.Add(1) - 1
		if block >= l.blocks {
			return
		}
		err := l.one(worker, block)
		done := l.done.Add(1)
		if err == nil && progress != nil {
			l.reported = done
			if !report(progress, float64(done)/float64(l.blocks)) {
				err = ErrCancelled
			}
		}
		if err != nil {
			l.fail(block, err)
		}
	}
}

func (l *loop) one(worker int, block int64) (err error) {
	defer Recover(&err)
	if l.control.cancelled() {
		return ErrCancelled
	}
	begin := int(block) * l.size
	return l.body(worker, begin, min(begin+l.size, l.n))
}

// report calls a progress function, which is foreign code and may panic.
func report(progress func(float64) bool, fraction float64) (goOn bool) {
	defer func() {
		if recover() != nil {
			goOn = false
		}
	}()
	return progress(fraction)
}

func (l *loop) fail(block int64, err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.failed == nil || block < l.failedAt {
		l.failed, l.failedAt = err, block
	}
	l.stop.Store(true)
}
