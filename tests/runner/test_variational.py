"""Searches by the variational bound: what they move, what they write down, and how they go on."""

import json
import math

import attrs
import pytest
import torch
from safetensors.torch import load, load_file

import symdsl
from oracles.comparison import assert_same
from runner.test_search import Interrupting, timeless
from runner_specs import regression
from symdsl import data, lowering, runner
from symdsl.analysis.facts import Objective
from symdsl.evidence import WeightPosterior
from symdsl.export import export_run
from symdsl.render import compile_table, result_table, table_text
from symdsl.report import report_html
from symdsl.runner import searching
from symdsl.runner.start import stated_start
from symdsl.runner.training import Trainer
from symdsl.runner.variational import RATE, Variational
from symdsl.runs import RunFolder
from symdsl.spec import parse

TURNED = """
data digits(size = 8) |> rotate(degrees = 180) |> standardize |> subset(n = 200, test = 50)

network turned {
  input image(1, 8, 8)
  average affine(rotation = 20, scale_x = 0.1, samples = 3) {
    flatten
    layer h1: RFF(0.7) -> 9
  }
  layer out: FC -> classes
}

search {
  objective = elbo
  epochs = 4
  batch = 40
}
"""
LEARNED = TURNED.replace("RFF(0.7) -> 9", "FC -> 7 |> relu")


def turned(text=TURNED, **overrides):
    return parse(text, {key.replace("__", "."): value for key, value in overrides.items()}, source="turned.sym")


def learner(spec):
    """At the beginning of a search, in float64."""
    dataset = data.load(spec)
    net = lowering.compile(spec, 0).double()
    start = stated_start(net, spec.facts)
    one = Trainer(net, spec.facts, dataset, 0, start)
    one.train = type(one.train)(one.train.x.double(), one.train.y)
    return Variational(one, start.learned)


# ---------------------------------------------------------------- steps


def test_gradients_in_ranges_are_those_of_the_bound():
    one = learner(turned(search__every=100))
    trainer = one.trainer
    for _ in range(2):
        trainer.train_epoch(one._after_step)
    batch = trainer.train.batch(torch.arange(30), trainer.device)
    trainer.net.train()
    trainer.net.draw_from(torch.Generator().manual_seed(3))

    def expected():
        return one._expected(batch)[1]

    for average in dict(trainer.net.averages()).values():
        average.ranges.grad = None
        expected().backward()
        gradient = average.ranges.grad.clone()
        for place, width in enumerate((1e-4, 1e-6)):
            ends = []
            for side in (-width, width):
                with torch.no_grad():
                    average.ranges[place] += side
                    ends.append(float(expected()))
                    average.ranges[place] -= side
            assert float(gradient[place]) == pytest.approx((ends[1] - ends[0]) / (2 * width), rel=1e-4)


def test_a_mean_after_the_last_layer_is_the_same_network():
    inside = TURNED.replace("  }\n  layer out: FC -> classes\n", "    layer out: FC -> classes\n  }\n")
    first, second = learner(turned()), learner(turned(inside))
    for one in (first, second):
        one.trainer.train_epoch(one._after_step)
    torch.testing.assert_close(second.posterior.mean, first.posterior.mean, atol=1e-9, rtol=0)
    assert second.final().log_evidence() == pytest.approx(first.final().log_evidence(), rel=1e-9)


def test_the_bound_rises_and_the_network_has_the_mean_of_the_posterior():
    one = learner(turned(search__epochs=20))
    before = one.final().log_evidence()
    for _ in range(20):
        one.train_epoch()
    assert one.final().log_evidence() > before + 100
    mean = torch.cat((one.net.tensors()["out.FC.w"].flatten(1), one.net.tensors()["out.bias"][:, None]), 1)
    torch.testing.assert_close(mean, one.posterior.mean)


def test_the_reported_bound_is_that_of_drawn_transformations():
    one = learner(turned(TURNED.replace("rotation = 20, scale_x = 0.1, samples = 3", "rotation = 0, samples = 1")))
    one.train_epoch()
    upright = one.final().log_evidence()
    assert one.final().log_evidence() == upright
    assert not one.net.training
    one.net.set_ranges(dict.fromkeys(one.net.ranges(), 180.0))
    assert one.final().log_evidence() < upright - 20


