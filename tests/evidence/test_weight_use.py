import math

import pytest
import torch

from oracles.comparison import assert_same, noise
from oracles.dense import dense_factors, dense_ggn, rows
from oracles.naive import Naive
from oracles.records import Chain, candidate, sparse
from symdsl import lowering
from symdsl.evidence import CURVATURES, Categorical, Exact, Gaussian, MonteCarlo, Rademacher, estimate, weight_use
from symdsl.evidence import joint as joint_module
from symdsl.evidence.weight_use import BatchUse, weight_use_of
from symdsl.kinds.convolution import weight_use as convolution
from symdsl.kinds.convolution.weight_use import patch_sums, patches
from symdsl.kinds.group import weight_use as group

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
    "s-fc": Chain(2, 3, 5).layer(sparse("S-FC"), channels=3, activations=("tanh",)).flatten().layer(FC, channels=3),
    "s-fc, strided, all anchors": Chain(3, 4, 2)
    .layer(sparse("S-FC", sparsity=1), channels=2, stride=2, activations=("tanh",))
    .flatten()
    .layer(sparse("S-FC"), channels=3),
    "s-fc, learned anchors": Chain(2, 4, 4)
    .layer(sparse("S-FC", anchors="learned"), channels=3, stride=2, activations=("tanh",))
    .flatten()
    .layer(FC, channels=2),
    "s-fc, lengthscale": Chain(2, 3, 4)
    .layer(sparse("S-FC", on="lengthscale", sparsity=3), channels=2, activations=("tanh",))
    .layer(sparse("S-FC", anchors="learned", on="lengthscale"), channels=2, activations=("relu",))
    .flatten()
    .layer(FC, channels=3),
    "s-conv": Chain(2, 5, 3).layer(sparse("S-CONV"), channels=3, activations=("relu",)).flatten().layer(FC, channels=4),
    "s-conv, learned": Chain(1, 4, 6)
    .layer(sparse("S-CONV", anchors="learned"), channels=2, activations=("tanh",))
    .layer(sparse("S-CONV", on="lengthscale"), channels=3, stride=2, activations=("relu",))
    .layer(sparse("S-CONV", anchors="learned", on="lengthscale", sparsity=4), channels=2)
    .flatten()
    .layer(FC, channels=2),
    "sparse, mixed": Chain(1, 4, 4)
    .layer(sparse("S-FC"), sparse("S-CONV"), CONV, channels=2, stride=2, activations=("relu",))
    .layer(sparse("S-FC", on="lengthscale"), sparse("S-CONV", 1), FFC, channels=2, activations=("relu",))
    .flatten()
    .layer(FC, channels=3),
    "on group times space": Chain(1, 3, 3)
    .lift("p4")
    .layer(candidate("F-GFC"), sparse("S-GFC"), channels=2, activations=("tanh",))
    .layer(sparse("S-GFC", anchors="learned", on="lengthscale", sparsity=5), channels=2, activations=("tanh",))
    .project("mean")
    .flatten()
    .layer(FC, channels=2),
    "s-gconv": Chain(2, 4, 4)
    .lift("p4")
    .layer(sparse("S-GCONV"), GCONV, channels=2, stride=2, activations=("tanh",))
    .layer(sparse("S-GCONV", anchors="learned", on="lengthscale", sparsity=3), channels=2, activations=("relu",))
    .layer(sparse("S-FC", sparsity=4), sparse("S-CONV", sparsity=3), channels=1, activations=("tanh",))
    .project("max")
    .flatten()
    .layer(FC, channels=3),
    "line": Chain(2, 1, 7)
    .layer(CONV, FFC, channels=2, activations=("tanh",))
    .layer(sparse("S-CONV", 5), sparse("S-FC"), channels=2)
    .flatten()
    .layer(FC, channels=2),
    "line, strided": Chain(1, 1, 6)
    .layer(CONV, sparse("S-CONV", anchors="learned", on="lengthscale"), channels=2, stride=2, activations=("tanh",))
    .flatten()
    .layer(FC, channels=3),
    "residual": Chain(1, 4, 3)
    .layer(CONV, channels=2, activations=("relu",))
    .residual(((FFC, CONV), 3, "tanh"), ((CONV,), 2))
    .residual(((CONV,), 2, "relu"))
    .flatten()
    .residual(((FC,), 24))
    .layer(FC, channels=3),
    "residual, from the input, lifted": Chain(2, 2, 2)
    .residual(((FFC,), 2, "tanh"))
    .lift("p4")
    .residual(((GCONV, sparse("S-CONV")), 1, "tanh"), ((POINTWISE, FFC), 2))
    .project("mean")
    .flatten()
    .layer(FC, channels=2),
    "average": Chain(1, 4, 4)
    .average({"rotation": 70.0}, 3)
    .flatten()
    .layer(FC, channels=3, activations=("relu",))
    .mean()
    .layer(FC, channels=3),
    "average, relaxed and strided": Chain(2, 4, 6)
    .average({"rotation": 20.0, "translate_x": 0.2}, 3)
    .layer(FFC, CONV, channels=2, stride=2, activations=("tanh",))
    .layer(FFC, CONV, channels=2, activations=("relu",))
    .flatten()
    .layer(FC, channels=3)
    .mean(),
    "average, in another, lifted, of a map": Chain(1, 4, 4)
    .average({"translate_y": 0.25}, 2)
    .residual(((CONV,), 1, "tanh"))
    .average({"scale_x": 0.3, "shear": 0.2}, 2)
    .lift("p4")
    .layer(GCONV, POINTWISE, channels=1, activations=("tanh",))
    .project("mean")
    .mean()
    .flatten()
    .layer(FC, channels=2)
    .mean()
    .layer(FC, channels=2),
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
    "line, mirrored": lifted("mirror", (1, 4), candidate("GCONV", group="mirror"), sparse("S-GCONV")),
    "line, mirrored and strided": lifted(
        "mirror", (1, 4), group_candidate("pointwise", "mirror"), group_candidate("separable", "mirror"), stride=2
    ),
    "line, half turns": lifted("flips", (1, 4), group_candidate("depthwise", "C2"), candidate("F-GFC"), stride=2),
    "separable": lifted("p4", (2, 2), group_candidate("separable", "p4"), reads=2),
    "separable, strided": lifted("C2", (4, 2), group_candidate("separable", "C2"), reads=2, stride=2),
    "depthwise": lifted("p4", (2, 2), group_candidate("depthwise", "p4"), reads=2, channels=3),
    "depthwise, strided": lifted("flips", (2, 4), group_candidate("depthwise", "flips"), reads=2, stride=2),
    "p4m": lifted("p4m", (3, 3), candidate("GCONV", group="p4m"), channels=1),
    "p4m, factored": lifted(
        "p4m", (2, 2), group_candidate("separable", "p4m"), group_candidate("depthwise", "p4m"), stride=2
    ),
    "flips of p4m": lifted("p4m", (2, 2), group_candidate("full", "flips"), group_candidate("pointwise", "flips")),
    "s-gconv on p4m": lifted("p4m", (3, 3), sparse("S-GCONV", on="lengthscale", sparsity=6), channels=1),
    "s-gconv on flips": lifted("flips", (2, 4), sparse("S-GCONV", anchors="learned"), reads=2, stride=2),
    "s-gfc on mirror": lifted("mirror", (2, 3), sparse("S-GFC", on="lengthscale"), candidate("F-GFC")),
    "mirror and p4": lifted("p4m", (2, 2), group_candidate("separable", "mirror"), group_candidate("depthwise", "p4")),
}


