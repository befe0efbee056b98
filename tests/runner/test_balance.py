import pytest
import torch

from runner_specs import learner
from symdsl import lowering, parse
from symdsl.runner.balance import balanced_steps
from symdsl.runner.learner import layer_records

LIFTED = """
data synthetic(size = 8, classes = 3, train = 32, test = 8) |> standardize

network lifted {{
  input image(channels, 8, 8)
  lift p4
  layer l1: CONV(3) -> 2 |> relu
  layer l2: {candidates} -> 3 stride 2 |> relu
  project max
  flatten
  layer h1: FC -> classes
}}
"""


def lifted(candidates):
    return parse(LIFTED.format(candidates=candidates))


@torch.no_grad()
def moved(path, tensor, amount):
    """How far outputs move for inputs of one if all weights of a tensor move by an amount, the others at one level."""
    for name, parameter in path.named_parameters():
        parameter.data.fill_(0 if name == tensor else 1 / path.w1.shape[1] if name == "w1" else 1)
    before = path(torch.ones(1, 8, 8, 8))
    dict(path.named_parameters())[tensor].data += amount
    return float((path(torch.ones(1, 8, 8, 8)) - before).max())


@pytest.mark.parametrize(
    ("candidates", "keeping", "tensors"),
    [
        ("CONV(3) + GCONV(3, factor = pointwise)", "GCONV", ["CONV.w"]),
        ("F-FC + GCONV(3, factor = pointwise)", "GCONV", ["F-FC.w2"]),
        ("FC + GCONV(3)", "GCONV", ["FC.w"]),
        ("FC + CONV(5)", "CONV", ["FC.w"]),
        ("F-FC + CONV(3) + GCONV(3, factor = pointwise)", "GCONV", ["F-FC.w2", "CONV.w"]),
    ],
)
def test_what_breaks_a_symmetry_moves_an_output_no_further_than_what_keeps_it(candidates, keeping, tensors):
    spec = lifted(candidates)
    factors = balanced_steps(layer_records(spec.facts))
    assert sorted(factors) == sorted(f"l2.{tensor}" for tensor in tensors)
    paths = dict(lowering.compile(spec, 0).layers())["l2"].paths
    kept = moved(paths[keeping], "w", 0.01)
    for tensor in tensors:
        path, name = tensor.split(".")
        assert moved(paths[path], name, 0.01) > kept
        assert moved(paths[path], name, 0.01 * factors[f"l2.{tensor}"]) == pytest.approx(kept, rel=1e-5)


@pytest.mark.parametrize("candidates", ["CONV(3)", "F-FC", "CONV(3) + GCONV(3)", "CONV(3) + CONV(5)"])
def test_what_sums_no_more_takes_whole_steps(candidates):
    assert balanced_steps(layer_records(lifted(candidates).facts)) == {}


def test_first_steps_are_shorter_by_the_factors(small):
    adam = "adam(lr = 0.01, steps = absolute, schedule = constant{})"
    plain, balanced = (learner(small(search__optimizer=adam.format(extra))) for extra in ("", ", balanced"))
    factors = balanced_steps(layer_records(balanced.facts))
    assert factors
    before = {key: parameter.detach().clone() for key, parameter in plain.parameters.items()}
    for one in (plain, balanced):
        one._set_learning_rates(0.0, one._step_factors())
        one._train_step(one.train)
    for key, start in before.items():
        expected = start + factors.get(key, 1.0) * (plain.parameters[key] - start)
        torch.testing.assert_close(balanced.parameters[key], expected, rtol=1e-4, atol=1e-6)


def test_steps_in_the_scales_are_whole(small):
    one = learner(small(search__optimizer="adam(balanced, scales)"))
    steps = dict(zip(one._trained, one._step_factors(), strict=True))
    assert {factor for key, factor in steps.items() if key.endswith("/scale")} == {1.0}
    assert {key for key, factor in steps.items() if factor < 1} == set(balanced_steps(layer_records(one.facts)))
