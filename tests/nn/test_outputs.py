"""Outputs of many examples."""

from __future__ import annotations

import torch

from oracles.comparison import assert_same
from oracles.records import Chain, candidate, sparse
from symdsl import lowering
from symdsl.nn import Network, outputs_of


def network() -> Network:
    layers = Chain(1, 4, 4).layer(
        candidate("CONV"), candidate("F-FC"), sparse("S-FC"), channels=2, activations=("tanh",)
    )
    return lowering.build(tuple(layers.flatten().layer(candidate("FC"), channels=3).nodes), 0).double()


def test_batches_are_put_together() -> None:
    net, x = network(), torch.randn(1100, 1, 4, 4, dtype=torch.float64)
    assert_same(outputs_of(net, x), net(x).detach())


def test_no_examples_have_outputs_of_the_same_shape() -> None:
    found = outputs_of(network(), torch.zeros(0, 1, 4, 4, dtype=torch.float64))
    assert (found.shape, found.dtype) == ((0, 3), torch.float64)
