"""What the analysis finds out about the kinds with basis functions, and about F-GFC."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.specs import codes, found, items
from symdsl.analysis.facts import Candidate, FactorSize, Layer, Prior
from symdsl.spec import Spec, load, parse

SPECS = Path(__file__).parent.parent.parent / "specs"
UNIT = Prior(1, False)


def layers(spec: Spec) -> dict[str, Layer]:
    return {node.name: node for node in spec.facts.network.layers}


def candidate(kind: str, before: str = "layer l0: FC -> 3", stride: int = 2) -> Candidate:
    return layers(items(f"{before}\nlayer l1: {kind} -> 2 stride {stride}\nflatten"))["l1"].candidates[0]


Sizes = tuple[tuple[int, ...], tuple[int, int], tuple[int, int]]


@pytest.mark.parametrize(
    ("kind", "lift", "expected", "cost"),
    [
        (
            "S-FC",
            False,
            {"u1": ((2, 3, 8), (8, 1), (3, 2)), "u2": ((2, 3, 32), (2, 1), (32, 3))},
            3 * 64 * 32 + 6 * 40 + 2 * 8 * 16,
        ),
        (
            "S-FC(learned, lengthscale, sparsity = 5)",
            False,
            {
                "u1": ((2, 3, 4), (4, 1), (3, 2)),
                "u2": ((2, 3, 13), (2, 1), (13, 3)),
                "omega1": ((4,), (4, 1), (1, 1)),
                "anchors1": ((4, 2), (8, 1), (1, 1)),
                "omega2": ((13,), (13, 1), (1, 1)),
                "anchors2": ((13, 2), (26, 1), (1, 1)),
            },
            3 * 64 * 13 + 6 * 17 + 2 * 4 * 16,
        ),
        ("S-CONV(3)", False, {"u": ((2, 3, 5), (2, 1), (15, 1))}, 6 * 9 * 64 + 6 * 9 * 5),
        (
            "S-CONV(5, learned, lengthscale)",
            False,
            {
                "u": ((2, 3, 13), (2, 1), (39, 1)),
                "omega": ((13,), (13, 1), (1, 1)),
                "anchors": ((13, 2), (26, 1), (1, 1)),
            },
            6 * 25 * 64 + 6 * 25 * 13,
        ),
        ("S-CONV(3)", True, {"u": ((8, 12, 5), (8, 1), (60, 1))}, 96 * 9 * 64 + 96 * 9 * 5),
        (
            "S-FC",
            True,
            {"u1": ((8, 12, 8), (8, 1), (12, 8)), "u2": ((8, 12, 32), (8, 1), (32, 12))},
            12 * 64 * 32 + 96 * 40 + 8 * 8 * 16,
        ),
        (
            "F-GFC",
            True,
            {"w1": ((2, 3, 64), (64, 1), (3, 2)), "w2": ((2, 3, 256), (2, 1), (256, 3))},
            6 * (64 + 256),
        ),
        (
            "S-GFC",
            True,
            {"u1": ((2, 3, 32), (32, 1), (3, 2)), "u2": ((2, 3, 128), (2, 1), (128, 3))},
            3 * 256 * 128 + 6 * 160 + 2 * 32 * 64,
        ),
        (
            "S-GCONV(3, on = lengthscale)",
            True,
            {"u": ((2, 3, 18), (2, 1), (54, 1)), "omega": ((18,), (18, 1), (1, 1))},
            8 * 12 * 9 * 64 + 6 * 4 * 9 * 18,
        ),
    ],
)
def test_tensors_factors_and_costs(kind: str, lift: bool, expected: dict[str, Sizes], cost: int) -> None:
    one = candidate(kind, "lift p4\nlayer l0: FC -> 3" if lift else "layer l0: FC -> 3")
    sizes = {tensor.name: (tensor.shape, tensor.left, tensor.right) for tensor in one.tensors}
    assert sizes == {
        name: (shape, FactorSize(*left), FactorSize(*right)) for name, (shape, left, right) in expected.items()
    }
    assert one.multiply_adds == cost
    for tensor in one.tensors:
        sides = (tensor.left, tensor.right)
        assert tensor.parameters == sides[0].side * sides[0].blocks * sides[1].side * sides[1].blocks


TABLE_2 = {
    "FC": (133_608_780, "133.6"),
    "CONV(3)": (338_770, "0.3"),
    "FC, CONV(3)": (133_837_650, "133.8"),
    "F-FC": (1_540_940, "1.5"),
    "F-FC, CONV(3)": (1_769_810, "1.8"),
    "S-FC": (831_820, "0.8"),
    "S-CONV(3)": (237_050, "0.2"),
    "S-FC, S-CONV(3)": (958_970, "1.0"),
    "S-FC(on = lengthscale)": (834_017, "0.8"),
    "S-CONV(3, on = lengthscale)": (237_090, "0.2"),
    "S-FC(on = lengthscale), S-CONV(3, on = lengthscale)": (961_207, "1.0"),
}


# The paper prints 133.9 for FC + CONV: with one bias for each of FC's 27,360 outputs these would be 133,864,560 + 450.


@pytest.mark.parametrize("candidates", TABLE_2)
def test_parameters_of_table_2(candidates: str) -> None:
    spec = load(SPECS / "paper" / "network.sym", {"candidates": f"[{candidates}]"})
    total = sum(layer.parameters for layer in layers(spec).values())
    assert (total, f"{total / 1e6:.1f}") == TABLE_2[candidates]


@pytest.mark.parametrize(
    ("lines", "name", "preserves", "scale"),
    [
        ("layer l1: S-FC + S-CONV(3) -> 2\nflatten", "S-CONV", ("translations",), 1.0),
        ("layer l1: S-FC + S-CONV(3) -> 2\nflatten", "S-FC", (), 0.1),
        ("pool mean\nlayer l1: S-FC + S-CONV(1) -> 2\nflatten", "S-FC", ("translations",), 1.0),
        (
            "lift p4\nlayer l1: S-GFC + S-GCONV(3) -> 2\nproject max\nflatten",
            "S-GCONV",
            ("translations", "quarter turns"),
            1.0,
        ),
        ("lift p4\nlayer l1: S-CONV(3) + S-GCONV(3) -> 2\nproject max\nflatten", "S-CONV", ("translations",), 0.1),
        ("lift p4\nlayer l1: F-GFC + S-GCONV(3) -> 2\nproject max\nflatten", "F-GFC", (), 0.1),
    ],
)
def test_symmetry_and_initial_scale(lines: str, name: str, preserves: tuple[str, ...], scale: float) -> None:
    (one,) = [one for one in layers(items(lines))["l1"].candidates if one.name == name]
    assert (one.preserves, one.init_scale) == (preserves, scale)


@pytest.mark.parametrize("kind", ["F-GFC", "S-GFC", "S-GCONV(3)"])
def test_kinds_on_a_group_need_a_lifted_map(kind: str) -> None:
    spec = "data digits\nnetwork n {{\ninput image(1, 8, 8)\n{}\nlayer l1: {} -> 2\nflatten\nlayer h: FC -> classes\n}}"
    (plain,) = found(spec.format("", kind))
    assert (plain.code, plain.help) == ("E203", "add `lift p4` after `input` on line 3, or drop this candidate")
    assert codes(spec.format("lift p4\nproject max\nflatten", kind))[0] == "E204"


def test_a_sparse_kernel_is_checked_like_any_other() -> None:
    spec = "data digits\nnetwork n {{\ninput image(1, 8, 8)\nlift p4\nlayer l1: {} -> 2\nproject max\nflatten\n}}"
    for kind in ("S-CONV(4)", "S-GCONV(4)", "S-CONV(17)", "S-GCONV(17)"):
        assert "E202" in codes(spec.format(kind))
    assert "E402" in codes(spec.format("S-CONV(3, sparsity = 0)"))
    assert "E406" in codes(spec.format("S-FC(on = anchors)"))


def test_candidates_of_one_kind_are_told_apart_by_what_is_learned() -> None:
    layer = layers(items("layer l1: S-CONV(3) + S-CONV(3, learned) + S-CONV(3, sparsity = 3) -> 2\nflatten"))["l1"]
    names = [one.name for one in layer.candidates]
    assert names == ["S-CONV(3)", "S-CONV(3, anchors = learned)", "S-CONV(3, sparsity = 3)"]


# priors

PRIORS = """
data digits
network n {{
  input image(1, 8, 8)
  layer l1: S-FC(on = lengthscale) + S-CONV(3, anchors = learned){} -> 4
  flatten
  layer h: FC -> classes
}}
prior {{
{}
}}
"""


def priors(at: str, rules: str) -> dict[str, Prior]:
    candidates = layers(parse(PRIORS.format(at, rules)))["l1"].candidates
    return {f"{one.name}.{tensor.name}": tensor.prior for one in candidates for tensor in one.tensors}


def test_on_lengthscale_the_values_keep_a_unit_prior() -> None:
    learned = Prior(1, True)
    assert priors("", "*.bias ~ normal(2)") == {
        "S-FC.u1": UNIT,
        "S-FC.u2": UNIT,
        "S-FC.omega1": learned,
        "S-FC.omega2": learned,
        "S-CONV.u": learned,
        "S-CONV.anchors": learned,
    }


@pytest.mark.parametrize("rule", ["l1.S-FC ~ normal(4)", "*.* ~ normal(4)", "*.*.* ~ normal(4)"])
def test_a_rule_for_the_candidate_reaches_its_lengthscales_alone(rule: str) -> None:
    reached = priors("", rule)
    assert [reached[f"S-FC.{name}"] for name in ("u1", "u2")] == [UNIT, UNIT]
    assert [reached[f"S-FC.{name}"] for name in ("omega1", "omega2")] == [Prior(4, True), Prior(4, True)]


def test_a_prior_at_the_candidate_reaches_its_anchors_too() -> None:
    reached = priors(" ~ normal(3, fixed)", "*.bias ~ normal(2)")
    assert reached["S-CONV.u"] == reached["S-CONV.anchors"] == Prior(3, False)


@pytest.mark.parametrize(
    ("rule", "u1", "u2"),
    [
        ("l1.S-FC.u1 ~ normal(2)", Prior(2, True), UNIT),
        ("*.S-FC.u* ~ normal(1)", Prior(1, True), Prior(1, True)),
        ("*.*.u2 ~ normal(2, fixed)", UNIT, Prior(2, False)),
        ("l1.S-FC ~ normal(4)\n*.*.u1 ~ normal(2)", Prior(2, True), UNIT),
    ],
)
def test_a_rule_that_names_the_values_reaches_them(rule: str, u1: Prior, u2: Prior) -> None:
    reached = priors("", rule)
    assert (reached["S-FC.u1"], reached["S-FC.u2"]) == (u1, u2)


def test_the_pruned_spec_says_the_same_and_nothing_of_unit_priors() -> None:
    spec = parse(PRIORS.format("", "l1.S-FC ~ normal(4)\nl1.S-FC.u2 ~ normal(3)\nl1.S-CONV.anchors ~ normal(2, fixed)"))
    text = spec.pruned({"l1": {"S-FC", "S-CONV"}})
    assert "u1" not in text
    assert "u2" in text
    again = parse(text)
    for before, after in zip(layers(spec)["l1"].candidates, layers(again)["l1"].candidates, strict=True):
        assert (before.arguments, before.tensors) == (after.arguments, after.tensors)
