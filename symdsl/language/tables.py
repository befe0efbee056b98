"""The tables of the parser, kept beside the grammar, since computing them would take a third of a short check.

`python -m symdsl.language.tables` writes them anew when the grammar has changed.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

from symdsl.resources import read_shipped, shipped

GRAMMAR = "grammars/sym.lark"
TABLES = "grammars/sym.json"


def stored() -> Lark:
    """Return the parser from its stored tables, computed anew if the grammar or lark has changed."""
    text = read_shipped(GRAMMAR)
    found = json.loads(read_shipped(TABLES))
    return Lark.load(_with_numbers(found["parser"])) if found["of"] == _mark(text) else computed(text)


def computed(text: str) -> Lark:
    """Return a parser computed from a grammar."""
    return Lark(
        text,
        parser="lalr",
        lexer="basic",
        start=["program", "expression", "unreadable"],
        maybe_placeholders=False,
    )


def written(text: str) -> str:
    """Return the tables of a grammar in the format that `stored` reads."""
    data, memo = computed(text).memo_serialize([TerminalDef, Rule])
    return json.dumps({"of": _mark(text), "parser": {"data": data, "memo": memo}}, separators=(",", ":")) + "\n"


def _mark(text: str) -> str:
    return f"lark {lark.__version__}, {hashlib.sha256(text.encode()).hexdigest()}"


def _with_numbers(tables: dict[str, Any]) -> dict[str, Any]:
    """The tables with the keys that JSON made texts of numbers as numbers again."""
    data = tables["data"]
    parser = data["parser"]["parser"]
    parser |= {"tokens": _by_number(parser["tokens"])}
    parser |= {"states": {int(state): _by_number(actions) for state, actions in parser["states"].items()}}
    return {"data": data, "memo": _by_number(tables["memo"])}


def _by_number(table: dict[str, Any]) -> dict[int, Any]:
    return {int(key): value for key, value in table.items()}


if __name__ == "__main__":
    shipped(GRAMMAR).with_suffix(".json").write_text(written(read_shipped(GRAMMAR)), encoding="utf-8")
