package core

import (
	"fmt"
	"slices"
)

// layerSpec is one step of a network: it maps the features of all points to
// new ones.
type layerSpec struct {
	name string // what its parameters' names begin with
	// from and to are the levels of the points whose features it takes, and of
	// those that it computes; 0 is the finest, and the vertices of a mesh.
	from, to     int
	convolution  *convolutionSpec // of an EMAN or GEM network
	spiral       int              // of a SpiralNet++: vertices of a spiral
	in, out      Type
	nonlinearity Nonlinearity // behind a convolution
	residual     *residualSpec
}

// residualSpec says that earlier features, such as the input of a block, are
// added to the output of a convolution.
type residualSpec struct {
	from    int    // 0: the input of the network, i: the result of layer i-1
	name    string // of the map's weights, where the widths differ
	in, out Type
	mapped  bool
}

// layers lists the steps before the dense layers (app. F: three residual
// blocks of two convolutions, from the input's type over the inner type
// width·(rho_0 ⊕ … ⊕ rho_L) to width·rho_0).
func (s Spec) layers() []layerSpec {
	switch {
	case s.Kind == KindSpiral:
		return s.spiralLayers()
	case s.Surface != nil:
		return s.surfaceLayers()
	}
	n := newStack(s)
	for b := range s.Blocks {
		n.block(fmt.Sprintf("blocks.%d.", b), 0, b == s.Blocks-1)
	}
	return n.layers
}

// stack is the layers of a network, as they come one on the other.
type stack struct {
	spec   Spec
	layers []layerSpec
	out    Type // of the last one
}

func newStack(s Spec) *stack { return &stack{spec: s, out: s.InputType()} }

// inner is the feature type between the blocks.
func (n *stack) inner() Type { return Type{n.spec.Width, n.spec.MaxOrder} }

// add completes a layer by its convolution to features of type out.
func (n *stack) add(l layerSpec, out Type) {
	c := n.spec.convolution(n.out, out)
	l.convolution, l.in, l.out = &c, n.out, out
	n.layers, n.out = append(n.layers, l), out
}

// block adds a residual block at a level; the final one leaves only rho_0.
func (n *stack) block(name string, level int, final bool) {
	in, from, inside := n.out, len(n.layers), NonlinearityNone
	if n.spec.InnerNonlinearity {
		inside = n.spec.Nonlinearity
	}
	out := n.inner()
	if final {
		out.Order = 0
	}
	n.add(layerSpec{name: name + "conv1.", from: level, to: level, nonlinearity: inside}, n.inner())
	n.add(layerSpec{
		name: name + "conv2.", from: level, to: level, nonlinearity: n.spec.Nonlinearity,
		residual: &residualSpec{from, name + "skip", in, out, in.Channels != out.Channels},
	}, out)
}

func (s Spec) convolution(in, out Type) convolutionSpec {
	return convolutionSpec{
		in: in, out: out, band: s.band(), rings: s.Rings, radial: s.Radial,
		mean: s.Aggregation == AggregationMean, selfTerm: s.SelfTerm,
		attention: s.Kind == KindEMAN, heads: s.Heads, projected: s.HeadForm == HeadProjected,
		queryRadial: s.QueryRadial, bias: s.Bias,
	}
}

// spiralLayers lists those of SpiralNet++: a dense layer to width channels,
// then spirals, each doubling the width.
func (s Spec) spiralLayers() []layerSpec {
	out := Type{Channels: s.Width}
	layers := []layerSpec{{name: "input.", spiral: 1, in: s.InputType(), out: out}}
	for b := range s.Blocks {
		in := out
		out.Channels *= 2
		layers = append(layers, layerSpec{name: fmt.Sprintf("spirals.%d.", b), spiral: s.SpiralLength, in: in, out: out})
	}
	return layers
}

// outputType is the feature type in front of the dense layers.
func (s Spec) outputType() Type {
	if s.Kind == KindSpiral {
		return Type{Channels: s.Width << s.Blocks}
	}
	return Type{Channels: s.Width}
}

// placeValues says in which of a few buffers the features lie that the layers
// of a network take and give: value 0 is its input, value i the result of layer
// i-1. Two values share a buffer only where the first is not needed any more
// when the second is written. As the gradient with respect to a value is needed
// from the last layer that takes the value back to the one that gives it, it
// serves the gradients as well.
func placeValues(layers []layerSpec) (buffer []int, buffers int) {
	until := make([]int, len(layers)+1) // the last layer, from 1 on, that takes a value
	for i, l := range layers {
		until[i] = max(until[i], i+1)
		if l.residual != nil {
			until[l.residual.from] = i + 1
		}
	}
	var taken []int // until when a buffer is in use
	for v := range until {
		free := slices.IndexFunc(taken, func(end int) bool { return end < v })
		if free < 0 {
			free, taken = len(taken), append(taken, 0)
		}
		taken[free] = max(until[v], v)
		buffer = append(buffer, free)
	}
	return buffer, len(taken)
}

