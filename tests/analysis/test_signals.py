"""Lines: `input signal`, kernels and strides that go along it, and the groups that act on it."""

from __future__ import annotations

import pytest

from analysis.specs import codes, found
from symdsl.analysis.facts import Layer
from symdsl.catalog.shapes import Shape
from symdsl.graph import build, strict_symmetry
from symdsl.spec import Spec, parse

FRAME = """data digits |> unroll
network n {{
  input {input}
  {items}
  flatten
  layer h: FC -> classes
}}
"""


def text(items: str, input: str = "signal(1, 64)") -> str:
    return FRAME.format(input=input, items=items)


def first(items: str) -> Layer:
    return spec(items).facts.network.layers[0]


def spec(items: str) -> Spec:
    return parse(text(items))


def test_a_signal_is_a_map_of_one_row() -> None:
    signal, image = (parse(text("layer: CONV(3) -> 2", input)) for input in ("signal(1, 64)", "image(1, 1, 64)"))
    assert signal.facts.network.nodes[0].out_shape == Shape(1, 1, 64)
    assert build(signal.facts).edges == build(image.facts).edges
    assert parse(signal.pruned({})).facts.network.nodes[0].out_shape == Shape(1, 1, 64)
    assert "input signal(1, 64)" in signal.pruned({})


@pytest.mark.parametrize(
    ("kind", "shapes"),
    [
        ("CONV(5)", [(3, 1, 1, 5)]),
        ("S-CONV(5)", [(3, 1, 3)]),
        ("FC", None),
        ("F-FC", None),
        ("S-FC", None),
    ],
)
def test_kernels_go_along_the_line(kind: str, shapes: list[tuple[int, ...]] | None) -> None:
    (one,) = first(f"layer: {kind} -> 3").candidates
    if shapes is not None:
        assert [tensor.shape for tensor in one.tensors] == shapes


@pytest.mark.parametrize("factor", ["full", "separable", "depthwise", "pointwise"])
def test_group_kernels_go_along_the_line(factor: str) -> None:
    layer = first(f"lift mirror\nlayer: GCONV(5, {factor}) + S-GCONV(3) -> 3\nproject max")
    assert [tensor.shape[-2:] for tensor in layer.candidates[0].tensors][-1] == (1, 5)
    assert layer.candidates[1].tensors[0].shape == (3, 1, 3)
    assert layer.candidates[0].preserves == ("translations", "left-right flips")


def test_strides_go_along_the_line() -> None:
    layer = first("layer: CONV(3) + F-FC -> 2 stride 4")
    assert (layer.out_shape, layer.stride, layer.strides) == (Shape(2, 1, 16), 4, (1, 4))
    assert codes(text("layer: CONV(3) -> 2 stride 5")) == ["E201"]


def test_an_image_that_has_shrunk_to_a_row_is_a_line() -> None:
    given = "given(1, height = 2, width = 8, classes = 10)"
    items = "layer: CONV(3) -> 1 stride 2\n  layer: CONV(3) -> 1 stride 2"
    shrunk = parse(text(items, "image(1, 2, 8)").replace("digits |> unroll", given))
    shapes = [node.out_shape for node in shrunk.facts.network.layers]
    assert shapes[:2] == [Shape(1, 1, 4), Shape(1, 1, 2)]


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ("layer: CONV(127) -> 1", ["W109"]),
        ("layer: CONV(129) -> 1", ["E202"]),
        ("layer: CONV(4) -> 1", ["E202"]),
        ("layer: CONV(63) -> 1", []),
    ],
)
def test_a_kernel_is_as_long_as_the_line(items: str, said: list[str]) -> None:
    assert codes(text(items)) == said


def test_quarter_turns_do_not_act_on_a_line() -> None:
    items = "lift p4\nlayer: GCONV(3) + CONV(3) -> 1\nproject max"
    messages = {one.code: one.message for one in found(text(items))}
    assert messages["E203"] == "`GCONV` acts on `p4`, whose quarter turns the line that `l1` reads does not have"
    assert codes(text("lift p4\nlayer: GCONV(3, group = C2) -> 1\nproject max")) == ["W103"]
    plain = next(one for one in found(text("layer: GCONV(3) + CONV(3) -> 1")) if one.code == "E203")
    assert plain.help == "add `lift mirror` after `input` on line 3, or drop this candidate"


def test_a_network_on_a_line_keeps_its_reflection() -> None:
    items = "lift mirror\nlayer: GCONV(3) -> 2 stride 2 |> relu\nproject max\npool max"
    assert strict_symmetry(build(spec(items).facts)).invariant == ("translations", "left-right flips")


@pytest.mark.parametrize("step", ["translate(5)", "augment(flip)", "augment(shift = 63)"])
def test_a_line_moves_by_less_than_its_length(step: str) -> None:
    assert codes(text("").replace("unroll", f"unroll |> {step}")) == []
    assert codes(text("").replace("unroll", "unroll |> translate(64)")) == ["E602"]


def test_no_second_error_follows_from_numbers_in_another_order() -> None:
    assert codes(text("layer: CONV(3) -> 2 stride 2", "image(1, 64, 1)")) == ["E208"]


def test_other_data_are_said_in_the_words_of_a_signal() -> None:
    (one,) = found(text("", "image(1, 8, 8)"))
    assert (one.code, one.help) == ("E208", "write `signal(1, 64)`, or change the data")
