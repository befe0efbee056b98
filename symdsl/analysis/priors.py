"""Priors: what `normal(...)` means, and which rule reaches which parameter tensor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import cast

import attrs

from symdsl.analysis.drafts import CandidateDraft, LayerDraft, Walk
from symdsl.analysis.expressions import evaluate, given
from symdsl.analysis.facts import Prior
from symdsl.analysis.names import Scope, unknown
from symdsl.analysis.types import bind
from symdsl.analysis.values import Applied, Given, describe, is_number
from symdsl.catalog.networks import NORMAL
from symdsl.diagnostics import NOWHERE, Collector, Span, listing
from symdsl.kinds import KINDS, Arguments, Kind, Tensor, completed, label
from symdsl.language import ast

BIAS = "bias"
_PAIRS = "priors for layers"
DEFAULT = Prior(precision=1.0, learned=True)
UNIT = Prior(precision=1.0, learned=False)

_MEANS = {"mean", "mu", "loc"}

_TO_PRECISION = {
    "precision": lambda value: value,
    "variance": lambda value: 1 / value,
    "std": lambda value: value**-2,
}


def evaluate_prior(node: ast.Call, scope: Scope) -> Prior | None:
    """Return the prior written after `~`, or nothing if it is wrong, which is reported."""
    found = evaluate(node, scope)
    if found is None:
        return None
    if not isinstance(found.value, Applied):
        scope.collector.report("E401", found.span, f"a prior must be `normal(...)`, found {describe(found.value)}")
        return None
    if found.value.name != NORMAL.name:
        unknown("E406", "prior", found.value.name, found.value.name_span, [NORMAL.name], scope.collector)
        return None
    if (mean := _mean(found.value.arguments)) is not None:
        help = f"leave it out: there are {listing(_TO_PRECISION)}"
        scope.collector.report("E503", mean, "a prior has no mean: it is around 0", help=help)
        return None
    bound = bind(NORMAL, found.value.arguments, found.span, scope)
    if bound is None:
        return None
    names = [name for name in _TO_PRECISION if name in bound]
    if len(names) != 1:
        listed = listing(names) if names else "none of them"
        message = f"a prior takes exactly one of {listing(_TO_PRECISION)}, found {listed}"
        scope.collector.report("E503", found.span, message)
        return None
    value = cast(float, bound[names[0]])
    return Prior(_TO_PRECISION[names[0]](value), learned=not bound["fixed"], stated=True)


def _mean(arguments: Sequence[Given]) -> Span | None:
    """Where a prior's mean stands, by its name or as the first of two numbers, as in other languages."""
    named = [one.span for one in arguments if one.name is not None and one.name.text in _MEANS]
    placed = [
        one.span for one in arguments if one.name is None and one.value is not None and is_number(one.value.value)
    ]
    return named[0] if named else placed[0] if len(placed) > 1 else None


@attrs.frozen
class Reach:
    """A prior rule with its evaluated prior and the kind's arguments that it selects by."""

    rule: ast.Rule
    prior: Prior
    asked: Arguments | None

    @property
    def names_tensor(self) -> bool:
        """Whether the rule selects single tensors of a candidate."""
        return len(self.rule.selector) == 3 and self.rule.selector[2].text != "*"

    def specificity(self) -> tuple[int, int]:
        """Return how specific the selector is; the most specific rule wins.

        First over all parts: 0 for `*`, 1 with a `*` in it, 2 for a name, 3 with arguments. Then, between
        paths, the steps that have no `*`: `stage/last/*` goes before `stage/*`.
        """
        path = self.rule.selector[0].text
        steps = path.split("/") if "/" in path else []
        return sum(_specificity(part) for part in self.rule.selector), sum("*" not in step for step in steps)

    def hits(self, layer: LayerDraft, candidate: str, arguments: Arguments, tensor: str) -> bool:
        """Return whether the rule selects this tensor."""
        patterns = self.rule.selector
        names = (layer.name, candidate, tensor)[: len(patterns)]
        fits = all(matches(pattern.text, name) for pattern, name in zip(patterns, names, strict=True))
        return fits and self.asks(layer, candidate, arguments)

    def asks(self, layer: LayerDraft, candidate: str, arguments: Arguments) -> bool:
        """Return whether the rule's arguments, if any, match those of a candidate."""
        return self.asked is None or completed(KINDS[candidate], self.asked, layer.site) == arguments


