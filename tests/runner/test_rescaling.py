"""The scales of tensors during a search: brought to their mode, with the optimiser's moments, when evidence is due."""

import pytest
import torch

from runner_specs import learner, regression
from symdsl import runner
from symdsl.nn.scaling import scaled_layers
from symdsl.runner.learner import Learner

CONSTANT = "mackay(schedule = constant)"


def trained(spec, epochs=3):
    one = learner(spec)
    for _ in range(epochs):
        one.train_epoch()
    return one


def pulls(one):
    """Of the prior on the scale of each layer: that of one tensor of every path, and of the bias."""
    held = one._penalties()
    return [
        (sum(held[layer.paths[at][0]] for at in range(len(layer.paths))), held[layer.bias])
        for layer in scaled_layers(one.net)
    ]


def outputs(one):
    one.net.eval()
    with torch.no_grad():
        return one.net(one.train.x)


def test_rescaling_keeps_the_function_but_for_one_factor_and_lowers_the_objective(small):
    one = trained(small())
    before, loss = outputs(one), torch.nn.functional.cross_entropy(outputs(one), one.train.y, reduction="sum")
    penalty = one.penalty()
    one.rescale()
    after = outputs(one)
    factor = float((before * after).sum() / before.square().sum())
    torch.testing.assert_close(after, factor * before, rtol=1e-4, atol=1e-5)
    lower = torch.nn.functional.cross_entropy(after, one.train.y, reduction="sum") + one.penalty()
    assert lower < loss + penalty - 0.01


def test_layers_are_held_equally_afterwards_but_for_biases(small):
    one = trained(small())
    assert pulls(one)[1][0] != pytest.approx(sum(pulls(one)[0]), rel=0.05)
    one.rescale()
    first, second, third = pulls(one)
    assert second[0] == pytest.approx(sum(first), rel=1e-3)
    assert third[0] == pytest.approx(sum(second), rel=1e-3)


def test_the_moments_of_adam_go_along(small):
    one = trained(small())
    before = {key: tensor.clone() for key, tensor in one.tensors().items()}
    one.rescale()
    after, seen = one.tensors(), set()
    for key in one.parameters:
        if not before[f"parameter/{key}"].any():
            continue
        factor = float(after[f"parameter/{key}"].norm() / before[f"parameter/{key}"].norm())
        torch.testing.assert_close(after[f"exp_avg/{key}"], before[f"exp_avg/{key}"] / factor, rtol=1e-4, atol=1e-9)
        torch.testing.assert_close(
            after[f"exp_avg_sq/{key}"], before[f"exp_avg_sq/{key}"] / factor**2, rtol=1e-4, atol=1e-12
        )
        seen.add(round(factor, 3))
    assert len(seen) > 3


def test_a_path_that_is_switched_off_is_left_alone(small):
    one = trained(small())
    one.switch_off("l1", "F-FC")
    one.rescale()
    assert not one.parameters["l1.F-FC.w1"].any()
    assert outputs(one).isfinite().all()


def test_priors_that_are_learned_at_modes_take_no_layer_away_from_its_mode(small):
    found = {}
    for rescale in (True, False):
        one = trained(small(search__rescale=rescale, search__prior_optimizer=CONSTANT, search__steps=60))
        one.rescale()
        one.evidence_step()
        first, second, _ = pulls(one)
        found[rescale] = second[0] / sum(first)
    assert found[True] == pytest.approx(1, abs=0.02)
    assert found[False] != pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("objective", ["laplace", "map"])
@pytest.mark.parametrize(("rescale", "times"), [(True, [2, 4, 4]), (False, [])])
def test_scales_are_brought_to_their_mode_when_evidence_is_due_and_at_the_end(
    small, tmp_path, monkeypatch, objective, rescale, times
):
    honest, epochs = Learner.rescale, []

    def watched(self):
        epochs.append(self.epoch)
        honest(self)

    monkeypatch.setattr(Learner, "rescale", watched)
    runner.search(small(search__rescale=rescale), device="cpu", out=tmp_path / "run", objective=objective)
    assert epochs == times


def test_a_regression_is_rescaled_at_its_noise():
    spec, dataset = regression()
    one = learner(spec, dataset)
    one.noise = 0.05
    for _ in range(2):
        one.train_epoch()
    for _ in range(8):
        one.rescale()
    held = sum(map(sum, pulls(one)))
    residual = outputs(one) - one.train.y
    pull = -float((outputs(one) * residual).sum()) / one.noise
    assert held == pytest.approx(pull, rel=1e-3)
