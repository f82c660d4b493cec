package core

import (
	"libeman/geometry/memory"
	"libeman/simd"
)

const (
	// headRows is the number of vertices that go through the dense layers at a
	// time.
	headRows = 240
	// logitsChunk is about how many log-probabilities are computed at a time.
	logitsChunk = 1 << 16
	// blockProducts and blockResults bound the multiplications by the weights
	// of the last layer and the results of one block.
	blockProducts, blockResults = 1 << 30, 1 << 20
	// poolRows is the number of vertices in one partial sum of the mean over
	// the vertices. Partial sums are added in order, whatever the threads.
	poolRows = 16 * headRows
)

// scratch is the memory that one thread needs for one block of vertices.
type scratch[T simd.Float] struct {
	moments      []T // U_p, then M_p, of a block's vertices; a block's spirals
	weights      []T // [rings, edges of the block]
	pairs        []T // [pairs of rings, edges of the block]
	coefficients []T // [edges of the block, heads]
	self         []T // [vertices of the block, heads]
	selfRows     []T // the vertices' own features, once for each head
	hidden       []T // [headRows, hidden]
	logits       []T // some rows of classes
	ofHeads      []T // the queries of a block's vertices, or the results of one head, of one order
	lifted       []T // [headRows, features]: of vertices, from samples
	// The block's edges with the weights of the values and of the keys; here,
	// because what a kernel gets through an interface cannot be on a stack.
	rings, keys simd.Rings[T]
	labels      [headRows]int32 // of some rows
	rowWeights  [headRows]T
}

// scratchSizes are the lengths of the arrays of a scratch, in its order.
type scratchSizes [10]int64

func (s *scratchSizes) atLeast(other scratchSizes) {
	for i := range s {
		s[i] = max(s[i], other[i])
	}
}

// scratchSizes says what the model needs where no block of vertices has more
// than blockEdges edges.
func (m *Model[T]) scratchSizes(blockEdges int64) (sizes scratchSizes) {
	for i := range m.layers {
		if l := &m.layers[i]; l.convolution != nil {
			sizes.atLeast(l.convolution.scratchSizes(blockEdges))
		} else {
			sizes[0] = max(sizes[0], blockVertices*int64(l.spiral.weights.K))
		}
	}
	sizes[6] = headRows * int64(simd.Padded(m.head.hidden))
	sizes[7] = int64(m.head.second.N * m.head.chunk())
	if m.spec.Surface != nil {
		sizes[9] = headRows * int64(m.head.first.K)
	}
	return sizes
}

func (c *convolution[T]) scratchSizes(edges int64) scratchSizes {
	sizes := scratchSizes{
		0: blockVertices * int64(c.moments.Size(c.heads, c.rings)),
		1: edges * int64(c.rings),
		3: edges * int64(c.heads),
	}
	for _, heads := range c.headValues {
		for _, panel := range heads {
			sizes[8] = max(sizes[8], blockVertices*int64(panel.N))
		}
	}
	a := c.attention
	if a == nil {
		return sizes
	}
	for _, factors := range a.factors {
		sizes[8] = max(sizes[8], blockVertices*int64(factors.queries.N))
	}
	sizes[0] = blockVertices * int64(a.stride(c.moments))
	if a.pairs {
		sizes[2] = edges * int64(a.sets())
	}
	if a.self != nil {
		sizes[4] = blockVertices * int64(a.heads)
		sizes[5] = blockVertices * int64(a.heads*c.in.size())
	}
	return sizes
}

// chunk is how many rows of log-probabilities are computed at a time.
func (h *denseHead[T]) chunk() int { return max(1, min(headRows, logitsChunk/h.second.N)) }

// block is how many rows go through the last layer between two looks at the
// control, where a row of the results has so many numbers: fewer than headRows
// where they would take seconds.
func (h *denseHead[T]) block(numbers int) int {
	return max(1, min(headRows, blockProducts/(h.second.K*h.second.N), blockResults/numbers))
}

// workspace is the memory of one call.
type workspace[T simd.Float] struct {
	arena    *memory.Arena
	features [][]T // features of all points that are still wanted: see placeValues
	workers  []scratch[T]
	pooled   []float64 // [partial sums, hidden]
	want     workspaceSizes
}

// workspaceSizes are the lengths of its arrays.
type workspaceSizes struct {
	features, pooled int64
	buffers, workers int
	scratch          scratchSizes
}

// widest is the length of the longest row of features.
func (m *Model[T]) widest() (numbers int) {
	for v := range m.buffer {
		numbers = max(numbers, m.typeOf(v).size())
	}
	return numbers
}

func (m *Model[T]) workspaceSizes(vertices, blockEdges int64, threads int) workspaceSizes {
	sizes := workspaceSizes{buffers: m.buffers, workers: threads, scratch: m.scratchSizes(blockEdges)}
	sizes.features = vertices * int64(m.widest())
	if m.spec.Task == TaskClassification {
		sizes.pooled = (vertices + poolRows - 1) / poolRows * int64(simd.Padded(m.head.hidden))
	}
	return sizes
}

// bytes is the size of the arrays together, of elements of so many bytes.
func (s workspaceSizes) bytes(element int64) int64 {
	elements := int64(s.buffers) * s.features
	for _, size := range s.scratch {
		elements += size * int64(s.workers)
	}
	return elements*element + 8*s.pooled
}

// fits says whether the workspace is large enough.
func (w *workspace[T]) fits(s workspaceSizes) bool {
	for i, size := range s.scratch {
		if w.want.scratch[i] < size {
			return false
		}
	}
	return w.want.features >= s.features && w.want.buffers >= s.buffers && w.want.pooled >= s.pooled && w.want.workers >= s.workers
}

func newWorkspace[T simd.Float](budget *memory.Budget, s workspaceSizes) (*workspace[T], error) {
	w := &workspace[T]{arena: budget.NewArena("inference"), features: make([][]T, s.buffers), workers: make([]scratch[T], s.workers), want: s}
	var arrays []array[T]
	for i := range w.features {
		arrays = append(arrays, array[T]{&w.features[i], s.features})
	}
	for i := range w.workers {
		for j, to := range w.workers[i].arrays() {
			arrays = append(arrays, array[T]{to, s.scratch[j]})
		}
	}
	err := makeAll(w.arena, arrays)
	if err == nil {
		err = makeAll(w.arena, []array[float64]{{&w.pooled, s.pooled}})
	}
	if err != nil {
		w.arena.Free()
		return nil, err
	}
	return w, nil
}

// arrays are the arrays in the order of scratchSizes.
func (k *scratch[T]) arrays() [len(scratchSizes{})]*[]T {
	return [...]*[]T{&k.moments, &k.weights, &k.pairs, &k.coefficients, &k.self, &k.selfRows, &k.hidden, &k.logits, &k.ofHeads, &k.lifted}
}

// makeAll makes the arrays of a list.
func makeAll[T simd.Float](arena *memory.Arena, list []array[T]) (err error) {
	for _, a := range list {
		if *a.to, err = memory.Make[T](arena, a.size); err != nil {
			return err
		}
	}
	return nil
}

type array[T simd.Float] struct {
	to   *[]T
	size int64
}
