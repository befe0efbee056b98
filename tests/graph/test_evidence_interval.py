"""How many training steps lie between evidence steps."""

from __future__ import annotations

import attrs
import pytest
import torch

from symdsl.evidence import CURVATURES, Categorical, KroneckerFactors, Rademacher, estimate
from symdsl.graph.build import chain
from symdsl.graph.cost import (
    EIGENVALUE_COST,
    EVIDENCE_SHARE,
    RELATIVE_COST,
    evidence_interval,
    joint_columns,
    multiply_adds,
)
from symdsl.lowering import compile
from symdsl.spec import Spec, parse

SPEC = """
data digits
network n {
  input image(1, 8, 8)
  layer l1: F-FC + CONV(3) -> 4 |> relu
  flatten
  layer h: FC -> classes
}
"""


def interval(spec: Spec, curvature: str, examples: int, batch: int) -> int:
    return evidence_interval(chain(spec.graph()), curvature, examples, batch)


@pytest.mark.parametrize(("curvature", "cost"), [("joint", "joint"), ("kfac-expand", "kfac")])
@pytest.mark.parametrize(("examples", "batch"), [(256, 128), (16, 128), (1000, 7)])
def test_curvature_costs_training_on_some_more_examples_and_eigenvalues(
    curvature: str, cost: str, examples: int, batch: int
):
    """A block has as many eigenvalues as it has rows, or as examples use it if they are fewer.

    The output factor of F-FC's outer tensor adds up the gradients of all four blocks.
    """
    outer, dense = min(64, 4 * examples), [(4, 1), (1, 4), (1, 64), (1, 10), (1, 256)]
    convolution = [(1, 4), (1, 9)]
    cubes = sum(blocks * min(side, examples) ** 3 for blocks, side in dense) + sum(side**3 for _, side in convolution)
    cubes += outer**3
    training = 3 * batch * multiply_adds(parse(SPEC).graph())
    steps = RELATIVE_COST[cost] * examples / batch + EIGENVALUE_COST * cubes / training
    assert 0 <= interval(parse(SPEC), curvature, examples, batch) - steps / EVIDENCE_SHARE < 1


@pytest.mark.parametrize("examples", [256, 16])
def test_copies_of_an_average_are_examples_of_training_and_of_the_factors(examples: int):
    average = "average affine(rotation = 5, samples = 3) {\n  layer l1"
    spec = parse(SPEC.replace("layer l1", average).replace("flatten", "flatten\n  }"))
    copied, dense = [1, 1, 1, 1, 4, 64, 4, 9], [10, 256]
    cubes = sum(min(side, 3 * examples) ** 3 for side in copied) + sum(min(side, examples) ** 3 for side in dense)
    cubes += min(64, 4 * 3 * examples) ** 3  # of the output factor of F-FC's outer tensor, which has four blocks
    training = 3 * 128 * multiply_adds(spec.graph())
    steps = RELATIVE_COST["kfac"] * examples / 128 + EIGENVALUE_COST * cubes / training
    assert 0 <= interval(spec, "kfac-expand", examples, 128) - steps / EVIDENCE_SHARE < 1


AVERAGED = """
data digits
network n {
  input image(1, 8, 8)
  average affine(rotation = 5, samples = 3) {
    layer l1: F-FC + CONV(3) + S-CONV(5) -> 4 |> relu
    layer l2: S-FC + CONV(3) -> 6
  }
  lift p4
  layer g: GCONV(3) + F-GFC -> 8
  project max
  flatten
  layer h: FC -> classes
}
"""


@pytest.mark.parametrize("curvature", ["kfac-expand", "kfac-reduce"])
@pytest.mark.parametrize("examples", [3, 40])
def test_as_many_eigenvalues_are_counted_as_the_factors_have(curvature: str, examples: int):
    spec = parse(AVERAGED)
    net, y = compile(spec), torch.arange(examples) % 10
    x, drawn = torch.randn(examples, 1, 8, 8), torch.Generator().manual_seed(0)
    found = estimate(net, x, y, Categorical(), Rademacher(1), drawn, CURVATURES[curvature])
    assert isinstance(found.ggn, KroneckerFactors)
    weights = [block for key, block in found.ggn.blocks.items() if not key.endswith(".bias")]
    factors = [one.kept for block in weights for one in (block.output, block.input)]
    cubes = sum(len(one) * min(one.shape[1:]) ** 3 for one in factors)
    training = 3 * 128 * multiply_adds(spec.graph())
    steps = RELATIVE_COST["kfac"] * examples / 128 + EIGENVALUE_COST * cubes / training
    assert 0 <= interval(spec, curvature, examples, 128) - steps / EVIDENCE_SHARE < 1


@pytest.mark.parametrize("curvature", ["joint", "kfac-expand"])
def test_residual_blocks_cost_a_forward_pass_each_and_the_joint_matrix(curvature: str):
    plain = "layer r: CONV(3) -> 4 |> relu\n  layer s: CONV(3) -> 4\n  "
    with_blocks, without = (
        parse(SPEC.replace("flatten", text + "flatten")) for text in (f"residual {{ {plain} }}\n  ", plain)
    )
    joint = 0.0 if curvature == "joint" else RELATIVE_COST["joint"]
    expected = (joint + 1 / 3) * 256 / 128 / EVIDENCE_SHARE
    found = interval(with_blocks, curvature, 256, 128) - interval(without, curvature, 256, 128)
    assert abs(found - expected) < 1


@pytest.mark.parametrize(
    ("task", "classes", "columns"), [("classification", 5, 1), ("regression", 1, 1), ("regression", 40, 16)]
)
def test_a_regression_takes_up_to_sixteen_gradients_of_each_example(task: str, classes: int, columns: int):
    data = attrs.evolve(parse(SPEC).facts.data, task=task, classes=classes)
    assert joint_columns(data) == columns
    nodes, one = list(chain(parse(SPEC).graph())), interval(parse(SPEC), "joint", 256, 128)
    assert evidence_interval(nodes, "joint", 256, 128, columns) - one == pytest.approx(
        (columns - 1) * RELATIVE_COST["joint"] * 2 / EVIDENCE_SHARE, abs=1
    )
    assert evidence_interval(nodes, "kfac-expand", 256, 128, columns) == interval(parse(SPEC), "kfac-expand", 256, 128)
