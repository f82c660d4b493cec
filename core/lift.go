package core

import (
	"slices"
	"sync"

	"libeman/geometry/memory"
	"libeman/simd"
)

// Lift carries the features of samples of a surface to the vertices of a mesh:
// those of vertex v are Σ_i Weights[i]·f(Samples[i]) for i in [Offsets[v],
// Offsets[v+1]). It is immutable and may be used by many calls at once.
type Lift[T simd.Float] struct {
	Offsets []int64 // [V+1]
	Samples []int32
	Weights []T

	samples int // that there are
	arena   *memory.Arena
	entries inverse // of each sample
	mutex   sync.Mutex
	owners  []int32 // the vertex of each entry; nil until it is wanted
}

// NewLift checks the arrays and copies the weights, counted under budget;
// offsets [V+1] and the samples, of so many, are kept and must not change.
func NewLift[T simd.Float](budget *memory.Budget, count int, offsets []int64, samples []int32, weights []float64) (*Lift[T], error) {
	l := &Lift[T]{Offsets: offsets, Samples: samples, samples: count, arena: budget.NewArena("lift")}
	if err := checkOffsets(offsets, len(samples)); err != nil {
		return nil, err
	}
	if len(weights) != len(samples) {
		return nil, invalidArgument("weights", "%d of them for %d samples", len(weights), len(samples))
	}
	for i, s := range samples {
		if s < 0 || int(s) >= count {
			return nil, invalidArgument("samples", "entry %d: sample %d is out of range [0, %d)", i, s, count)
		}
		if w := weights[i]; !(w >= 0 && w <= largestWeight) {
			return nil, invalidArgument("weights", "entry %d: %g is out of range [0, %g]", i, w, largestWeight)
		}
	}
	var err error
	if l.Weights, err = memory.Make[T](l.arena, int64(len(weights))); err != nil {
		return nil, err
	}
	for i, w := range weights {
		l.Weights[i] = T(w)
	}
	return l, nil
}

// largestWeight bounds the weights of a lift; those of an interpolation are at
// most 1.
const largestWeight = 1e6

// Vertices is the number of vertices of the mesh.
func (l *Lift[T]) Vertices() int { return len(l.Offsets) - 1 }

// Free gives the lift's memory back; it must not be used any more.
func (l *Lift[T]) Free() { l.arena.Free() }

// apply computes n numbers of each of the rows y of the vertices [begin, end)
// from those of the samples.
func (l *Lift[T]) apply(y, x simd.Rows[T], n, begin, end int) {
	for v := begin; v < end; v++ {
		row := y.Row(v-begin, n)
		clear(row)
		for i := l.Offsets[v]; i < l.Offsets[v+1]; i++ {
			addScaled(row, x.Row(int(l.Samples[i]), n), l.Weights[i])
		}
	}
}

// addScaled adds factor·from to a row.
func addScaled[T simd.Float](to, from []T, factor T) {
	for j, value := range from[:len(to)] {
		to[j] += factor * value
	}
}

// transpose knows which vertices take the features of a sample: the entries
// places[offsets[s]:offsets[s+1]] of sample s, and the vertex of each entry.
type transpose[T simd.Float] struct {
	*Lift[T]
	places  []int32
	offsets []int64
}

// transposed is made when it is first wanted.
func (l *Lift[T]) transposed() (t transpose[T], err error) {
	t.Lift = l
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if t.places, t.offsets, err = l.entries.of(l.Samples, l.samples, l.arena); err != nil || l.owners != nil {
		return t, err
	}
	if l.owners, err = memory.Make[int32](l.arena, int64(len(l.Samples))); err != nil {
		return t, err
	}
	for v := range l.Vertices() {
		for i := l.Offsets[v]; i < l.Offsets[v+1]; i++ {
			l.owners[i] = int32(v)
		}
	}
	return t, nil
}

// apply adds to n numbers of each of the rows y of the samples [begin, end) what
// the rows x of the vertices [first, last) give back, in their order.
func (t transpose[T]) apply(y, x simd.Rows[T], n, begin, end, first, last int) {
	for s := begin; s < end; s++ {
		row, places := y.Row(s-begin, n), t.places[t.offsets[s]:t.offsets[s+1]]
		at, _ := slices.BinarySearch(places, int32(t.Offsets[first]))
		for ; at < len(places) && int64(places[at]) < t.Offsets[last]; at++ {
			i := places[at]
			addScaled(row, x.Row(int(t.owners[i])-first, n), t.Weights[i])
		}
	}
}
