"""The table of curvature handlers: one row per module and parameter tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from torch import Tensor, nn

from symdsl.curvature.bias import bias_gradients
from symdsl.curvature.convolution import patch_moment, plane_gradients
from symdsl.curvature.factored import input_planes, mixed_gradients, output_planes, position_gradients
from symdsl.curvature.fully_connected import fully_connected_gradients, fully_connected_inputs
from symdsl.curvature.group_convolution import group_gradients, group_inputs, pointwise_inputs
from symdsl.nn import BIAS, Conv, FactoredFullyConnected, FullyConnected, GroupConv, PointwiseGroupConv, RelaxedLayer

Factor = Callable[[Any, Tensor], Tensor]


@attrs.frozen
class Handler:
    """Curvature of one parameter tensor, written as W used R times per example: out_r = W a_r, r = 1..R.

    Attributes:
        right: `(owner, inputs) -> [block, side, side]`: sum over examples and uses of a a^T.
        left: `(owner, gradients) -> [block, side, side]`: sum over examples, mean over uses of g g^T, for the gradients
            in the tensor's output, columns of a square root of Lambda pulled back. Several columns may be stacked as
            further examples.
    """

    right: Factor
    left: Factor


HANDLERS: dict[type[nn.Module], dict[str, Handler]] = {
    FullyConnected: {
        "w": Handler(
            right=lambda path, inputs: fully_connected_inputs(inputs),
            left=lambda path, gradients: fully_connected_gradients(gradients),
        )
    },
    Conv: {
        "w": Handler(
            right=lambda path, inputs: patch_moment(inputs, path.w.shape[-1], path.stride).unsqueeze(0),
            left=lambda path, gradients: plane_gradients(gradients),
        )
    },
    FactoredFullyConnected: {
        "w1": Handler(
            right=lambda path, mixed: output_planes(mixed),
            left=lambda path, gradients: position_gradients(gradients),
        ),
        "w2": Handler(
            right=lambda path, inputs: input_planes(inputs),
            left=lambda path, gradients: mixed_gradients(gradients),
        ),
    },
    GroupConv: {"w": Handler(right=group_inputs, left=group_gradients)},
    PointwiseGroupConv: {"w": Handler(right=pointwise_inputs, left=group_gradients)},
    RelaxedLayer: {
        BIAS: Handler(
            right=lambda layer, inputs: inputs.new_full((1, 1, 1), len(inputs)),
            left=lambda layer, gradients: bias_gradients(gradients, layer.order),
        )
    },
}
"""Every handler by the module that owns the parameter and the parameter's name in it."""


def handler_for(owner: nn.Module, tensor: str) -> Handler:
    """The handler of one parameter tensor.

    Raises:
        TypeError: there is none, so that no parameter is ever left out of the curvature silently.
    """
    rows = HANDLERS.get(type(owner), {})
    if tensor not in rows:
        raise TypeError(f"no curvature handler for parameter `{tensor}` of {type(owner).__name__}")
    return rows[tensor]
