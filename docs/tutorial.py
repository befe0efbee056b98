"""Runs the cheap commands of the tutorial and writes what they print into it: `python docs/tutorial.py`.

A test compares the tutorial with what this would write. What takes a search is run by hand.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

FILE = Path(__file__).with_suffix(".md")

_SAVED = re.compile(r"^Save this as `(.+)`:\n\n```sym\n(.*?)^```", re.MULTILINE | re.DOTALL)
_CONSOLE = re.compile(r"(?<=^```console\n)(.*?)(?=^```)", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_OF_RUNS = "runs/"


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of the tutorial with what they print, in order."""
    for block in _CONSOLE.finditer(text):
        yield from _COMMAND.findall(block[0])


def refreshed(text: str, folder: Path) -> str:
    """The tutorial with what its commands print now, but for those that need a run.

    Args:
        text: the tutorial.
        folder: an empty one, for the files that it makes.
    """
    environment = os.environ | {"NO_COLOR": "1", "PATH": f"{_command(folder)}{os.pathsep}{os.environ['PATH']}"}
    for name, spec in _SAVED.findall(text):
        (folder / name).write_text(spec, encoding="utf-8")

    def printed(match: re.Match[str]) -> str:
        if _OF_RUNS in match[1]:
            return match[0]
        output = subprocess.STDOUT
        done = subprocess.run(match[1], shell=True, cwd=folder, env=environment, stdout=-1, stderr=output, text=True)
        return f"$ {match[1]}\n{done.stdout}"

    return _CONSOLE.sub(lambda block: _COMMAND.sub(printed, block[0]), text)


def _command(folder: Path) -> Path:
    """A folder for the path in which `symdsl` is the package that this Python has."""
    found = folder / "bin"
    found.mkdir()
    (found / "symdsl").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m symdsl "$@"\n', encoding="utf-8")
    (found / "symdsl").chmod(0o755)
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        FILE.write_text(refreshed(FILE.read_text(encoding="utf-8"), Path(scratch)), encoding="utf-8")
