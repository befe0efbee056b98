"""The `search` block: from its settings to a `Search` record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from symdsl.analysis.expressions import evaluate
from symdsl.analysis.facts import Curvature, Fisher, Invariance, Mackay, Objective, Optimizer, Search
from symdsl.analysis.names import Scope, replaced, unique, unknown
from symdsl.analysis.types import Bound, bind
from symdsl.analysis.values import Given
from symdsl.catalog.searches import SEARCH, setting_with
from symdsl.diagnostics import Span
from symdsl.language import ast


def analyse_search(settings: Sequence[ast.Setting], span: Span, scope: Scope) -> Search | None:
    """Return the search settings with defaults filled in, or nothing if one is wrong, which is reported."""
    known = [one for one in settings if _known(one, scope)]
    single = unique(known, "a key of `search`", scope.collector)
    given = [Given(one.name, evaluate(one.value, scope), one.span) for one in single.values()]
    bound: dict[str, Any] | None = bind(SEARCH, given, span, scope)
    if bound is None or len(given) < len(settings):
        return None
    special = {
        "objective": _objective(cast(Bound, bound["objective"])),
        "start": bound.get("start"),
        "every": bound.get("every"),
        "optimizer": Optimizer("adam", **_arguments(bound["optimizer"])),
        "invariance": _invariance(bound.get("invariance")),
        "prior_optimizer": Mackay(**_arguments(bound["prior_optimizer"])),
    }
    return Search(**{**bound, **special})


def _known(setting: ast.Setting, scope: Scope) -> bool:
    word, span = setting.name.text, setting.name.span
    if SEARCH.parameter(word) is not None:
        return True
    if found := setting_with(word):
        message, help = f"unknown key `{word}` of `search`", f"write `{' = '.join(found)}`"
        scope.collector.report("E303", span, message, help=help)
    elif not replaced("a key of `search`", word, span, SEARCH.replaced, scope.collector):
        unknown("E303", "key", word, span, SEARCH.names, scope.collector, " of `search`")
    return False


def _invariance(bound: Bound | None) -> Invariance | None:
    if bound is None:
        return None
    arguments = _arguments(bound)
    group = arguments["group"]
    numbers = ", ".join(map(str, group.arguments.values()))
    return Invariance(f"{group.name}({numbers})" if numbers else group.name, arguments["weight"])


def _arguments(bound: Bound) -> dict[str, Any]:
    return dict(bound.arguments)


def _objective(bound: Bound) -> Objective:
    arguments = _arguments(bound)
    if bound.name == "elbo":
        return Objective(None, Fisher("exact"), "elbo")
    approximation, fisher = arguments.get("approximation"), arguments["fisher"]
    curvature = None
    if approximation is not None:
        curvature = cast(Curvature, "-".join((approximation.name, *_arguments(approximation).values())))
    return Objective(curvature, Fisher(fisher.name, fisher.arguments.get("samples", 0)))
