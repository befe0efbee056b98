"""Curvature of the kinds with basis functions: projected factors of u, exact blocks of omega and the anchors."""

from __future__ import annotations

import torch
from torch import Tensor

from symdsl.curvature.convolution import patches
from symdsl.nn import SparseConv, SparseFullyConnected, SparseGroupConv


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


def outer_block(jacobian: Tensor) -> Tensor:
    """sum_n j j^T: `[n, parameter] -> [1, parameter, parameter]`."""
    return (jacobian.T @ jacobian).unsqueeze(0)
