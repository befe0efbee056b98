"""Metrics of a network on a set of examples."""

from __future__ import annotations

import math

from torch import Tensor

from symdsl.data.preprocessing import UNPREPARED, Preprocessing
from symdsl.evidence.loss import Categorical, Likelihood
from symdsl.predictive import Predicted


def evaluate_outputs(
    outputs: Tensor,
    targets: Tensor,
    likelihood: Likelihood,
    noise: float = 1.0,
    preprocessing: Preprocessing = UNPREPARED,
) -> dict[str, float | None]:
    """Return metrics of some outputs; a regression's are in its targets' units before `standardize(targets)`.

    Args:
        outputs: `[example, output]`.
        targets: labels `[example]`, or `[example, output]` as the network is trained on.
        likelihood: of the targets.
        noise: variance of a Gaussian likelihood, in the units the network is trained in.
        preprocessing: of the targets.

    Returns:
        `nll` (mean per example, nats), and for classes `accuracy` (a fraction of 1) and `ece`; for a regression `rmse`
        (over examples and targets) and `r2` (the mean over targets; None where no target varies). All are None where an
        output is not finite.
    """
    has_classes = isinstance(likelihood, Categorical)
    if not bool(outputs.isfinite().all()):
        return dict.fromkeys(("accuracy", "nll", "ece") if has_classes else ("rmse", "r2", "nll"))
    loss = float(likelihood.loss(outputs.double(), targets))
    nll = likelihood.nll(loss, len(targets), outputs.shape[1], noise) / len(targets) + preprocessing.nats
    if has_classes:
        accuracy = float((outputs.argmax(1) == targets).double().mean())
        found = Predicted.plain(outputs, likelihood, noise)
        return {"accuracy": accuracy, "nll": nll, "ece": found.calibration_error(targets)}
    rmse = float(_squared_errors(outputs, targets, preprocessing).mean().sqrt())
    return {"rmse": rmse, "r2": explained(outputs, targets), "nll": nll}


def errors_by_target(outputs: Tensor, targets: Tensor, preprocessing: Preprocessing) -> list[float]:
    """Return the root mean squared error of every target of a regression, in its own units.

    Args:
        outputs: `[example, target]`.
        targets: `[example, target]`, as the network is trained on.
        preprocessing: of the targets.
    """
    errors: list[float] = _squared_errors(outputs, targets, preprocessing).mean(0).sqrt().tolist()
    return errors


def _squared_errors(outputs: Tensor, targets: Tensor, preprocessing: Preprocessing) -> Tensor:
    """The squared errors `[example, target]` in the targets' units."""
    scale = preprocessing.target_scale(targets.shape[1]).to(outputs.device)
    return ((outputs.double() - targets) * scale).square()


def squares_around_mean(targets: Tensor) -> Tensor:
    """Return the sum of squares of every target `[example, target]` around its mean, float64 `[target]`."""
    exact = targets.double()
    return (exact - exact.mean(0)).square().sum(0)


def share_explained(errors: Tensor, squares: Tensor) -> float | None:
    """Return R² as a mean over targets that vary; None where none does.

    Args:
        errors: the sum of squared errors of every target, float64 `[target]`.
        squares: that around the mean of the target, see `squares_around_mean`.
    """
    varies = squares > 0
    return float((1 - errors[varies] / squares[varies]).mean()) if bool(varies.any()) else None


def explained(outputs: Tensor, targets: Tensor) -> float | None:
    """Return R², the share of each target's variance that the outputs explain, as a mean over targets that vary.

    Args:
        outputs: `[example, target]`.
        targets: `[example, target]`.
    """
    return share_explained((outputs.double() - targets).square().sum(0), squares_around_mean(targets))


def noise_by_target(noise: float, targets: int, preprocessing: Preprocessing) -> list[float]:
    """Return the standard deviation of the noise of every target, in its own units; see `noise_std`."""
    deviations: list[float] = (math.sqrt(noise) * preprocessing.target_scale(targets)).tolist()
    return deviations


def noise_std(noise: float, targets: int, preprocessing: Preprocessing) -> float:
    """Return the standard deviation of the noise in a regression's target units, to be compared with `rmse`.

    Args:
        noise: its variance in the units the network is trained in.
        targets: how many there are; of several the root of the mean square.
        preprocessing: of the targets.
    """
    return float((noise * preprocessing.target_scale(targets).square().mean()).sqrt())
