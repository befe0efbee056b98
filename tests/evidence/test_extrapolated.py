import pytest
import torch

from oracles.joint import generator
from symdsl.evidence import ExtrapolatedSketch, Factor, JointSketch, Kronecker, KroneckerFactors

OUT, IN, EXAMPLES, LOOKED_AT = 12, 25, 4000, 100
NUMBER = OUT * IN


def spectra():
    """Variances of output gradients and of inputs, both falling by three orders of magnitude."""
    return torch.logspace(0, -3, OUT, dtype=torch.float64), torch.logspace(0, -3, IN, dtype=torch.float64)


def products(count, drawn):
    """Gradients `[n, parameter]` whose second moment is the Kronecker product of the spectra."""
    left, right = spectra()
    g = torch.randn(count, OUT, dtype=torch.float64, generator=drawn) * left.sqrt()
    a = torch.randn(count, IN, dtype=torch.float64, generator=drawn) * right.sqrt()
    return (g[:, :, None] * a[:, None, :]).flatten(1)


def kronecker():
    """The sum of these second moments over all examples."""
    left, right = spectra()
    return Kronecker(Factor(torch.diag(left)[None]), Factor(EXAMPLES * torch.diag(right)[None]))


def both(parts, factors, looked_at=LOOKED_AT):
    """A sketch of some of all examples, with the Kronecker factors of all."""
    sketch = JointSketch(parts, dict.fromkeys(parts, NUMBER), float(looked_at)).scaled(EXAMPLES / looked_at)
    return ExtrapolatedSketch(sketch, KroneckerFactors(factors))


def one_tensor(looked_at=LOOKED_AT):
    return both({"a": products(looked_at, generator(3))}, {"a": kronecker()}, looked_at)


@pytest.mark.parametrize("precision", [0.1, 1.0, 10.0])
def test_a_saturated_sketch_is_extrapolated_by_kronecker_factors(precision):
    found = one_tensor()
    exact = found.factors.at({"a": precision}).effective["a"]
    sketched = found.sketch.at({"a": precision}).effective["a"]
    assert exact > LOOKED_AT
    assert sketched <= LOOKED_AT
    assert found.at({"a": precision}).effective["a"] == pytest.approx(exact, rel=0.15)


def test_a_sketch_that_is_not_saturated_counts_alone():
    found = one_tensor()
    precisions = {"a": 3000.0}
    at = found.at(precisions)
    assert 1 < at.effective["a"] < LOOKED_AT / 2
    assert at == found.sketch.at(precisions)
    assert found.sketch.unsaturated_level(precisions) == 1


def test_no_tensor_counts_more_than_its_kronecker_factors_say():
    found = one_tensor()
    few = ExtrapolatedSketch(found.sketch, found.factors.scaled(0.01))
    at, alone = few.at({"a": 1.0}), few.factors.at({"a": 1.0})
    assert found.sketch.at({"a": 1.0}).effective["a"] > 1.5 * alone.effective["a"]
    assert at.effective["a"] == pytest.approx(alone.effective["a"])


def test_what_two_tensors_can_both_explain_counts_once_beyond_the_sketch():
    part = products(LOOKED_AT, generator(3))
    twice = both(dict.fromkeys(("a", "b"), part), dict.fromkeys(("a", "b"), kronecker()))
    once = one_tensor()
    number = once.at({"a": 1.0}).effective["a"]
    found = twice.at({"a": 2.0, "b": 2.0}).effective
    assert found["a"] == pytest.approx(found["b"])
    assert sum(found.values()) == pytest.approx(number, rel=0.25)
    assert sum(twice.factors.at({"a": 2.0, "b": 2.0}).effective.values()) > 1.5 * number


def test_no_gradient_left_out_needs_no_extrapolation():
    parts = {"a": products(LOOKED_AT, generator(3))}
    sketch = JointSketch(parts, {"a": NUMBER}, float(LOOKED_AT))
    found = ExtrapolatedSketch(sketch, KroneckerFactors({"a": kronecker()}))
    assert found.at({"a": 1e-6}) == sketch.at({"a": 1e-6})
    assert found.at({"a": 1e-6}).effective["a"] == pytest.approx(LOOKED_AT, rel=0.01)


@pytest.mark.parametrize("noise", [1.0, 0.2])
def test_about_half_of_a_sketch_is_effective_at_the_unsaturated_level(noise):
    sketch = one_tensor().sketch
    level = sketch.unsaturated_level({"a": 0.5}, noise)
    assert level > 10
    assert sketch.at({"a": 0.5 * level}, noise).effective["a"] == pytest.approx(LOOKED_AT / 2, rel=0.05)
    assert sketch.unsaturated_level({"a": 0.5 * level}, noise) == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize("times", [1.25, 2.0, 10.0])
def test_the_unsaturated_level_knows_how_many_gradients_a_sketch_stands_for(times):
    sketch = JointSketch({"a": products(LOOKED_AT, generator(3))}, {"a": NUMBER}, times * LOOKED_AT)
    level = sketch.unsaturated_level({"a": 0.01})
    assert level > 1
    assert sketch.at({"a": 0.01 * level}).effective["a"] == pytest.approx(LOOKED_AT / 2, rel=5e-3)


def test_a_sketch_of_one_gradient_has_an_unsaturated_level():
    for seed in range(5):
        sketch = JointSketch({"a": products(1, generator(seed))}, {"a": NUMBER}, 40.0)
        level = sketch.unsaturated_level({"a": 1e-4})
        assert sketch.at({"a": 1e-4 * level}).effective["a"] == pytest.approx(0.5, rel=0.05)


def test_counts_have_no_jump_where_a_sketch_becomes_saturated():
    found = one_tensor()
    edge = 0.5 * found.sketch.unsaturated_level({"a": 0.5})
    below, above = (found.at({"a": edge * factor}).effective["a"] for factor in (0.999, 1.001))
    assert below == pytest.approx(above, rel=0.01)


def test_counts_follow_the_noise_as_they_follow_the_precision():
    found = one_tensor()
    first, second = found.at({"a": 4.0}), found.at({"a": 16.0}, 0.25)
    assert first.effective["a"] == pytest.approx(second.effective["a"])
    assert first.value == pytest.approx(second.value)
