package core

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestDescriptionsAreCheckedByField(t *testing.T) {
	for text, message := range map[string]string{
		`{`:                                      "description: ",
		`[]`:                                     "description: it must be a JSON object",
		`null`:                                   "description: it is not a JSON object",
		`{"width": 8, "width": 16}`:              `description: "width" is there twice`,
		`{"Width": 8}`:                           `description: unknown field "Width"`,
		`{"width": null}`:                        "description: width: a null",
		`{"preset": null}`:                       "description: preset: a null",
		`{"spec": {}}`:                           "description: unknown field",
		`{} {}`:                                  "description: ",
		`{"preset": "best"}`:                     "preset: ",
		`{"kind": "cnn"}`:                        `kind: "cnn" is not one of eman, gem, spiral`,
		`{"depth": 3}`:                           `description: unknown field "depth"`,
		`{"width": "16"}`:                        "description: width: a string",
		`{"width": 1.5}`:                         "description: width: a number",
		`{"width": 0}`:                           "width: 0 is out of range",
		`{"width": 100000}`:                      "width: ",
		`{"classes": 0}`:                         "classes: ",
		`{"classes": -5}`:                        "classes: ",
		`{"blocks": 0}`:                          "blocks: ",
		`{"max_order": 5}`:                       "max_order: ",
		`{"max_order": -1}`:                      "max_order: ",
		`{"band_limit": -1}`:                     "band_limit: ",
		`{"band_limit": 9}`:                      "band_limit: ",
		`{"rings": 5}`:                           "rings: ",
		`{"heads": 3}`:                           "heads: 3 does not divide the width 16",
		`{"heads": 17}`:                          "heads: ",
		`{"task": "regression"}`:                 "task: ",
		`{"features": "hks"}`:                    "features: ",
		`{"powers": []}`:                         "powers: ",
		`{"features":"xyz","powers":[1]}`:        "powers: ",
		`{"features":"reltan","powers":[1e999]}`: "description: ",
		`{"relative_constant": 0}`:               "relative_constant: ",
		`{"radial": "far"}`:                      "radial: ",
		`{"aggregation": "max"}`:                 "aggregation: ",
		`{"head_form": "x"}`:                     "head_form: ",
		`{"bias": "x"}`:                          "bias: ",
		`{"nonlinearity": "relu"}`:               "nonlinearity: ",
		`{"nonlinearity": "regular", "samples": 4}`: "samples: 4 are too few",
		`{"samples": 0}`:                                                                                     "samples: ",
		`{"hidden": 0}`:                                                                                      "hidden: ",
		`{"dropout": 1}`:                                                                                     "dropout: ",
		`{"labels": ["a"], "classes": 2}`:                                                                    "labels: 1 names for 2",
		`{"kind": "gem", "heads": 2}`:                                                                        "heads: only an eman",
		`{"kind": "gem", "head_form": "projected"}`:                                                          "head_form: only an eman",
		`{"kind": "gem", "query_radial": true}`:                                                              "query_radial: only an eman",
		`{"kind": "spiral", "features": "get"}`:                                                              "features: ",
		`{"kind": "spiral", "rings": 2}`:                                                                     "rings: ",
		`{"kind": "spiral", "max_order": 1}`:                                                                 "max_order: ",
		`{"kind": "spiral", "bias": "angular"}`:                                                              "bias: ",
		`{"kind": "spiral", "nonlinearity": "poly"}`:                                                         "nonlinearity: ",
		`{"kind": "spiral", "self_term": true}`:                                                              "self_term: ",
		`{"kind": "spiral", "blocks": 7}`:                                                                    "blocks: ",
		`{"kind": "spiral", "spiral_length": 0}`:                                                             "spiral_length: ",
		`{"kind": "spiral", "spiral_start": "up"}`:                                                           "spiral_start: ",
		`{"features": "moments"}`:                                                                            "features: moments are of the samples",
		`{"surface": {}}`:                                                                                    "blocks: a network on a surface",
		`{"surface": {}, "blocks": 0}`:                                                                       "surface.points: 0 levels",
		`{"preset": "surface", "blocks": 2}`:                                                                 "blocks: a network on a surface",
		`{"preset": "surface", "kind": "spiral"}`:                                                            "preset: a spiral network",
		`{"kind": "spiral", "surface": {}}`:                                                                  "surface: a spiral network",
		`{"preset": "surface", "features": "xyz"}`:                                                           "features: a network on a surface does not take xyz",
		`{"preset": "surface", "powers": [1]}`:                                                               "powers: only reltan",
		`{"preset": "surface", "features": "moments_reltan", "powers": []}`:                                  "powers: 0 of them",
		`{"preset": "surface", "surface": null}`:                                                             "blocks: 0 is out of range",
		`{"preset": "surface", "surface": []}`:                                                               "description: surface: it is not a JSON object",
		`{"preset": "surface", "surface": {"depth": 1}}`:                                                     `description: surface: unknown field "depth"`,
		`{"preset": "surface", "surface": {"points": [8], "points": [9]}}`:                                   `description: surface: "points" is there twice`,
		`{"preset": "surface", "surface": {"points": null}}`:                                                 "description: surface: points: a null",
		`{"preset": "surface", "surface": {"points": "8"}}`:                                                  "description: surface: points: a string",
		`{"preset": "surface", "surface": {"points": [8, 8], "blocks": [1, 1, 1]}}`:                          "surface.points: level 1 has 8, no fewer",
		`{"preset": "surface", "surface": {"points": [8, 0], "blocks": [1, 1, 1]}}`:                          "surface.points: 0 is out of range",
		`{"preset": "surface", "surface": {"points": [8]}}`:                                                  "surface.blocks: 5 numbers, not 1 for 1",
		`{"preset": "surface", "surface": {"points": [9,8,7,6,5,4,3,2,1]}}`:                                  "surface.points: 9 levels",
		`{"preset": "surface", "surface": {"blocks": [1, 1, 0, 1, 1]}}`:                                      "surface.blocks: 0 is out of range",
		`{"preset": "surface", "surface": {"neighbors": 0}}`:                                                 "surface.neighbors: 0",
		`{"preset": "surface", "surface": {"up_neighbors": -1}}`:                                             "surface.up_neighbors: -1",
		`{"preset": "surface", "surface": {"lift_neighbors": 99999}}`:                                        "surface.lift_neighbors: 99999",
		`{"preset": "surface", "surface": {"scales": []}}`:                                                   "surface.scales: 0 of them for the features moments",
		`{"preset": "surface", "surface": {"scales": [0]}}`:                                                  "surface.scales: 0 is out of range",
		`{"preset": "surface", "features": "reltan", "surface": {"scales": [8]}}`:                            "surface.scales: 1 of them for the features reltan",
		`{"preset": "surface", "width": 1024, "max_order": 4, "surface": {"blocks": [256,256,256,256,256]}}`: "levels.0.down.0.conv2.value: the network has more than",
		`{"initialisation": "zero"}`:                                                                         "initialisation: ",
		`{"width": 1024, "heads": 1024, "max_order": 0, "features": "xyz"}`:                                  "heads: the network's matrices",
		`{"classes": 16777216, "hidden": 65536}`:                                                             "dense2.weight: the network has more than",
		`{"width": 1024, "max_order": 4, "band_limit": 0}`:                                                   "blocks.0.conv2.value: the network has more than",
	} {
		_, err := ParseSpec([]byte(text))
		if !errors.Is(err, ErrInvalidModel) || !strings.HasPrefix(err.Error(), message) {
			t.Errorf("%s: %v, not %q", text, err, message)
		}
	}
}

