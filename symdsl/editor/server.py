"""The language server: what an editor asks, over standard input and output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from symdsl import __version__
from symdsl.diagnostics import Collector, Diagnostic, Span, SpecError
from symdsl.editor.completion import complete
from symdsl.editor.contents import Heading, contents
from symdsl.editor.definition import define
from symdsl.editor.hover import hover
from symdsl.editor.places import Places
from symdsl.editor.reading import Reading
from symdsl.language.formatter import format_text
from symdsl.language.imports import read_text
from symdsl.progress import discard_unwritable

PAUSE = 0.15
"""Seconds without a change after which diagnostics are shown."""

_TRIGGERS = (":", "+", ">", "=", "(", ",", ".", "~", "[", '"', "/", " ")
_SEVERITIES = {"error": lsp.DiagnosticSeverity.Error, "warning": lsp.DiagnosticSeverity.Warning}
_COMPLETION_KINDS = {
    "keyword": lsp.CompletionItemKind.Keyword,
    "kind": lsp.CompletionItemKind.Class,
    "function": lsp.CompletionItemKind.Function,
    "value": lsp.CompletionItemKind.EnumMember,
    "variable": lsp.CompletionItemKind.Variable,
    "argument": lsp.CompletionItemKind.Property,
    "layer": lsp.CompletionItemKind.Field,
    "network": lsp.CompletionItemKind.Module,
    "block": lsp.CompletionItemKind.Module,
    "file": lsp.CompletionItemKind.File,
}
_SYMBOL_KINDS = {
    "let": lsp.SymbolKind.Variable,
    "import": lsp.SymbolKind.File,
    "data": lsp.SymbolKind.Array,
    "network": lsp.SymbolKind.Class,
    "block": lsp.SymbolKind.Class,
    "search": lsp.SymbolKind.Namespace,
    "setting": lsp.SymbolKind.Property,
    "item": lsp.SymbolKind.Operator,
    "layer": lsp.SymbolKind.Field,
}

_AtPlace = lsp.CompletionParams | lsp.HoverParams | lsp.DefinitionParams


class SymServer(LanguageServer):
    """The language server: one reading for each open text, translated to the protocol."""

    def __init__(self) -> None:
        """A server with nothing open; texts come whole, since specs are small and line ends are many."""
        super().__init__("symdsl", __version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
        self._readings: dict[str, Reading] = {}

    def reading(self, uri: str) -> Reading:
        """Return the reading of a text as it is now."""
        text = self.workspace.get_text_document(uri).source
        kept = self._readings.get(uri)
        if kept is None or kept.text != text:
            kept = Reading(text, _path_of(uri), self._encoding, self._texts())
            self._readings[uri] = kept
        return kept

    @property
    def _encoding(self) -> str:
        """The encoding in which columns are counted, as agreed with the editor."""
        agreed = self.workspace.position_encoding or lsp.PositionEncodingKind.Utf16
        return lsp.PositionEncodingKind(agreed).value

    def _texts(self) -> dict[Path, str]:
        """What the editor holds, by resolved path."""
        documents = self.workspace.text_documents.values()
        return {path.resolve(): one.source for one in documents if (path := _path_of(one.uri))}

    @property
    def opened(self) -> dict[str, int | None]:
        """The versions of the open texts by URI as the editor writes it; pygls has other keys."""
        return {one.uri: one.version for one in self.workspace.text_documents.values()}

    def forget(self, uri: str) -> None:
        """Drop the reading of a text that has changed, or that imports a changed file."""
        self._readings.pop(uri, None)

    def asked(self, params: _AtPlace) -> tuple[Reading, int]:
        """Return the text and the offset that a request refers to."""
        reading = self.reading(params.text_document.uri)
        return reading, reading.places.offset_at(params.position.line, params.position.character)

    def publish_all(self) -> None:
        """Read all open texts anew, since they may import what has changed, and send their diagnostics."""
        for uri in self.opened:
            self.forget(uri)
            self.publish(uri)

    def publish_importers(self, changed: str) -> None:
        """Read the open texts anew that import one which has changed, and send their diagnostics."""
        path = _path_of(changed)
        for uri in self.opened:
            if path is None or uri == changed:
                continue
            before = self.reading(uri).import_of(path)  # of a file that is on no disk, while the editor holds it
            self.forget(uri)
            if before or self.reading(uri).import_of(path):
                self.publish(uri)

    def publish(self, uri: str) -> None:
        """Send the diagnostics of a text to the editor."""
        reading = self.reading(uri)
        version = self.workspace.get_text_document(uri).version
        found = [self._diagnostic(one, reading) for one in reading.diagnostics]
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, found, version))

    def _diagnostic(self, one: Diagnostic, reading: Reading) -> lsp.Diagnostic:
        """A diagnostic; one of an imported file stands at the import, and says where it is."""
        place, message = one.span, one.message
        notes = [(note, note.label) for note in one.notes]
        if place.source != reading.source:
            message = f"{place}: {message}"
            notes.insert(0, (one.place, one.message))
            place = _import_of(place, reading)
        related = [
            lsp.DiagnosticRelatedInformation(self.location(note.span, reading), label or message)
            for note, label in notes
        ]
        return lsp.Diagnostic(
            range=self.range_of(place, reading),
            severity=_SEVERITIES[one.severity],
            code=one.code,
            source="symdsl",
            message=f"{message}\n{one.help}" if one.help else message,
            related_information=related or None,
        )

    def location(self, span: Span, reading: Reading) -> lsp.Location:
        """Return a span in this text or another file as the protocol writes it."""
        own = next((uri for uri, kept in self._readings.items() if kept is reading), "")
        uri = own if span.source == reading.source else str(from_fs_path(os.path.abspath(span.source)))
        return lsp.Location(uri, self.range_of(span, reading))

    def range_of(self, span: Span, reading: Reading) -> lsp.Range:
        """Return a span as the protocol writes it."""
        places = reading.places
        if span.source != reading.source:
            places = Places(reading.read(Path(span.source)) or "", reading.encoding)
        return self.range(places.reach(span), places)

    def range(self, reach: tuple[int, int], places: Places) -> lsp.Range:
        """Return two offsets as the protocol writes them."""
        return lsp.Range(*(lsp.Position(*places.position(offset)) for offset in reach))


def _path_of(uri: str) -> Path | None:
    """The file that a text is, or will be."""
    name = to_fs_path(uri) if uri.startswith("file:") else None
    if name is None:
        return None
    with contextlib.suppress(ValueError, OSError, RuntimeError):  # a null character, or a link to itself
        Path(name).resolve()
        return Path(name)
    return None


def _import_of(place: Span, reading: Reading) -> Span:
    """The path after the `import` by which a file came in; the start of the text if none did."""
    token = reading.import_of(Path(place.source))
    reach = (0, 0) if token is None else (token.start_pos or 0, token.end_pos or 0)
    return reading.places.span(reading.source, *reach)


def serve() -> None:
    """Answer requests on standard input until `exit`, or the end of input."""
    server = SymServer()
    for feature, (handler, options) in _HANDLERS.items():
        server.feature(feature, options)(handler)
    server.start_io(stdout=cast(BinaryIO, _Output()))


class _Output:
    """Standard output, or nothing once nobody listens there: the end of the input then ends the server."""

    def write(self, data: bytes) -> None:
        with self._heard_or_not():
            sys.stdout.buffer.write(data)

    def flush(self) -> None:
        with self._heard_or_not():
            sys.stdout.buffer.flush()

    def close(self) -> None:
        self.flush()

    @contextlib.contextmanager
    def _heard_or_not(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            discard_unwritable(sys.stdout)


# ---------------------------------------------------------------- notifications


def _opened(ls: SymServer, params: lsp.DidOpenTextDocumentParams) -> None:
    """Show diagnostics, also of those that import the text where it is another than on the disk."""
    uri = params.text_document.uri
    ls.publish(uri)
    path = _path_of(uri)
    if path is not None and read_text(path, str(path), Collector()) != params.text_document.text:
        ls.publish_importers(uri)


async def _changed(ls: SymServer, params: lsp.DidChangeTextDocumentParams) -> None:
    """Show diagnostics when the typing pauses."""
    await asyncio.sleep(PAUSE)
    if ls.opened.get(params.text_document.uri) == params.text_document.version:
        ls.publish(params.text_document.uri)
        ls.publish_importers(params.text_document.uri)


def _saved(ls: SymServer, params: lsp.DidSaveTextDocumentParams | lsp.DidChangeWatchedFilesParams) -> None:
    """A file that has changed on the disk may be imported by those that are open."""
    ls.publish_all()


def _closed(ls: SymServer, params: lsp.DidCloseTextDocumentParams) -> None:
    ls.forget(params.text_document.uri)
    ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(params.text_document.uri, []))
    ls.publish_importers(params.text_document.uri)


# ---------------------------------------------------------------- requests


def _complete(ls: SymServer, params: lsp.CompletionParams) -> lsp.CompletionList:
    reading, offset = ls.asked(params)
    found = complete(reading, offset)
    place = ls.range(found.reach, reading.places)
    items = [
        lsp.CompletionItem(
            label=item.label,
            kind=_COMPLETION_KINDS[item.what],
            detail=item.detail or None,
            documentation=lsp.MarkupContent(lsp.MarkupKind.Markdown, item.about) if item.about else None,
            sort_text=f"{rank:04}",
            text_edit=lsp.TextEdit(place, item.insert or item.label),
        )
        for rank, item in enumerate(found.items)
    ]
    return lsp.CompletionList(is_incomplete=False, items=items)


def _hover(ls: SymServer, params: lsp.HoverParams) -> lsp.Hover | None:
    reading, offset = ls.asked(params)
    found = hover(reading, offset)
    if found is None:
        return None
    return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, found.text), ls.range(found.reach, reading.places))


def _define(ls: SymServer, params: lsp.DefinitionParams) -> list[lsp.Location]:
    reading, offset = ls.asked(params)
    return [ls.location(span, reading) for span in define(reading, offset)]


def _format(ls: SymServer, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
    """The whole text in canonical layout; nothing while it cannot be parsed, which the diagnostics say."""
    reading = ls.reading(params.text_document.uri)
    try:
        after = format_text(reading.text, reading.source)
    except SpecError:
        return None
    if after == reading.text:
        return []
    return [lsp.TextEdit(ls.range((0, len(reading.text)), reading.places), after)]


def _contents(ls: SymServer, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
    reading = ls.reading(params.text_document.uri)
    return _symbols(contents(reading.file.inside, reading.text), ls, reading.places)


def _symbols(headings: Sequence[Heading], ls: SymServer, places: Places) -> list[lsp.DocumentSymbol]:
    return [
        lsp.DocumentSymbol(
            name=one.name,
            detail=one.detail or None,
            kind=_SYMBOL_KINDS[one.what],
            range=ls.range(one.reach, places),
            selection_range=ls.range(one.title, places),
            children=_symbols(one.inside, ls, places),
        )
        for one in headings
    ]


def _mend(ls: SymServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    """The edits that diagnostics propose in a range."""
    uri = params.text_document.uri
    reading = ls.reading(uri)
    return [
        lsp.CodeAction(
            title=one.fix.message,
            kind=lsp.CodeActionKind.QuickFix,
            edit=lsp.WorkspaceEdit({uri: [lsp.TextEdit(ls.range_of(one.fix.span, reading), one.fix.content)]}),
            is_preferred=True,
        )
        for one in reading.diagnostics
        if one.fix is not None
        and one.span.source == one.fix.span.source == reading.source
        and _touch(ls.range_of(one.span, reading), params.range)
    ]


def _touch(one: lsp.Range, other: lsp.Range) -> bool:
    return one.start <= other.end and other.start <= one.end


_HANDLERS: dict[str, tuple[Callable[..., Any], Any]] = {
    lsp.TEXT_DOCUMENT_DID_OPEN: (_opened, None),
    lsp.TEXT_DOCUMENT_DID_CHANGE: (_changed, None),
    lsp.TEXT_DOCUMENT_DID_SAVE: (_saved, None),
    lsp.TEXT_DOCUMENT_DID_CLOSE: (_closed, None),
    lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES: (_saved, None),
    lsp.TEXT_DOCUMENT_COMPLETION: (_complete, lsp.CompletionOptions(trigger_characters=list(_TRIGGERS))),
    lsp.TEXT_DOCUMENT_HOVER: (_hover, None),
    lsp.TEXT_DOCUMENT_DEFINITION: (_define, None),
    lsp.TEXT_DOCUMENT_FORMATTING: (_format, None),
    lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL: (_contents, None),
    lsp.TEXT_DOCUMENT_CODE_ACTION: (_mend, lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix])),
}
