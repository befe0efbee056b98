"""The Pygments lexer of the language, found by the name `sym` wherever the package is installed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from pygments.lexer import RegexLexer, bygroups
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

from symdsl.highlight.rules import BLANK, Rule, rules

_TOKENS = {
    "comment": Comment.Single,
    "text": String,
    "keyword": Keyword,
    "flag": Keyword.Constant,
    "kind": Name.Class,
    "type": Keyword.Type,
    "callable": Name.Function,
    "constant": Name.Builtin,
    "declared": Name.Variable,
    "key": Name.Attribute,
    "name": Name,
    "number": Number,
    "operator": Operator,
    "punctuation": Punctuation,
    "gap": Text,
}


def _states(table: Iterable[Rule]) -> list[tuple[str, Any]]:
    states: list[tuple[str, Any]] = [(rf"{BLANK}+", Text)]
    for one in table:
        tokens = [_TOKENS[name] for name in one.classes]
        states.append((one.pattern, tokens[0] if len(tokens) == 1 else bygroups(*tokens)))
    return states


class SymLexer(RegexLexer):
    """The Pygments lexer of specs; exactly what is invalid becomes an `Error` token."""

    name = "symdsl"
    url = "https://pypi.org/project/symdsl/"
    aliases = ("sym", "symdsl")
    filenames = ("*.sym",)
    mimetypes = ("text/x-symdsl",)
    tokens: ClassVar = {"root": _states(rules())}
