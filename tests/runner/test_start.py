"""What a search starts from: priors, and weights of a symmetric start."""

import pytest
import torch

from symdsl import lowering
from symdsl.runner.start import (
    FEW_EXAMPLES,
    StartKind,
    begin,
    full_scales,
    settle,
    starts,
    stated_start,
)
from symdsl.spec import parse

STARTS = """
data digits
network n {
  input image(channels, 8, 8)
  lift p4
  layer l1: F-FC + CONV(3) -> 2 |> relu
  layer l2: F-FC + CONV(3) + GCONV(3) + FC ~ normal(2, fixed) -> 2 |> relu
  layer l3: CONV(3) -> 2 |> relu
  project max
  flatten
  layer h: FC -> classes
}
prior {
  l2.F-FC.w1 ~ normal(5)
}
"""

SPARSE = """
data digits
network n {
  input image(channels, 8, 8)
  lift p4
  layer l1: F-GFC + S-GFC + S-GCONV(3) + GCONV(3, factor = separable) -> 2 |> relu
  layer l2: S-FC + S-CONV(3) -> 2 |> relu
  project max
  flatten
  layer h: FC -> classes
}
"""


SMOOTH = """
data given(channels = 3, size = 16, classes = 4)
network n {
  input image(3, 16, 16)
  layer l1: KIND -> 8 |> relu
  layer l2: KIND -> 8 stride 2 |> relu
  layer l3: KIND -> 8 |> relu
  flatten
  layer h: FC -> classes
}
"""


def second_moments(net, x):
    """Of the pre-activations of every layer."""
    found = {}
    for name, stage in net.named_stages().items():
        x = stage(x)
        if name in ("l1", "l2", "l3"):
            found[name] = float(x.detach().square().mean())
    return found


def smooth_images(count):
    """Images of unit second moment in which neighbouring pixels are alike."""
    coarse = torch.randn(count, 3, 3, 3, generator=torch.Generator().manual_seed(3))
    x = torch.nn.functional.interpolate(coarse, (16, 16), mode="bicubic")
    return x / x.square().mean().sqrt()


@pytest.mark.parametrize("kind", ["S-FC", "S-CONV(5)", "S-FC + S-CONV(3)"])
def test_sums_of_basis_functions_start_at_the_scale_that_the_data_ask_for(kind):
    net = lowering.compile(parse(SMOOTH.replace("KIND", kind)), 0).eval()
    x = smooth_images(64)
    before = second_moments(net, x)
    settle(net, x[:32], 0)
    after = second_moments(net, x)
    assert min(before.values()) > 2
    assert all(0.2 < value < 2.5 for value in after.values()), after


def test_layers_of_groups_are_settled_over_the_group():
    net = lowering.compile(parse(SPARSE), 0)
    x = torch.ones(8, 1, 8, 8) * torch.randn(8, 1, 1, 1, generator=torch.Generator().manual_seed(0))
    before = {key: tensor.detach().clone() for key, tensor in net.tensors().items()}
    settle(net, x, 0)
    changed = {key for key, tensor in net.tensors().items() if not torch.equal(tensor, before[key])}
    assert changed == {"l1.S-GFC.u2", "l1.S-GCONV.u", "l2.S-FC.u2", "l2.S-CONV.u"}
    for key in changed:
        factor = float(net.tensors()[key].detach().norm() / before[key].norm())
        assert 0 < factor < 1
        assert torch.allclose(net.tensors()[key], factor * before[key])


def test_no_weights_vanish_where_what_is_drawn_of_an_image_is_empty():
    spot = torch.zeros(1, 3, 16, 16)
    spot[0, :, 8, 8] = 1.0
    for seed in range(20):
        net = lowering.compile(parse(SMOOTH.replace("KIND", "S-FC")), 0)
        settle(net, spot, seed)
        assert all(bool(tensor.any()) for key, tensor in net.tensors().items() if key.endswith("u2")), seed


def test_independent_weights_stay_as_they_are():
    net, again = (lowering.compile(parse(STARTS), 0) for _ in range(2))
    settle(net, torch.ones(8, 1, 8, 8), 0)
    assert all(torch.equal(tensor, again.tensors()[key]) for key, tensor in net.tensors().items())


def test_full_scales_are_those_of_candidates_that_do_not_start_small():
    spec = parse(STARTS)
    net = lowering.compile(spec, 0)
    found = full_scales(net, spec.facts)
    sizes = {key: float(tensor.detach().square().mean().sqrt()) for key, tensor in net.tensors().items()}
    assert found.keys() == sizes.keys()
    tenth = {"l1.F-FC.w1", "l1.F-FC.w2", "l2.F-FC.w1", "l2.F-FC.w2", "l2.CONV.w", "l2.FC.w"}
    for key, size in sizes.items():  # of a product, each factor has the root of a tenth; biases start at zero
        rise = 1 if key not in tenth else 10**0.5 if "F-FC" in key else 10
        assert found[key] == pytest.approx(size * rise or 1), key


