import pytest
import torch

from oracles.comparison import assert_same
from oracles.dense import dense_factors, dense_ggn
from oracles.naive import Naive
from oracles.records import Chain, candidate
from symdsl import lowering
from symdsl.curvature import Categorical, Exact, Gaussian, MonteCarlo, estimate
from symdsl.curvature.handlers import HANDLERS, handler_for

FC, FFC, CONV = candidate("FC"), candidate("F-FC"), candidate("CONV")
GCONV, POINTWISE = candidate("GCONV"), candidate("GCONV", factor="pointwise")

NETWORKS = {
    "fc": Chain(2, 3, 2).layer(FC, channels=3, activations=("tanh",)).flatten().layer(FC, channels=3),
    "conv": Chain(2, 5, 3).layer(CONV, channels=3, activations=("relu",)).flatten().layer(FC, channels=4),
    "conv, strided": Chain(2, 4, 6)
    .layer(CONV, channels=3, stride=2, activations=("relu",))
    .flatten()
    .layer(FC, channels=3),
    "f-fc": Chain(2, 3, 5).layer(FFC, channels=3, activations=("tanh",)).flatten().layer(FC, channels=3),
    "f-fc, strided": Chain(3, 4, 4)
    .layer(FFC, channels=2, stride=2, activations=("tanh",))
    .flatten()
    .layer(FC, channels=3),
    "mixed": Chain(1, 4, 4)
    .layer(FFC, CONV, channels=2, activations=("relu",))
    .layer(FFC, CONV, FC, channels=3, stride=2, activations=("relu",))
    .flatten()
    .layer(FC, channels=3),
    "gconv": Chain(1, 3, 3)
    .lift("p4")
    .layer(GCONV, channels=2, activations=("relu",))
    .project("max")
    .flatten()
    .layer(FC, channels=3),
    "gconv, strided": Chain(1, 4, 4)
    .lift("p4")
    .layer(GCONV, channels=2, stride=2, activations=("tanh",))
    .project("mean")
    .pool("mean")
    .flatten()
    .layer(FC, channels=3),
    "lifted, mixed": Chain(1, 4, 4)
    .lift("p4")
    .layer(POINTWISE, CONV, FFC, channels=1, activations=("relu",))
    .layer(POINTWISE, GCONV, channels=2, stride=2, activations=("relu",))
    .project("mean")
    .flatten()
    .layer(FC, channels=3),
}


def lifted(group, side, *candidates, channels=2, stride=1, reads=1):
    return (
        Chain(reads, *side)
        .lift(group)
        .layer(*candidates, channels=channels, stride=stride, activations=("tanh",))
        .project("mean")
        .flatten()
        .layer(FC, channels=2)
    )


def group_candidate(factor, group, kernel=3):
    return candidate("GCONV", kernel, factor, group=group)


NETWORKS |= {
    "separable": lifted("p4", (2, 2), group_candidate("separable", "p4"), reads=2),
    "separable, strided": lifted("C2", (4, 2), group_candidate("separable", "C2"), reads=2, stride=2),
    "depthwise": lifted("p4", (2, 2), group_candidate("depthwise", "p4"), reads=2, channels=3),
    "depthwise, strided": lifted("flips", (2, 4), group_candidate("depthwise", "flips"), reads=2, stride=2),
    "p4m": lifted("p4m", (3, 3), candidate("GCONV", group="p4m"), channels=1),
    "p4m, factored": lifted(
        "p4m", (2, 2), group_candidate("separable", "p4m"), group_candidate("depthwise", "p4m"), stride=2
    ),
    "flips of p4m": lifted("p4m", (2, 2), group_candidate("full", "flips"), group_candidate("pointwise", "flips")),
    "mirror and p4": lifted("p4m", (2, 2), group_candidate("separable", "mirror"), group_candidate("depthwise", "p4")),
}


def network(name, seed=0):
    nodes = tuple(NETWORKS[name].nodes)
    net = lowering.build(nodes, seed).double()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(
                0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
            )
    return nodes, net


def images(nodes, count, seed=3):
    shape = nodes[0].out_shape
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, shape.channels, shape.height, shape.width, generator=generator, dtype=torch.float64)


def exact(net, x, likelihood=None, batch=512, sharing="expand"):
    y = torch.zeros(len(x), dtype=torch.int64)
    if isinstance(likelihood, Gaussian):
        y = torch.zeros(len(x), net(x).shape[1], dtype=torch.float64)
    return estimate(net, x, y, likelihood or Categorical(), Exact(), torch.Generator(), batch, sharing)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_network_computes_what_its_formula_says(name):
    nodes, net = network(name)
    x = images(nodes, 3)
    naive = Naive(nodes, net.tensors())
    assert_same(net(x).detach(), torch.stack([naive(image).detach() for image in x]), 1e-12)


