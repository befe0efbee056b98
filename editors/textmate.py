"""Writes the TextMate grammar of the language from the tables of the package: `python editors/textmate.py`.

A change of the language changes the grammar; a test compares the file with what this would write.
"""

from __future__ import annotations

import json
from pathlib import Path

from symdsl.highlight.rules import Rule, rules

FILE = Path(__file__).parent / "vscode" / "syntaxes" / "sym.tmLanguage.json"

SCOPES = {
    "comment": "comment.line.double-slash.sym",
    "text": "string.quoted.double.sym",
    "keyword": "keyword.control.sym",
    "flag": "constant.language.boolean.sym",
    "kind": "support.class.kind.sym",
    "type": "storage.type.sym",
    "callable": "support.function.sym",
    "constant": "support.constant.sym",
    "declared": "entity.name.sym",
    "key": "variable.parameter.sym",
    "name": "variable.other.sym",
    "number": "constant.numeric.sym",
    "operator": "keyword.operator.sym",
    "punctuation": "punctuation.sym",
}


def grammar() -> dict[str, object]:
    """The grammar as TextMate wants it."""
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "symdsl",
        "scopeName": "source.sym",
        "fileTypes": ["sym"],
        "patterns": [_pattern(rule) for rule in rules()],
    }


def _pattern(rule: Rule) -> dict[str, object]:
    if len(rule.classes) == 1:
        return {"name": SCOPES[rule.classes[0]], "match": rule.pattern}
    captures = {str(group): {"name": SCOPES[one]} for group, one in enumerate(rule.classes, start=1) if one in SCOPES}
    return {"match": rule.pattern, "captures": captures}


def text() -> str:
    """What the file holds."""
    return json.dumps(grammar(), indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
