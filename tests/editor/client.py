"""A client of the language server: JSON-RPC through the pipes of a process."""

from __future__ import annotations

import json
import queue
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from processes import started

SECONDS = 30
"""A server that says nothing for so long is broken."""


class Client:
    """Talks to `symdsl lsp`, at work in a folder; one that is left open is shut down at the end of a `with` block."""

    def __init__(self, folder: Path, encodings: list[str] | None = None) -> None:
        self.process = started(["-m", "symdsl", "lsp"], folder, stdin=-1, text=False)
        self._messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._kept: list[dict[str, Any]] = []
        self._last = 0
        threading.Thread(target=self._listen, daemon=True).start()
        general = {"general": {"positionEncodings": encodings}} if encodings else {}
        self.capabilities = self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": general})
        self.tell("initialized", {})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        self.process.wait(SECONDS)

    def leave(self) -> int:
        """Shut the server down as the protocol says; its exit status."""
        self.ask("shutdown", None)
        self.tell("exit", None)
        return self.process.wait(SECONDS)

    def tell(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def ask(self, method: str, params: Any) -> Any:
        """The result of a request."""
        self._last += 1
        self._send({"id": self._last, "method": method, "params": params})
        answer = self._receive(lambda message: message.get("id") == self._last)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def open(self, uri: str, text: str) -> list[dict[str, Any]]:
        """Open a text; its diagnostics."""
        document = {"uri": uri, "languageId": "sym", "version": 1, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": document})
        return self.diagnostics(uri)

    def change(self, uri: str, version: int, text: str) -> None:
        """Type something."""
        changed = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]}
        self.tell("textDocument/didChange", changed)

    def diagnostics(self, uri: str) -> list[dict[str, Any]]:
        """The diagnostics that are published next."""
        published = self._receive(lambda message: _publishes(message, uri))
        found: list[dict[str, Any]] = published["params"]["diagnostics"]
        return found

    def at(self, method: str, uri: str, line: int, character: int) -> Any:
        """The result of a request about a place."""
        place = {"line": line, "character": character}
        return self.ask(f"textDocument/{method}", {"textDocument": {"uri": uri}, "position": place})

    def _send(self, message: dict[str, Any]) -> None:
        content = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(content), content))
        self.process.stdin.flush()

    def _receive(self, wanted: Any) -> dict[str, Any]:
        for message in self._kept:
            if wanted(message):
                self._kept.remove(message)
                return message
        while True:
            received = self._messages.get(timeout=SECONDS)
            assert received is not None, "the server has left"
            if wanted(received):
                return received
            self._kept.append(received)

    def _listen(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while header := stream.readline():
            length = int(header.removeprefix(b"Content-Length: "))
            while stream.readline().strip():
                pass
            self._messages.put(json.loads(stream.read(length)))
        self._messages.put(None)


def _publishes(message: dict[str, Any], uri: str) -> bool:
    return message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri
