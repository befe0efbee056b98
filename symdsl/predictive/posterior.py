"""The Laplace approximation of the posterior of some parameter tensors, and the predictive of the linearised network.

A tensor's block of the Gauss-Newton matrix is the Kronecker product of the factors G and A of `symdsl.evidence.kfac`
(expand). With their eigenvectors, the covariance of the outputs under N(theta, (G (x) A / noise + precision)^-1)
follows for every example from its own derivatives, the predictive of a generalised linear model (Immer et al. 2021,
"Improving predictions of Bayesian neural nets via local linearization").
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs
import torch
from torch import Tensor, nn

from symdsl.data import Examples
from symdsl.data.records import shown
from symdsl.evidence.kfac import Factor, KfacAccumulator
from symdsl.evidence.loss import Categorical, Likelihood, Rademacher
from symdsl.evidence.variational import normal_pairs
from symdsl.evidence.weight_use import BatchUse, output_gradients
from symdsl.nn import BIAS, Network, RelaxedLayer, Use, derivatives_on, outputs_of

DRAWS = 512
"""Logits drawn for each example, the same standard normal numbers for all."""

TEMPERATURES = (0.0, *(2.0**-step for step in range(10, -1, -1)))
"""Factors that the covariance may be multiplied by: 0, 1/1024, ..., 1."""

BINS = 15
"""Equal bins of confidence of the calibration error."""

MOST_EXAMPLES = 4096
"""Training examples, evenly spaced, whose curvature stands for that of all."""

MOST_COLUMNS = 50
"""Columns of Lambda for each example, at most: of more classes so many sums of them, with random signs."""

MOST_LEFT_OUT, _LEAST_LEFT_OUT, _LEFT_OUT_OUTPUTS = 1000, 100, 40_000
"""Training examples that are left out, one after the other, to choose a temperature, and how many outputs they have in
all: covariances of many classes take long."""

_CLEAR_GAIN = 1.645
"""Standard errors of a gain in the Brier score that make it worth a temperature above 0: chance gives 5 % of them."""

PARTS = ("read", "given", "read_values", "given_values")
"""The tensors of a `TensorPosterior`."""

_EXAMPLES = 512
"""Examples at a time, at most."""

_NUMBERS = 1 << 24
"""Numbers that the derivatives of a batch may take."""


@attrs.frozen(eq=False)
class TensorPosterior:
    """The Laplace posterior of one tensor: eigenvectors and eigenvalues of its Kronecker factors, float64.

    Attributes:
        read: eigenvectors of A in columns, `[block, in, rank]`; all others have eigenvalue 0.
        given: eigenvectors of G, which all blocks share, in columns, `[1, out, out]`.
        read_values: eigenvalues of A, `[block, rank]`.
        given_values: eigenvalues of G, `[1, out]`.
        precision: of the prior of every entry.
    """

    read: Tensor
    given: Tensor
    read_values: Tensor
    given_values: Tensor
    precision: float

    @classmethod
    def of(cls, a: Factor, g: Factor, precision: float) -> TensorPosterior:
        """Return the posterior of a tensor from its Kronecker factors A and G."""
        if a.as_vectors:
            basis, triangle = torch.linalg.qr(a.kept.mT.double())
            read_values, turned = torch.linalg.eigh(triangle @ triangle.mT)
            read = basis @ turned
        else:
            read_values, read = torch.linalg.eigh(a.kept.double())
        given_values, given = torch.linalg.eigh(g.blocks().double())
        directions = (read.contiguous(), given.contiguous())  # as they are read from a file
        return cls(*directions, read_values.clamp(min=0), given_values.clamp(min=0), precision)

    def to(self, device: torch.device) -> TensorPosterior:
        """Return the same posterior on a device."""
        moved = {name: getattr(self, name).to(device) for name in PARTS}
        return attrs.evolve(self, **moved)

    def covariance(self, inputs: Tensor, gradients: Tensor, noise: float) -> Tensor:
        """Return the tensor's part of the covariance of a batch's outputs, `[n, output, output]`; see `derivatives`."""
        numbers = gradients.shape[1] * self.read.shape[:2].numel() * self.given.shape[1]
        parts = zip(*(one.split(max(1, _NUMBERS // numbers)) for one in (inputs, gradients)), strict=True)
        return torch.cat([self._covariance(a, g, noise) for a, g in parts])

    def _covariance(self, inputs: Tensor, gradients: Tensor, noise: float) -> Tensor:
        inputs, g = inputs.to(self.read), gradients.to(self.given) @ self.given[0]
        a, values = torch.einsum("nbri,bic->nbrc", inputs, self.read), self.read_values
        if a.shape[3] < inputs.shape[3]:  # what lies in none of these directions keeps the prior's variance
            a = torch.cat((a, inputs - torch.einsum("nbrc,bic->nbri", a, self.read)), 3)
            values = nn.functional.pad(values, (0, inputs.shape[3]))
        variances = (self.given_values[:, :, None] * values[:, None] / noise + self.precision).reciprocal()
        if a.shape[2] == 1:  # without a sum over uses, that over inputs comes first
            scaled = g.squeeze(3) * torch.einsum("nbri,boi->nbo", a.square(), variances).sqrt().unsqueeze(1)
        else:
            scaled = torch.einsum("nkbro,nbri->nkboi", g, a) * variances.sqrt()
        flat = scaled.flatten(2)
        return flat @ flat.mT


@attrs.frozen(eq=False)
class Predicted:
    """The predictions for some examples.

    Attributes:
        probabilities: of the classes, `[n, class]`, for classification.
        mean: of the targets, `[n, target]`, for regression.
        std: standard deviation of the targets, noise included, `[n, target]`, for regression.
    """

    probabilities: Tensor | None = attrs.field(default=None, repr=shown)
    mean: Tensor | None = attrs.field(default=None, repr=shown)
    std: Tensor | None = attrs.field(default=None, repr=shown)

    @classmethod
    def of_parts(cls, parts: Sequence[Predicted]) -> Predicted:
        """Return the predictions for some examples after one another as one."""
        held = {name: [getattr(one, name) for one in parts] for name in ("probabilities", "mean", "std")}
        return cls(**{name: None if ones[0] is None else torch.cat(ones) for name, ones in held.items()})

    @classmethod
    def plain(cls, outputs: Tensor, likelihood: Likelihood, noise: float) -> Predicted:
        """Return the network's predictions without the uncertainty of its weights."""
        if isinstance(likelihood, Categorical):
            return cls(probabilities=outputs.double().softmax(1))
        return cls(mean=outputs.double(), std=torch.full_like(outputs, math.sqrt(noise), dtype=torch.float64))

    @property
    def is_finite(self) -> bool:
        """Whether every number is finite."""
        found = (one for one in (self.probabilities, self.mean, self.std) if one is not None)
        return all(bool(one.isfinite().all()) for one in found)

    def nll(self, targets: Tensor) -> float:
        """Return the negative log-likelihood of the targets, mean per example, in nats.

        Args:
            targets: labels `[n]`, or numbers `[n, target]`, of a single target also `[n]`.

        Raises:
            ValueError: they are of another shape or type, a label is of no class, or there are none.
        """
        self._demand_some()
        if self.probabilities is not None:
            probabilities, labels = self._of_labels(targets)
            chosen = probabilities.gather(1, labels.long()[:, None])
            return -float(chosen.clamp(min=torch.finfo(chosen.dtype).tiny).log().mean())
        assert self.mean is not None, "it is a regression"
        assert self.std is not None, "it is a regression"
        targets = torch.as_tensor(targets, device=self.mean.device)
        if targets.ndim == 1 and self.mean.shape[1] == 1:
            targets = targets[:, None]
        _check_shape(targets, self.mean.shape)
        found = torch.distributions.Normal(self.mean, self.std).log_prob(targets.double())
        return -float(found.sum(1).mean())

    def brier(self, targets: Tensor) -> float:
        """Return the Brier score (Brier 1950), mean per example.

        It is the squared distance of the probabilities from the labels' indicators.

        Raises:
            ValueError: see `brier_scores`; or there are no predictions.
        """
        self._demand_some()
        return float(self.brier_scores(targets).mean())

    def brier_scores(self, targets: Tensor) -> Tensor:
        """Return the Brier score of every example, `[n]`.

        Args:
            targets: labels `[n]`.

        Raises:
            ValueError: they are of another shape or type, a label is of no class, or these are predictions of a
                regression.
        """
        probabilities, labels = self._of_labels(targets)
        indicators = nn.functional.one_hot(labels.long(), probabilities.shape[1])
        return (probabilities - indicators).square().sum(1)

    def calibration_error(self, targets: Tensor) -> float:
        """Return the expected calibration error: the gap of accuracy and confidence, weighted by size over bins.

        Guo et al. 2017, eq. 3.

        Raises:
            ValueError: see `brier_scores`; or there are no predictions.
        """
        self._demand_some()
        probabilities, labels = self._of_labels(targets)
        confidence, predicted = probabilities.double().max(1)
        right = (predicted == labels).double()
        bins = (confidence * BINS).long().clamp(max=BINS - 1)
        gaps = confidence.new_zeros(BINS).index_add_(0, bins, right - confidence)
        return float(gaps.abs().sum() / len(targets))

    def _demand_some(self) -> None:
        if not any(len(one) for one in (self.probabilities, self.mean) if one is not None):
            raise ValueError("there are no predictions to score")

    def _of_labels(self, targets: Tensor) -> tuple[Tensor, Tensor]:
        """The probabilities, and the labels that they are compared with on the same device."""
        if self.probabilities is None:
            raise ValueError("only predictions of class labels have this score, but these are of a regression")
        labels = torch.as_tensor(targets, device=self.probabilities.device)
        if labels.is_floating_point() or labels.is_complex():
            raise ValueError(f"`targets` (={labels.dtype}) must hold labels, which are integers")
        _check_shape(labels, self.probabilities.shape[:1])
        classes = self.probabilities.shape[1]
        wrong = labels[(labels < 0) | (labels >= classes)]
        if len(wrong):
            raise ValueError(f"`targets` holds the label {wrong[0]}, expected 0 to {classes - 1}")
        return self.probabilities, labels


