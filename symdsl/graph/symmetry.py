"""The symmetry of a whole network in which every layer takes its most symmetric candidate strictly."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

import attrs

from symdsl.analysis.facts import Average, Flatten, Layer, Lift, Node
from symdsl.analysis.symmetry import followed
from symdsl.graph.build import chain
from symdsl.groups import GROUPS, TRIVIAL, Group
from symdsl.kinds import TRANSLATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import networkx as nx

Movements = tuple[str, ...]


@attrs.frozen
class Symmetry:
    """The symmetry of a network in which each layer keeps its most symmetric candidate alone.

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
        lacks = "not to" if parts else "not invariant to"
        parts += [f"{lacks} {movement}: {reason}" for movement, reason in self.lost]
        return "; ".join(parts) or "no symmetry to preserve"


def strict_symmetry(graph: nx.DiGraph[str]) -> Symmetry:
    """Return what a network preserves when each layer keeps its most symmetric candidate alone.

    A movement becomes an invariance when the map it moves has shrunk to one position (and, for a group's movements,
    is no longer lifted); what comes later cannot undo that. Any other movement is lost at the first layer without a
    candidate that follows it along with all that the network keeps, or at a `flatten` that keeps positions or group
    elements apart. Where layers disagree on subgroups, the network keeps the largest that all of them can follow.
    """
    course = _Course(chain(graph))
    group = next((GROUPS[node.out_shape.group] for node in course.nodes if isinstance(node, Lift)), GROUPS[TRIVIAL])
    kept = next(option for option in _options(group) if course.first_break(option) is None)
    lost = [word for word in (TRANSLATIONS, *group.movements) if not followed([word]) <= followed(kept)]
    invariant = course.settling(kept)
    equivariant = tuple(movement for movement in kept if movement not in invariant)
    return Symmetry(invariant, equivariant, course.losses(kept, lost))


def _options(group: Group) -> Iterator[Movements]:
    """Yield the sets of movements that a network might preserve, the largest first."""
    for translations in ((TRANSLATIONS,), ()):
        for subgroup in group.subgroups():
            yield (*translations, *subgroup.movements)


class _Course:
    """The nodes of a network, and how far along them a movement has to be followed."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.nodes = nodes
        shrunk = [index for index, node in enumerate(nodes) if node.out_shape.positions == 1]
        projected = [index for index in shrunk if nodes[index].out_shape.order == 1]
        self._translations_end = min(shrunk, default=len(nodes))
        self._group_ends = min(projected, default=len(nodes))

    def _end(self, movement: str) -> int:
        """Index of the first node whose map the movement leaves as it is."""
        return self._translations_end if movement == TRANSLATIONS else self._group_ends

    def settling(self, movements: Movements) -> Movements:
        """Return those movements that become invariances, in the order in which they do."""
        return tuple(sorted((one for one in movements if self._end(one) < len(self.nodes)), key=self._end))

    def first_break(self, movements: Movements) -> int | None:
        """Index of the first node that cannot follow all those movements that have not settled before it."""
        return next(
            (index for index, node in enumerate(self.nodes) if _breaks(node, self._alive(movements, index))), None
        )

    def _alive(self, movements: Movements, index: int) -> Movements:
        return tuple(movement for movement in movements if self._end(movement) >= index)

    def losses(self, kept: Movements, lost: list[str]) -> tuple[tuple[str, str], ...]:
        """Where and why each lost movement cannot be kept beside the others, in the order of the network."""
        breaks = {movement: self.first_break((*kept, movement)) for movement in lost}
        places = sorted(
            ((index, movement) for movement, index in breaks.items() if index is not None), key=itemgetter(0)
        )
        return tuple(
            (movement, _reason(self.nodes[index], movement, self._alive(kept, index))) for index, movement in places
        )


def _breaks(node: Node, alive: Movements) -> bool:
    match node:
        case Flatten():
            return bool(alive)
        case Average():
            return not followed(alive) <= followed(_turned(node).movements)
        case Lift():
            shape = node.out_shape
            acting = GROUPS[shape.group].on(shape.height, shape.width)
            return not followed(alive) <= followed((TRANSLATIONS, *acting.movements))
        case Layer():
            return not any(followed(alive) <= followed(candidate.preserves) for candidate in node.candidates)
    return False


def _turned(node: Average) -> Group:
    """Return the group that commutes with a set of transformations: turns and flips if they are rotations, in pairs."""
    shape = node.out_shape
    alone = tuple(name for name, _ in node.ranges) == ("rotation",)
    return GROUPS["p4m" if alone else TRIVIAL].on(shape.height, shape.width)


def _reason(node: Node, movement: str, beside: Movements) -> str:
    match node:
        case Flatten():
            counts = {"positions": node.in_shape.positions, "group elements": node.in_shape.order}
            apart = [words for words, count in counts.items() if count > 1]
            return f"`{node.name}` at {node.in_shape} keeps {_and(apart)} apart"
        case Lift() if not followed([movement]) <= followed(GROUPS[node.out_shape.group].movements):
            return f"`{node.name}` lifts to `{node.out_shape.group}` alone"
        case Lift():
            return f"the {node.in_shape.height}x{node.in_shape.width} map of `{node.name}` is not square"
        case Average():
            return f"`{node.name}` transforms the map"
        case Layer() if any(followed([movement]) <= followed(one.preserves) for one in node.candidates):
            return f"no candidate of `{node.name}` follows them beside {_and(beside)}"
    return f"no candidate of `{node.name}` follows them"


def _and(words: tuple[str, ...] | list[str]) -> str:
    return " and ".join(words)
