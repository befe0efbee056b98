"""Dense curvature by autograd: both forms of KFAC from their definitions, and the Gauss-Newton matrix itself."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev

from oracles.naive import Naive


def root_of_hessian(outputs: Tensor, task: str) -> Tensor:
    """A square root of Lambda by eigendecomposition, columns last."""
    if task == "regression":
        return torch.eye(len(outputs), dtype=outputs.dtype)
    p = outputs.softmax(0)
    values, vectors = torch.linalg.eigh(torch.diag(p) - torch.outer(p, p))
    return vectors * values.clamp(min=0).sqrt()


def dense_factors(naive: Naive, images: Tensor, task: str, sharing: str = "expand") -> dict[str, tuple[Tensor, Tensor]]:
    """(G, A) of every tensor.

    Expand: A = sum_{n, r} a a^T, G = (1 / (N R)) sum_{n, r} g Lambda g^T. Reduce, with a_n = sum_r a_r and
    g_n = sum_r g_r: A = (1/R) sum_n a_n a_n^T, G = (1 / (N R)) sum_n g_n Lambda g_n^T. Where uses read different slots
    of a tensor, those of one slot are summed, R counts them, A adds the slots up and G is their mean.
    """
    left: dict[str, Tensor] = {}
    right: dict[str, Tensor] = {}
    for image in images:
        outputs = naive(image)
        columns = root_of_hessian(outputs.detach(), task)
        for key, uses in naive.uses.items():
            a = uses.inputs()
            slots = sorted(set(uses.slots))
            summed = uses.slots if sharing == "reduce" else None
            right[key] = right.get(key, 0) + _moment(a, summed) / (len(a) // len(slots) if summed else 1)
            for column in columns.T:
                pulled = torch.autograd.grad(outputs, uses.outputs, column, retain_graph=True)
                g = torch.stack(pulled)
                left[key] = left.get(key, 0) + _moment(g, summed) / (len(images) * len(g))
    return {key: (left[key], right[key]) for key in left}


def _moment(uses: Tensor, slots: list[int] | None) -> Tensor:
    """Sum of outer products of the uses, or of their sums by slot."""
    rows = uses
    if slots is not None:
        rows = torch.stack([uses[torch.tensor(slots) == slot].sum(0) for slot in sorted(set(slots))])
    return rows.T @ rows


def rows(net: nn.Module, name: str, images: Tensor, columns: Tensor) -> Tensor:
    """The gradient of <column, output> of every example in one parameter, `[n, parameter]`."""
    parameter = dict(net.named_parameters())[name]
    pairs = zip(images.split(1), columns, strict=True)
    found = [torch.autograd.grad(net(image)[0] @ column, parameter)[0].flatten() for image, column in pairs]
    return torch.stack(found)


def dense_ggn(net: nn.Module, name: str, images: Tensor, task: str) -> Tensor:
    """The Gauss-Newton block of one parameter, summed over examples, in the parameter's own order of entries."""
    parameters = dict(net.named_parameters())
    fixed = {key: value.detach() for key, value in parameters.items()}

    def outputs(value: Tensor, image: Tensor) -> Tensor:
        found: Tensor = functional_call(net, fixed | {name: value}, (image[None],))
        return found[0]

    total = torch.zeros(parameters[name].numel(), parameters[name].numel(), dtype=images.dtype)
    for image in images:
        jacobian = jacrev(outputs)(fixed[name], image).flatten(1)
        root = root_of_hessian(outputs(fixed[name], image).detach(), task)
        half = root.T @ jacobian
        total = total + half.T @ half
    return total
