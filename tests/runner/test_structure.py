"""Evidence steps between training steps, and pruning."""

import math
from itertools import pairwise

import attrs
import pytest
import torch

from runner_specs import everything, regression, silenced, structure, with_fixed_prior
from symdsl.analysis.facts import Objective
from symdsl.data import load
from symdsl.evidence import Exact, ExtrapolatedSketch, JointSketch, Rademacher
from symdsl.nn import outputs_of
from symdsl.runner.estimating import FINAL, Estimator, final_laplace, laplace_at, sample
from symdsl.runner.metrics import evaluate_outputs
from symdsl.runner.report import describe_run
from symdsl.runner.shares import path_shares
from symdsl.runner.start import FEW_EXAMPLES
from symdsl.runner.structure import _BLOCK_PATIENCE, _PATIENCE, LEAST_PRECISION
from symdsl.spec import parse

pytestmark = pytest.mark.usefixtures("fitted")


def described(trainer, dataset):
    """What a result says of a network as it stands."""
    evidence = laplace_at(trainer, FINAL, everything(trainer))
    return describe_run(trainer, dataset, evidence, outputs_of(trainer.net, dataset.test.x))


def test_a_path_without_effective_parameters_is_pruned_after_some_evidence_steps(small):
    notes: list[str] = []
    one = silenced(structure(small(), notes=notes), "l1.F-FC")
    found = [one.evidence_step().pruned for _ in range(_PATIENCE)]
    assert found == [[]] * (_PATIENCE - 1) + [["l1.F-FC"]]
    assert notes == ["l1.F-FC is pruned in epoch 1"]
    assert "l1.F-FC.w1" not in one.trainer.precisions
    assert dict(one.trainer.net.layers())["l1"].pruned == {"F-FC"}
    assert all(not key.startswith("l1.F-FC") for key in one.evidence_step().laplace.effective_parameters())


@pytest.mark.parametrize(("number", "goes"), [(0.4, True), (0.6, False)])
def test_a_path_goes_when_the_data_determine_less_than_half_a_parameter_of_it(small, number, goes):
    one = structure(small())
    effective = one.evidence_step().laplace.effective_parameters()
    effective |= {"l1.F-FC.w1": number / 2, "l1.F-FC.w2": number / 2}
    found = [path for _ in range(_PATIENCE) for path in one._prune(effective, lambda *_: 0.0)]
    assert ("l1.F-FC" in found) is goes


def test_a_path_that_the_network_relies_on_stays_where_the_curvature_vanishes(small):
    one = silenced(structure(small()), "l2.F-FC")
    one.trainer.precisions |= dict.fromkeys(one.learned - {"l2.F-FC.w1", "l2.F-FC.w2"}, 0.01)
    for _ in range(40):
        one.trainer.train_epoch()
    index = torch.arange(len(one.trainer.train))
    laplace = laplace_at(one.trainer, one.estimator, index)
    effective = dict.fromkeys(laplace.effective_parameters(), 0.0)

    def gain(layer, path):
        return one._gain_without_path(layer, path, laplace, index)

    assert gain("l2", "CONV") < -1 < gain("l2", "F-FC")
    found = [path for _ in range(2 * _PATIENCE) for path in one._prune(effective, gain)]
    assert "l2.F-FC" in found
    assert "l2.CONV" not in found


def test_the_gain_without_a_path_has_the_loss_of_the_other_paths_alone(small):
    one = structure(small())
    index = torch.arange(len(one.trainer.train))
    laplace = laplace_at(one.trainer, one.estimator, index)
    gain = one._gain_without_path("l1", "F-FC", laplace, index)
    keys = ["l1.F-FC.w1", "l1.F-FC.w2"]
    with torch.no_grad():
        for key in keys:
            one.trainer.parameters[key].zero_()
        outputs = one.trainer.net(one.trainer.train.x)
    loss = float(one.trainer.likelihood.loss(outputs.double(), one.trainer.train.y))
    assert gain == pytest.approx(laplace.log_evidence_without(keys, loss) - laplace.log_evidence(), abs=1e-3)


