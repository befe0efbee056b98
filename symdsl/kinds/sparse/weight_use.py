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
from symdsl.kinds.convolution.weight_use import FILTERS
from symdsl.kinds.dense.weight_use import by_input_plane, by_output_plane
from symdsl.kinds.group.weight_use import FILTERS as GROUP_FILTERS
from symdsl.kinds.sparse.module import BasisConv, SparseFullyConnected
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
    """Return how S-CONV uses its weights."""
    return _CONV


def sparse_group_conv(path: Path) -> dict[str, WeightUse]:
    """Return how S-GCONV uses its weights."""
    return _GROUP_CONV


def _weight_uses(filters: WeightUse) -> dict[str, WeightUse]:
    """Return the uses of a path with filters in the basis, from how whole filters `[C, point]` are used."""
    inputs, gradients, moment = filters.inputs, filters.gradients, filters.input_moment
    assert moment is not None, "filters have one"

    def tap_gradients(path: BasisConv, x: Tensor, y: Tensor) -> Tensor:
        """Return every example's gradient in the values of the basis functions, `[n, anchor, point]`."""
        filters = gradients(path, x, y).mT @ inputs(path, x)
        return torch.einsum("ndcs,dcp->nps", filters.squeeze(1).unflatten(2, (path.u.shape[1], -1)), path.u)

    def made_of(slopes: Callable[[Any], Tensor]) -> WeightUse:
        """Return the use of a parameter of the basis functions, given their slopes in it."""
        return WeightUse.exact(
            lambda path, x, y: torch.einsum("nps,pds->npd", tap_gradients(path, x, y), slopes(path)).flatten(1)
        )

    return {
        "u": WeightUse(
            inputs=lambda path, x: (inputs(path, x).unflatten(3, (path.u.shape[1], -1)) @ path.phi().T).flatten(3),
            gradients=gradients,
            input_moment=lambda path, x: _projected(moment(path, x), path.phi()),
        ),
        "omega": made_of(lambda path: path.basis.slopes_in_omega(path.omega, path.anchors)),
        "anchors": made_of(lambda path: path.basis.slopes_in_anchors(path.omega, path.anchors)),
    }


def _projected(moment: Tensor, phi: Tensor) -> Tensor:
    """(I (x) Phi) A (I (x) Phi)^T: `[1, C S, C S] -> [1, C P, C P]` (Layer-wise Equivariances, appendix C.2)."""
    points = phi.shape[1]
    blocks = moment[0].unflatten(1, (-1, points)).unflatten(0, (-1, points))
    return torch.einsum("csdt,ps,qt->cpdq", blocks, phi, phi).flatten(2).flatten(0, 1).unsqueeze(0)


_CONV, _GROUP_CONV = _weight_uses(FILTERS), _weight_uses(GROUP_FILTERS)
