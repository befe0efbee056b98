"""Runs the commands of the tutorial in an empty folder and writes what they print into it: `python docs/tutorial.py`.

Commands that need a run take minutes together, and are run with `--all`, which also takes the pictures from their
runs. A test compares the tutorial with what this writes without it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

FILE = Path(__file__).with_suffix(".md")
PICTURES = {"runs/demo": "tutorial_demo.svg", "runs/turned": "tutorial_turned.svg"}
"""Pictures that the tutorial shows, by the run that they are of."""

_SAVED = re.compile(r"^Save this as `([^`\n]+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
_CONSOLE = re.compile(r"(?<=^```console\n)(.*?)(?=^```)", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_EPOCHS = re.compile(r"(^epoch .*\n)(?:^epoch .*\n)+(^epoch .*\n)", re.MULTILINE)
_OF_RUNS = "runs/"


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of the tutorial with what they print, in order."""
    for block in _CONSOLE.finditer(text):
        yield from _COMMAND.findall(block[0])


def refreshed(text: str, folder: Path, everything: bool = False) -> str:
    """The tutorial with what its commands print now.

    Args:
        text: the tutorial.
        folder: an empty one, for the files that it makes.
        everything: whether to run what needs a run, too.
    """
    environment = os.environ | {"NO_COLOR": "1", "PATH": f"{_command(folder)}{os.pathsep}{os.environ['PATH']}"}
    for name, content in _SAVED.findall(text):
        (folder / name).write_text(content, encoding="utf-8")

    def printed(match: re.Match[str]) -> str:
        if _OF_RUNS in match[1] and not everything:
            return match[0]
        output = subprocess.STDOUT
        done = subprocess.run(match[1], shell=True, cwd=folder, env=environment, stdout=-1, stderr=output, text=True)
        return f"$ {match[1]}\n{_shortened(done.stdout)}"

    return _CONSOLE.sub(lambda block: _COMMAND.sub(printed, block[0]), text)


def _shortened(output: str) -> str:
    """What a search prints, with dots for the lines of most of its epochs."""
    return _EPOCHS.sub(r"\1...\n\2", output)


def _command(folder: Path) -> Path:
    """A folder for the path in which `symdsl` and `python` are the package and the Python that run this."""
    found = folder / "bin"
    found.mkdir()
    for name, arguments in (("symdsl", '-m symdsl "$@"'), ("python", '"$@"')):
        (found / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}\n', encoding="utf-8")
        (found / name).chmod(0o755)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="also run the searches, and renew the pictures")
    asked = parser.parse_args().all
    with tempfile.TemporaryDirectory() as scratch:
        FILE.write_text(refreshed(FILE.read_text(encoding="utf-8"), Path(scratch), asked), encoding="utf-8")
        for run, picture in PICTURES.items() if asked else ():
            shutil.copy(Path(scratch) / run / "architecture.svg", FILE.parent / "images" / picture)
