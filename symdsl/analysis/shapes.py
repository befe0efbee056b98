"""Shapes: the items of a network, one after the other, blocks and `repeat`s written out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

import attrs

from symdsl.analysis.averages import average
from symdsl.analysis.drafts import LayerDraft, Walk
from symdsl.analysis.expressions import evaluate, unknown_name
from symdsl.analysis.facts import Data
from symdsl.analysis.layers import layer
from symdsl.analysis.maps import begin, flatten, lift, pool, project
from symdsl.analysis.names import Scope, report_twice, unknown
from symdsl.analysis.parameters import bind_parameters
from symdsl.analysis.priors import report_fixed
from symdsl.analysis.residuals import residual, stands_outside
from symdsl.analysis.values import Located, describe
from symdsl.analysis.walker import Blocks, Body, Walker
from symdsl.language import ast


def walk(network: ast.Network, blocks: Blocks, scope: Scope, data: Data | None) -> Walk:
    """Return every item of a network with its shape.

    Args:
        network: its items.
        blocks: what it may use, by name.
        scope: what names stand for, the network's parameters included.
        data: what it has to fit, if that is known.
    """
    walker = Walker(scope, data, blocks)
    _visit(network.items, walker)
    _finish(network, walker)
    sound = {draft.name for draft in walker.drafts if isinstance(draft, LayerDraft)}
    doubtful = walker.doubtful | (walker.layers.keys() - sound)
    return Walk(tuple(walker.drafts), tuple(walker.layers), frozenset(doubtful), walker.complete)


def walk_block(block: ast.Block, blocks: Blocks, scope: Scope) -> None:
    """Report the errors of a block that do not depend on the map it reads or on unknown names."""
    walker = Walker(scope, None, blocks, body=Body(f"{block.name.text}/"), open=(block.name.text,))
    _visit(block.items, walker)


def _visit(items: Sequence[ast.Item], walker: Walker) -> None:
    late: ast.Item | None = None
    for item in items:
        if walker.too_long(item.span):
            return
        begun = walker.started is not None or walker.open or isinstance(item, ast.Input | ast.Repeat | ast.Unread)
        if not begun and walker.complete:
            late = next((one for one in items if isinstance(one, ast.Input)), None)
            place, help = item.span, "write `input image(...)` first"
            if late is not None:
                place, help = late.span, f"move it before line {item.span.line}"
                _item(late, walker)
            else:
                walker.started = ast.Input(ast.Call(ast.Word("image", item.span)), item.span)
            walker.scope.collector.report("E211", place, "a network begins with `input`", help=help)
        if item is not late and not stands_outside(item, walker):
            _item(item, walker)


def _finish(network: ast.Network, walker: Walker) -> None:
    """Check what comes out at the end, and the priors of candidates."""
    for place, found in walker.fixed_priors.items():
        if found is not None and walker.complete:
            kind, scope = found
            report_fixed(kind, place, scope.collector)
    if not network.items:
        walker.scope.collector.report("E211", network.name.span, f"`{network.name.text}` is empty")
    shape, last = walker.shape, network.items[-1] if network.items else None
    if shape is None or last is None or (walker.vague and walker.scope.collector.failed):
        return
    if not shape.flat:
        size = "" if walker.vague else f" of {shape}"
        message = f"`{network.name.text}` ends with a map{size}, but must end with a vector"
        dense = isinstance(last, ast.Layer) and [one.kind.name.text for one in last.candidates] == ["FC"]
        help = "put `flatten` before it" if dense else "add `flatten` and a layer `FC -> classes`"
        walker.scope.collector.report("E207", last.span, message, help=help)
    elif walker.data is not None and walker.complete and not walker.layers:
        message = f"`{network.name.text}` has no layer"
        walker.scope.collector.report("E207", network.name.span, message, help="add a layer `FC -> classes`")
    elif walker.data is not None and not walker.vague and shape.channels != walker.data.classes:
        classes = f"{walker.data.classes} {'classes' if walker.data.task == 'classification' else 'targets'}"
        message = f"`{network.name.text}` ends with {shape.channels} channels, but the data have {classes}"
        notes = [(walker.data.source.span, f"has {classes} after all transforms")]
        help = "end with `-> classes`"
        if walker.scope.origin("classes"):
            help = f"`classes` is a `let` here: give it another name, and {help}"
        walker.scope.collector.report(
            "E207", last.span, message, help=help, notes=[*notes, *walker.scope.origin("classes")]
        )


@singledispatch
def _item(node: object, walker: Walker) -> None:
    raise TypeError(f"`node` (={node!r}) must be an item of a network")


_item.register(ast.Input)(begin)
_item.register(ast.Lift)(lift)
_item.register(ast.Project)(project)
_item.register(ast.Pool)(pool)
_item.register(ast.Flatten)(flatten)
_item.register(ast.Layer)(layer)


@_item.register
def _(node: ast.Residual, walker: Walker) -> None:
    residual(node, walker, _visit)


@_item.register
def _(node: ast.Average, walker: Walker) -> None:
    average(node, walker, _visit)


@_item.register
def _(node: ast.Unread, walker: Walker) -> None:
    walker.shape = None
    walker.end(node)
    if node.what == "layer":
        walker.begin_layer(node.name, node.span)
    elif node.what in ("", "repeat", "use", "residual", "average") or walker.started is None:
        walker.complete = False


@_item.register
def _(node: ast.Use, walker: Walker) -> None:
    path = _claim_use(node, walker)
    walker.blocks.used.add(node.block.name.text)
    block = walker.blocks.known.get(node.block.name.text)
    if block is None:
        if not walker.blocks.incomplete:
            called = node.block.name
            unknown("E307", "block", called.text, called.span, walker.blocks.known, walker.scope.collector)
        walker.lose()
    elif block.name.text in walker.open:
        notes = [(block.name.span, "this block")]
        walker.scope.collector.report("E309", node.span, f"`{block.name.text}` uses itself", notes=notes)
        walker.lose()
    elif not walker.too_deep(node.span):
        _enter(block, node, path, walker)


def _claim_use(node: ast.Use, walker: Walker) -> str:
    """The path of a use; where its name is taken, which is reported, one that would do."""
    called = node.block.name.text
    walker.body.uses[called] += 1
    number = f"{'_' if called[-1].isdigit() else ''}{walker.body.uses[called]}"
    name = node.name.text if node.name else f"{called}{number}"
    claimed = walker.claim("a part of the network", name, node.title)
    return walker.body.path + (name if claimed else f"{name}-{number}") + "/"


def _enter(block: ast.Block, node: ast.Use, path: str, walker: Walker) -> None:
    scope, body, opened = walker.scope, walker.body, walker.open
    local = bind_parameters(block, node.block, scope)
    noting = attrs.evolve(scope.outside().inside(local), collector=scope.collector.noting(node.span, "used here"))
    walker.scope, walker.body, walker.open = noting, Body(path), (*opened, block.name.text)
    walker.depth += 1
    _visit(block.items, walker)
    walker.depth -= 1
    walker.scope, walker.body, walker.open = scope, body, opened


@_item.register
def _(node: ast.Repeat, walker: Walker) -> None:
    first: dict[str, ast.Word] = {}
    for name in node.names:
        if first.setdefault(name.text, name) is not name:
            report_twice("a name of `repeat`", name, first[name.text].span, walker.scope.collector)
    values = evaluate(node.values, walker.scope)
    if values is not None and isinstance(values.value, tuple):
        _go_round(node, values.value, walker)
        return
    if values is not None and not unknown_name(values, walker.scope):
        message = f"`repeat` needs a list, found {describe(values.value)}"
        walker.scope.collector.report("E401", values.span, message, notes=values.notes)
    _skim(node, walker)


def _skim(node: ast.Repeat, walker: Walker) -> None:
    """Look for what is wrong with the items of a `repeat` whatever its values are."""
    outside, names = walker.scope, dict(walker.names)
    walker.lose()
    walker.scope = outside.inside(dict.fromkeys(name.text for name in node.names))
    _visit(node.items, walker)
    walker.scope, walker.names = outside, names
    walker.lose()


def _go_round(node: ast.Repeat, values: Sequence[Located], walker: Walker) -> None:
    if walker.too_deep(node.span):
        return
    outside = walker.scope
    walker.depth += 1
    for value in values:
        if walker.too_long(node.values.span):
            break
        walker.scope = outside.inside(_unpacked(node, value, walker))
        _visit(node.items, walker)
    walker.depth -= 1
    walker.scope = outside


def _unpacked(node: ast.Repeat, value: Located, walker: Walker) -> dict[str, Located | None]:
    names = [name.text for name in node.names]
    if not node.unpack:
        return {names[0]: value}
    if isinstance(value.value, tuple) and len(value.value) == len(names):
        return dict(zip(names, value.value, strict=True))
    found = f"one of {len(value.value)}" if isinstance(value.value, tuple) else describe(value.value)
    message = f"`repeat` takes tuples of {len(names)} apart, found {found}"
    notes, help = [(node.names[0].span, "taken apart here")], f"write `as {names[0]}`" if len(names) == 1 else ""
    walker.scope.collector.report("E403", value.span, message, help=help, notes=notes)
    return dict.fromkeys(names)
