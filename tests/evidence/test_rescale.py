"""Scales at their mode, against autograd and dense evidences; effective numbers that layers share."""

import math
from itertools import pairwise

import pytest
import torch

import symdsl
from symdsl import laplace
from symdsl.data import Examples
from symdsl.evidence.loss import LIKELIHOODS
from symdsl.evidence.rescale import LARGEST_OUTPUT_FACTOR, mode_of_scales, shared_numbers
from symdsl.nn.scaling import ScaledLayer, scaled_layers

NETWORK = """
data synthetic(size = 4, classes = 3, train = 8, test = 4) |> standardize
network chain {{
  input image(channels, 4, 4)
  lift p4
  layer l1: F-FC + CONV(3) + GCONV(3, depthwise) -> 3 stride 2 |> {activation}
  layer l2: GCONV(3) + CONV(3) -> 3 |> relu
  project max
  flatten
  layer h1: FC -> classes
}}
"""


def network(activation="relu", scale=1.5):
    net = symdsl.compile(symdsl.parse(NETWORK.format(activation=activation)), 3).double().eval()
    generator = torch.Generator().manual_seed(4)
    for parameter in net.tensors().values():
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.data.mul_(scale).add_(noise, alpha=0.1)
    return net


def examples(net, task="classification", count=24):
    """Images, and targets that the network mostly gives itself, so that there is something to keep."""
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(count, 1, 4, 4, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        outputs = net(x)
    if task == "regression":
        return Examples(x, outputs + 0.3 * torch.randn(outputs.shape, generator=generator, dtype=torch.float64))
    labels = outputs.argmax(1)
    labels[:3] = (labels[:3] + 1) % 3
    return Examples(x, labels)


def priors(net):
    """A precision for every tensor, none like another."""
    return {key: 0.05 * 1.3**place for place, key in enumerate(net.tensors())}


def penalties(net, precisions):
    tensors = net.tensors()
    return {key: value * float(tensors[key].detach().square().sum()) for key, value in precisions.items()}


def to_mode(net, data, precisions, task="classification", noise=1.0):
    factors = mode_of_scales(
        scaled_layers(net), penalties(net, precisions), net(data.x), data.y, LIKELIHOODS[task], noise
    )
    for key, factor in factors.items():
        net.tensors()[key].data.mul_(factor)
    return factors


def objective(net, data, precisions, task="classification", noise=1.0):
    prior = sum(value * net.tensors()[key].square().sum() for key, value in precisions.items())
    return LIKELIHOODS[task].loss(net(data.x), data.y) / noise + 0.5 * prior


def slopes_in_levels(net, data, precisions, **options):
    """Of the objective in what factors may do, by autograd in every tensor: no formula of the module is used."""
    net.zero_grad()
    objective(net, data, precisions, **options).backward()
    along = {key: float((tensor.detach() * tensor.grad).sum()) for key, tensor in net.tensors().items()}
    layers = scaled_layers(net)
    paths = [sum(sum(along[key] for key in keys) / len(keys) for keys in one.paths) for one in layers]
    return [
        paths[place] + along[one.bias] - (paths[place + 1] if place + 1 < len(layers) else 0.0)
        for place, one in enumerate(layers)
        if one.free
    ]


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize(("activation", "free"), [("relu", 3), ("tanh", 2)])
def test_at_the_mode_the_objective_has_no_slope_in_any_scale(activation, free, task):
    net = network(activation)
    data, precisions, options = (
        examples(net, task),
        priors(net),
        {"task": task, "noise": 0.7 if task == "regression" else 1.0},
    )
    before = objective(net, data, precisions, **options).item()
    assert max(map(abs, slopes_in_levels(net, data, precisions, **options))) > 0.5
    for _ in range(10):
        to_mode(net, data, precisions, **options)
    slopes = slopes_in_levels(net, data, precisions, **options)
    assert len(slopes) == free
    assert max(map(abs, slopes)) < 1e-4
    assert objective(net, data, precisions, **options).item() < before - 0.1
    assert all(factor == pytest.approx(1, abs=1e-4) for factor in to_mode(net, data, precisions, **options).values())


def test_tensors_of_a_path_have_equal_penalties_and_its_product_is_the_layers():
    net = network()
    data, precisions = examples(net), priors(net)
    before = net(data.x).detach()
    factors = to_mode(net, data, precisions)
    held = penalties(net, precisions)
    for layer in scaled_layers(net):
        for keys in layer.paths:
            assert [held[key] for key in keys] == pytest.approx([held[keys[0]]] * len(keys))
    outputs = factors["h1.bias"]
    torch.testing.assert_close(net(data.x), outputs * before, rtol=1e-9, atol=1e-9)


def test_penalties_of_layers_differ_by_their_biases_alone():
    net = network()
    data, precisions = examples(net), priors(net)
    for _ in range(10):
        to_mode(net, data, precisions)
    held, layers = penalties(net, precisions), scaled_layers(net)
    of_paths = [sum(held[keys[0]] for keys in one.paths) for one in layers]
    for place in range(1, len(layers)):
        assert of_paths[place] == pytest.approx(of_paths[place - 1] + held[layers[place - 1].bias], rel=1e-4)


def test_a_network_that_does_not_fit_is_not_taken_to_zero():
    net = network()
    data = examples(net)
    wrong = Examples(data.x, (data.y + 1) % 3)
    factors = to_mode(net, wrong, priors(net))
    assert factors["h1.bias"] == pytest.approx(1 / LARGEST_OUTPUT_FACTOR)
    sure = network(scale=0.2)
    factors = to_mode(sure, Examples(data.x, sure(data.x).argmax(1)), dict.fromkeys(sure.tensors(), 1e-9))
    assert factors["h1.bias"] == pytest.approx(LARGEST_OUTPUT_FACTOR)


def test_where_nothing_is_free_nothing_moves_but_parts_of_paths():
    net = network()
    for path in dict(net.layers())["h1"].paths:
        dict(net.layers())["h1"].switch_off(path)
    data, precisions = examples(net), priors(net)
    precisions = {key: value for key, value in precisions.items() if key != "h1.FC.w"}
    before = net(data.x).detach()
    factors = to_mode(net, data, precisions)
    assert factors["l2.bias"] == factors["h1.bias"] == 1
    torch.testing.assert_close(net(data.x), before, rtol=1e-9, atol=1e-9)


def test_evidence_does_not_change_where_factors_on_precisions_are_traded():
    net = network()
    data, precisions = examples(net), priors(net)
    here = laplace.fit(net, data, precisions=precisions).log_evidence()
    levels = dict(zip(("l1", "l2", "h1"), ((0.0, 0.4), (0.4, -0.3), (-0.3, 0.0)), strict=True))
    traded = dict(precisions)
    for one, (read, written) in zip(scaled_layers(net), levels.values(), strict=True):
        factors = {one.bias: math.exp(written)}
        factors |= {key: math.exp((written - read) / len(keys)) for keys in one.paths for key in keys}
        for key, factor in factors.items():
            net.tensors()[key].data.mul_(factor)
            traded[key] /= factor**2
    assert laplace.fit(net, data, precisions=traded).log_evidence() == pytest.approx(here, rel=1e-9)
    assert laplace.fit(net, data, precisions=precisions).log_evidence() != pytest.approx(here, rel=1e-3)


LAYERS = (
    ScaledLayer((("a.F.w1", "a.F.w2"), ("a.C.w",)), "a.bias", free=True),
    ScaledLayer((("b.C.w",),), "b.bias", free=True),
    ScaledLayer((("c.C.w",),), "c.bias", free=True),
)
EFFECTIVE = {
    "a.F.w1": 2.0,
    "a.F.w2": 4.0,
    "a.C.w": 9.0,
    "a.bias": 1.5,
    "b.C.w": 40.0,
    "b.bias": 4.0,
    "c.C.w": 3.0,
    "c.bias": 0.5,
}


def paths_of(numbers, layer):
    return sum(numbers[keys[0]] for keys in layer.paths)


def test_shared_numbers_are_what_penalties_at_a_mode_can_be():
    shared = shared_numbers(LAYERS, EFFECTIVE, EFFECTIVE)
    assert shared["a.F.w1"] == shared["a.F.w2"]
    for before, after in pairwise(LAYERS):
        assert paths_of(shared, after) == pytest.approx(paths_of(shared, before) + shared[before.bias])


def test_shared_numbers_keep_their_sum_and_their_parts_within_a_layer():
    shared = shared_numbers(LAYERS, EFFECTIVE, EFFECTIVE)
    assert sum(paths_of(shared, one) + shared[one.bias] for one in LAYERS) == pytest.approx(3 + 9 + 1.5 + 44 + 3.5)
    assert shared["a.C.w"] / shared["a.F.w1"] == pytest.approx(9 / 3)
    assert shared["b.bias"] / shared["b.C.w"] == pytest.approx(4 / 40)


def test_a_layer_keeps_its_own_numbers_where_nothing_is_traded():
    held = tuple(ScaledLayer(one.paths, one.bias, free=False) for one in LAYERS)
    shared = shared_numbers(held, EFFECTIVE, EFFECTIVE)
    assert shared == pytest.approx(EFFECTIVE | {"a.F.w1": 3.0, "a.F.w2": 3.0})
    learned = EFFECTIVE.keys() - {"b.C.w"}
    shared = shared_numbers(LAYERS, EFFECTIVE, learned)
    assert (shared["b.C.w"], shared["b.bias"]) == (40, 4)
    assert paths_of(shared, LAYERS[2]) == pytest.approx(paths_of(shared, LAYERS[0]) + shared["a.bias"])


def test_layers_that_say_nothing_share_nothing():
    nothing = EFFECTIVE | {"b.C.w": 0.0, "b.bias": 0.0}
    shared = shared_numbers(LAYERS, nothing, nothing)
    assert shared["b.C.w"] == 0
    assert shared_numbers(LAYERS, dict.fromkeys(EFFECTIVE, 0.0), EFFECTIVE) == dict.fromkeys(EFFECTIVE, 0.0)
