package core

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"

	"libeman/geometry"
	"libeman/geometry/parallel"
	"libeman/simd"
)

// Example is a mesh to learn from or to validate with.
type Example[T simd.Float] struct {
	// Name tells the mesh in errors.
	Name string
	// Load returns what the network sees of the mesh, moved as said, and what
	// gives its memory back.
	Load   func(move *Motion, control *parallel.Control) (in *Input[T], free func(), err error)
	Labels []int32 // see Target
}

// Motion is a similarity x ↦ Scale·Rotation·x + Translation, Translation in
// units of the mesh's diameter, behind a change of shape. nil is none.
type Motion struct {
	Rotation    [9]float64 // row by row
	Translation [3]float64
	Scale       float64
	Deformation *geometry.Deformation // nil: the shape stays
	Sampling    uint64                // the seed of NewSurfaceInput
}

// Trainer teaches a network. It is not safe for concurrent use.
type Trainer[T simd.Float] struct {
	runner   *Runner[T]
	spec     TrainingSpec
	model    *Model[T]
	gradient *gradient[T]
	frozen   []bool
	moments  [2][][]T // of each parameter
	space    *gradientWorkspace[T]

	training, validation []example[T]
	sums                 [2]uint64 // over the labels of both

	state   TrainingState
	record  StepRecord // of the last step
	best    [][]T      // the parameters of the best validation; nil before the first
	resumed string     // the examples that a resumed training had, see examples
}

// example is an Example with what its labels come to.
type example[T simd.Float] struct {
	Example[T]
	target Target
	weight float64 // of all labels
}

// TrainingState is how far a training is.
type TrainingState struct {
	Step     int64         `json:"step"`     // steps made
	Epoch    int           `json:"epoch"`    // epochs done
	Position int           `json:"position"` // meshes done in the epoch
	Running  EpochSums     `json:"running"`  // of the epoch
	History  []EpochRecord `json:"history"`  // of the epochs done
	Best     int           `json:"best"`     // the epoch of the best validation; -1 before the first
}

// EpochSums are what an epoch's record is made of.
type EpochSums struct {
	Loss   float64 `json:"loss"`   // Σ weight·loss over the labels
	Weight float64 `json:"weight"` // Σ weight
	Hits   int64   `json:"hits"`   // labels that had the highest probability
	Labels int64   `json:"labels"` // with a weight
}

func (s *EpochSums) add(o EpochSums) {
	s.Loss += o.Loss
	s.Weight += o.Weight
	s.Hits += o.Hits
	s.Labels += o.Labels
}

// mean is the mean loss, and the share of hits.
func (s EpochSums) mean() (loss, accuracy float64) {
	return s.Loss / s.Weight, float64(s.Hits) / float64(s.Labels)
}

// EpochRecord is what an epoch came to. The validation's fields are nil without
// one.
type EpochRecord struct {
	Epoch              int      `json:"epoch"` // from 1 on
	Loss               float64  `json:"loss"`
	Accuracy           float64  `json:"accuracy"`
	ValidationLoss     *float64 `json:"validation_loss,omitempty"`
	ValidationAccuracy *float64 `json:"validation_accuracy,omitempty"`
}

// recordFields is the number of an EpochRecord's fields.
const recordFields = 5

// StepRecord is what one step came to.
type StepRecord struct {
	Step, Steps  int64 // made; of the whole training
	Epoch        int   // from 1 on
	Loss         float64
	Accuracy     float64
	GradientNorm float64 // before clipping
	LearningRate float64
	Finished     *EpochRecord // where the step was the epoch's last
}

