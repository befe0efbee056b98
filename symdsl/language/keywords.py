"""The reserved words of the language, read from its grammar."""

from __future__ import annotations

import re
from functools import cache

from symdsl.resources import read_shipped

FLAGS = frozenset({"true", "false"})
"""Reserved words that are values."""

_KEYWORD = re.compile(r'^([A-Z]+): "([a-z]+)"$', re.MULTILINE)


@cache
def keywords() -> dict[str, str]:
    """Return every reserved word by its terminal, such as `{"LET": "let"}`."""
    return dict(_KEYWORD.findall(read_shipped("grammars/sym.lark")))
