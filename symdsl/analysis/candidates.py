"""Candidates: what a layer lists, each with its arguments, and whether its kind can stand at the layer's site."""

from __future__ import annotations

from typing import cast

import attrs

from symdsl.analysis.drafts import CandidateDraft
from symdsl.analysis.expressions import evaluate
from symdsl.analysis.facts import Value
from symdsl.analysis.names import unknown
from symdsl.analysis.priors import evaluate_prior
from symdsl.analysis.types import bind
from symdsl.analysis.values import Applied, Located, describe
from symdsl.analysis.walker import Walker
from symdsl.diagnostics import Fix, Span
from symdsl.kinds import KINDS, Site, call_signature, completed
from symdsl.language import ast

_MOST_CANDIDATES = 100
_CAUSES = {"size": "sets the size of the map", "lift": "lifted here", "flatten": "flattened here"}
"""Remarks on the earlier item that a refusal follows from."""


def candidates_of(node: ast.Layer, walker: Walker) -> list[CandidateDraft | None]:
    """Return the candidates of a layer, lists flattened; `None` stands for a wrong one, which is reported."""
    found: list[CandidateDraft | None] = []
    for candidate in node.candidates:
        found += _candidates(candidate, walker)
        if len(found) > _MOST_CANDIDATES:
            message = f"a layer has at most {_MOST_CANDIDATES} candidates"
            walker.scope.collector.report("E405", candidate.span, message)
            return [None]
    return found


def _candidates(node: ast.Candidate, walker: Walker) -> list[CandidateDraft | None]:
    prior = None if node.prior is None else evaluate_prior(node.prior, walker.scope)
    value = evaluate(node.kind, walker.scope)
    if value is None:
        return [None]
    if isinstance(value.value, tuple):
        if walker.too_long(value.span, len(value.value)):
            return [None]
        drafts = [_candidate(one, walker) for one in value.value]
        if not drafts:
            walker.scope.collector.report(
                "E403", value.span, "a layer needs at least one candidate, found an empty list"
            )
    else:
        drafts = [_candidate(value, walker)]
    kinds = [one.kind for one in drafts if one is not None]
    if node.prior is not None and kinds:
        learns = any(kind.fixed is None for kind in kinds)
        known = walker.fixed_priors.setdefault(node.prior.span, (kinds[0], walker.scope))
        walker.fixed_priors[node.prior.span] = None if learns else known
    return [None if one is None else attrs.evolve(one, prior=prior) for one in drafts]


def _candidate(value: Located, walker: Walker) -> CandidateDraft | None:
    applied = value.value
    if not isinstance(applied, Applied):
        message = f"a candidate must be a kind, found {describe(applied)}"
        walker.scope.collector.report("E401", value.span, message, notes=value.notes)
        return None
    if applied.name not in KINDS:
        called = bool(applied.arguments) or "-" in applied.name
        if called or not walker.scope.excuses(applied.name, KINDS):
            also = () if "-" in applied.name else walker.scope.names
            unknown("E302", "kind", applied.name, applied.name_span, KINDS, walker.scope.collector, also=also)
        return None
    kind = KINDS[applied.name]
    bound = bind(call_signature(kind), applied.arguments, value.span, walker.scope)
    if bound is None:
        return None
    scale = cast("float | None", bound.pop("init_scale", None))
    return CandidateDraft(kind, cast("dict[str, Value]", bound), scale, None, value.span)


def placed(draft: CandidateDraft, layer: str, site: Site, title: Span, walker: Walker) -> CandidateDraft | None:
    """Return a candidate with its shapes at its site; `None` where its kind cannot be used there, which is reported."""
    refusal = draft.kind.refusal(site, draft.arguments)
    if refusal is None:
        return attrs.evolve(draft, arguments=completed(draft.kind, draft.arguments, site))
    if walker.is_told("lift" if refusal.lift else refusal.cause, title):
        return None
    notes = walker.note(refusal.cause, _CAUSES[refusal.cause]) if refusal.cause else []
    help, fix = refusal.help, None
    if refusal.lift and "project" in walker.made:
        notes += walker.note("project", "projected here")
        help = "move the layer before `project`, or drop this candidate"
    elif refusal.lift:
        begun, where, indent = walker.lifting(draft.span)
        line = f" on line {begun.line}" if begun.source == draft.span.source else ""
        help = help.replace("{place}", f"{where}{line}")
        fix = Fix(f"add `lift {refusal.lift}`", begun.end, f"\n{' ' * indent}lift {refusal.lift}")
    if draft.span.line != title.line or draft.span.source != title.source:
        notes.insert(0, (title, f"`{layer}` reads {site.reads}"))
    message = f"`{draft.kind.name}` {refusal.message.replace('{layer}', layer)}"
    walker.scope.collector.report(
        refusal.code, draft.span, message, label=refusal.label, help=help, notes=notes, fix=fix
    )
    return None
