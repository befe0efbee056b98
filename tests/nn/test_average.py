"""Averages as modules: which transformations they take, what they follow, and what their ranges do."""

from __future__ import annotations

import math

import pytest
import torch

from limits import noise
from oracles.averages import points
from oracles.comparison import assert_same
from oracles.equivariance import moved
from oracles.records import Chain, candidate
from symdsl import lowering, parse
from symdsl.catalog.networks import GENERATORS
from symdsl.evidence import Categorical, Exact, estimate
from symdsl.evidence.laplace import CURVATURES
from symdsl.nn import Average, Network
from symdsl.nn.average import LARGEST, lattice, uniform

FC, CONV = candidate("FC"), candidate("CONV")


def network(samples: int = 5, **ranges: float) -> Network:
    chain = Chain(1, 6, 6).average(ranges, samples).flatten().layer(FC, channels=4, activations=("tanh",)).mean()
    return lowering.build(tuple(chain.layer(FC, channels=3).nodes), 0).double().eval()


def average(**ranges: float) -> Average:
    return Average(ranges, 8).double().eval()


@pytest.mark.parametrize(("samples", "dimensions"), [(1, 1), (2, 1), (31, 1), (5, 2), (16, 2)])
def test_the_lattice_is_what_its_formula_says(samples: int, dimensions: int) -> None:
    assert_same(lattice(samples, dimensions), torch.tensor(points(samples, dimensions), dtype=torch.float64), 1e-12)


@pytest.mark.parametrize("dimensions", range(1, 7))
def test_points_mirror_each_other_and_leave_no_large_gap(dimensions: int) -> None:
    found = lattice(64, dimensions)
    assert_same(found.flip(0), -found, 1e-9)
    for column in found.T:
        gaps = column.sort().values.diff()
        assert float(gaps.max()) < 0.25
    assert len({tuple(row) for row in found.round(decimals=6).tolist()}) == 64


def test_drawn_points_are_uniform_and_independent() -> None:
    drawn = uniform(40_000, 2, torch.Generator().manual_seed(0))
    assert float(drawn.mean(0).abs().max()) < 0.02
    assert_same(drawn.T.cov(), torch.eye(2, dtype=torch.float64) / 3, 0.01)
    assert float(drawn.abs().max()) <= 1


def test_ranges_of_zero_leave_a_blurred_image() -> None:
    x = noise(2, parse_shape())
    one, *others = average(rotation=0.0, shear=0.0)(x).unflatten(0, (2, 8)).unbind(1)
    for other in others:
        assert_same(other, one, 1e-12)
    flat = torch.full_like(x, 0.7)
    assert_same(average(rotation=90.0, translate_x=0.3)(flat), flat.repeat_interleave(8, 0), 1e-12)


def parse_shape():  # type: ignore[no-untyped-def]
    return Chain(1, 6, 6).shape


def test_a_range_is_the_largest_angle_in_degrees() -> None:
    matrices = average(rotation=40.0).matrices(6, 6)
    angles = torch.atan2(matrices[:, 1, 0], matrices[:, 0, 0]).rad2deg()
    assert_same(angles, 40 * lattice(8, 1)[:, 0], 1e-9)


@pytest.mark.parametrize(
    ("generator", "entry", "value"),
    [
        ("translate_x", (0, 2), lambda eps: 2 * 0.25 * eps),
        ("translate_y", (1, 2), lambda eps: 2 * 0.25 * eps),
        ("scale_x", (0, 0), lambda eps: math.exp(0.25 * eps)),
        ("scale_y", (1, 1), lambda eps: math.exp(0.25 * eps)),
        ("shear", (0, 1), lambda eps: math.sinh(0.25 * eps)),
    ],
)
def test_ranges_are_fractions_of_a_side_and_logarithms(generator: str, entry: tuple[int, int], value) -> None:  # type: ignore[no-untyped-def]
    matrices = average(**{generator: 0.25}).matrices(6, 6)
    expected = [value(eps) for eps in lattice(8, 1)[:, 0].tolist()]
    assert_same(matrices[:, entry[0], entry[1]], torch.tensor(expected, dtype=torch.float64), 1e-9)


