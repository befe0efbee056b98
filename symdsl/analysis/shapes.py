"""Shapes: the items of a network, one after the other, and the map each hands to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import singledispatchmethod
from typing import Literal, cast

import attrs

from symdsl.analysis.drafts import CandidateDraft, Draft, LayerDraft, Walk
from symdsl.analysis.expressions import evaluate, given, unknown_name
from symdsl.analysis.facts import Data, Flatten, Input, Lift, Pool, Project, Shape, Value
from symdsl.analysis.kinds import KINDS, Refusal, Site, call_signature, completed
from symdsl.analysis.names import Scope, report_twice, unknown
from symdsl.analysis.parameters import bind_parameters
from symdsl.analysis.priors import evaluate_prior
from symdsl.analysis.types import bind, bind_partly, convert
from symdsl.analysis.values import Applied, Located, describe
from symdsl.catalog.networks import ACTIVATIONS, IMAGE, REDUCTIONS
from symdsl.catalog.signatures import Whole
from symdsl.diagnostics import Fix, Span
from symdsl.groups import GROUPS, TRIVIAL
from symdsl.language import ast

_VISITS = "items, rounds and candidates"
_MOST_CANDIDATES = 100
_DEEPEST = 50
_CAUSES = {"size": "sets the size of the map", "lift": "lifted here", "flatten": "flattened here"}
"""What to say of the earlier item that a refusal follows from."""


@attrs.frozen
class Blocks:
    """The blocks of a spec.

    Attributes:
        known: by name.
        incomplete: whether there may be others that could not be read.
        used: names of those that were asked for.
    """

    known: Mapping[str, ast.Block]
    incomplete: bool
    used: set[str] = attrs.field(factory=set)


def walk(network: ast.Network, blocks: Blocks, scope: Scope, data: Data | None) -> Walk:
    """Infer the shape of every item of a network.

    Args:
        network: its items.
        blocks: what it may use, by name.
        scope: what names stand for, the network's parameters included.
        data: what it has to fit, if that is known.
    """
    walker = _Walker(scope, data, blocks)
    walker.items(network.items)
    walker.finish(network)
    sound = {draft.name for draft in walker.drafts if isinstance(draft, LayerDraft)}
    doubtful = walker.doubtful | (walker.layers.keys() - sound)
    return Walk(tuple(walker.drafts), tuple(walker.layers), frozenset(doubtful), walker.complete)


def walk_block(block: ast.Block, blocks: Blocks, scope: Scope) -> None:
    """Report what is wrong with a block whatever the map it reads, and whatever `scope` does not know."""
    walker = _Walker(scope, None, blocks, body=_Body(f"{block.name.text}/"), open=(block.name.text,))
    walker.items(block.items)


@attrs.define
class _Body:
    """The items between two braces that share names: those of a network, or of a block in use.

    Attributes:
        path: what the names of its layers begin with.
        layers: how many it has so far.
        uses: how often it used each block so far.
    """

    path: str = ""
    layers: int = 0
    uses: Counter[str] = attrs.field(factory=Counter)


@attrs.define
class _Walker:
    """Goes from item to item.

    Attributes:
        scope: what names stand for here.
        data: as in `walk`.
        blocks: what may be used.
        body: what shares names with the next item.
        open: names of the blocks in use here.
        depth: how many blocks and `repeat`s are open here.
        drafts: those finished.
        shape: of the map behind them; `None` where that is not known.
        vague: whether its channels are not known, but stand at 1.
        made: the last item that set the size of the map, lifted, projected, or flattened it.
    """

    scope: Scope
    data: Data | None
    blocks: Blocks
    body: _Body = attrs.field(factory=_Body)
    open: tuple[str, ...] = ()
    depth: int = 0
    drafts: list[Draft] = attrs.field(factory=list)
    shape: Shape | None = None
    vague: bool = False
    made: dict[str, Span] = attrs.field(factory=dict)
    doubtful: set[str] = attrs.field(factory=set)
    complete: bool = True
    started: ast.Input | None = None
    layers: dict[str, None] = attrs.field(factory=dict)
    names: dict[str, Span] = attrs.field(factory=dict)
    used: Counter[str] = attrs.field(factory=Counter)

    def items(self, items: Iterable[ast.Item]) -> None:
        for item in items:
            if self._too_long(item.span):
                return
            begun = self.started is not None or self.open or isinstance(item, ast.Input | ast.Repeat | ast.Unread)
            if not begun and self.complete:
                self.scope.collector.report(
                    "E211", item.span, "a network begins with `input`", help="write `input image(...)` first"
                )
                self.started = ast.Input(ast.Call(ast.Word("image", item.span)), item.span)
            self.item(item)

    def _too_long(self, span: Span, more: int = 1) -> bool:
        """Count items, rounds and candidates; true, and reported once, when there are too many to go on."""
        if self.scope.affords(_VISITS, span, more):
            return False
        self._lose()
        return True

    def finish(self, network: ast.Network) -> None:
        """Check what comes out at the end."""
        if not network.items:
            self.scope.collector.report("E211", network.name.span, f"`{network.name.text}` is empty")
        shape, last = self.shape, network.items[-1] if network.items else None
        if shape is None or last is None:
            return
        if not shape.flat:
            message = f"`{network.name.text}` ends with a map of {shape}, but must end with a vector"
            self.scope.collector.report("E207", last.span, message, help="add `flatten` and a layer `FC -> classes`")
        elif self.data is not None and not self.vague and shape.channels != self.data.classes:
            classes = f"{self.data.classes} {'classes' if self.data.task == 'classification' else 'targets'}"
            message = f"`{network.name.text}` ends with {shape.channels} channels, but the data have {classes}"
            notes = [(self.data.source.span, f"has {classes} after all transforms")]
            self.scope.collector.report("E207", last.span, message, help="end with `-> classes`", notes=notes)

    def _note(self, what: str, words: str) -> list[tuple[Span, str]]:
        """The item that made the map what it is, as notes of a diagnostic."""
        return [(self.made[what], words)] if what in self.made else []

    def _lose(self) -> None:
        """Go on without knowing the map, nor how many layers there are."""
        self.shape = None
        self.complete = False

    @singledispatchmethod
    def item(self, node: object) -> None:
        raise TypeError(f"`node` (={node!r}) must be an item of a network")

    @item.register
    def _(self, node: ast.Unread) -> None:
        self.shape = None
        if node.what == "layer":
            self._begin_layer(node.name, node.span)
        elif node.what in ("", "repeat", "use") or self.started is None:
            self.complete = False

    # input, lift, project, pool, flatten

    @item.register
    def _(self, node: ast.Input) -> None:
        if self.open:
            help = "a block goes on from the map it is used on; drop this line"
            self.scope.collector.report("E211", node.span, "`input` begins a network, not a block", help=help)
            return
        if self.started is not None:
            notes = [(self.started.span, "the first")]
            self.scope.collector.report(
                "E211", node.span, "a network has one `input`", label="one too many", notes=notes
            )
            return
        self.started = node
        self.shape = self._image(node)
        self.made["size"] = node.span
        if self.shape is not None:
            self.drafts.append(Input("input", self.shape, node.span))

    def _image(self, node: ast.Input) -> Shape | None:
        call = node.image
        if call.name.text != IMAGE.name:
            unknown("E304", "input", call.name.text, call.name.span, [IMAGE.name], self.scope.collector)
            return None
        bound, sound = bind_partly(IMAGE, given(call.arguments or (), self.scope), call.span, self.scope)
        channels, height, width = (cast("int | None", bound.get(name)) for name in IMAGE.names)
        self.vague = channels is None
        if height is None or width is None:
            return None
        shape = Shape(channels or 1, height, width)
        if sound and self.data is not None:
            self._check_data(shape, self.data, call)
        return shape

    def _check_data(self, shape: Shape, data: Data, call: ast.Call) -> None:
        delivered = Shape(data.channels, data.height, data.width)
        if shape == delivered:
            return
        wanted = f"image({delivered.channels}, {delivered.height}, {delivered.width})"
        message = f"the network reads images of {shape}, but the data deliver {delivered}"
        notes = [(data.source.span, f"delivers {delivered} after all transforms")]
        self.scope.collector.report(
            "E208", call.span, message, help=f"write `{wanted}`, or change the data", notes=notes
        )

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
            notes, help = self._note("lift", "lifted here"), "a network is lifted once; drop this line"
            self.scope.collector.report("E206", node.span, message, help=help, notes=notes)
        else:
            self.made["lift"] = node.span
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
            message, notes = "`project` needs a lifted map, found a plain one", self._note("project", "projected here")
            self.scope.collector.report("E205", node.span, message, help=help, notes=notes)
        else:
            self.made["project"] = node.span
            self.shape = out = attrs.evolve(shape, group=TRIVIAL)
            if reduction:
                self._add(Project(self._name("project"), shape, out, reduction, node.span), out)

    @item.register
    def _(self, node: ast.Pool) -> None:
        reduction = self._reduction(node.reduction)
        shape = self.shape
        if shape is None:
            return
        if shape.flat:
            self._needs_image("pool", node.span)
        else:
            self.made["size"] = node.span
            self.shape = out = attrs.evolve(shape, height=1, width=1)
            if reduction:
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
            message, notes = "the map is a vector already", self._note("flatten", "flattened here")
            self.scope.collector.report("E204", node.span, message, help="drop this line", notes=notes)
            return
        if shape.group != TRIVIAL:
            message = (
                f"`flatten` keeps the elements of `{shape.group}` apart: nothing after it is invariant to the group"
            )
            notes, help = self._note("lift", "lifted here"), "add `project max` before it"
            self.scope.collector.report("W106", node.span, message, help=help, notes=notes)
        self.made["flatten"] = node.span
        out = Shape(shape.size, 1, 1, flat=True)
        self._add(Flatten(self._name("flatten"), shape, out, node.span), out)

    def _needs_image(self, what: str, span: Span) -> None:
        message, notes = f"`{what}` needs an image, found a vector", self._note("flatten", "flattened here")
        self.scope.collector.report("E204", span, message, help="move it before `flatten`", notes=notes)

    def _add(self, draft: Draft, shape: Shape) -> None:
        self.drafts.append(draft)
        self.shape = shape

    def _name(self, what: str) -> str:
        self.used[what] += 1
        return what if self.used[what] == 1 else f"{what}-{self.used[what]}"

    # use

    @item.register
    def _(self, node: ast.Use) -> None:
        path = self._claim_use(node)
        self.blocks.used.add(node.block.name.text)
        block = self.blocks.known.get(node.block.name.text)
        if block is None:
            self._unknown_block(node.block.name)
        elif block.name.text in self.open:
            notes = [(block.name.span, "this block")]
            self.scope.collector.report("E309", node.span, f"`{block.name.text}` uses itself", notes=notes)
            self._lose()
        elif not self._too_deep(node.span):
            self._use(block, node, path)

    def _unknown_block(self, called: ast.Word) -> None:
        if not self.blocks.incomplete:
            unknown("E307", "block", called.text, called.span, self.blocks.known, self.scope.collector)
        self._lose()

    def _claim_use(self, node: ast.Use) -> str:
        """The path of a use; where its name is taken, which is reported, one that would do."""
        called = node.block.name.text
        self.body.uses[called] += 1
        number = f"{'_' if called[-1].isdigit() else ''}{self.body.uses[called]}"
        name = node.name.text if node.name else f"{called}{number}"
        claimed = self._claim("a part of the network", name, node.title)
        return self.body.path + (name if claimed else f"{name}-{number}") + "/"

    def _use(self, block: ast.Block, node: ast.Use, path: str) -> None:
        scope, body, opened = self.scope, self.body, self.open
        local = bind_parameters(block, node.block, scope)
        noting = attrs.evolve(scope.outside().inside(local), collector=scope.collector.noting(node.span, "used here"))
        self.scope, self.body, self.open = noting, _Body(path), (*opened, block.name.text)
        self.depth += 1
        self.items(block.items)
        self.depth -= 1
        self.scope, self.body, self.open = scope, body, opened

    def _too_deep(self, span: Span) -> bool:
        if self.depth < _DEEPEST:
            return False
        message = f"blocks and `repeat`s are nested more than {_DEEPEST} deep"
        self.scope.collector.report("E105", span, message)
        self._lose()
        return True

    # repeat

    @item.register
    def _(self, node: ast.Repeat) -> None:
        values = evaluate(node.values, self.scope)
        if values is not None and isinstance(values.value, tuple):
            self._repeat(node, values.value)
            return
        if values is not None and not unknown_name(values, self.scope):
            message = f"`repeat` needs a list, found {describe(values.value)}"
            self.scope.collector.report("E401", values.span, message, notes=values.notes)
        self._skim(node)

    def _skim(self, node: ast.Repeat) -> None:
        """Look for what is wrong with the items of a `repeat` whatever its values are."""
        outside, names = self.scope, dict(self.names)
        self._lose()
        self.scope = outside.inside(dict.fromkeys(name.text for name in node.names))
        self.items(node.items)
        self.scope, self.names = outside, names
        self._lose()

    def _repeat(self, node: ast.Repeat, values: Sequence[Located]) -> None:
        if self._too_deep(node.span):
            return
        outside = self.scope
        self.depth += 1
        for value in values:
            if self._too_long(node.values.span):
                break
            self.scope = outside.inside(self._unpacked(node, value))
            self.items(node.items)
        self.depth -= 1
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
        name = self._begin_layer(node.name, self._title(node))
        candidates = self._all_candidates(node)
        activations = self._activations(node.activations)
        out = self._out_shape(node, name)
        shape, self.shape = self.shape, out
        if out is None or shape is None:
            return
        title = self._title(node)
        placed = [None if one is None else self._placed(one, name, Site(shape, out), title) for one in candidates]
        sound = tuple(one for one in placed if one is not None)
        if len(sound) < len(candidates):
            self.doubtful.add(name)
        stride = shape.height // out.height
        if stride > 1:
            self.made["size"] = node.span
        self._add(LayerDraft(name, shape, out, stride, sound, activations, title), out)

    def _begin_layer(self, word: ast.Word | None, span: Span) -> str:
        """The name of the next layer, its path included."""
        self.body.layers += 1
        own = word.text if word else f"l{self.body.layers}"
        self._claim("a layer", own, span)
        self.layers[self.body.path + own] = None
        return self.body.path + own

    def _title(self, node: ast.Layer) -> Span:
        return node.name.span if node.name else node.candidates[0].span

    def _claim(self, what: str, name: str, span: Span) -> bool:
        """Take a name for something in this body; false, and reported, where it is taken."""
        path = self.body.path + name
        if path not in self.names:
            self.names[path] = span
            return True
        if self.names[path] == span:
            help = "leave the name out: what a `repeat` holds is named after its position"
            self.scope.collector.report("E308", span, f"`{name}` names {what} in every round of `repeat`", help=help)
        else:
            report_twice(what, ast.Word(name, span), self.names[path], self.scope.collector)
        return False

    def _out_shape(self, node: ast.Layer, name: str) -> Shape | None:
        channels = self._whole(node.channels, "channels")
        stride = 1 if node.stride is None else self._whole(node.stride, "stride")
        shape = self.shape
        self.vague = channels is None
        if stride is None or shape is None:
            return None
        if shape.flat and stride > 1:
            assert node.stride is not None, "a stride above 1 was written"
            message, notes = (
                f"`{name}` reads a vector, which has no positions to stride over",
                self._note("flatten", "flattened here"),
            )
            self.scope.collector.report("E204", node.stride.span, message, notes=notes)
            stride = 1
        if shape.height % stride or shape.width % stride:
            assert node.stride is not None, "a stride above 1 was written"
            message = f"`stride` (={stride}) must divide the {shape.height}x{shape.width} map that `{name}` reads"
            notes = self._note("size", f"makes the map {shape.height}x{shape.width}")
            self.scope.collector.report("E201", node.stride.span, message, notes=notes)
            return None
        return attrs.evolve(shape, channels=channels or 1, height=shape.height // stride, width=shape.width // stride)

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

    def _all_candidates(self, node: ast.Layer) -> list[CandidateDraft | None]:
        found: list[CandidateDraft | None] = []
        for candidate in node.candidates:
            found += self._candidates(candidate)
            if len(found) > _MOST_CANDIDATES:
                message = f"a layer has at most {_MOST_CANDIDATES} candidates"
                self.scope.collector.report("E405", candidate.span, message)
                return [None]
        return found

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
            message = f"a candidate must be a kind, found {describe(applied)}"
            self.scope.collector.report("E401", value.span, message, notes=value.notes)
            return None
        if applied.name not in KINDS:
            self._unknown_kind(applied)
            return None
        kind = KINDS[applied.name]
        bound = bind(call_signature(kind), applied.arguments, value.span, self.scope)
        if bound is None:
            return None
        scale = cast("float | None", bound.pop("init_scale", None))
        return CandidateDraft(kind, cast("dict[str, Value]", bound), scale, None, value.span)

    def _unknown_kind(self, applied: Applied) -> None:
        called = bool(applied.arguments) or "-" in applied.name
        if called or not self.scope.excuses(applied.name, KINDS):
            also = () if "-" in applied.name else self.scope.names
            unknown("E302", "kind", applied.name, applied.name_span, KINDS, self.scope.collector, also=also)

    def _placed(self, draft: CandidateDraft, layer: str, site: Site, title: Span) -> CandidateDraft | None:
        refusal = draft.kind.refusal(site, draft.arguments)
        if refusal is None:
            return attrs.evolve(draft, arguments=completed(draft.kind, draft.arguments, site))
        notes = self._note(refusal.cause, _CAUSES[refusal.cause]) if refusal.cause else []
        if draft.span.line != title.line or draft.span.source != title.source:
            notes.insert(0, (title, f"`{layer}` reads {site.reads}"))
        self._refuse(refusal, draft, layer, notes)
        return None

    def _refuse(self, refusal: Refusal, draft: CandidateDraft, layer: str, notes: Sequence[tuple[Span, str]]) -> None:
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
            notes=notes,
            fix=Fix("lift the input", end, f"\n  lift {refusal.lift}") if refusal.lift else None,
        )
