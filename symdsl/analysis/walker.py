"""Where a walk over the items of a network stands: the map after it, the names taken, what it found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import attrs

from symdsl.analysis.drafts import Draft
from symdsl.analysis.facts import Data, Shape
from symdsl.analysis.names import Scope, report_twice
from symdsl.diagnostics import Span
from symdsl.kinds import Kind
from symdsl.language import ast

_VISITS = "items, rounds and candidates"
_DEEPEST = 50


@attrs.frozen
class Blocks:
    """The blocks of a spec.

    Attributes:
        known: by name.
        incomplete: whether there may be others that could not be read.
        used: names of those that were asked for.
    """

    known: Mapping[str, ast.Block]
    incomplete: bool
    used: set[str] = attrs.field(factory=set)


@attrs.define
class Body:
    """The scope of item names between two braces: those of a network, or of a block in use.

    Attributes:
        path: what the names of its layers begin with.
        layers: how many it has so far.
        uses: how often it used each block so far.
    """

    path: str = ""
    layers: int = 0
    uses: Counter[str] = attrs.field(factory=Counter)


@attrs.define
class Walker:
    """The state of a walk from item to item: the current map, the names taken, the items found.

    Attributes:
        scope: what names stand for here.
        data: what the network has to fit, if that is known.
        blocks: what may be used.
        body: what shares names with the next item.
        open: names of the blocks in use here.
        depth: how many blocks, `repeat`s, `residual`s and `average`s are open here.
        drafts: those finished.
        shape: of the map after them; `None` where that is not known.
        vague: whether its channels are not known, but stand at 1.
        made: the last item that set the size of the map, lifted, projected, or flattened it.
        residual: the innermost `residual` around the next item.
        average: the innermost `average` around the next item, which reads a map that is not lifted.
        averaged: the last `average` of the network itself that is finished.
        last: the last item that was finished, `repeat`s and blocks taken for the last one in them.
        scope_of_last: where it stands; what is reported there names the uses around it.
        fixed_priors: where a candidate has a prior of its own: a kind of fixed weights that it was met with, and the
            scope; `None` once it was met with one that learns, as in another use of a block.
        doubtful: names of layers of which a candidate could not be understood.
        complete: whether no layer is missing, but for what could not be read.
        started: the `input`, or what stands for one that is missing, which is reported.
        layers: names of those begun, in order.
        names: where each was taken, by its path.
        used: how often each kind of item without a name of its own came.
        told: where a `flatten` that is too early, or a `lift` that is missing, was reported first.
    """

    scope: Scope
    data: Data | None
    blocks: Blocks
    body: Body = attrs.field(factory=Body)
    open: tuple[str, ...] = ()
    depth: int = 0
    drafts: list[Draft] = attrs.field(factory=list)
    shape: Shape | None = None
    vague: bool = False
    made: dict[str, Span] = attrs.field(factory=dict)
    residual: ast.Residual | None = None
    average: ast.Average | None = None
    averaged: ast.Average | None = None
    last: ast.Item | None = None
    scope_of_last: Scope = attrs.Factory(lambda self: self.scope, takes_self=True)
    fixed_priors: dict[Span, tuple[Kind, Scope] | None] = attrs.field(factory=dict)
    doubtful: set[str] = attrs.field(factory=set)
    complete: bool = True
    started: ast.Input | None = None
    layers: dict[str, None] = attrs.field(factory=dict)
    names: dict[str, Span] = attrs.field(factory=dict)
    used: Counter[str] = attrs.field(factory=Counter)
    told: dict[tuple[str, Span | None], Span] = attrs.field(factory=dict)

    def too_long(self, span: Span, more: int = 1) -> bool:
        """Count items, rounds and candidates; return true, and report once, when there are too many."""
        if self.scope.affords(_VISITS, span, more):
            return False
        self.lose()
        return True

    def too_deep(self, span: Span) -> bool:
        """Report nesting that is too deep; return whether one more level would be."""
        if self.depth < _DEEPEST:
            return False
        message = f"blocks, `repeat`s, `residual`s and `average`s are nested more than {_DEEPEST} deep"
        self.scope.collector.report("E105", span, message)
        self.lose()
        return True

    def note(self, what: str, words: str) -> list[tuple[Span, str]]:
        """Return notes for a diagnostic that name the item that made the map what it is."""
        return [(self.made[what], words)] if what in self.made else []

    def is_told(self, what: str | None, where: Span) -> bool:
        """Return whether an earlier place than this was told of the same too early `flatten`, or missing `lift`."""
        if what not in ("flatten", "lift") or (what == "lift" and what in self.made):
            return False
        return self.told.setdefault((what, self.made.get(what)), where) != where

    def lifting(self, item: Span) -> tuple[Span, str, int]:
        """Return what a `lift` can follow, before an item of this place, where that is in words, and its indent."""
        if self.average is not None:
            return self.average.brace, "into the `average`", self.average.span.column + 1
        if self.averaged is not None:  # which needs a plain map
            return self.averaged.span, "after the `average`", self.averaged.span.column - 1
        begun = self.started.span if self.started else item
        return begun, "after `input`", begun.column - 1

    def lose(self) -> None:
        """Continue without knowing the map or the number of layers."""
        self.shape = self.last = None
        self.complete = False

    def add(self, draft: Draft) -> None:
        """Record an item, and continue with the map that it outputs."""
        self.drafts.append(draft)
        self.shape = draft.out_shape

    def end(self, item: ast.Item) -> None:
        """Record that an item is finished, in the scope where it stands."""
        self.last, self.scope_of_last = item, self.scope

    def next_name(self, what: str) -> str:
        """Return a name for an item without one: what it does, numbered from the second on."""
        self.used[what] += 1
        return what if self.used[what] == 1 else f"{what}-{self.used[what]}"

    def begin_layer(self, word: ast.Word | None, span: Span) -> str:
        """Return the name of the next layer, including the path of blocks around it."""
        self.body.layers += 1
        own = word.text if word else f"l{self.body.layers}"
        self.claim("a layer", own, span, "" if word else "a layer without a name is named after its position: name it")
        self.layers[self.body.path + own] = None
        return self.body.path + own

    def claim(self, what: str, name: str, span: Span, help: str = "") -> bool:
        """Reserve a name in this body; return false, and report with `help`, if it is taken."""
        path = self.body.path + name
        if path not in self.names:
            self.names[path] = span
            return True
        if self.names[path] == span:
            help = "leave the name out: what a `repeat` holds is named after its position"
            self.scope.collector.report("E308", span, f"`{name}` names {what} in every round of `repeat`", help=help)
        else:
            report_twice(what, ast.Word(name, span), self.names[path], self.scope.collector, help)
        return False
