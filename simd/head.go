//go:build amd64 || arm64

package simd

import "math"

const (
	// headColumns is the number of classes whose scores are held at a time: so
	// many columns of the weights stay in the cache while the rows pass.
	headColumns = 128
	// headTile is the number of rows whose scores are held at a time, and
	// headBlock that between two looks at the same column.
	headTile  = 48
	headBlock = 240
)

// headScratch is what the kernels of the head hold: scores of a few rows and
// columns at a time, never the product.
type headScratch struct {
	scores [headTile * headColumns]float32
	bias   [headColumns]float32
	best   [headBlock]float32
	tail   [Lanes]float32
	totals [headBlock]logSum
}

// scan calls see with the scores a·b + bias of each row and headColumns classes
// at a time from class first on, and their maximum; the entries of a row behind
// the last class are -∞. Every row sees its classes in rising order.
func (v *vector) scan(w *vectorScratch, a Rows[float32], b *Panel[float32], bias []float32, classes, rows int, see func(row, first int, scores []float32, most float32)) {
	for first := 0; first < classes; first += headColumns {
		n := min(headColumns, classes-first)
		padded := Padded(n)
		copy(w.bias[:n], bias[first:])
		for j := n; j < padded; j++ {
			w.bias[j] = noFloor
		}
		for row := 0; row < rows; row += headTile {
			tile := min(headTile, rows-row)
			scores := Rows[float32]{w.scores[:], headColumns}
			v.product(scores, a.From(row), b, first/Lanes, (first+padded)/Lanes, tile, Rows[float32]{Data: w.bias[:]}, noFloor)
			for i := range tile {
				x := scores.Row(i, padded)
				see(row+i, first, x, v.rowMax(&x[0], padded))
			}
		}
	}
}

// ArgMax: see [Kernels].
func (v *vector) ArgMax(labels []int32, a Rows[float32], b *Panel[float32], bias []float32, classes, rows int) {
	w := vectorScratches.Get().(*vectorScratch)
	defer vectorScratches.Put(w)
	for ; rows > 0; rows -= headBlock {
		n := min(headBlock, rows)
		for i := range n {
			labels[i], w.best[i] = 0, noFloor
		}
		v.scan(w, a, b, bias, classes, n, func(row, first int, scores []float32, most float32) {
			if most > w.best[row] {
				labels[row], w.best[row] = int32(first+indexOf(scores, most)), most
			}
		})
		labels, a = labels[n:], a.after(n)
	}
}

// indexOf is the first index of a value that x has.
func indexOf(x []float32, value float32) int {
	i := 0
	for x[i] != value {
		i++
	}
	return i
}

// after is the view without its first n rows, which may be all.
func (r Rows[T]) after(n int) Rows[T] {
	return Rows[T]{r.Data[min(n*r.Stride, len(r.Data)):], r.Stride}
}

// TopK: see [Kernels].
func (v *vector) TopK(labels []int32, logs []float32, a Rows[float32], b *Panel[float32], bias []float32, classes, k, rows int) {
	w := vectorScratches.Get().(*vectorScratch)
	defer vectorScratches.Put(w)
	for ; rows > 0; rows -= headBlock {
		n := min(headBlock, rows)
		for i := range n {
			w.totals[i] = newLogSum()
		}
		v.scan(w, a, b, bias, classes, n, func(row, first int, scores []float32, most float32) {
			v.addExp(&w.totals[row], scores, most)
			best := newRanking(labels[row*k:], logs[row*k:], first, k)
			if !best.takes(most) {
				return
			}
			for j, x := range scores[:min(len(scores), classes-first)] {
				best.offer(int32(first+j), x)
			}
		})
		for i := range n {
			best := newRanking(labels[i*k:], logs[i*k:], classes, k)
			best.finish()
			total := &w.totals[i]
			total.finish()
			for j, x := range logs[i*k:][:k] {
				logs[i*k+j] = float32(total.logProbability(float64(x)))
			}
		}
		labels, logs, a = labels[n*k:], logs[n*k:], a.after(n)
	}
}

// addExp adds numbers, a multiple of Lanes, whose greatest is most, to a sum.
// Infinities, which leave no difference to take, are added one by one.
func (v *vector) addExp(s *logSum, x []float32, most float32) {
	if !(math.Abs(float64(most)) <= math.MaxFloat32) || math.IsInf(s.greatest, 1) {
		for _, value := range x {
			s.add(float64(value))
		}
		return
	}
	if m := float64(most); m > s.greatest {
		s.sum *= math.Exp(s.greatest - m)
		s.greatest = m
	}
	s.sum += float64(v.sumExp(&x[0], len(x), float32(s.greatest)))
}

// LogSoftmax: see [Kernels].
func (v *vector) LogSoftmax(x Rows[float32], n, rows int) {
	w := vectorScratches.Get().(*vectorScratch)
	defer vectorScratches.Put(w)
	whole := n / Lanes * Lanes
	for i := range rows {
		row := x.Row(i, n)
		total := newLogSum()
		for from := 0; from < whole; from += headColumns {
			part := row[from:min(from+headColumns, whole)]
			v.addExp(&total, part, v.rowMax(&part[0], len(part)))
		}
		for j := copy(w.tail[:], row[whole:]); j < Lanes; j++ {
			w.tail[j] = noFloor
		}
		v.addExp(&total, w.tail[:], v.rowMax(&w.tail[0], Lanes))
		total.finish()
		first, second := float32(total.greatest), float32(total.log)
		for j := 0; j < whole; j += maxRun {
			v.shift(&row[j], min(maxRun, whole-j), first, second)
		}
		for j := whole; j < n; j++ {
			row[j] = row[j] - first - second
		}
	}
}
