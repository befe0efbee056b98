"""The words of networks: activations, reductions, inputs and transformations."""

from __future__ import annotations

from symdsl.catalog.signatures import Parameter, Real, Signature, Switch, Whole

ACTIVATIONS = ("relu", "gelu", "tanh", "sigmoid", "silu", "elu", "leaky_relu", "softplus", "identity")
"""Activations after `|>`; all act on every number by itself."""

AWAY_FROM_ZERO = frozenset({"sigmoid", "softplus"})
"""Activations that are not 0 at 0."""

REDUCTIONS = ("max", "mean")
"""How `project` and `pool` reduce."""

IMAGE = Signature(
    "image",
    (
        Parameter("channels", Whole(), about="channels of an example"),
        Parameter("height", Whole(), about="rows"),
        Parameter("width", Whole(), about="columns"),
    ),
    "an image, in the shape that the data deliver",
)
"""An image that a network reads."""

SIGNAL = Signature(
    "signal",
    (
        Parameter("channels", Whole(), about="channels of an example"),
        Parameter("length", Whole(2), about="columns of its one row"),
    ),
    "a signal in time, or any other line: a map of one row",
)
"""A line that a network reads."""

INPUTS = {one.name: one for one in (IMAGE, SIGNAL)}
"""The inputs that a network may have, by name."""

GENERATORS = (
    Parameter("translate_x", Real(0, 0.5), None, "furthest move along a row, as a fraction of its length"),
    Parameter("translate_y", Real(0, 0.5), None, "furthest move along a column, as a fraction of its length"),
    Parameter("rotation", Real(0, 180), None, "largest angle, in degrees"),
    Parameter("scale_x", Real(0, 2), None, "largest logarithm of the factor along a row"),
    Parameter("scale_y", Real(0, 2), None, "largest logarithm of the factor along a column"),
    Parameter(
        "shear", Real(0, 2), None, "largest logarithm of the factor along one diagonal, and of 1/factor along the other"
    ),
)
"""The one-parameter groups that generate the affine group, each with the bounds of its range."""

LARGEST = {one.name: one.type.maximum for one in GENERATORS if isinstance(one.type, Real)}
"""The upper bound of the range of each."""

AFFINE = Signature(
    "affine",
    (
        *GENERATORS,
        Parameter("samples", Whole(1, 4096), 31, "transformed copies of each example"),
        Parameter("fixed", Switch(), False, "whether the search must leave the ranges as they are"),
    ),
    "affine transformations, each part drawn evenly between minus and plus its range; parts that are not named stay 0",
)
"""The transformations that `average` may integrate over."""

TRANSFORMATIONS = {AFFINE.name: AFFINE}
"""Every set of transformations that `average` takes."""

_LEAST_PRECISION, _LARGEST_PRECISION = 6.2e-6, 6.5e7

PRECISION = Real(_LEAST_PRECISION, _LARGEST_PRECISION)

NORMAL = Signature(
    "normal",
    (
        Parameter("precision", PRECISION, None, "one over the variance"),
        Parameter("variance", Real(1 / _LARGEST_PRECISION, 1 / _LEAST_PRECISION), None, "of each weight"),
        Parameter("std", Real(_LARGEST_PRECISION**-0.5, _LEAST_PRECISION**-0.5), None, "standard deviation"),
        Parameter("fixed", Switch(), False, "whether the search must leave it as it is"),
    ),
    "a Gaussian prior around 0: exactly one of precision, variance and std",
)
"""A prior. The bounds are those within which a search keeps every precision: e^-12 to e^18."""
