"""The preprocessing of a run, by which whatever it meets after training is prepared alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import torch
from torch import Tensor

from symdsl.diagnostics import RunError, listing


def _numbers(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(map(float, values))


def _pair(read: Sequence[Any] | None) -> tuple[Any, Any] | None:
    if read is None:
        return None
    first, second = read
    return first, second


@attrs.frozen
class Statistics:
    """Mean and standard deviation of each channel, or of each target, over the training examples.

    Attributes:
        mean: `[channel]`, in the units of the data.
        std: `[channel]`, above 0; 1 for what is constant.
    """

    mean: tuple[float, ...] = attrs.field(converter=_numbers)
    std: tuple[float, ...] = attrs.field(converter=_numbers)

    def standardized(self, values: Tensor) -> Tensor:
        """Return values `[example, channel, ...]` minus the mean, divided by the deviation, float32.

        That is computed in float64 where the values are.
        """
        kind = torch.promote_types(values.dtype, torch.float32)
        mean, std = (self._column(one, values).to(kind) for one in (self.mean, self.std))
        return ((values.to(kind) - mean) / std).float()

    def restored(self, values: Tensor) -> Tensor:
        """Undo `standardized`, in float64."""
        return values.double() * self._column(self.std, values) + self._column(self.mean, values)

    def _column(self, numbers: Sequence[float], values: Tensor) -> Tensor:
        column = torch.tensor(numbers, dtype=torch.float64, device=values.device)
        return column.reshape(-1, *[1] * (values.ndim - 2))


@attrs.frozen
class Preprocessing:
    """Statistics of the training data, and the names of the classes.

    The header of `model.safetensors` keeps it as `preprocessing`.

    Attributes:
        standardize: statistics of the images by channel; `None` without such a step.
        targets: statistics of the targets of a regression; `None` without such a step.
        classes: names of the outputs, in order; `None` where they have no names.
        extent: the least and the largest value of the training images after all transforms; `None` where it is unknown.
        sides: rows and columns of the images before all transforms; `None` where they are unknown.
    """

    standardize: Statistics | None = None
    targets: Statistics | None = None
    classes: tuple[str, ...] | None = None
    extent: tuple[float, float] | None = None
    sides: tuple[int, int] | None = None

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Preprocessing:
        """Return the preprocessing that `record` described.

        Raises:
            KeyError, TypeError or ValueError: it is something else.
        """
        images, targets = (record[key] and Statistics(**record[key]) for key in ("standardize", "targets"))
        classes = record["classes"]
        extent, sides = (_pair(record.get(key)) for key in ("extent", "sides"))
        return cls(images, targets, None if classes is None else tuple(classes), extent, sides)

    def names(self, outputs: int) -> tuple[str, ...]:
        """Return the names of so many outputs, or their numbers where they have none."""
        return self.classes or tuple(map(str, range(outputs)))

    def restored_targets(self, values: Tensor) -> Tensor:
        """Return targets, or predictions of them, in the units of the data, whether they were standardized or not."""
        return values if self.targets is None else self.targets.restored(values)

    def record(self) -> dict[str, Any]:
        """Return the same content as values that JSON can hold."""
        return attrs.asdict(self)

    def doubt(self, x: Tensor) -> str | None:
        """Return how prepared images differ from the training images' values, or `None` if they do not differ much.

        Far is outside by more than their whole extent, or within a fiftieth of it.
        """
        if self.extent is None or not x.numel():
            return None
        (least, most), (low, high) = self.extent, (float(end) for end in x.aminmax())
        width = most - least
        if least - width <= low and high <= most + width and high - low >= width / 50:
            return None
        found, known = (f"from {a:.3g} to {b:.3g}" for a, b in ((low, high), (least, most)))
        return f"the values of these inputs are {found}, where those of the training images are {known}"

    def target_scale(self, targets: int) -> Tensor:
        """Return one standardized unit of each target in the units of the data, float64 `[target]`."""
        return torch.ones(targets).double() if self.targets is None else torch.tensor(self.targets.std).double()

    @property
    def nats(self) -> float:
        """The nats by which `standardize(targets)` lowers a negative log-likelihood per example; 0 without it."""
        return math.fsum(map(math.log, self.targets.std)) if self.targets else 0.0

    def renumbered(self, labels: Tensor, names: Sequence[str]) -> Tensor:
        """Return labels renumbered as the run numbers its classes, matched by name.

        Args:
            labels: `[example]`, numbering `names`.
            names: of the classes of these data; without them, or without those of the run, labels stay as they are.

        Raises:
            RunError: a class of an example is none of the run's; the line names it.
        """
        if not names or self.classes is None:
            return labels
        learned = {name: number for number, name in enumerate(self.classes)}
        strange = [names[label] for label in labels.unique().tolist() if names[label] not in learned]
        if strange:
            raise RunError(
                f"{shortlist(strange)} of these data {'is' if len(strange) == 1 else 'are'} not among the classes that "
                f"the run has learned: {shortlist(self.classes)}"
            )
        return torch.tensor([learned.get(name, -1) for name in names], device=labels.device)[labels]


UNPREPARED = Preprocessing()
"""The preprocessing of data that no step has standardized and whose classes have no names."""

_MOST_NAMES = 12


def shortlist(names: Sequence[str]) -> str:
    """Return names of classes in backticks, the first ones of many."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return listing(names[:_MOST_NAMES]) + more
