"""How much depth, and how large a kernel, a search keeps: residual blocks of `learned_depth`, kernels of two tasks.

    python benchmarks/structure.py depth --blocks 3 6 12 20 --seeds 711 1 2 3 4
    python benchmarks/structure.py kernels --seeds 711 1 2 3 4

`depth` prints, for every number of blocks, test NLL and accuracy by MAP and learned, mean and standard error over
seeds, and how many blocks were removed. `kernels` prints, for digits and for digits whose pixels are shuffled, the
evidence of networks of one kernel each, and the share of each kernel in a search over all of them. Runs are kept in
`--out` and not repeated when they are there already.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kept import result_of, setting

from symdsl import spec
from symdsl.analysis.joins import emptied
from symdsl.runs.schema import Objective

SPECS = Path(__file__).parent.parent / "specs"
TASKS = ("kernel_size", "kernel_size_shuffled")


def trained(
    name: str, overrides: Mapping[str, object], objective: Objective, seed: int, given: argparse.Namespace
) -> tuple[spec.Spec, dict[str, Any]]:
    """A spec and the result of its run."""
    found = spec.load(SPECS / f"{name}.sym", {**given.set, **overrides, "search.seed": seed})
    words = "-".join(f"{key}={str(value).replace(' ', '')}" for key, value in {**given.set, **overrides}.items())
    folder = given.out / f"{name}-{objective}-{words}-{seed}"
    return found, result_of(found, folder, objective, given.device)


def removed(found: spec.Spec, result: Mapping[str, Any]) -> int:
    """How many residual blocks a search removed."""
    return len(emptied(found.facts.network.nodes, {layer["name"]: layer["kept"] for layer in result["layers"]}))


def mean(values: Sequence[float], digits: int = 4) -> str:
    """The mean and, of several, its standard error."""
    error = f" ± {statistics.stdev(values) / len(values) ** 0.5:.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.{digits}f}{error}"


def depth(given: argparse.Namespace) -> None:
    """Blocks that are there and blocks that are removed."""
    print("| blocks | objective | test NLL | test accuracy, % | blocks removed | wall s |\n|---|---|---|---|---|---|")
    for count in given.blocks:
        blocks = {"blocks": f"[{','.join(map(str, range(count)))}]"}
        for objective in ("map", "laplace"):
            runs = [trained("learned_depth", blocks, objective, seed, given) for seed in given.seeds]
            results = [result for _, result in runs]
            nll = mean([result["test"]["nll"] for result in results])
            accuracy = mean([100 * result["test"]["accuracy"] for result in results], 2)
            gone = " ".join(str(removed(*run)) for run in runs)
            wall = statistics.fmean(result["wall_s"]["total"] for result in results)
            print(f"| {count} | {objective} | {nll} | {accuracy} | {gone} | {wall:.0f} |", flush=True)


def kernels(given: argparse.Namespace) -> None:
    """Networks of one kernel each beside the search over all three: evidence, and shares in every layer."""
    print("| spec | kernels | test NLL | test accuracy, % | negative log evidence | shares of 1, 3, 5 by layer, % |")
    print("|---|---|---|---|---|---|")
    for name in TASKS:
        for sizes in ("[CONV(1)]", "[CONV(3)]", "[CONV(5)]", "[CONV(1), CONV(3), CONV(5)]"):
            results = [trained(name, {"sizes": sizes}, "laplace", seed, given)[1] for seed in given.seeds]
            nll = mean([result["test"]["nll"] for result in results], 3)
            accuracy = mean([100 * result["test"]["accuracy"] for result in results], 1)
            evidence = mean([result["neg_log_evidence_per_example"] for result in results], 3)
            print(f"| {name} | {sizes} | {nll} | {accuracy} | {evidence} | {shares(results)} |", flush=True)


def shares(results: Sequence[Mapping[str, Any]]) -> str:
    """The mean share of each candidate in every layer that has several."""
    layers = zip(*(result["layers"] for result in results), strict=True)
    found = [
        zip(*([100 * one["relative"] for one in layer["candidates"]] for layer in same), strict=True)
        for same in layers
        if len(same[0]["candidates"]) > 1
    ]
    return "; ".join(" ".join(f"{statistics.fmean(values):.0f}" for values in layer) for layer in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("depth", "kernels"))
    parser.add_argument("--blocks", type=int, nargs="+", default=[3, 6, 12, 20])
    parser.add_argument("--seeds", type=int, nargs="+", default=[711])
    parser.add_argument(
        "--set", type=setting, nargs="*", default=[], help="key=value, as `symdsl search --set` takes it"
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("runs/benchmark-structure"))
    given = parser.parse_args()
    given.set = dict(given.set)
    {"depth": depth, "kernels": kernels}[given.what](given)


if __name__ == "__main__":
    main()
