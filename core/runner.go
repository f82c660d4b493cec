package core

import (
	"cmp"
	"slices"
	"sync"

	"libeman/geometry/memory"
	"libeman/geometry/parallel"
	"libeman/simd"
)

// Input is a mesh, or samples of a surface, as a network takes it.
type Input[T simd.Float] struct {
	Graph *Graph[T] // of the vertices; nil for samples
	// Levels are those of the samples of a surface, the finest first.
	Levels []Level[T]
	// Lift leads from the samples of the finest level to the vertices that are
	// to be labelled; without one, the samples are.
	Lift *Lift[T]
	// Features are [vertices, channels, components] of the model's
	// Spec.InputType, or [points of the finest level, …]: for RelTan see
	// RelTanFeatures; for GET ⟨p, n⟩, ⟨p, e1⟩, ⟨p, e2⟩; for XYZ the coordinates.
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
	speed   func() speed // measured once

	mutex sync.Mutex
	idle  []*workspace[T] // kept from earlier calls, the smallest first
}

// NewRunner returns a runner; pool may be nil for the calling thread alone.
func NewRunner[T simd.Float](kernels simd.Kernels[T], pool *parallel.Pool, budget *memory.Budget) *Runner[T] {
	r := &Runner[T]{kernels: kernels, pool: pool, budget: budget}
	r.speed = sync.OnceValue(func() speed { return measureSpeed(kernels) })
	budget.Register(r)
	return r
}

// Reclaim gives the memory back that is kept for later calls (memory.Reclaimer).
func (r *Runner[T]) Reclaim() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	kept := len(r.idle) > 0
	for _, w := range r.idle {
		w.arena.Free()
	}
	r.idle = nil
	return kept
}

// idleWorkspaces is how many workspaces are kept for later calls.
const idleWorkspaces = 2

// acquire returns a workspace for a call: the smallest idle one that is large
// enough, or a new one, for which the idle ones make room where they must.
func (r *Runner[T]) acquire(s workspaceSizes) (*workspace[T], error) {
	if w := r.takeIdle(s); w != nil {
		return w, nil
	}
	return newWorkspace[T](r.budget, s)
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
	graph *Graph[T] // that the layers run on; of the finest level
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
	graph := in.graph(0, 0)
	if m.spec.Kind != KindSpiral { // spirals number the vertices of the mesh
		graph = graph.forLayers()
	}
	c := &call[T]{Runner: r, model: m, input: in, graph: graph, progress: progress{control: control, stages: stages}}
	blockEdges := int64(0)
	for i := range m.layers {
		blockEdges = max(blockEdges, c.graphOf(&m.layers[i]).largestBlock)
	}
	var err error
	c.workspace, err = r.acquire(m.workspaceSizes(int64(graph.Vertices()), blockEdges, r.pool.Threads()))
	if err != nil {
		return nil, err
	}
	return c, nil
}

// graphOf is the graph that a layer runs on.
func (c *call[T]) graphOf(l *layer[T]) *Graph[T] {
	if c.input.Levels == nil {
		return c.graph
	}
	return c.input.graph(l.from, l.to)
}

func (c *call[T]) end() { c.release(c.workspace) }

func (m *Model[T]) checkInput(in *Input[T]) error {
	if err := m.checkGraphs(in); err != nil {
		return err
	}
	of := m.spec.InputType()
	vertices := in.points()
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
	x := c.value(0)
	if err := packInput(c.pool, c.next(), c.model.spec.InputType(), c.graph, c.input.Features, x); err != nil {
		return x, err
	}
	for i := range n {
		var readOut []T
		if i == n-1 {
			readOut = alpha
		}
		if err := c.layer(i, readOut); err != nil {
			return x, err
		}
	}
	x = c.value(n)
	if c.graph.order == nil {
		return x, nil
	}
	return c.restore(x, c.features[(c.model.buffer[n]+1)%c.model.buffers])
}

// value is the features that are numbered as in placeValues.
func (c *call[T]) value(v int) simd.Rows[T] {
	return simd.Rows[T]{Data: c.features[c.model.buffer[v]], Stride: c.model.typeOf(v).size()}
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

// layer runs layer i on all of its points.
func (c *call[T]) layer(i int, alpha []T) error {
	l := &c.model.layers[i]
	graph, x, y := c.graphOf(l), c.value(i), c.value(i+1)
	return c.pool.Range(c.next(), graph.Vertices(), blockVertices, func(worker, begin, end int) error {
		w := &c.workers[worker]
		if l.spiral != nil {
			l.spiral.forward(c.kernels, w, c.input.Spirals, x, y, begin, end)
			return nil
		}
		l.convolution.forward(c.kernels, w, graph, x, c.value(l.own(i)), y, begin, end, alpha)
		if l.residual != nil {
			l.residual.add(c.kernels, c.value(l.residualFrom).From(begin), y.From(begin), end-begin)
		}
		l.activation.apply(c.kernels, y.From(begin), end-begin)
		return nil
	})
}
