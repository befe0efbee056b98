"""The cost of a network: parameters, multiply-adds, and bytes of memory."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

from symdsl.analysis.averages import copies
from symdsl.analysis.facts import FLOAT32_BYTES, Candidate, Data, FactorSize, Join, Layer, Node, ParameterTensor
from symdsl.catalog.searches import TARGET_COLUMNS
from symdsl.graph.build import chain, layers

if TYPE_CHECKING:
    import networkx as nx

EVIDENCE_SHARE = 0.1
"""Time of evidence steps relative to that of training steps, unless a spec says how often they come."""

RELATIVE_COST = {"joint": 6.5, "kfac": 2.0}
"""Time of estimating the curvature relative to that of training on as many examples (`benchmarks/evidence.py`).

Kronecker factors of convolutions alone take half of that.
"""

EIGENVALUE_COST = 5.0
"""Time of the eigenvalues of a matrix of side n relative to n^3 multiply-adds of a training step."""

_BACKWARD = 3
"""Multiply-adds of a training step relative to those of its forward pass."""


@attrs.frozen
class Memory:
    """Memory estimates, in bytes of float32 numbers.

    Attributes:
        parameters: all weights and biases, once (gradients and optimizer state come on top).
        activations: the feature maps of one batch that the backward pass needs.
        curvature: the Kronecker factors of every layer, at most: those of FC take less on few examples. The workspace
            of their decomposition comes on top.
    """

    parameters: int
    activations: int
    curvature: int


def parameters(graph: nx.DiGraph[str]) -> int:
    """Return the number of parameters of all candidates and biases."""
    return sum(layer.parameters for layer in layers(graph))


def multiply_adds(graph: nx.DiGraph[str]) -> int:
    """Return the multiply-adds of one example's forward pass through all candidates.

    Of a layer with a stride that is the pass on the fine grid, which finds the phase; the next one has fewer.
    """
    times = copies(chain(graph))
    return sum(times[layer.name] * one.multiply_adds for layer in layers(graph) for one in layer.candidates)


def biases(layer: Layer) -> tuple[ParameterTensor, ...]:
    """Return a layer's bias as a tensor with one dense curvature block, if it has one."""
    if layer.bias is None:
        return ()
    channels = layer.out_shape.channels
    return (ParameterTensor("bias", (channels,), FactorSize(channels, 1), FactorSize(1, 1), layer.bias),)


def layer_curvature_bytes(layer: Layer) -> int:
    """Return the bytes of the Kronecker factors of a layer, bias included."""
    return sum(one.curvature_bytes for one in layer.candidates) + sum(one.curvature_bytes for one in biases(layer))


def joint_columns(data: Data) -> int:
    """Return how many gradients of an example an evidence step sketches: one of classes, up to 16 of targets."""
    return min(data.classes, TARGET_COLUMNS) if data.task == "regression" else 1


def evidence_interval(nodes: Iterable[Node], curvature: str, examples: int, batch: int, columns: int = 1) -> int:
    """Return the training steps between evidence steps for which evidence takes about a tenth of the time.

    With residual blocks that includes the joint matrix, and a forward pass without each block.

    Args:
        nodes: of the network.
        curvature: `joint`, or another name of a curvature.
        examples: examples that an evidence step uses.
        batch: examples of a training step.
        columns: see `joint_columns`.
    """
    nodes = tuple(nodes)
    blocks = sum(isinstance(node, Join) for node in nodes)
    joint = columns * RELATIVE_COST["joint"] if curvature == "joint" or blocks else 0.0
    kfac = RELATIVE_COST["kfac"] if curvature != "joint" else 0.0
    passes = blocks / _BACKWARD + (joint + kfac)
    times = copies(nodes)
    candidates = [(one, times[node.name]) for node in nodes if isinstance(node, Layer) for one in node.candidates]
    training = _BACKWARD * batch * sum(number * one.multiply_adds for one, number in candidates)
    summed = curvature == "kfac-reduce"
    cubes = sum(_cubes(one, examples * (1 if summed else number * _uses(one))) for one, number in candidates)
    steps = passes * examples / batch + EIGENVALUE_COST * cubes / training
    return math.ceil(steps / EVIDENCE_SHARE)


def _uses(candidate: Candidate) -> int:
    """How often an example uses a weight."""
    return -(-candidate.multiply_adds // max(candidate.parameters, 1))


def _cubes(candidate: Candidate, vectors: int) -> int:
    """Sum of n^3 over all blocks of both factors of every tensor, n a side or the vectors added up if they are fewer.

    An input factor adds up so many for each of its blocks, the output factor those of all blocks.
    """
    added = [(one.left, vectors * one.right.blocks) for one in candidate.tensors]
    added += [(one.right, vectors) for one in candidate.tensors]
    return sum(factor.blocks * min(factor.side, most) ** 3 for factor, most in added)


def memory(graph: nx.DiGraph[str], batch: int) -> Memory:
    """Estimate the memory for batches of `batch` examples.

    Raises:
        ValueError: `batch` is not positive.
    """
    if batch < 1:
        raise ValueError(f"`batch` (={batch}) must be at least 1")
    times = copies(chain(graph))
    return Memory(
        parameters=FLOAT32_BYTES * parameters(graph),
        activations=FLOAT32_BYTES * batch * sum(times[node.name] * _kept_numbers(node) for node in chain(graph)),
        curvature=sum(map(layer_curvature_bytes, layers(graph))),
    )


def _kept_numbers(node: Node) -> int:
    """Numbers of one example kept for the backward pass: a node's output, and the input of each activation."""
    maps = 1 + len(node.activations) if isinstance(node, Layer) else 1
    return maps * node.out_shape.size
