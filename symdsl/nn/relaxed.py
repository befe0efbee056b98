"""The relaxed layer: a sum of candidate paths and one bias."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from functools import partial, reduce
from operator import add
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node

from symdsl.nn.circular import Sides, pair
from symdsl.nn.path import Path
from symdsl.nn.polyphase import align, strongest_phase

BIAS = "bias"


class Use(NamedTuple):
    """A record of one use of a parameter tensor in a forward pass: all that its curvature needs of it.

    Attributes:
        owner: the path, or the layer for its bias.
        tensor: the parameter's name in its owner.
        inputs: what the owner read, as it read it (aligned to the sampled phase, for a sampling path).
        output: the intermediate value whose gradient is pulled back.
        scale: d(output) / d(what the tensor produced).
        copies: rows of inputs and output that belong to one example, one after the other.
        node: of autograd, which made the output; it is the output's no longer once that is changed in place.
    """

    owner: nn.Module
    tensor: str
    inputs: Tensor
    output: Tensor
    scale: float
    copies: int = 1
    node: Node | None = None


class _Read(NamedTuple):
    """One use of a parameter tensor as its path records it; `output` None means the path's own output."""

    path: Path
    tensor: str
    inputs: Tensor
    output: Tensor | None


def _note(reads: dict[str, _Read], name: str, path: Path, tensor: str, inputs: Tensor, output: Tensor | None) -> None:
    key = f"{name}.{tensor}"
    if key in reads:
        raise ValueError(f"`{key}` was recorded twice in one forward pass; a path records all uses of a tensor at once")
    reads[key] = _Read(path, tensor, inputs, output)


def _by_plane(part: Tensor) -> bool:
    """Whether the planes of a map are apart in memory; the sum of maps is stored as the first of them."""
    return not part.permute(0, 2, 3, 1).is_contiguous()  # a memory format cannot be asked for under `vmap`


class RelaxedLayer(nn.Module):
    """A layer that sums candidate paths: y = n^(-1/2) sum_k path_k(x) + bias, n the number of candidates.

    The bias is one number per output channel, constant over positions and group elements, so that it breaks no
    symmetry. Sampling paths (the equivariant ones) are thinned out by adaptive polyphase sampling: the phase is chosen
    per example from their sum, so that every one of them is sampled alike; the other paths map to the coarse grid.

    Args:
        paths: the candidates by name.
        channels: C', length of the bias.
        order: |G| of the output map.
        stride: sides of the phase grid.
        biased: whether the bias is learned; it stays at zero otherwise.
    """

    def __init__(
        self, paths: Mapping[str, Path], channels: int, order: int = 1, stride: Sides = 1, biased: bool = True
    ) -> None:
        super().__init__()
        self.paths = nn.ModuleDict(paths)
        self.bias = nn.Parameter(torch.zeros(channels), requires_grad=biased)
        self.order = order
        self.stride = pair(stride)
        self.scale = len(paths) ** -0.5
        self._pruned: frozenset[str] = frozenset()

    @property
    def pruned(self) -> frozenset[str]:
        """The names of the paths that are pruned."""
        return self._pruned

    def prune(self, name: str) -> None:
        """Set a path's parameters to zero, freeze them and leave the path out from now on.

        Raises:
            KeyError: the layer has no path of that name.
        """
        for parameter in self.paths[name].parameters():
            parameter.requires_grad_(False).zero_()
        self._pruned |= {name}

    @contextlib.contextmanager
    def without(self, name: str) -> Iterator[None]:
        """Compute as if a path were pruned, for the length of a `with` statement."""
        before = self._pruned
        self._pruned = before | {name}
        try:
            yield
        finally:
            self._pruned = before

    def remove(self, name: str) -> None:
        """Remove a path for good; the others keep their scale.

        Raises:
            KeyError: the layer has no path of that name.
        """
        del self.paths[name]
        self._pruned -= {name}

    def leave(self) -> None:
        """Prune every path, and set the bias to zero and freeze it: the layer is not used any more."""
        for name in self.paths:
            self.prune(name)
        self.bias.requires_grad_(False).zero_()

    def forward(self, x: Tensor, uses: dict[str, Use] | None = None) -> Tensor:
        """Map `x` `[example, plane, row, column]`; `uses`, if given, is filled with every use of a parameter tensor.

        Keys of `uses` are `path.tensor` and `bias`.

        Raises:
            ValueError: a path records a tensor twice, of which the curvature would know one use only.
        """
        aligned = self._aligned(x)
        reads: dict[str, _Read] = {}
        parts = [
            path(aligned if path.samples else x, None if uses is None else partial(_note, reads, name, path))
            for name, path in self.active()
        ]
        y = self._biased(x, parts)
        if uses is not None:
            for key, read in reads.items():
                output, scale = (y, self.scale) if read.output is None else (read.output, 1.0)
                uses[key] = Use(read.path, read.tensor, read.inputs, output, scale, node=output.grad_fn)
            uses[BIAS] = Use(self, BIAS, x, y, 1.0, node=y.grad_fn)
        return y

    def active(self) -> list[tuple[str, Path]]:
        """Return the paths that are not pruned, by name."""
        return [
            (name, path) for name, path in self.paths.items() if name not in self._pruned and isinstance(path, Path)
        ]

    def _aligned(self, x: Tensor) -> Tensor:
        sampling = [path for _, path in self.active() if path.samples]
        if self.stride == (1, 1) or not sampling:
            return x
        with torch.no_grad():
            fine = reduce(add, [path.fine(x) for path in sampling])
        return align(x, strongest_phase(fine, self.stride), self.stride)

    def _biased(self, x: Tensor, parts: list[Tensor]) -> Tensor:
        bias: Tensor = self.bias.repeat_interleave(self.order).view(1, -1, 1, 1)
        if not parts:
            rows, columns = (side // stride for side, stride in zip(x.shape[2:], self.stride, strict=True))
            return bias.expand(len(x), -1, rows, columns)
        y: Tensor = torch.add(bias, reduce(add, sorted(parts, key=_by_plane)), alpha=self.scale)
        return y
