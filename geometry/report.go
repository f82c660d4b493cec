package geometry

import (
	"cmp"
	"math"
	"slices"

	"libeman/geometry/internal/r3"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
)

// Finding is a kind of thing that the mesh doctor reports.
type Finding int

// The findings. Each lists vertices, faces, or edges as pairs of vertices with
// the lower first; faces by the caller's numbers.
const (
	IsolatedVertices    Finding = iota // vertices of no face
	CoincidentVertices                 // vertices at the place of one with a lower index
	ZeroNormalVertices                 // vertices whose faces define no normal
	NonManifoldVertices                // vertices whose faces do not form one fan
	BoundaryEdges                      // edges of one face
	NonManifoldEdges                   // edges of three faces or more
	InconsistentEdges                  // edges whose two faces are oriented against each other
	ZeroLengthEdges                    // edges between coincident vertices
	DroppedFaces                       // faces left out as they name a vertex twice
	ZeroAreaFaces                      // faces whose corners lie on a line
	NeedleFaces                        // faces more than 1000 times as long as high
	DuplicateFaces                     // faces of the same three vertices as an earlier one
	FindingCount        = iota
)

var findingNames = [FindingCount]string{
	"isolated_vertices", "coincident_vertices", "zero_normal_vertices", "non_manifold_vertices",
	"boundary_edges", "non_manifold_edges", "inconsistent_edges", "zero_length_edges",
	"dropped_faces", "zero_area_faces", "needle_faces", "duplicate_faces",
}

func (f Finding) String() string { return findingNames[f] }

// Width is how many indices name one element: 2 for edges, else 1.
func (f Finding) Width() int {
	if f >= BoundaryEdges && f <= ZeroLengthEdges {
		return 2
	}
	return 1
}

// needle is the ratio of longest edge to height beyond which a face counts as
// a needle.
const needle = 1000

// Report is what the mesh doctor found. It keeps its memory until Close.
type Report struct {
	VertexCount, FaceCount, EdgeCount int64 // EdgeCount: directed edges, as in the mesh
	ComponentCount                    int64 // of the vertices that have faces
	EulerCharacteristic               int64 // vertices − edges + faces, without isolated vertices
	MinDegree, MaxDegree              int64 // neighbours of a vertex, isolated ones apart
	Area                              float64
	MinLength, MeanLength, MaxLength  float64 // of the edges that have a length
	Closed, Manifold, Oriented        bool

	arena    *memory.Arena
	findings [FindingCount][]int32
}

// Close frees the report's memory.
func (r *Report) Close() { r.arena.Free() }

// Count is how many elements a finding has.
func (r *Report) Count(f Finding) int { return len(r.findings[f]) / f.Width() }

// Indices are the elements of a finding, Width numbers each, in increasing
// order. They must not be changed.
func (r *Report) Indices(f Finding) []int32 { return r.findings[f] }

// Examine looks the mesh over: the mesh doctor.
func (m *Mesh) Examine(control *parallel.Control) (report *Report, err error) {
	err = m.Read(func(v *View) error {
		report, err = examine(v, m.options, control)
		return err
	})
	return report, err
}

func examine(v *View, options Options, control *parallel.Control) (report *Report, err error) {
	r := &Report{
		VertexCount: int64(v.VertexCount()),
		FaceCount:   int64(v.FaceCount()),
		EdgeCount:   int64(v.EdgeCount()),
		arena:       v.resources.NewArena("report"),
	}
	scratch := v.resources.NewArena("scratch")
	defer scratch.Free()
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	d := &doctor{view: v, options: options, report: r, scratch: scratch}
	steps := []func(*parallel.Control) error{d.dropped, d.vertexFindings, d.faceFindings, d.coincident, d.components, d.measure}
	for i, step := range steps {
		part := control.Stage(float64(i)/float64(len(steps)), float64(i+1)/float64(len(steps)))
		if err := step(part); err != nil {
			return nil, err
		}
	}
	r.Closed = r.FaceCount > 0 && r.Count(BoundaryEdges) == 0
	r.Manifold = r.Count(NonManifoldEdges) == 0 && r.Count(NonManifoldVertices) == 0
	r.Oriented = r.Count(InconsistentEdges) == 0
	return r, nil
}

// doctor is one examination.
type doctor struct {
	view    *View
	options Options
	report  *Report
	scratch *memory.Arena
}

// dropped copies the numbers of the faces that were left out.
func (d *doctor) dropped(control *parallel.Control) (err error) {
	numbers := d.view.topology.dropped
	if d.report.findings[DroppedFaces], err = memory.Make[int32](d.report.arena, int64(len(numbers))); err != nil {
		return err
	}
	copy(d.report.findings[DroppedFaces], numbers)
	return control.Finish()
}

// emit hands an element to a finding: vertex or face a, or edge (a, b).
type emit func(f Finding, a, b int32)

