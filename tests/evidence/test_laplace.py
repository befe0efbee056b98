import math
from types import SimpleNamespace

import attrs
import numpy as np
import pytest
import torch

from oracles.dense import rows
from oracles.records import Chain, candidate, sparse
from symdsl import laplace, lowering
from symdsl.data import Examples
from symdsl.evidence import CURVATURES, Categorical, Exact, Kronecker, estimate, joint, mackay_step
from symdsl.evidence.prior_updates import LARGEST_PRECISION, SMALLEST_PRECISION, at_best_precisions

FC, FFC, CONV = candidate("FC"), candidate("F-FC"), candidate("CONV")


def regression_data(examples=12, seed=0):
    """Inputs with mean zero, so that the bias and the weights are independent a posteriori."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(examples, 2, 1, 2, generator=generator, dtype=torch.float64)
    y = torch.randn(examples, 3, generator=generator, dtype=torch.float64)
    return Examples(x - x.mean(0), y)


def fitted_linear_layer(data, precisions, noise):
    """One linear layer at its posterior mean, which ridge regression gives."""
    net = lowering.build(tuple(Chain(2, 1, 2).flatten().layer(FC, channels=3).nodes), 0).double()
    tensors = net.tensors()
    x = data.x.flatten(1)
    gram = x.T @ x / noise + precisions["l1.FC.w"] * torch.eye(x.shape[1], dtype=torch.float64)
    tensors["l1.FC.w"].data.copy_(torch.linalg.solve(gram, x.T @ data.y / noise).T.reshape(tensors["l1.FC.w"].shape))
    tensors["l1.bias"].data.copy_(data.y.sum(0) / noise / (len(data) / noise + precisions["l1.bias"]))
    return net


def linear_regression_evidence(data, precisions, noise):
    """log N(y; 0, noise I + X X^T / d_w + 1 1^T / d_b), one target column at a time."""
    x = data.x.flatten(1)
    ones = torch.ones(len(x), 1, dtype=torch.float64)
    covariance = noise * torch.eye(len(x), dtype=torch.float64)
    covariance += x @ x.T / precisions["l1.FC.w"] + ones @ ones.T / precisions["l1.bias"]
    marginal = torch.distributions.MultivariateNormal(torch.zeros(len(x), dtype=torch.float64), covariance)
    return float(sum(marginal.log_prob(column) for column in data.y.T))


@pytest.mark.parametrize("noise", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("weight_precision", [1e-3, 1.0, 40.0])
def test_evidence_of_a_linear_layer_is_the_closed_form_of_linear_regression(noise, weight_precision):
    precisions = {"l1.FC.w": weight_precision, "l1.bias": 0.7}
    data = regression_data()
    found = laplace.fit(fitted_linear_layer(data, precisions, noise), data, precisions=precisions, noise=noise)
    assert found.log_evidence() == pytest.approx(linear_regression_evidence(data, precisions, noise), rel=1e-9)


def test_the_closed_form_comparison_notices_a_wrong_precision():
    precisions = {"l1.FC.w": 1.0, "l1.bias": 0.7}
    data = regression_data()
    found = laplace.fit(fitted_linear_layer(data, precisions, 1.0), data, precisions=precisions)
    other = linear_regression_evidence(data, precisions | {"l1.FC.w": 1.1}, 1.0)
    assert found.log_evidence() != pytest.approx(other, rel=1e-4)


def classifier(seed=0):
    nodes = tuple(
        Chain(1, 4, 4)
        .layer(FFC, CONV, channels=2, activations=("relu",))
        .layer(FFC, CONV, channels=2, stride=2, activations=("relu",))
        .flatten()
        .layer(FC, channels=3)
        .nodes
    )
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(20, 1, 4, 4, generator=generator, dtype=torch.float64)
    y = torch.randint(3, (20,), generator=generator)
    return lowering.build(nodes, seed).double(), Examples(x, y)


def sparse_classifier():
    nodes = tuple(
        Chain(1, 4, 4)
        .layer(sparse("S-FC", anchors="learned", on="lengthscale"), sparse("S-CONV"), channels=2, activations=("relu",))
        .layer(sparse("S-FC"), sparse("S-CONV", anchors="learned", on="lengthscale"), channels=2, stride=2)
        .flatten()
        .layer(FC, channels=3)
        .nodes
    )
    _, data = classifier()
    return lowering.build(nodes, 0).double(), data


def residual_classifier():
    nodes = tuple(
        Chain(1, 4, 4)
        .layer(CONV, channels=2, activations=("relu",))
        .residual(((FFC, CONV), 3, "relu"), ((CONV,), 2))
        .residual(((CONV,), 2))
        .flatten()
        .layer(FC, channels=3)
        .nodes
    )
    _, data = classifier()
    return lowering.build(nodes, 0).double(), data


EXAMPLES = [classifier, sparse_classifier, residual_classifier]


@pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("curvature", CURVATURES)
def test_derivatives_are_taken_where_the_caller_has_turned_them_off(off, curvature):
    net, data = classifier()
    expected = laplace.fit(net, data, curvature).log_evidence()
    with off():
        again = Examples(data.x + 0, data.y + 0)
        assert laplace.fit(net, again, curvature).log_evidence() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("curvature", CURVATURES)
def test_frozen_tensors_are_given(curvature):
    net, data = classifier()
    for key, parameter in net.tensors().items():
        parameter.requires_grad_(key in ("l1.CONV.w", "l3.bias"))
    found = laplace.fit(net, data, curvature)
    assert found.precisions.keys() == found.ggn.sizes.keys() == {"l1.CONV.w", "l3.bias"}
    assert math.isfinite(found.log_evidence())
    for parameter in net.parameters():
        parameter.requires_grad_(False)
    with pytest.raises(ValueError, match="all parameters are frozen"):
        laplace.fit(net, data, curvature)


BAD_EXAMPLES = {
    "short": (lambda x, y: (x, y[:-1]), ValueError, "`examples` has 20 inputs, but 19 targets"),
    "bool": (lambda x, y: (x, y > 0), TypeError, r"`examples.y` \(=torch.bool\) must hold integers"),
    "x": (lambda x, y: (x / 0, y), ValueError, "`examples.x` holds a number that is not finite"),
    "y": (lambda x, y: (x, (y / 0)[:, None].expand(-1, 3)), ValueError, "`examples.y` holds a number that is not fin"),
    "narrow": (lambda x, y: (x, y[:, None] + 0.5), ValueError, r"is of shape \[20, 1\], expected \[20, 3\]"),
    "flat": (lambda x, y: (x, y + 0.5), ValueError, r"is of shape \[20\], expected \[20, 3\]"),
    "labels": (lambda x, y: (x, y[:, None]), ValueError, r"is of shape \[20, 1\], expected \[20\]"),
    "large": (lambda x, y: (x, y + 1), ValueError, "holds the label 3, expected 0 to 2"),
    "ignored": (lambda x, y: (x, torch.full_like(y, -100)), ValueError, "holds the label -100, expected 0 to 2"),
}
BAD_ARGUMENTS = [
    *(
        ({"precisions": {"l3.bias": value}}, ValueError, "the precision of `l3.bias`")
        for value in (0.0, -1.0, math.nan)
    ),
    ({"precisions": {"l3.bias": math.inf}}, ValueError, r"\(=inf\) must be positive and finite"),
    *(({"noise": value}, ValueError, "must be positive and finite") for value in (0.0, -1.0, math.nan, math.inf)),
    ({"noise": 2.0}, ValueError, r"`noise` \(=2.0\) must be positive and finite, and 1 for class labels"),
    *(({"batch": value}, ValueError, "must be at least 1") for value in (0, -1)),
    ({"batch": 1.5}, TypeError, r"`batch` \(=1.5\) must be a whole number"),
    ({"batch": True}, TypeError, r"`batch` \(=True\) must be a whole number"),
]


@pytest.mark.parametrize("case", BAD_EXAMPLES)
def test_examples_that_do_not_fit_are_refused(case):
    net, data = classifier()
    change, error, words = BAD_EXAMPLES[case]
    with pytest.raises(error, match=words):
        laplace.fit(net, Examples(*change(data.x, data.y)))


@pytest.mark.parametrize(("arguments", "error", "words"), BAD_ARGUMENTS)
def test_arguments_that_do_not_fit_are_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        laplace.fit(*classifier(), **arguments)


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8])
def test_labels_may_be_of_any_whole_type(dtype):
    net, data = classifier()
    found = laplace.fit(net, Examples(data.x, data.y.to(dtype)))
    assert found.log_evidence() == laplace.fit(net, data).log_evidence()


def at(approximation, key, log_precision):
    return approximation.log_evidence(dict(approximation.precisions) | {key: math.exp(log_precision)})


@pytest.mark.parametrize("start", [1e-2, 1.0, 50.0])
@pytest.mark.parametrize("example", EXAMPLES)
def test_the_gradient_is_the_numerical_derivative_in_log_precision(start, example):
    net, data = example()
    found = laplace.fit(net, data, precisions=dict.fromkeys(net.tensors(), start))
    step = 1e-4
    for key, slope in found.gradient().items():
        centre = math.log(start)
        numerical = (at(found, key, centre + step) - at(found, key, centre - step)) / (2 * step)
        assert slope == pytest.approx(numerical, rel=1e-6, abs=1e-6), key


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_evidence_is_the_formula_with_dense_blocks(example):
    net, data = example()
    found = laplace.fit(net, data)
    logits = net(data.x).detach()
    expected = -torch.nn.functional.cross_entropy(logits, data.y, reduction="sum").double()
    blocks = _blocks(net, data)
    for key, parameter in net.tensors().items():
        dense = blocks[key].dense() + torch.eye(parameter.numel(), dtype=torch.float64)
        expected -= 0.5 * (parameter.detach().square().sum() + torch.logdet(dense))
    assert found.log_evidence() == pytest.approx(float(expected), rel=1e-10)


def test_effective_parameters_are_the_trace_of_their_definition():
    net, data = classifier()
    found = laplace.fit(net, data).effective_parameters()
    for key, block in _blocks(net, data).items():
        dense = block.dense()
        ridge = dense + torch.eye(len(dense), dtype=torch.float64)
        assert found[key] == pytest.approx(float(torch.trace(torch.linalg.solve(ridge, dense))), rel=1e-9)
        assert 0 <= found[key] <= len(dense)


def _blocks(net, data) -> dict[str, Kronecker]:
    kfac = CURVATURES["kfac-expand"]
    return estimate(net, data.x, data.y, Categorical(), Exact(), torch.Generator(), kfac).ggn.blocks


@pytest.mark.parametrize("share", [1.0, 0.5, 0.2])
def test_updates_climb_the_evidence_to_where_its_gradient_vanishes(share):
    net, data = classifier()
    found = laplace.fit(net, data)
    free = frozenset(key for key, slope in found.gradient().items() if key.endswith(("w", "w1", "w2")))
    before = found.log_evidence()
    for _ in range(1500):
        found = found.with_precisions(mackay_step(found, free, share))
    assert found.log_evidence() > before
    assert all(abs(found.gradient()[key]) < 1e-2 for key in free)


@pytest.mark.parametrize("curvature", ["kfac-expand", "joint"])
def test_the_evidence_at_the_best_precisions_is_that_of_many_steps(curvature):
    net, data = classifier()
    found = laplace.fit(net, data, curvature=curvature)
    free = frozenset(key for key in found.precisions if key != "l1.CONV.w")
    least = {min(free): 1.0}
    best, there = at_best_precisions(found, free, least), found
    for _ in range(300):
        there = there.with_precisions(mackay_step(there, free, 0.2, least))
    assert best.log_evidence() > found.log_evidence()
    assert best.log_evidence() == pytest.approx(there.log_evidence(), abs=0.1)
    assert best.precisions["l1.CONV.w"] == found.precisions["l1.CONV.w"]
    assert best.precisions[min(free)] >= 1.0


def test_a_fixed_precision_stays():
    net, data = classifier()
    found = laplace.fit(net, data)
    precisions = mackay_step(found, frozenset({"l1.CONV.w"}), 0.5)
    assert {key for key, value in precisions.items() if value != 1.0} == {"l1.CONV.w"}


def test_precisions_stay_within_their_bounds():
    net, data = classifier()
    found = laplace.fit(net, data)
    every = frozenset(found.precisions)
    vanished = attrs.evolve(found, squared_norms=dict.fromkeys(found.squared_norms, 0.0))
    assert set(mackay_step(vanished, every, 1.0).values()) == {LARGEST_PRECISION}
    exploded = attrs.evolve(found, squared_norms=dict.fromkeys(found.squared_norms, 1e30))
    assert set(mackay_step(exploded, every, 1.0).values()) == {SMALLEST_PRECISION}


def test_only_tensors_with_a_precision_can_be_left_out():
    found = laplace.fit(*classifier())
    with pytest.raises(ValueError, match=r"`keys` names tensors without a precision: l1\.Conv\.w"):
        found.log_evidence_without(["l1.Conv.w", "l1.CONV.w"], found.loss)


def test_the_noise_of_a_regression_converges_to_the_noise_of_the_data():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(400, 2, 1, 2, generator=generator, dtype=torch.float64)
    x -= x.mean(0)
    signal = x.flatten(1) @ torch.randn(4, 3, generator=generator, dtype=torch.float64)
    data = Examples(x, signal + 0.5 * torch.randn(400, 3, generator=generator, dtype=torch.float64))
    precisions, noise = {"l1.FC.w": 1.0, "l1.bias": 1.0}, 1.0
    for _ in range(10):
        found = laplace.fit(fitted_linear_layer(data, precisions, noise), data, precisions=precisions, noise=noise)
        noise = found.fitted_noise()
    assert noise == pytest.approx(0.25, rel=0.1)


@pytest.mark.parametrize("noise", [1.0, 0.3])
@pytest.mark.parametrize("example", EXAMPLES)
def test_the_evidence_of_all_tensors_together_is_the_formula_with_the_dense_matrix(example, noise, monkeypatch):
    monkeypatch.setattr(joint, "WIDTH", 1 << 16)
    net, data = example()
    precisions = {key: 0.5 + 0.1 * number for number, key in enumerate(net.tensors())}
    found = attrs.evolve(laplace.fit(net, data, curvature="joint", precisions=precisions), noise=noise)
    expected = -torch.nn.functional.cross_entropy(net(data.x).detach(), data.y, reduction="sum").double()
    tensors = net.tensors()
    names = {id(parameter): name for name, parameter in net.named_parameters()}
    columns = list(Categorical().loss_hessian_sqrt(net(data.x).detach()))
    parts = []
    for key, tensor in tensors.items():
        gradients = torch.cat([rows(net, names[id(tensor)], data.x, column) for column in columns])
        parts.append(gradients / math.sqrt(precisions[key] * noise))
    whole = torch.cat(parts, 1)
    volume = torch.logdet(torch.eye(whole.shape[1], dtype=whole.dtype) + whole.T @ whole)
    penalty = sum(precisions[key] * tensors[key].detach().square().sum() for key in tensors)
    assert found.log_evidence() == pytest.approx(float(expected - 0.5 * penalty - 0.5 * volume), rel=1e-9)
    ridge = torch.eye(len(whole.T), dtype=whole.dtype) + whole.T @ whole
    known = torch.linalg.solve(ridge, whole.T @ whole).diagonal().split([tensors[key].numel() for key in tensors])
    expected_numbers = {key: float(some.sum()) for key, some in zip(tensors, known, strict=True)}
    assert found.effective_parameters() == pytest.approx(expected_numbers, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("noise", [0.3, 2.5])
def test_the_evidence_of_all_tensors_together_is_the_closed_form_of_linear_regression(noise):
    precisions = {"l1.FC.w": 2.0, "l1.bias": 0.7}
    data = regression_data()
    net = fitted_linear_layer(data, precisions, noise)
    found = laplace.fit(net, data, curvature="joint", precisions=precisions, noise=noise)
    assert found.log_evidence() == pytest.approx(linear_regression_evidence(data, precisions, noise), rel=1e-9)


def test_all_tensors_together_have_fewer_effective_parameters_than_each_on_its_own():
    net, data = classifier()
    together, apart = (
        laplace.fit(net, data, curvature=curvature).effective_parameters() for curvature in ("joint", "kfac-expand")
    )
    assert together.keys() == apart.keys()
    assert sum(together.values()) < 0.8 * sum(apart.values())


def test_more_examples_than_rows_are_sketched(monkeypatch):
    net, _ = classifier()
    x = torch.randn(240, 1, 4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    data, precisions = Examples(x, torch.arange(240) % 3), dict.fromkeys(net.tensors(), 10.0)
    found = []
    for number in (240, 120):
        monkeypatch.setattr(joint, "GRADIENTS", number)
        found.append(laplace.fit(net, data, curvature="joint", fisher="rademacher(1)", precisions=precisions))
    exact, sketched = found
    assert {len(part) for part in exact.ggn.sketch.parts.values()} == {240}
    assert {len(part) for part in sketched.ggn.sketch.parts.values()} == {120}
    numbers = [sum(one.effective_parameters().values()) for one in found]
    assert numbers[0] > 10
    assert numbers[1] == pytest.approx(numbers[0], rel=0.1)
    assert sketched.log_evidence() == pytest.approx(exact.log_evidence(), rel=0.02)


@pytest.mark.parametrize("fisher", ["mc(2)", "rademacher(2)"])
def test_sampled_columns_give_the_same_evidence_twice_for_the_same_seed(fisher):
    net, data = classifier()
    first, second, other = (laplace.fit(net, data, fisher=fisher, seed=seed).log_evidence() for seed in (1, 1, 2))
    assert first == second != other


@pytest.mark.parametrize(("determinants", "tolerance"), [({}, 0.05), ({"curvature": "joint"}, 0.3)])
def test_signs_know_the_curvature_of_a_network_that_is_certain_where_labels_see_none(determinants, tolerance):
    net, _ = classifier()
    with torch.no_grad():
        net.tensors()["l3.FC.w"].mul_(20)
        x = torch.randn(1000, 1, 4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        most, label = net(x).softmax(1).max(1)
    certain = (most > 0.995).nonzero()[:200, 0]
    data = Examples(x[certain], label[certain])
    exact, signs, labels = (
        sum(laplace.fit(net, data, fisher=fisher, **determinants).effective_parameters().values())
        for fisher in ("exact", "rademacher(1)", "mc(1)")
    )
    assert len(certain) == 200
    assert signs == pytest.approx(exact, rel=tolerance)
    assert labels < 0.05 * exact


def test_expand_and_reduce_agree_where_no_weight_is_shared():
    data = Examples(torch.randn(6, 2, 1, 3).double(), torch.arange(6) % 3)
    net = lowering.build(tuple(Chain(2, 1, 3).layer(candidate("FC"), channels=3).flatten().nodes), 0).double()
    expand, reduce = (laplace.fit(net, data, curvature=f"kfac-{sharing}") for sharing in ("expand", "reduce"))
    assert expand.log_evidence() == pytest.approx(reduce.log_evidence(), rel=1e-12)


def test_wrong_arguments_are_named():
    net, data = classifier()
    with pytest.raises(ValueError, match="`fisher`"):
        laplace.fit(net, data, fisher="mc")
    with pytest.raises(ValueError, match=r'`fisher` \(="None"\) must be "exact"'):
        laplace.fit(net, data, fisher=None)
    with pytest.raises(ValueError, match="`curvature`"):
        laplace.fit(net, data, curvature="diagonal")
    with pytest.raises(ValueError, match="does not have: l9"):
        laplace.fit(net, data, precisions={"l9": 1.0})
    found = laplace.fit(net, data)
    with pytest.raises(ValueError, match=r"missing or unknown: .*l1\.bias"):
        found.log_evidence({})
    with pytest.raises(ValueError, match="must be positive and finite"):
        found.log_evidence(dict.fromkeys(found.precisions, 0.0))


@pytest.mark.parametrize("curvature", ["joint", "kfac-expand", "kfac-reduce"])
def test_a_tensor_that_no_output_depends_on_is_named(curvature):
    net, data = classifier()
    del net.stages["l3"].paths["FC"]
    with pytest.raises(ValueError, match=r"`l1.* has no influence on the outputs: a layer after it has no path left"):
        laplace.fit(net, data, curvature=curvature)


@pytest.mark.parametrize("curvature", CURVATURES)
def test_what_a_layer_wrote_must_not_be_changed_in_place(curvature):
    net, data = classifier()
    net.layer("l1").register_forward_hook(lambda layer, read, written: written.mul_(0.5))
    with pytest.raises(TypeError, match=r"what `l1.* wrote was changed in place, so its curvature is unknown"):
        laplace.fit(net, data, curvature)


def test_examples_stay_as_they_are():
    net, data = classifier()
    net.register_forward_pre_hook(lambda net, read: (read[0].mul_(2), *read[1:]))
    before = data.x.clone()
    laplace.fit(net, data)
    assert torch.equal(data.x, before)


def test_the_likelihood_of_narrow_numbers_is_summed_in_wide_ones():
    net, data = classifier()
    net.bfloat16()
    outputs = net(data.x.bfloat16(), {}).detach().double()
    expected = -float(torch.nn.functional.cross_entropy(outputs, data.y, reduction="sum"))
    assert laplace.fit(net, data).log_likelihood() == pytest.approx(expected, rel=1e-6)


def test_a_single_tensor_may_be_left_out_by_its_key():
    found = laplace.fit(*classifier())
    key = "l1.CONV.w"
    assert found.log_evidence_without(key, found.loss) == found.log_evidence_without([key], found.loss)


def test_a_noise_may_be_a_tensor():
    net, data = classifier()
    targets = Examples(data.x, data.y[:, None] + torch.zeros(3, dtype=torch.float64))
    found = laplace.fit(net, targets, noise=torch.tensor(0.5)).log_evidence()
    assert isinstance(found, float)
    assert found == laplace.fit(net, targets, noise=0.5).log_evidence()


def test_what_was_not_made_by_compile_is_refused():
    net, data = classifier()
    for other in (torch.nn.Linear(2, 2), torch.nn.Sequential(net), torch.nn.DataParallel(net)):
        with pytest.raises(TypeError, match=rf"`net` \(of type {type(other).__name__}\) must be a network made by"):
            laplace.fit(other, data)
    for other in ((data.x, data.y), Examples(data.x.numpy(), data.y.numpy())):
        with pytest.raises(TypeError, match=rf"`examples` \(of type {type(other).__name__}\) must be `Examples`"):
            laplace.fit(net, other)


def test_any_object_with_tensors_x_and_y_gives_examples():
    net, data = classifier()
    assert laplace.fit(net, SimpleNamespace(x=data.x, y=data.y)).log_evidence() == laplace.fit(net, data).log_evidence()


def test_parameters_that_were_tied_or_added_are_refused():
    net, data = residual_classifier()
    net.layer("l3").bias = net.layer("l1").bias
    with pytest.raises(ValueError, match=r"`l1.bias` and `l3.bias` are one tensor: tied weights are not supported"):
        laplace.fit(net, data)
    net, data = classifier()
    activation = net.layer("l1").activation = torch.nn.PReLU().double()
    with pytest.raises(ValueError, match=r"`.*l1.*weight` is no parameter of the spec's network: freeze it, or"):
        laplace.fit(net, data)
    activation.requires_grad_(False)
    assert math.isfinite(laplace.fit(net, data).log_evidence())


def test_a_batch_may_be_any_whole_number():
    net, data = classifier()
    found = laplace.fit(net, data, batch=np.int64(7)).log_evidence()
    assert found == laplace.fit(net, data, batch=7).log_evidence()