func TestPresetsAreWhatTheirNamesSay(t *testing.T) {
	for _, kind := range []Kind{KindEMAN, KindGEM, KindSpiral} {
		for _, preset := range []Preset{PresetDefault, PresetPaper, PresetAuthors, PresetSurface} {
			if preset == PresetSurface && kind == KindSpiral {
				continue
			}
			s, err := NewSpec(preset, kind)
			if err != nil || s.Validate() != nil {
				t.Errorf("%s, %s: %v, %v", preset, kind, err, s.Validate())
			}
			again, err := ParseSpec(s.JSON())
			if err != nil || !bytes.Equal(again.JSON(), s.JSON()) {
				t.Errorf("%s, %s: the JSON form reads as %s, %v", preset, kind, again.JSON(), err)
			}
		}
	}
	paper, _ := NewSpec(PresetPaper, "")
	if paper.band() != -1 || paper.Rings != 1 || paper.Aggregation != AggregationSum || paper.Nonlinearity != NonlinearityNone || paper.QueryRadial {
		t.Errorf("paper: %s", paper.JSON())
	}
	authors, _ := NewSpec(PresetAuthors, "")
	if authors.band() != 2 || authors.Rings != 2 || authors.Aggregation != AggregationMean || authors.Samples != 7 || !authors.QueryRadial {
		t.Errorf("authors: %s", authors.JSON())
	}
	surface, _ := NewSpec(PresetSurface, "")
	if surface.Kind != KindGEM || surface.Blocks != 0 || surface.InputType() != (Type{24, 2}) || surface.Radial != RadialLocal {
		t.Errorf("surface: %s", surface.JSON())
	}
	override, err := ParseSpec([]byte(`{"preset": "paper", "kind": "gem", "band_limit": 0, "features": "xyz", "classes": 9}`))
	if err != nil || override.band() != -1 || override.Powers != nil || override.InputType() != (Type{3, 0}) || override.Classes != 9 {
		t.Errorf("%s, %v", override.JSON(), err)
	}
}

