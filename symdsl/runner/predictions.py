"""The predictions of the test examples that a run keeps."""

from __future__ import annotations

import torch
from torch import Tensor

from symdsl.catalog.data import Task
from symdsl.data import Examples
from symdsl.data.preprocessing import Preprocessing
from symdsl.runs.predictions import MOST_TARGETS, Predictions

MISTAKES = 12
"""How many of the worst mistakes are kept with their pictures."""

_LARGEST_SIDE = 128  # of a picture, in pixels


def predictions_of(outputs: Tensor, examples: Examples, preprocessing: Preprocessing) -> Predictions:
    """Return what some outputs predict about some examples.

    Args:
        outputs: logits `[example, class]` where the examples have class labels, else predicted targets
            `[example, target]`.
        examples: what they are outputs for.
        preprocessing: has the names of the classes, and the units of the targets, in which they are kept.
    """
    task: Task = "regression" if examples.y.is_floating_point() else "classification"
    names: tuple[str, ...] = ()
    confidence = None
    if task == "regression":
        error = (outputs.double().cpu() - examples.y.cpu())[:, :MOST_TARGETS].square().sum(1)
        worst = _largest(error, torch.ones(len(error), dtype=torch.bool))
        known, said = (preprocessing.restored_targets(one).cpu() for one in (examples.y, outputs))
        target, predicted = (one[:, :MOST_TARGETS].float().contiguous() for one in (known, said))
    else:
        confidence, found = (one.cpu() for one in outputs.double().softmax(1).max(1))
        target, predicted = examples.y.int().cpu(), found.int()
        worst = _largest(confidence, target != predicted)
        names = preprocessing.classes or ()
    return Predictions(
        task=task,
        names=names,
        target=target.numpy(),
        predicted=predicted.numpy(),
        confidence=None if confidence is None else confidence.numpy(),
        worst=worst.numpy(),
        images=_pictures(examples.x[worst]).numpy(),
    )


def _largest(score: Tensor, among: Tensor) -> Tensor:
    """Numbers of the examples of largest score, of equal ones the first."""
    order = score.argsort(descending=True, stable=True)
    return order[among[order]][:MISTAKES]


def _pictures(images: Tensor) -> Tensor:
    """Images as bytes `[image, row, column, channel]`, all on one scale; of other channels than three, the first."""
    shown = (images if images.shape[1] == 3 else images[:, :1]).cpu().float()
    longest = max(shown.shape[2:])
    if longest > _LARGEST_SIDE and len(shown):
        size = [max(1, side * _LARGEST_SIDE // longest) for side in shown.shape[2:]]
        shown = torch.nn.functional.interpolate(shown, size=size, mode="area")
    low, high = (float(shown.min()), float(shown.max())) if shown.numel() else (0.0, 1.0)
    values = (shown - low) / ((high - low) or 1.0) * 255
    return values.round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1).contiguous()
