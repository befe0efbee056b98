"""The base class of a layer's candidate paths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

Recorder = Callable[[str, Tensor, Tensor | None], None]
"""Called as `record(tensor, inputs, output)` for each use of a parameter tensor; `output` None: the path's own."""


class Path(nn.Module, ABC):
    """A map between feature maps, `[example, plane, row, column]` on both sides; where it learns, linear without bias.

    A lifted map is stored with its group elements as planes, `plane = channel * |G| + element`.

    Attributes:
        samples: whether the path takes part in polyphase sampling: it computes its output at every position, and keeps
            every `stride`-th. Other paths compute the strided output directly.
        linear_in: names of the parameter tensors in which the output is linear, each by itself; the one on the output
            side comes first. A path that names none has no symmetric start.
        correlated: whether the initial weights are correlated, so that the scale of the output depends on how the
            numbers in the input are. A run then rescales the last tensor of `linear_in` to the data.
        weight_use: `(path)` gives how it uses every parameter tensor; lowering sets what the record of the kind names.
    """

    samples: ClassVar[bool] = False
    linear_in: ClassVar[tuple[str, ...]] = ()
    correlated: ClassVar[bool] = False
    weight_use: Callable[[Any], Mapping[str, Any]] | None = None

    @property
    def weight_uses(self) -> Mapping[str, Any]:
        """How every parameter tensor is used, a `symdsl.evidence.WeightUse` by its name."""
        return {} if self.weight_use is None else self.weight_use(self)

    @abstractmethod
    def forward(self, x: Tensor, record: Recorder | None = None) -> Tensor:
        """Map `x`; a sampling path keeps every `stride`-th position, beginning with the first.

        Args:
            x: `[example, plane, row, column]`.
            record: called with every use of a parameter tensor, for the curvature.
        """

    def fine(self, x: Tensor) -> Tensor:
        """Return the map at stride 1, on the grid of `x`, of a path that samples.

        Raises:
            TypeError: the path does not sample.
        """
        raise TypeError(f"{type(self).__name__} does not sample, so it has no map at stride 1")

    def expect_mean(self, mean: float) -> None:
        """Rescale the initial weights for inputs of a mean, at unit second moment, so that outputs keep their scale.

        There is nothing to do where weights are independent: the second moment of the input alone counts then.
        """
