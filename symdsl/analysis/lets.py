"""Every `let` of a spec: evaluated in the order of need, and checked even where nothing asks for it."""

from __future__ import annotations

from symdsl.analysis.dependencies import names_in, order
from symdsl.analysis.expressions import FUNCTIONS
from symdsl.analysis.names import Scope, unknown
from symdsl.analysis.values import Applied, Located
from symdsl.analysis.words import is_word, words
from symdsl.language import ast


def settle_lets(scope: Scope, data: ast.Data | None) -> None:
    """Evaluate every `let` after those it depends on; report circular ones."""
    of_data = [] if data is None else names_in(data.steps)
    needs = {name: names_in(let.value) for name, let in scope.lets.items()}
    for called in needs.values():
        called += [name for name in of_data if not scope.builtins.keys().isdisjoint(called)]
    settled = order(needs)
    for name in sorted(settled.circles):
        scope.refuse(name, settled.circles[name])
    for name in settled.names:
        scope.let(ast.Word(name, scope.lets[name].name.span))


def check_unused_lets(scope: Scope) -> None:
    """Report undefined names in `let`s that nothing uses."""
    for name, let in scope.lets.items():
        if name in scope.used:
            continue
        value = scope.let(ast.Word(name, let.name.span))
        if value is not None:
            _check_words(value, name, scope)


def _check_words(value: Located, let: str, scope: Scope) -> None:
    nested = value.value if isinstance(value.value, tuple) else (value,)
    for one in nested:
        if isinstance(one.value, Applied) and not is_word(one.value.name):
            name, also = one.value.name, (*words(), *FUNCTIONS)
            if one.value.arguments or not scope.excuses(name, also):
                also = (*(other for other in scope.names if other != let), *also)
                unknown("E301", "name", name, one.value.name_span, (), scope.collector, also=also)
