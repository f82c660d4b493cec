//go:build amd64 || arm64

package simd

// softmaxTerms is how many logits are gathered at a time.
const softmaxTerms = 1024

// softmaxScratch is the logits of some rings and their coefficients, with room
// behind them for the whole register that shortSoftmax reads and writes. They
// are kept apart so that no load has to wait for the store of the ring before,
// which covers part of the same cache line.
type softmaxScratch struct {
	logits, alpha [softmaxTerms + Lanes]float32
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
		for end < n && offsets[end+1]-offsets[i] <= softmaxTerms {
			end++
		}
		if end == i {
			ring := logits[begin : offsets[i+1]-offsets[0]]
			v.softmax(&ring[0], len(ring), scaleOf(len(ring), scaled))
			i++
			continue
		}
		part := logits[begin : offsets[end]-offsets[0]]
		copy(w.logits[:], part)
		at := 0
		for ; i < end; i++ {
			terms := int(offsets[i+1] - offsets[i])
			v.softmaxOf(w, at, terms, scaleOf(terms, scaled))
			at += terms
		}
		copy(part, w.alpha[:])
	}
}

// softmaxOf treats the terms from place at on; it may write behind them.
func (v *vector) softmaxOf(w *softmaxScratch, at, terms int, scale float32) {
	switch {
	case terms == 0:
	case terms <= v.lanes:
		v.shortSoftmax(&w.alpha[at], &w.logits[at], terms, scale)
	default:
		copy(w.alpha[at:at+terms], w.logits[at:])
		v.softmax(&w.alpha[at], terms, scale)
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
	v.softmaxOf(w, 0, terms, scaleOf(terms, scaled))
	for j := range n {
		ring[j*heads+h] = w.alpha[j]
	}
	if own != nil {
		own[h] = w.alpha[n]
	}
}
