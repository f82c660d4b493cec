"""Representations of SO(2) and the kernels that commute with them (paper, sections 3.2 and 3.6, appendix A).

A feature of order L has 2L + 1 components: rho0 is component 0; rho_n, n >= 1, the pair 2n - 1, 2n.
Kernels are real matrices K(theta) that satisfy, for every gauge change g,

    K(theta - g) = rho_out(-g) K(theta) rho_in(g).

The paper's table lists a basis of them for each pair of irreducible representations. The same space, in the order and
with the signs of the authors' weight tensors, is what `pair_basis` writes down; the weights of a layer are
`[basis, ring, out channel, in channel]`, input order outermost, then output order.
"""

from typing import NamedTuple

import numpy as np


def components(order):
    """The components of rho_order within a feature, as a slice."""
    return slice(0, 1) if order == 0 else slice(2 * order - 1, 2 * order + 1)


def max_order(features):
    """The order L of features (..., 2L + 1)."""
    return (features.shape[-1] - 1) // 2


def rotation(angle, order):
    """rho_order(angle) as matrices: (...,) -> (..., 1, 1) or (..., 2, 2)."""
    angle = np.asarray(angle, dtype=float)
    if order == 0:
        return np.ones((*angle.shape, 1, 1))
    cos, sin = np.cos(order * angle), np.sin(order * angle)
    return _matrix([[cos, -sin], [sin, cos]])


def rotate(features, angles):
    """rho(g) f of each row: features (N, C, 2L + 1), one angle per row."""
    result = np.empty_like(features)
    for n in range(max_order(features) + 1):
        part = components(n)
        result[:, :, part] = np.einsum("nxy,ncy->ncx", rotation(angles, n), features[:, :, part])
    return result


def _matrix(rows):
    """Nested rows of equally shaped arrays (E,) as one array (E, rows, columns)."""
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


class BasisElement(NamedTuple):
    """One equivariant matrix function of theta, rho_in -> rho_out."""

    in_order: int
    out_order: int
    frequency: int
    matrix: np.ndarray  # (E, 1 or 2, 1 or 2), its values at E angles


def pair_basis(n, m, theta, directed=None):
    """The basis of kernels rho_n -> rho_m, at each theta (E,), as a list of BasisElement.

    Where `directed` is False there is no direction, and cos k theta = sin k theta = 0 for k >= 1: what remains of the
    kernel does not depend on a direction, so equivariance is kept.
    """
    theta = np.asarray(theta, dtype=float)
    present = np.ones(theta.shape) if directed is None else np.asarray(directed, dtype=float)
    one, zero = np.ones(theta.shape), np.zeros(theta.shape)

    def element(frequency, rows):
        return BasisElement(n, m, frequency, _matrix(rows))

    def cos_sin(frequency):
        return present * np.cos(frequency * theta), present * np.sin(frequency * theta)

    if n == 0 and m == 0:
        return [element(0, [[one]])]
    if n == 0:
        c, s = cos_sin(m)
        return [element(m, [[c], [s]]), element(m, [[-s], [c]])]
    if m == 0:
        c, s = cos_sin(n)
        return [element(n, [[c, s]]), element(n, [[s, -c]])]

    c, s = cos_sin(abs(m - n))
    if n == m:
        difference = [[[one, zero], [zero, one]], [[zero, -one], [one, zero]]]
    elif m > n:
        difference = [[[s, c], [-c, s]], [[c, -s], [s, c]]]
    else:
        difference = [[[s, -c], [c, s]], [[c, s], [-s, c]]]
    c, s = cos_sin(m + n)
    total = [[[-s, c], [c, s]], [[c, s], [s, -c]]]
    return [element(abs(m - n), rows) for rows in difference] + [element(m + n, rows) for rows in total]


def neighbor_basis(in_order, out_order, theta, band_limit=None, directed=None):
    """The basis of K_neigh from orders 0..in_order to 0..out_order, in the order of the weight tensors.

    A band limit leaves out the frequencies above it and closes up the list: the tensors keep their first dimension
    (`basis_size`) and their tail is unused. None is no limit.
    """
    elements = [
        element
        for n in range(in_order + 1)
        for m in range(out_order + 1)
        for element in pair_basis(n, m, theta, directed)
    ]
    return [element for element in elements if band_limit is None or element.frequency <= band_limit]


def basis_size(in_order, out_order):
    """First dimension of a neighbor kernel's weight tensor."""
    return 4 * in_order * out_order + 2 * (in_order + out_order) + 1


def self_positions(in_order, out_order, band_limit=None):
    """Where the basis of K_self stands within that of K_neigh: the elements n -> n that do not depend on theta."""
    elements = neighbor_basis(in_order, out_order, np.zeros(1), band_limit)
    return [b for b, e in enumerate(elements) if e.in_order == e.out_order and e.frequency == 0]


def self_basis(in_order, out_order):
    """The basis of K_self, packed: the identity on rho0; the identity and the quarter turn on each rho_n."""
    elements = neighbor_basis(in_order, out_order, np.zeros(1))
    return [elements[b] for b in self_positions(in_order, out_order)]


def kernel_matrices(elements, weights, in_order, out_order):
    """K(theta_e) itself: the sum over b of weights[b] times elements[b], as (E, C_out, 2L_out+1, C_in, 2L_in+1).

    weights: (B, E, C_out, C_in), one channel matrix per basis element and edge. It needs much memory; the layers
    apply the elements one after the other instead.
    """
    _, count, c_out, c_in = weights.shape
    result = np.zeros((count, c_out, 2 * out_order + 1, c_in, 2 * in_order + 1))
    for element, weight in zip(elements, weights, strict=False):
        block = np.einsum("eoi,exy->eoxiy", weight, np.broadcast_to(element.matrix, (count, *element.matrix.shape[1:])))
        result[:, :, components(element.out_order), :, components(element.in_order)] += block
    return result
