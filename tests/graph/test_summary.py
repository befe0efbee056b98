import json

from graph.factory import Chain, pyramid
from symdsl.graph import build, content_hash, summary_json


def summary():
    chain = Chain(3, 2, 5).layer("l1", "F-FC CONV", 7, activations=("relu",)).flatten().layer("out", "FC", 4)
    return summary_json(build(chain.facts("tiny")), batch=11)


def test_head_and_totals():
    found = summary()
    conv, factored, head = 7 * 27, 7 * 3 * 20, 70 * 4
    assert found["name"] == "tiny"
    assert found["input"] == [3, 2, 5]
    assert found["parameters"] == conv + factored + 7 + head + 4
    assert found["multiply_adds"] == conv * 10 + factored + head
    assert found["totals"]["batch"] == 11
    assert found["totals"]["parameters_bytes"] == 4 * found["parameters"]
    assert found["totals"]["curvature_bytes"] == sum(layer["curvature_bytes"] for layer in found["layers"])


def test_layer():
    layer = summary()["layers"][0]
    assert {key: layer[key] for key in ("name", "in_shape", "out_shape", "stride", "activations")} == {
        "name": "l1",
        "in_shape": [3, 2, 5],
        "out_shape": [7, 2, 5],
        "stride": 1,
        "activations": ["relu"],
    }


def test_candidate():
    assert summary()["layers"][0]["candidates"][0] == {
        "name": "F-FC",
        "kind": "F-FC",
        "parameters": 420,
        "multiply_adds": 420,
        "equivariant_to": [],
        "factors": [
            {"tensor": "w1", "left": [10, 1], "right": [3, 7]},
            {"tensor": "w2", "left": [7, 1], "right": [10, 3]},
        ],
        "curvature_bytes": 4 * (100 + 7 * 9 + 49 + 3 * 100),
    }


def test_bias():
    assert summary()["layers"][0]["bias"] == {
        "parameters": 7,
        "factors": [{"tensor": "bias", "left": [7, 1], "right": [1, 1]}],
        "curvature_bytes": 4 * 50,
    }


def test_shapes_of_vectors_and_lifted_maps():
    graph = build(Chain(1, 4, 4).lift().layer("l1", "GCONV", 2).project().flatten().layer("h", "FC", 3).facts())
    first, last = summary_json(graph, 1)["layers"]
    assert (first["in_shape"], first["out_shape"]) == ([1, 4, 4, 4], [2, 4, 4, 4])
    assert (last["in_shape"], last["out_shape"]) == ([32], [3])


def test_whole_network():
    graph = build(pyramid().facts())
    found = summary_json(graph, 8)
    assert found["preserves"] == {
        "invariant_to": ["translations"],
        "equivariant_to": [],
        "lost": [],
        "text": "invariant to translations",
    }
    assert found["hash"] == content_hash(graph)


def test_json_can_hold_it():
    assert json.loads(json.dumps(summary(), allow_nan=False)) == summary()
