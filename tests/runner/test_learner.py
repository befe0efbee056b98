import math
from collections import Counter

import attrs
import pytest
import torch

from runner_specs import learner, regression
from symdsl import data
from symdsl.evidence import Categorical, Gaussian
from symdsl.evidence.loss import likelihood_of
from symdsl.evidence.prior_updates import LARGEST_PRECISION
from symdsl.runner.learner import SMALLEST_STEP, path_shares, starting_precisions
from symdsl.runner.metrics import calibration_error, evaluate_outputs
from symdsl.runner.schedule import SCHEDULES, burn_in_ends, evidence_is_due
from symdsl.spec import parse

STARTS = """
data digits
network n {
  input image(channels, 8, 8)
  lift p4
  layer l1: F-FC + CONV(3) -> 2 |> relu
  layer l2: F-FC + CONV(3) + GCONV(3) + FC ~ normal(2, fixed) -> 2 |> relu
  layer l3: CONV(3) -> 2 |> relu
  project max
  flatten
  layer h: FC -> classes
}
prior {
  l2.F-FC.w1 ~ normal(3)
}
"""


def test_training_moves_along_the_gradient_of_the_map_objective(small):
    one = learner(small(search__batch=48))
    one.precisions = {key: float(number + 1) for number, key in enumerate(one.precisions)}
    parameters = list(one.parameters.values())
    outputs = one.net(one.train.x)
    penalty = sum(0.5 * precision * one.parameters[key].square().sum() for key, precision in one.precisions.items())
    objective = (torch.nn.functional.cross_entropy(outputs, one.train.y, reduction="sum") + penalty) / len(one.train)
    expected = torch.autograd.grad(objective, parameters)
    norm = torch.stack([part.norm() for part in expected]).norm()
    assert float(norm) > 1
    one._train_step(one.train)
    for parameter, gradient in zip(parameters, expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient / norm, rtol=1e-4, atol=1e-6)
    assert one.penalty() == pytest.approx(float(penalty.detach()), rel=0.05)


def test_a_path_that_looks_dead_twice_is_switched_off(small):
    one = learner(small())
    one.precisions |= {"l1.F-FC.w1": LARGEST_PRECISION, "l1.F-FC.w2": 5.0}
    with torch.no_grad():
        one.parameters["l1.F-FC.w1"].zero_()
        one.parameters["l1.F-FC.w2"].zero_()
    laplace = one.laplace()
    assert one._switch_off_dead_paths(laplace) == []
    assert one._switch_off_dead_paths(laplace) == ["l1.F-FC"]
    assert "l1.F-FC.w1" not in one.precisions
    assert dict(one.net.layers())["l1"].off == {"F-FC"}
    restored = learner(small())
    restored.restore(one.state(), one.tensors())
    assert dict(restored.net.layers())["l1"].off == {"F-FC"}
    assert torch.equal(restored.net(one.train.x), one.net(one.train.x))


def test_paths_are_kept_alive_on_request(small):
    one = learner(small(search__keep_paths=True, search__prior_optimizer="mackay(schedule = constant)"))
    with torch.no_grad():
        one.parameters["l1.F-FC.w1"].zero_()
        one.parameters["l1.F-FC.w2"].zero_()
    for _ in range(3):
        _, switched = one.evidence_step()
        assert switched == []
    assert one.precisions["l1.F-FC.w1"] == LARGEST_PRECISION


def test_a_fixed_prior_is_never_moved(small):
    from runner_specs import with_fixed_prior

    one = learner(with_fixed_prior())
    before = dict(one.precisions)
    one.train_epoch()
    one.evidence_step()
    assert one.precisions["l1.CONV.w"] == before["l1.CONV.w"] == 10.0
    assert one.precisions["l2.CONV.w"] != before["l2.CONV.w"]


def test_only_candidates_that_break_what_another_keeps_start_near_their_limit():
    spec = parse(STARTS, {"search.breaking_precision": 1000})
    started = {key for key, precision in starting_precisions(spec.facts).items() if precision == 1000}
    assert started == {"l1.F-FC.w1", "l1.F-FC.w2", "l2.F-FC.w2", "l2.CONV.w"}
    assert starting_precisions(spec.facts)["l2.F-FC.w1"] == 3


