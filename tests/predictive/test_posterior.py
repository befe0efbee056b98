"""The posterior of parameter tensors and its predictive, beside laplace-torch and what is known in closed form."""

from __future__ import annotations

import math
from typing import Any

import attrs
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from oracles.comparison import assert_same
from oracles.records import Chain, candidate, sparse
from symdsl import lowering
from symdsl.data import Examples
from symdsl.diagnostics import RunError
from symdsl.evidence.kfac import Factor
from symdsl.evidence.loss import LIKELIHOODS
from symdsl.nn import Network
from symdsl.predictive import (
    Posterior,
    Predicted,
    fit,
    fit_last_layer,
    last_layer,
    posterior,
    posterior_bytes,
    read_posterior,
)
from symdsl.predictive.posterior import TEMPERATURES, TensorPosterior, _without_itself, derivatives, mean_softmax

FC, CONV, FFC = candidate("FC"), candidate("CONV"), candidate("F-FC")
OWN = ("l1.FC.w", "l1.bias", "l2.FC.w", "l2.bias")


@pytest.fixture(autouse=True)
def double() -> Any:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


TARGETS = {"classification": torch.arange(11) % 4, "regression": noise(11, 4, seed=1)}


def twins() -> tuple[Network, nn.Module]:
    """A network and the same one of PyTorch's modules."""
    chain = Chain(2, 1, 3).flatten().layer(FC, channels=5, activations=("tanh",)).layer(FC, channels=4)
    net = lowering.build(tuple(chain.nodes), 0).double()
    peer = nn.Sequential(nn.Flatten(), nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4))
    for key, parameter in zip(OWN, peer.parameters(), strict=True):
        net.tensors()[key].data.add_(0.1)
        parameter.data.copy_(net.tensors()[key].data.reshape(parameter.shape))
    return net, peer


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("subset", ["all", "last_layer"])
@pytest.mark.parametrize("task", TARGETS)
def test_outputs_are_distributed_as_in_laplace_torch(task: str, subset: str) -> None:
    from laplace import Laplace
    from laplace.curvature import CurvlinopsGGN

    net, peer = twins()
    data = Examples(noise(11, 2, 1, 3), TARGETS[task])
    precisions = dict(zip(OWN, (0.5, 2.0, 3.0, 0.7), strict=True))
    chosen = {key: one for key, one in precisions.items() if subset == "all" or key in set(last_layer(net))}
    theirs = Laplace(
        peer,
        task,
        subset_of_weights=subset,
        hessian_structure="kron",
        prior_precision=torch.tensor(list(chosen.values())),
        backend=CurvlinopsGGN,
        backend_kwargs={"stochastic": False},
    )
    theirs.fit(DataLoader(TensorDataset(data.x, data.y), batch_size=len(data.x)))
    x = noise(6, 2, 1, 3, seed=2)
    mean, covariance = theirs._glm_predictive_distribution(x)
    found_mean, found = fit(net, data, LIKELIHOODS[task], chosen).outputs(net, x)
    assert_same(found_mean, mean.detach(), 1e-9)
    assert_same(found, covariance.detach(), 1e-6)


def chains() -> list[Chain]:
    mixed = Chain(2, 4, 6).layer(FFC, CONV, channels=3, stride=2, activations=("tanh",)).flatten()
    groups = [candidate("GCONV", factor=factor) for factor in ("full", "pointwise", "separable", "depthwise")]
    lifted = Chain(2, 4, 4).lift("p4").layer(*groups, candidate("F-GFC"), channels=2, activations=("tanh",))
    bases = [sparse(name, anchors="learned", on="lengthscale") for name in ("S-FC", "S-CONV")]
    averaged = Chain(2, 4, 4).average({"rotation": 60.0}, 3).layer(CONV, FFC, channels=2, activations=("tanh",))
    return [
        averaged.flatten().layer(FC, channels=2).mean(),
        mixed.layer(FC, channels=4),
        Chain(2, 4, 4).layer(CONV, FFC, channels=3).pool("mean").flatten(),
        lifted.layer(sparse("S-GFC"), sparse("S-GCONV"), channels=2).project("mean").pool("mean").flatten(),
        Chain(2, 4, 4).layer(*bases, channels=2, stride=2).pool("mean").flatten(),
    ]


