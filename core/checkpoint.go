package core

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"libeman/simd"
)

// A checkpoint is a safetensors file like a model's, with the state of a
// training: the parameters by name, the moments of Adam and the parameters of
// the best validation under prefixes, and the metadata
//
//	format          "eman-training"
//	format_version  "1"
//	model, labels   as in a model file
//	training        the description, JSON (TrainingSpec)
//	state           how far it is, JSON (TrainingState)
//	examples        what it learns from and validates with: sums over the labels, hexadecimal
//
// Everything else that a training depends on is a function of these: a resumed
// training goes on bit for bit.
const (
	checkpointFormat = "eman-training"
	firstPrefix      = "adam.first."
	secondPrefix     = "adam.second."
	bestPrefix       = "best."
)

// Encode returns the state of the training as a file's content. Numbers are
// stored as float32.
func (t *Trainer[T]) Encode() []byte {
	file := t.model.tensorFile(checkpointFormat)
	state, err := json.Marshal(t.state)
	if err != nil {
		panic(err) // its numbers are finite
	}
	file.metadata["training"], file.metadata["state"], file.metadata["examples"] = string(t.spec.JSON()), string(state), t.examples()
	for i, p := range t.model.parameters {
		file.add(firstPrefix+p.Name, p.Shape, narrowed(t.moments[0][i]))
		file.add(secondPrefix+p.Name, p.Shape, narrowed(t.moments[1][i]))
		if t.best != nil {
			file.add(bestPrefix+p.Name, p.Shape, narrowed(t.best[i]))
		}
	}
	return file.encode()
}

func narrowed[T simd.Float](values []T) []float32 {
	narrow := make([]float32, len(values))
	for i, x := range values {
		narrow[i] = float32(x)
	}
	return narrow
}

func (f *tensorFile) add(name string, shape []int, data []float32) {
	f.tensors = append(f.tensors, Parameter[float32]{name, shape, data})
}

// examples tells what the training learns from and validates with.
func (t *Trainer[T]) examples() string { return fmt.Sprintf("%016x%016x", t.sums[0], t.sums[1]) }

// sumLabels is a sum over the labels of an example, and that of those before it.
func sumLabels(before uint64, labels []int32) uint64 {
	sum := fnv.New64a()
	word := binary.LittleEndian.AppendUint64(nil, before)
	sum.Write(word)
	for _, label := range labels {
		binary.LittleEndian.PutUint32(word, uint32(label))
		sum.Write(word[:4])
	}
	return sum.Sum64()
}

// Save writes the state of the training to a file, as Model.Save does.
func (t *Trainer[T]) Save(path string) error { return saveFile(path, t.Encode()) }

// ResumeTrainer reads a training from a file's content. The same examples must
// be added again, in the same order, before it goes on.
func ResumeTrainer[T simd.Float](r *Runner[T], content []byte, admit Admit) (*Trainer[T], error) {
	file, err := decodeTensors(content)
	if err != nil {
		return nil, err
	}
	spec, err := file.spec(checkpointFormat)
	if err != nil {
		return nil, err
	}
	text := file.metadata["training"]
	if err := checkItems("training", text, mostPatterns+spec.Classes); err != nil {
		return nil, err
	}
	training, err := ParseTraining([]byte(text))
	if err != nil {
		return nil, invalidModel("training", "%v", err)
	}
	if err := admit.check(TrainerMemoryBytes(spec)); err != nil {
		return nil, err
	}
	groups := map[string][]Parameter[T]{}
	for _, tensor := range file.tensors {
		prefix := ""
		for _, p := range []string{firstPrefix, secondPrefix, bestPrefix} {
			if strings.HasPrefix(tensor.Name, p) {
				prefix = p
			}
		}
		p := Parameter[T]{strings.TrimPrefix(tensor.Name, prefix), tensor.Shape, make([]T, len(tensor.Data))}
		for i, x := range tensor.Data {
			p.Data[i] = T(x)
		}
		groups[prefix] = append(groups[prefix], p)
	}
	m, err := NewModelFrom(spec, groups[""])
	if err != nil {
		return nil, err
	}
	t, err := NewTrainer(r, m, training)
	if err != nil {
		return nil, invalidModel("training", "%v", err)
	}
	if err := t.restore(file, groups); err != nil {
		return nil, err
	}
	return t, nil
}

