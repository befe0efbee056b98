import torch

from runner_specs import learner
from symdsl.runner.scales import Scales

ADAM = "adam(lr = 0.01, schedule = constant{})"
WITH_SCALES = ADAM.format(", scales")


def objective(one):
    """Of MAP at the present parameters, in nats per example, and what each tensor's scale changes of it."""
    for parameter in one.parameters.values():
        parameter.grad = None
    loss = torch.nn.functional.cross_entropy(one.net(one.train.x), one.train.y)
    loss.backward()
    pulls = {}
    for key, parameter in one.parameters.items():
        weights = parameter.detach()
        pulls[key] = float((weights * (parameter.grad + one.precisions[key] * weights / len(one.train))).sum())
    return loss.item() + one.penalty() / len(one.train), pulls


def test_gradients_in_the_scales_are_those_of_factors_on_the_tensors(small):
    one = learner(small())
    scales = Scales(one.parameters)
    objective(one)
    scales.differentiate()
    names = {id(parameter): name for name, parameter in one.net.named_parameters()}
    logs = {key: torch.zeros((), requires_grad=True) for key in one.parameters}
    factored = {names[id(parameter)]: parameter * logs[key].exp() for key, parameter in one.parameters.items()}
    outputs = torch.func.functional_call(one.net, factored, (one.train.x,))
    torch.nn.functional.cross_entropy(outputs, one.train.y).backward()
    for key, log in logs.items():
        torch.testing.assert_close(scales.logs[key].grad, log.grad, rtol=1e-4, atol=1e-6)


def test_a_first_step_multiplies_every_tensor_by_one_rate_against_its_gradient(small):
    plain, scaled = learner(small(search__optimizer=ADAM.format(""))), learner(small(search__optimizer=WITH_SCALES))
    for one in (plain, scaled):
        one._train_step(one.train)
    for key, log in scaled.scales.logs.items():
        towards = -torch.sign(log.grad)
        expected = plain.parameters[key] * torch.exp(0.01 * towards)
        torch.testing.assert_close(scaled.parameters[key], expected)
        assert float(log) == 0
    assert plain.scales.logs == {}


def test_a_tensor_that_is_switched_off_keeps_its_scale(small):
    one = learner(small(search__optimizer=WITH_SCALES))
    one._train_step(one.train)
    one.switch_off("l1", "F-FC")
    before = one.parameters["l1.F-FC.w1"].detach().clone()
    one._train_step(one.train)
    assert torch.equal(one.parameters["l1.F-FC.w1"], before)


def test_a_restored_learner_takes_the_same_steps(small):
    one = learner(small(search__optimizer=WITH_SCALES))
    one.train_epoch()
    other = learner(small(search__optimizer=WITH_SCALES))
    other.restore(one.state(), one.tensors())
    assert one.train_epoch() == other.train_epoch()
    assert all(torch.equal(one.parameters[key], other.parameters[key]) for key in one.parameters)


def test_scales_are_balanced_sooner_and_the_objective_lower(small):
    found = {}
    for name, optimizer in (("plain", ADAM.format("")), ("scaled", WITH_SCALES)):
        one = learner(small(search__optimizer=optimizer, search__epochs=40))
        for _ in range(40):
            one.train_epoch()
        found[name] = objective(one)
    (plain, unbalanced), (scaled, balanced) = found["plain"], found["scaled"]
    assert scaled < plain
    assert sum(map(abs, balanced.values())) < 0.5 * sum(map(abs, unbalanced.values()))
