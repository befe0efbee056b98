"""The graph a spec gives: networkx's own in all it does, a picture in a notebook while it is a network."""

import networkx as nx
import pytest

from symdsl import parse
from symdsl.diagnostics import RunError
from symdsl.graph import chain, content_hash, from_json, to_json
from symdsl.render import architecture
from symdsl.render.drawn import DrawnGraph

SPEC = parse("""
data synthetic(size = 4) |> standardize
network net {
  input image(1, 4, 4)
  layer l1: F-FC + CONV(3) -> 2
  flatten
  layer out: FC -> classes
}
""")


def test_a_graph_shows_the_picture_of_its_network():
    graph = SPEC.graph()
    assert graph._repr_svg_() == architecture(graph, None, "svg").decode()
    assert "l1" in graph._repr_svg_()


def test_where_graphviz_cannot_draw_a_notebook_is_warned(monkeypatch):
    def refuse(graph, found, form):
        raise RunError("cannot draw the picture")

    monkeypatch.setattr("symdsl.render.drawn.architecture", refuse)
    with pytest.warns(UserWarning, match="cannot draw the picture"):
        assert SPEC.graph()._repr_svg_() is None


def test_it_is_a_digraph_like_any_other():
    graph = SPEC.graph()
    assert isinstance(graph, nx.DiGraph)
    assert list(nx.topological_sort(graph)) == ["input", "l1", "flatten", "out"]
    assert content_hash(graph) == content_hash(from_json(to_json(graph)))
    assert list(graph.reverse().edges) == [("l1", "input"), ("flatten", "l1"), ("out", "flatten")]
    assert [node.name for node in chain(graph.copy())] == ["input", "l1", "flatten", "out"]
    assert type(graph.to_undirected()) is nx.Graph


def test_a_graph_that_is_no_network_any_more_shows_nothing():
    longer, forked, round_, cut = (SPEC.graph() for _ in range(4))
    longer.add_edge("out", "more")
    forked.add_edge("input", "out")
    round_.add_edge("out", "input")
    cut.remove_edge("l1", "flatten")
    for graph in (longer, forked, round_, cut, DrawnGraph(), DrawnGraph([(1, 2)])):
        assert graph._repr_svg_() is None
