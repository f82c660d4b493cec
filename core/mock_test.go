package core

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/golang/mock/gomock"

	"libeman/geometry/memory"
	"libeman/geometry/parallel"
	"libeman/simd/mocksimd"
)

// mocked returns a model of one residual block, a mesh of so many vertices and
// a runner on one thread with mocked kernels.
func mocked(t *testing.T, vertices int) (*Model[float32], *Input[float32], *Runner[float32], *mocksimd.MockKernels32) {
	m := testModel[float32](t, func(s *Spec) { s.Blocks, s.SelfTerm, s.Nonlinearity = 1, false, NonlinearityPoly })
	kernels := mocksimd.NewMockKernels32(gomock.NewController(t))
	return m, testInput[float32](t, vertices), NewRunner[float32](kernels, nil, memory.NewBudget(0, nil)), kernels
}

// Aggregate first: for each block of vertices the query is folded through the
// key, then come the edges, then the weights, once for each order.
func TestOrderOfTheKernelCalls(t *testing.T) {
	m, in, r, kernels := mocked(t, blockVertices+1)
	x := gomock.Any()
	var calls []*gomock.Call
	for _, layer := range []struct {
		queries, orders int // that the products are made for
	}{{2, 3}, {1, 1}} {
		for _, vertices := range []int{blockVertices, 1} {
			fold := kernels.EXPECT().Multiply(x, x, x, vertices, false).Times(layer.queries)
			attend := kernels.EXPECT().EdgeAttention(x, x, x, nil, x, x, x, x, 1, false)
			weigh := kernels.EXPECT().Multiply(x, x, x, vertices, true).Times(layer.orders)
			calls = append(calls, fold, attend, weigh)
			if layer.orders == 1 { // the end of the block: its input, and ReLU
				calls = append(calls, kernels.EXPECT().Multiply(x, x, x, vertices, true), kernels.EXPECT().Rectify(x, 16, vertices))
			}
		}
	}
	calls = append(calls, kernels.EXPECT().Dense(x, x, x, x, blockVertices+1, x),
		kernels.EXPECT().ArgMax(x, x, x, x, 21, blockVertices+1))
	gomock.InOrder(calls...)
	if err := r.Predict(m, in, nil, make([]int32, blockVertices+1)); err != nil {
		t.Fatal(err)
	}
}

// failing lets every kernel do nothing, but calls at before the edges of block
// number block (from 0) of the run.
func failing(kernels *mocksimd.MockKernels32, block int32, at func()) *atomic.Int32 {
	x := gomock.Any()
	var blocks atomic.Int32
	kernels.EXPECT().Multiply(x, x, x, x, x).AnyTimes()
	kernels.EXPECT().Dense(x, x, x, x, x, x).AnyTimes()
	kernels.EXPECT().Rectify(x, x, x).AnyTimes()
	kernels.EXPECT().ArgMax(x, x, x, x, x, x).AnyTimes()
	kernels.EXPECT().EdgeAttention(x, x, x, x, x, x, x, x, x, x).AnyTimes().Do(func(_, _, _, _, _, _, _, _, _, _ any) {
		if blocks.Add(1)-1 == block {
			at()
		}
	})
	return &blocks
}

func TestAFaultInAKernelIsAnErrorAndTheNextCallWorks(t *testing.T) {
	m, in, r, kernels := mocked(t, 10*blockVertices)
	labels := make([]int32, 10*blockVertices)
	fault := errors.New("a fault in block 13")
	blocks := failing(kernels, 13, func() { panic(fault) })
	err := r.Predict(m, in, nil, labels)
	var panicked *parallel.PanicError
	if !errors.As(err, &panicked) || !errors.Is(err, fault) {
		t.Errorf("%v", err)
	}
	if blocks.Load() != 14 {
		t.Errorf("%d blocks were begun", blocks.Load())
	}
	if err := r.Predict(m, in, nil, labels); err != nil {
		t.Errorf("the next call: %v", err)
	}
	used, peak, _ := r.budget.Usage()
	if r.Reclaim(); used != peak {
		t.Errorf("%d bytes in use, %d at most: the second call did not reuse the first's memory", used, peak)
	}
	if used, _, _ := r.budget.Usage(); used != 0 {
		t.Errorf("%d bytes are lost", used)
	}
}

func TestACancelTakesEffectBeforeTheNextBlock(t *testing.T) {
	for _, block := range []int32{0, 4, 9, 15} {
		m, in, r, kernels := mocked(t, 10*blockVertices)
		var stop atomic.Bool
		blocks := failing(kernels, block, func() { stop.Store(true) })
		err := r.Predict(m, in, &parallel.Control{Cancelled: stop.Load}, make([]int32, 10*blockVertices))
		if !errors.Is(err, parallel.ErrCancelled) || blocks.Load() != block+1 {
			t.Errorf("cancelled in block %d: %v after %d blocks", block, err, blocks.Load())
		}
	}
}
