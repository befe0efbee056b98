"""Specs in colour, for terminals, notebooks and documents."""

from __future__ import annotations

import re

_INDENTED = re.compile(r"^ {4}.*(?:\n+ {4}.*)*", re.MULTILINE)
_FRAME = "color: #1a1a1a; padding: 0.6em; line-height: 1.35"


def html(text: str) -> str:
    """A spec as HTML that brings its own colours, legible on dark pages too."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter

    from symdsl.highlight.lexer import SymLexer

    return highlight(text, SymLexer(), HtmlFormatter(noclasses=True, prestyles=_FRAME))


def classes_html(text: str) -> str:
    """A spec as HTML whose colours are those of a style sheet that `classes_css` gives."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter

    from symdsl.highlight.lexer import SymLexer

    return highlight(text, SymLexer(), HtmlFormatter())


def classes_css(style: str) -> str:
    """The style sheet of one of Pygments' styles, for what `classes_html` gives."""
    from pygments.formatters import HtmlFormatter

    return str(HtmlFormatter(style=style).get_style_defs(".highlight"))


def ansi(text: str) -> str:
    """A spec with the escape codes of a terminal; without them it is the same text."""
    from pygments import highlight
    from pygments.formatters import TerminalFormatter

    from symdsl.highlight.lexer import SymLexer

    return highlight(text, SymLexer(stripnl=False, ensurenl=False), TerminalFormatter())


def indented(text: str) -> str:
    """A text with the specs in it, which are indented by four blanks, in the colours of a terminal."""
    return _INDENTED.sub(lambda match: ansi(match[0]), text)
