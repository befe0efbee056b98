"""Ranges of averages: the slope of the evidence, how a search moves them, and where they are written down."""

from __future__ import annotations

import json
import math

import pytest
import torch
from torch.func import functional_call, jacrev

import symdsl
from oracles.comparison import assert_same
from oracles.dense import root_of_hessian
from oracles.records import Chain, candidate
from runner.test_search import Interrupting, timeless
from runner_specs import structure
from symdsl import lowering, runner
from symdsl.evidence import CURVATURES, Categorical, Exact, estimate, laplace_of
from symdsl.nn import Network
from symdsl.runner import ranges, searching
from symdsl.spec import parse

FC = candidate("FC")
TURNED = """
data digits(size = 8) |> rotate(degrees = 180) |> standardize |> subset(n = 200, test = 50)

network turned {
  input image(1, 8, 8)
  average affine(rotation = 20, translate_x = 0, samples = 5) {
    flatten
    layer h1: FC -> 6 |> relu
  }
  layer out: FC -> classes
}

search {
  epochs = 4
  every = 2
  batch = 40
  examples = 50
}
"""


def turned(text: str = TURNED, **overrides: object) -> symdsl.Spec:
    return parse(text, {key.replace("__", "."): value for key, value in overrides.items()}, source="turned.sym")


def test_the_ranges_of_a_block_that_has_left_stay_and_cost_nothing() -> None:
    text = (
        "data synthetic(size = 4) |> standardize\n\nnetwork net {\n  input image(1, 4, 4)\n  layer stem: CONV(3) -> 4\n"
        "  residual {\n    average affine(rotation = 10, samples = 2) {\n      layer q: CONV(3) -> 4\n    }\n"
        "    layer z: CONV(3) -> 4\n  }\n  flatten\n  layer h: FC -> classes\n}\n"
    )
    net = symdsl.compile(parse(text))
    moved, calls = ranges.Ranges(net), 0

    def rising() -> float:
        nonlocal calls
        calls += 1
        return net.ranges()["average.rotation"]

    moved.step(rising, 0.0)
    assert (calls, net.ranges()["average.rotation"] > 10, moved.width(0.1) > 0) == (2, True, True)
    net.prune("z", "CONV")
    before = net.ranges()
    moved.step(rising, 0.1)
    assert (calls, net.ranges(), moved.width(0.1)) == (2, before, 0.0)


# ---------------------------------------------------------------- slopes


def small_network() -> tuple[Network, torch.Tensor, torch.Tensor]:
    chain = Chain(1, 6, 6).average({"rotation": 50.0, "scale_x": 0.3}, 4).flatten()
    chain.layer(FC, channels=3, activations=("tanh",)).mean().layer(FC, channels=3)
    net = lowering.build(tuple(chain.nodes), 0).double().eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.5 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    x = torch.randn(12, 1, 6, 6, generator=generator, dtype=torch.float64)
    return net, x, torch.randint(3, (12,), generator=generator)


def exact_evidence(net: Network, x: torch.Tensor, y: torch.Tensor, precision: float) -> float:
    """From the Jacobian of every example and the dense matrix of all parameters, by autograd."""
    parameters = {name: one.detach() for name, one in net.named_parameters()}
    buffers = dict(net.named_buffers())

    def outputs(values: dict[str, torch.Tensor], image: torch.Tensor) -> torch.Tensor:
        return functional_call(net, values | buffers, (image[None],))[0]

    size = sum(one.numel() for one in parameters.values())
    total = precision * torch.eye(size, dtype=torch.float64)
    loss = torch.zeros((), dtype=torch.float64)
    for image, label in zip(x, y, strict=True):
        logits = outputs(parameters, image)
        loss += torch.logsumexp(logits, 0) - logits[label]
        jacobian = torch.cat([one.flatten(1) for one in jacrev(outputs)(parameters, image).values()], 1)
        half = root_of_hessian(logits, "classification").T @ jacobian
        total += half.T @ half
    norm = sum(float(one.square().sum()) for one in parameters.values())
    prior = size * math.log(precision) - precision * norm
    return float(-loss + 0.5 * (prior - torch.linalg.slogdet(total).logabsdet))


