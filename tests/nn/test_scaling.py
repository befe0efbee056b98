"""Factors on tensors: what they do to a network's outputs, for every kind."""

import math

import pytest
import torch

import symdsl
from symdsl.nn.scaling import scaled_layers

CHAIN = """
data synthetic(size = 4, channels = 2, classes = 3, train = 8, test = 4) |> standardize
network chain {{
  input image(channels, 4, 4)
  {lift}
  layer l1: {first} -> 2 stride 2 |> {activation}
  layer l2: {second} -> 3 |> {activation}
  {project}
  flatten
  layer h1: FC -> 4 |> {activation}
  layer h2: FC -> classes
}}
"""
PLAIN = [
    "FC + CONV(3)",
    "F-FC + CONV(3)",
    "S-FC + S-CONV(3)",
    "S-FC(on = lengthscale, anchors = learned) + S-CONV(3, on = lengthscale, anchors = learned)",
]
LIFTED = [
    "GCONV(3) + CONV(3)",
    "GCONV(3, separable) + F-GFC",
    "GCONV(3, depthwise) + S-GFC",
    "GCONV(3, pointwise) + S-GCONV(3)",
]
CANDIDATES = [*((one, False) for one in PLAIN), *((one, True) for one in LIFTED)]


def network(first="F-FC + CONV(3)", second=None, activation="relu", lifted=False):
    """In double precision, with biases that are not zero."""
    stages = {"lift": "lift p4", "project": "project max"} if lifted else {"lift": "", "project": "pool mean"}
    text = CHAIN.format(first=first, second=second or first, activation=activation, **stages)
    net = symdsl.compile(symdsl.parse(text), 0).double().eval()
    generator = torch.Generator().manual_seed(1)
    for _, layer in net.layers():
        layer.bias.data.copy_(torch.randn(layer.bias.shape, generator=generator, dtype=torch.float64))
    return net


def images():
    return torch.randn(5, 2, 4, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


@torch.no_grad()
def scale(net, levels):
    """Puts e^level on what each layer writes; tensors of a path take uneven parts of its factor."""
    tensors, before = net.tensors(), 0.0
    for layer, level in zip(scaled_layers(net), levels, strict=True):
        tensors[layer.bias].mul_(math.exp(level))
        for keys in layer.paths:
            parts = [0.3 * (place + 1) for place in range(len(keys) - 1)]
            for key, part in zip(keys, (*parts, 1 - sum(parts)), strict=True):
                tensors[key].mul_(math.exp(part * (level - before)))
        before = level


@pytest.mark.parametrize(("candidates", "lifted"), CANDIDATES)
def test_factors_are_one_factor_on_the_outputs(candidates, lifted):
    net, x = network(candidates, lifted=lifted), images()
    layers = scaled_layers(net)
    assert [one.free for one in layers] == [True] * 4
    assert [len(one.paths) for one in layers] == [2, 2, 1, 1]
    before = net(x)
    scale(net, [0.5, -0.7, 0.2, 0.3])
    torch.testing.assert_close(net(x), before * math.exp(0.3), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "identity"])
def test_what_is_homogeneous_lets_factors_through(activation):
    net, x = network(activation=activation), images()
    before = net(x)
    scale(net, [0.4, 0.1, -0.3, 0.0])
    torch.testing.assert_close(net(x), before, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("activation", ["tanh", "gelu", "silu", "elu", "sigmoid", "softplus", "relu |> tanh"])
def test_nothing_before_another_activation_is_free(activation):
    assert [one.free for one in scaled_layers(network(activation=activation))] == [False, False, False, True]


def test_every_kind_names_all_its_tensors_but_lengthscales_and_anchors():
    kinds = set()
    for candidates, lifted in CANDIDATES:
        for _, layer in network(candidates, lifted=lifted).layers():
            for path in layer.paths.values():
                kinds.add(type(path).__name__)
                weights = {name for name, _ in path.named_parameters() if not name.startswith(("omega", "anchors"))}
                assert set(path.linear_in) == weights
    assert len(kinds) == 10


def test_paths_that_are_off_or_zero_take_no_factor():
    net = network()
    layers = dict(net.layers())
    layers["l1"].switch_off("F-FC")
    net.tensors()["l2.CONV.w"].data.zero_()
    found = scaled_layers(net)
    assert found[0].paths == (("l1.CONV.w",),)
    assert found[1].paths == (("l2.F-FC.w1", "l2.F-FC.w2"),)


def test_around_a_layer_without_a_path_that_takes_a_factor_nothing_is_free():
    net = network()
    for path in dict(net.layers())["l2"].paths:
        dict(net.layers())["l2"].switch_off(path)
    found = scaled_layers(net)
    assert [one.free for one in found] == [False, False, True, True]
    assert found[1].paths == ()


def test_a_path_that_names_no_tensor_holds_its_layer(monkeypatch):
    net = network()
    monkeypatch.setattr(type(dict(net.layers())["l2"].paths["F-FC"]), "linear_in", ())
    assert [one.free for one in scaled_layers(net)] == [False, False, True, True]
