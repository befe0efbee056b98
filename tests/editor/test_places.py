"""Places: what spans and editors count, and back."""

from hypothesis import given
from hypothesis import strategies as st

from symdsl.diagnostics import Span
from symdsl.editor.places import Places

texts = st.text(st.sampled_from("ab\n\r\t\x0b\x0c\x85\u2028\u00e9\u4e2d\U0001f642\ud83d"), max_size=12)


@given(texts, st.sampled_from(["utf-8", "utf-16", "utf-32"]))
def test_every_offset_comes_back(text, encoding):
    places = Places(text, encoding)
    for offset in range(len(text) + 1):
        after_return = text[max(0, offset - 1) : offset + 1] == "\r\n"  # in the middle of an end of line
        assert places.offset_at(*places.position(offset)) == (offset - 1 if after_return else offset)


@given(texts)
def test_every_span_comes_back(text):
    places = Places(text)
    for start in range(len(text) + 1):
        assert places.reach(places.span("x", start, len(text))) == (start, len(text))


def test_an_editor_counts_units():
    text = 'let a = 1 // 🙂 é\nlet b = "é" c'
    offset = text.index(" c")
    assert Places(text, "utf-16").position(offset) == (1, 11)
    assert Places(text, "utf-8").position(offset) == (1, 12)
    at_end = text.index("\n")
    assert [Places(text, one).position(at_end) for one in ("utf-8", "utf-16", "utf-32")] == [(0, 20), (0, 17), (0, 16)]


def test_what_lies_after_an_end_is_the_end():
    places = Places("ab\ncd")
    assert places.offset_at(0, 99) == 2
    assert places.offset_at(99, 0) == 5
    assert places.reach(Span("x", 1, 2, 9, 9)) == (1, 5)


def test_lines_end_where_each_side_says():
    places = Places("a\rb\r\nc\u2028d\ne")
    assert places.position(2) == (1, 0)
    assert places.position(5) == (2, 0)
    assert places.span("x", 5, 6).line == 2
    assert places.position(9) == (3, 0)
