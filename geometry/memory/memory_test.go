package memory

import (
	"errors"
	"math"
	"testing"
	"unsafe"
)

func TestArraysAreZeroedAlignedAndCounted(t *testing.T) {
	budget := NewBudget(0, nil)
	arena := budget.NewArena("test")
	for n := int64(1); n < 200; n++ {
		x, err := Make[float32](arena, n)
		if err != nil || int64(len(x)) != n {
			t.Fatalf("n = %d: length %d, %v", n, len(x), err)
		}
		if address := uintptr(unsafe.Pointer(&x[0])); address%Alignment != 0 {
			t.Fatalf("n = %d: address %#x is not aligned", n, address)
		}
		for i := range x {
			if x[i] != 0 {
				t.Fatalf("n = %d: element %d is not zero", n, i)
			}
			x[i] = 1
		}
	}
	want := int64(4 * 199 * 200 / 2)
	if used, peak, _ := budget.Usage(); used != want || peak != want || arena.Bytes() != want {
		t.Errorf("used %d, peak %d, arena %d, want %d", used, peak, arena.Bytes(), want)
	}
	if got := budget.UsageByPurpose()["test"]; got != want {
		t.Errorf("purpose: %d", got)
	}
	arena.Free()
	if used, peak, _ := budget.Usage(); used != 0 || peak != want || len(budget.UsageByPurpose()) != 0 {
		t.Errorf("after Free: used %d, peak %d, %v", used, peak, budget.UsageByPurpose())
	}
}

func TestLimit(t *testing.T) {
	budget := NewBudget(1000, nil)
	arena := budget.NewArena("test")
	if _, err := Make[float64](arena, 100); err != nil {
		t.Fatal(err)
	}
	_, err := Make[float64](arena, 26)
	var limit *LimitError
	if !errors.Is(err, ErrOutOfMemory) || !errors.As(err, &limit) || limit.Requested != 208 || limit.Used != 800 {
		t.Errorf("%v", err)
	}
	if _, err := Make[float64](arena, 25); err != nil {
		t.Errorf("exactly the rest: %v", err)
	}
}

func TestOverflowingSizes(t *testing.T) {
	for _, limit := range []int64{0, 1 << 40} {
		arena := NewBudget(limit, nil).NewArena("test")
		for _, n := range []int64{-1, math.MinInt64, math.MaxInt64, math.MaxInt64 / 8, 1 << 61} {
			if _, err := Make[float64](arena, n); !errors.Is(err, ErrOutOfMemory) {
				t.Errorf("limit %d, n = %d: %v", limit, n, err)
			}
		}
	}
}

// refusing is a source that has nothing to give.
type refusing struct{}

func (refusing) Allocate(int64) unsafe.Pointer { return nil }
func (refusing) Free(unsafe.Pointer, int64)    {}

func TestRefusalOfTheSource(t *testing.T) {
	budget := NewBudget(0, refusing{})
	_, err := Make[int32](budget.NewArena("test"), 10)
	if !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("%v", err)
	}
	if used, _, _ := budget.Usage(); used != 0 {
		t.Errorf("%d bytes counted", used)
	}
}

// keeper keeps one array until it is asked for it.
type keeper struct{ arena *Arena }

func (k keeper) Reclaim() bool {
	kept := k.arena.Bytes() > 0
	k.arena.Free()
	return kept
}

// scarce is a source of so many bytes.
type scarce struct{ left *int64 }

func (s scarce) Allocate(bytes int64) unsafe.Pointer {
	if bytes > *s.left {
		return nil
	}
	*s.left -= bytes
	return unsafe.Pointer(unsafe.SliceData(make([]byte, bytes)))
}

func (s scarce) Free(_ unsafe.Pointer, bytes int64) { *s.left += bytes }

func TestWhatIsKeptGoesBeforeMemoryIsRefused(t *testing.T) {
	left := int64(1000)
	for name, budget := range map[string]*Budget{"limit": NewBudget(1000, nil), "source": NewBudget(0, scarce{&left})} {
		k := keeper{budget.NewArena("kept")}
		keep := func() {
			if _, err := Make[int32](k.arena, 200); err != nil {
				t.Fatal(err)
			}
		}
		budget.Register(k)
		keep()
		other := budget.NewArena("test")
		if _, err := Make[int32](other, 100); err != nil || k.arena.Bytes() != 0 {
			t.Errorf("%s: %d bytes are kept, %v", name, k.arena.Bytes(), err)
		}
		other.Free()
		keep()
		if err := budget.Check("test", 900); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		k.Reclaim()
		keep()
		budget.Unregister(k)
		if _, err := Make[int32](other, 100); !errors.Is(err, ErrOutOfMemory) {
			t.Errorf("%s: without a reclaimer: %v", name, err)
		}
	}
}
