import math

import pytest
import torch

from oracles.comparison import assert_same
from symdsl.curvature.sketch import Sketch, Sketched

SIZE = 600


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def rows(decay, count=900):
    """Rows whose second moments fall off as i^-decay along random directions."""
    basis, _ = torch.linalg.qr(torch.randn(SIZE, SIZE, generator=generator(), dtype=torch.float64))
    scales = torch.arange(1, SIZE + 1, dtype=torch.float64) ** (-decay / 2)
    return torch.randn(count, SIZE, generator=generator(1), dtype=torch.float64) * scales @ basis.T


def sketched(found, width, seed=0):
    projected = Sketch(SIZE, width, generator(seed))([found])
    return Sketched(torch.linalg.eigvalsh(projected.T @ projected).clamp(min=0), SIZE)


def exactly(found, precision):
    values = torch.linalg.eigvalsh(found.T @ found).clamp(min=0)
    return float(torch.log1p(values / precision).sum()), float((values / (values + precision)).sum())


def test_a_sketch_sums_up_every_number_once():
    projection = Sketch(10, 4, generator())([torch.eye(10)])
    assert projection.shape == (10, 4)
    assert set(projection.flatten().tolist()) == {-1.0, 0.0, 1.0}
    assert projection.abs().sum(1).tolist() == [1.0] * 10
    assert sorted(projection.abs().sum(0).tolist()) == [2.0, 2.0, 3.0, 3.0]


def test_a_sketch_of_no_fewer_dimensions_leaves_rows_as_they_are():
    found = torch.randn(3, 10)
    assert torch.equal(Sketch(10, 10, generator())(found.split(4, 1)), found)


def test_the_parts_of_rows_are_sketched_as_the_whole():
    found, projection = torch.randn(3, 10, dtype=torch.float64), Sketch(10, 4, generator())
    assert_same(projection(found.split(3, 1)), projection([found]))


def test_rows_of_another_size_are_refused():
    with pytest.raises(ValueError, match="rows of 9 numbers, for a sketch of 10"):
        Sketch(10, 4, generator())([torch.ones(2, 9)])


@pytest.mark.parametrize("decay", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("width", [200, 400])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_a_sketch_knows_the_determinant_and_the_effective_number_of_what_it_is_a_sketch_of(decay, width, share):
    found = rows(decay)
    one = sketched(found, width)
    precision = _precision(found, share * len(one.values))
    volume, effective = exactly(found, precision)
    at = one.at(precision)
    assert at.volume == pytest.approx(volume, rel=0.02)
    assert at.effective == pytest.approx(effective, rel=0.02)


def _precision(found, effective):
    """At which the rows have so many effective parameters."""
    low, high = -40.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if exactly(found, math.exp(middle))[1] > effective else (low, middle)
    return math.exp(low)


@pytest.mark.parametrize("precision", [1e-3, 0.5, 1e3])
def test_a_sketch_of_all_dimensions_is_exact(precision):
    found = rows(1.0, 50)
    volume, effective = exactly(found, precision)
    at = sketched(found, SIZE).at(precision)
    assert at.volume == pytest.approx(volume, rel=1e-9)
    assert at.effective == pytest.approx(effective, rel=1e-9)


def test_a_sketch_does_not_tell_of_more_effective_parameters_than_it_has_dimensions():
    found = rows(0.5)
    one = sketched(found, 100)
    assert one.at(_precision(found, 85)) is not None
    assert one.at(_precision(found, 105)) is None
    assert one.at(1e-12) is None


@pytest.mark.parametrize("width", [300, SIZE])
def test_the_slope_of_the_volume_is_the_effective_number(width):
    one, step = sketched(rows(1.0), width), 1e-5
    precision = _precision(rows(1.0), 150)
    slope = (one.at(precision * math.exp(step)).volume - one.at(precision * math.exp(-step)).volume) / (2 * step)
    assert slope == pytest.approx(-one.at(precision).effective, rel=1e-6)


def test_the_sketch_of_a_multiple_is_the_multiple_of_the_sketch():
    one = sketched(rows(1.0), 300)
    assert one.scaled(7.0).at(7.0 * 3.0).volume == pytest.approx(one.at(3.0).volume, rel=1e-9)
