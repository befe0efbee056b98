"""The mode of a linearised network, against problems whose mode is known."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from oracles.comparison import noise
from symdsl.diagnostics import NumericalError
from symdsl.evidence import LinearisedMode

N, PRECISION = 400, 3.0


def means() -> tuple[Tensor, Tensor, Tensor]:
    """Weights, each the mean of numbers with a variance of its own, those numbers `[N, weight]`, and the variances."""
    numbers = noise(N, 5, seed=1) * torch.tensor([0.5, 1.0, 2.0, 3.0, 4.0]) + 2
    return noise(5, seed=2).requires_grad_(), numbers, numbers.var(0, correction=0)


def pass_over(mode: LinearisedMode, weights: Tensor, numbers: Tensor, variances: Tensor, batch: int = 1) -> None:
    """An epoch of gradients in the weights where they are, the prior's over N included."""
    for some in numbers.split(batch):
        fit = ((weights - some).square() / variances).sum(1).mean()
        (weights.grad,) = torch.autograd.grad(0.5 * (fit + PRECISION / N * weights.square().sum()), weights)
        mode.add()
    mode.close_epoch()


def test_means_have_their_mode_in_one_step() -> None:
    weights, numbers, variances = means()
    mode = LinearisedMode({"w": weights}, N)
    pass_over(mode, weights, numbers, variances)
    expected = N * numbers.mean(0) / variances / (N / variances + PRECISION)
    assert mode.squared_norms({"w": PRECISION})["w"] == pytest.approx(float(expected.square().sum()), rel=1e-6)


def test_batches_tell_what_single_examples_do() -> None:
    weights, numbers, variances = means()
    shuffled = numbers[torch.randperm(N, generator=torch.Generator().manual_seed(0))]
    found = []
    for batch in (1, 4):
        mode = LinearisedMode({"w": weights}, N)
        pass_over(mode, weights, shuffled, variances, batch)
        found.append(mode.squared_norms({"w": PRECISION})["w"])
    assert found[0] == pytest.approx(found[1], rel=0.2)
    assert found[0] != pytest.approx(float(weights.detach().square().sum()), rel=0.3)


def test_every_epoch_counts_for_itself() -> None:
    weights, numbers, variances = means()
    once, twice = LinearisedMode({"w": weights}, N), LinearisedMode({"w": weights}, N)
    pass_over(twice, weights, numbers + 7, variances)
    for one in (once, twice):
        pass_over(one, weights, numbers, variances)
    assert once.squared_norms({"w": 1.0}) == twice.squared_norms({"w": 1.0})


def test_before_a_first_epoch_and_without_gradients_weights_are_their_mode() -> None:
    weights, frozen = noise(5, seed=2), noise(3, seed=3)
    mode = LinearisedMode({"w": weights, "frozen": frozen}, N)
    norms = {"w": float(weights.square().sum()), "frozen": float(frozen.square().sum())}
    assert mode.squared_norms({"w": 1.0, "frozen": 2.0}) == pytest.approx(norms)
    weights.grad = torch.ones_like(weights)
    mode.add()
    mode.close_epoch()
    assert mode.squared_norms({"frozen": 2.0}) == pytest.approx({"frozen": norms["frozen"]})


def test_a_restored_mode_is_the_same() -> None:
    weights, numbers, variances = means()
    mode, other = LinearisedMode({"w": weights}, N), LinearisedMode({"w": weights}, N)
    pass_over(mode, weights, numbers, variances)
    other.restore(mode.tensors())
    assert other.squared_norms({"w": 1.0}) == mode.squared_norms({"w": 1.0})
    assert LinearisedMode({"w": weights}, N).tensors() == {}


def test_a_gradient_that_is_not_finite_is_named() -> None:
    weights = noise(2).requires_grad_()
    weights.grad = torch.tensor([float("inf"), 0.0], dtype=weights.dtype)
    mode = LinearisedMode({"l1.FC.w": weights}, N)
    mode.add()
    mode.close_epoch()
    with pytest.raises(NumericalError, match=r"the gradients of l1\.FC\.w are not finite"):
        mode.squared_norms({"l1.FC.w": 1.0})
