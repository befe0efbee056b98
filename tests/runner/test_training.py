import math
from collections import Counter

import attrs
import pytest
import torch

from runner_specs import everything, regression, trainer
from symdsl import data, lowering
from symdsl.auditing import elements_of, invariance_penalty
from symdsl.evidence import Categorical, Gaussian
from symdsl.evidence.loss import likelihood_of
from symdsl.runner.estimating import FINAL, laplace_at
from symdsl.runner.metrics import evaluate_outputs
from symdsl.runner.start import stated_start
from symdsl.runner.training import Trainer
from symdsl.spec import parse


def test_training_moves_along_the_gradient_of_the_map_objective(small):
    one = trainer(small(search__batch=48))
    one.precisions = {key: float(number + 1) for number, key in enumerate(one.precisions)}
    parameters = list(one.parameters.values())
    outputs = one.net(one.train.x)
    penalty = sum(0.5 * precision * one.parameters[key].square().sum() for key, precision in one.precisions.items())
    objective = (torch.nn.functional.cross_entropy(outputs, one.train.y, reduction="sum") + penalty) / len(one.train)
    expected = torch.autograd.grad(objective, parameters)
    norm = torch.stack([part.norm() for part in expected]).norm()
    assert float(norm) > 1
    one._train_step(one.train, len(one.train))
    for parameter, gradient in zip(parameters, expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient / norm, rtol=1e-4, atol=1e-6)
    assert one.penalty() == pytest.approx(float(penalty.detach()), rel=0.05)


