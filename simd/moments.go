package simd

// Rings is a run of consecutive vertices p together with their directed edges
// e = (p ← q). Edge arrays belong to the whole mesh and are indexed by e in
// [Offsets[0], Offsets[n]); Weights, and the logits and coefficients of the
// kernels, belong to the run and begin with the edge Offsets[0].
type Rings[T Float] struct {
	Offsets   []int64 // n+1: the ring of vertex i is [Offsets[i], Offsets[i+1])
	Neighbors []int32 // q

	// The direction θ_pq of q in p's gauge and the transport angle g_{q→p}.
	// An edge without a direction in the tangent plane has cos θ = sin θ = 0.
	CosTheta, SinTheta, CosTransport, SinTransport []T

	// The features of all vertices of the mesh; row q is f_q.
	Features Rows[T]

	// The weights w_s(e), [Sets, edges of the run]: how much an edge counts in
	// each of several radial sets, whose moments are kept apart.
	Weights []T
	Sets    int
}

// Vertices is the number of vertices of the run.
func (r *Rings[T]) Vertices() int { return len(r.Offsets) - 1 }

// weight is w_s of edge i of the run.
func (r *Rings[T]) weight(set, i int) T { return r.Weights[set*r.Edges()+i] }

// Edges is the number of edges of the run.
func (r *Rings[T]) Edges() int { return int(r.Offsets[len(r.Offsets)-1] - r.Offsets[0]) }

// Form says which rows a Group has.
type Form int

// The forms. With the edge-aligned features x + iy = ẑ_n = e^{in(g-θ)} z_n(q),
// in which the kernel K(θ) = ρ_m(θ) K(0) ρ_n(-θ) is constant, the rows are
const (
	Scalar   Form = iota // 0 → 0: z_0
	ToScalar             // n → 0: x, y
	Lift                 // 0 → m: z_0 cos mθ, z_0 sin mθ
	Minus                // n → m: Re e^{imθ}ẑ_n, Im e^{imθ}ẑ_n
	Both                 // n → m: x cos mθ, x sin mθ, y cos mθ, y sin mθ
)

var rowsOf = [...]int{Scalar: 1, ToScalar: 2, Lift: 2, Minus: 2, Both: 4}

// Rows is the number of rows of a group of this form.
func (f Form) Rows() int { return rowsOf[f] }

// Group is the moments that carry order In to order Out. Of the two
// frequencies |Out-In| and Out+In of the kernel basis, Minus has the first
// only; Both has the two, e^{imθ}ẑ_n = (x + iy) e^{imθ} and e^{imθ}·conj ẑ_n =
// (x - iy) e^{imθ}.
type Group struct {
	In, Out int
	Form    Form
	Row     int // the first row, within the rows of order Out
}

// Moments is the list of moments m_t(e) of an edge, each a row of Channels
// real numbers, that the basis of the kernels K(θ) needs (app. A, in the form
// of "aggregate first"): Σ_q K(θ_pq) ρ(g_{q→p}) f_q = W · Σ_q moments(edge).
//
// A direction that does not exist has e^{ikθ} = 0 for k ≥ 1: on such an edge
// the moments of frequency 0 remain, z_0 and e^{ing} z_n from order n to
// itself. Of a feature that is not finite the others may be NaN in place of 0.
type Moments struct {
	In, Out  int // the highest order of f_q and of the result
	Channels int // of a row: a multiple of Lanes
	Groups   []Group
	Rows     []int // how many rows each of the orders 0..Out has
}

// NewMoments lists the moments for kernels from orders 0..in to 0..out with
// frequencies up to band; band < 0 means all.
func NewMoments(in, out, band, channels int) *Moments {
	plan := &Moments{In: in, Out: out, Channels: channels, Rows: make([]int, out+1)}
	for m := 0; m <= out; m++ {
		for n := 0; n <= in; n++ {
			form, exists := formOf(n, m, band)
			if !exists {
				continue
			}
			plan.Groups = append(plan.Groups, Group{In: n, Out: m, Form: form, Row: plan.Rows[m]})
			plan.Rows[m] += form.Rows()
		}
	}
	return plan
}

func formOf(n, m, band int) (form Form, exists bool) {
	within := func(frequency int) bool { return band < 0 || frequency <= band }
	switch {
	case n == 0 && m == 0:
		return Scalar, true
	case m == 0:
		return ToScalar, within(n)
	case n == 0:
		return Lift, within(m)
	case within(m + n):
		return Both, true
	default:
		return Minus, within(max(m-n, n-m))
	}
}

// TotalRows is the number of rows of one edge.
func (p *Moments) TotalRows() (total int) {
	for _, rows := range p.Rows {
		total += rows
	}
	return total
}

// Size is the length of a vertex's row of moments: order by order, for each
// head, for each set, the order's rows of Channels numbers.
func (p *Moments) Size(heads, sets int) int { return heads * sets * p.TotalRows() * p.Channels }

// Block is where, in a vertex's row, the moments of order m lie.
func (p *Moments) Block(m, heads, sets int) (start, size int) {
	unit := heads * sets * p.Channels
	for _, rows := range p.Rows[:m] {
		start += rows * unit
	}
	return start, p.Rows[m] * unit
}
