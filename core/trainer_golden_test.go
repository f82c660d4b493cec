package core

import (
	"fmt"
	"math"
	"testing"

	"libeman/geometry/parallel"
	"libeman/simd"
	"libeman/tests/npz"
)

// exampleOf is a mesh that stays in memory and cannot be moved.
func exampleOf[T simd.Float](name string, in *Input[T], labels []int32) Example[T] {
	return Example[T]{Name: name, Labels: labels, Load: func(*Motion, *parallel.Control) (*Input[T], func(), error) {
		return in, func() {}, nil
	}}
}

func newTestTrainer[T simd.Float](t testing.TB, m *Model[T], spec TrainingSpec, threads int) *Trainer[T] {
	t.Helper()
	trainer, err := NewTrainer(newTestRunner[T](threads), m, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(trainer.Free)
	return trainer
}

// Ten steps of full-batch Adam. In float32, where the trace at a rate of 0.01
// is not reproducible, the bound is what the authors' float32 itself misses.
func TestTrainingTraceOfTheAuthorsCode(t *testing.T) { eachSet(t, checkTraces) }

func checkTraces(t *testing.T) {
	for _, name := range []string{"RelTanEMAN", "RelTanGemCNN"} {
		for _, rate := range []float64{0.01, 0.001} {
			checkTrace[float64](t, name, rate, 1e-7, 1e-5)
			checkTrace[float32](t, name, rate, map[float64]float64{0.01: 0.05, 0.001: 1e-3}[rate], math.Inf(1))
		}
	}
}

func checkTrace[T simd.Float](t *testing.T, name string, rate, ofLoss, ofParameters float64) {
	t.Helper()
	file, trace := npz.MustRead(t, "model_"+name+".npz"), npz.MustRead(t, "train_"+name+".npz")
	m, err := FromAuthors(stateOf[T](file), DefaultAuthorsConfig(name))
	if err != nil {
		t.Fatal(err)
	}
	none := 0.0
	spec := DefaultTraining()
	spec.Epochs, spec.LearningRate, spec.Dropout = 11, rate, &none
	trainer := newTestTrainer(t, m, spec, 2)
	if err := trainer.Add(exampleOf("spot", inputOf[T](t, m.Spec(), loadGoldenMesh(t, "spotcontrol")), file["seg_target"].Int32()), false); err != nil {
		t.Fatal(err)
	}
	want := trace[fmt.Sprintf("loss_lr%g_f64", rate)].Data
	worst := 0.0
	for step, loss := range want {
		var before [][]T
		if step == 10 {
			for _, p := range trainer.Model().Parameters() {
				before = append(before, p.Data)
			}
		}
		record, err := trainer.Step(nil)
		if err != nil {
			t.Fatal(err)
		}
		worst = max(worst, abs(record.Loss-loss))
		if !(abs(record.Loss-loss) <= ofLoss) {
			t.Errorf("%s, rate %g, %T: the loss before step %d is %g, not %g", name, rate, loss, step+1, record.Loss, loss)
		}
		if before != nil {
			checkFinal(t, name, rate, trace, m.Spec(), before, file, ofParameters)
		}
	}
	t.Logf("%s, rate %g: losses within %.2g", name, rate, worst)
}

// checkFinal compares the parameters after ten steps.
func checkFinal[T simd.Float](t *testing.T, name string, rate float64, trace npz.File, spec Spec, got [][]T, file npz.File, bound float64) {
	t.Helper()
	state := stateOf[T](file)
	prefix := fmt.Sprintf("final_lr%g:", rate)
	found := 0
	for _, p := range state {
		final, there := trace[prefix+p.Name]
		if !there {
			continue
		}
		found++
		for i, x := range final.Data {
			p.Data[i] = T(x)
		}
	}
	if found == 0 {
		t.Fatalf("%s: no parameters under %s", name, prefix)
	}
	want, err := FromAuthors(state, DefaultAuthorsConfig(name))
	if err != nil {
		t.Fatal(err)
	}
	compared := map[string]bool{ // what the file has
		"blocks.0.conv1.value": true, "blocks.0.conv1.bias": true, "blocks.0.conv1.angles": true, "dense2.weight": true, "dense2.bias": true,
	}
	for i, p := range want.Parameters() {
		if !compared[p.Name] {
			continue
		}
		if e := largestError(t, widened(got[i]), widened(p.Data)); !(e <= bound) {
			t.Errorf("%s, rate %g: %s is off by %g", name, rate, p.Name, e)
		}
	}
}
