"""How far finished runs are from the mode of their objective.

    python benchmarks/modes.py RUN RUN ...

At a mode the gradient in the logarithm of each tensor's scale is zero: the likelihood pulls on it, by minus the inner
product of the tensor and its gradient of the negative log likelihood, as much as the prior, by precision times squared
norm. A row for each layer gives both, summed over the tensors of its paths, without its bias, and all training
examples, in nats; the first line of a run gives its objective and the two parts of it per example.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import attrs
from effective_numbers import finished
from torch import Tensor

from symdsl.data import Examples
from symdsl.evidence.loss import likelihood_of
from symdsl.nn import Network

_BATCH = 500


@attrs.frozen
class Pulls:
    """On the scale of one tensor, in nats."""

    likelihood: float
    prior: float


def accumulate(net: Network, train: Examples) -> float:
    """Leaves the gradient of the negative log likelihood in the parameters; its value without constants, in nats."""
    likelihood, total = likelihood_of(train.y), 0.0
    for start in range(0, len(train), _BATCH):
        loss: Tensor = likelihood.loss(net(train.x[start : start + _BATCH]), train.y[start : start + _BATCH])
        loss.backward()
        total += loss.item()
    return total


def pulls(net: Network, precisions: dict[str, float]) -> dict[str, Pulls]:
    """On every tensor that is not switched off, from the gradients in the parameters."""
    found, tensors = {}, net.tensors()
    for key, precision in precisions.items():
        parameter, weights = tensors[key], tensors[key].detach()
        towards = 0.0 if parameter.grad is None else float((weights * parameter.grad).sum())
        found[key] = Pulls(-towards, precision * float(weights.double().square().sum()))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    for run in parser.parse_args().runs:
        net, train, precisions = finished(run)
        loss = accumulate(net, train) / len(train)
        found = pulls(net, precisions)
        penalty = 0.5 * sum(one.prior for one in found.values()) / len(train)
        print(f"{run.name}: {loss + penalty:.4f} nats an example, likelihood {loss:.4f}, prior {penalty:.4f}\n")
        print("| layer | likelihood | prior |\n|---|---|---|")
        of_layers: dict[str, list[Pulls]] = {}
        for key, one in found.items():
            if not key.endswith(".bias"):
                of_layers.setdefault(key.split(".")[0], []).append(one)
        for layer, some in of_layers.items():
            print(f"| {layer} | {sum(one.likelihood for one in some):.1f} | {sum(one.prior for one in some):.1f} |")
        print(flush=True)


if __name__ == "__main__":
    main()
