"""How outputs depend on weights: every parameter tensor as blocks W `[out, in]`, used R times per example."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
import torch
from torch import Tensor, nn

from symdsl.diagnostics import RunError
from symdsl.kinds.convolution.module import Conv
from symdsl.kinds.convolution.weight_use import patches
from symdsl.kinds.dense.module import FactoredFullyConnected, FullyConnected
from symdsl.nn import BIAS, Network, RelaxedLayer, Use


@attrs.frozen(eq=False)
class WeightUse:
    """How one batch uses a parameter tensor: the derivative of an output in W_block is sum_R gradient input^T.

    Attributes:
        inputs: what W is applied to, `[n, block, R, in]`.
        gradients: of each output in what W gives, `[n, output, block, R, out]`.
    """

    inputs: Tensor
    gradients: Tensor


def weight_uses(net: Network, x: Tensor, keys: Iterable[str]) -> tuple[Tensor, dict[str, WeightUse]]:
    """The outputs of a batch, `[n, output]`, and how it uses the parameter tensors of these keys.

    Args:
        net: the network; one pass forward and a pass backward for each output.
        x: `[n, channel, row, column]`, on the network's device.
        keys: of `net.tensors()`.

    Raises:
        RunError: a tensor is of a kind that has no such form.
    """
    recorded: dict[str, Use] = {}
    outputs = net(x, recorded)
    uses = {key: recorded[key] for key in keys}
    pulled = [_pulled(outputs[:, index], uses) for index in range(outputs.shape[1])]
    gradients = {key: torch.stack([one[key] for one in pulled], 1) * use.scale for key, use in uses.items()}
    return outputs.detach(), {key: _in_blocks(key, use, gradients[key]) for key, use in uses.items()}


def _pulled(output: Tensor, uses: dict[str, Use]) -> dict[str, Tensor]:
    found = torch.autograd.grad(output.sum(), [use.output for use in uses.values()], retain_graph=True)
    return dict(zip(uses, found, strict=True))


Blocks = Callable[[Any, Tensor, Tensor], tuple[Tensor, Tensor]]


def _fully_connected(path: FullyConnected, inputs: Tensor, gradients: Tensor) -> tuple[Tensor, Tensor]:
    return inputs.flatten(1)[:, None, None], gradients.flatten(2)[:, :, None, None]


def _convolution(path: Conv, inputs: Tensor, gradients: Tensor) -> tuple[Tensor, Tensor]:
    read = patches(inputs, path.w.shape[-1], path.stride).flatten(1, 2).mT
    return read.unsqueeze(1), gradients.flatten(3).mT.unsqueeze(2)


def _outer_factor(path: FactoredFullyConnected, inputs: Tensor, gradients: Tensor) -> tuple[Tensor, Tensor]:
    planes = gradients.reshape(*gradients.shape[:2], len(path.w1), -1)
    return inputs.unsqueeze(2), planes.unsqueeze(3)


def _inner_factor(path: FactoredFullyConnected, inputs: Tensor, gradients: Tensor) -> tuple[Tensor, Tensor]:
    return inputs.unsqueeze(2), gradients.mT.unsqueeze(3)


def _bias(layer: RelaxedLayer, inputs: Tensor, gradients: Tensor) -> tuple[Tensor, Tensor]:
    by_channel = gradients.sum((3, 4)).unflatten(2, (-1, layer.order)).sum(3)
    return inputs.new_ones(len(inputs), 1, 1, 1), by_channel[:, :, None, None]


_BLOCKS: dict[tuple[type[nn.Module], str], Blocks] = {
    (FullyConnected, "w"): _fully_connected,
    (Conv, "w"): _convolution,
    (FactoredFullyConnected, "w1"): _outer_factor,
    (FactoredFullyConnected, "w2"): _inner_factor,
    (RelaxedLayer, BIAS): _bias,
}


@torch.no_grad()
def _in_blocks(key: str, use: Use, gradients: Tensor) -> WeightUse:
    blocks = _BLOCKS.get((type(use.owner), use.tensor))
    if blocks is None:
        raise RunError(f"`{key}` has no calibrated predictive: only FC, CONV and F-FC have one")
    return WeightUse(*blocks(use.owner, use.inputs.detach(), gradients))
