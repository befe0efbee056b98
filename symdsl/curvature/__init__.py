"""Curvature of the layers in `symdsl.nn`."""

from symdsl.curvature.estimate import Curvature, estimate
from symdsl.curvature.fisher import Exact, Fisher, MonteCarlo, Signs
from symdsl.curvature.handlers import HANDLERS, Factors, Handler, demand_handlers, demand_rows
from symdsl.curvature.joint import Joint
from symdsl.curvature.kronecker import Blocks, Kronecker, Spectrum
from symdsl.curvature.likelihood import Categorical, Gaussian, Likelihood
from symdsl.curvature.project import Projection, project

__all__ = [
    "HANDLERS",
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
    "Likelihood",
    "MonteCarlo",
    "Projection",
    "Signs",
    "Spectrum",
    "demand_handlers",
    "demand_rows",
    "estimate",
    "project",
]
