package core

import (
	"unsafe"

	"libeman/geometry/memory"
	"libeman/geometry/parallel"
	"libeman/simd"
)

// layerGradient is the backward pass of one layer, and the sums of the
// gradients of its matrices over the meshes of a step.
type layerGradient[T simd.Float] struct {
	convolution *convolutionGradient[T]
	spiral      *spiralGradient[T]
	activation  activationGradient[T]
	residual    *residualGradient[T]
	sums        []float64
}

// gradient is the gradient of a loss with respect to a model's parameters,
// summed over any number of meshes.
type gradient[T simd.Float] struct {
	model  *Model[T]
	layers []layerGradient[T]
	head   *headGradient[T]
}

func newGradient[T simd.Float](m *Model[T]) *gradient[T] {
	g := &gradient[T]{model: m, head: newHeadGradient(&m.head)}
	g.prepareLayers()
	return g
}

// refresh makes the transposed matrices anew after a refresh of the model.
func (g *gradient[T]) refresh() {
	g.prepareLayers()
	g.head.fill()
}

func (g *gradient[T]) prepareLayers() {
	m := g.model
	g.layers = nil
	for i := range m.layers {
		l, ledger := &m.layers[i], &ledger{}
		var lg layerGradient[T]
		if l.spiral != nil {
			lg.spiral = newSpiralGradient(l.spiral, ledger)
		} else {
			lg.convolution = newConvolutionGradient(l.convolution, ledger)
			lg.activation = newActivationGradient(&l.activation, ledger)
			lg.residual = newResidualGradient(l.residual, ledger)
		}
		lg.sums = make([]float64, ledger.size)
		g.layers = append(g.layers, lg)
	}
}

// clear begins a new sum.
func (g *gradient[T]) clear() {
	for i := range g.layers {
		clear(g.layers[i].sums)
	}
	g.head.clear()
}

// parameters returns the gradient of every tensor of the model, in its order.
func (g *gradient[T]) parameters() (list [][]T) {
	byName := map[string][]float64{}
	for i := range g.layers {
		g.layers[i].parameterGradients(g.model, &g.model.layers[i], byName)
	}
	h := g.head
	wide := map[string][]T{
		"dense1.weight": unpadded(h.ofFirst, h.hidden, h.in, h.first.K),
		"dense1.bias":   h.ofFirstBias[:h.hidden],
		"dense2.weight": unpadded(h.ofSecond, h.classes, h.hidden, h.second.K),
		"dense2.bias":   h.ofSecondBias[:h.classes],
	}
	for _, p := range g.model.parameters {
		data, found := wide[p.Name]
		if !found {
			data = make([]T, len(p.Data))
			for i, x := range byName[p.Name] {
				data[i] = T(x)
			}
		}
		list = append(list, data)
	}
	return list
}

// unpadded is a matrix [rows, width] without the columns from columns on.
func unpadded[T simd.Float](data []T, rows, columns, width int) []T {
	if columns == width {
		return data
	}
	tight := make([]T, 0, rows*columns)
	for i := range rows {
		tight = append(tight, data[i*width:][:columns]...)
	}
	return tight
}

func (g *layerGradient[T]) parameterGradients(m *Model[T], l *layer[T], byName map[string][]float64) {
	var result layerParameters
	if g.spiral != nil {
		result = g.spiral.parameterGradients(g.sums)
	} else {
		result = g.convolution.parameterGradients(m.layerParameters(l.name), g.sums)
		g.activation.parameterGradients(g.sums, result)
		if g.residual != nil && g.residual.channel != nil {
			byName[l.residualName] = g.residual.weights(g.sums)
		}
	}
	for name, data := range result {
		byName[l.name+name] = data
	}
}

// gradientScratch is the memory that one thread needs for one block.
type gradientScratch[T simd.Float] struct {
	scratch[T]
	ofMoments  []T // as moments
	ofSelfRows []T // as selfRows
	ofHidden   []T // [headRows, hidden]
	sums       []T // of a layer, over a few blocks
}

// saved is what the forward pass keeps of a layer for the backward pass.
type saved[T simd.Float] struct {
	y     simd.Rows[T] // the layer's result
	plain simd.Rows[T] // before the non-linearity, where it matters
	alpha []T          // [edges, heads], of attention
	own   []T          // [vertices, heads], with a self term
}

