import pytest
import torch

from oracles.comparison import assert_same
from symdsl.evidence.sketch import OuterSketch, Sample, Sketch


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


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


def test_rows_are_summed_up_across_batches_as_columns_are():
    found, projection = torch.randn(10, 3, dtype=torch.float64), Sketch(10, 4, generator())
    total = torch.zeros(4, 3, dtype=torch.float64)
    for start in (0, 4, 8):
        projection.add(total, start, found[start : start + 4])
    assert_same(total, projection([found.T]).T)


def test_rows_stay_as_they_are_where_there_are_no_more_than_asked_for():
    found, total = torch.randn(10, 3), torch.zeros(10, 3)
    Sketch(10, 12, generator()).add(total, 4, found[4:])
    assert torch.equal(total[4:], found[4:])
    assert not total[:4].any()


def test_a_sketch_of_outer_products_keeps_their_inner_products_in_the_mean():
    a, g = torch.randn(6, 9, dtype=torch.float64), torch.randn(6, 5, dtype=torch.float64)
    projected = OuterSketch(5, 9, 1 << 18, generator())(a, g)
    assert projected.shape == (6, 1 << 18)
    assert_same(projected @ projected.T, (a @ a.T) * (g @ g.T), 0.05)


def test_a_sample_keeps_rows_as_they_are_each_at_most_once():
    found, sample = torch.arange(20.0).unsqueeze(1), Sample(20, 6, generator())
    total = torch.full((6, 1), -1.0)
    for start in (0, 7, 14):
        sample.add(total, start, found[start : start + 7])
    kept = total.flatten().tolist()
    assert len(set(kept)) == 6
    assert set(kept) <= set(range(20))


def test_the_order_of_a_sample_is_drawn_so_that_a_half_of_it_is_a_sample():
    found = torch.arange(1000.0).unsqueeze(1)
    halves = []
    for seed in range(20):
        total = torch.zeros(100, 1)
        Sample(1000, 100, generator(seed)).add(total, 0, found)
        halves.append(float(total[:50].mean()))
    assert sum(halves) / len(halves) == pytest.approx(499.5, abs=30)