def test_a_start_counted_per_element_grows_with_the_symmetry_that_is_broken():
    flat = starting_precisions(parse(STARTS).facts)
    spec = parse(STARTS, {"search.breaking_precision": 10, "search.breaking_per": "element"})
    translations, quarter_turns = 8 * 8, 4
    breaking = {
        "l1.F-FC.w1": 10 * translations,
        "l1.F-FC.w2": 10 * translations,
        "l2.F-FC.w2": 10 * translations * quarter_turns,
        "l2.CONV.w": 10 * quarter_turns,
    }
    assert starting_precisions(spec.facts) == {**flat, **breaking}


def test_no_prior_starts_above_the_largest_precision():
    spec = parse(STARTS, {"search.breaking_precision": 6.5e7, "search.breaking_per": "element"})
    assert max(starting_precisions(spec.facts).values()) == LARGEST_PRECISION


def test_regression_learns_its_noise():
    spec, dataset = regression()
    one = learner(spec, dataset)
    for _ in range(60):
        one.train_epoch()
        one.evidence_step()
    assert one.noise == pytest.approx(0.01, rel=0.5)
    assert evaluate_outputs(one.net(dataset.test.x).detach(), dataset.test.y, one.likelihood, one.noise)["rmse"] < 0.2


def test_shares_add_up_and_survive_a_layer_without_effective_parameters():
    effective = {"l1.F-FC.w1": 1.0, "l1.F-FC.w2": 2.0, "l1.CONV.w": 1.0, "l1.bias": 7.0, "l10.CONV.w": 9.0}
    assert path_shares("l1", ["F-FC", "CONV"], effective) == {"F-FC": 0.75, "CONV": 0.25}
    assert path_shares("l2", ["CONV"], effective) == {"CONV": 0.0}


def test_schedules_run_from_one_to_zero_or_stay():
    assert SCHEDULES["cosine"](0) == 1
    assert SCHEDULES["cosine"](1) == pytest.approx(0)
    assert SCHEDULES["constant"](0.7) == 1
    assert [SCHEDULES["onecycle"](progress) for progress in (0, 0.5, 1)] == pytest.approx([0, 1, 0])


def test_evidence_is_due_every_few_epochs_after_burn_in(small):
    search = attrs.evolve(small().facts.search, every=3)
    assert [epoch for epoch in range(1, 12) if evidence_is_due(epoch, 2, search)] == [5, 8, 11]
    assert not any(evidence_is_due(epoch, None, search) for epoch in range(1, 12))


@pytest.mark.parametrize(("share", "last"), [(0.5, 3), (0.4, 2), (0.1, 1), (1, 5)])
def test_burn_in_lasts_until_an_epoch_explains_more_than_a_share_but_no_longer_than_it_may(small, share, last):
    search = attrs.evolve(small().facts.search, burnin=5, burnin_fit=share)
    fits = [0.2, 0.5, 0.9, 1.0, 1.0]
    assert [burn_in_ends(epoch, fit, search) for epoch, fit in enumerate(fits, start=1)].index(True) + 1 == last


def test_an_epoch_explains_what_it_tells_beyond_the_frequencies_of_labels(small):
    one = learner(small())
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
    one = learner(*regression())
    found = one.train_epoch()
    squared_error = 2 * len(one.train) * (found.nll - math.log(2 * math.pi))
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


def test_calibration_error_is_zero_for_honest_confidence_and_large_for_boasting():
    honest = torch.log(torch.tensor([[0.75, 0.25]])).expand(4, 2)
    labels = torch.tensor([0, 0, 0, 1])
    assert calibration_error(honest, labels) == pytest.approx(0, abs=1e-6)
    assert calibration_error(honest * 100, labels) == pytest.approx(0.25, abs=1e-6)


def test_metrics_are_means_per_example():
    logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    found = evaluate_outputs(logits, torch.tensor([0, 0]), Categorical(), 1.0)
    expected = (math.log1p(math.exp(-2)) + math.log1p(math.exp(1))) / 2
    assert found["nll"] == pytest.approx(expected)
    assert found["accuracy"] == 0.5
    found = evaluate_outputs(torch.zeros(2, 1), torch.ones(2, 1), Gaussian(), 2.0)
    assert found["nll"] == pytest.approx(0.25 + 0.5 * math.log(4 * math.pi))
    assert found["rmse"] == pytest.approx(1)


