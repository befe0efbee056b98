"""The Laplace approximation of a network in training: by which estimator, and from which training examples."""

from __future__ import annotations

import attrs
import torch

from symdsl import ranks
from symdsl.analysis.facts import Objective
from symdsl.catalog.searches import FEW_EXAMPLES, TARGET_COLUMNS
from symdsl.diagnostics import NumericalError
from symdsl.evidence import CURVATURES, Fisher, Laplace, Rademacher, estimate, fisher_of, laplace_of
from symdsl.evidence.joint import GRADIENTS
from symdsl.nn import evaluation_mode, outputs_of
from symdsl.runner.device import stream
from symdsl.runner.training import Trainer


@attrs.frozen
class Estimator:
    """A way to estimate the curvature.

    Attributes:
        curvature: a name of `CURVATURES`.
        fisher: which columns of a square root of Lambda are propagated.
    """

    curvature: str
    fisher: Fisher

    @classmethod
    def of(cls, objective: Objective, examples: int, has_noise: bool = False) -> Estimator:
        """Return the estimator that the spec asks for, or by default the one for this number of training examples.

        A regression keeps the counts of the sketch: its noise divides by what they leave of the observed numbers, and
        an overcount by a quarter may halve that.

        Args:
            objective: what the search maximises.
            examples: training examples.
            has_noise: whether a noise variance is learned.
        """
        curvature = objective.curvature or ("joint" if examples <= FEW_EXAMPLES else "kfac-reduce")
        if curvature == "joint":
            return TARGETS if has_noise else FINAL
        return cls(curvature, fisher_of(objective.fisher.kind, objective.fisher.samples))

    @property
    def is_joint(self) -> bool:
        """Whether one matrix holds the curvature of all tensors together."""
        return self.curvature in ("joint", "sketch")


FINAL = Estimator("joint", Rademacher(1))
FINAL_EXAMPLES = 4096
"""How, and from how many training examples at most, the evidence is estimated that a run reports."""

SKETCH = Estimator("sketch", Rademacher(1))
"""How it is estimated where effective numbers beyond the sketch are not needed."""

TARGETS = Estimator("sketch", Rademacher(TARGET_COLUMNS))
"""How it is estimated in a regression, where all targets are equally certain: one sum for each example has no more
effective parameters than there are examples, however many targets there are."""


def sketch_of(trainer: Trainer) -> Estimator:
    """Return the joint sketch that suits the likelihood."""
    return TARGETS if trainer.likelihood.has_noise else SKETCH


def laplace_at(
    trainer: Trainer,
    estimator: Estimator,
    index: torch.Tensor,
    scaled: bool = True,
    exact: int = 0,
    loss: float | None = None,
) -> Laplace:
    """Return the Laplace approximation at the present parameters, from some training examples.

    Args:
        trainer: the weights and their priors.
        estimator: of the curvature.
        index: of the examples to use.
        scaled: whether they stand for all, or else are taken for themselves.
        exact: see `estimate`.
        loss: of all examples, where more is known of it than these tell.

    Raises:
        NumericalError: eigenvalues that cannot be computed, with the parameter tensor and the epoch.
    """
    train, generator = trainer.train, stream(trainer.device, trainer.seed, "labels", trainer.step)
    x, y = train.x[index], train.y[index]
    trainer.net.eval()
    curvature = CURVATURES[estimator.curvature]
    try:
        found = estimate(trainer.net, x, y, trainer.likelihood, estimator.fisher, generator, curvature, exact=exact)
        whole = found.scaled_to(len(train)) if scaled else found
        whole = whole if loss is None else attrs.evolve(whole, loss=loss)
        laplace = laplace_of(trainer.net, whole, trainer.likelihood, trainer.precisions, trainer.noise)
        laplace.effective_parameters()  # decomposes the curvature, which may fail
        return laplace
    except NumericalError as error:
        raise NumericalError(f"{error}, after epoch {trainer.epoch}") from None


def sample(trainer: Trainer, most: int) -> torch.Tensor:
    """Return the sorted indices of `most` random training examples, or of all if they are fewer."""
    generator = stream("cpu", trainer.seed, "examples", trainer.step)
    order = torch.randperm(len(trainer.train), generator=generator)
    return order[:most].sort().values.to(trainer.train.x.device)


def loss_of(trainer: Trainer, index: torch.Tensor) -> float:
    """Return the loss of some training examples, scaled to the sum over all."""
    net, train = trainer.net, trainer.train
    loss = trainer.likelihood.loss(outputs_of(net, train.x[index]).double(), train.y[index].to(net.device))
    return float(loss) * len(train) / len(index)


def evidence_bound(trainer: Trainer, index: torch.Tensor) -> float:
    """Return the log likelihood less half the log determinant of some training examples alone, in nats per example.

    By blocks of examples, log det(I + K) is at most the sum of those of the blocks, so that in the mean over samples
    this is no more than the evidence per example but for the norm of the weights (Immer et al. 2023, "Stochastic
    marginal likelihood gradients using neural tangent kernels"). A curvature scaled from a few examples to all says too
    little of how the determinant changes: it has no more dimensions than the few.

    Args:
        trainer: the weights and their priors.
        index: of the examples.

    Raises:
        NumericalError: see `laplace_at`.
    """
    laplace = laplace_at(trainer, sketch_of(trainer), index, scaled=False)
    bound = (laplace.log_likelihood() - 0.5 * laplace.log_det.value) / laplace.examples
    return ranks.from_first(lambda: bound)


def final_laplace(trainer: Trainer) -> Laplace:
    """Return the joint Laplace approximation whose evidence a run reports, whatever estimator the search used.

    Of more than `FINAL_EXAMPLES` training examples, that many are drawn at random. In a regression all are alike, and
    the curvature is from the largest number of them that fills all `GRADIENTS` rows of a sketch: the gradients of 1,437
    would be summed in pairs, to 719 rows, which count fewer effective parameters. Where a classifier is least certain
    all columns of an example are propagated: for as many examples as double the number of columns, or bring it to the
    `GRADIENTS` that no sketch sums up. One column each makes the determinant too low, as a network that has fitted owes
    most of its curvature to a few examples.
    """
    index = sample(trainer, FINAL_EXAMPLES)
    if trainer.likelihood.has_noise:
        columns = TARGETS.fisher.number(trainer.facts.data.classes)
        filling = len(index) * columns // GRADIENTS * GRADIENTS // columns or len(index)
        return laplace_at(trainer, TARGETS, sample(trainer, filling), loss=loss_of(trainer, index))
    further = max(len(index), GRADIENTS - len(index))
    exact = min(further // max(trainer.facts.data.classes - 1, 1), len(index))
    return laplace_at(trainer, FINAL, _least_certain_first(trainer, index), exact=exact)


@torch.no_grad()
def _least_certain_first(trainer: Trainer, index: torch.Tensor) -> torch.Tensor:
    """Return the indices of examples sorted by the trace of Lambda, the Hessian of the loss in an example's outputs."""
    with evaluation_mode(trainer.net):
        outputs = outputs_of(trainer.net, trainer.train.x[index[ranks.share(len(index))]]).double()
    columns = trainer.likelihood.loss_hessian_sqrt(outputs)
    own = torch.stack([column.square().sum(1) for column in columns]).sum(0)
    traces = ranks.gathered_examples(own, ranks.shares(len(index)))
    return index[traces.argsort(descending=True, stable=True).to(index.device)]
