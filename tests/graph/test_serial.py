import json

import attrs
import pytest

from graph.factory import Chain, pyramid
from symdsl.analysis.facts import Facts
from symdsl.diagnostics import Span
from symdsl.graph import build, content_hash, from_json, to_json


def everything() -> Facts:
    chain = Chain(3, 8, 8).lift().layer("l1", "F-FC CONV GCONV", 2, 2, ("relu", "tanh"))
    return chain.project().pool().flatten().layer("h", "FC", 5).facts()


def moved(value):
    """The same records, each with another span."""
    if isinstance(value, Span):
        return attrs.evolve(value, source="elsewhere.sym", line=value.line + 40)
    if isinstance(value, tuple):
        return tuple(map(moved, value))
    if attrs.has(type(value)):
        names = [field.name for field in attrs.fields(type(value))]
        return attrs.evolve(value, **{name: moved(getattr(value, name)) for name in names})
    return value


@pytest.mark.parametrize("facts", [everything(), pyramid().facts(), Chain(1, 1, 1).flatten().facts()])
def test_json_round_trip_keeps_everything(facts):
    graph = build(facts)
    back = from_json(json.loads(json.dumps(to_json(graph))))
    assert dict(back.nodes(data=True)) == dict(graph.nodes(data=True))
    assert list(back.edges) == list(graph.edges)
    assert back.graph == graph.graph


def test_round_trip_keeps_the_types_of_arguments():
    back = from_json(json.loads(json.dumps(to_json(build(everything())))))
    pair = back.graph["data"].source.argument("pair")
    assert (pair, [type(item) for item in pair]) == ((1, 2.5, "a", True), [int, float, str, bool])


def test_other_versions_are_refused():
    with pytest.raises(ValueError, match=r"`schema` \(=2\) of a graph must be 1"):
        from_json(to_json(build(everything())) | {"schema": 2})


@pytest.mark.parametrize("document", [[], None, 3, {}])
def test_what_is_no_graph_is_refused(document):
    with pytest.raises(ValueError, match=r"`schema` \(=None\) of a graph must be 1"):
        from_json(document)


@pytest.mark.parametrize(
    "harm",
    [
        {"nodes": [{"record": "Input", "name": "x"}]},
        {"nodes": [{"record": "Unheard"}]},
        {"nodes": [3]},
        {"graph": None},
        {"edges": None},
        {"edges": [["x"]]},
        {"edges": [[1, 2, 3]]},
        {"edges": [["x", "nowhere"]]},
        {"edges": [["x", "x"]]},
    ],
)
def test_damaged_documents_are_refused(harm):
    with pytest.raises(ValueError, match="not a graph of this version"):
        from_json(to_json(build(everything())) | harm)


def test_hash_does_not_see_where_the_words_stand():
    facts = everything()
    assert moved(facts) != facts
    assert content_hash(build(moved(facts))) == content_hash(build(facts))


def test_hash_survives_the_round_trip():
    graph = build(everything())
    assert content_hash(from_json(json.loads(json.dumps(to_json(graph))))) == content_hash(graph)


def test_hash_is_hex_sha256():
    assert len(bytes.fromhex(content_hash(build(everything())))) == 32


def test_hash_sees_every_part_of_the_network():
    def net(channels=2, stride=1, kinds="CONV F-FC", activations=("relu",), name="l1"):
        return content_hash(build(Chain(1, 8, 8).layer(name, kinds, channels, stride, activations).flatten().facts()))

    variants = [
        net(),
        net(channels=3),
        net(stride=2),
        net(kinds="CONV"),
        net(kinds="F-FC CONV"),
        net(activations=()),
        net(name="m1"),
    ]
    assert len(set(variants)) == len(variants)


def test_hash_does_not_see_search_settings_or_data_path():
    facts = everything()
    source = attrs.evolve(facts.data.source, arguments=(("root", "/elsewhere"),))
    other = attrs.evolve(
        facts, search=attrs.evolve(facts.search, epochs=99), data=attrs.evolve(facts.data, source=source)
    )
    assert content_hash(build(other)) == content_hash(build(facts))


def test_hash_sees_the_task():
    facts = everything()
    other = attrs.evolve(facts, data=attrs.evolve(facts.data, task="regression"))
    assert content_hash(build(other)) != content_hash(build(facts))
