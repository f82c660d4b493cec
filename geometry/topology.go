package geometry

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"libeman/geometry/memory"
	"libeman/geometry/parallel"
	"libeman/simd"
)

// topology is what follows from the faces alone. It is immutable and shared
// by the meshes that differ only in positions or gauge.
type topology struct {
	users atomic.Int64
	arena *memory.Arena

	vertexCount int
	faces       []int32 // three vertex indices a face, degenerate faces left out
	faceNumber  []int32 // the caller's number of each face; nil where none was left out
	dropped     []int32 // the caller's numbers of the faces left out

	// Corner 3f+k is the k-th vertex of face f. The corners at vertex p are
	// corners[cornerOffsets[p]:cornerOffsets[p+1]], in increasing order.
	cornerOffsets []int64
	corners       []int32
	wedges        []int32 // the two other vertices of each of these corners' faces

	edges edgeSet // all pairs of vertices that share a face's edge
}

// edgeSet holds directed edges in compressed sparse rows: the neighbours of p
// are neighbors[offsets[p]:offsets[p+1]], in increasing order. Every edge is
// there in both directions.
type edgeSet struct {
	offsets   []int64
	neighbors []int32
	reverse   []int32 // reverse[e] is the edge from e's neighbour back
}

func (t *topology) retain() *topology {
	t.users.Add(1)
	return t
}

func (t *topology) release() {
	if t != nil && t.users.Add(-1) == 0 {
		t.arena.Free()
	}
}

func newTopology(r Resources, in *Input, drop bool, control *parallel.Control) (t *topology, err error) {
	t = &topology{arena: r.NewArena("topology"), vertexCount: int(in.VertexCount)}
	t.users.Store(1)
	defer func() {
		if err != nil {
			t.release()
			t = nil
		}
	}()
	if t.faces, err = memory.Make[int32](t.arena, 3*in.FaceCount); err != nil {
		return t, err
	}
	dropped, err := readFaces(r, t.faces, in, drop, control.Stage(0, 0.2))
	if err != nil {
		return t, err
	}
	if dropped > 0 {
		if err = t.leaveOutDegenerate(dropped); err != nil {
			return t, err
		}
	}
	if err = t.groupCorners(); err != nil {
		return t, err
	}
	if err = control.Stopped(); err != nil {
		return t, err
	}
	return t, t.findEdges(r, control.Stage(0.3, 1))
}

// leaveOutDegenerate moves the faces that readFaces marked out of t.faces.
func (t *topology) leaveOutDegenerate(count int64) (err error) {
	total := len(t.faces) / 3
	if t.dropped, err = memory.Make[int32](t.arena, count); err != nil {
		return err
	}
	if t.faceNumber, err = memory.Make[int32](t.arena, int64(total)-count); err != nil {
		return err
	}
	kept, left := 0, 0
	for face := range total {
		corner := t.faces[3*face : 3*face+3]
		if corner[0] < 0 {
			t.dropped[left] = int32(face)
			left++
			continue
		}
		copy(t.faces[3*kept:], corner)
		t.faceNumber[kept] = int32(face)
		kept++
	}
	t.faces = t.faces[:3*kept]
	return nil
}

// number is the caller's number of a face.
func (t *topology) number(face int) int {
	if t.faceNumber == nil {
		return face
	}
	return int(t.faceNumber[face])
}

// groupCorners sorts the corners by vertex (a counting sort).
func (t *topology) groupCorners() (err error) {
	if t.cornerOffsets, err = memory.Make[int64](t.arena, int64(t.vertexCount)+1); err != nil {
		return err
	}
	if t.corners, err = memory.Make[int32](t.arena, int64(len(t.faces))); err != nil {
		return err
	}
	if t.wedges, err = makePadded(t.arena, 2*int64(len(t.faces))); err != nil {
		return err
	}
	offsets := t.cornerOffsets
	for _, p := range t.faces {
		offsets[p+1]++
	}
	sum := int64(0)
	for p := range t.vertexCount {
		// offsets[p+1] becomes the start of p, and, as corners are put, its end.
		sum, offsets[p+1] = sum+offsets[p+1], sum
	}
	for corner, p := range t.faces {
		at := offsets[p+1]
		t.corners[at] = int32(corner)
		t.wedges[2*at], t.wedges[2*at+1] = t.others(int32(corner))
		offsets[p+1]++
	}
	return nil
}

// makePadded returns n indices with room behind them for the kernels, which
// read whole registers.
func makePadded(arena *memory.Arena, n int64) ([]int32, error) {
	indices, err := memory.Make[int32](arena, n+2*simd.Padding)
	if err != nil {
		return nil, err
	}
	return indices[:n], nil
}

// cornersAt are the corners of the faces around p.
func (t *topology) cornersAt(p int) []int32 {
	return t.corners[t.cornerOffsets[p]:t.cornerOffsets[p+1]]
}

// wedgesAt are the pairs of other vertices of the corners at p, each in its
// face's own direction.
func (t *topology) wedgesAt(p int) []int32 {
	return t.wedges[2*t.cornerOffsets[p] : 2*t.cornerOffsets[p+1]]
}

// others returns the two other vertices of the corner's face, in the face's
// own direction.
func (t *topology) others(corner int32) (next, previous int32) {
	k := corner % 3
	face := t.faces[corner-k : corner-k+3]
	switch k {
	case 0:
		return face[1], face[2]
	case 1:
		return face[2], face[0]
	}
	return face[0], face[1]
}

