package core

import (
	"bytes"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"libeman/geometry/parallel"
)

// taught is a trainer with three meshes to learn from, one of them partly
// labelled, and one to validate with.
func taught(t testing.TB, threads int, change func(*TrainingSpec)) *Trainer[float32] {
	t.Helper()
	spec := DefaultTraining()
	spec.Epochs, spec.MeshesPerStep, spec.Seed = 4, 2, 5
	if change != nil {
		change(&spec)
	}
	trainer := newTestTrainer(t, testModel[float32](t, nil), spec, threads)
	addExamples(t, trainer)
	return trainer
}

func addExamples(t testing.TB, trainer *Trainer[float32]) {
	t.Helper()
	for i, vertices := range []int{120, 60, 90, 70} {
		in := testInput[float32](t, vertices)
		labels := make([]int32, vertices)
		for p := range labels {
			if labels[p] = int32(p % 21); i == 1 && p > 10 {
				labels[p] = -1
			}
		}
		if err := trainer.Add(exampleOf("mesh", in, labels), i == 3); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAResumedTrainingHasTheSameBits(t *testing.T) {
	for _, change := range []func(*TrainingSpec){
		nil,
		func(s *TrainingSpec) { s.MeshesPerStep, s.Schedule, s.ClipNorm = 1, ScheduleOneCycle, 0.5 },
		func(s *TrainingSpec) {
			s.Optimizer, s.WeightDecay, s.Schedule, s.WarmUp = OptimizerAdamW, 0.1, ScheduleCosine, 3
		},
	} {
		whole := taught(t, 1, change)
		if err := whole.Run(nil, nil); err != nil {
			t.Fatal(err)
		}
		for interruption := range 3 {
			part := taught(t, 2, change)
			for range 2*interruption + 1 {
				if _, err := part.Step(nil); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(t.TempDir(), "state")
			if err := part.Save(path); err != nil {
				t.Fatal(err)
			}
			content, err := readRegular(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			resumed, err := ResumeTrainer(newTestRunner[float32](2), content, nil)
			if err != nil {
				t.Fatal(err)
			}
			addExamples(t, resumed)
			if err := resumed.Run(nil, nil); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(whole.Encode(), resumed.Encode()) {
				t.Errorf("resumed after %d steps: another end", 2*interruption+1)
			}
			if !bytes.Equal(whole.BestModel().Encode(), resumed.BestModel().Encode()) {
				t.Errorf("resumed after %d steps: another best model", 2*interruption+1)
			}
			resumed.Free()
		}
	}
}

func TestAResumedTrainingWantsItsExamples(t *testing.T) {
	trainer := taught(t, 1, nil)
	if _, err := trainer.Step(nil); err != nil {
		t.Fatal(err)
	}
	resumed, err := ResumeTrainer(newTestRunner[float32](1), trainer.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := resumed.Add(exampleOf("other", testInput[float32](t, 30), make([]int32, 30)), false); err != nil {
		t.Fatal(err)
	}
	if err := resumed.Run(nil, nil); !errors.Is(err, ErrInvalidArgument) {
		t.Errorf("other examples: %v", err)
	}
}

func TestBadCheckpointsAreRefused(t *testing.T) {
	trainer := taught(t, 1, nil)
	for range 3 {
		if _, err := trainer.Step(nil); err != nil {
			t.Fatal(err)
		}
	}
	good := trainer.Encode()
	runner := newTestRunner[float32](1)
	for _, bad := range [][]byte{
		nil, good[:len(good)/2], trainer.Model().Encode(),
		bytes.Replace(good, []byte(`\"step\":3`), []byte(`\"step\":x`), 1),
		bytes.Replace(good, []byte(`\"epoch\":1`), []byte(`\"epoch\":3`), 1),
		bytes.Replace(good, []byte(`adam.first.dense1.bias`), []byte(`adam.first.dense1.bits`), 1),
		bytes.Replace(good, []byte(`\"beta1\":0.9`), []byte(`\"beta1\":2.9`), 1),
		bytes.Replace(good, []byte(`\"position\":2`), []byte(`\"position\":0`), 1),
		bytes.Replace(good, []byte(`"examples"`), []byte(`"selpmaxe"`), 1),
		checkpointWith(t, good, "adam.second.dense2.bias", func(p *Parameter[float32]) { p.Data[3] = -1 }),
		checkpointWith(t, good, "", nil, "state", `{"history":[`+strings.Repeat("null,", 1e6)+`null]}`),
		checkpointWith(t, good, "", nil, "training", `{"frozen":[`+strings.Repeat(`"",`, 1e6)+`""]}`),
	} {
		if bytes.Equal(bad, good) {
			t.Fatal("nothing was changed")
		}
		if _, err := ResumeTrainer(runner, bad, nil); !errors.Is(err, ErrInvalidModel) {
			t.Errorf("%v", err)
		}
	}
}

// checkpointWith is a checkpoint with a tensor or a text of its metadata changed.
func checkpointWith(t testing.TB, content []byte, tensor string, change func(*Parameter[float32]), metadata ...string) []byte {
	t.Helper()
	file, err := decodeTensors(content)
	if err != nil {
		t.Fatal(err)
	}
	for i := range file.tensors {
		if file.tensors[i].Name == tensor {
			change(&file.tensors[i])
		}
	}
	if len(metadata) == 2 {
		file.metadata[metadata[0]] = metadata[1]
	}
	return file.encode()
}

// A state that is possible in itself, but not with the examples: the number of
// steps decides the learning rate.
func TestStatesThatDoNotFitTheExamplesAreRefused(t *testing.T) {
	trainer := taught(t, 1, func(s *TrainingSpec) { s.Schedule = ScheduleOneCycle })
	if _, err := trainer.Step(nil); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{{`"step":1`, `"step":9223372036854775807`}, {`"step":1`, `"step":8`}, {`"position":2`, `"position":1`}, {`"position":2`, `"position":77`}} {
		state := strings.Replace(metadataOf(t, trainer.Encode())["state"], change[0], change[1], 1)
		resumed, err := ResumeTrainer(newTestRunner[float32](1), checkpointWith(t, trainer.Encode(), "", nil, "state", state), nil)
		if err != nil {
			t.Fatal(err)
		}
		addExamples(t, resumed)
		if _, err := resumed.Step(nil); !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("%s: %v", change[1], err)
		}
		resumed.Free()
	}
}

func metadataOf(t testing.TB, content []byte) map[string]string {
	t.Helper()
	file, err := decodeTensors(content)
	if err != nil {
		t.Fatal(err)
	}
	return file.metadata
}

// Whatever a checkpoint says, it is refused, or it can be saved again, and goes
// on or says why not.
func FuzzResumeTrainer(f *testing.F) {
	trainer := taught(f, 1, func(s *TrainingSpec) { s.Epochs = 3 })
	for range 3 {
		metadata := metadataOf(f, trainer.Encode())
		f.Add(metadata["training"], metadata["state"], metadata["examples"])
		if _, err := trainer.Step(nil); err != nil {
			f.Fatal(err)
		}
	}
	file, err := decodeTensors(trainer.Encode())
	if err != nil {
		f.Fatal(err)
	}
	runner := newTestRunner[float32](1)
	f.Fuzz(func(t *testing.T, training, state, examples string) {
		file.metadata["training"], file.metadata["state"], file.metadata["examples"] = training, state, examples
		resumed, err := ResumeTrainer(runner, file.encode(), nil)
		if err != nil {
			if !errors.Is(err, ErrInvalidModel) {
				t.Errorf("%v", err)
			}
			return
		}
		defer resumed.Free()
		addExamples(t, resumed)
		for range 2 {
			record, err := resumed.Step(nil)
			if err == nil && !(isFinite(record.LearningRate) && isFinite(record.Loss)) {
				t.Errorf("%+v", record)
			}
			resumed.Encode() // which panics where a number is not finite
		}
	})
}

func TestMeshesWithoutLabelsTakeNoStep(t *testing.T) {
	with, without := taught(t, 1, nil), taught(t, 1, nil)
	blank := exampleOf("blank", testInput[float32](t, 4), []int32{-1, -1, -1, -1})
	for _, validate := range []bool{false, true} {
		if err := with.Add(blank, validate); err != nil {
			t.Fatal(err)
		}
	}
	for _, trainer := range []*Trainer[float32]{with, without} {
		if err := trainer.Run(nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(with.Encode(), without.Encode()) {
		t.Error("a mesh without labels changed the training")
	}
}

func TestExamplesAreAddedBeforeTheFirstStep(t *testing.T) {
	trainer := taught(t, 1, nil)
	if _, err := trainer.Step(nil); err != nil {
		t.Fatal(err)
	}
	err := trainer.Add(exampleOf("late", testInput[float32](t, 4), make([]int32, 4)), false)
	if !errors.Is(err, ErrInvalidArgument) {
		t.Errorf("after the first step: %v", err)
	}
}

// The progress of a run that begins with the validation of an earlier one.
func TestProgressAfterAFailedValidation(t *testing.T) {
	for epochs := 1; epochs <= 2; epochs++ {
		trainer := taught(t, 1, func(s *TrainingSpec) { s.Epochs = epochs })
		failValidation(trainer)
		if err := trainer.Run(nil, nil); !errors.Is(err, parallel.ErrCancelled) {
			t.Fatalf("the validation did not fail: %v", err)
		}
		last := 0.0
		control := &parallel.Control{Progress: func(fraction float64) bool {
			if !(fraction >= last && fraction <= 1) {
				t.Errorf("of %d epochs: from %g to %g", epochs, last, fraction)
			}
			last = fraction
			return true
		}}
		if err := trainer.Run(control, nil); err != nil || last != 1 {
			t.Errorf("of %d epochs: %g, %v", epochs, last, err)
		}
	}
}

// failValidation makes the first validation of a training fail.
func failValidation(trainer *Trainer[float32]) {
	load, failed := trainer.validation[0].Load, false
	trainer.validation[0].Load = func(move *Motion, control *parallel.Control) (*Input[float32], func(), error) {
		if !failed {
			failed = true
			return nil, nil, parallel.ErrCancelled
		}
		return load(move, control)
	}
}

// A step is reported in full, also where its validation succeeds only later.
func TestAFailedValidationIsMadeUpFor(t *testing.T) {
	whole := taught(t, 1, nil)
	trainer := taught(t, 1, nil)
	failValidation(trainer)
	failures := 0
	for !whole.Done() {
		want, err := whole.Step(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := trainer.Step(nil)
		if errors.Is(err, parallel.ErrCancelled) {
			failures++
			got, err = trainer.Step(nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		if (got.Finished == nil) != (want.Finished == nil) {
			t.Errorf("%+v, not %+v", got, want)
		}
		got.Finished, want.Finished = nil, nil
		if got != want {
			t.Errorf("%+v, not %+v", got, want)
		}
	}
	if failures != 1 {
		t.Fatalf("%d validations failed, not 1", failures)
	}
	if _, err := trainer.Step(nil); !errors.Is(err, ErrInvalidArgument) {
		t.Errorf("a step after the last: %v", err)
	}
}

func TestFeaturesThatOverflowAreDivergence(t *testing.T) {
	for _, validate := range []bool{false, true} {
		trainer := newTestTrainer(t, testModel[float32](t, nil), DefaultTraining(), 1)
		small, large := testInput[float32](t, 30), testInput[float32](t, 30)
		for i := range large.Features {
			large.Features[i] *= 1e38
		}
		inputs := []*Input[float32]{small, large}
		if !validate {
			inputs[0], inputs[1] = large, small
		}
		for i, in := range inputs {
			if err := trainer.Add(exampleOf("cat", in, make([]int32, 30)), i == 1); err != nil {
				t.Fatal(err)
			}
		}
		_, err := trainer.Step(nil)
		if !errors.Is(err, ErrDiverged) || errors.Is(err, ErrInvalidArgument) || !strings.Contains(err.Error(), "cat") {
			t.Errorf("%v", err)
		}
	}
}

func TestTrainingLowersTheLoss(t *testing.T) { eachSet(t, checkLearning) }

func checkLearning(t *testing.T) {
	trainer := taught(t, 2, func(s *TrainingSpec) { s.Epochs, s.Dropout = 25, new(float64) })
	if err := trainer.Run(nil, nil); err != nil {
		t.Fatal(err)
	}
	history := trainer.State().History
	first, last := history[0], history[len(history)-1]
	if len(history) != 25 || !(last.Loss < first.Loss/2) || !(last.Accuracy > 0.4) {
		t.Errorf("from %+v to %+v in %d epochs", first, last, len(history))
	}
}

func TestADivergedStepChangesNothing(t *testing.T) {
	trainer := taught(t, 1, func(s *TrainingSpec) { s.LearningRate, s.Epochs = 1e6, 50 })
	var before []byte
	for {
		before = trainer.Encode()
		if _, err := trainer.Step(nil); err != nil {
			if !errors.Is(err, ErrDiverged) || errors.Is(err, ErrInvalidArgument) || !strings.Contains(err.Error(), "step") {
				t.Errorf("%v", err)
			}
			break
		}
		if trainer.Done() {
			t.Fatal("a rate of a million did not diverge")
		}
	}
	if !bytes.Equal(trainer.Encode(), before) {
		t.Error("the step that failed changed the state")
	}
}

func TestFrozenParametersStay(t *testing.T) {
	trainer := taught(t, 1, func(s *TrainingSpec) { s.Frozen = []string{"blocks.0.*", "dense1.bias"} })
	before := trainer.Model().Parameters()
	if _, err := trainer.Step(nil); err != nil {
		t.Fatal(err)
	}
	for i, p := range trainer.Model().Parameters() {
		frozen := strings.HasPrefix(p.Name, "blocks.0.") || p.Name == "dense1.bias"
		if same := slices.Equal(p.Data, before[i].Data); same != frozen {
			t.Errorf("%s: unchanged %t, frozen %t", p.Name, same, frozen)
		}
	}
	_, err := NewTrainer(newTestRunner[float32](1), testModel[float32](t, nil), TrainingSpec{
		Epochs: 1, Optimizer: OptimizerAdam, Schedule: ScheduleConstant, MeshesPerStep: 1, Epsilon: 1e-8, Frozen: []string{"blocks.9.*"},
	})
	if !errors.Is(err, ErrInvalidArgument) {
		t.Errorf("a pattern that matches nothing: %v", err)
	}
}

// On vertices, other samples would be a change that changes nothing.
func TestOnlySurfacesAreResampled(t *testing.T) {
	spec := DefaultTraining()
	spec.Augment.Resample = true
	if _, err := NewTrainer(newTestRunner[float32](1), testModel[float32](t, nil), spec); !errors.Is(err, ErrInvalidArgument) {
		t.Errorf("a network on vertices: %v", err)
	}
	if _, err := NewTrainer(newTestRunner[float32](1), surfaceModel[float32](t, KindGEM, 2, nil), spec); err != nil {
		t.Errorf("a network on a surface: %v", err)
	}
}

func TestTrainingStopsWhenPatienceEnds(t *testing.T) {
	trainer := taught(t, 1, func(s *TrainingSpec) { s.Epochs, s.Patience, s.LearningRate = 60, 3, 1e-9 })
	if err := trainer.Run(nil, nil); err != nil {
		t.Fatal(err)
	}
	if s := trainer.State(); s.Epoch-1-s.Best != 3 {
		t.Errorf("%d epochs, the best was %d", s.Epoch, s.Best)
	}
	if trainer.BestModel() == nil {
		t.Error("no best model")
	}
}

func TestACancelledTrainingGoesOn(t *testing.T) {
	whole := taught(t, 1, nil)
	if err := whole.Run(nil, nil); err != nil {
		t.Fatal(err)
	}
	trainer := taught(t, 1, nil)
	calls := 0
	for !trainer.Done() {
		control := &parallel.Control{Progress: func(float64) bool { calls++; return calls%150 != 0 }}
		if err := trainer.Run(control, nil); err != nil && !errors.Is(err, parallel.ErrCancelled) {
			t.Fatal(err)
		}
	}
	if calls < 450 {
		t.Fatalf("only %d calls", calls)
	}
	if !bytes.Equal(trainer.Encode(), whole.Encode()) {
		t.Error("the end depends on the interruptions")
	}
}

func TestSchedules(t *testing.T) {
	spec := DefaultTraining()
	spec.LearningRate = 1
	for _, c := range []struct {
		schedule Schedule
		warmUp   int
		step     int64
		want     float64
	}{
		{ScheduleConstant, 0, 1, 1}, {ScheduleConstant, 0, 100, 1}, {ScheduleConstant, 4, 1, 0.25}, {ScheduleConstant, 4, 5, 1},
		{ScheduleCosine, 0, 1, 1}, {ScheduleCosine, 0, 51, 0.5}, {ScheduleOneCycle, 0, 30, 1}, {ScheduleOneCycle, 0, 100, 1e-4 / 25},
		{ScheduleOneCycle, 0, 15, 0.52}, {ScheduleOneCycle, 0, 65, (1 + 1e-4/25) / 2},
	} {
		spec.Schedule, spec.WarmUp = c.schedule, c.warmUp
		if got := spec.rate(c.step, 100); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s, warm-up %d: step %d has the rate %g, not %g", c.schedule, c.warmUp, c.step, got, c.want)
		}
	}
}

func TestTrainingDescriptions(t *testing.T) {
	given, err := ParseTraining([]byte(`{"epochs": 3, "schedule": "one_cycle", "augment": {"rotation": true}}`))
	if err != nil || given.Epochs != 3 || given.Beta1 != 0.9 || !given.Augment.Rotation {
		t.Errorf("%+v, %v", given, err)
	}
	again, err := ParseTraining(given.JSON())
	if err != nil || !bytes.Equal(again.JSON(), given.JSON()) {
		t.Errorf("%+v, %v", again, err)
	}
	for text, field := range map[string]string{
		`{"epochs": 0}`: "epochs", `{"epoch": 3}`: "epoch", `{"optimizer": "sgd"}`: "optimizer", `{"beta1": 1}`: "beta1",
		`{"learning_rate": -1}`: "learning_rate", `{"dropout": 1}`: "dropout", `{"frozen": ["["]}`: "frozen",
		`{"schedule": "one_cycle", "warm_up": 3}`: "warm_up", `{"class_weights": [-1]}`: "class_weights", `{`: "",
		`{"epsilon": 0}`: "epsilon", `{"epochs": 200000}`: "epochs", `{"optimizer": "adamw", "learning_rate": 1, "weight_decay": 2}`: "weight_decay",
	} {
		if _, err := ParseTraining([]byte(text)); !errors.Is(err, ErrInvalidArgument) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestTrainingWithoutLabelsIsRefused(t *testing.T) {
	trainer := newTestTrainer(t, testModel[float32](t, nil), DefaultTraining(), 1)
	if err := trainer.Run(nil, nil); !errors.Is(err, ErrInvalidArgument) {
		t.Errorf("no mesh: %v", err)
	}
	if err := trainer.Add(exampleOf("blank", testInput[float32](t, 4), []int32{-1, -1, -1, -1}), false); err != nil {
		t.Fatal(err)
	}
	if err := trainer.Run(nil, nil); !errors.Is(err, ErrInvalidArgument) {
		t.Errorf("no label: %v", err)
	}
	err := trainer.Add(exampleOf("cat.ply", testInput[float32](t, 4), []int32{0, 99, 0, 0}), false)
	if !errors.Is(err, ErrInvalidArgument) || !strings.Contains(err.Error(), "cat.ply") {
		t.Errorf("a label out of range: %v", err)
	}
}
