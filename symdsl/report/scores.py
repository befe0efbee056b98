"""Figures about predictions: how often classes are confused, and whether confidence is what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BINS = 15
"""Bins of confidence, as many as `result.json` takes its ECE over."""


@attrs.frozen(eq=False)
class Reliability:
    """Accuracy against confidence (Guo et al. 2017), in bins of equal width from 0 to 1.

    Attributes:
        counts: examples in each bin.
        confidence: mean confidence in each bin; NaN where it is empty, as the next.
        accuracy: fraction that is right in each bin.
        ece: |accuracy - confidence|, weighted by the share of the examples (eq. 3).
    """

    counts: NDArray[np.int64]
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    ece: float


def reliability(target: NDArray[Any], predicted: NDArray[Any], confidence: NDArray[Any]) -> Reliability:
    """Return accuracy against confidence in bins, for confidences and outcomes `[example]`."""
    import numpy as np

    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    counts = np.bincount(bins, minlength=BINS)
    sums = [np.bincount(bins, values, BINS) for values in (confidence, (target == predicted).astype(float))]
    ece = float(np.abs(sums[1] - sums[0]).sum() / max(len(target), 1))
    with np.errstate(invalid="ignore"):
        return Reliability(counts, sums[0] / counts, sums[1] / counts, ece)


def confusion(target: NDArray[Any], predicted: NDArray[Any], classes: int) -> NDArray[np.int64]:
    """Return a matrix of counts: true classes in rows, predicted classes in columns."""
    import numpy as np

    return np.bincount(target * classes + predicted, minlength=classes**2).reshape(classes, classes)


def most_confused(counts: NDArray[np.int64], most: int) -> list[tuple[int, int, int]]:
    """Return the pairs of classes that were confused most often: true class, predicted class, count."""
    import numpy as np

    wrong = counts.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:most]
    pairs = ((int(number // len(wrong)), int(number % len(wrong))) for number in order)
    return [(one, other, int(wrong[one, other])) for one, other in pairs if wrong[one, other]]
