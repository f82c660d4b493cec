package surface

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"libeman/geometry"
	"libeman/geometry/internal/r3"
	"libeman/geometry/memory"
	"libeman/geometry/parallel"
)

const blockRows = 1024 // faces, vertices or candidates handled at a time

// The odd factors keep the counts of regular meshes, whose faces are all of one
// area, away from the steps of the ceiling that rounding could decide.
const (
	perPoint = 4.31 // candidates for each point wanted, by area
	slice    = 0.77 // the longest piece of a face, in units of √(area/points)

	// The bound of the number of slices.
	slicesAlways   = 50021
	slicesPerPoint = 15.9
	slicesPerFace  = 3.97
)

// candidates are the places that samples are chosen from, spread evenly over
// each face and the same for any order of its corners.
//
// A face is divided into n² congruent triangles, as many as its area calls for,
// and these, where they are long and thin, into m slices across their principal
// axis. A candidate is the middle of such a piece, or a random place in it. Of
// a mesh without faces the vertices are the candidates.
type candidates struct {
	view      *geometry.View
	seed      uint64
	centre    r3.Vec    // of the surface's area
	density   float64   // n² of a face of unit area
	length    float64   // of a slice
	offsets   []int64   // of each face's candidates, F+1; nil without faces
	positions []float64 // N×3, from the centre
	// Σ w|x|²x and Σ w|x|⁴x over candidates x of weight w, all weights together 1.
	moments [2]r3.Vec
}

// newCandidates spreads candidates for the given number of points. Their arrays
// come from the arena.
func newCandidates(v *geometry.View, arena *memory.Arena, points int, seed uint64, control *parallel.Control) (c *candidates, err error) {
	c = &candidates{view: v, seed: seed}
	scratch := v.Resources().NewArena("scratch")
	defer scratch.Free()
	if v.FaceCount() == 0 {
		return c, c.takeVertices(arena, scratch, control)
	}
	sizes, err := memory.Make[float64](scratch, 2*int64(v.FaceCount()))
	if err != nil {
		return nil, err
	}
	weight, err := c.measure(scratch, sizes, points, control.Stage(0, 0.4))
	if err != nil {
		return nil, err
	}
	if err := c.count(arena, sizes, control.Stage(0.4, 0.5)); err != nil {
		return nil, err
	}
	return c, c.place(arena, scratch, sizes, weight, control.Stage(0.5, 1))
}

// takeVertices makes the vertices of a mesh without faces the candidates.
func (c *candidates) takeVertices(arena, scratch *memory.Arena, control *parallel.Control) (err error) {
	positions := c.view.ScaledPositions()
	if c.positions, err = memory.Make[float64](arena, int64(len(positions))); err != nil {
		return err
	}
	count := len(positions) / 3
	sums, err := c.sum(scratch, count, 3, control, func(sums []float64, begin, end int) {
		for i := begin; i < end; i++ {
			add(sums, 1, r3.At(positions, i))
		}
	})
	if err != nil {
		return err
	}
	c.centre = r3.At(sums, 0).Times(1 / float64(count))
	sums, err = c.sum(scratch, count, 6, nil, func(sums []float64, begin, end int) {
		for i := begin; i < end; i++ {
			p := r3.At(positions, i).Minus(c.centre)
			r3.Put(c.positions, i, p)
			addMoments(sums, 1/float64(count), p)
		}
	})
	if err != nil {
		return err
	}
	c.moments = [2]r3.Vec{r3.At(sums, 0), r3.At(sums, 1)}
	return nil
}

// sum calls body for blocks of [0, n), each with sums of its own, and adds these
// in the order of the blocks.
func (c *candidates) sum(scratch *memory.Arena, n, width int, control *parallel.Control, body func(sums []float64, begin, end int)) (total []float64, err error) {
	blocks := (n + blockRows - 1) / blockRows
	sums, err := memory.Make[float64](scratch, int64(blocks)*int64(width))
	if err != nil {
		return nil, err
	}
	err = c.view.Resources().Threads.Range(control, n, blockRows, func(_, begin, end int) error {
		body(sums[begin/blockRows*width:][:width], begin, end)
		return nil
	})
	if err != nil {
		return nil, err
	}
	total = sums[:width]
	for block := 1; block < blocks; block++ {
		for i, x := range sums[block*width:][:width] {
			total[i] += x
		}
	}
	return total, nil
}

