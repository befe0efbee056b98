"""What a network as a whole preserves when every layer takes its most symmetric candidate strictly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from symdsl.analysis.facts import Flatten, Layer, Lift, Node, Shape
from symdsl.graph.build import chain
from symdsl.groups import GROUPS

if TYPE_CHECKING:
    import networkx as nx

TRANSLATIONS = "translations"


@attrs.frozen
class Symmetry:
    """What a network can preserve in its strict limit.

    Attributes:
        invariant: movements of the input that leave the output as it is.
        equivariant: movements that every layer follows, up to the end of the network or to the place in `lost`.
        lost: movement and the place and reason that ends it, in the order of the network.
    """

    invariant: tuple[str, ...]
    equivariant: tuple[str, ...]
    lost: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        """The whole in a sentence."""
        parts = [f"invariant to {_and(self.invariant)}"] if self.invariant else []
        parts += [f"equivariant to {_and(self.equivariant)}"] if self.equivariant else []
        parts += [f"not to {movement}: {reason}" for movement, reason in self.lost]
        return "; ".join(parts) or "no symmetry to preserve"


def strict_symmetry(graph: nx.DiGraph[str]) -> Symmetry:
    """What the network preserves when each layer keeps only its most symmetric candidate.

    A movement becomes an invariance when the map it moves has shrunk to one position (and, for a group's movements,
    is no longer lifted); what comes later cannot undo that. Any other movement is lost at the first layer without a
    candidate that follows it, or at a `flatten` that keeps positions or group elements apart.
    """
    nodes = chain(graph)
    alive = _movements(nodes)
    invariant: list[str] = []
    lost: list[tuple[str, str]] = []
    for node in nodes:
        broken = _broken(node, alive)
        lost += [(movement, _reason(node)) for movement in broken]
        settled = [movement for movement in alive if movement not in broken and _settles(movement, node.out_shape)]
        invariant += settled
        alive = tuple(movement for movement in alive if movement not in broken and movement not in settled)
    return Symmetry(tuple(invariant), alive, tuple(lost))


def _movements(nodes: tuple[Node, ...]) -> tuple[str, ...]:
    lifted = [GROUPS[node.out_shape.group].moves for node in nodes if isinstance(node, Lift)]
    return (TRANSLATIONS, *lifted)


def _broken(node: Node, alive: tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(node, Flatten):
        return tuple(movement for movement in alive if not _settles(movement, node.in_shape))
    if isinstance(node, Layer):
        kept = max((set(candidate.preserves) & set(alive) for candidate in node.candidates), key=len, default=set())
        return tuple(movement for movement in alive if movement not in kept)
    return ()


def _settles(movement: str, shape: Shape) -> bool:
    return shape.positions == 1 and (movement == TRANSLATIONS or shape.order == 1)


def _reason(node: Node) -> str:
    if not isinstance(node, Flatten):
        return f"no candidate of `{node.name}` follows them"
    shape = node.in_shape
    apart = [("positions", shape.positions), ("group elements", shape.order)]
    return f"`{node.name}` at {shape} keeps {_and([words for words, count in apart if count > 1])} apart"


def _and(words: tuple[str, ...] | list[str]) -> str:
    return " and ".join(words)
