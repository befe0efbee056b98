"""What is said of a word, in texts that are being written."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from editor.marks import MARK, PYRAMID, SPEC, marked
from symdsl.catalog.data import SOURCES, TRANSFORMS
from symdsl.catalog.networks import ACTIVATIONS
from symdsl.catalog.searches import SEARCH
from symdsl.editor.hover import Hover, hover
from symdsl.editor.wording import BUILTINS, KEYWORDS, kinds, signatures
from symdsl.kinds import KINDS, table
from symdsl.language.keywords import keywords
from symdsl.resources import read_shipped


def hovered(text: str, path: Path | None = None) -> Hover | None:
    return hover(*marked(text, path))


def said(before: str, text: str = SPEC, path: Path | None = None) -> str:
    """What is said of the word that begins after the first `before`."""
    assert before in text, before
    found = hovered(text.replace(before, before + MARK, 1), path)
    return "" if found is None else found.text


def test_a_kind_has_its_page_and_what_it_is_here() -> None:
    shown = said("layer: F-FC + ")
    assert "```sym\nCONV(k, init_scale)\n```" in shown
    assert read_shipped("docs/kinds/conv.md").partition("\n")[2] in shown
    assert shown.startswith("- `l2`, 4x16x16 to 8x16x16: 288 parameters, keeps translations\n- `l3`, 8x16x16 to 16x8x8")


def test_a_kind_of_a_package_that_is_broken_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = {"MINE": EntryPoint("MINE", "no.such.module:MINE", table.ENTRY_POINT)}
    monkeypatch.setattr(table, "_offers", lambda: offers)
    assert kinds.__wrapped__().keys() == KINDS.built_in.keys()


def test_a_kind_in_a_let_is_shown_where_it_ends_up() -> None:
    assert said("[F-FC, ").startswith("- `l1`, 1x16x16 to 4x16x16: 36 parameters, keeps translations")


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_has_something_to_say(name: str) -> None:
    assert f"### {name}" in said("layer l1: ", SPEC.replace("l1: both", f"l1: {name}"))


def test_a_residual_block_shows_its_layers_and_its_end() -> None:
    text = "data digits\nnetwork n {\n  input image(1, 8, 8)\n  residual {\n    layer: CONV(3) -> 1\n  }\n  flatten\n"
    shown = said("8)\n  ", f"{text}  layer h: FC -> classes\n}}\n")
    assert shown.startswith("- `l1`: 1x8x8 to 1x8x8, 10 parameters\n- `residual`: 1x8x8 to 1x8x8\n\n`residual { ... }`")


def test_a_layer_shows_what_it_reads_writes_and_counts() -> None:
    shown = said("layer ", SPEC)
    assert shown.startswith("`l1`: 1x16x16 to 4x16x16, 2,088 parameters\n")
    assert "| `F-FC` | 2,048 | nothing |" in shown
    assert "| `CONV` | 36 | translations |" in shown


def test_layers_of_a_repeat_are_listed() -> None:
    shown = said("{\n    ")
    assert shown.startswith("- `l2`: 4x16x16 to 8x16x16, ")
    assert "- `l3`: 8x16x16 to 16x8x8, " in shown
    assert KEYWORDS["layer"] in shown


def test_items_show_their_shapes() -> None:
    assert "- `flatten`: 16x8x8 to 1024" in said("}\n  ")
    assert "- `input`: 1x16x16" in said("network net {\n  ")


def test_a_selector_shows_the_layers_it_is_about() -> None:
    assert said("prior {\n  ").startswith("`l1`: 1x16x16 to 4x16x16")


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (
            "epochs = 20\n  ",
            "`optimizer`: how the weights are trained; `adam`; adam unless given\n\n- `adam(lr = 0.025, ",
        ),
        ("search {\n  ", "`epochs`: passes over the training data; a whole number, at least 1; 60 unless given"),
        (
            "adam(",
            "`lr`: learning rate at the start, as a share of the size of a tensor's weights; a number, above 0 and ",
        ),
        (
            "optimizer = ",
            "```sym\nadam(lr = 0.025, schedule = cosine, clip = 1.0)\n```",
        ),
        (
            "digits(",
            "`size`: side of the square image, in pixels; a whole number, at least 1 and at most 4096; 8 unless",
        ),
        ("data ", "1,797 handwritten digits of 8x8 that ship with scikit-learn"),
        ("16) |> ", "```sym\nstandardize(what = images)\n```\n\nMean 0 and variance 1 over the training examples;"),
        ("l1.CONV ~ ", "exactly one of precision, variance and std"),
        ("-> width |> ", "`relu`: an activation"),
        ("layer h1: FC -> ", "`classes` is 10. "),
        ("image(", "`channels` is 1. "),
        ("-> ", "```sym\nlet width = 4\n```"),
        ("l1: ", "```sym\nlet both = [F-FC, CONV(3)]\n```"),
        ("let ", "```sym\nlet width = 4\n```"),
        ("4\nlet ", "```sym\nlet wide = 4*width\n```\n\nis `16`"),
        ("-> ", "width"),
        ("stride ", "s: value of\n\n```sym\nrepeat [(2, 1), (4, 2)] as (m, s)\n```"),
        ("m*width ", KEYWORDS["stride"]),
        ("(4, 2)] ", KEYWORDS["as"]),
    ],
)
def test_words_have_their_meaning(before: str, expected: str) -> None:
    assert expected in said(before)


def test_a_key_decides_what_a_value_is() -> None:
    shown = said("prior_optimizer = ", SPEC.replace("optimizer = adam(lr = 0.01)", "prior_optimizer = mackay(0.1)"))
    assert "MacKay's fixed point." in shown


def test_a_group_and_reductions() -> None:
    text = SPEC.replace("flatten", "lift p4\n  project max\n  pool mean\n  flatten")
    assert said("lift ", text) == "`p4`: the group of quarter turns, with 4 elements"
    assert said("project ", text) == KEYWORDS["project"]
    assert said("pool ", text) == KEYWORDS["pool"]


def test_where_there_is_nothing_to_say_nothing_is_said() -> None:
    assert hovered(f"{MARK}") is None
    assert hovered(f"let a = 3{MARK}") is None
    assert hovered(f"// CONV{MARK}") is None
    assert hovered(f"let a = unknown{MARK}") is None


def test_the_word_under_the_cursor_is_marked() -> None:
    reading, offset = marked(SPEC.replace("[F-FC", f"[F-{MARK}FC"))
    found = hover(reading, offset)
    assert found is not None
    assert reading.text[slice(*found.reach)] == "F-FC"


@pytest.mark.parametrize(
    "error", ["layer", "layer h0:", "layer h0: FC ->", "layer h0: FC + -> 3", "let", "]", "$", '"']
)
def test_what_cannot_be_read_does_not_hide_the_rest(error: str) -> None:
    broken = SPEC.replace("  layer h1", f"  {error}\n  layer h1").replace("  epochs = 20", "  epochs =")
    assert said("layer ", broken).startswith("`l1`: 1x16x16 to 4x16x16")
    assert "is `16`" in said("4\nlet ", broken)


@pytest.mark.parametrize("error", ["clases", "KONV(3)", "KONV", "1/0", "frobnicate(2)"])
def test_errors_after_a_layer_do_not_hide_it(error: str) -> None:
    broken = SPEC.replace("layer h1: FC -> classes", f"layer h1: FC -> {error}").replace("epochs = 20", "epochs = -1")
    assert said("layer ", broken).startswith("`l1`: 1x16x16 to 4x16x16")


def test_names_of_imports_say_where_they_are_from(tmp_path: Path) -> None:
    (tmp_path / "pyramid.sym").write_text(PYRAMID)
    text = 'import "pyramid.sym"\ndata digits(size = 16)\nnetwork net = pyramid([CONV(3)], width = 3)\n'
    path = tmp_path / "main.sym"
    assert said("net = ", text, path).startswith("```sym\nnetwork pyramid(candidates, width = 2)\n```\n\nfrom `")
    assert said("(3)], ", text, path).startswith("width: parameter of\n\n```sym\nnetwork pyramid(")
    assert said("pyramid([", text, path).startswith("- `l1`, 1x16x16 to 3x16x16: 27 parameters")


def test_every_reserved_word_means_something() -> None:
    reserved = keywords().values()
    assert set(reserved) == set(KEYWORDS)
    assert [word for word in reserved if not said("", f"{word} ")] == []


def test_everything_that_can_be_called_says_what_it_is_about() -> None:
    called = [one for one in signatures().values() if one.name not in KINDS]
    assert {*SOURCES, *TRANSFORMS, "image", "normal", "mackay", "kfac"} <= {one.name for one in called}
    assert [one.name for one in called if not one.about] == []
    arguments = [one for signature in (*signatures().values(), SEARCH) for one in signature.parameters]
    assert [one.name for one in arguments if not one.about] == []
    assert set(BUILTINS).isdisjoint({*signatures(), *ACTIVATIONS})


def test_a_word_of_the_language_is_explained_whatever_else_has_its_name() -> None:
    text = "let relu = 1\n" + SPEC.replace("data digits(size = 16)", "data synthetic(size = 16)")
    assert said("-> width |> ", text) == said("-> width |> ")
    assert said("data ", SPEC.replace("network net", "network digits")) == said("data ")


def test_every_part_of_a_selector_shows_its_layers() -> None:
    text = SPEC.replace("l1.CONV ~", "l*.CONV ~")
    assert said("prior {\n  ", text) == said("prior {\n  l", text)
    assert said("prior {\n  ", text).startswith("- `l1`: 1x16x16 to 4x16x16")
