"""Averages over transformed copies: what `average` reads, and which nodes see how many copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

import attrs

from symdsl.analysis.expressions import given
from symdsl.analysis.facts import Average, Layer, Mean, Node, Shape
from symdsl.analysis.joins import leaving_out
from symdsl.analysis.names import unknown
from symdsl.analysis.types import Arguments, bind
from symdsl.analysis.walker import Walker
from symdsl.catalog.networks import GENERATORS, TRANSFORMATIONS
from symdsl.diagnostics import Span, listing
from symdsl.groups import TRIVIAL
from symdsl.language import ast

_NAMES = tuple(one.name for one in GENERATORS)


def averages(nodes: Sequence[Node]) -> Iterator[tuple[Average, tuple[Node, ...]]]:
    """Yield every average with the nodes of its body and the `Mean` that ends it."""
    places = {node.name: place for place, node in enumerate(nodes)}
    for end, node in enumerate(nodes):
        if isinstance(node, Mean):
            begin = nodes[places[node.since]]
            assert isinstance(begin, Average), "a mean names the average that it ends"
            yield begin, tuple(nodes[places[node.since] + 1 : end + 1])


def without_idle(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return the nodes but for averages around no layer, which a spec cannot state."""
    idle = [(begin, body[-1]) for begin, body in averages(nodes) if not any(isinstance(one, Layer) for one in body)]
    return leaving_out(nodes, {one.name for ends in idle for one in ends})


def copies(nodes: Sequence[Node]) -> dict[str, int]:
    """Return how many copies of an example every node hands on, by its name."""
    found = {node.name: 1 for node in nodes}
    for begin, body in averages(nodes):
        for node in (begin, *body[:-1]):
            found[node.name] *= begin.samples
    return found


def with_ranges(node: Node, ranges: Mapping[str, float]) -> Node:
    """Return the node with those of its ranges replaced that are named, keyed `average.generator`."""
    if not isinstance(node, Average):
        return node
    return attrs.evolve(node, ranges=tuple((key, ranges.get(f"{node.name}.{key}", old)) for key, old in node.ranges))


def range_words(generator: str, value: float) -> str:
    """Return a range as text: `5\N{DEGREE SIGN}` of a rotation, `10 %` of a translation, a factor of a scale."""
    if generator == "rotation":
        return f"{value:.3g}\N{DEGREE SIGN}"
    return f"{100 * value:.3g} %" if generator.startswith("translate") else f"{value:.3g}"


def insensitive_to(node: Average) -> str:
    """Describe what the mean is roughly invariant to at these ranges."""
    return " and ".join(_movement(name, value) for name, value in node.ranges if value > 0) or "nothing"


def _movement(generator: str, value: float) -> str:
    if generator == "rotation":
        return "all rotations" if value == 180 else f"rotations within {range_words(generator, value)}"
    what, _, axis = generator.partition("_")
    along = {"x": " along rows", "y": " along columns"}.get(axis, "")
    if what == "translate":
        return f"translations{along} within {range_words(generator, value)}"
    return f"{what}{along} within a logarithm of {range_words(generator, value)}"


def average(node: ast.Average, walker: Walker, visit: Callable[[Sequence[ast.Item], Walker], None]) -> None:
    """Process `average`: take the mean of what its body makes of transformed copies of the map.

    Args:
        node: the average.
        walker: where it stands.
        visit: goes through items.
    """
    if walker.too_deep(node.span):
        return
    name = walker.next_name("average")
    found = _transformation(node, walker)
    shape, layers = _image(node, walker), len(walker.layers)
    begun = found is not None and shape is not None
    if found is not None and shape is not None:
        ranges = tuple((key, cast("float", found[key])) for key in _NAMES if key in found)
        samples, fixed = cast("int", found["samples"]), cast("bool", found["fixed"])
        walker.add(Average(name, shape, shape, ranges, samples, fixed, _word(node)))
    outer, walker.average = walker.average, node
    walker.last = None
    walker.depth += 1
    visit(node.items, walker)
    walker.depth -= 1
    walker.end(node)
    walker.average = outer
    if walker.depth == 0:
        walker.averaged = node
    if len(walker.layers) == layers and walker.complete:
        _report(node, "an `average` has no layer", "write its layers, or drop it", walker)
    if begun and walker.shape is not None:
        walker.add(Mean(f"{name}:mean", walker.shape, walker.shape, name, _word(node)))


def _transformation(node: ast.Average, walker: Walker) -> Arguments | None:
    call, scope = node.transformation, walker.scope
    signature = TRANSFORMATIONS.get(call.name.text)
    if signature is None:
        unknown("E304", "transformation", call.name.text, call.name.span, TRANSFORMATIONS, scope.collector)
        return None
    found = bind(signature, given(call.arguments or (), scope), call.span, scope)
    if found is None or not found.keys().isdisjoint(_NAMES):
        return found
    _report(node, "an `average` names no range", f"give it one of {listing(_NAMES)}", walker)
    return None


def _image(node: ast.Average, walker: Walker) -> Shape | None:
    """The shape of the map if it is a plain image; anything else is reported."""
    shape = walker.shape
    if shape is None:
        return None
    if shape.flat:
        message, notes = "`average` needs an image, found a vector", walker.note("flatten", "flattened here")
        help = "move it before `flatten`, which then stands in its body"
        walker.scope.collector.report("E204", _word(node), message, help=help, notes=notes)
    elif shape.group != TRIVIAL:
        message = f"`average` needs a plain map, found one lifted to `{shape.group}`"
        _report(node, message, "put `lift` into its body", walker, walker.note("lift", "lifted here"))
    elif shape.height == 1 or shape.width == 1:
        _report(node, f"`average` needs an image, found a line of {shape}", "drop it", walker)
    else:
        return shape
    return None


def _word(node: ast.Average) -> Span:
    return node.span.start.until(node.brace)


def _report(node: ast.Average, message: str, help: str, walker: Walker, notes: Sequence[tuple[Span, str]] = ()) -> None:
    walker.scope.collector.report("E212", _word(node), message, help=help, notes=list(notes))
