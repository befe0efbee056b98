"""The state of a search and the small steps that move it: an epoch of training, an evidence step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs
import torch
from torch import Tensor

from symdsl.analysis.facts import Adam, Candidate, Facts, Full, Layer, Mackay, Prior, Search
from symdsl.analysis.symmetry import breaks, elements_broken
from symdsl.data import Augmentation, Dataset, Examples
from symdsl.data.records import seeded
from symdsl.diagnostics import NumericalError
from symdsl.evidence import AdamUpdate, Laplace, Likelihood, MackayUpdate, PriorUpdate, demand_rows
from symdsl.evidence.laplace import estimator, from_curvature
from symdsl.evidence.loss import LIKELIHOODS, fisher_of
from symdsl.evidence.prior_updates import LARGEST_PRECISION
from symdsl.evidence.rescale import mode_of_scales, shared_numbers
from symdsl.nn import Network
from symdsl.nn.scaling import scaled_layers
from symdsl.runner.metrics import outputs_of
from symdsl.runner.scales import Scales
from symdsl.runner.schedule import SCHEDULES, burn_in_ends, evidence_is_due, warm_up

OFF_SHARE = 1e-4
"""A path at the upper bound of the precision whose relative effective number stays below this is switched off."""

SMALLEST_STEP = 0.5
"""Least factor on the step of a tensor that has shrunk; smaller ones keep paths from dying within a run."""

_PATIENCE = 2
"""Evidence steps in a row that a path must look dead before it is switched off."""


def prior_update_of(facts: Adam | Mackay) -> PriorUpdate:
    """The prior update a spec names."""
    return MackayUpdate(facts.damping) if isinstance(facts, Mackay) else AdamUpdate(facts.lr)


def layer_records(facts: Facts) -> tuple[Layer, ...]:
    """The layers of the network, in order."""
    return tuple(node for node in facts.network.nodes if isinstance(node, Layer))


def stated_precisions(facts: Facts) -> dict[str, float]:
    """The precision of each parameter tensor's prior, as the spec has it."""
    return {key: prior.precision for key, prior, _ in _priors(facts)}


def starting_precisions(facts: Facts) -> dict[str, float]:
    """The precision that each parameter tensor's prior is learned from.

    Where the spec gives none, candidates that break a symmetry which another of their layer keeps start from one of
    their own: near the limit in which they do not, they are taken up where the data pay for it.
    """
    return {
        key: breaking if breaking is not None and prior.learned and not prior.stated else prior.precision
        for key, prior, breaking in _priors(facts)
    }


def learned_keys(facts: Facts) -> frozenset[str]:
    """Parameter tensors whose precision the search may move."""
    return frozenset(key for key, prior, _ in _priors(facts) if prior.learned)


def _priors(facts: Facts) -> Iterator[tuple[str, Prior, float | None]]:
    """Every parameter tensor's key and prior, and where that starts if its candidate breaks what another one keeps."""
    for layer in layer_records(facts):
        for candidate in layer.candidates:
            breaking = _breaking_precision(candidate, layer, facts.search)
            for tensor in candidate.tensors:
                yield f"{layer.name}.{candidate.name}.{tensor.name}", tensor.prior, breaking
        yield f"{layer.name}.bias", layer.bias, None


def _breaking_precision(candidate: Candidate, layer: Layer, search: Search) -> float | None:
    preserved = [one.preserves for one in layer.candidates]
    if not breaks(candidate.preserves, preserved):
        return None
    if search.breaking_per == "candidate":
        return search.breaking_precision
    broken = elements_broken(candidate.preserves, preserved, layer.in_shape.height * layer.in_shape.width)
    return min(search.breaking_precision * broken, LARGEST_PRECISION)


def _stream(device: torch.device | str, *words: object) -> torch.Generator:
    return torch.Generator(device).manual_seed(seeded(*words).initial_seed())


@attrs.frozen
class EpochMetrics:
    """Training figures of one epoch, taken while the parameters moved: means per example; `lr` at its beginning.

    `fit` is the share of the targets' deviance that is explained, 1 - loss / loss of the best constant outputs: nothing
    for a network that has learned nothing but frequencies, R^2 for a regression, below 0 for one that does worse.
    """

    loss: float
    nll: float
    fit: float
    accuracy: float | None
    lr: float


