"""Specs and data for tests of the learner."""

from __future__ import annotations

import attrs
import torch

from symdsl import data, lowering
from symdsl.data import Dataset, Examples
from symdsl.evidence.prior_updates import LARGEST_PRECISION
from symdsl.runner.start import begin
from symdsl.runner.structure import Structure
from symdsl.runner.training import Trainer
from symdsl.spec import Spec, parse

SMALL = """
data synthetic(size = 4, classes = 3, train = 48, test = 24) |> standardize

network small {
  input image(channels, 4, 4)
  layer l1: F-FC + CONV(3) -> 2 |> relu
  layer l2: F-FC + CONV(3) -> 3 stride 2 |> relu
  flatten
  layer h1: FC -> classes
}

search {
  start  = relaxed
  epochs = 4
  every  = 2
  batch  = 16
}
"""

FIXED = """
data synthetic(size = 4, classes = 3, train = 32, test = 8) |> standardize

network fixed {
  input image(channels, 4, 4)
  layer l1: F-FC + CONV(3) -> 2 |> relu
  layer l2: F-FC + CONV(3) -> 2 |> relu
  flatten
  layer h1: FC -> classes
}

prior {
  l1.CONV ~ normal(precision = 10, fixed)
}
"""


def with_fixed_prior():
    """A spec that holds one prior where it is."""
    return parse(FIXED)


def regression():
    """A linear network, and targets that are linear in the image but for noise of variance 0.01."""
    spec = parse(
        "data synthetic(size = 2, classes = 2, train = 300, test = 100)\n"
        "network line {\n  input image(channels, 2, 2)\n  flatten\n  layer h1: FC -> classes\n}\n"
        "search {\n  epochs = 80\n  batch = 50\n  optimizer = adam(lr = 0.05)\n}\n"
    )
    facts = attrs.evolve(spec.facts, data=attrs.evolve(spec.facts.data, task="regression"))
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(400, 1, 2, 2, generator=generator)
    y = x.flatten(1) @ torch.randn(4, 2, generator=generator) + 0.1 * torch.randn(400, 2, generator=generator)
    dataset = Dataset(Examples(x[:300], y[:300]), Examples(x[300:], y[300:]), "regression")
    return attrs.evolve(spec, facts=facts), dataset


def trainer(spec: Spec, dataset: Dataset | None = None) -> Trainer:
    """At the beginning of a search with seed 0."""
    return structure(spec, dataset).trainer


def structure(spec: Spec, dataset: Dataset | None = None, notes: list[str] | None = None) -> Structure:
    """The same with the evidence steps; what a user is told goes to `notes`."""
    net = lowering.compile(spec, 0)
    loaded = dataset or data.load(spec)
    start = begin(net, spec.facts, len(loaded.train))
    one = Trainer(net, spec.facts, loaded, 0, start)
    return Structure(one, start, [].append if notes is None else notes.append)


def silenced(one: Structure, path: str) -> Structure:
    """The same, of which a path writes nothing and has the largest precision."""
    with torch.no_grad():
        for key, parameter in one.trainer.parameters.items():
            if key.startswith(f"{path}."):
                parameter.zero_()
                one.trainer.precisions[key] = LARGEST_PRECISION
    return one


def everything(one: Trainer) -> torch.Tensor:
    """The indices of all training examples."""
    return torch.arange(len(one.train))
