"""The table of curvature handlers: one row per module and parameter tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import attrs
from torch import Tensor, nn

from symdsl.curvature.bias import bias_jacobian
from symdsl.curvature.convolution import (
    patch_moment,
    plane_gradients,
    summed_patch_moment,
    summed_plane_gradients,
)
from symdsl.curvature.factored import input_planes, mixed_gradients, output_planes, plane_uses, position_gradients
from symdsl.curvature.factored_group_convolution import (
    channel_inputs,
    element_inputs,
    filter_gradients,
    filter_inputs,
    mixing_inputs,
    slot_gradients,
    space_inputs,
    summed_channel_inputs,
    summed_element_inputs,
    summed_filter_gradients,
    summed_filter_inputs,
    summed_mixing_inputs,
    summed_slot_gradients,
    summed_space_inputs,
)
from symdsl.curvature.fully_connected import fully_connected_gradients, fully_connected_inputs
from symdsl.curvature.group_convolution import (
    group_gradients,
    group_inputs,
    pointwise_inputs,
    summed_group_gradients,
    summed_group_inputs,
    summed_pointwise_inputs,
)
from symdsl.curvature.kronecker import Factor
from symdsl.curvature.rows import (
    Formed,
    Rows,
    channel_uses,
    element_rows,
    filter_uses,
    group_filter_rows,
    mixture_rows,
    pointwise_rows,
    pointwise_uses,
    shared_filter_rows,
    space_rows,
    sparse_filter_uses,
)
from symdsl.curvature.sparse import (
    anchor_gradients,
    filter_jacobian,
    group_tap_gradients,
    inner_jacobian,
    outer_block,
    outer_jacobian,
    projected,
    tap_gradients,
)
from symdsl.diagnostics import RunError
from symdsl.nn import (
    BIAS,
    Conv,
    DepthwiseGroupConv,
    FactoredFullyConnected,
    FullyConnected,
    GroupConv,
    Network,
    Path,
    PointwiseGroupConv,
    RelaxedLayer,
    SeparableGroupConv,
    SparseConv,
    SparseFullyConnected,
    SparseGroupConv,
)

Sharing = Literal["expand", "reduce"]
"""Whether the uses of a shared weight are summed after (expand) or before (reduce) the outer product."""


@attrs.frozen
class Factors:
    """How the two factors of one parameter tensor are accumulated.

    Attributes:
        right: `(owner, inputs) -> [block, side, side]`, summed over examples; or the rows of which it is the sum.
        left: `(owner, inputs, gradients) -> [block, side, side]`, summed over examples, for the gradients in the
            tensor's output: columns of a square root of Lambda pulled back; or the rows.
    """

    right: Callable[[Any, Tensor], Factor]
    left: Callable[[Any, Tensor, Tensor], Factor]


@attrs.frozen
class Handler:
    """Curvature of one parameter tensor, written as W used R times per example: out_r = W a_r, r = 1..R.

    Eschenhagen et al. (2023), section 3.

    Attributes:
        expand: right = sum_{n, r} a a^T, left = (1/R) sum_{n, r} g g^T.
        reduce: with a_n = sum_r a_r and g_n = sum_r g_r, right = (1/R) sum_n a_n a_n^T, left = (1/R) sum_n g_n g_n^T.
        rows: of every example's gradient in the tensor. Without them the block's determinant is not bounded, and the
            tensor is not part of a matrix of all tensors.
        whole: whether the factors are the whole block, whose determinant needs no bound.
    """

    expand: Factors
    reduce: Factors
    rows: Rows | None = None
    whole: bool = False

    @classmethod
    def unshared(
        cls,
        right: Callable[[Any, Tensor], Factor],
        left: Callable[[Any, Tensor, Tensor], Factor],
        rows: Rows | None = None,
    ) -> Handler:
        """The handler of a weight that is not shared between positions, for which expand and reduce agree."""
        factors = Factors(right, left)
        return cls(factors, factors, rows)

    @classmethod
    def exact(cls, jacobian: Callable[[Any, Tensor, Tensor], Tensor]) -> Handler:
        """The handler of a tensor so small that its whole Gauss-Newton block sum_n j j^T is formed.

        Args:
            jacobian: `(owner, inputs, gradients) -> [n, parameter]`: the gradient of every example in the tensor.
        """
        factors = Factors(
            right=lambda owner, inputs: inputs.new_full((1, 1, 1), len(inputs)),
            left=lambda owner, inputs, gradients: outer_block(jacobian(owner, inputs, gradients)),
        )
        return cls(factors, factors, Rows.formed(jacobian), whole=True)

    def factors(self, sharing: Sharing) -> Factors:
        """The factors under one way of treating shared weights."""
        return self.expand if sharing == "expand" else self.reduce


Right = Callable[[Any, Tensor], Tensor]


def _mixing(expand: Right, reduce: Right, rows: Rows) -> Handler:
    """The handler of a tensor of a group convolution that gives all output channels of an element and position."""
    return Handler(
        expand=Factors(expand, lambda path, inputs, gradients: group_gradients(path, gradients)),
        reduce=Factors(reduce, lambda path, inputs, gradients: summed_group_gradients(path, gradients)),
        rows=rows,
    )


def _slotted(expand: Right, reduce: Right, rows: Formed) -> Handler:
    """The handler of a tensor of a group convolution that gives one number of a channel of its own."""
    return Handler(
        expand=Factors(expand, lambda path, inputs, gradients: slot_gradients(path, gradients)),
        reduce=Factors(reduce, lambda path, inputs, gradients: summed_slot_gradients(path, gradients)),
        rows=Rows.formed(rows),
    )


HANDLERS: dict[type[nn.Module], dict[str, Handler]] = {
    FullyConnected: {
        "w": Handler.unshared(
            right=lambda path, inputs: fully_connected_inputs(inputs),
            left=lambda path, inputs, gradients: fully_connected_gradients(gradients),
            rows=Rows.once(lambda path, inputs, gradients: (inputs.flatten(1), gradients.flatten(1))),
        )
    },
    Conv: {
        "w": Handler(
            expand=Factors(
                right=lambda path, inputs: patch_moment(inputs, path.w.shape[-1], path.stride).unsqueeze(0),
                left=lambda path, inputs, gradients: plane_gradients(gradients),
            ),
            reduce=Factors(
                right=lambda path, inputs: summed_patch_moment(inputs, path.w.shape[-1], path.stride),
                left=lambda path, inputs, gradients: summed_plane_gradients(gradients),
            ),
            rows=Rows.shared(
                "w", lambda path, inputs, gradients: filter_uses(inputs, gradients, path.w.shape[-1], path.stride)
            ),
        )
    },
    FactoredFullyConnected: {
        "w1": Handler.unshared(
            right=lambda path, mixed: output_planes(mixed),
            left=lambda path, mixed, gradients: position_gradients(gradients.reshape(len(mixed), len(path.w1), -1)),
            rows=Rows.slotted(lambda path, mixed, gradients: (mixed, gradients.reshape(len(mixed), len(path.w1), -1))),
        ),
        "w2": Handler.unshared(
            right=lambda path, inputs: input_planes(inputs),
            left=lambda path, inputs, gradients: mixed_gradients(gradients),
            rows=Rows.slotted(lambda path, inputs, gradients: plane_uses(inputs, gradients)),
        ),
    },
    GroupConv: {"w": _mixing(group_inputs, summed_group_inputs, Rows.formed(group_filter_rows))},
    PointwiseGroupConv: {
        "w": _mixing(pointwise_inputs, summed_pointwise_inputs, Rows.shared("w", pointwise_uses, pointwise_rows))
    },
    SeparableGroupConv: {
        "w1": _mixing(mixing_inputs, summed_mixing_inputs, Rows.formed(mixture_rows)),
        "w2": Handler(
            expand=Factors(filter_inputs, lambda path, inputs, gradients: filter_gradients(path, gradients)),
            reduce=Factors(
                summed_filter_inputs, lambda path, inputs, gradients: summed_filter_gradients(path, gradients)
            ),
            rows=Rows.formed(shared_filter_rows),
        ),
    },
    DepthwiseGroupConv: {
        "w0": _mixing(channel_inputs, summed_channel_inputs, Rows.shared("w0", channel_uses)),
        "w1": _slotted(element_inputs, summed_element_inputs, element_rows),
        "w2": _slotted(space_inputs, summed_space_inputs, space_rows),
    },
    SparseFullyConnected: {
        "u1": Handler.unshared(
            right=lambda path, mixed: output_planes(mixed),
            left=lambda path, mixed, gradients: position_gradients(anchor_gradients(path, gradients)),
            rows=Rows.slotted(lambda path, mixed, gradients: (mixed, anchor_gradients(path, gradients))),
        ),
        "u2": Handler.unshared(
            right=lambda path, read: input_planes(read @ path.phi2().T),
            left=lambda path, read, gradients: mixed_gradients(gradients),
            rows=Rows.slotted(lambda path, read, gradients: plane_uses(read @ path.phi2().T, gradients)),
        ),
        "omega1": Handler.exact(
            lambda path, mixed, gradients: outer_jacobian(
                path, mixed, gradients, path.basis1.slopes_in_omega(path.omega1, path.anchors1)
            )
        ),
        "omega2": Handler.exact(
            lambda path, read, gradients: inner_jacobian(
                path, read, gradients, path.basis2.slopes_in_omega(path.omega2, path.anchors2)
            )
        ),
        "anchors1": Handler.exact(
            lambda path, mixed, gradients: outer_jacobian(
                path, mixed, gradients, path.basis1.slopes_in_anchors(path.omega1, path.anchors1)
            )
        ),
        "anchors2": Handler.exact(
            lambda path, read, gradients: inner_jacobian(
                path, read, gradients, path.basis2.slopes_in_anchors(path.omega2, path.anchors2)
            )
        ),
    },
    SparseConv: {
        "u": Handler(
            expand=Factors(
                right=lambda path, inputs: projected(
                    patch_moment(inputs, path.kernel, path.stride).unsqueeze(0), path.phi()
                ),
                left=lambda path, inputs, gradients: plane_gradients(gradients),
            ),
            reduce=Factors(
                right=lambda path, inputs: projected(summed_patch_moment(inputs, path.kernel, path.stride), path.phi()),
                left=lambda path, inputs, gradients: summed_plane_gradients(gradients),
            ),
            rows=Rows.shared("u", sparse_filter_uses),
        ),
        "omega": Handler.exact(
            lambda path, inputs, gradients: filter_jacobian(
                tap_gradients(path, inputs, gradients), path.basis.slopes_in_omega(path.omega, path.anchors)
            )
        ),
        "anchors": Handler.exact(
            lambda path, inputs, gradients: filter_jacobian(
                tap_gradients(path, inputs, gradients), path.basis.slopes_in_anchors(path.omega, path.anchors)
            )
        ),
    },
    SparseGroupConv: {
        "u": Handler(
            expand=Factors(
                right=lambda path, inputs: projected(group_inputs(path, inputs), path.phi()),
                left=lambda path, inputs, gradients: group_gradients(path, gradients),
            ),
            reduce=Factors(
                right=lambda path, inputs: projected(summed_group_inputs(path, inputs), path.phi()),
                left=lambda path, inputs, gradients: summed_group_gradients(path, gradients),
            ),
            rows=Rows.formed(lambda path, inputs, gradients: group_filter_rows(path, inputs, gradients) @ path.phi().T),
        ),
        "omega": Handler.exact(
            lambda path, inputs, gradients: filter_jacobian(
                group_tap_gradients(path, inputs, gradients), path.basis.slopes_in_omega(path.omega, path.anchors)
            )
        ),
        "anchors": Handler.exact(
            lambda path, inputs, gradients: filter_jacobian(
                group_tap_gradients(path, inputs, gradients), path.basis.slopes_in_anchors(path.omega, path.anchors)
            )
        ),
    },
    RelaxedLayer: {
        BIAS: Handler.exact(lambda layer, inputs, gradients: bias_jacobian(gradients, layer.order)),
    },
}
"""Every handler by the module that owns the parameter and the parameter's name in it."""


