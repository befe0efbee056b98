"""Kronecker-factored curvature of the layers in `symdsl.nn`."""

from symdsl.curvature.estimate import Curvature, estimate
from symdsl.curvature.fisher import Exact, Fisher, MonteCarlo, Signs
from symdsl.curvature.handlers import HANDLERS, Factors, Handler, demand_handlers
from symdsl.curvature.kronecker import Kronecker, Spectrum
from symdsl.curvature.likelihood import Categorical, Gaussian, Likelihood

__all__ = [
    "HANDLERS",
    "Categorical",
    "Curvature",
    "Exact",
    "Factors",
    "Fisher",
    "Gaussian",
    "Handler",
    "Kronecker",
    "Likelihood",
    "MonteCarlo",
    "Signs",
    "Spectrum",
    "demand_handlers",
    "estimate",
]
