package geometry

import (
	"sync"

	"libeman/geometry/memory"
	"libeman/geometry/parallel"
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
// called from many goroutines at once; Update and Close wait for the others.
type Mesh struct {
	options Options
	mutex   sync.RWMutex
	view    View

	arena      *memory.Arena // positions and frames
	spare      []float64     // the positions before the last update
	edgesArena *memory.Arena // of view.edges; nil where they are the topology's own
}

// View is a mesh at rest, handed out by [Mesh.Read].
type View struct {
	resources Resources
	topology  *topology
	edges     edgeSet   // the topology's edges less those of zero length
	positions []float64 // V×3, divided by 2^exponent
	exponent  int
	frames    []float64 // V×9, rows e1, e2, n
	version   uint64    // how often the positions have changed
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
	exponent, err := scaleOf(r, int(in.VertexCount), in.Positions, control.Stage(0, 0.05))
	if err != nil {
		return nil, err
	}
	t, err := newTopology(r, &in, options.DropDegenerate, control.Stage(0.05, 0.7))
	if err != nil {
		return nil, err
	}
	defer t.release()
	return newMesh(r, t, &in, exponent, options, control.Stage(0.7, 1))
}

// newMesh builds a mesh on a topology that exists, and retains it.
func newMesh(r Resources, t *topology, in *Input, exponent int, options Options, control *parallel.Control) (m *Mesh, err error) {
	m = &Mesh{
		options: options,
		arena:   r.NewArena("mesh"),
		view:    View{resources: r, topology: t.retain(), edges: t.edges, exponent: exponent},
	}
	defer func() {
		if err != nil {
			m.Close()
			m = nil
		}
	}()
	v := &m.view
	if v.positions, err = memory.Make[float64](m.arena, 3*in.VertexCount); err != nil {
		return m, err
	}
	if v.frames, err = memory.Make[float64](m.arena, 9*in.VertexCount); err != nil {
		return m, err
	}
	if err = readPositions(r, v.positions, in.Positions, exponent); err != nil {
		return m, err
	}
	if options.Gauge == CustomGauge {
		if err = readFrames(r, v.frames, in.Frames, control); err != nil {
			return m, err
		}
	}
	return m, m.settle(control)
}

// settle brings the frames and the edge set up to date with the positions.
func (m *Mesh) settle(control *parallel.Control) error {
	zeroLength, err := m.view.setFrames(m.options, control)
	if err != nil {
		return err
	}
	if !zeroLength && m.edgesArena == nil {
		return nil
	}
	// Some edges have no length, or had none before: choose them anew.
	edges, arena := m.view.topology.edges, (*memory.Arena)(nil)
	if zeroLength {
		arena = m.view.resources.NewArena("mesh")
		if edges, err = m.view.topology.edges.without(m.view.resources, arena, m.view.coincide); err != nil {
			arena.Free()
			return err
		}
	}
	m.edgesArena.Free()
	m.edgesArena, m.view.edges = arena, edges
	return nil
}

// Update moves the vertices and keeps the topology. positions (and, for a mesh
// with the custom gauge, frames) are read as in Input. On an error the mesh is
// as it was.
func (m *Mesh) Update(positions, frames PositionReader) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	v := &m.view
	if (m.options.Gauge == CustomGauge) != (frames != nil) {
		return badArgument("frames", "new frames are needed for a mesh with the custom gauge, and for no other")
	}
	vertices := v.VertexCount()
	exponent, err := scaleOf(v.resources, vertices, positions, nil)
	if err != nil {
		return err
	}
	scratch := v.resources.NewArena("scratch")
	defer scratch.Free()
	var newFrames, oldFrames []float64
	if frames != nil {
		if newFrames, err = memory.Make[float64](scratch, int64(2*len(v.frames))); err != nil {
			return err
		}
		newFrames, oldFrames = newFrames[:len(v.frames)], newFrames[len(v.frames):]
		if err := readFrames(v.resources, newFrames, frames, nil); err != nil {
			return err
		}
		copy(oldFrames, v.frames)
	}
	if m.spare == nil {
		if m.spare, err = memory.Make[float64](m.arena, int64(len(v.positions))); err != nil {
			return err
		}
	}
	if err := readPositions(v.resources, m.spare, positions, exponent); err != nil {
		return err
	}
	m.exchange(&exponent)
	copy(v.frames, newFrames)
	if err := m.settle(nil); err != nil {
		// Back to the old positions, whose frames follow from them again.
		m.exchange(&exponent)
		copy(v.frames, oldFrames)
		if _, again := v.setFrames(m.options, nil); again != nil {
			return again
		}
		return err
	}
	v.version++
	return nil
}

// exchange swaps the positions with the spare ones.
func (m *Mesh) exchange(exponent *int) {
	m.view.positions, m.spare = m.spare, m.view.positions
	m.view.exponent, *exponent = *exponent, m.view.exponent
}

// Close frees the mesh's memory. The mesh must not be used afterwards.
func (m *Mesh) Close() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.edgesArena.Free()
	m.arena.Free()
	m.view.topology.release()
	m.view, m.arena, m.edgesArena, m.spare = View{}, nil, nil, nil
}

// Read calls read with the mesh at rest: no Update happens until it returns.
// The view and the slices it gives must not be kept or changed, and read must
// not call methods of the mesh itself.
func (m *Mesh) Read(read func(v *View) error) error {
	m.mutex.RLock()
	defer m.mutex.RUnlock()
	return read(&m.view)
}

// Version counts the updates of the mesh: what was computed from a view with
// the same version is still true.
func (v *View) Version() uint64 { return v.version }

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
	return at(v.positions, q).minus(at(v.positions, p)).squared() < zeroLengthSquared
}

// zeroLengthSquared bounds the squared length, relative to the largest
// coordinate, of edges that count as having none: below it, products of
// lengths vanish in float64.
const zeroLengthSquared = 0x1p-1000
