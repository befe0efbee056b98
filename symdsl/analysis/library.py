"""Files that only hold what others import: `let`s, and networks that wait for their parameters."""

from __future__ import annotations

from collections.abc import Iterable

from symdsl.analysis.checks import check_comments
from symdsl.analysis.expressions import evaluate
from symdsl.analysis.lets import check_unused_lets, settle_lets
from symdsl.analysis.names import Scope, gaps_of, hidden, named, unique
from symdsl.analysis.shapes import walk
from symdsl.analysis.values import Located
from symdsl.diagnostics import Collector
from symdsl.language import ast


def is_library(program: ast.Program) -> bool:
    """Whether a file has something to import, but nothing that could be built, learned from or set."""
    read = [one for one in program.statements if not isinstance(one, ast.Unread)]
    return bool(read) and all(
        isinstance(one, ast.Let) or (isinstance(one, ast.Network) and bool(one.parameters)) for one in read
    )


def check_library(program: ast.Program, collector: Collector) -> None:
    """Report what is wrong with a library whatever its networks' parameters, and the data, will be."""
    lets, networks = named(program, collector)
    incomplete = hidden("let", gaps_of(program))
    scope = Scope(collector, lets, evaluate, {"classes": _unknown, "channels": _unknown}, incomplete=incomplete)
    settle_lets(scope, None)
    check_templates([one for one in networks.values() if isinstance(one, ast.Network)], scope)
    check_unused_lets(scope)
    check_comments(program.comments, collector)


def check_templates(networks: Iterable[ast.Network], scope: Scope) -> None:
    """Report what is wrong with networks that nothing instantiates, whatever their parameters will be."""
    for network in networks:
        walk(network, scope.inside(_defaults(network, scope)), None)


def _unknown() -> None:
    return None


def _defaults(network: ast.Network, scope: Scope) -> dict[str, Located | None]:
    """What the parameters stand for when they are not given; `None` where that cannot be known."""
    parameters = unique(network.parameters or (), "a parameter", scope.collector)
    defaults = {name: one.default for name, one in parameters.items() if isinstance(one, ast.Parameter)}
    return {name: None if default is None else evaluate(default, scope) for name, default in defaults.items()}