def test_the_gain_without_a_path_stands_for_all_examples_whichever_are_looked_at(small):
    one = structure(small())
    index = torch.arange(0, len(one.trainer.train), 4)
    twice = torch.cat((index, index))
    laplace = laplace_at(one.trainer, one.estimator, index)
    gain = one._gain_without_path("l1", "CONV", laplace, index)
    with torch.no_grad():
        whole = [one.trainer.net(one.trainer.train.x[index])]
        with one.trainer.net.layer("l1").without("CONV"):
            whole.append(one.trainer.net(one.trainer.train.x[index]))
    with_it, without = (4 * float(one.trainer.likelihood.loss(y.double(), one.trainer.train.y[index])) for y in whole)
    expected = laplace.log_evidence_without(["l1.CONV.w"], laplace.loss + without - with_it) - laplace.log_evidence()
    assert gain == pytest.approx(expected, abs=1e-3)
    assert one._gain_without_path("l1", "CONV", laplace, twice) == pytest.approx(gain, abs=1e-3)


def test_a_pruned_path_stays_pruned_when_a_state_is_taken_up(small):
    one = silenced(structure(small()), "l1.F-FC")
    for _ in range(_PATIENCE):
        one.evidence_step()
    other = structure(small())
    other.trainer.restore(one.trainer.state(), one.trainer.tensors())
    other.restore(one.state(), one.tensors())
    assert dict(other.trainer.net.layers())["l1"].pruned == {"F-FC"}
    x = one.trainer.train.x
    assert torch.equal(other.trainer.net(x), one.trainer.net(x))
    assert other.state() == one.state()


def test_a_path_that_comes_back_is_not_pruned(small):
    one = silenced(structure(small()), "l1.F-FC")
    for _ in range(_PATIENCE - 1):
        one.evidence_step()
    for key in ("l1.F-FC.w1", "l1.F-FC.w2"):
        torch.nn.init.normal_(one.trainer.parameters[key])
        one.trainer.precisions[key] = 1.0
    assert one.evidence_step().pruned == []
    silenced(one, "l1.F-FC")
    assert one.evidence_step().pruned == []


BLOCKS = """
data synthetic(size = 4, classes = 3, train = 48, test = 24) |> standardize
network blocks {
  input image(channels, 4, 4)
  layer l1: CONV(3) -> 2 |> relu
  residual {
    layer l2: F-FC + CONV(3) -> 3 |> relu
    layer l3: F-FC + CONV(3) -> 2
  }
  residual {
    layer l4: CONV(3) -> 2
  }
  flatten
  layer h1: FC -> classes
}
search {
  epochs = 4
  every  = 2
  batch  = 16
}
"""


def relying(notes=None):
    """A structure whose network is certain of its labels by both blocks, but that the first one writes nothing."""
    one = structure(parse(BLOCKS), notes=notes)
    parameters = one.trainer.parameters
    with torch.no_grad():
        for key in ("l3.F-FC.w1", "l3.CONV.w"):
            parameters[key].zero_()
        for key in ("l4.CONV.w", "h1.FC.w"):
            parameters[key].mul_(20)
        one.trainer.train = attrs.evolve(one.trainer.train, y=one.trainer.net(one.trainer.train.x).argmax(1))
    return one


def without_first():
    """A structure whose first block has left."""
    one = relying()
    return one, [path for _ in range(_BLOCK_PATIENCE) for path in one.evidence_step().pruned]


def test_a_block_leaves_that_the_evidence_is_higher_without_and_no_other():
    notes: list[str] = []
    one = relying(notes)
    found = [one.evidence_step().pruned for _ in range(2 * _BLOCK_PATIENCE)]
    assert found == [[]] * (_BLOCK_PATIENCE - 1) + [["l3.F-FC", "l3.CONV"]] + [[]] * _BLOCK_PATIENCE
    assert notes[0].startswith("residual (layers l2, l3) is removed in epoch 1: the evidence is ")


def test_a_block_that_was_wanted_in_between_stays():
    one = structure(parse(BLOCKS))
    first, second = (block.join for block in one.trainer.net.active_blocks())
    in_vain = [1.0] * (_BLOCK_PATIENCE - 1)
    for gain in (*in_vain, -1.0, *in_vain):
        assert one._remove_block({first: gain, second: -1.0}) == []
    assert one._remove_block({first: 1.0, second: -1.0}) == ["l3.F-FC", "l3.CONV"]


