"""Specs in colour, for terminals, notebooks and documents."""

from __future__ import annotations

import re

_INDENTED = re.compile(r"^ {4}.*(?:\n+ {4}.*)*", re.MULTILINE)
_FRAME = "color: #1a1a1a; padding: 0.6em; line-height: 1.35"


def html(text: str) -> str:
    """Return a spec as HTML with its own colours, legible on light and dark pages."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter

    from symdsl.highlight.lexer import SymLexer

    return highlight(text, SymLexer(), HtmlFormatter(noclasses=True, prestyles=_FRAME))


def classes_html(text: str) -> str:
    """Return a spec as HTML with the classes of the style sheet of `classes_css`."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter

    from symdsl.highlight.lexer import SymLexer

    return highlight(text, SymLexer(), HtmlFormatter())


def classes_css(style: str) -> str:
    """Return a style sheet for `classes_html`, in one of Pygments' styles."""
    from pygments.formatters import HtmlFormatter

    return str(HtmlFormatter(style=style).get_style_defs(".highlight"))


def ansi(text: str) -> str:
    """Return a spec coloured by escape codes for terminals."""
    from pygments import highlight
    from pygments.formatters import TerminalFormatter

    from symdsl.highlight.lexer import SymLexer

    return highlight(text, SymLexer(stripnl=False, ensurenl=False), TerminalFormatter())


def indented(text: str) -> str:
    """Return a text with the specs in it coloured for a terminal; specs are indented by four blanks."""
    return _INDENTED.sub(lambda match: ansi(match[0]), text)
