import math

import pytest
import torch

from oracles.comparison import assert_same, noise
from oracles.joint import SIZES, exactly, generator, precisions_for, rows, unequal
from symdsl.diagnostics import NumericalError
from symdsl.evidence import JointSketch
from symdsl.evidence.joint import CountSketch


def sketched(found, width, count):
    """Sketches of the columns of every part, and of the rows of all of them by the same draw."""
    drawn = generator(7)
    narrow = {key: CountSketch(part.shape[1], width, drawn)(part) for key, part in found.items()}
    number = len(narrow["a"])
    across, parts = CountSketch(number, count, drawn), {}
    for key, part in narrow.items():
        parts[key] = part.new_zeros(across.width, part.shape[1])
        across.add(parts[key], 0, part)
    return JointSketch(parts, {key: part.shape[1] for key, part in found.items()}, number)


@pytest.mark.parametrize("log_precision", [-7.0, 0.0, 7.0])
def test_without_a_sketch_the_determinant_is_that_of_the_whole_matrix(log_precision):
    found = rows(1.0, 90)
    joint, precisions = sketched(found, 160, 90), unequal(log_precision)
    value, effective = exactly(found, precisions)
    assert joint.sizes == SIZES
    assert joint.at(precisions).value == pytest.approx(value, rel=1e-9)
    assert joint.at(precisions).effective == pytest.approx(effective, rel=1e-6)


def test_what_two_tensors_can_both_explain_counts_once():
    part = rows(0.0, 90)["a"]
    twice = JointSketch(dict.fromkeys(("a", "b"), part), {"a": 100, "b": 100}, 90)
    once = JointSketch({"a": part}, {"a": 100}, 90)
    assert twice.at({"a": 2.0, "b": 2.0}).value == pytest.approx(once.at({"a": 1.0}).value)
    number = once.at({"a": 1.0}).effective["a"]
    assert twice.at({"a": 2.0, "b": 2.0}).effective["b"] == pytest.approx(number / 2)


