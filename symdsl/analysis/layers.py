"""Layers: the map each writes, its stride and its activations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import attrs

from symdsl.analysis.candidates import candidates_of, placed
from symdsl.analysis.drafts import LayerDraft
from symdsl.analysis.expressions import evaluate
from symdsl.analysis.facts import Shape
from symdsl.analysis.names import unknown
from symdsl.analysis.residuals import refuse_stride
from symdsl.analysis.types import convert
from symdsl.analysis.walker import Walker
from symdsl.catalog.networks import ACTIVATIONS
from symdsl.catalog.signatures import Whole
from symdsl.kinds import Site
from symdsl.language import ast


def layer(node: ast.Layer, walker: Walker) -> None:
    """Process a layer: compute the map it writes, and place its candidates."""
    title = node.name.span if node.name else node.candidates[0].span
    name = walker.begin_layer(node.name, title)
    candidates = candidates_of(node, walker)
    activations = _activations(node.activations, walker)
    walker.end(node)
    out = _out_shape(node, name, walker)
    shape, walker.shape = walker.shape, out
    if out is None or shape is None:
        return
    found = [None if one is None else placed(one, name, Site(shape, out), title, walker) for one in candidates]
    sound = tuple(one for one in found if one is not None)
    if len(sound) < len(candidates):
        walker.doubtful.add(name)
    stride = shape.width // out.width
    if stride > 1:
        walker.made["size"] = node.span
    walker.add(LayerDraft(name, shape, out, stride, sound, activations, title))


def _out_shape(node: ast.Layer, name: str, walker: Walker) -> Shape | None:
    channels = _whole(node.channels, "channels", walker)
    stride = 1 if node.stride is None else _whole(node.stride, "stride", walker)
    shape, span = walker.shape, (node.stride or node.channels).span  # only a stride that was written can be wrong
    walker.vague = channels is None
    if stride is None or shape is None:
        return None
    if shape.flat and stride > 1:
        message = f"`{name}` reads a vector, which has no positions to stride over"
        walker.scope.collector.report("E204", span, message, notes=walker.note("flatten", "flattened here"))
        stride = 1
    if stride > 1 and walker.residual is not None:
        refuse_stride(span, name, walker.residual, walker)
        stride = 1
    rows, columns = shape.sides(stride)
    if shape.height % rows or shape.width % columns:
        message = f"`stride` (={stride}) must divide the {shape.height}x{shape.width} map that `{name}` reads"
        notes = walker.note("size", f"makes the map {shape.height}x{shape.width}")
        walker.scope.collector.report("E201", span, message, notes=notes)
        return None
    return attrs.evolve(shape, channels=channels or 1, height=shape.height // rows, width=shape.width // columns)


def _whole(node: ast.Expression, name: str, walker: Walker) -> int | None:
    value = evaluate(node, walker.scope)
    return None if value is None else cast("int | None", convert(Whole(), value, name, walker.scope))


def _activations(calls: Iterable[ast.Call], walker: Walker) -> tuple[str, ...]:
    for call in calls:
        if call.name.text not in ACTIVATIONS:
            unknown("E306", "activation", call.name.text, call.name.span, ACTIVATIONS, walker.scope.collector)
        elif call.arguments:
            walker.scope.collector.report("E403", call.span, f"`{call.name.text}` takes no arguments")
    return tuple(call.name.text for call in calls)
