"""What an evidence step costs beside training on as many examples.

    OMP_NUM_THREADS=1 python benchmarks/evidence.py specs/starter.sym specs/digits.sym

Processor time, the median of some steps of each. `symdsl.graph.cost.RELATIVE_COST` stands for the ratio;
that of Kronecker factors holds the eigenvalues of large factors, too, which `EIGENVALUE_COST` stands for.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

import torch

from symdsl import data, lowering, spec
from symdsl.runner.start import begin
from symdsl.runner.structure import Structure
from symdsl.runner.training import Trainer


def seconds(step: Callable[[], object], times: int) -> float:
    """Median processor time of a step."""
    found = []
    for _ in range(times):
        started = time.process_time()
        step()
        found.append(time.process_time() - started)
    return median(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", nargs="+")
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    print(f"{'spec':40} {'curvature':12} {'training ms':>11} {'evidence ms':>11} {'ratio':>6}")
    for path in options.specs:
        read = spec.load(path)
        dataset, net = data.load(read), lowering.compile(read)
        start = begin(net, read.facts, len(dataset.train))
        trainer = Trainer(net, read.facts, dataset, 0, start)
        structure = Structure(trainer, start, print)
        batch = trainer.train.batch(torch.arange(min(trainer.search.batch, len(trainer.train))), trainer.device)

        def train(trainer: Trainer = trainer, batch: data.Examples = batch) -> None:
            trainer.net.train()
            trainer._train_step(batch, len(batch))

        training, evidence = seconds(train, options.times), seconds(structure.evidence_step, options.times)
        looked_at = min(trainer.search.examples, len(trainer.train))
        ratio = evidence / training * len(batch) / looked_at
        curvature = structure.estimator.curvature
        print(f"{path:40} {curvature:12} {1e3 * training:11.1f} {1e3 * evidence:11.1f} {ratio:6.1f}")


if __name__ == "__main__":
    main()
