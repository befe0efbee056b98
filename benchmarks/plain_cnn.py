"""What a CNN of torch's own layers reaches on the photographs of table 2, as large and as long trained as CONV.

    python benchmarks/plain_cnn.py --profile desk --cifar-images ~/cifar10

Convolutions pad with zeros, strides keep every second position whatever the image, and weights start as torch starts
them. Schedule and augmentation are those of the spec, the steps are of plain Adam; there is no prior. The last line has
accuracy and NLL on test and training images, and the processor time.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Mapping
from typing import Any

import torch
from paper import spec_of
from published import TABLES
from torch import nn
from torch.nn import functional

from symdsl import data
from symdsl.analysis.facts import Facts
from symdsl.data import Augmentation, Examples
from symdsl.evidence.loss import Categorical
from symdsl.runner.device import stream
from symdsl.runner.metrics import evaluate_outputs
from symdsl.runner.training import SCHEDULES

RATE = 0.005
"""The learning rate of Adam."""


def network(facts: Facts) -> nn.Sequential:
    """The layers of a spec of CONV and FC, as torch has them."""
    modules: list[nn.Module] = []
    for layer in facts.network.layers:
        inside, outside = layer.in_shape, layer.out_shape
        if inside.flat:
            modules += [nn.Flatten(), nn.Linear(inside.channels, outside.channels)]
        else:
            modules.append(nn.Conv2d(inside.channels, outside.channels, 3, layer.strides, padding=1))
        modules.append(nn.ReLU())
    return nn.Sequential(*modules[:-1])


def train(net: nn.Module, train: Examples, facts: Facts, seed: int) -> None:
    """Minimises the cross-entropy for the epochs of the spec."""
    search, examples = facts.search, len(train)
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE, fused=True)
    augmentation, steps = Augmentation.of(facts.data), math.ceil(examples / search.batch) * search.epochs
    step = 0
    for epoch in range(search.epochs):
        order = torch.randperm(examples, generator=stream("cpu", seed, "order", epoch))
        augmented = augmentation.epoch(examples, stream("cpu", seed, "augment", epoch), "cpu")
        for index in order.split(search.batch):
            optimizer.param_groups[0]["lr"] = RATE * SCHEDULES[search.optimizer.schedule](step / steps)
            batch = augmented(train.batch(index, torch.device("cpu")), index)
            optimizer.zero_grad()
            functional.cross_entropy(net(batch.x), batch.y).backward()
            optimizer.step()
            step += 1


@torch.no_grad()
def measured(net: nn.Module, examples: Examples) -> tuple[float, float]:
    """Accuracy in per cent, and NLL in nats per example."""
    outputs = torch.cat([net(x) for x in examples.x.split(500)])
    found: Mapping[str, Any] = evaluate_outputs(outputs, examples.y, Categorical())
    return 100 * found["accuracy"], found["nll"]


def main() -> None:
    """Trains one network and prints what it reaches."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", type=lambda name: {"profile": name}, default={})
    parser.add_argument("--cifar-images", required=True, help="a folder train/CLASS, test/CLASS")
    parser.add_argument("--seed", type=int, default=711)
    options = parser.parse_args()
    options.set, options.root = {}, None
    spec = spec_of(next(row for row in TABLES["table2"] if row.name == "conv"), options)
    dataset = data.load(spec)
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    net = network(spec.facts)
    started = time.process_time()
    train(net, dataset.train, spec.facts, options.seed)
    seconds = time.process_time() - started
    (accuracy, nll), (fitted, loss) = measured(net, dataset.test), measured(net, dataset.train)
    count = sum(one.numel() for one in net.parameters())
    print(
        f"{count:,} parameters, {spec.facts.search.epochs} epochs: test {accuracy:.2f} %, {nll:.3f} nats;"
        f" train {fitted:.2f} %, {loss:.3f} nats; {seconds:.0f} s"
    )


if __name__ == "__main__":
    main()
