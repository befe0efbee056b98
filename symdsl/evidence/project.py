"""One pass over the data: random projections of single examples' gradients, in every parameter tensor."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import torch
from torch import Tensor

from symdsl.evidence.backward import Passed, forward, in_order
from symdsl.evidence.joint import Joint, Projected, Together
from symdsl.evidence.loss import Fisher, Likelihood
from symdsl.evidence.sampled import Told
from symdsl.evidence.sketch import OuterSketch, Sample, Sketch
from symdsl.evidence.weight_use import rows_for
from symdsl.nn import Network, Use

_LARGE = 1 << 17
"""Elements beyond which outer products are projected without being formed."""


@attrs.frozen(eq=False)
class Projection(Passed):
    """What one pass over the data gives a Laplace approximation of all tensors together, at unit noise.

    Attributes:
        rows: rows there were: examples times columns.
        mixed: projected rows of every active parameter tensor.
        drawn: as many of the rows as they are, but for their columns, if `mixed` holds sums of rows.
    """

    rows: int
    mixed: dict[str, Projected]
    drawn: dict[str, Projected] | None = None

    def determinant(self) -> Together:
        """Of all tensors and any prior."""
        mixed = Joint.of(self.mixed, self.rows)
        return mixed if self.drawn is None else Told(mixed, self.drawn)


def project(
    net: Network,
    x: Tensor,
    y: Tensor,
    likelihood: Likelihood,
    fisher: Fisher,
    generator: torch.Generator,
    width: int,
    rows: int,
    batch: int = 256,
) -> Projection:
    """Projects the gradients of single examples.

    Args:
        net: the network; its parameters are left as they are.
        x: inputs `[N, channel, row, column]`; a batch at a time goes to the network's device.
        y: targets `[N]` or `[N, output]`, where `x` is.
        likelihood: of the targets.
        fisher: which columns of Lambda's square root are propagated.
        generator: source of drawn labels, random signs and projections, on the network's device.
        width: numbers that are left of a row in each tensor; tensors of no more parameters are kept whole.
        rows: rows that are left of all examples' columns, as sums and as a sample; no more rows than these are kept as
            they are.
        batch: examples at a time; changes nothing but memory and what is drawn.

    Raises:
        TypeError: a parameter tensor has no handler, or its path did not record its use.
        RunError: a handler does not give the gradients of single examples.
    """
    projected: dict[str, Callable[[Use, Tensor], Tensor]] = {}
    left: list[_Left] = []
    loss = torch.zeros((), dtype=torch.float64, device=net.device)
    start = outputs = 0
    for ahead in forward(net, x, y, likelihood, in_order(x, batch)):
        loss += ahead.loss
        outputs = ahead.outputs.shape[1]
        left = left or _nothing_yet(len(x) * fisher.number(outputs), rows, generator)
        for gradients in ahead.columns(likelihood, fisher, generator):
            for key, use in ahead.uses.items():
                if key not in projected:
                    projected[key] = _projection(key, use, gradients[key], width, generator)
                some = _rows(use, gradients[key], projected[key])
                for one in left:
                    one.add(key, _parameters(use), start, some)
            start += ahead.examples
    return Projection(float(loss), len(x), outputs, start, *(one.parts for one in left))


@attrs.frozen(eq=False)
class _Left:
    """What one way of keeping rows leaves of them.

    Attributes:
        keeping: the way.
        parts: what is left so far, in every tensor.
    """

    keeping: Sketch | Sample
    parts: dict[str, Projected] = attrs.field(factory=dict)

    def add(self, key: str, size: int, start: int, rows: Tensor) -> None:
        """Takes up the rows from the `start`-th on of a tensor of `size` parameters."""
        if key not in self.parts:
            self.parts[key] = Projected(rows.new_zeros(self.keeping.width, rows.shape[1]), size)
        self.keeping.add(self.parts[key].rows, start, rows)


def _nothing_yet(number: int, rows: int, generator: torch.Generator) -> list[_Left]:
    """For so many rows: sums of them and, where these are of several, some of the rows themselves."""
    mixed = _Left(Sketch(number, rows, generator))
    return [mixed] if number <= rows else [mixed, _Left(Sample(number, rows, generator))]


def _parameters(use: Use) -> int:
    tensor: Tensor = getattr(use.owner, use.tensor)
    return tensor.numel()


def _projection(
    key: str, use: Use, gradients: Tensor, width: int, generator: torch.Generator
) -> Callable[[Use, Tensor], Tensor]:
    rows, size = rows_for(use.owner, use.tensor, key), _parameters(use)
    if rows.outer is not None and size > _LARGE:
        uses = rows.outer
        a, g = uses(use.owner, use.inputs, gradients)
        outer = OuterSketch(g.shape[1], a.shape[1], width, generator)
        return lambda use, gradients: outer(*uses(use.owner, use.inputs, gradients))
    parts, sketch = rows.parts, Sketch(size, width, generator)
    return lambda use, gradients: sketch(parts(use.owner, use.inputs, gradients))


@torch.no_grad()
def _rows(use: Use, gradients: Tensor, projection: Callable[[Use, Tensor], Tensor]) -> Tensor:
    return projection(use, gradients) * use.scale
