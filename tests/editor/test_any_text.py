"""Whatever is typed: questions have answers, and never an exception."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from editor.marks import SPEC
from symdsl.editor.completion import complete
from symdsl.editor.contents import Heading, contents
from symdsl.editor.definition import define
from symdsl.editor.hover import hover
from symdsl.editor.reading import Reading

typed = st.sampled_from(
    [
        *(
            '"',
            "//",
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            ",",
            ":",
            "+",
            "->",
            "|>",
            "~",
            "=",
            ".",
            "*",
            "\n",
            " ",
            "é",
            "\u2028",
        ),
        *("layer", "repeat", "network", "prior", "search", "let", "import", "as", "lift", "F-", "FC", "CONV(3)", "l1"),
    ]
)


@settings(max_examples=60)
@given(st.integers(0, len(SPEC)), st.integers(0, 40), typed, typed, st.data())
def test_no_text_and_no_place_is_too_odd(start: int, cut: int, one: str, other: str, data: st.DataObject) -> None:
    text = SPEC[:start] + one + other + SPEC[start + cut :]
    offset = data.draw(st.integers(0, len(text)))
    reading = Reading(text)
    low, high = complete(reading, offset).reach
    assert low <= offset <= high
    found = hover(reading, offset)
    assert found is None or found.reach[0] <= offset <= found.reach[1]
    assert all(span.source == reading.source for span in define(reading, offset))
    check(contents(reading.file.inside, text))
    assert reading.diagnostics is not None


def check(headings: tuple[Heading, ...]) -> None:
    """What the protocol demands: a name, and a title inside of the whole."""
    for one in headings:
        assert one.name
        assert one.reach[0] <= one.title[0] <= one.title[1] <= one.reach[1]
        check(one.inside)