def network(name, seed=0):
    nodes = tuple(NETWORKS[name].nodes)
    net = lowering.build(nodes, seed).double().eval()
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
    return kfac(net, x, y, likelihood or Categorical(), Exact(), sharing, batch)


def kfac(net, x, y, likelihood, fisher, sharing="expand", batch=512):
    generator = torch.Generator().manual_seed(0)
    return estimate(net, x, y, likelihood, fisher, generator, CURVATURES[f"kfac-{sharing}"], batch)


def exact_keys(net):
    """The tensors whose whole block is formed."""
    return {key for key in net.tensors() if key.rpartition(".")[2].startswith(("bias", "omega", "anchors"))}


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
    found = exact(net, x, Categorical() if task == "classification" else Gaussian(), sharing=sharing).ggn.blocks
    expected = dense_factors(Naive(nodes, net.tensors()), x, task, sharing)
    assert found.keys() == net.tensors().keys() == expected.keys() | exact_keys(net)
    for key in expected.keys() - exact_keys(net):
        left, right = expected[key]
        assert_same(torch.block_diag(*found[key].output.blocks()), left)
        assert_same(torch.block_diag(*found[key].input.blocks()), right)


@pytest.mark.parametrize("name", NETWORKS)
def test_blocks_of_biases_lengthscales_and_anchors_are_the_exact_gauss_newton_blocks(name):
    nodes, net = network(name)
    x = images(nodes, 3)
    found = exact(net, x).ggn.blocks
    parameters = {id(parameter): module for module, parameter in net.named_parameters()}
    for key in exact_keys(net):
        module = parameters[id(net.tensors()[key])]
        assert_same(found[key].dense(), dense_ggn(net, module, x, "classification"))