// NewTrainer returns a training of a model, which itself stays as it is. Its
// memory must be given back with Free.
func NewTrainer[T simd.Float](r *Runner[T], m *Model[T], spec TrainingSpec) (*Trainer[T], error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if n := len(spec.ClassWeights); n > 0 && n != m.spec.Classes {
		return nil, invalidArgument("training", "class_weights: %d weights for %d classes", n, m.spec.Classes)
	}
	if spec.Augment.Resample && m.spec.Surface == nil {
		return nil, invalidArgument("training", "augment.resample: a network on vertices has no samples")
	}
	t := &Trainer[T]{runner: r, spec: spec, state: TrainingState{Best: -1, History: []EpochRecord{}}, space: newGradientWorkspace[T](r.budget, r.pool.Threads())}
	var parameters []Parameter[T]
	for _, p := range m.parameters {
		parameters = append(parameters, Parameter[T]{p.Name, p.Shape, slices.Clone(p.Data)})
		t.frozen = append(t.frozen, matchesAny(spec.Frozen, p.Name))
		for i := range t.moments {
			t.moments[i] = append(t.moments[i], make([]T, len(p.Data)))
		}
	}
	for _, pattern := range spec.Frozen {
		if !slices.ContainsFunc(parameters, func(p Parameter[T]) bool { return matchesAny([]string{pattern}, p.Name) }) {
			return nil, invalidArgument("training", "frozen: %q matches no parameter", pattern)
		}
	}
	t.model = prepare(m.Spec(), parameters)
	t.gradient = newGradient(t.model)
	return t, nil
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		found, _ := path.Match(pattern, name) // the patterns were checked
		return found
	})
}

// TrainerMemoryBytes is about how much of Go's memory a training of a network
// takes: parameters, gradients, both moments, the best parameters and the
// matrices of the layers and of their transposes.
func TrainerMemoryBytes(s Spec) int64 { return 4 * s.MemoryBytes() }

// Free gives the trainer's memory back.
func (t *Trainer[T]) Free() { t.space.free() }

// Spec is the description of the training.
func (t *Trainer[T]) Spec() TrainingSpec { return t.spec }

// State is how far the training is; read it only.
func (t *Trainer[T]) State() *TrainingState { return &t.state }

// Add adds an example to the training, or to the validation, before the first
// step. Examples come in the order in which they were added, also after a
// resumption. One without any label that counts is left out.
func (t *Trainer[T]) Add(e Example[T], validate bool) error {
	if t.state.Step > 0 && t.resumed == "" {
		return invalidArgument("examples", "the training has begun")
	}
	x := example[T]{Example: e, target: Target{Labels: e.Labels}}
	if len(t.spec.ClassWeights) > 0 {
		x.target.ClassWeights = t.spec.ClassWeights
	}
	if err := x.target.check(RowsOf(t.model.spec, len(e.Labels)), t.model.spec.Classes); err != nil {
		return Named(e.Name, err)
	}
	if x.weight = x.target.total(); x.weight == 0 {
		return nil
	}
	list, sum := &t.training, &t.sums[0]
	if validate {
		list, sum = &t.validation, &t.sums[1]
	}
	*list, *sum = append(*list, x), sumLabels(*sum, e.Labels)
	return nil
}

