import sys
from types import SimpleNamespace

import attrs
import pytest
import torch
import torch.utils.flop_counter

from oracles.comparison import assert_same
from oracles.dense import dense_factors, dense_ggn, rows
from oracles.naive import Naive
from oracles.records import Chain, candidate, sparse
from symdsl import lowering
from symdsl.diagnostics import RunError
from symdsl.evidence import Categorical, Exact, Gaussian, MonteCarlo, Signs, estimate, project
from symdsl.evidence.rows import Rows, Sizes
from symdsl.evidence.weight_use import demand_rows, handler_for

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
    "s-gconv on p4m": lifted("p4m", (3, 3), sparse("S-GCONV", on="lengthscale", sparsity=6), channels=1),
    "s-gconv on flips": lifted("flips", (2, 4), sparse("S-GCONV", anchors="learned"), reads=2, stride=2),
    "s-gfc on mirror": lifted("mirror", (2, 3), sparse("S-GFC", on="lengthscale"), candidate("F-GFC")),
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
    found = exact(net, x, Categorical() if task == "classification" else Gaussian(), sharing=sharing).blocks
    expected = dense_factors(Naive(nodes, net.tensors()), x, task, sharing)
    assert found.keys() == net.tensors().keys() == expected.keys() | exact_keys(net)
    for key in expected.keys() - exact_keys(net):
        left, right = expected[key]
        assert_same(torch.block_diag(*found[key].left), left)
        assert_same(torch.block_diag(*found[key].right), right)


@pytest.mark.parametrize("name", NETWORKS)
def test_blocks_of_biases_lengthscales_and_anchors_are_the_exact_gauss_newton_blocks(name):
    nodes, net = network(name)
    x = images(nodes, 3)
    found = exact(net, x).blocks
    parameters = {id(parameter): module for module, parameter in net.named_parameters()}
    for key in exact_keys(net):
        module = parameters[id(net.tensors()[key])]
        assert_same(found[key].dense(), dense_ggn(net, module, x, "classification"))


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


def test_kfac_expand_of_a_linear_network_that_answers_at_every_position_is_the_gauss_newton_block():
    pixelwise = candidate("CONV", kernel=1)
    nodes = tuple(Chain(2, 2, 3).layer(pixelwise, channels=3).layer(pixelwise, channels=2).flatten().nodes)
    net = lowering.build(nodes, 0).double()
    x = images(nodes, 4)
    found = exact(net, x, Gaussian()).blocks
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
    found = exact(net, x, Gaussian(), sharing="reduce").blocks
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
    for key, block in whole.blocks.items():
        assert_same(split.blocks[key].left, block.left)
        assert_same(split.blocks[key].right, block.right)
    assert split.loss == pytest.approx(whole.loss, rel=1e-12)


@pytest.mark.parametrize("sampled", [MonteCarlo, Signs])
@pytest.mark.parametrize("likelihood", [Categorical(), Gaussian()])
@pytest.mark.parametrize("name", ["mixed", "s-fc, lengthscale", "s-conv, learned", "s-gconv"])
def test_sampled_columns_converge_to_all_columns(sampled, likelihood, name):
    nodes, net = network(name)
    x = images(nodes, 4)
    y = torch.zeros(4, dtype=torch.int64) if isinstance(likelihood, Categorical) else net(x).detach()
    expected = estimate(net, x, y, likelihood, Exact(), torch.Generator()).blocks
    few, many = (
        estimate(net, x, y, likelihood, sampled(samples), torch.Generator().manual_seed(0)).blocks
        for samples in (1, 600)
    )
    errors = {
        key: [float((one[key].left - exact.left).norm() / exact.left.norm()) for one in (few, many)]
        for key, exact in expected.items()
    }
    assert max(last for _, last in errors.values()) < 0.2
    assert sum(last for _, last in errors.values()) < 0.3 * sum(first for first, _ in errors.values())


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
                assert path.weight_uses.keys() >= {tensor for tensor, _ in path.named_parameters()}


@pytest.mark.parametrize("sampled", [MonteCarlo, Signs])
def test_more_samples_than_none_are_demanded(sampled):
    with pytest.raises(ValueError, match="must be at least 1"):
        sampled(0)


def sampled_norms(fisher, logits):
    """Squared norms of the one column of each of 4,000 copies of an example."""
    outputs = torch.tensor(logits, dtype=torch.float64).expand(4000, -1)
    (column,) = fisher.columns(Categorical(), outputs, torch.Generator().manual_seed(0))
    return column.square().sum(1)


