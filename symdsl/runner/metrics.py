"""Metrics of a network on a set of examples."""

from __future__ import annotations

import torch
from torch import Tensor

from symdsl.evidence.loss import Categorical, Likelihood
from symdsl.nn import Network

_BINS = 15


@torch.no_grad()
def outputs_of(net: Network, x: Tensor, batch: int = 512) -> Tensor:
    """The network's outputs `[example, output]` on its device, computed `batch` examples at a time."""
    return torch.cat([net(part.to(net.device)) for part in x.split(batch)])


def calibration_error(outputs: Tensor, labels: Tensor) -> float:
    """Expected calibration error: |accuracy - confidence| over 15 equal bins of confidence, weighted by their size.

    Guo et al. 2017, eq. 3.

    Args:
        outputs: logits `[example, class]`.
        labels: `[example]`.
    """
    confidence, predicted = outputs.double().softmax(1).max(1)
    right = (predicted == labels).double()
    bins = (confidence * _BINS).long().clamp(max=_BINS - 1)
    gaps = torch.zeros(_BINS, dtype=torch.float64, device=outputs.device).index_add_(0, bins, right - confidence)
    return float(gaps.abs().sum() / len(labels))


def evaluate_outputs(outputs: Tensor, targets: Tensor, likelihood: Likelihood, noise: float) -> dict[str, float | None]:
    """Metrics of some outputs.

    Returns:
        `accuracy` (a fraction of 1), `nll` (mean per example, nats) and `ece`; for regression `accuracy` and `ece` are
        None and `rmse` is added.
    """
    loss = float(likelihood.loss(outputs.double(), targets))
    nll = likelihood.nll(loss, len(targets), outputs.shape[1], noise) / len(targets)
    if isinstance(likelihood, Categorical):
        accuracy = float((outputs.argmax(1) == targets).double().mean())
        return {"accuracy": accuracy, "nll": nll, "ece": calibration_error(outputs, targets)}
    rmse = (2 * loss / targets.numel()) ** 0.5
    return {"accuracy": None, "nll": nll, "ece": None, "rmse": rmse}
