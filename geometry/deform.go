package geometry

import (
	"math"

	"libeman/geometry/internal/r3"
	"libeman/geometry/parallel"
)

// Deformation changes the shape of a mesh: every vertex moves by a normally
// distributed vector, drawn from the seed and the vertex, and then by a linear
// map.
type Deformation struct {
	Linear [9]float64 // row by row
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
	if !(d.Noise >= 0 && d.Noise <= math.MaxFloat64) {
		return badArgument("noise", "%g is negative or not finite", d.Noise)
	}
	return nil
}

// Deform returns the mesh with its shape changed. Custom frames do not fit the
// new shape: in their place it has the gauge by first neighbour.
func (m *Mesh) Deform(d Deformation, control *parallel.Control) (deformed *Mesh, err error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	err = m.Read(func(v *View) error {
		in := v.input()
		original := in.Positions
		in.Positions = func(destination []float64, begin, end int) {
			original(destination, begin, end)
			for p := begin; p < end; p++ {
				x := r3.At(destination, p-begin).Plus(v.noise(d.Seed, p).Times(d.Noise))
				r3.Put(destination, p-begin, x.Rotated(&d.Linear))
			}
		}
		options := m.options
		if options.Gauge == CustomGauge {
			options.Gauge = FirstNeighborGauge
		}
		deformed, err = newMesh(v.resources, v.topology, &in, options, control)
		return err
	})
	return deformed, err
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
