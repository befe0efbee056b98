"""Learning the structure: evidence steps between training steps, and pruning of paths that the data do not need."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

import attrs
import torch
from torch import Tensor

from symdsl import ranks
from symdsl.catalog.searches import LEAST_STEPS
from symdsl.evidence import ExtrapolatedSketch, Laplace
from symdsl.evidence.prior_updates import at_best_precisions, mackay_step
from symdsl.graph.cost import evidence_interval, joint_columns
from symdsl.nn import Block
from symdsl.runner.estimating import Estimator, evidence_bound, final_laplace, laplace_at, loss_of, sample, sketch_of
from symdsl.runner.ranges import Ranges
from symdsl.runner.shares import evidence_record, path_effective, tensors_of
from symdsl.runner.start import Start
from symdsl.runner.training import EpochMetrics, Trainer
from symdsl.runner.trial import BEST_EVIDENCE

LEAST_EFFECTIVE = 0.5
"""A path whose effective number of parameters stays below this is pruned, if the evidence is no lower without it."""

_ROUND_OFF = 1e-3
"""Difference of two log evidences, in nats, that says nothing."""

LEAST_PRECISION = 1.0
"""Learned precision of a classifier's prior that a search does not go below: that of MAP. A tensor that starts at zero
may: its precision falls as far as the data ask for it."""

_MOST_ROUNDS, _TOLERANCE = 20, 0.01
"""Steps of the noise at the end of a search, at most, and the change in its logarithm that ends them."""

_PATIENCE = 5
"""Evidence steps in a row that a path must stay below before it is pruned."""

_BLOCK_PATIENCE = 2
"""Evidence steps in a row that the evidence must be higher without a residual block before it leaves."""


class EvidenceStep(NamedTuple):
    """The findings of an evidence step.

    Attributes:
        laplace: the approximation under the priors before the step.
        pruned: `layer.path` of every path that was pruned.
        best: the joint log evidence under the best precisions, in nats, while starts are compared, else `None`.
    """

    laplace: Laplace
    pruned: list[str]
    best: float | None


class Structure:
    """The priors of one search, and the evidence steps that move them between training steps.

    Every `every` training steps, from the end of burn-in on, the curvature is estimated on random training examples,
    not augmented, and scaled to all of them. Every learned precision then goes a share of the way, in its logarithm, to
    MacKay's fixed point, and so does the noise variance of a regression; ranges of averages go up the evidence. What is
    drawn follows from seed and step. Until the evidence of a classifier first exceeds that of constant outputs, under
    some precisions, these stay and nothing is pruned: the network has not fitted yet. From then on no more effective
    parameters count than the nats that the fit has gained over constant outputs can pay for.

    Args:
        trainer: the weights, whose priors these are.
        start: which precisions may move, and which tensors started at zero.
        note: called with each line that a user should read.
        compared_epochs: how many of the first epochs tell what the evidence is under the best precisions, too, by which
            starts are compared: precisions that have not settled yet say little of a start.
    """

    def __init__(self, trainer: Trainer, start: Start, note: Callable[[str], None], compared_epochs: int = 0) -> None:
        self.trainer, self.learned, self.note = trainer, start.learned, note
        self._compared_epochs = compared_epochs
        bounded = () if trainer.likelihood.has_noise else start.learned - start.zero
        self._least = {key: min(LEAST_PRECISION, start.precisions[key]) for key in bounded}
        examples, has_noise = len(trainer.train), trainer.likelihood.has_noise
        self.estimator = Estimator.of(trainer.search.objective, examples, has_noise)
        self._examples = min(trainer.search.examples, len(trainer.train))
        curvature = "joint" if self.estimator.is_joint else self.estimator.curvature
        nodes, batch = trainer.facts.network.nodes, trainer.search.batch
        columns = joint_columns(trainer.facts.data)
        interval = evidence_interval(nodes, curvature, self._examples, batch, columns)
        self._steps = trainer.steps_per_epoch * (trainer.search.epochs - trainer.search.burnin)
        self.every = trainer.search.every or max(min(interval, self._steps // LEAST_STEPS), 1)
        self._idle: dict[str, int] = {}
        self._overfull = False
        self._has_fitted: bool | None = True if has_noise else None
        self.ranges = Ranges(trainer.net)

    def train_epoch(self) -> tuple[EpochMetrics, dict[str, Any], float]:
        """Run one epoch of training with the evidence steps that fall into it.

        Returns:
            The metrics of the epoch, what the last evidence step in it found, as `metrics.jsonl` has it (empty if there
            was none), and the seconds that evidence steps took.
        """
        found: dict[str, Any] = {}
        seconds = 0.0
        self.trainer.spread = self.ranges.width(self.trainer.progress)

        def after_step() -> None:
            nonlocal found, seconds
            since = self.trainer.step - self.trainer.search.burnin * self.trainer.steps_per_epoch
            if since > 0 and since % self.every == 0:
                started = time.perf_counter()
                step = self.evidence_step()
                found = self._record(step, found.get("pruned", []))
                seconds += time.perf_counter() - started

        return self.trainer.train_epoch(after_step), found, seconds

    @property
    def priors_learned(self) -> bool:
        """Whether the network has fitted at an evidence step, or there was no such step; no prior moves before."""
        return self._has_fitted is not False

    def _record(self, step: EvidenceStep, pruned: list[str]) -> dict[str, Any]:
        """Return what `metrics.jsonl` has of a step, after those paths of its epoch that were pruned before."""
        laplace, examples = step.laplace, step.laplace.examples
        evidence = -laplace.log_evidence() / examples
        found = evidence_record(self.trainer, evidence, laplace.effective_parameters(), [*pruned, *step.pruned])
        return found if step.best is None else found | {BEST_EVIDENCE: -step.best / examples}

    def evidence_step(self) -> EvidenceStep:
        """Move the priors, and ranges of averages, towards the largest evidence at fixed parameters, then prune."""
        trainer = self.trainer
        index = sample(trainer, self._examples)
        laplace = laplace_at(trainer, self.estimator, index)
        compared = trainer.epoch < self._compared_epochs
        best = self._best_evidence(laplace, index) if compared or not self._has_fitted else math.nan
        self._has_fitted = self._has_fitted or self._fits(best)
        gains = self._gains_without_blocks(laplace, index) if self._has_fitted else {}
        decided = ranks.from_first(lambda: (gains, laplace.effective_parameters(), *self._moved(laplace)))
        gains, effective, trainer.precisions, trainer.noise = decided  # the same on all ranks, to the last bit
        half = sample(trainer, max(1, self._examples // 2))  # the same examples on both sides of every range
        self.ranges.step(lambda: evidence_bound(trainer, half), trainer.progress)
        pruned: list[str] = []
        if self._has_fitted:
            pruned = self._remove_block(gains)
            pruned += self._prune(effective, lambda layer, path: self._gain_without_path(layer, path, laplace, index))
        return EvidenceStep(laplace, pruned, best if compared else None)

    def _fits(self, best: float) -> bool:
        """Return whether a classifier's best evidence is higher than that of constant outputs.

        Before that the parameters are far from a mode and too many of them count: a network of fully connected layers
        has many times more effective parameters at first than its fit has gained nats. MacKay's step would make priors
        so narrow that the network never fits. A regression needs no such guard: its noise is large at first, so that
        few parameters count.
        """
        return ranks.from_first(lambda: best > -self.trainer.constant_loss)

    def _best_evidence(self, laplace: Laplace, index: torch.Tensor) -> float:
        """Return the log evidence under about those learned precisions that suit it best, within their bounds.

        It is the evidence of all tensors together: by Kronecker factors, which count more, some networks that profit
        from learned priors would never exceed that of constant outputs.
        """
        return at_best_precisions(self._jointly(laplace, index), self.learned, self._least).log_evidence()

    def _jointly(self, laplace: Laplace, index: torch.Tensor) -> Laplace:
        """Return the approximation by the joint sketch alone, that of `laplace` or one of the same examples."""
        if isinstance(laplace.ggn, ExtrapolatedSketch):
            return attrs.evolve(laplace, ggn=laplace.ggn.sketch)
        sketch = sketch_of(self.trainer)
        return laplace if self.estimator == sketch else laplace_at(self.trainer, sketch, index)

    def _moved(self, laplace: Laplace) -> tuple[dict[str, float], float]:
        """Return the precisions, once the network has fitted, and the noise, moved towards the largest evidence."""
        trainer, share = self.trainer, 1 - self.trainer.search.prior_optimizer.damping
        gained = self._nats_gained(laplace)
        learned = self.learned if self._has_fitted and gained > 0 else frozenset[str]()
        precisions = mackay_step(laplace, learned, share, self._least, gained / self._price(laplace))
        if not trainer.likelihood.has_noise:
            return precisions, trainer.noise
        log_noise = (1 - share) * math.log(trainer.noise) + share * math.log(self._noise_target(laplace))
        return precisions, math.exp(log_noise)

    def _nats_gained(self, laplace: Laplace) -> float:
        """Return by how many nats a classifier fits better than constant outputs; infinity for a regression."""
        return math.inf if laplace.likelihood.has_noise else self.trainer.constant_loss - laplace.loss

    def _price(self, laplace: Laplace) -> float:
        """Return how many of the nats gained an effective parameter costs.

        It costs one at least. At MacKay's fixed point the penalty of every tensor is gamma_k, and `log det(I + H /
        delta)` is at least the sum of all gamma_k, as log(1 + x) >= x / (1 + x). So the evidence is at most the log
        likelihood less that sum: with more effective parameters than nats gained, that of constant outputs would be
        higher.

        Kronecker factors count many times too much of a product of two tensors, such as F-FC. Large counts at first
        keep a network that could fit every example from doing so; large counts at the end only hold back one that could
        not. So by Kronecker factors the price rises in the course of training to log P, of P parameters: what the best
        of P parameters gains by chance where none has an effect (Foster & George 1994).
        """
        if self.estimator.is_joint:
            return 1.0
        rise = max(0.0, math.log(sum(laplace.ggn.sizes.values())) - 1)
        return 1 + rise * self.trainer.progress

    def _remove_block(self, gains: Mapping[str, float]) -> list[str]:
        """Leave out one residual block, that of the largest gain of those with a positive one for some steps.

        Returns:
            `layer.path` of every path of its last layer; nothing if no block leaves.
        """
        net = self.trainer.net
        for join, gain in gains.items():
            self._idle[join] = self._idle.get(join, 0) + 1 if gain > 0 else 0
        blocks = (block for block in net.active_blocks() if block.join in gains)
        unwanted = [block for block in blocks if self._idle[block.join] >= _BLOCK_PATIENCE]
        if not unwanted:
            return []
        block = max(unwanted, key=lambda one: gains[one.join])
        last = block.layers[-1]
        paths = [path for path, _ in net.layer(last).active()]
        for path in paths:
            self.trainer.prune(last, path)
        self.note(
            f"{block.join} (layers {', '.join(block.layers)}) is removed in epoch {self.trainer.epoch + 1}: "
            f"the evidence is {gains[block.join]:.2g} nats higher without it"
        )
        return [f"{last}.{path}" for path in paths]

    def _gains_without_blocks(self, laplace: Laplace, index: torch.Tensor) -> dict[str, float]:
        """Return the gain of the log evidence without each residual block, by the name of its end.

        It is the evidence of all tensors together: Kronecker factors count what several tensors can explain once for
        each, and so would have too many blocks leave.
        """
        net = self.trainer.net
        blocks = [block for block in net.active_blocks() if self._may_leave(block)]
        if not blocks:
            return {}
        jointly, loss = self._jointly(laplace, index), loss_of(self.trainer, index)
        return {one.join: self._gain(net.without(one), one.layers, jointly, index, loss) for one in blocks}

    def _gain_without_path(self, layer: str, path: str, laplace: Laplace, index: torch.Tensor) -> float:
        """Return the log evidence without a path, less that with it, the same on all ranks."""
        left_out = self.trainer.net.layer(layer).without(path)
        gain = self._gain(left_out, [f"{layer}.{path}"], laplace, index, loss_of(self.trainer, index))
        return ranks.from_first(lambda: gain)

    def _gain(
        self,
        left_out: AbstractContextManager[None],
        places: Iterable[str],
        laplace: Laplace,
        index: torch.Tensor,
        loss: float,
    ) -> float:
        """Return the log evidence without some layers or paths, less that with them, at the other weights as they are.

        Args:
            left_out: computes without them.
            places: their names, `layer` or `layer.path`.
            laplace: the evidence with them.
            index: of the examples to use.
            loss: of these with them; see `loss_of`.
        """
        with left_out:
            rise = loss_of(self.trainer, index) - loss
        keys = [key for place in places for key in tensors_of(place, laplace.precisions)]
        return laplace.log_evidence_without(keys, laplace.loss + rise) - laplace.log_evidence()

    def final(self) -> Laplace:
        """Return the approximation whose evidence a run reports, see `final_laplace`, at the fixed point of the noise.

        The noise begins at the variance of the targets: ten steps of a fifth of the way, in its logarithm, have left a
        tenth of that.
        """
        laplace = final_laplace(self.trainer)
        for _ in range(_MOST_ROUNDS if laplace.likelihood.has_noise else 0):
            noise = ranks.from_first(partial(self._noise_target, laplace))
            if abs(math.log(noise / laplace.noise)) <= _TOLERANCE:
                break
            laplace = attrs.evolve(laplace, noise=noise)
        self.trainer.noise = laplace.noise
        if not self.priors_learned:
            fits = laplace.loss < self.trainer.constant_loss / 2
            advice = "fewer parameters or more examples would help" if fits else "train longer"
            self.note(f"no prior was learned: under none does the evidence exceed that of constant outputs; {advice}")
        if self._steps < self.every:
            after = f"{max(self._steps, 0):,} training steps follow burn-in"
            self.note(f"no evidence step took place: `every` is {self.every:,}, and {after}")
        return laplace

    def _noise_target(self, laplace: Laplace) -> float:
        """Return MacKay's fixed point of the noise, within the residual variance and that of the targets."""
        observed = laplace.examples * laplace.outputs
        effective = laplace.log_det.total
        if effective > observed and not self._overfull:
            self._overfull = True
            self.note(
                f"{effective:,.0f} effective parameters are more than {observed:,} observed numbers can determine: the "
                "noise stays at most the variance of the targets; a smaller network or more examples would help"
            )
        most = self.trainer.target_variance
        return min(laplace.fitted_noise(), most) if effective < observed else most

    def _prune(self, effective: Mapping[str, float], gain_without: Callable[[str, str], float]) -> list[str]:
        """Prune paths that the data do not need; return `layer.path` of each.

        Few effective parameters are not enough: where a network fits every example its curvature vanishes, and with it
        the effective number of paths that the network relies on.

        Args:
            effective: effective number of each parameter tensor.
            gain_without: of a layer's name and a path's: the log evidence without it, less that with it.
        """
        pruned = []
        for name, layer in self.trainer.net.layers():
            for path in layer.paths:
                key = f"{name}.{path}"
                tensors = tensors_of(key, self.trainer.precisions)
                spare = len(layer.active()) > 1
                unused = path_effective(key, effective) < LEAST_EFFECTIVE
                idle = spare and unused and not self.learned.isdisjoint(tensors)
                self._idle[key] = self._idle.get(key, 0) + 1 if idle else 0
                if self._idle[key] < _PATIENCE:
                    continue
                self._idle[key] = 0
                if gain_without(name, path) > -_ROUND_OFF:
                    self.trainer.prune(name, path)
                    self.note(f"{key} is pruned in epoch {self.trainer.epoch + 1}")
                    pruned.append(key)
        return pruned

    def _may_leave(self, block: Block) -> bool:
        """Return whether the search may set a prior of every candidate in a residual block; biases do not count."""
        net, keys = self.trainer.net, self.trainer.precisions
        names = [f"{layer}.{path}" for layer in block.layers for path, _ in net.layer(layer).active()]
        learning = [tensors for name in names if (tensors := tensors_of(name, keys))]
        return bool(learning) and not any(map(self.learned.isdisjoint, learning))

    def state(self) -> dict[str, Any]:
        """Return what a resume needs besides the trainer's state."""
        return {
            "idle": dict(self._idle),
            "overfull": self._overfull,
            "has_fitted": self._has_fitted,
            "ranges": self.ranges.state(),
        }

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors that a resume needs besides the trainer's: none."""
        return {}

    def restore(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Take up a state that `state` gave."""
        self._idle, self._overfull = dict(state["idle"]), state["overfull"]
        self._has_fitted = state["has_fitted"]
        self.ranges.restore(state["ranges"])
