"""GCONV: what its factors and groups need, preserve and cost, and how priors and names tell them apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.specs import items
from symdsl.analysis.facts import Candidate, FactorSize, Layer
from symdsl.groups import GROUPS
from symdsl.spec import Spec, load, parse

SEVERAL = Path(__file__).parent.parent / "fixtures" / "good" / "groups.sym"
ALL_GROUPS = [name for name in GROUPS if name != "trivial"]


def layers(spec: Spec) -> dict[str, Layer]:
    return {node.name: node for node in spec.facts.network.layers}


def group_layer(candidates: str, lift: str, channels: int = 2) -> tuple[Candidate, ...]:
    """Candidates of a layer from 3 channels, lifted, on 8x8 maps."""
    lines = f"lift {lift}\nlayer l0: FC -> 3\nlayer l1: {candidates} -> {channels}\nproject max\nflatten"
    return layers(items(lines))["l1"].candidates


@pytest.mark.parametrize(
    ("written", "lift", "tensors"),
    [
        ("GCONV(3)", "C2", [("w", (2, 3, 2, 3, 3), (2, 1), (54, 1))]),
        ("GCONV(3)", "p4m", [("w", (2, 3, 8, 3, 3), (2, 1), (216, 1))]),
        ("GCONV(3, separable)", "p4", [("w1", (2, 3, 4), (2, 1), (12, 1)), ("w2", (3, 3, 3), (1, 1), (9, 3))]),
        (
            "GCONV(5, depthwise)",
            "p4",
            [("w0", (2, 3), (2, 1), (3, 1)), ("w1", (3, 4), (1, 1), (4, 3)), ("w2", (3, 5, 5), (1, 1), (25, 3))],
        ),
        ("GCONV(3, pointwise)", "p4m", [("w", (2, 3, 3, 3), (2, 1), (27, 1))]),
        ("GCONV(3, group = p4)", "p4m", [("w", (4, 6, 4, 3, 3), (4, 1), (216, 1))]),
        ("GCONV(3, pointwise, mirror)", "flips", [("w", (4, 6, 3, 3), (4, 1), (54, 1))]),
        (
            "GCONV(3, separable, group = C2)",
            "p4m",
            [("w1", (8, 12, 2), (8, 1), (24, 1)), ("w2", (12, 3, 3), (1, 1), (9, 12))],
        ),
    ],
)
def test_tensors_and_their_factors(
    written: str, lift: str, tensors: list[tuple[str, tuple[int, ...], tuple[int, int], tuple[int, int]]]
) -> None:
    (one,) = group_layer(written, lift)
    found = [(tensor.name, tensor.shape, tensor.left, tensor.right) for tensor in one.tensors]
    assert found == [(name, shape, FactorSize(*left), FactorSize(*right)) for name, shape, left, right in tensors]
    for tensor in one.tensors:
        assert tensor.parameters == tensor.left.side * tensor.left.blocks * tensor.right.side * tensor.right.blocks


@pytest.mark.parametrize(
    ("written", "channels", "per_position"),
    [
        ("GCONV(3)", 2, 8 * 12 * 9),
        ("GCONV(3, pointwise)", 2, 8 * 3 * 9),
        ("GCONV(3, separable)", 2, 8 * 12 * 9),
        ("GCONV(3, separable)", 40, 3 * 16 * (9 + 40)),
        ("GCONV(3, depthwise)", 2, 12 * (4 + 9 + 2)),
        ("GCONV(3, group = C2)", 2, 8 * 12 * 9),
    ],
)
def test_what_a_factor_costs(written: str, channels: int, per_position: int) -> None:
    (one,) = group_layer(written, "p4", channels)
    assert one.multiply_adds == per_position * 64


@pytest.mark.parametrize(
    ("lift", "group", "preserves"),
    [
        ("C2", "C2", ("half turns",)),
        ("mirror", "mirror", ("left-right flips",)),
        ("flips", "flips", ("left-right flips", "up-down flips")),
        ("p4m", "p4m", ("quarter turns", "left-right flips")),
        ("p4m", "p4", ("quarter turns",)),
        ("p4m", "flips", ("left-right flips", "up-down flips")),
        ("p4", "C2", ("half turns",)),
        ("flips", "mirror", ("left-right flips",)),
    ],
)
def test_a_candidate_preserves_its_own_group(lift: str, group: str, preserves: tuple[str, ...]) -> None:
    (one,) = group_layer(f"GCONV(3, group = {group})", lift)
    assert one.preserves == ("translations", *preserves)


def scales(candidates: str, lift: str) -> list[float]:
    return [one.init_scale for one in group_layer(candidates, lift)]


def test_a_candidate_starts_small_where_another_keeps_all_it_keeps_and_more() -> None:
    assert scales("GCONV(3) + GCONV(3, group = p4) + GCONV(3, group = C2) + CONV(3) + F-FC", "p4m") == [1, *[0.1] * 4]
    assert scales("GCONV(3, separable) + GCONV(3)", "p4m") == [1, 1]


def test_groups_of_which_none_contains_the_other_start_alike() -> None:
    assert scales("GCONV(3, group = p4) + GCONV(3, group = flips) + CONV(3)", "p4m") == [1, 1, 0.1]


@pytest.mark.parametrize("lift", ALL_GROUPS)
def test_a_group_of_its_own_need_not_be_written(lift: str) -> None:
    implied, written = (group_layer(text, lift)[0] for text in ("GCONV(3)", f"GCONV(3, group = {lift})"))
    assert (implied.name, implied.arguments, implied.tensors) == (written.name, written.arguments, written.tensors)
    lines = f"lift {lift}\nlayer l1: GCONV(3) + GCONV(3, group = {lift}) -> 2\nproject max\nflatten"
    assert [one.code for one in items(lines).warnings] == ["W101"]


def test_a_list_used_twice_repeats_its_candidates() -> None:
    spec = parse(
        "let some = [CONV(3), FC]\ndata digits\nnetwork n {\n  input image(1, 8, 8)\n"
        "  layer l1: some + some -> 2\n  flatten\n  layer h: FC -> classes\n}\n"
    )
    assert [(one.code, one.span.line) for one in spec.warnings] == [("W101", 5)]


def test_names_tell_factors_and_groups_apart() -> None:
    found = layers(load(SEVERAL))
    assert [one.name for one in found["l1"].candidates] == [
        "GCONV(3)",
        *(f"GCONV(3, factor = {factor})" for factor in ("separable", "depthwise", "pointwise")),
    ]
    assert [one.name for one in found["l2"].candidates] == [
        *("GCONV(3)", "GCONV(3, group = p4)", "GCONV(3, group = flips)"),
        "GCONV(3, factor = separable, group = C2)",
    ]


def test_priors_tell_factors_and_groups_apart() -> None:
    precisions = {
        f"{layer.name}.{one.name}.{tensor.name}": tensor.prior.precision
        for layer in layers(load(SEVERAL)).values()
        for one in layer.candidates
        for tensor in one.tensors
        if one.kind == "GCONV"
    }
    assert [key for key, value in precisions.items() if value == 3] == ["l2.GCONV(3).w"]
    assert [key for key, value in precisions.items() if value == 4] == ["l2.GCONV(3, group = p4).w"]
    assert [key for key, value in precisions.items() if value == 5] == [
        "l2.GCONV(3, factor = separable, group = C2).w2"
    ]
    assert [key for key, value in precisions.items() if value == 6] == [
        f"l1.GCONV(3, factor = depthwise).{tensor}" for tensor in ("w0", "w1", "w2")
    ]
    assert [key for key, value in precisions.items() if value == 7] == ["l3.GCONV.w0"]


def test_a_pruned_spec_keeps_the_groups() -> None:
    spec = load(SEVERAL)
    keep = "GCONV(3, group = flips)"
    pruned = layers(parse(spec.pruned({"l2": {keep}})))["l2"].candidates
    (before,) = [one for one in layers(spec)["l2"].candidates if one.name == keep]
    assert [(one.arguments, one.tensors, one.preserves) for one in pruned] == [
        (before.arguments, before.tensors, before.preserves)
    ]