// headArrays are some rows on their way through the dense layers.
type headArrays[T simd.Float] struct {
	lifted, ofLifted simd.Rows[T] // [rows, padded features], of vertices, from samples
	hidden, ofHidden simd.Rows[T] // [rows, padded hidden]
	scores           simd.Rows[T] // [rows, padded classes]
	losses           []float64    // of each tile of rows
	tileHits         []int
}

// gradientWorkspace is the memory of the passes over one mesh.
type gradientWorkspace[T simd.Float] struct {
	narrow     slab[T]
	wide       slab[float64]
	packed     simd.Rows[T] // the input features
	saved      []saved[T]
	gradients  [][]T // with respect to features of all points: see placeValues
	records    []T   // what goes along the edges, or to the vertices of spirals
	pooled     []float64
	partial    []float64 // [groups, sums of a layer]
	headArrays headArrays[T]
	workers    []gradientScratch[T]
}

const (
	// mostGroups bounds the number of partial sums of a layer's gradients, and
	// drainBlocks is the number of blocks that are summed in T.
	mostGroups, drainBlocks = 64, 8
)

// groupVertices is the number of vertices in one partial sum: it depends on
// the mesh alone.
func groupVertices(vertices int) int {
	blocks := (vertices + blockVertices - 1) / blockVertices
	return max(drainBlocks, (blocks+mostGroups-1)/mostGroups) * blockVertices
}

// groupsOf is the number of partial sums.
func groupsOf(vertices int) int {
	group := groupVertices(vertices)
	return (vertices + group - 1) / group
}

// extent is how large an input is.
type extent struct {
	points, vertices int64
	lifted           bool
	graph            func(from, to int) graphExtent
}

// graphExtent is how large a graph is, and the edges of its largest block.
type graphExtent struct{ vertices, edges, blockEdges int64 }

func (in *Input[T]) extent() extent {
	return extent{int64(in.points()), int64(in.Vertices()), in.Lift != nil, func(from, to int) graphExtent {
		g := in.graph(from, to)
		return graphExtent{int64(g.Vertices()), int64(g.Edges()), g.largestBlock}
	}}
}

// arrays lists what a workspace is made of.
func (w *gradientWorkspace[T]) arrays(g *gradient[T], in extent) (list []array[T], wide []array[float64]) {
	m, h, points := g.model, g.head, in.points
	rows := func(to *simd.Rows[T], n int64, width int) {
		to.Stride = width
		list = append(list, array[T]{&to.Data, n * int64(width)})
	}
	add := func(to *[]T, size int64) { list = append(list, array[T]{to, size}) }

	rows(&w.packed, points, m.spec.InputType().size())
	w.saved = make([]saved[T], len(m.layers))
	blockEdges, records, sums, groups := int64(0), int64(0), int64(h.sums()), groupsOf(int(points))
	for i := range m.layers {
		l, s := &m.layers[i], &w.saved[i]
		graph := in.graph(l.from, l.to)
		vertices, edges := graph.vertices, graph.edges
		blockEdges, groups = max(blockEdges, graph.blockEdges), max(groups, groupsOf(int(vertices)))
		rows(&s.y, vertices, l.out.size())
		sums = max(sums, int64(len(g.layers[i].sums)))
		if l.spiral != nil {
			if i > 0 {
				records = max(records, vertices*int64(l.spiral.weights.K))
			}
			continue
		}
		if l.activation.keepsInput() {
			rows(&s.plain, vertices, l.out.size())
		}
		if i > 0 {
			records = max(records, edges*int64(l.in.size()))
		}
		if a := l.convolution.attention; a != nil {
			add(&s.alpha, edges*int64(a.heads))
			if a.self != nil {
				add(&s.own, vertices*int64(a.heads))
			}
		}
	}
	w.gradients = make([][]T, m.buffers)
	for i := range w.gradients {
		add(&w.gradients[i], points*int64(m.widest()))
	}
	add(&w.records, records)

	held := int64(1)
	if m.spec.Task == TaskSegmentation {
		held = int64(h.rows(int(in.vertices)))
		if in.lifted {
			rows(&w.headArrays.lifted, held, h.first.K)
			rows(&w.headArrays.ofLifted, held, h.first.K)
		}
	}
	rows(&w.headArrays.hidden, held, h.second.K)
	rows(&w.headArrays.ofHidden, held, h.second.K)
	rows(&w.headArrays.scores, held, h.second.N)
	tiles := (held + headTile - 1) / headTile
	w.headArrays.tileHits = make([]int, tiles)
	sizes := m.scratchSizes(blockEdges)
	for i := range w.workers {
		k := &w.workers[i]
		for j, to := range k.scratch.arrays() {
			add(to, sizes[j])
		}
		add(&k.ofMoments, sizes[0])
		add(&k.ofSelfRows, sizes[5])
		add(&k.ofHidden, sizes[6])
		add(&k.sums, sums)
	}
	return list, []array[float64]{
		{&w.headArrays.losses, tiles},
		{&w.pooled, (points + poolRows - 1) / poolRows * int64(h.second.K)},
		{&w.partial, int64(groups) * sums},
	}
}