def test_one_block_leaves_at_a_time_and_none_whose_priors_are_fixed():
    def left(text):
        one = structure(parse(text))
        with torch.no_grad():
            for key in ("l3.F-FC.w1", "l3.CONV.w", "l4.CONV.w"):
                one.trainer.parameters[key].zero_()
        return [one.evidence_step().pruned for _ in range(_BLOCK_PATIENCE + 1)]

    found = left(BLOCKS)
    assert sorted(map(len, found)) == [0] * (_BLOCK_PATIENCE - 1) + [1, 2]
    for rules in ("*.* ~ normal(1, fixed)", "*.F-FC ~ normal(1, fixed)  *.CONV ~ normal(1, fixed)"):
        assert left(BLOCKS + f"prior {{ {rules} }}") == [[]] * (_BLOCK_PATIENCE + 1)


def test_the_evidence_without_a_block_that_writes_nothing_is_that_of_a_network_that_never_had_it():
    one = relying()
    laplace = laplace_at(one.trainer, FINAL, everything(one.trainer))
    inside = [key for key in one.trainer.precisions if key.startswith(("l2.", "l3."))]
    found = laplace.log_evidence_without(inside, laplace.loss)
    for path in ("F-FC", "CONV"):
        one.trainer.prune("l3", path)
    assert found == pytest.approx(laplace_at(one.trainer, FINAL, everything(one.trainer)).log_evidence(), rel=1e-6)


def test_a_removed_block_is_left_out_of_training_and_of_what_a_state_is_taken_up_by():
    one, pruned = without_first()
    assert pruned == ["l3.F-FC", "l3.CONV"]
    assert {key.split(".")[0] for key in one.trainer.precisions} == {"l1", "l4", "h1"}
    assert not {"l2", "l3"} & dict(one.trainer.net.active()).keys()
    before = one.trainer.parameters["l2.CONV.w"].clone()
    one.train_epoch()
    assert torch.equal(one.trainer.parameters["l2.CONV.w"], before)
    other = structure(parse(BLOCKS))
    other.trainer.restore(one.trainer.state(), one.trainer.tensors())
    assert dict(other.trainer.net.active()).keys() == dict(one.trainer.net.active()).keys()
    x = one.trainer.train.x
    assert torch.equal(other.trainer.net(x), one.trainer.net(x))


def test_the_only_candidate_of_a_layer_stays():
    one = silenced(structure(parse(BLOCKS)), "l1.CONV")
    assert "l1.CONV" not in [path for _ in range(_PATIENCE) for path in one.evidence_step().pruned]


def test_a_removed_block_has_neither_a_chosen_nor_a_kept_candidate():
    one, _ = without_first()
    spec = parse(BLOCKS)
    content = described(one.trainer, load(spec))
    layers = {layer["name"]: layer for layer in content["layers"]}
    assert [(layers[name]["chosen"], layers[name]["kept"]) for name in ("l2", "l3")] == [(None, [])] * 2
    assert all(candidate["pruned"] for name in ("l2", "l3") for candidate in layers[name]["candidates"])
    assert layers["l4"]["chosen"] == "CONV"
    assert spec.pruned({name: set(layer["kept"]) for name, layer in layers.items()}).count("residual") == 1


def test_an_average_in_a_removed_block_is_not_reported():
    inside = "average affine(rotation = 5, samples = 2) {\n      layer l2: CONV(3) -> 3 |> relu\n    }"
    spec = parse(BLOCKS.replace("layer l2: F-FC + CONV(3) -> 3 |> relu", inside))
    one, dataset = structure(spec), load(spec)
    assert "averages" in described(one.trainer, dataset)
    for path in ("F-FC", "CONV"):
        one.trainer.prune("l3", path)
    assert "averages" not in described(one.trainer, dataset)


def test_a_fixed_prior_is_never_moved_and_its_path_never_pruned():
    one = structure(with_fixed_prior())
    before = dict(one.trainer.precisions)
    with torch.no_grad():
        one.trainer.parameters["l1.CONV.w"].zero_()
    for _ in range(_PATIENCE + 1):
        assert "l1.CONV" not in one.evidence_step().pruned
    assert one.trainer.precisions["l1.CONV.w"] == before["l1.CONV.w"] == 10.0
    assert one.trainer.precisions != before


