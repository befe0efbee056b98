"""Residual blocks: whether a body keeps the map that it is added to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symdsl.analysis.facts import Join, Shape
from symdsl.analysis.names import Scope
from symdsl.analysis.walker import Walker
from symdsl.catalog.networks import ACTIVATIONS, AWAY_FROM_ZERO
from symdsl.diagnostics import Span, listing
from symdsl.language import ast

_OUTSIDE = {ast.Lift: "lift", ast.Project: "project", ast.Pool: "pool", ast.Flatten: "flatten"}
"""Items that change the map, by the word each begins with."""


def residual(node: ast.Residual, walker: Walker, visit: Callable[[Sequence[ast.Item], Walker], None]) -> None:
    """Process `residual`: add the output of its body to the map.

    Args:
        node: the body.
        walker: where it stands.
        visit: goes through items.
    """
    if walker.too_deep(node.span):
        return
    name = walker.next_name("residual")
    shape, vague, made, outer = walker.shape, walker.vague, dict(walker.made), walker.residual
    since = walker.drafts[-1].name if walker.drafts else ""
    walker.residual, walker.last = node, None
    walker.depth += 1
    visit(node.items, walker)
    walker.depth -= 1
    _check_end(node, walker)
    if shape is not None and walker.shape is not None and not (vague or walker.vague):
        _check_channels(node, shape, walker.shape, walker)
    walker.shape, walker.vague, walker.made, walker.residual = shape, vague, made, outer
    walker.end(node)
    if shape is not None:
        walker.add(Join(name, shape, shape, since, node.span))


def stands_outside(item: ast.Item, walker: Walker) -> bool:
    """Report an item that must not stand in a body; return whether it is one."""
    word = _OUTSIDE.get(type(item))
    if walker.residual is None or word is None:
        return False
    message = f"`{word}` changes the map, which the body of a `residual` keeps"
    _report(item.span, message, "put it before or after the `residual`", walker.residual, walker.scope)
    walker.shape = None
    walker.end(item)
    return True


def refuse_stride(span: Span, layer: str, body: ast.Residual, walker: Walker) -> None:
    """Report a stride inside a body."""
    message = f"`{layer}` has a stride, but the body of a `residual` keeps the map"
    help = "stride in a layer before or after: two branches could each keep another phase of the map"
    _report(span, message, help, body, walker.scope)


def _check_end(node: ast.Residual, walker: Walker) -> None:
    scope = walker.scope_of_last
    match walker.last:
        case None if walker.complete:
            _report(_word(node), "a `residual` has no layer", "write its layers, or drop it", None, walker.scope)
        case ast.Residual(span=span) as inner if not scope.collector.knows("E209", _word(inner)):
            help = "write a layer after the inner one"
            _report(span, "the body of a `residual` ends with another `residual`, not with a layer", help, node, scope)
        case ast.Average(span=span):
            help = "write a layer after the `average`"
            _report(span, "the body of a `residual` ends with an `average`, not with a layer", help, node, scope)
        case ast.Layer(activations=calls):
            for call in calls:
                if call.name.text in AWAY_FROM_ZERO:
                    _refuse_activation(call, node, scope)


def _refuse_activation(call: ast.Call, node: ast.Residual, scope: Scope) -> None:
    message = f"a `residual` cannot end with `{call.name.text}`, which is not 0 at 0"
    others = [name for name in ACTIVATIONS if name not in AWAY_FROM_ZERO]
    _report(call.span, message, f"end with one of {listing(others)}, or with none", node, scope)


def _check_channels(node: ast.Residual, reads: Shape, writes: Shape, walker: Walker) -> None:
    if reads.channels != writes.channels and isinstance(walker.last, ast.Layer):
        message = f"the body of a `residual` reads {_channels(reads)} and ends with {writes.channels}"
        notes = [(_word(node), f"reads {reads}")]
        span, help = walker.last.channels.span, f"end with {_channels(reads)}"
        walker.scope_of_last.collector.report("E209", span, message, help=help, notes=notes)


def _channels(shape: Shape) -> str:
    return f"{shape.channels} channel{'s' if shape.channels > 1 else ''}"


def _word(node: ast.Residual) -> Span:
    return node.span.start.until(node.brace)


def _report(span: Span, message: str, help: str, body: ast.Residual | None, scope: Scope) -> None:
    notes = [(_word(body), "in this body")] if body is not None else []
    scope.collector.report("E209", span, message, help=help, notes=notes)
