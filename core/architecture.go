package core

import "fmt"

// layerSpec is one step of a network: it maps the features of all vertices to
// new ones.
type layerSpec struct {
	name         string           // what its parameters' names begin with
	convolution  *convolutionSpec // of an EMAN or GEM network
	spiral       int              // of a SpiralNet++: vertices of a spiral
	in, out      Type
	nonlinearity Nonlinearity // behind a convolution
	residual     *residualSpec
}

// residualSpec says that the input of a block is added to its output.
type residualSpec struct {
	name    string // of the map's weights, where the widths differ
	in, out Type
	mapped  bool
}

// layers lists the steps before the dense layers (app. F: three residual
// blocks of two convolutions, from the input's type over the inner type
// width·(rho_0 ⊕ … ⊕ rho_L) to width·rho_0).
func (s Spec) layers() (layers []layerSpec) {
	if s.Kind == KindSpiral {
		return s.spiralLayers()
	}
	in := s.InputType()
	for b := range s.Blocks {
		inner := Type{s.Width, s.MaxOrder}
		out := Type{s.Width, s.MaxOrder}
		if b == s.Blocks-1 {
			out.Order = 0
		}
		name := fmt.Sprintf("blocks.%d.", b)
		first, second := s.convolution(in, inner), s.convolution(inner, out)
		layers = append(layers,
			layerSpec{name: name + "conv1.", convolution: &first, in: in, out: inner, nonlinearity: NonlinearityNone},
			layerSpec{name: name + "conv2.", convolution: &second, in: inner, out: out, nonlinearity: s.Nonlinearity,
				residual: &residualSpec{name + "skip", in, out, in.Channels != out.Channels}})
		if s.InnerNonlinearity {
			layers[2*b].nonlinearity = s.Nonlinearity
		}
		in = out
	}
	return layers
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
