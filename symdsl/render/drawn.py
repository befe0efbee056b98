"""A graph that shows itself; a module of its own, since a class of graphs needs networkx to be defined."""

from __future__ import annotations

from functools import partial

import networkx as nx

from symdsl.analysis.joins import edges
from symdsl.graph import chain
from symdsl.render import architecture
from symdsl.render.page import picture_or_warning


class DrawnGraph(nx.DiGraph):  # type: ignore[misc, type-arg, unused-ignore]  # only some stubs know of parameters
    """A `networkx.DiGraph` that a notebook shows as a picture."""

    def _repr_svg_(self) -> str | None:
        return picture_or_warning(partial(architecture, self, None, "svg")) if _is_network(self) else None


def _is_network(graph: nx.DiGraph[str]) -> bool:
    """Whether the graph is the records of a network, as a spec gives it, and not what someone made of it since."""
    if not graph or not {"name", "data"} <= graph.graph.keys() or not nx.is_directed_acyclic_graph(graph):
        return False
    if any("record" not in record for _, record in graph.nodes(data=True)):
        return False
    return set(graph.edges) == set(edges(chain(graph)))
