"""The optimisers of the weights: Adam for few training examples, SOAP for many."""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs
import torch
from torch import Tensor

from symdsl import ranks

MEAN, SQUARE, COVARIANCE = 0.9, 0.999, 0.95
"""Share that a step keeps of the running means of gradients, of their squares, and of their covariances."""

LARGEST_SIDE = 128
"""Dimensions of more numbers are not turned: what that costs in a step grows with their number."""

INTERVAL = 20
"""The bases follow the covariances at each of the first so many steps, then every so many."""

_TINY = 1e-8
"""Added to the root mean square of what a step divides by it."""

_RIDGE = 1e-6
"""Added to covariances, in shares of their mean eigenvalue: directions without a gradient keep their basis, which
round-off would set otherwise."""


class Adam:
    """Adam (Kingma & Ba 2015), whose steps are scaled in each tensor.

    Args:
        parameters: the weights, by key.
    """

    def __init__(self, parameters: Mapping[str, Tensor]) -> None:
        self._parameters = parameters
        self._adam = torch.optim.Adam(parameters.values(), betas=(MEAN, SQUARE), eps=_TINY, fused=True)

    @torch.no_grad()
    def step(self, number: int, rate: float, scales: Tensor) -> None:
        """Move every tensor against its gradient; one without a gradient stays.

        Args:
            number: of this step, from 1.
            rate: about the root mean square by which the numbers of a tensor of scale 1 move.
            scales: factors on it, in the order of the tensors, `[tensor]`.
        """
        (group,) = self._adam.param_groups
        group["lr"] = rate
        before = [parameter.clone() for parameter in self._parameters.values()]
        self._adam.step()
        for parameter, old, scale in zip(self._parameters.values(), before, scales, strict=True):
            torch.lerp(old, parameter, scale, out=parameter)

    def tensors(self) -> dict[str, Tensor]:
        """Return copies of its moments on the CPU, by `name/key`; a tensor that never had a gradient has none."""
        moments = self._adam.state
        return {
            f"{name}/{key}": value.detach().cpu().clone()
            for key, parameter in self._parameters.items()
            for name, value in moments.get(parameter, {}).items()
        }

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take up what `tensors` gave."""
        for key, parameter in self._parameters.items():
            names = ("step", "exp_avg", "exp_avg_sq")
            if f"{names[0]}/{key}" in tensors:
                self._adam.state[parameter] = {
                    name: tensors[f"{name}/{key}"].clone().to(parameter.device) for name in names
                }


class Soap:
    """Adam on gradients that are turned, in every dimension, to the eigenvectors of their covariance (SOAP).

    Adam divides each number of a gradient by its root mean square, as if the numbers were uncorrelated. Those of a
    weight are not: kernels that read alike channels have alike gradients. In the eigenbases of the covariances they
    nearly are (Vyas et al. 2024, "SOAP: improving and stabilizing Shampoo using Adam", algorithm 3). The running mean
    of gradients is held in that basis, too. On several ranks all have the same bases, each computed by one of them.

    Args:
        parameters: the weights, by key.
    """

    def __init__(self, parameters: Mapping[str, Tensor]) -> None:
        self._moments = {key: _Moments.of(parameter) for key, parameter in parameters.items()}

    @torch.no_grad()
    def step(self, number: int, rate: float, scales: Tensor) -> None:
        """Move every tensor against its gradient; see `Adam.step`."""
        moved = {key: one for key, one in self._moments.items() if one.parameter.grad is not None}
        gradients = {key: one.gradient() for key, one in moved.items()}
        for key, one in moved.items():
            one.add_covariances(gradients[key])
        if number <= INTERVAL or number % INTERVAL == 0:
            _turn(moved)
        for (key, one), scale in zip(self._moments.items(), rate * scales, strict=True):
            if key in moved:
                one.move(gradients[key], number, scale)

    def tensors(self) -> dict[str, Tensor]:
        """Return copies of all that a resume needs, on the CPU, by `name/key`."""
        return {
            f"{name}/{key}": tensor.cpu().clone()
            for key, one in self._moments.items()
            for name, tensor in one.tensors().items()
        }

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take up what `tensors` gave.

        Raises:
            KeyError: a tensor is missing.
        """
        for key, one in self._moments.items():
            for name, tensor in one.tensors().items():
                tensor.copy_(tensors[f"{name}/{key}"])


