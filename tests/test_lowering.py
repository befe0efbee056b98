"""From records to modules: every kind has a row, and layers start with the variance of their widest candidate."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import attrs
import pytest
import torch
from torch.func import functional_call, grad, jvp, vjp, vmap

from oracles.comparison import assert_same, noise
from oracles.records import Chain, candidate, sparse
from shipped import ROOT
from symdsl import data, laplace, lowering
from symdsl.analysis.facts import Candidate, ParameterTensor
from symdsl.kinds import KINDS
from symdsl.spec import Spec, load, parse

PAGES = Path(__file__).parent.parent / "docs" / "kinds"
SPEC = """
data synthetic(size = 4, classes = 3)

network small {
  input image(channels, 4, 4)
  layer l1: F-FC + CONV(3) -> 2 |> relu
  flatten
  layer h1: FC -> classes
}
"""


def second_moment(*scales: float) -> float:
    """Of a layer's pre-activations over several draws of its weights, for inputs of unit second moment."""
    kinds = ("F-FC", "CONV")[: len(scales)]
    parts = [candidate(kind, init_scale=scale) for kind, scale in zip(kinds, scales, strict=True)]
    nodes = tuple(Chain(8, 6, 6).layer(*parts, channels=32).nodes)
    x = torch.randn(8, 8, 6, 6, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        return float(torch.stack([lowering.build(nodes, seed)(x) for seed in range(30)]).square().mean())


@pytest.mark.parametrize("scales", [(1.0,), (1.0, 1.0), (0.1, 1.0), (1.0, 0.5), (0.1,), (0.1, 0.1), (0.2, 0.1)])
def test_a_layer_starts_with_the_variance_of_its_widest_candidate_alone(scales: tuple[float, ...]) -> None:
    assert second_moment(*scales) == pytest.approx(max(scales) ** 2, rel=0.15)


def test_widening_a_layer_keeps_the_proportions_of_its_candidates() -> None:
    nodes = tuple(Chain(32, 6, 6).layer(candidate("F-FC", init_scale=0.1), candidate("CONV"), channels=32).nodes)
    std = {key: float(tensor.detach().std()) for key, tensor in lowering.build(nodes, 0).tensors().items()}
    product = std["l1.F-FC.w1"] * std["l1.F-FC.w2"] * math.sqrt(32 * 36)
    assert product == pytest.approx(0.1 * std["l1.CONV.w"] * math.sqrt(32 * 9), rel=0.05)


def _made_by_hand(name: str) -> Candidate:
    if name == "RFF":
        return attrs.evolve(candidate("FC"), name=name, kind=name, arguments=(("lengthscale", 0.7),), tensors=())
    return sparse(name) if name.startswith("S-") else candidate(name)


def test_every_kind_has_a_module_a_weight_use_and_a_page() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} - {"index"} == {name.lower() for name in KINDS}
    for name in KINDS:
        net = lowering.build(tuple(Chain(1, 4, 4).lift("p4").layer(_made_by_hand(name), channels=2).nodes), 0)
        for _, layer in net.layers():
            for path in layer.paths.values():
                learned = {tensor for tensor, one in path.named_parameters() if one.requires_grad}
                assert path.weight_uses.keys() >= learned
                assert bool(learned) == (KINDS[name].fixed is None)


def test_a_network_made_without_derivatives_can_be_trained() -> None:
    spec = parse(SPEC)
    with torch.inference_mode():
        net, dataset = lowering.compile(spec), data.load(spec)
    evidence = laplace.fit(net, dataset.train).log_evidence()
    assert evidence == laplace.fit(lowering.compile(spec), data.load(spec).train).log_evidence()
    net(dataset.train.x).sum().backward()
    assert all(one.grad is not None for one in net.parameters())


def test_no_tensors_have_no_norms() -> None:
    assert lowering.compile(parse(SPEC)).squared_norms([]) == {}


def test_a_network_can_be_pickled() -> None:
    chain = Chain(1, 4, 4).lift("p4")
    for name in KINDS:
        chain = chain.layer(_made_by_hand(name), channels=2)
    net = lowering.build(tuple(chain.nodes), 0)
    again = pickle.loads(pickle.dumps(net))
    assert torch.equal(again(torch.ones(2, 1, 4, 4)), net(torch.ones(2, 1, 4, 4)))
    assert again.layer("l1").paths.keys() == net.layer("l1").paths.keys()


