"""A network evaluated one example at a time by sums over indices, every use of a weight with a copy of its own.

Each rule is written down from the table of layers in the mathematics, not from the package: the copies let autograd
tell what a_r (the input of use r) and g_r (the gradient in its output) are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

import torch
from torch import Tensor

from oracles import averages, sparse
from oracles.groups import GroupRule, coset_planes
from symdsl.analysis.facts import Average, Candidate, Flatten, Join, Layer, Lift, Mean, Node, Pool, Project

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": lambda x: x.clamp(min=0), "tanh": torch.tanh}


class Uses:
    """The copies of one parameter tensor and what each use made of its own.

    Attributes:
        copies: the tensor as a matrix `[out, in]`, one leaf per use.
        outputs: what each use made, `[out]`.
        slots: which part of the matrix each use read; uses of different slots share no weight.
    """

    def __init__(self, matrix: Tensor) -> None:
        self.matrix = matrix
        self.copies: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.slots: list[int] = []

    def apply(self, row: Callable[[Tensor], Tensor], slot: int = 0) -> Tensor:
        """Uses a fresh copy of the matrix in `row` and remembers what came out."""
        self.slots.append(slot)
        copy = self.matrix.detach().clone().requires_grad_()
        self.copies.append(copy)
        self.outputs.append(row(copy))
        return self.outputs[-1]

    def inputs(self) -> Tensor:
        """a_r of every use, `[use, in]`: the derivative of its first output in its first row."""
        rows = [
            torch.autograd.grad(output[0], copy, retain_graph=True)[0][0]
            for copy, output in zip(self.copies, self.outputs, strict=True)
        ]
        return torch.stack(rows)


class Naive(sparse.SparseRules):
    """A network as records and parameters, evaluated on one example.

    Args:
        nodes: the network.
        parameters: by key, as the package names them.
    """

    def __init__(self, nodes: tuple[Node, ...], parameters: Mapping[str, Tensor]) -> None:
        self.nodes = nodes
        self.parameters = {key: value.detach() for key, value in parameters.items()}
        self.uses: dict[str, Uses] = {}

    def __call__(self, image: Tensor) -> Tensor:
        """Outputs of one example `[channel, row, column]`; `uses` then holds every use of every tensor."""
        self.uses = {}
        return self._through(self.nodes, image[:, None], {}).reshape(-1)

    def _through(self, nodes: tuple[Node, ...], x: Tensor, made: dict[str, Tensor]) -> Tensor:
        ends = {node.since: place for place, node in enumerate(nodes) if isinstance(node, Mean)}
        done = 0
        for place, node in enumerate(nodes):
            if place < done:
                continue
            match node:
                case Average():
                    done = ends[node.name]
                    x = self._averaged(node, nodes[place + 1 : done], x, made)
                case Lift():
                    x = torch.stack([x[:, 0]] * node.out_shape.order, 1)
                case Project() | Pool():
                    dims = (1,) if isinstance(node, Project) else (2, 3)
                    x = x.amax(dims, True) if node.reduction == "max" else x.mean(dims, True)
                case Flatten():
                    x = x.reshape(-1, 1, 1, 1)
                case Layer():
                    x = self._layer(node, x)
                case Join():
                    x = made[node.since] + x
            made[node.name] = x
        return x

    def _averaged(self, node: Average, body: tuple[Node, ...], x: Tensor, made: dict[str, Tensor]) -> Tensor:
        """The mean over copies; the uses of every copy are uses of the example."""
        outside, found = self.uses, []
        inside: dict[str, Uses] = {}
        for copy in averages.copies(node, x):
            self.uses = {}
            found.append(self._through(body, copy, made | {node.name: copy}))
            for key, uses in self.uses.items():
                first = inside.setdefault(key, uses)
                if first is not uses:
                    first.copies += uses.copies
                    first.outputs += uses.outputs
                    first.slots += uses.slots
        self.uses = outside | inside
        return torch.stack(found).mean(0)

    def _layer(self, layer: Layer, x: Tensor) -> Tensor:
        phase, (down, right) = self._phase(layer, x), _strides(layer)
        out, rows, columns = layer.out_shape, layer.out_shape.height, layer.out_shape.width
        total = torch.zeros(out.channels, out.order, rows, columns, dtype=x.dtype)
        kept = [(phase[0] + down * i, phase[1] + right * j) for i, j in product(range(rows), range(columns))]
        for one in layer.candidates:
            key = f"{layer.name}.{one.name}"
            total = total + getattr(self, RULES[one.kind])(layer, one, key, x, kept)
        bias = Uses(self.parameters[f"{layer.name}.bias"][:, None])
        self.uses[f"{layer.name}.bias"] = bias
        y = total / len(layer.candidates) ** 0.5
        y = y + bias.apply(lambda b: b[:, 0])[:, None, None, None]
        for name in layer.activations:
            y = ACTIVATIONS[name](y)
        return y

    def _phase(self, layer: Layer, x: Tensor) -> tuple[int, int]:
        moving = [one for one in layer.candidates if one.kind.endswith("CONV")]
        down, right = _strides(layer)
        if down == right == 1 or not moving:
            return 0, 0
        height, width = x.shape[2:]
        everywhere = list(product(range(height), range(width)))
        fine = sum(
            getattr(self, RULES[one.kind])(layer, one, f"{layer.name}.{one.name}", x, everywhere, (height, width))
            for one in moving
        )
        phases = list(product(range(down), range(right)))
        norms = [float(fine[:, :, p::down, q::right].detach().square().sum()) for p, q in phases]
        return phases[norms.index(max(norms))]

    def _new(self, key: str, matrix: Tensor) -> Uses:
        self.uses[key] = Uses(matrix)
        return self.uses[key]

    def fully_connected(self, layer: Layer, one: Candidate, key: str, x: Tensor, kept: object) -> Tensor:
        """y[c', y] = sum_{c, x} x[c, x] w[c', y, c, x]; used once."""
        weight = self.parameters[f"{key}.w"]
        uses = self._new(f"{key}.w", weight.flatten(2).flatten(0, 1))
        out = layer.out_shape
        return uses.apply(lambda w: w @ x.reshape(-1)).reshape(out.channels, out.order, out.height, out.width)

    def factored(self, layer: Layer, one: Candidate, key: str, x: Tensor, kept: object) -> Tensor:
        """z[c', c] = sum_x x[c, x] w2[c', c, x];  y[c', y] = sum_c z[c', c] w1[c', c, y]."""
        planes = x.reshape(x.shape[0] * x.shape[1], -1)
        w2, w1 = self.parameters[f"{key}.w2"], self.parameters[f"{key}.w1"]
        out_planes, in_planes, positions = w2.shape
        second = self._new(f"{key}.w2", w2.reshape(out_planes, in_planes * positions))
        columns = [
            second.apply(lambda w, c=c: w.reshape(out_planes, in_planes, positions)[:, c] @ planes[c], c)
            for c in range(in_planes)
        ]
        z = torch.stack(columns, 1)
        first = self._new(f"{key}.w1", w1.permute(2, 0, 1).reshape(w1.shape[2], -1))
        rows = [
            first.apply(lambda w, d=d: w.reshape(-1, out_planes, in_planes)[:, d] @ z[d], d) for d in range(out_planes)
        ]
        out = layer.out_shape
        return torch.stack(rows).reshape(out.channels, out.order, out.height, out.width)

    def convolution(
        self,
        layer: Layer,
        one: Candidate,
        key: str,
        x: Tensor,
        kept: list[tuple[int, int]],
        grid: tuple[int, int] = (0, 0),
    ) -> Tensor:
        """y[c', t] = sum_{c, s} x[c, t + s] w[c', c, s] over plain planes, on the torus; used at every kept t."""
        planes = x.reshape(-1, *x.shape[2:])
        weight = self.parameters[f"{key}.w"]
        uses = self._new(f"{key}.w", weight.flatten(1))
        offsets = list(product(*(range(-(side // 2), side // 2 + 1) for side in weight.shape[-2:])))

        def at(t: tuple[int, int]) -> Tensor:
            patch = [planes[:, (t[0] + i) % x.shape[2], (t[1] + j) % x.shape[3]] for i, j in offsets]
            return uses.apply(lambda w: w @ torch.stack(patch, 1).reshape(-1))

        out = layer.out_shape
        rows, columns = grid if grid != (0, 0) else (out.height, out.width)
        return torch.stack([at(t) for t in kept], 1).reshape(out.channels, out.order, rows, columns)

    def group_convolution(
        self,
        layer: Layer,
        one: Candidate,
        key: str,
        x: Tensor,
        kept: list[tuple[int, int]],
        grid: tuple[int, int] = (0, 0),
    ) -> Tensor:
        """GCONV of the candidate's group K, on the cosets of K in the group of the map."""
        weights = {tensor.name: self.parameters[f"{key}.{tensor.name}"] for tensor in one.tensors}
        for name in weights:
            self.uses.pop(f"{key}.{name}", None)
        planes = coset_planes(layer.in_shape.group, str(one.argument("group")))

        def apply(name: str, matrix: Tensor, row: Callable[[Tensor], Tensor], slot: int) -> Tensor:
            return self.uses.setdefault(f"{key}.{name}", Uses(matrix)).apply(row, slot)

        seen = GroupRule(str(one.argument("group")), weights, apply, x[:, planes].flatten(0, 1))
        out = layer.out_shape
        rows, columns = grid if grid != (0, 0) else (out.height, out.width)
        y = seen.at(kept).reshape(out.channels, out.order, rows, columns)
        return y[:, torch.argsort(planes.flatten())]


def _strides(layer: Layer) -> tuple[int, int]:
    """Down and right; a line is one row."""
    return (1 if layer.in_shape.height == 1 else layer.stride), layer.stride


RULES = {
    "FC": "fully_connected",
    "F-FC": "factored",
    "CONV": "convolution",
    "GCONV": "group_convolution",
} | sparse.RULES
