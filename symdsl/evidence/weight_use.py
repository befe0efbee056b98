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
from functools import cached_property, partial
from typing import Any

import attrs
import torch
from torch import Tensor, nn

from symdsl.nn import BIAS, Path, RelaxedLayer, Use, derivatives_on, evaluation_mode

_NUMBERS = 1 << 22
"""How many numbers of the format are held at a time."""

_ALIKE = 1e-3
"""Differences of float32 numbers, as a share of the largest, that are taken to be round-off."""

_ROUND_OFF = 1e-10
"""What is left of a sum that should vanish, as a share of the squares of what is added up."""


@attrs.frozen
class WeightUse:
    """A record of how a path uses one of its parameter tensors.

    Attributes:
        inputs: `(path, read) -> [n, block, R, in]`, of what the path recorded as read.
        gradients: `(path, read, gradients) -> [n, block, R, out]`, of the gradients in what it recorded as written.
        input_moment: `(path, read) -> [block, in, in]`: `sum_{n, r} a a^T`, where that is cheaper than from `inputs`.
        input_sum: `(path, read) -> [n, block, in]`: `sum_r a`, where that is cheaper than from `inputs`.
        summed: whether an example has a single use: the gradients of its copies in an `average` are added up, and the
            input of one stands for all.
    """

    inputs: Callable[[Any, Tensor], Tensor]
    gradients: Callable[[Any, Tensor, Tensor], Tensor]
    input_moment: Callable[[Any, Tensor], Tensor] | None = None
    input_sum: Callable[[Any, Tensor], Tensor] | None = None
    summed: bool = False

    @classmethod
    def exact(cls, per_example_gradients: Callable[[Any, Tensor, Tensor], Tensor]) -> WeightUse:
        """Return the use of a tensor small enough for its whole Gauss-Newton block, as one vector for every example.

        Args:
            per_example_gradients: `(path, read, gradients) -> [n, parameter]`.
        """

        def in_format(path: Any, read: Tensor, gradients: Tensor) -> Tensor:
            parts = in_parts(max(read[0].numel(), gradients[0].numel()), read, gradients)
            return torch.cat([per_example_gradients(path, *part) for part in parts])[:, None, None]

        return cls(inputs=lambda path, read: read.new_ones(len(read), 1, 1, 1), gradients=in_format, summed=True)