def test_signs_sum_to_the_hessian_of_the_likelihood():
    outputs = torch.tensor([1.0, -0.5, 0.2], dtype=torch.float64).expand(40_000, -1)
    p = outputs[0].softmax(0)
    (column,) = Signs(1).columns(Categorical(), outputs, torch.Generator().manual_seed(0))
    torch.testing.assert_close(column.T @ column / len(column), p.diag() - p.outer(p), atol=5e-3, rtol=0)


def test_signs_are_even_where_labels_are_rarely_drawn():
    certain = [12.0, 0.0, 0.0, 0.0]
    trace = float(Categorical().spread(torch.tensor([certain], dtype=torch.float64)))
    signs, labels = sampled_norms(Signs(1), certain), sampled_norms(MonteCarlo(1), certain)
    assert float(signs.mean()) == pytest.approx(trace, rel=0.05)
    assert float(signs.max()) < 5 * trace
    assert float(labels.median()) < 1e-3 * trace


def is_whole(key: str) -> bool:
    """Whether the tensor is one of those whose whole block is formed, so that there is nothing to bound."""
    return key.split(".")[-1].rstrip("12") in ("bias", "omega", "anchors")


@pytest.mark.parametrize("few", [False, True], ids=["rows formed", "uses compared"])
@pytest.mark.parametrize("together", [1, 256])
@pytest.mark.parametrize("name", NETWORKS)
def test_bounds_are_those_of_the_gradients_of_single_examples(name, together, few, monkeypatch):
    monkeypatch.setattr(sys.modules["symdsl.evidence.estimate"], "_TOGETHER", together)
    monkeypatch.setattr(Sizes, "few_within", lambda sizes: few)
    monkeypatch.setattr(Sizes, "few_between", lambda sizes, examples: few)
    nodes, net = network(name)
    x = images(nodes, 3)
    names = {id(parameter): module for module, parameter in net.named_parameters()}
    found = estimate(net, x, torch.zeros(3).long(), Categorical(), Exact(), torch.Generator(), bounded=True).blocks
    for key, block in found.items():
        if is_whole(key):
            assert block.bound is None
            continue
        gradients = [rows(net, names[id(net.tensors()[key])], x, c) for c in Categorical().columns(net(x).detach())]
        grams = torch.stack([one @ one.T for one in gradients])
        expected = grams.diagonal(dim1=1, dim2=2) if together == 1 else torch.linalg.eigvalsh(grams).clamp(min=0)
        assert_same(block.bound.sort().values, expected.flatten().sort().values)


@pytest.mark.parametrize("uses", [1, 4, 16, 64])
@pytest.mark.parametrize(("read", "given"), [(36, 8), (288, 64), (576, 128)])
def test_uses_are_compared_where_that_takes_fewer_multiplications(uses, read, given):
    sizes, n = Sizes(uses, read, given), 256
    within = count(_pairs, uses, read, given), count(_row, uses, read, given)
    assert sizes.few_within() == (within[0] < within[1])
    between = (n * uses) ** 2 * (read + given), n * within[1] + n**2 * read * given
    assert sizes.few_between(n) == (between[0] < between[1])


def count(function, *sizes):
    """Multiplications of the matrix products in a function of a [use, a] and g [use, g]."""
    uses, read, given = sizes
    a, g = torch.zeros(uses, read), torch.zeros(uses, given)
    with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
        function(a, g)
    return counter.get_total_flops() // 2


def _pairs(a, g):
    return (a @ a.T) * (g @ g.T)


def _row(a, g):
    return g.T @ a


def test_squared_norms_that_cancel_are_not_negative():
    """Constant inputs and gradients without a mean have rows of zero, of uses that are not."""
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(200, 1, 600, generator=generator).expand(200, 4, 600) * 100
    g = torch.randn(200, 4, 300, generator=generator)
    g = g - g.mean(1, keepdim=True)
    owner = SimpleNamespace(w=torch.empty(300, 600))
    rows = Rows.shared("w", lambda owner, inputs, gradients: (inputs, gradients))
    assert bool((rows.squares(owner, a, g) >= 0).all())


def test_the_examples_of_which_the_network_is_least_certain_are_a_group(monkeypatch):
    nodes, net = network("mixed")
    x, y = images(nodes, 5), torch.zeros(5).long()
    grouped = estimate(net, x, y, Categorical(), Exact(), torch.Generator(), bounded=True).blocks
    monkeypatch.setattr(sys.modules["symdsl.evidence.estimate"], "_TOGETHER", 2)
    by_batch = [
        estimate(net, x, y, Categorical(), Exact(), torch.Generator(), batch, bounded=True).blocks for batch in (2, 512)
    ]
    for key, block in grouped.items():
        assert_same(by_batch[0][key].left, by_batch[1][key].left)
        assert_same(block.right, by_batch[0][key].right)
        if is_whole(key):
            continue
        assert_same(by_batch[0][key].bound.sort().values, by_batch[1][key].bound.sort().values)
        assert torch.log1p(block.bound).sum() < torch.log1p(by_batch[0][key].bound).sum()