// The band limit is the highest order, and the samples are enough for it.
func TestPresetsFollowTheHighestOrder(t *testing.T) {
	for text, want := range map[string][2]int{
		`{"preset": "authors", "max_order": 3}`:                  {3, 7},
		`{"preset": "authors", "max_order": 4}`:                  {4, 9},
		`{"preset": "authors", "max_order": 1}`:                  {1, 7},
		`{"max_order": 1}`:                                       {1, 7},
		`{"max_order": 0}`:                                       {-1, 7},
		`{"preset": "paper", "max_order": 3}`:                    {-1, 7},
		`{"max_order": 3, "band_limit": 1, "samples": 8}`:        {1, 8},
		`{"max_order": 3, "band_limit": null}`:                   {-1, 7},
		`{"kind": "spiral", "preset": "authors", "max_order":0}`: {-1, 7},
	} {
		s, err := ParseSpec([]byte(text))
		if err != nil || s.band() != want[0] || s.Samples != want[1] {
			t.Errorf("%s: band limit %d, %d samples, %v", text, s.band(), s.Samples, err)
		}
	}
}

func TestAuthorsConfigurationsAreReadStrictly(t *testing.T) {
	for _, text := range []string{`null`, `{} {}`, `{"model": "EMAN", "model": "EMAN"}`, `{"Model": "EMAN"}`, `{"model": null}`} {
		if _, err := ParseAuthorsConfig([]byte(text)); !errors.Is(err, ErrInvalidModel) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestPowersAreAListInJSON(t *testing.T) {
	spec, err := ParseSpec([]byte(`{"kind": "spiral"}`))
	if err != nil || !bytes.Contains(spec.JSON(), []byte(`"powers":[]`)) {
		t.Errorf("%s, %v", spec.JSON(), err)
	}
}

// What a network on a surface takes; and its description says all that it is.
func TestFeaturesOfSurfaces(t *testing.T) {
	for text, want := range map[string]Type{
		`{"preset": "surface"}`: {24, 2},
		`{"preset": "surface", "surface": {"scales": [8], "points": [64, 16, 4], "blocks": [1,1,1,1,1]}}`: {8, 2},
		`{"preset": "surface", "features": "reltan"}`:                                                     {2, 1},
		`{"preset": "surface", "features": "reltan", "powers": [0.7]}`:                                    {1, 1},
		`{"preset": "surface", "features": "moments_reltan", "kind": "eman"}`:                             {26, 2},
	} {
		s, err := ParseSpec([]byte(text))
		if err != nil || s.InputType() != want {
			t.Errorf("%s: %v, %v, not %v", text, err, s.InputType(), want)
			continue
		}
		again, err := ParseSpec(s.JSON())
		if err != nil || !bytes.Equal(again.JSON(), s.JSON()) {
			t.Errorf("%s reads as %s, %v", s.JSON(), again.JSON(), err)
		}
		again.clone().Surface.Points[0] = 1
		if again.Surface.Points[0] == 1 {
			t.Error("a copy shares its points")
		}
	}
	var names []string
	s, _ := NewSpec(PresetSurface, KindGEM)
	for _, l := range s.layers() {
		names = append(names, l.name)
	}
	var want []string
	block := func(level int, way string) {
		for b := range 2 {
			want = append(want, fmt.Sprintf("levels.%d.%s.%d.conv1.", level, way, b), fmt.Sprintf("levels.%d.%s.%d.conv2.", level, way, b))
		}
	}
	block(0, "down")
	for level := 1; level < 3; level++ {
		want = append(want, fmt.Sprintf("levels.%d.pool.", level))
		block(level, "down")
	}
	for level := 1; level >= 0; level-- {
		want = append(want, fmt.Sprintf("levels.%d.unpool.", level))
		block(level, "up")
	}
	if !slices.Equal(names, want) {
		t.Errorf("layers %s", names)
	}
}

// The inner features have max_order and not the input's order: a network of
// scalars takes RelTan features by convolutions 1 → 0.
func TestInnerOrderIsMaxOrder(t *testing.T) {
	for order := range 4 {
		s, _ := NewSpec(PresetDefault, KindEMAN)
		s.setMaxOrder(order)
		want := [][2]int{{1, order}, {order, order}, {order, order}, {order, order}, {order, order}, {order, 0}}
		for i, l := range s.layers() {
			if got := [2]int{l.in.Order, l.out.Order}; got != want[i] {
				t.Errorf("max_order %d, layer %d: %v, not %v", order, i, got, want[i])
			}
		}
		if _, err := NewModel[float32](s, 1); err != nil {
			t.Errorf("max_order %d: %v", order, err)
		}
	}
}

func TestAnglesOfTheBiases(t *testing.T) {
	one := []float64{1, 1, 1, 1}
	for bias, want := range map[Bias][]float64{BiasAngular: {1, 2, 3, 4}, BiasAngularAuthors: {1, 1, 0, 0}} {
		for i, angles := range bias.rotations(Type{1, 4}, one) {
			if angles[0] != want[i] {
				t.Errorf("%s: order %d is turned by %g, not %g", bias, i+1, angles[0], want[i])
			}
		}
	}
}

func TestBasisSizes(t *testing.T) {
	for _, c := range []struct{ in, out, band, alive, full int }{
		{2, 2, 2, 19, 25}, {1, 2, 2, 13, 15}, {2, 0, 2, 5, 5}, {2, 2, -1, 25, 25}, {0, 2, -1, 5, 5}, {4, 4, -1, 81, 81},
	} {
		if alive, full := len(Basis(c.in, c.out, c.band)), basisSize(c.in, c.out); alive != c.alive || full != c.full {
			t.Errorf("%+v: %d of %d", c, alive, full)
		}
	}
}

func TestParametersDependOnTheSeedAlone(t *testing.T) {
	spec, _ := NewSpec(PresetAuthors, KindEMAN)
	draw := func(seed uint64) []Parameter[float32] {
		m, err := NewModel[float32](spec, seed)
		if err != nil {
			t.Fatal(err)
		}
		return m.Parameters()
	}
	first, again, other := draw(1), draw(1), draw(2)
	for i, p := range first {
		if !slices.Equal(p.Data, again[i].Data) {
			t.Errorf("%s: the same seed gives other numbers", p.Name)
		}
		if slices.Equal(p.Data, other[i].Data) {
			t.Errorf("%s: another seed gives the same numbers", p.Name)
		}
	}
	// The generator is part of the interface: a seed means the same network for
	// ever.
	if got := newStream(1, "x").uniform(0); got != pinnedUniform {
		t.Errorf("number 0 of the stream (1, x) is %v, not %v", got, pinnedUniform)
	}
}

// Computed from the description of stream by a few lines of Python.
const pinnedUniform = 0.21095696884940213

func TestInitialisation(t *testing.T) {
	spread := func(data []float32) (mean, deviation float64) {
		for _, x := range data {
			mean += float64(x) / float64(len(data))
		}
		for _, x := range data {
			deviation += (float64(x) - mean) * (float64(x) - mean) / float64(len(data))
		}
		return mean, math.Sqrt(deviation)
	}
	check := func(m *Model[float32], name string, want float64) {
		t.Helper()
		data := m.parameter(name)
		if mean, deviation := spread(data); math.Abs(mean) > 0.1*want+1e-9 || math.Abs(deviation-want) > 0.1*want {
			t.Errorf("%s: mean %g, deviation %g, not %g", name, mean, deviation, want)
		}
	}
	build := func(preset Preset) *Model[float32] {
		spec, _ := NewSpec(preset, KindEMAN)
		spec.Classes = 1000
		m, err := NewModel[float32](spec, 3)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	authors := build(PresetAuthors)
	check(authors, "blocks.0.conv2.value", math.Sqrt(6.0/32/3)) // uniform: bound/√3
	check(authors, "blocks.1.conv1.query", math.Sqrt(6.0/32/3))
	check(authors, "dense1.weight", 1/math.Sqrt(16*3))
	check(authors, "dense2.bias", 1/math.Sqrt(256*3))
	balanced := build(PresetDefault)
	check(balanced, "blocks.0.conv1.bias", 0)
	check(balanced, "dense1.weight", math.Sqrt(2.0/16))
	check(balanced, "dense2.weight", 1/math.Sqrt(256.0))
	// Of the 25 rows of a tensor from order 2 to 2 with band 2, 19 are used.
	tail := balanced.parameter("blocks.1.conv1.value")[19*2*16*16:]
	if !slices.Equal(tail, make([]float32, len(tail))) {
		t.Error("rows without a basis element are not zero")
	}
}

// The authors' names, one by one: each missing, misspelt or misshapen one is
// refused by name.
func TestAuthorsStatesAreRefusedByName(t *testing.T) {
	for _, model := range []string{"RelTanEMAN", "GemCNN", "SpiralNet"} {
		state := authorsStateOf(t, model)
		config := DefaultAuthorsConfig(model)
		if _, err := FromAuthors(state, config); err != nil {
			t.Fatalf("%s: %v", model, err)
		}
		for i, tensor := range state {
			without := slices.Delete(slices.Clone(state), i, i+1)
			expectRefusal(t, without, config, tensor.Name)
			longer := slices.Clone(state)
			longer[i].Shape, longer[i].Data = append([]int{2}, tensor.Shape...), append(tensor.Data, tensor.Data...)
			expectRefusal(t, longer, config, "")
			nan := slices.Clone(state)
			nan[i].Data = slices.Clone(tensor.Data)
			nan[i].Data[0] = float32(math.NaN())
			expectRefusal(t, nan, config, tensor.Name+": number 0")
		}
		expectRefusal(t, append(slices.Clone(state), Parameter[float32]{Name: "conv9.weight"}), config, "conv9.weight")
	}
	expectRefusal(t, nil, DefaultAuthorsConfig("ResNet"), "model")
	buffers := append(authorsStateOf(t, "RelTanEMAN"),
		Parameter[float32]{Name: "conv1.conv1.kernel"}, Parameter[float32]{Name: "conv3.nonlin2.dft"},
		Parameter[float32]{Name: "conv2.conv1.eman_attn_layer.neigh_kernel"})
	if _, err := FromAuthors(buffers, DefaultAuthorsConfig("RelTanEMAN")); err != nil {
		t.Errorf("with buffers: %v", err)
	}
}

func expectRefusal(t *testing.T, state []Parameter[float32], config AuthorsConfig, name string) {
	t.Helper()
	_, err := FromAuthors(state, config)
	if !errors.Is(err, ErrInvalidModel) || !strings.HasPrefix(err.Error(), name) {
		t.Errorf("%s: %v, not a refusal of %q", config.Model, err, name)
	}
}

// authorsStateOf is a state with the authors' names and shapes.
func authorsStateOf(t *testing.T, model string) (state []Parameter[float32]) {
	t.Helper()
	add := func(name string, shape ...int) {
		size := 1
		for _, n := range shape {
			size *= n
		}
		state = append(state, Parameter[float32]{Name: name, Shape: shape, Data: make([]float32, size)})
	}
	if model == "SpiralNet" {
		for _, l := range []struct {
			name    string
			out, in int
		}{{"fc0", 16, 3}, {"conv1.layer", 32, 160}, {"conv2.layer", 64, 320}, {"conv3.layer", 128, 640}, {"fc1", 256, 128}, {"fc2", 9, 256}} {
			add(l.name+".weight", l.out, l.in)
			add(l.name+".bias", l.out)
		}
		return state
	}
	in, first := 2, 15
	if model == "GemCNN" {
		in, first = 3, 5
	}
	for i, rows := range []int{first, 25, 25, 25, 25, 5} {
		channels := 16
		if i == 0 {
			channels = in
		}
		name := []string{"conv1.conv1.", "conv1.conv2.", "conv2.conv1.", "conv2.conv2.", "conv3.conv1.", "conv3.conv2."}[i]
		add(name+"weight", rows, 2, 16, channels)
		for _, bias := range []string{"bias", "ang_bias1", "ang_bias2"} {
			add(name+bias, 16)
		}
		if model == "RelTanEMAN" {
			for _, part := range []string{"self", "neigh"} {
				add(name+"eman_attn_layer."+part+"_weight", rows, 2, 16, channels)
				add(name+"eman_attn_layer."+part+"_bias", 16)
			}
		}
	}
	add("conv1.lin.weight", 16, in, 1)
	add("lin1.weight", 256, 16)
	add("lin1.bias", 256)
	add("lin2.weight", 8, 256)
	add("lin2.bias", 8)
	return state
}

// Whatever a description says, it is refused with a culprit, or it is complete:
// written and read again it is the same.
func FuzzParse(f *testing.F) {
	for _, preset := range []Preset{PresetDefault, PresetSurface, PresetPaper, PresetAuthors} {
		spec, err := NewSpec(preset, KindEMAN)
		if err != nil {
			f.Fatal(err)
		}
		spec.Classes = 3
		f.Add(spec.JSON())
	}
	f.Add([]byte(`{"kind":"spiral","classes":2,"spiral_length":5}`))
	f.Add(DefaultTraining().JSON())
	f.Add([]byte(`{"warm_up":3,"dropout":0.5,"class_weights":[1,2],"frozen":["blocks.*"],"augment":{"rotation":true,"noise":0.1}}`))
	f.Add([]byte(`{"model":"RelTanEMAN","rel_power_list":[0.5],"n_rings":2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if spec, err := ParseSpec(text); err != nil {
			if !errors.Is(err, ErrInvalidModel) {
				t.Errorf("%T: %v", err, err)
			}
		} else if again, err := ParseSpec(spec.JSON()); err != nil || !bytes.Equal(again.JSON(), spec.JSON()) {
			t.Errorf("%s is read as %s, %v", spec.JSON(), again.JSON(), err)
		}
		if spec, err := ParseTraining(text); err != nil {
			if !errors.Is(err, ErrInvalidArgument) {
				t.Errorf("%T: %v", err, err)
			}
		} else if again, err := ParseTraining(spec.JSON()); err != nil || !bytes.Equal(again.JSON(), spec.JSON()) {
			t.Errorf("%s is read as %s, %v", spec.JSON(), again.JSON(), err)
		}
		if config, err := ParseAuthorsConfig(text); err != nil {
			if !errors.Is(err, ErrInvalidModel) {
				t.Errorf("%T: %v", err, err)
			}
		} else if _, err := FromAuthors[float32](nil, config); !errors.Is(err, ErrInvalidModel) {
			t.Errorf("a network without tensors: %v", err)
		}
	})
}
