package core

import (
	"encoding/json"
	"math"
	"path"
)

// Optimizer is how gradients change parameters.
type Optimizer string

const (
	OptimizerAdam  Optimizer = "adam"  // weight decay is part of the gradient
	OptimizerAdamW Optimizer = "adamw" // weight decay is apart from it
)

// Schedule is how the learning rate changes in the course of a training.
type Schedule string

const (
	ScheduleConstant Schedule = "constant"
	// ScheduleCosine falls from the learning rate to 0 as half a cosine.
	ScheduleCosine Schedule = "cosine"
	// ScheduleOneCycle rises from 1/25 of the learning rate to it in the first
	// 30 % of the steps and falls to 1/10000 of that, both as half a cosine.
	ScheduleOneCycle Schedule = "one_cycle"
)

const (
	// mostEpochs bounds the history, which must fit the header of a checkpoint.
	mostEpochs = 1e5
	// leastEpsilon is about the root of the smallest second moment in float32:
	// with less, one that is 0 makes a step without a bound.
	leastEpsilon = 1e-20
	mostPatterns = 1 << 10
)

// TrainingSpec describes a training. Its JSON form has exactly these fields;
// those left out have the values of DefaultTraining.
type TrainingSpec struct {
	Epochs        int       `json:"epochs"`
	Optimizer     Optimizer `json:"optimizer"`
	LearningRate  float64   `json:"learning_rate"`
	Schedule      Schedule  `json:"schedule"`
	WarmUp        int       `json:"warm_up"` // steps in which the rate rises from 0; not with one_cycle
	Beta1         float64   `json:"beta1"`
	Beta2         float64   `json:"beta2"`
	Epsilon       float64   `json:"epsilon"`
	WeightDecay   float64   `json:"weight_decay"`
	ClipNorm      float64   `json:"clip_norm"`         // of the whole gradient; 0: none
	MeshesPerStep int       `json:"meshes_per_step"`   // whose gradients are summed
	Shuffle       bool      `json:"shuffle"`           // the meshes, in every epoch
	Dropout       *float64  `json:"dropout,omitempty"` // none: the model's
	// ClassWeights say how much each class counts; none: all alike.
	ClassWeights []float64 `json:"class_weights,omitempty"`
	// Frozen are patterns (path.Match) of names of parameters that stay as they
	// are.
	Frozen []string `json:"frozen,omitempty"`
	// Patience is the number of epochs without a better validation after which
	// the training ends; 0: it goes on.
	Patience int          `json:"patience"`
	Augment  Augmentation `json:"augment"`
	Seed     uint64       `json:"seed"`
}

// Augmentation changes every mesh at random before each step. Models that see
// RelTan features do not notice where it moves them (§4): that is there for
// those that see coordinates (§7, the paper's comparison). What changes the
// shape teaches every model to expect other bodies than those it has seen.
type Augmentation struct {
	Rotation    bool    `json:"rotation"`    // uniform over all rotations
	Translation float64 `json:"translation"` // in each direction, up to so many times the mesh's diameter
	Scale       float64 `json:"scale"`       // by a factor between 1/(1+Scale) and 1+Scale
	Stretch     float64 `json:"stretch"`     // as Scale, but by its own factor along each of three random axes
	Warp        float64 `json:"warp"`        // smoothly, by so many times the mesh's diameter
	Noise       float64 `json:"noise"`       // of every vertex: deviation in units of the mean edge at it
	Resample    bool    `json:"resample"`    // a surface, with other points
}

func (a Augmentation) any() bool {
	return a.Rotation || a.Translation > 0 || a.Scale > 0 || a.deforms() || a.Resample
}

// deforms says whether it changes the shape.
func (a Augmentation) deforms() bool { return a.Stretch > 0 || a.Warp > 0 || a.Noise > 0 }

// DefaultTraining is the paper's recipe (app. F): Adam with the rate 0.01 for
// 100 epochs, one mesh a step.
func DefaultTraining() TrainingSpec {
	return TrainingSpec{
		Epochs: 100, Optimizer: OptimizerAdam, LearningRate: 0.01, Schedule: ScheduleConstant,
		Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, MeshesPerStep: 1, Shuffle: true,
	}
}

// ParseTraining reads a description from JSON. Unknown fields are refused.
func ParseTraining(text []byte) (TrainingSpec, error) {
	s := DefaultTraining()
	if err := decodeStrictly(text, &s); err != nil {
		return s, invalidArgument("training", "%v", jsonError(err))
	}
	return s, s.Validate()
}

