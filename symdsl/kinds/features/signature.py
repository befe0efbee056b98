"""The signature of RFF."""

from __future__ import annotations

from symdsl.catalog.signatures import Parameter, Real
from symdsl.kinds.record import Arguments, Site, Tensor

LENGTHSCALE = Parameter(
    "lengthscale",
    Real(0, 1e6, above=True),
    1.0,
    "root mean square difference of two inputs at which their similarity has fallen to exp(-1/2)",
)


def no_tensors(site: Site, arguments: Arguments) -> tuple[Tensor, ...]:
    """Return nothing: no weight is learned."""
    return ()


def second_moment(site: Site) -> float:
    """Return the second moment of a feature: the squares of all of them sum up to one in the mean over phases."""
    return 1 / site.writes.size
