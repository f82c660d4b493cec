package core

import (
	"libeman/geometry/parallel"
	"libeman/simd"
)

// Evaluate computes the loss and the accuracy of a model on a mesh. confusion,
// where not nil, [classes, classes], gets how many labels of a class (row) were
// taken for another (column).
func (r *Runner[T]) Evaluate(m *Model[T], in *Input[T], target *Target, control *parallel.Control, confusion []int64) (sums EpochSums, err error) {
	rows := m.Rows(in.Graph.Vertices())
	h := &m.head
	if err := target.check(rows, h.classes); err != nil {
		return sums, err
	}
	sums.Weight, sums.Labels = target.total(), target.counted()
	if rows == 0 {
		return sums, nil
	}
	block := h.block(h.classes)
	losses, hits := make([]float64, (rows+block-1)/block), make([]int, (rows+block-1)/block)
	labels, weights := make([]int32, rows), make([]T, rows)
	weigh(target, labels, weights, 0, 1)
	var best []int32
	if confusion != nil {
		best = make([]int32, rows)
	}
	err = r.final(m, in, control, h.classes, func(w *scratch[T], hidden simd.Rows[T], begin, end int) {
		if best != nil {
			r.kernels.ArgMax(best[begin:end], hidden, h.second, h.secondBias, h.classes, end-begin)
		}
		logits := simd.Rows[T]{Data: w.logits, Stride: h.second.N}
		for at := begin; at < end; at += h.chunk() {
			n := min(h.chunk(), end-at)
			r.kernels.Dense(logits, hidden.From(at-begin), h.second, h.secondBias, n, simd.Identity)
			loss, hit := r.kernels.CrossEntropy(logits, labels[at:], weights[at:], h.classes, n)
			losses[begin/block] += loss
			hits[begin/block] += hit
		}
	})
	for i := range losses {
		sums.Loss += losses[i]
		sums.Hits += int64(hits[i])
	}
	if err == nil {
		for i, label := range best {
			if target.Labels[i] >= 0 {
				confusion[int(target.Labels[i])*h.classes+int(label)]++
			}
		}
	}
	return sums, err
}
