package surface

import (
	"math"

	"libeman/geometry/internal/r3"
	"libeman/geometry/memory"
)

// pathNeighbors are the nearest points on its sheet that a path goes on to from
// each: the fewest that lead straight enough, as more lead across clefts.
const pathNeighbors = 8

// connectPaths builds the graph over which distances along the surface are
// measured, in memory of the arena.
func (s *Sampling) connectPaths(arena *memory.Arena, finest *sheet) (paths *Edges, err error) {
	passing, paths := *s, &Edges{}
	passing.arena = arena
	return paths, passing.edges(paths, finest, finest, pathNeighbors, nearestOthers, nil)
}

// walk finds the points nearest along the surface: by the shortest path over
// the finest points (Dijkstra's algorithm). It is used by one thread.
type walk struct {
	paths   *Edges
	frames  []float64
	lengths []float64 // of the shortest path known to each point, infinite without
	reached []int32   // to which there is one
	queue   []int32   // those of them whose path may become shorter, a binary heap
	places  []int32   // of points in the queue
	hits    []hit
}

// newWalk takes its memory from the arena.
func (s *Sampling) newWalk(arena *memory.Arena, paths *Edges) (w *walk, err error) {
	w = &walk{paths: paths, frames: s.Frames}
	points := int64(len(paths.Offsets) - 1)
	if w.lengths, err = memory.Make[float64](arena, points); err != nil {
		return nil, err
	}
	for _, list := range []*[]int32{&w.reached, &w.queue, &w.places} {
		if *list, err = memory.Make[int32](arena, points); err != nil {
			return nil, err
		}
	}
	for p := range w.lengths {
		w.lengths[p] = math.Inf(1)
	}
	w.reached = w.reached[:0]
	return w, nil
}

// nearest is search.nearest for paths from the point at which the search is,
// to others of its points. Where they lead to fewer than count, these are all.
func (w *walk) nearest(s *search, from, count int) []hit {
	for _, p := range w.reached {
		w.lengths[p] = math.Inf(1)
	}
	w.reached, w.queue, w.hits = w.reached[:0], w.queue[:0], w.hits[:0]
	w.reach(int32(from), 0)
	for len(w.queue) > 0 && len(w.hits) < 2*count {
		p := w.next()
		length := w.lengths[p]
		if len(w.hits) >= count && length*length > w.hits[count-1].distance*(1+tie) {
			break
		}
		if int(p) < len(s.numbers) && p != s.except && r3.At(w.frames, 3*int(p)+2).Dot(s.normal) > s.agreement {
			w.hits = append(w.hits, hit{length * length, p})
		}
		for e := w.paths.Offsets[p]; e < w.paths.Offsets[p+1]; e++ {
			if q, length := w.paths.Neighbors[e], length+w.paths.Length[e]; length < w.lengths[q] {
				w.reach(q, length)
			}
		}
	}
	return w.hits
}

// knows says whether a path was found to a point.
func (w *walk) knows(p int32) bool { return !math.IsInf(w.lengths[p], 1) }

// reach takes a shorter path to a point into account.
func (w *walk) reach(p int32, length float64) {
	if !w.knows(p) {
		w.reached = append(w.reached, p)
		w.places[p] = int32(len(w.queue))
		w.queue = append(w.queue, p)
	}
	w.lengths[p] = length
	place := w.places[p]
	for place > 0 {
		above := (place - 1) / 2
		if w.lengths[w.queue[above]] <= length {
			break
		}
		w.put(w.queue[above], place)
		place = above
	}
	w.put(p, place)
}

// next takes the point of the shortest path out of the queue.
func (w *walk) next() (first int32) {
	last := len(w.queue) - 1
	first, p := w.queue[0], w.queue[last]
	w.queue = w.queue[:last]
	if last == 0 {
		return first
	}
	length, place := w.lengths[p], 0
	for {
		below := 2*place + 1
		if below >= last {
			break
		}
		if below+1 < last && w.lengths[w.queue[below+1]] < w.lengths[w.queue[below]] {
			below++
		}
		if w.lengths[w.queue[below]] >= length {
			break
		}
		w.put(w.queue[below], int32(place))
		place = below
	}
	w.put(p, int32(place))
	return first
}

func (w *walk) put(p, place int32) { w.queue[place], w.places[p] = p, place }
