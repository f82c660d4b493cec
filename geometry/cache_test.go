package geometry

import (
	"errors"
	"sync"
	"testing"

	"libeman/geometry/memory"
)

// arrayOf is a cached value: an array, and how often one of its kind was freed.
type arrayOf struct {
	arena *memory.Arena
	freed *int
}

func (a arrayOf) Free() {
	a.arena.Free()
	*a.freed++
}

const arrayBytes = 1 << 16

// cacheTest counts what is made and freed for the keys of a mesh's cache.
type cacheTest struct {
	t           *testing.T
	budget      *memory.Budget
	made, freed int
}

func newCacheTest(t *testing.T) (*cacheTest, *Mesh) {
	t.Helper()
	c := &cacheTest{t: t, budget: memory.NewBudget(0, nil)}
	m, err := New(Resources{Memory: c.budget}, FromSlices([]float64{0, 0, 0, 1, 0, 0, 0, 1, 0}, []int32{0, 1, 2}), Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c, m
}

func (c *cacheTest) get(v *View, key any, use func(arrayOf) error) {
	c.t.Helper()
	err := Cached(v, key, func() (arrayOf, error) {
		c.made++
		a := arrayOf{c.budget.NewArena("test"), &c.freed}
		_, err := memory.Make[uint8](a.arena, arrayBytes)
		return a, err
	}, use)
	if err != nil {
		c.t.Error(err)
	}
}

func (c *cacheTest) want(what string, made, freed int) {
	c.t.Helper()
	if c.made != made || c.freed != freed {
		c.t.Errorf("%s: %d made, %d freed, not %d and %d", what, c.made, c.freed, made, freed)
	}
}

func use(arrayOf) error { return nil }

func TestCachedValuesAreKeptWithTheState(t *testing.T) {
	c, m := newCacheTest(t)
	read := func(body func(v *View)) {
		if err := m.Read(func(v *View) error { body(v); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	read(func(v *View) {
		c.get(v, "a", use)
		c.get(v, 1, use)
		c.get(v, "a", use)
		c.want("two keys", 2, 0)
		c.get(v, "b", use)
		c.get(v, "c", use) // 1 was used longest ago
		c.want("four keys", 4, 1)
		c.get(v, "a", use)
		c.want("that used last is kept", 4, 1)
		c.get(v, 1, func(arrayOf) error {
			for _, key := range []string{"d", "e", "f"} {
				c.get(v, key, use)
			}
			c.want("one in use", 8, 4) // 1 is no longer kept, but not freed
			return nil
		})
		c.want("one that was in use", 8, 5)
	})
	if err := m.Update(FromSlices([]float64{0, 0, 1, 1, 0, 0, 0, 1, 0}, []int32{0, 1, 2}).Positions, nil, nil); err != nil {
		t.Fatal(err)
	}
	c.want("after an update", 8, 8)
	failure := errors.New("refused")
	read(func(v *View) {
		err := Cached(v, "a", func() (arrayOf, error) { return arrayOf{}, failure }, use)
		if !errors.Is(err, failure) {
			t.Errorf("%v", err)
		}
		c.get(v, "a", use)
	})
	m.Close()
	c.want("after the end", 9, 9)
	if used, _, _ := c.budget.Usage(); used != 0 {
		t.Errorf("%d bytes are left", used)
	}
}

// Cached values go before memory is refused, but none that is in use.
func TestCachedValuesGiveWay(t *testing.T) {
	c, m := newCacheTest(t)
	defer m.Close()
	err := m.Read(func(v *View) error {
		c.get(v, "a", use)
		c.get(v, "b", func(arrayOf) error {
			if !c.budget.Reclaim() || c.budget.Reclaim() {
				t.Error("there was something to reclaim, once")
			}
			c.want("reclaimed", 2, 1)
			return nil
		})
		c.get(v, "b", use)
		c.want("the one that was in use", 2, 1)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCachedValuesAndManyCallers(t *testing.T) {
	c, m := newCacheTest(t)
	var counts sync.Mutex
	var group sync.WaitGroup
	made, freed := 0, make([]int, 1000)
	for caller := range 8 {
		group.Go(func() {
			for i := range 100 {
				err := m.Read(func(v *View) error {
					return Cached(v, (caller+i)%5, func() (arrayOf, error) {
						counts.Lock()
						defer counts.Unlock()
						a := arrayOf{c.budget.NewArena("test"), &freed[made]}
						made++
						_, err := memory.Make[uint8](a.arena, arrayBytes)
						return a, err
					}, func(a arrayOf) error {
						if *a.freed != 0 {
							t.Error("freed while in use")
						}
						if i%10 == 0 {
							c.budget.Reclaim()
						}
						return nil
					})
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	m.Close()
	for i, n := range freed[:made] {
		if n != 1 {
			t.Errorf("value %d was freed %d times", i, n)
		}
	}
}
