"""The language server as an editor meets it: a process, two pipes, JSON-RPC."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from editor import marks
from editor.client import SECONDS, Client
from editor.marks import PYRAMID
from processes import started
from symdsl.language.formatter import format_text

SPEC = marks.SPEC.replace("epochs = 20", "epochs = wide")
WRONG = SPEC.replace("F-FC + CONV(3)", "F-FC + KONV(3)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("specs")


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Client]:
    """A server for all tests that only talk to it."""
    with Client(folder) as client:
        yield client
        assert client.leave() == 0
        assert client.process.stderr is not None
        assert client.process.stderr.read() == b""


@pytest.fixture
def uri(folder: Path, request: pytest.FixtureRequest) -> str:
    """A text of its own for every test, which is on no disk."""
    return (folder / f"{request.node.name}.sym").as_uri()


def spot(text: str, before: str) -> tuple[int, int]:
    """The line and character after the first `before`, in a text of plain letters."""
    lines = text[: text.index(before) + len(before)].split("\n")
    return len(lines) - 1, len(lines[-1])


def range_of(line: int, start: int, end: int) -> dict[str, Any]:
    return {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}


def test_it_says_what_it_can(client: Client) -> None:
    can = client.capabilities["capabilities"]
    assert can["positionEncoding"] == "utf-16"
    assert can["completionProvider"]["triggerCharacters"]
    for name in ("hover", "definition", "documentFormatting", "documentSymbol", "codeAction"):
        assert can[f"{name}Provider"]
    assert client.capabilities["serverInfo"]["name"] == "symdsl"


def test_diagnostics_follow_the_typing(client: Client, uri: str) -> None:
    assert client.open(uri, SPEC) == []
    client.change(uri, 2, SPEC + "l")
    client.change(uri, 3, SPEC + "le")
    client.change(uri, 4, WRONG)
    (found,) = client.diagnostics(uri)  # of the last text: those of the others were never shown
    assert (found["code"], found["severity"], found["source"]) == ("E302", 1, "symdsl")
    assert found["message"].startswith("unknown kind `KONV`\ndid you mean `CONV`?")
    assert found["range"] == range_of(10, 18, 22)
    client.change(uri, 5, SPEC)
    assert client.diagnostics(uri) == []


@pytest.mark.parametrize("name", ["a b", "\N{LATIN SMALL LETTER U WITH DIAERESIS}", "c#d", "50%", "a%20b"])
def test_diagnostics_follow_the_typing_where_an_address_is_escaped(client: Client, folder: Path, name: str) -> None:
    place = folder / name
    place.mkdir()
    (place / "sizes.sym").write_text("let wide = 16\n")
    uri, text = (place / "mine.sym").as_uri(), 'import "sizes.sym"\n' + SPEC.replace("let wide = 4*width\n", "")
    assert client.open(uri, text) == []
    client.change(uri, 2, text.replace("F-FC + CONV(3)", "F-FC + KONV(3)"))
    (found,) = client.diagnostics(uri)
    assert found["code"] == "E302"
    client.change(uri, 3, text)
    assert client.diagnostics(uri) == []


def test_a_warning_is_a_warning_and_a_second_place_is_shown(client: Client, uri: str) -> None:
    text = f"let spare = 1\n{SPEC.replace('layer h1', 'layer l1')}"
    (found,) = client.open(uri, text)
    assert found["relatedInformation"] == [
        {"location": {"uri": uri, "range": range_of(9, 8, 10)}, "message": "first time"}
    ]
    client.change(uri, 2, f"let spare = 1\n{SPEC}")
    (found,) = client.diagnostics(uri)
    assert (found["code"], found["severity"]) == ("W102", 2)


def test_a_closed_text_has_no_diagnostics(client: Client, uri: str) -> None:
    assert client.open(uri, "let") != []
    client.tell("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert client.diagnostics(uri) == []


def test_columns_are_counted_as_the_protocol_says(client: Client, uri: str) -> None:
    text = SPEC.replace("let width = 4", "let width = 4 // 🙂 ¨").replace("digits(size", 'digits("🙂🙂", sise')
    found = client.open(uri, text)
    line = text.split("\n")[4]
    start = line.index("sise") + 2  # two smileys of two units each, counted as one by Python
    assert range_of(4, start, start + 4) in [one["range"] for one in found]
    shown = client.at("hover", uri, 4, start + 20)
    assert shown["range"] == range_of(4, line.index("standardize") + 2, line.index("standardize") + 13)


def test_another_encoding_can_be_agreed_on(tmp_path: Path) -> None:
    with Client(tmp_path, ["utf-32", "utf-16"]) as client:
        agreed = client.capabilities["capabilities"]["positionEncoding"]
        units = {"utf-32": 1, "utf-16": 2}[agreed]
        uri = (tmp_path / "new.sym").as_uri()
        text = SPEC.replace("digits(size", 'digits("🙂", sise')
        start = text.split("\n")[4].index("sise") + units - 1
        assert range_of(4, start, start + 4) in [one["range"] for one in client.open(uri, text)]
        assert client.leave() == 0


def test_imports_are_relative_to_the_file(client: Client, folder: Path, uri: str) -> None:
    (folder / "blocks").mkdir()
    library = folder / "blocks" / "pyramid.sym"
    library.write_text(PYRAMID)
    text = 'import "blocks/pyramid.sym"\ndata digits(size = 16)\nnetwork net = pyramid([CONV(3)])\n'
    assert client.open(uri, text) == []
    (target,) = client.at("definition", uri, *spot(text, "net = "))
    assert target == {"uri": library.as_uri(), "range": range_of(0, 8, 15)}
    library.write_text(PYRAMID.replace("layer h1: FC", "layer h1: FCC"))
    client.tell("textDocument/didSave", {"textDocument": {"uri": uri}})
    (found,) = client.diagnostics(uri)
    assert found["range"] == range_of(0, 7, 27)
    assert found["message"].startswith(f"{library}:5:13: unknown kind `FCC`")
    assert found["relatedInformation"][0]["location"] == {"uri": library.as_uri(), "range": range_of(4, 12, 15)}


def test_hover_and_completion_while_the_text_is_wrong(client: Client, uri: str) -> None:
    client.open(uri, WRONG)
    shown = client.at("hover", uri, *spot(WRONG, "layer "))
    assert shown["contents"]["kind"] == "markdown"
    assert shown["contents"]["value"].startswith("`l1`: 1x16x16 to 4x16x16")
    assert client.at("hover", uri, 3, 0) is None
    proposed = client.at("completion", uri, *spot(WRONG, "F-FC + KO"))["items"]
    conv = next(item for item in proposed if item["label"] == "CONV")
    assert conv["textEdit"] == {"newText": "CONV", "range": range_of(10, 18, 22)}
    assert conv["detail"] == "CONV(k, init_scale)"


def test_a_fix_is_an_action(client: Client, uri: str) -> None:
    client.open(uri, WRONG)
    document = {"textDocument": {"uri": uri}, "context": {"diagnostics": []}}
    (action,) = client.ask("textDocument/codeAction", {**document, "range": range_of(10, 19, 19)})
    assert (action["title"], action["kind"]) == ("replace by `CONV`", "quickfix")
    assert action["edit"]["changes"] == {uri: [{"range": range_of(10, 18, 22), "newText": "CONV"}]}
    assert client.ask("textDocument/codeAction", {**document, "range": range_of(0, 0, 1)}) == []


def test_formatting_is_that_of_fmt(client: Client, uri: str) -> None:
    messy = SPEC.replace(" = 4\n", "=4 // four\r\n")
    client.open(uri, messy)
    options = {"textDocument": {"uri": uri}, "options": {"tabSize": 8, "insertSpaces": False}}
    (edit,) = client.ask("textDocument/formatting", options)
    assert edit["newText"] == format_text(messy)
    assert edit["range"]["start"] == {"line": 0, "character": 0}
    assert edit["range"]["end"] == {"line": SPEC.count("\n"), "character": 0}
    client.change(uri, 2, edit["newText"])
    assert client.ask("textDocument/formatting", options) == []
    client.change(uri, 3, "let = =")
    assert client.ask("textDocument/formatting", options) is None


def test_symbols_are_the_table_of_contents(client: Client, uri: str) -> None:
    client.open(uri, SPEC)
    found = client.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
    assert [one["name"] for one in found] == ["width", "wide", "both", "data", "net", "prior", "search"]
    network = found[4]
    assert network["selectionRange"] == range_of(6, 8, 11)
    assert network["range"]["end"] == {"line": 14, "character": 1}
    assert [one["name"] for one in network["children"]] == ["input", "l1", "repeat", "flatten", "h1"]


def test_a_text_without_a_file_is_fine(client: Client) -> None:
    uri = "untitled:Untitled-1"
    assert client.open(uri, SPEC) == []
    assert client.at("definition", uri, *spot(SPEC, "l1: "))[0]["uri"] == uri
    client.change(uri, 2, 'import "x.sym"\n')
    assert "E106" in [one["code"] for one in client.diagnostics(uri)]


@pytest.mark.parametrize("text", ["", "\ufefflet a = 1", "}{)(", "a" * 100_000, "(" * 5_000, "let a = " + "9" * 5_000])
def test_no_text_is_too_odd(client: Client, folder: Path, text: str) -> None:
    uri = (folder / f"odd-{len(text)}.sym").as_uri()
    client.open(uri, text)
    client.at("hover", uri, 0, 1)
    client.at("completion", uri, 0, len(text))
    client.at("definition", uri, 5, 5)
    client.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}})


# ---------------------------------------------------------------- coming and going


def test_it_leaves_when_the_pipe_is_closed(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        assert client.process.stdin is not None
        client.process.stdin.close()
        assert client.process.wait(SECONDS) == 0


def test_it_leaves_when_nobody_listens(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with started(["-m", "symdsl", "lsp"], tmp_path, stdin=-1, stdout=writing, text=False) as running:
        os.close(writing)
        os.close(reading)
        content = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}})
        assert running.stdin is not None
        running.stdin.write(f"Content-Length: {len(content)}\r\n\r\n{content}".encode())
        running.stdin.close()
        assert running.wait(SECONDS) == 0
        assert running.stderr is not None
        assert b"Traceback" not in running.stderr.read()


def test_without_pygls_it_says_what_to_install(tmp_path: Path) -> None:
    program = (
        "import sys\nsys.modules['pygls'] = sys.modules['lsprotocol'] = None\n"
        "from symdsl.cli import main\nmain(['lsp'])"
    )
    with started(["-c", program], tmp_path) as running:
        _, complaint = running.communicate(timeout=SECONDS)
    assert running.returncode == 3
    assert complaint == "error: the language server needs `lsprotocol`: run `pip install 'symdsl[lsp]'`\n"


def test_an_imported_text_counts_as_it_is_in_the_editor(client: Client, folder: Path, uri: str) -> None:
    library = folder / "unsaved.sym"
    library.write_text("let q = 3\n")
    text = f'import "unsaved.sym"\nlet r = q\n{SPEC}'.replace("width = 4", "width = r", 1)
    assert client.open(uri, text) == []
    assert client.open(library.as_uri(), "let q = 3\n") == []
    client.change(library.as_uri(), 2, "// one\n// two\nlet q = 7\n")
    assert client.diagnostics(uri) == []
    (target,) = client.at("definition", uri, *spot(text, "let r = "))
    assert target["range"] == range_of(2, 4, 5)
    assert "is `7`" in client.at("hover", uri, *spot(text, "let "))["contents"]["value"]
    client.tell("textDocument/didClose", {"textDocument": {"uri": library.as_uri()}})
    assert client.diagnostics(uri) == []
    assert "is `3`" in client.at("hover", uri, *spot(text, "let "))["contents"]["value"]
    library.write_text("let p = 3\n")
    client.tell("workspace/didChangeWatchedFiles", {"changes": [{"uri": library.as_uri(), "type": 2}]})
    assert [one["code"] for one in client.diagnostics(uri)] == ["E301"]


def test_an_error_stands_at_the_import_that_it_came_by(client: Client, folder: Path, uri: str) -> None:
    for name, content in {"ab": "let p = 3", "b": "let q = zzz", "e": "let e = 1", "c": 'import "b.sym"'}.items():
        (folder / f"{name}.sym").write_text(content + "\n")
    for first, second in (("ab", "b"), ("e", "c")):
        text = f'import "{first}.sym"\nimport "{second}.sym"\n{SPEC}'
        (found,) = [one for one in client.open(uri, text) if one["code"] == "E301"]
        assert found["range"]["start"] == {"line": 1, "character": 7}
        client.tell("textDocument/didClose", {"textDocument": {"uri": uri}})
        assert client.diagnostics(uri) == []


def test_a_text_that_is_opened_changed_reaches_those_that_import_it(client: Client, folder: Path, uri: str) -> None:
    library = folder / "restored.sym"
    text = f'import "restored.sym"\nlet r = q\n{SPEC}'.replace("width = 4", "width = r", 1)
    assert "E101" in [one["code"] for one in client.open(uri, text)]
    assert client.open(library.as_uri(), "let q = 3\n") == []
    assert client.diagnostics(uri) == []
    client.tell("textDocument/didClose", {"textDocument": {"uri": library.as_uri()}})
    assert "E101" in [one["code"] for one in client.diagnostics(uri)]


@pytest.mark.parametrize("odd", ["a%00b.sym", "itself.sym"])
def test_a_name_that_no_file_can_have_stops_no_other(client: Client, folder: Path, uri: str, odd: str) -> None:
    link = folder / "itself.sym"
    if not link.is_symlink():
        link.symlink_to(link)
    strange = f"{folder.as_uri()}/{odd}"
    assert client.open(strange, SPEC) == []
    assert [one["code"] for one in client.open(uri, WRONG)] == ["E302"]
    client.tell("textDocument/didClose", {"textDocument": {"uri": strange}})
    assert client.diagnostics(strange) == []