@attrs.frozen(eq=False, slots=False)
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
        return (self._inputs(read) for (read,) in self._in_parts(self._first.numel(), self.use.inputs))

    def gradients(self, gradients: Tensor) -> Iterator[Tensor]:
        """Yield the gradients in the tensor's output, `[n, block, R, out]`, of some examples at a time.

        Args:
            gradients: those in the recorded output, of all examples.
        """
        numbers = self._gradients(*(maps[: self.use.copies] for maps in (self.use.inputs, gradients))).numel()
        return (self._gradients(*part) for part in self._in_parts(numbers, self.use.inputs, gradients))

    def pairs(self, gradients: Tensor, held: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield gradients g and inputs a of some examples at a time, with room for `held` more numbers of each."""
        for read, given in self._in_parts(self._first.numel() + held, self.use.inputs, gradients):
            yield self._gradients(read, given), self._inputs(read)

    def input_moment(self) -> Tensor | None:
        """Return `sum_{n, r} a a^T`, `[block, in, in]`, if there is a cheaper way to it than from all `inputs`."""
        moment = self.weight.input_moment
        return None if moment is None else moment(self.use.owner, self.use.inputs)

    def input_sums(self) -> Iterator[Tensor]:
        """Yield `sum_r a`, `[n, block, in]`, of some examples at a time."""
        if self.weight.input_sum is None:
            return (a.sum(2) if a.shape[2] > 1 else a.squeeze(2) for a in self.inputs())
        found = self.weight.input_sum(self.use.owner, self.use.inputs)
        return iter([found.unflatten(0, (-1, self.use.copies)).sum(1)])

    @cached_property
    def uses(self) -> int:
        """R, how often an example uses the tensor."""
        return self._first.shape[2]

    @property
    def side(self) -> int:
        """The length of an input of the tensor."""
        return self._first.shape[3]

    @cached_property
    def _first(self) -> Tensor:
        """The inputs of the first example."""
        return self._inputs(self.use.inputs[: self.use.copies])

    def _in_parts(self, numbers: int, *maps: Tensor) -> Iterator[tuple[Tensor, ...]]:
        return in_parts(numbers, *maps, rows=self.use.copies)

    def _inputs(self, read: Tensor) -> Tensor:
        found = self.weight.inputs(self.use.owner, read)
        return found[:: self.use.copies] if self.weight.summed else self._by_example(found)

    def _gradients(self, read: Tensor, gradients: Tensor) -> Tensor:
        found = self.weight.gradients(self.use.owner, read, gradients) * self.use.scale
        return found.unflatten(0, (-1, self.use.copies)).sum(1) if self.weight.summed else self._by_example(found)

    def _by_example(self, found: Tensor) -> Tensor:
        """The uses of all copies of an example as uses of it: `[n S, block, R, side] -> [n, block, S R, side]`."""
        return found.unflatten(0, (-1, self.use.copies)).transpose(1, 2).flatten(2, 3) if self.use.copies > 1 else found


def in_parts(numbers: int, *maps: Tensor, rows: int = 1) -> Iterator[tuple[Tensor, ...]]:
    """Split maps into parts of as many examples as `_NUMBERS` have room for.

    Args:
        numbers: that are held for an example.
        maps: `[n rows, ...]`.
        rows: of an example.
    """
    return zip(*(one.split(rows * max(1, _NUMBERS // max(1, numbers))) for one in maps), strict=True)


def per_example_gradients(g: Tensor, a: Tensor) -> Tensor:
    """Return `sum_r g_r a_r^T` of every example, `[n, parameter]`, in an order of parameters that never changes."""
    # A product of tensors that are not contiguous is not contiguous either, and flattening would copy it.
    return (g.mT.contiguous() * a.contiguous() if a.shape[2] == 1 else g.mT @ a).flatten(1)


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
    written = [one.use.output for one in uses.values()]
    found = torch.autograd.grad(outputs, written, column, retain_graph=True, allow_unused=True)
    gradients = dict(zip(uses, found, strict=True))
    lost = [key for key, one in gradients.items() if one is None]
    if lost:
        raise ValueError(f"`{lost[0]}` has no influence on the outputs: a layer after it has no path left")
    return gradients


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


@derivatives_on()
def check_weight_uses(path: Path, x: Tensor) -> None:
    """Check that gradients of single examples that follow from a path's weight uses are those that autograd finds.

    Their inner products are compared, as the format knows no order of a tensor's parameters. Tensors that start at
    zero, which hide how others are used, are random meanwhile.

    Args:
        path: the module, in whatever mode.
        x: what it reads, `[n, plane, row, column]`.

    Raises:
        ValueError: a tensor was not recorded, or other gradients follow from its use; it is named.
        TypeError: it is not known how a tensor is used.
    """
    learned = {tensor: one for tensor, one in path.named_parameters() if one.requires_grad}
    empty = [one for one in learned.values() if not bool(one.any())]
    with evaluation_mode(path), torch.random.fork_rng(devices=[]):
        try:
            torch.default_generator.manual_seed(0)
            for one in empty:
                torch.nn.init.normal_(one, std=0.1)
            _check_learned(path, learned, x)
        finally:
            for one in empty:
                torch.nn.init.zeros_(one)


def _check_learned(path: Path, learned: Mapping[str, Tensor], x: Tensor) -> None:
    reads: dict[str, tuple[Tensor, Tensor | None]] = {}

    def record(tensor: str, inputs: Tensor, output: Tensor | None) -> None:
        if tensor in reads:
            raise ValueError(f"the forward pass records `{tensor}` twice; it records all uses of a tensor at once")
        reads[tensor] = inputs, output

    drawn = torch.get_rng_state()
    y = path(x, record)
    torch.set_rng_state(drawn)
    if not _alike(path(x), y):
        raise ValueError("the forward pass gives other outputs where it records")
    column = torch.randn_like(y)
    each = torch.eye(len(x)).to(y)[..., None, None, None] * column
    gradient = partial(torch.autograd.grad, y, retain_graph=True, materialize_grads=True)
    for tensor, parameter in learned.items():
        if tensor not in reads:
            raise ValueError(f"the forward pass does not record the use of `{tensor}`")
        inputs, output = reads[tensor]
        (given,) = (column,) if output is None else gradient(output, column)
        use = BatchUse(Use(path, tensor, inputs, y, 1.0), weight_use_of(path, tensor))
        with torch.no_grad():
            pairs = [*use.pairs(given)]
        if any(g.ndim != 4 or a.ndim != 4 or g.shape[:3] != a.shape[:3] for g, a in pairs):
            (g, a), *_ = pairs
            shapes = f"inputs {list(a.shape)}, gradients {list(g.shape)}"
            raise ValueError(f"`{tensor}` has {shapes}, expected [n, block, R, in] and [n, block, R, out]")
        found = torch.cat([per_example_gradients(g, a) for g, a in pairs])
        expected = torch.stack([gradient(parameter, one)[0].flatten() for one in each])
        round_off = _ROUND_OFF * sum(float((g.norm() * a.norm()) ** 2) for g, a in pairs)
        if found.shape != expected.shape or not _alike(found @ found.T, expected @ expected.T, round_off):
            raise ValueError(f"the gradients in `{tensor}` that follow from its use are not those of autograd")
        with torch.no_grad():
            moment, a = use.input_moment(), torch.cat([a for _, a in pairs])
            if moment is not None and not _alike(moment, torch.einsum("nbri,nbrj->bij", a, a)):
                raise ValueError(f"the `input_moment` of `{tensor}` is not that of its inputs")
            round_off = _ALIKE * float(a.abs().max())
            if use.weight.input_sum is not None and not _alike(torch.cat([*use.input_sums()]), a.sum(2), round_off):
                raise ValueError(f"the `input_sum` of `{tensor}` is not that of its inputs")


def _alike(found: Tensor, expected: Tensor, round_off: float = 0.0) -> bool:
    most = _ALIKE * float(expected.detach().abs().max()) + round_off
    return found.shape == expected.shape and float((found - expected).detach().abs().max()) <= most
