"""Files that only hold what others import: `let`s, blocks, profiles, and networks that wait for their parameters."""

from __future__ import annotations

from collections.abc import Iterable

from symdsl.analysis.checks import check_comments
from symdsl.analysis.expressions import evaluate
from symdsl.analysis.lets import check_unused_lets, settle_lets
from symdsl.analysis.names import Scope, gaps_of, hidden, named
from symdsl.analysis.parameters import default_parameters
from symdsl.analysis.shapes import walk, walk_block
from symdsl.analysis.walker import Blocks
from symdsl.diagnostics import Collector
from symdsl.language import ast


def is_library(program: ast.Program) -> bool:
    """Return whether a file only defines what other files import."""
    read = [one for one in program.statements if not isinstance(one, ast.Unread)]
    return bool(read) and all(
        isinstance(one, ast.Let | ast.Block | ast.Profile) or (isinstance(one, ast.Network) and bool(one.parameters))
        for one in read
    )


def check_library(program: ast.Program, collector: Collector) -> None:
    """Report the errors of a library that do not depend on the parameters of its networks or on data."""
    names, gaps = named(program, collector), gaps_of(program)
    lets = {one.name.text: one for one in names if isinstance(one, ast.Let)}
    known = {one.name.text: one for one in names if isinstance(one, ast.Block)}
    blocks = Blocks(known, hidden("block", gaps))
    builtins = {"classes": _unknown, "channels": _unknown}
    scope = Scope(collector, lets, evaluate, builtins, incomplete=hidden("let", gaps))
    settle_lets(scope, None)
    check_templates([one for one in names if isinstance(one, ast.Network | ast.Block)], blocks, scope)
    check_unused_lets(scope)
    check_comments(program, scope)


def check_templates(templates: Iterable[ast.Network | ast.Block], blocks: Blocks, scope: Scope) -> None:
    """Report the errors of unused networks and blocks that do not depend on their parameters."""
    for template in templates:
        inside = scope.inside(default_parameters(template, scope))
        if isinstance(template, ast.Network):
            walk(template, blocks, inside, None)
        else:
            walk_block(template, blocks, inside)


def _unknown() -> None:
    return None