@pytest.mark.parametrize("chain", chains())
def test_derivatives_in_every_weight_are_those_of_autograd(chain: Chain) -> None:
    net = lowering.build(tuple(chain.nodes), 0).double().eval()
    shape = chain.nodes[0].out_shape
    x, keys = noise(3, 2, shape.height, shape.width), list(net.tensors())
    outputs, found = derivatives(net, x, keys)
    assert_same(outputs, net(x).detach())
    for key, parameter in net.tensors().items():
        a, g = found[key]
        in_blocks = torch.einsum("nkbro,nbri->nkboi", g, a).square().sum((2, 3, 4))
        for example in range(len(x)):
            for output in range(outputs.shape[1]):
                (expected,) = torch.autograd.grad(net(x[example : example + 1])[0, output], parameter)
                assert_same(in_blocks[example, output], expected.square().sum(), 1e-9)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("chain", chains())
def test_of_no_examples_there_is_no_prediction(chain: Chain, temperature: float) -> None:
    net = lowering.build(tuple(chain.nodes), 0).double().eval()
    shape = chain.nodes[0].out_shape
    x = noise(5, 2, shape.height, shape.width)
    classes = net(x).shape[1]
    posterior = fit(net, Examples(x, torch.arange(5) % classes), LIKELIHOODS["classification"], {"l1.bias": 1.0})
    found = attrs.evolve(posterior, temperature=temperature).predict(net, x[:0]).probabilities
    assert found is not None
    assert (found.shape, found.dtype) == ((0, classes), torch.float64)


def test_the_last_layer_is_the_last_one_in_use() -> None:
    chain = Chain(2, 4, 4).layer(CONV, channels=3).residual(((CONV,), 3))
    net = lowering.build(tuple(chain.pool("mean").flatten().nodes), 0).double()
    assert set(last_layer(net)) == {"l2.CONV.w", "l2.bias"}
    net.prune("l2", "CONV")
    assert set(last_layer(net)) == {"l1.CONV.w", "l1.bias"}


def linear() -> tuple[Network, Tensor, Tensor]:
    """A linear network at the mode of ridge regression with precision 2 and noise 0.3, and its data."""
    net = lowering.build(tuple(Chain(1, 1, 3).flatten().layer(FC, channels=1).nodes), 0).double()
    x = noise(9, 3)
    y = x @ noise(3, 1, seed=1) + 0.5 * noise(9, 1, seed=2)
    net.tensors()["l1.FC.w"].data.copy_(ridge(x, y).reshape(1, 1, 3, 1))
    return net, x, y


def ridge(x: Tensor, y: Tensor) -> Tensor:
    return torch.linalg.solve(x.T @ x / 0.3 + 2 * torch.eye(3), x.T @ y / 0.3)


def test_leaving_an_example_out_is_fitting_without_it() -> None:
    net, x, y = linear()
    likelihood = LIKELIHOODS["regression"]
    examples = Examples(x.reshape(9, 1, 1, 3), y)
    posterior = fit(net, examples, likelihood, {"l1.FC.w": 2.0}, noise=0.3)
    mean, covariance = _without_itself(*posterior.outputs(net, examples.x), y, likelihood, 0.3)
    for left_out in range(9):
        others = torch.arange(9) != left_out
        assert_same(mean[left_out], x[left_out] @ ridge(x[others], y[others]))
        precision = x[others].T @ x[others] / 0.3 + 2 * torch.eye(3)
        assert_same(covariance[left_out, 0, 0], x[left_out] @ torch.linalg.solve(precision, x[left_out]))


def test_no_label_is_predicted_better_without_its_example() -> None:
    root, mean, labels = noise(50, 3, 3, seed=1), noise(50, 3), torch.arange(50) % 3
    for scale in (0.1, 10.0):  # by the larger one, curvature times covariance has eigenvalues above 1
        mean_without, covariance = _without_itself(
            mean, scale * root @ root.mT, labels, LIKELIHOODS["classification"], 1.0
        )
        before, after = (one.log_softmax(1).gather(1, labels[:, None]) for one in (mean, mean_without))
        assert bool((after < before).all())
        assert float(torch.linalg.eigvalsh(covariance).min()) > -1e-9


