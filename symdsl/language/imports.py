"""Files to one tree: reading, and replacing every `import` by what it names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from symdsl.diagnostics import Collector, Fix, Span
from symdsl.language import ast
from symdsl.language.nearby import nearest, other_than_file
from symdsl.language.parser import parse_program
from symdsl.language.words import Allowance

LARGEST = 1024 * 1024
"""Bytes of a spec, all its files together."""

_SPEC_OF_A_RUN = "spec.sym"
"""The file of a run folder that holds its spec."""

_MOST_FILES = 100
_MOST_IMPORTS = 1000


def read_file(path: Path, source: str, collector: Collector) -> ast.Program | None:
    """Read and parse a spec file with everything it imports.

    Args:
        path: where the file is.
        source: its name in diagnostics.
        collector: receives every error.

    Returns:
        One tree without imports, with an `Unread` in place of what could not be read, which is reported; or nothing
        if that is all.
    """
    text = read_text(path, source, collector)
    return None if text is None else inline(text, source, path, collector)


def read_text(path: Path, source: str, collector: Collector) -> str | None:
    """Return the text of a spec file, without its imports, or nothing and a diagnostic."""
    return _read(path, Span(source, 1, 1, 1, 2), collector)


def decoded(content: bytes, source: str, collector: Collector) -> str | None:
    """Return the text of a spec that was read as bytes, or nothing and a diagnostic."""
    span = Span(source, 1, 1, 1, 2)
    if len(content) > LARGEST:
        collector.report("E103", span, f"`{source}` has more than {LARGEST} bytes")
        return None
    return _decoded(content, Path(source), span, collector)


def inline(
    text: str, source: str, path: Path | None, collector: Collector, unsaved: Mapping[Path, str] | None = None
) -> ast.Program | None:
    """Parse a text and replace its imports by their statements.

    Args:
        text: the text.
        source: its name in diagnostics.
        path: the file it is, or will be; without one it cannot import.
        collector: receives every error.
        unsaved: texts that stand for those of files, by resolved path.
    """
    return _Inliner(collector, unsaved or {}).program(text, source, path, ())


@attrs.frozen
class _Followed:
    """An import on the way to the present one: the file it stands in, and where."""

    path: Path
    span: Span


@attrs.define
class _Inliner:
    """Replaces imports.

    Attributes:
        collector: receives every error.
        unsaved: texts that stand for those of files, by resolved path.
        done: files that were imported, which are not imported again.
        allowance: how many words may still be read.
        bytes: how many bytes may still be read.
        imports: how many `import`s were met.
        stopped: whether no more files are read.
    """

    collector: Collector
    unsaved: Mapping[Path, str]
    done: set[Path] = attrs.field(factory=set)
    allowance: Allowance = attrs.field(factory=Allowance)
    bytes: int = LARGEST
    imports: int = 0
    stopped: bool = False

    def program(self, text: str, source: str, path: Path | None, above: tuple[_Followed, ...]) -> ast.Program | None:
        self.collector.add_source(source, text)
        self.bytes -= len(text)
        program = parse_program(text, source, self.collector, self.allowance)
        if program is None:
            return None
        statements: list[ast.Statement] = []
        for statement in program.statements:
            statements += self._inlined(statement, path, above)
        return attrs.evolve(program, statements=tuple(statements))

    def _inlined(
        self, statement: ast.Statement, path: Path | None, above: tuple[_Followed, ...]
    ) -> tuple[ast.Statement, ...]:
        if not isinstance(statement, ast.Import):
            return (statement,)
        unread = (ast.Unread("import", None, statement.span),)
        if self._too_many(statement.span):
            return unread
        chain = above if path is None else (*above, _Followed(path.resolve(), statement.path.span))
        target = self._target(statement.path, path, chain)
        if path is None or target is None:
            return unread
        if target.resolve() in self.done:
            return ()
        text = self.unsaved.get(target.resolve())
        if text is None:
            text = _read(target, statement.path.span, self.collector, path.parent, self.bytes)
        if text is None:
            return unread
        self.done.add(target.resolve())
        program = self.program(text, target.as_posix(), target, chain)
        return program.statements if program else unread

    def _too_many(self, span: Span) -> bool:
        """Count imports and files; true, and reported once, when there are too many, or too many words, to go on."""
        self.imports += 1
        self.stopped |= self.allowance.left < 0
        if self.stopped or (self.imports <= _MOST_IMPORTS and len(self.done) < _MOST_FILES):
            return self.stopped
        message = f"a spec of more than {_MOST_FILES} files or {_MOST_IMPORTS:,} imports is too large"
        self.collector.report("E103", span, message)
        self.stopped = True
        return True

    def _target(self, written: ast.Text, path: Path | None, chain: tuple[_Followed, ...]) -> Path | None:
        report = self.collector.report
        if path is None:
            report("E106", written.span, "a text that is not a file cannot import", help="save it to a file first")
            return None
        if "\0" in written.value:
            report("E101", written.span, "a path cannot contain a null character")
            return None
        target = path.parent / written.value
        try:
            target.resolve()
        except (OSError, RuntimeError):  # before Python 3.13 a link to itself is a RuntimeError
            report("E101", written.span, f'"{written.value}" cannot be read: it is a link that leads back to itself')
            return None
        if not target.resolve().is_relative_to(path.parent.resolve()):
            report(
                "E106",
                written.span,
                f'"{written.value}" is outside the folder of the file that imports it',
                help=f"move the file into `{path.parent}` or a folder below",
            )
            return None
        followed = [one.path for one in chain]
        if target.resolve() in followed:
            circle = chain[followed.index(target.resolve()) :]
            way = " by way of others" if len(circle) > 1 else ""
            notes = [(one.span, "follows from this import") for one in circle[:-1]]
            report("E107", written.span, f'"{written.value}" imports itself{way}', notes=notes)
            return None
        return target


def _read(
    path: Path, span: Span, collector: Collector, importing: Path | None = None, most: int = LARGEST
) -> str | None:
    """The text of a file of at most `most` bytes, or nothing and a diagnostic at `span`.

    `importing` is the folder of the file that asks.
    """
    try:
        if what := other_than_file(path):
            run = path / _SPEC_OF_A_RUN
            help = f"a run has its spec in `{run}`" if run.is_file() else ""
            collector.report("E101", span, f"`{path}` is {what}, not a file", help=help)
            return None
        with path.open("rb") as file:
            content = file.read(most + 1)
    except FileNotFoundError:
        found = nearest(path, ".sym")
        near = "" if found is None else (found.relative_to(importing) if importing else found).as_posix()
        help = f"did you mean `{near}`?" if near else ""
        fix = Fix(f"replace by `{near}`", span, f'"{near}"') if near and importing else None
        collector.report("E101", span, f"there is no file `{path.as_posix()}`", help=help, fix=fix)
        return None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        collector.report("E101", span, f"`{path}` cannot be read: {reason}")
        return None
    return _decoded(content, path, span, collector, most)


def _decoded(content: bytes, path: Path, span: Span, collector: Collector, most: int = LARGEST) -> str | None:
    if len(content) > most:
        collector.report("E103", span, f"a spec of more than {LARGEST:,} bytes is too large, and `{path}` makes it so")
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        collector.report(
            "E102", span, f"`{path}` is not UTF-8: byte {error.start}, on line {line}", help="save it as UTF-8"
        )
        return None