def test_precisions_and_ranges_wait_for_the_end_of_burn_in():
    one = learner(turned(search__burnin=1, search__every=2))
    before = dict(one.trainer.precisions), one.net.ranges()
    one.train_epoch()
    assert (one.trainer.precisions, one.net.ranges()) == before
    one.train_epoch()
    assert one.trainer.precisions["out.FC.w"] != before[0]["out.FC.w"]
    assert one.net.ranges()["average.rotation"] != before[1]["average.rotation"]


def test_ranges_wait_until_the_posterior_has_left_the_prior():
    one = learner(turned(search__every=1, search__epochs=8, search__batch=100))
    moved = []

    def after_step():
        before = one.net.ranges()
        one._after_step()
        moved.append(one.net.ranges() != before)

    for _ in range(8):
        one.trainer.train_epoch(after_step)
    assert moved[0] is False
    assert moved[1:12] == [True] * 11
    assert moved[-3:] == [False] * 3


def test_ranges_move_by_the_mean_gradient_since_they_last_moved(monkeypatch):
    one = learner(turned(search__every=3))
    (average,) = dict(one.net.averages()).values()
    gradients, moved = [], []
    monkeypatch.setattr(one.ranges, "move", lambda slopes, progress: moved.append([*slopes.values()]))

    def after_step():
        gradients.append(average.ranges.grad.clone())
        one._after_step()
        assert average.ranges.grad is None

    for _ in range(2):
        one.trainer.train_epoch(after_step)
    expected = [-torch.stack(gradients[begin : begin + 3]).mean(0) for begin in (0, 3, 6)]
    assert moved == [pytest.approx(one.tolist()) for one in expected]


def test_the_posterior_goes_a_shorter_way_as_the_learning_rate_falls(monkeypatch):
    shares, honest = [], WeightPosterior.step
    monkeypatch.setattr(WeightPosterior, "step", lambda self, *given: shares.append(given[-1]) or honest(self, *given))
    one = learner(turned())
    for _ in range(4):
        one.trainer.train_epoch(one._after_step)
    assert shares[0] == pytest.approx(RATE, rel=0.01)
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] == pytest.approx(0)


def test_priors_and_ranges_that_are_fixed_stay():
    text = TURNED.replace("samples = 3", "samples = 3, fixed") + "prior { out.FC ~ normal(precision = 3, fixed) }"
    one = learner(turned(text))
    one.train_epoch()
    assert one.trainer.precisions["out.FC.w"] == 3
    assert one.trainer.precisions["out.bias"] != 1
    assert one.net.ranges() == {"average.rotation": 20, "average.scale_x": 0.1}


def test_layers_before_the_last_are_trained_under_their_priors():
    one = learner(turned(LEARNED))
    before = one.net.tensors()["h1.FC.w"].detach().clone()
    one.train_epoch()
    assert not torch.equal(one.net.tensors()["h1.FC.w"], before)
    assert one.trainer.precisions["h1.FC.w"] == 1


def test_the_loss_of_an_epoch_counts_the_prior_of_the_last_layer_in_the_bound_alone():
    one = learner(turned(LEARNED))
    metrics, found, _ = one.train_epoch()
    precisions, tensors = one.trainer.precisions, one.trainer.parameters
    penalties = [0.5 * precisions[key] * tensors[key].detach().square().sum() for key in ("h1.FC.w", "h1.bias")]
    assert metrics.loss == pytest.approx(found["neg_log_evidence_per_example"] + float(sum(penalties)) / 200)


# ---------------------------------------------------------------- runs


@pytest.mark.parametrize("text", [TURNED, LEARNED], ids=["features", "learned"])
def test_a_search_writes_the_bound_down_and_every_command_reads_it(text, tmp_path, monkeypatch):
    folder, epoch, final = tmp_path / "run", Variational.train_epoch, Variational.final
    divergences, bounds = [], []

    def train_epoch(self):
        trained = epoch(self)
        divergences.append(self.posterior.divergence())
        return trained

    monkeypatch.setattr(Variational, "train_epoch", train_epoch)
    monkeypatch.setattr(Variational, "final", lambda self: bounds.append(final(self)) or bounds[-1])
    found = runner.search(turned(text), device="cpu", out=folder)
    assert found["objective"] == "elbo"
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert min(divergences) > 1
    for line, divergence in zip(lines, divergences, strict=True):
        assert line["neg_log_evidence_per_example"] == pytest.approx(line["nll"] + divergence / 200)
    (bound,) = bounds
    assert bound.divergence == pytest.approx(divergences[-1])
    expected = (bound.divergence - bound.log_likelihood) / 200
    assert found["neg_log_evidence_per_example"] == pytest.approx(expected)
    assert found["averages"][0]["ranges"]["rotation"] != 20
    out = found["layers"][-1]["candidates"][0]
    assert 0 < out["effective"] < out["parameters"]
    assert "elbo, seed 711" in table_text(result_table(found.content))
    run = symdsl.load_run(folder)
    test = data.load(turned(text)).test
    accuracy = (run.network(test.x).argmax(1) == test.y).double().mean()
    assert float(accuracy) == pytest.approx(found["test"]["accuracy"])
    assert math.isfinite(run.predict(test.x).nll(test.y))
    assert "elbo" in report_html([folder])
    export_run(run, "pt2", tmp_path / "net.pt2")
    learned = symdsl.load(folder / "learned.sym")
    assert learned.facts.search.objective.name == "elbo"


