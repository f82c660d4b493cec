package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Kind is the family of a network.
type Kind string

const (
	KindEMAN   Kind = "eman"   // attention layers (§6)
	KindGEM    Kind = "gem"    // GEM-CNN convolutions (§3.6)
	KindSpiral Kind = "spiral" // SpiralNet++, the baseline that is not equivariant
)

// Task says what a network labels.
type Task string

const (
	TaskSegmentation   Task = "segmentation"   // every vertex
	TaskClassification Task = "classification" // the mesh
)

// FeatureKind is what a network sees of a mesh.
type FeatureKind string

const (
	FeaturesRelTan FeatureKind = "reltan" // each power one channel rho_0 ⊕ rho_1, rho_0 zero (§4)
	FeaturesGET    FeatureKind = "get"    // one channel rho_0 ⊕ rho_1 (app. G)
	FeaturesXYZ    FeatureKind = "xyz"    // three channels rho_0
	// Of the samples of a surface: see SurfaceSpec.
	FeaturesMoments       FeatureKind = "moments"        // second moments of the neighbourhoods
	FeaturesMomentsRelTan FeatureKind = "moments_reltan" // and behind them RelTan
)

func (f FeatureKind) moments() bool { return f == FeaturesMoments || f == FeaturesMomentsRelTan }

func (f FeatureKind) relTan() bool { return f == FeaturesRelTan || f == FeaturesMomentsRelTan }

// HeadForm says how attention heads divide the channels.
type HeadForm string

const (
	HeadGroups    HeadForm = "groups"    // contiguous groups of channels (authors' code)
	HeadProjected HeadForm = "projected" // learnt maps W^i, W^O (app. D.3)
)

// Aggregation says how a vertex's messages are combined.
type Aggregation string

const (
	AggregationSum  Aggregation = "sum"  // the paper's; attention N_p·softmax
	AggregationMean Aggregation = "mean" // divided by the number of messages; attention softmax
)

// Initialisation says how weights are drawn (see draw).
type Initialisation string

const (
	InitialisationAuthors  Initialisation = "authors"  // as the authors' code: Glorot over [out, in]
	InitialisationBalanced Initialisation = "balanced" // unit variance through the layers
)

// SpiralStart says at which neighbour a spiral begins.
type SpiralStart string

const (
	SpiralStartIndex    SpiralStart = "index"    // the one of lowest index
	SpiralStartDistance SpiralStart = "distance" // the nearest
)

// Spec describes a network. Its JSON form has exactly these fields; those that
// say nothing for a kind must have the value that its presets give them.
type Spec struct {
	Kind    Kind     `json:"kind"`
	Task    Task     `json:"task"`
	Classes int      `json:"classes"`
	Labels  []string `json:"labels,omitempty"` // the classes' names; none or all

	Features FeatureKind `json:"features"`
	// Powers are the relative powers r of RelTan features (§4), which are
	// divided by RelativeConstant·N_p^DegreePower (paper: 1 and 3/2).
	Powers           []float64 `json:"powers"`
	DegreePower      float64   `json:"degree_power"`
	RelativeConstant float64   `json:"relative_constant"`

	Width  int `json:"width"`  // channels of the inner layers
	Blocks int `json:"blocks"` // residual blocks, of two convolutions each
	// MaxOrder is the highest order L of the inner features.
	MaxOrder int `json:"max_order"`
	// BandLimit is the highest frequency of the kernels; none, and 0, mean no
	// limit. In the presets that have one it is MaxOrder.
	BandLimit *int   `json:"band_limit"`
	Rings     int    `json:"rings"` // radial rings; 1: kernels do not see lengths
	Radial    Radial `json:"radial"`

	Aggregation Aggregation `json:"aggregation"`
	// SelfTerm adds K_self f_p to a GEM convolution, and the vertex itself to
	// the ring of an attention layer (app. D.4).
	SelfTerm    bool     `json:"self_term"`
	Heads       int      `json:"heads"`
	HeadForm    HeadForm `json:"head_form"`
	QueryRadial bool     `json:"query_radial"` // the query sees lengths as well (authors' code)

	Bias         Bias         `json:"bias"`
	Nonlinearity Nonlinearity `json:"nonlinearity"`
	Samples      int          `json:"samples"` // of the regular non-linearity
	// InnerNonlinearity applies it between the convolutions of a block as well.
	InnerNonlinearity bool `json:"inner_nonlinearity"`

	Hidden  int     `json:"hidden"`  // width of the dense layer
	Dropout float64 `json:"dropout"` // behind it, in training

	SpiralLength int         `json:"spiral_length"`
	SpiralStart  SpiralStart `json:"spiral_start"`

	Initialisation Initialisation `json:"initialisation"`

	// Surface is what a network on the samples of a surface has; nil for one on
	// the vertices of a mesh. Its Blocks take the place of those above.
	Surface *SurfaceSpec `json:"surface,omitempty"`
}

