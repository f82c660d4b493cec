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
	// factors holds for each order with a query its two factors; nil where they
	// are no smaller than their product.
	factors []queryFactors[T]
	// self holds the matrices [components, heads·components] to the part of U_p
	// for the vertex itself (app. D.4); nil without it.
	self     []*simd.Panel[T]
	channels int // padded, of f_p
}

// queryFactors computes U_p of one order in two steps. A head's queries have
// only its own channels, so with several heads that takes fewer products.
type queryFactors[T simd.Float] struct {
	queries *simd.Panel[T]   // [components, heads·components of a head]: Q_p/√d
	keys    []*simd.Panel[T] // of each head [components of a head, rings·rows·channels]
}

func newAttention[T simd.Float](s convolutionSpec, maps headMaps, p layerParameters) *attention[T] {
	orders := min(s.in.Order, s.out.Order)
	a := &attention[T]{
		heads: s.heads, rings: s.rings, scaled: !s.mean, pairs: s.queryRadial,
		moments:  simd.NewMoments(s.in.Order, orders, s.band, s.in.padded()),
		channels: s.in.padded(),
	}
	k := newKeys(s, maps, p)
	for order := range orders + 1 {
		if a.moments.Rows[order] == 0 {
			a.query = append(a.query, nil)
			continue
		}
		a.query = append(a.query, pack[T](k.fold(order, s.rings, a.pairs, k.moments(a.moments, order))))
	}
	if !a.pairs && k.width < a.channels && a.heads > 1 {
		for order := range orders + 1 {
			a.factors = append(a.factors, newQueryFactors[T](k, order, s.rings, k.moments(a.moments, order)))
		}
	}
	if s.selfTerm {
		for order := range orders + 1 {
			a.self = append(a.self, pack[T](k.fold(order, 1, false, k.own(order))))
		}
	}
	return a
}

