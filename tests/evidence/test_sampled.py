import math

import pytest
import torch

from oracles.together import exactly, generator, left_of, precisions_for, rows
from symdsl.evidence import Joint
from symdsl.evidence.joint import Projected
from symdsl.evidence.sampled import Sampled, Told, _grown
from symdsl.evidence.sketch import Sample, Sketch

SIZES = {"a": 300, "b": 500, "c": 40}


def sampled(found, count, seed=0):
    total = len(found["a"])
    return Sampled.of(left_of(found, Sample(total, count, generator(seed))), total)


def told(found, count, seed=0):
    total = len(found["a"])
    mixed = Joint.of(left_of(found, Sketch(total, count, generator(seed))), total)
    return Told(mixed, left_of(found, Sample(total, count, generator(seed))))


@pytest.mark.parametrize("decay", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("count", [100, 200])
@pytest.mark.parametrize("share", [0.5, 0.8])
def test_some_rows_let_one_expect_the_determinant_of_all(decay, count, share):
    found = rows(decay, 400, SIZES)
    precisions = precisions_for(found, share * 400)
    volume, numbers = exactly(found, precisions)
    determinant = sampled(found, count)
    at = determinant.at(precisions)
    bound = determinant.whole.volume(precisions) * 400 / count
    assert at.volume == pytest.approx(volume, rel=0.06)
    assert abs(at.volume - volume) < 0.5 * (bound - volume)
    assert sum(at.effective.values()) == pytest.approx(sum(numbers.values()), rel=0.07)
    for key, number in numbers.items():
        assert at.effective[key] == pytest.approx(number, rel=0.15, abs=1.0), key


@pytest.mark.parametrize("decay", [0.5, 1.0])
def test_neither_sums_of_rows_nor_the_bound_from_some_of_them_know_as_much(decay):
    found = rows(decay, 400, SIZES)
    precisions = precisions_for(found, 250)
    volume, _ = exactly(found, precisions)
    both = told(found, 100)
    assert both.mixed.volume(precisions) < 0.75 * volume
    assert both.sampled.whole.volume(precisions) * 4 > 1.15 * volume
    assert both.volume(precisions) == both.sampled.volume(precisions) == pytest.approx(volume, rel=0.06)
    assert both.effective(precisions) == pytest.approx(both.sampled.effective(precisions), rel=1e-2)


def test_few_effective_parameters_are_told_by_all_rows():
    found = rows(1.0, 400, SIZES)
    both, precisions = told(found, 100), precisions_for(found, 40)
    volume, numbers = exactly(found, precisions)
    assert both.effective(precisions) == pytest.approx(both.mixed.effective(precisions), rel=1e-2)
    assert both.volume(precisions) == pytest.approx(volume, rel=0.05)
    assert sum(both.effective(precisions).values()) == pytest.approx(sum(numbers.values()), rel=0.05)


def test_all_rows_drawn_are_all_there_is_to_know():
    found = rows(1.0, 60, SIZES)
    precisions = precisions_for(found, 40)
    volume, numbers = exactly(found, precisions)
    at = sampled(found, 60).at(precisions)
    assert at.volume == pytest.approx(volume, rel=1e-9)
    assert at.effective == pytest.approx(numbers, rel=1e-6)


def test_rows_that_share_nothing_count_each():
    found = {"a": torch.eye(400, dtype=torch.float64)}
    at = sampled(found, 100).at({"a": 0.5})
    assert at.volume == pytest.approx(400 * math.log(3))
    assert at.effective["a"] == pytest.approx(400 * 2 / 3)


def test_rows_that_are_one_grow_by_what_they_add_to_it():
    found = {"a": torch.ones(400, 1, dtype=torch.float64)}
    volumes = [sampled(found, count).volume({"a": 1.0}) for count in (100, 200, 400)]
    assert volumes[-1] == pytest.approx(math.log1p(400))
    assert abs(volumes[1] - volumes[-1]) < abs(volumes[0] - volumes[-1]) < 0.01 * volumes[-1]


@pytest.mark.parametrize("key", SIZES)
def test_the_slope_of_the_volume_is_the_effective_number(key):
    found = rows(1.0, 400, SIZES)
    determinant, precisions, step = sampled(found, 100), precisions_for(found, 250), 1e-3
    above, below = (determinant.volume(precisions | {key: precisions[key] * math.exp(one)}) for one in (step, -step))
    assert (above - below) / (2 * step) == pytest.approx(-determinant.effective(precisions)[key], rel=1e-3)


def test_no_tensor_has_more_effective_parameters_than_parameters():
    found = rows(0.0, 400, {"a": 300, "c": 40})
    at = sampled(found, 30).at({"a": 1e6, "c": 1e-3})
    assert at.effective["c"] == 40
    assert 0 <= at.effective["a"] <= 1


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_handful_of_rows_gives_finite_numbers(count):
    found = rows(1.0, 400, SIZES)
    at = sampled(found, count).at(dict.fromkeys(SIZES, 1.0))
    assert 0 < at.volume < math.inf
    assert all(0 <= at.effective[key] <= SIZES[key] for key in SIZES)


def test_a_volume_that_no_longer_grows_stays_as_it_is():
    for volumes in ([3.0, 3.0, 3.0], [3.0, 3.0, 2.0], [3.0 - 1e-6, 3.0, 2.0]):
        volume, slopes = _grown(volumes, 2.5)
        assert volume == pytest.approx(3, rel=1e-5)
        assert sum(slopes) == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("volumes", [[9.0, 5.0, 2.6], [9.0, 4.6, 2.3001], [9.0, 8.9, 2.6]])
@pytest.mark.parametrize("doublings", [0.4, 1.0, 6.3])
def test_a_volume_grows_by_an_exponent_that_shrinks_and_with_these_slopes(volumes, doublings):
    whole, half, quarter = (torch.tensor(one, dtype=torch.float64, requires_grad=True) for one in volumes)
    last = torch.log2(whole / half)
    shrinking = last / torch.log2(half / quarter)
    expected = whole * 2 ** (last * shrinking * (1 - shrinking**doublings) / (1 - shrinking))
    volume, slopes = _grown(volumes, doublings)
    assert volume == pytest.approx(expected.item())
    assert slopes == pytest.approx([one.item() for one in torch.autograd.grad(expected, (whole, half, quarter))])


def test_nothing_is_expected_of_rows_that_vanish():
    nothing = Sampled.of({"a": Projected(torch.zeros(8, 3), 3)}, 400)
    assert nothing.volume({"a": 1.0}) == 0
    assert nothing.effective({"a": 1.0}) == {"a": 0}
