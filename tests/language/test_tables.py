"""The stored tables of the parser are those of the grammar."""

from __future__ import annotations

import json

import pytest

from symdsl.language import tables
from symdsl.language.tables import GRAMMAR, TABLES, computed, stored, written
from symdsl.resources import read_shipped

SPEC = read_shipped("specs/rotated_mnist.sym")


def test_they_are_of_this_grammar() -> None:
    mark = json.loads(read_shipped(TABLES))["of"].split(", ")[1]
    assert mark == json.loads(written(read_shipped(GRAMMAR)))["of"].split(", ")[1], (
        "run `python -m symdsl.language.tables`"
    )


@pytest.mark.parametrize("of", ["these", "others"])
def test_a_parser_from_tables_parses_alike(of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {GRAMMAR: read_shipped(GRAMMAR), TABLES: written(read_shipped(GRAMMAR))}
    if of == "others":
        texts[TABLES] = json.dumps({"of": "another grammar"})
    monkeypatch.setattr(tables, "read_shipped", texts.__getitem__)
    assert stored().parse(SPEC, start="program") == computed(texts[GRAMMAR]).parse(SPEC, start="program")
