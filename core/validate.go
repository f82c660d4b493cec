package core

import (
	"math"
	"slices"
	"strings"

	"libeman/simd"
)

// Bounds of a description's numbers. They are far above any sensible network
// and keep every product of them within an int64.
const (
	maximalClasses = 1 << 24
	maximalWidth   = 1 << 10
	maximalBlocks  = 256
	maximalRings   = 4
	maximalPowers  = 64
	maximalHidden  = 1 << 16
	maximalSamples = 1 << 10
	maximalSpiral  = 1 << 10
	// A spiral network's width doubles with each block.
	maximalSpiralBlocks = 6
	maximalParameters   = 1 << 27
)

// Validate says which field of a description is wrong.
func (s Spec) Validate() error {
	for _, check := range []func(Spec) error{
		Spec.checkChoices, Spec.checkNumbers, Spec.checkFeatures, Spec.checkKind, Spec.checkSurface, Spec.checkLabels, Spec.checkSize,
	} {
		if err := check(s); err != nil {
			return err
		}
	}
	return nil
}

func oneOf[S ~string](field string, value S, allowed ...S) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	names := make([]string, len(allowed))
	for i, name := range allowed {
		names[i] = string(name)
	}
	return invalidModel(field, "%q is not one of %s", string(value), strings.Join(names, ", "))
}

