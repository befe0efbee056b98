"""The passes from a tree to facts, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import attrs

from symdsl.analysis.checks import (
    check_comments,
    check_invariance,
    check_lets,
    check_network,
    check_objective,
    check_search,
    check_twins,
)
from symdsl.analysis.dataset import analyse_data
from symdsl.analysis.drafts import CandidateDraft, Draft, LayerDraft, Walk
from symdsl.analysis.expressions import evaluate
from symdsl.analysis.facts import Candidate, Data, Facts, Layer, Network, Node, ParameterTensor, Search
from symdsl.analysis.lets import check_unused_lets, settle_lets
from symdsl.analysis.library import check_templates
from symdsl.analysis.names import Definitions, Scope, define, hidden, unknown
from symdsl.analysis.parameters import bind_parameters
from symdsl.analysis.priors import Rules, read_rules
from symdsl.analysis.search import analyse_search
from symdsl.analysis.shapes import walk
from symdsl.analysis.symmetry import default_init_scale
from symdsl.analysis.values import Located
from symdsl.analysis.walker import Blocks
from symdsl.diagnostics import Collector
from symdsl.language import ast


def analyse(
    program: ast.Program,
    name: str,
    collector: Collector,
    used: Collection[str] = frozenset(),
    spent: Counter[str] | None = None,
) -> Facts | None:
    """Check a program, and return all facts that it states, or nothing if it has an error.

    Args:
        program: the tree, without imports.
        name: of the spec; the empty text for that of its network.
        collector: receives errors and warnings.
        used: names of `let`s that are in use, even if nothing in the tree asks for them.
        spent: how much was asked for before of what is limited; counts on.

    Returns:
        The facts, or nothing if there was an error.
    """
    found = _examine(program, collector, Counter() if spent is None else spent)
    definitions, scope, data, search = found.definitions, found.scope, found.data, found.search
    check_unused_lets(scope)
    check_twins([draft for draft in found.walked.drafts if isinstance(draft, LayerDraft)], collector)
    check_comments(program, scope)
    network = Network(found.title, found.nodes())
    if definitions.network is None:
        return None
    found.rules.report_idle(found.walked)
    check_network(network, definitions.network.name.span, collector)
    if collector.failed or data is None or search is None:
        return None
    spans = {setting.name.text: setting.span for setting in definitions.search}
    check_search(search, data, spans, definitions.network.name.span, collector)
    check_objective(search, network, spans, collector)
    check_invariance(search, data, spans, collector)
    if collector.failed:
        return None
    check_lets(scope, program.span.source, used)
    return Facts(name or found.title, data, network, search)


@attrs.frozen
class Findings:
    """The findings of the passes in a program that may contain errors, before anything is checked across them.

    Attributes:
        definitions: the statements, sorted.
        scope: what names stand for outside of networks.
        data: the facts about the data, unless something is wrong with them.
        walked: the items of the network whose shapes are known.
        title: the name of the network, empty without one.
        rules: of priors.
        search: the settings, unless one is wrong.
    """

    definitions: Definitions
    scope: Scope
    data: Data | None
    walked: Walk
    title: str
    rules: Rules
    search: Search | None

    def nodes(self) -> tuple[Node, ...]:
        """The items of the network with their priors."""
        return tuple(_finished(draft, self.rules) for draft in self.walked.drafts)


def _examine(program: ast.Program, collector: Collector, spent: Counter[str]) -> Findings:
    """Take the passes in order: names, `let`s, data, shapes, priors, search."""
    definitions, scope, dataset = _begun(program, collector, spent)
    data = dataset.facts()
    blocks = Blocks(definitions.blocks, hidden("block", definitions.gaps))
    walked, title = _network(definitions, blocks, scope, data)
    check_templates(_idle(definitions, blocks), blocks, scope)
    rules = read_rules(definitions.priors, scope)
    search = analyse_search(definitions.search, program.span, scope)
    return Findings(definitions, scope, data, walked, title, rules, search)


def _begun(program: ast.Program, collector: Collector, spent: Counter[str]) -> tuple[Definitions, Scope, _Dataset]:
    """Return the definitions, what names stand for outside of networks, and the data, found when first asked for."""
    definitions = define(program, collector)
    dataset = _Dataset(definitions)
    dataset.scope = Scope(
        collector,
        definitions.lets,
        evaluate,
        {"classes": dataset.classes, "channels": dataset.channels},
        spent,
        incomplete=hidden("let", definitions.gaps),
    )
    settle_lets(dataset.scope, definitions.data)
    return definitions, dataset.scope, dataset


@attrs.define
class _Dataset:
    """The data, analysed when first asked for: a `let` may use what they define, and they may use `let`s."""

    definitions: Definitions
    scope: Scope | None = None
    _asked: bool = False
    _open: bool = False
    _facts: Data | None = None

    def facts(self) -> Data | None:
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
        return Located(found.classes, found.source.span) if found else None

    def channels(self) -> Located | None:
        """Channels of an example."""
        found = self.facts()
        return Located(found.channels, found.source.span) if found else None


def _network(definitions: Definitions, blocks: Blocks, scope: Scope, data: Data | None) -> tuple[Walk, str]:
    node = definitions.network
    if node is None:
        return Walk(), ""
    if isinstance(node, ast.Network):
        return walk(node, blocks, scope, data), node.name.text
    template = definitions.templates.get(node.template.name.text)
    if template is None:
        called = node.template.name
        if not hidden("network", definitions.gaps):
            unknown("E307", "network", called.text, called.span, definitions.templates, scope.collector)
        return Walk(), node.name.text
    local = bind_parameters(template, node.template, scope)
    network = attrs.evolve(template, name=node.name)
    return walk(network, blocks, scope.inside(local), data), node.name.text


def _idle(definitions: Definitions, blocks: Blocks) -> list[ast.Network | ast.Block]:
    """The networks that wait for parameters, but are not instantiated, and the blocks that are not used."""
    node = definitions.network
    called = node.template.name.text if isinstance(node, ast.Instance) else None
    networks = [one for name, one in definitions.templates.items() if one.parameters and name != called]
    return [*networks, *(one for name, one in blocks.known.items() if name not in blocks.used)]


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
        ParameterTensor(one.name, one.shape, one.left, one.right, rules.of(layer, draft, one))
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


def data_facts(program: ast.Program, collector: Collector) -> Data | None:
    """Return the facts about the data alone, or nothing if they have an error, which is reported."""
    return _begun(program, collector, Counter())[2].facts()


def explore(program: ast.Program) -> Findings:
    """Return whatever can be determined about a program that may contain errors; `analyse` reports them."""
    return _examine(program, Collector(), Counter())