// collect runs visit over the pieces of [0, n) twice: to count what each piece
// emits, and to store it, so that the lists are in order and of exact size.
// visit must emit the same both times.
func (d *doctor) collect(control *parallel.Control, n int, visit func(worker, begin, end int, found emit)) error {
	blocks := (n + blockRows - 1) / blockRows
	pool := d.view.resources.Threads
	counts, err := memory.Make[int32](d.scratch, int64(blocks)*FindingCount)
	if err != nil {
		return err
	}
	err = pool.Range(control.Stage(0, 0.5), n, blockRows, func(worker, begin, end int) error {
		own := counts[begin/blockRows*FindingCount:][:FindingCount]
		visit(worker, begin, end, func(f Finding, _, _ int32) { own[f] += int32(f.Width()) })
		return nil
	})
	if err != nil {
		return err
	}
	var lists [FindingCount][]int32
	starts, err := memory.Make[int64](d.scratch, int64(blocks)*FindingCount)
	if err != nil {
		return err
	}
	for f := range Finding(FindingCount) {
		total := int64(0)
		for b := range blocks {
			starts[b*FindingCount+int(f)] = total
			total += int64(counts[b*FindingCount+int(f)])
		}
		if total == 0 {
			continue
		}
		if lists[f], err = memory.Make[int32](d.report.arena, total); err != nil {
			return err
		}
		d.report.findings[f] = lists[f]
	}
	return pool.Range(control.Stage(0.5, 1), n, blockRows, func(worker, begin, end int) error {
		next := starts[begin/blockRows*FindingCount:][:FindingCount]
		visit(worker, begin, end, func(f Finding, a, b int32) {
			list := lists[f][next[f]:]
			list[0] = a
			if f.Width() == 2 {
				list[1] = b
			}
			next[f] += int64(f.Width())
		})
		return nil
	})
}

// spoke is an edge of a face at a vertex p: the other end and where the face
// stands among the faces around p.
type spoke uint64

func newSpoke(q int32, face int, outgoing bool) spoke {
	s := spoke(q)<<32 | spoke(face)<<1
	if outgoing {
		s |= 1
	}
	return s
}

func (s spoke) vertex() int32  { return int32(s >> 32) }
func (s spoke) face() int32    { return int32(uint32(s) >> 1) }
func (s spoke) outgoing() bool { return s&1 == 1 }

// vertexFindings looks at the faces around each vertex: what its edges have,
// and whether the faces form one fan.
func (d *doctor) vertexFindings(control *parallel.Control) error {
	v := d.view
	t := v.topology
	most := t.maxCorners()
	spokeBuffers, err := newBuffers[uint64](v.resources, d.scratch, 2*most)
	if err != nil {
		return err
	}
	fanBuffers, err := newBuffers[int32](v.resources, d.scratch, most)
	if err != nil {
		return err
	}
	normal := v.areaNormal
	if d.options.Normals == AngleNormals {
		normal = v.angleNormal
	}
	return d.collect(control, v.VertexCount(), func(worker, begin, end int, found emit) {
		spokes, fans := spokeBuffers.of(worker), fanBuffers.of(worker)
		for p := begin; p < end; p++ {
			corners := t.cornersAt(p)
			if len(corners) == 0 {
				found(IsolatedVertices, int32(p), 0)
				continue
			}
			if _, defined, _ := normal(p); !defined {
				found(ZeroNormalVertices, int32(p), 0)
			}
			around := spokes[:0]
			for i, corner := range corners {
				next, previous := t.others(corner)
				around = append(around, uint64(newSpoke(next, i, true)), uint64(newSpoke(previous, i, false)))
			}
			slices.Sort(around)
			d.edgeFindings(int32(p), around, found)
			if countFans(around, fans[:len(corners)]) > 1 {
				found(NonManifoldVertices, int32(p), 0)
			}
		}
	})
}

// edgeFindings judges the edges from p to higher vertices; spokes are sorted.
func (d *doctor) edgeFindings(p int32, spokes []uint64, found emit) {
	for len(spokes) > 0 {
		q := spoke(spokes[0]).vertex()
		faces, outgoing := 0, 0
		for faces < len(spokes) && spoke(spokes[faces]).vertex() == q {
			if spoke(spokes[faces]).outgoing() {
				outgoing++
			}
			faces++
		}
		spokes = spokes[faces:]
		if q < p {
			continue
		}
		switch {
		case faces == 1:
			found(BoundaryEdges, p, q)
		case faces > 2:
			found(NonManifoldEdges, p, q)
		case outgoing != 1:
			found(InconsistentEdges, p, q)
		}
		if d.view.coincide(int(p), int(q)) {
			found(ZeroLengthEdges, p, q)
		}
	}
}

