"""Residual blocks as modules: what they compute, how they start, what they follow, and how they leave."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from limits import built, noise
from oracles.comparison import assert_same
from oracles.equivariance import assert_invariant, moved, shifted
from oracles.records import Chain, candidate
from symdsl import laplace, lowering, nn, parse
from symdsl.analysis.joins import without
from symdsl.catalog.networks import AWAY_FROM_ZERO
from symdsl.data import Examples
from symdsl.graph import strict_symmetry
from symdsl.nn import Join, RelaxedLayer
from symdsl.nn.activations import ACTIVATIONS

CONV, FFC, FC = candidate("CONV"), candidate("F-FC"), candidate("FC")
KINDS = ["CONV(3)", "CONV(1) + CONV(5)", "S-CONV(3)"]
GROUP_KINDS = [
    *("GCONV(3)", "GCONV(3, separable)", "GCONV(3, depthwise)", "GCONV(3, pointwise)"),
    *("S-GCONV(3)", "GCONV(3) + S-GCONV(3)"),
]
LIFTED = """
data synthetic(size = 6, channels = 2, classes = 3)
network n {{
  input image(channels, 6, 6)
  {lift}
  layer l1: {kinds} -> 2 stride 2 |> tanh
  residual {{
    layer: {kinds} -> 3 |> tanh
    residual {{ layer: {kinds} -> 3 }}
    layer: {kinds} -> 2 |> tanh
  }}
  residual {{ layer: {kinds} -> 2 }}
  {project}
  pool mean
  flatten
  layer h: FC -> classes
}}
"""


def blocks(count: int, channels: int = 16) -> Chain:
    chain = Chain(3, 6, 6).layer(CONV, channels=channels, activations=("relu",))
    for _ in range(count):
        chain.residual(((CONV,), channels, "relu"), ((CONV,), channels))
    return chain


# ---------------------------------------------------------------- start


@pytest.mark.parametrize("count", [1, 3, 6, 12, 20])
@pytest.mark.parametrize("last", [(), ("relu",)])
def test_activations_keep_their_scale_through_any_number_of_blocks(count: int, last: tuple[str, ...]) -> None:
    chain = Chain(16, 6, 6)
    for _ in range(count):
        chain.residual(((CONV, FFC), 24, "relu"), ((CONV,), 16, *last))
    x = torch.randn(16, 16, 6, 6, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        nets = [lowering.build(tuple(chain.nodes), seed) for seed in range(4)]
        found = [_variances(nets, x, Join), _variances(nets, x, RelaxedLayer)[::2]]
    relu = 0.5 - 0.5 / torch.pi
    assert found[0][-1] == pytest.approx(1 + lowering.BRANCHES * (relu if last else 1), rel=0.05)
    for variances in found:
        assert len(variances) == count
        assert variances == pytest.approx([1.0] * count, rel=0.2)


@pytest.mark.parametrize("nested_first", [False, True])
def test_blocks_in_a_block_share_among_themselves(nested_first: bool) -> None:
    plain = "residual { layer c1: CONV(3) -> 16 }"
    inner = "".join(f"residual {{ layer i{number}: CONV(3) -> 16 }}\n" for number in range(5))
    nested = f"residual {{\n{inner}layer c2: CONV(3) -> 16\n}}"
    body = "\n".join([nested, plain] if nested_first else [plain, nested])
    items = f"input image(1, 8, 8)\nlayer stem: CONV(3) -> 16\n{body}\nflatten\nlayer h: FC -> classes"
    initial = lowering.initial_scales(parse(f"data digits\nnetwork n {{\n{items}\n}}").facts.network.nodes)
    shares = {name: initial[name].std ** 2 for name in ("c1", "c2", "i0", "i4")}
    assert shares == pytest.approx({"c1": 0.05, "c2": 0.05, "i0": 0.02, "i4": 0.02}, rel=0.15)


def _variances(nets: list[nn.Network], x: torch.Tensor, kind: type) -> list[float]:
    """Of what every stage of a kind writes, over networks."""
    written: list[list[torch.Tensor]] = []
    for net in nets:
        written.append([])
        for stage in net.stages.values():
            if isinstance(stage, kind):
                stage.register_forward_hook(lambda module, inputs, output: written[-1].append(output))
        net(x)
    return [float(torch.stack(outputs).var()) for outputs in zip(*written, strict=True)]


def test_a_layer_after_blocks_writes_unit_variance() -> None:
    chain = blocks(3).layer(CONV, channels=32)
    x = torch.randn(16, 3, 6, 6, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        found = torch.stack([lowering.build(tuple(chain.nodes), seed)(x) for seed in range(12)])
    assert float(found.square().mean()) == pytest.approx(1, rel=0.15)


# ---------------------------------------------------------------- symmetry


@pytest.mark.parametrize("kinds", [*KINDS, *GROUP_KINDS])
def test_a_network_keeps_its_symmetry_through_blocks(kinds: str) -> None:
    lifted = kinds in GROUP_KINDS
    stages = {"lift": "lift p4", "project": "project max"} if lifted else {"lift": "", "project": ""}
    spec = parse(LIFTED.format(kinds=kinds, **stages))
    kept = ("translations", "quarter turns") if lifted else ("translations",)
    assert strict_symmetry(spec.graph()).invariant == kept
    net = built(spec.facts.network.nodes)
    x = noise(2, spec.facts.network.nodes[0].out_shape)
    for turns, rows, columns in product(range(4 if lifted else 1), (0, 1), (0, 3)):
        assert_invariant(net, x, shifted(moved(x, (turns, 0)), rows, columns), 1e-10)


def test_the_check_notices_a_block_that_breaks_the_symmetry() -> None:
    spec = parse(LIFTED.format(kinds="CONV(3)", lift="lift p4", project="project max"))
    x = noise(2, spec.facts.network.nodes[0].out_shape)
    with pytest.raises(AssertionError, match="largest difference"):
        assert_invariant(built(spec.facts.network.nodes), x, moved(x, (1, 0)), 1e-4)


def test_an_output_does_not_depend_on_the_rest_of_its_batch() -> None:
    net = built(tuple(blocks(3, channels=4).flatten().layer(FC, channels=3).nodes))
    x = noise(5, blocks(0).nodes[0].out_shape)
    with torch.no_grad():
        assert_same(net(x[2:3]), net(x)[2:3], 1e-12)


# ---------------------------------------------------------------- blocks that leave


NESTED = (
    Chain(1, 4, 4)
    .layer(CONV, channels=2, activations=("relu",))
    .residual(((FFC, CONV), 3, "relu"), ((CONV, FFC), 2))
    .residual(((CONV,), 2, "tanh"))
    .residual(((CONV,), 2))
    .flatten()
    .layer(FC, channels=3)
)


def network() -> nn.Network:
    return built(NESTED.nodes)


def remove(net: nn.Network, *layers: str) -> None:
    for layer in layers:
        for path in list(dict(net.layers())[layer].paths):
            net.prune(layer, path)


def never_there(net: nn.Network, *removed: str) -> nn.Network:
    """The network of the nodes without some blocks, and the same weights elsewhere."""
    other = built(without(NESTED.nodes, removed))
    for key, parameter in other.tensors().items():
        parameter.data.copy_(net.tensors()[key])
    return other


@pytest.mark.parametrize(
    ("layers", "removed"),
    [
        (("l3",), ("residual-1",)),
        (("l4",), ("residual-2",)),
        (("l3", "l4"), ("residual-1", "residual-2")),
        (("l5", "l3", "l4"), ("residual-1", "residual-2", "residual-3")),
    ],
)
def test_a_block_without_its_last_layer_was_never_there(layers: tuple[str, ...], removed: tuple[str, ...]) -> None:
    net, x = network(), noise(6, NESTED.nodes[0].out_shape)
    remove(net, *layers)
    other = never_there(net, *removed)
    assert_same(net(x).detach(), other(x).detach(), 1e-12)
    data = Examples(x, torch.arange(6) % 3)
    for curvature in ("kfac-expand", "joint"):
        found, expected = (laplace.fit(one, data, curvature=curvature) for one in (net, other))
        assert found.log_evidence() == pytest.approx(expected.log_evidence(), rel=1e-12)
        assert found.effective_parameters() == pytest.approx(expected.effective_parameters(), rel=1e-9)


def test_a_block_leaves_with_the_last_path_of_its_last_layer() -> None:
    net, x = network(), noise(2, NESTED.nodes[0].out_shape)
    assert net.prune("l3", "F-FC") == ["l3.F-FC.w1", "l3.F-FC.w2"]
    assert "l2" in dict(net.active())
    gone = net.prune("l3", "CONV")
    assert set(gone) == {key for key in net.tensors() if key.startswith(("l2.", "l3."))}
    assert all(not net.tensors()[key].requires_grad and not net.tensors()[key].any() for key in gone)
    assert not {"l2", "l3", "residual-1"} & dict(net.active()).keys()
    assert dict(net.layers())["l2"].pruned == {"F-FC", "CONV"}
    uses: dict[str, nn.Use] = {}
    net(x, uses)
    assert uses.keys() == net.tensors().keys() - set(gone)


IDLE = """
data synthetic(size = 6, classes = 3)
network n {
  input image(1, 6, 6)
  average affine(rotation = 30, samples = 5) {
    residual { layer l1: CONV(3) -> 1 |> tanh }
  }
  residual { layer l2: CONV(3) -> 1 |> tanh }
  flatten
  layer h: FC -> classes
}
"""


def test_an_average_leaves_with_the_only_block_in_it() -> None:
    spec, x = parse(IDLE), torch.randn(4, 1, 6, 6, generator=torch.Generator().manual_seed(1))
    net, other = lowering.compile(spec), lowering.compile(parse(spec.pruned({"l1": set()})))
    block, _ = net.blocks
    other.load_state_dict({key: value for key, value in net.state_dict().items() if key in other.state_dict()})
    with net.without(block):
        torch.testing.assert_close(net(x), other(x))
    assert not torch.allclose(net(x), other(x))
    net.remove("l1", "CONV")
    torch.testing.assert_close(net(x), other(x))


def test_a_layer_in_the_middle_of_a_body_may_lose_every_path_and_keeps_its_bias() -> None:
    net = network()
    remove(net, "l2")
    assert "l2" in dict(net.active())


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_language_knows_which_activations_are_zero_at_zero(name: str) -> None:
    assert (float(ACTIVATIONS[name](torch.zeros(()))) != 0) == (name in AWAY_FROM_ZERO)