@pytest.mark.parametrize("sharing", ["expand", "reduce"])
@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("name", NETWORKS)
def test_every_factor_equals_its_definition(name, task, sharing):
    nodes, net = network(name)
    x = images(nodes, 2)
    found = exact(net, x, Categorical() if task == "classification" else Gaussian(), sharing=sharing).blocks
    expected = dense_factors(Naive(nodes, net.tensors()), x, task, sharing)
    assert found.keys() == expected.keys() == net.tensors().keys()
    for key, (left, right) in expected.items():
        if key.endswith(".bias"):
            continue
        assert_same(torch.block_diag(*found[key].left), left)
        assert_same(torch.block_diag(*found[key].right), right)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_block_of_a_bias_is_the_exact_gauss_newton_block(name):
    nodes, net = network(name)
    x = images(nodes, 3)
    found = exact(net, x).blocks
    for layer, _ in net.layers():
        assert_same(found[f"{layer}.bias"].dense(), dense_ggn(net, f"stages.{layer}.bias", x, "classification"))


def test_kfac_of_a_tensor_used_once_on_one_example_is_the_gauss_newton_block():
    nodes, net = network("fc")
    x = images(nodes, 1)
    found = exact(net, x).blocks
    for layer in ("l1", "l2"):
        assert_same(found[f"{layer}.FC.w"].dense(), dense_ggn(net, f"stages.{layer}.paths.FC.w", x, "classification"))


def test_kfac_of_a_deep_linear_network_with_gaussian_noise_is_the_gauss_newton_block():
    nodes = tuple(Chain(2, 2, 2).layer(FC, channels=2).layer(FC, channels=1).flatten().layer(FC, channels=2).nodes)
    net = lowering.build(nodes, 0).double()
    x = images(nodes, 5)
    found = exact(net, x, Gaussian()).blocks
    for layer in ("l1", "l2", "l3"):
        assert_same(found[f"{layer}.FC.w"].dense(), dense_ggn(net, f"stages.{layer}.paths.FC.w", x, "regression"))


MEAN_POOLED = {
    "CONV": Chain(2, 4, 3).layer(CONV, channels=3).pool("mean").flatten().layer(FC, channels=2),
    "CONV, deep": Chain(2, 3, 4).layer(CONV, channels=2).layer(CONV, channels=3).pool("mean").flatten(),
    "GCONV-full": Chain(1, 3, 3).lift("p4").layer(GCONV, channels=2).project("mean").pool("mean").flatten(),
    "GCONV-pointwise": Chain(2, 4, 4).lift("p4").layer(POINTWISE, channels=2).project("mean").pool("mean").flatten(),
}


@pytest.mark.parametrize("name", MEAN_POOLED)
def test_kfac_reduce_of_a_linear_mean_pooled_network_is_the_gauss_newton_block(name):
    nodes = tuple(MEAN_POOLED[name].nodes)
    net = lowering.build(nodes, 0).double()
    x = images(nodes, 4)
    found = exact(net, x, Gaussian(), sharing="reduce").blocks
    path = name.partition(",")[0]
    for layer, module in net.layers():
        if path in module.paths:
            expected = dense_ggn(net, f"stages.{layer}.paths.{path}.w", x, "regression")
            assert_same(found[f"{layer}.{path}.w"].dense(), expected)


@pytest.mark.parametrize("sharing", ["expand", "reduce"])
@pytest.mark.parametrize("name", ["conv, strided", "mixed", "lifted, mixed"])
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_splitting_a_batch_never_changes_a_factor(name, batch, sharing):
    nodes, net = network(name)
    x = images(nodes, 5)
    whole, split = exact(net, x, sharing=sharing), exact(net, x, batch=batch, sharing=sharing)
    for key, block in whole.blocks.items():
        assert_same(split.blocks[key].left, block.left)
        assert_same(split.blocks[key].right, block.right)
    assert split.loss == pytest.approx(whole.loss, rel=1e-12)


@pytest.mark.parametrize("likelihood", [Categorical(), Gaussian()])
def test_sampled_labels_converge_to_all_columns(likelihood):
    nodes, net = network("mixed")
    x = images(nodes, 4)
    y = torch.zeros(4, dtype=torch.int64) if isinstance(likelihood, Categorical) else torch.zeros(4, 3).double()
    expected = estimate(net, x, y, likelihood, Exact(), torch.Generator())
    errors = []
    for samples in (4, 4000):
        found = estimate(net, x, y, likelihood, MonteCarlo(samples), torch.Generator().manual_seed(0))
        left, right = found.blocks["l2.CONV.w"], expected.blocks["l2.CONV.w"]
        errors.append(float((left.left - right.left).norm() / right.left.norm()))
    assert errors[1] < 0.05 < errors[0]


def test_a_switched_off_path_has_no_curvature():
    nodes, net = network("mixed")
    dict(net.layers())["l2"].switch_off("F-FC")
    found = exact(net, images(nodes, 2)).blocks
    assert found.keys() == net.tensors().keys() - {"l2.F-FC.w1", "l2.F-FC.w2"}


def test_a_parameter_without_a_handler_is_refused_by_name():
    with pytest.raises(TypeError, match="no curvature handler for parameter `w` of Linear"):
        handler_for(torch.nn.Linear(1, 1), "w")


def test_every_kind_has_a_handler_for_every_tensor():
    for name in NETWORKS:
        _, net = network(name)
        for _, layer in net.layers():
            for path in layer.paths.values():
                assert HANDLERS[type(path)].keys() == {tensor for tensor, _ in path.named_parameters()}


def test_more_samples_than_none_are_demanded():
    with pytest.raises(ValueError, match="must be at least 1"):
        MonteCarlo(0)
