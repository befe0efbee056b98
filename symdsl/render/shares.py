"""The shares that the picture shows of each layer, from the graph and, where there is one, the result of a search."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import attrs

from symdsl.analysis.facts import Candidate, Layer


@attrs.frozen
class Row:
    """A candidate as the picture draws it.

    Attributes:
        name: the candidate's name.
        kind: its kind.
        parameters: its parameter count.
        preserves: what it is equivariant to in its strict limit.
        share: its relative effective number of parameters in [0, 1]; None where nothing was learned.
        chosen: whether it is the learned type of the layer.
        kept: whether it stays in the learned network.
    """

    name: str
    kind: str
    parameters: int
    preserves: tuple[str, ...]
    share: float | None
    chosen: bool
    kept: bool


def rows(layer: Layer, result: Mapping[str, Any] | None) -> tuple[Row, ...]:
    """Return the candidates of a layer with their numbers in `result`.

    Raises:
        ValueError: `result` does not know the layer, or not the same candidates.
    """
    if result is None:
        only = len(layer.candidates) == 1
        return tuple(_row(candidate, share=None, chosen=only, kept=True) for candidate in layer.candidates)
    found = next((entry for entry in result["layers"] if entry["name"] == layer.name), None)
    if found is None:
        raise ValueError(f"the result has no layer `{layer.name}`: it belongs to another network")
    shares = {entry.get("name", entry["kind"]): entry["relative"] for entry in found["candidates"]}
    names = [candidate.name for candidate in layer.candidates]
    if set(shares) != set(names):
        raise ValueError(f"layer `{layer.name}` has the candidates {names}, but the result has {list(shares)}")
    return tuple(
        _row(candidate, shares[candidate.name], found["chosen"] == candidate.name, candidate.name in found["kept"])
        for candidate in layer.candidates
    )


def refuse_others(names: Container[str], result: Mapping[str, Any] | None) -> None:
    """Refuse a result with layers that are not among those of the network.

    Raises:
        ValueError: it has one.
    """
    others = (entry["name"] for entry in (result or {}).get("layers", ()) if entry["name"] not in names)
    if other := next(others, None):
        raise ValueError(f"the network has no layer `{other}`, which the result has: it belongs to another network")


def _row(candidate: Candidate, share: float | None, chosen: bool, kept: bool) -> Row:
    return Row(
        candidate.name, candidate.kind, candidate.parameters, candidate.preserves, share=share, chosen=chosen, kept=kept
    )