def test_there_is_a_number_for_every_example_and_column_if_a_bound_is_asked_for():
    nodes, net = network("mixed")
    x, y, twice = images(nodes, 5), torch.zeros(5).long(), MonteCarlo(2)
    found = estimate(net, x, y, Categorical(), twice, torch.Generator(), bounded=True).blocks
    assert {len(block.bound) for key, block in found.items() if not is_whole(key)} == {10}
    plain = estimate(net, x, y, Categorical(), twice, torch.Generator()).blocks
    assert {block.bound for block in plain.values()} == {None}


@pytest.mark.parametrize("columns", [5, 1 << 20], ids=["a few columns at a time", "all at once"])
@pytest.mark.parametrize("name", NETWORKS)
def test_without_a_projection_what_is_projected_are_the_gradients_of_single_examples(name, columns, monkeypatch):
    monkeypatch.setattr(sys.modules["symdsl.evidence.rows"], "_COLUMNS", columns)
    nodes, net = network(name)
    x, y = images(nodes, 3), torch.zeros(3).long()
    names = {id(parameter): module for module, parameter in net.named_parameters()}
    found = project(net, x, y, Categorical(), Exact(), torch.Generator(), 1 << 20, 1 << 20)
    assert found.mixed.keys() == net.tensors().keys()
    for key, part in found.mixed.items():
        gradients = [rows(net, names[id(net.tensors()[key])], x, c) for c in Categorical().columns(net(x).detach())]
        expected = torch.cat(gradients)
        assert part.size == expected.shape[1]
        assert part.rows.shape == expected.shape
        assert_same(part.rows @ part.rows.T, expected @ expected.T, 1e-9)


def test_projections_are_of_the_size_asked_for_and_the_same_for_the_same_draw():
    nodes, net = network("mixed")
    x, y = images(nodes, 5), torch.zeros(5).long()
    first, second = (
        project(net, x, y, Categorical(), MonteCarlo(2), torch.Generator().manual_seed(0), 7, 4) for _ in range(2)
    )
    assert first.rows == 10
    for key, part in first.mixed.items():
        assert part.rows.shape[0] <= 4
        assert part.rows.shape[1] <= 7
        assert torch.equal(part.rows, second.mixed[key].rows)


def test_some_of_the_rows_are_left_as_they_are_the_same_in_every_tensor():
    nodes, net = network("mixed")
    x, y = images(nodes, 5), torch.zeros(5).long()
    every, some = (
        project(net, x, y, Categorical(), Exact(), torch.Generator().manual_seed(0), 1 << 20, number, batch=2)
        for number in (1 << 20, 4)
    )
    assert every.drawn is None
    assert some.drawn is not None
    whole, drawn = (torch.cat([part.rows for part in parts.values()], 1) for parts in (every.mixed, some.drawn))
    same = torch.cdist(drawn, whole) < 1e-9 * whole.norm()
    assert drawn.shape == (4, whole.shape[1])
    assert bool((same.sum(1) >= 1).all())
    assert len({int(row.nonzero()[0]) for row in same}) == 4


def test_large_outer_products_are_projected_without_being_formed(monkeypatch):
    nodes, net = network("fc")
    x, y = images(nodes, 6), torch.zeros(6).long()

    def found():
        return project(net, x, y, Categorical(), Exact(), torch.Generator().manual_seed(0), 4096, 1 << 20).mixed

    whole = found()
    monkeypatch.setattr(sys.modules["symdsl.evidence.project"], "_LARGE", 1)
    for key, part in found().items():
        assert part.size == whole[key].size
        assert part.rows.shape[1] == (part.size if is_whole(key) else 4096)
        expected = whole[key].rows @ whole[key].rows.T
        assert (part.rows @ part.rows.T - expected).norm() < 0.15 * expected.norm(), key


def test_a_kind_that_gives_no_gradients_of_single_examples_is_named(monkeypatch):
    nodes, net = network("mixed")
    for _, layer in net.layers():
        path = layer.paths.get("CONV")
        if path is not None:
            monkeypatch.setattr(path, "weight_uses", {"w": attrs.evolve(path.weight_uses["w"], rows=None)})
    with pytest.raises(RunError, match=r"`l\d\.CONV\.w` cannot be searched over by `laplace\(full\)`"):
        demand_rows(net)
    with pytest.raises(RunError, match=r"`l\d\.CONV\.w` cannot be searched over by `laplace\(full\)`"):
        project(net, images(nodes, 2), torch.zeros(2).long(), Categorical(), Exact(), torch.Generator(), 7, 4)
