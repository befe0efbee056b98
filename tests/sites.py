"""Hypothesis strategies: maps that a layer may read, and candidates that can stand there."""

from __future__ import annotations

from hypothesis import assume
from hypothesis import strategies as st

from limits import placed
from oracles.groups import ELEMENTS
from symdsl.analysis.facts import Candidate, Shape, Value
from symdsl.analysis.kinds import KINDS, Site
from symdsl.catalog.signatures import Choice


@st.composite
def sites(draw: st.DrawFn, largest: int = 5) -> Site:
    """A plain or lifted map, odd or even, square or not, read with some stride, at most `largest` pixels high."""
    group, stride = draw(st.sampled_from(sorted(ELEMENTS))), draw(st.integers(1, min(largest, 3)))
    height = stride * draw(st.integers(1, largest // stride))
    width = draw(st.sampled_from([height, height, stride * draw(st.integers(1, min(2, largest // stride)))]))
    reads = Shape(draw(st.integers(1, 2)), height, width, group)
    return Site(reads, Shape(2, height // stride, width // stride, group))


@st.composite
def candidates(draw: st.DrawFn, site: Site, kernels: tuple[int, ...] = (1, 3, 5)) -> Candidate:
    """A candidate of any built-in kind, with any of its words for arguments."""
    kind = KINDS[draw(st.sampled_from(sorted(KINDS.built_in)))]
    arguments: dict[str, Value] = {}
    for one in kind.signature.parameters:
        if one.name == "k":
            arguments["k"] = draw(st.sampled_from(kernels))
        elif isinstance(one.type, Choice):
            arguments[one.name] = draw(st.sampled_from(one.type.options))
    made = placed(kind.name, site, arguments)
    assume(made is not None)
    assert made is not None, "assumed"
    return made