// Preset names a set of choices.
type Preset string

const (
	PresetDefault Preset = "default" // what we recommend: exactly equivariant
	PresetPaper   Preset = "paper"   // the paper's text
	PresetAuthors Preset = "authors" // the published code's
	PresetSurface Preset = "surface" // of samples of a surface, whatever its triangulation
)

// relTanPowers are the paper's (app. F).
func relTanPowers() []float64 { return []float64{0.5, 0.7} }

// NewSpec returns a preset's choices for a kind of network (empty: EMAN, on a
// surface GEM) that segments into one class.
func NewSpec(preset Preset, kind Kind) (Spec, error) {
	if kind == "" {
		kind = KindEMAN
		if preset == PresetSurface {
			kind = KindGEM
		}
	}
	s := Spec{
		Kind: kind, Task: TaskSegmentation, Classes: 1,
		Features: FeaturesRelTan, Powers: relTanPowers(), DegreePower: 1.5, RelativeConstant: 1,
		Width: 16, Blocks: 3, MaxOrder: 2, Rings: 1, Radial: RadialGlobal,
		Aggregation: AggregationSum, Heads: 1, HeadForm: HeadGroups,
		Bias: BiasAngular, Nonlinearity: NonlinearityNone, Samples: 7,
		Hidden: 256, Dropout: 0.5, SpiralLength: 10, SpiralStart: SpiralStartIndex,
		Initialisation: InitialisationBalanced,
	}
	switch preset {
	case PresetPaper: // appendix F; no quantised non-linearity (§7), and no other is named
	case PresetAuthors:
		s.BandLimit, s.Rings, s.Aggregation = new(int), 2, AggregationMean
		s.Bias, s.Nonlinearity, s.Initialisation = BiasAngularAuthors, NonlinearityRegular, InitialisationAuthors
		s.QueryRadial = kind == KindEMAN
	case PresetDefault:
		s.BandLimit, s.Rings, s.Radial, s.Aggregation = new(int), 2, RadialLocal, AggregationMean
		s.Nonlinearity, s.SpiralStart = NonlinearityPoly, SpiralStartDistance
	case PresetSurface:
		if kind == KindSpiral {
			return Spec{}, invalidModel("preset", "a spiral network runs on vertices")
		}
		s.BandLimit, s.Rings, s.Radial, s.Aggregation = new(int), 2, RadialLocal, AggregationMean
		s.Nonlinearity, s.InnerNonlinearity, s.SelfTerm = NonlinearityPoly, true, true
		s.Hidden, s.Dropout = 64, 0.3
		s.Surface, s.Blocks = defaultSurface(), 0
		s.setFeatures(FeaturesMoments)
	default:
		return Spec{}, invalidModel("preset", "%q is not one of default, paper, authors, surface", preset)
	}
	s.setMaxOrder(s.MaxOrder)
	if kind == KindSpiral {
		s.becomeSpiral()
	}
	return s, nil
}

// setMaxOrder sets the highest order and, as the presets do, what follows it:
// the band limit, where there is one, is the order, and the samples of the
// regular non-linearity are the published 7 as far as these are enough.
func (s *Spec) setMaxOrder(order int) {
	s.MaxOrder = order
	if s.BandLimit != nil {
		s.BandLimit = &order
	}
	s.Samples = max(7, 2*order+1)
}

