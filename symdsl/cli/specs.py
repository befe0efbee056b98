"""The commands for whoever writes a spec: `new`, `check`, `fmt`, `explain`, `lsp`."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from symdsl.cli.options import PATH, set_option
from symdsl.cli.terminal import tell
from symdsl.diagnostics import (
    SPEC_WRONG,
    Collector,
    Diagnostic,
    RunError,
    SpecError,
    render_github,
    render_json,
    wants_colour,
)

if TYPE_CHECKING:
    from symdsl.analysis.overrides import Override

_STDIN = Path("-")


@click.command()
@click.argument("name")
def new(name: str) -> None:
    """Write NAME.sym, a spec to start from, into the working folder."""
    from symdsl.resources import read_shipped

    stem = name.removesuffix(".sym")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", stem):
        raise click.BadParameter(
            f"`{name}` must be letters, digits, `_` and `-`, and not begin with a digit", param_hint="NAME"
        )
    path = Path(f"{stem}.sym")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(read_shipped("specs/starter.sym"))
    except FileExistsError as error:
        raise RunError(f"`{path}` exists already: choose another name") from error
    click.echo(f"{path} written; run `symdsl search {path}`")


@click.command()
@click.argument("specs", type=PATH, nargs=-1, required=True, metavar="SPEC...")
@click.option(
    "--format",
    type=click.Choice(["text", "json", "github"]),
    default="text",
    show_default=True,
    help="How diagnostics are shown.",
)
@click.option("--strict", is_flag=True, help="Count warnings as errors.")
@set_option
def check(specs: tuple[Path, ...], format: str, strict: bool, settings: Mapping[str, Override]) -> None:
    """Report what is wrong with specs, and where.

    A library, a file that only defines what other specs import, is checked on its own. `-` reads standard input, which
    imports from the working folder.
    """
    found = [diagnostic for path in specs for diagnostic in _diagnostics(path, settings)]
    _REPORTS[format](found)
    if any(strict or diagnostic.severity == "error" for diagnostic in found):
        sys.exit(SPEC_WRONG)


def _diagnostics(path: Path, settings: Mapping[str, Override]) -> Sequence[Diagnostic]:
    from symdsl import spec

    collector = Collector()
    source, text = _read(path, collector)
    return collector.diagnostics if text is None else spec.check_text(text, source, path, overrides=settings)


def _report_json(found: Sequence[Diagnostic]) -> None:
    click.echo(render_json(found))


def _report_github(found: Sequence[Diagnostic]) -> None:
    if found:
        click.echo(render_github(found))


_REPORTS: dict[str, Callable[[Sequence[Diagnostic]], None]] = {
    "text": tell,
    "json": _report_json,
    "github": _report_github,
}


@click.command()
@click.argument("specs", type=PATH, nargs=-1, required=True, metavar="SPEC...")
@click.option("--check", "check_only", is_flag=True, help="Name the specs that would change; exit 1 if there are any.")
@click.option("--diff", "as_diff", is_flag=True, help="Print what would change, and write nothing.")
def fmt(specs: tuple[Path, ...], check_only: bool, as_diff: bool) -> None:
    """Format specs in the canonical layout.

    Comments and aligned columns are kept. `-` reads standard input and writes standard output.
    """
    deliver: Callable[[Path, str, str], None] = _print_diff if as_diff else _print_name if check_only else _rewrite
    failed = False
    for spec in specs:
        try:
            before, after = _layouts(spec)
        except SpecError as error:
            tell(error.diagnostics)
            failed = True
        else:
            deliver(spec, before, after)
            failed |= check_only and before != after
    if failed:
        sys.exit(SPEC_WRONG)


def _layouts(path: Path) -> tuple[str, str]:
    """The text of a spec as it is, and in canonical layout."""
    from symdsl.language.formatter import format_text

    collector = Collector()
    source, text = _read(path, collector)
    collector.raise_errors()
    assert text is not None, "without a text there is an error"
    return text, format_text(text, source)


def _read(path: Path, collector: Collector) -> tuple[str, str | None]:
    """What diagnostics call a spec, a file or standard input, and its text, or nothing and a diagnostic."""
    from symdsl.language.imports import LARGEST, decoded, read_text

    if path != _STDIN:
        return str(path), read_text(path, str(path), collector)
    return "<stdin>", decoded(sys.stdin.buffer.read(LARGEST + 1), "<stdin>", collector)


def _print_diff(path: Path, before: str, after: str) -> None:
    from difflib import unified_diff
    from io import StringIO

    for line in unified_diff(list(StringIO(before)), list(StringIO(after)), f"{path}", f"{path} (formatted)"):
        click.echo(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n", nl=False)


def _print_name(path: Path, before: str, after: str) -> None:
    if before != after:
        click.echo(path)


def _rewrite(path: Path, before: str, after: str) -> None:
    from symdsl.runs import write_atomic

    if path == _STDIN:
        click.echo(after, nl=False)
    elif before != after:
        if not os.access(path, os.W_OK):
            raise RunError(f"{path}: cannot be written: it is read-only")
        write_atomic(path.resolve(), after.encode())


@click.command()
@click.argument("code")
def explain(code: str) -> None:
    """Explain the code of a diagnostic, such as E203, with an example."""
    from symdsl import highlight
    from symdsl.analysis.explanations import explanation

    text = explanation(code)
    colour = wants_colour(sys.stdout.isatty(), os.environ)
    click.echo(highlight.indented(text) if colour else text, color=colour)


@click.command()
def lsp() -> None:
    """Run the language server for editors, over standard input and output; see editors/vscode."""
    try:
        from symdsl.editor.server import serve
    except ModuleNotFoundError as error:
        raise RunError(f"the language server needs `{error.name}`: run `pip install 'symdsl[lsp]'`") from error
    serve()