// Named says which mesh an error is about.
func Named(name string, err error) error {
	if name == "" {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// Model is a copy of the network as it is now.
func (t *Trainer[T]) Model() *Model[T] { return t.with(nil) }

// BestModel is the network of the best validation, or as it is now without
// one: that with the highest accuracy, of equal ones that with the lowest loss.
func (t *Trainer[T]) BestModel() *Model[T] { return t.with(t.best) }

func (t *Trainer[T]) with(values [][]T) *Model[T] {
	var parameters []Parameter[T]
	for i, p := range t.model.parameters {
		data := p.Data
		if values != nil {
			data = values[i]
		}
		parameters = append(parameters, Parameter[T]{p.Name, p.Shape, slices.Clone(data)})
	}
	return prepare(t.model.Spec(), parameters)
}

// Done says whether the training is at its end: all epochs are done, or the
// patience.
func (t *Trainer[T]) Done() bool {
	waited := t.state.Epoch - 1 - t.state.Best
	return t.state.Epoch >= t.spec.Epochs || t.spec.Patience > 0 && len(t.validation) > 0 && t.state.Best >= 0 && waited >= t.spec.Patience
}

// stepsAnEpoch is the number of steps.
func (t *Trainer[T]) stepsAnEpoch() int64 {
	return int64((len(t.training) + t.spec.MeshesPerStep - 1) / t.spec.MeshesPerStep)
}

// Network is the description of the network.
func (t *Trainer[T]) Network() Spec { return t.model.Spec() }

// Progress is which part of what a run had to do at step first is done, and
// will be after the next step.
func (t *Trainer[T]) Progress(first int64) (done, next float64) {
	total := int64(t.spec.Epochs)*t.stepsAnEpoch() - first
	if total == 0 { // all but the last validation
		return 0, 1
	}
	at := t.state.Step - first
	done, next = float64(at)/float64(total), float64(at+1)/float64(total)
	if t.state.Position == len(t.training) { // a validation that failed before
		next = done
	}
	return done, next
}

// Run trains until the end, calling step, which may be nil, after every step;
// an error of its ends the training. Whatever ends it, the training can go on
// from the last whole step. The control's progress is that of the steps.
func (t *Trainer[T]) Run(control *parallel.Control, step func(StepRecord) error) error {
	if err := t.check(); err != nil {
		return err
	}
	for first := t.state.Step; !t.Done(); {
		done, next := t.Progress(first)
		record, err := t.Step(control.Stage(done, next))
		if err != nil {
			return err
		}
		if step != nil {
			if err := step(record); err != nil {
				return err
			}
		}
	}
	return nil
}

// check refuses a training that has nothing to learn from, or not what it began
// with.
func (t *Trainer[T]) check() error {
	if len(t.training) == 0 {
		return invalidArgument("labels", "none of the meshes to train with has a label that counts")
	}
	if t.resumed == "" {
		return nil
	}
	perStep, position := t.spec.MeshesPerStep, t.state.Position
	whole := position == len(t.training) || position < len(t.training) && position%perStep == 0
	steps := int64(t.state.Epoch)*t.stepsAnEpoch() + int64((position+perStep-1)/perStep)
	if t.resumed != t.examples() || !whole || t.state.Step != steps {
		return invalidArgument("examples", "they are not those that the training began with, or in another order")
	}
	t.resumed = ""
	return nil
}

// Step makes one step and, after the last of an epoch, validates. An error
// leaves the training as it was, or, where only the validation failed, before
// that.
func (t *Trainer[T]) Step(control *parallel.Control) (record StepRecord, err error) {
	if t.Done() {
		return record, invalidArgument("trainer", "the training is at its end")
	}
	if err := t.check(); err != nil {
		return record, err
	}
	share := 1.0
	if t.state.Position+t.spec.MeshesPerStep >= len(t.training) && len(t.validation) > 0 {
		share = 0.5
	}
	if t.state.Position < len(t.training) {
		if err := t.learn(control.Stage(0, share)); err != nil {
			return record, err
		}
	}
	record = t.record
	if t.state.Position == len(t.training) {
		record.Finished, err = t.finishEpoch(control.Stage(share, 1))
	}
	return record, err
}

// learn makes one step.
func (t *Trainer[T]) learn(control *parallel.Control) error {
	begin := t.state.Position
	end := min(begin+t.spec.MeshesPerStep, len(t.training))
	meshes := t.order()[begin:end]
	total := 0.0
	for _, i := range meshes {
		total += t.training[i].weight
	}
	t.gradient.clear()
	var sums EpochSums
	for j, i := range meshes {
		stage := control.Stage(float64(j)/float64(len(meshes)), float64(j+1)/float64(len(meshes)))
		of, err := t.learnFrom(i, total, stage)
		if err != nil {
			return Named(t.training[i].Name, t.diverged(err))
		}
		sums.add(of)
	}
	record := StepRecord{Step: t.state.Step + 1, Steps: int64(t.spec.Epochs) * t.stepsAnEpoch(), Epoch: t.state.Epoch + 1}
	record.Loss, record.Accuracy = sums.mean()
	record.LearningRate = t.spec.rate(record.Step, record.Steps)
	var err error
	if record.GradientNorm, err = t.update(record.Step, record.LearningRate); err != nil {
		return err
	}
	t.record, t.state.Step, t.state.Position = record, record.Step, end
	t.state.Running.add(sums)
	return nil
}

// diverged says of features that overflow what they mean in a training.
func (t *Trainer[T]) diverged(err error) error {
	if errors.Is(err, errOverflow) {
		return fmt.Errorf("%w: step %d: %v", ErrDiverged, t.state.Step+1, err)
	}
	return err
}

// learnFrom adds the gradient of one mesh, whose labels are a part of total.
func (t *Trainer[T]) learnFrom(i int, total float64, control *parallel.Control) (sums EpochSums, err error) {
	e := &t.training[i]
	in, free, err := e.Load(t.motion(i), control.Stage(0, 0.1))
	if err != nil {
		return sums, err
	}
	defer free()
	rate := t.model.spec.Dropout
	if t.spec.Dropout != nil {
		rate = *t.spec.Dropout
	}
	seed := newStream(t.spec.Seed, "dropout").bits(int(t.state.Step)) + uint64(i)
	loss, hits, err := t.runner.backward(t.space, t.gradient, in, &e.target, 1/total, rate, seed, control.Stage(0.1, 1))
	if err == nil && !isFinite(loss) {
		err = fmt.Errorf("%w: step %d: the loss is %g", ErrDiverged, t.state.Step+1, loss)
	}
	return EpochSums{Loss: loss * total, Weight: e.weight, Hits: int64(hits), Labels: e.target.counted()}, err
}

// order is the order of the meshes in the epoch.
func (t *Trainer[T]) order() []int {
	order := make([]int, len(t.training))
	s := newStream(t.spec.Seed, fmt.Sprintf("epoch %d", t.state.Epoch))
	for i := range order {
		order[i] = i
		if t.spec.Shuffle { // Fisher and Yates, from the inside
			j := min(int(s.uniform(i)*float64(i+1)), i)
			order[i], order[j] = order[j], i
		}
	}
	return order
}

// motion draws how mesh i is moved before the step.
func (t *Trainer[T]) motion(i int) *Motion {
	a := t.spec.Augment
	if !a.any() {
		return nil
	}
	s := newStream(t.spec.Seed, fmt.Sprintf("motion %d %d", t.state.Epoch, i))
	m := &Motion{Rotation: [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1}, Scale: math.Pow(1+a.Scale, 2*s.uniform(0)-1)}
	for j := range m.Translation {
		m.Translation[j] = a.Translation * (2*s.uniform(1+j) - 1)
	}
	if a.Rotation {
		m.Rotation = geometry.RandomRotation(s.bits(10))
	}
	if a.deforms() {
		m.Deformation = &geometry.Deformation{Linear: randomStretch(s, 11, a.Stretch), Warp: a.Warp, Noise: a.Noise, Seed: s.bits(15)}
	}
	if a.Resample {
		m.Sampling = s.bits(16) | 1
	}
	return m
}

// randomStretch takes four numbers of a stream for a symmetric matrix whose
// eigenvalues, along any three directions, are between 1/(1+most) and 1+most.
func randomStretch(s stream, first int, most float64) (stretch [9]float64) {
	r := geometry.RandomRotation(s.bits(first))
	for axis := range 3 {
		factor := math.Pow(1+most, 2*s.uniform(first+1+axis)-1)
		for i := range 3 {
			for j := range 3 {
				stretch[3*i+j] += factor * r[3*axis+i] * r[3*axis+j]
			}
		}
	}
	return stretch
}

// updateSize is the number of parameters that one thread changes at a time.
const updateSize = 1 << 15

// largestGradient is the norm of the largest gradient whose squares, and with
// them the second moments, are numbers in float32.
const largestGradient = 1e18

// update changes the parameters by the gradient and returns its norm. A
// gradient that is too large, or not finite, changes nothing.
func (t *Trainer[T]) update(step int64, rate float64) (norm float64, err error) {
	gradients := t.gradient.parameters()
	if norm, err = t.norm(gradients); err != nil {
		return norm, err
	}
	s := simd.AdamStep{
		Beta1: t.spec.Beta1, Beta2: t.spec.Beta2, Epsilon: t.spec.Epsilon, Decay: 1, Scale: 1,
		Rate: rate / (1 - math.Pow(t.spec.Beta1, float64(step))), Root: math.Sqrt(1 - math.Pow(t.spec.Beta2, float64(step))),
	}
	if t.spec.Optimizer == OptimizerAdamW {
		s.Decay = 1 - rate*t.spec.WeightDecay
	} else {
		s.Penalty = t.spec.WeightDecay
	}
	if clip := t.spec.ClipNorm; clip > 0 && norm > clip {
		s.Scale = clip / norm
	}
	if !(s.Scale*norm <= largestGradient) {
		return norm, fmt.Errorf("%w: step %d: the norm of the gradient is %g", ErrDiverged, step, norm)
	}
	err = t.eachPart(gradients, func(_, i, begin, end int) {
		t.runner.kernels.Adam(t.model.parameters[i].Data[begin:end], t.moments[0][i][begin:end], t.moments[1][i][begin:end], gradients[i][begin:end], &s)
	})
	t.model.refresh()
	t.gradient.refresh()
	return norm, err
}

// eachPart calls body for consecutive parts of the tensors that are not frozen.
func (t *Trainer[T]) eachPart(gradients [][]T, body func(part, i, begin, end int)) error {
	type piece struct{ tensor, begin, end int }
	var pieces []piece
	for i, g := range gradients {
		for begin := 0; begin < len(g) && !t.frozen[i]; begin += updateSize {
			pieces = append(pieces, piece{i, begin, min(begin+updateSize, len(g))})
		}
	}
	return t.runner.pool.For(nil, len(pieces), func(_, part int) error {
		p := pieces[part]
		body(part, p.tensor, p.begin, p.end)
		return nil
	})
}

// norm is the length of the gradient of what is not frozen, added up in an
// order that does not depend on the threads.
func (t *Trainer[T]) norm(gradients [][]T) (float64, error) {
	parts := 0
	for _, g := range gradients {
		parts += len(g)/updateSize + 1
	}
	squares := make([]float64, parts)
	err := t.eachPart(gradients, func(part, i, begin, end int) {
		for _, x := range gradients[i][begin:end] {
			squares[part] += float64(x) * float64(x)
		}
	})
	total := 0.0
	for _, square := range squares {
		total += square
	}
	return math.Sqrt(total), err
}

// finishEpoch validates and begins the next epoch.
func (t *Trainer[T]) finishEpoch(control *parallel.Control) (*EpochRecord, error) {
	record := EpochRecord{Epoch: t.state.Epoch + 1}
	record.Loss, record.Accuracy = t.state.Running.mean()
	var sums EpochSums
	for i := range t.validation {
		stage := control.Stage(float64(i)/float64(len(t.validation)), float64(i+1)/float64(len(t.validation)))
		of, err := t.validate(&t.validation[i], stage)
		if err != nil {
			return nil, Named(t.validation[i].Name, t.diverged(err))
		}
		sums.add(of)
	}
	if len(t.validation) > 0 {
		loss, accuracy := sums.mean()
		record.ValidationLoss, record.ValidationAccuracy = &loss, &accuracy
		if t.isBest(&record) {
			t.state.Best, t.best = t.state.Epoch, nil
			for _, p := range t.model.parameters {
				t.best = append(t.best, slices.Clone(p.Data))
			}
		}
	}
	t.state.History = append(t.state.History, record)
	t.state.Epoch, t.state.Position, t.state.Running = t.state.Epoch+1, 0, EpochSums{}
	return &record, nil
}

func (t *Trainer[T]) isBest(record *EpochRecord) bool {
	if t.state.Best < 0 {
		return true
	}
	best := &t.state.History[t.state.Best]
	if *record.ValidationAccuracy != *best.ValidationAccuracy {
		return *record.ValidationAccuracy > *best.ValidationAccuracy
	}
	return *record.ValidationLoss < *best.ValidationLoss
}

func (t *Trainer[T]) validate(e *example[T], control *parallel.Control) (sums EpochSums, err error) {
	in, free, err := e.Load(nil, control.Stage(0, 0.1))
	if err != nil {
		return sums, err
	}
	defer free()
	return t.runner.Evaluate(t.model, in, &e.target, control.Stage(0.1, 1), nil)
}