func add(sums []float64, weight float64, p r3.Vec) {
	sums[0] += weight * p.X
	sums[1] += weight * p.Y
	sums[2] += weight * p.Z
}

func addMoments(sums []float64, weight float64, p r3.Vec) {
	weight *= p.Squared()
	add(sums, weight, p)
	add(sums[3:], weight*p.Squared(), p)
}

// corners are the places of a face's vertices, from the centre.
func (c *candidates) corners(face int) [3]r3.Vec {
	positions, f := c.view.ScaledPositions(), c.view.Faces()[3*face:3*face+3]
	return [3]r3.Vec{
		r3.At(positions, int(f[0])).Minus(c.centre),
		r3.At(positions, int(f[1])).Minus(c.centre),
		r3.At(positions, int(f[2])).Minus(c.centre),
	}
}

// facesAtOnce is how many faces are gathered before any is looked at: where they
// lie scattered over the memory, it is read from many places at a time.
const facesAtOnce = 32

// eachFace calls body for the faces [begin, end).
func (c *candidates) eachFace(begin, end int, body func(face int, corner *[3]r3.Vec)) {
	var corners [facesAtOnce][3]r3.Vec
	for first := begin; first < end; first += facesAtOnce {
		last := min(first+facesAtOnce, end)
		for face := first; face < last; face++ {
			corners[face-first] = c.corners(face)
		}
		for face := first; face < last; face++ {
			body(face, &corners[face-first])
		}
	}
}

// sizes are the area and the longest edge of a triangle.
func sizes(corner [3]r3.Vec) (area, longest float64) {
	a, b, c := corner[1].Minus(corner[0]), corner[2].Minus(corner[1]), corner[0].Minus(corner[2])
	return 0.5 * a.Cross(b).Length(), math.Sqrt(max(a.Squared(), b.Squared(), c.Squared()))
}

// weight is what a face counts for in averages over the surface: its area; its
// longest edge, where all area is rounding; 1, where all faces are points.
type weight [3]float64

func (w *weight) of(area, longest float64) float64 { return w[0]*area + w[1]*longest + w[2] }

// noArea is the relative rounding error of an area, doubled for all faces.
const noArea = 0x1p-46

// measure sets the centre and what the divisions of faces follow from, and the
// area, 0 where it is rounding, and the longest edge of each face, for the passes
// that follow. It returns the weights of faces, normalised.
func (c *candidates) measure(scratch *memory.Arena, all []float64, points int, control *parallel.Control) (w weight, err error) {
	faces := c.view.FaceCount()
	// For each kind of weight its sum and that of the faces' centres, then the
	// noise, then Σ longest·√area.
	sums, err := c.sum(scratch, faces, 14, control, func(sums []float64, begin, end int) {
		c.eachFace(begin, end, func(face int, corner *[3]r3.Vec) {
			area, longest := sizes(*corner)
			rounding := noArea * longest * (longest + 2) // the size of coordinates: 2
			if area <= rounding {
				area = 0
			}
			all[2*face], all[2*face+1] = area, longest
			middle := corner[0].Plus(corner[1]).Plus(corner[2]).Times(1.0 / 3)
			for kind, weight := range [3]float64{area, longest, 1} {
				sums[4*kind] += weight
				add(sums[4*kind+1:], weight, middle)
			}
			sums[12] += rounding
			sums[13] += longest * math.Sqrt(area)
		})
	})
	if err != nil {
		return w, err
	}
	kind := 2
	switch {
	case sums[0] > sums[12]:
		kind = 0
		c.density = perPoint * float64(points) / sums[0]
		c.length = slice * math.Sqrt(sums[0]/float64(points))
	case sums[4] > coincident:
		kind = 1
	}
	// Where slices would become too many, as on a surface of needles alone, they
	// are made longer: n² triangles of longest/n, n ≤ 1 + √(area·density).
	long := sums[4] + math.Sqrt(c.density)*sums[13]
	c.length = max(c.length, long/(slicesAlways+slicesPerPoint*float64(points)+slicesPerFace*float64(faces)))
	w[kind] = 1 / sums[4*kind]
	c.centre = r3.At(sums[4*kind+1:], 0).Times(w[kind])
	return w, nil
}

