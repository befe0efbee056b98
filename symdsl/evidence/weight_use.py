"""What the curvature of a parameter tensor needs of the path that uses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import attrs
from torch import Tensor, nn

from symdsl.diagnostics import RunError
from symdsl.evidence.kfac import Factor
from symdsl.evidence.rows import Rows
from symdsl.nn import BIAS, Network, Path, RelaxedLayer

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


def outer_block(jacobian: Tensor) -> Tensor:
    """sum_n j j^T: `[n, parameter] -> [1, parameter, parameter]`."""
    return (jacobian.T @ jacobian).unsqueeze(0)


def bias_jacobian(gradients: Tensor, order: int) -> Tensor:
    """The gradient of every example in the bias, summed over positions and group elements.

    Args:
        gradients: in the layer's output, `[n, C' |G|, row, column]`.
        order: |G|.

    Returns:
        `[n, C']`.
    """
    jacobian: Tensor = gradients.sum((2, 3)).unflatten(1, (-1, order)).sum(2)
    return jacobian


_BIAS = Handler.exact(lambda layer, inputs, gradients: bias_jacobian(gradients, layer.order))


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
    uses: Mapping[str, Handler] = owner.weight_uses if isinstance(owner, Path) else {}
    if isinstance(owner, RelaxedLayer):
        uses = {BIAS: _BIAS}
    if tensor not in uses:
        raise TypeError(f"no curvature handler for parameter `{tensor}` of {type(owner).__name__}")
    return uses[tensor]


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
