package geometry

import (
	"math"

	"libeman/geometry/internal/r3"
	"libeman/geometry/parallel"
)

// Deformation changes the shape of a mesh: every vertex moves by a normally
// distributed vector and by a smooth field, both drawn from the seed, and then by
// a linear map.
type Deformation struct {
	Linear [9]float64 // row by row
	// Warp is the amplitude of the field, in diameters of the mesh: a sum of
	// waves in random directions, longer than half a diameter.
	Warp float64
	// Noise is the standard deviation of each component of the vector, in units
	// of the mean length of the edges at the vertex.
	Noise float64
	Seed  uint64
}

func (d *Deformation) check() error {
	for i, x := range d.Linear {
		if x-x != 0 {
			return badArgument("linear", "element %d is %g", i, x)
		}
	}
	for _, a := range []struct {
		name  string
		value float64
	}{{"noise", d.Noise}, {"warp", d.Warp}} {
		if !(a.value >= 0 && a.value <= math.MaxFloat64) {
			return badArgument(a.name, "%g is negative or not finite", a.value)
		}
	}
	return nil
}

// Deform returns the mesh with its shape changed. Custom frames do not fit the
// new shape: in their place it has the gauge by first neighbour. Those of points
// without faces, which have no other normals, go with the linear map.
func (m *Mesh) Deform(d Deformation, control *parallel.Control) (deformed *Mesh, err error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	err = m.Read(func(v *View) error {
		in := v.input()
		original := in.Positions
		waves := d.waves(v.Diagonal())
		in.Positions = func(destination []float64, begin, end int) {
			original(destination, begin, end)
			for p := begin; p < end; p++ {
				x := r3.At(destination, p-begin)
				moved := x.Plus(v.noise(d.Seed, p).Times(d.Noise))
				for i := range waves {
					moved = moved.Plus(waves[i].at(x))
				}
				r3.Put(destination, p-begin, moved.Rotated(&d.Linear))
			}
		}
		options := m.options
		if options.Gauge == CustomGauge && v.FaceCount() > 0 {
			options.Gauge = FirstNeighborGauge
		} else if options.Gauge == CustomGauge {
			in.Frames = v.mappedFrames(d.Linear)
		}
		deformed, err = newMesh(v.resources, v.topology, &in, options, control)
		return err
	})
	return deformed, err
}

// mappedFrames are the frames of tangent planes that a linear map has moved. A
// map that makes a plane vanish leaves its frame as it is.
func (v *View) mappedFrames(linear [9]float64) PositionReader {
	rows := [3]r3.Vec{r3.At(linear[:], 0), r3.At(linear[:], 1), r3.At(linear[:], 2)}
	cofactors := make([]float64, 9)
	for i := range rows {
		r3.Put(cofactors, i, rows[(i+1)%3].Cross(rows[(i+2)%3]))
	}
	return func(destination []float64, begin, end int) {
		for p := begin; p < end; p++ {
			f := r3.FrameAt(v.frames, p)
			n, e1 := f.N.Rotated((*[9]float64)(cofactors)), f.E1.Rotated(&linear)
			if n.Squared() > 0 && e1.Squared() > 0 {
				n = n.Normalised()
				e1 = e1.Without(n).Normalised()
				f = r3.Frame{E1: e1, E2: n.Cross(e1), N: n}
			}
			r3.PutFrame(destination, p-begin, f)
		}
	}
}

// wave is the field amplitude·sin(⟨k, x⟩ + phase).
type wave struct {
	amplitude, k r3.Vec
	phase        float64
}

func (w *wave) at(x r3.Vec) r3.Vec { return w.amplitude.Times(math.Sin(w.k.Dot(x) + w.phase)) }

// waves are those of the warp of a mesh: together of its amplitude, with
// wavelengths between half a diameter and a whole one.
func (d *Deformation) waves(diameter float64) (waves [4]wave) {
	if d.Warp == 0 || diameter == 0 {
		return waves
	}
	for i := range waves {
		number := func(j uint64) float64 { return RandomUniform(^d.Seed, 8*uint64(i)+j) }
		direction := func(j uint64) r3.Vec {
			r := RandomRotation(randomBits(^d.Seed, 8*uint64(i)+j))
			return r3.Vec{X: r[0], Y: r[3], Z: r[6]}
		}
		waves[i] = wave{
			amplitude: direction(0).Times(d.Warp * diameter / math.Sqrt(float64(len(waves)))),
			k:         direction(1).Times(2 * math.Pi * (1 + number(2)) / diameter),
			phase:     2 * math.Pi * number(3),
		}
	}
	return waves
}

// noise is a standard normal vector times the mean length of the edges at p.
func (v *View) noise(seed uint64, p int) r3.Vec {
	ring := v.edges.neighbors[v.edges.offsets[p]:v.edges.offsets[p+1]]
	if len(ring) == 0 {
		return r3.Vec{}
	}
	sum, x := 0.0, r3.At(v.positions, p)
	for _, q := range ring {
		sum += r3.At(v.positions, int(q)).Minus(x).Length()
	}
	scale := math.Ldexp(sum/float64(len(ring)), v.exponent)
	first := 3 * uint64(p)
	return r3.Vec{X: normal(seed, first), Y: normal(seed, first+1), Z: normal(seed, first+2)}.Times(scale)
}

// normal is a standard normal number (Box and Muller).
func normal(seed, i uint64) float64 {
	radius, angle := RandomUniform(seed, 2*i), randomAngle(seed, 2*i+1)
	return math.Sqrt(-2*math.Log(1-radius)) * math.Cos(angle)
}
