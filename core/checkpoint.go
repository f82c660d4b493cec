package core

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
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
//	examples        what it learns from: a sum over all labels, hexadecimal
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

// examples is a sum over the labels of all examples.
func (t *Trainer[T]) examples() string {
	sum := fnv.New64a()
	for i, list := range [][]Example[T]{t.training, t.validation} {
		for _, e := range list {
			fmt.Fprint(sum, i, len(e.Labels), e.Labels)
		}
	}
	return fmt.Sprintf("%016x", sum.Sum64())
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
	training, err := ParseTraining([]byte(file.metadata["training"]))
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
	return t, t.restore(file, groups)
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
	if len(groups[bestPrefix]) > 0 {
		if t.best, err = read(bestPrefix); err != nil {
			return err
		}
	}
	t.resumed = file.metadata["examples"]
	if err := decodeStrictly([]byte(file.metadata["state"]), &t.state); err != nil {
		return invalidModel("state", "%v", jsonError(err))
	}
	return t.state.check(&t.spec, t.best != nil)
}

// check says what cannot be in a state.
func (s *TrainingState) check(spec *TrainingSpec, best bool) error {
	switch {
	case s.Epoch < 0 || s.Epoch > spec.Epochs || s.Epoch != len(s.History):
		return invalidModel("state", "epoch: %d of %d, with a history of %d", s.Epoch, spec.Epochs, len(s.History))
	case s.Step < 0 || s.Position < 0:
		return invalidModel("state", "step: %d, position: %d", s.Step, s.Position)
	case s.Best < -1 || s.Best >= len(s.History) || (s.Best >= 0) != best:
		return invalidModel("state", "best: epoch %d of %d", s.Best, len(s.History))
	case s.Best >= 0 && (s.History[s.Best].ValidationAccuracy == nil || s.History[s.Best].ValidationLoss == nil):
		return invalidModel("state", "best: epoch %d has no validation", s.Best)
	}
	return nil
}
