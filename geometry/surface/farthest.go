package surface

import (
	"cmp"
	"math"
	"slices"

	"libeman/geometry"
	"libeman/geometry/internal/r3"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
)

const (
	// tie is the relative difference of squared distances below which they count
	// as equal: far above rounding, far below what differs by its own nature.
	tie = 2e-9
	// stored is the difference of distances, in units of the largest from the
	// centre, below which no candidate counts as the farther: a few roundings of
	// float32. A body that is its own mirror image is so only to these when it was
	// turned and stored.
	stored = 4e-7
	// coincident bounds the distance, in the units of a view (coordinates below
	// 2), of points that count as one.
	coincident = 0x1p-44

	candidatesPerLeaf = 64
)

// farthest chooses points that are each the farthest of all from those chosen
// before. The distances of a leaf are renewed only where the new point can be
// nearer to it than the old ones, so a choice of K among N costs of the order
// of N·log K: the boxes are those of "QuickFPS" (Han et al., 2023), the result
// is that of the plain algorithm.
type farthest struct {
	*boxes
	distances []float64 // squared, from each candidate to the nearest chosen point
	most      []float64 // of each node's; −1 in an empty one
	ties      ties
	tied      []int32 // room for all
	waiting   []int32 // of those that tied, in order, the ones that may follow
	least     float64 // the squared distance of those that tied
}

// chooseFarthest chooses up to count of the candidates and returns their
// numbers: fewer where no other lies apart from the chosen ones.
func chooseFarthest(r geometry.Resources, arena *memory.Arena, c *candidates, count int, control *parallel.Control) (chosen []int32, err error) {
	scratch := r.NewArena("scratch")
	defer scratch.Free()
	f := &farthest{}
	if f.boxes, err = newBoxes(r, scratch, c.positions, candidatesPerLeaf, control); err != nil {
		return nil, err
	}
	if err := control.Stopped(); err != nil {
		return nil, err
	}
	if f.distances, err = memory.Make[float64](scratch, int64(len(f.numbers))); err != nil {
		return nil, err
	}
	if f.most, err = memory.Make[float64](scratch, 2*int64(f.leaves)); err != nil {
		return nil, err
	}
	if f.tied, err = memory.Make[int32](scratch, int64(len(f.numbers))); err != nil {
		return nil, err
	}
	if chosen, err = memory.Make[int32](arena, int64(min(count, len(f.numbers)))); err != nil {
		return nil, err
	}
	next := f.start(c)
	for i := range chosen {
		if i%pointsAtOnce == 0 {
			if err := control.Stopped(); err != nil {
				return nil, err
			}
		}
		chosen[i] = f.numbers[next]
		place := r3.At(f.points, next)
		if f.ties.know(place) {
			f.waiting = nil
		}
		f.renew(1, place)
		if f.most[1] <= coincident*coincident {
			chosen = chosen[:i+1]
			break
		}
		next = f.next()
	}
	return chosen, control.Finish()
}

const pointsAtOnce = 16

// start returns the first candidate, and makes the others infinitely far: that
// farthest from the centre of the surface, or a random one.
func (f *farthest) start(c *candidates) (first int) {
	for i := range f.distances {
		f.distances[i] = r3.At(f.points, i).Squared()
	}
	f.each(func(node, begin, end int) {
		f.most[node] = -1
		for _, d := range f.distances[begin:end] {
			f.most[node] = max(f.most[node], d)
		}
	})
	f.ties = newTies(c, f.most[1])
	f.ties.normal = func(i int32) r3.Vec {
		_, normal := c.point(f.numbers[i])
		return normal
	}
	if c.seed == 0 {
		first = f.next()
	} else {
		first = int(geometry.RandomUniform(c.seed, math.MaxUint64) * float64(len(f.numbers)))
	}
	for i := range f.distances {
		f.distances[i] = math.Inf(1)
	}
	f.each(func(node, begin, end int) {
		if f.most[node] = -1; begin < end {
			f.most[node] = math.Inf(1)
		}
	})
	return first
}

