"""Outputs of a network for many examples, and what its modules read."""

from __future__ import annotations

import torch
from torch import Tensor, nn

_BATCH = 512
"""Examples at a time."""


@torch.no_grad()
def outputs_of(module: nn.Module, x: Tensor) -> Tensor:
    """Return the outputs of a module for some examples, `[example, output]`, on its device.

    Args:
        module: computes them a batch at a time.
        x: `[example, ...]`; where there is none, neither is there an output, but its shape is right.
    """
    if not len(x):  # what reshapes its input cannot know the shape of nothing
        return outputs_of(module, x.new_zeros(1, *x.shape[1:]))[:0]
    device = next(module.parameters(), x).device
    return torch.cat([module(part.to(device)) for part in x.split(_BATCH)])


def read_by(net: nn.Module, stage: nn.Module, x: Tensor) -> Tensor:
    """Return what one of the modules of a network reads where the network reads `x`."""
    read: list[Tensor] = []
    hook = stage.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0]))
    outputs_of(net, x)
    hook.remove()
    return torch.cat(read)
