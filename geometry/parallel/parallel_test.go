package parallel

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
)

func TestForVisitsEveryBlockOnce(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 7} {
		for _, blocks := range []int{0, 1, 2, 5, 1000} {
			visits := make([]atomic.Int32, blocks)
			pool := New(threads)
			err := pool.For(nil, blocks, func(worker, block int) error {
				if worker < 0 || worker >= pool.Threads() {
					return fmt.Errorf("worker %d", worker)
				}
				visits[block].Add(1)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for b := range visits {
				if n := visits[b].Load(); n != 1 {
					t.Fatalf("%d threads: block %d of %d visited %d times", threads, b, blocks, n)
				}
			}
		}
	}
}

func TestRangeCoversTheInterval(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 65, 1000} {
		var sum atomic.Int64
		err := New(3).Range(nil, n, 64, func(_, begin, end int) error {
			if begin >= end || end-begin > 64 {
				return fmt.Errorf("piece [%d, %d)", begin, end)
			}
			sum.Add(int64(end - begin))
			return nil
		})
		if err != nil || sum.Load() != int64(n) {
			t.Fatalf("n = %d: covered %d, %v", n, sum.Load(), err)
		}
	}
}

func TestErrorIsThatOfTheLowestBlock(t *testing.T) {
	for _, threads := range []int{1, 2, 7} {
		err := New(threads).For(nil, 100, func(_, block int) error {
			if block >= 10 {
				return fmt.Errorf("block %d", block)
			}
			return nil
		})
		if err == nil || err.Error() != "block 10" {
			t.Errorf("%d threads: %v, want that of block 10", threads, err)
		}
	}
}

func TestPanicBecomesAnError(t *testing.T) {
	for _, threads := range []int{1, 4} {
		err := New(threads).For(nil, 8, func(_, block int) error {
			if block == 3 {
				var none []int
				_ = none[block]
			}
			return nil
		})
		var panicked *PanicError
		var runtimeError runtime.Error
		if !errors.As(err, &panicked) || len(panicked.Stack) == 0 || !errors.As(err, &runtimeError) {
			t.Errorf("%d threads: %v", threads, err)
		}
	}
}

func TestCancelAndProgress(t *testing.T) {
	var ran atomic.Int32
	control := &Control{Cancelled: func() bool { return ran.Load() >= 5 }}
	err := New(2).For(control, 1000, func(_, _ int) error { ran.Add(1); return nil })
	if !errors.Is(err, ErrCancelled) || ran.Load() > 10 {
		t.Errorf("after %d blocks: %v", ran.Load(), err)
	}

	last := 0.0
	control = &Control{Progress: func(f float64) bool {
		if f < last {
			t.Errorf("progress fell from %g to %g", last, f)
		}
		last = f
		return true
	}}
	if err := New(1).For(control, 10, func(_, _ int) error { return nil }); err != nil || last != 1 {
		t.Errorf("last progress %g, %v", last, err)
	}
	control.Progress = func(f float64) bool { return f < 0.5 }
	if err := New(1).For(control, 10, func(_, _ int) error { return nil }); !errors.Is(err, ErrCancelled) {
		t.Errorf("stopped by progress: %v", err)
	}
	stage := (&Control{Progress: func(f float64) bool { last = f; return true }}).Stage(0.5, 0.75)
	if stage.Progress(1); last != 0.75 {
		t.Errorf("a stage's end is reported as %g, want 0.75", last)
	}
}

func TestNilPoolRunsOnTheCaller(t *testing.T) {
	var pool *Pool
	n := 0
	if err := pool.For(nil, 3, func(_, _ int) error { n++; return nil }); err != nil || n != 3 {
		t.Errorf("%d blocks, %v", n, err)
	}
}

func BenchmarkForOverhead(b *testing.B) {
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprint(threads), func(b *testing.B) {
			pool := New(threads)
			for b.Loop() {
				_ = pool.For(nil, threads, func(_, _ int) error { return nil })
			}
		})
	}
}
