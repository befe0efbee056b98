"""Effective numbers of parameters by KFAC, of the Gauss-Newton block, and of all tensors together.

    python benchmarks/effective_numbers.py RUN --fisher 'mc(4)' --largest 2500

Takes a finished run, as it was before training and as it is after, and the precisions it learned. The block of every
tensor with at most `--largest` parameters is summed up from the gradients of single examples, which shares no code with
the others and neglects nothing but the other tensors. The last number, by sketches of all gradients, does
not neglect these. All take their labels from the same kind of Fisher.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap

import symdsl
from symdsl.data import Examples
from symdsl.evidence.loss import Fisher, likelihood_of, parse_fisher
from symdsl.nn import Network
from symdsl.runner.loading import load_run
from symdsl.runner.start import stated_start
from symdsl.runs import RunFolder


@attrs.frozen
class Row:
    """One tensor: effective numbers by KFAC, of the block and of all tensors, before training and after."""

    tensor: str
    size: int
    precision: float
    before: tuple[float, ...]
    after: tuple[float, ...]

    def __str__(self) -> str:
        cells = [f"{number:.1f}" for number in (*self.before, *self.after)]
        return f"| {self.tensor} | {self.size} | {self.precision:.3g} | {' | '.join(cells)} |"


def finished(run: Path) -> tuple[Network, Examples, dict[str, float]]:
    """The network of a finished run, what it was trained on, and the precision of every tensor not pruned."""
    spec, folder = symdsl.load(run / "spec.sym"), RunFolder.view(run)
    learned = [line["precisions"] for line in folder.read_metrics() if line.get("precisions")]
    net = load_run(run, "cpu").network
    precisions = dict(learned[-1]) if learned else stated_start(net, spec.facts).precisions
    return net, symdsl.data.load(spec).train, precisions


def untrain(net: Network, initial: Network) -> None:
    """Gives a network its initial weights back; paths that were pruned stay so."""
    weights = initial.tensors()
    for key, parameter in net.tensors().items():
        parameter.data.copy_(weights[key])


def fitted(
    net: Network, train: Examples, fisher: str, precisions: Mapping[str, float], curvature: str
) -> dict[str, float]:
    return symdsl.laplace.fit(
        net, train, fisher=fisher, precisions=precisions, curvature=curvature
    ).effective_parameters()


def block(net: Network, train: Examples, fisher: Fisher, key: str) -> Tensor:
    """The Gauss-Newton block of one tensor, `[parameter, parameter]`, from the gradients of single examples."""
    parameter = net.tensors()[key]
    name = next(name for name, other in net.named_parameters() if other is parameter)
    fixed = {other: value.detach() for other, value in net.named_parameters()}

    def pulled_back(value: Tensor, x: Tensor, column: Tensor) -> Tensor:
        outputs: Tensor = functional_call(net, fixed | {name: value}, (x.unsqueeze(0),))
        return (outputs[0] * column).sum()

    found = torch.zeros(parameter.numel(), parameter.numel(), dtype=torch.float64)
    for x, column in columns(net, train, fisher):
        gradients: Tensor = vmap(grad(pulled_back), (None, 0, 0))(fixed[name], x, column)
        rows = gradients.flatten(1).double()
        found += rows.T @ rows
    return found


def columns(net: Network, train: Examples, fisher: Fisher, batch: int = 256) -> Iterator[tuple[Tensor, Tensor]]:
    """Every batch with each column of a square root of Lambda for it."""
    generator = torch.Generator().manual_seed(1)
    for x in train.x.split(batch):
        with torch.no_grad():
            outputs = net(x)
        for column in fisher.loss_hessian_sqrt(likelihood_of(train.y), outputs, generator):
            yield x, column


def effective(matrix: Tensor, precision: float) -> float:
    eigenvalues = torch.linalg.eigvalsh(matrix).clamp(min=0)
    return float((eigenvalues / (eigenvalues + precision)).sum())


def compared(
    net: Network, train: Examples, fisher: str, precisions: Mapping[str, float], keys: list[str]
) -> dict[str, tuple[float, ...]]:
    kfac, joint = (
        fitted(net, train, fisher, precisions, curvature=curvature) for curvature in ("kfac-expand", "joint")
    )
    blocks = {key: effective(block(net, train, parse_fisher(fisher), key), precisions[key]) for key in keys}
    return {key: (kfac[key], blocks[key], joint[key]) for key in keys}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--fisher", default="mc(4)")
    parser.add_argument("--largest", type=int, default=2500)
    arguments = parser.parse_args()
    net, train, precisions = finished(arguments.run)
    sizes = {key: parameter.numel() for key, parameter in net.tensors().items() if key in precisions}
    keys = [key for key, size in sizes.items() if size <= arguments.largest and not key.endswith(".bias")]
    after = compared(net, train, arguments.fisher, precisions, keys)
    untrain(net, symdsl.compile(symdsl.load(arguments.run / "spec.sym")))
    before = compared(net, train, arguments.fisher, precisions, keys)
    figures = "KFAC | block | all tensors"
    print(f"| tensor | parameters | precision | untrained: {figures} | trained: {figures} |")
    print("|---|---|---|---|---|---|---|---|---|")
    for key in keys:
        print(Row(key, sizes[key], precisions[key], before[key], after[key]))


if __name__ == "__main__":
    main()
