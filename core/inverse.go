package core

import (
	"fmt"
	"math"
	"sync"

	"libeman/geometry"
	"libeman/geometry/memory"
)

// inverse lists for each of n values the places of an array where it is: of
// value q places[offsets[q]:offsets[q+1]], rising. It is made when it is first
// wanted, and kept.
type inverse struct {
	mutex   sync.Mutex
	places  []int32
	offsets []int64 // nil until then
}

// of returns the inverse of an array with values in [0, n), in memory of the
// arena's, which nothing else may use at the time; geometry.ErrTooLarge where an
// int32 does not number the places.
func (v *inverse) of(values []int32, n int, arena *memory.Arena) (places []int32, offsets []int64, err error) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.offsets != nil {
		return v.places, v.offsets, nil
	}
	if len(values) > math.MaxInt32 {
		return nil, nil, fmt.Errorf("%w: %d entries, at most %d are supported in training", geometry.ErrTooLarge, len(values), math.MaxInt32)
	}
	// Two more than n: while the places are filled in, entry q+1 is where the
	// next place of q goes, and so in the end where those of q+1 begin.
	if offsets, err = memory.Make[int64](arena, int64(n)+2); err != nil {
		return nil, nil, err
	}
	if places, err = memory.Make[int32](arena, int64(len(values))); err != nil {
		return nil, nil, err
	}
	for _, q := range values {
		offsets[q+2]++
	}
	for q := range n {
		offsets[q+2] += offsets[q+1]
	}
	for i, q := range values {
		places[offsets[q+1]] = int32(i)
		offsets[q+1]++
	}
	v.places, v.offsets = places, offsets[:n+1]
	return v.places, v.offsets, nil
}
