"""Candidates and layers between the passes: shapes are known, priors are not."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from symdsl.analysis.facts import Average, Flatten, Input, Join, Lift, Mean, Pool, Prior, Project, Shape, Value
from symdsl.diagnostics import Span
from symdsl.kinds import Kind, Site, label


@attrs.frozen
class CandidateDraft:
    """A candidate whose shapes are known and whose priors are not.

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
    """A layer whose shapes are known and whose priors are not; fields as in `facts.Layer`."""

    name: str
    in_shape: Shape
    out_shape: Shape
    stride: int
    candidates: tuple[CandidateDraft, ...]
    activations: tuple[str, ...]
    span: Span

    @property
    def site(self) -> Site:
        """The shapes that the layer's candidates read and write."""
        return Site(self.in_shape, self.out_shape)

    def label(self, candidate: CandidateDraft) -> str:
        """Return the kind of a candidate with its arguments, as a spec would write it."""
        return label(candidate.kind, candidate.arguments, self.site)

    @property
    def candidate_names(self) -> tuple[str, ...]:
        """A unique name for each candidate: its kind, with arguments or a number where several share it.

        A name has no dot, which separates it from that of a layer and of a tensor.
        """
        kinds = [candidate.kind.name for candidate in self.candidates]
        labels = [self.label(one) for one in self.candidates]
        names = [
            label if kinds.count(kind) > 1 and "." not in label else kind
            for kind, label in zip(kinds, labels, strict=True)
        ]
        before = [names[:index].count(name) for index, name in enumerate(names)]
        return tuple(f"{name} #{count + 1}" if count else name for name, count in zip(names, before, strict=True))


Draft: TypeAlias = Input | Lift | LayerDraft | Join | Average | Mean | Project | Pool | Flatten


@attrs.frozen
class Walk:
    """The items of a network with their shapes.

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
