package core

import (
	"gonum.org/v1/gonum/mat"

	"libeman/simd"
)

// headMaps are the maps by which the heads of an attention layer see queries,
// keys and values. Either head h owns the h-th group of channels of each (the
// authors' code), or (app. D.3)
//
//	head_h = Att(W^h_Q Q, W^h_K K, W^h_V V),  f' = W^O·Concat(head_1, …, head_H)
//
// with equivariant W: real on rho_0, complex on rho_n. The H matrices
// [channels/H, channels] lie under one another in one tensor.
type headMaps struct {
	heads, channels            int
	query, key, value, combine *kernelWeights // nil: groups of channels
}

func newHeadMaps(s convolutionSpec, p layerParameters) headMaps {
	m := headMaps{heads: s.heads, channels: s.out.Channels}
	if s.projected {
		read := func(name string) *kernelWeights {
			return newKernelWeights(p[name], SelfBasis(s.out.Order, s.out.Order), s.out, s.out, 1)
		}
		m.query, m.key, m.value, m.combine = read("head_query"), read("head_key"), read("head_value"), read("head_output")
	}
	return m
}

// span is the rows of head h.
func (m headMaps) span(h int) (from, to int) {
	width := m.channels / m.heads
	return h * width, (h + 1) * width
}

// apply multiplies the matrix of order m of a self kernel by a; a nil kernel
// is the identity.
func apply(kernel *kernelWeights, m int, a *complexMatrix) *complexMatrix {
	if kernel == nil {
		return a
	}
	return kernel.matrix(part{in: m, out: m}).times(a)
}

// of returns, for each head, the part of a query or key kernel that it sees;
// kernel is m.query or m.key.
func (m headMaps) of(w, kernel *kernelWeights) (heads []*kernelWeights) {
	for h := range m.heads {
		from, to := m.span(h)
		heads = append(heads, w.mapped(to-from, func(order int, a *complexMatrix) *complexMatrix {
			return apply(kernel, order, a).slice(from, to)
		}))
	}
	return heads
}

// values returns, for each head, the kernel from its weighted features to the
// result of the layer, with the angular bias.
func (m headMaps) values(w *kernelWeights, angles [][]float64) (heads []*kernelWeights) {
	for h := range m.heads {
		from, to := m.span(h)
		heads = append(heads, w.mapped(w.out.Channels, func(order int, a *complexMatrix) *complexMatrix {
			result := apply(m.combine, order, apply(m.value, order, a).only(from, to))
			if order > 0 && angles != nil {
				result.rotate(angles[order-1])
			}
			return result
		}))
	}
	return heads
}

// packMoments stacks the heads' weights of the moments: for each order the
// matrix [heads·rings·rows·channels, components], or nil without moments.
func packMoments[T simd.Float](plan *simd.Moments, s convolutionSpec, heads []*kernelWeights) (panels []*simd.Panel[T]) {
	for order, rows := range plan.Rows {
		if rows == 0 {
			panels = append(panels, nil)
			continue
		}
		var stack []*mat.Dense
		for _, w := range heads {
			for ring := range s.rings {
				stack = append(stack, w.momentMatrix(plan, order, ring, s.out.padded()))
			}
		}
		panels = append(panels, pack[T](stacked(stack)))
	}
	return panels
}

// packHeads is the same weights head by head, for the orders where a head's own
// channels take fewer strips of a panel than all channels: nil for others.
func packHeads[T simd.Float](plan *simd.Moments, s convolutionSpec, heads []*kernelWeights) [][]*simd.Panel[T] {
	panels := make([][]*simd.Panel[T], len(plan.Rows))
	if s.heads == 1 || s.projected {
		return panels
	}
	width := s.out.Channels / s.heads
	for order, rows := range plan.Rows {
		if rows == 0 || simd.Padded(rowsOf(order)*width) >= rowsOf(order)*s.out.padded() {
			continue
		}
		for h, w := range heads {
			w = w.mapped(width, func(_ int, a *complexMatrix) *complexMatrix { return a.slice(h*width, (h+1)*width) })
			var stack []*mat.Dense
			for ring := range s.rings {
				stack = append(stack, w.momentMatrix(plan, order, ring, width))
			}
			panels[order] = append(panels[order], pack[T](stacked(stack)))
		}
	}
	return panels
}

// packSelf stacks the heads' weights of the vertex's own features: for each
// order the matrix [heads·components, components].
func packSelf[T simd.Float](s convolutionSpec, heads []*kernelWeights) (panels []*simd.Panel[T]) {
	for order := 0; order <= min(s.in.Order, s.out.Order); order++ {
		var stack []*mat.Dense
		for _, w := range heads {
			stack = append(stack, w.selfMatrix(order, 0, s.out.padded()))
		}
		panels = append(panels, pack[T](stacked(stack)))
	}
	return panels
}

// stacked puts matrices of the same width under one another.
func stacked(matrices []*mat.Dense) *mat.Dense {
	height, width := matrices[0].Dims()
	result := mat.NewDense(len(matrices)*height, width, nil)
	for i, matrix := range matrices {
		result.Slice(i*height, (i+1)*height, 0, width).(*mat.Dense).Copy(matrix)
	}
	return result
}

// abreast puts matrices of the same height beside one another.
func abreast(matrices []*mat.Dense) *mat.Dense {
	height, width := matrices[0].Dims()
	result := mat.NewDense(height, len(matrices)*width, nil)
	for i, matrix := range matrices {
		result.Slice(0, height, i*width, (i+1)*width).(*mat.Dense).Copy(matrix)
	}
	return result
}
