import math

import pytest
import torch

from oracles.together import SIZES, exactly, generator, left_of, precisions_for, rows, unequal
from symdsl.diagnostics import NumericalError
from symdsl.evidence import Joint
from symdsl.evidence.joint import Projected
from symdsl.evidence.sketch import Sketch


def projected(found, width, count):
    drawn = generator(7)
    narrow = {key: Sketch(part.shape[1], width, drawn)([part]) for key, part in found.items()}
    mixed = left_of(narrow, Sketch(len(narrow["a"]), count, drawn))
    return Joint.of({key: Projected(mixed[key].rows, part.shape[1]) for key, part in found.items()}, len(narrow["a"]))


@pytest.mark.parametrize("log_precision", [-7.0, 0.0, 7.0])
def test_without_a_projection_the_determinant_is_that_of_the_whole_matrix(log_precision):
    found = rows(1.0, 90)
    joint, precisions = projected(found, 160, 90), unequal(log_precision)
    volume, effective = exactly(found, precisions)
    assert joint.sizes == SIZES
    assert joint.volume(precisions) == pytest.approx(volume, rel=1e-9)
    assert joint.effective(precisions) == pytest.approx(effective, rel=1e-6)


def test_what_two_tensors_can_both_explain_counts_once():
    part = rows(0.0, 90)["a"]
    twice = Joint.of({key: Projected(part, 100) for key in ("a", "b")}, 90)
    once = Joint.of({"a": Projected(part, 100)}, 90)
    assert twice.volume({"a": 2.0, "b": 2.0}) == pytest.approx(once.volume({"a": 1.0}))
    assert twice.effective({"a": 2.0, "b": 2.0})["b"] == pytest.approx(once.effective({"a": 1.0})["a"] / 2)


@pytest.mark.parametrize("decay", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(("width", "count"), [(80, 300), (160, 150), (80, 150)])
@pytest.mark.parametrize("effective", [10, 40])
def test_projections_know_the_determinant_of_what_they_are_projections_of(decay, width, count, effective):
    found = rows(decay)
    precisions = precisions_for(found, effective)
    volume, numbers = exactly(found, precisions)
    joint = projected(found, width, count)
    assert joint.volume(precisions) == pytest.approx(volume, rel=0.03)
    at = joint.effective(precisions)
    assert sum(at.values()) == pytest.approx(sum(numbers.values()), rel=0.03)
    for key, number in numbers.items():
        assert at[key] == pytest.approx(number, rel=0.1, abs=0.5), key


def test_without_the_correction_a_projection_has_far_too_few_effective_parameters():
    found = rows(0.5)
    precisions = precisions_for(found, 40)
    joint = projected(found, 80, 100)
    inverse = torch.linalg.inv(
        sum(gram / precisions[key] for key, gram in zip(joint.keys, joint.grams, strict=True))
        + torch.eye(joint.grams.shape[1], dtype=torch.float64)
    )
    plain = joint.grams.shape[1] - float(inverse.trace())
    assert plain < 0.9 * 40
    assert sum(joint.effective(precisions).values()) == pytest.approx(40, rel=0.05)


@pytest.mark.parametrize(("width", "count"), [(160, 300), (80, 150)])
@pytest.mark.parametrize("key", SIZES)
def test_the_slope_of_the_volume_is_the_effective_number(width, count, key):
    found = rows(1.0)
    precisions, step = precisions_for(found, 30), 1e-3
    joint = projected(found, width, count)
    above, below = (joint.volume(precisions | {key: precisions[key] * math.exp(one)}) for one in (step, -step))
    assert (above - below) / (2 * step) == pytest.approx(-joint.effective(precisions)[key], rel=1e-2)


def test_more_effective_parameters_than_dimensions_are_counted_as_no_more_than_there_are():
    found = rows(0.0)
    joint = projected(found, 50, 80)
    effective = joint.effective(dict.fromkeys(SIZES, 1e-9))
    assert 50 < sum(effective.values()) <= 80
    assert all(0 <= effective[key] <= SIZES[key] for key in SIZES)


def test_gradients_that_are_not_finite_are_reported_with_the_tensor():
    broken = torch.full((3, 2), math.nan)
    with pytest.raises(NumericalError, match=r"the curvature of l1\.CONV\.w is not finite"):
        Joint.of({"l1.CONV.w": Projected(broken, 2)}, 3)


def test_gradients_too_large_for_float64_are_reported():
    huge = Joint.of({"l1.CONV.w": Projected(torch.full((3, 2), 1e200, dtype=torch.float64), 2)}, 3)
    with pytest.raises(NumericalError, match="all tensors together has no Cholesky factor"):
        huge.effective({"l1.CONV.w": 1.0})