def test_an_evidence_step_goes_a_share_of_the_way_to_mackays_fixed_point(small):
    one = structure(small(search__prior_optimizer="mackay(damping = 0.75)"))
    before = dict(one.trainer.precisions)
    laplace = one.evidence_step().laplace
    for key, effective in laplace.effective_parameters().items():
        if one.trainer.parameters[key].any():
            target = effective / float(one.trainer.parameters[key].detach().double().square().sum())
            expected = max(0.75 * math.log(before[key]) + 0.25 * math.log(target), math.log(LEAST_PRECISION))
            assert math.log(one.trainer.precisions[key]) == pytest.approx(expected, abs=1e-4)
    assert any(precision > LEAST_PRECISION for precision in one.trainer.precisions.values())


def test_only_tensors_that_started_at_zero_fall_below_the_smallest_precision_of_a_classifier(small):
    one = structure(small(search__start="symmetric"))
    zero = {key for key, value in one.trainer.parameters.items() if "F-FC" in key and not value.any()}
    with torch.no_grad():
        for parameter in one.trainer.parameters.values():
            torch.nn.init.normal_(parameter, std=10, generator=torch.Generator().manual_seed(0))
    for _ in range(_PATIENCE - 1):
        one.evidence_step()
    low = {key for key, precision in one.trainer.precisions.items() if precision < LEAST_PRECISION}
    assert low
    assert low <= zero


def test_a_rule_may_start_the_precision_of_a_classifier_below_the_smallest(small):
    one = structure(parse(small().text() + "\nprior {\n  *.CONV ~ normal(precision = 0.01)\n}\n"))
    with torch.no_grad():
        for parameter in one.trainer.parameters.values():
            torch.nn.init.normal_(parameter, std=100, generator=torch.Generator().manual_seed(0))
    before = dict(one.trainer.precisions)
    one.evidence_step()
    assert one.trainer.precisions["l1.CONV.w"] == before["l1.CONV.w"] == 0.01
    assert one.trainer.precisions["h1.FC.w"] == before["h1.FC.w"] == LEAST_PRECISION


def test_precisions_of_a_regression_may_fall_below_the_smallest_of_a_classifier():
    one = structure(*regression())
    with torch.no_grad():
        for parameter in one.trainer.parameters.values():
            parameter.mul_(10)
    one.evidence_step()
    assert any(precision < LEAST_PRECISION for precision in one.trainer.precisions.values())


def test_evidence_steps_come_between_training_steps_from_the_end_of_burn_in_on(small, monkeypatch):
    one = structure(small(search__burnin=1, search__every=2, search__batch=16))
    steps = []
    honest = one.evidence_step
    monkeypatch.setattr(one, "evidence_step", lambda: steps.append(one.trainer.step) or honest())
    first = one.trainer.steps_per_epoch
    assert first > 2
    _, found, seconds = one.train_epoch()
    assert (steps, found, seconds) == ([], {}, 0.0)
    _, found, seconds = one.train_epoch()
    assert steps == list(range(first + 2, 2 * first + 1, 2))
    assert found["precisions"] == one.trainer.precisions
    assert seconds > 0


def test_an_epoch_tells_of_every_path_that_its_evidence_steps_prune(small, monkeypatch):
    one = structure(small(search__every=1, search__batch=16))
    pruned, honest = iter((["l1.F-FC"], [], ["l2.F-FC"])), one.evidence_step
    monkeypatch.setattr(one, "evidence_step", lambda: honest()._replace(pruned=next(pruned)))
    _, found, _ = one.train_epoch()
    assert found["pruned"] == ["l1.F-FC", "l2.F-FC"]


def test_left_alone_evidence_steps_come_so_often_that_they_take_a_tenth_of_the_time(small):
    def every(**search):
        spec = small(**search)
        facts = attrs.evolve(spec.facts, search=attrs.evolve(spec.facts.search, every=None, epochs=1000))
        return structure(attrs.evolve(spec, facts=facts)).every

    assert structure(small(search__every=7)).every == 7
    assert every(search__examples=16) == pytest.approx(4 * every(search__examples=4), abs=4)
    assert every(search__batch=8) == pytest.approx(2 * every(search__batch=16), abs=2)
    assert every(search__objective="laplace(kfac)") < every()


