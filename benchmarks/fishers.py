"""The evidence and the effective number of parameters of a trained network, by all columns and by sampled ones.

    python benchmarks/fishers.py RUN --seeds 1 2

Takes a finished run at the precisions it learned. `exact` is what the others estimate: `mc` by labels drawn from the
network, `rademacher` by all columns added up with random signs. Evidence is minus the log, per example, in nats.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from effective_numbers import finished

import symdsl

CURVATURES = ("kfac-expand", "joint")
FISHERS = ("mc(1)", "mc(10)", "rademacher(1)", "rademacher(10)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    net, train, precisions = finished(arguments.run)
    print(f"| fisher | seed | {' | '.join(f'{name}: evidence | effective parameters' for name in CURVATURES)} |")
    print("|---|---|" + "---|---|" * len(CURVATURES))
    for fisher, seed in [("exact", 0)] + [(fisher, seed) for fisher in FISHERS for seed in arguments.seeds]:
        cells = []
        for curvature in CURVATURES:
            found = symdsl.laplace.fit(net, train, curvature, fisher, precisions, seed=seed)
            effective = sum(found.effective_parameters().values())
            cells += [f"{-found.log_evidence() / found.examples:.4f}", f"{effective:.1f}"]
        print(f"| {fisher} | {seed} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
