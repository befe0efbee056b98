"""A network in plain modules computes what the network computes."""

from __future__ import annotations

import attrs
import pytest
import torch

from oracles.comparison import assert_same
from oracles.records import Chain, candidate, sparse
from symdsl import lowering
from symdsl.analysis.facts import Layer
from symdsl.diagnostics import RunError
from symdsl.export import plain_network
from symdsl.export.convert import ACTIVATIONS
from symdsl.nn import activations

FC, FFC = candidate("FC"), candidate("F-FC")
PLANE = {
    "CONV": (candidate("CONV"),),
    "CONV(5) and CONV(1)": (candidate("CONV", kernel=5), candidate("CONV", kernel=1)),
    "F-FC": (FFC,),
    "FC": (FC,),
    "S-CONV": (sparse("S-CONV", anchors="learned", on="lengthscale"),),
    "S-FC": (sparse("S-FC"),),
    "all": (FC, FFC, candidate("CONV"), sparse("S-CONV"), sparse("S-FC")),
}
LIFTED = {
    **{factor: (candidate("GCONV", factor=factor),) for factor in ("full", "pointwise", "separable", "depthwise")},
    "S-GCONV": (sparse("S-GCONV"),),
    "S-GFC": (sparse("S-GFC", anchors="learned"),),
    "F-GFC": (candidate("F-GFC"),),
    "all": (candidate("GCONV"), candidate("CONV"), candidate("F-GFC"), sparse("S-GCONV")),
}


def built(chain: Chain) -> tuple[torch.nn.Module, torch.nn.Module, torch.Tensor]:
    """A network with biases, the same in plain modules, and inputs."""
    net = lowering.build(tuple(chain.nodes), 0).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for key, parameter in net.tensors().items():
            if key.endswith(("bias", "anchors", "omega")):
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    records = [node for node in chain.nodes if isinstance(node, Layer)]
    shape = chain.nodes[0].out_shape
    return net, plain_network(net, records), torch.randn(9, 2, shape.height, shape.width, generator=generator)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kinds", PLANE)
def test_every_kind_on_plain_maps(kinds: str, stride: int) -> None:
    chain = Chain(2, 6, 8).layer(*PLANE[kinds], channels=3, stride=stride, activations=("relu", "tanh"))
    net, plain, x = built(chain.flatten().layer(FC, FFC, channels=5))
    assert_same(plain(x), net(x), 2e-6)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kinds", ["CONV", "CONV(5) and CONV(1)", "F-FC", "S-CONV", "all"])
def test_every_kind_on_lines(kinds: str, stride: int) -> None:
    chain = Chain(2, 1, 8).layer(*PLANE[kinds], channels=3, stride=stride, activations=("relu",))
    net, plain, x = built(chain.flatten().layer(FC, channels=5))
    assert_same(plain(x), net(x), 2e-6)


def test_residual_blocks_add_what_they_read() -> None:
    conv = candidate("CONV")
    chain = Chain(2, 6, 6).residual(((conv, FFC), 2, "relu"), ((conv,), 2))
    chain.layer(conv, channels=3, activations=("relu",)).residual(((conv,), 3, "relu"), ((conv,), 3))
    net, plain, x = built(chain.flatten().layer(FC, channels=5))
    assert_same(plain(x), net(x), 2e-6)
    records = [node for node in chain.nodes if isinstance(node, Layer)]
    net.prune("l2", "CONV")
    assert_same(plain_network(net, records)(x), net(x), 2e-6)
    assert "residual-1" not in dict(plain_network(net, records).named_children())


def test_averages_take_the_transformations_of_the_evaluation() -> None:
    chain = Chain(2, 6, 8).average({"rotation": 40.0, "translate_x": 0.2}, 5)
    chain.layer(FFC, candidate("CONV"), channels=3, stride=2, activations=("relu",))
    chain.average({"shear": 0.3}, 2).flatten().layer(FC, channels=4, activations=("tanh",)).mean()
    net, plain, x = built(chain.mean().layer(FC, channels=2))
    assert_same(plain(x), net(x), 2e-6)


@pytest.mark.parametrize("stride", [1, 2])
def test_random_features_keep_their_frequencies(stride: int) -> None:
    features = attrs.evolve(FC, name="RFF", kind="RFF", arguments=(("lengthscale", 0.7),), tensors=())
    net, plain, x = built(Chain(2, 6, 8).layer(features, channels=3, stride=stride).flatten().layer(FC, channels=5))
    assert_same(plain(x), net(x), 2e-6)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kinds", LIFTED)
def test_every_kind_on_lifted_maps(kinds: str, stride: int) -> None:
    chain = Chain(2, 6, 6).lift("p4").layer(*LIFTED[kinds], channels=3, stride=stride, activations=("gelu",))
    net, plain, x = built(chain.project("max").pool("mean").flatten().layer(FC, channels=5))
    assert_same(plain(x), net(x), 2e-6)


def test_a_group_that_acts_on_a_part_of_the_map() -> None:
    chain = Chain(2, 6, 6).lift("p4m").layer(candidate("GCONV", group="flips"), channels=2, stride=2)
    net, plain, x = built(chain.project("mean").flatten().layer(FC, channels=5))
    assert_same(plain(x), net(x), 2e-6)


def test_paths_that_are_off_are_left_out() -> None:
    chain = Chain(2, 6, 6).layer(FFC, candidate("CONV"), channels=3, stride=2).flatten().layer(FC, channels=5)
    net = lowering.build(tuple(chain.nodes), 0)
    layers = dict(net.layers())
    layers["l1"].prune("F-FC")
    records = [node for node in chain.nodes if isinstance(node, Layer)]
    x = torch.randn(4, 2, 6, 6, generator=torch.Generator().manual_seed(1))
    plain = plain_network(net, records)
    assert [type(one).__name__ for one in plain.l1.terms] == ["Convolution"]
    assert_same(plain(x), net(x), 2e-6)
    layers["l1"].remove("F-FC")
    assert_same(plain(x), net(x), 2e-6)
    layers["l1"].remove("CONV")
    assert_same(plain_network(net, records)(x), net(x), 2e-6)


def test_every_activation_has_a_module() -> None:
    x = torch.linspace(-3, 3, 31)
    assert ACTIVATIONS.keys() == activations.ACTIVATIONS.keys()
    for name, module in ACTIVATIONS.items():
        assert_same(module()(x), activations.ACTIVATIONS[name](x), 1e-6)


def test_a_kind_that_names_no_filter_side_is_refused() -> None:
    chain = Chain(2, 6, 6).layer(candidate("CONV"), channels=3).flatten().layer(FC, channels=5)
    net = lowering.build(tuple(chain.nodes), 0)
    records = [one for one in chain.nodes if isinstance(one, Layer)]
    nameless = attrs.evolve(records[0].candidates[0], arguments=())
    with pytest.raises(RunError, match=r"`l1.CONV` cannot be exported"):
        plain_network(net, [attrs.evolve(records[0], candidates=(nameless,)), *records[1:]])
