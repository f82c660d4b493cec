// Package simd holds the operations in which a network spends its time, behind
// the interface [Kernels], and the floating-point environment they run in. It
// knows no networks and no meshes: matrices ([Rows], [Panel]), runs of vertices
// with their edges ([Rings]), and the list of an edge's moments ([Moments]).
//
// [Generic] is the kernels in plain Go. It comes first, for readers and for
// tests: what another implementation computes is what Generic computes, up to
// the order of additions.
//
// [Best] is the fastest kernels that run on this processor: AVX-512, AVX2
// with FMA, or NEON, in assembly that the program in the folder avo writes;
// so is the fastest [Geometry]. NEON has been tested on an emulated
// processor alone: how fast it is was never measured. The loops around it
// are in Go: products go by tiles whose sums stay in registers (vector.go),
// the head by tiles of scores that are scanned and forgotten (head.go),
// edges by chunks whose features are transported once and then meet the
// groups of moments, order by order, for the dots, the softmax and the sums
// of an attention layer while the chunk is in the nearest cache (edges.go).
// What a row, a vertex or an edge comes to does not depend on what is
// computed beside it, so results have the same bits however a mesh is
// divided among threads.
package simd