def test_an_evidence_step_looks_at_so_many_examples_and_counts_all(small):
    one = structure(small(search__examples=8))
    assert len(sample(one.trainer, 8)) == 8
    assert one.evidence_step().laplace.examples == len(one.trainer.train)


@pytest.mark.parametrize(
    ("asked", "examples", "curvature"),
    [
        (None, FEW_EXAMPLES, "joint"),
        (None, FEW_EXAMPLES + 1, "kfac-reduce"),
        ("kfac-expand", 10, "kfac-expand"),
        ("joint", 10**6, "joint"),
    ],
)
def test_the_number_of_examples_chooses_the_estimator_unless_the_spec_does(small, asked, examples, curvature):
    fisher = small().facts.search.objective.fisher
    assert Estimator.of(Objective(asked, fisher), examples).curvature == curvature


def test_an_evidence_step_counts_more_parameters_than_it_looks_at_examples_and_the_guard_does_not(small):
    one = structure(small(search__examples=8))
    index = sample(one.trainer, 8)
    laplace = laplace_at(one.trainer, one.estimator, index)
    number = sum(laplace.effective_parameters().values())
    assert 2 * 8 < number < sum(laplace.ggn.sizes.values())
    guard = one._jointly(laplace, index)
    assert sum(guard.effective_parameters().values()) <= 8 + 1e-6
    assert guard.log_evidence() == laplace.log_evidence()


def test_regression_learns_its_noise_without_swinging():
    one = structure(*regression())
    noises = [one.trainer.noise]
    for _ in range(60):
        one.train_epoch()
        one.evidence_step()
        noises.append(one.trainer.noise)
        assert one.trainer.noise <= one.trainer.target_variance * 1.0001
    assert noises[-1] == pytest.approx(0.01, rel=0.5)
    ups = [after / before for before, after in pairwise(noises) if after > before]
    assert max(ups, default=1.0) < 1.1
    test, net = regression()[1].test, one.trainer.net
    assert evaluate_outputs(net(test.x).detach(), test.y, one.trainer.likelihood, one.trainer.noise)["rmse"] < 0.2


def test_a_search_ends_at_the_fixed_point_of_the_noise():
    one = structure(*regression())
    for _ in range(60):
        one.trainer.train_epoch()
    one.evidence_step()
    assert one.trainer.noise > 10 * one.trainer.residual_variance
    laplace = one.final()
    assert one.trainer.noise == laplace.noise == pytest.approx(laplace.fitted_noise(), rel=0.02)
    assert one.trainer.noise == pytest.approx(one.trainer.residual_variance, rel=0.1)
    for factor in (0.9, 1.1):
        assert attrs.evolve(laplace, noise=factor * laplace.noise).log_evidence() < laplace.log_evidence()


def test_more_effective_parameters_than_numbers_are_told_of_and_leave_the_noise_in_bounds():
    spec, dataset = regression()
    few = attrs.evolve(dataset, train=dataset.train.__class__(dataset.train.x[:2], dataset.train.y[:2]))
    notes: list[str] = []
    kfac = attrs.evolve(spec.facts.search, objective=Objective("kfac-expand", spec.facts.search.objective.fisher))
    one = structure(attrs.evolve(spec, facts=attrs.evolve(spec.facts, search=kfac)), few, notes)
    one.trainer.precisions = dict.fromkeys(one.trainer.precisions, 1e-5)
    for _ in range(3):
        one.evidence_step()
        assert 0 < one.trainer.noise <= 1.0001 * one.trainer.target_variance
    assert len(notes) == 1
    assert "effective parameters are more than 4 observed numbers can determine" in notes[0]


def test_shares_add_up_and_survive_a_layer_without_effective_parameters():
    effective = {"l1.F-FC.w1": 1.0, "l1.F-FC.w2": 2.0, "l1.CONV.w": 1.0, "l1.bias": 7.0, "l10.CONV.w": 9.0}
    assert path_shares("l1", ["F-FC", "CONV"], effective) == {"F-FC": 0.75, "CONV": 0.25}
    assert path_shares("l2", ["CONV"], effective) == {"CONV": 0.0}