// division is how a face is divided: into n² triangles of m slices each.
type division struct{ n, m int }

func (d division) pieces() int64 { return int64(d.n) * int64(d.n) * int64(d.m) }

// divide gives no piece to a face without area, unless the whole surface is such:
// what its normal is would be left to rounding.
func (c *candidates) divide(area, longest float64) division {
	if area == 0 && c.density > 0 {
		return division{}
	}
	d := division{1, 1}
	if area*c.density > 1 {
		d.n = int(math.Ceil(math.Sqrt(area * c.density)))
	}
	if piece := longest / float64(d.n); piece > c.length && c.length > 0 {
		d.m = int(math.Ceil(piece / c.length))
	}
	return d
}

// count sets the offsets of the faces' candidates.
func (c *candidates) count(arena *memory.Arena, sizes []float64, control *parallel.Control) (err error) {
	faces := c.view.FaceCount()
	if c.offsets, err = memory.Make[int64](arena, int64(faces)+1); err != nil {
		return err
	}
	err = c.view.Resources().Threads.Range(control, faces, blockRows, func(_, begin, end int) error {
		for face := begin; face < end; face++ {
			c.offsets[face+1] = c.divide(sizes[2*face], sizes[2*face+1]).pieces()
		}
		return nil
	})
	if err != nil {
		return err
	}
	for face := range faces {
		c.offsets[face+1] += c.offsets[face]
	}
	if total := c.offsets[faces]; total > math.MaxInt32 {
		return fmt.Errorf("%w: %d candidates for samples, at most %d are supported", geometry.ErrTooLarge, total, math.MaxInt32)
	}
	return nil
}

// place sets the positions of all candidates, and the moments.
func (c *candidates) place(arena, scratch *memory.Arena, sizes []float64, w weight, control *parallel.Control) (err error) {
	faces := c.view.FaceCount()
	if c.positions, err = memory.Make[float64](arena, 3*c.offsets[faces]); err != nil {
		return err
	}
	sums, err := c.sum(scratch, faces, 6, control, func(sums []float64, begin, end int) {
		c.eachFace(begin, end, func(face int, corner *[3]r3.Vec) {
			if c.offsets[face] == c.offsets[face+1] {
				return
			}
			area, longest := sizes[2*face], sizes[2*face+1]
			d := c.divide(area, longest)
			cuts := newCuts(*corner, d)
			weight := w.of(area, longest) / float64(d.pieces())
			for i := c.offsets[face]; i < c.offsets[face+1]; i++ {
				b := c.barycentric(d, cuts, i-c.offsets[face], i)
				p := combine(*corner, b)
				r3.Put(c.positions, int(i), p)
				addMoments(sums, weight, p)
			}
		})
	})
	if err != nil {
		return err
	}
	c.moments = [2]r3.Vec{r3.At(sums, 0), r3.At(sums, 1)}
	return nil
}

func combine(corner [3]r3.Vec, b [3]float64) r3.Vec {
	return corner[0].Times(b[0]).Plus(corner[1].Times(b[1])).Plus(corner[2].Times(b[2]))
}

// barycentric gives the barycentric coordinates of a face's candidate: piece,
// among its own, and number, among all.
func (c *candidates) barycentric(d division, s cuts, piece, number int64) [3]float64 {
	u, v := 0.5, 0.5
	if c.seed != 0 {
		u, v = geometry.RandomUniform(c.seed, 2*uint64(number)), geometry.RandomUniform(c.seed, 2*uint64(number)+1)
	}
	b := [3]float64{1.0 / 3, 1.0 / 3, 1.0 / 3}
	switch {
	case d.m > 1:
		b = s.at((float64(piece%int64(d.m))+u)/float64(d.m), v)
	case c.seed != 0:
		if u+v > 1 {
			u, v = 1-u, 1-v
		}
		b = [3]float64{1 - u - v, u, v}
	}
	if d.n == 1 {
		return b
	}
	// Row r from the first corner has 2r+1 triangles, by turns upright and upside
	// down, whose centres these are.
	triangle := piece / int64(d.m)
	r := int64(math.Sqrt(float64(triangle)))
	k := triangle - r*r
	row, column, sign := float64(r)+2.0/3, float64(k/2)+1.0/3, 1.0
	if k%2 == 1 {
		row, column, sign = float64(r)+1.0/3, float64(k/2)+2.0/3, -1
	}
	n := float64(d.n)
	centre := [3]float64{n - row, row - column, column}
	for i := range b {
		b[i] = (centre[i] + sign*(b[i]-1.0/3)) / n
	}
	return b
}

