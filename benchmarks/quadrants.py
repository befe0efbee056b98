"""Table 1 in miniature: both quadrant tasks, learned and by MAP, for some seeds.

    python benchmarks/quadrants.py --seeds 711 1 2 --device cpu

Prints one row per run and the share of F-FC in every layer of the learned networks. Runs are kept in `--out` and not
repeated when they are there already.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kept import result_of

from symdsl import spec
from symdsl.runner.searching import Objective

SPECS = Path(__file__).parent.parent / "specs"
Row = tuple[str, Objective, Mapping[str, str]]
ROWS: tuple[Row, ...] = (
    ("CONV, MAP", "map", {"candidates": "[CONV(3)]"}),
    ("F-FC + CONV, MAP", "map", {}),
    ("F-FC + CONV, learned", "laplace", {}),
)
TASKS = ("quadrant_digit", "quadrant_position")


def trained(task: str, row: Row, seed: int, device: str, out: Path) -> dict[str, Any]:
    """The result of one row's run."""
    name, objective, overrides = row
    folder = out / f"{task}-{name.replace(' ', '').replace(',', '-')}-{seed}"
    return result_of(spec.load(SPECS / f"{task}.sym", {**overrides, "search.seed": seed}), folder, objective, device)


def shares(result: Mapping[str, Any]) -> str:
    """F-FC's relative effective number in every layer that has it, in per cent."""
    found = [one["relative"] for layer in result["layers"] for one in layer["candidates"] if one["kind"] == "F-FC"]
    return " ".join(f"{100 * share:3.0f}" for share in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[711])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("runs/benchmark-quadrants"))
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    arguments = parser.parse_args()
    print("| task | row | seed | test accuracy | test NLL | ECE | -log evidence / example | F-FC share, % | wall s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for task in arguments.tasks:
        for row in ROWS:
            for seed in arguments.seeds:
                result = trained(task, row, seed, arguments.device, arguments.out)
                test, evidence = result["test"], result["neg_log_evidence_per_example"]
                figures = f"{100 * test['accuracy']:.2f} % | {test['nll']:.4f} | {test['ece']:.4f} | {evidence:.4f}"
                wall = f"{result['wall_s']['total']:.0f} ({result['wall_s']['evidence']:.0f} evidence)"
                print(f"| {task} | {row[0]} | {seed} | {figures} | {shares(result)} | {wall} |", flush=True)


if __name__ == "__main__":
    main()
