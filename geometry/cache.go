package geometry

import (
	"slices"
	"sync"

	"libeman/geometry/memory"
)

// Freer is what [Cached] keeps.
type Freer interface{ Free() }

// mostCached is how many values are kept with a state of a mesh: its graph, and
// what two networks on its surface see.
const mostCached = 3

// cache keeps what was computed for one state of a mesh. Its mutex is held for
// moments only, in which no memory is taken.
type cache struct {
	budget *memory.Budget

	mutex   sync.Mutex
	entries []*cacheEntry // that used last is the last
}

type cacheEntry struct {
	key     any
	value   Freer
	users   int
	dropped bool // no longer kept: its last user frees it
}

// Cached calls use with what build made for this state of the mesh under a
// comparable key, in this call or in an earlier one. It is kept until the state
// ends, other values take its place, or memory runs short. No call waits for
// another: those that begin before the first has ended build their own.
func Cached[T Freer](v *View, key any, build func() (T, error), use func(value T) error) error {
	e := v.cache.find(key)
	if e == nil {
		value, err := build()
		if err != nil {
			return err
		}
		e = v.cache.keep(key, value)
	}
	defer v.cache.release(e)
	return use(e.value.(T))
}

// find returns the value of a key, to be released, or nil.
func (c *cache) find(key any) *cacheEntry {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	i := c.index(key)
	if i < 0 {
		return nil
	}
	e := c.entries[i]
	c.entries = append(slices.Delete(c.entries, i, i+1), e)
	e.users++
	return e
}

func (c *cache) index(key any) int {
	return slices.IndexFunc(c.entries, func(e *cacheEntry) bool { return e.key == key })
}

// keep adds a value, to be released. One that another call has kept meanwhile
// stays.
func (c *cache) keep(key any, value Freer) *cacheEntry {
	e := &cacheEntry{key: key, value: value, users: 1}
	var surplus *cacheEntry
	c.mutex.Lock()
	switch {
	case c.index(key) >= 0:
		e.dropped = true
	default:
		c.entries = append(c.entries, e)
		if len(c.entries) > mostCached {
			surplus = c.entries[0]
			surplus.dropped = true
			surplus.users++
			c.entries = slices.Delete(c.entries, 0, 1)
		}
	}
	c.mutex.Unlock()
	if surplus != nil {
		c.release(surplus)
	}
	if c.budget != nil {
		c.budget.Register(c)
	}
	return e
}

func (c *cache) release(e *cacheEntry) {
	c.mutex.Lock()
	e.users--
	unused := e.dropped && e.users == 0
	c.mutex.Unlock()
	if unused {
		e.value.Free()
	}
}

// Reclaim frees what nobody uses (memory.Reclaimer).
func (c *cache) Reclaim() (freed bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.entries = slices.DeleteFunc(c.entries, func(e *cacheEntry) bool {
		if e.users > 0 {
			return false
		}
		e.value.Free()
		freed = true
		return true
	})
	return freed
}

// clear frees everything at the end of the state, which nobody uses any more.
func (c *cache) clear() {
	c.Reclaim()
	if c.budget != nil {
		c.budget.Unregister(c)
	}
}
