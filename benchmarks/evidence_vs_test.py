"""Does the evidence, computed on training data alone, order networks as their test NLL does?

    python benchmarks/evidence_vs_test.py --seeds 1 2 --curvature joint --fisher 'mc(1)'

Trains one network per width, kind and prior on the 8x8 digits: priors held at a precision (`map`), and learned
(`laplace`). Prints Spearman's rank correlation between negative log evidence per example and test NLL, over everything
and within each group, and draws the scatter (`pip install matplotlib`). Runs that are there already are not repeated,
and one that was interrupted goes on.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

import attrs
from kept import result_of
from scipy.stats import spearmanr

from symdsl import spec
from symdsl.runs.schema import Objective

TEXT = """
data digits |> standardize

network digit_net {{
  input image(channels, 8, 8)
  layer l1: {kinds} -> {width} |> relu
  layer l2: {kinds} -> {width} stride 2 |> relu
  layer l3: {kinds} -> {width} stride 2 |> relu
  flatten
  layer h1: FC -> {width} |> relu
  layer h2: FC -> classes
}}

prior {{
  *.* ~ normal(precision = {precision})
}}

search {{
  objective = laplace({curvature}, fisher = {fisher})
  epochs = {epochs}
  seed = {seed}
}}
"""
KINDS = ("FC", "F-FC", "CONV(3)", "F-FC + CONV(3)")
WIDTHS = (4, 8, 16)
PRIORS = ("0.1", "1", "10", "100", "learned")


@attrs.frozen
class Point:
    """One trained network: what it is, and the two figures that are compared, in nats per example."""

    kinds: str
    width: int
    prior: str
    seed: int
    evidence: float
    test_nll: float


def trained(kinds: str, width: int, prior: str, seed: int, options: argparse.Namespace) -> Point:
    """Trains a network, or reads what an earlier call left."""
    epochs, curvature, fisher = options.epochs, options.curvature, options.fisher
    name = f"{kinds}-{width}-{prior}-{seed}-{epochs}-{curvature}-{fisher}".replace(" ", "")
    objective: Objective = "laplace" if prior == "learned" else "map"
    precision = "1" if prior == "learned" else f"{prior}, fixed"
    text = TEXT.format(
        kinds=kinds, width=width, precision=precision, seed=seed, epochs=epochs, curvature=curvature, fisher=fisher
    )
    result = result_of(spec.parse(text), options.out / name, objective)
    return Point(kinds, width, prior, seed, result["neg_log_evidence_per_example"], result["test"]["nll"])


def correlation(points: Iterable[Point]) -> float:
    points = tuple(points)
    return float(spearmanr([one.evidence for one in points], [one.test_nll for one in points]).statistic)


def groups(points: tuple[Point, ...]) -> Iterator[tuple[str, tuple[Point, ...]]]:
    """Everything, each prior by itself, each kind by itself."""
    yield "all networks", points
    yield "priors held", tuple(one for one in points if one.prior != "learned")
    for prior in PRIORS:
        yield f"prior precision {prior}", tuple(one for one in points if one.prior == prior)
    for kinds in KINDS:
        yield kinds, tuple(one for one in points if one.kinds == kinds)


def draw(points: tuple[Point, ...], path: Path) -> None:
    """The scatter: one marker per prior, one colour per kind."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    for (index, kinds), (marker, prior) in product(enumerate(KINDS), zip("vosD*", PRIORS, strict=True)):
        own = [one for one in points if (one.kinds, one.prior) == (kinds, prior)]
        places = [one.evidence for one in own], [one.test_nll for one in own]
        axes.scatter(*places, marker=marker, color=f"C{index}", alpha=0.8)
    for index, kinds in enumerate(KINDS):
        axes.scatter([], [], color=f"C{index}", label=kinds)
    for marker, prior in zip("vosD*", PRIORS, strict=True):
        axes.scatter([], [], color="grey", marker=marker, label=f"precision {prior}")
    axes.set(xlabel="negative log evidence per training example, nats", ylabel="test NLL, nats", xscale="log")
    axes.set(yscale="log", title=f"{len(points)} networks on digits, rank correlation {correlation(points):.2f}")
    axes.legend(fontsize="small")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/evidence-vs-test"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--curvature", default="kfac", help="of which matrix the evidence is taken: kfac or joint")
    parser.add_argument("--fisher", default="mc(1)", help="how the evidence is taken: exact or mc(m)")
    parser.add_argument("--picture", type=Path, help="where to draw the scatter")
    arguments = parser.parse_args()
    cases = list(product(KINDS, WIDTHS, PRIORS, arguments.seeds))
    points = tuple(trained(*case, arguments) for case in cases)
    print("| networks | number | rank correlation |")
    print("|---|---|---|")
    for name, own in groups(points):
        print(f"| {name} | {len(own)} | {correlation(own):.2f} |")
    best = min(points, key=lambda one: one.evidence)
    rank = sorted(one.test_nll for one in points).index(best.test_nll) + 1
    print(f"\nbest evidence: {best.kinds}, width {best.width}, precision {best.prior}; test NLL {best.test_nll:.4f},")
    print(f"rank {rank} of {len(points)}")
    if arguments.picture is not None:
        draw(points, arguments.picture)


if __name__ == "__main__":
    main()
