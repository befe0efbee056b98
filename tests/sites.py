"""Hypothesis strategies: maps that a layer may read, and candidates that can stand there."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from limits import placed
from oracles.groups import ELEMENTS
from symdsl.analysis.facts import Candidate, Shape, Value
from symdsl.catalog.signatures import Choice, Parameter
from symdsl.kinds import KINDS, Site

FORMS: dict[str, tuple[str, dict[str, Value]]] = {
    name if not word else f"{name} {word}": (name, {"factor": word} if word else {})
    for name in KINDS.built_in
    if KINDS[name].fixed is None
    for word in getattr(getattr(KINDS[name].signature.parameter("factor"), "type", None), "options", ("",))
}
"""Every built-in kind that learns, and every factor of those that have some."""


@st.composite
def sites(draw: st.DrawFn, largest: int = 5, form: str = "FC") -> Site:
    """A plain or lifted map, odd or even, square, oblong or a line, on which a kind can stand."""
    stride = draw(st.integers(1, min(largest, 3)))
    height = stride * draw(st.integers(1, largest // stride))
    width = draw(st.sampled_from([height, height, stride * draw(st.integers(1, min(2, largest // stride)))]))
    if draw(st.integers(0, 3)) == 0:
        height, width = 1, stride * draw(st.integers(1, largest))
    channels = draw(st.integers(1, 2))
    options = [
        Site(Shape(channels, height, width, group), Shape(2, -(-height // stride), width // stride, group))
        for group in ELEMENTS
    ]
    kind, fixed = FORMS[form]
    return draw(st.sampled_from([site for site in options if placed(kind, site, {"k": 1, **fixed}) is not None]))


@st.composite
def candidates(draw: st.DrawFn, site: Site, kernels: tuple[int, ...] = (1, 3, 5), form: str = "") -> Candidate:
    """A candidate of a kind, or of any that can stand there, with any of its words for arguments."""
    fitting = [one for one, (kind, fixed) in FORMS.items() if placed(kind, site, {"k": 1, **fixed}) is not None]
    kind, fixed = FORMS[form or draw(st.sampled_from(fitting))]
    arguments: dict[str, Value] = dict(fixed)
    for one in KINDS[kind].signature.parameters:
        value = None if one.name in fixed else draw(_value(one, kind, site, arguments, kernels))
        if value is not None:
            arguments[one.name] = value
    made = placed(kind, site, arguments)
    assert made is not None, f"{kind} with {arguments} was tried at {site}"
    return made


@st.composite
def _value(
    draw: st.DrawFn, one: Parameter, kind: str, site: Site, given: Mapping[str, Value], kernels: tuple[int, ...]
) -> Value | None:
    """A value that an argument can have at a site; nothing for its default."""
    options = {"k": kernels}.get(one.name, one.type.options if isinstance(one.type, Choice) else ())
    fitting = [value for value in options if placed(kind, site, {"k": 1, **given, one.name: value}) is not None]
    return draw(st.sampled_from(fitting or [1])) if one.name == "k" or fitting else None
