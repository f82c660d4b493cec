package core

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"libeman/simd"
)

// attention computes the coefficients α_pq of an EMAN layer (§6). The key
// K_pq = W_key·moments(edge) is never formed: with U_p = W_keyᵀ Q_p / √d the
// logit K_pqᵀQ_p/√d is ⟨U_p, moments(edge)⟩, and U_p = f_p·P for one matrix P
// of query and key together. d is the dimension of a head's keys.
type attention[T simd.Float] struct {
	heads, rings int
	scaled       bool // the coefficients are N_p·softmax: the layer sums
	// A query that is weighted by the radial rings like the key (authors' code)
	// has a matrix for each pair of rings, and edge weights w_r w_r'.
	pairs   bool
	moments *simd.Moments // those of the orders that the query has
	// query holds for each order of f_p the matrix [components,
	// heads·sets·rows·channels] to the order's part of U_p; nil for none.
	query []*simd.Panel[T]
	// self holds the matrices [components, heads·components] to the part of U_p
	// for the vertex itself (app. D.4); nil without it.
	self     []*simd.Panel[T]
	channels int // padded, of f_p
}

func newAttention[T simd.Float](s convolutionSpec, maps headMaps, p layerParameters) *attention[T] {
	orders := min(s.in.Order, s.out.Order)
	a := &attention[T]{
		heads: s.heads, rings: s.rings, scaled: !s.mean, pairs: s.queryRadial,
		moments:  simd.NewMoments(s.in.Order, orders, s.band, s.in.padded()),
		channels: s.in.padded(),
	}
	query := maps.of(s.queryKernel(p["query"]), maps.query)
	key := maps.of(s.kernel(p["key"], s.rings), maps.key)
	width := s.out.Channels / s.heads
	f := folder{query: query, width: width, scale: 1 / math.Sqrt(float64(width*s.out.Components()))}
	for order := range orders + 1 {
		if a.moments.Rows[order] == 0 {
			a.query = append(a.query, nil)
			continue
		}
		keys := func(h, ring int) *mat.Dense { return key[h].momentMatrix(a.moments, order, ring, width) }
		a.query = append(a.query, pack[T](f.fold(order, a.heads, s.rings, a.pairs, keys)))
	}
	if s.selfTerm {
		selfKey := maps.of(s.selfKernel(p["self_key"]), maps.key)
		for order := range orders + 1 {
			keys := func(h, _ int) *mat.Dense { return selfKey[h].selfMatrix(order, 0, width) }
			a.self = append(a.self, pack[T](f.fold(order, a.heads, 1, false, keys)))
		}
	}
	return a
}

// queryKernel reads the query's tensor: [basis, rings, out, in] in the authors'
// form, of which the elements that do not depend on θ count, or [self basis,
// out, in].
func (s convolutionSpec) queryKernel(tensor []float64) *kernelWeights {
	if s.queryRadial {
		return s.kernel(tensor, s.rings)
	}
	return s.selfKernel(tensor)
}

// folder multiplies queries and keys.
type folder struct {
	query []*kernelWeights // of each head
	width int              // channels of a head's key
	scale float64
}

// fold returns the matrix from f_p to U_p of one order: for each head and set
// Q·keysᵀ, beside one another. A plain query has one ring, which goes with
// every ring of the key; with pairs the rings of both are combined.
func (f folder) fold(order, heads, rings int, pairs bool, keys func(h, ring int) *mat.Dense) *mat.Dense {
	var parts []*mat.Dense
	for h := range heads {
		product := func(queryRing, keyRing int) *mat.Dense {
			var u mat.Dense
			u.Mul(f.query[h].selfMatrix(order, queryRing, f.width), keys(h, keyRing).T())
			u.Scale(f.scale, &u)
			return &u
		}
		for r := range rings {
			if !pairs {
				parts = append(parts, product(0, r))
				continue
			}
			for s := r; s < rings; s++ {
				u := product(r, s)
				if s != r {
					u.Add(u, product(s, r))
				}
				parts = append(parts, u)
			}
		}
	}
	return abreast(parts)
}

// sets is the number of radial sets of U_p.
func (a *attention[T]) sets() int {
	if a.pairs {
		return pairCount(a.rings)
	}
	return a.rings
}

// forward computes the coefficients of the edges of rings; own begins with the
// features of their first vertex. With a self term its coefficients stay in
// w.self.
func (a *attention[T]) forward(k simd.Kernels[T], w *scratch[T], rings *simd.Rings[T], own simd.Rows[T], coefficients []T) {
	n := rings.Vertices()
	w.keys = *rings
	keys := &w.keys
	if a.pairs {
		keys.Sets = a.sets()
		keys.Weights = w.pairs[:rings.Edges()*keys.Sets]
		pairWeights(keys.Weights, rings.Weights, a.rings)
	}
	u := simd.Rows[T]{Data: w.moments, Stride: a.moments.Size(a.heads, keys.Sets)}
	for order, panel := range a.query {
		if panel != nil {
			start, _ := a.moments.Block(order, a.heads, keys.Sets)
			k.Multiply(u.Columns(start), own.Columns(firstRow(order)*a.channels), panel, n, false)
		}
	}
	k.EdgeDot(coefficients, u, a.moments, keys, a.heads)
	k.Softmax(coefficients, a.selfLogits(k, w, own, n), rings.Offsets, a.heads, a.scaled)
}

// selfLogits computes [n, heads] logits ⟨U_p, f_p⟩ of the vertices themselves,
// or returns nil without a self term.
func (a *attention[T]) selfLogits(k simd.Kernels[T], w *scratch[T], own simd.Rows[T], n int) []T {
	if a.self == nil {
		return nil
	}
	u := a.selfRows(w, len(a.self))
	start := 0
	for order, panel := range a.self {
		k.Multiply(u.Columns(start), own.Columns(firstRow(order)*a.channels), panel, n, false)
		start += panel.N
	}
	logits := w.self[:n*a.heads]
	clear(logits)
	a.visitSelf(len(a.self), func(h, from, at, size int) {
		for i := range n {
			f, u := own.Data[i*own.Stride+from:][:size], u.Data[i*u.Stride+at:][:size]
			for j := range f {
				logits[i*a.heads+h] += u[j] * f[j]
			}
		}
	})
	return logits
}

// weightSelf returns for each of n vertices its own features times the
// coefficient of the vertex itself, once for each head: what the self weights
// are applied to.
func (a *attention[T]) weightSelf(w *scratch[T], own simd.Rows[T], n, orders int) simd.Rows[T] {
	rows := a.selfRows(w, orders)
	a.visitSelf(orders, func(h, from, at, size int) {
		for i := range n {
			f, to := own.Data[i*own.Stride+from:][:size], rows.Data[i*rows.Stride+at:][:size]
			for j := range f {
				to[j] = w.self[i*a.heads+h] * f[j]
			}
		}
	})
	return rows
}

// selfRows is scratch for a row of every vertex of a block: for each order and
// head the order's components.
func (a *attention[T]) selfRows(w *scratch[T], orders int) simd.Rows[T] {
	return simd.Rows[T]{Data: w.selfRows, Stride: a.heads * (2*orders - 1) * a.channels}
}

// visitSelf calls f for each head and order: size features from the place from
// on correspond to the place at of a row of selfRows.
func (a *attention[T]) visitSelf(orders int, f func(h, from, at, size int)) {
	at := 0
	for order := range orders {
		size := rowsOf(order) * a.channels
		for h := range a.heads {
			f(h, firstRow(order)*a.channels, at, size)
			at += size
		}
	}
}
