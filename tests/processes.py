"""Runs the package under test, and no other copy of it, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import symdsl


def started(arguments: Sequence[object], cwd: Path, **streams: Any) -> subprocess.Popen[Any]:
    """`python` with these arguments, at work in `cwd`; streams that are not named become pipes, of text unless told."""
    # Python looks for modules in the working folder first, so that must never be the checkout by accident.
    environment = os.environ | {"PYTHONPATH": str(Path(symdsl.__file__).parents[1])}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | streams
    return subprocess.Popen([sys.executable, *map(str, arguments)], cwd=cwd, env=environment, **pipes)


def output_of(program: str, cwd: Path) -> str:
    """What a Python program prints; it must end well."""
    with started(["-c", program], cwd) as running:
        printed, complaint = running.communicate()
    assert running.returncode == 0, complaint
    return printed
