"""Texts with a mark where the cursor stands."""

from __future__ import annotations

from pathlib import Path

from symdsl.editor.reading import Reading

MARK = "\N{CARET INSERTION POINT}"

SPEC = """\
let width = 4
let wide = 4*width
let both = [F-FC, CONV(3)]

data digits(size = 16) |> standardize

network net {
  input image(channels, 16, 16)
  layer l1: both -> width |> relu
  repeat [(2, 1), (4, 2)] as (m, s) {
    layer: F-FC + CONV(3) -> m*width stride s |> relu
  }
  flatten
  layer h1: FC -> classes
}

prior {
  l1.CONV ~ normal(precision = 10, fixed)
}

search {
  epochs = 20
  optimizer = adam(lr = 0.01)
}
"""

PYRAMID = """\
network pyramid(candidates, width = 2) {
  input image(channels, 16, 16)
  layer l1: candidates -> width |> relu
  flatten
  layer h1: FC -> classes
}
"""


def marked(text: str, path: Path | None = None) -> tuple[Reading, int]:
    """A reading of the text without its mark, and where that stood."""
    assert text.count(MARK) == 1, "a text has one mark"
    return Reading(text.replace(MARK, ""), path), text.index(MARK)


def at(before: str, after: str = "", text: str = SPEC) -> str:
    """The text with a mark after the first `before`, and `after` put in there."""
    assert before in text, before
    return text.replace(before, before + MARK + after, 1)