// JSON is the description as ParseTraining reads it.
func (s TrainingSpec) JSON() []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a valid description always marshals
	}
	return text
}

// Validate says which field has a value that no training can have.
func (s TrainingSpec) Validate() error {
	for _, choice := range []error{
		oneOf("optimizer", s.Optimizer, OptimizerAdam, OptimizerAdamW),
		oneOf("schedule", s.Schedule, ScheduleConstant, ScheduleCosine, ScheduleOneCycle),
	} {
		if choice != nil {
			return invalidArgument("training", "%v", choice)
		}
	}
	for _, n := range []struct {
		field      string
		value      int
		least, top int
	}{
		{"epochs", s.Epochs, 1, mostEpochs}, {"warm_up", s.WarmUp, 0, 1e9}, {"meshes_per_step", s.MeshesPerStep, 1, 1e6}, {"patience", s.Patience, 0, 1e6},
	} {
		if n.value < n.least || n.value > n.top {
			return invalidArgument("training", "%s: %d is out of range [%d, %d]", n.field, n.value, n.least, n.top)
		}
	}
	if s.WarmUp > 0 && s.Schedule == ScheduleOneCycle {
		return invalidArgument("training", "warm_up: the schedule one_cycle has its own")
	}
	return s.checkReals()
}

func (s TrainingSpec) checkReals() error {
	dropout := 0.0
	if s.Dropout != nil {
		dropout = *s.Dropout
	}
	for _, x := range []struct {
		field       string
		value       float64
		least, most float64
		open        bool // most itself is not allowed
	}{
		{"learning_rate", s.LearningRate, 0, 1e6, false}, {"beta1", s.Beta1, 0, 1, true}, {"beta2", s.Beta2, 0, 1, true},
		{"epsilon", s.Epsilon, leastEpsilon, 1, false}, {"weight_decay", s.WeightDecay, 0, 1e6, false}, {"clip_norm", s.ClipNorm, 0, math.MaxFloat64, false},
		{"dropout", dropout, 0, 1, true}, {"augment.translation", s.Augment.Translation, 0, 1e3, false}, {"augment.scale", s.Augment.Scale, 0, 1e3, false},
		{"augment.stretch", s.Augment.Stretch, 0, 1e3, false}, {"augment.warp", s.Augment.Warp, 0, 1, false}, {"augment.noise", s.Augment.Noise, 0, 1e3, false},
	} {
		if !(x.value >= x.least && x.value <= x.most) || x.open && x.value == x.most {
			return invalidArgument("training", "%s: %g is not between %g and %g", x.field, x.value, x.least, x.most)
		}
	}
	if s.Optimizer == OptimizerAdamW && s.LearningRate*s.WeightDecay > 1 {
		return invalidArgument("training", "weight_decay: %g times the learning rate %g is more than 1", s.WeightDecay, s.LearningRate)
	}
	for i, w := range s.ClassWeights {
		if !(w >= 0 && w <= math.MaxFloat32) {
			return invalidArgument("training", "class_weights: that of class %d is %g", i, w)
		}
	}
	if len(s.Frozen) > mostPatterns {
		return invalidArgument("training", "frozen: %d patterns are more than %d", len(s.Frozen), mostPatterns)
	}
	for _, pattern := range s.Frozen {
		if _, err := path.Match(pattern, ""); err != nil {
			return invalidArgument("training", "frozen: %q is not a pattern", pattern)
		}
	}
	return nil
}

// rate is the learning rate of step t of total, both from 1 on.
func (s TrainingSpec) rate(t, total int64) float64 {
	if s.Schedule == ScheduleOneCycle {
		return s.oneCycle(t, total)
	}
	rate := s.LearningRate
	if s.Schedule == ScheduleCosine {
		rate = cosine(rate, 0, float64(t-1)/float64(total))
	}
	if t <= int64(s.WarmUp) {
		rate *= float64(t) / float64(s.WarmUp)
	}
	return rate
}

func (s TrainingSpec) oneCycle(t, total int64) float64 {
	const rising, start, end = 0.3, 1.0 / 25, 1e-4
	peak := max(1, math.Round(rising*float64(total)))
	at := float64(t)
	if at <= peak {
		return cosine(s.LearningRate*start, s.LearningRate, at/peak)
	}
	return cosine(s.LearningRate, s.LearningRate*start*end, (at-peak)/(float64(total)-peak))
}

// cosine goes from one value to another as x goes from 0 to 1.
func cosine(from, to, x float64) float64 {
	return to + (from-to)*(1+math.Cos(math.Pi*x))/2
}
