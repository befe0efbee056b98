"""What the analysis finds out: shapes, parameters, factor sizes, symmetry, priors, settings."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from analysis.specs import NETWORK, codes, items
from symdsl.analysis.facts import (
    Candidate,
    FactorSize,
    Fisher,
    Layer,
    Mackay,
    Node,
    Objective,
    Optimizer,
    Prior,
    Search,
)
from symdsl.kinds import KINDS
from symdsl.spec import Spec, load, parse

ROOT = Path(__file__).parent.parent.parent
SPECS = ROOT / "specs"


def layers(spec: Spec) -> dict[str, Layer]:
    return {node.name: node for node in spec.facts.network.layers}


def candidate(lines: str, layer: str = "l1") -> Candidate:
    return layers(items(lines))[layer].candidates[0]


def parameters(spec: Spec) -> dict[str, int]:
    """Parameters of every kind, of the biases of layers that read maps, and of the heads with theirs."""
    found = {"bias": 0, "heads": 0}
    for layer in layers(spec).values():
        if layer.in_shape.flat:
            found["heads"] += layer.parameters
            continue
        found["bias"] += layer.out_shape.channels
        for one in layer.candidates:
            found[one.kind] = found.get(one.kind, 0) + one.parameters
    return found


def test_parameters_of_table_6() -> None:
    network = SPECS / "paper" / "network.sym"
    both = parameters(load(network))
    assert both == {"CONV": 228_870, "F-FC": 1_431_040, "bias": 450, "heads": 109_450}
    assert sum(parameters(load(network, {"candidates": "[CONV(3)]"})).values()) == 338_770


def test_the_pyramid_of_the_position_task() -> None:
    spec = load(SPECS / "quadrant_position.sym")
    maps = [str(layer.out_shape) for layer in layers(spec).values()]
    assert maps == ["4x16x16", "8x8x8", "8x8x8", "16x4x4", "16x4x4", "32x2x2", "64x1x1", "128", "40"]
    assert list(layers(spec)) == ["l1", "l2", "l3", "l4", "l5", "l6", "l7", "h1", "h2"]
    assert [layer.stride for layer in layers(spec).values()] == [1, 2, 1, 2, 1, 2, 2, 1, 1]
    assert {layer.activations for layer in list(layers(spec).values())[:-1]} == {("relu",)}


def test_digit_and_position_task_differ_in_the_label_and_the_name() -> None:
    digit, position = ((SPECS / f"quadrant_{label}.sym").read_text(encoding="utf-8") for label in ("digit", "position"))
    renamed = position.replace("label = both", "label = digit").replace("position_net", "digit_net")
    assert digit.split("\n")[1:] == renamed.split("\n")[1:]


@pytest.mark.parametrize(
    ("lines", "tensor", "shape", "left", "right", "cost"),
    [
        ("layer l1: FC -> 2 stride 2\nflatten", 0, (2, 16, 1, 64), (32, 1), (64, 1), 2 * 16 * 64),
        ("flatten\nlayer l1: FC -> 3", 0, (3, 1, 64, 1), (3, 1), (64, 1), 3 * 64),
        ("layer l1: CONV(3) -> 2 stride 2\nflatten", 0, (2, 1, 3, 3), (2, 1), (9, 1), 2 * 9 * 64),
        ("layer l0: FC -> 3\nlayer l1: F-FC -> 2 stride 2\nflatten", 0, (2, 3, 16), (16, 1), (3, 2), 6 * (64 + 16)),
        ("layer l0: FC -> 3\nlayer l1: F-FC -> 2 stride 2\nflatten", 1, (2, 3, 64), (2, 1), (64, 3), 6 * (64 + 16)),
        ("lift p4\nlayer l0: FC -> 3\nlayer l1: FC -> 2\nflatten", 0, (8, 64, 12, 64), (512, 1), (768, 1), 512 * 768),
        (
            "lift p4\nlayer l0: FC -> 3\nlayer l1: CONV(5) -> 2\nflatten",
            0,
            (8, 12, 5, 5),
            (8, 1),
            (300, 1),
            8 * 300 * 64,
        ),
        ("lift p4\nlayer l0: FC -> 3\nlayer l1: F-FC -> 2\nflatten", 0, (8, 12, 64), (64, 1), (12, 8), 96 * 128),
        ("lift p4\nlayer l0: FC -> 3\nlayer l1: F-FC -> 2\nflatten", 1, (8, 12, 64), (8, 1), (64, 12), 96 * 128),
        (
            "lift p4\nlayer l0: FC -> 3\nlayer l1: GCONV(3) -> 2\nflatten",
            0,
            (2, 3, 4, 3, 3),
            (2, 1),
            (108, 1),
            8 * 108 * 64,
        ),
        (
            "lift p4\nlayer l0: FC -> 3\nlayer l1: GCONV(3, pointwise) -> 2\nflatten",
            0,
            (2, 3, 3, 3),
            (2, 1),
            (27, 1),
            8 * 27 * 64,
        ),
    ],
)
def test_tensors_factors_and_costs(
    lines: str,
    tensor: int,
    shape: tuple[int, ...],
    left: tuple[int, int],
    right: tuple[int, int],
    cost: int,
) -> None:
    one = candidate(lines)
    found = one.tensors[tensor]
    assert (found.shape, found.left, found.right) == (shape, FactorSize(*left), FactorSize(*right))
    assert one.multiply_adds == cost
    # The Kronecker product of the factors acts on the tensor's entries, block by block.
    assert found.parameters == left[0] * left[1] * right[0] * right[1]


@pytest.mark.parametrize(
    ("lines", "kind", "preserves", "scale"),
    [
        ("layer l1: FC + CONV(3) -> 2\nflatten", "FC", (), 0.1),
        ("layer l1: FC + CONV(3) -> 2\nflatten", "CONV", ("translations",), 1.0),
        ("layer l1: F-FC -> 2\nflatten", "F-FC", (), 1.0),
        ("layer l1: F-FC(init_scale = 1) + CONV(3) -> 2\nflatten", "F-FC", (), 1.0),
        ("lift p4\nlayer l1: CONV(3) + GCONV(3) -> 2\nproject max\nflatten", "CONV", ("translations",), 0.1),
        (
            "lift p4\nlayer l1: CONV(3) + GCONV(3) -> 2\nproject max\nflatten",
            "GCONV",
            ("translations", "quarter turns"),
            1.0,
        ),
        ("pool mean\nlayer l1: FC + CONV(1) -> 2\nflatten", "FC", ("translations",), 1.0),
        ("pool max\nlayer l1: F-FC + CONV(1) -> 2\nflatten", "F-FC", ("translations",), 1.0),
        ("flatten\nlayer l1: FC + F-FC -> 2", "FC", (), 1.0),
    ],
)
def test_symmetry_and_initial_scale(lines: str, kind: str, preserves: tuple[str, ...], scale: float) -> None:
    (one,) = [one for one in layers(items(lines))["l1"].candidates if one.kind == kind]
    assert (one.preserves, one.init_scale) == (preserves, scale)


def test_of_a_group_that_the_input_breaks_the_rest_is_preserved(tmp_path: Path) -> None:
    import numpy as np

    x, y = np.zeros((4, 4, 6), np.float32), np.arange(4) % 2
    np.savez(tmp_path / "wide.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    text = f"""
        data arrays("{tmp_path}/wide.npz")
        network n {{
          input image(1, 4, 6)
          lift p4
          layer l1: GCONV(3) -> 2
          project max
          flatten
          layer h: FC -> classes
        }}"""
    spec = parse(text)
    assert layers(spec)["l1"].candidates[0].preserves == ("translations", "half turns")
    assert [one.code for one in spec.warnings] == ["W103"]


def test_names_of_candidates_and_nodes() -> None:
    spec = items(
        "lift p4\nlayer: CONV(3) + CONV(5) + FC + GCONV(3) + GCONV(3, pointwise) + FC -> 2\nlayer last: CONV(1) -> 2\n"
        "layer: CONV(1) -> 2\nproject mean\npool max\npool max\nflatten"
    )
    first, *_ = layers(spec).values()
    assert [one.name for one in first.candidates] == [
        *("CONV(3)", "CONV(5)", "FC", "GCONV(3)", "GCONV(3, factor = pointwise)", "FC #2")
    ]
    assert [node.name for node in spec.facts.network.nodes] == [
        *("input", "lift", "l1", "last", "l3", "project", "pool", "pool-2", "flatten", "h")
    ]
    assert first.candidates[3].arguments == (("k", 3), ("factor", "full"), ("group", "p4"))


def test_shapes_agree_from_one_node_to_the_next() -> None:
    for path in ("digits", "quadrant_digit", "rotated_mnist", "starter", "paper/network"):
        nodes = load(SPECS / f"{path}.sym").facts.network.nodes
        for before, after in pairwise(nodes):
            assert reads(after) == before.out_shape


def reads(node: Node) -> object:
    assert hasattr(node, "in_shape"), f"{node.name} reads nothing"
    return node.in_shape


@pytest.mark.parametrize(
    ("side", "kernel", "said"),
    [(1, 1, []), (1, 3, ["E202"]), (2, 3, []), (2, 5, ["E202"]), (3, 3, []), (3, 5, ["W109"]), (4, 7, ["W109"])],
)
def test_kernels_wrap_round_once(side: int, kernel: int, said: list[str]) -> None:
    text = f"data synthetic(size = {side})\nnetwork n {{\ninput image(1, {side}, {side})\n"
    text += f"layer: CONV({kernel}) -> 2\nflatten\nlayer h: FC -> classes\n}}"
    assert codes(text) == said


# priors


PRIORS = """
data digits
network n {{
  input image(1, 8, 8)
  layer l1: F-FC + CONV(3) ~ normal(7) + CONV(5) -> 4
  layer l2: F-FC -> 4
  flatten
  layer h: FC -> classes
}}
prior {{
{}
}}
"""


@pytest.mark.parametrize(
    ("rules", "key", "prior"),
    [
        ("", "l1.F-FC.w1", Prior(1, True)),
        ("*.F-FC ~ normal(precision = 2)", "l1.F-FC.w2", Prior(2, True)),
        ("*.F-FC ~ normal(variance = 0.5, fixed)", "l1.F-FC.w2", Prior(2, False)),
        ("*.F-FC ~ normal(std = 0.5)", "l1.F-FC.w2", Prior(4, True)),
        ("*.F-FC ~ normal(2)\nl1.F-FC ~ normal(3)", "l1.F-FC.w1", Prior(3, True)),
        ("*.F-FC ~ normal(2)\nl1.F-FC ~ normal(3)", "l2.F-FC.w1", Prior(2, True)),
        ("l1.F-FC.w2 ~ normal(4)\nl1.F-FC ~ normal(3)", "l1.F-FC.w2", Prior(4, True)),
        ("l1.F-FC.w2 ~ normal(4)\nl1.F-FC ~ normal(3)", "l1.F-FC.w1", Prior(3, True)),
        ("l*.* ~ normal(5)\n*.* ~ normal(6)", "l2.F-FC.w1", Prior(5, True)),
        ("l*.* ~ normal(5)\n*.* ~ normal(6)", "h.FC.w", Prior(6, True)),
        ("*.CONV ~ normal(2)", "l1.CONV(3).w", Prior(7, True)),
        ("*.CONV ~ normal(2)", "l1.CONV(5).w", Prior(2, True)),
        ("*.CONV ~ normal(2)\n*.CONV(5) ~ normal(3)", "l1.CONV(5).w", Prior(3, True)),
        ("*.bias ~ normal(variance = 0.5)", "l1.bias", Prior(2, True)),
        ("*.* ~ normal(2)\nl1.bias ~ normal(3)", "l1.bias", Prior(3, True)),
        ("*.F-FC.w* ~ normal(2)", "l1.F-FC.w2", Prior(2, True)),
        ("*.*.* ~ normal(2)", "l1.bias", Prior(2, True)),
    ],
)
def test_the_most_specific_prior_wins(rules: str, key: str, prior: Prior) -> None:
    assert priors(parse(PRIORS.format(rules)))[key] == prior


def test_a_path_in_full_goes_before_one_with_a_star() -> None:
    body = "input image(1, 8, 8)\nuse s as s\nflatten\nlayer h: FC -> classes"
    rules = "s/l1.* ~ normal(2)\n*/l1.CO* ~ normal(3)"
    text = f"block s {{ layer l1: CONV(3) -> 2 }}\ndata digits\nnetwork n {{ {body} }}\nprior {{ {rules} }}"
    assert priors(parse(text))["s/l1.CONV.w"] == Prior(2, True)


def priors(spec: Spec) -> dict[str, Prior]:
    found = {f"{layer.name}.bias": layer.bias for layer in layers(spec).values()}
    for layer in layers(spec).values():
        for one in layer.candidates:
            found |= {f"{layer.name}.{one.name}.{tensor.name}": tensor.prior for tensor in one.tensors}
    return found


def test_a_bias_has_no_tensor_of_its_name() -> None:
    assert codes(PRIORS.format("l1.bias.bias ~ normal(2)")) == ["E501"]


def test_letters_that_mean_something_elsewhere_match_themselves() -> None:
    assert "E501" in codes(PRIORS.format("l1.CO ~ normal(2)"))


# search


DEFAULT = Search(
    objective=Objective(None, Fisher("mc", 1)),
    start=None,
    epochs=60,
    burnin=0,
    every=None,
    examples=256,
    optimizer=Optimizer("adam", 0.025, "cosine", 1.0),
    prior_optimizer=Mackay(0.8),
    batch=128,
    seed=711,
)


def test_defaults_are_those_written_in_the_position_task() -> None:
    assert parse(f"data digits\n{NETWORK}").facts.search == DEFAULT
    assert load(SPECS / "quadrant_position.sym").facts.search == DEFAULT


def test_every_key_of_a_search() -> None:
    search = parse(
        f"""data digits
        {NETWORK}
        search {{
          objective = laplace(kfac, fisher = exact)
          epochs = 7
          burnin = 1
          every = 2
          optimizer = adam(0.1, constant, clip = 0)
          start = symmetric
          examples = 64
          prior_optimizer = mackay(damping = 0.2)
          batch = 3
          seed = 0
        }}"""
    ).facts.search
    assert search == Search(
        objective=Objective("kfac-reduce", Fisher("exact")),
        epochs=7,
        burnin=1,
        every=2,
        optimizer=Optimizer("adam", 0.1, "constant", 0.0),
        start="symmetric",
        examples=64,
        prior_optimizer=Mackay(0.2),
        batch=3,
        seed=0,
    )


@pytest.mark.parametrize(
    ("written", "fisher"), [("mc(3)", Fisher("mc", 3)), ("mc", Fisher("mc", 1)), ("exact", Fisher("exact"))]
)
def test_how_many_columns_are_sampled(written: str, fisher: Fisher) -> None:
    text = f"data digits\n{NETWORK}\nsearch {{ objective = laplace(fisher = {written}) }}"
    assert parse(text).facts.search.objective.fisher == fisher


@pytest.mark.parametrize(
    ("written", "curvature"), [("kfac", "kfac-reduce"), ("kfac(expand)", "kfac-expand"), ("joint", "joint")]
)
def test_how_the_curvature_is_approximated(written: str, curvature: str) -> None:
    text = f"data digits\n{NETWORK}\nsearch {{ objective = laplace({written}) }}"
    assert parse(text).facts.search.objective.curvature == curvature


# kinds and their pages


def test_every_kind_has_a_page() -> None:
    for kind in KINDS.values():
        assert (ROOT / kind.page).read_text(encoding="utf-8").startswith(f"# {kind.name}\n")


def test_the_name_of_a_spec_is_that_of_its_file_or_network() -> None:
    assert load(SPECS / "starter.sym").name == "starter"
    assert parse(f"data digits\n{NETWORK}").facts.name == "n"


@pytest.mark.parametrize(
    ("settings", "data", "codes"),
    [
        ("epochs = 2  every = 25", "digits", ["W104"]),  # 12 steps an epoch
        ("epochs = 2  every = 24", "digits", []),
        ("epochs = 4  burnin = 2  every = 25", "digits", ["W104"]),
        ("epochs = 2  every = 25  batch = 64", "digits", []),
        ("epochs = 2  every = 25", "digits |> subset(100)", ["W104"]),
        ("epochs = 2  every = 25", "digits |> quadrants(copies = 8)", []),
        ("epochs = 2  every = 1000", "given(channels = 1, size = 8, classes = 10)", []),
        ("epochs = 2  every = 25  objective = elbo", "digits", ["W104"]),
    ],
)
def test_evidence_steps_fit_into_the_training(settings: str, data: str, codes: list[str]) -> None:
    side = 16 if "quadrants" in data else 8
    text = f"data {data}\nnetwork n {{ input image(1, {side}, {side})\nflatten\nlayer h: FC -> classes }}"
    assert [one.code for one in parse(f"{text}\nsearch {{ {settings} }}").warnings] == codes
