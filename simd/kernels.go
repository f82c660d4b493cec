package simd

//go:generate go run github.com/golang/mock/mockgen@v1.6.0 -destination=mocksimd/kernels.go -package=mocksimd libeman/simd Kernels32

// Float is the element type of a computation: float32 is what ships, float64
// is what the reference vectors are checked with.
type Float interface{ float32 | float64 }

// Lanes is the number of channels that a row of features is padded to a
// multiple of: one AVX-512 register of float32. The channels added by padding
// are zero, and every kernel keeps them zero.
const Lanes = 16

// Padded is the smallest multiple of Lanes that is not below n.
func Padded(n int) int { return (n + Lanes - 1) / Lanes * Lanes }

// Rows is a view of a matrix: row i begins at Data[i*Stride].
type Rows[T Float] struct {
	Data   []T
	Stride int
}

// From is the view without its first n rows.
func (r Rows[T]) From(n int) Rows[T] { return Rows[T]{r.Data[n*r.Stride:], r.Stride} }

// Columns is the view without the first n entries of each row.
func (r Rows[T]) Columns(n int) Rows[T] { return Rows[T]{r.Data[n:], r.Stride} }

// Row is the first n entries of row i.
func (r Rows[T]) Row(i, n int) []T { return r.Data[i*r.Stride:][:n] }

// Activation is the function that a dense layer applies to its sums.
type Activation int

// The activations.
const (
	Identity Activation = iota
	ReLU                // max(x, 0)
	ELU                 // x for x > 0, otherwise e^x - 1
)

// Kernels are the operations in which nearly all time is spent, at the grain
// of a block of vertices, so that a call costs nothing beside its work. They
// allocate nothing, keep no state and may be called from any number of threads
// at once. [Generic] is the specification: the others compute the same
// formulas in another order of additions, and round accordingly.
//
// Every size is the caller's to check; a kernel indexes what the formulas
// name and nothing else.
//
// A vertex's features are 2L+1 rows (rho_0; Re, Im of rho_1; Re, Im of rho_2;
// …) of Padded(channels) numbers.
type Kernels[T Float] interface {
	// Name tells the instruction set: "generic", "avx2", "avx512", "neon".
	Name() string

	// Multiply computes c = a·b, or c += a·b, for rows rows of a [rows, b.K],
	// b [b.K, b.N] and c [rows, b.N].
	Multiply(c, a Rows[T], b *Panel[T], rows int, accumulate bool)

	// Dense computes c = f(a·b + bias) for an activation f; bias has b.N
	// entries. Shapes are those of Multiply.
	Dense(c, a Rows[T], b *Panel[T], bias []T, rows int, f Activation)

	// Add computes c += a for rows rows of n entries.
	Add(c, a Rows[T], n, rows int)

	// EdgeDot computes, for every edge e = (p ← q) of the rings, head h and
	// with t over the moments of plan (EMAN, §6: K_pqᵀ Q_p with the query
	// folded through the key),
	//
	//	logits[e, h] = Σ_s w_s(e) Σ_t u[p, t, h, s] · m_t(e).
	//
	// logits is [edges of the rings, heads]; a row of u is laid out as
	// plan.Size(heads, rings.Sets) says.
	EdgeDot(logits []T, u Rows[T], plan *Moments, rings *Rings[T], heads int)

	// Softmax replaces each ring's logits [edges, heads], head by head, by
	// exp(l) / Σ exp(l) (§6); with scaled it multiplies by the number of
	// terms, the paper's N_p. self [vertices, heads] holds one more term of
	// each ring, the vertex itself (app. D.4), or is nil. A ring with a NaN or
	// +∞ is NaN throughout.
	Softmax(logits, self []T, offsets []int64, heads int, scaled bool)

	// EdgeAggregate computes, for every vertex p of the rings and head h,
	//
	//	m[p, t, h, s] = Σ_e a[e, h] w_s(e) m_t(e)
	//
	// over the edges e of p's ring: the moments to which the learnt weights
	// are applied once per vertex. a is [edges of the rings, heads]. It is the
	// transpose of EdgeDot, with the same layout of a row.
	EdgeAggregate(m Rows[T], a []T, plan *Moments, rings *Rings[T], heads int)

	// EdgeAttention computes the attention coefficients a [edges of the rings,
	// heads] and with them the moments of the values: EdgeDot of u with the
	// moments key over the rings keys, Softmax with self, which may be nil, and
	// EdgeAggregate of the moments value over the rings values. The rings are
	// the same but for their weights and sets; value has key's In and Channels,
	// and no lower Out. m may be u: a vertex's row of u is not needed any more
	// when its row of m is written.
	EdgeAttention(m, u Rows[T], a, self []T, key, value *Moments, keys, values *Rings[T], heads int, scaled bool)

	// Rectify replaces n entries of each row by max(x, 0).
	Rectify(x Rows[T], n, rows int)

	// Regular applies ReLU to the samples of each channel's Fourier series
	// and transforms back: x = Bᵀ·ReLU(B·x) with B the samples of circle.
	Regular(x Rows[T], circle *Circle[T], channels, rows int)

	// Poly is Regular with, in place of ReLU, s·P(f/s): P a polynomial close
	// to ReLU and s the root mean square of f over the circle (see Circle).
	Poly(x Rows[T], circle *Circle[T], channels, rows int)

	// Gate applies max(x, 0) to rho_0 and z·σ(a|z| + b), σ(x) = 1/(1+e^-x), to
	// rho_1 … rho_order; a and b are [order, channels].
	Gate(x Rows[T], a, b []T, order, channels, rows int)

	// ArgMax finds for each row of a the index of the largest entry of
	// a·b + bias among the first classes, the lowest of equal ones, without
	// storing the product.
	ArgMax(labels []int32, a Rows[T], b *Panel[T], bias []T, classes, rows int)

	// TopK finds for each row the k largest entries x of a·b + bias among the
	// first classes, in falling order and the lowest index first among equal
	// ones, and their log-probabilities x - log Σ_j exp((a·b + bias)[i, j]),
	// without storing the product. labels and logs are [rows, k].
	TopK(labels []int32, logs []T, a Rows[T], b *Panel[T], bias []T, classes, k, rows int)

	// LogSoftmax replaces n entries of each row by x - log Σ exp(x).
	LogSoftmax(x Rows[T], n, rows int)

	Backward[T]
}

