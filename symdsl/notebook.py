"""The cell magic `%%sym` of notebooks, which `%load_ext symdsl` brings."""

from __future__ import annotations

import os
import shlex
import sys
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from symdsl.diagnostics import render_text, wants_colour
from symdsl.spec import Spec, parse

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def register(shell: InteractiveShell) -> None:
    """Add the cell magic to a shell."""
    shell.magics_manager.register_function(_Cells(shell).sym, magic_kind="cell")


@attrs.frozen
class _Cells:
    shell: InteractiveShell

    def sym(self, line: str, cell: str) -> Spec | None:
        """Check the spec in this cell.

        `%%sym` alone shows the spec, `%%sym NAME` binds it to a name instead. What stands after, such as
        `width=8 search.epochs=20`, overrides what the spec says, as `--set` does on the command line. Imports are
        relative to the working folder. A spec that is wrong shows its diagnostics, and the name keeps its value.
        """
        name, overrides = _options(line)
        # the line of the magic is the first of the cell, so that lines have the numbers that the notebook shows; the
        # path is that of the working folder, which no file to import can have
        spec = parse(f"\n{cell}", overrides, f"In [{self.shell.displayhook.prompt_count}]", Path())
        if spec.warnings:
            print(render_text(spec.warnings, wants_colour(True, os.environ)), file=sys.stderr)
        if name is None:
            return spec
        self.shell.user_ns[name] = spec
        return None


def _options(line: str) -> tuple[str | None, dict[str, str]]:
    """The name and the overrides after `%%sym`.

    Raises:
        UsageError: if it is something else.
    """
    from IPython.core.error import UsageError

    usage = f"write `%%sym NAME KEY=VALUE ...`, each part if it is needed; found `{line}`"
    try:
        words = shlex.split(line)
    except ValueError as error:  # a quotation without its end
        raise UsageError(usage) from error
    pairs = (word.partition("=") for word in words if "=" in word)
    overrides = {key.strip(): value.strip() for key, _, value in pairs}
    names = [word for word in words if "=" not in word]
    if len(names) > 1 or not all(name.isidentifier() and not iskeyword(name) for name in names):
        raise UsageError(usage)
    return (names[0] if names else None), overrides