def test_a_layer_without_effective_parameters_keeps_what_it_chose(small):
    from symdsl import data

    spec = small()
    dataset = data.load(spec)
    one = structure(spec, dataset).trainer
    with torch.no_grad():
        for key in ("l1.F-FC.w1", "l1.F-FC.w2", "l1.CONV.w", "l2.F-FC.w1", "l2.F-FC.w2", "l2.CONV.w", "h1.FC.w"):
            one.parameters[key].zero_()
    one.prune("l1", "F-FC")
    layers = described(one, dataset)["layers"]
    assert math.fsum(candidate["effective"] for candidate in layers[0]["candidates"]) == 0
    assert (layers[0]["chosen"], layers[0]["kept"]) == ("CONV", ["CONV"])
    assert all(layer["chosen"] in layer["kept"] for layer in layers)


def test_the_reported_evidence_looks_at_so_many_examples_at_most(small, monkeypatch):
    one = structure(small()).trainer
    whole = final_laplace(one)
    monkeypatch.setattr("symdsl.runner.estimating.FINAL_EXAMPLES", 40)
    found = final_laplace(one)
    assert found.examples == whole.examples == len(one.train)
    assert found.log_evidence() != whole.log_evidence()
    assert found.log_evidence() == pytest.approx(whole.log_evidence(), rel=0.3)


def test_the_reported_evidence_of_few_examples_is_that_of_all_columns(small):
    one = structure(small()).trainer
    exact = laplace_at(one, Estimator("joint", Exact()), everything(one))
    assert final_laplace(one).log_evidence() == pytest.approx(exact.log_evidence(), rel=1e-6)


def test_all_columns_of_uncertain_examples_bring_the_log_determinant_near_that_of_all(small, monkeypatch):
    monkeypatch.setattr("symdsl.runner.estimating.GRADIENTS", 256)
    one = structure(small(data__classes=5, data__train=256)).trainer
    for _ in range(30):
        one.train_epoch()
    one.precisions = dict.fromkeys(one.precisions, 0.01)
    exact, signs = (
        laplace_at(one, Estimator("joint", fisher), everything(one)).log_det.value
        for fisher in (Exact(), Rademacher(1))
    )
    assert signs < 0.92 * exact
    assert final_laplace(one).log_det.value == pytest.approx(exact, abs=0.5 * (exact - signs))


def test_the_reported_counts_of_a_regression_are_those_of_the_sketch(small):
    assert isinstance(final_laplace(structure(small()).trainer).ggn, ExtrapolatedSketch)
    assert isinstance(final_laplace(structure(*regression()).trainer).ggn, JointSketch)


def test_the_reported_sketch_of_a_regression_has_all_its_rows(monkeypatch):
    for room in ("runner.estimating", "evidence.joint"):
        monkeypatch.setattr(f"symdsl.{room}.GRADIENTS", 512)
    one = structure(*regression()).trainer
    found = final_laplace(one)  # 300 examples of two targets would be summed in pairs, to 300 rows
    assert {len(part) for part in found.ggn.parts.values()} == {512}
    assert (found.ggn.gradients, found.examples) == (600, 300)
    outputs = outputs_of(one.net, one.train.x).double()
    assert found.loss == pytest.approx(float(one.likelihood.loss(outputs, one.train.y)))


def test_the_evidence_of_several_targets_is_that_of_as_many_regressions():
    one = structure(*regression()).trainer
    one.precisions, one.noise = {"h1.FC.w": 0.5, "h1.bias": 2.0}, 0.01
    inputs = torch.cat((one.train.x.flatten(1), torch.ones(300, 1)), 1).double()
    delta = torch.tensor([0.5, 0.5, 0.5, 0.5, 2.0], dtype=torch.float64)
    data = inputs.T @ inputs / one.noise
    one_target = torch.linalg.slogdet(data / delta + torch.eye(5)).logabsdet
    counts = 1 - delta * torch.linalg.inv(data + delta.diag()).diagonal()
    found = final_laplace(one).log_det
    assert found.value == pytest.approx(2 * float(one_target), rel=1e-6)
    assert found.effective == pytest.approx({"h1.FC.w": 2 * float(counts[:4].sum()), "h1.bias": 2 * float(counts[4])})
