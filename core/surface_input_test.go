package core

import (
	"errors"
	"math"
	"testing"

	"libeman/geometry"
	"libeman/geometry/memory"
	"libeman/simd"
)

// bumps is a closed surface without symmetries, n×n quads on a sphere.
func bumps(n int) (positions []float64, faces []int32) {
	for i := range n + 1 {
		for j := range n {
			u, v := math.Pi*float64(i)/float64(n), 2*math.Pi*float64(j)/float64(n)
			z, r := math.Cos(u), math.Sin(u)
			bump := 1 + 0.3*math.Sin(2*z+r*math.Cos(v)) + 0.2*math.Sin(3*r*math.Sin(v)+1)
			positions = append(positions, bump*r*math.Cos(v), bump*r*math.Sin(v), 1.4*bump*z)
		}
	}
	for i := range n {
		for j := range n {
			a, b := int32(i*n+j), int32(i*n+(j+1)%n)
			faces = append(faces, a, a+int32(n), b, b, a+int32(n), b+int32(n))
		}
	}
	return positions, faces
}

// onBumps runs body on the surface, moved and renumbered or as it is.
func onBumps(t *testing.T, budget *memory.Budget, changed bool, body func(v *geometry.View, number []int32)) {
	t.Helper()
	positions, faces := bumps(24)
	number := make([]int32, len(positions)/3)
	for p := range number {
		number[p] = int32(p)
	}
	if changed {
		geometry.RandomPermutation(5, number)
		r := geometry.RandomRotation(7)
		moved := make([]float64, len(positions))
		for p, to := range number {
			x := positions[3*p:]
			for k := range 3 {
				moved[3*int(to)+k] = 40 * (r[3*k]*x[0] + r[3*k+1]*x[1] + r[3*k+2]*x[2] - 0.3)
			}
		}
		positions = moved
		for i, p := range faces {
			faces[i] = number[p]
		}
	}
	mesh, err := geometry.New(geometry.Resources{Memory: budget}, geometry.FromSlices(positions, faces), geometry.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer mesh.Close()
	err = mesh.Read(func(v *geometry.View) error {
		body(v, number)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func surfaceSpec(t *testing.T, more string) Spec {
	t.Helper()
	spec, err := ParseSpec([]byte(`{"preset": "surface", "classes": 3, "features": "moments_reltan",
		"surface": {"points": [200, 50], "neighbors": 12, "scales": [8, 24], "blocks": [1, 1, 1]}` + more + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// logitsOnSurface are those of a model with random parameters.
func logitsOnSurface[T simd.Float](t *testing.T, spec Spec, changed bool) (logits []float64) {
	t.Helper()
	m, err := NewModel[T](spec, 3)
	if err != nil {
		t.Fatal(err)
	}
	onBumps(t, nil, changed, func(v *geometry.View, number []int32) {
		in, err := NewSurfaceInput[T](v, spec, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Free()
		got := logitsOf(t, m, &in.Input)
		for _, p := range number {
			logits = append(logits, got[3*int(p):][:3]...)
		}
	})
	return logits
}

// From the mesh to the logits nothing depends on coordinates and numbering.
func TestSurfacesAreSeenWithoutCoordinatesAndNumbers(t *testing.T) {
	for _, kind := range []string{"gem", "eman"} {
		spec := surfaceSpec(t, `, "kind": "`+kind+`"`)
		want, got := logitsOnSurface[float64](t, spec, false), logitsOnSurface[float64](t, spec, true)
		differing := 0
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-9 {
				t.Fatalf("%s: logit %d is %g, not %g", kind, i, got[i], want[i])
			}
			if math.Abs(want[i]-want[i%3]) > 1e-3 {
				differing++
			}
		}
		if differing < len(want)/2 {
			t.Errorf("%s: only %d of %d logits differ from those of the first vertex", kind, differing, len(want))
		}
	}
}

func TestSurfaceInputsGiveTheirMemoryBack(t *testing.T) {
	spec := surfaceSpec(t, "")
	need := func(limit int64) (peak int64, err error) {
		budget := memory.NewBudget(limit, nil)
		onBumps(t, budget, false, func(v *geometry.View, _ []int32) {
			before, _, _ := budget.Usage()
			var in *MeshInput[float32]
			if in, err = NewSurfaceInput[float32](v, spec, 0, nil); err == nil {
				in.Free()
			}
			var after int64
			if after, peak, _ = budget.Usage(); after != before {
				t.Errorf("limit %d: %d bytes are still in use", limit, after-before)
			}
		})
		return peak, err
	}
	peak, err := need(0)
	if err != nil {
		t.Fatal(err)
	}
	const mesh = 1 << 20 // more than the mesh alone takes
	for limit := int64(mesh); limit < peak; limit += (peak - mesh) / 50 {
		if _, err := need(limit); !errors.Is(err, memory.ErrOutOfMemory) {
			t.Errorf("limit %d of %d: %v", limit, peak, err)
		}
	}
}

// Features beyond float32 are a fault of the mesh, not of the network.
func TestLargeFeaturesOfSamplesAreRefused(t *testing.T) {
	for _, power := range []string{"60", "2000"} {
		spec := surfaceSpec(t, `, "powers": [`+power+`]`)
		onBumps(t, nil, false, func(v *geometry.View, _ []int32) {
			in, err := NewSurfaceInput[float32](v, spec, 0, nil)
			var fault *geometry.InvalidMeshError
			if !errors.As(err, &fault) || fault.Element != "sample" || in != nil {
				t.Errorf("power %s: %v", power, err)
			}
		})
	}
}