func newQueryFactors[T simd.Float](k *keys, order, rings int, key keyMatrix) (f queryFactors[T]) {
	var queries []*mat.Dense
	for h := range k.query {
		var q mat.Dense
		q.Scale(k.scale, k.query[h].selfMatrix(order, 0, k.width))
		queries = append(queries, &q)
		var keys []*mat.Dense
		for r := range rings {
			keys = append(keys, mat.DenseCopyOf(key.of(h, r).T()))
		}
		f.keys = append(f.keys, pack[T](abreast(keys)))
	}
	f.queries = pack[T](abreast(queries))
	return f
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

// keys are the kernels of the queries and keys of each head, or the gradients
// with respect to them.
type keys struct {
	query, key, self []*kernelWeights // self: of the vertex's own key, or nil
	width            int              // channels of a head's key
	scale            float64          // 1/√d
}

func newKeys(s convolutionSpec, maps headMaps, p layerParameters) *keys {
	k := &keys{
		query: maps.of(s.queryKernel(p["query"]), maps.query),
		key:   maps.of(s.kernel(p["key"], s.rings), maps.key),
		width: s.out.Channels / s.heads,
	}
	if s.selfTerm {
		k.self = maps.of(s.selfKernel(p["self_key"]), maps.key)
	}
	k.scale = 1 / math.Sqrt(float64(k.width*s.out.Components()))
	return k
}

// keyMatrix is the matrix of a head's keys in one ring, and what to do with
// the gradient with respect to it.
type keyMatrix struct {
	of   func(h, ring int) *mat.Dense
	read func(to *keys, h, ring int, gradient *mat.Dense)
}

// moments is the matrices that give keys of one order from moments.
func (k *keys) moments(plan *simd.Moments, order int) keyMatrix {
	return keyMatrix{
		func(h, ring int) *mat.Dense { return k.key[h].momentMatrix(plan, order, ring, k.width) },
		func(to *keys, h, ring int, gradient *mat.Dense) {
			to.key[h].readMoments(gradient, plan, order, ring, k.width)
		},
	}
}

// own is those that give the vertex's own key.
func (k *keys) own(order int) keyMatrix {
	return keyMatrix{
		func(h, _ int) *mat.Dense { return k.self[h].selfMatrix(order, 0, k.width) },
		func(to *keys, h, _ int, gradient *mat.Dense) { to.self[h].readSelf(gradient, order, 0, k.width) },
	}
}

// visit calls f for the products Q·Kᵀ of queries and keys that fold puts beside
// one another: at counts the places, on each of which f is called for every
// pair of rings that is added there. A plain query has one ring, which goes
// with every ring of the key; with pairs the rings of both are combined.
func (k *keys) visit(rings int, pairs bool, f func(at, h, queryRing, keyRing int)) {
	at := 0
	for h := range k.query {
		for r := range rings {
			if !pairs {
				f(at, h, 0, r)
				at++
				continue
			}
			for s := r; s < rings; s++ {
				f(at, h, r, s)
				if s != r {
					f(at, h, s, r)
				}
				at++
			}
		}
	}
}

// fold returns the matrix from f_p to U_p of one order: for each head and set
// Q·Kᵀ/√d, beside one another.
func (k *keys) fold(order, rings int, pairs bool, key keyMatrix) *mat.Dense {
	var parts []*mat.Dense
	k.visit(rings, pairs, func(at, h, queryRing, keyRing int) {
		var u mat.Dense
		u.Mul(k.query[h].selfMatrix(order, queryRing, k.width), key.of(h, keyRing).T())
		u.Scale(k.scale, &u)
		if at < len(parts) {
			parts[at].Add(parts[at], &u)
		} else {
			parts = append(parts, &u)
		}
	})
	return abreast(parts)
}

// sets is the number of radial sets of U_p.
func (a *attention[T]) sets() int {
	if a.pairs {
		return pairCount(a.rings)
	}
	return a.rings
}

// stride is the length of a row of U_p, and of the moments of the values that
// take its place in w.moments.
func (a *attention[T]) stride(values *simd.Moments) int {
	return max(a.moments.Size(a.heads, a.sets()), values.Size(a.heads, a.rings))
}

// forward computes the coefficients of the edges of rings and the moments of
// the values weighted by them; own begins with the features of the first
// vertex. With a self term its coefficients stay in w.self.
func (a *attention[T]) forward(k simd.Kernels[T], w *scratch[T], values *simd.Moments, rings *simd.Rings[T], own simd.Rows[T], coefficients []T) simd.Rows[T] {
	n := rings.Vertices()
	u := simd.Rows[T]{Data: w.moments, Stride: a.stride(values)}
	a.project(k, w, u, own, n)
	self := a.selfLogits(k, w, own, n)
	k.EdgeAttention(u, u, coefficients, self, a.moments, values, a.keyRings(w, rings), rings, a.heads, a.scaled)
	return u
}

// keyRings is rings with the weights that the keys have, in w.keys.
func (a *attention[T]) keyRings(w *scratch[T], rings *simd.Rings[T]) *simd.Rings[T] {
	w.keys = *rings
	keys := &w.keys
	if a.pairs {
		keys.Sets = a.sets()
		keys.Weights = w.pairs[:rings.Edges()*keys.Sets]
		pairWeights(keys.Weights, rings.Weights, a.rings)
	}
	return keys
}

// project computes U_p for n vertices.
func (a *attention[T]) project(k simd.Kernels[T], w *scratch[T], u, own simd.Rows[T], n int) {
	for order, panel := range a.query {
		if panel == nil {
			continue
		}
		start, size := a.moments.Block(order, a.heads, a.sets())
		u, f := u.Columns(start), own.Columns(firstRow(order)*a.channels)
		if a.factors == nil {
			k.Multiply(u, f, panel, n, false)
			continue
		}
		factors := &a.factors[order]
		q := simd.Rows[T]{Data: w.ofHeads, Stride: factors.queries.N}
		k.Multiply(q, f, factors.queries, n, false)
		for h, keys := range factors.keys {
			k.Multiply(u.Columns(h*size/a.heads), q.Columns(h*keys.K), keys, n, false)
		}
	}
}

// projectSelf computes the parts of U_p for the vertices themselves, as
// selfRows are laid out.
func (a *attention[T]) projectSelf(k simd.Kernels[T], u, own simd.Rows[T], n int) {
	start := 0
	for order, panel := range a.self {
		k.Multiply(u.Columns(start), own.Columns(firstRow(order)*a.channels), panel, n, false)
		start += panel.N
	}
}

// selfLogits computes [n, heads] logits ⟨U_p, f_p⟩ of the vertices themselves,
// or returns nil without a self term.
func (a *attention[T]) selfLogits(k simd.Kernels[T], w *scratch[T], own simd.Rows[T], n int) []T {
	if a.self == nil {
		return nil
	}
	u := a.selfRows(w, len(a.self))
	a.projectSelf(k, u, own, n)
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