func newGradientWorkspace[T simd.Float](budget *memory.Budget, threads int) *gradientWorkspace[T] {
	return &gradientWorkspace[T]{
		narrow: slab[T]{arena: budget.NewArena("training")}, wide: slab[float64]{arena: budget.NewArena("training")},
		workers: make([]gradientScratch[T], threads),
	}
}

// free gives the memory back; the workspace may be used again.
func (w *gradientWorkspace[T]) free() {
	w.narrow.free()
	w.wide.free()
}

// prepare divides the workspace for a mesh.
func (w *gradientWorkspace[T]) prepare(g *gradient[T], in *Input[T]) error {
	narrow, wide := w.arrays(g, in.extent())
	err := w.narrow.divide(narrow)
	if err == nil {
		err = w.wide.divide(wide)
	}
	return err
}

// bytes is the size of a workspace for an input.
func (w *gradientWorkspace[T]) bytes(g *gradient[T], in extent) int64 {
	narrow, wide := w.arrays(g, in)
	var element T
	return total(narrow)*int64(unsafe.Sizeof(element)) + 8*total(wide)
}

// slab is memory that is divided anew for each mesh, and grows where it must.
type slab[T simd.Float] struct {
	arena *memory.Arena
	data  []T
}

func (s *slab[T]) free() {
	s.arena.Free()
	s.data = nil
}

// divide gives every array its part, aligned; what is in it is undefined.
func (s *slab[T]) divide(list []array[T]) (err error) {
	if size := total(list); int64(len(s.data)) < size {
		s.free()
		if s.data, err = memory.Make[T](s.arena, size); err != nil {
			return err
		}
	}
	rest := s.data
	for _, a := range list {
		*a.to = rest[:a.size:a.size]
		rest = rest[a.aligned():]
	}
	return nil
}

// total is the number of elements of arrays that are aligned each.
func total[T simd.Float](list []array[T]) (elements int64) {
	for _, a := range list {
		elements += a.aligned()
	}
	return elements
}

// aligned is the number of elements up to where the next array may begin.
func (a array[T]) aligned() int64 {
	const unit = memory.Alignment / 4
	return (a.size + unit - 1) / unit * unit
}

// gradientCall is one forward and backward pass over a mesh.
type gradientCall[T simd.Float] struct {
	*Runner[T]
	*gradientWorkspace[T]
	gradient *gradient[T]
	model    *Model[T]
	input    *Input[T]
	target   *Target
	progress
	loss float64
	hits int
}

// backward adds the gradient of scale·Σ weight·(-log p(label)) over a mesh's
// labels to g, and returns this loss and the number of labels that have the
// highest probability. rate is the dropout's, drawn from the seed.
func (r *Runner[T]) backward(w *gradientWorkspace[T], g *gradient[T], in *Input[T], target *Target, scale, rate float64, seed uint64, control *parallel.Control) (loss float64, hits int, err error) {
	m := g.model
	if err := m.checkInput(in); err != nil {
		return 0, 0, err
	}
	if in.points() == 0 || in.Vertices() == 0 {
		return 0, 0, invalidArgument("mesh", "a mesh without vertices teaches nothing")
	}
	if err := target.check(m.Rows(in.Vertices()), m.spec.Classes); err != nil {
		return 0, 0, err
	}
	if err := w.prepare(g, in); err != nil {
		return 0, 0, err
	}
	g.head.dropout = newDropout(rate, seed, "dropout", m.spec.Hidden)
	c := &gradientCall[T]{
		Runner: r, gradientWorkspace: w, gradient: g, model: m, input: in, target: target,
		progress: progress{control: control, stages: 3*len(m.layers) + 3},
	}
	if err := c.forward(); err != nil {
		return 0, 0, err
	}
	x, ofX := c.value(len(m.layers)), c.gradientOf(len(m.layers))
	if m.spec.Task == TaskClassification {
		err = c.classify(g.head, x, ofX, scale)
	} else {
		err = c.segment(g.head, x, ofX, scale)
	}
	if err == nil {
		err = c.layersBackward()
	}
	return c.loss, c.hits, err
}

