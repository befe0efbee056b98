"""MAP, and searches that start relaxed, symmetric, or try both: does the evidence choose the better start?

    python benchmarks/starts.py specs/starter.sym specs/quadrant_digit.sym --seeds 21 22 23

A line for each spec and way has the means over seeds, with standard deviations, on test data, and the negative log
evidence per training example, from all tensors together. The last lines say how often the start of the better evidence
is that of the better test NLL. Runs are kept in `--out`: what is finished is not run again, and what was interrupted
goes on.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kept import result_of, setting

from symdsl import spec
from symdsl.runs.schema import Objective
from symdsl.runs.summary import moments

Results = Mapping[str, Sequence[Mapping[str, Any]]]
WAYS: dict[str, tuple[Objective, dict[str, str]]] = {
    "map": ("map", {}),
    "relaxed": ("laplace", {"search.start": "relaxed"}),
    "symmetric": ("laplace", {"search.start": "symmetric"}),
    "both": ("laplace", {"search.start": "both"}),
}


def measured(path: Path, options: argparse.Namespace) -> Results:
    """The results of a spec, by way, one for each seed."""
    return {way: [_result(path, way, seed, options) for seed in options.seeds] for way in options.ways}


def _result(path: Path, way: str, seed: int, options: argparse.Namespace) -> Mapping[str, Any]:
    objective, overrides = WAYS[way]
    loaded = spec.load(path, {**dict(options.set), **overrides, "search.seed": seed})
    return result_of(loaded, options.out / path.stem / f"{way}-{seed}", objective, options.device)


def line(name: str, way: str, results: Sequence[Mapping[str, Any]]) -> str:
    """A line of the table."""
    tests = [one["test"] for one in results]
    figures = [
        _figure([100 * one.get("accuracy", one.get("r2")) for one in tests], ".2f"),
        _figure([one["nll"] for one in tests], ".3f"),
        _figure([one["neg_log_evidence_per_example"] for one in results], ".3f"),
        _figure([100 * one["wall_s"]["evidence"] / one["wall_s"]["total"] for one in results], ".0f"),
        shares(results[0]),
    ]
    return f"| {name} | {way} | {len(results)} | {' | '.join(figures)} |"


def _figure(values: Sequence[float], form: str) -> str:
    found = moments(values)
    return f"{found['mean']:{form}}" + ("" if found["spread"] is None else f" ± {found['spread']:{form}}")


def shares(result: Mapping[str, Any]) -> str:
    """The first candidate's share of every layer with several, in per cent."""
    layers = (layer["candidates"] for layer in result["layers"] if len(layer["candidates"]) > 1)
    return " ".join(f"{100 * candidates[0]['relative']:.0f}" for candidates in layers)


def agreement(found: Mapping[str, Results]) -> str:
    """How often the better evidence is the better test NLL, by single runs and by means of specs."""
    pairs = [pair for one in found.values() for pair in zip(one["relaxed"], one["symmetric"], strict=True)]
    runs = [_agrees(*((x["neg_log_evidence_per_example"], x["test"]["nll"]) for x in pair)) for pair in pairs]
    means = [_agrees(_means(one["relaxed"]), _means(one["symmetric"])) for one in found.values()]
    return (
        f"The start of the better evidence has the better test NLL in {sum(runs)} of {len(runs)} runs and,"
        f" by means over seeds, on {sum(means)} of {len(means)} specs."
    )


def _means(results: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    evidences, losses = zip(*((x["neg_log_evidence_per_example"], x["test"]["nll"]) for x in results), strict=True)
    return sum(evidences), sum(losses)


def _agrees(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return (one[0] < other[0]) == (one[1] < other[1])


def main() -> None:
    """Runs what is missing and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", type=Path, nargs="+", metavar="SPEC")
    parser.add_argument("--seeds", type=int, nargs="+", default=[711])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--set", type=setting, action="append", default=[], metavar="K=V", help="as of `symdsl`")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("runs/starts"))
    options = parser.parse_args()
    print(
        "| spec | way | seeds | accuracy or R², % | test NLL | -log evidence | evidence, % of time | first's shares |"
    )
    print("|---" * 8 + "|")
    found = {}
    for path in options.specs:
        found[path.stem] = measured(path, options)
        for way, results in found[path.stem].items():
            print(line(path.stem, way, results), flush=True)
    if {"relaxed", "symmetric"} <= set(options.ways):
        print(f"\n{agreement(found)}")


if __name__ == "__main__":
    main()
