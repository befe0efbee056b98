"""Predictions with the uncertainty of the weights, by the Laplace approximation of the last layer."""

from symdsl.predictive.posterior import Posterior, Predicted, fit, fit_last_layer, last_layer
from symdsl.predictive.stored import posterior_bytes, read_posterior

__all__ = ["Posterior", "Predicted", "fit", "fit_last_layer", "last_layer", "posterior_bytes", "read_posterior"]