@pytest.mark.parametrize(
    "layers", ["layer: F-FC + CONV(3) -> 4 stride 2", "lift p4\nlayer: GCONV(3) -> 17\nproject max"]
)
def test_a_network_can_be_mapped_over_examples(layers: str) -> None:
    text = f"data digits\nnetwork n {{\ninput image(1, 8, 8)\n{layers}\nflatten\nlayer: FC -> classes\n}}"
    net = lowering.compile(parse(text)).double()
    x, parameters = noise(3, 1, 8, 8), dict(net.named_parameters())

    def loss(parameters: dict[str, torch.Tensor], one: torch.Tensor) -> torch.Tensor:
        return functional_call(net, parameters, (one[None],)).square().sum()

    assert_same(vmap(lambda one: net(one[None])[0])(x), net(x))
    found = vmap(grad(loss), (None, 0))(parameters, x)
    for number, one in enumerate(x):
        for key, expected in grad(loss)(parameters, one).items():
            assert_same(found[key][number], expected)


@pytest.mark.parametrize(
    "layers",
    [
        "layer: F-FC + CONV(3) -> 4 stride 2\nlayer: F-FC + CONV(3) -> 20 stride 2",
        "layer: CONV(3) -> 20",
        "lift p4\nlayer: GCONV(3) + F-GFC -> 5 stride 2\nproject mean",
    ],
)
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:FutureWarning")  # torch's own, on first use
def test_derivatives_in_forward_mode_are_those_of_the_backward_pass(layers: str) -> None:
    text = f"data digits\nnetwork n {{\ninput image(1, 8, 8)\n{layers}\nflatten\nlayer: FC -> classes\n}}"
    net = lowering.compile(parse(text)).double()
    values = (dict(net.named_parameters()), noise(3, 1, 8, 8))
    moves = ({key: noise(*one.shape, seed=1) for key, one in values[0].items()}, noise(3, 1, 8, 8, seed=2))
    weights = noise(3, 10, seed=3)

    def outputs(parameters: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return functional_call(net, parameters, (x,))

    along = jvp(outputs, values, moves)[1]
    by_parameter, by_input = vjp(outputs, *values)[1](weights)
    expected = sum((by_parameter[key] * move).sum() for key, move in moves[0].items()) + (by_input * moves[1]).sum()
    assert_same((along * weights).sum(), expected)
    by_input_alone = jvp(lambda x: outputs(values[0], x), values[1:], moves[1:])[1]
    assert_same((by_input_alone * weights).sum(), (by_input * moves[1]).sum())


MINE = """data digits
network n {
  input image(1, 8, 8)
  layer l1: CONV(3) -> width |> relu
  flatten
  layer h: FC -> classes
}
"""


def test_a_path_is_no_spec() -> None:
    with pytest.raises(TypeError, match=r"`spec` \(='mine.sym'\) must be a Spec: `symdsl.load\(path\)` reads one"):
        lowering.compile("mine.sym")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, b"data digits", Path("mine.sym")])
def test_only_a_text_is_parsed(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"`text` \(a \w+\) must be a spec as a text: `symdsl.load\(path\)` reads"):
        parse(wrong)


@pytest.mark.parametrize("wrong", ["width=8", [("width", 8)]])
def test_overrides_are_values_by_key(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"`overrides` \(=.*\) must be values by key, such as"):
        parse("data digits", wrong)


def test_a_text_imports_from_the_folder_of_its_path(tmp_path: Path) -> None:
    (tmp_path / "other.sym").write_text("let width = 3\n")
    text = 'import "other.sym"\n' + MINE
    assert parse(text, path=str(tmp_path / "mine.sym")).facts.network.nodes[1].out_shape.channels == 3


@pytest.mark.parametrize("wrong", [None, 3])
def test_only_a_spec_is_compiled(wrong: Any) -> None:
    with pytest.raises(TypeError, match=rf"`spec` \(='{wrong}'\) must be a Spec"):
        lowering.compile(wrong)


@pytest.mark.parametrize("name", ["digits_lifted", "digits_sparse", "starter"])
def test_no_examples_have_no_outputs(name: str) -> None:
    net = lowering.compile(load(ROOT / "specs" / f"{name}.sym"))
    assert net.reads is not None
    assert net(torch.zeros(0, *net.reads)).shape == (0, 10)


def test_a_graph_lowers_to_the_network_of_its_spec() -> None:
    spec = parse(SPEC)
    first, second = lowering.compile(spec, seed=3), lowering.compile(spec.graph(), seed=3)
    assert str(first) == str(second)
    for key, value in first.tensors().items():
        assert torch.equal(value, second.tensors()[key])
    assert lowering.compile(spec)(torch.zeros(5, 1, 4, 4)).shape == (5, 3)