@pytest.mark.parametrize("key", ["average-1.rotation", "average-1.scale_x"])
def test_slopes_are_those_of_the_exact_evidence(key: str) -> None:
    net, x, y = small_network()
    precisions = dict.fromkeys(net.tensors(), 2.0)

    def evidence() -> float:
        found = estimate(net, x, y, Categorical(), Exact(), torch.Generator().manual_seed(1), CURVATURES["joint"])
        return laplace_of(net, found, Categorical(), precisions, 1.0).log_evidence()

    assert evidence() == pytest.approx(exact_evidence(net, x, y, 2.0), rel=1e-9)
    at = net.ranges()[key]
    width = 1e-4 * at
    ends = []
    for side in (-width, width):
        net.set_ranges({key: at + side})
        ends.append(exact_evidence(net, x, y, 2.0))
    net.set_ranges({key: at})
    assert ranges.slope(net, key, width, evidence) == pytest.approx((ends[1] - ends[0]) / (2 * width), rel=1e-5)


def test_a_slope_on_a_bound_is_taken_on_the_side_that_is_left() -> None:
    net, _, _ = small_network()
    net.set_ranges({"average-1.rotation": 0.0})
    seen = []

    def evidence() -> float:
        seen.append(net.ranges()["average-1.rotation"])
        return 3 * seen[-1]

    assert ranges.slope(net, "average-1.rotation", 7.0, evidence) == pytest.approx(3.0)
    assert seen == [0.0, 7.0]
    assert net.ranges()["average-1.rotation"] == 0.0


def test_ranges_climb_a_hill_and_stay_on_it() -> None:
    net, _, _ = small_network()
    one = ranges.Ranges(net)

    def evidence() -> float:
        at = net.ranges()
        return -((at["average-1.rotation"] - 120) ** 2) / 1e6 - (at["average-1.scale_x"] - 0.1) ** 2

    for step in range(60):
        one.step(evidence, step / 60)
    assert net.ranges()["average-1.rotation"] == pytest.approx(120, abs=8)
    assert net.ranges()["average-1.scale_x"] == pytest.approx(0.1, abs=0.06)


@pytest.mark.parametrize("progress", [0.0, 0.2, 0.6])
def test_ranges_go_a_shorter_way_the_nearer_they_are_to_settling(progress: float) -> None:
    net = small_network()[0]
    one = ranges.Ranges(net)
    before = net.ranges()
    one.move(dict.fromkeys(one.keys, 1.0), progress)
    for key in one.keys:
        way = ranges.RATE * (1 - progress / ranges.SETTLED) * ranges.most(key)
        assert net.ranges()[key] - before[key] == pytest.approx(way, rel=1e-5)


def test_ranges_that_are_fixed_or_settled_stay() -> None:
    held = structure(turned(TURNED.replace("samples = 5", "samples = 5, fixed")))
    assert held.ranges.keys == ()
    held.evidence_step()
    assert held.trainer.net.ranges() == {"average.rotation": 20.0, "average.translate_x": 0.0}
    one = ranges.Ranges(small_network()[0])
    before = one.net.ranges()
    one.step(lambda: pytest.fail("nothing is asked for"), ranges.SETTLED)
    assert one.net.ranges() == before


# ---------------------------------------------------------------- training


