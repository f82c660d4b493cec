"""Layers on features (V, C, 2L + 1): convolution, attention, biases, non-linearities (sections 3.6, 5, 6, app. D).

Messages are computed edge by edge with the kernels K(theta_e) and the representations rho(g_e) of kernels.py.
E is the number of directed edges, R of rings, H of heads, B of basis elements.
"""

import numpy as np

from .kernels import components, max_order, neighbor_basis, rotate, self_basis, self_positions

# ---- Radial weights ------------------------------------------------------------------------------------------------


def ring_weights(edges, rings, radial="global"):
    """Weight of each ring on each edge, (E, R): linear interpolation of the edge's length on R equidistant knots.

    The length is measured in units of the longest edge of the mesh (`global`, the authors' code), or of twice the
    mean length around p, and at most 1 (`local`). One ring means no dependence on length; the paper has none.
    """
    if rings == 1 or len(edges.length) == 0:
        return np.ones((len(edges.length), rings))
    if radial == "global":
        unit = edges.length.max()
    else:
        unit = 2 * scatter(edges.length, edges)[edges.center] / degrees(edges)[edges.center]
    at = np.minimum(edges.length / unit, 1) * (rings - 1)
    return np.maximum(1 - np.abs(at[:, None] - np.arange(rings)), 0)


# ---- Sums over neighbors -------------------------------------------------------------------------------------------


def degrees(edges):
    """N_p, (V,)."""
    return np.bincount(edges.center, minlength=edges.vertex_count)


def scatter(values, edges):
    """Sum over each vertex's neighbors: (E, ...) -> (V, ...)."""
    total = np.zeros((edges.vertex_count, *values.shape[1:]))
    np.add.at(total, edges.center, values)
    return total


def aggregate(total, terms, aggregation):
    """`sum` leaves the total of each vertex as it is (the paper), `mean` divides by its number of terms."""
    if aggregation == "sum":
        return total
    return total / np.maximum(terms, 1).reshape(-1, *[1] * (total.ndim - 1))


# ---- Linear equivariant maps ---------------------------------------------------------------------------------------


def apply_neighbor_kernel(x, edges, weight, rings, out_order, band_limit=None):
    """K(theta_pq) rho(g_{q->p}) f_q of each edge, (E, C_out, 2 out_order + 1).

    x: (V, C_in, 2L + 1); weight: (B, R, C_out, C_in); rings: (E, R). K(theta) is the sum over basis elements and rings
    of weight times ring weight times element.
    """
    transported = rotate(x[edges.neighbor], edges.transport)
    message = np.zeros((len(edges.center), weight.shape[2], 2 * out_order + 1))
    elements = neighbor_basis(max_order(x), out_order, edges.theta, band_limit, edges.directed)
    for element, element_weight in zip(elements, weight, strict=False):
        part = transported[:, :, components(element.in_order)]
        moved = np.einsum("exy,eiy->eix", element.matrix, part, optimize=True)
        for ring, channels in zip(rings.T, element_weight, strict=True):
            mixed = np.einsum("oi,eix->eox", channels, moved, optimize=True)
            message[:, :, components(element.out_order)] += ring[:, None, None] * mixed
    return message


def apply_self_kernel(x, weight, out_order):
    """K_self f_p, (V, C_out, 2 out_order + 1).

    weight: (1 + 2 min(L_in, L_out), C_out, C_in): the real factor of rho0, then a and b of a + ib on each rho_n.
    """
    result = np.zeros((len(x), weight.shape[1], 2 * out_order + 1))
    for element, channels in zip(self_basis(max_order(x), out_order), weight, strict=True):
        part = components(element.in_order)
        result[:, :, part] += np.einsum("oi,xy,viy->vox", channels, element.matrix[0], x[:, :, part], optimize=True)
    return result


# ---- Convolution and attention -------------------------------------------------------------------------------------


def gem_convolution(x, edges, weight, rings, out_order, *, band_limit=None, self_weight=None, aggregation="sum"):
    """f'_p = [K_self f_p +] sum or mean over q of K(theta_pq) rho(g_{q->p}) f_q (section 3.6); shapes as above."""
    message = apply_neighbor_kernel(x, edges, weight, rings, out_order, band_limit)
    result = aggregate(scatter(message, edges), degrees(edges), aggregation)
    if self_weight is not None:
        result += apply_self_kernel(x, self_weight, out_order)
    return result


def query_per_edge(x, edges, query, rings, out_order, band_limit=None):
    """K_query f_p for each edge p <- q, (E, C_att, 2 out_order + 1).

    The authors' query, weighted by the edge's rings: query is (B, R, C_att, C_in) in the numbering of the neighbor
    kernel, of which only the self elements matter.
    """
    positions = self_positions(max_order(x), out_order, band_limit)
    per_ring = [apply_self_kernel(x, weight, out_order) for weight in query[positions].swapaxes(0, 1)]
    return sum(ring[:, None, None] * f[edges.center] for ring, f in zip(rings.T, per_ring, strict=True))