// countFans counts the groups of faces around a vertex that hang together by
// common edges. fan is scratch, one number a face: a forest with paths halved.
func countFans(spokes []uint64, fan []int32) int {
	for i := range fan {
		fan[i] = int32(i)
	}
	fans := len(fan)
	for i := 1; i < len(spokes); i++ {
		a, b := spoke(spokes[i-1]), spoke(spokes[i])
		if a.vertex() == b.vertex() && unite(fan, a.face(), b.face()) {
			fans--
		}
	}
	return fans
}

// unite joins two sets of a forest and tells whether they were apart. The
// lower root becomes the root of both.
func unite(parent []int32, a, b int32) bool {
	a, b = root(parent, a), root(parent, b)
	if a == b {
		return false
	}
	parent[max(a, b)] = min(a, b)
	return true
}

func root(parent []int32, i int32) int32 {
	for parent[i] != i {
		parent[i] = parent[parent[i]]
		i = parent[i]
	}
	return i
}

// faceFindings looks at the shape of each face.
func (d *doctor) faceFindings(control *parallel.Control) error {
	v := d.view
	t := v.topology
	if err := d.duplicates(control.Stage(0, 0.5)); err != nil {
		return err
	}
	return d.collect(control.Stage(0.5, 1), v.FaceCount(), func(_, begin, end int, found emit) {
		for face := begin; face < end; face++ {
			corners := t.faces[3*face:][:3]
			x, y, z := r3.At(v.positions, int(corners[0])), r3.At(v.positions, int(corners[1])), r3.At(v.positions, int(corners[2]))
			a, b, c := y.Minus(x), z.Minus(x), z.Minus(y)
			longest := max(a.Squared(), b.Squared(), c.Squared())
			area := a.Cross(b).Length() // the longest edge times the height
			size := max(x.MaxAbs(), y.MaxAbs(), z.MaxAbs())
			number := int32(t.number(face))
			switch {
			case area <= areaNoise(longest, longest, size):
				found(ZeroAreaFaces, number, 0)
			case longest > needle*area:
				found(NeedleFaces, number, 0)
			}
		}
	})
}

