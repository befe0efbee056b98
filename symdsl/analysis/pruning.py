"""Turn facts back into a syntax tree: a network written out layer by layer, with fewer candidates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import attrs

from symdsl.analysis.averages import with_ranges, without_idle
from symdsl.analysis.dependencies import names_in, reachable
from symdsl.analysis.facts import (
    Average,
    Candidate,
    Facts,
    Flatten,
    Input,
    Join,
    Layer,
    Lift,
    Mean,
    Node,
    Pool,
    Prior,
    Project,
)
from symdsl.analysis.joins import emptied, without
from symdsl.analysis.priors import BIAS
from symdsl.analysis.symmetry import default_init_scale
from symdsl.catalog.networks import LARGEST
from symdsl.catalog.signatures import Quoted, Value
from symdsl.kinds import KINDS, K, Site, not_implied
from symdsl.language import ast


def pruned_program(
    program: ast.Program, facts: Facts, keep: Mapping[str, set[str]], ranges: Mapping[str, float]
) -> ast.Program:
    """Return a program for the same facts, without the candidates that are left out.

    Args:
        program: where data and search are taken from.
        facts: where the network and its priors are taken from.
        keep: names of the candidates to keep by name of the layer; layers not named keep all. A residual block whose
            last layer keeps none is left out.
        ranges: of averages, by `average.generator`; those not named stay.

    Raises:
        ValueError: if a layer, candidate or range of that name does not exist, none would be left in a layer that
            stays, or a range is out of bounds.
    """
    _check_ranges(facts, ranges)
    nodes = without_idle(without(facts.network.nodes, emptied(facts.network.nodes, keep)))
    _check_names(facts, nodes, keep)
    nodes = tuple(with_ranges(_kept(node, keep), _moved(node, ranges)) for node in nodes)
    rules = tuple(rule for node in nodes if isinstance(node, Layer) for rule in _rules(node))
    network = ast.Network(ast.Word(facts.network.name), None, _items(nodes))
    data = [one for one in program.statements if isinstance(one, ast.Data)]
    search = [one for one in program.statements if isinstance(one, ast.Search)]
    lets = {one.name.text: one for one in program.statements if isinstance(one, ast.Let)}
    needed = reachable({name: names_in(let.value) for name, let in lets.items()}, names_in((*data, *search)))
    kept = [let for name, let in lets.items() if name in needed]
    priors = [ast.Priors(rules)] if rules else []
    return ast.Program((*kept, *data, network, *priors, *search))


def _check_names(facts: Facts, left: Iterable[Node], keep: Mapping[str, set[str]]) -> None:
    stays = {node.name for node in left}
    layers = {layer.name: layer for layer in facts.network.layers}
    for name, candidates in keep.items():
        if name not in layers:
            raise ValueError(f"`keep` names `{name}`, but the network has no such layer")
        known = {candidate.name for candidate in layers[name].candidates}
        if (name in stays and not candidates) or candidates - known:
            raise ValueError(f"`keep[{name!r}]` (={sorted(candidates)}) must be some of {sorted(known)}")


def _check_ranges(facts: Facts, ranges: Mapping[str, float]) -> None:
    averages = (node for node in facts.network.nodes if isinstance(node, Average))
    bounds = {f"{node.name}.{key}": LARGEST[key] for node in averages for key, _ in node.ranges}
    for key, value in ranges.items():
        if key not in bounds:
            raise ValueError(f"`ranges` names `{key}`, but the network has no such range")
        if not 0 <= value <= bounds[key]:
            raise ValueError(f"`ranges[{key!r}]` (={value}) must be from 0 to {bounds[key]:g}")


def _kept(node: Node, keep: Mapping[str, set[str]]) -> Node:
    if not isinstance(node, Layer) or node.name not in keep:
        return node
    return attrs.evolve(node, candidates=tuple(one for one in node.candidates if one.name in keep[node.name]))


def _moved(node: Node, ranges: Mapping[str, float]) -> dict[str, float]:
    """To four digits the ranges of an average that differ from those stated by more than a network's round-off."""
    if not isinstance(node, Average):
        return {}
    stated = {f"{node.name}.{key}": old for key, old in node.ranges}
    moved = {key for key in stated.keys() & ranges.keys() if not math.isclose(ranges[key], stated[key], rel_tol=1e-6)}
    return {key: float(f"{ranges[key]:.4g}") for key in moved}


# ---------------------------------------------------------------- items


def _items(nodes: Iterable[Node]) -> tuple[ast.Item, ...]:
    """The items that stand for some nodes, those of a residual block in its braces."""
    items: dict[str, ast.Item] = {}
    begun: dict[str, Average] = {}
    for node in nodes:
        if isinstance(node, Join):
            body = list(items)[list(items).index(node.since) + 1 :]
            items[node.name] = ast.Residual(tuple(items.pop(name) for name in body))
        elif isinstance(node, Average):
            begun[node.name] = node
            items[node.name] = ast.Flatten()
        elif isinstance(node, Mean):
            body = list(items)[list(items).index(node.since) + 1 :]
            inside = tuple(items.pop(name) for name in body)
            del items[node.since]
            items[node.name] = ast.Average(_transformation(begun[node.since]), inside)
        else:
            items[node.name] = _item(node)
    return tuple(items.values())