def _check_shape(targets: Tensor, expected: torch.Size) -> None:
    if targets.ndim and len(targets) != expected[0]:
        raise ValueError(f"`targets` has {len(targets)} examples, expected one for each of {expected[0]}")
    if targets.shape != expected:
        raise ValueError(f"`targets` is of shape {list(targets.shape)}, expected {list(expected)}")


@attrs.frozen(eq=False)
class Posterior:
    """The Laplace posterior of some parameter tensors, with the others held where they are.

    Attributes:
        tensors: by key of `net.tensors()`.
        likelihood: of the targets.
        noise: variance of the Gaussian likelihood; 1 for classification.
        temperature: what the covariance is multiplied by; 1 is the Laplace approximation itself.
    """

    tensors: Mapping[str, TensorPosterior]
    likelihood: Likelihood
    noise: float
    temperature: float = 1.0

    def to(self, device: torch.device) -> Posterior:
        """Return the same posterior on a device."""
        return attrs.evolve(self, tensors={key: one.to(device) for key, one in self.tensors.items()})

    def outputs(self, net: Network, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean `[n, output]` and covariance `[n, output, output]` of the linearised network's outputs, float64.

        Args:
            net: the network the posterior is of, in evaluation mode: in training mode an `average` draws.
            x: `[n, channel, row, column]`.
        """
        if not len(x):
            mean, covariance = self.outputs(net, x.new_zeros(1, *x.shape[1:]))
            return mean[:0], covariance[:0]
        means, covariances = zip(*self._in_parts(net, x), strict=True)
        return torch.cat(means), torch.cat(covariances)

    def _in_parts(self, net: Network, x: Tensor, *beside: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """Yield the `outputs` of some examples at a time, and their parts of other tensors: covariances are large."""
        size = _batch(net, x, self.tensors)
        for part, *others in zip(*(one.split(size) for one in (x, *beside)), strict=True):
            mean, found = derivatives(net, part, self.tensors)
            covariances = [tensor.covariance(*found[key], self.noise) for key, tensor in self.tensors.items()]
            yield mean.double(), self.temperature * torch.stack(covariances).sum(0), *others

    def predict(self, net: Network, x: Tensor) -> Predicted:
        """Return the linearised network's predictions, see `outputs`; at temperature 0 those of the network itself."""
        if self.temperature == 0:
            return Predicted.plain(outputs_of(net, x), self.likelihood, self.noise)
        parts = self._in_parts(net, x) if len(x) else [self.outputs(net, x)]
        return Predicted.of_parts([self.predictive(mean, covariance) for mean, covariance in parts])

    def predictive(self, mean: Tensor, covariance: Tensor) -> Predicted:
        """Return the prediction for Gaussian outputs: mean softmax of drawn logits, or a Gaussian with their noise."""
        return self._at_temperatures(mean, covariance, (1.0,))[0]

    def _at_temperatures(self, mean: Tensor, covariance: Tensor, temperatures: Sequence[float]) -> list[Predicted]:
        if isinstance(self.likelihood, Categorical):
            return [Predicted(probabilities=one) for one in mean_softmax(mean, covariance, temperatures)]
        variance = covariance.diagonal(dim1=1, dim2=2).clamp(min=0)
        return [Predicted(mean=mean, std=(t * variance + self.noise).sqrt()) for t in temperatures]

    def tempered(self, net: Network, examples: Examples) -> Posterior:
        """Return the posterior at the temperature that predicts every training example best from all the others.

        Probabilities are judged by their likelihood, their Brier score and their calibration error, a regression by its
        likelihood; the lowest of the temperatures that these choose is taken, but 0 where the gain in the Brier
        score is not significant, less than 1.645 of its standard errors.

        Leaving an example out is one Newton step of the linearised network: with V the covariance of its outputs,
        Lambda the Hessian and l the gradient of its loss in them, its outputs without it have the covariance
        `V (I - Lambda V)^-1` and move by that times l. For class labels V stays V: from Kronecker factors Lambda V has
        eigenvalues above 1, by which an example would be predicted better for being left out.

        Args:
            net: the network.
            examples: that it was trained on.
        """
        outputs = outputs_of(net, examples.x[:1]).shape[1]
        most = min(MOST_LEFT_OUT, max(_LEAST_LEFT_OUT, _LEFT_OUT_OUTPUTS // outputs))
        some = _spaced(len(examples), most).to(examples.x.device)
        left_out = examples.batch(some, net.device)
        whole = attrs.evolve(self, temperature=1.0)._in_parts(net, left_out.x, left_out.y)
        without = (_without_itself(mean, wide, y, self.likelihood, self.noise) for mean, wide, y in whole)
        parts = [self._at_temperatures(*one, TEMPERATURES) for one in without]
        found = [Predicted.of_parts(one) for one in zip(*parts, strict=True)]
        scores = [Predicted.nll]
        if isinstance(self.likelihood, Categorical):
            scores += [Predicted.brier, Predicted.calibration_error]
        by_score = ([score(one, left_out.y) for one in found] for score in scores)
        best = min(one.index(min(one)) for one in by_score)
        if isinstance(self.likelihood, Categorical):
            gains = found[0].brier_scores(left_out.y) - found[best].brier_scores(left_out.y)
            clear = len(gains) > 1 and float(gains.mean()) >= _CLEAR_GAIN * float(gains.std()) * len(gains) ** -0.5
            best = best if clear else 0
        return attrs.evolve(self, temperature=TEMPERATURES[best])


@derivatives_on()
def fit(
    net: Network,
    examples: Examples,
    likelihood: Likelihood,
    precisions: Mapping[str, float],
    noise: float = 1.0,
) -> Posterior:
    """Return the posterior of the parameter tensors that have a precision, at the network's present parameters.

    All columns of Lambda are taken, whatever the search took, or `MOST_COLUMNS` sums of more. Of more than
    `MOST_EXAMPLES` training examples, so many stand for all: their curvature is scaled.

    Args:
        net: the network, whose parameters are a mode, in evaluation mode.
        examples: training data.
        likelihood: of the targets.
        precisions: of the priors, by key of `net.tensors()`.
        noise: variance of the Gaussian likelihood.
    """
    factors, fisher = KfacAccumulator("expand"), Rademacher(MOST_COLUMNS)
    generator = torch.Generator(net.device).manual_seed(0)
    inputs = examples.x[_spaced(len(examples), MOST_EXAMPLES)]
    for part in inputs.split(_EXAMPLES):
        outputs, uses = _recorded(net, part, precisions)
        with torch.no_grad():
            factors.add_inputs(uses)
        for column in fisher.loss_hessian_sqrt(likelihood, outputs.detach(), generator):
            pulled = output_gradients(outputs, column, uses)
            with torch.no_grad():
                factors.add_gradients(uses, pulled)
    blocks = factors.ggn().scaled(len(examples) / len(inputs)).blocks
    tensors = {key: TensorPosterior.of(block.input, block.output, precisions[key]) for key, block in blocks.items()}
    return Posterior(tensors, likelihood, noise)


def _spaced(count: int, most: int) -> Tensor:
    """Return the indices of `most` examples of `count` at equal distances, or of all if they are fewer."""
    return torch.linspace(0, count - 1, min(count, most), dtype=torch.float64).long()


def fit_last_layer(
    net: Network, examples: Examples, likelihood: Likelihood, precisions: Mapping[str, float], noise: float = 1.0
) -> Posterior:
    """Return the posterior of the last layer, at the temperature that suits the training examples; see `fit`."""
    chosen = {key: precisions[key] for key in last_layer(net) if key in precisions}
    return fit(net, examples, likelihood, chosen, noise).tempered(net, examples)


def last_layer(net: Network) -> Iterator[str]:
    """Yield the keys of the parameter tensors of the last layer that is in use."""
    name, layer = [(name, stage) for name, stage in net.active() if isinstance(stage, RelaxedLayer)][-1]
    for path_name, path in layer.active():
        yield from (f"{name}.{path_name}.{tensor}" for tensor, _ in path.named_parameters())
    yield f"{name}.{BIAS}"


@derivatives_on()
def derivatives(net: Network, x: Tensor, keys: Iterable[str]) -> tuple[Tensor, dict[str, tuple[Tensor, Tensor]]]:
    """Return the outputs of a batch, `[n, output]`, and how they depend on parameter tensors.

    Every tensor is blocks W_block `[out, in]`, used R times per example (`symdsl.evidence.weight_use`). The derivative
    of an output in W_block is `sum_R gradient input^T`.

    Args:
        net: the network; one pass forward and a pass backward for each output.
        x: `[n, channel, row, column]`.
        keys: of `net.tensors()`.

    Returns:
        The outputs, and for each key the inputs `[n, block, R, in]` and gradients `[n, output, block, R, out]`.
    """
    outputs, uses = _recorded(net, x, keys)
    gradients: dict[str, list[Tensor]] = {key: [] for key in uses}
    for unit in torch.eye(outputs.shape[1], dtype=outputs.dtype, device=outputs.device):
        for key, pulled in output_gradients(outputs, unit.expand_as(outputs), uses).items():
            gradients[key].append(torch.cat([*uses[key].gradients(pulled)]).detach())
    found = {key: (torch.cat([*use.inputs()]).detach(), torch.stack(gradients[key], 1)) for key, use in uses.items()}
    return outputs.detach(), found


def _recorded(net: Network, x: Tensor, keys: Iterable[str]) -> tuple[Tensor, dict[str, BatchUse]]:
    """The outputs of a batch, float64, and how it uses some tensors."""
    recorded: dict[str, Use] = {}
    # What the network reads has derivatives, so that all it writes has, also where its parameters are frozen.
    outputs = net(x.to(net.device).detach().clone().requires_grad_(), recorded).double()
    return outputs, {key: BatchUse.of(recorded[key]) for key in keys}


@torch.no_grad()
def mean_softmax(
    mean: Tensor, covariance: Tensor, temperatures: Sequence[float] = (1.0,), draws: int = DRAWS
) -> Tensor:
    """Return E[softmax(f)] for f ~ N(mean, temperature covariance): `[temperature, n, class]`.

    Args:
        mean: `[n, class]`, float64.
        covariance: `[n, class, class]`, float64.
        temperatures: what the covariance is multiplied by.
        draws: an even number, the same for every example and temperature; of each its opposite is another.
    """
    like = mean.new_empty(mean.shape[1], device="cpu")  # drawn there, the numbers are the same on every device
    normal = normal_pairs(draws, like, torch.Generator().manual_seed(0)).to(mean.device)
    batches = max(1, mean.numel() * draws // _NUMBERS)
    found: list[Tensor] = []
    for some, wide in zip(mean.tensor_split(batches), covariance.tensor_split(batches), strict=True):
        drawn = normal @ _root(wide).mT
        found.append(torch.stack([(some.unsqueeze(1) + t**0.5 * drawn).softmax(2).mean(1) for t in temperatures]))
    return torch.cat(found, 1)


def _root(covariance: Tensor) -> Tensor:
    """R with R R^T = covariance, which may be singular."""
    values, vectors = torch.linalg.eigh(covariance)
    root: Tensor = vectors * values.clamp(min=0).sqrt().unsqueeze(1)
    return root


@derivatives_on()
def _without_itself(
    mean: Tensor, covariance: Tensor, targets: Tensor, likelihood: Likelihood, noise: float
) -> tuple[Tensor, Tensor]:
    """Mean and covariance of each example's outputs in a posterior without it."""
    leaf = mean.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(likelihood.loss(leaf, targets.clone()) / noise, leaf)
    if likelihood.has_noise:
        unit = torch.eye(mean.shape[1], dtype=mean.dtype, device=mean.device)
        wider = covariance @ torch.linalg.inv(unit - covariance / noise)
        covariance = (wider + wider.mT) / 2
    return mean + (covariance @ gradient.unsqueeze(2)).squeeze(2), covariance


def _batch(net: Network, x: Tensor, keys: Iterable[str]) -> int:
    """How many examples' derivatives are formed at a time."""
    outputs, found = derivatives(net, x[:1], keys)
    numbers = max(a.numel() + g.numel() for a, g in found.values())
    numbers = max(numbers, 4 * outputs.shape[1] ** 2)  # covariances of the outputs
    return max(1, min(_EXAMPLES, _NUMBERS // numbers))
