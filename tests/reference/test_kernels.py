"""kernels.py against the constraint it solves, the paper's table and the complex form of it."""

import numpy as np
import pytest

from . import kernels

ORDERS = [(n, m) for n in range(5) for m in range(5)]
THETA = np.linspace(-3.1, 3.1, 11)


@pytest.mark.parametrize(("n", "m"), ORDERS)
def test_every_basis_element_solves_the_kernel_constraint(n, m):
    g = 0.7
    shifted = kernels.pair_basis(n, m, THETA - g)
    for element, moved in zip(kernels.pair_basis(n, m, THETA), shifted, strict=True):
        want = kernels.rotation(-g, m) @ element.matrix @ kernels.rotation(g, n)
        np.testing.assert_allclose(moved.matrix, want, rtol=0, atol=1e-14)


def paper_table(n, m, theta):
    """The neighbor kernels of the paper's table, appendix A, as written there, at one angle."""
    cos, sin = np.cos, np.sin
    if n == 0 and m == 0:
        return [[[1]]]
    if m == 0:
        return [[[cos(n * theta), sin(n * theta)]], [[sin(n * theta), -cos(n * theta)]]]
    if n == 0:
        return [[[cos(m * theta)], [sin(m * theta)]], [[sin(m * theta)], [-cos(m * theta)]]]
    cm, sm = cos((m - n) * theta), sin((m - n) * theta)
    cp, sp = cos((m + n) * theta), sin((m + n) * theta)
    return [[[cm, -sm], [sm, cm]], [[sm, cm], [-cm, sm]], [[cp, sp], [sp, -cp]], [[-sp, cp], [cp, sp]]]


@pytest.mark.parametrize(("n", "m"), ORDERS)
def test_the_basis_is_the_papers_up_to_order_and_sign(n, m):
    ours = [element.matrix.ravel() for element in kernels.pair_basis(n, m, THETA)]
    table = np.array([paper_table(n, m, theta) for theta in THETA], dtype=float)
    theirs = [table[:, b].ravel() for b in range(table.shape[1])]
    assert len(ours) == len(theirs)
    products = np.abs(np.array(ours) @ np.array(theirs).T) / np.sum(np.square(ours), axis=1)[:, None]
    np.testing.assert_allclose(np.sort(products.max(axis=1)), 1, atol=1e-14)
    assert sorted(products.argmax(axis=1)) == list(range(len(ours)))


def complex_terms(n, m, theta, z):
    """The terms of rho_n -> rho_m on complex numbers: units times e^{i k theta} z or its conjugate."""

    def wave(k):
        return np.exp(1j * k * theta)

    if n == 0:
        return [z.real] if m == 0 else [wave(m) * z.real, 1j * wave(m) * z.real]
    if m == 0:
        return [(wave(-n) * z).real, -(wave(-n) * z).imag]
    u, w = wave(m - n) * z, wave(m + n) * np.conj(z)
    first = {0: [u, 1j * u], 1: [-1j * u, u], -1: [1j * u, u]}[int(np.sign(m - n))]
    return [*first, 1j * w, w]


@pytest.mark.parametrize(("n", "m"), ORDERS)
def test_the_basis_in_complex_form(n, m):
    z = np.exp(1j * np.arange(len(THETA))) * np.linspace(0.5, 2, len(THETA))
    vector = z.real[:, None] if n == 0 else np.stack([z.real, z.imag], axis=1)
    for element, want in zip(kernels.pair_basis(n, m, THETA), complex_terms(n, m, THETA, z), strict=True):
        got = np.einsum("exy,ey->ex", element.matrix, vector)
        got = got[:, 0] if m == 0 else got[:, 0] + 1j * got[:, 1]
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-14)


def test_sizes_and_band_limits():
    for n, m in ORDERS:
        assert len(kernels.neighbor_basis(n, m, THETA)) == kernels.basis_size(n, m)
    assert [len(kernels.neighbor_basis(n, m, THETA, 2)) for n, m in ((2, 2), (1, 2), (2, 0))] == [19, 13, 5]
    assert all(element.frequency <= 3 for element in kernels.neighbor_basis(4, 4, THETA, 3))


def test_self_kernels_stand_where_the_weight_tensors_have_them():
    assert kernels.self_positions(2, 2, 2) == [0, 7, 8, 17, 18]
    assert kernels.self_positions(2, 2) == [0, 7, 8, 21, 22]
    assert kernels.self_positions(1, 2, 2) == [0, 7, 8]
    assert kernels.self_positions(2, 0, 2) == [0]


def test_self_kernels_commute_with_rotations():
    for element in kernels.self_basis(4, 3):
        turn = kernels.rotation(0.4, element.in_order)
        np.testing.assert_allclose(element.matrix[0] @ turn, turn @ element.matrix[0], rtol=0, atol=1e-15)


def test_rotations_add():
    x = np.random.default_rng(0).normal(size=(6, 2, 9))
    a, b = np.linspace(0, 5, 6), np.linspace(-2, 1, 6)
    both = kernels.rotate(kernels.rotate(x, a), b)
    np.testing.assert_allclose(both, kernels.rotate(x, a + b), rtol=0, atol=1e-14)
    np.testing.assert_allclose(kernels.rotate(x, a)[:, :, 0], x[:, :, 0])
    turned = (x[:, :, 3] + 1j * x[:, :, 4]) * np.exp(2j * a)[:, None]
    np.testing.assert_allclose(kernels.rotate(x, a)[:, :, 3], turned.real, rtol=0, atol=1e-14)


def test_without_a_direction_only_the_constant_part_remains():
    directed = np.arange(len(THETA)) % 2 == 0
    for element in kernels.neighbor_basis(2, 2, THETA, directed=directed):
        assert (element.frequency == 0) == element.matrix[~directed].any()
        assert element.matrix[directed].any()
