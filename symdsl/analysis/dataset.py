"""The data statement: its steps, and the shape of an example after each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import cast

from symdsl.analysis.expressions import given
from symdsl.analysis.facts import Data, Step
from symdsl.analysis.names import Scope, unknown
from symdsl.analysis.types import bind
from symdsl.catalog.data import SOURCES, TRANSFORMS, Arguments, BadDataError, MisfitError, Outline, Source, Transform
from symdsl.catalog.signatures import Choice, Parameter, Quoted, Value
from symdsl.language import ast


def _arrays(arguments: Arguments) -> Outline:
    from symdsl.analysis.arrays import outline_of_arrays

    return outline_of_arrays(str(arguments["path"]), str(arguments["task"]))


def _images(arguments: Arguments) -> Outline:
    from symdsl.analysis.images import outline_of_images

    return outline_of_images(str(arguments["path"]), str(arguments["colour"]))


_READERS: dict[str, Callable[[Arguments], Outline]] = {"arrays": _arrays, "images": _images}
"""How to find out about sources of which only their files say what they hold."""

_LARGE, _SMALL = 10.0, 0.05
"""Root mean square of a regression's targets from which training takes long to reach them, and standard deviation
below which the first outputs drown them."""


def analyse_data(node: ast.Data, scope: Scope) -> Data | None:
    """Return the facts that the data statement states, or nothing if a step is wrong, which is reported."""
    source = _step(node.steps[0], SOURCES, "data source", scope)
    transforms = [_step(step, TRANSFORMS, "transform", scope) for step in node.steps[1:]]
    outline = None if source is None else _outline(source, transforms, scope)
    for step, after in pairwise(transforms):
        if step is not None and TRANSFORMS[step.name].on_batches:
            notes = [] if after is None else [(after.span, "comes after it")]
            message = f"`{step.name}` acts on training batches, so it must be the last transform"
            scope.collector.report("E602", step.span, message, help="move it to the end", notes=notes)
    for transform, before in zip(transforms, (source, *transforms), strict=False):
        outline = _applied(transform, outline, before, scope)
    known = tuple(step for step in transforms if step is not None)
    if source is None or outline is None or len(known) < len(transforms):
        return None
    least, most = outline.targets
    if "targets" not in outline.standardized and (most > _LARGE or least < _SMALL):
        own = f"root mean square of {most:.3g}" if most > _LARGE else f"standard deviation of {least:.3g}"
        message = f"the targets have a {own}, but the first outputs one of about 1"
        scope.collector.report("W114", source.span, message, help="add `|> standardize(targets)`")
    return Data(source, known, outline.channels, outline.height, outline.width, outline.classes, outline.task)


def _step(node: ast.Call, table: Mapping[str, Source | Transform], what: str, scope: Scope) -> Step | None:
    name = node.name.text
    if name not in table:
        unknown("E304", what, name, node.name.span, table, scope.collector)
        return None
    bound = bind(table[name].signature, given(node.arguments or (), scope), node.span, scope)
    return None if bound is None else Step(name, cast("tuple[tuple[str, Value], ...]", tuple(bound.items())), node.span)


def trail(data: Data) -> tuple[Outline, ...]:
    """Return the shapes and counts of the data at the source, and after each transform.

    Raises:
        BadDataError: files have changed since the spec was checked, and cannot be used.
        MisfitError: files have changed, and a transform does not fit them any more.
    """
    outlines = [source_outline(data.source)]
    for step in data.transforms:
        outlines.append(TRANSFORMS[step.name].apply(outlines[-1], dict(step.arguments)))
    return tuple(outlines)


def written(step: Step) -> str:
    """Return a step as a spec would write it, without arguments that have their default values."""
    transform = TRANSFORMS.get(step.name)
    signature = (transform or SOURCES[step.name]).signature
    values = dict(step.arguments)  # without those that have no default and were left out
    given = [
        _written_argument(one, values[one.name])
        for one in signature.parameters
        if one.name in values and (values[one.name] != one.default or (transform and not isinstance(one.type, Choice)))
    ]
    return f"{step.name}({', '.join(given)})" if given else step.name


def _written_argument(parameter: Parameter, value: Value) -> str:
    if isinstance(parameter.type, Quoted):
        return f'{parameter.name} = "{value}"'
    if isinstance(value, bool):
        return parameter.name if value else f"{parameter.name} = false"
    return f"{parameter.name} = {value:g}" if isinstance(value, float) else f"{parameter.name} = {value}"


def source_outline(source: Step) -> Outline:
    """Return the shapes and counts of a source; files are opened only where they alone can tell.

    Raises:
        BadDataError: they cannot be used.
    """
    known = SOURCES[source.name].outline or _READERS[source.name]
    return known(dict(source.arguments))


def _outline(source: Step, transforms: Sequence[Step | None], scope: Scope) -> Outline | None:
    try:
        outline = source_outline(source)
    except BadDataError as error:
        scope.collector.report("E601", source.span, str(error), help=error.help)
        return None
    for doubt in outline.doubts:
        scope.collector.report(doubt.code, source.span, doubt.message, help=doubt.help)
    first = transforms[0] if transforms else None
    if outline.uneven and transforms and first is None:  # which may be a `resize`, and is reported
        return None
    if outline.uneven and (first is None or first.name != "resize"):
        help = "write `|> resize(size)` directly after it, or bring the files to one size"
        scope.collector.report("E601", source.span, outline.uneven, help=help)
        return None
    return outline


def _applied(step: Step | None, outline: Outline | None, before: Step | None, scope: Scope) -> Outline | None:
    if step is None or outline is None or before is None:
        return None
    try:
        return TRANSFORMS[step.name].apply(outline, dict(step.arguments))
    except MisfitError as error:
        counted = f"{outline.train} training examples of " if outline.train else ""
        notes = [(before.span, f"delivers {counted}{outline}")]
        scope.collector.report("E602", step.span, str(error), notes=notes)
        return None