def test_a_batch_stands_for_all_examples_in_the_likelihood_and_the_prior_counts_once():
    one = trainer(*regression())
    one.noise, one.precisions = 0.25, dict.fromkeys(one.precisions, 20.0)
    batch = one.train[:50]
    penalty = sum(10 * parameter.square().sum() for parameter in one.parameters.values())
    squares = (one.net(batch.x) - batch.y).square().sum()
    objective = squares / (2 * 0.25) / len(batch) + penalty / len(one.train)
    expected = torch.autograd.grad(objective, list(one.parameters.values()))
    norm = torch.stack([part.norm() for part in expected]).norm()
    assert float(norm) > 1
    one._train_step(batch, len(batch))
    for parameter, gradient in zip(one.parameters.values(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient / norm, rtol=1e-4, atol=1e-6)


def test_the_regulariser_is_added_to_the_loss_of_every_example(small):
    one = trainer(small(search__invariance="logit(group = p4, weight = 30)"))
    batch, parameters = one.train[:16], list(one.parameters.values())
    outputs = one.net(batch.x)
    apart = invariance_penalty(one.net, batch.x, outputs, elements_of("p4", 4, 4))
    penalty = sum(0.5 * precision * one.parameters[key].square().sum() for key, precision in one.precisions.items())
    losses = torch.nn.functional.cross_entropy(outputs, batch.y, reduction="sum") + 30 * apart
    expected = torch.autograd.grad(losses / len(batch) + penalty / len(one.train), parameters)
    norm = torch.stack([part.norm() for part in expected]).norm()
    assert float(norm) > 1
    one._train_step(batch, len(batch))
    for parameter, gradient in zip(parameters, expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient / norm, rtol=1e-4, atol=1e-6)


def test_steps_are_relative_to_the_full_scale_and_shrink_with_the_weights(small):
    spec = small(search__optimizer="adam(lr = 0.01, schedule = constant)")
    dataset, net = data.load(spec), lowering.compile(spec, 0)
    whole, halved, lost, *others = net.tensors()
    full = {whole: 0.3, halved: 0.2, lost: 0.1} | dict.fromkeys(others, 1.0)
    one = Trainer(net, spec.facts, dataset, 0, attrs.evolve(stated_start(net, spec.facts), scales=full))
    one.search = attrs.evolve(one.search, batch=len(dataset.train))
    with torch.no_grad():
        for key, factor in ((whole, 2.0), (halved, 0.5), (lost, 0.01)):
            net.tensors()[key].mul_(factor)
    before = {key: tensor.detach().clone() for key, tensor in net.tensors().items()}
    one.train_epoch()
    steps = {key: float((net.tensors()[key].detach() - old).abs().max()) for key, old in before.items()}
    expected = full | {halved: 0.5 * 0.2, lost: 0.1 * 0.1}
    for key, scale in expected.items():
        assert steps[key] == pytest.approx(0.1 * 0.01 * scale, rel=1e-2), key  # a tenth for the warm-up


def test_an_epoch_explains_what_it_tells_beyond_the_frequencies_of_labels(small):
    one = trainer(small())
    found = one.train_epoch()
    shares = [count / len(one.train) for count in Counter(one.train.y.tolist()).values()]
    entropy = -math.fsum(share * math.log(share) for share in shares)
    assert found.fit == pytest.approx(1 - found.nll / entropy)
    assert found.fit < 0.5


def test_the_fit_of_a_regression_is_its_coefficient_of_determination():
    x, y = torch.randn(2, 50, 2, generator=torch.Generator().manual_seed(3)).double()
    fitted = x @ torch.linalg.lstsq(x, y).solution
    residual = ((y - fitted) ** 2).sum() / ((y - y.mean(0)) ** 2).sum()
    one = Gaussian()
    assert float(one.loss(fitted, y)) / one.constant_loss(y) == pytest.approx(float(residual))


def test_an_epoch_of_a_regression_reports_that_coefficient():
    one = trainer(*regression())
    found = one.train_epoch()
    squared_error = 2 * one.noise * len(one.train) * (found.nll - math.log(2 * math.pi * one.noise))
    squares = float(((one.train.y - one.train.y.mean(0)) ** 2).sum())
    assert found.fit == pytest.approx(1 - squared_error / squares, abs=1e-5)


def test_targets_that_are_all_the_same_leave_nothing_to_explain():
    assert Categorical().constant_loss(torch.ones(7, dtype=torch.long)) == 0
    assert Gaussian().constant_loss(torch.full((7, 2), 0.5)) == 0


@pytest.mark.parametrize(
    "targets", [torch.tensor([0, 0, 2, 1, 0]), torch.randn(9, 2, generator=torch.Generator().manual_seed(1))]
)
def test_no_constant_outputs_have_a_smaller_loss(targets):
    likelihood = likelihood_of(targets)
    best = likelihood.constant_loss(targets)
    width = 2 if targets.is_floating_point() else 3
    outputs = torch.zeros(width, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([outputs], max_iter=200, tolerance_grad=1e-12, line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        value = likelihood.loss(outputs.expand(len(targets), -1), targets)
        value.backward()
        return value

    optimizer.step(loss)
    assert loss().item() == pytest.approx(best, rel=1e-6)


def test_metrics_are_means_per_example():
    logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    found = evaluate_outputs(logits, torch.tensor([0, 0]), Categorical(), 1.0)
    expected = (math.log1p(math.exp(-2)) + math.log1p(math.exp(1))) / 2
    assert found["nll"] == pytest.approx(expected)
    assert found["accuracy"] == 0.5
    found = evaluate_outputs(torch.zeros(2, 1), torch.ones(2, 1), Gaussian(), 2.0)
    assert found["nll"] == pytest.approx(0.25 + 0.5 * math.log(4 * math.pi))
    assert found["rmse"] == pytest.approx(1)


def test_the_learning_rate_rises_over_a_twentieth_of_the_run_and_then_falls(small):
    one = trainer(small(search__epochs=20, search__optimizer="adam(lr = 0.01)"))
    steps = 20 * one.steps_per_epoch
    rates = []
    for one.step in range(steps + 1):
        rates.append(one.learning_rate)
    assert rates[0] == pytest.approx(0.001)
    top = steps // 20
    assert rates[:top] == sorted(rates[:top])
    assert rates[top] == pytest.approx(0.01, rel=0.01)
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert rates[-1] == pytest.approx(0)


def test_a_constant_schedule_stays(small):
    one = trainer(small(search__epochs=20, search__optimizer="adam(lr = 0.01, schedule = constant)"))
    one.step = 15 * one.steps_per_epoch
    assert one.learning_rate == 0.01


def test_the_noise_of_a_regression_starts_at_the_variance_of_its_targets():
    one = trainer(*regression())
    assert one.noise == pytest.approx(float(one.train.y.var(0, unbiased=False).mean()), rel=1e-5)


AUGMENTED = (
    "data synthetic(size = 4, classes = 3, train = 48, test = 24) |> augment(flip, shift = 1)\n"
    "network n {\n  input image(1, 4, 4)\n  layer l1: CONV(3) -> 2 |> relu\n  flatten\n  layer h: FC -> classes\n}\n"
    "search {\n  epochs = 3\n  every = 1\n  batch = 16\n}\n"
)


def test_training_alone_sees_augmented_images(monkeypatch):
    one = trainer(parse(AUGMENTED))
    seen = []
    honest = one._train_step
    monkeypatch.setattr(one, "_train_step", lambda batch, examples: seen.append(batch) or honest(batch, examples))
    for _ in range(2):
        one.train_epoch()
    first, second = torch.cat([batch.x for batch in seen]).split(len(one.train))
    assert not torch.equal(first.sort(0).values, second.sort(0).values)
    plain = trainer(parse(AUGMENTED.replace(" |> augment(flip, shift = 1)", "")))
    assert torch.equal(one.train.x, plain.train.x)
    plain.restore(one.state(), one.tensors())
    assert (
        laplace_at(plain, FINAL, everything(plain)).log_evidence()
        == laplace_at(one, FINAL, everything(one)).log_evidence()
    )
