import pytest

from graph.factory import Chain, pyramid
from symdsl.analysis.facts import Flatten, Input, Layer
from symdsl.graph import build, chain
from symdsl.graph.build import layers


def test_nodes_carry_their_records_under_their_names():
    facts = pyramid(depth=2).facts()
    graph = build(facts)
    assert [(name, graph.nodes[name]["record"]) for name in graph] == [
        (node.name, node) for node in facts.network.nodes
    ]


def test_edges_run_from_each_node_to_the_next():
    graph = build(Chain(1, 4, 4).layer("l1", "CONV", 3).flatten().layer("out", "FC", 2).facts())
    assert list(graph.edges) == [("input", "l1"), ("l1", "flatten"), ("flatten", "out")]


def test_a_residual_block_is_a_fork_and_a_join():
    facts = Chain(1, 4, 4).residual(("l1", "CONV", 3), ("l2", "CONV", 1)).flatten().layer("out", "FC", 2).facts()
    graph = build(facts)
    assert set(graph.edges) - {("flatten", "out")} == {
        *(("input", "l1"), ("l1", "l2"), ("l2", "residual-1"), ("input", "residual-1"), ("residual-1", "flatten"))
    }
    assert chain(graph) == facts.network.nodes


def test_graph_holds_what_the_spec_says_of_the_whole():
    facts = pyramid(depth=1).facts("digits")
    assert build(facts).graph == {
        "name": "digits",
        "network": "digits_net",
        "task": "classification",
        "data": facts.data,
        "batch": 8,
        "examples": facts.search.examples,
        "every": facts.search.every,
        "objective": facts.search.objective.name,
    }


def test_chain_is_in_the_order_of_the_data():
    facts = pyramid(depth=3).facts()
    assert chain(build(facts)) == facts.network.nodes


def test_layers_are_the_layers_only():
    graph = build(Chain(1, 4, 4).lift().layer("l1", "GCONV", 3).project().pool().flatten().layer("h", "FC", 2).facts())
    assert [layer.name for layer in layers(graph)] == ["l1", "h"]
    assert all(isinstance(layer, Layer) for layer in layers(graph))


def test_network_of_input_and_flatten_only():
    assert [type(node) for node in chain(build(Chain(1, 4, 4).flatten().facts()))] == [Input, Flatten]


def test_names_used_twice_are_refused():
    facts = Chain(1, 4, 4).layer("same", "CONV", 3).layer("same", "CONV", 3).facts()
    with pytest.raises(ValueError, match="`same` is used twice"):
        build(facts)


def test_records_are_not_copied():
    facts = pyramid(depth=1).facts()
    assert build(facts).nodes["l1"]["record"] is facts.network.nodes[1]