def test_kfac_of_a_tensor_used_once_on_one_example_is_the_gauss_newton_block():
    nodes, net = network("fc")
    x = images(nodes, 1)
    found = exact(net, x).ggn.blocks
    for layer in ("l1", "l2"):
        assert_same(found[f"{layer}.FC.w"].dense(), dense_ggn(net, f"stages.{layer}.paths.FC.w", x, "classification"))


def test_kfac_of_a_deep_linear_network_with_gaussian_noise_is_the_gauss_newton_block():
    nodes = tuple(Chain(2, 2, 2).layer(FC, channels=2).layer(FC, channels=1).flatten().layer(FC, channels=2).nodes)
    net = lowering.build(nodes, 0).double()
    x = images(nodes, 5)
    found = exact(net, x, Gaussian()).ggn.blocks
    for layer in ("l1", "l2", "l3"):
        assert_same(found[f"{layer}.FC.w"].dense(), dense_ggn(net, f"stages.{layer}.paths.FC.w", x, "regression"))


def test_kfac_expand_of_a_linear_network_that_answers_at_every_position_is_the_gauss_newton_block():
    pixelwise = candidate("CONV", kernel=1)
    nodes = tuple(Chain(2, 2, 3).layer(pixelwise, channels=3).layer(pixelwise, channels=2).flatten().nodes)
    net = lowering.build(nodes, 0).double()
    x = images(nodes, 4)
    found = exact(net, x, Gaussian()).ggn.blocks
    for layer in ("l1", "l2"):
        assert_same(found[f"{layer}.CONV.w"].dense(), dense_ggn(net, f"stages.{layer}.paths.CONV.w", x, "regression"))


MEAN_POOLED = {
    "CONV": Chain(2, 4, 3).layer(CONV, channels=3).pool("mean").flatten().layer(FC, channels=2),
    "CONV, deep": Chain(2, 3, 4).layer(CONV, channels=2).layer(CONV, channels=3).pool("mean").flatten(),
    "GCONV-full": Chain(1, 3, 3).lift("p4").layer(GCONV, channels=2).project("mean").pool("mean").flatten(),
    "GCONV-pointwise": Chain(2, 4, 4).lift("p4").layer(POINTWISE, channels=2).project("mean").pool("mean").flatten(),
    "S-CONV": Chain(2, 4, 3).layer(sparse("S-CONV"), channels=3).pool("mean").flatten().layer(FC, channels=2),
    "S-GCONV": Chain(2, 3, 3).lift("p4").layer(sparse("S-GCONV"), channels=2).project("mean").pool("mean").flatten(),
}


@pytest.mark.parametrize("name", MEAN_POOLED)
def test_kfac_reduce_of_a_linear_mean_pooled_network_is_the_gauss_newton_block(name):
    nodes = tuple(MEAN_POOLED[name].nodes)
    net = lowering.build(nodes, 0).double()
    x = images(nodes, 4)
    found = exact(net, x, Gaussian(), sharing="reduce").ggn.blocks
    path = name.partition(",")[0]
    for layer, module in net.layers():
        if path in module.paths:
            (tensor,) = dict(module.paths[path].named_parameters())
            expected = dense_ggn(net, f"stages.{layer}.paths.{path}.{tensor}", x, "regression")
            assert_same(found[f"{layer}.{path}.{tensor}"].dense(), expected)


