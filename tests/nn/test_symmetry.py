from itertools import product

import pytest
import torch

from oracles.comparison import assert_same, noise
from oracles.equivariance import assert_invariant, moved, moved_lifted, shifted
from oracles.records import Chain, candidate
from symdsl import lowering, nn
from symdsl.kinds.convolution.module import Conv
from symdsl.kinds.dense.module import FactoredFullyConnected

CONV, FFC, FC = candidate("CONV"), candidate("F-FC"), candidate("FC")
GROUP = {factor: candidate("GCONV", factor=factor) for factor in ("full", "pointwise")}


def built(chain, seed=0):
    net = lowering.build(tuple(chain.nodes), seed).double()
    with torch.no_grad():
        for _, layer in net.layers():
            layer.bias.normal_(generator=torch.Generator().manual_seed(seed))
    return net


def group_network(*candidates, side=8):
    chain = Chain(2, side, side).lift("p4")
    for channels, stride in ((2, 1), (3, 2), (3, 1), (4, 2), (4, 2)):
        chain.layer(*candidates, channels=channels, stride=stride, activations=("relu",))
    return built(chain.project("max").flatten().layer(FC, channels=5))


@pytest.mark.parametrize("factor", GROUP)
def test_a_group_network_ignores_quarter_turns_and_shifts(factor):
    net, x = group_network(GROUP[factor]), noise(3, 2, 8, 8)
    for quarters, rows, columns in product(range(4), (0, 1, 3), (0, 2)):
        assert_invariant(net, x, shifted(moved(x, (quarters, 0)), rows, columns), 1e-9)


def test_the_check_notices_a_network_that_breaks_the_symmetry():
    net, x = group_network(GROUP["full"], FFC), noise(3, 2, 8, 8)
    with pytest.raises(AssertionError, match="largest difference"):
        assert_invariant(net, x, moved(x, (1, 0)), 1e-3)
    with pytest.raises(AssertionError, match="largest difference"):
        assert_invariant(net, x, shifted(x, 1, 0), 1e-3)


def test_a_mixed_network_is_strict_once_the_other_path_is_zero():
    net, x = group_network(GROUP["full"], FFC), noise(3, 2, 8, 8)
    for _, layer in net.layers():
        if "F-FC" in layer.paths:
            layer.prune("F-FC")
    for quarters in range(4):
        assert_invariant(net, x, shifted(moved(x, (quarters, 0)), 1, 3), 1e-9)


@pytest.mark.parametrize("factor", GROUP)
@pytest.mark.parametrize("side", [5, 6])
def test_features_of_a_group_layer_move_with_the_input(factor, side):
    layer = built(Chain(2, side, side).lift("p4").layer(GROUP[factor], channels=3)).stages["l1"]
    x = noise(2, 8, side, side)
    for quarters in range(4):
        assert_same(layer(moved_lifted(x, (quarters, 0), "p4")), moved_lifted(layer(x), (quarters, 0), "p4"), 1e-10)
    assert_same(layer(shifted(x, 2, 1)), shifted(layer(x), 2, 1), 1e-10)


@pytest.mark.parametrize("factor", GROUP)
def test_features_of_a_strided_group_layer_turn_with_the_input(factor):
    layer = built(Chain(2, 6, 6).lift("p4").layer(GROUP[factor], channels=3, stride=2)).stages["l1"]
    x = noise(4, 8, 6, 6)
    for quarters in range(4):
        assert_same(layer(moved_lifted(x, (quarters, 0), "p4")), moved_lifted(layer(x), (quarters, 0), "p4"), 1e-10)
    assert_same(layer(shifted(x, 2, 4)), shifted(layer(x), 1, 2), 1e-10)


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_a_convolutional_network_ignores_every_shift(stride):
    net = built(
        Chain(1, 6, 12)
        .layer(CONV, channels=3, stride=stride, activations=("relu",))
        .layer(CONV, channels=4, activations=("relu",))
        .pool("max")
        .flatten()
        .layer(FC, channels=3)
    )
    x = noise(2, 1, 6, 12)
    for rows, columns in product(range(6), range(0, 12, 5)):
        assert_invariant(net, x, shifted(x, rows, columns), 1e-10)


def test_convolution_and_group_convolution_share_one_phase():
    chain = Chain(1, 4, 4).lift("p4").layer(CONV, GROUP["full"], channels=2, stride=2).pool("mean").flatten()
    net = built(chain.layer(FC, channels=3))
    x = noise(2, 1, 4, 4)
    for rows, columns in product(range(4), repeat=2):
        assert_invariant(net, x, shifted(x, rows, columns), 1e-10)


def test_an_output_does_not_depend_on_the_rest_of_its_batch():
    net, x = group_network(GROUP["full"], CONV, FFC), noise(9, 2, 8, 8)
    with torch.no_grad():
        together = net(x)
        for index in (0, 4, 8):
            assert_same(net(x[index : index + 1]), together[index : index + 1], 1e-12)


def test_a_layer_whose_paths_are_all_off_gives_its_bias():
    layer = nn.RelaxedLayer({"CONV": Conv(2, 3, 3)}, channels=3, stride=2)
    layer.prune("CONV")
    layer.bias.data = torch.tensor([1.0, 2.0, 3.0])
    assert_same(
        layer(torch.ones(4, 2, 6, 6)).detach(), torch.tensor([1.0, 2.0, 3.0]).view(1, 3, 1, 1).expand(4, 3, 3, 3)
    )


def test_switching_off_freezes_and_clears_a_path_for_good():
    layer = nn.RelaxedLayer({"CONV": Conv(2, 3, 3), "F-FC": FactoredFullyConnected((2, 4, 4), (3, 4, 4))}, 3)
    layer.prune("F-FC")
    assert layer.pruned == {"F-FC"}
    assert all(not p.requires_grad and float(p.abs().max()) == 0 for p in layer.paths["F-FC"].parameters())
    with pytest.raises(KeyError, match="GCONV"):
        layer.prune("GCONV")


def test_a_path_that_is_left_out_for_a_moment_has_no_say_in_the_phase():
    torch.manual_seed(0)
    layer = nn.RelaxedLayer({"small": Conv(2, 3, 1, 2), "large": Conv(2, 3, 3, 2, scale=10.0)}, 3, stride=2).double()
    x = noise(20, 2, 4, 4)
    with torch.no_grad(), layer.without("large"):
        found = layer(x)
    layer.prune("large")
    assert_same(found, layer(x).detach(), 0.0)


def test_a_path_that_is_removed_is_no_longer_among_the_pruned():
    layer = nn.RelaxedLayer({"CONV": Conv(2, 3, 3), "F-FC": FactoredFullyConnected((2, 4, 4), (3, 4, 4))}, 3)
    layer.prune("F-FC")
    layer.remove("F-FC")
    assert layer.pruned == frozenset()
