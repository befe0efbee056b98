"""How good the probabilities of shipped specs are: the network's own, and averaged over its last layer's posterior.

    python benchmarks/calibration.py [SPEC ...] [--seeds 21 22 23] [--device cpu] [--out FOLDER] [--set K=V ...]

Every spec is searched with several seeds. Runs are kept in FOLDER: what is finished is not run again, and what was
interrupted goes on.
A row for each spec has the means over seeds on test data: accuracy, mean negative log-likelihood in nats and expected
calibration error (15 bins) of the network itself, of the predictive of the Laplace approximation as it is (temperature
1), and of the one that `symdsl predict` uses, whose temperature, in the last column, the training examples choose.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean

import attrs
from kept import result_of, setting
from torch import Tensor

import symdsl
from symdsl import data
from symdsl.predictive import Predicted
from symdsl.runner.loading import Run

SPECS = sorted((Path(__file__).parents[1] / "specs").glob("*.sym"))
WAYS = ("network", "temperature 1", "calibrated")


def run_of(path: Path, seed: int, asked: argparse.Namespace) -> Run:
    """The finished run of a spec."""
    folder: Path = asked.out / path.stem / str(seed)
    result_of(symdsl.load(path, {**asked.settings, "search.seed": seed}), folder, None, asked.device)
    return symdsl.load_run(folder, asked.device)


def measured(run: Run) -> dict[str, tuple[float, float, float]]:
    """Accuracy, NLL and calibration error in every way, on the run's test data."""
    test = data.load(run.spec).test
    whole = attrs.evolve(run.posterior(), temperature=1.0).predict(run.network, test.x)
    found = (run.predict(test.x, calibrated=False), whole, run.predict(test.x))
    return {way: figures(one, test.y) for way, one in zip(WAYS, found, strict=True)}


def figures(found: Predicted, labels: Tensor) -> tuple[float, float, float]:
    assert found.probabilities is not None, "it is a classification"
    targets = labels.to(found.probabilities.device)
    accuracy = float((found.probabilities.argmax(1) == targets).double().mean())
    return accuracy, found.nll(targets), found.calibration_error(targets)


def rows(spec: Path, runs: list[Run]) -> Iterator[str]:
    """A line for each seed, and one of their means."""
    found = [measured(run) for run in runs]
    temperatures = [run.posterior().temperature for run in runs]
    for run, one, temperature in zip(runs, found, temperatures, strict=True):
        yield line(f"{spec.stem}, seed {run.result['seed']}", one, f"{temperature:g}")
    means = {way: tuple(fmean(column) for column in zip(*(one[way] for one in found), strict=True)) for way in WAYS}
    yield line(f"**{spec.stem}**", means, "")


def line(title: str, found: Mapping[str, tuple[float, ...]], temperature: str) -> str:
    cells = [f"{100 * accuracy:.1f} % | {nll:.4f} | {100 * error:.2f} %" for accuracy, nll, error in found.values()]
    return f"| {title} | {' | '.join(cells)} | {temperature} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", type=Path, nargs="*", default=SPECS, metavar="SPEC")
    parser.add_argument("--seeds", type=int, nargs="+", default=[21, 22, 23])
    parser.add_argument("--out", type=Path, default=Path("runs/calibration"))
    parser.add_argument("--set", dest="settings", type=setting, action="append", default=[], metavar="K=V")
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    asked.settings = dict(asked.settings)
    print("| spec | " + " | ".join(f"{way}: accuracy | NLL | ECE" for way in WAYS) + " | temperature |")
    print("|---" * (2 + 3 * len(WAYS)) + "|")
    for spec in asked.specs:
        if symdsl.load(spec, asked.settings).facts.data.task == "classification":
            for row in rows(spec, [run_of(spec, seed, asked) for seed in asked.seeds]):
                print(row, flush=True)


if __name__ == "__main__":
    main()
