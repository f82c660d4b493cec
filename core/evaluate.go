package core

import (
	"sync/atomic"

	"libeman/geometry/memory"
	"libeman/geometry/parallel"
	"libeman/simd"
)

// Evaluate computes the loss and the accuracy of a model on a mesh. confusion,
// where not nil, [classes, classes], gets how many labels of a class (row) were
// taken for another (column), added to it, also where there is an error.
func (r *Runner[T]) Evaluate(m *Model[T], in *Input[T], target *Target, control *parallel.Control, confusion []int64) (sums EpochSums, err error) {
	rows := m.Rows(in.Vertices())
	h := &m.head
	if err := target.check(rows, h.classes); err != nil {
		return sums, err
	}
	sums.Weight, sums.Labels = target.total(), target.counted()
	if rows == 0 {
		return sums, nil
	}
	block, arena := h.block(h.classes), r.budget.NewArena("inference")
	defer arena.Free()
	losses, err := memory.Make[float64](arena, int64((rows+block-1)/block))
	if err != nil {
		return sums, err
	}
	hits, err := memory.Make[int64](arena, int64(len(losses)))
	if err != nil {
		return sums, err
	}
	err = r.final(m, in, control, h.classes, func(w *scratch[T], hidden simd.Rows[T], begin, end int) {
		if confusion != nil {
			best := w.labels[:end-begin]
			r.kernels.ArgMax(best, hidden, h.second, h.secondBias, h.classes, len(best))
			for i, label := range target.Labels[begin:end] {
				if label >= 0 {
					atomic.AddInt64(&confusion[int(label)*h.classes+int(best[i])], 1)
				}
			}
		}
		logits := simd.Rows[T]{Data: w.logits, Stride: h.second.N}
		for at := begin; at < end; at += h.chunk() {
			n := min(h.chunk(), end-at)
			r.kernels.Dense(logits, hidden.From(at-begin), h.second, h.secondBias, n, simd.Identity)
			weigh(target, w.labels[:n], w.rowWeights[:n], at, 1)
			loss, hit := r.kernels.CrossEntropy(logits, w.labels[:], w.rowWeights[:], h.classes, n)
			losses[begin/block] += loss
			hits[begin/block] += int64(hit)
		}
	})
	for i := range losses {
		sums.Loss += losses[i]
		sums.Hits += hits[i]
	}
	return sums, err
}
