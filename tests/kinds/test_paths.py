import pytest
import torch
from torch.autograd.functional import jacobian
from torch.func import jacrev

from oracles.comparison import assert_same
from symdsl import nn
from symdsl.groups import GROUPS, TWO_STEPS_FROM
from symdsl.kinds.convolution.module import Conv
from symdsl.kinds.dense import module as dense
from symdsl.kinds.dense.module import FactoredFullyConnected, FullyConnected, is_multiplied_out
from symdsl.kinds.group.module import DepthwiseGroupConv, GroupConv, PointwiseGroupConv, SeparableGroupConv
from symdsl.nn.activations import ACTIVATIONS

P4 = GROUPS["p4"]


def generator(seed):
    return torch.Generator().manual_seed(seed)


PATHS = {
    "FC": lambda seed, scale: FullyConnected((8, 4, 4), (64, 4, 4), scale, generator(seed)),
    "F-FC": lambda seed, scale: FactoredFullyConnected((8, 8, 8), (64, 8, 8), scale, generator(seed)),
    "CONV": lambda seed, scale: Conv(8, 64, 3, scale=scale, generator=generator(seed)),
    "GCONV full": lambda seed, scale: GroupConv(2, 16, P4, 3, scale=scale, generator=generator(seed)),
    "GCONV pointwise": lambda seed, scale: PointwiseGroupConv(2, 16, P4, 3, scale=scale, generator=generator(seed)),
    "GCONV separable": lambda seed, scale: SeparableGroupConv(2, 16, P4, 3, scale=scale, generator=generator(seed)),
    "GCONV depthwise": lambda seed, scale: DepthwiseGroupConv(2, 16, P4, 3, scale=scale, generator=generator(seed)),
    **{
        f"{module.__name__} over C2 of p4": lambda seed, scale, module=module: module(
            2, 16, GROUPS["C2"], 3, scale=scale, generator=generator(seed), lifted=P4
        )
        for module in (GroupConv, PointwiseGroupConv, SeparableGroupConv, DepthwiseGroupConv)
    },
}
SIDES = {"FC": 4}


def output_variance(name, inputs, scale):
    """Second moment of the output over several draws of the weights."""
    outputs = [PATHS[name](seed, scale)(inputs) for seed in range(200)]
    return float(torch.stack(outputs).square().mean())


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("activation", ["identity", "relu", "tanh", "gelu"])
def test_every_path_alone_has_pre_activations_of_unit_variance(name, activation):
    side = SIDES.get(name, 8)
    inputs = ACTIVATIONS[activation](torch.randn(3, 8, side, side, generator=generator(99)))
    with torch.no_grad():
        assert output_variance(name, inputs, nn.moments((activation,)).gain) == pytest.approx(1, rel=0.15)


@pytest.mark.parametrize("name", PATHS)
def test_the_scale_is_that_of_the_output(name):
    side = SIDES.get(name, 8)
    inputs = torch.randn(3, 8, side, side, generator=generator(99))
    with torch.no_grad():
        assert output_variance(name, inputs, 0.1) == pytest.approx(0.01, rel=0.15)


def test_the_gain_of_relu_is_that_of_he():
    assert nn.moments(("relu",)).gain == pytest.approx(2**0.5, rel=1e-6)
    assert nn.moments(()).gain == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("name", PATHS)
def test_the_same_seed_gives_the_same_weights(name):
    first, second, other = (dict(PATHS[name](seed, 1.0).named_parameters()) for seed in (0, 0, 1))
    for key, value in first.items():
        assert torch.equal(value, second[key])
        assert not torch.equal(value, other[key])


@pytest.mark.parametrize("written", [dense.FEW_POSITIONS, dense.FEW_POSITIONS + 1])
def test_products_of_the_factored_path_have_the_gradients_of_their_sums(written):
    shapes = (2, 3, 7), (5, 3, 7), (5, 3, written), (2, 5, written)
    *leaves, g = (torch.randn(*one, generator=generator(seed), dtype=torch.float64) for seed, one in enumerate(shapes))
    leaves = [one.requires_grad_() for one in leaves]
    x, w2, w1 = leaves
    found = dense.over_positions(dense.mixed(x, w2), w1)
    expected = torch.einsum("ncx,dcx,dcy->ndy", x, w2, w1)
    assert_same(found.detach(), expected.detach(), 1e-12)
    for one, other in zip(*(torch.autograd.grad(y, leaves, g) for y in (found, expected)), strict=True):
        assert_same(one, other, 1e-12)


