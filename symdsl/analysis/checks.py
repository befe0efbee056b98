"""Checks for what is valid but probably a mistake, and for what is too large."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from symdsl.analysis.dataset import trail
from symdsl.analysis.drafts import LayerDraft
from symdsl.analysis.facts import Data, FactorSize, Fisher, Layer, Lift, Mean, Network, Search
from symdsl.analysis.joins import joins
from symdsl.analysis.names import Scope
from symdsl.diagnostics import Collector, Span
from symdsl.groups import GROUPS, QUARTER_TURNS, misfit
from symdsl.kinds import KINDS, K
from symdsl.language import ast

_MOST_PARAMETERS = 10**10
_MOST_CURVATURE_BYTES = 8 * 2**30
_LEAST_KERNEL = 3
_LAPLACE_ONLY = ("start", "examples", "prior_optimizer")
"""Keys of `search` that say how the Laplace evidence is climbed."""
_FISHER = Fisher("mc", 1)
"""The value of `fisher` that is left out."""
_DIVISOR = re.compile(
    r"//\s*\(?\s*(?:[0-9]+|([A-Za-z_][A-Za-z0-9_]*))\s*\)?\s*(?:[-+*%]\s*[\w.()]+\s*)?"
    r"(?:\|>.*|(?:[)\]]\s*)?stride\b.*)?"
)
"""A comment that could be the rest of a line after `a // b`: the divisor, and what may follow it."""


def check_lets(scope: Scope, written: str, used: Collection[str]) -> None:
    """Warn of every `let` of the file that is not used and not among `used`."""
    for name, let in scope.lets.items():
        if name not in scope.used and name not in used and let.name.span.source == written:
            scope.collector.report("W102", let.name.span, f"`{name}` is never used", help="drop it, or use it")


def check_comments(program: ast.Program, scope: Scope) -> None:
    """Warn of comments that look like the divisor of a whole-number division: a number, or a name that is defined."""
    defined = {*scope.lets, *_local_names(program.statements)}
    for comment in program.comments:
        found = None if comment.alone else _DIVISOR.fullmatch(comment.text)
        if found is not None and (found[1] is None or found[1] in defined):
            message = f"`{comment.text}` is a comment, not a division"
            scope.collector.report(
                "W107", comment.span, message, help="write `floor(a / b)` for a whole-number division"
            )


def _local_names(items: Iterable[ast.Statement | ast.Item]) -> Iterator[str]:
    """Yield the names of parameters and of the values of `repeat`s."""
    for item in items:
        if isinstance(item, ast.Network | ast.Block):
            yield from (one.name.text for one in item.parameters or ())
        if isinstance(item, ast.Repeat):
            yield from (one.text for one in item.names)
        if isinstance(item, ast.Network | ast.Block | ast.Repeat | ast.Residual | ast.Average):
            yield from _local_names(item.items)


def check_twins(layers: Sequence[LayerDraft], collector: Collector) -> None:
    """Warn of equal candidates in one layer."""
    for layer in layers:
        first: dict[str, Span] = {}
        for candidate in layer.candidates:
            label = layer.label(candidate)
            if label not in first:
                first[label] = candidate.span
                continue
            span = candidate.span if candidate.span != first[label] else layer.span
            message = f"`{layer.name}` has the candidate `{label}` twice"
            collector.report("W101", span, message, label="again", notes=[(first[label], "first")])


def check_network(network: Network, place: Span, collector: Collector) -> None:
    """Report a network that is too large; warn of broken groups and of curvature that would not fit in memory."""
    layers = network.layers
    parameters = sum(layer.parameters for layer in layers)
    if parameters > _MOST_PARAMETERS:
        largest = max(layers, key=lambda layer: layer.parameters)
        message = f"`{network.name}` has {parameters:,} parameters; the limit is {_MOST_PARAMETERS:,}"
        help = "make maps or channels smaller, or use factored kinds"
        notes = [(largest.span, f"has {largest.parameters:,} of them")]
        collector.report("E210", place, message, help=help, notes=notes)
    for node in network.nodes:
        if isinstance(node, Lift):
            _check_group(node, collector)
    for layer in layers:
        _check_kernels(layer, collector)
        _check_memory(layer, collector)
    _check_fixed(network, layers, collector)


def _check_fixed(network: Network, layers: Sequence[Layer], collector: Collector) -> None:
    """Report kinds with fixed weights beside others, and where a layer has to learn."""
    ends = {body[-1].name: "ends a `residual`" for _, body in joins(network.nodes) if body}
    ends |= {layer.name: "is the last" for layer in layers[-1:]}
    for layer in layers:
        for candidate in layer.candidates:
            if KINDS[candidate.kind].fixed is None:
                continue
            fixed = f"the weights of `{candidate.kind}` are fixed"
            if len(layer.candidates) > 1:
                message = f"{fixed}, so that it stands alone in its layer"
                collector.report("E213", candidate.span, message, help="give it a layer of its own")
            elif layer.name in ends:
                message = f"{fixed}, but `{layer.name}` {ends[layer.name]}, which has to learn"
                collector.report("E213", candidate.span, message, help="write a layer after it that learns")


def _check_group(node: Lift, collector: Collector) -> None:
    group, shape = GROUPS[node.out_shape.group], node.in_shape
    if group.needs_square and shape.height != shape.width:
        size, left = f"{shape.height}x{shape.width}", group.on(shape.height, shape.width)
        message = (
            f"{QUARTER_TURNS} do not map a {size} image to itself: what is left of `{group.name}` is `{left.name}`"
        )
        square = "" if shape.is_line else "make the image square with `pad` or `crop`, or "
        fitting = "mirror" if shape.is_line else left.name
        collector.report("W103", node.span, message, help=f"{square}write `lift {fitting}`")


def _check_kernels(layer: Layer, collector: Collector) -> None:
    """Warn of kernels that reach round the map; 3 on a side of 2 is the least that reaches a neighbour at all."""
    height, width, side = layer.in_shape.height, layer.in_shape.width, layer.in_shape.shortest_side
    largest = side - 1 + side % 2
    for candidate in layer.candidates:
        kernel = dict(candidate.arguments).get(K.name) if K in KINDS[candidate.kind].signature.parameters else None
        if not isinstance(kernel, int) or kernel <= max(side, _LEAST_KERNEL):
            continue
        rows, columns = layer.in_shape.sides(kernel)
        apart = min(rows, height) * min(columns, width)
        message = (
            f"a kernel of {rows}x{columns} wraps round the {height}x{width} map that `{layer.name}` reads: "
            f"only {apart} of its {rows * columns} weights can be told apart"
        )
        help = f"the largest kernel that makes sense here is {max(largest, _LEAST_KERNEL)}"
        collector.report("W109", candidate.span, message, help=help)


def _check_memory(layer: Layer, collector: Collector) -> None:
    size = sum(one.curvature_bytes for one in layer.candidates)
    if size > _MOST_CURVATURE_BYTES:
        message = f"the curvature factors of `{layer.name}` take up to {size / 2**30:,.1f} GiB"
        collector.report("W105", layer.span, message, help="`F-FC` or a smaller map needs far less")


def check_objective(search: Search, network: Network, spans: Mapping[str, Span], collector: Collector) -> None:
    """Report what `objective = elbo` cannot learn, and warn of settings that an objective has no use for."""
    objective = search.objective
    if objective.curvature == "joint" and objective.fisher != _FISHER:
        message = "`fisher` is of no use to `laplace(joint)`"
        collector.report("W113", spans["objective"], message, help="drop it, or write `laplace(kfac, ...)`")
    if objective.name != "elbo":
        return
    layers = network.layers
    for layer in layers:
        if len(layer.candidates) > 1:
            message = f"`objective = elbo` weighs the last layer alone, and cannot choose a candidate of `{layer.name}`"
            help = "keep one of them, or write `objective = laplace`"
            collector.report("E214", layer.candidates[1].span, message, help=help)
    if layers and len(layers[-1].candidates) == 1:
        _check_weighed(layers[-1], network, collector)
    for key in (one for one in _LAPLACE_ONLY if one in spans):
        message = f"`{key}` is of no use to `objective = elbo`"
        collector.report("W113", spans[key], message, help="drop it, or write `objective = laplace`")


def _check_weighed(layer: Layer, network: Network, collector: Collector) -> None:
    """Report a last layer of which the outputs are no linear function."""
    after = network.nodes[network.nodes.index(layer) + 1 :]
    whole = FactorSize(layer.out_shape.size, 1), FactorSize(layer.in_shape.size, 1)
    dense = layer.in_shape.flat and [(one.left, one.right) for one in layer.candidates[0].tensors] == [whole]
    if not dense or layer.activations or not all(isinstance(node, Mean) for node in after):
        message = f"`objective = elbo` needs outputs that are linear in the weights of the last layer, `{layer.name}`"
        help = "end the network with `flatten` and a layer of `FC` without activations"
        collector.report("E214", layer.span, message, help=help)


def check_invariance(search: Search, data: Data, spans: Mapping[str, Span], collector: Collector) -> None:
    """Report a regulariser whose orbit does not map the images to themselves."""
    reason = misfit(search.invariance.group, data.height, data.width) if search.invariance is not None else ""
    if reason:
        change = "use `translations`" if data.height == 1 else "change the size of the images with `pad` or `crop`"
        help = f"{change}, or drop `invariance`"
        notes = [(data.source.span, f"delivers {data.channels}x{data.height}x{data.width} after all transforms")]
        collector.report("E602", spans["invariance"], reason, help=help, notes=notes)


def check_search(search: Search, data: Data, spans: Mapping[str, Span], place: Span, collector: Collector) -> None:
    """Warn of a search that ends before it takes an evidence step."""
    if search.burnin < search.epochs:
        if search.every is not None and "every" in spans:
            _check_every(search.every, search, data, spans["every"], collector)
        return
    given = [spans[key] for key in ("epochs", "burnin") if key in spans] or [place]
    message = f"the search ends after epoch {search.epochs}, before burn-in does, so no structure is learned"
    notes = [(span, "sets when the first evidence step may come") for span in given[1:]]
    collector.report("W104", given[0], message, help="raise `epochs`, or lower `burnin`", notes=notes)


def _check_every(every: int, search: Search, data: Data, place: Span, collector: Collector) -> None:
    """Warn where fewer training steps come after burn-in than before an evidence step."""
    examples = trail(data)[-1].train
    steps = -(-examples // search.batch) * (search.epochs - search.burnin)
    if 0 < steps < every:
        message = f"no structure is learned, as only {steps:,} training steps come after burn-in, fewer than `every`"
        collector.report("W104", place, message, help="lower `every`, or raise `epochs`")
