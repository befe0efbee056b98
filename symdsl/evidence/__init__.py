"""The evidence of a network: its curvature, Laplace's approximation, and the updates of the prior that climb it."""

from symdsl.evidence.backward import GGN, Estimate, LogDet, estimate
from symdsl.evidence.extrapolated import ExtrapolatedSketch
from symdsl.evidence.joint import JointSketch
from symdsl.evidence.kfac import Factor, Kronecker, KroneckerFactors
from symdsl.evidence.laplace import CURVATURES, Laplace, fit, laplace_of
from symdsl.evidence.loss import (
    Categorical,
    Exact,
    Expected,
    Fisher,
    Gaussian,
    Likelihood,
    MonteCarlo,
    Rademacher,
    fisher_of,
)
from symdsl.evidence.prior_updates import mackay_step
from symdsl.evidence.variational import Bound, WeightPosterior, normal_pairs
from symdsl.evidence.weight_use import WeightUse, check_weight_uses

__all__ = [
    "CURVATURES",
    "GGN",
    "Bound",
    "Categorical",
    "Estimate",
    "Exact",
    "Expected",
    "ExtrapolatedSketch",
    "Factor",
    "Fisher",
    "Gaussian",
    "JointSketch",
    "Kronecker",
    "KroneckerFactors",
    "Laplace",
    "Likelihood",
    "LogDet",
    "MonteCarlo",
    "Rademacher",
    "WeightPosterior",
    "WeightUse",
    "check_weight_uses",
    "estimate",
    "fisher_of",
    "fit",
    "laplace_of",
    "mackay_step",
    "normal_pairs",
]
