"""The items that change a map between the layers: `input`, `lift`, `project`, `pool`, `flatten`."""

from __future__ import annotations

from typing import Literal, cast

import attrs

from symdsl.analysis.expressions import given
from symdsl.analysis.facts import Data, Flatten, Input, Lift, Pool, Project, Shape
from symdsl.analysis.names import unknown
from symdsl.analysis.types import bind_partly
from symdsl.analysis.walker import Walker
from symdsl.catalog.data import CHANNELS_FIRST, channels_last
from symdsl.catalog.networks import INPUTS, REDUCTIONS
from symdsl.diagnostics import Span
from symdsl.groups import LIFTED, TRIVIAL
from symdsl.language import ast


def begin(node: ast.Input, walker: Walker) -> None:
    """Process `input`: start from the images, or signals, that it declares."""
    if walker.open:
        help = "a block reads the map at the place of its use; drop this line"
        walker.scope.collector.report("E211", node.span, "`input` begins a network, not a block", help=help)
        return
    if walker.started is not None:
        notes = [(walker.started.span, "the first")]
        walker.scope.collector.report("E211", node.span, "a network has one `input`", label="one too many", notes=notes)
        return
    walker.started = node
    shape = walker.shape = _image(node, walker)
    walker.made["size"] = node.span
    if shape is not None:
        walker.add(Input("input", shape, node.span))


def _image(node: ast.Input, walker: Walker) -> Shape | None:
    call = node.image
    signature = INPUTS.get(call.name.text)
    if signature is None:
        unknown("E304", "input", call.name.text, call.name.span, INPUTS, walker.scope.collector)
        return None
    bound, sound = bind_partly(signature, given(call.arguments or (), walker.scope), call.span, walker.scope)
    channels, *sides = (cast("int | None", bound.get(name)) for name in signature.names)
    height, width = sides if len(sides) == 2 else (1, *sides)
    walker.vague = channels is None
    if height is None or width is None:
        return None
    shape = Shape(channels or 1, height, width)
    return _checked(shape, walker.data, call, walker) if sound and walker.data is not None else shape


def _checked(shape: Shape, data: Data, call: ast.Call, walker: Walker) -> Shape | None:
    """Return the shape of an input, or none where the data deliver its numbers in another order: either may hold."""
    delivered = Shape(data.channels, data.height, data.width)
    if shape == delivered:
        return shape
    wanted = f"image({delivered.channels}, {delivered.height}, {delivered.width})"
    if delivered.is_line:
        wanted = f"signal({delivered.channels}, {delivered.width})"
    help = f"write `{wanted}`, or change the data"
    if channels_last(delivered.channels, delivered.height, delivered.width):
        help = f"it looks as if channels came last: {CHANNELS_FIRST}"
    if shape.is_line and shape == Shape(delivered.height, 1, delivered.width) and delivered.channels == 1:
        help = "of signals `[n, channel, position]` save `x[:, :, None, :]`: `[n, h, w]` are images of one channel"
    message = f"the network reads images of {shape}, but the data deliver {delivered}"
    notes = [(data.source.span, f"delivers {delivered} after all transforms")]
    walker.scope.collector.report("E208", call.span, message, help=help, notes=notes)
    sizes = (shape.channels, shape.height, shape.width)
    return None if sorted(sizes) == sorted((data.channels, data.height, data.width)) else shape


def lift(node: ast.Lift, walker: Walker) -> None:
    """Process `lift`: copy a plain map to the elements of a group."""
    if node.group.text not in LIFTED:
        unknown("E305", "group", node.group.text, node.group.span, LIFTED, walker.scope.collector)
        walker.shape = None
    shape = walker.shape
    if shape is None:
        return
    if shape.flat:
        _needs_image("lift", node.span, walker)
    elif shape.group != TRIVIAL:
        message = f"the map is lifted to `{shape.group}` already"
        notes, help = walker.note("lift", "lifted here"), "a network is lifted once; drop this line"
        walker.scope.collector.report("E206", node.span, message, help=help, notes=notes)
    else:
        walker.made["lift"] = node.span
        out = attrs.evolve(shape, group=node.group.text)
        walker.add(Lift(walker.next_name("lift"), shape, out, node.span))


def project(node: ast.Project, walker: Walker) -> None:
    """Process `project`: reduce over the elements of the group."""
    reduction = _reduction(node.reduction, walker)
    shape = walker.shape
    if shape is None:
        return
    if shape.flat:
        _needs_image("project", node.span, walker)
    elif shape.group == TRIVIAL:
        _, where, _ = walker.lifting(node.span)
        help = f"add `lift {'mirror' if shape.is_line else 'p4'}` {where}, or drop this line"
        message, notes = "`project` needs a lifted map, found a plain one", walker.note("project", "projected here")
        walker.scope.collector.report("E205", node.span, message, help=help, notes=notes)
    else:
        walker.made["project"] = node.span
        walker.shape = out = attrs.evolve(shape, group=TRIVIAL)
        if reduction:
            walker.add(Project(walker.next_name("project"), shape, out, reduction, node.span))


def pool(node: ast.Pool, walker: Walker) -> None:
    """Process `pool`: reduce over the positions."""
    reduction = _reduction(node.reduction, walker)
    shape = walker.shape
    if shape is None:
        return
    if shape.flat:
        _needs_image("pool", node.span, walker)
    else:
        walker.made["size"] = node.span
        walker.shape = out = attrs.evolve(shape, height=1, width=1)
        if reduction:
            walker.add(Pool(walker.next_name("pool"), shape, out, reduction, node.span))


def _reduction(word: ast.Word, walker: Walker) -> Literal["max", "mean"] | None:
    if word.text in REDUCTIONS:
        return cast(Literal["max", "mean"], word.text)
    unknown("E406", "reduction", word.text, word.span, REDUCTIONS, walker.scope.collector)
    return None


def flatten(node: ast.Flatten, walker: Walker) -> None:
    """Process `flatten`: turn the map into a vector."""
    shape = walker.shape
    if shape is None:
        return
    if shape.flat:
        message, notes = "the map is a vector already", walker.note("flatten", "flattened here")
        if not walker.is_told("flatten", node.span):
            walker.scope.collector.report("E204", node.span, message, help="drop this line", notes=notes)
        return
    if shape.group != TRIVIAL:
        message = f"`flatten` keeps the elements of `{shape.group}` apart: nothing after it is invariant to the group"
        notes, help = walker.note("lift", "lifted here"), "add `project max` before it"
        walker.scope.collector.report("W106", node.span, message, help=help, notes=notes)
    walker.made["flatten"] = node.span
    out = Shape(shape.size, 1, 1, flat=True)
    walker.add(Flatten(walker.next_name("flatten"), shape, out, node.span))


def _needs_image(what: str, span: Span, walker: Walker) -> None:
    message, notes = f"`{what}` needs an image, found a vector", walker.note("flatten", "flattened here")
    if not walker.is_told("flatten", span):
        walker.scope.collector.report("E204", span, message, help="move it before `flatten`", notes=notes)
