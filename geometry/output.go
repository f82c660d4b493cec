package geometry

import "libeman/geometry/parallel"

// RowWriter takes the rows [begin, end) of a result. It is called with each
// piece once, from several threads; rows is valid during the call only. An
// error ends the computation.
type RowWriter func(rows []float64, begin, end int) error

// WriteSlice writes packed rows of the given width.
func WriteSlice(destination []float64, width int) RowWriter {
	return func(rows []float64, begin, end int) error {
		copy(destination[width*begin:width*end], rows)
		return nil
	}
}

// outputRows is how many rows are computed before they are handed on: few
// enough to stay in the nearest cache.
const outputRows = 256

// writeRows fills one row for each vertex and hands them to write.
func (v *View) writeRows(width int, write RowWriter, fill func(row []float64, p int)) error {
	return v.writeBlocks(width, nil, write, func(rows []float64, begin, end int) error {
		for p := begin; p < end; p++ {
			row := rows[width*(p-begin):]
			fill(row[:width:width], p)
		}
		return nil
	})
}

// writeBlocks fills the rows of blocks of vertices and hands them to write.
func (v *View) writeBlocks(width int, control *parallel.Control, write RowWriter, fill func(rows []float64, begin, end int) error) error {
	scratch := v.resources.NewArena("scratch")
	defer scratch.Free()
	buffers, err := newBuffers[float64](v.resources, scratch, outputRows*width)
	if err != nil {
		return err
	}
	return v.resources.Threads.Range(control, v.VertexCount(), outputRows, func(worker, begin, end int) error {
		rows := buffers.of(worker)[:(end-begin)*width]
		if err := fill(rows, begin, end); err != nil {
			return err
		}
		return write(rows, begin, end)
	})
}