// parameterSpec is one tensor of a network.
type parameterSpec struct {
	name  string
	shape []int
	draw  drawing
}

func (p parameterSpec) size() int64 {
	size := int64(1)
	for _, n := range p.shape {
		size *= int64(n)
	}
	return size
}

// parameters lists the tensors of a network in the order of its files.
func (s Spec) parameters() (list []parameterSpec) {
	for _, layer := range s.layers() {
		list = append(list, s.layerParameters(layer)...)
	}
	features := s.outputType().Channels
	relu := drawing{basis: drawHe, fan: [2]int{features, s.Hidden}}
	linear := drawing{basis: drawLinear, fan: [2]int{s.Hidden, s.Classes}}
	return append(list,
		parameterSpec{"dense1.weight", []int{s.Hidden, features}, relu},
		parameterSpec{"dense1.bias", []int{s.Hidden}, drawing{basis: drawDenseBias, fan: relu.fan}},
		parameterSpec{"dense2.weight", []int{s.Classes, s.Hidden}, linear},
		parameterSpec{"dense2.bias", []int{s.Classes}, drawing{basis: drawDenseBias, fan: linear.fan}},
	)
}

func (s Spec) layerParameters(l layerSpec) []parameterSpec {
	if l.convolution == nil {
		fan := [2]int{l.in.Channels * l.spiral, l.out.Channels}
		return []parameterSpec{
			{l.name + "weight", []int{fan[1], fan[0]}, drawing{basis: drawHe, fan: fan}},
			{l.name + "bias", []int{fan[1]}, drawing{basis: drawDenseBias, fan: fan}},
		}
	}
	list := l.convolution.parameters(l.name)
	if r := l.residual; r != nil && r.mapped {
		fan := [2]int{r.in.Channels, r.out.Channels}
		list = append(list, parameterSpec{r.name, []int{fan[1], fan[0]}, drawing{basis: drawLinear, fan: fan}})
	}
	if l.nonlinearity == NonlinearityGate && l.out.Order > 0 {
		shape := []int{l.out.Order, l.out.Channels}
		list = append(list,
			parameterSpec{l.name + "gate_scale", shape, drawing{basis: drawOne}},
			parameterSpec{l.name + "gate_offset", shape, drawing{basis: drawZero}})
	}
	return list
}

// parameters lists a convolution's tensors, their names beginning with prefix.
func (c convolutionSpec) parameters(prefix string) (list []parameterSpec) {
	in, out := c.in.Channels, c.out.Channels
	fan := [2]int{in, out}
	neighbour := func(name string) {
		rows := basisSize(c.in.Order, c.out.Order)
		draw := drawing{basis: drawKernel, fan: fan, rows: rows, elements: Basis(c.in.Order, c.out.Order, c.band), sum: !c.mean}
		list = append(list, parameterSpec{prefix + name, []int{rows, c.rings, out, in}, draw})
	}
	own := func(name string) {
		rows := selfBasisSize(c.in.Order, c.out.Order)
		draw := drawing{basis: drawKernel, fan: fan, rows: rows, elements: SelfBasis(c.in.Order, c.out.Order)}
		list = append(list, parameterSpec{prefix + name, []int{rows, out, in}, draw})
	}
	neighbour("value")
	switch {
	case c.attention && c.queryRadial:
		neighbour("key")
		neighbour("query")
	case c.attention:
		neighbour("key")
		own("query")
	}
	switch {
	case c.selfTerm && c.attention:
		own("self_value")
		own("self_key")
	case c.selfTerm:
		own("self")
	}
	if c.projected {
		for _, name := range []string{"head_query", "head_key", "head_value", "head_output"} {
			rows := selfBasisSize(c.out.Order, c.out.Order)
			draw := drawing{basis: drawKernel, fan: [2]int{out, out}, rows: rows, elements: SelfBasis(c.out.Order, c.out.Order)}
			list = append(list, parameterSpec{prefix + name, []int{rows, out, out}, draw})
		}
	}
	return append(list, c.biasParameters(prefix)...)
}

func (c convolutionSpec) biasParameters(prefix string) (list []parameterSpec) {
	if c.bias != BiasNone {
		list = append(list, parameterSpec{prefix + "bias", []int{c.out.Channels}, drawing{basis: drawBias}})
	}
	if c.bias.angular() && c.out.Order > 0 {
		list = append(list, parameterSpec{prefix + "angles", []int{c.out.Order, c.out.Channels}, drawing{basis: drawAngle}})
	}
	return list
}