// cuts divide a triangle across its principal axis.
type cuts struct {
	order [3]int  // of the corners along the axis
	turn  float64 // where the middle one lies: 0 at the first, 1 at the last
}

func newCuts(corner [3]r3.Vec, d division) (s cuts) {
	if d.m == 1 {
		return s
	}
	along := principalAxis(corner)
	s.order = [3]int{0, 1, 2}
	slices.SortFunc(s.order[:], func(i, j int) int { return cmp.Compare(along[i], along[j]) })
	first, middle, last := along[s.order[0]], along[s.order[1]], along[s.order[2]]
	s.turn = min(max((middle-first)/(last-first), 0), 1)
	return s
}

// principalAxis gives the components of a triangle's corners along the axis of
// its largest second moment: with corners z in the complex plane, from their
// mean, this has half the angle of Σ z².
func principalAxis(corner [3]r3.Vec) (along [3]float64) {
	a := 0 // where the longest edge begins: the real axis
	x := corner[1].Minus(corner[0])
	for i := 1; i < 3; i++ {
		if edge := corner[(i+1)%3].Minus(corner[i]); edge.Squared() > x.Squared() {
			a, x = i, edge
		}
	}
	length := x.Length()
	x = x.Times(1 / length)
	third := corner[(a+2)%3].Minus(corner[a])
	t := third.Dot(x)
	h := third.Minus(x.Times(t)).Length()
	re, im := [3]float64{0, length, t}, [3]float64{0, 0, h}
	meanRe, meanIm := (length+t)/3, h/3
	var squareRe, squareIm float64
	for i := range re {
		r, i := re[i]-meanRe, im[i]-meanIm
		squareRe += r*r - i*i
		squareIm += 2 * r * i
	}
	sin, cos := math.Sincos(0.5 * math.Atan2(squareIm, squareRe))
	for i := range re {
		along[(a+i)%3] = re[i]*cos + im[i]*sin
	}
	return along
}

// at gives the barycentric coordinates of a place: the part t of the way along
// the axis, and the part across from the long side to the other.
func (s *cuts) at(t, across float64) (b [3]float64) {
	near, end, turn := s.order[0], s.order[2], s.turn
	if t >= turn {
		near, end, t, turn = end, near, 1-t, 1-turn
	}
	b[end] = t * (1 - across)
	b[s.order[1]] = t / turn * across
	b[near] = 1 - b[end] - b[s.order[1]]
	return b
}

// point gives the place of a candidate, from the centre, and its normal: that
// of the vertices, interpolated, or the face's where it vanishes. A vertex whose
// faces cancel out has no normal but that of the face.
func (c *candidates) point(number int32) (place, normal r3.Vec) {
	place = r3.At(c.positions, int(number))
	frames := c.view.FrameRows()
	if c.offsets == nil {
		return place, r3.FrameAt(frames, int(number)).N
	}
	face := sort.Search(len(c.offsets)-1, func(face int) bool { return c.offsets[face+1] > int64(number) })
	corner := c.corners(face)
	d := c.divide(sizes(corner))
	b := c.barycentric(d, newCuts(corner, d), int64(number)-c.offsets[face], int64(number))
	own := corner[1].Minus(corner[0]).Cross(corner[2].Minus(corner[0]))
	flat := own.Squared() == 0
	if !flat {
		own = own.Normalised()
	}
	var normals [3]r3.Vec
	for i, p := range c.view.Faces()[3*face : 3*face+3] {
		if normals[i] = own; flat || c.view.HasNormal(int(p)) {
			normals[i] = r3.FrameAt(frames, int(p)).N
		}
	}
	if normal = combine(normals, b); normal.Squared() >= vanishing*vanishing {
		return place, normal.Normalised()
	}
	if flat {
		return place, normals[0]
	}
	return place, own
}

// vanishing bounds the length of a mean of unit normals without a direction.
const vanishing = 1e-6