@pytest.mark.parametrize("sharing", ["expand", "reduce"])
@pytest.mark.parametrize("name", ["conv, strided", "mixed", "lifted, mixed", "s-fc, lengthscale", "s-gconv"])
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_splitting_a_batch_never_changes_a_factor(name, batch, sharing):
    nodes, net = network(name)
    x = images(nodes, 5)
    whole, split = exact(net, x, sharing=sharing), exact(net, x, batch=batch, sharing=sharing)
    for key, block in whole.ggn.blocks.items():
        assert_same(split.ggn.blocks[key].output.blocks(), block.output.blocks())
        assert_same(split.ggn.blocks[key].input.blocks(), block.input.blocks())
    assert split.loss == pytest.approx(whole.loss, rel=1e-12)


@pytest.mark.parametrize("sampled", [MonteCarlo, Rademacher])
@pytest.mark.parametrize("likelihood", [Categorical(), Gaussian()])
@pytest.mark.parametrize("name", ["mixed", "s-fc, lengthscale", "s-conv, learned", "s-gconv"])
def test_sampled_columns_converge_to_all_columns(sampled, likelihood, name):
    nodes, net = network(name)
    x = images(nodes, 4)
    y = torch.zeros(4, dtype=torch.int64) if isinstance(likelihood, Categorical) else net(x).detach()
    expected = kfac(net, x, y, likelihood, Exact()).ggn.blocks
    few, many = (kfac(net, x, y, likelihood, sampled(samples)).ggn.blocks for samples in (1, 600))
    errors = {
        key: [
            float((one[key].output.blocks() - exact.output.blocks()).norm() / exact.output.blocks().norm())
            for one in (few, many)
        ]
        for key, exact in expected.items()
    }
    assert max(last for _, last in errors.values()) < 0.2
    assert sum(last for _, last in errors.values()) < 0.3 * sum(first for first, _ in errors.values())


def test_a_pruned_path_has_no_curvature():
    nodes, net = network("mixed")
    dict(net.layers())["l2"].prune("F-FC")
    found = exact(net, images(nodes, 2)).ggn.blocks
    assert found.keys() == net.tensors().keys() - {"l2.F-FC.w1", "l2.F-FC.w2"}


def test_a_parameter_without_a_weight_use_is_refused_by_name():
    with pytest.raises(TypeError, match="no weight use for parameter `w` of Linear"):
        weight_use_of(torch.nn.Linear(1, 1), "w")


def test_every_kind_has_a_weight_use_for_every_tensor():
    for name in NETWORKS:
        _, net = network(name)
        for _, layer in net.layers():
            for path in layer.paths.values():
                assert path.weight_uses.keys() >= {tensor for tensor, _ in path.named_parameters()}


@pytest.mark.parametrize("sampled", [MonteCarlo, Rademacher])
def test_more_samples_than_none_are_demanded(sampled):
    with pytest.raises(ValueError, match="must be at least 1"):
        sampled(0)


def sampled_norms(fisher, logits):
    """Squared norms of the one column of each of 4,000 copies of an example."""
    outputs = torch.tensor(logits, dtype=torch.float64).expand(4000, -1)
    (column,) = fisher.loss_hessian_sqrt(Categorical(), outputs, torch.Generator().manual_seed(0))
    return column.square().sum(1)


def test_signs_sum_to_the_hessian_of_the_likelihood():
    outputs = torch.tensor([1.0, -0.5, 0.2], dtype=torch.float64).expand(40_000, -1)
    p = outputs[0].softmax(0)
    (column,) = Rademacher(1).loss_hessian_sqrt(Categorical(), outputs, torch.Generator().manual_seed(0))
    torch.testing.assert_close(column.T @ column / len(column), p.diag() - p.outer(p), atol=5e-3, rtol=0)