// value is the features that are numbered as in placeValues.
func (c *gradientCall[T]) value(v int) simd.Rows[T] {
	if v == 0 {
		return c.packed
	}
	return c.saved[v-1].y
}

// gradientOf is the gradient with respect to a value; it has no data for the
// input of the network.
func (c *gradientCall[T]) gradientOf(v int) simd.Rows[T] {
	rows := simd.Rows[T]{Stride: c.model.typeOf(v).size()}
	if v > 0 {
		rows.Data = c.gradients[c.model.buffer[v]]
	}
	return rows
}

// forward runs the layers and keeps what the backward pass needs.
func (c *gradientCall[T]) forward() error {
	if err := packInput(c.pool, c.next(), c.model.spec.InputType(), c.input.graph(0, 0), c.input.Features, c.packed); err != nil {
		return err
	}
	for i := range c.model.layers {
		l, s, x := &c.model.layers[i], &c.saved[i], c.value(i)
		g := c.input.graph(l.from, l.to)
		err := c.pool.Range(c.next(), g.Vertices(), blockVertices, func(worker, begin, end int) error {
			w := &c.workers[worker].scratch
			if l.spiral != nil {
				l.spiral.forward(c.kernels, w, c.input.Spirals, x, s.y, begin, end)
				return nil
			}
			heads := l.convolution.heads
			l.convolution.forward(c.kernels, w, g, x, c.value(l.own(i)), s.y, begin, end, nil)
			if s.alpha != nil {
				copy(s.alpha[int(g.Offsets[begin])*heads:int(g.Offsets[end])*heads], w.coefficients)
			}
			if s.own != nil {
				copy(s.own[begin*heads:end*heads], w.self)
			}
			if l.residual != nil {
				l.residual.add(c.kernels, c.value(l.residualFrom).From(begin), s.y.From(begin), end-begin)
			}
			if s.plain.Data != nil {
				copy(s.plain.Data[begin*s.plain.Stride:end*s.plain.Stride], s.y.From(begin).Data)
			}
			l.activation.apply(c.kernels, s.y.From(begin), end-begin)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// layersBackward takes the gradient with respect to the last layer's result back
// through all layers.
func (c *gradientCall[T]) layersBackward() error {
	begun := make([]bool, len(c.model.layers)+1) // whether a gradient holds anything yet
	for i := len(c.model.layers) - 1; i >= 0; i-- {
		l := &c.model.layers[i]
		b := layerBackward[T]{
			gradientCall: c, i: i, layer: l, gradient: &c.gradient.layers[i], graph: c.input.graph(l.from, l.to),
			x: c.value(i), own: c.value(l.own(i)),
			ofY: c.gradientOf(i + 1), ofX: c.gradientOf(i), ofOwn: c.gradientOf(l.own(i)), fresh: !begun[i],
		}
		begun[i] = true
		if l.residual != nil {
			b.residualInput, b.ofInput, b.freshInput = c.value(l.residualFrom), c.gradientOf(l.residualFrom), !begun[l.residualFrom]
			begun[l.residualFrom] = true
		}
		if err := b.run(); err != nil {
			return err
		}
	}
	return nil
}

// layerBackward is the backward pass through one layer.
type layerBackward[T simd.Float] struct {
	*gradientCall[T]
	i                     int
	layer                 *layer[T]
	gradient              *layerGradient[T]
	graph                 *Graph[T]
	x, own, residualInput simd.Rows[T] // the layer's input, its points' own, and what is added to its output
	ofY                   simd.Rows[T] // changed
	ofX, ofOwn, ofInput   simd.Rows[T] // no data where the input is the network's
	fresh, freshInput     bool         // ofX, ofInput do not hold anything yet
}

func (b *layerBackward[T]) run() error {
	err := b.grouped(b.next(), b.graph.Vertices(), len(b.gradient.sums), b.block, func(sums []float64) {
		for i, x := range sums {
			b.gradient.sums[i] += x
		}
	})
	if err != nil || b.ofX.Data == nil {
		b.stage++
		return err
	}
	return b.gather()
}

// block treats the points [begin, end) that the layer computes. It begins the
// gradients with respect to their own features; gather begins the others.
func (b *layerBackward[T]) block(w *gradientScratch[T], begin, end int, sums []T) error {
	k, n, s := b.kernels, end-begin, &b.saved[b.i]
	ofY := b.ofY.From(begin)
	if b.fresh && b.layer.from <= b.layer.to {
		clearRows(b.ofX, begin, end)
	}
	if l := b.gradient.spiral; l != nil {
		records := simd.Rows[T]{Stride: l.weights.N}
		if b.ofX.Data != nil {
			records.Data = b.records[begin*l.weights.N:]
		}
		l.backward(k, &w.scratch, b.input.Spirals, b.x, s.y.From(begin), ofY, records, begin, end, sums)
		return nil
	}
	var plain simd.Rows[T]
	if s.plain.Data != nil {
		plain = s.plain.From(begin)
	}
	b.gradient.activation.backward(k, ofY, plain, s.y.From(begin), n, sums)
	if r := b.gradient.residual; r != nil {
		if b.freshInput {
			clearRows(b.ofInput, begin, end)
		}
		r.backward(k, ofY, b.residualInput.From(begin), from(b.ofInput, begin), n, sums)
	}
	heads := b.layer.convolution.heads
	first, last := int(b.graph.Offsets[begin]), int(b.graph.Offsets[end])
	block := convolutionBlock[T]{
		graph: b.graph, begin: begin, end: end, x: b.x, targets: b.own.From(begin),
		gradient: ofY, to: from(b.ofOwn, begin), sums: sums,
	}
	block.records.Stride = b.layer.in.size()
	if b.ofX.Data != nil {
		block.records.Data = b.records[first*block.records.Stride:]
	}
	if s.alpha != nil {
		block.alpha = s.alpha[first*heads : last*heads]
	}
	if s.own != nil {
		block.own = s.own[begin*heads : end*heads]
	}
	b.gradient.convolution.backward(k, w, &block)
	return nil
}

// from is the rows from begin on, of no data none.
func from[T simd.Float](x simd.Rows[T], begin int) simd.Rows[T] {
	if x.Data == nil {
		return x
	}
	return x.From(begin)
}

// clearRows sets the rows [begin, end) to zero, where there is data.
func clearRows[T simd.Float](x simd.Rows[T], begin, end int) {
	if x.Data != nil && begin < end {
		clear(x.Data[begin*x.Stride : end*x.Stride])
	}
}

// gather adds up what reaches each point from others.
func (b *layerBackward[T]) gather() error {
	places, offsets, err := b.graph.incoming()
	if b.layer.spiral != nil {
		places, offsets, err = b.input.Spirals.places()
	}
	if err != nil {
		return err
	}
	width := b.ofX.Stride
	records := simd.Rows[T]{Data: b.records, Stride: width}
	begun := b.graph.Vertices() // points whose gradients hold something
	switch {
	case !b.fresh:
		begun = b.graph.Sources()
	case b.layer.from > b.layer.to:
		begun = 0
	}
	return b.pool.Range(b.next(), len(offsets)-1, groupVertices(len(offsets)-1), func(_, begin, end int) error {
		clearRows(b.ofX, max(begin, begun), end)
		b.kernels.Gather(b.ofX.From(begin), records, places, offsets[begin:end+1], width)
		return nil
	})
}

// grouped runs body on all blocks of so many vertices; the sums that it adds to,
// size of them, are added up in an order that does not depend on the threads, and
// given to finish.
func (c *gradientCall[T]) grouped(control *parallel.Control, vertices, size int, body func(w *gradientScratch[T], begin, end int, sums []T) error, finish func(sums []float64)) error {
	group := groupVertices(vertices)
	err := c.pool.Range(control, vertices, group, func(worker, begin, end int) error {
		w := &c.workers[worker]
		sums, total := w.sums[:size], c.partial[begin/group*size:][:size]
		clear(sums)
		clear(total)
		for at := begin; at < end; at += blockVertices {
			if err := body(w, at, min(at+blockVertices, end), sums); err != nil {
				return err
			}
			if (at-begin)/blockVertices%drainBlocks == drainBlocks-1 || at+blockVertices >= end {
				for i, x := range sums {
					total[i] += float64(x)
				}
				clear(sums)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for at := size; at < groupsOf(vertices)*size; at += size {
		for i, x := range c.partial[at:][:size] {
			c.partial[i] += x
		}
	}
	finish(c.partial[:size])
	return nil
}