EVERY = (
    "FC + F-FC + CONV(3) + GCONV(3) + GCONV(3, factor = pointwise) + F-GFC",
    "S-FC + S-CONV(3) + S-GFC + S-GCONV(3)",
    "S-FC(learned) + S-CONV(3, learned) + S-GFC(learned) + S-GCONV(3, learned)",
    "S-FC(on = lengthscale) + S-CONV(3, on = lengthscale) + S-GFC(on = lengthscale) + S-GCONV(3, on = lengthscale)",
    "S-FC(learned, lengthscale, 3) + S-CONV(3, learned, lengthscale, 4) + S-GFC(sparsity = 1) + S-GCONV(1)",
)


def every(candidates: str) -> Spec:
    """A strided layer of these candidates on a lifted map."""
    return parse(
        SPEC.replace("input image(channels, 4, 4)", "input image(channels, 4, 4)\n  lift p4")
        .replace("F-FC + CONV(3) -> 2", f"{candidates} -> 2 stride 2")
        .replace("  flatten", "  project max\n  flatten")
    )


def recorded(spec: Spec) -> dict[str, ParameterTensor]:
    layers = list(spec.facts.network.layers)
    found = [(layer.name, one.name, tensor) for layer in layers for one in layer.candidates for tensor in one.tensors]
    return {f"{layer}.{one}.{tensor.name}": tensor for layer, one, tensor in found}


@pytest.mark.parametrize("candidates", EVERY)
def test_parameters_have_the_shapes_that_the_records_say(candidates: str) -> None:
    spec = every(candidates)
    found = {key: tuple(value.shape) for key, value in lowering.compile(spec).tensors().items()}
    expected = {key: tensor.shape for key, tensor in recorded(spec).items()}
    assert {key: shape for key, shape in found.items() if not key.endswith(".bias")} == expected


@pytest.mark.parametrize("candidates", EVERY)
def test_the_factors_have_the_sizes_that_the_records_say(candidates: str) -> None:
    from symdsl.evidence import CURVATURES, Categorical, Exact, KroneckerFactors, estimate

    spec = every(candidates)
    found = estimate(
        lowering.compile(spec),
        torch.randn(2, 1, 4, 4, generator=torch.Generator().manual_seed(0)),
        torch.zeros(2, dtype=torch.int64),
        Categorical(),
        Exact(),
        torch.Generator(),
        CURVATURES["kfac-expand"],
    ).ggn
    assert isinstance(found, KroneckerFactors)
    blocks = found.blocks
    for key, tensor in recorded(spec).items():
        assert blocks[key].output.blocks().shape == (tensor.left.blocks, tensor.left.side, tensor.left.side)
        assert blocks[key].input.blocks().shape == (tensor.right.blocks, tensor.right.side, tensor.right.side)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((2, 3, 16, 16), "the network expects 1x4x4, got 3x16x16"),
        ((2, 1, 4, 5), "the network expects 1x4x4, got 1x4x5"),
        ((2, 16), r"the network expects a batch \[n, 1, 4, 4\], got \[2, 16\]"),
        ((1, 4, 4), r"the network expects a batch \[n, 1, 4, 4\], got \[1, 4, 4\]"),
    ],
)
def test_a_network_says_what_it_expects(shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        lowering.compile(parse(SPEC))(torch.zeros(shape))


@pytest.mark.parametrize("x", [[[0.0]], None, 1.0])
def test_a_network_reads_tensors(x: object) -> None:
    with pytest.raises(TypeError, match=f"^the network expects a tensor, got a {type(x).__name__}$"):
        lowering.compile(parse(SPEC))(x)


@pytest.mark.parametrize(
    "name", ["half", "type", "keys", "train", "float", "state_dict", "training", "_modules", "pop"]
)
def test_a_layer_may_be_called_like_a_method_of_a_module(name: str) -> None:
    spec = parse(SPEC.replace("l1", name))
    net, other = lowering.compile(spec), lowering.compile(parse(SPEC))
    assert set(net.tensors()) == set(net.state_dict()) == {key.replace("l1", name) for key in other.tensors()}
    net.load_state_dict({key.replace("l1", name): value for key, value in other.state_dict().items()})
    x = torch.linspace(-1, 1, 32).reshape(2, 1, 4, 4)
    assert torch.equal(net(x), other(x))
