package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"libeman/simd"
)

// AuthorsConfig is how a model of the authors' code was built: the arguments
// of its constructor, with its defaults in DefaultAuthorsConfig.
//
// Its JSON form has the names of their arguments.
type AuthorsConfig struct {
	Model            string    `json:"model"` // RelTanEMAN, EMAN, RelTanGemCNN, GemCNN or SpiralNet
	Task             Task      `json:"task"`
	Rings            int       `json:"n_rings"`
	MaxOrder         int       `json:"max_order"`
	Heads            int       `json:"n_heads"`
	EquivariantBias  bool      `json:"equiv_bias"`
	RegularNonLin    bool      `json:"regular_non_lin"`
	Powers           []float64 `json:"rel_power_list"`
	DegreePower      float64   `json:"deg_power"`
	RelativeConstant float64   `json:"rel_power_const"`
	// NullIsolated sets the features of isolated vertices to zero in the
	// authors' code, which otherwise computes NaN there. Here they are always
	// zero.
	NullIsolated bool `json:"null_isolated"`
}

// DefaultAuthorsConfig is what the authors' experiments use.
func DefaultAuthorsConfig(model string) AuthorsConfig {
	return AuthorsConfig{
		Model: model, Task: TaskSegmentation, Rings: 2, MaxOrder: 2, Heads: 1, EquivariantBias: true,
		Powers: []float64{0.5, 0.7}, DegreePower: 1.5, RelativeConstant: 1,
	}
}

// ParseAuthorsConfig reads a configuration from JSON. Only "model" is needed;
// the other fields have their defaults, and unknown ones are refused.
func ParseAuthorsConfig(text []byte) (AuthorsConfig, error) {
	config := DefaultAuthorsConfig("")
	if err := decodeStrictly(text, &config); err != nil {
		return config, invalidModel("config", "%v", jsonError(err))
	}
	return config, nil
}

// FromAuthors builds a model from a state_dict of the authors' code. Every
// name must be one that the network of this configuration has, and every
// parameter must be there; buffers (kernel, dft) may be. The sizes of the
// network are read off its dense layers.
func FromAuthors[T simd.Float](state []Parameter[T], config AuthorsConfig) (*Model[T], error) {
	a := authorsState[T]{byName: map[string]Parameter[T]{}, config: config}
	for _, tensor := range state {
		a.byName[tensor.Name] = tensor
	}
	spec, err := a.spec()
	if err != nil {
		return nil, err
	}
	parameters, err := a.convert(spec)
	if err != nil {
		return nil, err
	}
	if unknown := a.rest(); unknown != "" {
		return nil, invalidModel(unknown, "a %s of this configuration has no such tensor", config.Model)
	}
	return NewModelFrom(spec, parameters)
}

// authorsState is a state_dict of which tensors are taken one by one.
type authorsState[T simd.Float] struct {
	byName map[string]Parameter[T]
	config AuthorsConfig
}

