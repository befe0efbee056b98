"""The facts that the analysis finds in a spec: frozen records that every later stage reads and none changes."""

from __future__ import annotations

import math
from typing import Literal

import attrs

from symdsl.catalog.data import Task as Task
from symdsl.catalog.shapes import FactorSize as FactorSize
from symdsl.catalog.shapes import Shape as Shape
from symdsl.catalog.signatures import Value as Value
from symdsl.diagnostics import Span

FLOAT32_BYTES = 4

Arguments = tuple[tuple[str, Value], ...]


@attrs.frozen
class Prior:
    """A Gaussian prior N(0, 1/precision) on every entry of a parameter tensor.

    Attributes:
        precision: the value at the start of the search.
        learned: whether the search may change it.
        stated: whether the spec gives it.
    """

    precision: float
    learned: bool
    stated: bool = attrs.field(default=False, eq=False)


@attrs.frozen
class ParameterTensor:
    """One parameter tensor of a candidate, as a matrix `W` whose Gauss-Newton block is `left (x) right`.

    Attributes:
        name: the path's own name for it (`w`, `w1`, `w2`).
        shape: the tensor's shape.
        left: size of the output-gradient factor G.
        right: size of the input factor A.
        prior: the prior on its entries.
    """

    name: str
    shape: tuple[int, ...]
    left: FactorSize
    right: FactorSize
    prior: Prior

    @property
    def parameters(self) -> int:
        """The number of entries."""
        return math.prod(self.shape)

    @property
    def curvature_bytes(self) -> int:
        """The bytes of both Kronecker factors, in float32."""
        return sum(FLOAT32_BYTES * factor.side**2 * factor.blocks for factor in (self.left, self.right))


@attrs.frozen
class Candidate:
    """One structure that a layer may use, with its parameter tensors.

    Attributes:
        name: unique in its layer: the kind, or the kind with its arguments where a layer has the kind twice.
        kind: name in the table of kinds.
        arguments: every argument of the kind with its value, defaults filled in.
        init_scale: factor on the standard deviation (of the product, for factored kinds) of the initial weights.
        tensors: its parameter tensors.
        preserves: what it is equivariant to in its strict limit, e.g. `("translations", "quarter turns")`.
        multiply_adds: multiply-adds of one example's forward pass, before a stride samples a phase.
        span: where the spec names it.
    """

    name: str
    kind: str
    arguments: Arguments
    init_scale: float
    tensors: tuple[ParameterTensor, ...]
    preserves: tuple[str, ...]
    multiply_adds: int
    span: Span

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return sum(tensor.parameters for tensor in self.tensors)

    @property
    def curvature_bytes(self) -> int:
        """The bytes of the Kronecker factors of all tensors, in float32."""
        return sum(tensor.curvature_bytes for tensor in self.tensors)

    def argument(self, name: str) -> Value:
        """Return the value of an argument of the kind; `KeyError` if the kind has no such argument."""
        return dict(self.arguments)[name]


@attrs.frozen
class Input:
    """The image that a network reads."""

    name: str
    out_shape: Shape
    span: Span


@attrs.frozen
class Lift:
    """Copies a plain image to every element of a group."""

    name: str
    in_shape: Shape
    out_shape: Shape
    span: Span


@attrs.frozen
class Layer:
    """A sum of candidates and one bias per output channel, if it has any, then the activations in order."""

    name: str
    in_shape: Shape
    out_shape: Shape
    stride: int
    candidates: tuple[Candidate, ...]
    bias: Prior | None
    activations: tuple[str, ...]
    span: Span

    @property
    def strides(self) -> tuple[int, int]:
        """The strides along rows and along columns."""
        return self.in_shape.height // self.out_shape.height, self.in_shape.width // self.out_shape.width

    @property
    def parameters(self) -> int:
        """The number of parameters of all candidates and the bias."""
        biases = 0 if self.bias is None else self.out_shape.channels
        return sum(candidate.parameters for candidate in self.candidates) + biases


@attrs.frozen
class Project:
    """Reduces a lifted map over its group, by `max` or `mean`: invariant to the group."""

    name: str
    in_shape: Shape
    out_shape: Shape
    reduction: Literal["max", "mean"]
    span: Span


@attrs.frozen
class Pool:
    """Reduces a map over all its positions, by `max` or `mean`: invariant to translations."""

    name: str
    in_shape: Shape
    out_shape: Shape
    reduction: Literal["max", "mean"]
    span: Span


@attrs.frozen
class Flatten:
    """Turns a map into a vector."""

    name: str
    in_shape: Shape
    out_shape: Shape
    span: Span


@attrs.frozen
class Join:
    """The end of a residual block: the output of the previous node plus that of the node `since`.

    The nodes between `since` and this one are the block's body, which ends with a layer.
    """

    name: str
    in_shape: Shape
    out_shape: Shape
    since: str
    span: Span