// Backward are the kernels of the backward passes: where a forward kernel maps
// x to y, they take the gradient of a loss with respect to y and compute that
// with respect to x.
type Backward[T Float] interface {
	// Correlate computes c += aᵀ·b for a [rows, k], b [rows, n] and c [k, n],
	// the gradient of the weights of a product. n is a multiple of Lanes.
	Correlate(c, a, b Rows[T], k, n, rows int)

	// CrossEntropy replaces n scores x of each row by the gradient
	// w·(softmax(x) - e_label) of the negative log-likelihood
	// w·(log Σ exp(x) - x[label]), w = weights[row]. It returns the sum of the
	// latter and the number of rows whose label is the first of the largest
	// scores. Rows of weight 0 count for nothing, whatever their label.
	CrossEntropy(x Rows[T], labels []int32, weights []T, n, rows int) (loss float64, hits int)

	// SoftmaxGradient replaces the gradient with respect to the coefficients
	// alpha of Softmax, and own for the vertices themselves (or nil), by that
	// with respect to the logits, α_e (dα_e - Σ α dα / Σ α), in gradient and
	// self. Shapes are those of Softmax.
	SoftmaxGradient(gradient, self, alpha, own []T, offsets []int64, heads int, scaled bool)

	// EdgeTranspose is the transpose of EdgeAggregate with respect to the
	// features: row e of records becomes, or with accumulate grows by,
	//
	//	Σ_h a[e, h] Σ_s w_s(e) Σ_t m[p, t, h, s] · ∂m_t(e)/∂f_q,
	//
	// the gradient that reaches the features of q along the edge e = (p ← q).
	// Rows of records belong to the run; a and m are those of EdgeAggregate.
	EdgeTranspose(records, m Rows[T], a []T, plan *Moments, rings *Rings[T], heads int, accumulate bool)

	// Gather adds up records: row i of x grows by n entries of the rows
	// edges[j] of records, j in [offsets[i], offsets[i+1]), in this order.
	Gather(x, records Rows[T], edges []int32, offsets []int64, n int)

	// RectifyGradient sets n entries of each row of g to 0 where those of y,
	// the result of Rectify or of a dense layer with ReLU, are.
	RectifyGradient(g, y Rows[T], n, rows int)

	// RegularGradient, PolyGradient and GateGradient replace the gradient g
	// with respect to the result of Regular, Poly and Gate by that with respect
	// to x, what these were applied to. The gradients of a and b are added to
	// da and db.
	RegularGradient(g, x Rows[T], circle *Circle[T], channels, rows int)
	PolyGradient(g, x Rows[T], circle *Circle[T], channels, rows int)
	GateGradient(g, x Rows[T], a, b, da, db []T, order, channels, rows int)

	// Adam makes one step: with g = Scale·gradient + Penalty·w of a parameter
	// w, first = Beta1·first + (1-Beta1)·g, second = Beta2·second +
	// (1-Beta2)·g² and w = Decay·w - Rate·first/(√second/Root + Epsilon).
	Adam(parameters, first, second, gradient []T, step *AdamStep)
}

// Kernels32 are the kernels of the shipped library.
type Kernels32 = Kernels[float32]

// Generic is the kernels in plain Go.
type Generic[T Float] struct{}

var (
	_ Kernels[float32] = Generic[float32]{}
	_ Kernels[float64] = Generic[float64]{}
)

// Name returns "generic".
func (Generic[T]) Name() string { return "generic" }
