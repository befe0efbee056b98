"""The mode of a linearised network, against problems whose mode is known."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from oracles.comparison import assert_same, noise
from symdsl.diagnostics import NumericalError
from symdsl.evidence import LinearisedMode
from symdsl.evidence.linearised import LEAST_BATCHES

N = 400


def means() -> tuple[Tensor, Tensor, Tensor]:
    """Weights, each the mean of numbers with a variance of its own, those numbers `[N, weight]`, and the variances."""
    numbers = noise(N, 5, seed=1) * torch.tensor([0.5, 1.0, 2.0, 3.0, 4.0]) + 2
    return noise(5, seed=2).requires_grad_(), numbers, numbers.var(0, correction=0)


def pass_over(mode: LinearisedMode, weights: Tensor, numbers: Tensor, variances: Tensor, batch: int = 1) -> None:
    """An epoch of gradients in the weights where they are."""
    for some in numbers.split(batch):
        (weights.grad,) = torch.autograd.grad(0.5 * ((weights - some).square() / variances).sum(1).mean(), weights)
        mode.add(len(some))
    mode.close_epoch()


def norm_at(precision: float, numbers: Tensor, variances: Tensor) -> float:
    """The squared norm of the mode, which is known."""
    return float((N * numbers.mean(0) / variances / (N / variances + precision)).square().sum())


@pytest.mark.parametrize("precision", [0.1, 3.0, 1000.0])
def test_means_have_their_mode_in_one_step(precision: float) -> None:
    """Under any prior, whatever the weights were trained under."""
    weights, numbers, variances = means()
    mode = LinearisedMode({"w": weights})
    pass_over(mode, weights, numbers, variances)
    assert mode.squared_norms({"w": precision})["w"] == pytest.approx(norm_at(precision, numbers, variances), rel=0.01)


@pytest.mark.parametrize("batch", [4, 7, 13])
def test_batches_tell_what_single_examples_do(batch: int) -> None:
    """Also where the last one is smaller: the sum of all gradients, and their spread as far as so many batches can."""
    weights, numbers, variances = means()
    mode = LinearisedMode({"w": weights})
    pass_over(mode, weights, numbers, variances, batch)
    found = mode.tensors()
    assert_same(found["gradient/w"], N * (weights.detach() - numbers.mean(0)) / variances, 1e-9)
    assert found["curvature/w"].tolist() == pytest.approx((N / variances).tolist(), rel=3 * (2 * batch / N) ** 0.5)


def test_every_epoch_counts_for_itself() -> None:
    weights, numbers, variances = means()
    once, twice = LinearisedMode({"w": weights}), LinearisedMode({"w": weights})
    pass_over(twice, weights, numbers + 7, variances)
    for one in (once, twice):
        pass_over(one, weights, numbers, variances)
    assert once.squared_norms({"w": 1.0}) == twice.squared_norms({"w": 1.0})


def test_weights_are_their_own_mode_before_a_first_epoch_and_where_it_has_few_batches() -> None:
    weights, numbers, variances = means()
    mode = LinearisedMode({"w": weights})
    own = pytest.approx(float(weights.detach().square().sum()))
    assert mode.squared_norms({"w": 1.0})["w"] == own
    pass_over(mode, weights, numbers, variances, batch=N // (LEAST_BATCHES - 1) + 1)
    assert mode.squared_norms({"w": 1.0})["w"] == own
    assert mode.squared_norms({"other": 1.0}) == {}


def test_the_prior_alone_moves_weights_without_gradients_to_zero() -> None:
    weights, numbers, variances = means()
    frozen = noise(3, seed=3)
    mode = LinearisedMode({"w": weights, "frozen": frozen})
    pass_over(mode, weights, numbers, variances)
    assert mode.squared_norms({"frozen": 2.0}) == {"frozen": 0.0}


def test_a_restored_mode_is_the_same() -> None:
    weights, numbers, variances = means()
    mode, other = LinearisedMode({"w": weights}), LinearisedMode({"w": weights})
    pass_over(mode, weights, numbers, variances)
    other.restore(mode.tensors())
    assert other.squared_norms({"w": 1.0}) == mode.squared_norms({"w": 1.0})
    assert LinearisedMode({"w": weights}).tensors() == {}


def test_a_gradient_that_is_not_finite_is_named() -> None:
    weights = noise(2).requires_grad_()
    weights.grad = torch.tensor([float("inf"), 0.0], dtype=weights.dtype)
    mode = LinearisedMode({"l1.FC.w": weights})
    for _ in range(LEAST_BATCHES):
        mode.add(1)
    mode.close_epoch()
    with pytest.raises(NumericalError, match=r"the gradients of l1\.FC\.w are not finite"):
        mode.squared_norms({"l1.FC.w": 1.0})
