// Package core holds the networks: feature types, kernel bases, the layers of
// EMAN ("Equivariant Mesh Attention Networks", Basu et al., TMLR 2022),
// GEM-CNN and SpiralNet++, models, their files, and inference. Section and
// appendix numbers in this package are the paper's.
//
// A [Model] is made from a [Spec], the description of a network, with random
// parameters ([NewModel]), given ones ([NewModelFrom]), a file ([Load],
// [Decode]) or a checkpoint of the authors' code ([FromAuthors]). A [Runner]
// applies it to an [Input]: a [Graph], which is a mesh as layers see it, and
// features of its vertices; or, for a network that does not see the
// triangulation ([SurfaceSpec]), graphs of samples of the surface on several
// [Level]s, features of the samples, and the [Lift] from these to the vertices
// that are labelled.
//
// Everything is generic over float32, which ships, and float64, in which the
// reference vectors are met to 1e-9.
//
// # How a layer is computed
//
// The weights of a kernel K(θ) are linear in the moments e^{ikθ}ẑ of an edge,
// so they are applied once per vertex, to Σ_q α_pq·moments, and not once per
// edge; an attention layer's query is multiplied with the key's weights first,
// and a logit is then a product with the moments as well (simd.Moments,
// convolution, attention). Vertices are taken in blocks of blockVertices. What
// a block needs is one thread's scratch; beside it there are as many arrays of
// features of all vertices as are wanted at a time (placeValues), three where no
// features wait for a way up, and nothing of the size of the moments or of the
// classes. The blocks are fixed and sums over blocks are taken in order, so the
// bits of a result do not depend on the number of threads.
//
// Features lie in memory as simd.Kernels says; arrays of callers are
// [vertices, channels, components] with the components rho_0; Re, Im of rho_1;
// Re, Im of rho_2; and so forth.
package core