def test_turns_of_the_input_pass_through_an_average_over_all_turns() -> None:
    chain = Chain(1, 6, 6).average({"rotation": 180.0}, 8).flatten().layer(FC, channels=4, activations=("tanh",))
    net = lowering.build(tuple(chain.mean().nodes), 0).double().eval()
    x = noise(3, parse_shape())
    assert_same(net(moved(x, (1, 0))), net(x), 1e-9)
    net.set_ranges({"average-1.rotation": 60.0})
    assert float((net(moved(x, (1, 0))) - net(x)).detach().abs().max()) > 1e-3


def test_training_draws_and_evaluation_does_not() -> None:
    net, x = network(rotation=50.0), noise(2, parse_shape())
    assert_same(net(x), net(x), 1e-14)
    net.train()
    outputs = []
    for seed in (0, 0, 1):
        net.draw_from(torch.Generator().manual_seed(seed))
        outputs.append(net(x))
    assert_same(outputs[0], outputs[1], 1e-14)
    assert float((outputs[0] - outputs[2]).detach().abs().max()) > 1e-4


def test_the_mean_of_drawn_passes_is_the_integral() -> None:
    net, x = network(samples=3, rotation=50.0), noise(1, parse_shape())
    fine = network(samples=400, rotation=50.0)
    fine.load_state_dict(net.state_dict())
    net.train()
    sums = torch.zeros(1, 3, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    for _ in range(300):
        net.draw_from(generator)
        sums += net(x).detach()
    expected = fine(x).detach()
    assert float((sums / 300 - expected).abs().max()) < 0.02 * float(expected.abs().max())


def test_ranges_stay_within_the_bounds_of_the_language() -> None:
    assert {one.name: one.type.maximum for one in GENERATORS} == LARGEST  # type: ignore[union-attr]
    net = network(rotation=5.0, shear=0.1)
    net.set_ranges({"average-1.rotation": 500.0, "average-1.shear": -1.0})
    assert net.ranges() == {"average-1.rotation": 180.0, "average-1.shear": 0.0}
    for key in ("average-1.scale_x", "l1.rotation", "nothing.rotation", "rotation"):
        with pytest.raises(KeyError):
            net.set_ranges({key: 1.0})
    with pytest.raises(ValueError, match=r"`rotation` \(=nan\) must be a number"):
        net.set_ranges({"average-1.rotation": math.nan})


def test_ranges_are_kept_with_the_weights_and_are_no_parameters() -> None:
    net, other = network(rotation=5.0), network(rotation=50.0)
    assert "average-1.ranges" in net.state_dict()
    assert not [key for key in net.tensors() if key.startswith("average")]
    other.load_state_dict(net.state_dict())
    assert other.ranges() == net.ranges() == {"average-1.rotation": 5.0}


def test_curvature_takes_the_transformations_of_the_evaluation() -> None:
    net, x = network(rotation=50.0), noise(3, parse_shape())
    y = torch.zeros(3).long()

    def loss() -> float:
        return estimate(net, x, y, Categorical(), Exact(), torch.Generator(), CURVATURES["kfac-expand"]).loss

    expected = loss()
    net.train()
    assert loss() == expected
    assert net.training


def test_a_spec_is_lowered_to_what_it_says() -> None:
    text = """data digits(size = 8)
network n {
  input image(1, 8, 8)
  average affine(rotation = 5, shear = 0.2, samples = 6, fixed) {
    flatten
    layer h1: FC -> 4 |> relu
  }
  layer out: FC -> classes
}"""
    net = lowering.compile(parse(text))
    ((name, found),) = net.averages()
    assert (name, found.samples, found.fixed, found.stated()) == ("average", 6, True, {"rotation": 5.0, "shear": 0.2})
    assert net(torch.zeros(2, 1, 8, 8)).shape == (2, 10)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_network_of_half_precision_moves_images_as_far(dtype: torch.dtype) -> None:
    one, x = average(rotation=20.0, translate_x=0.25), noise(2, parse_shape())
    expected = one(x)
    assert_same(one.to(dtype)(x.to(dtype)).double(), expected, 0.02)