// maxCorners is the largest number of corners at a vertex.
func (t *topology) maxCorners() (most int) {
	for p := range t.vertexCount {
		most = max(most, len(t.cornersAt(p)))
	}
	return most
}

// findEdges builds the edge set: the neighbours of p are the other vertices of
// its faces, without repetition.
func (t *topology) findEdges(r Resources, control *parallel.Control) (err error) {
	scratch := r.NewArena("scratch")
	defer scratch.Free()
	// Before repetitions are removed there are two candidates a corner.
	candidates, err := memory.Make[int32](scratch, 2*int64(len(t.corners)))
	if err != nil {
		return err
	}
	e := &t.edges
	if e.offsets, err = memory.Make[int64](t.arena, int64(t.vertexCount)+1); err != nil {
		return err
	}
	err = r.Threads.Range(control.Stage(0, 0.5), t.vertexCount, blockRows, func(_, begin, end int) error {
		for p := begin; p < end; p++ {
			ring := candidates[2*t.cornerOffsets[p] : 2*t.cornerOffsets[p+1]]
			copy(ring, t.wedgesAt(p))
			e.offsets[p+1] = int64(sortUnique(ring))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for p := range t.vertexCount {
		e.offsets[p+1] += e.offsets[p]
	}
	count := e.offsets[t.vertexCount]
	if count > math.MaxInt32 {
		return fmt.Errorf("%w: %d directed edges, at most %d are supported", ErrTooLarge, count, math.MaxInt32)
	}
	if e.neighbors, err = makePadded(t.arena, count); err != nil {
		return err
	}
	if e.reverse, err = memory.Make[int32](t.arena, count); err != nil {
		return err
	}
	err = r.Threads.Range(control.Stage(0.5, 0.7), t.vertexCount, blockRows, func(_, begin, end int) error {
		for p := begin; p < end; p++ {
			copy(e.neighbors[e.offsets[p]:e.offsets[p+1]], candidates[2*t.cornerOffsets[p]:])
		}
		return nil
	})
	if err != nil {
		return err
	}
	return e.findReverse(r, control.Stage(0.7, 1))
}

// findReverse looks p up among the neighbours of each of its neighbours.
func (e *edgeSet) findReverse(r Resources, control *parallel.Control) error {
	return r.Threads.Range(control, e.vertexCount(), blockRows, func(_, begin, end int) error {
		for p := begin; p < end; p++ {
			for i := e.offsets[p]; i < e.offsets[p+1]; i++ {
				q := int(e.neighbors[i])
				if q < p {
					continue // set from q
				}
				back := e.offsets[q] + int64(indexOf(e.of(q), int32(p)))
				e.reverse[i], e.reverse[back] = int32(back), int32(i)
			}
		}
		return nil
	})
}

func (e *edgeSet) vertexCount() int { return len(e.offsets) - 1 }

// of are the neighbours of p.
func (e *edgeSet) of(p int) []int32 { return e.neighbors[e.offsets[p]:e.offsets[p+1]] }

// indexOf finds a value that is known to be in the sorted list.
func indexOf(sorted []int32, value int32) int {
	if len(sorted) > 16 {
		i, _ := slices.BinarySearch(sorted, value)
		return i
	}
	for i, v := range sorted {
		if v == value {
			return i
		}
	}
	return len(sorted)
}

// sortUnique sorts the list, removes repetitions and returns the new length.
func sortUnique(list []int32) int {
	if len(list) > 32 {
		slices.Sort(list)
		return len(slices.Compact(list))
	}
	n := 0
	for _, value := range list {
		i := n
		for i > 0 && list[i-1] > value {
			i--
		}
		if i > 0 && list[i-1] == value {
			continue
		}
		copy(list[i+1:n+1], list[i:n])
		list[i] = value
		n++
	}
	return n
}

// without returns the edge set less the edges that skip reports; skip must
// give the same answer for both directions. The arrays come from the arena.
func (e *edgeSet) without(r Resources, arena *memory.Arena, skip func(p, q int) bool) (kept edgeSet, err error) {
	vertices := e.vertexCount()
	if kept.offsets, err = memory.Make[int64](arena, int64(vertices)+1); err != nil {
		return kept, err
	}
	err = r.Threads.Range(nil, vertices, blockRows, func(_, begin, end int) error {
		for p := begin; p < end; p++ {
			for _, q := range e.of(p) {
				if !skip(p, int(q)) {
					kept.offsets[p+1]++
				}
			}
		}
		return nil
	})
	if err != nil {
		return kept, err
	}
	for p := range vertices {
		kept.offsets[p+1] += kept.offsets[p]
	}
	if kept.neighbors, err = makePadded(arena, kept.offsets[vertices]); err != nil {
		return kept, err
	}
	if kept.reverse, err = memory.Make[int32](arena, kept.offsets[vertices]); err != nil {
		return kept, err
	}
	err = r.Threads.Range(nil, vertices, blockRows, func(_, begin, end int) error {
		for p := begin; p < end; p++ {
			i := kept.offsets[p]
			for _, q := range e.of(p) {
				if !skip(p, int(q)) {
					kept.neighbors[i] = q
					i++
				}
			}
		}
		return nil
	})
	if err != nil {
		return kept, err
	}
	return kept, kept.findReverse(r, nil)
}