// setFeatures sets the input features and what goes with them.
func (s *Spec) setFeatures(features FeatureKind) {
	s.Features, s.Powers = features, nil
	if features.relTan() {
		s.Powers = relTanPowers()
	}
	if s.Surface != nil && !features.moments() {
		s.Surface.Scales = nil
	}
}

// becomeSpiral sets what a SpiralNet++ does not have to its neutral value.
func (s *Spec) becomeSpiral() {
	s.Features, s.Powers = FeaturesXYZ, nil
	s.MaxOrder, s.BandLimit, s.Rings, s.Radial = 0, nil, 1, RadialGlobal
	s.Aggregation, s.QueryRadial = AggregationSum, false
	s.Bias, s.Nonlinearity = BiasNone, NonlinearityNone
}

// ParseSpec reads a description from JSON. A field "preset" (default:
// "default") says what the fields not given are, of which band_limit and samples
// follow max_order; unknown fields are refused.
func ParseSpec(text []byte) (Spec, error) {
	head := struct {
		Preset   Preset      `json:"preset"`
		Kind     Kind        `json:"kind"`
		Features FeatureKind `json:"features"`
		MaxOrder *int        `json:"max_order"`
	}{Preset: PresetDefault}
	if err := json.Unmarshal(text, &head); err != nil {
		return Spec{}, invalidModel("description", "%v", jsonError(err))
	}
	base, err := NewSpec(head.Preset, head.Kind)
	if err != nil {
		return Spec{}, err
	}
	if head.Features != "" {
		base.setFeatures(head.Features)
	}
	if head.MaxOrder != nil && head.Kind != KindSpiral {
		base.setMaxOrder(*head.MaxOrder)
	}
	described := struct {
		Preset Preset `json:"preset"`
		*Spec
	}{Spec: &base}
	if err := decodeStrictly(text, &described); err != nil {
		return Spec{}, invalidModel("description", "%v", jsonError(err))
	}
	return base, base.Validate()
}

// decodeStrictly is json.Unmarshal of an object into a struct that refuses what
// that lets pass: fields that the struct does not have or spells differently, a
// field twice, null where it has no meaning (for all but pointers), and text
// behind the object.
func decodeStrictly(text []byte, to any) error {
	members, err := objectMembers(text)
	if err != nil {
		return err
	}
	fields := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(reflect.TypeOf(to).Elem()) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			fields[name] = field.Type
		}
	}
	for _, m := range members {
		of, found := fields[m.name]
		if !found {
			return fmt.Errorf("unknown field %q", m.name)
		}
		if string(m.value) == "null" && of.Kind() != reflect.Pointer {
			return fmt.Errorf("%s: a null does not fit here", m.name)
		}
	}
	return json.Unmarshal(text, to)
}

// jsonError says which field had the wrong type without naming Go's types.
func jsonError(err error) error {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		field := wrongType.Field
		if field == "" {
			return fmt.Errorf("it must be a JSON object, not a %s", wrongType.Value)
		}
		return fmt.Errorf("%s: a %s does not fit here", strings.TrimPrefix(field, "Spec."), wrongType.Value)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

// JSON returns the description, complete.
func (s Spec) JSON() []byte {
	if s.Powers == nil {
		s.Powers = []float64{} // a list in JSON as well, not null
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // Spec has only marshallable fields, and Validate refused NaN
	}
	return text
}

// clone shares nothing with s.
func (s Spec) clone() Spec {
	s.Labels, s.Powers = slices.Clone(s.Labels), slices.Clone(s.Powers)
	if s.BandLimit != nil {
		limit := *s.BandLimit
		s.BandLimit = &limit
	}
	s.Surface = s.Surface.clone()
	return s
}

// band is the limit as the kernels take it: negative for none.
func (s Spec) band() int {
	if s.BandLimit == nil || *s.BandLimit == 0 {
		return -1
	}
	return *s.BandLimit
}

// InputType is the feature type that the network takes.
func (s Spec) InputType() Type {
	switch s.Features {
	case FeaturesMoments, FeaturesMomentsRelTan:
		return Type{momentChannels*len(s.Surface.Scales) + len(s.Powers), 2}
	case FeaturesRelTan:
		return Type{len(s.Powers), 1}
	case FeaturesGET:
		return Type{1, 1}
	default:
		return Type{3, 0}
	}
}
