package geometry

import (
	"sync"
	"sync/atomic"

	"libeman/geometry/internal/r3"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
	"libeman/simd"
)

// Normals selects how the face normals around a vertex are weighted.
type Normals int

// The weights of face normals.
const (
	AreaNormals  Normals = iota // by area (the paper)
	AngleNormals                // by the angle at the vertex (the authors' code)
)

// Gauge selects the first axis of the vertices' frames.
type Gauge int

// The gauges.
const (
	// FirstNeighborGauge: e1 points to the neighbour of lowest index that has
	// a projection on the tangent plane.
	FirstNeighborGauge Gauge = iota
	// RandomGauge turns that by an angle drawn from Options.Seed for each vertex.
	RandomGauge
	// CustomGauge takes Input.Frames, their normals too.
	CustomGauge
)

// Options of a mesh. The zero value is the paper's choice.
type Options struct {
	Normals        Normals
	Gauge          Gauge
	Seed           uint64 // of RandomGauge
	DropDegenerate bool   // leave faces out that name a vertex twice
}

func (o Options) check(in *Input) error {
	switch {
	case o.Normals != AreaNormals && o.Normals != AngleNormals:
		return badArgument("normals", "%d is not a known choice", o.Normals)
	case o.Gauge != FirstNeighborGauge && o.Gauge != RandomGauge && o.Gauge != CustomGauge:
		return badArgument("gauge", "%d is not a known choice", o.Gauge)
	case o.Gauge == CustomGauge && in.Frames == nil:
		return badArgument("frames", "the custom gauge needs a frame for each vertex")
	case o.Gauge != CustomGauge && in.Frames != nil:
		return badArgument("frames", "frames are given, but the gauge is not custom")
	}
	return nil
}

// Mesh is a triangle mesh with its topology and frames. All methods may be
// called from many goroutines at once, and from callbacks of each other: none
// waits for another.
type Mesh struct {
	options Options

	current atomic.Pointer[View] // nil after Close
	mutex   sync.Mutex           // of changes of current and of spare, held for moments only
	spare   *View                // the state before the last update, for the next to fill
}

// View is the state of a mesh between two updates. It never changes, and lives
// until its last reader has finished ([Mesh.Read]).
type View struct {
	mesh      *Mesh        // where its memory goes when it is no longer read
	users     atomic.Int64 // its readers, and the mesh while it is current; at 0 it may be filled anew
	resources Resources
	kernels   simd.Geometry // nil: scalar code
	topology  *topology

	arena     *memory.Arena // of positions and frames
	positions []float64     // V×3, divided by 2^exponent
	exponent  int           // before fill, a guess
	frames    []float64     // V×9, rows e1, e2, n

	edgesArena *memory.Arena // of edges; nil where they are the topology's own
	edges      edgeSet       // the topology's edges less those of zero length

	cache cache
}

// New builds a mesh. The input is borrowed for the call. Errors match
// ErrInvalidMesh, ErrInvalidArgument, ErrTooLarge, memory.ErrOutOfMemory or
// parallel.ErrCancelled.
func New(r Resources, in Input, options Options, control *parallel.Control) (*Mesh, error) {
	if err := in.checkCounts(); err != nil {
		return nil, err
	}
	if err := options.check(&in); err != nil {
		return nil, err
	}
	t, err := newTopology(r, &in, options.DropDegenerate, control.Stage(0, 0.7))
	if err != nil {
		return nil, err
	}
	defer t.release()
	return newMesh(r, t, &in, options, control.Stage(0.7, 1))
}

// newMesh builds a mesh on a topology that exists, and retains it.
func newMesh(r Resources, t *topology, in *Input, options Options, control *parallel.Control) (*Mesh, error) {
	m := &Mesh{options: options}
	v, err := newView(m, r, t)
	if err != nil {
		return nil, err
	}
	if err := v.fill(in.Positions, in.Frames, control); err != nil {
		v.free()
		return nil, err
	}
	v.users.Store(1)
	m.current.Store(v)
	return m, nil
}

// newView allocates a state to fill.
func newView(m *Mesh, r Resources, t *topology) (v *View, err error) {
	v = &View{mesh: m, resources: r, kernels: simd.GeometryOf(r.InstructionSet), topology: t.retain(), arena: r.NewArena("mesh"), cache: cache{budget: r.Memory}}
	// The kernels read rows of three as four numbers.
	if v.positions, err = memory.Make[float64](v.arena, 3*int64(t.vertexCount)+1); err == nil {
		v.positions = v.positions[:3*t.vertexCount]
		v.frames, err = memory.Make[float64](v.arena, 9*int64(t.vertexCount))
	}
	if err != nil {
		v.free()
		return nil, err
	}
	return v, nil
}

// fill computes the state for new positions and, in the custom gauge, frames.
func (v *View) fill(positions, frames PositionReader, control *parallel.Control) (err error) {
	if err := v.setPositions(positions, control.Stage(0, 0.2)); err != nil {
		return err
	}
	if frames != nil {
		if err := readFrames(v.resources, v.frames, frames, control.Stage(0.2, 0.5)); err != nil {
			return err
		}
	}
	touching, err := v.setFrames(v.mesh.options, control.Stage(0.5, 1))
	if err != nil {
		return err
	}
	v.edges = v.topology.edges
	if touching {
		v.edgesArena = v.resources.NewArena("mesh")
		v.edges, err = v.topology.edges.without(v.resources, v.edgesArena, v.coincide)
	}
	return err
}

// clear frees what a state has beside its positions and frames.
func (v *View) clear() {
	v.cache.clear()
	v.edgesArena.Free()
	v.edgesArena, v.edges = nil, edgeSet{}
}

