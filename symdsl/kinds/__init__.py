"""The kinds, one folder for each family: what it is called with, its tensors, its path, its curvature, its page."""

from __future__ import annotations

from symdsl.catalog.signatures import Parameter, Real, Signature, Value
from symdsl.kinds.convolution import CONV
from symdsl.kinds.convolution.signature import K, kernel_limit
from symdsl.kinds.dense import FACTORED, FACTORED_GROUP, FC
from symdsl.kinds.features import RFF
from symdsl.kinds.group import GCONV
from symdsl.kinds.record import TRANSLATIONS, Arguments, Kind, Refusal, Site, Tensor
from symdsl.kinds.sparse import SPARSE, SPARSE_CONV, SPARSE_GROUP, SPARSE_GROUP_CONV
from symdsl.kinds.table import ENTRY_POINT, KindTable

__all__ = [
    "CONV",
    "ENTRY_POINT",
    "INIT_SCALE",
    "KINDS",
    "TRANSLATIONS",
    "Arguments",
    "K",
    "Kind",
    "KindTable",
    "Refusal",
    "Site",
    "Tensor",
    "call_signature",
    "completed",
    "kernel_limit",
    "label",
    "not_implied",
]

_BUILT_IN = (FC, CONV, FACTORED, GCONV, SPARSE, SPARSE_CONV, FACTORED_GROUP, SPARSE_GROUP, SPARSE_GROUP_CONV, RFF)

KINDS = KindTable(_BUILT_IN)
"""Every kind by name, those of installed packages included."""

INIT_SCALE = Parameter(
    "init_scale",
    Real(0, 1e3, above=True),
    None,
    "factor on the standard deviation of the initial weights",
    by_name=True,
)
"""An argument of every kind."""


def call_signature(kind: Kind) -> Signature:
    """Return all arguments that a kind can be given in a spec."""
    return Signature(kind.name, (*kind.signature.parameters, INIT_SCALE))


def completed(kind: Kind, arguments: Arguments, site: Site) -> dict[str, Value]:
    """Return arguments with those filled in that follow from the site."""
    # Twice: first for the order of the keys, last because what is given beats what follows from the site.
    return {**arguments, **_implied(kind, site), **arguments}


def _implied(kind: Kind, site: Site) -> dict[str, Value]:
    return {} if kind.signature.parameter("group") is None else {"group": site.reads.group}


def not_implied(kind: Kind, arguments: Arguments, site: Site) -> dict[str, Value]:
    """Return the arguments that differ from what they are at a site where they are left out."""
    implied = {one.name: one.default for one in kind.signature.parameters} | _implied(kind, site)
    return {name: value for name, value in arguments.items() if name not in implied or value != implied[name]}


def label(kind: Kind, arguments: Arguments, site: Site) -> str:
    """Return the kind with the arguments that differ from their defaults at a site, as a spec would write it."""
    left, first = not_implied(kind, arguments, site), kind.signature.names[:1]
    written = {one.name: one.words(left[one.name]) for one in kind.signature.parameters if one.name in left}
    parts = [text if name == K.name and name in first else f"{name} = {text}" for name, text in written.items()]
    return f"{kind.name}({', '.join(parts)})" if parts else kind.name
