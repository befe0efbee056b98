"""Candidates and layers between the passes: shapes are known, priors are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import attrs

from symdsl.analysis.facts import Average, Flatten, Input, Join, Lift, Mean, Pool, Prior, Project, Shape, Value
from symdsl.diagnostics import Span
from symdsl.kinds import Kind, Site, label


@attrs.frozen
class CandidateDraft:
    """A candidate without its priors.

    Attributes:
        kind: from the table.
        arguments: all of them, `init_scale` aside.
        init_scale: as given, if it is.
        prior: as written at the candidate, if it is.
        span: where the spec names it.
    """

    kind: Kind
    arguments: dict[str, Value]
    init_scale: float | None
    prior: Prior | None
    span: Span


@attrs.frozen
class LayerDraft:
    """A layer without priors; `name` and shapes as in `facts.Layer`."""

    name: str
    in_shape: Shape
    out_shape: Shape
    stride: int
    candidates: tuple[CandidateDraft, ...]
    activations: tuple[str, ...]
    span: Span

    @property
    def site(self) -> Site:
        """What its candidates read and write."""
        return Site(self.in_shape, self.out_shape)

    def label(self, candidate: CandidateDraft) -> str:
        """The kind of one of its candidates with its arguments."""
        return label(candidate.kind, candidate.arguments, self.site)

    @property
    def candidate_names(self) -> tuple[str, ...]:
        """One name a candidate: the kind; with arguments where the layer has the kind twice; numbered if need be."""
        kinds = [candidate.kind.name for candidate in self.candidates]
        names = [self.label(one) if kinds.count(one.kind.name) > 1 else one.kind.name for one in self.candidates]
        return tuple(_numbered(names, index) for index in range(len(names)))


def _numbered(names: Sequence[str], index: int) -> str:
    before = names[:index].count(names[index])
    return f"{names[index]} #{before + 1}" if before else names[index]


Draft: TypeAlias = Input | Lift | LayerDraft | Join | Average | Mean | Project | Pool | Flatten


@attrs.frozen
class Walk:
    """The items of a network with shapes.

    Attributes:
        drafts: the items. Where one was wrong, which is reported, it is missing, and so are those after it whose
            shape follows from it.
        layers: names of all layers, also of those that are missing.
        doubtful: names of layers of which a candidate, or all, could not be understood.
        complete: whether `layers` has all layers, but for what could not be read.
    """

    drafts: tuple[Draft, ...] = ()
    layers: tuple[str, ...] = ()
    doubtful: frozenset[str] = frozenset()
    complete: bool = False
