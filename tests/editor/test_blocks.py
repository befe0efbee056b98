"""Blocks in an editor: what is said and proposed where they are written and used."""

from __future__ import annotations

import pytest

from editor.marks import MARK, marked
from symdsl.analysis.parameters import PARAMETER_TYPES
from symdsl.editor.completion import complete
from symdsl.editor.contents import contents
from symdsl.editor.definition import define
from symdsl.editor.hover import hover
from symdsl.editor.wording import KEYWORDS

SPEC = """\
let wide = 8

block stage(candidates: kinds, m: whole = 1) {
  layer l1: candidates -> m |> relu
  layer l2: candidates -> m stride 2 |> relu
}

data digits(size = 16) |> standardize

network net {
  input image(1, 16, 16)
  use stage([CONV(3)], m = 4) as first
  use stage([F-FC, CONV(3)], m = wide)
  flatten
  layer h: FC -> classes
}

prior {
  first/l1.CONV ~ normal(1)
}
"""


def labels(text: str) -> list[str]:
    return [item.label for item in complete(*marked(text)).items]


def said(before: str, text: str = SPEC) -> str:
    found = hover(*marked(text.replace(before, before + MARK, 1)))
    return "" if found is None else found.text


def led(before: str) -> list[tuple[int, int]]:
    return [(span.line, span.column) for span in define(*marked(SPEC.replace(before, before + MARK, 1)))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SPEC.replace("  use stage([CONV(3)]", f"  use {MARK}\n  use stage([CONV(3)]"), ["stage"]),
        (SPEC.replace("stage([CONV(3)], m", f"stage({MARK}, m"), ["candidates", "m"]),
        (SPEC.replace("stage([CONV(3)], m = 4)", f"stage([CONV(3)], {MARK})"), ["m"]),
        (SPEC.replace("m = 4) as first", f"m = 4) {MARK}"), ["as"]),
        (SPEC.replace("candidates: kinds", f"candidates: {MARK}"), list(PARAMETER_TYPES)),
        (SPEC.replace("l2: candidates ->", f"l2: candidates -> {MARK}"), ["m", "candidates", "wide"]),
        (SPEC.replace("prior {\n", f"prior {{\n  {MARK}\n"), ["first/l1", "first/l2", "stage2/l1", "stage2/l2", "h"]),
        (SPEC.replace("first/l1.CONV ~", f"first/{MARK}"), ["first/l1", "first/l2", "stage2/l1", "stage2/l2", "h"]),
        (SPEC.replace("first/l1.CONV ~", f"stage2/l1.{MARK} ~"), ["F-FC", "CONV", "bias", "*"]),
    ],
)
def test_what_fits_is_proposed(text: str, expected: list[str]) -> None:
    assert labels(text)[: len(expected)] == expected


def test_the_path_of_a_layer_is_written_anew_as_a_whole() -> None:
    reading, offset = marked(SPEC.replace("first/l1.CONV ~", f"first/l{MARK}.CONV ~"))
    start, end = complete(reading, offset).reach
    assert reading.text[start:end] == "first/l"


def test_a_layer_of_a_block_shows_every_use_of_it() -> None:
    shown = said("kinds, m: whole = 1) {\n  layer ")
    assert "- `first/l1`: 1x16x16 to 4x16x16" in shown
    assert "- `stage2/l1`: 4x8x8 to 8x8x8" in shown


def test_a_use_shows_its_layers() -> None:
    assert said("16, 16)\n  ").startswith("- `first/l1`: 1x16x16 to 4x16x16")
    assert said("as first\n  ") == KEYWORDS["use"]


def test_words_have_their_meaning() -> None:
    assert said("use ").startswith("```sym\nblock stage(candidates: kinds, m: whole = 1)\n```")
    assert said("m: ") == "`whole`: a whole number"
    assert said("candidates: ") == "`kinds`: a kind or a list of kinds, such as `[F-FC, CONV(3)]`"
    assert said("[CONV(3)], ").startswith("m: parameter of\n\n```sym\nblock stage(")


def test_names_lead_to_their_definitions() -> None:
    assert led("use ") == [(3, 7)]
    assert led("layer l1: ") == [(3, 13)]
    assert led("[CONV(3)], ") == [(3, 32)]
    assert led("m = ") == []
    assert led("[F-FC, CONV(3)], m = ") == [(1, 5)]
    assert led("prior {\n  ") == [(4, 9)]
    assert led("prior {\n  first/") == [(4, 9)]


def test_contents_have_the_layers_of_a_block() -> None:
    reading, _ = marked(SPEC + MARK)
    (block,) = [one for one in contents(reading.file.inside, reading.text) if one.what == "block"]
    assert (block.name, [one.name for one in block.inside]) == ("stage", ["l1", "l2"])