class Learner:
    """Parameters, priors and optimiser of one search, and the steps that move them.

    Nothing here depends on when it is called: batches, their augmentation, drawn labels and signs come from the seed
    and the epoch, so that a state restored at an epoch goes on exactly as the uninterrupted search would.

    Args:
        net: the network, on its device.
        facts: the checked spec.
        dataset: training and test examples.
        seed: of order and sampling.
        precisions: that the priors start from; as the spec has them if left out.

    Raises:
        RunError: the objective asks for what the handler of a parameter tensor does not give.

    Attributes:
        precisions: prior precision of every parameter tensor that is not switched off.
        noise: variance of the Gaussian likelihood; 1 for classification.
        epoch: epochs done.
        burnt_in: epochs after which burn-in ended; none while it lasts.
    """

    def __init__(
        self, net: Network, facts: Facts, dataset: Dataset, seed: int, precisions: Mapping[str, float] | None = None
    ) -> None:
        self.net = net
        self.facts = facts
        self.search: Search = facts.search
        if isinstance(self.search.objective.approximation, Full):
            demand_rows(net)
        self.likelihood: Likelihood = LIKELIHOODS[facts.data.task]
        self.device = net.device
        mapped = dataset.room.folder is not None
        self.train = dataset.train if mapped else dataset.train.to(self.device)
        self._constant_loss = self.likelihood.constant_loss(self.train.y)
        self.augmentation = Augmentation.of(facts.data)
        self.seed = seed
        self.parameters = net.tensors()
        self.scales = Scales(self.parameters if self.search.optimizer.scales else {})
        self._trained = self.parameters | {f"{key}/scale": log for key, log in self.scales.logs.items()}
        groups = [{"params": [parameter]} for parameter in self._trained.values()]
        self.optimizer = torch.optim.Adam(groups, lr=self.search.optimizer.lr, fused=True)
        self._initial_sizes = self._sizes()
        self.precisions = dict(stated_precisions(facts) if precisions is None else precisions)
        self.learned = learned_keys(facts)
        self.prior_update = prior_update_of(self.search.prior_optimizer)
        self.prior_state: Mapping[str, tuple[float, float, int]] = {}
        self.noise = 1.0
        self.epoch = 0
        self.burnt_in: int | None = None if self.search.burnin else 0
        self.step_size = 1.0
        self._looks_dead: dict[str, int] = {}

    def train_epoch(self) -> EpochMetrics:
        """One pass over the training data, towards the maximum a posteriori under the present priors.

        Minimises (1/N) [-log p(D | theta) + 1/2 sum_k delta_k ||theta_k||^2]; the norm of this whole gradient is
        clipped, so that clipping never tilts the balance of likelihood and prior. Only here are the data augmented.

        Raises:
            NumericalError: a loss or gradient was not finite.
        """
        examples, batch = len(self.train), self.search.batch
        order = torch.randperm(examples, generator=_stream("cpu", self.seed, "order", self.epoch)).to(self.device)
        steps = math.ceil(examples / batch)
        sums = torch.zeros(3, dtype=torch.float64, device=self.device)
        relative = self._relative_steps()
        augmented = self.augmentation.epoch(examples, _stream("cpu", self.seed, "augment", self.epoch), self.device)
        self.net.train()
        for step, index in enumerate(order.split(batch)):
            self._set_learning_rates((self.epoch + step / steps) / self.search.epochs, relative)
            sums += self._train_step(augmented(self.train.batch(index, self.device), index))
        self.epoch += 1
        metrics = self._epoch_metrics(*sums.tolist())
        if self.burnt_in is None and burn_in_ends(self.epoch, metrics.fit, self.search):
            self.burnt_in = self.epoch
        return metrics

    @property
    def evidence_is_due(self) -> bool:
        """Whether an evidence step follows the last epoch."""
        return evidence_is_due(self.epoch, self.burnt_in, self.search)

    def _sizes(self) -> list[float]:
        """Root mean square of every parameter tensor, in order."""
        squares = [parameter.detach().double().square().mean() for parameter in self.parameters.values()]
        return [float(size) for size in torch.stack(squares).sqrt().tolist()]

    def _relative_steps(self) -> list[float]:
        """Factor on every tensor's step: its size relative to its initial size, within [SMALLEST_STEP, 1].

        Adam's steps know nothing of a tensor's size, but a learned prior shrinks tensors by orders of magnitude: at a
        fixed step they would end as noise. Tensors that start at zero keep the full step.
        """
        if self.search.optimizer.steps == "absolute":
            return [1.0] * len(self.parameters)
        sizes = zip(self._sizes(), self._initial_sizes, strict=True)
        return [min(max(size / initial, SMALLEST_STEP), 1.0) if initial else 1.0 for size, initial in sizes]

    def _learning_rate(self, progress: float) -> float:
        optimizer = self.search.optimizer
        scheduled = optimizer.lr * SCHEDULES[optimizer.schedule](progress)
        return self.step_size * scheduled * warm_up(progress, optimizer.warmup)

    def _set_learning_rates(self, progress: float, relative: list[float]) -> None:
        rate = self._learning_rate(progress)
        factors = [*relative, *(1.0 for _ in self.scales.logs)]
        for group, factor in zip(self.optimizer.param_groups, factors, strict=True):
            group["lr"] = rate * factor

    def _train_step(self, batch: Examples) -> Tensor:
        outputs = self.net(batch.x)
        loss = self.likelihood.loss(outputs, batch.y)
        self.optimizer.zero_grad()
        (loss / (len(batch) * self.noise)).backward()
        self._add_prior_gradient()
        bound = self.search.optimizer.clip or math.inf
        norm = torch.nn.utils.clip_grad_norm_(self.net.parameters(), bound)
        self.scales.differentiate()
        self.optimizer.step()
        self.scales.apply()
        right = torch.zeros_like(norm) if self.likelihood.has_noise else (outputs.argmax(1) == batch.y).sum()
        return torch.stack((loss.detach(), right.to(loss.dtype), (~torch.isfinite(norm)).to(loss.dtype)))

    def _add_prior_gradient(self) -> None:
        for key, precision in self.precisions.items():
            parameter = self.parameters[key]
            if parameter.grad is not None:
                parameter.grad.add_(parameter.detach(), alpha=precision / len(self.train))

    def _epoch_metrics(self, loss: float, right: float, failures: float) -> EpochMetrics:
        if failures or not math.isfinite(loss):
            raise NumericalError(f"the loss or its gradient is not finite in epoch {self.epoch}")
        examples = len(self.train)
        nll = self.likelihood.nll(loss, examples, self.facts.data.classes, self.noise) / examples
        accuracy = None if self.likelihood.has_noise else right / examples
        rate = self._learning_rate((self.epoch - 1) / self.search.epochs)
        fit = 1 - loss / self._constant_loss if self._constant_loss else 1.0
        return EpochMetrics(nll + self.penalty() / examples, nll, fit, accuracy, rate)

    def penalty(self) -> float:
        """1/2 sum_k delta_k ||theta_k||^2 at the present parameters, in nats."""
        return 0.5 * math.fsum(self._penalties().values())

    def _penalties(self) -> dict[str, float]:
        """delta_k ||theta_k||^2 of every tensor that is not switched off."""
        norms = self.net.squared_norms(self.precisions)
        return {key: precision * norms[key] for key, precision in self.precisions.items()}

    def rescale(self) -> None:
        """Brings the scales of all tensors to the mode of what training minimises; the moments of Adam go along."""
        layers = scaled_layers(self.net)
        self.net.eval()
        outputs, targets = outputs_of(self.net, self.train.x), self.train.y.to(self.device)
        factors = mode_of_scales(layers, self._penalties(), outputs, targets, self.likelihood, self.noise)
        for key, factor in factors.items():
            parameter = self.parameters[key]
            parameter.data.mul_(factor)
            moments = self.optimizer.state.get(parameter, {})
            for name, power in (("exp_avg", 1), ("exp_avg_sq", 2)):
                if name in moments:
                    moments[name].div_(factor**power)

    def laplace(self) -> Laplace:
        """The Laplace approximation at the present parameters, from all training examples.

        Raises:
            NumericalError: eigenvalues that cannot be computed, with the parameter tensor and the epoch.
        """
        generator = _stream(self.device, self.seed, "labels", self.epoch)
        objective = self.search.objective
        fisher = fisher_of(objective.fisher.kind, objective.fisher.samples)
        self.net.eval()
        try:
            estimated = estimator(objective.approximation)
            curvature = estimated(self.net, self.train.x, self.train.y, self.likelihood, fisher, generator)
            return from_curvature(self.net, curvature, self.likelihood, self.precisions, self.noise)
        except NumericalError as error:
            raise NumericalError(f"{error}, after epoch {self.epoch}") from None

    def evidence_step(self) -> tuple[Laplace, list[str]]:
        """Moves the priors up the evidence at fixed parameters and fixed curvature, then switches dead paths off.

        Returns:
            The approximation under the new priors, and `layer.path` of every path that was switched off.
        """
        laplace = self.laplace()
        layers = scaled_layers(self.net) if self.search.rescale else ()
        rate = self._prior_rate()
        for _ in range(self.search.steps):
            numbers = shared_numbers(layers, laplace.effective_parameters(), self.learned)
            update = self.prior_update.step(laplace, numbers, self.learned, self.prior_state, rate)
            precisions, self.prior_state = update
            noise = laplace.fitted_noise() if self.likelihood.has_noise else laplace.noise
            laplace = laplace.with_precisions(precisions, noise)
        self.precisions, self.noise = dict(laplace.precisions), laplace.noise
        return laplace, [] if self.search.keep_paths else self._switch_off_dead_paths(laplace)

    def _prior_rate(self) -> float:
        return SCHEDULES[self.search.prior_optimizer.schedule]((self.epoch - 0.5) / self.search.epochs)

    def _switch_off_dead_paths(self, laplace: Laplace) -> list[str]:
        effective = laplace.effective_parameters()
        switched = []
        for name, layer in self.net.layers():
            shares = path_shares(name, layer.paths, effective)
            for path, share in shares.items():
                key = f"{name}.{path}"
                tensors = tensors_of(key, self.precisions)
                at_bound = any(self.precisions[tensor] >= LARGEST_PRECISION for tensor in tensors)
                dead = bool(tensors) and at_bound and share < OFF_SHARE and self.learned.issuperset(tensors)
                self._looks_dead[key] = self._looks_dead.get(key, 0) + 1 if dead else 0
                if self._looks_dead[key] == _PATIENCE:
                    self.switch_off(name, path)
                    switched.append(key)
        return switched

    def switch_off(self, layer: str, path: str) -> None:
        """Leaves a path out of the network, its curvature and its prior from now on."""
        dict(self.net.layers())[layer].switch_off(path)
        for tensor in tensors_of(f"{layer}.{path}", self.precisions):
            self.parameters[tensor].grad = None
            del self.precisions[tensor]

    def tensors(self) -> dict[str, Tensor]:
        """Copies of every tensor a resume needs: parameters and the optimiser's moments, on the CPU."""
        found: dict[str, Tensor] = {}
        for key, parameter in self.parameters.items():
            found[f"parameter/{key}"] = parameter.detach().cpu().clone()
        for key, trained in self._trained.items():
            for name, value in self.optimizer.state.get(trained, {}).items():
                found[f"{name}/{key}"] = value.detach().cpu().clone()
        return found

    def state(self) -> dict[str, Any]:
        """Everything else a resume needs, as plain numbers."""
        return {
            "epoch": self.epoch,
            "burnt_in": self.burnt_in,
            "seed": self.seed,
            "precisions": dict(self.precisions),
            "prior_state": {key: list(moments) for key, moments in self.prior_state.items()},
            "noise": self.noise,
            "step_size": self.step_size,
            "looks_dead": dict(self._looks_dead),
            "off": [f"{name}.{path}" for name, layer in self.net.layers() for path in sorted(layer.off)],
        }

    def restore(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Takes up a state that `state` and `tensors` gave; the network must be the same.

        Raises:
            KeyError: a tensor is missing.
        """
        for key in state["off"]:
            layer, path = key.split(".", 1)
            if path not in dict(self.net.layers())[layer].off:
                self.switch_off(layer, path)
        for key, parameter in self.parameters.items():
            parameter.data.copy_(tensors[f"parameter/{key}"])
        for key, trained in self._trained.items():
            moments = {name: tensors[f"{name}/{key}"] for name in _MOMENTS if f"{name}/{key}" in tensors}
            self.optimizer.state.pop(trained, None)
            if moments:
                self.optimizer.state[trained] = {name: self._placed(value) for name, value in moments.items()}
        self.epoch, self.burnt_in, self.seed = state["epoch"], state["burnt_in"], state["seed"]
        self.precisions = dict(state["precisions"])
        self.prior_state = {key: (first, second, steps) for key, (first, second, steps) in state["prior_state"].items()}
        self.noise, self.step_size = state["noise"], state["step_size"]
        self._looks_dead = dict(state["looks_dead"])

    def _placed(self, value: Tensor) -> Tensor:
        return value.detach().clone().to(self.device)


_MOMENTS = ("step", "exp_avg", "exp_avg_sq")


def tensors_of(path: str, keys: Iterable[str]) -> list[str]:
    """Those of the `keys` that name a tensor of `path`, which is written `layer.path`."""
    return [key for key in keys if key.startswith(f"{path}.")]


def layer_shares(facts: Facts, effective: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Relative effective number of every candidate, by layer and candidate; see `path_shares`."""
    return {
        layer.name: path_shares(layer.name, [one.name for one in layer.candidates], effective)
        for layer in layer_records(facts)
    }


def path_shares(layer: str, paths: Iterable[str], effective: Mapping[str, float]) -> dict[str, float]:
    """Relative effective number of each path of a layer; 0 for paths that are switched off.

    Args:
        layer: the layer's name.
        paths: the layer's path names.
        effective: effective number of each parameter tensor, keyed `layer.path.tensor`.
    """
    sums = {path: math.fsum(effective[key] for key in tensors_of(f"{layer}.{path}", effective)) for path in paths}
    total = math.fsum(sums.values())
    return {path: value / total if total > 0 else 0.0 for path, value in sums.items()}
