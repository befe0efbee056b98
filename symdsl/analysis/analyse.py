"""The passes, in order."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from symdsl.analysis.checks import check_comments, check_lets, check_network, check_search, check_twins
from symdsl.analysis.dataset import DataFacts, analyse_data
from symdsl.analysis.drafts import CandidateDraft, Draft, LayerDraft, Walk
from symdsl.analysis.expressions import evaluate
from symdsl.analysis.facts import Candidate, Facts, Layer, Network, Node, ParameterTensor, Search
from symdsl.analysis.lets import check_unused_lets, settle_lets
from symdsl.analysis.library import check_templates
from symdsl.analysis.names import Definitions, Scope, define, hidden, unique, unknown
from symdsl.analysis.priors import Rules, read_rules
from symdsl.analysis.search import analyse_search
from symdsl.analysis.shapes import walk
from symdsl.analysis.symmetry import default_init_scale
from symdsl.analysis.values import Located
from symdsl.diagnostics import Collector, Span
from symdsl.language import ast


def analyse(program: ast.Program, name: str, collector: Collector) -> Facts | None:
    """Find out everything a spec says.

    Args:
        program: the tree, without imports.
        name: of the spec; the empty text for that of its network.
        collector: receives errors and warnings.

    Returns:
        The facts, or nothing if there was an error.
    """
    found = _examine(program, collector)
    definitions, scope, data, search = found.definitions, found.scope, found.data, found.search
    check_unused_lets(scope)
    check_twins([draft for draft in found.walked.drafts if isinstance(draft, LayerDraft)], collector)
    check_comments(program.comments, collector)
    network = Network(found.title, found.nodes())
    if definitions.network is None:
        return None
    found.rules.report_idle(found.walked)
    check_network(network, definitions.network.name.span, collector)
    if collector.failed or data is None or search is None:
        return None
    spans = {setting.name.text: setting.span for setting in definitions.search}
    check_search(search, spans, definitions.network.name.span, collector)
    if collector.failed:
        return None
    check_lets(scope, program.span.source)
    return Facts(name or found.title, data.data, network, search)


@attrs.frozen
class Findings:
    """What can be said about a program, wrong as it may be.

    Attributes:
        nodes: the items of its network whose shapes are known.
        scope: what names stand for outside of networks.
        data: the facts about the data, unless something is wrong with them.
    """

    nodes: tuple[Node, ...]
    scope: Scope
    data: DataFacts | None


def explore(program: ast.Program) -> Findings:
    """Find out as much as can be said about a program; whoever wants to know what is wrong asks `analyse`."""
    found = _examine(program, Collector())
    return Findings(found.nodes(), found.scope, found.data)


@attrs.frozen
class _Examined:
    """What the passes found, before anything is checked across them."""

    definitions: Definitions
    scope: Scope
    data: DataFacts | None
    walked: Walk
    title: str
    rules: Rules
    search: Search | None

    def nodes(self) -> tuple[Node, ...]:
        """The items of the network with their priors."""
        return tuple(_finished(draft, self.rules) for draft in self.walked.drafts)


def _examine(program: ast.Program, collector: Collector) -> _Examined:
    definitions = define(program, collector)
    dataset = _Dataset(definitions)
    scope = Scope(
        collector,
        definitions.lets,
        evaluate,
        {"classes": dataset.classes, "channels": dataset.channels},
        incomplete=hidden("let", definitions.gaps),
    )
    dataset.scope = scope
    settle_lets(scope, definitions.data)
    data = dataset.facts()
    walked, title = _network(definitions, scope, data)
    check_templates(_idle(definitions), scope)
    rules = read_rules(definitions.priors, scope)
    search = analyse_search(definitions.search, program.span, scope)
    return _Examined(definitions, scope, data, walked, title, rules, search)


@attrs.define
class _Dataset:
    """The data, analysed when first asked for: a `let` may use what they define, and they may use `let`s."""

    definitions: Definitions
    scope: Scope | None = None
    _asked: bool = False
    _open: bool = False
    _facts: DataFacts | None = None

    def facts(self) -> DataFacts | None:
        """The facts, unless something is wrong with them."""
        if self.definitions.data is None or self.scope is None:
            return None
        if self._open:
            self.scope.collector.report("E309", self.definitions.data.span, "the data are defined by themselves")
        if not self._asked:
            self._asked = self._open = True
            self._facts = analyse_data(self.definitions.data, self.scope)
            self._open = False
        return self._facts

    def classes(self) -> Located | None:
        """Classes, or target columns."""
        found = self.facts()
        return Located(found.data.classes, found.data.source.span) if found else None

    def channels(self) -> Located | None:
        """Channels of an example."""
        found = self.facts()
        return Located(found.data.channels, found.data.source.span) if found else None


# ---------------------------------------------------------------- networks


def _network(definitions: Definitions, scope: Scope, found: DataFacts | None) -> tuple[Walk, str]:
    node = definitions.network
    if node is None:
        return Walk(), ""
    data = found.data if found else None
    if isinstance(node, ast.Network):
        return walk(node, scope, data), node.name.text
    template = definitions.templates.get(node.template.name.text)
    if template is None:
        called = node.template.name
        if not hidden("network", definitions.gaps):
            unknown("E307", "network", called.text, called.span, definitions.templates, scope.collector)
        return Walk(), node.name.text
    local = _parameters(template, node.template, scope)
    return walk(attrs.evolve(template, name=node.name), scope.inside(local), data), node.name.text


def _idle(definitions: Definitions) -> list[ast.Network]:
    """The networks that wait for parameters, but are not instantiated."""
    node = definitions.network
    called = node.template.name.text if isinstance(node, ast.Instance) else None
    return [one for name, one in definitions.templates.items() if one.parameters and name != called]


def _parameters(template: ast.Network, call: ast.Call, scope: Scope) -> dict[str, Located | None]:
    """What the parameters of a template stand for; `None` for what is wrong, which is reported."""
    parameters = unique(template.parameters or (), "a parameter", scope.collector)
    values: dict[str, Located | None] = {}
    places: dict[str, Span] = {}
    for index, argument in enumerate(call.arguments or ()):
        name = _parameter(index, argument, tuple(parameters), template.name, scope)
        value = evaluate(argument.value, scope)
        if name in values:
            notes = [(places[name], "first time")]
            scope.collector.report("E308", argument.span, f"`{name}` is given twice", label="second time", notes=notes)
        elif name is not None:
            values[name], places[name] = value, argument.span
    for name, parameter in parameters.items():
        if name not in values and isinstance(parameter, ast.Parameter):
            values[name] = _default(parameter, call, scope)
    return values


def _parameter(
    index: int, argument: ast.Argument, names: Sequence[str], template: ast.Word, scope: Scope
) -> str | None:
    if argument.name is not None:
        if argument.name.text in names:
            return argument.name.text
        name = argument.name
        where = f" of `{template.text}`"
        unknown("E303", "parameter", name.text, name.span, names, scope.collector, where)
        return None
    if index < len(names):
        return names[index]
    message = f"`{template.text}` has {len(names)} parameter{'' if len(names) == 1 else 's'}, found one more"
    notes = [(template.span, "defined here")]
    scope.collector.report("E403", argument.span, message, label="one too many", notes=notes)
    return None


def _default(parameter: ast.Parameter, call: ast.Call, scope: Scope) -> Located | None:
    if parameter.default is not None:
        return evaluate(parameter.default, scope)
    message = f"`{call.name.text}` needs `{parameter.name.text}`"
    notes = [(parameter.name.span, "asked for here")]
    scope.collector.report("E403", call.span, message, notes=notes)
    return None


# ---------------------------------------------------------------- drafts to facts


def _finished(draft: Draft, rules: Rules) -> Node:
    if not isinstance(draft, LayerDraft):
        return draft
    preserved = [candidate.kind.preserves(draft.site, candidate.arguments) for candidate in draft.candidates]
    named = zip(draft.candidate_names, draft.candidates, preserved, strict=True)
    return Layer(
        name=draft.name,
        in_shape=draft.in_shape,
        out_shape=draft.out_shape,
        stride=draft.stride,
        candidates=tuple(
            _candidate(name, one, draft, own, default_init_scale(own, preserved), rules) for name, one, own in named
        ),
        bias=rules.of_bias(draft),
        activations=draft.activations,
        span=draft.span,
    )


def _candidate(
    name: str, draft: CandidateDraft, layer: LayerDraft, preserves: tuple[str, ...], scale: float, rules: Rules
) -> Candidate:
    site = layer.site
    tensors = tuple(
        ParameterTensor(one.name, one.shape, one.left, one.right, rules.of(layer, draft, one.name))
        for one in draft.kind.tensors(site, draft.arguments)
    )
    return Candidate(
        name=name,
        kind=draft.kind.name,
        arguments=tuple(draft.arguments.items()),
        init_scale=scale if draft.init_scale is None else draft.init_scale,
        tensors=tensors,
        preserves=preserves,
        multiply_adds=draft.kind.multiply_adds(site, draft.arguments),
        span=draft.span,
    )