@attrs.frozen(eq=False)
class _Moments:
    """The running means of one tensor's gradients, whose dimensions are merged and put in order of their size.

    Attributes:
        parameter: the tensor.
        merged: its shape without dimensions of one number, the last ones merged where that leaves three.
        order: of those dimensions, the smallest first, so that the fewest matrix products turn them.
        mean: of gradients, turned, `[*dimension]`.
        square: of their squares, `[*dimension]`.
        covariances: of what stands along each dimension that is turned, `[side, side]`.
        bases: about the eigenvectors of these, in columns, `[side, side]`.
    """

    parameter: Tensor
    merged: list[int]
    order: list[int]
    mean: Tensor
    square: Tensor
    covariances: dict[int, Tensor]
    bases: dict[int, Tensor]

    @classmethod
    def of(cls, parameter: Tensor) -> _Moments:
        merged = [side for side in parameter.shape if side > 1]
        while len(merged) > 3 and math.prod(merged[-2:]) <= LARGEST_SIDE:
            merged[-2:] = [math.prod(merged[-2:])]
        order = sorted(range(len(merged)), key=lambda dim: merged[dim])
        zeros = parameter.detach().new_zeros([merged[dim] for dim in order])
        turned = [dim for dim, side in enumerate(zeros.shape) if side <= LARGEST_SIDE] if len(merged) > 1 else []
        covariances = {dim: zeros.new_zeros(zeros.shape[dim], zeros.shape[dim]) for dim in turned}
        bases = {dim: torch.eye(zeros.shape[dim], dtype=zeros.dtype, device=zeros.device) for dim in turned}
        return cls(parameter, merged, order, zeros, zeros.clone(), covariances, bases)

    def gradient(self) -> Tensor:
        """Return the gradient, `[*dimension]`."""
        assert self.parameter.grad is not None, "it is asked for where there is one"
        return self.parameter.grad.reshape(self.merged).permute(self.order).contiguous()

    def add_covariances(self, gradient: Tensor) -> None:
        for dim, covariance in self.covariances.items():
            parts = _along(gradient, dim)
            covariance.addbmm_(parts, parts.mT, beta=COVARIANCE, alpha=1 - COVARIANCE)

    def move(self, gradient: Tensor, number: int, rate: Tensor) -> None:
        turned = gradient
        for dim, basis in self.bases.items():
            turned = _times(turned, basis, dim)
        self.mean.lerp_(turned, 1 - MEAN)
        self.square.mul_(SQUARE).addcmul_(turned, turned, value=1 - SQUARE)
        step = self.mean / (self.square / (1 - SQUARE**number)).sqrt_().add_(_TINY)
        for dim, basis in self.bases.items():
            step = _times(step, basis.mT, dim)
        inverse = sorted(range(len(self.order)), key=lambda dim: self.order[dim])
        step = step.permute(inverse).reshape(self.parameter.shape)
        self.parameter.sub_(step.mul_(rate / (1 - MEAN**number)))

    def tensors(self) -> dict[str, Tensor]:
        """Return the running means and the bases, by name."""
        found = {"mean": self.mean, "square": self.square}
        found |= {f"covariance{dim}": one for dim, one in self.covariances.items()}
        return found | {f"basis{dim}": one for dim, one in self.bases.items()}


def _turn(moments: Mapping[str, _Moments]) -> None:
    """Take the bases one step of orthogonal iteration closer to the eigenvectors of the covariances."""
    costs = {(key, dim): float(len(basis)) ** 3 for key, one in moments.items() for dim, basis in one.bases.items()}

    def work(which: tuple[str, int]) -> Tensor:
        covariance, old = (of[which[1]] for of in (moments[which[0]].covariances, moments[which[0]].bases))
        basis: Tensor = torch.linalg.qr(covariance @ old + _RIDGE * covariance.diagonal().mean() * old)[0]
        return basis

    for (key, dim), basis in ranks.divided(costs, work).items():
        one = moments[key]
        one.mean.copy_(_times(one.mean, one.bases[dim].mT @ basis, dim))
        one.bases[dim].copy_(basis)


def _along(tensor: Tensor, dim: int) -> Tensor:
    """Return a tensor as matrices `[matrix, side, number]`, with one dimension in rows."""
    side = tensor.shape[dim]
    if dim == tensor.ndim - 1:
        return tensor.reshape(1, -1, side).mT
    return tensor.reshape(math.prod(tensor.shape[:dim]), side, -1)


def _times(tensor: Tensor, matrix: Tensor, dim: int) -> Tensor:
    """Return the products of what stands along one dimension of a tensor with a matrix, from the left."""
    if dim == tensor.ndim - 1:
        return tensor @ matrix
    return (matrix.mT @ _along(tensor, dim)).reshape(tensor.shape)
