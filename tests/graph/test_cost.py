import pytest

from graph.factory import Chain, pyramid
from symdsl.graph import (
    build,
    layer_curvature_bytes,
    memory,
    multiply_adds,
    parameters,
)
from symdsl.graph.build import layers
from symdsl.groups import TWO_STEPS_FROM
from symdsl.spec import parse


def small():
    """3 channels of 2x5 to 7 channels of 2x5, by F-FC + CONV(3)."""
    return build(Chain(3, 2, 5).layer("l1", "F-FC CONV", 7, activations=("relu",)).flatten().facts())


def test_curvature_bytes_of_a_factored_candidate():
    factored, _ = layers(small())[0].candidates
    first = 10**2 + 7 * 3**2
    second = 7**2 + 3 * 10**2
    assert factored.curvature_bytes == 4 * (first + second)


def test_curvature_bytes_of_a_convolution():
    _, conv = layers(small())[0].candidates
    assert conv.curvature_bytes == 4 * (7**2 + (3 * 9) ** 2)


def test_curvature_bytes_of_a_layer_include_its_bias():
    (layer,) = layers(small())
    bias = 4 * (7**2 + 1)
    assert layer_curvature_bytes(layer) == sum(one.curvature_bytes for one in layer.candidates) + bias


def test_parameters_include_biases():
    assert parameters(small()) == 7 * 3 * (10 + 10) + 7 * 3 * 9 + 7


def test_multiply_adds_are_the_sum_over_candidates():
    assert multiply_adds(small()) == 7 * 3 * 20 + 7 * 27 * 10


def test_memory():
    estimate = memory(small(), batch=11)
    maps = 3 * 10 + 2 * 7 * 10 + 7 * 10  # input; layer before and after its activation; flatten
    assert estimate.activations == 4 * 11 * maps
    assert estimate.parameters == 4 * parameters(small())
    assert estimate.curvature == layer_curvature_bytes(layers(small())[0])


def test_only_activations_grow_with_the_batch():
    graph = build(pyramid().facts())
    one, many = memory(graph, 1), memory(graph, 128)
    assert (one.parameters, one.curvature, 128 * one.activations) == (many.parameters, many.curvature, many.activations)


def test_batch_must_be_positive():
    with pytest.raises(ValueError, match=r"`batch` \(=0\) must be at least 1"):
        memory(small(), batch=0)


@pytest.mark.parametrize("more", [-1, 0])
def test_a_separable_convolution_costs_two_steps_where_it_is_computed_in_two(more):
    channels = TWO_STEPS_FROM + more
    spec = parse(
        "data synthetic(size = 4, classes = 2)\nnetwork n {\n  input image(1, 4, 4)\n  lift p4\n"
        f"  layer l1: GCONV(3, separable) -> {channels}\n  project max\n  flatten\n  layer h: FC -> classes\n}}"
    )
    (found,) = spec.facts.network.layers[0].candidates
    at_once = channels * 4 * 4 * 9
    assert found.multiply_adds == 16 * (at_once if more else 4 * 4 * (9 + channels))
