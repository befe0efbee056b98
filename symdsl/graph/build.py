"""Facts to graph, and the graph's nodes in the order the data pass them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symdsl.analysis.facts import Facts, Layer, Node
from symdsl.analysis.joins import edges

if TYPE_CHECKING:
    import networkx as nx


def build(facts: Facts) -> nx.DiGraph[str]:
    """Return the network of a checked spec as a directed graph.

    Returns:
        One node per step of the network, keyed by its name, whose attribute `record` is the step's record; one edge
        from each step to the next, and one past each residual block. `graph.graph` holds `name` (of the spec),
        `network`, `task`, `data` (a `Data` record), `batch` (examples of a training step), `examples` (of an evidence
        step), `every` (training steps between these; None leaves it to the costs) and `objective` (its name).

    Raises:
        ValueError: two nodes share a name.
    """
    import networkx as nx

    nodes = facts.network.nodes
    graph: nx.DiGraph[str] = nx.DiGraph(
        name=facts.name,
        network=facts.network.name,
        task=facts.data.task,
        data=facts.data,
        batch=facts.search.batch,
        examples=facts.search.examples,
        every=facts.search.every,
        objective=facts.search.objective.name,
    )
    for node in nodes:
        if node.name in graph:
            raise ValueError(f"node names must differ, but `{node.name}` is used twice")
        graph.add_node(node.name, record=node)
    graph.add_edges_from(edges(nodes))
    return graph


def chain(graph: nx.DiGraph[str]) -> tuple[Node, ...]:
    """Return the records of all nodes, input first."""
    import networkx as nx

    return tuple(graph.nodes[name]["record"] for name in nx.topological_sort(graph))


def layers(graph: nx.DiGraph[str]) -> tuple[Layer, ...]:
    """Return the records of the layers, first to last."""
    return tuple(node for node in chain(graph) if isinstance(node, Layer))