@pytest.mark.parametrize(("samples", "sums"), [(1, 1), (2, 2), (3, 3), (8, 3)])
def test_as_many_sums_with_signs_as_columns_are_these(samples, sums):
    outputs = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    fisher = Rademacher(samples)
    found = torch.stack(list(fisher.loss_hessian_sqrt(Categorical(), outputs, torch.Generator().manual_seed(0))))
    columns = torch.stack(list(Categorical().loss_hessian_sqrt(outputs)))
    assert len(found) == fisher.number(3) == sums
    hessian, sketched = (torch.einsum("kni,knj->nij", one, one) for one in (columns, found))
    assert torch.allclose(hessian, sketched, atol=1e-12) == (sums == 3)


def test_signs_are_even_where_labels_are_rarely_drawn():
    certain = [12.0, 0.0, 0.0, 0.0]
    trace = 1 - float(torch.tensor(certain, dtype=torch.float64).softmax(0).square().sum())
    signs, labels = sampled_norms(Rademacher(1), certain), sampled_norms(MonteCarlo(1), certain)
    assert float(signs.mean()) == pytest.approx(trace, rel=0.05)
    assert float(signs.max()) < 5 * trace
    assert float(labels.median()) < 1e-3 * trace


@pytest.mark.parametrize("numbers", [1, 1 << 24], ids=["an example at a time", "all at once"])
@pytest.mark.parametrize("name", NETWORKS)
def test_per_example_gradients_are_those_of_autograd(name, numbers, monkeypatch):
    """Up to the order of a tensor's parameters, which inner products do not know."""
    monkeypatch.setattr(weight_use, "_NUMBERS", numbers)
    monkeypatch.setattr(joint_module, "WIDTH", 1 << 16)
    nodes, net = network(name)
    x = images(nodes, 3)
    found = joint(net, x)
    names = {id(parameter): module for module, parameter in net.named_parameters()}
    assert found.parts.keys() == net.tensors().keys()
    for key, part in found.parts.items():
        columns = Categorical().loss_hessian_sqrt(net(x).detach())
        expected = torch.cat([rows(net, names[id(net.tensors()[key])], x, column) for column in columns])
        assert found.sizes[key] == expected.shape[1]
        assert part.shape == expected.shape
        assert_same(part @ part.T, expected @ expected.T, 1e-9)


def joint(net, x):
    y = torch.zeros(len(x)).long()
    return estimate(net, x, y, Categorical(), Exact(), torch.Generator(), CURVATURES["joint"]).ggn.sketch


@pytest.mark.parametrize("exact", [0, 1, 3, 5])
def test_all_columns_of_the_first_examples_are_propagated(exact):
    nodes, net = network("mixed")
    x, y = images(nodes, 5), torch.zeros(5).long()

    def found(x, fisher, exact=0):
        generator = torch.Generator().manual_seed(4)
        return estimate(net, x, y[: len(x)], Categorical(), fisher, generator, CURVATURES["sketch"], 2, exact).ggn.parts

    outputs = net(x[:1]).shape[1]
    for key, part in found(x, Rademacher(1), exact).items():
        first, others = part.split([exact * outputs, 5 - exact])
        if exact:
            all_columns = found(x[:exact], Exact())[key]
            assert_same(first.T @ first, all_columns.T @ all_columns, 1e-9)
        if exact < 5:
            assert_same(others, found(x[exact:], Rademacher(1))[key], 1e-9)


@pytest.mark.parametrize("sharing", ["expand", "reduce"])
@pytest.mark.parametrize("name", ["mixed", "gconv, strided", "s-conv, learned", "p4m, factored"])
def test_the_format_of_some_examples_at_a_time_gives_the_same_factors(name, sharing, monkeypatch):
    nodes, net = network(name)
    x = images(nodes, 5)
    whole = exact(net, x, sharing=sharing).ggn.blocks
    monkeypatch.setattr(weight_use, "_NUMBERS", 1)
    for key, block in exact(net, x, sharing=sharing).ggn.blocks.items():
        assert_same(block.output.blocks(), whole[key].output.blocks())
        assert_same(block.input.blocks(), whole[key].input.blocks())


