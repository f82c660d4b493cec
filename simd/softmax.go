//go:build amd64 || arm64

package simd

import "math"

// softmaxTerms is how many logits, and logits of how many rings, are gathered
// at a time.
const softmaxTerms = 1024

// softmaxScratch is the logits of some rings and their coefficients, with room
// behind them for the whole register that shortSoftmaxes reads and writes. They
// are kept apart so that no load has to wait for the store of the ring before,
// which covers part of the same cache line.
type softmaxScratch struct {
	logits, alpha [softmaxTerms + Lanes]float32
	ring          [2]int64 // the offsets of one
}

// Softmax: see [Kernels].
func (v *vector) Softmax(logits, self []float32, offsets []int64, heads int, scaled bool) {
	w := vectorScratches.Get().(*vectorScratch)
	defer vectorScratches.Put(w)
	v.softmaxOver(&w.softmaxScratch, logits, self, offsets, heads, scaled)
}

func (v *vector) softmaxOver(w *softmaxScratch, logits, self []float32, offsets []int64, heads int, scaled bool) {
	if heads == 1 && self == nil {
		v.softmaxRings(w, logits, offsets, scaled)
		return
	}
	for i := range len(offsets) - 1 {
		ring := logits[int(offsets[i]-offsets[0])*heads : int(offsets[i+1]-offsets[0])*heads]
		var own []float32
		terms := len(ring) / heads
		if self != nil {
			own = self[i*heads:][:heads]
			terms++
		}
		switch {
		case terms == 0:
		case terms > softmaxTerms:
			Generic[float32]{}.Softmax(ring, own, []int64{0, int64(len(ring) / heads)}, heads, scaled)
		default:
			for h := range heads {
				v.softmaxHead(w, ring, own, terms, h, heads, scaled)
			}
		}
	}
}

// softmaxRings treats rings whose logits are next to one another, as many at a
// time as there is room for.
func (v *vector) softmaxRings(w *softmaxScratch, logits []float32, offsets []int64, scaled bool) {
	n := len(offsets) - 1
	for i := 0; i < n; {
		begin, end := offsets[i]-offsets[0], i
		for end < n && end-i < softmaxTerms && offsets[end+1]-offsets[i] <= softmaxTerms {
			end++
		}
		if end == i {
			ring := logits[begin : offsets[i+1]-offsets[0]]
			v.multiplyBy(ring, float32(float64(scaleOf(len(ring), scaled))/v.exponentials(ring, v.greatest(ring))))
			i++
			continue
		}
		part := logits[begin : offsets[end]-offsets[0]]
		copy(w.logits[:], part)
		v.softmaxHeld(w, offsets[i:end+1], scaled)
		copy(part, w.alpha[:])
		i = end
	}
}

// softmaxHeld treats the rings that w.logits holds: runs of short ones, and
// each long one.
func (v *vector) softmaxHeld(w *softmaxScratch, offsets []int64, scaled bool) {
	rings := len(offsets) - 1
	for i := 0; i < rings; {
		at, first := offsets[i]-offsets[0], i
		for i < rings && offsets[i+1]-offsets[i] <= int64(v.lanes) {
			i++
		}
		if i > first {
			v.shortSoftmaxes(&w.alpha[at], &w.logits[at], &offsets[first], i-first, scaled)
			continue
		}
		i++
		ring := w.alpha[at : offsets[i]-offsets[0]]
		copy(ring, w.logits[at:])
		v.softmax(&ring[0], len(ring), scaleOf(len(ring), scaled))
	}
}

// greatest is the largest of some numbers, in which NaN may count or not.
func (v *vector) greatest(x []float32) float32 {
	most, whole := noFloor, len(x)/Lanes*Lanes
	for i := 0; i < whole; i += maxRun {
		most = max(most, v.rowMax(&x[i], min(maxRun, whole-i)))
	}
	for _, value := range x[whole:] {
		most = max(most, value)
	}
	return most
}

// exponentials replaces numbers x by exp(x - shift), and returns their sum.
func (v *vector) exponentials(x []float32, shift float32) (sum float64) {
	whole := len(x) / Lanes * Lanes
	for i := 0; i < whole; i += maxRun {
		sum += float64(v.exponentiate(&x[i], min(maxRun, whole-i), shift))
	}
	for i := whole; i < len(x); i++ {
		x[i] = float32(math.Exp(float64(x[i]) - float64(shift)))
		sum += float64(x[i])
	}
	return sum
}

// multiplyBy multiplies numbers by a factor.
func (v *vector) multiplyBy(x []float32, factor float32) {
	whole := len(x) / Lanes * Lanes
	for i := 0; i < whole; i += maxRun {
		v.scale(&x[i], min(maxRun, whole-i), factor)
	}
	for i := whole; i < len(x); i++ {
		x[i] *= factor
	}
}

// scaleOf is what the coefficients of a ring add up to.
func scaleOf(terms int, scaled bool) float32 {
	if scaled {
		return float32(terms)
	}
	return 1
}

// softmaxHead treats every heads-th entry of ring from h on and, where own is
// not nil, own[h].
func (v *vector) softmaxHead(w *softmaxScratch, ring, own []float32, terms, h, heads int, scaled bool) {
	n := terms
	if own != nil {
		n--
		w.logits[n] = own[h]
	}
	for j := range n {
		w.logits[j] = ring[j*heads+h]
	}
	w.ring = [2]int64{0, int64(terms)}
	v.softmaxHeld(w, w.ring[:], scaled)
	for j := range n {
		ring[j*heads+h] = w.alpha[j]
	}
	if own != nil {
		own[h] = w.alpha[n]
	}
}