def softmax_around(logits, edges, self_logits=None):
    """Softmax over the neighbors of each vertex, and over the vertex itself where self_logits are given.

    logits: (E, H); self_logits: (V, H). Returns two arrays of these shapes; the second is 0 without self_logits.
    """
    heads = logits.shape[1]
    largest = np.full((edges.vertex_count, heads), -np.inf)
    if self_logits is not None:
        largest[:] = self_logits
    np.maximum.at(largest, edges.center, logits)
    weight = np.exp(logits - largest[edges.center])
    self_weight = np.zeros_like(largest) if self_logits is None else np.exp(self_logits - largest)
    total = scatter(weight, edges) + self_weight
    return weight / total[edges.center], self_weight / np.where(total > 0, total, 1)


def split_heads(x, heads):
    """The flattened components of each row (channels first) as contiguous groups: (N, C, D) -> (N, H, C D / H)."""
    if x.shape[1] % heads:
        raise ValueError(f"{heads} heads do not divide {x.shape[1]} channels: a feature would be cut in two")
    return x.reshape(len(x), heads, x.shape[1] * x.shape[2] // heads)


def attend(query, key, value, edges, heads, *, self_terms=None):
    """N_p V softmax(K^T Q / sqrt(C_att)) around each vertex: features (V, C_out, D_out) and coefficients (E, H).

    query, key: (E, C_att, D_att); value: (E, C_out, D_out); C_att is the size of one head's key. self_terms are the
    query, key and value (V, ...) of the vertices themselves (app. D.4): the factor is then N_p + 1, and the
    coefficients of the vertices are returned as third (V, H).
    """
    scale = 1 / np.sqrt(key.shape[1] * key.shape[2] / heads)

    def logits(q, k):
        return scale * np.sum(split_heads(q, heads) * split_heads(k, heads), axis=2)

    self_logits = None if self_terms is None else logits(self_terms[0], self_terms[1])
    alpha, self_alpha = softmax_around(logits(query, key), edges, self_logits)
    terms = degrees(edges) + (self_terms is not None)
    alpha, self_alpha = alpha * terms[edges.center, None], self_alpha * terms[:, None]
    result = scatter((alpha[:, :, None] * split_heads(value, heads)), edges)
    if self_terms is not None:
        result += self_alpha[:, :, None] * split_heads(self_terms[2], heads)
    return result.reshape(edges.vertex_count, *value.shape[1:]), alpha, self_alpha


def eman_attention(
    x,
    edges,
    query,
    key,
    value,
    rings,
    out_order,
    *,
    band_limit=None,
    heads=1,
    query_radial=False,
    self_key=None,
    self_value=None,
    projections=None,
    aggregation="sum",
):
    """Attention of section 6: f'_p = sum over q of alpha_pq K_value(theta_pq) rho(g_{q->p}) f_q.

    The auxiliary representation is that of the output. key, value: weights (B, R, C_out, C_in); query: a self kernel
    (1 + 2 min(L_in, L_out), C_out, C_in), or with query_radial as key. Returns f' (V, C_out, 2 out_order + 1) and
    alpha = N_p softmax (E, H).

    aggregation: `sum` is the paper's equation; `mean` divides it by N_p (the authors' code).
    self_key, self_value: the self kernels of app. D.4; then there are N_p + 1 terms. A radial query sees the vertex
    itself at distance 0.
    projections: the heads of app. D.3, four self kernels (1 + 2 L_out, C_out, C_out): W_query, W_key, W_value, in each
    of which the W^i stand under one another, and W_O. Without it a head is a contiguous group of channels (authors).
    """
    if query_radial:
        q = query_per_edge(x, edges, query, rings, out_order, band_limit)
        own_query = query[self_positions(max_order(x), out_order, band_limit), 0]
    else:
        q = apply_self_kernel(x, query, out_order)[edges.center]
        own_query = query
    k = apply_neighbor_kernel(x, edges, key, rings, out_order, band_limit)
    v = apply_neighbor_kernel(x, edges, value, rings, out_order, band_limit)
    self_terms = None
    if self_key is not None:
        self_terms = [apply_self_kernel(x, weight, out_order) for weight in (own_query, self_key, self_value)]
    if projections is not None:
        q, k, v = (apply_self_kernel(f, w, out_order) for f, w in zip((q, k, v), projections, strict=False))
        if self_terms is not None:
            self_terms = [apply_self_kernel(f, w, out_order) for f, w in zip(self_terms, projections, strict=False)]
    result, alpha, _ = attend(q, k, v, edges, heads, self_terms=self_terms)
    if projections is not None:
        result = apply_self_kernel(result, projections[3], out_order)
    terms = degrees(edges) + (self_terms is not None)
    return aggregate(result, terms, aggregation), alpha


# ---- Biases (section 5) --------------------------------------------------------------------------------------------


def angular_bias(x, bias, angles, receives):
    """b added to rho0, and each rho_n turned by angles[n - 1], at every vertex that receives a message. Equivariant.

    bias: (C,); angles: (L, C) radians, not multiplied by n; receives: (V,) bool.
    """
    result = x.copy()
    result[:, :, 0] += bias
    for n, angle in enumerate(angles, start=1):
        cos, sin = np.cos(angle), np.sin(angle)
        re, im = x[:, :, 2 * n - 1], x[:, :, 2 * n]
        result[:, :, 2 * n - 1], result[:, :, 2 * n] = cos * re - sin * im, sin * re + cos * im
    return np.where(receives[:, None, None], result, x)


def additive_bias(x, bias, receives):
    """b (C,) added to all components at every vertex that receives a message. Not equivariant; for comparison."""
    return np.where(receives[:, None, None], x + bias[:, None], x)


# ---- Non-linearities -----------------------------------------------------------------------------------------------


def circle_samples(order, count):
    """Orthonormal Fourier basis at `count` equidistant angles, (2 order + 1, count): f(phi_j) = sum_c f_c S[c, j].

    The rows are 1, sqrt(2) cos(n phi), sqrt(2) sin(n phi), all over sqrt(count).
    """
    phi = 2 * np.pi * np.arange(count) / count
    rows = [np.ones(count)]
    for n in range(1, order + 1):
        rows += [np.sqrt(2) * np.cos(n * phi), np.sqrt(2) * np.sin(n * phi)]
    return np.stack(rows) / np.sqrt(count)


def regular(x, samples=7):
    """ReLU on samples of the circle, projected back (authors' code); equivariant to turns by 2 pi / samples only."""
    basis = circle_samples(max_order(x), samples)
    return np.maximum(x @ basis, 0) @ basis.T


def relu_polynomial(degree):
    """Even coefficients a_0, a_2, ... of the polynomial closest to |v| on [-1, 1] in the mean square."""
    powers = np.arange(0, degree + 1, 2)
    gram = 1 / (powers[:, None] + powers + 1)
    return np.linalg.solve(gram, 1 / (powers + 2))


def poly(x, degree=4):
    """The exactly equivariant non-linearity: a polynomial close to ReLU, applied around the circle.

    With s the root mean square of f(phi) and U = sqrt(2L + 1), the largest |f| / s can be, u = f / s becomes
    P(u) = u / 2 + (U / 2) (a_0 + a_2 (u/U)^2 + ...), and the result s P(u) is projected back to orders 0..L. It is a
    trigonometric polynomial of order degree * L, so (degree + 1) L + 1 samples give the exact projection.
    Order 0 alone: ReLU.
    """
    order = max_order(x)
    if order == 0:
        return np.maximum(x, 0)
    samples = (degree + 1) * order + 1
    basis = circle_samples(order, samples) * np.sqrt(samples)
    s = np.sqrt(np.sum(x**2, axis=2, keepdims=True))
    u = (x / np.where(s > 0, s, 1)) @ basis
    bound = np.sqrt(2 * order + 1)
    square = (u / bound) ** 2
    magnitude = sum(a * square**k for k, a in enumerate(relu_polynomial(degree)))
    return s * ((u / 2 + bound / 2 * magnitude) @ basis.T) / samples


def gate(x, scale, offset):
    """ReLU on rho0; each rho_n is multiplied by sigmoid(scale |z_n| + offset). scale, offset: (L, C)."""
    result = x.copy()
    result[:, :, 0] = np.maximum(x[:, :, 0], 0)
    for n in range(1, max_order(x) + 1):
        part = components(n)
        size = np.linalg.norm(x[:, :, part], axis=2)
        result[:, :, part] /= 1 + np.exp(-(scale[n - 1] * size + offset[n - 1]))[:, :, None]
    return result


# ---- Blocks and heads ----------------------------------------------------------------------------------------------


def add_residual(y, x, channel_map=None):
    """y plus the input of its block: the orders that both have, through a channel map (C_out, C_in) where given."""
    residual = x if channel_map is None else np.einsum("oi,vix->vox", channel_map, x, optimize=True)
    shared = min(y.shape[2], residual.shape[2])
    result = y.copy()
    result[:, :, :shared] += residual[:, :, :shared]
    return result


def log_softmax(x):
    """Log-probabilities of each row (N, K)."""
    shifted = x - x.max(axis=1, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))


def relu(x):
    """x above 0, else 0."""
    return np.maximum(x, 0)


def elu(x):
    """x above 0, else exp(x) - 1."""
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def dense_head(x, hidden, classes, activation=relu, pooling=False):
    """Log-probabilities from scalars (V, C): dense, activation, [mean over the vertices,] dense, log-softmax.

    hidden and classes are pairs (weight (out, in), bias (out,)). With pooling the result has one row. (Dropout, which
    stands before the pooling, does nothing outside training.)
    """
    x = activation(x @ hidden[0].T + hidden[1])
    if pooling:
        x = x.mean(axis=0, keepdims=True)
    return log_softmax(x @ classes[0].T + classes[1])


# ---- SpiralNet++ ---------------------------------------------------------------------------------------------------


def spiral_convolution(x, spirals, weight, bias):
    """A dense layer on the features along each vertex's spiral: x (V, C), spirals (V, S), weight (C_out, S C)."""
    return x[spirals].reshape(len(spirals), -1) @ weight.T + bias