func (s Spec) checkChoices() error {
	for _, err := range []error{
		oneOf("kind", s.Kind, KindEMAN, KindGEM, KindSpiral),
		oneOf("task", s.Task, TaskSegmentation, TaskClassification),
		oneOf("features", s.Features, FeaturesRelTan, FeaturesGET, FeaturesXYZ, FeaturesMoments, FeaturesMomentsRelTan),
		oneOf("radial", s.Radial, RadialGlobal, RadialLocal),
		oneOf("aggregation", s.Aggregation, AggregationSum, AggregationMean),
		oneOf("head_form", s.HeadForm, HeadGroups, HeadProjected),
		oneOf("bias", s.Bias, BiasAngular, BiasAngularAuthors, BiasAdditive, BiasNone),
		oneOf("nonlinearity", s.Nonlinearity, NonlinearityPoly, NonlinearityGate, NonlinearityRegular, NonlinearityNone),
		oneOf("spiral_start", s.SpiralStart, SpiralStartIndex, SpiralStartDistance),
		oneOf("initialisation", s.Initialisation, InitialisationAuthors, InitialisationBalanced),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s Spec) checkNumbers() error {
	leastBlocks := 1
	if s.Surface != nil {
		leastBlocks = 0
	}
	for _, n := range []struct {
		field           string
		value, low, top int
	}{
		{"classes", s.Classes, 1, maximalClasses},
		{"width", s.Width, 1, maximalWidth},
		{"blocks", s.Blocks, leastBlocks, maximalBlocks},
		{"max_order", s.MaxOrder, 0, simd.MaxOrder},
		{"band_limit", max(s.band(), 0), 0, 2 * simd.MaxOrder},
		{"rings", s.Rings, 1, maximalRings},
		{"heads", s.Heads, 1, s.Width},
		{"samples", s.Samples, 1, maximalSamples},
		{"hidden", s.Hidden, 1, maximalHidden},
		{"spiral_length", s.SpiralLength, 1, maximalSpiral},
	} {
		if n.value < n.low || n.value > n.top {
			return invalidModel(n.field, "%d is out of range [%d, %d]", n.value, n.low, n.top)
		}
	}
	if s.BandLimit != nil && *s.BandLimit < 0 {
		return invalidModel("band_limit", "%d is negative", *s.BandLimit)
	}
	if !(s.Dropout >= 0 && s.Dropout < 1) {
		return invalidModel("dropout", "%g is out of range [0, 1)", s.Dropout)
	}
	return nil
}

func (s Spec) checkFeatures() error {
	if !s.Features.relTan() && len(s.Powers) > 0 {
		return invalidModel("powers", "only reltan features have them, not %s", s.Features)
	}
	if s.Features.relTan() && (len(s.Powers) == 0 || len(s.Powers) > maximalPowers) {
		return invalidModel("powers", "%d of them, not between 1 and %d", len(s.Powers), maximalPowers)
	}
	for i, r := range s.Powers {
		if !isFinite(r) {
			return invalidModel("powers", "number %d is %g", i, r)
		}
	}
	if !isFinite(s.DegreePower) {
		return invalidModel("degree_power", "%g", s.DegreePower)
	}
	if !isFinite(s.RelativeConstant) || s.RelativeConstant == 0 {
		return invalidModel("relative_constant", "%g", s.RelativeConstant)
	}
	return nil
}

func isFinite(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }

// checkKind refuses settings that a kind of network does not have.
func (s Spec) checkKind() error {
	if s.Kind != KindEMAN {
		switch {
		case s.Heads != 1:
			return invalidModel("heads", "only an eman network has attention heads")
		case s.HeadForm != HeadGroups:
			return invalidModel("head_form", "only an eman network has attention heads")
		case s.QueryRadial:
			return invalidModel("query_radial", "only an eman network has queries")
		}
	}
	if s.Width%s.Heads != 0 {
		return invalidModel("heads", "%d does not divide the width %d, which would break equivariance", s.Heads, s.Width)
	}
	if s.Kind != KindSpiral {
		if enough := 2*s.MaxOrder + 1; s.Nonlinearity == NonlinearityRegular && s.Samples < enough {
			return invalidModel("samples", "%d are too few for order %d, which needs %d", s.Samples, s.MaxOrder, enough)
		}
		return nil
	}
	switch {
	case s.Blocks > maximalSpiralBlocks:
		return invalidModel("blocks", "%d are too many for a spiral network, whose width doubles with each: at most %d", s.Blocks, maximalSpiralBlocks)
	case s.Features != FeaturesXYZ:
		return invalidModel("features", "a spiral network takes xyz, not %s", s.Features)
	case s.MaxOrder != 0:
		return invalidModel("max_order", "a spiral network has scalars only")
	case s.Rings != 1:
		return invalidModel("rings", "a spiral network has none")
	case s.SelfTerm:
		return invalidModel("self_term", "a spiral network has none")
	case s.Bias != BiasNone:
		return invalidModel("bias", "that of a spiral network is fixed: it must be none here")
	case s.Nonlinearity != NonlinearityNone:
		return invalidModel("nonlinearity", "that of a spiral network is fixed: it must be none here")
	}
	return nil
}

func (s Spec) checkLabels() error {
	if len(s.Labels) != 0 && len(s.Labels) != s.Classes {
		return invalidModel("labels", "%d names for %d classes", len(s.Labels), s.Classes)
	}
	return nil
}

// checkSize bounds the number of parameters, and that of the numbers that are
// prepared from them: many heads have few parameters and large matrices.
func (s Spec) checkSize() error {
	total := int64(0)
	for _, p := range s.parameters() {
		total += p.size()
		if total > maximalParameters {
			return invalidModel(p.name, "the network has more than %d parameters", maximalParameters)
		}
	}
	if s.preparedNumbers() > maximalParameters {
		return invalidModel("heads", "the network's matrices have more than %d numbers", maximalParameters)
	}
	return nil
}

// preparedNumbers is about how many numbers the matrices of the convolutions
// have that are applied at run time.
func (s Spec) preparedNumbers() (total int64) {
	for _, l := range s.layers() {
		if c := l.convolution; c != nil {
			total += c.preparedNumbers()
		}
	}
	return total
}

func (c *convolutionSpec) preparedNumbers() (total int64) {
	plan := simd.NewMoments(c.in.Order, c.out.Order, c.band, c.in.padded())
	sets := 0
	if c.attention {
		if sets = c.rings; c.queryRadial {
			sets = pairCount(c.rings)
		}
	}
	for m, rows := range plan.Rows {
		moments := int64(c.heads*rows*rowsOf(m)) * int64(c.in.padded())
		total += moments * int64(c.rings*c.out.padded()+sets*c.in.padded())
	}
	return total
}

// MemoryBytes is about how much memory a model of this description takes in
// float32, the work of building it included: what to ask a memory budget for
// before NewModel or Decode.
func (s Spec) MemoryBytes() int64 {
	numbers := int64(0)
	for _, p := range s.parameters() {
		numbers += p.size()
	}
	// A copy of the parameters in float64, and the matrices in float64 before
	// they are packed.
	return 4*(2*numbers+s.preparedNumbers()) + 8*(numbers+2*s.preparedNumbers())
}