// each sets the maxima of all leaves, and of the nodes above them.
func (f *farthest) each(set func(node, begin, end int)) {
	for node := 2*f.leaves - 1; node > 0; node-- {
		if node >= f.leaves {
			begin, end := f.leaf(node)
			set(node, begin, end)
		} else {
			f.most[node] = max(f.most[2*node], f.most[2*node+1])
		}
	}
}

// renew takes a new point into account, below a node.
func (f *farthest) renew(node int, place r3.Vec) {
	if f.distance(node, place) >= f.most[node] {
		return
	}
	if node < f.leaves {
		f.renew(2*node, place)
		f.renew(2*node+1, place)
		f.most[node] = max(f.most[2*node], f.most[2*node+1])
		return
	}
	begin, end := f.leaf(node)
	most := -1.0
	points := f.points[3*begin : 3*end]
	for i, old := range f.distances[begin:end] {
		x, y, z := points[3*i]-place.X, points[3*i+1]-place.Y, points[3*i+2]-place.Z
		d := min(old, x*x+y*y+z*z)
		f.distances[begin+i] = d
		most = max(most, d)
	}
	f.most[node] = most
}

// next is the candidate farthest from the chosen ones. Those that tie follow one
// another, as far as those before leave them where they are: a regular mesh has
// thousands.
func (f *farthest) next() int {
	for len(f.waiting) > 0 {
		first := int(f.waiting[0])
		f.waiting = f.waiting[1:]
		if f.distances[first] >= f.least {
			return first
		}
	}
	f.least = max(math.Sqrt(f.most[1])-stored*math.Sqrt(f.ties.size2), 0)
	f.least *= f.least
	tied := f.collect(1, f.least, f.tied[:0])
	if f.ties.known < 2 {
		f.ties.settle(f.points, tied)
	} else {
		f.ties.order(f.points, tied, 0)
		f.waiting = tied[1:]
	}
	return int(tied[0])
}

// collect appends the candidates below a node that are at least so far.
func (f *farthest) collect(node int, least float64, to []int32) []int32 {
	if f.most[node] < least {
		return to
	}
	if node < f.leaves {
		return f.collect(2*node+1, least, f.collect(2*node, least, to))
	}
	begin, end := f.leaf(node)
	for i := begin; i < end; i++ {
		if f.distances[i] >= least {
			to = append(to, int32(i))
		}
	}
	return to
}

// ties settles which of several candidates at the same distance comes first, by
// what neither numbering nor coordinates decide: the distance to the centre,
// then the components along directions that the surface itself defines.
//
// These are its third and fifth area moments a and b, and a×b, which tells left
// from right on a body that is its own mirror image; then the first points that
// were chosen. Candidates in one place, where faces lie upon each other, differ
// by the same components of their normals. A body that a rotation leaves the same has no first point of its
// own: any of the equal ones is taken, and the sampling is the same up to that
// rotation.
type ties struct {
	size2      float64  // the largest squared distance to the centre
	directions []r3.Vec // their products with a place are at most of the order of 1
	first      r3.Vec   // the direction to the first point chosen
	known      int      // of the points chosen, up to 2 that are not on one line
	normal     func(candidate int32) r3.Vec
}

func newTies(c *candidates, size2 float64) ties {
	t := ties{size2: size2}
	if size2 > 0 {
		size := math.Sqrt(size2)
		a, b := c.moments[0].Times(1/(size2*size)), c.moments[1].Times(1/(size2*size2*size))
		t.directions = append(t.directions, a.Times(1/size), b.Times(1/size), a.Cross(b).Times(1/size))
	}
	return t
}

