import pytest
import torch

from symdsl import nn
from symdsl.groups import GROUPS
from symdsl.nn.activations import ACTIVATIONS

P4 = GROUPS["p4"]


def generator(seed):
    return torch.Generator().manual_seed(seed)


PATHS = {
    "FC": lambda seed, scale: nn.FullyConnected((8, 4, 4), (64, 4, 4), scale, generator(seed)),
    "F-FC": lambda seed, scale: nn.FactoredFullyConnected((8, 8, 8), (64, 8, 8), scale, generator(seed)),
    "CONV": lambda seed, scale: nn.Conv(8, 64, 3, scale=scale, generator=generator(seed)),
    "GCONV full": lambda seed, scale: nn.GroupConv(2, 16, P4, 3, scale=scale, generator=generator(seed)),
    "GCONV pointwise": lambda seed, scale: nn.PointwiseGroupConv(2, 16, P4, 3, scale=scale, generator=generator(seed)),
}
SIDES = {"FC": 4}


def output_variance(name, inputs, scale):
    """Second moment of the output over several draws of the weights."""
    outputs = [PATHS[name](seed, scale)(inputs) for seed in range(40)]
    return float(torch.stack(outputs).square().mean())


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("activation", ["identity", "relu", "tanh", "gelu"])
def test_every_path_alone_has_pre_activations_of_unit_variance(name, activation):
    side = SIDES.get(name, 8)
    inputs = ACTIVATIONS[activation](torch.randn(16, 8, side, side, generator=generator(99)))
    with torch.no_grad():
        assert output_variance(name, inputs, nn.gain((activation,))) == pytest.approx(1, rel=0.15)


@pytest.mark.parametrize("name", PATHS)
def test_the_scale_is_that_of_the_output(name):
    side = SIDES.get(name, 8)
    inputs = torch.randn(16, 8, side, side, generator=generator(99))
    with torch.no_grad():
        assert output_variance(name, inputs, 0.1) == pytest.approx(0.01, rel=0.15)


def test_the_gain_of_relu_is_that_of_he():
    assert nn.gain(("relu",)) == pytest.approx(2**0.5, rel=1e-6)
    assert nn.gain(()) == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("name", PATHS)
def test_the_same_seed_gives_the_same_weights(name):
    first, second, other = (dict(PATHS[name](seed, 1.0).named_parameters()) for seed in (0, 0, 1))
    for key, value in first.items():
        assert torch.equal(value, second[key])
        assert not torch.equal(value, other[key])


def test_the_factored_path_is_the_full_one_with_a_factored_weight():
    path = nn.FactoredFullyConnected((3, 2, 5), (4, 3, 2), generator=generator(0)).double()
    full = nn.FullyConnected((3, 2, 5), (4, 3, 2)).double()
    full.w.data = torch.einsum("dcy,dcx->dycx", path.w1, path.w2).detach()
    x = torch.randn(6, 3, 2, 5, generator=generator(1), dtype=torch.float64)
    assert torch.allclose(path(x), full(x), rtol=1e-12, atol=1e-12)


def test_a_path_without_a_fine_grid_says_so():
    with pytest.raises(TypeError, match="FullyConnected maps straight to the coarse grid"):
        PATHS["FC"](0, 1.0).fine(torch.zeros(1, 8, 4, 4))
