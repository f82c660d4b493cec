package core

import (
	"math/rand/v2"
	"slices"
	"testing"

	"libeman/geometry"
	"libeman/geometry/memory"
)

// A network gives the same bits in the order of the mesh and in that of a
// breadth-first search: labels, probabilities, logits, attention and features.
func TestTheOrderOfTheVerticesDoesNotMatter(t *testing.T) {
	for task, vertices := range map[Task]int{TaskSegmentation: 500, TaskClassification: poolRows + 100} {
		m := testModel[float32](t, func(s *Spec) { s.Task, s.Width, s.Heads, s.Blocks = task, 4, 2, 2 })
		in := testInput[float32](t, vertices)
		if in.Graph.local != nil {
			t.Fatal("a small graph has another order")
		}
		want, err := everything(newTestRunner[float32](2), m, in)
		if err != nil {
			t.Fatal(err)
		}
		if in.Graph.local, err = in.Graph.reordered(geometry.Resources{}, nil); err != nil {
			t.Fatal(err)
		}
		if slices.IsSorted(in.Graph.local.order) {
			t.Fatal("the order is that of the mesh")
		}
		got, err := everything(newTestRunner[float32](2), m, in)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: other bits, %v", task, err)
		}
	}
}

// strip is a ring of vertices with the neighbours one and two on either side,
// numbered as number says.
func strip(t *testing.T, budget *memory.Budget, number []int) *Graph[float32] {
	t.Helper()
	vertices := len(number)
	neighbors := make([]int32, 4*vertices)
	for v, p := range number {
		for i, step := range []int{-2, -1, 1, 2} {
			neighbors[4*p+i] = int32(number[(v+step+vertices)%vertices])
		}
	}
	offsets := make([]int64, vertices+1)
	for p := range offsets {
		offsets[p] = 4 * int64(p)
	}
	ones, zeros := slices.Repeat([]float64{1}, 4*vertices), make([]float64, 4*vertices)
	g, err := NewGraph[float32](budget, offsets, neighbors, nil, EdgeGeometry{ones, zeros, ones, zeros, ones})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestScatteredGraphsAreReordered(t *testing.T) {
	const vertices = 4 * cachedRows
	shuffled := rand.New(rand.NewPCG(1, 2)).Perm(vertices)
	inOrder := slices.Sorted(slices.Values(shuffled))
	budget := memory.NewBudget(0, nil)
	if strip(t, budget, inOrder).local != nil {
		t.Error("a strip in order is reordered")
	}
	before, _, _ := budget.Usage()
	g := strip(t, budget, shuffled)
	if g.local == nil {
		t.Fatal("a shuffled strip is not reordered")
	}
	apart := 0
	for p := range vertices {
		for j, q := range g.local.Neighbors[4*p:][:4] {
			apart = max(apart, p-int(q), int(q)-p)
			if g.local.vertex(int(q)) != int(g.Neighbors[g.local.firstEdge(p)+int64(j)]) {
				t.Fatalf("neighbour %d of vertex %d is another one", j, p)
			}
		}
	}
	if apart > 8 { // two fronts of two vertices
		t.Errorf("neighbours are up to %d apart", apart)
	}
	after, _, _ := budget.Usage()
	if want := int64(2*graphArrays*4*4*vertices + vertices*(4+8+4*4)); after-before < want || after-before > want+4096 {
		t.Errorf("%d bytes are counted, not %d", after-before, want)
	}
	if g.Free(); g.arena.Bytes() != 0 || g.local.arena.Bytes() != 0 {
		t.Error("Free keeps memory")
	}
	// Room for the graph, but not for another order.
	if strip(t, memory.NewBudget((after-before)/2, nil), shuffled).local != nil {
		t.Error("more memory was taken than the budget has")
	}
}