@pytest.mark.parametrize(("fixed", "angles", "scales"), [(False, {32, 68}, {0.1, 0.5}), (True, {50}, {0.3})])
def test_training_takes_ranges_on_either_side(fixed: bool, angles: set[int], scales: set[float]) -> None:
    net, x, _ = small_network()
    net.train()
    average = net.average("average-1")
    average.fixed = fixed
    generator = torch.Generator().manual_seed(0)
    found_angles, found_scales = set(), set()
    for _ in range(20):
        net.draw_from(generator, 0.1)
        average._drawn = torch.eye(4, 2)  # at the end of either range, so that nothing else is random
        turned, scaled, *_ = average.matrices(6, 6)
        found_angles.add(round(abs(math.degrees(math.atan2(turned[1, 0], turned[0, 0])))))
        found_scales.add(round(abs(math.log(scaled[0, 0])), 9))
    assert (found_angles, found_scales) == (angles, scales)
    net.eval()
    assert_same(net(x), net(x), 1e-14)


def test_training_takes_a_range_on_a_bound_on_the_side_that_is_left() -> None:
    net, _, _ = small_network()
    net.train()
    net.set_ranges({"average-1.rotation": 0.0, "average-1.scale_x": 2.0})
    average, generator, found = net.average("average-1"), torch.Generator().manual_seed(0), set()
    for _ in range(20):
        net.draw_from(generator, 0.1)
        average._drawn = torch.eye(4, 2)
        turned, scaled, *_ = average.matrices(6, 6)
        angle, factor = math.degrees(math.atan2(turned[1, 0], turned[0, 0])), math.log(scaled[0, 0])
        found.add((round(angle), round(factor, 9)))
    assert found == {(0, 1.8), (18, 1.8), (0, 2.0), (18, 2.0)}


def test_map_never_moves_a_range_but_a_search_does(tmp_path) -> None:  # type: ignore[no-untyped-def]
    start = {"rotation": 20.0, "translate_x": 0.0}
    baseline = runner.search(turned(), device="cpu", out=tmp_path / "map", objective="map")
    assert baseline["averages"][0]["ranges"] == baseline["averages"][0]["start"] == start
    found = runner.search(turned(), device="cpu", out=tmp_path / "run")
    assert found["averages"][0]["start"] == start
    assert found["averages"][0]["ranges"]["rotation"] != 20.0


def test_the_likelihood_alone_does_not_widen_a_range() -> None:
    """Figure 5 of van der Ouderaa & van der Wilk 2022: what a point estimate fits best is no invariance."""
    one = structure(turned(search__epochs=30), notes=[])
    for _ in range(30):
        one.trainer.train_epoch()
    trainer = one.trainer
    trainer.net.eval()

    def likelihood() -> float:
        with torch.no_grad():
            return -float(trainer.likelihood.loss(trainer.net(trainer.train.x), trainer.train.y))

    assert ranges.slope(trainer.net, "average.rotation", 2.0, likelihood) < 0


# ---------------------------------------------------------------- files


def test_a_search_writes_its_ranges_down(tmp_path) -> None:  # type: ignore[no-untyped-def]
    found = runner.search(turned(), device="cpu", out=tmp_path / "run")
    (average,) = found["averages"]
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    last = [line["ranges"] for line in lines if "ranges" in line][-1]
    assert last == {f"average.{name}": value for name, value in average["ranges"].items()}
    learned = symdsl.load(tmp_path / "run" / "learned.sym")
    (begin,) = (node for node in learned.facts.network.nodes if node.name == "average")
    assert dict(begin.ranges) == pytest.approx(average["ranges"], rel=1e-3)  # type: ignore[union-attr]
    run = symdsl.load_run(tmp_path / "run")
    assert run.network.ranges() == last
    data = symdsl.data.load(turned())
    again = (run.network(data.test.x).argmax(1) == data.test.y).double().mean()
    assert float(again) == pytest.approx(found["test"]["accuracy"])


def test_an_interrupted_search_goes_on_with_the_same_ranges(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(searching, "_SAVING_SHARE", float("inf"))
    with pytest.raises(KeyboardInterrupt):
        runner.search(turned(), device="cpu", out=tmp_path / "run", callbacks=[Interrupting(2)])
    runner.search(device="cpu", resume=tmp_path / "run")
    runner.search(turned(), device="cpu", out=tmp_path / "whole")
    assert timeless(tmp_path / "run") == timeless(tmp_path / "whole")
