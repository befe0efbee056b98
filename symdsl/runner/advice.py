"""Why a network does not learn, from what happened: its data, its steps and its losses."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from symdsl.runner.training import Trainer

_FAR = 100.0
"""Root mean square from which on, and below the inverse of which, numbers are too far from 1 to be learned from."""

_OFF_CENTRE = 3.0
"""Mean of a target, in its standard deviations, beyond which it takes outputs that begin at 0 long to get there."""

_SOME = 4096
"""The number of examples that are measured."""

_MOVED, _LEARNED = 0.01, 1.0
"""Shares of its initial size that a weight must have been able to move by to have learned anything, and much."""


def diagnosis(trainer: Trainer, losses: Sequence[float]) -> str:
    """Return the likeliest cause of a search that fails or does no better than guess, and what to do about it.

    Args:
        trainer: after some epochs.
        losses: the loss of every epoch that came to its end, from the first on.
    """
    risen = "the loss has risen: " if len(losses) > 1 and losses[-1] > losses[0] else ""
    return (
        _bad_scale("targets", trainer.train.y, "standardize(targets)")
        or _off_centre(trainer.train.y)
        or _bad_scale("images", trainer.train.x, "standardize")
        or _too_slow(trainer, not risen)
        or f"{risen}a lower `lr` may help"
    )


def _bad_scale(what: str, values: Tensor, step: str) -> str:
    if not values.is_floating_point():
        return ""
    size = float(values[:_SOME].double().square().mean().sqrt())
    if size == 0 or 1 / _FAR <= size <= _FAR:
        return ""
    return f"the {what} are of the order of {size:.0e}, the network's outputs of that of 1: write `|> {step}`"


def _off_centre(targets: Tensor) -> str:
    if not targets.is_floating_point() or len(targets) < 2:
        return ""
    spread, mean = torch.std_mean(targets[:_SOME].double(), 0)
    furthest = float((mean.abs() / spread).nan_to_num(0.0, posinf=0.0).max())
    if furthest <= _OFF_CENTRE:
        return ""
    return f"a target lies {furthest:.0f} standard deviations from 0 in the mean: write `|> standardize(targets)`"


def _too_slow(trainer: Trainer, goes_down: bool) -> str:
    optimizer, steps = trainer.search.optimizer, trainer.step
    # a step moves a weight by about the learning rate, in shares of the size of its tensor's weights, and no further
    reach = optimizer.lr * trainer.step_size * steps
    if reach < _MOVED:
        return f"the weights can have moved by {reach:.0e} of their size at most: raise `lr` (={optimizer.lr:g})"
    if reach < _LEARNED and goes_down:
        taken = f"{steps} training step{'s' * (steps > 1)}"
        return f"these were {taken}; a smaller `batch` (={trainer.search.batch}) or more `epochs` may help"
    return ""
