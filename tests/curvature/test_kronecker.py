import math

import pytest
import torch

from oracles.comparison import assert_same
from symdsl.curvature.kronecker import Spectrum, gram


@pytest.mark.parametrize("shape", [(3, 1), (5, 256), (2, 7, 257), (3, 600), (2, 4, 1025)])
def test_a_gram_matrix_is_the_product_of_its_rows(shape):
    rows = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert_same(gram(rows), rows.mT @ rows)


def bounded(squares):
    left, right = torch.tensor([3.0, 0.5]).double(), torch.tensor([4.0, 1.0, 0.0]).double()
    return Spectrum(left, right), Spectrum(left, right, torch.tensor(squares).double())


@pytest.mark.parametrize("precision", [1e-3, 0.7, 1e3])
def test_a_spectrum_without_a_bound_is_that_of_the_product(precision):
    plain, _ = bounded([1.0])
    eigenvalues = torch.outer(plain.left, plain.right).flatten()
    assert plain.log_det(precision) == pytest.approx(float(torch.log(eigenvalues + precision).sum()), rel=1e-12)
    assert plain.effective(precision) == pytest.approx(float((eigenvalues / (eigenvalues + precision)).sum()))


def test_a_bound_counts_where_the_product_exceeds_it():
    plain, loose = bounded([5.0] * 100)
    assert loose.log_det(0.7) == plain.log_det(0.7)
    assert loose.effective(0.7) == plain.effective(0.7)
    plain, tight = bounded([5.0])
    assert tight.log_det(0.7) == pytest.approx(5 * math.log(0.7) + math.log(5.7))
    assert tight.effective(0.7) == pytest.approx(5 / 5.7)
    assert tight.scaled(2).effective(0.7) == pytest.approx(10 / 10.7)


@pytest.mark.parametrize("precision", [1e-2, 1.0, 1e2])
def test_squares_of_rows_bound_what_their_sum_has(precision):
    rows = torch.randn(4, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    whole = rows.T @ rows
    squares = rows.square().sum(1)
    far_above = Spectrum(torch.ones(1).double(), torch.full((6,), 1e9).double(), squares)
    exactly = torch.logdet(whole + precision * torch.eye(6).double())
    assert float(exactly) <= far_above.log_det(precision) < far_above.size * math.log(1e9)
    eigenvalues = torch.linalg.eigvalsh(whole)
    assert float((eigenvalues / (eigenvalues + precision)).sum()) <= far_above.effective(precision) <= len(rows)


def test_the_gradient_of_a_bounded_determinant_is_the_number_left_over():
    _, tight = bounded([5.0, 0.2, 0.1])
    step = 1e-5
    slope = (tight.log_det(0.7 * math.exp(step)) - tight.log_det(0.7 * math.exp(-step))) / (2 * step)
    assert slope == pytest.approx(tight.size - tight.effective(0.7), rel=1e-8)