// spec describes the network; its sizes are those of the dense layers.
func (a authorsState[T]) spec() (Spec, error) {
	known := map[string]struct {
		kind     Kind
		features FeatureKind
	}{
		"RelTanEMAN": {KindEMAN, FeaturesRelTan}, "EMAN": {KindEMAN, FeaturesXYZ},
		"RelTanGemCNN": {KindGEM, FeaturesRelTan}, "GemCNN": {KindGEM, FeaturesXYZ},
		"SpiralNet": {KindSpiral, FeaturesXYZ},
	}
	model, found := known[a.config.Model]
	if !found {
		return Spec{}, invalidModel("model", "%q is not one of %s", a.config.Model, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	}
	s, err := NewSpec(PresetAuthors, model.kind)
	if err != nil {
		return Spec{}, err
	}
	s.Task, s.Features, s.Powers = a.config.Task, model.features, nil
	if model.kind == KindSpiral {
		err = a.spiralSizes(&s)
	} else {
		a.options(&s)
		err = a.denseSizes(&s, "lin1.weight", "lin2.weight")
	}
	if err != nil {
		return Spec{}, err
	}
	return s, s.Validate()
}

// options copies the configuration of an EMAN or GEM-CNN.
func (a authorsState[T]) options(s *Spec) {
	s.Rings = a.config.Rings
	s.setMaxOrder(a.config.MaxOrder)
	s.InnerNonlinearity = a.config.RegularNonLin
	if s.Kind == KindEMAN {
		s.Heads = a.config.Heads
	}
	if s.Features == FeaturesRelTan {
		s.Powers, s.DegreePower, s.RelativeConstant = slices.Clone(a.config.Powers), a.config.DegreePower, a.config.RelativeConstant
	}
	if !a.config.EquivariantBias {
		s.Bias = BiasAdditive
	}
}

// denseSizes reads the widths off the dense layers.
func (a authorsState[T]) denseSizes(s *Spec, first, second string) error {
	dense1, err := a.matrix(first)
	if err != nil {
		return err
	}
	dense2, err := a.matrix(second)
	if err != nil {
		return err
	}
	s.Hidden, s.Width, s.Classes = dense1[0], dense1[1], dense2[0]
	return nil
}

// spiralSizes reads those of a SpiralNet.
func (a authorsState[T]) spiralSizes(s *Spec) error {
	if err := a.denseSizes(s, "fc1.weight", "fc2.weight"); err != nil {
		return err
	}
	input, err := a.matrix("fc0.weight")
	if err != nil {
		return err
	}
	spiral, err := a.matrix("conv1.layer.weight")
	if err != nil {
		return err
	}
	s.Width = input[0]
	s.SpiralLength = spiral[1] / max(1, input[0])
	return nil
}

// matrix is the shape of a tensor of two dimensions.
func (a authorsState[T]) matrix(name string) ([]int, error) {
	tensor, found := a.byName[name]
	if !found {
		return nil, invalidModel(name, "the tensor is missing")
	}
	if len(tensor.Shape) != 2 {
		return nil, invalidModel(name, "its shape is %v, not that of a matrix", tensor.Shape)
	}
	return tensor.Shape, nil
}

// convert takes the tensors of the network from the state.
func (a authorsState[T]) convert(s Spec) (parameters []Parameter[T], err error) {
	renamed := [][2]string{{"lin1.", "dense1."}, {"lin2.", "dense2."}}
	if s.Kind == KindSpiral {
		renamed = [][2]string{{"fc0.", "input."}, {"fc1.", "dense1."}, {"fc2.", "dense2."}}
		for b := range s.Blocks {
			renamed = append(renamed, [2]string{fmt.Sprintf("conv%d.layer.", b+1), fmt.Sprintf("spirals.%d.", b)})
		}
	} else if parameters, err = a.blocks(s); err != nil {
		return nil, err
	}
	for _, dense := range renamed {
		for _, part := range []string{"weight", "bias"} {
			name := dense[1] + part
			tensor, err := a.take(dense[0]+part, name, s.shapeOf(name))
			if err != nil {
				return nil, err
			}
			parameters = append(parameters, tensor)
		}
	}
	return parameters, nil
}

// blocks takes the tensors of the residual blocks.
func (a authorsState[T]) blocks(s Spec) (parameters []Parameter[T], err error) {
	for i, l := range s.layers() {
		block := fmt.Sprintf("conv%d.", i/2+1)
		converted, err := a.convolution(l, fmt.Sprintf("%sconv%d.", block, i%2+1))
		if err != nil {
			return nil, err
		}
		parameters = append(parameters, converted...)
		delete(a.byName, fmt.Sprintf("%snonlin%d.dft", block, i%2+1))
		if l.residual != nil && l.residual.mapped {
			skip, err := a.take(block+"lin.weight", l.residual.name, []int{l.residual.out.Channels, l.residual.in.Channels, 1})
			if err != nil {
				return nil, err
			}
			skip.Shape = skip.Shape[:2]
			parameters = append(parameters, skip)
		}
	}
	return parameters, nil
}

// shapeOf is the shape of a parameter that the network has.
func (s Spec) shapeOf(name string) []int {
	list := s.parameters()
	return list[slices.IndexFunc(list, func(p parameterSpec) bool { return p.name == name })].shape
}

// convolution takes the tensors of one convolution.
func (a authorsState[T]) convolution(l layerSpec, theirs string) (parameters []Parameter[T], err error) {
	names := map[string]string{
		"value": "weight", "bias": "bias",
		"key": "eman_attn_layer.neigh_weight", "query": "eman_attn_layer.self_weight",
	}
	for _, want := range l.convolution.parameters(l.name) {
		part := want.name[len(l.name):]
		if part == "angles" {
			continue
		}
		tensor, err := a.take(theirs+names[part], want.name, want.shape)
		if err != nil {
			return nil, err
		}
		parameters = append(parameters, tensor)
	}
	if l.convolution.bias.angular() {
		angles, err := a.angles(l, theirs)
		if err != nil {
			return nil, err
		}
		parameters = append(parameters, angles...)
	}
	return parameters, a.discard(l, theirs)
}

// discard takes what a convolution of theirs has and does not use: biases of
// the attention, and the buffers, which may be absent.
func (a authorsState[T]) discard(l layerSpec, theirs string) error {
	if l.convolution.attention {
		for _, name := range []string{"eman_attn_layer.self_bias", "eman_attn_layer.neigh_bias"} {
			if _, err := a.take(theirs+name, "", []int{l.out.Channels}); err != nil {
				return err
			}
		}
	}
	for _, buffer := range []string{"kernel", "eman_attn_layer.self_kernel", "eman_attn_layer.neigh_kernel"} {
		delete(a.byName, theirs+buffer)
	}
	return nil
}

// angles takes the angular biases of orders 1 and 2, which every convolution
// of theirs has, whatever its order; higher orders are not turned.
func (a authorsState[T]) angles(l layerSpec, theirs string) ([]Parameter[T], error) {
	channels := l.out.Channels
	data := make([]T, l.out.Order*channels)
	for n := 1; n <= 2; n++ {
		tensor, err := a.take(fmt.Sprintf("%sang_bias%d", theirs, n), "", []int{channels})
		if err != nil {
			return nil, err
		}
		if n <= l.out.Order {
			copy(data[(n-1)*channels:], tensor.Data)
		}
	}
	if l.out.Order == 0 {
		return nil, nil
	}
	return []Parameter[T]{{l.name + "angles", []int{l.out.Order, channels}, data}}, nil
}

// take removes a tensor from the state and returns it under our name.
func (a authorsState[T]) take(theirs, ours string, shape []int) (Parameter[T], error) {
	tensor, found := a.byName[theirs]
	if !found {
		return tensor, invalidModel(theirs, "the tensor is missing")
	}
	if !slices.Equal(tensor.Shape, shape) {
		return tensor, invalidModel(theirs, "its shape is %v, not %v", tensor.Shape, shape)
	}
	delete(a.byName, theirs)
	tensor.Name = ours
	return tensor, checkTensor(parameterSpec{name: theirs, shape: shape}, tensor)
}

// rest is the first name, in alphabetical order, that nothing has taken, or "".
func (a authorsState[T]) rest() string {
	names := slices.Sorted(maps.Keys(a.byName))
	if len(names) == 0 {
		return ""
	}
	return names[0]
}
