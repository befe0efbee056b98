"""Metrics of a network on a set of examples."""

from __future__ import annotations

from typing import TypeAlias

from torch import Tensor

from symdsl.data.preprocessing import UNPREPARED, Preprocessing
from symdsl.evidence.loss import Categorical, Likelihood
from symdsl.predictive import Predicted

Metrics: TypeAlias = dict[str, float | dict[str, float] | None]
"""Metrics by name: a number, numbers by target, or None where it cannot be told."""


def evaluate_outputs(
    outputs: Tensor,
    targets: Tensor,
    likelihood: Likelihood,
    noise: float = 1.0,
    preprocessing: Preprocessing = UNPREPARED,
) -> Metrics:
    """Return metrics of some outputs; a regression's are in its targets' units before `standardize(targets)`.

    Args:
        outputs: `[example, output]`.
        targets: labels `[example]`, or `[example, output]` as the network is trained on.
        likelihood: of the targets.
        noise: variance of a Gaussian likelihood, in the units the network is trained in.
        preprocessing: of the targets.

    Returns:
        `nll` (mean per example, nats), and for classes `accuracy` (a fraction of 1) and `ece`; for a regression `rmse`
        (over examples and targets), of several targets `rmse_by_target`, too, and `r2` (the mean over targets; None
        where no target varies).
    """
    loss = float(likelihood.loss(outputs.double(), targets))
    nll = likelihood.nll(loss, len(targets), outputs.shape[1], noise) / len(targets) + preprocessing.nats
    if isinstance(likelihood, Categorical):
        accuracy = float((outputs.argmax(1) == targets).double().mean())
        found = Predicted.plain(outputs, likelihood, noise)
        return {"accuracy": accuracy, "nll": nll, "ece": found.calibration_error(targets)}
    scale = preprocessing.target_scale(targets.shape[1]).to(outputs.device)
    squared = ((outputs.double() - targets) * scale).square().mean(0)
    rmse = _root_mean("rmse", squared, preprocessing)
    return rmse | {"r2": explained(outputs, targets), "nll": nll}


def explained(outputs: Tensor, targets: Tensor) -> float | None:
    """Return R², the share of each target's variance that the outputs explain, as a mean over targets that vary.

    Args:
        outputs: `[example, target]`.
        targets: `[example, target]`.
    """
    exact = targets.double()
    missed = (outputs.double() - exact).square().sum(0)
    spread = (exact - exact.mean(0)).square().sum(0)
    varies = spread > 0
    return float((1 - missed[varies] / spread[varies]).mean()) if bool(varies.any()) else None


def noise_std(noise: float, targets: int, preprocessing: Preprocessing) -> Metrics:
    """Return the standard deviation of a regression's noise in the units of the targets, to be compared with `rmse`.

    Args:
        noise: its variance in the units the network is trained in.
        targets: how many there are.
        preprocessing: of the targets.

    Returns:
        `noise_std`, of several targets the root of the mean square, with `noise_std_by_target`.
    """
    return _root_mean("noise_std", noise * preprocessing.target_scale(targets).square(), preprocessing)


def _root_mean(name: str, squares: Tensor, preprocessing: Preprocessing) -> Metrics:
    """The root of the mean of squares, one for each target, and of several their own roots by the targets' names."""
    roots = dict(zip(preprocessing.names(len(squares)), squares.sqrt().tolist(), strict=True))
    by_target: Metrics = {f"{name}_by_target": roots} if len(roots) > 1 else {}
    return {name: float(squares.mean().sqrt()), **by_target}
