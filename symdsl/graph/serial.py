"""Graph to JSON and back without loss, and the hash of what a graph computes."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from symdsl.analysis import facts
from symdsl.diagnostics import NOWHERE, Span
from symdsl.graph.build import chain

if TYPE_CHECKING:
    import networkx as nx

SCHEMA = 1

_RECORDS: dict[str, type] = {
    record.__name__: record
    for record in (
        Span,
        facts.Shape,
        facts.Prior,
        facts.FactorSize,
        facts.ParameterTensor,
        facts.Candidate,
        facts.Input,
        facts.Lift,
        facts.Layer,
        facts.Join,
        facts.Average,
        facts.Mean,
        facts.Project,
        facts.Pool,
        facts.Flatten,
        facts.Step,
        facts.Data,
    )
}


def to_json(graph: nx.DiGraph[str], spans: bool = True) -> dict[str, Any]:
    """Return a graph as values that JSON can hold; `from_json` inverts it, except for source spans."""
    return {
        "schema": SCHEMA,
        "graph": {key: _encode(value, spans) for key, value in graph.graph.items()},
        "nodes": [_encode(node, spans) for node in chain(graph)],
        "edges": [list(edge) for edge in graph.edges],
    }


def from_json(document: Mapping[str, Any]) -> nx.DiGraph[str]:
    """Return the graph that `to_json` described.

    Raises:
        ValueError: the document is not such a graph.
    """
    import networkx as nx

    schema = document.get("schema") if isinstance(document, Mapping) else None
    if schema != SCHEMA:
        raise ValueError(f"`schema` (={schema!r}) of a graph must be {SCHEMA}")
    try:
        graph: nx.DiGraph[str] = nx.DiGraph(**{key: _decode(value) for key, value in document["graph"].items()})
        for node in map(_decode, document["nodes"]):
            graph.add_node(node.name, record=node)
        edges = [(begin, end) for begin, end in document["edges"]]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"not a graph of this version: {error}") from error
    if unknown := set(itertools.chain(*edges)) - set(graph):
        raise ValueError(f"not a graph of this version: there is no node {min(unknown, key=str)!r}")
    graph.add_edges_from(edges)
    if not nx.is_directed_acyclic_graph(graph):
        raise ValueError("not a graph of this version: it has a cycle")
    return graph


def content_hash(graph: nx.DiGraph[str]) -> str:
    """Return the SHA-256, in hex, of what a network computes: its nodes, edges and task.

    Equal for equal networks wherever their specs stand and however they are written: spans, the data's place and the
    search settings do not enter.
    """
    content = {
        "task": graph.graph["task"],
        "nodes": [_encode(node, spans=False) for node in chain(graph)],
        "edges": sorted(map(list, graph.edges)),
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _encode(value: Any, spans: bool = True) -> Any:
    if attrs.has(type(value)):
        fields = {field.name: getattr(value, field.name) for field in attrs.fields(type(value))}
        kept = {name: _encode(item, spans) for name, item in fields.items() if spans or not isinstance(item, Span)}
        return {"record": type(value).__name__} | kept
    if isinstance(value, tuple):
        return [_encode(item, spans) for item in value]
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, Mapping):
        record = _RECORDS[value["record"]]
        fields = {name: _decode(item) for name, item in value.items() if name != "record"}
        return record(**(dict.fromkeys({"span"} & set(attrs.fields_dict(record)), NOWHERE) | fields))
    if isinstance(value, list):
        return tuple(map(_decode, value))
    return value
