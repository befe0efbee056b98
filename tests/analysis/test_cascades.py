"""One mistake, one diagnostic; ten mistakes, ten: nothing that follows from an error is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.specs import codes
from symdsl.spec import check, check_text

BAD = Path(__file__).parent.parent / "fixtures" / "bad"

RIGHT = """\
let width = 4
let both = [F-FC, CONV(3)]

data digits(size = 16) |> quadrants(label = both_labels) |> standardize

network part(candidates, scale = 1) {
  input image(channels, 32, 32)
  lift p4
  layer first: candidates + GCONV(3) -> scale*width stride 2 |> relu
  repeat [(1, 2), (2, 1)] as (m, s) {
    layer: candidates -> m*width stride s |> relu
  }
  project max
  flatten
  layer h1: FC -> 8*width |> relu
  layer h2: FC -> classes
}

network whole = part(both, scale = 2)

prior {
  first.CONV ~ normal(precision = 2)
  l2.F-FC.w1 ~ normal(std = 1, fixed)
  h1.bias    ~ normal(variance = 2)
}

search {
  objective = laplace(kfac, fisher = exact)
  epochs    = 6
  every     = 3
}
""".replace("both_labels", "digit")

MISTAKES = [
    # What cannot be read.
    ("let width = 4", "let width 4", "E104"),
    ("let width = 4", "let width =", "E104"),
    ("let width = 4", "lett width = 4", "E104"),
    ("let width = 4", "let width = 4;", "E104"),
    ("let width = 4", "let width = 'four'", "E104"),
    ("let width = 4", 'let width = "four', "E104"),
    ("let width = 4", "let width = four five 6 7", "E104"),
    ("let width = 4", "let width = 1e999", "E404"),
    ("let width = 4", "let width = " + "-" * 400 + "4", "E105"),
    ("[F-FC, CONV(3)]", "[F-FC, CONV(3)", "E104"),
    ("[F-FC, CONV(3)]", "[F-FC CONV(3)]", "E104"),
    ("[F-FC, CONV(3)]", "[F-FC, CONV(3]", "E104"),
    ("[F-FC, CONV(3)]", "(F-FC, CONV(3)]", "E104"),
    ("|> standardize", "| standardize", "E104"),
    ("|> standardize", "|>", "E104"),
    ("data digits", "data", "E104"),
    ("data digits", "date digits", "E104"),
    ("network part(", "network part", "E104"),
    ("network part(", "netwrok part(", "E104"),
    ("(candidates, scale = 1)", "(candidates scale = 1)", "E104"),
    ("input image", "imput image", "E104"),
    ("input image(channels, 32, 32)", "input image(channels, 32, 32", "E104"),
    ("lift p4", "lift", "E104"),
    ("lift p4", "lfit p4", "E104"),
    ("layer first:", "layer first", "E104"),
    ("layer first:", "layer first =", "E104"),
    ("candidates + GCONV(3)", "candidates GCONV(3)", "E104"),
    ("candidates + GCONV(3)", "candidates, GCONV(3)", "E104"),
    ("candidates + GCONV(3)", "candidates + GCONV(3", "E104"),
    ("-> scale*width", "scale*width", "E104"),
    ("-> scale*width", "->", "E104"),
    ("stride 2 |> relu", "strid 2 |> relu", "E104"),
    ("stride 2 |> relu", "stride 2 -> relu", "E104"),
    ("stride 2 |> relu", "stride 2 |>", "E104"),
    ("repeat [(1, 2), (2, 1)] as", "repeat [(1, 2), (2, 1)]", "E104"),
    ("repeat [(1, 2), (2, 1)] as", "repeat [(1, 2, (2, 1)] as", "E104"),
    ("repeat [(1, 2), (2, 1)] as", "repaet [(1, 2), (2, 1)] as", "E104"),
    ("  project max\n", "  project\n", "E104"),
    ("  flatten\n", "  flaten\n", "E104"),
    ("  flatten\n", "  # flat now\n  flatten\n", "E104"),
    ("  layer h2: FC -> classes\n}", "  layer h2: FC -> classes\n", "E104"),
    ("network whole =", "network whole", "E104"),
    ("network whole = part(both, scale = 2)", "network whole = part(both, scale = 2", "E104"),
    ("network whole = part(both, scale = 2)", "network whole =", "E104"),
    ("first.CONV ~", "first.CONV", "E104"),
    ("first.CONV ~", "first CONV ~", "E104"),
    ("l2.F-FC.w1 ~", "l2.F-FC.w1.x ~", "E104"),
    ("h1.bias    ~ normal(variance = 2)\n}", "h1.bias    ~ normal(variance = 2)\n", "E104"),
    ("prior {", "prior", "E104"),
    ("epochs    = 6", "epochs 6", "E104"),
    ("epochs    = 6", "epochs: 6", "E104"),
    ("epochs    = 6", "epochs = = 6", "E104"),
    ("every     = 3\n}", "every     = 3\n", "E104"),
    ("every     = 3\n}", "every     = 3\n}\n}", "E104"),
    ("fisher = exact)", "fisher = exact", "E104"),
    # What other languages write.
    ("let width = 4", "width = 4", "E104"),
    ("let width = 4", "let width = 0x04", "E104"),
    ("let width = 4", "let width = 4px", "E104"),
    ("let width = 4", "let\u00a0width = 4", "E104"),
    ("let width = 4", "/* the width; in planes */\nlet width = 4", "E104"),
    ("[F-FC, CONV(3)]", "[F-FC, CONV[3]]", "E104"),
    ("data digits(size = 16)", "data digits(size 16)", "E104"),
    ("|> standardize", "> standardize", "E104"),
    ("(channels, 32, 32)", "(channels; 32, 32)", "E104"),
    ("(channels, 32, 32)", "(32, 32, channels)", "E208"),
    ("candidates + GCONV(3)", "candidates + GCONV 3", "E104"),
    ("-> scale*width", "→ scale*width", "E104"),
    ("-> scale*width", "-> scale × width", "E104"),
    ("-> classes", "-> classes > relu", "E301"),
    ("prior {\n  first", "h1.FC ~ normal(precision = 1)\n\nprior {\n  first", "E104"),
    ("first.CONV ~ normal(precision = 2)", "first.CONV normal(precision = 2)", "E104"),
    ("first.CONV ~", "first.CONV, first.GCONV ~", "E104"),
    ("normal(variance = 2)", "normal(variance 2)", "E104"),
    ("laplace(kfac, fisher = exact)", "laplace(kfac fisher = exact)", "E104"),
    ("every     = 3\n}", "every     = 3\n}\n\nprofile fast {\n  search {\n    epochs = 1\n  }\n}", "E104"),
    # What stands for nothing, or does not fit.
    ("let width = 4", "let width = 4\nlet width = 5", "E308"),
    ("let width = 4", "let width = 4\nlet whole = 5", "E308"),
    ("[(1, 2), (2, 1)] as (m, s)", "[(1, 2, 1), (2, 1, 1)] as (m, s, s)", "E308"),
    ("let width = 4", "let width = width", "E309"),
    ("let width = 4", "let width = 4/0", "E404"),
    ("let width = 4", 'let width = "a" * 2', "E401"),
    ("let width = 4", 'let width = 4\nimport "other.sym"', "E106"),
    ("CONV(3)]", "KONV(3)]", "E302"),
    ("CONV(3)]", "CONV(kernel)]", "E301"),
    ("CONV(3)]", "CONV(4)]", "E202"),
    ("data digits", "data digit", "E304"),
    ("(size = 16)", "(sice = 16)", "E303"),
    ("(size = 16)", "(size = 8)", "E208"),
    ("label = digit", "label = digits", "E406"),
    ("|> standardize", "|> standardise", "E304"),
    ("|> standardize", "|> crop(64)", "E602"),
    ("(channels, 32, 32)", "(chanels, 32, 32)", "E301"),
    ("(channels, 32, 32)", "(channels, 32)", "E403"),
    ("lift p4", "lift p5", "E305"),
    ("GCONV(3)", "GCNOV(3)", "E302"),
    ("-> scale*width", "-> scael*width", "E301"),
    ("-> scale*width", "-> -1", "E402"),
    ("stride 2 |> relu", "stride 3 |> relu", "E201"),
    ("stride 2 |> relu", "stride 2 |> rleu", "E306"),
    ("[(1, 2), (2, 1)]", "pairs", "E301"),
    ("project max", "project maximum", "E406"),
    ("  flatten\n", "  flatten\n  flatten\n", "E204"),
    ("layer h2", "layer h1", "E308"),
    ("-> classes", "-> clases", "E301"),
    ("-> classes", "-> 7", "E207"),
    ("= part(both", "= prat(both", "E307"),
    ("scale = 2)", "scael = 2)", "E303"),
    ("first.CONV", "frist.CONV", "E501"),
    ("first.CONV", "first.KONV", "E501"),
    ("F-FC.w1", "F-FC.w3", "E501"),
    ("h1.bias    ~", "h1.bias ~ normal(1)\n  h1.bias    ~", "E502"),
    ("variance = 2", "variance = 2, std = 1", "E503"),
    ("std = 1, fixed", "std = 1, fixd", "E303"),
    ("epochs    = 6", "epoch = 6", "E303"),
    ("epochs    = 6", "epochs = ten", "E301"),
    ("fisher = exact", "fisher = exactly", "E406"),
]


WITHOUT_FIX = {
    "let width =",
    "let width = 4;",
    "let width = 'four'",
    'let width = "four',
    "let width = four five 6 7",
    "(F-FC, CONV(3)]",
    "|>",
    "data",
    "network part",
    "lift",
    "->",
    "stride 2 |>",
    "  project\n",
    "  # flat now\n  flatten\n",
    "network whole =",
    "first CONV ~",
    "l2.F-FC.w1.x ~",
    "epochs = = 6",
    "every     = 3\n}\n}",
    "/* the width; in planes */\nlet width = 4",
    "h1.FC ~ normal(precision = 1)\n\nprior {\n  first",
    "first.CONV, first.GCONV ~",
    "every     = 3\n}\n\nprofile fast {\n  search {\n    epochs = 1\n  }\n}",
}
"""Syntax errors that no single edit mends for sure."""

GUESSED = "repeat [(1, 2, (2, 1)] as"
"""A mistake whose fix closes another bracket than was left out."""


def mended(text: str) -> str:
    """A text with the fixes of all its diagnostics made, the last first."""
    lines = text.splitlines(keepends=True)
    begins = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]
    fixes = [one.fix for one in check_text(text, "<text>", None) if one.fix is not None]
    for fix in sorted(fixes, key=lambda fix: (fix.span.line, fix.span.column), reverse=True):
        begin = begins[fix.span.line - 1] + fix.span.column - 1
        end = begins[fix.span.end_line - 1] + fix.span.end_column - 1
        text = text[:begin] + fix.content + text[end:]
    return text


@pytest.mark.parametrize(("right", "wrong"), [(right, wrong) for right, wrong, code in MISTAKES if code == "E104"])
def test_what_a_fix_writes_is_right(right: str, wrong: str) -> None:
    found = RIGHT.replace(right, wrong, 1)
    assert (mended(found) == found) == (wrong in WITHOUT_FIX)
    if wrong not in (*WITHOUT_FIX, GUESSED):
        assert codes(mended(found)) == []


def test_the_right_spec_is_right() -> None:
    assert codes(RIGHT) == []


@pytest.mark.parametrize(("right", "wrong", "code"), MISTAKES)
def test_one_mistake_is_one_diagnostic(right: str, wrong: str, code: str) -> None:
    assert right in RIGHT
    assert codes(RIGHT.replace(right, wrong, 1)) == [code]


def test_ten_mistakes_are_ten_diagnostics() -> None:
    found = check(BAD / "ten.sym")
    assert [one.span.line for one in found] == [2, 4, 8, 9, 10, 11, 13, 17, 18, 22]
    assert {one.severity for one in found} == {"error"}


@pytest.mark.parametrize("source", ['arrays("missing.npz")', 'images("missing") |> resize(8)'])
@pytest.mark.parametrize("end", ["flatten\nlayer h: FC -> classes", "pool mean\nlayer h: FC -> classes", "pool max"])
def test_nothing_follows_from_data_that_are_not_there(source: str, end: str) -> None:
    text = f"data {source}\nnetwork n {{\ninput image(channels, 8, 8)\nlayer: CONV(3) -> channels\n{end}\n}}"
    assert codes(text) == ["E601"]


def test_a_library_that_ends_with_a_map_is_told_without_a_size_that_is_not_known(tmp_path: Path) -> None:
    path = tmp_path / "part.sym"
    path.write_text("network part(width) {\n  input image(channels, 8, 8)\n  pool mean\n}\n")
    (only,) = (one for one in check(path) if one.severity == "error")
    assert only.message == "`part` ends with a map, but must end with a vector"
