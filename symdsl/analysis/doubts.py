"""Warnings about the arrays of a data file: what can be used, but is probably a mistake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from symdsl.catalog.data import CHANNELS_FIRST, Doubt, channels_last

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_STRETCHES = 8
_MOST_LABEL_VALUES = 1000
_MANY_CLASSES = 100
_OFTEN = 10
"""How often each of a few whole numbers that do not count from 0 is there if they are labels."""
_NUMBERED = "numpy.unique(y, return_inverse=True)[1]"


def doubts_of_shape(channels: int, height: int, width: int) -> tuple[Doubt, ...]:
    """Return a doubt if the channels of the images seem to come last."""
    if not channels_last(channels, height, width):
        return ()
    shape = f"{channels} channels and {height}x{width} pixels"
    message = f"`x_train` holds images of {shape}, which looks as if channels came last"
    return (Doubt("W112", message, CHANNELS_FIRST),)


def doubts_of_labels(labels: NDArray[Any]) -> tuple[Doubt, ...]:
    """Return a doubt about each class without a training example, for labels `[example]` of at least 0."""
    import numpy as np

    found = np.unique(labels)
    classes = int(found[-1]) + 1
    if len(found) == classes:
        return ()
    message = f"`y_train` has no example of {classes - len(found):,} of {classes:,} classes: {_gaps(found.tolist())}"
    help = f"number the classes from 0 without gaps, as `{_NUMBERED}` does"
    if classes > max(_MANY_CLASSES, len(labels) // 2):
        help += ", or save `y.astype(float)` if the numbers are targets of a regression"
    return (Doubt("W110", message, help),)


def doubts_of_many(labels: NDArray[Any]) -> tuple[Doubt, ...]:
    """Return a doubt if labels `[example]`, without gaps, hardly repeat, as whole numbers of a regression do not."""
    classes = int(labels.max()) + 1
    if classes <= max(_MANY_CLASSES, len(labels) // 2):
        return ()
    message = f"`y_train` counts {classes:,} classes in {len(labels):,} examples, as numbers of a regression would"
    help = "save `y.astype(float)` for a regression, or write `task = classification` if classes are meant"
    return (Doubt("W111", message, help),)


def doubts_of_targets(targets: NDArray[Any]) -> tuple[Doubt, ...]:
    """Return a doubt if regression targets `[example, target]` look like class labels or one-hot vectors."""
    import numpy as np

    if not len(targets):
        return ()
    columns = targets.shape[1]
    if columns > 1 and np.isin(targets, (0, 1)).all() and (targets.sum(1) == 1).all():
        message = f"the {columns} targets of `y_train` look like one-hot labels, but will be learned as real numbers"
        return (Doubt("W111", message, _meant("y.argmax(1)")),)
    values = np.unique(targets)
    counts = (values == np.arange(len(values))).all()  # 0, 1, 2, ... without gaps
    whole = (values == np.round(values)).all() and (len(values) == 2 or (np.diff(values) == 1).all())
    looks_like_labels = counts or (whole and len(values) * _OFTEN <= len(targets))
    if columns == 1 and 1 < len(values) <= min(_MOST_LABEL_VALUES, len(targets) // 2) and looks_like_labels:
        message = (
            f"the targets of `y_train` look like labels of {len(values)} classes, but will be learned as real numbers"
        )
        return (Doubt("W111", message, _meant("y.astype(int)" if counts else _NUMBERED)),)
    return ()


def _meant(expression: str) -> str:
    return f"save `{expression}` for classes, or write `task = regression` if numbers are meant"


def _gaps(found: Sequence[int]) -> str:
    """The numbers below the last of those found that are missing, in stretches."""
    pairs = zip((-1, *found), found, strict=False)
    stretches = [(before + 1, after - 1) for before, after in pairs if after - before > 1]
    shown = [str(first) if first == last else f"{first} to {last}" for first, last in stretches[:_MOST_STRETCHES]]
    return ", ".join(shown) + (", and more" if len(stretches) > _MOST_STRETCHES else "")
