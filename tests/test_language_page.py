"""The reference of the language: its tables are those of the package, and its examples are what they say."""

from __future__ import annotations

import re
import runpy

import pytest

from shipped import ROOT
from symdsl.resources import read_shipped

SCRIPT = runpy.run_path(str(ROOT / "docs" / "language.py"))
TEXT = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
EXAMPLES = list(SCRIPT["examples"](TEXT))
HARMLESS = re.compile(r"(error|warning)\[(?!W102|W104)")


def test_the_committed_page_is_the_generated_one() -> None:
    assert SCRIPT["refreshed"](TEXT) == TEXT, "run `python docs/language.py` again"


def test_every_table_is_shown() -> None:
    assert sorted(re.findall(r"<!-- begin (\w+) -->", TEXT)) == sorted(SCRIPT["TABLES"])


@pytest.mark.parametrize(("example", "wrong"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_is_right_unless_it_is_marked(example: str, wrong: bool) -> None:
    said = SCRIPT["said"](example)
    assert bool(HARMLESS.search(said)) is wrong, said


def test_every_word_of_the_language_is_in_an_example() -> None:
    keywords = re.findall(r'^[A-Z]+: "([a-z]+)"$', read_shipped("grammars/sym.lark"), re.MULTILINE)
    right = " ".join(example for example, wrong in EXAMPLES if not wrong)
    assert set(keywords) - set(re.findall(r"[a-z]+", right)) == {"import"}, "a text that is no file cannot import"
    assert len(keywords) > 15
