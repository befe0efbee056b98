"""Expressions: from trees to values, within limits."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable

from symdsl.analysis.names import Scope, unknown
from symdsl.analysis.values import Applied, Given, Located, Plain, describe, is_number
from symdsl.analysis.words import is_word
from symdsl.catalog.networks import ACTIVATIONS
from symdsl.diagnostics import Span
from symdsl.kinds import KINDS
from symdsl.language import ast

_LARGEST = 2**63 - 1
_MOST_ORIGINS = 3

_Number = int | float


def _divide(left: _Number, right: _Number) -> _Number:
    """Whole where the division of whole numbers leaves no rest."""
    if isinstance(left, int) and isinstance(right, int) and left % right == 0:
        return left // right
    return left / right


_OPERATORS: dict[str, Callable[[_Number, _Number], int | float | bool]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "%": operator.mod,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

FUNCTIONS = {"floor": math.floor, "ceil": math.ceil}
"""Functions of one number."""


def evaluate(node: ast.Expression, scope: Scope) -> Located | None:
    """Return the value of an expression, or nothing if it has none, which is reported."""
    if not scope.affords("values", node.span):
        return None
    match node:
        case ast.Number(value) | ast.Text(value) | ast.Flag(value):
            return Located(value, node.span)
        case ast.List(items) | ast.Tuple(items):
            values = [evaluate(item, scope) for item in items]
            found = tuple(value for value in values if value is not None)
            return Located(found, node.span) if len(found) == len(values) else None
        case ast.Call():
            return _call(node, scope)
        case ast.Negative(operand):
            return _arithmetic("-", [Located(0, node.span), evaluate(operand, scope)], node.span, scope)
        case ast.Binary(symbol, left, right):
            return _arithmetic(symbol, [evaluate(left, scope), evaluate(right, scope)], node.span, scope)
        case ast.Unread():
            return None


def _call(node: ast.Call, scope: Scope) -> Located | None:
    if scope.knows(node.name.text):
        if node.arguments is None:
            return scope.look_up(node.name)
        message, notes = f"`{node.name.text}` is a value and takes no arguments", scope.origin(node.name.text)
        scope.collector.report("E401", node.name.span, message, notes=notes)
        return None
    arguments = given(node.arguments or (), scope)
    if node.name.text in FUNCTIONS and node.arguments is not None:
        return _function(node, arguments, scope)
    return Located(Applied(node.name.text, node.name.span, arguments), node.span)


def given(arguments: Iterable[ast.Argument], scope: Scope) -> tuple[Given, ...]:
    """Return the values of a call's arguments."""
    return tuple(Given(one.name, evaluate(one.value, scope), one.span) for one in arguments)


def _function(node: ast.Call, arguments: tuple[Given, ...], scope: Scope) -> Located | None:
    if len(arguments) != 1 or arguments[0].name is not None:
        scope.collector.report("E403", node.span, f"`{node.name.text}` takes one number")
        return None
    value = arguments[0].value
    number = None if value is None else _operand(value, scope)
    if value is None or number is None:
        return None
    result = FUNCTIONS[node.name.text](number)
    if abs(result) > _LARGEST:
        scope.collector.report("E404", node.span, f"`{node.name.text}({number})` overflows", notes=value.notes)
        return None
    return Located(result, node.span)


def _arithmetic(symbol: str, operands: list[Located | None], span: Span, scope: Scope) -> Located | None:
    if symbol == "+" and any(one is not None and is_kind(one.value) for one in operands):
        if None not in operands:
            message, help = "kinds are joined by `+` in a layer alone", "write a list of them, as `[F-FC, CONV(3)]`"
            scope.collector.report("E401", span, message, help=help)
        return None
    numbers = [None if one is None else _operand(one, scope) for one in operands]
    origins = tuple(origin for one in operands if one is not None for origin in one.origins)[:_MOST_ORIGINS]
    notes = Located(0, span, origins).notes
    left, right = numbers
    if left is None or right is None:
        return None
    if right == 0 and symbol in "/%":
        scope.collector.report("E404", span, f"`{left} {symbol} {right}` divides by zero", notes=notes)
        return None
    result = _OPERATORS[symbol](left, right)
    if abs(result) > _LARGEST and (isinstance(result, int) or math.isinf(result)):
        scope.collector.report("E404", span, f"`{left} {symbol} {right}` overflows", notes=notes)
        return None
    return Located(result, span, origins)


def is_kind(value: Plain) -> bool:
    """Return whether a value is a kind, with or without arguments."""
    return isinstance(value, Applied) and value.name in KINDS


def _operand(operand: Located, scope: Scope) -> _Number | None:
    value = operand.value
    if is_number(value):
        assert isinstance(value, int | float), "a number is an int or a float"
        return value
    if not unknown_name(operand, scope):
        message = f"arithmetic needs numbers, found {describe(value)}"
        scope.collector.report("E401", operand.span, message, label="not a number", notes=operand.notes)
    return None


def unknown_name(operand: Located, scope: Scope, known: Iterable[str] = ()) -> bool:
    """Report a value that is an undefined name, suggesting `known` ones; return whether it is one."""
    value: Plain = operand.value
    if not isinstance(value, Applied) or is_kind(value) or (value.arguments and is_word(value.name)):
        return False
    if "-" in value.name:
        unknown("E302", "kind", value.name, value.name_span, KINDS, scope.collector)
    elif value.arguments:
        unknown("E301", "function", value.name, value.name_span, (*FUNCTIONS, *known), scope.collector)
    elif scope.excuses(value.name, ()):
        pass
    elif value.name in ACTIVATIONS:
        help = f"an activation comes behind `|>`: write `|> {value.name}`"
        scope.collector.report("E301", value.name_span, f"unknown name `{value.name}`", help=help)
    else:
        unknown("E301", "name", value.name, value.name_span, (), scope.collector, also=(*scope.names, *known))
    return True
