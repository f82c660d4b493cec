// Package memory allocates the library's large arrays. A Go program that runs
// out of memory ends, and a library must not end its host: large arrays
// therefore come from a [Source] that can refuse, are counted against a limit,
// and refusal is an error.
//
// Arrays are grouped in arenas, which are freed as a whole. Elements are plain
// numbers, never pointers, so an array may lie outside the Go heap.
package memory

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"unsafe"
)

// ErrOutOfMemory is what every refusal matches (errors.Is).
var ErrOutOfMemory = errors.New("out of memory")

// LimitError is a refused allocation.
type LimitError struct {
	Purpose                string
	Requested, Used, Limit int64 // bytes; Limit 0: the system refused
}

func (e *LimitError) Error() string {
	if e.Limit > 0 {
		return fmt.Sprintf("out of memory: %s needs %d bytes, %d of the context's limit of %d are in use", e.Purpose, e.Requested, e.Used, e.Limit)
	}
	return fmt.Sprintf("out of memory: %s needs %d bytes, which the system refused", e.Purpose, e.Requested)
}

// Is makes every LimitError match ErrOutOfMemory.
func (e *LimitError) Is(target error) bool { return target == ErrOutOfMemory }

// Alignment of every array, in bytes: a cache line, and the widest register.
const Alignment = 64

// Source gives memory outside the Go heap.
type Source interface {
	// Allocate returns zeroed memory aligned to Alignment, or nil.
	Allocate(bytes int64) unsafe.Pointer
	Free(memory unsafe.Pointer, bytes int64)
}

// Budget counts the bytes in use by all of its arenas and refuses what would
// exceed its limit. It is safe for concurrent use.
type Budget struct {
	limit  int64 // 0: none
	source Source

	mutex     sync.Mutex
	used      int64
	peak      int64
	byPurpose map[string]int64
	kept      map[Reclaimer]struct{}
}

// Reclaimer keeps memory between calls that it can do without.
type Reclaimer interface {
	// Reclaim gives back what nobody uses, and says whether there was any. It is
	// called from any goroutine, by whoever needs memory, and must take none.
	Reclaim() bool
}

// NewBudget returns a budget of limit bytes (0: no limit) that takes its
// memory from source (nil: the Go heap, freed by the garbage collector).
func NewBudget(limit int64, source Source) *Budget {
	return &Budget{limit: limit, source: source, byPurpose: map[string]int64{}, kept: map[Reclaimer]struct{}{}}
}

// Register makes r one of those that are asked for memory before any is refused.
func (b *Budget) Register(r Reclaimer) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.kept[r] = struct{}{}
}

// Unregister takes Register back.
func (b *Budget) Unregister(r Reclaimer) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	delete(b.kept, r)
}

// Reclaim gives back what is kept between calls, and says whether there was any.
func (b *Budget) Reclaim() (any bool) {
	b.mutex.Lock()
	all := slices.Collect(maps.Keys(b.kept))
	b.mutex.Unlock()
	for _, r := range all {
		any = r.Reclaim() || any
	}
	return any
}

// reclaiming calls attempt, and once more where it is refused but memory can be
// reclaimed.
func (b *Budget) reclaiming(attempt func() error) error {
	err := attempt()
	if err != nil && b.Reclaim() {
		err = attempt()
	}
	return err
}

// Usage returns the bytes in use, the most there have been, and the limit.
func (b *Budget) Usage() (used, peak, limit int64) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.used, b.peak, b.limit
}

// UsageByPurpose returns the bytes in use for each purpose named by an arena;
// purposes with none are left out.
func (b *Budget) UsageByPurpose() map[string]int64 {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	usage := map[string]int64{}
	for purpose, bytes := range b.byPurpose {
		if bytes != 0 {
			usage[purpose] = bytes
		}
	}
	return usage
}

// Check says whether bytes more would fit, without taking them: the preflight
// of a large call. Negative means that the size overflowed.
func (b *Budget) Check(purpose string, bytes int64) error {
	return b.reclaiming(func() error {
		b.mutex.Lock()
		defer b.mutex.Unlock()
		return b.check(purpose, bytes)
	})
}

func (b *Budget) check(purpose string, bytes int64) error {
	if bytes < 0 {
		bytes = math.MaxInt64
	}
	if bytes > maximalArray || b.limit > 0 && bytes > b.limit-b.used {
		return &LimitError{Purpose: purpose, Requested: bytes, Used: b.used, Limit: b.limit}
	}
	return nil
}

// maximalArray bounds one array: no machine of this decade has more, and the
// arithmetic on sizes below it cannot overflow.
const maximalArray = 1 << 46

func (b *Budget) take(purpose string, bytes int64) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if err := b.check(purpose, bytes); err != nil {
		return err
	}
	b.used += bytes
	b.peak = max(b.peak, b.used)
	b.byPurpose[purpose] += bytes
	return nil
}

func (b *Budget) giveBack(purpose string, bytes int64) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.used -= bytes
	b.byPurpose[purpose] -= bytes
}

// Arena is a group of arrays with one lifetime. It is not safe for concurrent
// use, but its arrays may be used from anywhere until Free.
type Arena struct {
	budget  *Budget
	purpose string
	pieces  []piece
}

type piece struct {
	memory unsafe.Pointer // outside the Go heap, or nil
	bytes  int64
}

// NewArena returns an empty arena whose bytes are counted under purpose.
func (b *Budget) NewArena(purpose string) *Arena {
	return &Arena{budget: b, purpose: purpose}
}

// Number is what arrays are made of.
type Number interface {
	~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64
}

// Make returns a zeroed array of n elements, aligned to Alignment. A negative
// n (an overflowed product) is out of memory.
func Make[T Number](a *Arena, n int64) ([]T, error) {
	var element T
	size := int64(unsafe.Sizeof(element))
	if n == 0 {
		return nil, nil
	}
	if n < 0 || n > maximalArray/size {
		return nil, a.budget.Check(a.purpose, -1)
	}
	p := piece{bytes: n * size}
	err := a.budget.reclaiming(func() error { return a.budget.allocate(a.purpose, &p) })
	if err != nil {
		return nil, err
	}
	a.pieces = append(a.pieces, p)
	if p.memory != nil {
		return unsafe.Slice((*T)(p.memory), n), nil
	}
	raw := make([]byte, p.bytes+Alignment-1)
	start := unsafe.Pointer(unsafe.SliceData(raw))
	start = unsafe.Add(start, -uintptr(start)&(Alignment-1))
	return unsafe.Slice((*T)(start), n), nil
}

// allocate counts a piece and takes its memory from the source, if there is one.
func (b *Budget) allocate(purpose string, p *piece) error {
	if err := b.take(purpose, p.bytes); err != nil || b.source == nil {
		return err
	}
	if p.memory = b.source.Allocate(p.bytes); p.memory == nil {
		b.giveBack(purpose, p.bytes)
		return &LimitError{Purpose: purpose, Requested: p.bytes}
	}
	return nil
}

// Bytes is the size of the arena's arrays together.
func (a *Arena) Bytes() (bytes int64) {
	for _, p := range a.pieces {
		bytes += p.bytes
	}
	return bytes
}

// Free gives every array of the arena back; none may be used any more. The
// arena may be filled again. A nil arena is empty.
func (a *Arena) Free() {
	if a == nil {
		return
	}
	for _, p := range a.pieces {
		if p.memory != nil {
			a.budget.source.Free(p.memory, p.bytes)
		}
		a.budget.giveBack(a.purpose, p.bytes)
	}
	a.pieces = nil
}
