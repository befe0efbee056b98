"""One pass over the data feeds an estimate of the Gauss-Newton matrix."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Protocol, Self

import attrs
import torch
from torch import Tensor

from symdsl import ranks
from symdsl.diagnostics import NumericalError, RunError
from symdsl.evidence.loss import Exact, Fisher, Likelihood
from symdsl.evidence.weight_use import BatchUse, output_gradients
from symdsl.nn import Network, Use, derivatives_on, evaluation_mode


@attrs.frozen
class LogDet:
    """The log determinant of a Gauss-Newton matrix H and its slopes, at one set of prior precisions and one noise.

    Attributes:
        value: `log det(I + H / (noise delta))`, in nats: that of the posterior's precision less that of the prior's.
        effective: the effective number of parameters of each tensor, the slope of `value` in its `-log delta`.
    """

    value: float
    effective: dict[str, float]

    @property
    def total(self) -> float:
        """The effective number of parameters of all tensors together."""
        return math.fsum(self.effective.values())


class GGN(ABC):
    """An estimate of the Gauss-Newton matrix H of all parameters, summed over examples, at unit noise."""

    @property
    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """The number of parameters of every tensor, by key."""

    @abstractmethod
    def at(self, precisions: Mapping[str, float], noise: float = 1.0) -> LogDet:
        """Return `log det(I + H / (noise delta))` and its slopes; decompositions are made at the first call and kept.

        Raises:
            NumericalError: H is not finite or cannot be decomposed, with the tensor's name.
        """

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """Return H times `factor`: an estimate on m of N examples, times N / m, stands for all N."""


class Accumulator(Protocol):
    """A running estimate of the Gauss-Newton matrix, fed batch by batch: first inputs, then each gradient column."""

    def add_inputs(self, uses: Mapping[str, BatchUse]) -> None:
        """Add the inputs of every parameter tensor in one batch to the estimate."""
        ...

    def add_gradients(self, uses: Mapping[str, BatchUse], gradients: Mapping[str, Tensor], first: int) -> None:
        """Add the gradients in every tensor's output, for one column of a square root of Lambda, to the estimate.

        `first` is the number of the first of these per-example gradients among all of the pass, of all columns and
        ranks: it chooses their rows in a sketch.
        """
        ...

    def gather(self) -> None:
        """Sum the estimates of all ranks."""
        ...

    def ggn(self) -> GGN:
        """Return the estimate of the Gauss-Newton matrix."""
        ...


Curvature = Callable[[int, torch.Generator], Accumulator]
"""Makes the accumulator of a pass from its number of per-example gradients: examples times columns."""


@attrs.frozen(eq=False)
class Estimate:
    """The result of one pass over the data.

    Attributes:
        ggn: the Gauss-Newton matrix, summed over these examples, at unit noise.
        loss: the likelihood's loss, summed over these examples.
        examples: how many there were.
        outputs: width of the network's output.
    """

    ggn: GGN
    loss: float
    examples: int
    outputs: int

    def scaled_to(self, examples: int) -> Estimate:
        """Return the estimate for a data set of `examples` examples, of which those passed are a random sample."""
        factor = examples / self.examples
        return Estimate(self.ggn.scaled(factor), self.loss * factor, examples, self.outputs)


@derivatives_on()
def estimate(
    net: Network,
    x: Tensor,
    y: Tensor,
    likelihood: Likelihood,
    fisher: Fisher,
    generator: torch.Generator,
    curvature: Curvature,
    batch: int = 512,
    exact: int = 0,
) -> Estimate:
    """Estimate the Gauss-Newton matrix of a network's learned parameters, those with `requires_grad`, where they are.

    Averages take the transformations of the evaluation, in whatever mode the network is. Several ranks share out the
    examples of every batch and get the same estimate as one alone, but for round-off.

    Args:
        net: the network.
        x: inputs `[N, channel, row, column]`; a batch at a time goes to the network's device.
        y: targets `[N]` or `[N, output]`.
        likelihood: of the targets.
        fisher: which columns of Lambda's square root are propagated.
        generator: source of drawn labels, random signs and sketches, on the network's device.
        curvature: what is made of the gradients.
        batch: examples at a time; changes nothing but round-off, memory and what is drawn.
        exact: for how many examples, the first ones, all columns are propagated, whatever `fisher` says; for some more
            where a rank would otherwise have none of these or none of the others.

    Raises:
        TypeError: it is not known how a parameter tensor is used, or its path did not record its use, or its output was
            changed in place.
        ValueError: there are no examples, or no parameters are learned.
        RunError: there are more ranks than examples.
        NumericalError: an output of the network is not finite.
    """
    if not len(x):
        raise ValueError("no examples to estimate the curvature from")
    learned = [key for key, parameter in net.tensors().items() if parameter.requires_grad]
    if not learned:
        raise ValueError("all parameters are frozen: none has `requires_grad`, so there is no curvature to estimate")
    loss, width, added = torch.zeros((), dtype=torch.float64, device=net.device), 0, 0
    accumulator: Accumulator | None = None
    exact = _on_every_rank(exact, len(x))
    groups = [(Exact(), exact), (fisher, len(x) - exact)]
    batches = [(one, size) for one, examples in groups if examples for size in _batches(examples, batch)]
    sizes = [size for _, size in batches]
    with evaluation_mode(net):
        for (chosen, _), inputs, targets in zip(batches, x.split(sizes), y.split(sizes), strict=True):
            recorded: dict[str, Use] = {}
            own = ranks.share(len(inputs))
            outputs = net(inputs[own].to(net.device).clone(), recorded)
            if lost := [key for key in learned if key not in recorded]:
                raise TypeError(
                    f"the use of `{lost[0]}` was not recorded in the forward pass, so its curvature is unknown"
                )
            if changed := [key for key in learned if recorded[key].output.grad_fn is not recorded[key].node]:
                raise TypeError(f"what `{changed[0]}` wrote was changed in place, so its curvature is unknown")
            uses = {key: BatchUse.of(use) for key, use in recorded.items() if key in learned}
            loss += likelihood.loss(outputs.detach().double(), targets[own].to(net.device))
            width = outputs.shape[1]
            everywhere = ranks.gathered_examples(outputs.detach(), ranks.shares(len(inputs)))
            if not bool(everywhere.isfinite().all()):  # labels cannot be drawn from them
                raise NumericalError("the network's outputs are not finite")
            accumulator = accumulator or curvature(sum(size * one.number(width) for one, size in batches), generator)
            with torch.no_grad():
                accumulator.add_inputs(uses)
            for column in chosen.loss_hessian_sqrt(likelihood, everywhere, generator):
                own_gradients = output_gradients(outputs, column[own], uses)
                with torch.no_grad():
                    accumulator.add_gradients(uses, own_gradients, added + own.start)
                added += len(inputs)
    assert accumulator is not None, "there are examples"
    ranks.add_up([loss])
    accumulator.gather()
    return Estimate(accumulator.ggn(), float(loss), len(x), width)


def _on_every_rank(exact: int, examples: int) -> int:
    """Return `exact`, or somewhat more, so that every rank has one of these examples and one of the others."""
    exact = max(exact, ranks.count()) if exact else 0
    return exact if examples - exact >= ranks.count() else examples


def _batches(examples: int, batch: int) -> list[int]:
    """Sizes of the batches, in each of which every rank has an example: a last one that is too small joins another."""
    if examples < ranks.count():
        raise RunError(f"{examples} examples cannot be shared out among {ranks.count()} ranks: start fewer")
    *whole, last = [min(batch, examples - begin) for begin in range(0, examples, batch)]
    return [*whole[:-1], whole[-1] + last] if whole and last < ranks.count() else [*whole, last]
