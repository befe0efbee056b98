"""Overrides are typed and diagnosed like the text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis.specs import NETWORK, codes
from symdsl.analysis.overrides import Override
from symdsl.diagnostics import SpecError
from symdsl.spec import load, parse

SPECS = Path(__file__).parent.parent.parent / "specs"
POSITION = SPECS / "quadrant_position.sym"
MNIST = SPECS / "rotated_mnist.sym"


def kinds(overrides: dict[str, object]) -> set[str]:
    layers = list(load(POSITION, overrides).facts.network.layers)
    return {one.kind for layer in layers[:7] for one in layer.candidates}


def test_a_let() -> None:
    assert kinds({}) == {"F-FC", "CONV"}
    assert kinds({"candidates": "[CONV(3)]"}) == {"CONV"}
    assert kinds({"candidates": " [ FC,CONV( 3 ) ]"}) == {"FC", "CONV"}


@pytest.mark.parametrize("value", ["8", 8, 8.0])
def test_a_parameter_given_where_a_network_is_instantiated(value: object) -> None:
    assert load(POSITION, {"width": value}).facts.network.nodes[1].out_shape.channels == 8


def test_a_parameter_left_to_its_default() -> None:
    spec = load(SPECS / "paper" / "network.sym", {"width": 3})
    assert spec.facts.network.nodes[1].out_shape.channels == 3
    assert "eight_layers(candidates, width = 3)" in spec.text()


def test_keys_of_the_search() -> None:
    search = load(
        POSITION, {"search.epochs": "5", "search.optimizer": "adam(lr = 0.1)", "search.start": "symmetric"}
    ).facts.search
    assert (search.epochs, search.optimizer.lr, search.start, search.batch) == (5, 0.1, "symmetric", 128)


def test_a_search_that_the_spec_does_not_have() -> None:
    assert parse(f"data digits\n{NETWORK}", {"search.epochs": 5}).facts.search.epochs == 5


@pytest.mark.parametrize("root", ["/x/y", "~/x", "x", "../x y", '"/q"', "2", "let"])
def test_a_text_needs_no_quotes(root: str) -> None:
    spec = load(MNIST, {"data.root": root})
    assert spec.facts.data.source.argument("root") == root.strip('"')
    assert parse(spec.text()).facts.data.source.argument("root") == root.strip('"')


@pytest.mark.parametrize("before", ['let p = "ok"\n', 'let root = "ok"\nlet p = root\n'])
def test_a_let_that_is_a_text_needs_none_either(before: str) -> None:
    spec = parse(f"{before}data mnist(root = p) |> resize(8)\n{NETWORK}", {"p": "/tmp/x"})
    assert spec.facts.data.source.argument("root") == "/tmp/x"


TEMPLATE = """
{}
network of(width: whole = 8, label: text = "a", label2 = "b") {{
  input image(1, 8, 8)
  layer l1: CONV(3) -> width |> relu
  flatten
  layer h1: FC -> classes
}}
network n = of({})
"""


def test_a_parameter_that_is_a_text_needs_none_either() -> None:
    spec = parse(TEMPLATE.format("data digits", ""), {"label": "foo bar", "label2": "x"})
    assert 'label = "foo bar"' in spec.text()
    assert 'label2 = "x"' in spec.text()


def test_of_a_let_and_a_parameter_neither_is_meant_unless_one_has_the_other() -> None:
    lets = "let width = 4\nlet other = 2*width\ndata digits(size = other)"
    with pytest.raises(SpecError, match=r"E310\]: both a `let` and a parameter of the network are called `width`"):
        parse(TEMPLATE.format(lets, ""), {"width": 2})
    spec = parse(TEMPLATE.format(lets, "width = other"), {"width": 4})
    assert spec.facts.network.nodes[1].out_shape.channels == 8


def test_an_argument_of_the_source_not_given_in_the_text() -> None:
    source = load(MNIST, {"data.download": True}).facts.data.source
    assert source.arguments == (("root", "~/data"), ("download", True))


def test_an_argument_of_the_one_transform_that_has_it() -> None:
    assert load(POSITION, {"data.copies": 2}).facts.data.transforms[0].argument("copies") == 2
    assert load(POSITION, {"data.label": "digit"}).facts.data.classes == 10


def test_numbers_of_numpy_are_numbers() -> None:
    found = load(POSITION, {"data.copies": np.int64(2), "search.batch": np.float32(64.0)}).facts
    assert (found.data.transforms[0].argument("copies"), found.search.batch) == (2, 64)
    with pytest.raises(TypeError, match="must be a finite number"):
        load(POSITION, {"search.epochs": np.float64("nan")})
    with pytest.raises(SpecError, match="a number of 401 digits is too long"):
        load(POSITION, {"search.epochs": 10**400})


def test_an_argument_given_by_place_keeps_its_place() -> None:
    spec = load(MNIST, {"data.size": 32})
    assert "pad(32)" in spec.text()


@pytest.mark.parametrize(
    ("overrides", "data"),
    [
        ({"data.root": "/x"}, 'mnist(download, root = "/x") |> augment(shift = 3, flip)'),
        ({"data.download": False}, "mnist(download = false) |> augment(shift = 3, flip)"),
        ({"data.flip": False, "data.shift": 2}, "mnist(download) |> augment(shift = 2, flip = false)"),
    ],
)
def test_a_flag_given_by_its_bare_name_has_no_place(overrides: dict[str, object], data: str) -> None:
    network = NETWORK.replace("8, 8", "28, 28")
    spec = parse(f"data mnist(download) |> augment(shift = 3, flip)\n{network}", overrides)
    assert spec.text().splitlines()[0] == f"data {data}"


def test_of_two_transforms_neither_is_meant() -> None:
    text = f"data mnist |> pad(32) |> resize(8)\n{NETWORK}"
    with pytest.raises(SpecError, match="more than one transform has an argument `size`"):
        parse(text, {"data.size": 8})


def test_the_source_comes_before_transforms() -> None:
    text = f"data digits |> resize(8)\n{NETWORK}"
    assert parse(text, {"data.size": 4}).facts.data.source.argument("size") == 4


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            {"width": "0"},
            r"(?s)E402\]: `channels` \(=0\) must be at least 1\n.*\n  ::: --set:1:7\n   1 \| width=0\n     \|       -",
        ),
        ({"width": " \n 8 + x"}, r"(?s)unknown name `x`\n  --> --set:1:14\n   1 \| width=   8 \+ x\n"),
        ({"width": '"8"'}, r'(?s)E401\]: arithmetic needs numbers, found the text "8".*::: --set:1:7'),
        ({"width": "8 +"}, r"E104\]: expected a value, found the end of the text\n  --> --set:1:10"),
        ({"width": "7//2"}, r"E104\]: a value has no comments, found `//2`\n  --> --set:1:8"),
        ({"candidates": "[FC] // CONV(3)"}, r"E104\]: a value has no comments, found `// CONV\(3\)`"),
        ({"width": "//2"}, r"E104\]: a value has no comments, found `//2`\n  --> --set:1:7"),
        ({"width": ""}, r"E104\]: expected a value.*\n  --> --set:1:7"),
        ({"candidates": "[KONV(3)]"}, r"E302\]: unknown kind `KONV`\n  --> --set:1:13"),
        ({"search.seed": 1, "search.epochs": "x"}, r"E301\]: unknown name `x`\n  --> --set:2:15"),
        ({"candidats": "3"}, r"E310\]: unknown key `candidats`.*\n.*\n.*\n.*\n.*did you mean `candidates`\?"),
        (
            {"search.epoch": "3"},
            r"(?s)E310\]: unknown key `epoch` of `search`\n  --> --set:1:8\n.*did you mean `epochs`\?",
        ),
        (
            {"search.lr": "1"},
            r'(?s)E310\]: unknown key `lr` of `search`.*write `--set "search.optimizer=adam\(lr = ...\)"`',
        ),
        (
            {"search.damping": "0.5"},
            r'(?s)`damping` of `search`.*write `--set "search.prior_optimizer=mackay\(damping = ...\)"`',
        ),
        (
            {"search.samples": "4"},
            r'(?s)`samples` of `search`.*`--set "search.objective=laplace\(fisher = mc\(samples = ...\)\)"`',
        ),
        ({"search.optimizer.lr": "1"}, r"(?s)E310\]: unknown key `optimizer.lr` of `search`.*adam\(lr = ...\)"),
        ({"data.copy": "3"}, r"(?s)E310\]: unknown key `copy` of `data`\n  --> --set:1:6\n.*did you mean `copies`\?"),
        ({"serch.epochs": "3"}, r"(?s)E310\]: unknown section `serch`.*did you mean `search`\?"),
        ({"width": "1e30"}, r"E402\]: `channels` \(=\d{31}\) must be from 1 to 9223372036854775807\n"),
        ({"width": "1e300"}, r"E402\]: `channels` \(=1\d{36}\.\.\.\) must be from 1 to"),
        ({"data.copies": "1001"}, r"E402\]: `copies` \(=1001\) must be from 1 to 1000\n  --> --set:1:13"),
    ],
)
def test_what_is_wrong_is_said_at_the_command_line(overrides: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        load(POSITION, overrides)


def written(*settings: str) -> dict[str, object]:
    overrides = [Override.parse(text, number) for number, text in enumerate(settings, start=1)]
    return {one.key: one for one in overrides}


def test_what_is_written_on_the_command_line_keeps_its_columns_and_its_number() -> None:
    overrides = written("width = 8", "search.epochs  =  x", "candidates=[CONV(3)]", " widht=3", "search.epochs =  y")
    with pytest.raises(SpecError, match=r"E310\]") as raised:
        load(POSITION, overrides)
    assert [str(one.span) for one in raised.value.diagnostics] == ["--set:4:2", "--set:5:18"]
    assert [one.place.line for one in raised.value.diagnostics] == [" widht=3", "search.epochs =  y"]


@pytest.mark.parametrize("text", ["width", "=3", "width=", "width = ", "="])
def test_what_is_not_of_the_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must have the form K=V"):
        Override.parse(text, 1)


def test_a_value_that_cannot_be_read_makes_no_more_trouble() -> None:
    with pytest.raises(SpecError, match="E104") as raised:
        load(POSITION, {"candidates": "[CONV(3)", "search.optimizer": "adam(lr = ", "data.copies": "$"})
    assert [str(one.span) for one in raised.value.diagnostics] == ["--set:1:20", "--set:2:27", "--set:3:13"]


def test_kinds_and_lists_of_kinds() -> None:
    text = f"let kind = FC\nlet kinds = [FC]\ndata digits\n{NETWORK}".replace(
        "flatten", "layer: kind + kinds -> 2\nflatten"
    )
    spec = parse(text, {"kind": "CONV(3)", "kinds": "[F-FC, CONV(5, init_scale = 2)]"})
    assert [one.name for one in spec.facts.network.nodes[1].candidates] == ["CONV(3)", "F-FC", "CONV(5)"]


def test_a_fix_replaces_what_is_wrong_of_a_key_and_no_more() -> None:
    with pytest.raises(SpecError, match="E310") as raised:
        load(POSITION, {"serch.epochs": 3, "search.epoch": 3, "data.lable": "digit"})
    fixes = [one.fix for one in raised.value.diagnostics]
    found = [(str(fix.span), fix.span.end_column, fix.content) for fix in fixes if fix is not None]
    assert found == [("--set:1:1", 6, "search"), ("--set:2:8", 13, "epochs"), ("--set:3:6", 11, "label")]


def test_keys_that_may_be_in_what_could_not_be_read_are_no_news(tmp_path: Path) -> None:
    path = tmp_path / "a.sym"
    path.write_text('import "b.sym"\ndata digits |> quadrant\n' + NETWORK, encoding="utf-8")
    with pytest.raises(SpecError, match="E101") as raised:
        load(path, {"copies_of_b": 3, "data.copies": 3})
    assert [one.code for one in raised.value.diagnostics] == ["E101", "E304"]


def test_line_breaks_do_not_move_what_comes_later() -> None:
    with pytest.raises(SpecError, match="--set:2:7"):
        load(POSITION, {"candidates": "[CONV(3),\nFC]", "width": "0"})


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), {}, [object()]])
def test_values_the_language_does_not_have_are_the_callers_mistake(value: object) -> None:
    with pytest.raises(TypeError, match="must be a finite number, a text, a bool or a list of these"):
        load(POSITION, {"width": value})


def test_a_key_is_a_text() -> None:
    with pytest.raises(TypeError, match="the key 3 of `overrides` must be a text"):
        load(POSITION, {3: 3})  # type: ignore[dict-item]


def test_a_setting_that_refers_to_itself_is_shown_where_it_is_written() -> None:
    with pytest.raises(SpecError, match=r"`candidates` is defined by itself\n  --> --set:1:12"):
        load(POSITION, {"candidates": "candidates"})


def test_values_from_python() -> None:
    text = "let a = 1\nlet b = 2\ndata synthetic(classes = a)\n" + NETWORK + "\nsearch { batch = 1 - b }"
    assert parse(text, {"a": 3, "b": -4}).facts.search.batch == 5
    assert parse(
        "let r = [1]\ndata digits\n" + NETWORK.replace("flatten", "repeat r as i { layer: FC -> i }\nflatten"),
        {"r": (2, 3)},
    )


def test_without_data_or_network_the_text_itself_is_at_fault() -> None:
    assert codes("let a = 1", {"data.size": 3}) == ["E311", "E311"]