// know adds the directions that a chosen point defines, and says whether there
// are any.
func (t *ties) know(place r3.Vec) bool {
	if t.known == 2 || t.size2 == 0 {
		return false
	}
	size := math.Sqrt(t.size2)
	u := place.Times(1 / size)
	switch {
	case t.known == 0 && u.Squared() > independent:
		t.first = u
		t.directions = append(t.directions, u.Times(1/size))
		t.known = 1
	case t.known == 1 && u.Cross(t.first).Squared() > independent:
		t.directions = append(t.directions, u.Times(1/size), t.first.Cross(u).Times(1/size))
		t.known = 2
	default:
		return false
	}
	return true
}

// independent is the least square of a sine, or of a length, that makes a
// direction.
const independent = 1e-3

// criteria are how many values decide: each of the places, first by what storage
// leaves of the differences, and where that settles nothing by all of them; then
// of the normals.
func (t *ties) criteria() (places, all int) {
	each := 1 + len(t.directions)
	return 2 * each, 3 * each
}

// criterion is a value of which the largest comes first, and the margin within
// which it does not decide.
func (t *ties) criterion(points []float64, number int) (value func(i int32) float64, margin float64) {
	kind, which := number/(1+len(t.directions)), number%(1+len(t.directions))
	size := math.Sqrt(t.size2)
	if kind == 0 {
		margin = stored
	}
	switch {
	case kind < 2 && which == 0:
		scale := 0.0
		if t.size2 > 0 {
			scale = 1 / t.size2
		}
		return func(i int32) float64 { return r3.At(points, int(i)).Squared() * scale }, 2*margin + tie
	case kind < 2:
		direction := t.directions[which-1]
		return func(i int32) float64 { return r3.At(points, int(i)).Dot(direction) }, margin*direction.Length()*size + tie
	case which == 0:
		return func(i int32) float64 { return t.normal(i).Dot(r3.At(points, int(i))) }, size * tie
	default:
		direction := t.directions[which-1].Times(size)
		return func(i int32) float64 { return t.normal(i).Dot(direction) }, tie
	}
}

// settle moves the first of the tied candidates to the front of the list.
func (t *ties) settle(points []float64, tied []int32) {
	places, _ := t.criteria()
	alike := tied
	for number := 0; number < places && len(alike) > 1; number++ {
		alike = t.keepLargest(points, alike, number)
	}
	// Others than those in one place are told apart by nothing.
	place := r3.At(points, int(alike[0]))
	t.settleNormals(points, keepLargest(alike, tie*t.size2, func(i int32) float64 { return -r3.At(points, int(i)).Minus(place).Squared() }))
}

// settleNormals is settle for candidates in one place. What follows the first
// does not matter: it is at no distance from it.
func (t *ties) settleNormals(points []float64, tied []int32) {
	places, all := t.criteria()
	for number := places; number < all && len(tied) > 1; number++ {
		tied = t.keepLargest(points, tied, number)
	}
}

// order sorts the tied candidates, by the criteria from one on.
func (t *ties) order(points []float64, tied []int32, number int) {
	if len(tied) < 2 {
		return
	}
	if places, _ := t.criteria(); number == places {
		t.settleNormals(points, tied)
		return
	}
	value, margin := t.criterion(points, number)
	slices.SortFunc(tied, func(i, j int32) int { return cmp.Compare(value(j), value(i)) })
	begin := 0
	for end := 1; end <= len(tied); end++ {
		if end == len(tied) || value(tied[end-1])-value(tied[end]) > margin {
			t.order(points, tied[begin:end], number+1)
			begin = end
		}
	}
}

func (t *ties) keepLargest(points []float64, list []int32, number int) []int32 {
	value, margin := t.criterion(points, number)
	return keepLargest(list, margin, value)
}

// keepLargest moves to the front of the list, and returns, what is within a
// margin of its largest value.
func keepLargest(list []int32, margin float64, value func(i int32) float64) []int32 {
	largest := math.Inf(-1)
	for _, i := range list {
		largest = max(largest, value(i))
	}
	kept := 0
	for k, i := range list {
		if value(i) >= largest-margin {
			list[k], list[kept] = list[kept], i
			kept++
		}
	}
	return list[:kept]
}