def matches(pattern: str, name: str) -> bool:
    """Return whether a name fits a pattern in which `*` stands for any letters."""
    return fnmatchcase(name, pattern.replace("[", "[[]").replace("?", "[?]"))


def _specificity(part: ast.Pattern) -> int:
    if part.arguments is not None:
        return 3
    if part.text == "*":
        return 0
    return 1 if "*" in part.text else 2


@attrs.define
class Rules:
    """The rules of all prior blocks.

    Attributes:
        scope: where they stand.
        reaches: one for each rule, in order.
        hit: indices of the rules that have selected a tensor.
    """

    scope: Scope
    reaches: Sequence[Reach]
    hit: set[int] = attrs.field(factory=set)
    _named: dict[str, list[int]] = attrs.field(factory=dict)
    _wild: list[int] = attrs.field(factory=list)
    _of_layer: tuple[str, list[int]] = ("", [])

    def __attrs_post_init__(self) -> None:
        """Sort the rules: those of one layer are looked up, only those with a `*` are tried on every layer."""
        for index, reach in enumerate(self.reaches):
            name = reach.rule.selector[0].text
            (self._wild if "*" in name else self._named.setdefault(name, [])).append(index)

    def of(self, layer: LayerDraft, candidate: CandidateDraft, tensor: Tensor) -> Prior:
        """Return the prior of a candidate's tensor; a tensor held at N(0, 1) follows only rules that name it."""
        found = self._best(layer, candidate.kind.name, candidate.arguments, tensor.name, named=tensor.unit_prior)
        if tensor.unit_prior:
            return found or UNIT
        return candidate.prior or found or DEFAULT

    def of_bias(self, layer: LayerDraft) -> Prior | None:
        """Return the prior of a layer's bias; a layer of a fixed kind has none."""
        if any(one.kind.fixed for one in layer.candidates):
            return None
        return self._best(layer, BIAS, {}, tensor="") or DEFAULT  # a single tensor without a name

    def report_idle(self, walked: Walk) -> None:
        """Report rules that select no tensor, unless they may once the network's errors are fixed."""
        for index, reach in enumerate(self.reaches):
            if index in self.hit:
                continue
            if not self.scope.affords(_PAIRS, reach.rule.place, len(walked.layers)):
                return
            self._report_idle(reach, walked)

    def _best(
        self, layer: LayerDraft, candidate: str, arguments: Arguments, tensor: str, named: bool = False
    ) -> Prior | None:
        """The prior of the rule that says most, if one is about the tensor; if `named`, of those that name it."""
        about = self._about(layer.name)
        hits = [index for index in about if self.reaches[index].hits(layer, candidate, arguments, tensor)]
        self.hit.update(hits)
        if named:
            hits = [index for index in hits if self.reaches[index].names_tensor]
        if not hits:
            return None
        highest = max(self.reaches[index].specificity() for index in hits)
        first, *others = [self.reaches[index] for index in hits if self.reaches[index].specificity() == highest]
        path = f"{layer.name}.{candidate}" if candidate == BIAS else f"{layer.name}.{candidate}.{tensor}"
        for other in others:
            self.scope.collector.report(
                "E502",
                other.rule.place,
                f"two priors reach `{path}` equally well",
                label="this one",
                help=f"write one for `{path}`, or make one of the two more specific",
                notes=[(first.rule.place, "and this one")],
            )
        return first.prior

    def _about(self, layer: str) -> list[int]:
        """Indices of the rules about a layer; kept, since all tensors of a layer are asked for in turn."""
        if self._of_layer[0] != layer:
            wild = self._wild if self.scope.affords(_PAIRS, self._place, len(self._wild)) else []
            found = [index for index in wild if matches(self.reaches[index].rule.selector[0].text, layer)]
            self._of_layer = (layer, sorted([*found, *self._named.get(layer, [])]))
        return self._of_layer[1]

    @property
    def _place(self) -> Span:
        return self.reaches[self._wild[0]].rule.place if self._wild else NOWHERE

    def _report_idle(self, reach: Reach, walked: Walk) -> None:
        layer, kind, *tensor = reach.rule.selector
        meant = [name for name in walked.layers if matches(layer.text, name)]
        if not meant:
            if walked.complete:
                self._report_unmatched("layer", layer, walked.layers)
            return
        if not walked.complete or not walked.doubtful.isdisjoint(meant):
            return
        drafts = [one for one in walked.drafts if isinstance(one, LayerDraft) and one.name in meant]
        candidates = [one for draft in drafts for one in draft.candidates]
        fitting = [(draft, one) for draft in drafts for one in draft.candidates if matches(kind.text, one.kind.name)]
        named = [one for _, one in fitting] or candidates
        if named and all(one.kind.fixed is not None for one in named):
            report_fixed(named[0].kind, kind.span, self.scope.collector)
        elif tensor and matches(kind.text, BIAS):
            help = f"write `{layer.text}.{kind.text}`"
            self.scope.collector.report("E501", tensor[0].span, "a bias is a single tensor without a name", help=help)
        elif not fitting:
            self._report_unmatched("candidate", kind, [*(one.kind.name for one in candidates), BIAS])
        elif reach.asked is not None and not any(
            reach.asks(draft, one.kind.name, one.arguments) for draft, one in fitting
        ):
            draft, one = fitting[0]
            asked = label(one.kind, completed(one.kind, reach.asked, draft.site), draft.site)
            self._report_unmatched("candidate", kind, [draft.label(one) for draft, one in fitting], asked)
        else:
            tensors = [one.name for draft, found in fitting for one in found.kind.tensors(draft.site, found.arguments)]
            self._report_unmatched("tensor", tensor[0], tensors)

    def _report_unmatched(self, what: str, part: ast.Pattern, known: Iterable[str], name: str = "") -> None:
        nothing = ": this prior matches nothing"
        unknown("E501", what, name or part.text, part.span, known, self.scope.collector, nothing)