def test_a_regression_predicts_with_the_variance_of_weights_and_noise() -> None:
    net, x, y = linear()
    posterior = fit(net, Examples(x.reshape(9, 1, 1, 3), y), LIKELIHOODS["regression"], {"l1.FC.w": 2.0}, noise=0.3)
    new = noise(4, 3, seed=3)
    found = posterior.predict(net, new.reshape(4, 1, 1, 3))
    precision = x.T @ x / 0.3 + 2 * torch.eye(3)
    assert found.mean is not None
    assert found.std is not None
    assert_same(found.mean, new @ ridge(x, y))
    variance = (new @ torch.linalg.inv(precision) * new).sum(1, keepdim=True) + 0.3
    assert_same(found.std, variance.sqrt())
    targets = noise(4, 1, seed=4)
    expected = 0.5 * ((targets - found.mean) ** 2 / variance + (2 * math.pi * variance).log())
    assert found.nll(targets) == pytest.approx(float(expected.mean()))
    assert found.nll(targets[:, 0]) == found.nll(targets)
    with pytest.raises(ValueError, match="has 3 examples, expected one for each of 4"):
        found.nll(targets[:3])


@pytest.mark.parametrize("shape", [(4,), (4, 1), (4, 2, 1), (4, 3)])
def test_targets_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    found = Predicted(mean=noise(4, 2), std=torch.ones(4, 2))
    with pytest.raises(ValueError, match=rf"`targets` is of shape \{list(shape)}, expected \[4, 2\]"):
        found.nll(torch.zeros(shape))
    labels = torch.zeros(4, dtype=torch.int32)
    classes = Predicted(noise(4, 2).softmax(1))
    assert classes.nll(labels) == classes.nll(labels.long())
    with pytest.raises(ValueError, match=r"`targets` is of shape \[4, 1\], expected \[4\]"):
        classes.nll(labels[:, None])
    for score in (classes.nll, classes.brier, classes.calibration_error):
        assert score(labels) == score(labels.long()) == score(labels.numpy())
        for label in (-1, 2):
            with pytest.raises(ValueError, match=rf"`targets` holds the label {label}, expected 0 to 1"):
                score(torch.full((4,), label))
        with pytest.raises(ValueError, match=r"`targets` \(=torch.float64\) must hold labels"):
            score(torch.tensor([0.5, 1.5, math.nan, 0.0]))
        for wrong in (labels[:, None], labels[:1], labels[0]):
            with pytest.raises(ValueError, match="`targets`"):
                score(wrong)
    for score in (found.brier, found.calibration_error):
        with pytest.raises(ValueError, match="only predictions of class labels have this score"):
            score(labels)


def test_the_mean_softmax_of_two_classes_is_an_integral() -> None:
    mean, spread = torch.tensor([[1.5, 0.0]]), torch.tensor([[[2.0, 0.4], [0.4, 1.0]]])
    deviation = math.sqrt(2.0 + 1.0 - 2 * 0.4)
    z = torch.linspace(-8, 8, 4001)
    density = torch.exp(-0.5 * z.square()) / math.sqrt(2 * math.pi)
    expected = float(torch.trapezoid(density * torch.sigmoid(1.5 + deviation * z), z))
    (found,) = mean_softmax(mean, spread, draws=20_000)
    assert float(found[0, 0]) == pytest.approx(expected, abs=3e-3)
    assert float(found.sum()) == pytest.approx(1)


def test_what_is_common_to_all_logits_makes_nobody_less_certain() -> None:
    mean = noise(3, 5)
    assert_same(mean_softmax(mean, torch.full((3, 5, 5), 40.0))[0], mean.softmax(1), 1e-9)


def test_predictions_do_not_depend_on_the_batch() -> None:
    mean, root = noise(7, 5), noise(7, 5, 5, seed=1)
    (whole,) = mean_softmax(mean, root @ root.mT)
    apart = torch.cat([mean_softmax(mean[n : n + 1], (root @ root.mT)[n : n + 1])[0] for n in range(7)])
    assert_same(apart, whole)