@pytest.mark.parametrize("text", [TURNED, LEARNED], ids=["features", "learned"])
def test_an_interrupted_search_goes_on_to_the_last_bit(text, tmp_path, monkeypatch):
    monkeypatch.setattr(searching, "_SAVING_SHARE", float("inf"))
    with pytest.raises(KeyboardInterrupt):
        runner.search(turned(text, search__every=3), device="cpu", out=tmp_path / "run", callbacks=[Interrupting(2)])
    runner.search(device="cpu", resume=tmp_path / "run")
    runner.search(turned(text, search__every=3), device="cpu", out=tmp_path / "whole")
    assert timeless(tmp_path / "run") == timeless(tmp_path / "whole")


def test_a_search_from_weights_begins_around_those_of_the_last_layer(tmp_path, monkeypatch):
    monkeypatch.setattr(searching, "_SAVING_SHARE", float("inf"))
    run = runner.search(turned(), device="cpu", out=tmp_path / "run").folder
    with pytest.raises(KeyboardInterrupt):
        runner.search(turned(), device="cpu", out=tmp_path / "new", weights_from=run, callbacks=[Interrupting(1)])
    (tmp_path / "new" / "checkpoint.json").unlink()  # what is left is the one before the first epoch
    _, content = RunFolder.view(tmp_path / "new").load_checkpoint()
    for key, tensor in load_file(run / "model.safetensors").items():
        if key.startswith("out."):
            assert_same(load(content)[f"parameter/{key}"], tensor, 1e-6)
            assert bool(tensor.any())


def test_a_regression_learns_its_noise(tmp_path, monkeypatch):
    spec, dataset = regression()
    facts = attrs.evolve(
        spec.facts,
        search=attrs.evolve(spec.facts.search, objective=Objective(None, spec.facts.search.objective.fisher, "elbo")),
    )
    net = lowering.compile(spec, 0)
    start = stated_start(net, facts)
    one = Variational(Trainer(net, facts, dataset, 0, start), start.learned)
    for _ in range(80):
        one.train_epoch()
    assert one.trainer.noise == pytest.approx(0.01, rel=0.25)


def test_map_leaves_the_ranges_of_such_a_spec(tmp_path):
    found = runner.search(turned(), device="cpu", out=tmp_path / "map", objective="map")
    assert found["objective"] == "map"
    assert found["averages"][0]["ranges"] == found["averages"][0]["start"]


def test_only_map_may_take_the_place_of_a_spec_s_objective(tmp_path):
    with pytest.raises(ValueError, match=r'`objective` \(="laplace"\) must be "map", or "elbo" as the spec says'):
        runner.search(turned(), device="cpu", out=tmp_path / "run", objective="laplace")


def test_ranks_are_refused(monkeypatch):
    monkeypatch.setattr("symdsl.runner.variational.ranks.count", lambda: 2)
    with pytest.raises(symdsl.RunError, match="`objective = elbo` runs in one process: leave torchrun out"):
        learner(turned())


def test_compile_says_what_is_fixed_and_what_is_maximised():
    shown = table_text(compile_table(turned().graph()))
    assert "none: fixed weights" in shown
    assert "evidence: the variational bound, in every training step" in shown


def test_a_regulariser_leaves_the_ranges_to_the_bound():
    slopes = []
    for regulariser in ({}, {"search__invariance": "logit(group = rotations(3), weight = 100)"}):
        one = learner(turned(**regulariser)).trainer
        torch.manual_seed(0)
        one._train_step(one.train[:40], 40)
        slopes.append([average.ranges.grad.clone() for _, average in one.net.averages()])
    assert all(torch.equal(*pair) for pair in zip(*slopes, strict=True))
    assert slopes[0][0].abs().min() > 0
