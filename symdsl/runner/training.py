"""Training of the weights under the present priors: one step, and one epoch of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

import attrs
import torch
from torch import Tensor

from symdsl import ranks
from symdsl.analysis.facts import Facts, Search
from symdsl.auditing import elements_of, invariance_penalty
from symdsl.catalog.searches import FEW_EXAMPLES
from symdsl.data import Augmentation, Dataset, Examples
from symdsl.diagnostics import NumericalError
from symdsl.evidence.laplace import SMALLEST_NOISE
from symdsl.evidence.loss import LIKELIHOODS, Likelihood
from symdsl.nn import Network
from symdsl.runner.device import stream
from symdsl.runner.metrics import share_explained, squares_around_mean
from symdsl.runner.optimizers import Adam, Soap
from symdsl.runner.start import Start

SCHEDULES = {
    "cosine": lambda progress: 0.5 * (1 + math.cos(math.pi * progress)),
    "constant": lambda progress: 1.0,
}
"""Factor on the learning rate by the share of the run that is done, in [0, 1]."""

_WARM_UP, _COLD = 0.05, 0.1
"""Share of a run in which the learning rate rises to its schedule, and the factor on it that the first step has."""

_LEAST_SHRINKING = 0.1
"""Factor below which a tensor's steps do not shrink with its weights."""


@attrs.frozen
class EpochMetrics:
    """The training figures of one epoch, while the parameters moved: means per example; `lr` at its beginning.

    `fit` is the share of the targets' deviance that is explained, 1 - loss / loss of the best constant outputs: nothing
    for a network that has learned nothing but frequencies, below 0 for one that does worse. `score` is the accuracy, or
    R² of a regression, see `symdsl.runner.metrics.share_explained`.
    """

    loss: float
    nll: float
    fit: float
    score: float
    lr: float


