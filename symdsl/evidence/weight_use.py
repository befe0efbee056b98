"""The one format for the use of a weight, from which all estimates of its curvature follow.

A parameter tensor is a matrix `W_block` `[out, in]` for each of its blocks, and every example uses it R times,
`out_r = W_block a_r`, with g_r the gradient in out_r (Eschenhagen et al. 2023, section 3):

    inputs      a    [n, block, R, in]
    gradients   g    [n, block, R, out]

Inside an `average` every example is a run of S copies, each of which uses the tensor: R counts the uses of them all.

The Kronecker factors (`symdsl.evidence.kfac`), the gradients of single examples, `sum_r g_r a_r^T`, and their sketches
(`symdsl.evidence.joint`) are computed from these two alone. A kind only says how to bring what its path reads, and the
gradients in what it writes, into the format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import torch
from torch import Tensor, nn

from symdsl.diagnostics import RunError
from symdsl.nn import BIAS, Path, RelaxedLayer, Use

_NUMBERS = 1 << 24
"""How many numbers of the format are held at a time."""


@attrs.frozen
class WeightUse:
    """A record of how a path uses one of its parameter tensors.

    Attributes:
        inputs: `(path, read) -> [n, block, R, in]`, of what the path recorded as read.
        gradients: `(path, read, gradients) -> [n, block, R, out]`, of the gradients in what it recorded as written.
        input_moment: `(path, read) -> [block, in, in]`: `sum_{n, r} a a^T`, where that is cheaper than from `inputs`.
        summed: whether the gradients of an example are those of a single use, whatever its copies.
    """

    inputs: Callable[[Any, Tensor], Tensor]
    gradients: Callable[[Any, Tensor, Tensor], Tensor]
    input_moment: Callable[[Any, Tensor], Tensor] | None = None
    summed: bool = False

    @classmethod
    def exact(cls, per_example_gradients: Callable[[Any, Tensor, Tensor], Tensor]) -> WeightUse:
        """Return the use of a tensor small enough for its whole Gauss-Newton block, as one vector for every example.

        Args:
            per_example_gradients: `(path, read, gradients) -> [n, parameter]`.
        """
        return cls(
            inputs=lambda path, read: read.new_ones(len(read), 1, 1, 1),
            gradients=lambda path, read, gradients: per_example_gradients(path, read, gradients)[:, None, None],
            summed=True,
        )


@attrs.frozen(eq=False)
class BatchUse:
    """The use of a parameter tensor by a batch of examples, read out for some examples at a time.

    Attributes:
        use: as it was recorded.
        weight: how to bring it into the format.
    """

    use: Use
    weight: WeightUse

    @classmethod
    def of(cls, use: Use) -> BatchUse:
        """Return the batch's use of a tensor from its record.

        Raises:
            TypeError: nothing is known of how its owner uses the tensor.
        """
        return cls(use, weight_use_of(use.owner, use.tensor))

    @property
    def examples(self) -> int:
        """The number of examples."""
        return len(self.use.inputs) // self.use.copies

    @property
    def size(self) -> int:
        """The number of parameters of the tensor."""
        return self.use.owner.get_parameter(self.use.tensor).numel()

    def inputs(self) -> Iterator[Tensor]:
        """Yield the inputs of the tensor, `[n, block, R, in]`, of some examples at a time."""
        return _in_parts(self._inputs, self.use.copies, self.use.inputs)

    def gradients(self, gradients: Tensor) -> Iterator[Tensor]:
        """Yield the gradients in the tensor's output, `[n, block, R, out]`, of some examples at a time.

        Args:
            gradients: those in the recorded output, of all examples.
        """
        return _in_parts(self._gradients, self.use.copies, self.use.inputs, gradients)

    def pairs(self, gradients: Tensor, held: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield gradients g and inputs a of some examples at a time, with room for `held` more numbers of each."""
        copies = self.use.copies
        numbers = self._inputs(self.use.inputs[:copies]).numel() + held
        parts = (maps.split(copies * max(1, _NUMBERS // numbers)) for maps in (self.use.inputs, gradients))
        for read, given in zip(*parts, strict=True):
            yield self._gradients(read, given), self._inputs(read)

    def _inputs(self, read: Tensor) -> Tensor:
        found = self.weight.inputs(self.use.owner, read)
        return found[:: self.use.copies] if self.weight.summed else self._by_example(found)

    def _gradients(self, read: Tensor, gradients: Tensor) -> Tensor:
        found = self.weight.gradients(self.use.owner, read, gradients) * self.use.scale
        return found.unflatten(0, (-1, self.use.copies)).sum(1) if self.weight.summed else self._by_example(found)

    def _by_example(self, found: Tensor) -> Tensor:
        """The uses of all copies of an example as uses of it: `[n S, block, R, side] -> [n, block, S R, side]`."""
        return found.unflatten(0, (-1, self.use.copies)).transpose(1, 2).flatten(2, 3) if self.use.copies > 1 else found


def per_example_gradients(g: Tensor, a: Tensor) -> Tensor:
    """Return `sum_r g_r a_r^T` of every example, `[n, parameter]`, in an order of parameters that never changes."""
    return (g.mT * a if a.shape[2] == 1 else g.mT @ a).flatten(1)


def _in_parts(form: Callable[..., Tensor], copies: int, *maps: Tensor) -> Iterator[Tensor]:
    """Yield `form` of the maps, of some examples at a time, each with `copies` rows."""
    numbers = form(*(one[:copies] for one in maps)).numel()
    yield from map(form, *(one.split(copies * max(1, _NUMBERS // numbers)) for one in maps))


def _bias_gradients(layer: RelaxedLayer, read: Tensor, gradients: Tensor) -> Tensor:
    """Return every example's gradient in a layer's bias, summed over positions and elements: `[n, C']`."""
    summed: Tensor = gradients.sum((2, 3)).unflatten(1, (-1, layer.order)).sum(2)
    return summed


_BIAS = {BIAS: WeightUse.exact(_bias_gradients)}


def output_gradients(outputs: Tensor, column: Tensor, uses: Mapping[str, BatchUse]) -> dict[str, Tensor]:
    """Return the gradients in what every tensor's path writes, of one column of gradients in the outputs, by key.

    Args:
        outputs: of the network, `[n, output]`.
        column: the gradients in them, `[n, output]`.
        uses: of the tensors in the same pass, by key.

    Raises:
        ValueError: no path leads from a tensor to the outputs.
    """
    written = {id(one.use.output): one.use.output for one in uses.values()}
    found = torch.autograd.grad(outputs, list(written.values()), column, retain_graph=True, allow_unused=True)
    by_output = dict(zip(written, found, strict=True))
    lost = [key for key, one in uses.items() if by_output[id(one.use.output)] is None]
    if lost:
        raise ValueError(f"`{lost[0]}` has no influence on the outputs: a layer after it has no path left")
    return {key: by_output[id(one.use.output)] for key, one in uses.items()}


def weight_use_of(owner: nn.Module, tensor: str) -> WeightUse:
    """Return how a layer or path uses one of its parameter tensors.

    Raises:
        TypeError: it is not known, so that no parameter is ever left out of the curvature without a word.
    """
    uses: Mapping[str, WeightUse] = _BIAS if isinstance(owner, RelaxedLayer) else {}
    if isinstance(owner, Path):
        uses = owner.weight_uses
    if tensor not in uses:
        raise TypeError(f"no weight use for parameter `{tensor}` of {type(owner).__name__}")
    return uses[tensor]


def demand_weight_uses(path: Path, place: str) -> None:
    """Check that every parameter that a path learns has a weight use, so that a missing one is known before training.

    Args:
        path: the module.
        place: where it stands, `layer.path`.

    Raises:
        RunError: a parameter has none; it is named.
    """
    for tensor, parameter in path.named_parameters():
        if not parameter.requires_grad:
            continue
        try:
            weight_use_of(path, tensor)
        except TypeError as error:
            raise RunError(f"`{place}.{tensor}` cannot be searched over: {error}") from None
