"""What fewer rows than there are know of the determinant of all tensors together.

    python benchmarks/projections.py RUN --rows 1024 --factors 0.1 1 10

Takes a finished run, and the precisions it learned times every factor. `all` is from all rows as they are; `sums` from
as many sums of them as `--rows`; `drawn` from as many of the rows themselves, and `bound` what these have times the
number of rows for each of them. A search takes `sums` or `drawn`, as the star says. Each cell is the volume, in nats,
and the effective number of parameters.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from effective_numbers import finished

import symdsl
from symdsl.evidence.joint import Joined, Together
from symdsl.evidence.sampled import Told


def cell(found: Joined, times: float = 1.0, mark: str = "") -> str:
    return f"{found.volume * times:.0f}, {sum(found.effective.values()) * times:.0f}{mark}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--factors", type=float, nargs="+", default=[0.1, 1.0, 10.0, 100.0])
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    net, train, precisions = finished(arguments.run)
    every, some = (
        symdsl.laplace.fit(
            net, train, "full", "signs(1)", precisions=precisions, seed=arguments.seed, rows=rows
        ).determinant
        for rows in (len(train), arguments.rows)
    )
    assert isinstance(every, Together), "the determinant is one of all tensors together"
    if not isinstance(some, Told):
        parser.error(f"--rows must be below the number of training examples, {len(train)}")
    print("| precisions times | all | sums | drawn | bound |")
    print("|---|---|---|---|---|")
    for factor in arguments.factors:
        at = {key: precision * factor for key, precision in precisions.items()}
        sums, drawn = some.mixed.at(at), some.sampled.at(at)
        marks = ("*", "") if some.mixed.tells(sums) else ("", "*")
        bound = cell(some.sampled.whole.at(at), len(train) / arguments.rows)
        cells = [cell(every.at(at)), cell(sums, mark=marks[0])]
        print(f"| {factor:g} | {' | '.join([*cells, cell(drawn, mark=marks[1]), bound])} |", flush=True)


if __name__ == "__main__":
    main()