def demand_handlers(path: nn.Module, place: str) -> None:
    """Demands a handler for every parameter of a path, so that what lacks one is known before anything is trained.

    Args:
        path: the module.
        place: where it stands, `layer.path`.

    Raises:
        RunError: a parameter has none; it is named.
    """
    for tensor, _ in path.named_parameters():
        try:
            handler_for(path, tensor)
        except TypeError as error:
            raise RunError(f"`{place}.{tensor}` cannot be searched over: {error}") from None


def handler_for(owner: nn.Module, tensor: str) -> Handler:
    """The handler of one parameter tensor.

    Raises:
        TypeError: there is none, so that no parameter is ever left out of the curvature silently.
    """
    brought = type(owner).handlers if isinstance(owner, Path) else {}
    rows = HANDLERS.get(type(owner), brought)
    if tensor not in rows:
        raise TypeError(f"no curvature handler for parameter `{tensor}` of {type(owner).__name__}")
    handler: Handler = rows[tensor]
    return handler


def demand_rows(net: Network) -> None:
    """Demands the gradients of single examples of every parameter, so that what lacks them is known beforehand.

    Raises:
        RunError: a parameter's handler does not give them; it is named.
    """
    for name, layer in net.layers():
        for path_name, path in layer.paths.items():
            for tensor, _ in path.named_parameters():
                rows_for(path, tensor, f"{name}.{path_name}.{tensor}")


def rows_for(owner: nn.Module, tensor: str, key: str) -> Rows:
    """The gradients of single examples in one parameter tensor.

    Raises:
        RunError: its handler does not give them; it is called `key`.
    """
    rows = handler_for(owner, tensor).rows
    if rows is None:
        raise RunError(
            f"`{key}` cannot be searched over by `laplace(full)`: its handler gives no rows, the gradients of single "
            "examples; `laplace(kfac)` needs none"
        )
    return rows
