"""The evidence of a network: its curvature, Laplace's approximation, and the updates of the prior that climb it."""

from symdsl.evidence.estimate import Curvature, estimate
from symdsl.evidence.joint import Joint
from symdsl.evidence.kfac import Blocks, Kronecker, Spectrum
from symdsl.evidence.laplace import Laplace, fit
from symdsl.evidence.loss import Categorical, Exact, Fisher, Gaussian, Likelihood, MonteCarlo, Signs
from symdsl.evidence.prior_updates import AdamUpdate, MackayUpdate, PriorUpdate
from symdsl.evidence.project import Projection, project
from symdsl.evidence.weight_use import Factors, Handler, demand_handlers, demand_rows

__all__ = [
    "AdamUpdate",
    "Blocks",
    "Categorical",
    "Curvature",
    "Exact",
    "Factors",
    "Fisher",
    "Gaussian",
    "Handler",
    "Joint",
    "Kronecker",
    "Laplace",
    "Likelihood",
    "MackayUpdate",
    "MonteCarlo",
    "PriorUpdate",
    "Projection",
    "Signs",
    "Spectrum",
    "demand_handlers",
    "demand_rows",
    "estimate",
    "fit",
    "project",
]