// duplicates finds faces of the same vertices as an earlier one: it sorts the
// faces at their lowest vertex by the other two.
func (d *doctor) duplicates(control *parallel.Control) error {
	v := d.view
	t := v.topology
	most := t.maxCorners()
	buffers, err := newBuffers[int32](v.resources, d.scratch, most)
	if err != nil {
		return err
	}
	repeated, err := memory.Make[uint8](d.scratch, int64(v.FaceCount()))
	if err != nil {
		return err
	}
	err = v.resources.Threads.Range(control.Stage(0, 0.5), v.VertexCount(), blockRows, func(worker, begin, end int) error {
		buffer := buffers.of(worker)
		for p := begin; p < end; p++ {
			markDuplicates(t, p, buffer, repeated)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.collect(control.Stage(0.5, 1), v.FaceCount(), func(_, begin, end int, found emit) {
		for face := begin; face < end; face++ {
			if repeated[face] != 0 {
				found(DuplicateFaces, int32(t.number(face)), 0)
			}
		}
	})
}

// markDuplicates sets repeated[f] for the faces whose lowest vertex is p and
// whose other vertices are those of a lower face. buffer has room for the
// corners at p.
func markDuplicates(t *topology, p int, buffer []int32, repeated []uint8) {
	corners := buffer[:0]
	for _, corner := range t.cornersAt(p) {
		if a, b := t.others(corner); int(a) > p && int(b) > p {
			corners = append(corners, corner)
		}
	}
	key := func(corner int32) uint64 {
		a, b := t.others(corner)
		return uint64(min(a, b))<<32 | uint64(max(a, b))
	}
	slices.SortFunc(corners, func(a, b int32) int { return cmp.Or(cmp.Compare(key(a), key(b)), cmp.Compare(a, b)) })
	for i := 1; i < len(corners); i++ {
		if key(corners[i]) == key(corners[i-1]) {
			repeated[corners[i]/3] = 1
		}
	}
}

// coincident finds vertices at the place of a lower one: it sorts them by a
// hash of their position, and those of the same hash by the position itself.
func (d *doctor) coincident(control *parallel.Control) error {
	v := d.view
	keys, err := memory.Make[uint64](d.scratch, int64(v.VertexCount()))
	if err != nil {
		return err
	}
	repeated, err := memory.Make[uint8](d.scratch, int64(v.VertexCount()))
	if err != nil {
		return err
	}
	err = v.resources.Threads.Range(control.Stage(0, 0.2), v.VertexCount(), blockRows, func(_, begin, end int) error {
		for p := begin; p < end; p++ {
			keys[p] = positionHash(r3.At(v.positions, p))<<32 | uint64(p)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.Sort(keys)
	if err := control.Stopped(); err != nil {
		return err
	}
	for begin := 0; begin < len(keys); {
		end := begin + 1
		for end < len(keys) && keys[end]>>32 == keys[begin]>>32 {
			end++
		}
		v.markCoincident(keys[begin:end], repeated)
		begin = end
	}
	return d.collect(control.Stage(0.5, 1), v.VertexCount(), func(_, begin, end int, found emit) {
		for p := begin; p < end; p++ {
			if repeated[p] != 0 {
				found(CoincidentVertices, int32(p), 0)
			}
		}
	})
}

// positionHash is a 32-bit hash of a position; +0 and −0 are the same.
func positionHash(x r3.Vec) uint64 {
	hash := uint64(0)
	for _, c := range [3]float64{x.X, x.Y, x.Z} {
		hash = mix(hash ^ math.Float64bits(c+0))
	}
	return hash >> 32
}

// markCoincident marks the vertices at the place of a lower one among those of
// one hash; the low halves of keys are their numbers, in increasing order.
func (v *View) markCoincident(keys []uint64, repeated []uint8) {
	if len(keys) == 1 {
		return
	}
	position := func(key uint64) r3.Vec { return r3.At(v.positions, int(key&math.MaxUint32)) }
	slices.SortFunc(keys, func(a, b uint64) int {
		x, y := position(a), position(b)
		return cmp.Or(cmp.Compare(x.X, y.X), cmp.Compare(x.Y, y.Y), cmp.Compare(x.Z, y.Z), cmp.Compare(a, b))
	})
	for i := 1; i < len(keys); i++ {
		if position(keys[i]) == position(keys[i-1]) {
			repeated[keys[i]&math.MaxUint32] = 1
		}
	}
}

// components counts the connected components of the faces.
func (d *doctor) components(control *parallel.Control) error {
	v := d.view
	label, err := memory.Make[int32](d.scratch, int64(v.VertexCount()))
	if err != nil {
		return err
	}
	d.report.ComponentCount = v.connect(label) - int64(d.report.Count(IsolatedVertices))
	return control.Finish()
}

// connect sets label[p] to the lowest vertex of p's connected component and
// returns the number of components.
func (v *View) connect(label []int32) (components int64) {
	for p := range label {
		label[p] = int32(p)
	}
	components = int64(len(label))
	edges := &v.topology.edges
	for p := range label {
		for _, q := range edges.of(p) {
			if int(q) > p && unite(label, int32(p), q) {
				components--
			}
		}
	}
	for p := range label {
		label[p] = root(label, int32(p))
	}
	return components
}

// Components writes for each vertex the number of its connected component, in
// the order of their lowest vertices, and returns how many there are. Isolated
// vertices are components of their own.
func (v *View) Components(labels []int32) int {
	if len(labels) == 0 {
		return 0
	}
	v.connect(labels)
	count := int32(0)
	for p, lowest := range labels {
		if int(lowest) == p {
			labels[p] = count
			count++
		} else {
			labels[p] = labels[lowest] // already renumbered: lowest < p
		}
	}
	return int(count)
}

// measure sums areas and lengths up.
func (d *doctor) measure(control *parallel.Control) error {
	v, r := d.view, d.report
	undirected := int64(len(v.topology.edges.neighbors) / 2)
	r.EulerCharacteristic = r.VertexCount - int64(r.Count(IsolatedVertices)) - undirected + r.FaceCount
	for face := range v.FaceCount() {
		corners := v.topology.faces[3*face:][:3]
		x, y, z := r3.At(v.positions, int(corners[0])), r3.At(v.positions, int(corners[1])), r3.At(v.positions, int(corners[2]))
		r.Area += y.Minus(x).Cross(z.Minus(x)).Length() / 2
	}
	r.Area = math.Ldexp(r.Area, 2*v.exponent)
	if err := control.Stopped(); err != nil {
		return err
	}
	r.MinLength = math.Inf(1)
	for p := range v.VertexCount() {
		ring := v.edges.of(p)
		if degree := int64(len(ring)); degree > 0 {
			r.MaxDegree = max(r.MaxDegree, degree)
			if r.MinDegree == 0 || degree < r.MinDegree {
				r.MinDegree = degree
			}
		}
		centre := r3.At(v.positions, p)
		for _, q := range ring {
			length := r3.At(v.positions, int(q)).Minus(centre).Length()
			r.MinLength, r.MaxLength = min(r.MinLength, length), max(r.MaxLength, length)
			r.MeanLength += length
		}
	}
	if r.EdgeCount == 0 {
		r.MinLength = 0
		return control.Finish()
	}
	r.MeanLength = math.Ldexp(r.MeanLength/float64(r.EdgeCount), v.exponent)
	r.MinLength = math.Ldexp(r.MinLength, v.exponent)
	r.MaxLength = math.Ldexp(r.MaxLength, v.exponent)
	return control.Finish()
}