@attrs.frozen
class Average:
    """Makes transformed copies of a map, on each of which the nodes up to the `Mean` that names this one act.

    Attributes:
        ranges: by name of a generator, what its part of the transformation is at most, in the units of the language.
        samples: copies of every example.
        fixed: whether the search must leave the ranges as they are.
    """

    name: str
    in_shape: Shape
    out_shape: Shape
    ranges: tuple[tuple[str, float], ...]
    samples: int
    fixed: bool
    span: Span


@attrs.frozen
class Mean:
    """The mean over the copies that the node `since` made: the end of its body."""

    name: str
    in_shape: Shape
    out_shape: Shape
    since: str
    span: Span


Node = Input | Lift | Layer | Join | Average | Mean | Project | Pool | Flatten


@attrs.frozen
class Network:
    """A network: nodes that each read the one before, input first; shapes agree from one to the next."""

    name: str
    nodes: tuple[Node, ...]

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers, first to last."""
        return tuple(node for node in self.nodes if isinstance(node, Layer))


@attrs.frozen
class Step:
    """A data source or transform with every argument's value, defaults filled in."""

    name: str
    arguments: Arguments
    span: Span

    def argument(self, name: str) -> Value:
        """Return the value of an argument; `KeyError` if there is none of that name."""
        return dict(self.arguments)[name]

    def whole(self, name: str) -> int:
        """Return the value of an argument that must be a whole number; `TypeError` if it is something else."""
        value = self.argument(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"`{name}` of `{self.name}` (={value!r}) must be a whole number")
        return value


@attrs.frozen
class Data:
    """The data source, its transforms, and the shapes that result.

    Attributes:
        source: the data source.
        transforms: applied in order.
        channels: channels of an example after all transforms.
        height: rows after all transforms.
        width: columns after all transforms.
        classes: classes (or target columns, for regression) after all transforms.
        task: `classification`, or `regression` with a Gaussian likelihood.
    """

    source: Step
    transforms: tuple[Step, ...]
    channels: int
    height: int
    width: int
    classes: int
    task: Task


@attrs.frozen
class Fisher:
    """How the expectation over labels in the Gauss-Newton matrix is computed.

    Attributes:
        kind: all columns, or labels drawn from the model.
        samples: number of labels; of no meaning for `exact`.
    """

    kind: Literal["exact", "mc"]
    samples: int = 0


Curvature = Literal["kfac-expand", "kfac-reduce", "joint"]
"""How the Gauss-Newton matrix is approximated: by blocks, in one of two ways of sharing weights, or whole."""


@attrs.frozen
class Objective:
    """The objective of a search: the marginal likelihood, and how its curvature is estimated.

    Attributes:
        curvature: approximation of the Gauss-Newton matrix; None leaves it to the number of training examples.
        fisher: how Kronecker factors take the expectation over labels.
        name: Laplace's approximation, or the variational bound, which has no curvature to estimate.
    """

    curvature: Curvature | None
    fisher: Fisher
    name: Literal["laplace", "elbo"] = "laplace"


@attrs.frozen
class Optimizer:
    """How the weights are trained.

    Attributes:
        name: the method.
        lr: first learning rate, as a share of the size of the weights.
        schedule: how it goes down over the run.
        clip: bound on the gradient's norm; 0 for none.
    """

    name: Literal["adam"]
    lr: float
    schedule: Literal["cosine", "constant"]
    clip: float


@attrs.frozen
class Invariance:
    """A regulariser of training: `weight` times half the squared distance of logits around the orbit of a group.

    Attributes:
        group: as `symdsl.audit` takes it.
        weight: of the term, per example, beside the likelihood.
    """

    group: str
    weight: float


@attrs.frozen
class Mackay:
    """Prior update by MacKay's fixed point; `damping` in [0, 1) is the share of the old log precision that is kept."""

    damping: float


@attrs.frozen
class Search:
    """How the search runs; epochs count passes over the training data.

    Attributes:
        objective: what is maximised.
        start: how candidates start that break a symmetry which another of their layer keeps.
        epochs: total epochs.
        burnin: epochs before the first evidence step may happen.
        every: training steps between evidence steps; None leaves it to the costs of both.
        examples: training examples that an evidence step estimates the curvature on.
        optimizer: training of the parameters.
        prior_optimizer: update of the prior precisions.
        batch: examples per batch.
        seed: seeds initialisation, order and sampling.
        invariance: what training is regularised by, if by anything.
    """

    objective: Objective
    start: Literal["relaxed", "symmetric", "both"] | None
    epochs: int
    burnin: int
    every: int | None
    examples: int
    optimizer: Optimizer
    prior_optimizer: Mackay
    batch: int
    seed: int
    invariance: Invariance | None = None


@attrs.frozen
class Facts:
    """All that a checked spec states, with defaults filled in."""

    name: str
    data: Data
    network: Network
    search: Search
