"""How far finished runs are from the mode of their objective.

    python benchmarks/modes.py RUN RUN ...

At a mode the gradient in the logarithm of each tensor's scale is zero: the likelihood pulls on it, by minus the inner
product of the tensor and its gradient of the negative log likelihood, as much as the prior, by precision times squared
norm. A row for each layer gives both, summed over the tensors of its paths and all training examples, in nats; the
first line of a run gives its objective and the two parts of it per example.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import attrs
from effective_numbers import finished
from torch import Tensor

from symdsl.curvature.likelihood import likelihood_of
from symdsl.data import Examples
from symdsl.nn import Network

_BATCH = 500


@attrs.define
class Pulls:
    """On the scale of one layer, in nats."""

    likelihood: float = 0.0
    prior: float = 0.0


def accumulate(net: Network, train: Examples) -> float:
    """Leaves the gradient of the negative log likelihood in the parameters; its value without constants, in nats."""
    likelihood, total = likelihood_of(train.y), 0.0
    for start in range(0, len(train), _BATCH):
        loss: Tensor = likelihood.loss(net(train.x[start : start + _BATCH]), train.y[start : start + _BATCH])
        loss.backward()
        total += loss.item()
    return total


def pulls(net: Network, precisions: dict[str, float]) -> dict[str, Pulls]:
    """On every layer, from the gradients in its parameters; of weights, not of biases."""
    found: dict[str, Pulls] = defaultdict(Pulls)
    for key, parameter in net.tensors().items():
        if key not in precisions or parameter.grad is None or key.endswith(".bias"):
            continue
        layer, weights = found[key.split(".")[0]], parameter.detach()
        layer.likelihood -= float((weights * parameter.grad).sum())
        layer.prior += precisions[key] * float(weights.square().sum())
    return dict(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    for run in parser.parse_args().runs:
        net, train, precisions = finished(run)
        loss = accumulate(net, train) / len(train)
        tensors = net.tensors()
        norms = (precisions[key] * float(tensors[key].detach().square().sum()) for key in precisions)
        penalty = 0.5 * sum(norms) / len(train)
        print(f"{run.name}: {loss + penalty:.4f} nats an example, likelihood {loss:.4f}, prior {penalty:.4f}\n")
        print("| layer | likelihood | prior |\n|---|---|---|")
        for name, layer in pulls(net, precisions).items():
            print(f"| {name} | {layer.likelihood:.1f} | {layer.prior:.1f} |")
        print(flush=True)


if __name__ == "__main__":
    main()
