"""Finds the grammar and the specs that ship with the package, in a wheel and in a source checkout alike."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_ROOTS = (_PACKAGE / "_shipped", _PACKAGE.parent)


def shipped(relative: str) -> Path:
    """Return the path of a shipped file.

    Args:
        relative: for example `grammars/sym.lark` or `specs/starter.sym`.

    Raises:
        FileNotFoundError: if the installation lacks it.
    """
    for root in _ROOTS:
        if (root / relative).exists():
            return root / relative
    raise FileNotFoundError(f"`{relative}` is missing from this installation of symdsl; install it again")


def read_shipped(relative: str) -> str:
    """Return the text of a shipped file."""
    return shipped(relative).read_text(encoding="utf-8")
