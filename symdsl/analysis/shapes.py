"""Shapes: the items of a network, one after the other, and the map each hands to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import singledispatchmethod
from typing import Literal, cast

import attrs

from symdsl.analysis.drafts import CandidateDraft, Draft, LayerDraft
from symdsl.analysis.expressions import evaluate, given
from symdsl.analysis.facts import Data, Flatten, Input, Lift, Pool, Project, Shape, Value
from symdsl.analysis.kinds import KINDS, Refusal, Site, call_signature, completed
from symdsl.analysis.names import Scope, report_twice, unknown
from symdsl.analysis.priors import evaluate_prior
from symdsl.analysis.types import bind, convert
from symdsl.analysis.values import Applied, Located, describe
from symdsl.catalog.networks import ACTIVATIONS, IMAGE, REDUCTIONS
from symdsl.catalog.signatures import Whole
from symdsl.diagnostics import Fix, Span
from symdsl.groups import GROUPS, TRIVIAL
from symdsl.language import ast

_MOST_VISITS = 10_000


def walk(network: ast.Network, scope: Scope, data: Data | None) -> tuple[Draft, ...]:
    """Infer the shape of every item of a network.

    Args:
        network: its items.
        scope: what names stand for, the network's parameters included.
        data: what it has to fit, if that is known.

    Returns:
        The items with shapes. Where one was wrong, which is reported, it and the shapes after it are missing.
    """
    walker = _Walker(scope, data)
    walker.items(network.items)
    walker.finish(network)
    return tuple(walker.drafts)


@attrs.define
class _Walker:
    scope: Scope
    data: Data | None
    drafts: list[Draft] = attrs.field(factory=list)
    shape: Shape | None = None
    started: ast.Input | None = None
    layers: int = 0
    visits: int = 0
    names: dict[str, Span] = attrs.field(factory=dict)
    used: Counter[str] = attrs.field(factory=Counter)

    def items(self, items: Iterable[ast.Item]) -> None:
        for item in items:
            if self._too_long(item.span):
                return
            if self.started is None and not isinstance(item, ast.Input | ast.Repeat):
                self.scope.collector.report(
                    "E211", item.span, "a network begins with `input`", help="write `input image(...)` first"
                )
                self.started = ast.Input(ast.Call(ast.Word("image", item.span)), item.span)
            self.item(item)

    def _too_long(self, span: Span, more: int = 1) -> bool:
        """Count items, rounds and candidates; true, and reported once, when there are too many to go on."""
        before = self.visits
        self.visits += more
        if before <= _MOST_VISITS < self.visits:
            message = f"a network of more than {_MOST_VISITS:,} items, rounds and candidates is too long"
            self.scope.collector.report("E405", span, message)
            self.shape = None
        return self.visits > _MOST_VISITS

    def finish(self, network: ast.Network) -> None:
        """Check what comes out at the end."""
        if not network.items:
            self.scope.collector.report("E211", network.name.span, f"`{network.name.text}` is empty")
        shape, last = self.shape, network.items[-1] if network.items else None
        if shape is None or self.data is None or last is None:
            return
        if not shape.flat:
            message = f"`{network.name.text}` ends with a map of {shape}, but must end with a vector"
            self.scope.collector.report("E207", last.span, message, help="add `flatten` and a layer `FC -> classes`")
        elif shape.channels != self.data.classes:
            message = f"`{network.name.text}` ends with {shape.channels} channels, but the data have {self._classes()}"
            self.scope.collector.report("E207", last.span, message, help="end with `-> classes`")

    def _classes(self) -> str:
        assert self.data is not None, "only asked for where data are known"
        what = "classes" if self.data.task == "classification" else "targets"
        return f"{self.data.classes} {what}"

    @singledispatchmethod
    def item(self, node: object) -> None:
        raise TypeError(f"`node` (={node!r}) must be an item of a network")

    # input, lift, project, pool, flatten

    @item.register
    def _(self, node: ast.Input) -> None:
        if self.started is not None:
            notes = [(self.started.span, "the first")]
            self.scope.collector.report(
                "E211", node.span, "a network has one `input`", label="one too many", notes=notes
            )
            return
        self.started = node
        self.shape = self._image(node)
        if self.shape is not None:
            self.drafts.append(Input("input", self.shape, node.span))

    def _image(self, node: ast.Input) -> Shape | None:
        call = node.image
        if call.name.text != IMAGE.name:
            unknown("E304", "input", call.name.text, call.name.span, [IMAGE.name], self.scope.collector)
            return None
        arguments = given(call.arguments or (), self.scope)
        bound = None if arguments is None else bind(IMAGE, arguments, call.span, self.scope)
        if bound is None:
            return None
        channels, height, width = (cast(int, bound[name]) for name in IMAGE.names)
        shape = Shape(channels, height, width)
        return shape if self._fits(shape, call) else None

    def _fits(self, shape: Shape, call: ast.Call) -> bool:
        if self.data is None:
            return False
        delivered = Shape(self.data.channels, self.data.height, self.data.width)
        if shape == delivered:
            return True
        wanted = f"image({delivered.channels}, {delivered.height}, {delivered.width})"
        message = f"the network reads images of {shape}, but the data deliver {delivered}"
        notes = [(self.data.source.span, f"delivers {delivered} after all transforms")]
        self.scope.collector.report(
            "E208", call.span, message, help=f"write `{wanted}`, or change the data", notes=notes
        )
        return False

    @item.register
    def _(self, node: ast.Lift) -> None:
        groups = [name for name in GROUPS if name != TRIVIAL]
        if node.group.text not in groups:
            unknown("E305", "group", node.group.text, node.group.span, groups, self.scope.collector)
            self.shape = None
        elif self.shape is not None:
            self._lift(node, self.shape)

    def _lift(self, node: ast.Lift, shape: Shape) -> None:
        if shape.flat:
            self._needs_image("lift", node.span)
        elif shape.group != TRIVIAL:
            message = f"the map is lifted to `{shape.group}` already"
            self.scope.collector.report("E206", node.span, message, help="a network is lifted once; drop this line")
        else:
            out = attrs.evolve(shape, group=node.group.text)
            self._add(Lift(self._name("lift"), shape, out, node.span), out)

    @item.register
    def _(self, node: ast.Project) -> None:
        reduction = self._reduction(node.reduction)
        shape = self.shape
        if shape is None:
            return
        if shape.group == TRIVIAL:
            help = "add `lift p4` after `input`, or drop this line"
            self.scope.collector.report("E205", node.span, "`project` needs a lifted map, found a plain one", help=help)
        elif reduction:
            out = attrs.evolve(shape, group=TRIVIAL)
            self._add(Project(self._name("project"), shape, out, reduction, node.span), out)

    @item.register
    def _(self, node: ast.Pool) -> None:
        reduction = self._reduction(node.reduction)
        shape = self.shape
        if shape is None:
            return
        if shape.flat:
            self._needs_image("pool", node.span)
        elif reduction:
            out = attrs.evolve(shape, height=1, width=1)
            self._add(Pool(self._name("pool"), shape, out, reduction, node.span), out)

    def _reduction(self, word: ast.Word) -> Literal["max", "mean"] | None:
        if word.text in REDUCTIONS:
            return cast(Literal["max", "mean"], word.text)
        unknown("E406", "reduction", word.text, word.span, REDUCTIONS, self.scope.collector)
        return None

    @item.register
    def _(self, node: ast.Flatten) -> None:
        shape = self.shape
        if shape is None:
            return
        if shape.flat:
            self.scope.collector.report("E204", node.span, "the map is a vector already", help="drop this line")
            return
        if shape.group != TRIVIAL:
            message = (
                f"`flatten` keeps the elements of `{shape.group}` apart: nothing after it is invariant to the group"
            )
            self.scope.collector.report("W106", node.span, message, help="add `project max` before it")
        out = Shape(shape.size, 1, 1, flat=True)
        self._add(Flatten(self._name("flatten"), shape, out, node.span), out)

    def _needs_image(self, what: str, span: Span) -> None:
        self.scope.collector.report(
            "E204", span, f"`{what}` needs an image, found a vector", help="move it before `flatten`"
        )

    def _add(self, draft: Draft, shape: Shape) -> None:
        self.drafts.append(draft)
        self.shape = shape

    def _name(self, what: str) -> str:
        self.used[what] += 1
        return what if self.used[what] == 1 else f"{what}-{self.used[what]}"

    # repeat

    @item.register
    def _(self, node: ast.Repeat) -> None:
        values = evaluate(node.values, self.scope)
        if values is None:
            self.shape = None
        elif not isinstance(values.value, tuple):
            self.scope.collector.report("E401", values.span, f"`repeat` needs a list, found {describe(values.value)}")
            self.shape = None
        else:
            self._repeat(node, values.value)

    def _repeat(self, node: ast.Repeat, values: Sequence[Located]) -> None:
        outside = self.scope
        for value in values:
            if self._too_long(node.values.span):
                break
            self.scope = outside.inside(self._unpacked(node, value))
            self.items(node.items)
        self.scope = outside

    def _unpacked(self, node: ast.Repeat, value: Located) -> dict[str, Located | None]:
        names = [name.text for name in node.names]
        if not node.unpack:
            return {names[0]: value}
        if isinstance(value.value, tuple) and len(value.value) == len(names):
            return dict(zip(names, value.value, strict=True))
        found = f"{len(value.value)}" if isinstance(value.value, tuple) else describe(value.value)
        message = f"`repeat` takes {len(names)} values a time, found {found}"
        self.scope.collector.report("E403", value.span, message, notes=[(node.names[0].span, "taken apart here")])
        return dict.fromkeys(names)

    # layers

    @item.register
    def _(self, node: ast.Layer) -> None:
        self.layers += 1
        name = node.name.text if node.name else f"l{self.layers}"
        self._claim(name, node)
        candidates = [one for candidate in node.candidates for one in self._candidates(candidate)]
        activations = self._activations(node.activations)
        out = self._out_shape(node, name)
        if out is None or self.shape is None:
            self.shape = None
            return
        placed = [self._placed(one, name, Site(self.shape, out)) for one in candidates if one is not None]
        sound = tuple(one for one in placed if one is not None)
        stride = self.shape.height // out.height
        self._add(LayerDraft(name, self.shape, out, stride, sound, activations, self._title(node)), out)

    def _title(self, node: ast.Layer) -> Span:
        return node.name.span if node.name else node.candidates[0].span

    def _claim(self, name: str, node: ast.Layer) -> None:
        span = self._title(node)
        first = self.names.get(name)
        self.names.setdefault(name, span)
        if first == span:
            help = "leave the name out: layers of a `repeat` are named after their position"
            self.scope.collector.report("E308", span, f"`{name}` names a layer in every round of `repeat`", help=help)
        elif first is not None:
            report_twice("a layer", ast.Word(name, span), first, self.scope.collector)

    def _out_shape(self, node: ast.Layer, name: str) -> Shape | None:
        channels = self._whole(node.channels, "channels")
        stride = 1 if node.stride is None else self._whole(node.stride, "stride")
        shape = self.shape
        if channels is None or stride is None or shape is None:
            return None
        if shape.flat and stride > 1:
            assert node.stride is not None, "a stride above 1 was written"
            self.scope.collector.report(
                "E204", node.stride.span, f"`{name}` reads a vector, which has no positions to stride over"
            )
            return None
        if shape.height % stride or shape.width % stride:
            assert node.stride is not None, "a stride above 1 was written"
            message = f"`stride` (={stride}) must divide the {shape.height}x{shape.width} map that `{name}` reads"
            self.scope.collector.report("E201", node.stride.span, message)
            return None
        return attrs.evolve(shape, channels=channels, height=shape.height // stride, width=shape.width // stride)

    def _whole(self, node: ast.Expression, name: str) -> int | None:
        value = evaluate(node, self.scope)
        return None if value is None else cast("int | None", convert(value, Whole(), name, self.scope))

    def _activations(self, calls: Iterable[ast.Call]) -> tuple[str, ...]:
        for call in calls:
            if call.name.text not in ACTIVATIONS:
                unknown("E306", "activation", call.name.text, call.name.span, ACTIVATIONS, self.scope.collector)
            elif call.arguments:
                self.scope.collector.report("E403", call.span, f"`{call.name.text}` takes no arguments")
        return tuple(call.name.text for call in calls)

    # candidates

    def _candidates(self, node: ast.Candidate) -> list[CandidateDraft | None]:
        prior = None if node.prior is None else evaluate_prior(node.prior, self.scope)
        value = evaluate(node.kind, self.scope)
        if value is None:
            return [None]
        if isinstance(value.value, tuple):
            if self._too_long(value.span, len(value.value)):
                return [None]
            drafts = [self._candidate(one) for one in value.value]
            if not drafts:
                self.scope.collector.report(
                    "E403", value.span, "a layer needs at least one candidate, found an empty list"
                )
        else:
            drafts = [self._candidate(value)]
        return [None if one is None else attrs.evolve(one, prior=prior) for one in drafts]

    def _candidate(self, value: Located) -> CandidateDraft | None:
        applied = value.value
        if not isinstance(applied, Applied):
            self.scope.collector.report("E401", value.span, f"a candidate must be a kind, found {describe(applied)}")
            return None
        if applied.name not in KINDS:
            also = () if "-" in applied.name else self.scope.names
            unknown("E302", "kind", applied.name, applied.name_span, KINDS, self.scope.collector, also=also)
            return None
        kind = KINDS[applied.name]
        bound = bind(call_signature(kind), applied.arguments, value.span, self.scope)
        if bound is None:
            return None
        scale = cast("float | None", bound.pop("init_scale", None))
        return CandidateDraft(kind, cast("dict[str, Value]", bound), scale, None, value.span)

    def _placed(self, draft: CandidateDraft, layer: str, site: Site) -> CandidateDraft | None:
        refusal = draft.kind.refusal(site, draft.arguments)
        if refusal is None:
            return attrs.evolve(draft, arguments=completed(draft.kind, draft.arguments, site))
        self._refuse(refusal, draft, layer)
        return None

    def _refuse(self, refusal: Refusal, draft: CandidateDraft, layer: str) -> None:
        begun = self.started.span if self.started else draft.span
        line = f" on line {begun.line}" if begun.source == draft.span.source else ""
        end = attrs.evolve(begun, line=begun.end_line, column=begun.end_column)
        message = refusal.message.replace("{layer}", layer)
        self.scope.collector.report(
            refusal.code,
            draft.span,
            f"`{draft.kind.name}` {message}",
            label=refusal.label,
            help=refusal.help.replace("{line}", line),
            fix=Fix("lift the input", end, "\n  lift p4") if refusal.lift else None,
        )