def _transformation(node: Average) -> ast.Call:
    named: dict[str, Value] = dict(node.ranges)
    named["samples"] = node.samples
    if node.fixed:
        named["fixed"] = True
    return _call("affine", named)


def _item(node: Input | Lift | Layer | Project | Pool | Flatten) -> ast.Item:
    match node:
        case Input(out_shape=shape) if shape.is_line:
            return ast.Input(_call("signal", {}, shape.channels, shape.width))
        case Input(out_shape=shape):
            return ast.Input(_call("image", {}, shape.channels, shape.height, shape.width))
        case Lift(out_shape=shape):
            return ast.Lift(ast.Word(shape.group))
        case Project(reduction=reduction):
            return ast.Project(ast.Word(reduction))
        case Pool(reduction=reduction):
            return ast.Pool(ast.Word(reduction))
        case Flatten():
            return ast.Flatten()
        case Layer():
            return _layer(node)


def _layer(node: Layer) -> ast.Layer:
    preserved = [candidate.preserves for candidate in node.candidates]
    return ast.Layer(
        name=ast.Word(node.name),
        candidates=tuple(
            ast.Candidate(_kind(one, node, default_init_scale(one.preserves, preserved)), _own_prior(one, node))
            for one in node.candidates
        ),
        channels=ast.Number(node.out_shape.channels),
        stride=ast.Number(node.stride) if node.stride > 1 else None,
        activations=tuple(ast.Call(ast.Word(name)) for name in node.activations),
    )


def _kind(candidate: Candidate, layer: Layer, scale: float) -> ast.Call:
    by_place = {K.name}.intersection(KINDS[candidate.kind].signature.names[:1])
    named = {name: value for name, value in _stated(candidate, layer).items() if name not in by_place}
    given = [value for name, value in candidate.arguments if name in by_place]
    if candidate.init_scale != scale:
        named["init_scale"] = candidate.init_scale
    return _call(candidate.kind, named, *given)


def _stated(candidate: Candidate, layer: Layer) -> dict[str, Value]:
    """The arguments that the spec must have had: only their words are sure to be no names of its lets."""
    return not_implied(KINDS[candidate.kind], dict(candidate.arguments), Site(layer.in_shape, layer.out_shape))


def _call(name: str, named: Mapping[str, Value], *given: Value) -> ast.Call:
    parameters = KINDS[name].signature.parameters if name in KINDS else ()
    quoted = {one.name for one in parameters if isinstance(one.type, Quoted)}
    arguments = [ast.Argument(None, _literal(value)) for value in given]
    arguments += [
        ast.Argument(ast.Word(key), ast.Text(str(value)) if key in quoted else _literal(value))
        for key, value in named.items()
    ]
    return ast.Call(ast.Word(name), tuple(arguments) or None)


def _literal(value: Value) -> ast.Expression:
    """A number, a flag, or a word of the language."""
    if isinstance(value, bool):
        return ast.Flag(value)
    return ast.Number(value) if isinstance(value, int | float) else ast.Call(ast.Word(str(value)))


# ---------------------------------------------------------------- priors


def _own_prior(candidate: Candidate, layer: Layer) -> ast.Call | None:
    """The prior that is written at a candidate, because a rule would reach another one as well."""
    pattern = _pattern(candidate, layer)
    if [_pattern(one, layer) for one in layer.candidates].count(pattern) == 1:
        return None
    priors = [tensor.prior for tensor in candidate.tensors if tensor.prior.stated or tensor.prior.learned]
    alike = all(prior.stated and prior == priors[0] for prior in priors)
    return _normal(priors[0]) if priors and alike else None


def _rules(layer: Layer) -> Iterable[ast.Rule]:
    found: dict[tuple[ast.Pattern, ...], Prior] = {}
    for candidate in layer.candidates:
        if _own_prior(candidate, layer) is None:
            stated = (tensor for tensor in candidate.tensors if tensor.prior.stated)
            place = ast.Pattern(layer.name), _pattern(candidate, layer)
            found |= {(*place, ast.Pattern(tensor.name)): tensor.prior for tensor in stated}
    if layer.bias is not None and layer.bias.stated:
        found[ast.Pattern(layer.name), ast.Pattern(BIAS)] = layer.bias
    yield from (ast.Rule(selector, _normal(prior)) for selector, prior in found.items())


def _pattern(candidate: Candidate, layer: Layer) -> ast.Pattern:
    alone = [one.kind for one in layer.candidates].count(candidate.kind) == 1
    parameters = KINDS[candidate.kind].signature.names
    given = {name: value for name, value in candidate.arguments if name in parameters}
    given = {name: given[name] for name in _stated(candidate, layer) if name in given} or given
    return ast.Pattern(candidate.kind, None if alone else _call(candidate.kind, given).arguments)


def _normal(prior: Prior) -> ast.Call:
    named: dict[str, Value] = {"precision": prior.precision}
    if not prior.learned:
        named["fixed"] = True
    return _call("normal", named)
