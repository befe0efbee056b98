"""How the kinds with basis functions use their weights: projected factors of u, exact blocks of all else."""

from __future__ import annotations

import torch
from torch import Tensor

from symdsl.evidence.rows import Rows
from symdsl.evidence.weight_use import Factors, Handler
from symdsl.kinds.convolution.weight_use import (
    patch_moment,
    patches,
    plane_gradients,
    summed_patch_moment,
    summed_plane_gradients,
)
from symdsl.kinds.dense.weight_use import (
    input_planes,
    mixed_gradients,
    output_planes,
    plane_uses,
    position_gradients,
)
from symdsl.kinds.group.weight_use import (
    group_filter_rows,
    group_gradients,
    group_inputs,
    summed_group_gradients,
    summed_group_inputs,
)
from symdsl.kinds.sparse.module import SparseConv, SparseFullyConnected, SparseGroupConv
from symdsl.nn import Path


def projected(moment: Tensor, phi: Tensor) -> Tensor:
    """(I (x) Phi) A (I (x) Phi)^T: the input factor of w becomes that of u (Layer-wise Equivariances, appendix C.2).

    Args:
        moment: A of the filters, `[1, C S, C S]`, S taps.
        phi: basis functions `[P, S]`.

    Returns:
        `[1, C P, C P]`.
    """
    taps = phi.shape[1]
    blocks = moment[0].unflatten(1, (-1, taps)).unflatten(0, (-1, taps))
    return torch.einsum("csdt,ps,qt->cpdq", blocks, phi, phi).flatten(2).flatten(0, 1).unsqueeze(0)


def tap_gradients(path: SparseConv, inputs: Tensor, gradients: Tensor) -> Tensor:
    """The gradient of every example in the basis functions of its filters.

    Args:
        path: the convolution.
        inputs: what it read, `[n, C, row, column]`.
        gradients: in its output, `[n, C', row, column]`.

    Returns:
        d <gradients_n, y_n> / d phi_p(s), `[n, anchor, tap]`.
    """
    return _used(path.u, _channel_patches(path, inputs), gradients.flatten(2))


def group_tap_gradients(path: SparseGroupConv, inputs: Tensor, gradients: Tensor) -> Tensor:
    """As `tap_gradients`, the taps of a filter being group elements times places: `[n, anchor, (element, tap)]`.

    What element g contributes is brought back by g^-1, like its patches.
    """
    read, by_element = _channel_patches(path, inputs), gradients.flatten(2).unflatten(1, (-1, path.order))
    terms = [_used(path.u, read, by_element[:, :, g])[:, :, torch.argsort(move)] for g, move in enumerate(path.move)]
    return torch.stack(terms).sum(0)


def _channel_patches(path: SparseConv | SparseGroupConv, inputs: Tensor) -> Tensor:
    """Patches by the channels of `u`, all elements of a group together: `[n, channel, tap, position]`."""
    columns = patches(inputs, path.kernel, path.stride).flatten(1, 2)
    by_channel: Tensor = columns.unflatten(1, (path.u.shape[1], -1))
    return by_channel


def _used(u: Tensor, read: Tensor, gradients: Tensor) -> Tensor:
    """sum_{c', c, t} g[c', t] u[c', c, p] patch[c, s, t], `[n, anchor, tap]`."""
    weighted = u.permute(1, 2, 0).flatten(0, 1) @ gradients
    used: Tensor = (weighted.unflatten(1, u.shape[1:]) @ read.mT).sum(1)
    return used


def filter_jacobian(tap_gradients: Tensor, slopes: Tensor) -> Tensor:
    """Chain rule from basis functions to what they are made of.

    Args:
        tap_gradients: `[n, anchor, tap]`.
        slopes: derivative of phi_p in its own parameters, `[anchor, parameter, tap]`.

    Returns:
        `[n, anchor * parameter]`.
    """
    return torch.einsum("nps,pds->npd", tap_gradients, slopes).flatten(1)


def anchor_gradients(path: SparseFullyConnected, gradients: Tensor) -> Tensor:
    """The gradient in v, the output at the anchors: Phi of the output side acts on G. `[n, C', anchor]`."""
    return gradients.reshape(len(gradients), len(path.u1), -1) @ path.phi1().T


def inner_jacobian(path: SparseFullyConnected, read: Tensor, gradients: Tensor, slopes: Tensor) -> Tensor:
    """The gradient of every example in what phi2 is made of.

    Args:
        path: the path.
        read: what it read, `[n, C, site]`.
        gradients: in z, `[n, C', C]`.
        slopes: derivative of phi2_p in its own parameters, `[anchor, parameter, site]`.

    Returns:
        `[n, anchor * parameter]`.
    """
    return _projection_jacobian(read, torch.einsum("ndc,dcp->ncp", gradients, path.u2), slopes)


def outer_jacobian(path: SparseFullyConnected, mixed: Tensor, gradients: Tensor, slopes: Tensor) -> Tensor:
    """The gradient of every example in what phi1 is made of, as `inner_jacobian`, from z and the gradient in y."""
    v = torch.einsum("ndc,dcp->ndp", mixed, path.u1)
    return _projection_jacobian(gradients.reshape(*v.shape[:2], -1), v, slopes)


def _projection_jacobian(maps: Tensor, coefficients: Tensor, slopes: Tensor) -> Tensor:
    """The gradient of sum_{c, p, x} coefficients[c, p] maps[c, x] phi_p(x) in what the phi_p are made of."""
    moved = (maps @ slopes.flatten(0, 1).T).unflatten(2, slopes.shape[:2])
    return torch.einsum("ncpd,ncp->npd", moved, coefficients).flatten(1)


def sparse_filter_uses(path: SparseConv, inputs: Tensor, gradients: Tensor) -> tuple[Tensor, Tensor]:
    """As `filter_uses`, of what is read the part in the basis: `[n, position, C anchor]`."""
    read = patches(inputs, path.kernel, path.stride).permute(0, 3, 1, 2) @ path.phi().T
    return read.flatten(2), gradients.flatten(2).mT


_SPARSE: dict[str, Handler] = {
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
}


def sparse(path: Path) -> dict[str, Handler]:
    """What the curvature of S-FC and S-GFC needs."""
    return _SPARSE


_SPARSE_CONV: dict[str, Handler] = {
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
}


def sparse_conv(path: Path) -> dict[str, Handler]:
    """What the curvature of S-CONV needs."""
    return _SPARSE_CONV


_SPARSE_GROUP_CONV: dict[str, Handler] = {
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
}


def sparse_group_conv(path: Path) -> dict[str, Handler]:
    """What the curvature of S-GCONV needs."""
    return _SPARSE_GROUP_CONV