// LoadTrainer is ResumeTrainer for a file.
func LoadTrainer[T simd.Float](r *Runner[T], path string, admit Admit) (*Trainer[T], error) {
	content, err := readRegular(path, admit)
	if err != nil {
		return nil, err
	}
	t, err := ResumeTrainer(r, content, admit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// restore fills in what the file has beside the model.
func (t *Trainer[T]) restore(file *tensorFile, groups map[string][]Parameter[T]) error {
	read := func(prefix string) ([][]T, error) {
		parameters, err := parametersOf(t.model.spec, groups[prefix])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.TrimSuffix(prefix, "."), err)
		}
		var values [][]T
		for _, p := range parameters {
			values = append(values, p.Data)
		}
		return values, nil
	}
	var err error
	if t.moments[0], err = read(firstPrefix); err != nil {
		return err
	}
	if t.moments[1], err = read(secondPrefix); err != nil {
		return err
	}
	for i, second := range t.moments[1] {
		if at := slices.IndexFunc(second, func(x T) bool { return x < 0 }); at >= 0 {
			return invalidModel(secondPrefix+t.model.parameters[i].Name, "number %d is %g", at, second[at])
		}
	}
	if len(groups[bestPrefix]) > 0 {
		if t.best, err = read(bestPrefix); err != nil {
			return err
		}
	}
	if t.resumed = file.metadata["examples"]; t.resumed == "" {
		return invalidModel("examples", "they are missing")
	}
	state := file.metadata["state"]
	if err := checkItems("state", state, recordFields*t.spec.Epochs); err != nil {
		return err
	}
	if err := decodeStrictly([]byte(state), &t.state); err != nil {
		return invalidModel("state", "%v", jsonError(err))
	}
	return t.state.check(&t.spec, t.best != nil)
}

// checkItems refuses JSON with many more items in lists than it can have, before
// memory is taken for them.
func checkItems(name, text string, most int) error {
	const others = 64 // members of objects
	if n := strings.Count(text, ","); n > most+others {
		return invalidModel(name, "%d items, at most %d are possible", n, most+others)
	}
	return nil
}

// check says what cannot be in a state.
func (s *TrainingState) check(spec *TrainingSpec, best bool) error {
	switch {
	case s.Epoch < 0 || s.Epoch > spec.Epochs || s.Epoch != len(s.History):
		return invalidModel("state", "epoch: %d of %d, with a history of %d", s.Epoch, spec.Epochs, len(s.History))
	case s.Step < 0 || s.Position < 0:
		return invalidModel("state", "step: %d, position: %d", s.Step, s.Position)
	case !s.Running.possible(s.Position > 0):
		return invalidModel("state", "running: %+v at position %d", s.Running, s.Position)
	case s.Best < -1 || s.Best >= len(s.History) || (s.Best >= 0) != best:
		return invalidModel("state", "best: epoch %d of %d", s.Best, len(s.History))
	case s.Best >= 0 && (s.History[s.Best].ValidationAccuracy == nil || s.History[s.Best].ValidationLoss == nil):
		return invalidModel("state", "best: epoch %d has no validation", s.Best)
	}
	return nil
}

// possible says whether these can be the sums over some labels, or over none.
func (s EpochSums) possible(some bool) bool {
	if !some {
		return s == EpochSums{}
	}
	loss, _ := s.mean()
	return s.Weight > 0 && isFinite(loss) && s.Labels > 0 && s.Hits >= 0 && s.Hits <= s.Labels
}
