"""What every kind of path costs beside the plain torch operation of the same shape, as ratios within one run.

    python benchmarks/layers.py --rounds 15 --threads 2

Each row times both sides in turn, round after round, and reports the median of the rounds' ratios. The row of escnn
appears where it is installed (`pip install escnn`).
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial

import attrs
import torch
from torch import Tensor
from torch.nn import functional

from symdsl import nn, spec
from symdsl.evidence import (
    CURVATURES,
    Categorical,
    Fisher,
    Kronecker,
    KroneckerFactors,
    MonteCarlo,
    Rademacher,
    WeightUse,
    estimate,
)
from symdsl.evidence.eigenvalues import symmetric_eigenvalues
from symdsl.evidence.joint import WIDTH, CountSketch, ProductSketch
from symdsl.evidence.kfac import Factor, gram
from symdsl.kinds.dense.module import is_multiplied_out, multiplied_out
from symdsl.lowering import compile
from symdsl.resources import shipped

BATCH = 64

TRAINED, PASSED = 128, 1024
"""Examples at a time in a search: of a training step, and of an estimate of the curvature."""

Work = Callable[[], object]

LAYER = """
data synthetic(size = {size}, channels = {channels}, classes = 10, train = 8, test = 8)

network one {{
  input image(channels, {size}, {size})
  {lift}
  layer l1: {kind} -> {out} {stride}
  pool mean {project}
  flatten
  layer h1: FC -> classes
}}
"""


@attrs.frozen
class Row:
    """`ours` (called `name`) against `plain` (called `beside`), and the ratio it should not exceed; 0 for none."""

    name: str
    beside: str
    ours: Work
    plain: Work
    bar: float = 0.0


def path(kind: str, size: int, channels: int, out: int, lift: str = "", stride: int = 1) -> nn.Path:
    """The path of a layer with this one candidate."""
    thinned, project = f"stride {stride}" if stride > 1 else "", "project mean" if lift else ""
    text = LAYER.format(size=size, channels=channels, out=out, kind=kind, lift=lift, stride=thinned, project=project)
    (_, layer), *_ = compile(spec.parse(text)).layers()
    (only,) = layer.paths.values()
    assert isinstance(only, nn.Path), "a layer's paths are paths"
    return only


def image(planes: int, size: int, examples: int = BATCH) -> Tensor:
    return torch.randn(examples, planes, size, size, generator=torch.Generator().manual_seed(0)).requires_grad_()


def both_ways(function: Callable[[Tensor], Tensor], x: Tensor) -> Work:
    """Forward and backward, into inputs and weights."""
    gradient = torch.randn_like(function(x))

    def work() -> None:
        x.grad = None
        function(x).backward(gradient)

    return work


def weight(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1)).requires_grad_()


def circular(w: Tensor, x: Tensor) -> Tensor:
    """What `torch.nn.Conv2d(padding_mode="circular")` does."""
    margin = w.shape[-1] // 2
    return functional.conv2d(functional.pad(x, (margin,) * 4, mode="circular"), w)


def two_einsums(w2: Tensor, w1: Tensor, x: Tensor) -> Tensor:
    return torch.einsum("ndc,dcy->ndy", torch.einsum("ncx,dcx->ndc", x.flatten(2), w2), w1)


def by_the_product(w2: Tensor, w1: Tensor, x: Tensor) -> Tensor:
    return multiplied_out(x.flatten(2), w2, w1)


def linear(w: Tensor, x: Tensor) -> Tensor:
    return functional.linear(x.flatten(1), w)


def paths() -> Iterator[Row]:
    """Forward and backward of every kind."""
    planes, size, out = 16, 32, 32
    x = image(planes, size)
    conv = both_ways(path("CONV(3)", size, planes, out), x)
    plain = both_ways(partial(circular, weight(out, planes, 3, 3)), x)
    yield Row(f"CONV(3), {planes} to {out}, {size}x{size}", "F.conv2d, circular", conv, plain, 1.1)

    lifted = image(4 * 8, size)
    wide = both_ways(partial(circular, weight(4 * 8, 4 * 8, 3, 3)), lifted)
    for factor in ("full", "separable", "depthwise", "pointwise"):
        ours = both_ways(path(f"GCONV(3, factor = {factor})", size, 8, 8, "lift p4"), lifted)
        bar = 1.15 if factor == "full" else 0.0
        yield Row(f"GCONV(3, factor = {factor}), p4, 8 to 8 planes", "F.conv2d, circular, 32 to 32", ours, wide, bar)
    if importlib.util.find_spec("escnn") is not None:
        yield Row(
            "GCONV(3), p4, 8 to 8",
            "escnn R2Conv, regular, 8 to 8",
            both_ways(path("GCONV(3)", size, 8, 8, "lift p4"), lifted),
            escnn_convolution(8, lifted),
        )

    dense = image(10, size)
    factored = both_ways(path("F-FC", size, 10, 20, stride=2), dense)
    bare = both_ways(partial(two_einsums, weight(20, 10, size**2), weight(20, 10, size**2 // 4)), dense)
    yield Row(f"F-FC, 10 to 20, {size}x{size} to 16x16", "two einsums", factored, bare, 1.1)
    yield Row("S-FC, the same", "F-FC", both_ways(path("S-FC", size, 10, 20, stride=2), dense), factored)
    sparse = both_ways(path("S-CONV(3)", size, planes, out), x)
    yield Row(f"S-CONV(3), {planes} to {out}", "CONV(3)", sparse, conv, 1.2)
    small = image(8, 8)
    full = both_ways(path("FC", 8, 8, 8), small)
    plain_linear = both_ways(partial(linear, weight(512, 512)), small)
    yield Row("FC, 8 to 8, 8x8", "F.linear", full, plain_linear)


def few_positions() -> Iterator[Row]:
    """Of the two ways to evaluate F-FC the one that is taken, beside the other."""
    for size, out, stride in ((2, 160, 2), (4, 80, 2), (4, 80, 1)):
        x, end = image(80, size), size // stride
        factors = weight(out, 80, size**2), weight(out, 80, end**2)
        at_once = is_multiplied_out(size**2, end**2)
        yield Row(
            f"F-FC, 80 to {out}, {size}x{size} to {end}x{end}",
            "two einsums" if at_once else "the weight multiplied out",
            both_ways(path("F-FC", size, 80, out, stride=stride), x),
            both_ways(partial(two_einsums if at_once else by_the_product, *factors), x),
        )


def escnn_convolution(channels: int, x: Tensor) -> Work:
    """The same convolution by escnn, in training mode, where it expands its basis at every pass."""
    from escnn import gspaces
    from escnn import nn as steerable

    space = gspaces.rot2dOnR2(4)
    field = steerable.FieldType(space, channels * [space.regular_repr])
    module = steerable.R2Conv(field, field, 3, padding=1, padding_mode="circular", bias=False)
    return both_ways(lambda images: module(steerable.GeometricTensor(images, field)).tensor, x)


NETWORKS = {
    "F-FC + CONV(3)": {},
    "CONV(3)": {"candidates": "[CONV(3)]"},
    "S-FC + S-CONV(3)": {"candidates": "[S-FC, S-CONV(3)]"},
    "S-FC + S-CONV(3), lengthscales": {"candidates": "[S-FC(on = lengthscale), S-CONV(3, on = lengthscale)]"},
    "S-FC + S-CONV(3), anchors": {"candidates": "[S-FC(anchors = learned), S-CONV(3, anchors = learned)]"},
}
"""Candidates of the pyramid of seven layers."""


def curvature() -> Iterator[Row]:
    """An estimate, and its determinant at one prior, against training on the same examples."""
    for name, settings in NETWORKS.items():
        net = compile(spec.load(shipped("specs/quadrant_digit.sym"), settings))
        for kind, fisher in (("kfac-reduce", MonteCarlo(1)), ("joint", Rademacher(1))):
            yield estimated(f"{kind}, the pyramid of {name}", net, image(1, 16, PASSED).detach(), kind, fisher)
    lifted = compile(spec.load(shipped("specs/rotated_mnist.sym")))
    yield estimated(
        "kfac-reduce, rotated_mnist.sym", lifted, image(1, 32, PASSED // 2).detach(), "kfac-reduce", MonteCarlo(1)
    )


def large() -> Iterator[Row]:
    """What is done for large dense kinds, whose examples are few, against what is done for others."""
    few = torch.randn(1, 512, 2048, generator=torch.Generator().manual_seed(0))
    ours, dense = (
        KroneckerFactors({"w": Kronecker(Factor.of(torch.ones(1, 1, 1)), factor)})
        for factor in (Factor.of(few), Factor(gram(few)))
    )
    yield Row("determinant of a factor of 512 vectors, side 2048", "of the dense factor", once(ours), once(dense))
    g, a = (torch.randn(64, 1, 1, 1024, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
    product = ProductSketch(g, a, WIDTH, torch.Generator().manual_seed(0))
    count = CountSketch(1024**2, WIDTH, torch.Generator().manual_seed(0))
    yield Row(
        "sketch of 64 gradients of FC, 1024 to 1024, by products",
        "by a CountSketch",
        partial(product.of_pairs, g, a),
        partial(count.of_pairs, g, a),
    )


def once(ggn: KroneckerFactors) -> Work:
    """The determinant, decomposed anew every time."""
    return lambda: ggn.scaled(1.0).at({"w": 1.0})


def estimated(name: str, net: nn.Network, x: Tensor, kind: str, fisher: Fisher) -> Row:
    y, generator = torch.arange(len(x)) % 10, torch.Generator().manual_seed(0)

    def ours() -> None:
        found = estimate(net, x, y, Categorical(), fisher, generator, CURVATURES[kind]).ggn
        found.at(dict.fromkeys(found.sizes, 1.0))

    return Row(name, "training steps", ours, training(net, x, y))


def moments() -> Iterator[Row]:
    """The shorter ways to the moment of what a weight reads, each against the way through the format."""
    for kind, lift, stride in (
        ("CONV(3)", "", 1),
        ("CONV(5)", "", 1),
        ("CONV(3)", "", 2),
        ("S-CONV(3)", "", 1),
        ("GCONV(3)", "lift p4", 1),
        ("GCONV(3)", "lift p4", 2),
        ("GCONV(3, factor = pointwise)", "lift p4", 1),
        ("GCONV(3, factor = separable)", "lift p4", 1),
        ("GCONV(3, factor = depthwise)", "lift p4", 1),
        ("S-GCONV(3)", "lift p4", 1),
    ):
        for size, channels in ((16, 8), (4, 32)):
            one = path(kind, size, channels, channels, lift, stride)
            x = image(channels * (4 if lift else 1), size, 128).detach()
            use = next(use for use in one.weight_uses.values() if use.input_moment is not None)
            name = f"moment of {kind} stride {stride}, {channels} channels, {size}x{size}"
            yield Row(name, "by the format", no_grad(use.input_moment, one, x), no_grad(by_the_format, use, one, x))


def by_the_format(use: WeightUse, one: nn.Path, x: Tensor) -> Tensor:
    return gram(use.inputs(one, x).transpose(0, 1).flatten(1, 2))


def no_grad(function: Callable[..., Tensor], *arguments: object) -> Work:
    return partial(torch.no_grad()(function), *arguments)


def training(net: nn.Network, x: Tensor, y: Tensor) -> Work:
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-5)

    def steps() -> None:
        for inputs, labels in zip(x.split(TRAINED), y.split(TRAINED), strict=True):
            optimizer.zero_grad()
            functional.cross_entropy(net(inputs), labels).backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()

    return steps


def seconds(work: Work) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measured(row: Row, rounds: int) -> str:
    """One line of the table."""
    for work in (row.ours, row.plain):
        work()
    pairs = [(seconds(row.ours), seconds(row.plain)) for _ in range(rounds)]
    ratio = statistics.median(ours / plain for ours, plain in pairs)
    ours, plain = (1000 * statistics.median(side) for side in zip(*pairs, strict=True))
    bar = f"{row.bar:g} ({'met' if ratio <= row.bar else 'missed'})" if row.bar else ""
    return f"| {row.name} | {row.beside} | {ours:.1f} | {plain:.1f} | {ratio:.2f} | {bar} |"


def eigenvalues(rounds: int) -> str:
    """Seconds for all four factors of F-FC, 10 to 20 channels, 32x32 to 16x16, in float64."""
    sides = ((20, 10), (1, 256), (10, 1024), (1, 20))
    generator = torch.Generator().manual_seed(0)
    roots = [torch.randn(blocks, side, side, generator=generator) for blocks, side in sides]
    factors = [root @ root.mT for root in roots]

    def work() -> None:
        for factor in factors:
            symmetric_eigenvalues(factor, "F-FC")

    taken = statistics.median(seconds(work) for _ in range(rounds))
    return f"eigenvalues of F-FC, 10 to 20 channels, 32x32 to 16x16: {taken:.2f} s (bar 1 s)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="rows whose name has this")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    print(
        f"forward and backward of a batch of {BATCH}; curvature and training of {PASSED} examples; "
        f"{arguments.threads} threads, {arguments.rounds} rounds\n"
    )
    print("| ours | plain | ours ms | plain ms | ratio | bar |")
    print("|---|---|---|---|---|---|")
    for row in (*paths(), *few_positions(), *moments(), *large(), *curvature()):
        if arguments.only in row.name:
            print(measured(row, arguments.rounds), flush=True)
    if not arguments.only:
        print(f"\n{eigenvalues(arguments.rounds)}")


if __name__ == "__main__":
    main()
