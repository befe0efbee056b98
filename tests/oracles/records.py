"""Networks as records, written by hand, so that the torch side is tested without the language."""

from __future__ import annotations

from symdsl.analysis.facts import (
    Average,
    Candidate,
    FactorSize,
    Flatten,
    Input,
    Join,
    Layer,
    Lift,
    Mean,
    Node,
    ParameterTensor,
    Pool,
    Prior,
    Project,
    Shape,
)
from symdsl.diagnostics import Span

HERE = Span("test", 1, 1, 1, 1)
UNIT = Prior(1.0, True)

TENSORS = {"FC": ("w",), "CONV": ("w",), "F-FC": ("w1", "w2"), "F-GFC": ("w1", "w2")}
FACTORS = {"full": ("w",), "pointwise": ("w",), "separable": ("w1", "w2"), "depthwise": ("w0", "w1", "w2")}


def candidate(
    kind: str, kernel: int = 3, factor: str = "full", init_scale: float = 1.0, group: str = "p4"
) -> Candidate:
    """A candidate whose sizes the torch side does not read."""
    grouped = (("k", kernel), ("factor", factor), ("group", group))
    arguments = {"CONV": (("k", kernel),), "GCONV": grouped}.get(kind, ())
    name = f"{kind}-{factor}" if kind == "GCONV" else kind
    side = FactorSize(1, 1)
    tensors = tuple(ParameterTensor(tensor, (), side, side, UNIT) for tensor in TENSORS.get(kind) or FACTORS[factor])
    return Candidate(name, kind, arguments, init_scale, tensors, (), 0, HERE)


def sparse(kind: str, kernel: int = 3, anchors: str = "fixed", on: str = "values", sparsity: int = 2) -> Candidate:
    """A candidate of a kind with basis functions; the torch side does not read its sizes."""
    arguments = (("k", kernel), ("anchors", anchors), ("on", on), ("sparsity", sparsity))
    side = FactorSize(1, 1)
    values = ("u",) if kind.endswith("CONV") else ("u1", "u2")
    tensors = tuple(ParameterTensor(tensor, (), side, side, UNIT) for tensor in values)
    return Candidate(kind, kind, arguments if kind.endswith("CONV") else arguments[1:], 1.0, tensors, (), 0, HERE)


class Chain:
    """Builds the nodes of a network one after the other."""

    def __init__(self, channels: int, height: int, width: int) -> None:
        self.shape = Shape(channels, height, width)
        self.nodes: list[Node] = [Input("input", self.shape, HERE)]

    def lift(self, group: str) -> Chain:
        """Lifts to a group."""
        out = Shape(self.shape.channels, self.shape.height, self.shape.width, group)
        return self._add(Lift("lift", self.shape, out, HERE), out)

    def layer(self, *candidates: Candidate, channels: int, stride: int = 1, activations: tuple[str, ...] = ()) -> Chain:
        """Adds a relaxed layer named after its position."""
        old = self.shape
        rows = old.height if old.height == 1 else old.height // stride
        out = Shape(channels, rows, old.width // stride, old.group, old.flat)
        name = f"l{sum(isinstance(node, Layer) for node in self.nodes) + 1}"
        return self._add(Layer(name, old, out, stride, candidates, UNIT, activations, HERE), out)

    def residual(self, *layers: tuple[tuple[Candidate, ...], int] | tuple[tuple[Candidate, ...], int, str]) -> Chain:
        """Adds a block of layers, each its candidates, channels and perhaps an activation."""
        since, old = self.nodes[-1].name, self.shape
        for candidates, channels, *activations in layers:
            self.layer(*candidates, channels=channels, activations=tuple(activations))
        name = f"residual-{sum(isinstance(node, Join) for node in self.nodes) + 1}"
        return self._add(Join(name, old, old, since, HERE), old)

    def average(self, ranges: dict[str, float], samples: int) -> Chain:
        """Begins a body that sees transformed copies."""
        name = f"average-{sum(isinstance(node, Average) for node in self.nodes) + 1}"
        begun = Average(name, self.shape, self.shape, tuple(ranges.items()), samples, False, HERE)
        return self._add(begun, self.shape)

    def mean(self) -> Chain:
        """Ends the innermost body that is open."""
        ended = {node.since for node in self.nodes if isinstance(node, Mean)}
        since = [node.name for node in self.nodes if isinstance(node, Average) and node.name not in ended][-1]
        return self._add(Mean(f"{since}:mean", self.shape, self.shape, since, HERE), self.shape)

    def project(self, reduction: str) -> Chain:
        """Reduces over the group."""
        out = Shape(self.shape.channels, self.shape.height, self.shape.width)
        return self._add(Project("project", self.shape, out, reduction, HERE), out)  # type: ignore[arg-type]

    def pool(self, reduction: str) -> Chain:
        """Reduces over positions."""
        out = Shape(self.shape.channels, 1, 1, self.shape.group)
        return self._add(Pool("pool", self.shape, out, reduction, HERE), out)  # type: ignore[arg-type]

    def flatten(self) -> Chain:
        """Turns the map into a vector."""
        out = Shape(self.shape.size, 1, 1, flat=True)
        return self._add(Flatten("flatten", self.shape, out, HERE), out)

    def _add(self, node: Node, out: Shape) -> Chain:
        self.nodes.append(node)
        self.shape = out
        return self
