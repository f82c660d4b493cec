package core

import (
	"hash/fnv"
	"math"
)

// stream is a generator of random numbers without a state: number i of the
// stream of a seed and a name is a fixed function of the three, so any part
// of a network can be drawn alone and in any order. The function is the
// finaliser of SplitMix64 (Steele, Lea and Flood 2014) on a counter.
type stream struct{ key uint64 }

func newStream(seed uint64, name string) stream {
	hash := fnv.New64a()
	hash.Write([]byte(name))
	return stream{mix(seed ^ mix(hash.Sum64()))}
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// bits is number i as 64 bits.
func (s stream) bits(i int) uint64 { return mix(s.key + uint64(i+1)*0x9E3779B97F4A7C15) }

// uniform is number i, in (0, 1).
func (s stream) uniform(i int) float64 {
	return (float64(s.bits(i)>>11) + 0.5) / (1 << 53)
}

// normal is number i of a standard normal distribution (Box and Muller).
func (s stream) normal(i int) float64 {
	return math.Sqrt(-2*math.Log(s.uniform(2*i))) * math.Cos(2*math.Pi*s.uniform(2*i+1))
}

// drawing says how a tensor is initialised.
type drawing struct {
	basis    drawBasis
	fan      [2]int    // channels in and out
	rows     int       // of a kernel tensor: its first dimension
	elements []Element // what the first of these rows are
	sum      bool      // the messages are added, not averaged
}

type drawBasis int

const (
	drawKernel    drawBasis = iota // of kernels, [basis, …, out, in]
	drawHe                         // a dense layer before ReLU or ELU
	drawLinear                     // a dense layer
	drawDenseBias                  // its bias
	drawBias                       // the bias of rho_0
	drawAngle                      // that of rho_n
	drawOne
	drawZero
)

// usualDegree is the number of neighbours that a balanced initialisation
// expects: that of a regular triangulation.
const usualDegree = 6

// value returns number i of a tensor of size numbers.
//
// The authors' code: kernels uniform with Glorot's bound √(6/(in+out)),
// biases normal with deviation 1, angles 0.1, dense layers and their biases
// uniform up to 1/√in.
//
// Balanced: kernels normal with a variance of 1/in over the number of basis
// elements that lead to the same order, and over the usual number of
// neighbours where messages are added; dense layers normal with variance 2/in
// before a rectifier, 1/in otherwise; biases and angles zero.
func (d drawing) value(kind Initialisation, s stream, i, size int) float64 {
	if d.basis == drawOne {
		return 1
	}
	if d.basis == drawZero {
		return 0
	}
	if kind == InitialisationAuthors {
		return d.authors(s, i)
	}
	in := float64(d.fan[0])
	switch d.basis {
	case drawKernel:
		return s.normal(i) * math.Sqrt(d.kernelVariance(i, size)/in)
	case drawHe:
		return s.normal(i) * math.Sqrt(2/in)
	case drawLinear:
		return s.normal(i) / math.Sqrt(in)
	default:
		return 0
	}
}

func (d drawing) authors(s stream, i int) float64 {
	symmetric := 2*s.uniform(i) - 1
	switch d.basis {
	case drawKernel:
		return symmetric * math.Sqrt(6/float64(d.fan[0]+d.fan[1]))
	case drawBias:
		return s.normal(i)
	case drawAngle:
		return 0.1 * s.normal(i)
	default:
		return symmetric / math.Sqrt(float64(d.fan[0]))
	}
}

// kernelVariance is the share of number i of a kernel tensor in the variance
// of a result; 0 where a band limit left the row without a basis element.
func (d drawing) kernelVariance(i, size int) float64 {
	row := i / (size / d.rows)
	if row >= len(d.elements) {
		return 0
	}
	count := 0
	for _, e := range d.elements {
		if e.Out == d.elements[row].Out {
			count++
		}
	}
	if d.sum {
		count *= usualDegree
	}
	return 1 / float64(count)
}
