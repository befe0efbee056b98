"""Facts made by hand: small networks with the records a checked spec would have."""

from __future__ import annotations

from symdsl.analysis.facts import (
    Candidate,
    Data,
    FactorSize,
    Facts,
    Fisher,
    Flatten,
    Input,
    Join,
    Layer,
    Lift,
    Mackay,
    Network,
    Node,
    Objective,
    Optimizer,
    ParameterTensor,
    Pool,
    Prior,
    Project,
    Search,
    Shape,
    Step,
)
from symdsl.diagnostics import Span

PRIOR = Prior(1.0, True)
TURNS = "quarter turns"


def span(line: int = 1) -> Span:
    return Span("made.sym", line, 1, line, 10)


def tensor(name: str, shape: tuple[int, ...], left: tuple[int, int], right: tuple[int, int]) -> ParameterTensor:
    return ParameterTensor(name, shape, FactorSize(*left), FactorSize(*right), PRIOR)


def fc(reads: Shape, writes: Shape) -> Candidate:
    weight = tensor("w", (writes.size, reads.size), (writes.size, 1), (reads.size, 1))
    return Candidate("FC", "FC", (), 1.0, (weight,), (), writes.size * reads.size, span())


def conv(reads: Shape, writes: Shape, kernel: int = 3) -> Candidate:
    side = reads.planes * kernel**2
    weight = tensor("w", (writes.planes, reads.planes, kernel, kernel), (writes.planes, 1), (side, 1))
    work = writes.planes * side * reads.positions
    return Candidate("CONV", "CONV", (("size", kernel),), 1.0, (weight,), ("translations",), work, span())


def factored(reads: Shape, writes: Shape) -> Candidate:
    pairs = (writes.planes, reads.planes)
    first = tensor("w1", (*pairs, writes.positions), (writes.positions, 1), (reads.planes, writes.planes))
    second = tensor("w2", (*pairs, reads.positions), (writes.planes, 1), (reads.positions, reads.planes))
    work = writes.planes * reads.planes * (reads.positions + writes.positions)
    return Candidate("F-FC", "F-FC", (), 0.1, (first, second), (), work, span())


def gconv(reads: Shape, writes: Shape, kernel: int = 3) -> Candidate:
    arguments = (("size", kernel), ("factor", "pointwise"), ("group", "p4"))
    side = reads.channels * kernel**2
    weight = tensor("w", (writes.channels, reads.channels, kernel, kernel), (writes.channels, 1), (side, 1))
    preserves = ("translations", TURNS)
    work = writes.planes * side * reads.positions
    return Candidate("GCONV", "GCONV", arguments, 1.0, (weight,), preserves, work, span())


KINDS = {"FC": fc, "CONV": conv, "F-FC": factored, "GCONV": gconv}


class Chain:
    """Builds a network node by node, keeping track of the shape."""

    def __init__(self, channels: int, height: int, width: int, name: str = "input") -> None:
        self.shape = Shape(channels, height, width)
        self.nodes: list[Node] = [Input(name, self.shape, span())]

    def lift(self) -> Chain:
        return self._add(lambda reads, writes: Lift("lift", reads, writes, span()), self._shape(group="p4"))

    def layer(self, name: str, kinds: str, channels: int, stride: int = 1, activations: tuple[str, ...] = ()) -> Chain:
        reads = self.shape
        writes = self._shape(channels=channels, height=-(-reads.height // stride), width=-(-reads.width // stride))
        made = tuple(KINDS[kind](reads, writes) for kind in kinds.split())
        return self._add(
            lambda reads, writes: Layer(name, reads, writes, stride, made, PRIOR, activations, span(len(self.nodes))),
            writes,
        )

    def residual(self, *layers: tuple[str, str, int]) -> Chain:
        """A block of layers, each by its name, its kinds and its channels."""
        since, reads = self.nodes[-1].name, self.shape
        for layer in layers:
            self.layer(*layer)
        name = f"residual-{sum(isinstance(node, Join) for node in self.nodes) + 1}"
        return self._add(lambda writes, _: Join(name, writes, reads, since, span()), reads)

    def project(self) -> Chain:
        return self._add(
            lambda reads, writes: Project("project", reads, writes, "max", span()), self._shape(group="trivial")
        )

    def pool(self) -> Chain:
        return self._add(
            lambda reads, writes: Pool("pool", reads, writes, "mean", span()), self._shape(height=1, width=1)
        )

    def flatten(self) -> Chain:
        vector = Shape(self.shape.size, 1, 1, flat=True)
        return self._add(lambda reads, writes: Flatten("flatten", reads, writes, span()), vector)

    def facts(self, name: str = "made") -> Facts:
        first = self.nodes[0].out_shape
        size = (first.channels, first.height, first.width)
        source = Step("digits", (("size", 16), ("pair", (1, 2.5, "a", True))), span())
        data = Data(source, (Step("standardize", (), span()),), *size, self.shape.channels, "classification")
        return Facts(name, data, Network(f"{name}_net", tuple(self.nodes)), SEARCH)

    def _shape(self, **changes: int | str) -> Shape:
        import attrs

        return attrs.evolve(self.shape, **changes)

    def _add(self, make, writes: Shape) -> Chain:  # type: ignore[no-untyped-def]
        self.nodes.append(make(self.shape, writes))
        self.shape = writes
        return self


SEARCH = Search(
    objective=Objective("kfac-expand", Fisher("mc", 1)),
    epochs=2,
    burnin=0,
    every=None,
    examples=256,
    start="relaxed",
    optimizer=Optimizer("adam", 0.005, "cosine", 1.0),
    prior_optimizer=Mackay(0.8),
    batch=8,
    seed=0,
)


def pyramid(kinds: str = "F-FC CONV", depth: int = 7) -> Chain:
    """The seven layers and two heads of the shipped specs on 16x16 maps, or fewer."""
    plan = [(1, 1), (2, 2), (2, 1), (4, 2), (4, 1), (8, 2), (16, 2)]
    chain = Chain(1, 16, 16)
    for number, (multiple, stride) in enumerate(plan[:depth], start=1):
        chain.layer(f"l{number}", kinds, 4 * multiple, stride, ("relu",))
    return chain.flatten().layer("h1", "FC", 32 * 4, activations=("relu",)).layer("h2", "FC", 10)