class Trainer:
    """The trainer of one search: its weights, their optimiser and the priors that they are trained under.

    Several ranks share out the examples of every batch, and hold the same weights.

    Nothing here depends on when it is called: batches and their augmentation come from the seed and the epoch, so that
    a state restored at an epoch continues as the uninterrupted search would: exactly on a CPU, and on a GPU but for the
    order in which it adds numbers up.

    Args:
        net: the network, on its device.
        facts: the checked spec.
        dataset: training and test examples.
        seed: of order and augmentation.
        start: the precisions that the priors start from, and the full scales of the weights.

    Attributes:
        precisions: prior precision of every parameter tensor that is not pruned.
        noise: variance of the Gaussian likelihood; 1 for classification.
        epoch: epochs done.
        step: training steps done.
        step_size: factor on the learning rate, halved where the numbers went wrong.
        constant_loss: the least loss of constant outputs at unit noise, summed over the training examples.
        spread: by which ranges of averages are taken as larger or smaller in training; see `Average.draw`.
        residual_variance: of the targets around the outputs in the last epoch; 1 for classification.
        loss_of: gives the outputs of a batch and its loss at unit noise, summed; an objective may put its own in place.
    """

    def __init__(self, net: Network, facts: Facts, dataset: Dataset, seed: int, start: Start) -> None:
        self.net = net
        self.facts = facts
        self.search: Search = facts.search
        self.likelihood: Likelihood = LIKELIHOODS[facts.data.task]
        self.device = net.device
        self.train = dataset.trained_on(self.device).train
        self.constant_loss = self.likelihood.constant_loss(self.train.y)
        self._squares = squares_around_mean(self.train.y) if self.likelihood.has_noise else None
        self.augmentation = Augmentation.of(facts.data)
        self.seed = seed
        self.parameters = net.tensors()
        self.optimizer = Soap(self.parameters) if len(self.train) > FEW_EXAMPLES else Adam(self.parameters)
        self._full_scales = torch.tensor([start.scales[key] for key in self.parameters], device=self.device)
        self._first_norms = self._norms()
        self.precisions = dict(start.precisions)
        self.noise = self.target_variance if self.likelihood.has_noise else 1.0
        self.residual_variance = 1.0
        self.epoch = 0
        self.step = 0
        self.step_size = 1.0
        self.spread = 0.0
        self.loss_of: Callable[[Examples], tuple[Tensor, Tensor]] = self._loss
        invariance = self.search.invariance
        self._orbit = () if invariance is None else elements_of(invariance.group, *self.train.x.shape[2:])

    @property
    def steps_per_epoch(self) -> int:
        """The number of training steps of one epoch."""
        return math.ceil(len(self.train) / self.search.batch)

    def train_epoch(self, after_step: Callable[[], None] = lambda: None) -> EpochMetrics:
        """Run one pass over the training data, towards the maximum a posteriori under the present priors.

        Minimises (1/N) [-log p(D | theta) + 1/2 sum_k delta_k ||theta_k||^2]; the norm of this whole gradient is
        clipped, so that clipping never tilts the balance of likelihood and prior. Only here are the data augmented.

        Args:
            after_step: called after every training step.

        Raises:
            NumericalError: a loss or gradient was not finite.
        """
        examples = len(self.train)
        order = torch.randperm(examples, generator=stream("cpu", self.seed, "order", self.epoch)).to(self.device)
        augmented = self.augmentation.epoch(examples, stream("cpu", self.seed, "augment", self.epoch), self.device)
        sums = torch.zeros(self._figures + 1, dtype=torch.float64, device=self.device)
        rate = self.learning_rate
        for index in order.split(self.search.batch):
            self.net.train()
            self.net.draw_from(stream("cpu", self.seed, "transformations", self.step), self.spread)
            own = index[ranks.share(len(index))]
            sums += self._train_step(augmented(self.train.batch(own, self.device), own), len(index))
            self.step += 1
            after_step()
        self.epoch += 1
        return self._epoch_metrics(float(sums[0]), sums[1:-1], bool(sums[-1]), rate)

    @property
    def target_variance(self) -> float:
        """The variance of the targets, averaged over their columns."""
        return max(2 * self.constant_loss / (len(self.train) * self.facts.data.classes), SMALLEST_NOISE)

    @property
    def progress(self) -> float:
        """The share of the run's training steps that are done."""
        return self.step / (self.steps_per_epoch * self.search.epochs)

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next step."""
        optimizer = self.search.optimizer
        warm = min(1.0, _COLD + (1 - _COLD) * self.progress / _WARM_UP)
        return self.step_size * optimizer.lr * SCHEDULES[optimizer.schedule](self.progress) * warm

    def _train_step(self, own: Examples, examples: int) -> Tensor:
        """Take one step of the optimiser on a batch.

        Args:
            own: this rank's examples of the batch.
            examples: how many the batch has on all ranks.

        Returns:
            Loss, and right answers or squared errors by target, summed over the batch, and whether the gradient was not
            finite.
        """
        self.net.zero_grad()
        sums = self._add_up(self._backward(own, examples) if len(own) else None)
        for key, precision in self.precisions.items():
            parameter = self.parameters[key]
            if parameter.grad is not None:
                parameter.grad.add_(parameter.detach(), alpha=precision / len(self.train))
        norm = torch.nn.utils.clip_grad_norm_(self.net.parameters(), self.search.optimizer.clip or math.inf)
        self._step()
        return torch.cat((sums, (~torch.isfinite(norm)).to(sums).view(1)))

    @torch.no_grad()
    def _step(self) -> None:
        """Take a step, in each tensor times its full scale, less where its weights are smaller than at first.

        Adam alone moves every weight by about the learning rate, however small the weights of a tensor are. A prior
        that shrinks weights thus shrinks their steps as well, which would shake them more and more.
        """
        shrinking = (self._norms() / self._first_norms).nan_to_num(1.0).clamp(_LEAST_SHRINKING, 1.0)
        self.optimizer.step(self.step + 1, self.learning_rate, self._full_scales * shrinking)

    def _norms(self) -> Tensor:
        """Return the Euclidean norm of every parameter tensor, `[tensor]`."""
        return torch.stack([torch.linalg.vector_norm(one.detach()) for one in self.parameters.values()])

    def _backward(self, own: Examples, examples: int) -> Tensor:
        """Set the gradients of these examples; return their loss, and right answers or squared errors by target."""
        outputs, loss = self.loss_of(own)
        minimised = loss / self.noise / examples
        if minimised.requires_grad:
            minimised.backward(retain_graph=self.search.invariance is not None)
        if self.search.invariance is not None:
            self._add_penalty(own, outputs, examples)
        found = outputs.detach()
        told = (found - own.y).square().sum(0) if self.likelihood.has_noise else (found.argmax(1) == own.y).sum()[None]
        return torch.cat((loss.detach()[None], told.to(loss.dtype)))

    def _add_penalty(self, own: Examples, outputs: Tensor, examples: int) -> None:
        """Add the regulariser's gradient to those of the weights; ranges go up the evidence alone."""
        assert self.search.invariance is not None, "it is asked for"
        penalty = self.search.invariance.weight / examples * invariance_penalty(self.net, own.x, outputs, self._orbit)
        weights = [one for one in self.net.parameters() if one.requires_grad]
        if weights:
            penalty.backward(inputs=weights)

    def _loss(self, batch: Examples) -> tuple[Tensor, Tensor]:
        outputs = self.net(batch.x)
        return outputs, self.likelihood.loss(outputs, batch.y)

    def _add_up(self, sums: Tensor | None) -> Tensor:
        """Return the sums over all ranks, and add up gradients; a rank without an example has zeros."""
        trained = [parameter for parameter in self.net.parameters() if parameter.requires_grad]
        if sums is None:
            sums = trained[0].new_zeros(self._figures)
        if ranks.count() > 1:
            for parameter in trained:
                parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            ranks.add_up([*(one.grad for one in trained if one.grad is not None), sums])
        return sums

    @property
    def _figures(self) -> int:
        """How many numbers a batch is summed up by: its loss, and its right answers or the error of each target."""
        return 1 + (self.facts.data.classes if self.likelihood.has_noise else 1)

    def _epoch_metrics(self, loss: float, told: Tensor, failed: bool, rate: float) -> EpochMetrics:
        if failed or not math.isfinite(loss):
            raise NumericalError(f"the loss or its gradient is not finite in epoch {self.epoch}")
        examples = len(self.train)
        if self.likelihood.has_noise:
            self.residual_variance = max(2 * loss / (examples * self.facts.data.classes), SMALLEST_NOISE)
        nll = self.likelihood.nll(loss, examples, self.facts.data.classes, self.noise) / examples
        score = float(told) / examples if self._squares is None else share_explained(told, self._squares) or 0.0
        fit = 1 - loss / self.constant_loss if self.constant_loss else 1.0
        return EpochMetrics(nll + self.penalty() / examples, nll, fit, score, rate)

    def penalty(self, without: Collection[str] = ()) -> float:
        """Return 1/2 sum_k delta_k ||theta_k||^2 at the present parameters, in nats, but for some tensors' terms."""
        norms = self.net.squared_norms(self.precisions)
        return 0.5 * math.fsum(one * norms[key] for key, one in self.precisions.items() if key not in without)

    def prune(self, layer: str, path: str) -> None:
        """Leave a path, or with it a residual block, out of network, optimiser and priors from now on."""
        for key in self.net.prune(layer, path):
            self.precisions.pop(key, None)

    def tensors(self) -> dict[str, Tensor]:
        """Return copies of every tensor a resume needs, on the CPU: parameters, their first norms, and moments."""
        found: dict[str, Tensor] = {"first_norms": self._first_norms.cpu().clone()}
        for key, parameter in self.parameters.items():
            found[f"parameter/{key}"] = parameter.detach().cpu().clone()
        return found | self.optimizer.tensors()

    def state(self) -> dict[str, Any]:
        """Return everything else a resume needs, as plain numbers."""
        return {
            "epoch": self.epoch,
            "step": self.step,
            "seed": self.seed,
            "precisions": dict(self.precisions),
            "noise": self.noise,
            "step_size": self.step_size,
            "ranges": self.net.ranges(),
            "pruned": self.net.pruned,
        }

    def restore(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Take up a state that `state` and `tensors` gave; the network must be the same.

        Raises:
            KeyError: a tensor is missing.
        """
        for key in state["pruned"]:
            layer, path = key.split(".", 1)
            if path not in self.net.layer(layer).pruned:
                self.prune(layer, path)
        self.net.set_ranges(state["ranges"])
        self._first_norms = tensors["first_norms"].to(self.device)
        for key, parameter in self.parameters.items():
            parameter.data.copy_(tensors[f"parameter/{key}"])
        self.optimizer.restore(tensors)
        self.epoch, self.step, self.seed = state["epoch"], state["step"], state["seed"]
        self.precisions, self.noise, self.step_size = dict(state["precisions"]), state["noise"], state["step_size"]