def report_fixed(kind: Kind, span: Span, collector: Collector) -> None:
    """Report a prior of a kind with fixed weights."""
    message = f"the weights of `{kind.name}` are fixed: this prior matches nothing"
    collector.report("E501", span, message, help="drop it")


def read_rules(rules: Iterable[ast.Rule], scope: Scope) -> Rules:
    """Evaluate all prior rules; wrong ones are reported and left out."""
    reaches = [_reach(rule, scope) for rule in rules]
    return Rules(scope, [reach for reach in reaches if reach is not None])


def _reach(rule: ast.Rule, scope: Scope) -> Reach | None:
    prior = evaluate_prior(rule.prior, scope)
    misplaced = [part for part in rule.selector if part.arguments is not None and part is not rule.selector[1]]
    for part in misplaced:
        scope.collector.report("E403", part.span, "only the kind in the middle of a selector takes arguments")
    asked = rule.selector[1]
    if asked.arguments is None:
        return None if prior is None or misplaced else Reach(rule, prior, None)
    if asked.text not in KINDS:
        unknown("E302", "kind", asked.text, asked.span, KINDS, scope.collector)
        return None
    wanted = bind(KINDS[asked.text].signature, given(asked.arguments, scope), asked.span, scope)
    if prior is None or wanted is None or misplaced:
        return None
    return Reach(rule, prior, cast("Arguments", wanted))
