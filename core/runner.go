package core

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"unsafe"

	"libeman/geometry/memory"
	"libeman/geometry/parallel"
	"libeman/simd"
)

// Input is a mesh as a network takes it.
type Input[T simd.Float] struct {
	Graph *Graph[T]
	// Features are [vertices, channels, components] of the model's
	// Spec.InputType: for RelTan see RelTanFeatures; for GET ⟨p, n⟩, ⟨p, e1⟩,
	// ⟨p, e2⟩; for XYZ the coordinates.
	Features []float64
	// Spirals are what a SpiralNet++ needs; others ignore them.
	Spirals *Spirals
}

// Runner runs models on meshes: it holds the kernels, the threads and the
// memory. Its methods may be called from many goroutines at once.
type Runner[T simd.Float] struct {
	kernels simd.Kernels[T]
	pool    *parallel.Pool
	budget  *memory.Budget

	mutex sync.Mutex
	idle  []*workspace[T] // kept from earlier calls, the smallest first
}

// NewRunner returns a runner; pool may be nil for the calling thread alone.
func NewRunner[T simd.Float](kernels simd.Kernels[T], pool *parallel.Pool, budget *memory.Budget) *Runner[T] {
	return &Runner[T]{kernels: kernels, pool: pool, budget: budget}
}

// Trim gives the memory back that is kept for later calls.
func (r *Runner[T]) Trim() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, w := range r.idle {
		w.arena.Free()
	}
	r.idle = nil
}

// Estimate is about how many bytes a call on a mesh of this size takes, on the
// runner's threads: its own work, and what belongs to the mesh, which is the
// edges' geometry, the input features, and one label for each vertex. It
// assumes that no block of vertices has more than four times the average number
// of edges, and leaves out the copy of a scattered mesh, which is made only where
// there is room.
func (r *Runner[T]) Estimate(m *Model[T], vertices, edges int64) int64 {
	blocks := max(1, (vertices+blockVertices-1)/blockVertices)
	blockEdges := min(edges, 4*(edges/blocks+1))
	bytes := m.workspaceSizes(vertices, blockEdges, r.pool.Threads()).bytes(r.elementBytes())
	of := m.spec.InputType()
	features, label := 8*int64(of.Channels*of.Components()), int64(4)
	return bytes + graphArrays*edges*r.elementBytes() + vertices*(features+label)
}

func (r *Runner[T]) elementBytes() int64 {
	var element T
	return int64(unsafe.Sizeof(element))
}

// idleWorkspaces is how many workspaces are kept for later calls.
const idleWorkspaces = 2

// acquire returns a workspace for a call: the smallest idle one that is large
// enough, or a new one, for which the idle ones make room where they must.
func (r *Runner[T]) acquire(s workspaceSizes) (*workspace[T], error) {
	if w := r.takeIdle(s); w != nil {
		return w, nil
	}
	w, err := newWorkspace[T](r.budget, s)
	if errors.Is(err, memory.ErrOutOfMemory) {
		r.Trim()
		return newWorkspace[T](r.budget, s)
	}
	return w, err
}

// takeIdle takes the smallest idle workspace that fits, or returns nil, and
// then frees the smallest one: the new one will do in its place.
func (r *Runner[T]) takeIdle(s workspaceSizes) *workspace[T] {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for i, w := range r.idle {
		if w.fits(s) {
			r.idle = slices.Delete(r.idle, i, i+1)
			return w
		}
	}
	if len(r.idle) > 0 {
		r.freeSmallest()
	}
	return nil
}

// release keeps a workspace for later calls, and of all of them the largest.
func (r *Runner[T]) release(w *workspace[T]) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	bytes := func(w, than *workspace[T]) int { return cmp.Compare(w.arena.Bytes(), than.arena.Bytes()) }
	at, _ := slices.BinarySearchFunc(r.idle, w, bytes)
	r.idle = slices.Insert(r.idle, at, w)
	if len(r.idle) > idleWorkspaces {
		r.freeSmallest()
	}
}

func (r *Runner[T]) freeSmallest() {
	r.idle[0].arena.Free()
	r.idle = slices.Delete(r.idle, 0, 1)
}

// call is one run of a model.
type call[T simd.Float] struct {
	*Runner[T]
	*workspace[T]
	model *Model[T]
	input *Input[T]
	graph *Graph[T] // that the layers run on
	progress
}

// progress divides a control into stages of equal share.
type progress struct {
	control       *parallel.Control
	stages, stage int
}

// next is the control of the next stage.
func (p *progress) next() *parallel.Control {
	from := float64(p.stage) / float64(p.stages)
	p.stage++
	return p.control.Stage(from, float64(p.stage)/float64(p.stages))
}

