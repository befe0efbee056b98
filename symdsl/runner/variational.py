"""The search by the variational bound: the posterior of the last layer, and what moves up the bound with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import torch
from torch import Tensor

from symdsl import ranks
from symdsl.catalog.searches import BOUND_EVERY
from symdsl.data import Examples
from symdsl.diagnostics import NumericalError, RunError
from symdsl.evidence import Bound, WeightPosterior, normal_pairs
from symdsl.evidence.prior_updates import fixed_point
from symdsl.nn import Use
from symdsl.predictive import last_layer
from symdsl.runner.device import stream
from symdsl.runner.ranges import RATE as RANGE_RATE
from symdsl.runner.ranges import Ranges
from symdsl.runner.shares import evidence_record
from symdsl.runner.training import EpochMetrics, Trainer

DRAWS = 8
"""Outputs drawn for each example of a training step."""

FINAL_DRAWS = 64
"""Outputs drawn for each training example of the bound that a run reports."""

RATE = 0.1
"""Share of the way to its optimum for a batch that the posterior goes in a step, at the learning rate's height."""

WAIT = 0.1
"""Share of a run before ranges move: slopes say nothing until the posterior has left the prior."""

TRAVEL = 6.0
"""How far a range may go in all steps of a run together, as a share of the largest range, before steps get shorter."""

_SITES = ("hessian", "linear")


