package core

import (
	"slices"
	"strings"

	"libeman/simd"
)

// Parameter is one tensor of a model. Data is in C order and belongs to the
// model: read it only.
type Parameter[T simd.Float] struct {
	Name  string
	Shape []int
	Data  []T
}

// Model is a network with its parameters. It is immutable and may be used by
// any number of calls at once.
type Model[T simd.Float] struct {
	spec       Spec
	parameters []Parameter[T] // in the order of Spec.parameters
	layers     []layer[T]
	head       denseHead[T]
	// buffer and buffers are where the features lie that the layers take and
	// give: see placeValues.
	buffer  []int
	buffers int
}

// layer is one step in front of the dense layers; one of convolution and
// spiral is set.
type layer[T simd.Float] struct {
	name        string
	from, to    int // levels of the points: see layerSpec
	in, out     Type
	convolution *convolution[T]
	spiral      *spiralLayer[T]
	activation  activation[T]
	residual    *residual[T]

	residualName string // of the residual's tensor
	residualFrom int    // the value that is added: see placeValues
}

// own is the value that holds the features of the points themselves that layer
// i computes: what it takes, for the points of a coarser level are the first of
// the finer one, but on the way up the features that are added.
func (l *layer[T]) own(i int) int {
	if l.from > l.to {
		return l.residualFrom
	}
	return i
}

// typeOf is the type of a value: of the input, or of the result of layer v-1.
func (m *Model[T]) typeOf(v int) Type {
	if v == 0 {
		return m.spec.InputType()
	}
	return m.layers[v-1].out
}

// NewModel returns a network with random parameters, which depend on the
// description and the seed alone.
func NewModel[T simd.Float](spec Spec, seed uint64) (*Model[T], error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	var parameters []Parameter[T]
	for _, p := range spec.parameters() {
		data := make([]T, p.size())
		stream := newStream(seed, p.name)
		for i := range data {
			// By way of float32, so that both precisions are the same network.
			data[i] = T(float32(p.draw.value(spec.Initialisation, stream, i, len(data))))
		}
		parameters = append(parameters, Parameter[T]{p.name, p.shape, data})
	}
	return prepare(spec.clone(), parameters), nil
}

// NewModelFrom returns the network of a description with the given parameters,
// which must be exactly those that it has, in any order. The data is copied.
func NewModelFrom[T simd.Float](spec Spec, given []Parameter[T]) (*Model[T], error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	parameters, err := parametersOf(spec, given)
	if err != nil {
		return nil, err
	}
	return prepare(spec.clone(), parameters), nil
}

// parametersOf brings copies of the given tensors, which must be those of the
// description, in its order.
func parametersOf[T simd.Float](spec Spec, given []Parameter[T]) (parameters []Parameter[T], err error) {
	byName := map[string]Parameter[T]{}
	for _, p := range given {
		if _, twice := byName[p.Name]; twice {
			return nil, invalidModel(p.Name, "the tensor is there twice")
		}
		byName[p.Name] = p
	}
	for _, want := range spec.parameters() {
		p, found := byName[want.name]
		if !found {
			return nil, invalidModel(want.name, "the tensor is missing")
		}
		delete(byName, want.name)
		if err := checkTensor(want, p); err != nil {
			return nil, err
		}
		parameters = append(parameters, Parameter[T]{want.name, want.shape, slices.Clone(p.Data)})
	}
	for _, p := range given {
		if _, left := byName[p.Name]; left {
			return nil, invalidModel(p.Name, "the network has no such tensor")
		}
	}
	return parameters, nil
}

func checkTensor[T simd.Float](want parameterSpec, p Parameter[T]) error {
	if !slices.Equal(p.Shape, want.shape) || int64(len(p.Data)) != want.size() {
		return invalidModel(want.name, "its shape is %v with %d numbers, not %v", p.Shape, len(p.Data), want.shape)
	}
	for i, value := range p.Data {
		if !isFinite(float64(value)) {
			return invalidModel(want.name, "number %d is %g", i, value)
		}
	}
	return nil
}

// WithParameters returns the model with some of its parameters replaced.
func (m *Model[T]) WithParameters(changes []Parameter[T]) (*Model[T], error) {
	parameters := slices.Clone(m.parameters)
	for _, change := range changes {
		at := slices.IndexFunc(parameters, func(p Parameter[T]) bool { return p.Name == change.Name })
		if at < 0 {
			return nil, invalidModel(change.Name, "the network has no such tensor")
		}
		parameters[at] = change
	}
	return NewModelFrom(m.spec, parameters)
}

// Spec is the model's description.
func (m *Model[T]) Spec() Spec { return m.spec.clone() }

// Parameters are the model's tensors.
func (m *Model[T]) Parameters() []Parameter[T] { return m.parameters }

// LayerInfo describes a layer whose features or attention can be read out.
type LayerInfo struct {
	Name  string
	Type  Type // of its features
	Heads int  // 0: it has no attention coefficients
}

// Layers lists the layers in front of the dense ones.
func (m *Model[T]) Layers() (infos []LayerInfo) {
	for _, l := range m.layers {
		info := LayerInfo{Name: strings.TrimSuffix(l.name, "."), Type: l.out}
		if l.convolution != nil && l.convolution.attention != nil {
			info.Heads = l.convolution.heads
		}
		infos = append(infos, info)
	}
	return infos
}

// prepare builds the matrices that are applied at run time.
func prepare[T simd.Float](spec Spec, parameters []Parameter[T]) *Model[T] {
	m := &Model[T]{spec: spec, parameters: parameters}
	m.prepareLayers()
	m.head = newDenseHead(spec, m.parameter)
	m.buffer, m.buffers = placeValues(spec.layers())
	return m
}

// refresh makes the matrices anew from changed parameters, those of the dense
// layers, which are most of all, in the same memory.
func (m *Model[T]) refresh() {
	m.prepareLayers()
	m.head.fill(m.parameter)
}

func (m *Model[T]) prepareLayers() {
	m.layers = nil
	for _, l := range m.spec.layers() {
		p := m.layerParameters(l.name)
		step := layer[T]{name: l.name, from: l.from, to: l.to, in: l.in, out: l.out}
		if l.convolution != nil {
			step.convolution = newConvolution[T](*l.convolution, p)
			step.activation = newActivation[T](l.nonlinearity, l.out, m.spec.Samples, p)
		} else {
			step.spiral = newSpiralLayer[T](l.in.Channels, l.out.Channels, l.spiral, p)
		}
		if r := l.residual; r != nil {
			step.residual, step.residualName = newResidual[T](r.in, r.out, m.layerParameters(r.name)[""]), r.name
			step.residualFrom = r.from
		}
		m.layers = append(m.layers, step)
	}
}

// layerParameters are the tensors whose names begin with prefix, by the rest
// of their names.
func (m *Model[T]) layerParameters(prefix string) layerParameters {
	p := layerParameters{}
	for _, parameter := range m.parameters {
		if rest, found := strings.CutPrefix(parameter.Name, prefix); found {
			wide := make([]float64, len(parameter.Data))
			for i, value := range parameter.Data {
				wide[i] = float64(value)
			}
			p[rest] = wide
		}
	}
	return p
}

// parameter is the data of a tensor that the network has.
func (m *Model[T]) parameter(name string) []T {
	at := slices.IndexFunc(m.parameters, func(p Parameter[T]) bool { return p.Name == name })
	return m.parameters[at].Data
}
