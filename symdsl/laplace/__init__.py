"""The Laplace approximation to the evidence, and the updates of the prior that maximise it."""

from symdsl.laplace.posterior import Laplace, fit
from symdsl.laplace.priors import AdamUpdate, MackayUpdate, PriorUpdate

__all__ = ["AdamUpdate", "Laplace", "MackayUpdate", "PriorUpdate", "fit"]