@pytest.mark.parametrize(("read", "written", "at_once"), [((3, 2, 5), (4, 3, 2), True), ((3, 4, 5), (4, 3, 2), False)])
def test_the_factored_path_is_the_full_one_with_a_factored_weight(read, written, at_once):
    path = FactoredFullyConnected(read, written, generator=generator(0)).double()
    assert is_multiplied_out(path.w2.shape[2], path.w1.shape[2]) is at_once
    full = FullyConnected(read, written).double()
    full.w.data = torch.einsum("dcy,dcx->dycx", path.w1, path.w2).detach()
    x = torch.randn(6, *read, generator=generator(1), dtype=torch.float64)
    expected = full(x)
    assert_same(path(x), expected, 1e-12)
    recorded = {}
    assert_same(path(x, lambda name, *use: recorded.update({name: use})), expected, 1e-12)
    z = torch.einsum("ncx,dcx->ndc", x.flatten(2), path.w2)
    assert_same(recorded["w2"][1], z, 1e-12)
    assert recorded["w1"][0] is recorded["w2"][1]


def test_a_path_without_a_fine_grid_says_so():
    with pytest.raises(TypeError, match="FullyConnected does not sample"):
        PATHS["FC"](0, 1.0).fine(torch.zeros(1, 8, 4, 4))


@pytest.mark.parametrize("stride", [1, 2])
def test_two_steps_of_a_separable_group_convolution_equal_one(stride):
    many, few = (
        SeparableGroupConv(2, channels, P4, 3, stride, generator=generator(0)).double()
        for channels in (TWO_STEPS_FROM, TWO_STEPS_FROM - 1)
    )
    few.w1.data, few.w2.data = many.w1.data[:-1], many.w2.data
    x = torch.randn(3, 8, 4, 6, generator=generator(1), dtype=torch.float64)
    assert_same(many(x)[:, : 4 * (TWO_STEPS_FROM - 1)].detach(), few(x).detach(), 1e-12)


FACTORED = {SeparableGroupConv: "dch,cs->dchs", DepthwiseGroupConv: "dc,ch,cs->dchs"}


@pytest.mark.parametrize("module", FACTORED, ids=lambda module: module.__name__)
@pytest.mark.parametrize("stride", [1, 2])
def test_a_factored_group_convolution_is_the_full_one_with_the_product_for_its_filter(module, stride):
    path = module(2, 3, GROUPS["p4m"], 3, stride, generator=generator(0)).double()
    full = GroupConv(2, 3, GROUPS["p4m"], 3, stride).double()
    tensors = [tensor.flatten(1) if name == "w2" else tensor for name, tensor in path.named_parameters()]
    full.w.data = torch.einsum(FACTORED[module], *tensors).unflatten(3, (3, 3)).detach()
    x = torch.randn(2, 16, 4, 4, generator=generator(1), dtype=torch.float64)
    assert_same(path(x).detach(), full(x).detach(), 1e-12)


def test_a_group_convolution_over_the_trivial_group_is_a_plain_one():
    path = GroupConv(2, 3, GROUPS["trivial"], 3, generator=generator(0), lifted=P4).double()
    plain = Conv(8, 12, 3).double()
    plain.w.data = path.w.data[:, :, 0]
    x = torch.randn(2, 8, 5, 4, generator=generator(1), dtype=torch.float64)
    assert_same(path(x).detach(), plain(x).detach(), 1e-12)


def test_all_rows_of_a_jacobian_are_taken_at_once_on_maps_whose_channels_are_stored_innermost():
    path = FactoredFullyConnected((2, 16, 16), (1, 2, 2), generator=generator(0))
    x = torch.randn(1, 2, 16, 16, generator=generator(1)).to(memory_format=torch.channels_last)
    assert_same(jacrev(path)(x), jacobian(path, x), 1e-6)