@pytest.mark.parametrize("decay", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(("width", "count"), [(80, 300), (160, 150), (80, 150)])
@pytest.mark.parametrize("effective", [10, 40])
def test_sketches_know_the_determinant_of_what_they_are_sketches_of(decay, width, count, effective):
    found = rows(decay)
    precisions = precisions_for(found, effective)
    value, numbers = exactly(found, precisions)
    joint = sketched(found, width, count)
    assert joint.at(precisions).value == pytest.approx(value, rel=0.03)
    at = joint.at(precisions).effective
    assert sum(at.values()) == pytest.approx(sum(numbers.values()), rel=0.03)
    for key, number in numbers.items():
        assert at[key] == pytest.approx(number, rel=0.1, abs=0.5), key


def test_without_the_correction_a_sketch_has_far_too_few_effective_parameters():
    found = rows(0.5)
    precisions = precisions_for(found, 40)
    joint = sketched(found, 80, 100)
    inverse = torch.linalg.inv(
        sum(gram / precisions[key] for key, gram in zip(joint.parts, joint._grams, strict=True))
        + torch.eye(joint._grams.shape[1], dtype=torch.float64)
    )
    plain = joint._grams.shape[1] - float(inverse.trace())
    assert plain < 0.9 * 40
    assert sum(joint.at(precisions).effective.values()) == pytest.approx(40, rel=0.05)


@pytest.mark.parametrize(("width", "count"), [(160, 300), (80, 150)])
@pytest.mark.parametrize("key", SIZES)
def test_the_slope_of_the_log_determinant_is_the_effective_number(width, count, key):
    found = rows(1.0)
    precisions, step = precisions_for(found, 30), 1e-3
    joint = sketched(found, width, count)
    above, below = (joint.at(precisions | {key: precisions[key] * math.exp(one)}).value for one in (step, -step))
    assert (above - below) / (2 * step) == pytest.approx(-joint.at(precisions).effective[key], rel=1e-2)


def test_more_effective_parameters_than_dimensions_are_counted_as_no_more_than_there_are():
    found = rows(0.0)
    joint = sketched(found, 50, 80)
    effective = joint.at(dict.fromkeys(SIZES, 1e-9)).effective
    assert 50 < sum(effective.values()) <= 80
    assert all(0 <= effective[key] <= SIZES[key] for key in SIZES)


@pytest.mark.parametrize("left_out", [1, 2])
def test_nearly_all_gradients_stand_for_all_where_most_are_effective(left_out):
    gradients = noise(100, 400)
    whole = JointSketch({"w": gradients}, {"w": 400}, 100.0).at({"w": 0.01})
    kept = 100 - left_out
    some = JointSketch({"w": gradients[:kept]}, {"w": 400}, float(kept)).scaled(100 / kept).at({"w": 0.01})
    assert some.value == pytest.approx(whole.value, rel=0.03)
    assert some.total == pytest.approx(whole.total, rel=0.12)


def test_gradients_that_are_not_finite_are_reported_with_the_tensor():
    broken = JointSketch({"l1.CONV.w": torch.full((3, 2), math.nan)}, {"l1.CONV.w": 2}, 3)
    with pytest.raises(NumericalError, match=r"the curvature of l1\.CONV\.w is not finite"):
        broken.at({"l1.CONV.w": 1.0})


def test_gradients_too_large_for_float64_are_reported():
    huge = JointSketch({"l1.CONV.w": torch.full((3, 2), 1e200, dtype=torch.float64)}, {"l1.CONV.w": 2}, 3)
    with pytest.raises(NumericalError, match="all tensors together has no Cholesky factor"):
        huge.at({"l1.CONV.w": 1.0})


def test_noise_divides_the_matrix():
    found = rows(1.0, 90)
    joint, precisions = sketched(found, 160, 90), unequal(0.0)
    value, effective = exactly({key: part * 0.3**-0.5 for key, part in found.items()}, precisions)
    at = joint.at(precisions, 0.3)
    assert at.value == pytest.approx(value, rel=1e-9)
    assert at.effective == pytest.approx(effective, rel=1e-6)


def test_a_count_sketch_adds_every_number_to_one_sum():
    projection = CountSketch(10, 4, generator())(torch.eye(10))
    assert projection.shape == (10, 4)
    assert set(projection.flatten().tolist()) == {-1.0, 0.0, 1.0}
    assert projection.abs().sum(1).tolist() == [1.0] * 10
    assert sorted(projection.abs().sum(0).tolist()) == [2.0, 2.0, 3.0, 3.0]


def test_a_count_sketch_of_no_fewer_dimensions_leaves_vectors_as_they_are():
    found, total = torch.randn(3, 10), torch.zeros(10, 3)
    assert torch.equal(CountSketch(10, 10, generator())(found), found)
    CountSketch(10, 12, generator()).add(total, 4, found.T[4:])
    assert torch.equal(total[4:], found.T[4:])
    assert not total[:4].any()


def test_rows_are_summed_up_across_batches_as_columns_are():
    found, sketch = torch.randn(10, 3, dtype=torch.float64), CountSketch(10, 4, generator())
    total = torch.zeros(4, 3, dtype=torch.float64)
    for start in (0, 4, 8):
        sketch.add(total, start, found[start : start + 4])
    assert_same(total, sketch(found.T).T)


def test_a_sample_of_the_gradients_times_their_number_stands_for_all_of_them():
    generator = torch.Generator().manual_seed(4)
    scale = torch.linspace(0.02, 1, 120).double() ** 3
    found = torch.randn(3000, 120, dtype=torch.float64, generator=generator) * scale
    whole, sample = (JointSketch({"a": part}, {"a": 120}, float(len(part))) for part in (found, found[:200]))
    precisions = {"a": 30.0}
    exact, scaled = whole.at(precisions), sample.scaled(15).at(precisions)
    plain = JointSketch({"a": found[:200] * 15**0.5}, {"a": 120}, 200.0).at(precisions)
    assert scaled.effective["a"] == pytest.approx(exact.effective["a"], rel=0.03)
    assert abs(plain.effective["a"] - exact.effective["a"]) > 2 * abs(scaled.effective["a"] - exact.effective["a"])