def test_relative_steps_shrink_with_a_tensor_and_stop_at_a_floor(small):
    one = learner(small())
    keys = list(one.parameters)
    with torch.no_grad():
        one.parameters["l1.CONV.w"].mul_(0.8)
        one.parameters["l2.CONV.w"].mul_(0.01)
        one.parameters["h1.FC.w"].mul_(7)
    factors = dict(zip(keys, one._relative_steps(), strict=True))
    assert factors["l1.CONV.w"] == pytest.approx(0.8)
    assert factors["l2.CONV.w"] == SMALLEST_STEP
    assert factors["h1.FC.w"] == factors["l1.bias"] == 1.0
    one._set_learning_rates(0.0, one._relative_steps())
    rates = dict(zip(keys, (group["lr"] for group in one.optimizer.param_groups), strict=True))
    assert rates["l1.CONV.w"] == pytest.approx(0.8 * rates["h1.FC.w"])


def test_the_learning_rate_rises_to_its_schedule(small):
    warmed = learner(small(search__optimizer="adam(lr = 0.01, schedule = cosine, warmup = 0.5)"))
    cold = learner(small(search__optimizer="adam(lr = 0.01, schedule = cosine, warmup = 0)"))
    assert [cold._learning_rate(progress) for progress in (0, 0.5, 1)] == pytest.approx([0.01, 0.005, 0])
    factors = [warmed._learning_rate(progress) / cold._learning_rate(progress) for progress in (0, 0.25, 0.5, 0.75)]
    assert factors == pytest.approx([0.1, 0.55, 1, 1])


def test_absolute_steps_are_all_alike(small):
    one = learner(small(search__optimizer="adam(steps = absolute)"))
    with torch.no_grad():
        one.parameters["l1.CONV.w"].mul_(0.01)
    assert set(one._relative_steps()) == {1.0}


def test_prior_steps_follow_their_schedule(small):
    one = learner(small())
    constant = learner(small(search__prior_optimizer="mackay(schedule = constant)"))
    rates = []
    for one.epoch in (1, 2, 3, 4):
        rates.append(one._prior_rate())
    assert rates == pytest.approx([SCHEDULES["onecycle"](progress) for progress in (0.125, 0.375, 0.625, 0.875)])
    assert constant._prior_rate() == 1.0


def test_a_layer_without_effective_parameters_keeps_what_it_chose(small):
    from symdsl.runner.report import describe_run

    spec = small()
    dataset = data.load(spec)
    one = learner(spec, dataset)
    with torch.no_grad():
        for key in ("l1.F-FC.w1", "l1.F-FC.w2", "l1.CONV.w", "l2.F-FC.w1", "l2.F-FC.w2", "l2.CONV.w", "h1.FC.w"):
            one.parameters[key].zero_()
    layers = describe_run(one, dataset, one.laplace())["layers"]
    assert math.fsum(candidate["effective"] for candidate in layers[0]["candidates"]) == 0
    assert all(layer["chosen"] in layer["kept"] for layer in layers)


AUGMENTED = (
    "data synthetic(size = 4, classes = 3, train = 48, test = 24) |> augment(flip, shift = 1)\n"
    "network n {\n  input image(1, 4, 4)\n  layer l1: CONV(3) -> 2 |> relu\n  flatten\n  layer h: FC -> classes\n}\n"
    "search {\n  epochs = 3\n  every = 1\n  batch = 16\n}\n"
)


def test_training_alone_sees_augmented_images(monkeypatch):
    one = learner(parse(AUGMENTED))
    seen = []
    honest = one._train_step
    monkeypatch.setattr(one, "_train_step", lambda batch: seen.append(batch) or honest(batch))
    for _ in range(2):
        one.train_epoch()
    first, second = torch.cat([batch.x for batch in seen]).split(len(one.train))
    assert not torch.equal(first.sort(0).values, second.sort(0).values)
    plain = learner(parse(AUGMENTED.replace(" |> augment(flip, shift = 1)", "")))
    assert torch.equal(one.train.x, plain.train.x)
    plain.restore(one.state(), one.tensors())
    assert plain.laplace().log_evidence() == one.laplace().log_evidence()
