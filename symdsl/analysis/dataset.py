"""The data statement: its steps, and the shape of an example after each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import attrs

from symdsl.analysis.arrays import BadArraysError, read_outline
from symdsl.analysis.expressions import given
from symdsl.analysis.facts import Data, Step
from symdsl.analysis.names import Scope, unknown
from symdsl.analysis.types import bind
from symdsl.catalog.data import SOURCES, TRANSFORMS, MisfitError, Outline
from symdsl.catalog.signatures import Signature, Value
from symdsl.language import ast


@attrs.frozen
class DataFacts:
    """The facts about the data, and how many examples there are.

    Attributes:
        data: as the graph and the torch side read it.
        outline: after all transforms.
    """

    data: Data
    outline: Outline


_SOURCE_SIGNATURES = {name: source.signature for name, source in SOURCES.items()}
_TRANSFORM_SIGNATURES = {name: transform.signature for name, transform in TRANSFORMS.items()}


def analyse_data(node: ast.Data, scope: Scope) -> DataFacts | None:
    """What the data statement says; nothing if a step is wrong, which is reported."""
    source = _step(node.steps[0], _SOURCE_SIGNATURES, "data source", scope)
    transforms = [_step(step, _TRANSFORM_SIGNATURES, "transform", scope) for step in node.steps[1:]]
    outline = None if source is None else _outline(source, scope)
    for transform, before in zip(transforms, (source, *transforms), strict=False):
        outline = _applied(transform, outline, before, scope)
    known = tuple(step for step in transforms if step is not None)
    if source is None or outline is None or len(known) < len(transforms):
        return None
    return DataFacts(_facts(source, known, outline), outline)


def _facts(source: Step, transforms: tuple[Step, ...], outline: Outline) -> Data:
    return Data(source, transforms, outline.channels, outline.height, outline.width, outline.classes, outline.task)


def _step(node: ast.Call, table: Mapping[str, Signature], what: str, scope: Scope) -> Step | None:
    name = node.name.text
    if name not in table:
        unknown("E304", what, name, node.name.span, table, scope.collector)
        return None
    bound = bind(table[name], given(node.arguments or (), scope), node.span, scope)
    return None if bound is None else Step(name, cast("tuple[tuple[str, Value], ...]", tuple(bound.items())), node.span)


def _outline(source: Step, scope: Scope) -> Outline | None:
    arguments = dict(source.arguments)
    outline = SOURCES[source.name].outline
    if outline is not None:
        return outline(arguments)
    try:
        return read_outline(str(arguments["path"]), str(arguments["task"]))
    except BadArraysError as error:
        scope.collector.report("E601", source.span, str(error), help=error.help)
        return None


def _applied(step: Step | None, outline: Outline | None, before: Step | None, scope: Scope) -> Outline | None:
    if step is None or outline is None or before is None:
        return None
    try:
        return TRANSFORMS[step.name].apply(outline, dict(step.arguments))
    except MisfitError as error:
        shape = f"{outline.channels}x{outline.height}x{outline.width}"
        notes = [(before.span, f"delivers {outline.train} training examples of {shape}")]
        scope.collector.report("E602", step.span, str(error), notes=notes)
        return None
