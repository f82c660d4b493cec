// Package simd holds the operations in which a network spends its time, behind
// the interface [Kernels], and the floating-point environment they run in. It
// knows no networks and no meshes: matrices ([Rows], [Panel]), runs of vertices
// with their edges ([Rings]), and the list of an edge's moments ([Moments]).
//
// [Generic] is the kernels in plain Go. It comes first, for readers and for
// tests: what another implementation computes is what Generic computes, up to
// the order of additions.
package simd
