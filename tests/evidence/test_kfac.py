import math

import pytest
import torch

from oracles.comparison import assert_same
from symdsl.evidence.kfac import Kronecker, LowRank, Spectrum, gram, outer_products, plus


@pytest.mark.parametrize("shape", [(3, 1), (5, 256), (2, 7, 257), (3, 600), (2, 4, 1025)])
def test_a_gram_matrix_is_the_product_of_its_rows(shape):
    rows = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert_same(gram(rows), rows.mT @ rows)


def batches(*sizes):
    """Rows of side 6, so many in each batch."""
    rows = torch.randn(sum(sizes), 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return rows, [outer_products(batch) for batch in rows.split(sizes)]


@pytest.mark.parametrize("sizes", [(1,), (2, 3), (3, 3), (2, 7), (7, 2), (6,), (2, 2, 4, 1)])
def test_a_sum_of_outer_products_is_the_same_in_either_form(sizes):
    rows, terms = batches(*sizes)
    total = None
    for term in terms:
        total = plus(total, term, 0.5)
    assert isinstance(total, LowRank) == (sum(sizes) < 6)
    one = torch.ones(1, 1, 1).double()
    block = Kronecker(total, one)
    assert_same(block.left, 0.5 * gram(rows).unsqueeze(0))
    assert_same(Kronecker(one, total).right, block.left)
    assert_same(block.spectrum("w").left.sort().values, torch.linalg.eigvalsh(0.5 * gram(rows)).clamp(min=0), 1e-9)


def test_summing_outer_products_up_leaves_the_terms_alone():
    rows, terms = batches(2, 2)
    plus(plus(None, terms[0], 0.5), terms[1], 2.0)
    assert_same(torch.cat([term.rows for term in terms]), rows)


def test_rows_that_carry_a_graph_are_kept_without_it():
    rows = torch.ones(2, 6, requires_grad=True)
    assert not plus(None, outer_products(rows)).rows.requires_grad


def bounded(squares):
    left, right = torch.tensor([3.0, 0.5]).double(), torch.tensor([4.0, 1.0, 0.0]).double()
    return Spectrum(left, right), Spectrum(left, right, torch.tensor(squares).double())


@pytest.mark.parametrize("precision", [1e-3, 0.7, 1e3])
def test_a_spectrum_without_a_bound_is_that_of_the_product(precision):
    plain, _ = bounded([1.0])
    eigenvalues = torch.outer(plain.left, plain.right).flatten()
    assert plain.volume(precision) == pytest.approx(float(torch.log(1 + eigenvalues / precision).sum()), rel=1e-12)
    assert plain.effective(precision) == pytest.approx(float((eigenvalues / (eigenvalues + precision)).sum()))


def test_a_bound_counts_where_the_product_exceeds_it():
    plain, loose = bounded([5.0] * 100)
    assert loose.volume(0.7) == plain.volume(0.7)
    assert loose.effective(0.7) == plain.effective(0.7)
    plain, tight = bounded([5.0])
    assert tight.volume(0.7) == pytest.approx(math.log(5.7 / 0.7))
    assert tight.effective(0.7) == pytest.approx(5 / 5.7)


@pytest.mark.parametrize("precision", [1e-2, 1.0, 1e2])
def test_squares_of_rows_bound_what_their_sum_has(precision):
    rows = torch.randn(4, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    whole = rows.T @ rows
    squares = rows.square().sum(1)
    far_above = Spectrum(torch.ones(1).double(), torch.full((6,), 1e9).double(), squares)
    exactly = torch.logdet(torch.eye(6).double() + whole / precision)
    assert float(exactly) <= far_above.volume(precision) < far_above.size * math.log(1e9 / precision)
    eigenvalues = torch.linalg.eigvalsh(whole)
    assert float((eigenvalues / (eigenvalues + precision)).sum()) <= far_above.effective(precision) <= len(rows)


def test_the_gradient_of_a_bounded_determinant_is_the_number_left_over():
    _, tight = bounded([5.0, 0.2, 0.1])
    step = 1e-5
    slope = (tight.volume(0.7 * math.exp(step)) - tight.volume(0.7 * math.exp(-step))) / (2 * step)
    assert slope == pytest.approx(-tight.effective(0.7), rel=1e-8)