@pytest.mark.parametrize(
    ("name", "parts"), [("conv", None), ("conv, strided", [2, 2, 1]), ("p4m, factored", [2, 2, 1])]
)
def test_moments_of_inputs_unfold_some_examples_at_a_time(name, parts, monkeypatch):
    nodes, net = network(name)
    x, recorded, seen = images(nodes, 5), {}, []
    net(x, recorded)
    uses = [one for one in map(BatchUse.of, recorded.values()) if one.weight.input_moment is not None]
    whole = [use.input_moment() for use in uses]

    def unfolded(inputs, kernel, stride):
        seen.append(len(inputs))
        return patches(inputs, kernel, stride)

    for module in (convolution, group):
        monkeypatch.setattr(module, "patches", unfolded)
    for use, moment in zip(uses, whole, strict=True):
        seen.clear()
        taps = math.prod(use.use.owner.kernel)
        monkeypatch.setattr(weight_use, "_NUMBERS", 2 * use.use.inputs[0].numel() * taps)
        assert_same(use.input_moment(), moment)
        assert parts is None or not seen or seen == parts
    assert parts is None or seen


@pytest.mark.parametrize("name", NETWORKS)
def test_moments_and_sums_of_inputs_found_by_a_shorter_way_are_those_of_the_format(name):
    nodes, net = network(name)
    x, recorded = images(nodes, 3), {}
    net(x, recorded)
    for use in recorded.values():
        weight = weight_use_of(use.owner, use.tensor)
        a = weight.inputs(use.owner, use.inputs)
        if weight.input_moment is not None:
            assert_same(weight.input_moment(use.owner, use.inputs), torch.einsum("nbri,nbrj->bij", a, a))
        if weight.input_sum is not None:
            assert_same(weight.input_sum(use.owner, use.inputs), a.sum(2))


@pytest.mark.parametrize(
    ("rows", "columns", "stride"), [(8, 8, 1), (8, 8, 2), (6, 4, 2), (8, 8, (1, 2)), (9, 6, 3), (1, 8, (1, 2))]
)
@pytest.mark.parametrize("kernel", [1, 3, 5, (1, 3)])
def test_sums_of_patches_are_found_from_the_phases_of_the_map(rows, columns, stride, kernel):
    kernel = (1, kernel) if rows == 1 and isinstance(kernel, int) else kernel
    x = noise(2, 3, rows, columns)
    assert_same(patch_sums(x, kernel, stride), patches(x, kernel, stride).sum(3))


def test_gradients_in_large_tensors_are_sketched_without_being_formed(monkeypatch):
    nodes, net = network("mixed")
    x = images(nodes, 6)
    whole = joint(net, x).parts
    monkeypatch.setattr(joint_module, "LARGEST_FORMED", 5)
    monkeypatch.setattr(joint_module, "WIDTH", 8192)
    found = joint(net, x)
    assert found.sizes == {key: tensor.numel() for key, tensor in net.tensors().items()}
    for key, part in found.parts.items():
        assert part.shape[1] == (found.sizes[key] if found.sizes[key] <= 5 else 8192)
        expected = whole[key] @ whole[key].T
        assert (part @ part.T - expected).norm() < 0.15 * expected.norm(), key


def test_a_long_kernel_that_few_examples_use_is_kept_as_vectors(monkeypatch):
    """And its factor is the one that the moments of its patches give."""
    chain = Chain(40, 2, 2).layer(CONV, channels=2).flatten().layer(FC, channels=3)
    net = lowering.build(tuple(chain.nodes), 0).double()

    def factor(examples):
        x, y, curvature = noise(examples, 40, 2, 2), torch.arange(examples) % 3, CURVATURES["kfac-expand"]
        found = estimate(net, x, y, Categorical(), Exact(), torch.Generator(), curvature).ggn
        return found.blocks["l1.CONV.w"].input

    few = factor(5)
    assert few.as_vectors
    assert not factor(200).as_vectors
    monkeypatch.setattr(BatchUse, "side", 0)
    moments = factor(5)
    assert not moments.as_vectors
    assert_same(few.blocks(), moments.blocks())
