"""The TextMate grammar, driven as an editor drives it."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shipped import ROOT, SPECS, name_of
from symdsl.kinds import KINDS
from symdsl.language.keywords import FLAGS, keywords
from symdsl.language.parser import tokens

EXTENSION = ROOT / "editors" / "vscode"
GRAMMAR: dict[str, Any] = json.loads((EXTENSION / "syntaxes" / "sym.tmLanguage.json").read_text())


def scoped(text: str) -> Iterator[tuple[str, str]]:
    """The scope of each stretch of a text: in each line the earliest match wins, of two the first in the grammar."""
    patterns = [(re.compile(one["match"]), one) for one in GRAMMAR["patterns"]]
    for line in text.splitlines():
        at = 0
        while at < len(line):
            found = [(match, one) for pattern, one in patterns if (match := pattern.search(line, at))]
            if not found:
                break
            match, one = min(found, key=lambda pair: pair[0].start())
            yield from _parts(match, one)
            at = match.end()


def _parts(match: re.Match[str], one: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if "name" in one:
        yield match[0], one["name"]
    for group, capture in one.get("captures", {}).items():
        yield match[int(group)], capture["name"]


def scope_of(word: str) -> str:
    ((found, scope),) = scoped(word)
    assert found == word
    return scope


def test_the_file_is_what_the_tables_give() -> None:
    written = runpy.run_path(str(ROOT / "editors" / "textmate.py"))["text"]()
    assert (EXTENSION / "syntaxes" / "sym.tmLanguage.json").read_text() == written, (
        "the language has changed: run `python editors/textmate.py`"
    )


@pytest.mark.parametrize("path", SPECS, ids=name_of)
def test_it_reads_the_words_of_specs_as_the_parser_does(path: Path) -> None:
    text = path.read_text()
    found = [(word, scope) for word, scope in scoped(text) if not scope.startswith("comment")]
    assert [word for word, _ in found] == [str(token) for token in tokens(text)]
    for (word, scope), token in zip(found, tokens(text), strict=True):
        reserved = token.type in keywords()
        assert scope.startswith(("keyword.control", "constant.language")) == reserved, word
        assert (scope == "support.class.kind.sym") == (word in KINDS.built_in), word


def test_each_reserved_word_and_kind_has_its_scope() -> None:
    assert {scope_of(word) for word in set(keywords().values()) - FLAGS} == {"keyword.control.sym"}
    assert {scope_of(word) for word in FLAGS} == {"constant.language.boolean.sym"}
    assert {scope_of(word) for word in KINDS.built_in} == {"support.class.kind.sym"}


def test_a_word_that_only_begins_like_a_keyword_is_a_name() -> None:
    assert scope_of("layers") == "variable.other.sym"
    assert scope_of("letter") == "variable.other.sym"


def test_a_declared_name_stands_out() -> None:
    assert list(scoped("network net {"))[:2] == [("network", "keyword.control.sym"), ("net", "entity.name.sym")]


@pytest.mark.parametrize("name", ["package.json", "language-configuration.json"])
def test_the_extension_names_files_that_are_there(name: str) -> None:
    content = json.loads((EXTENSION / name).read_text())
    named = [value for value in _texts(content) if value.startswith("./")]
    assert [value for value in named if not (EXTENSION / value).is_file()] == []


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def test_a_reserved_word_beside_a_star_is_a_name() -> None:
    found = dict(scoped("prior { layer*.FC ~ fixed a/*use.bias ~ fixed }"))
    assert found["layer"] == found["use"] == "variable.other.sym"
    assert found["prior"] == "keyword.control.sym"
