"""Blocks: items that networks use, with parameters and names of their own; and the types of parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.specs import codes, found
from symdsl.analysis.facts import Layer
from symdsl.analysis.parameters import PARAMETER_TYPES
from symdsl.graph.serial import content_hash
from symdsl.language.formatter import format_text
from symdsl.language.repairs import TYPES
from symdsl.spec import Spec, check, load, parse

FRAME = """{}
data digits
network n {{
  input image(1, 8, 8)
  {}
  flatten
  layer h: FC -> classes
}}
"""


def built(statements: str, items: str, priors: str = "") -> Spec:
    return parse(FRAME.format(statements, items) + priors)


def layers(spec: Spec) -> list[Layer]:
    return list(spec.facts.network.layers)


def names(statements: str, items: str) -> list[str]:
    return [layer.name for layer in layers(built(statements, items))][:-1]


A = "block a(c = 2) { layer: FC -> c layer last: CONV(1) -> c }"
B = "block b3 { layer: FC -> 3 use a(4) layer: FC -> 3 use a as z }"


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ("use a", ["a1/l1", "a1/last"]),
        ("use a(3) as early", ["early/l1", "early/last"]),
        ("use a use a as other use a", ["a1/l1", "a1/last", "other/l1", "other/last", "a3/l1", "a3/last"]),
        ("layer: FC -> 1 use a layer: FC -> 1", ["l1", "a1/l1", "a1/last", "l2"]),
        ("repeat [1, 2] as i { use a(i) }", ["a1/l1", "a1/last", "a2/l1", "a2/last"]),
        ("use b3", ["b3_1/l1", "b3_1/a1/l1", "b3_1/a1/last", "b3_1/l2", "b3_1/z/l1", "b3_1/z/last"]),
        ("layer by/hand: FC -> 1", ["by/hand"]),
    ],
)
def test_layers_are_named_after_the_use(items: str, expected: list[str]) -> None:
    assert names(f"{A}\n{B}", items) == expected


def test_a_block_says_what_its_items_would() -> None:
    block = built("block s(w, k) { layer: k -> w stride 2 |> relu pool max }", "layer: FC -> 3\nuse s(4, CONV(3)) as x")
    plain = built("", "layer: FC -> 3\nlayer x/l1: CONV(3) -> 4 stride 2 |> relu\npool max")
    assert content_hash(block.graph()) == content_hash(plain.graph())


def test_a_block_sees_its_parameters_and_the_lets_but_not_where_it_is_used() -> None:
    lets = "let w = 3\nblock s(v) { layer: FC -> w*v }"
    assert layers(built(lets, "repeat [5] as w { use s(w) }"))[0].out_shape.channels == 15
    assert codes(FRAME.format("block s { layer: FC -> i }", "repeat [5] as i { use s }")) == ["E301"]


def test_a_default_sees_the_parameters_before_it() -> None:
    spec = built("let a = 9\nblock s(a, b = 2*a) { layer: FC -> b }", "use s(4)")
    assert layers(spec)[0].out_shape.channels == 8


PRIORS = """prior {
  *.FC       ~ normal(precision = 2)
  a1/*.FC    ~ normal(precision = 3)
  a1/z/*.FC  ~ normal(precision = 4)
  t/z/m.FC   ~ normal(precision = 6)
}
"""


def test_selectors_reach_the_layers_of_blocks_the_more_of_the_path_the_better() -> None:
    statements = "block a { layer l: FC -> 1 use b as z } block b { layer l: FC -> 1 layer m: FC -> 1 }"
    spec = built(statements, "use a use a as t", PRIORS)
    precisions = {layer.name: layer.candidates[0].tensors[0].prior.precision for layer in layers(spec)}
    assert precisions == {"a1/l": 3, "a1/z/l": 4, "a1/z/m": 4, "t/l": 2, "t/z/l": 2, "t/z/m": 6, "h": 2}


def test_a_selector_of_no_layer_of_a_block_gets_a_suggestion() -> None:
    (one,) = found(FRAME.format(A, "use a") + "prior { a1/lst.FC ~ normal(2) }")
    assert (one.code, one.help[:28]) == ("E501", "did you mean `a1/last`? ther")


def chain(count: int) -> str:
    blocks = [f"block b{i} {{ use b{i + 1} }}" for i in range(count)]
    return "\n".join([*blocks, f"block b{count} {{ layer: FC -> 1 }}"])


@pytest.mark.parametrize(
    ("statements", "items", "expected"),
    [
        ("block a { use a }", "use a", "E309"),
        ("block a { use b } block b { repeat [1] as i { use a } }", "use a", "E309"),
        (chain(60), "use b0", "E105"),
        (
            "\n".join(f"block b{i} {{ use b{i + 1} use b{i + 1} }}" for i in range(20)) + "block b20 {}",
            "use b0",
            "E405",
        ),
        ("block a { input image(1, 8, 8) }", "use a", "E211"),
        ("block a { layer: FC -> 1 }", "use a as x use a as x", "E308"),
        ("block a { layer: FC -> 1 }", "layer x: FC -> 1 use a as x", "E308"),
        ("block a { } let a = 1", "use a", "E308"),
        ("", "use n", "E307"),
    ],
)
def test_blocks_that_cannot_be(statements: str, items: str, expected: str) -> None:
    assert expected in codes(FRAME.format(statements, items))


def test_a_long_chain_of_blocks_within_the_limit_is_fine() -> None:
    assert codes(FRAME.format(chain(40), "use b0")) == []


def test_what_is_wrong_in_a_block_names_the_use() -> None:
    text = FRAME.format("block a(s) {\n  layer: FC -> 1 stride s\n}", "use a(2)\n  use a(3)")
    (one,) = found(text)
    assert (one.code, one.span.line) == ("E201", 2)
    assert [(place.span.line, place.label) for place in one.notes] == [(2, "makes the map 4x4"), (8, "used here")]


# ---------------------------------------------------------------- types of parameters

VALUES = {
    "whole": ("3", "-2", "4/2"),
    "number": ("3", "0.5"),
    "flag": ("true", "1 < 2"),
    "text": ('"a"',),
    "word": ("pointwise", "max"),
    "kind": ("FC", "CONV(3)"),
    "kinds": ("CONV(3)", "[FC, CONV(3)]", "[]"),
    "prior": ("normal(2)", "normal(std = 1, fixed)"),
    "list": ("[1, 2]", "[FC]", "(1, 2)", "[]"),
}
FITTING = {(name, value) for name, values in VALUES.items() for value in values} | {
    *(("number", value) for value in VALUES["whole"]),
    *(("kinds", value) for value in ("FC", "[FC]", "[]")),
    *(("list", value) for value in ("[FC, CONV(3)]",)),
    ("word", "FC"),
}
PAIRS = [(name, value) for name in VALUES for values in VALUES.values() for value in values]


@pytest.mark.parametrize(("name", "value"), PAIRS)
def test_a_parameter_takes_what_its_type_says(name: str, value: str) -> None:
    said = codes(FRAME.format(f"block a(p: {name}) {{ }}", f"use a({value})"))
    assert (said == []) is ((name, value) in FITTING), said


def test_every_type_is_tested() -> None:
    assert set(VALUES) == set(PARAMETER_TYPES)


def test_a_network_checks_types_at_the_call_and_names_both_places() -> None:
    text = "network t(w: whole) {\n  input image(1, 8, 8)\n  flatten\n  layer h: FC -> w\n}\ndata digits\n"
    (one,) = found(text + 'network n = t(w = "ten")')
    assert one.message == '`w` must be a whole number, found the text "ten"'
    assert (one.span.line, [place.span.line for place in one.notes]) == (7, [1])
    assert codes(text + "network n = t(10)") == []


def test_a_default_is_of_the_type_too() -> None:
    (one,) = found(FRAME.format("block a(p: whole = 1.5) { }", "use a"))
    assert one.message == "`p` must be a whole number, found `1.5`"


def test_an_override_is_checked_by_the_type() -> None:
    text = "network t(w: whole) {\ninput image(1, 8, 8)\nflatten\nlayer h: FC -> w\n}\ndata digits\nnetwork n = t(10)"
    assert codes(text, {"w": "10"}) == []
    (one,) = found(text, {"w": '"ten"'})
    assert (one.span.source, one.message) == ("--set", '`w` must be a whole number, found the text "ten"')


# ---------------------------------------------------------------- files

LIBRARY = """let wide = 3

block stage(candidates: kinds, width = wide) {
  layer: candidates -> width |> relu
  use inner
}

block inner {
  layer: FC -> 2
}
"""
MAIN = """import "blocks/stage.sym"
data digits
network n {
  input image(1, 8, 8)
  use stage([F-FC, CONV(3)])
  flatten
  layer h: FC -> classes
}
"""


def written(folder: Path, main: str = MAIN, library: str = LIBRARY) -> Path:
    (folder / "blocks").mkdir()
    (folder / "blocks" / "stage.sym").write_text(library)
    (folder / "main.sym").write_text(main)
    return folder / "main.sym"


def test_a_spec_that_imports_blocks_has_a_text_of_its_own(tmp_path: Path) -> None:
    spec = load(written(tmp_path))
    alone = parse(spec.text())
    assert content_hash(alone.graph()) == content_hash(spec.graph())
    assert alone.text() == format_text(spec.text()) == spec.text()


def test_a_library_of_blocks_is_checked_on_its_own(tmp_path: Path) -> None:
    written(tmp_path)
    assert check(tmp_path / "blocks" / "stage.sym") == ()


@pytest.mark.parametrize(
    ("right", "wrong", "code"),
    [
        ("FC -> 2", "FD -> 2", "E302"),
        ("use inner", "use iner", "E307"),
        ("width = wide", "width: text = wide", "E401"),
        ("kinds", "kind_s", "E406"),
        ("block inner {", "block inner {\nuse stage(FC)", "E309"),
    ],
)
def test_what_is_wrong_with_a_block_whatever_it_is_given(tmp_path: Path, right: str, wrong: str, code: str) -> None:
    written(tmp_path, library=LIBRARY.replace(right, wrong))
    assert code in [one.code for one in check(tmp_path / "blocks" / "stage.sym")]


@pytest.mark.parametrize(
    ("clash", "message"),
    [
        ("let wide = 4\n", "`wide` is defined twice as a `let`"),
        ("let inner = 4\n", "`inner` is defined as a `let`, but is the name of a block already"),
        ("block inner { }\n", "`inner` is defined twice as a block"),
        ("network stage(a) { }\n", "`stage` is defined as a network, but is the name of a block already"),
    ],
)
def test_names_that_clash_with_an_import_are_explained_with_both_places(
    tmp_path: Path, clash: str, message: str
) -> None:
    first = check(written(tmp_path, main=MAIN.replace("data", clash + "data")))[0]
    assert (first.code, first.message) == ("E308", message)
    assert [Path(place.span.source).name for place in (first.place, *first.notes)] == ["main.sym", "stage.sym"]


def test_repairs_know_the_types_of_parameters():
    assert PARAMETER_TYPES.keys() == TYPES