def test_the_last_layer_of_a_residual_block_has_the_scale_of_one_that_writes_variance_one():
    spec = parse(
        "data digits\nnetwork n {\n  input image(channels, 8, 8)\n  layer stem: CONV(3) -> 8\n"
        "  residual {\n    layer a: CONV(3) -> 8 |> relu\n    layer b: F-FC + CONV(3) -> 8\n  }\n"
        "  layer c: F-FC + CONV(3) -> 8\n  flatten\n  layer h: FC -> classes\n}\n"
    )
    net = lowering.compile(spec, 0)
    found, std = full_scales(net, spec.facts), lowering.initial_scales(spec.facts.network.nodes)["b"].std
    assert std < 0.5
    sizes = {key: float(tensor.detach().square().mean().sqrt()) for key, tensor in net.tensors().items()}
    assert found["a.CONV.w"] == pytest.approx(sizes["a.CONV.w"])
    assert found["b.CONV.w"] == pytest.approx(sizes["b.CONV.w"] / std)
    for name in ("w1", "w2"):
        assert found[f"b.F-FC.{name}"] == pytest.approx(sizes[f"b.F-FC.{name}"] / (0.1 * std) ** 0.5)


def started(text: str, kind: StartKind = "relaxed", examples: int = FEW_EXAMPLES):
    spec = parse(text)
    net = lowering.compile(spec, 0)
    return net, begin(net, spec.facts, examples, kind), spec


@pytest.mark.parametrize(
    ("stated", "examples", "expected"),
    [
        (None, FEW_EXAMPLES, ("relaxed", "symmetric")),
        (None, FEW_EXAMPLES + 1, ("relaxed",)),
        ("symmetric", FEW_EXAMPLES + 1, ("symmetric",)),
        ("both", FEW_EXAMPLES + 1, ("relaxed", "symmetric")),
        ("relaxed", FEW_EXAMPLES + 1, ("relaxed",)),
        ("symmetric", 1, ("symmetric",)),
    ],
)
def test_the_number_of_examples_decides_how_to_start_where_the_spec_does_not(stated, examples, expected):
    spec = parse(STARTS, {} if stated is None else {"search.start": stated})
    assert starts(spec.facts, examples) == expected


def test_a_network_without_a_candidate_that_breaks_a_symmetry_has_one_start():
    spec = parse("data digits\nnetwork n {\n  input image(channels, 8, 8)\n  flatten\n  layer h: FC -> classes\n}\n")
    assert starts(spec.facts, 1) == ("relaxed",)


def test_a_relaxed_start_leaves_weights_and_priors_as_they_are():
    net, start, spec = started(STARTS)
    assert start == stated_start(net, spec.facts)
    for key, value in lowering.compile(spec, 0).tensors().items():
        assert torch.equal(value, net.tensors()[key])


def test_a_symmetric_start_of_few_examples_sets_output_sides_to_zero_and_holds_the_others_at_their_scale():
    net, start, spec = started(STARTS, "symmetric")
    drawn, held = lowering.compile(spec, 0).tensors(), net.tensors()
    zero = {key for key, value in held.items() if not value.any() and not key.endswith("bias")}
    assert zero == {"l1.F-FC.w1", "l2.F-FC.w1", "l2.CONV.w", "l2.FC.w"} == start.zero
    for key in ("l1.F-FC.w2", "l2.F-FC.w2"):
        assert torch.equal(held[key], drawn[key])
        assert start.precisions[key] == pytest.approx(float(1 / held[key].detach().square().mean()))
        assert key not in start.learned
    assert zero - start.learned == {"l2.FC.w"}
    assert start.precisions["l1.F-FC.w1"] == 1
    assert start.precisions["l2.F-FC.w1"] == 5


def test_a_stated_prior_of_an_input_side_is_learned_from_where_the_spec_has_it():
    _, start, _ = started(STARTS.replace("l2.F-FC.w1 ~ normal(5)", "l2.F-FC ~ normal(5)"), "symmetric")
    assert start.precisions["l2.F-FC.w1"] == start.precisions["l2.F-FC.w2"] == 5
    assert {"l2.F-FC.w1", "l2.F-FC.w2"} <= start.learned
    assert "l1.F-FC.w2" not in start.learned


def test_with_many_examples_a_symmetric_start_learns_the_priors_that_a_relaxed_one_does():
    few, few_start, _ = started(STARTS, "symmetric")
    net, start, spec = started(STARTS, "symmetric", FEW_EXAMPLES + 1)
    stated = stated_start(lowering.compile(spec, 0), spec.facts)
    assert (start.precisions, start.learned, start.scales) == (stated.precisions, stated.learned, stated.scales)
    assert start.zero == few_start.zero
    assert all(torch.equal(value, few.tensors()[key]) for key, value in net.tensors().items())


@pytest.mark.parametrize("text", [STARTS, SPARSE])
def test_the_network_of_a_symmetric_start_is_that_of_the_symmetric_candidates_alone(text):
    net, _, _ = started(text, "symmetric")
    x = torch.randn(3, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    before = net(x)
    for name, layer in net.layers():
        for path in layer.paths:
            if not net.tensors()[f"{name}.{path}.{layer.paths[path].linear_in[0]}"].any():
                layer.prune(path)
    torch.testing.assert_close(net(x), before)


@pytest.mark.parametrize("text", [STARTS, SPARSE])
def test_every_silent_candidate_has_a_gradient_from_the_first_step(text):
    net, _, _ = started(text, "symmetric")
    x = torch.randn(8, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    net(x).square().sum().backward()
    for key, value in net.tensors().items():
        if not value.any() and not key.endswith("bias"):
            assert value.grad is not None
            assert value.grad.norm() > 0, key
