"""Files to one tree: reading, and replacing every `import` by what it names."""

from __future__ import annotations

from pathlib import Path

import attrs

from symdsl.diagnostics import Collector, Span
from symdsl.language import ast
from symdsl.language.parser import parse_program

_LARGEST = 10 * 1024 * 1024


def read_file(path: Path, source: str, collector: Collector) -> ast.Program | None:
    """Read a spec file and everything it imports.

    Args:
        path: where the file is.
        source: its name in diagnostics.
        collector: receives every error.

    Returns:
        One tree without imports, or nothing if a file could not be read or parsed.
    """
    text = read_text(path, source, collector)
    return None if text is None else inline(text, source, path, collector)


def read_text(path: Path, source: str, collector: Collector) -> str | None:
    """The text of a spec file alone, or nothing and a diagnostic."""
    return _read(path, Span(source, 1, 1, 1, 2), collector)


def decoded(content: bytes, source: str, collector: Collector) -> str | None:
    """The text of a spec that came without a file, or nothing and a diagnostic."""
    return _decoded(content, Path(source), Span(source, 1, 1, 1, 2), collector)


def inline(text: str, source: str, path: Path | None, collector: Collector) -> ast.Program | None:
    """Parse a text and replace its imports, as `read_file` does; a text without a path cannot import."""
    inliner = _Inliner(collector)
    return inliner.program(text, source, path, ())


@attrs.define
class _Inliner:
    collector: Collector
    done: set[Path] = attrs.field(factory=set)

    def program(self, text: str, source: str, path: Path | None, above: tuple[Path, ...]) -> ast.Program | None:
        self.collector.add_source(source, text)
        program = parse_program(text, source, self.collector)
        if program is None:
            return None
        chain = (*above, path.resolve()) if path else above
        statements: list[ast.Statement] = []
        for statement in program.statements:
            statements += self._inlined(statement, path, chain)
        return attrs.evolve(program, statements=tuple(statements))

    def _inlined(
        self, statement: ast.Statement, path: Path | None, chain: tuple[Path, ...]
    ) -> tuple[ast.Statement, ...]:
        if not isinstance(statement, ast.Import):
            return (statement,)
        target = self._target(statement.path, path, chain)
        if target is None or target.resolve() in self.done:
            return ()
        text = _read(target, statement.path.span, self.collector)
        if text is None:
            return ()
        self.done.add(target.resolve())
        program = self.program(text, _shown(target), target, chain)
        return program.statements if program else ()

    def _target(self, written: ast.Text, path: Path | None, chain: tuple[Path, ...]) -> Path | None:
        report = self.collector.report
        if path is None:
            report("E106", written.span, "a text that is not a file cannot import", help="save it to a file first")
            return None
        if "\0" in written.value:
            report("E101", written.span, "a path cannot contain a null character")
            return None
        target = path.parent / written.value
        if not target.resolve().is_relative_to(path.parent.resolve()):
            report(
                "E106",
                written.span,
                f'"{written.value}" is outside the folder of the file that imports it',
                help=f"move the file into `{path.parent}` or a folder below",
            )
            return None
        if target.resolve() in chain:
            report("E107", written.span, f'"{written.value}" imports itself, directly or by way of others')
            return None
        return target


def _shown(path: Path) -> str:
    return path.as_posix()


def _read(path: Path, span: Span, collector: Collector) -> str | None:
    """The text of a file, or nothing and a diagnostic at `span`."""
    try:
        if path.is_dir():
            collector.report("E101", span, f"`{path}` is a folder, not a file")
            return None
        if path.stat().st_size > _LARGEST:
            collector.report("E103", span, f"`{path}` has {path.stat().st_size} bytes; the limit is {_LARGEST}")
            return None
        content = path.read_bytes()
    except FileNotFoundError:
        collector.report("E101", span, f"there is no file `{path}`")
        return None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        collector.report("E101", span, f"`{path}` cannot be read: {reason}")
        return None
    return _decoded(content, path, span, collector)


def _decoded(content: bytes, path: Path, span: Span, collector: Collector) -> str | None:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        collector.report(
            "E102", span, f"`{path}` is not UTF-8: byte {error.start}, on line {line}", help="save it as UTF-8"
        )
        return None