// begin checks the input and takes memory for a run of so many stages; its
// caller must end the call.
func (r *Runner[T]) begin(m *Model[T], in *Input[T], control *parallel.Control, stages int) (*call[T], error) {
	if err := m.checkInput(in); err != nil {
		return nil, err
	}
	if err := control.Stopped(); err != nil {
		return nil, err
	}
	graph := in.Graph
	if m.spec.Kind != KindSpiral { // spirals number the vertices of the mesh
		graph = graph.forLayers()
	}
	w, err := r.acquire(m.workspaceSizes(int64(graph.Vertices()), graph.largestBlock, r.pool.Threads()))
	if err != nil {
		return nil, err
	}
	return &call[T]{Runner: r, workspace: w, model: m, input: in, graph: graph, progress: progress{control: control, stages: stages}}, nil
}

func (c *call[T]) end() { c.release(c.workspace) }

func (m *Model[T]) checkInput(in *Input[T]) error {
	of := m.spec.InputType()
	vertices := in.Graph.Vertices()
	if want := vertices * of.Channels * of.Components(); len(in.Features) != want {
		return invalidArgument("features", "%d numbers, not %d = %d vertices × %d channels × %d components",
			len(in.Features), want, vertices, of.Channels, of.Components())
	}
	if m.spec.Task == TaskClassification && vertices == 0 {
		return invalidArgument("mesh", "a mesh without vertices has no class")
	}
	if m.spec.Kind != KindSpiral {
		return nil
	}
	if in.Spirals == nil {
		return invalidArgument("spirals", "a spiral network needs them")
	}
	if in.Spirals.length != m.spec.SpiralLength || in.Spirals.vertices() != vertices {
		return invalidArgument("spirals", "%d of length %d, not %d of length %d",
			in.Spirals.vertices(), in.Spirals.length, vertices, m.spec.SpiralLength)
	}
	return nil
}

// RelTanFeatures packs RelTan vectors in tangent coordinates [vertices, powers,
// 2] as input features [vertices, powers, 3]: each power one channel, whose
// rho_0 is zero (§4, app. F).
func RelTanFeatures(tangent []float64) []float64 {
	features := make([]float64, len(tangent)/2*3)
	for i := range len(tangent) / 2 {
		copy(features[3*i+1:], tangent[2*i:2*i+2])
	}
	return features
}

// layers runs the first n layers and returns the features of the last, in the
// order of the mesh. alpha, where not nil, gets its attention coefficients.
func (c *call[T]) layers(n int, alpha []T) (simd.Rows[T], error) {
	current, blockInput := 0, 0
	x := simd.Rows[T]{Data: c.features[0], Stride: c.model.spec.InputType().size()}
	if err := packInput(c.pool, c.next(), c.model.spec.InputType(), c.graph, c.input.Features, x); err != nil {
		return x, err
	}
	input := x // of the current residual block
	for i := range n {
		l := &c.model.layers[i]
		free := 0
		for free == current || free == blockInput {
			free++
		}
		y := simd.Rows[T]{Data: c.features[free], Stride: l.out.size()}
		var readOut []T
		if i == n-1 {
			readOut = alpha
		}
		if err := c.layer(l, x, y, input, readOut); err != nil {
			return y, err
		}
		current, x = free, y
		if l.residual != nil {
			blockInput, input = free, y
		}
	}
	if c.graph.order == nil {
		return x, nil
	}
	return c.restore(x, c.features[(current+1)%len(c.features)])
}

// restore brings rows into the order of the mesh.
func (c *call[T]) restore(x simd.Rows[T], memory []T) (simd.Rows[T], error) {
	y := simd.Rows[T]{Data: memory, Stride: x.Stride}
	return y, c.pool.Range(nil, c.graph.Vertices(), poolRows, func(_, begin, end int) error {
		for i := begin; i < end; i++ {
			copy(y.Row(c.graph.vertex(i), y.Stride), x.Row(i, x.Stride))
		}
		return nil
	})
}

// packInput copies the input features of a mesh to rows of padded channels, in
// the order of g.
func packInput[T simd.Float](pool *parallel.Pool, control *parallel.Control, of Type, g *Graph[T], features []float64, x simd.Rows[T]) error {
	components := of.Components()
	return pool.Range(control, g.Vertices(), poolRows, func(_, begin, end int) error {
		for p := begin; p < end; p++ {
			row := x.Row(p, of.size())
			clear(row)
			given := features[g.vertex(p)*of.Channels*components:]
			for i := range of.Channels * components {
				row[i%components*of.padded()+i/components] = T(given[i])
			}
		}
		return nil
	})
}

// layer runs one layer on all vertices.
func (c *call[T]) layer(l *layer[T], x, y, input simd.Rows[T], alpha []T) error {
	return c.pool.Range(c.next(), c.input.Graph.Vertices(), blockVertices, func(worker, begin, end int) error {
		w := &c.workers[worker]
		if l.spiral != nil {
			l.spiral.forward(c.kernels, w, c.input.Spirals, x, y, begin, end)
			return nil
		}
		l.convolution.forward(c.kernels, w, c.graph, x, y, begin, end, alpha)
		if l.residual != nil {
			l.residual.add(c.kernels, input.From(begin), y.From(begin), end-begin)
		}
		l.activation.apply(c.kernels, y.From(begin), end-begin)
		return nil
	})
}
