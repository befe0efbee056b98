import math

import pytest
import torch

import symdsl
from oracles.comparison import assert_same
from symdsl.evidence import CURVATURES, Categorical, Exact, Factor, Kronecker, KroneckerFactors, estimate, kfac
from symdsl.evidence.kfac import gram


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def blocks(count, side, seed=0):
    half = torch.randn(count, side, side, generator=generator(seed), dtype=torch.float64)
    return half @ half.mT


def factors(seed=0):
    """Of two tensors, whose factors have blocks of their own."""
    found = {"a": ((1, 3), (2, 4)), "b": ((2, 2), (1, 3))}
    return KroneckerFactors(
        {
            key: Kronecker(Factor(blocks(*left, seed)), Factor(blocks(*right, seed + 1)))
            for key, (left, right) in found.items()
        }
    )


def exactly(found, precisions, noise=1.0):
    """log det(H / noise + delta) and effective numbers from the dense blocks."""
    value, effective = 0.0, {}
    for key, block in found.blocks.items():
        dense = block.dense() / noise
        ridge = dense + precisions[key] * torch.eye(len(dense), dtype=torch.float64)
        value += float(torch.logdet(ridge)) - len(dense) * math.log(precisions[key])
        effective[key] = float(torch.trace(torch.linalg.solve(ridge, dense)))
    return value, effective


@pytest.mark.parametrize("shape", [(3, 1), (5, 256), (2, 7, 257), (3, 600), (2, 4, 1025)])
def test_a_gram_matrix_is_the_product_of_its_rows(shape):
    rows = torch.randn(shape, generator=generator(), dtype=torch.float64)
    assert_same(gram(rows), rows.mT @ rows)


@pytest.mark.parametrize("noise", [1.0, 0.3])
@pytest.mark.parametrize("precision", [1e-3, 0.7, 1e3])
def test_the_log_determinant_is_that_of_the_dense_blocks(precision, noise, monkeypatch):
    monkeypatch.setattr(kfac, "_EIGENVALUES", 5)
    found, precisions = factors(), {"a": precision, "b": 2 * precision}
    assert found.sizes == {"a": 24, "b": 12}
    at, (value, effective) = found.at(precisions, noise), exactly(found, precisions, noise)
    assert at.value == pytest.approx(value, rel=1e-9)
    assert at.effective == pytest.approx(effective, rel=1e-9)


def test_what_no_example_says_anything_of_adds_nothing_to_its_prior():
    nothing = KroneckerFactors({"a": Kronecker(Factor(torch.zeros(1, 2, 2)), Factor(torch.zeros(1, 3, 3)))})
    at = nothing.at({"a": 5.0})
    assert at.value == 0
    assert at.effective == {"a": 0.0}


def test_eigenvalues_are_computed_once(monkeypatch):
    honest, calls = torch.linalg.eigvalsh, []

    def counted(matrix):
        calls.append(matrix)
        return honest(matrix)

    monkeypatch.setattr(torch.linalg, "eigvalsh", counted)
    found = factors()
    assert not calls
    for precision in (0.1, 1.0, 10.0):
        found.at(dict.fromkeys(found.sizes, precision))
    assert len(calls) == 4


def test_a_scaled_matrix_is_that_of_so_many_more_examples():
    found, precisions = factors(), {"a": 0.7, "b": 2.0}
    for key, block in found.scaled(2.5).blocks.items():
        assert_same(block.dense(), 2.5 * found.blocks[key].dense())
    assert found.scaled(2.5).at(precisions, 2.5).value == pytest.approx(found.at(precisions).value, rel=1e-12)


def vectors(count, seed=0):
    """Of two blocks."""
    return torch.randn(2, count, 6, generator=generator(seed), dtype=torch.float64)


def test_a_factor_of_few_vectors_is_that_of_their_outer_products():
    one, kept = Factor.of(torch.ones(1, 1, 1, dtype=torch.float64)), Factor.of(vectors(4))
    assert kept.as_vectors
    few, whole = (KroneckerFactors({"a": Kronecker(one, factor)}) for factor in (kept, Factor(gram(vectors(4)))))
    assert few.sizes == whole.sizes == {"a": 12}
    assert_same(few.blocks["a"].input.blocks(), whole.blocks["a"].input.blocks())
    for found, expected in ((few, whole), (few.scaled(3.0), whole.scaled(3.0))):
        at, dense = found.at({"a": 0.7}), expected.at({"a": 0.7})
        assert at.value == pytest.approx(dense.value, rel=1e-9)
        assert at.effective == pytest.approx(dense.effective, rel=1e-9)


@pytest.mark.parametrize("counts", [(2, 3), (3, 4), (4, 7), (7, 2)])
def test_the_sum_of_two_factors_is_that_of_all_their_vectors(counts):
    first, second = (vectors(count, seed) for seed, count in enumerate(counts))
    total = Factor.of(first) + Factor.of(second)
    assert_same(total.blocks(), gram(torch.cat((first, second), 1)))
    assert total.as_vectors == (sum(counts) < 6)


def test_round_off_of_summed_inputs_does_not_count():
    """At stride 1 all taps of a channel have the same sum: no more than C C' parameters are effective."""
    read = symdsl.parse(
        """
        data digits
        network n {
          input image(1, 8, 8)
          layer l1: CONV(3) -> 2 |> relu
          layer l2: CONV(3) -> 2
          pool mean
          flatten
          layer h: FC -> classes
        }
        """
    )
    net = symdsl.compile(read)
    drawn = torch.Generator().manual_seed(0)
    x, y = torch.randn(64, 1, 8, 8, generator=drawn), torch.randint(0, 10, (64,), generator=drawn)
    found = estimate(net, x, y, Categorical(), Exact(), drawn, CURVATURES["kfac-reduce"]).ggn
    effective = found.at(dict.fromkeys(net.tensors(), 1e-8)).effective
    assert effective["l1.CONV.w"] < 2.1
    assert effective["l2.CONV.w"] < 4.1
