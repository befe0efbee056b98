"""How the kinds with basis functions use their weights: as those without, in the basis.

The values u read patches or maps projected on the basis functions; phi1 of the output of S-FC acts on the gradients.
What the basis functions are made of, omega and the anchors, is few numbers, whose whole block is formed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from symdsl.evidence.weight_use import WeightUse
from symdsl.kinds.convolution.weight_use import patches
from symdsl.kinds.dense.weight_use import by_input_plane, by_output_plane
from symdsl.kinds.group.weight_use import FILTERS, by_element, filter_moment, mixed, of_patches
from symdsl.kinds.sparse.module import SparseConv, SparseFullyConnected
from symdsl.nn import Path

# ---------------------------------------------------------------- fully connected


def sparse(path: Path) -> dict[str, WeightUse]:
    """Return how S-FC and S-GFC use their weights."""
    return _FULLY_CONNECTED


def _outer_gradients(path: SparseFullyConnected, z: Tensor, y: Tensor) -> Tensor:
    return by_output_plane(z, y) @ path.phi1().T


def _outer(slopes: Callable[[Any], Tensor]) -> WeightUse:
    """Return the use of a parameter of phi1, given the slopes of phi1 in it, `[anchor, parameter, site]`."""

    def per_example(path: SparseFullyConnected, z: Tensor, y: Tensor) -> Tensor:
        v = torch.einsum("ndc,dcp->ndp", z, path.u1)
        return _in_projection(y.reshape(*v.shape[:2], -1), v, slopes(path))

    return WeightUse.exact(per_example)


def _inner(slopes: Callable[[Any], Tensor]) -> WeightUse:
    """Return the use of a parameter of phi2, given the slopes of phi2 in it, `[anchor, parameter, site]`."""

    def per_example(path: SparseFullyConnected, x: Tensor, z: Tensor) -> Tensor:
        return _in_projection(x, torch.einsum("ndc,dcp->ncp", z, path.u2), slopes(path))

    return WeightUse.exact(per_example)


def _in_projection(maps: Tensor, coefficients: Tensor, slopes: Tensor) -> Tensor:
    """The gradient of sum_{c, p, x} coefficients[c, p] maps[c, x] phi_p(x) in what the phi_p are made of."""
    moved = (maps @ slopes.flatten(0, 1).T).unflatten(2, slopes.shape[:2])
    return torch.einsum("ncpd,ncp->npd", moved, coefficients).flatten(1)


_FULLY_CONNECTED = {
    "u1": WeightUse(lambda path, z: z.unsqueeze(2), _outer_gradients),
    "u2": WeightUse(lambda path, x: (x @ path.phi2().T).unsqueeze(2), lambda path, x, z: by_input_plane(z)),
    "omega1": _outer(lambda path: path.basis1.slopes_in_omega(path.omega1, path.anchors1)),
    "omega2": _inner(lambda path: path.basis2.slopes_in_omega(path.omega2, path.anchors2)),
    "anchors1": _outer(lambda path: path.basis1.slopes_in_anchors(path.omega1, path.anchors1)),
    "anchors2": _inner(lambda path: path.basis2.slopes_in_anchors(path.omega2, path.anchors2)),
}


# ---------------------------------------------------------------- convolutions


def sparse_conv(path: Path) -> dict[str, WeightUse]:
    """Return how S-CONV and S-GCONV use their weights."""
    return _CONV


def _in_values(path: SparseConv, read: Tensor) -> Tensor:
    """What the values read by element and position, `[n, 1, |G| T, C P]`: patches, or sums of them, in the basis.

    The basis functions are moved, not the patches, of which there are more.
    """
    phi = path.phi()[:, path.move].transpose(0, 1)
    return mixed((phi.flatten(0, 1) @ read.flatten(2, 3)).unflatten(2, phi.shape[:2]))


def _values_moment(path: SparseConv, x: Tensor) -> Tensor:
    """(I (x) Phi) A (I (x) Phi)^T: `[1, C S, C S] -> [1, C P, C P]` (Layer-wise Equivariances, appendix C.2)."""
    phi = path.phi()
    blocks = filter_moment(path, x)[0].unflatten(1, (-1, phi.shape[1])).unflatten(0, (-1, phi.shape[1]))
    return torch.einsum("csdt,ps,qt->cpdq", blocks, phi, phi).flatten(2).flatten(0, 1).unsqueeze(0)


def _filters(slopes: Callable[[Any], Tensor]) -> WeightUse:
    """Return the use of a parameter of phi, given the slopes of phi in it, `[anchor, parameter, point]`."""

    def per_example(path: SparseConv, x: Tensor, y: Tensor) -> Tensor:
        read = by_element(path, patches(x, path.kernel, path.stride)).flatten(2, 3)
        by_anchor = torch.einsum("dcp,ndgt->ncpgt", path.u, by_element(path, y).flatten(3)).flatten(2, 3)
        taps = by_element(path, (by_anchor @ read.mT).sum(1))
        return torch.einsum("npgs,pdgs->npd", taps, slopes(path)[..., path.move]).flatten(1)

    return WeightUse.exact(per_example)


_CONV = {
    "u": of_patches(_in_values, FILTERS.gradients, _values_moment),
    "omega": _filters(lambda path: path.basis.slopes_in_omega(path.omega, path.anchors)),
    "anchors": _filters(lambda path: path.basis.slopes_in_anchors(path.omega, path.anchors)),
}
