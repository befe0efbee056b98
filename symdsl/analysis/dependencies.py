"""Which names a part of a tree asks for, and an order in which each comes after those it asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

import attrs

from symdsl.language import ast


def names_in(node: object) -> list[str]:
    """Return every name that is used below a node of the tree, or below the nodes of a tuple."""
    found: list[str] = []
    waiting: list[object] = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.Call):
            found.append(one.name.text)
        kind: type = type(one)
        below = one if isinstance(one, tuple) else [getattr(one, name) for name in _fields(kind)]
        waiting.extend(reversed(below))
    return found


@cache
def _fields(kind: type) -> tuple[str, ...]:
    """Names of the fields of a kind of node that hold nodes, or tuples of them."""
    return tuple(field.name for field in attrs.fields(kind) if field.eq) if attrs.has(kind) else ()


def reachable(needs: Mapping[str, Iterable[str]], roots: Iterable[str]) -> set[str]:
    """Return all names that `roots` depend on, directly or indirectly; only names in `needs` count."""
    found: set[str] = set()
    open = list(roots)
    while open:
        name = open.pop()
        if name in needs and name not in found:
            found.add(name)
            open += needs[name]
    return found


@attrs.frozen
class Order:
    """Names sorted so that each follows those it depends on, and the circular ones apart.

    Attributes:
        names: all of them.
        circles: for each circle that was met a name that needs itself, and the others by way of which it does.
    """

    names: tuple[str, ...]
    circles: Mapping[str, tuple[str, ...]]


def order(needs: Mapping[str, Iterable[str]]) -> Order:
    """Sort names by their dependencies, without recursion, so that chains may be of any length."""
    done: dict[str, None] = {}
    circles: dict[str, tuple[str, ...]] = {}
    for root in needs:
        path: dict[str, Iterator[str]] = {} if root in done else {root: iter(needs[root])}
        while path:
            name, rest = next(reversed(path.items()))
            following = next((other for other in rest if other in needs and other not in done), None)
            if following is None:
                done[name] = None
                del path[name]
            elif following in path:
                way = list(path)
                circles.setdefault(following, tuple(way[way.index(following) + 1 :]))
            else:
                path[following] = iter(needs[following])
    return Order(tuple(done), circles)