class Variational:
    """The posterior of the last layer's weights in one search, and the moves of priors and ranges.

    Every training step moves the weights before the last layer by the gradient of the bound, and then the posterior by
    its natural gradient. Every `every` steps, from the end of burn-in on, the precisions of the last layer's priors
    become those under which the divergence is least, and ranges of averages go up the bound by the mean gradient since.
    The posterior begins at the prior, or around weights that the run is given. What is drawn follows from seed and
    step.

    Args:
        trainer: the weights; training takes the expected loss from here.
        learned: keys of the tensors whose precision may move.
        given: whether the run starts from the present weights of the last layer.

    Raises:
        RunError: there are several ranks.
    """

    def __init__(self, trainer: Trainer, learned: frozenset[str], given: bool = False) -> None:
        if ranks.count() > 1:
            raise RunError("`objective = elbo` runs in one process: leave torchrun out")
        self.trainer, self.net = trainer, trainer.net
        self.keys = tuple(last_layer(self.net))
        self.learned = [key for key in self.keys if key in learned]
        self.every = trainer.search.every or BOUND_EVERY
        steps = trainer.steps_per_epoch * trainer.search.epochs
        self.ranges = Ranges(self.net, min(TRAVEL * self.every / steps, RANGE_RATE))
        classes, prior = trainer.facts.data.classes, self._prior()
        mean = torch.cat([trainer.parameters[key].detach().double().reshape(classes, -1) for key in self.keys], 1)
        self.posterior = WeightPosterior.around(mean, prior) if given else WeightPosterior.at_prior(classes, prior)
        self._slopes = dict.fromkeys(self.ranges.keys, 0.0)
        self._set_weights()
        trainer.loss_of = self._expected
        for _, one in self.net.averages():
            one.ranges.requires_grad_(not one.fixed)

    def train_epoch(self) -> tuple[EpochMetrics, dict[str, Any], float]:
        """Run one epoch; see `Structure.train_epoch`. All of its time is that of training.

        The bound of an epoch is that of its batches, while everything moved.
        """
        trainer = self.trainer
        metrics = trainer.train_epoch(self._after_step)
        trainer.noise = trainer.residual_variance
        bound = metrics.nll + self.posterior.divergence() / len(trainer.train)
        found = evidence_record(trainer, bound, self._effective())
        return attrs.evolve(metrics, loss=bound + trainer.penalty(self.keys) / len(trainer.train)), found, 0.0

    def _expected(self, batch: Examples) -> tuple[Tensor, Tensor]:
        """Return the mean outputs of a batch and its expected loss, summed; what the next step needs of it is kept."""
        features = self._features(batch.x)
        mean, variance = self.posterior.outputs(features)
        normal = normal_pairs(DRAWS, mean.detach(), self._stream("draws"))
        self._batch = features.detach(), self.trainer.likelihood.expected(mean, variance, batch.y, normal)
        return mean, self._batch[1].loss

    def _features(self, x: Tensor) -> Tensor:
        """Return what the last layer reads, averaged over copies, and 1 for its bias: `[example, feature]`, float64."""
        uses: dict[str, Use] = {}
        self.net(x, uses)
        use = uses[self.keys[1]]
        read = use.inputs.flatten(1).unflatten(0, (-1, use.copies)).mean(1).double()
        return torch.cat((read, read.new_ones(len(read), 1)), 1)

    @torch.no_grad()
    def _after_step(self) -> None:
        """Move the posterior, and where it is time priors and ranges."""
        trainer, (features, expected) = self.trainer, self._batch
        share = RATE * trainer.learning_rate / trainer.search.optimizer.lr
        weight = len(trainer.train) / len(features)
        self.posterior = self.posterior.step(features, expected, trainer.noise, weight, share)
        for name, one in self.net.averages():
            for key, slope in zip(one.generators, [] if one.ranges.grad is None else one.ranges.grad, strict=False):
                self._slopes[f"{name}.{key}"] -= float(slope) / self.every
            one.ranges.grad = None
        since = trainer.step - trainer.search.burnin * trainer.steps_per_epoch
        if trainer.step % self.every == 0:
            if since > 0:
                self._move()
            self._slopes = dict.fromkeys(self._slopes, 0.0)
        self._set_weights()

    def _move(self) -> None:
        """Set the learned precisions to where the divergence is least, and move the ranges."""
        moments = self._by_tensor(self.posterior.second_moments())
        for key in self.learned:
            self.trainer.precisions[key] = fixed_point(self._size(key), moments[key])
        self.posterior = attrs.evolve(self.posterior, prior=self._prior())
        if self.trainer.progress > WAIT:
            self.ranges.move(self._slopes, self.trainer.progress)

    def _prior(self) -> Tensor:
        """The precision of every feature's weight, the bias last."""
        weights, bias = (self.trainer.precisions[key] for key in self.keys)
        width = self._size(self.keys[0]) // self.trainer.facts.data.classes
        return torch.tensor([weights] * width + [bias], dtype=torch.float64, device=self.trainer.device)

    def _size(self, key: str) -> int:
        return self.trainer.parameters[key].numel()

    def _by_tensor(self, by_feature: Tensor) -> dict[str, float]:
        """Return the sum over the features of each tensor, weights and bias, by key."""
        return dict(zip(self.keys, (float(by_feature[:-1].sum()), float(by_feature[-1])), strict=True))

    def _effective(self) -> dict[str, float]:
        found = self._by_tensor(self.posterior.effective())
        return {key: found.get(key, 0.0) for key in self.trainer.precisions}

    @torch.no_grad()
    def _set_weights(self) -> None:
        """Set the last layer to the mean of the posterior.

        Raises:
            NumericalError: it is not finite.
        """
        try:
            mean = self.posterior.mean
        except torch.linalg.LinAlgError as error:
            raise NumericalError(
                f"the posterior of `{self.keys[1].removesuffix('.bias')}` is not positive definite: {error}"
            ) from None
        for key, part in zip(self.keys, (mean[:, :-1], mean[:, -1]), strict=True):
            parameter = self.trainer.parameters[key]
            parameter.copy_(part.reshape(parameter.shape))

    def _stream(self, word: str) -> torch.Generator:
        return stream(self.trainer.device, self.trainer.seed, word, self.trainer.step)

    @property
    def priors_learned(self) -> bool:
        """Always true: the precisions follow the posterior from its first step on."""
        return True

    @torch.no_grad()
    def final(self) -> Bound:
        """Return the bound of all training examples, with transformations drawn for each batch, as in training."""
        trainer, likelihood = self.trainer, self.trainer.likelihood
        self.net.train()
        for _, one in self.net.averages():
            one.ranges.requires_grad_(False)
        generator, loss = self._stream("bound"), 0.0
        transformations = stream("cpu", trainer.seed, "transformations", trainer.step)
        for index in torch.arange(len(trainer.train), device=trainer.train.x.device).split(trainer.search.batch):
            batch = trainer.train.batch(index, trainer.device)
            self.net.draw_from(transformations)
            mean, variance = self.posterior.outputs(self._features(batch.x))
            normal = normal_pairs(FINAL_DRAWS, mean, generator)
            loss += float(likelihood.expected(mean, variance, batch.y, normal).loss)
        self.net.eval()
        nll = likelihood.nll(loss, len(trainer.train), trainer.facts.data.classes, trainer.noise)
        norms = self.net.squared_norms(trainer.precisions)
        divergence, examples = self.posterior.divergence(), len(trainer.train)
        return Bound(-nll, divergence, examples, dict(trainer.precisions), norms, self._effective())

    def tensors(self) -> dict[str, Tensor]:
        """Return copies of the tensors that a resume needs besides the trainer's, on the CPU."""
        return {f"posterior/{name}": getattr(self.posterior, name).cpu().clone() for name in _SITES}

    def state(self) -> dict[str, Any]:
        """Return everything else that a resume needs."""
        return {"ranges": self.ranges.state(), "slopes": dict(self._slopes)}

    def restore(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Take up what `state` and `tensors` gave, after the trainer did.

        Raises:
            KeyError: a tensor is missing.
        """
        self.ranges.restore(state["ranges"])
        self._slopes = dict(state["slopes"])
        hessian, linear = (tensors[f"posterior/{name}"].to(self.trainer.device) for name in _SITES)
        self.posterior = WeightPosterior(hessian, linear, self._prior())
