"""The residual blocks of a network as a sequence of nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

import attrs

from symdsl.analysis.facts import Join, Node


def joins(nodes: Sequence[Node]) -> Iterator[tuple[Join, tuple[Node, ...]]]:
    """Yield the end of every residual block with the nodes of its body."""
    places = {node.name: place for place, node in enumerate(nodes)}
    for place, node in enumerate(nodes):
        if isinstance(node, Join):
            yield node, tuple(nodes[places[node.since] + 1 : place])


def edges(nodes: Sequence[Node]) -> list[tuple[str, str]]:
    """Return every edge of the network as the names of its two nodes."""
    straight = pairwise(node.name for node in nodes)
    return [*straight, *((node.since, node.name) for node in nodes if isinstance(node, Join))]


def emptied(nodes: Sequence[Node], kept: Mapping[str, Collection[str]]) -> frozenset[str]:
    """Return the names of residual blocks whose last layer has no candidate left, so that they are the identity.

    Args:
        nodes: the network.
        kept: names of the candidates that are kept, by name of the layer; layers not named keep theirs.
    """
    return frozenset(join.name for join, body in joins(nodes) if not kept.get(body[-1].name, ("all",)))


def without(nodes: Sequence[Node], removed: Collection[str]) -> tuple[Node, ...]:
    """Return the nodes that remain when these residual blocks are the identity."""
    gone = {one.name for join, body in joins(nodes) if join.name in removed for one in (*body, join)}
    return leaving_out(nodes, gone)


def leaving_out(nodes: Sequence[Node], gone: Collection[str]) -> tuple[Node, ...]:
    """Return the nodes but for some; a residual block that reads one of these reads the node that is left before it."""
    left: list[Node] = []
    before: dict[str, str] = {}
    for node in nodes:
        if node.name not in gone:
            left.append(attrs.evolve(node, since=before[node.since]) if isinstance(node, Join) else node)
        before[node.name] = left[-1].name
    return tuple(left)
