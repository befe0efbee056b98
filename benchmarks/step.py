"""How much faster a training step is than one whose convolutions and F-FC products are written plainly.

    python benchmarks/step.py
    python benchmarks/step.py specs/starter.sym --rounds 60

The plain form is how the package computed them at first: maps stored plane by plane, paddings by `cat`, each phase
aligned by `where` over rolled maps, and z of F-FC turned in memory between its two products. Both forms take steps from
the same weights in one process of one thread, in turn. Printed are the largest difference of outputs, the median CPU
milliseconds of a step, and the median ratio of the two steps of a round.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import reduce
from operator import add
from pathlib import Path
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn import functional

import symdsl
from symdsl import data, lowering
from symdsl.data import Examples
from symdsl.kinds.convolution import module as convolution
from symdsl.kinds.dense import module as dense
from symdsl.kinds.group import module as group
from symdsl.kinds.sparse import module as sparse
from symdsl.nn import RelaxedLayer, pair, relaxed
from symdsl.runner.start import begin
from symdsl.runner.training import Trainer

SPEC = Path(__file__).parent.parent / "specs/paper/network.sym"


def plain_conv(x: Tensor, weight: Tensor, stride: int | tuple[int, int] = 1, groups: int = 1) -> Tensor:
    """The convolution on the torus, of a map that is padded by `cat`."""
    rows, columns = (side // 2 for side in weight.shape[-2:])
    tall = torch.cat((x[:, :, -rows:], x, x[:, :, :rows]), 2) if rows else x
    wide = torch.cat((tall[..., -columns:], tall, tall[..., :columns]), 3) if columns else tall
    return functional.conv2d(wide, weight, stride=stride, groups=groups)


def plain_phase(fine: Tensor, stride: int | tuple[int, int]) -> Tensor:
    """Row and column of the strongest phase of every example."""
    rows, columns = pair(stride)
    energy = fine.square().sum(1)
    phases = energy.unflatten(2, (-1, columns)).unflatten(1, (-1, rows)).sum((1, 3))
    best = phases.flatten(1).argmax(1)
    return torch.stack((best // columns, best % columns), 1)


def plain_align(x: Tensor, phase: Tensor, stride: int | tuple[int, int]) -> Tensor:
    """Every example shifted to its phase."""
    for dim, side in enumerate(pair(stride), start=2):
        shift = phase[:, dim - 2].view(-1, 1, 1, 1)
        rolled = [torch.roll(x, -offset, dim) for offset in range(1, side)]
        for offset, one in enumerate(rolled, start=1):
            x = torch.where(shift == offset, one, x)
    return x


def plain_factored(self: dense.FactoredFullyConnected, x: Tensor, record: object = None) -> Tensor:
    """F-FC, with z turned between its two products."""
    read = x.reshape(len(x), *self.w2.shape[1:])
    if dense.is_multiplied_out(self.w2.shape[2], self.w1.shape[2]):
        return dense.multiplied_out(read, self.w2, self.w1).reshape(-1, *self.out_shape)
    slices = torch.bmm(read.transpose(0, 1), self.w2.permute(1, 2, 0))
    z = slices.flatten(1).t().contiguous().view(*slices.shape[1:], len(slices))
    return torch.einsum("ndc,dcy->ndy", z, self.w1).reshape(-1, *self.out_shape)


def plain_biased(self: RelaxedLayer, x: Tensor, parts: list[Tensor]) -> Tensor:
    """The scaled sum of the paths, and the bias."""
    total: Tensor = reduce(add, parts) * self.scale + self.bias.repeat_interleave(self.order).view(1, -1, 1, 1)
    return total


@contextmanager
def plain() -> Iterator[None]:
    """The plain form, for as long as the block lasts."""
    with ExitStack() as stack:
        for kind in (convolution, group, sparse):
            stack.enter_context(patch.object(kind, "circular_conv", plain_conv))
        stack.enter_context(patch.object(relaxed, "strongest_phase", plain_phase))
        stack.enter_context(patch.object(relaxed, "align", plain_align))
        stack.enter_context(patch.object(RelaxedLayer, "_biased", plain_biased))
        stack.enter_context(patch.object(dense.FactoredFullyConnected, "forward", plain_factored))
        yield


def training(spec: Path, examples: int) -> tuple[Trainer, Examples]:
    """A trainer at the initial weights and a batch; too few examples are repeated."""
    loaded = symdsl.load(spec)
    dataset = data.load(loaded)
    net = lowering.compile(loaded, 0)
    start = begin(net, loaded.facts, len(dataset.train))
    trainer = Trainer(net, loaded.facts, dataset, 0, start)
    index = torch.arange(examples) % len(dataset.train)
    return trainer, trainer.train.batch(index, trainer.device)


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of some work."""
    started = time.process_time()
    work()
    return time.process_time() - started


def main() -> None:
    """Compares and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec", type=Path, nargs="?", default=SPEC)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--examples", type=int, default=128)
    options = parser.parse_args()
    torch.set_num_threads(1)
    before, after = (training(options.spec, options.examples) for _ in range(2))
    with torch.no_grad():
        found = after[0].net(after[1].x)
        with plain():
            expected = before[0].net(before[1].x)
    print(f"outputs differ by {float((found - expected).abs().max()):.1e} of {float(expected.abs().max()):.1f} at most")

    def step(trainer: Trainer, batch: Examples) -> None:
        trainer.net.train()
        trainer._train_step(batch, len(batch.x))

    taken: list[tuple[float, float]] = []
    for _ in range(options.rounds + 2):
        with plain():
            slow = seconds(lambda: step(*before))
        taken.append((slow, seconds(lambda: step(*after))))
    slow, fast = (1000 * statistics.median(one) for one in zip(*taken[2:], strict=True))
    ratio = statistics.median(slow / fast for slow, fast in taken[2:])
    print(f"plain {slow:.1f} ms, now {fast:.1f} ms, {ratio:.2f} times as fast ({options.rounds} rounds, one thread)")


if __name__ == "__main__":
    main()