func (v *View) free() {
	v.clear()
	v.arena.Free()
	v.topology.release()
}

// acquire makes the caller a user of the mesh's state, without a lock.
func (m *Mesh) acquire() (*View, error) {
	for {
		v := m.current.Load()
		if v == nil {
			return nil, badArgument("mesh", "it was freed")
		}
		if v.use() {
			return v, nil
		}
	}
}

// use makes the caller a user of a state that has users. It fails where an
// update has replaced the state since it was found, or others come or leave at
// the same moment.
func (v *View) use() bool {
	n := v.users.Load()
	return n > 0 && v.users.CompareAndSwap(n, n+1)
}

// release is called by each user once.
func (v *View) release() {
	if v.users.Add(-1) == 0 {
		v.retire()
	}
}

// retire hands the memory of a state that nobody uses to the next update, or
// frees it.
func (v *View) retire() {
	v.clear()
	m := v.mesh
	m.mutex.Lock()
	keep := m.current.Load() != nil && m.spare == nil
	if keep {
		m.spare = v
	}
	m.mutex.Unlock()
	if !keep {
		v.free()
	}
}

// Update moves the vertices and keeps the topology. positions (and, for a mesh
// with the custom gauge, frames) are read as in Input. What reads the mesh
// meanwhile sees it as it was; so does everybody after an error.
func (m *Mesh) Update(positions, frames PositionReader, control *parallel.Control) error {
	if (m.options.Gauge == CustomGauge) != (frames != nil) {
		return badArgument("frames", "new frames are needed for a mesh with the custom gauge, and for no other")
	}
	next, err := m.nextView()
	if err != nil {
		return err
	}
	current := false
	defer func() {
		if !current {
			next.retire()
		}
	}()
	if err := next.fill(positions, frames, control); err != nil {
		return err
	}
	before := m.replace(next)
	if before == nil {
		return badArgument("mesh", "it was freed during the update")
	}
	current = true
	before.release()
	return nil
}

// replace makes a full state the current one, and returns that before, of which
// the mesh is still a user; nil, and nothing has changed, if the mesh was freed.
func (m *Mesh) replace(next *View) (before *View) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if before = m.current.Load(); before != nil {
		next.users.Store(1)
		m.current.Store(next)
	}
	return before
}

// nextView is a state to fill: the spare one or a new one.
func (m *Mesh) nextView() (*View, error) {
	m.mutex.Lock()
	spare := m.spare
	m.spare = nil
	m.mutex.Unlock()
	if spare != nil {
		return spare, nil
	}
	current, err := m.acquire()
	if err != nil {
		return nil, err
	}
	defer current.release()
	next, err := newView(m, current.resources, current.topology)
	if err == nil {
		next.exponent = current.exponent
	}
	return next, err
}

// Close frees the mesh's memory as soon as nothing reads it. The mesh must not
// be used afterwards.
func (m *Mesh) Close() {
	m.mutex.Lock()
	current, spare := m.current.Swap(nil), m.spare
	m.spare = nil
	m.mutex.Unlock()
	if spare != nil {
		spare.free()
	}
	if current != nil {
		current.release()
	}
}

// Read calls read with the state of the mesh. The view and the slices it gives
// are valid until read returns, and must not be changed.
func (m *Mesh) Read(read func(v *View) error) error {
	v, err := m.acquire()
	if err != nil {
		return err
	}
	defer v.release()
	return read(v)
}

// Options are those that the mesh was built with.
func (m *Mesh) Options() Options { return m.options }

// VertexCount is V.
func (v *View) VertexCount() int { return len(v.positions) / 3 }

// FaceCount is F, without the faces that were dropped.
func (v *View) FaceCount() int { return len(v.topology.faces) / 3 }

// EdgeCount is E, the number of directed edges.
func (v *View) EdgeCount() int { return len(v.edges.neighbors) }

// Resources are the threads and memory of the mesh.
func (v *View) Resources() Resources { return v.resources }

// ScaledPositions are the V×3 positions, divided by 2^[View.Exponent]: no
// coordinate has a magnitude of 2 or more.
func (v *View) ScaledPositions() []float64 { return v.positions }

// FrameRows are the V×9 rows e1, e2, n of the vertices' frames.
func (v *View) FrameRows() []float64 { return v.frames }

// HasOwnFrames says whether the frames, and so the normals, are the caller's.
func (v *View) HasOwnFrames() bool { return v.mesh.options.Gauge == CustomGauge }

// Offsets, of V+1 elements, delimit the neighbours of each vertex.
func (v *View) Offsets() []int64 { return v.edges.offsets }

// Neighbors (§3.1) are the E neighbours: those of p, in increasing order, are
// Neighbors()[Offsets()[p]:Offsets()[p+1]]. They also number the directed
// edges p → q that the message from q to p belongs to.
func (v *View) Neighbors() []int32 { return v.edges.neighbors }

// ReverseEdges gives for each directed edge the number of its reverse.
func (v *View) ReverseEdges() []int32 { return v.edges.reverse }

// Faces are the F×3 vertex indices of the faces that were kept.
func (v *View) Faces() []int32 { return v.topology.faces }

// coincide says whether an edge has zero length.
func (v *View) coincide(p, q int) bool {
	return r3.At(v.positions, q).Minus(r3.At(v.positions, p)).Squared() < zeroLengthSquared
}

// zeroLengthSquared bounds the squared length, relative to the largest
// coordinate, of edges that count as having none: below it, products of
// lengths vanish in float64.
const zeroLengthSquared = 0x1p-1000