def overfitted() -> tuple[Network, Examples]:
    """A network that is certain of labels of which every fifth is wrong."""
    x = noise(60, 1, 1, 8)
    y = (x[:, 0, 0, 0] > 0).long()
    y[::5] = 1 - y[::5]
    net = lowering.build(tuple(Chain(1, 1, 8).flatten().layer(FC, channels=2).nodes), 0).double()
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=300, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y, reduction="sum")
        loss = loss + 0.5 * 1e-3 * sum(one.square().sum() for one in net.parameters())
        loss.backward()
        return loss

    optimizer.step(closure)  # type: ignore[arg-type]
    return net, Examples(x, y)


@pytest.mark.parametrize("task", TARGETS)
def test_covariances_are_held_for_some_examples_at_a_time(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (net, _), held = twins(), []
    data, likelihood = Examples(noise(11, 2, 1, 3), TARGETS[task]), LIKELIHOODS[task]
    whole = fit(net, data, likelihood, dict.fromkeys(OWN, 1.0)).tempered(net, data)

    def counted(mean: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
        held.append(len(mean))
        return _without_itself(mean, *others)

    monkeypatch.setattr(posterior, "_without_itself", counted)
    monkeypatch.setattr(posterior, "_EXAMPLES", 3)
    parts = whole.tempered(net, data)
    assert (held, parts.temperature) == ([3, 3, 3, 2], whole.temperature)
    some = attrs.evolve(whole, temperature=0.5)
    monkeypatch.setattr(posterior, "_NUMBERS", 200)
    found = some.predict(net, data.x)
    monkeypatch.setattr(posterior, "_EXAMPLES", 512)
    monkeypatch.setattr(posterior, "_NUMBERS", 1 << 24)
    expected = some.predict(net, data.x)
    for name in ("probabilities",) if task == "classification" else ("mean", "std"):
        assert_same(getattr(found, name), getattr(expected, name))


def test_calibration_error_is_zero_for_honest_confidence_and_large_for_boasting() -> None:
    honest = torch.tensor([[0.75, 0.25]]).expand(4, 2)
    labels = torch.tensor([0, 0, 0, 1])
    assert Predicted(honest).calibration_error(labels) == pytest.approx(0, abs=1e-6)
    assert Predicted((100 * honest.log()).softmax(1)).calibration_error(labels) == pytest.approx(0.25, abs=1e-6)


def test_the_temperature_is_the_lowest_that_a_score_of_left_out_examples_chooses() -> None:
    net, examples = overfitted()
    likelihood = LIKELIHOODS["classification"]
    precisions = dict.fromkeys(net.tensors(), 1e-3)
    posterior = fit(net, examples, likelihood, precisions)
    chosen = fit_last_layer(net, examples, likelihood, precisions)
    mean, covariance = _without_itself(*posterior.outputs(net, examples.x), examples.y, likelihood, 1.0)
    found = {t: posterior.predictive(mean, t * covariance) for t in TEMPERATURES}
    right = torch.eye(2)[examples.y]
    brier = {t: float(((one.probabilities - right) ** 2).sum()) for t, one in found.items()}
    nll = {t: one.nll(examples.y) for t, one in found.items()}
    error = {t: one.calibration_error(examples.y) for t, one in found.items()}
    best = [min(scores, key=scores.__getitem__) for scores in (brier, nll, error)]
    assert len(set(best)) > 1
    assert chosen.temperature == min(best) > 0
    assert attrs.evolve(posterior, temperature=0.0).tempered(net, examples).temperature == chosen.temperature


@pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
def test_derivatives_are_taken_where_the_caller_has_turned_them_off(off: Any) -> None:
    net, examples = overfitted()
    likelihood, precisions = LIKELIHOODS["classification"], dict.fromkeys(net.tensors(), 1e-3)
    posterior = fit_last_layer(net, examples, likelihood, precisions)
    assert posterior.temperature > 0
    expected = posterior.predict(net, examples.x).probabilities
    with off():
        own = Examples(examples.x + 0, examples.y + 0)
        found = fit_last_layer(net, own, likelihood, precisions).predict(net, own.x).probabilities
    assert expected is not None
    assert found is not None
    assert_same(found, expected)


@pytest.mark.parametrize("chain", chains())
def test_a_frozen_network_predicts_the_same(chain: Chain) -> None:
    net = lowering.build(tuple(chain.nodes), 0).double().eval()
    shape = chain.nodes[0].out_shape
    x = noise(5, 2, shape.height, shape.width)
    labels = torch.arange(5) % net(x).shape[1]
    posterior = fit(net, Examples(x, labels), LIKELIHOODS["classification"], dict.fromkeys(net.tensors(), 1.0))
    expected = posterior.outputs(net, x)
    for parameter in net.parameters():
        parameter.requires_grad_(False)
    for found, right in zip(posterior.outputs(net, x), expected, strict=True):
        assert_same(found, right)


def test_a_temperature_scales_the_covariance() -> None:
    net, examples = overfitted()
    posterior = fit(net, examples, LIKELIHOODS["classification"], dict.fromkeys(net.tensors(), 1.0))
    _, covariance = posterior.outputs(net, examples.x)
    cold = attrs.evolve(posterior, temperature=0.25)
    assert_same(cold.outputs(net, examples.x)[1], 0.25 * covariance)
    plain = attrs.evolve(posterior, temperature=0.0).predict(net, examples.x).probabilities
    assert plain is not None
    assert_same(plain, net(examples.x).softmax(1).detach(), 1e-9)


def test_a_posterior_is_read_as_it_was_written(tmp_path: Any) -> None:
    net, examples = overfitted()
    likelihood = LIKELIHOODS["classification"]
    posterior = fit_last_layer(net, examples, likelihood, dict.fromkeys(net.tensors(), 0.5))
    path = tmp_path / "posterior.safetensors"
    path.write_bytes(posterior_bytes(posterior))
    found = read_posterior(path, likelihood)
    assert (found.temperature, found.noise) == (posterior.temperature, 1.0)
    assert_same(found.outputs(net, examples.x)[1], posterior.outputs(net, examples.x)[1], 0.0)
    assert posterior_bytes(found) == posterior_bytes(posterior)
    path.write_bytes(b"no posterior")
    with pytest.raises(RunError, match="does not hold a posterior"):
        read_posterior(path, likelihood)


def test_eigenvectors_give_back_the_whole_covariance() -> None:
    root, other = noise(1, 4, 4), noise(1, 3, 3, seed=1)
    a, g = root @ root.mT, other @ other.mT
    one = TensorPosterior.of(Factor(a), Factor(g), 0.7)
    net = lowering.build(tuple(Chain(1, 1, 4).flatten().layer(FC, channels=3).nodes), 0).double()
    posterior = Posterior({"l1.FC.w": one}, LIKELIHOODS["classification"], 1.0)
    x = noise(5, 1, 1, 4, seed=2)
    inverse = torch.linalg.inv(torch.kron(g[0], a[0]) + 0.7 * torch.eye(12))
    jacobians = torch.stack([torch.kron(torch.eye(3), row[None]) for row in x.flatten(1)])
    assert_same(posterior.outputs(net, x)[1], jacobians @ inverse @ jacobians.mT, 1e-9)


@pytest.mark.parametrize("uses", [1, 3])
def test_blocks_and_uses_add_up_as_in_the_dense_covariance(uses: int) -> None:
    a, g = noise(2, 4, 4), noise(1, 3, 3, seed=1)
    one = TensorPosterior.of(Factor(a @ a.mT), Factor(g @ g.mT), 0.7)
    inputs, gradients = noise(5, 2, uses, 4, seed=2), noise(5, 6, 2, uses, 3, seed=3)
    jacobians = torch.einsum("nkbro,nbri->bnkoi", gradients, inputs).flatten(3)
    inverses = [torch.linalg.inv(torch.kron((g @ g.mT)[0], block) / 0.3 + 0.7 * torch.eye(12)) for block in a @ a.mT]
    dense = sum(j @ inverse @ j.mT for j, inverse in zip(jacobians, inverses, strict=True))
    assert_same(one.covariance(inputs, gradients, 0.3), dense, 1e-9)


@pytest.mark.parametrize("uses", [1, 3])
def test_few_vectors_give_the_posterior_of_their_matrix(uses: int) -> None:
    vectors, g = noise(2, 3, 7), Factor(noise(1, 3, 3, seed=1) + 4 * torch.eye(3))
    vectors[1, 2] = vectors[1, 0]  # linearly dependent
    inputs, gradients = noise(5, 2, uses, 7, seed=2), noise(5, 6, 2, uses, 3, seed=3)
    few = TensorPosterior.of(Factor.of(vectors), g, 0.7)
    assert few.read.shape == (2, 7, 3)
    whole = TensorPosterior.of(Factor(vectors.mT @ vectors), g, 0.7)
    assert_same(few.covariance(inputs, gradients, 0.3), whole.covariance(inputs, gradients, 0.3), 1e-9)


def test_a_gain_that_may_be_chance_leaves_the_network_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    net, examples = overfitted()
    likelihood, precisions = LIKELIHOODS["classification"], dict.fromkeys(net.tensors(), 1e-3)
    assert fit_last_layer(net, examples, likelihood, precisions).temperature > 0
    monkeypatch.setattr("symdsl.predictive.posterior._CLEAR_GAIN", 100.0)
    posterior = fit_last_layer(net, examples, likelihood, precisions)
    assert posterior.temperature == 0
    found = posterior.predict(net, examples.x).probabilities
    assert found is not None
    assert_same(found, net(examples.x).softmax(1).detach(), 0.0)


def test_a_sample_stands_for_all_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    net, _ = twins()
    image = noise(1, 2, 1, 3)
    alike = Examples(image.expand(12, 2, 1, 3), torch.ones(12, dtype=torch.long))
    precisions = dict.fromkeys(net.tensors(), 1.0)
    _, every = fit(net, alike, LIKELIHOODS["classification"], precisions).outputs(net, image)
    monkeypatch.setattr("symdsl.predictive.posterior.MOST_EXAMPLES", 5)
    _, some = fit(net, alike, LIKELIHOODS["classification"], precisions).outputs(net, image)
    assert_same(some, every)


def test_sums_of_columns_stand_for_those_of_many_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    (net, _), likelihood = twins(), LIKELIHOODS["classification"]
    alike = Examples(noise(1, 2, 1, 3).expand(4000, 2, 1, 3), torch.ones(4000, dtype=torch.long))
    precisions = dict.fromkeys(net.tensors(), 1.0)
    _, every = fit(net, alike, likelihood, precisions).outputs(net, alike.x[:1])
    monkeypatch.setattr(posterior, "MOST_COLUMNS", 1)
    _, some = fit(net, alike, likelihood, precisions).outputs(net, alike.x[:1])
    assert 0 < float((some - every).abs().max()) < 0.05 * float(every.abs().max())


def test_few_examples_of_many_classes_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    (net, _), left_out = twins(), []
    data, likelihood = (
        Examples(noise(30, 2, 1, 3), TARGETS["classification"][:1].expand(30)),
        LIKELIHOODS["classification"],
    )
    whole = fit(net, data, likelihood, dict.fromkeys(OWN, 1.0))

    def counted(mean: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
        left_out.append(len(mean))
        return _without_itself(mean, *others)

    monkeypatch.setattr(posterior, "_without_itself", counted)
    monkeypatch.setattr(posterior, "_LEAST_LEFT_OUT", 2)
    monkeypatch.setattr(posterior, "_LEFT_OUT_OUTPUTS", 7 * net(data.x).shape[1])
    whole.tempered(net, data)
    assert left_out == [7]


def test_a_label_that_was_taken_for_impossible_costs_a_finite_number_of_nats() -> None:
    certain = Predicted(probabilities=torch.tensor([[1.0, 0.0]], dtype=torch.float64))
    assert certain.nll(torch.tensor([1])) == pytest.approx(-math.log(torch.finfo(torch.float64).tiny))


def test_no_predictions_have_no_score() -> None:
    classes = Predicted(probabilities=torch.zeros(0, 3))
    for score in (classes.nll, classes.brier, classes.calibration_error):
        with pytest.raises(ValueError, match="there are no predictions to score"):
            score(torch.zeros(0, dtype=torch.long))
    numbers = Predicted(mean=torch.zeros(0, 2), std=torch.ones(0, 2))
    with pytest.raises(ValueError, match="there are no predictions to score"):
        numbers.nll(torch.zeros(0, 2))
