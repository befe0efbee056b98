"""Networks that have not fitted yet: evidence steps leave their priors and their paths alone."""

import math

import pytest

from runner.test_search import Listening
from runner_specs import regression, silenced, structure
from symdsl import runner
from symdsl.evidence import mackay_step
from symdsl.render.table import score_lines
from symdsl.runner.structure import _PATIENCE

NOTE = "no prior was learned: under none does the evidence exceed that of constant outputs; train longer"
EASY = {"data__train": 256, "data__classes": 2}


def trained(spec, epochs=60):
    one = structure(spec)
    for _ in range(epochs):
        one.trainer.train_epoch()
    return one


def test_priors_move_once_the_network_has_fitted(small):
    one = structure(small(**EASY))
    before = dict(one.trainer.precisions)
    laplace = one.evidence_step().laplace
    assert laplace.log_evidence() < -one.trainer.constant_loss
    assert one.trainer.precisions == before
    for _ in range(60):
        one.trainer.train_epoch()
    one.evidence_step()
    assert one.trainer.precisions != before


def test_no_path_is_pruned_of_a_network_that_has_not_fitted(small):
    one = silenced(structure(small(**EASY)), "l1.F-FC")
    assert [one.evidence_step().pruned for _ in range(2 * _PATIENCE)] == [[]] * (2 * _PATIENCE)
    one = silenced(trained(small(**EASY)), "l1.F-FC")
    assert any("l1.F-FC" in one.evidence_step().pruned for _ in range(2 * _PATIENCE))


def test_wide_priors_do_not_make_a_fitted_network_one_that_has_not(small):
    one = trained(small(**EASY))
    one.trainer.precisions = dict.fromkeys(one.trainer.precisions, 1e-9)
    laplace = one.evidence_step().laplace
    assert laplace.log_evidence() < -one.trainer.constant_loss
    assert min(one.trainer.precisions.values()) > 1e-9


def test_the_priors_of_a_regression_move_from_the_first_step_on():
    one = structure(*regression())
    before = dict(one.trainer.precisions)
    one.evidence_step()
    assert one.trainer.precisions != before


@pytest.mark.parametrize("curvature", ["joint", "kfac"])
def test_no_more_effective_parameters_count_than_the_nats_gained_pay_for(small, curvature):
    spec = small(**EASY, search__optimizer="adam(lr = 0.01)", search__objective=f"laplace({curvature})")
    one = structure(spec)
    one.trainer.train_epoch()
    one.trainer.precisions = dict.fromkeys(one.trainer.precisions, 0.01)
    one._least, one._has_fitted = {}, True
    laplace = one.evidence_step().laplace
    effective = laplace.effective_parameters()
    gained, total = one.trainer.constant_loss - laplace.loss, sum(effective.values())
    parameters = sum(laplace.ggn.sizes.values())
    progress = 1 / spec.facts.search.epochs
    price = 1 if curvature == "joint" else 1 + progress * (math.log(parameters) - 1)
    assert 0 < gained / price < total
    share = 1 - one.trainer.search.prior_optimizer.damping
    after = {key: (one.trainer.precisions[key] / 0.01) ** (1 / share) * 0.01 for key in one.learned}
    expected = {key: gained / price / total * effective[key] / laplace.squared_norms[key] for key in one.learned}
    assert after == pytest.approx(expected)


def test_a_fitted_network_has_every_effective_parameter_counted(small):
    one = trained(small(**EASY))
    before = dict(one.trainer.precisions)
    laplace = one.evidence_step().laplace
    assert sum(laplace.effective_parameters().values()) < one.trainer.constant_loss - laplace.loss
    share = 1 - one.trainer.search.prior_optimizer.damping
    assert one.trainer.precisions == mackay_step(laplace, one.learned, share, one._least) != before


def test_no_prior_of_a_network_worse_than_constant_outputs_moves(small):
    one = structure(small(**EASY))
    one._has_fitted = True
    for parameter in one.trainer.net.parameters():
        parameter.data.mul_(3)
    before = dict(one.trainer.precisions)
    laplace = one.evidence_step().laplace
    assert laplace.loss > one.trainer.constant_loss
    assert one.trainer.precisions == before


@pytest.mark.parametrize(("epochs", "every", "notes"), [(1, 1, 1), (1, 1000, 0), (60, 20, 0)])
def test_a_run_whose_network_never_fits_says_so(small, tmp_path, epochs, every, notes):
    heard = Listening()
    spec = small(**EASY, search__epochs=epochs, search__every=every)
    result = runner.search(spec, device="cpu", out=tmp_path / "run", callbacks=[heard])
    assert heard.notes.count(NOTE) == notes
    idle = sum(note.startswith("no evidence step took place: `every` is 1,000, and ") for note in heard.notes)
    assert idle == (every == 1000)
    assert result["priors_learned"] == (notes == 0)
    line = "no prior was learned: the evidence never exceeded that of constant outputs"
    assert (line in score_lines(result)) == (notes > 0)


def test_a_fitted_network_without_learned_priors_is_not_told_to_train_longer(small):
    heard = Listening()
    one = trained(small(**EASY))
    one.note, one._has_fitted = heard.on_note, False
    one.final()
    assert heard.notes[0] == NOTE.replace("train longer", "fewer parameters or more examples would help")


def test_a_result_of_map_says_nothing_of_learned_priors(small, tmp_path):
    spec = small(**EASY, search__epochs=1)
    result = runner.search(spec, device="cpu", out=tmp_path / "run", objective="map")
    assert not result["priors_learned"]
    assert not any("prior" in line for line in score_lines(result))


def test_that_it_has_fitted_is_known_after_an_interruption(small):
    one = trained(small(**EASY))
    one.evidence_step()
    assert one.state()["has_fitted"]
    other = structure(small(**EASY))
    other.restore(one.state(), one.tensors())
    assert other.state() == one.state()
